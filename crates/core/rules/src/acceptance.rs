//! Acceptance of a rule: what its author, and others, must do beyond agreeing; and its renewal.

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
    /// Whether it reads what others must not see.
    pub reads_private: bool,
    /// Whether it reaches others.
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

/// A need of an acceptance beside its author's agreement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AcceptNeed {
    /// It cannot be accepted: the operator wants a person for each call.
    Impossible,
    /// Its author types the tool's name.
    TypeToolName,
    /// A second person who could decide all that it covers confirms it.
    SecondPerson,
    /// Its author types that one proposer may read private data by this rule, or by the other one,
    /// and send it elsewhere by the other, or by this one.
    ConfirmPair(RuleName),
}

/// The needs of accepting an approving rule. `others` are the approving rules in force, each with what
/// is known of its tool.
#[must_use]
pub fn needs_of<'r>(
    rule: &CallRule,
    traits: ToolTraits,
    others: impl IntoIterator<Item = (&'r CallRule, ToolTraits)>,
) -> Vec<AcceptNeed> {
    if rule.decision.tightens() {
        return Vec::new();
    }
    if traits.rules == ToolRules::Never {
        return vec![AcceptNeed::Impossible];
    }
    let mut needs = Vec::new();
    if traits.is_destructive() {
        needs.extend([AcceptNeed::TypeToolName, AcceptNeed::SecondPerson]);
    }
    for (other, other_traits) in others {
        let is_pair = may_leak(traits, other_traits) || may_leak(other_traits, traits);
        let mut proposers = rule.scope.proposers.iter();
        let shares = proposers.any(|one| other.scope.proposers.contains(one));
        let is_other = other.name.id != rule.name.id && other.decision == RuleDecision::Approve;
        if is_pair && shares && is_other {
            needs.push(AcceptNeed::ConfirmPair(other.name.clone()));
        }
    }
    needs
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
        let traits = |rules, harmless| ToolTraits {
            rules,
            harmless,
            ..ToolTraits::default()
        };
        let own = rule("r1", "scout");
        let needs = |traits| needs_of(&own, traits, []);
        let both = [AcceptNeed::TypeToolName, AcceptNeed::SecondPerson];
        assert_eq!(needs(traits(ToolRules::Ask, false)), both);
        assert_eq!(needs(traits(ToolRules::Ask, true)), []);
        assert_eq!(needs(traits(ToolRules::Allow, false)), []);
        assert_eq!(
            needs(traits(ToolRules::Never, true)),
            [AcceptNeed::Impossible]
        );
    }

    #[test]
    fn two_rules_that_leak_together_are_confirmed() {
        let reads = ToolTraits {
            rules: ToolRules::Allow,
            reads_private: true,
            ..ToolTraits::default()
        };
        let sends = ToolTraits {
            rules: ToolRules::Allow,
            open_world: true,
            ..ToolTraits::default()
        };
        let (own, other, stranger) = (rule("r1", "scout"), rule("r2", "scout"), rule("r3", "bo"));
        let pair = [AcceptNeed::ConfirmPair(other.name.clone())];
        assert_eq!(
            needs_of(&own, reads, [(&other, sends), (&stranger, sends)]),
            pair
        );
        assert_eq!(needs_of(&own, sends, [(&other, reads)]), pair);
        assert_eq!(needs_of(&own, reads, [(&other, reads)]), []);
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
