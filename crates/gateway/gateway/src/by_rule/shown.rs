//! Rules as they are shown: with their standing, and why they decide a proposal or do not.

use std::sync::Arc;

use model::{Digest, OperationId};
use platform::unix_ms;
use rules::{CallRule, ExplainedCheck, Fit, ShadowTally, SpotTally};

pub use super::desk::RuleOrigin;
use super::desk::{DeskState, RuleStanding};
use super::facts::CallFacts;
use super::locked_case::{LockedAuthors, LockedCase, authors_of};
use crate::dispatch::Dispatch;

/// A rule of a topic, at one moment.
#[derive(Debug, Clone)]
pub struct RuleView {
    /// The rule.
    pub rule: CallRule,
    /// `in force`, `in shadow`, `suspended`, `over`, `spent`, or `refused`.
    pub state: &'static str,
    /// Why it decides nothing, in words.
    pub why: Option<String>,
    /// When it was suspended, in Unix milliseconds.
    pub since_ms: Option<u64>,
    /// Uses so far.
    pub used: u32,
    /// Uses that are left of its budget.
    pub left: Option<u32>,
    /// Its origin.
    pub origin: RuleOrigin,
    /// When its author accepted or added it, in Unix milliseconds, if it is not of the topic's file.
    pub accepted_ms: Option<u64>,
    /// Its spot checks that were decided.
    pub spots: SpotTally,
    /// What it would have decided, of a rule in shadow.
    pub shadow: Option<ShadowTally>,
}

/// Why a rule decides a proposal, or does not.
#[derive(Debug, Clone)]
pub struct RuleReason {
    /// The rule.
    pub rule: CallRule,
    /// Whether it decides the proposal, were it the only one, and not in shadow.
    pub acts: bool,
    /// Every check with its result, and what else keeps the rule from deciding.
    pub checks: Vec<ExplainedCheck>,
    /// When its author accepted or added it, in Unix milliseconds, if it is not of the topic's file.
    pub accepted_ms: Option<u64>,
}

/// A proposal as rules see it, and why each of them decides it or does not.
#[derive(Debug, Clone)]
pub struct ExplainedProposal {
    /// Digest of the tool's definition.
    pub definition: Option<Digest>,
    /// Digest of the server's configured command or URL.
    pub server: Option<Digest>,
    /// The rules of its kind, in the order in which they decide.
    pub rules: Vec<RuleReason>,
}

impl Dispatch {
    /// All rules of the topic's file, in its order, then those that were learned, in the order of
    /// their acceptance.
    pub fn rule_views(&self) -> Vec<RuleView> {
        let state = self.rules.lock();
        let now_ms = state.book.spent.not_before(unix_ms());
        let view = |(rule, standing): (&CallRule, RuleStanding)| {
            let used = state.book.spent.uses(&rule.name);
            let left = rule.uses.map(|most| most.saturating_sub(used));
            let accepted_ms = state.accepted_ms(rule);
            let spots = state.book.spent.spot_tally(&rule.name);
            let tally = || state.book.spent.shadow_tally(&rule.name);
            let shadow = rule.shadow.then(tally);
            let origin = state.origin(rule);
            let (state, why, since_ms) = match standing {
                RuleStanding::Refused(why) => ("refused", Some(why), None),
                RuleStanding::Suspended { cause, at_ms } => {
                    ("suspended", Some(cause.words()), Some(at_ms))
                }
                RuleStanding::InForce if rule.is_over(now_ms) => ("over", None, None),
                RuleStanding::InForce if left == Some(0) => ("spent", None, None),
                RuleStanding::InForce if rule.shadow => ("in shadow", None, None),
                RuleStanding::InForce => ("in force", None, None),
            };
            RuleView {
                rule: rule.clone(),
                state,
                why,
                since_ms,
                used,
                left,
                origin,
                accepted_ms,
                spots,
                shadow,
            }
        };
        state.all().map(view).collect()
    }

    /// Why the rules of the topic decide a proposal, or do not. `None` if it is not known, for no
    /// single addressee, or a plan, about which people decide.
    pub fn explain_rules(self: &Arc<Self>, proposal: OperationId) -> Option<ExplainedProposal> {
        let content = self.with(|topic| topic.proposed(proposal).map(|(it, _)| it.clone()))?;
        if !content.is_single() {
            return None;
        }
        let facts = CallFacts::of(self, &content.opened)?;
        let authors = authors_of(self, facts.kind, |state| &state.whole);
        let beside = facts.beside_names();
        let rules = self.with(|topic| {
            let state = self.rules.lock();
            let spent = &state.book.spent;
            let case = LockedCase {
                facts: &facts,
                call: &facts.call(proposal, &beside, spent.not_before(unix_ms())),
                authors: LockedAuthors {
                    dispatch: self,
                    topic,
                    read: &authors,
                },
            };
            let explained = state.whole.explain(case.call, spent).into_iter();
            explained
                .map(|explained| {
                    let hindrance = case.hindrance(&state, explained.rule);
                    let is_left = spent.is_left(proposal);
                    let hindered = hindrance.map(|hindrance| hindrance.check(explained.rule));
                    let spot = spot_check(&state, explained.rule, &case);
                    RuleReason {
                        rule: explained.rule.clone(),
                        accepted_ms: state.accepted_ms(explained.rule),
                        acts: explained.acts && hindered.is_none() && !is_left,
                        checks: hindered
                            .into_iter()
                            .chain(explained.checks)
                            .chain(spot)
                            .collect(),
                    }
                })
                .collect()
        });
        Some(ExplainedProposal {
            definition: facts.definition,
            server: facts.server,
            rules,
        })
    }
}

/// The check of a learned rule that a call is no spot check. While it waits, this says nothing: no
/// reviewer is to know.
fn spot_check(state: &DeskState, rule: &CallRule, case: &LockedCase<'_>) -> Option<ExplainedCheck> {
    if !state.was_taught(rule) {
        return None;
    }
    let operation = case.call.operation;
    let is_pending = case.authors.topic.is_undecided(operation, |_| true);
    let (found, fit) = if is_pending {
        ("that is shown when it is decided", Fit::Unclear)
    } else if state.book.spent.was_checked(&rule.name.id, operation) {
        ("it was one", Fit::Failed)
    } else {
        ("it was none", Fit::Held)
    };
    Some(ExplainedCheck {
        asked: "it is none of the calls that the rule leaves to people as spot checks".to_owned(),
        found: found.to_owned(),
        fit,
        is_guard: false,
    })
}
