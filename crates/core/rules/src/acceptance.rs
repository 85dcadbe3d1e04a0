//! Acceptance of a rule beside others, and its renewal.

use model::Digest;

use crate::bound::uses_after;
use crate::guards::USES_MAX;
use crate::name::RuleName;
use crate::rule::{CallRule, RuleDecision};

/// Setting of an operator for rules about a tool (`rules = "never"`, `"ask"` or `"allow"`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ToolRules {
    /// No rule approves its calls, and nothing is learned of them.
    Never,
    /// Rules are accepted as its annotations say.
    #[default]
    Ask,
    /// The operator says that it changes nothing.
    Allow,
}

/// Traits of a tool. What a server says of itself only tightens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ToolTraits {
    /// The operator's setting.
    pub rules: ToolRules,
    /// Whether its server says that it destroys nothing.
    pub harmless: bool,
    /// Whether the operator says that it reads what others must not see.
    pub reads_private: bool,
    /// Whether it reaches others: unless its server says otherwise.
    pub open_world: bool,
}

impl ToolTraits {
    /// Whether it counts as destructive: unless its server says otherwise, and unless the operator
    /// says that it changes nothing.
    #[must_use]
    pub fn is_destructive(self) -> bool {
        match self.rules {
            ToolRules::Allow => false,
            ToolRules::Never | ToolRules::Ask => !self.harmless,
        }
    }
}

/// The first of the approving rules in force by which one of a rule's proposers could read private
/// data and send it elsewhere, by one of the two rules each: neither shows what both allow together.
/// `others` are the rules in force, each with what is known of its tool.
#[must_use]
pub fn leaks_with<'r>(
    rule: &CallRule,
    traits: ToolTraits,
    others: impl IntoIterator<Item = (&'r CallRule, ToolTraits)>,
) -> Option<&'r RuleName> {
    if rule.decision != RuleDecision::Approve {
        return None;
    }
    let mut others = others.into_iter().filter(|(other, other_traits)| {
        let is_pair = may_leak(traits, *other_traits) || may_leak(*other_traits, traits);
        let is_other = other.name.id != rule.name.id && other.decision == RuleDecision::Approve;
        is_pair && is_other && shares_proposer(rule, other)
    });
    others.next().map(|(other, _)| &other.name)
}

fn shares_proposer(one: &CallRule, other: &CallRule) -> bool {
    let mut proposers = one.scope.proposers.iter();
    proposers.any(|proposer| other.scope.proposers.contains(proposer))
}

/// Whether what one tool reads may leave by another one.
fn may_leak(reads: ToolTraits, sends: ToolTraits) -> bool {
    reads.reads_private && sends.open_world
}

/// A renewal of an approving rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleRenewal {
    /// The approvals that it rests on now, confirmed uses among them.
    pub approvals: u32,
    /// The new end, in milliseconds since 1970.
    pub expires_ms: u64,
    /// Digest of the tool's definition as the author saw it.
    pub definition: Digest,
    /// Digest of the server's configuration as the author saw it.
    pub server: Digest,
    /// Whether the author typed the name of a tool that counts as destructive now.
    pub destructive: bool,
}

impl CallRule {
    /// The next version, with a budget that its approvals justify. It takes an acceptance of its
    /// own.
    #[must_use]
    pub fn renewed(&self, renewal: &RuleRenewal) -> CallRule {
        let mut next = self.clone();
        next.name.version = self.name.version.saturating_add(1);
        next.uses = Some(uses_after(renewal.approvals).min(USES_MAX));
        next.expires_ms = Some(renewal.expires_ms - renewal.expires_ms % 1000);
        next.scope.definition = Some(renewal.definition);
        next.scope.server = Some(renewal.server);
        next.destructive = renewal.destructive;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::approving;

    fn rule(id: &str, proposer: &str) -> CallRule {
        approving(id, proposer, "")
    }

    #[test]
    fn annotations_only_tighten() {
        let is_destructive = |rules, harmless| {
            let traits = ToolTraits {
                rules,
                harmless,
                ..ToolTraits::default()
            };
            traits.is_destructive()
        };
        assert!(is_destructive(ToolRules::Ask, false));
        assert!(!is_destructive(ToolRules::Ask, true));
        assert!(!is_destructive(ToolRules::Allow, false));
        assert!(is_destructive(ToolRules::Never, false));
    }

    #[test]
    fn a_rule_leaks_with_another_one_of_its_proposer_alone() {
        let reads = ToolTraits {
            reads_private: true,
            ..ToolTraits::default()
        };
        let sends = ToolTraits {
            open_world: true,
            ..ToolTraits::default()
        };
        let (own, other, stranger) = (rule("r1", "scout"), rule("r2", "scout"), rule("r3", "bo"));
        assert_eq!(
            leaks_with(&own, reads, [(&stranger, sends), (&other, sends)]),
            Some(&other.name)
        );
        assert_eq!(
            leaks_with(&own, sends, [(&other, reads)]),
            Some(&other.name)
        );
        assert_eq!(leaks_with(&own, reads, [(&other, reads)]), None);
        assert_eq!(leaks_with(&own, reads, [(&own, sends)]), None);
        let mut rejecting = rule("r4", "scout");
        rejecting.decision = RuleDecision::Reject;
        assert_eq!(leaks_with(&own, reads, [(&rejecting, sends)]), None);
        assert_eq!(leaks_with(&rejecting, reads, [(&own, sends)]), None);
    }

    #[test]
    fn a_renewal_is_a_new_version_with_a_budget_that_grows_by_a_third() {
        let mut version = rule("r1", "scout");
        let mut approvals = 20;
        let mut budgets = Vec::new();
        for _ in 0..5 {
            let renewal = RuleRenewal {
                approvals,
                expires_ms: 1_800_000_000_123,
                definition: Digest([1; 32]),
                server: Digest([2; 32]),
                destructive: false,
            };
            let next = version.renewed(&renewal);
            assert_eq!(next.name.version, version.name.version + 1);
            assert_ne!(next.digest(), version.digest());
            assert_eq!(next.expires_ms, Some(1_800_000_000_000));
            budgets.push(next.uses.unwrap());
            approvals += next.uses.unwrap();
            version = next;
        }
        assert_eq!(budgets, [6, 8, 11, 15, 20]);
    }
}
