//! Decisions by rules: on the authority of their authors, and judged by the topic as theirs.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{Digest, OperationId, ParticipantId, RULES, Refusal};
use platform::{MutexGuard, unix_ms};
use rules::{CallRule, RuleEvidence};
use store::recorder::RecordPermit;
use topic::Decision;

use super::decided_by::AuthoredRule;
use super::desk::RuleDesk;
use super::facts::CallFacts;
use super::kept::RuleRecord;
use super::locked_case::{
    ChosenRule, LockedAuthors, LockedCase, RuleAuthor, RuleChoice, RuleVerdict, authors_of,
};
use super::shadowed_case;
use crate::dispatch::{Dispatch, Refused, Step};
use crate::judges::{self, Judge};
use crate::live::{Event, Topic};
use crate::proposals::content::{DecidingRule, Proposed, Ruling};
use crate::proposals::{approvals, describe, open};
use crate::record::Record;

impl Dispatch {
    /// Has the rules of before decide nothing more, until [`Self::put_rules_in_force`] with those that
    /// come. Until then people decide what rules of both reject or ask for.
    pub fn pause_rules(&self, coming: &[CallRule]) {
        self.rules.pause(coming);
    }

    /// Whether the rules of the topic's file judge what is proposed now: there are some, and they are
    /// not paused.
    pub fn rules_judge(&self) -> bool {
        self.rules.judges()
    }

    /// Has no rules in force any more, in a topic that is over.
    pub fn drop_rules(&self) {
        let incarnations = self.context.sealer.incarnations();
        self.rules.put_in_force(&[], false, incarnations, unix_ms());
    }

    /// Puts the rules of the topic's file in force in place of those before, beside those that were
    /// learned, and has them judge what waits for a decision.
    pub fn put_rules_in_force(self: &Arc<Self>, rules: &[CallRule]) {
        let keeps = self.ledgers.is_some();
        let incarnations = self.context.sealer.incarnations();
        let records = self
            .rules
            .put_in_force(rules, keeps, incarnations, unix_ms());
        write(self, records);
        judges::all(self);
    }
}

/// Writes records down for which nothing waits.
pub(crate) fn write(dispatch: &Dispatch, records: Vec<RuleRecord>) {
    if let Some(ledgers) = &dispatch.ledgers {
        dispatch.rules.write(ledgers, records);
    }
}

/// Suspends the learned rules that a rejection speaks against. Returns what is to be written together
/// with it.
pub(crate) fn contradicted(
    dispatch: &Dispatch,
    rejection: &RuleEvidence,
    at_ms: u64,
) -> Vec<RuleRecord> {
    let approved_by = approvers_of(dispatch, rejection);
    let suspended = dispatch.rules.contradict(rejection, &approved_by, at_ms);
    log(dispatch, &suspended);
    suspended
}

/// The participants that have approved the same call as one that is rejected, so that it taught;
/// none where no rule was learned of its tool.
fn approvers_of(dispatch: &Dispatch, rejection: &RuleEvidence) -> BTreeSet<ParticipantId> {
    let ledgers = dispatch.ledgers.as_ref();
    let Some(ledgers) = ledgers.filter(|_| dispatch.rules.has_taught(&rejection.tool)) else {
        return BTreeSet::new();
    };
    let topic = dispatch.name().as_str();
    let past = ledgers.rules.state(|kept| kept.decisions_of(topic));
    let same = past
        .iter()
        .filter(|one| one.teaches() && one.is_same_call(rejection));
    same.map(|one| one.by.clone()).collect()
}

impl Judge for RuleDesk {
    fn is_active(&self) -> bool {
        self.judges()
    }

    fn judge(&self, dispatch: &Arc<Dispatch>, proposal: OperationId) {
        let content = dispatch.with(|topic| topic.proposed(proposal).map(|(it, _)| Arc::clone(it)));
        let Some(content) = content else {
            return;
        };
        // As before the decision of a person.
        dispatch.refresh_proposer(&content.opened);
        let content = describe::one(dispatch, proposal, &content);
        if let Some(case) = RuleCase::read(dispatch, proposal, &content) {
            case.decide(dispatch);
        }
    }

    /// Charges stay until it is over.
    fn approved(&self, _: OperationId) {}

    fn conclude(&self, proposal: OperationId) {
        Self::conclude(self, proposal);
    }
}

/// A proposal that rules are to judge, with what is read of it before anything is locked.
struct RuleCase<'c> {
    proposal: OperationId,
    content: &'c Arc<Proposed>,
    facts: CallFacts<'c>,
    /// The authors of the rules for its kind of call.
    authors: Vec<RuleAuthor>,
    /// Digest of the proposal as its reviewers see it.
    shown: Digest,
    /// Digest of it under what its server lists now, if it can still be shown.
    current: Option<Digest>,
}

impl<'c> RuleCase<'c> {
    fn read(
        dispatch: &Arc<Dispatch>,
        proposal: OperationId,
        content: &'c Arc<Proposed>,
    ) -> Option<Self> {
        let opened = &content.opened;
        let facts = CallFacts::of(dispatch, opened)?;
        Some(Self {
            proposal,
            content,
            authors: authors_of(dispatch, facts.kind, |state| &state.set),
            facts,
            shown: opened.digest.parse().ok()?,
            current: open::current_digest(dispatch, opened),
        })
    }

    /// Has the rules decide, if one does: from the lock of the topic on no other call comes between.
    fn decide(self, dispatch: &Arc<Dispatch>) {
        let proposal = self.proposal;
        let topic = dispatch.lock_for("Decide");
        if !topic.is_undecided(proposal, |now| Arc::ptr_eq(now, self.content)) {
            return;
        }
        let mut state = dispatch.rules.lock();
        // Once more: they may be paused by now.
        if !dispatch.rules.judges() || state.is_decided(proposal) {
            return;
        }
        let at_ms = state.book.spent.not_before(unix_ms());
        let beside = self.facts.beside_names();
        let case = LockedCase {
            facts: &self.facts,
            call: &self.facts.call(proposal, &beside, at_ms),
            authors: LockedAuthors {
                dispatch,
                topic: &topic,
                read: &self.authors,
            },
        };
        if !self.facts.is_of_server_in(&topic) || !case.knows_all_authors(&state) {
            // Another configuration came between, and has all judged again when it is in force.
            return;
        }
        let causes = case.suspensions(&state);
        let mut noted = dispatch.rules.suspend(&mut state, causes, at_ms);
        noted.extend(shadowed_case::look(&case, &mut state));
        let chosen = match case.choose(&state) {
            RuleChoice::Decide(chosen) => *chosen,
            choice => {
                if let RuleChoice::Leave(rule) = choice {
                    noted.push(dispatch.rules.leave(&mut state, rule, proposal));
                }
                drop(state);
                // While no participant can decide it: the end of a spot check follows its beginning.
                note(dispatch, noted);
                return drop(topic);
            }
        };
        // Before the decision: one that cannot be recorded does not count.
        match dispatch.audit.reserve_of(&chosen.rule.author) {
            Ok(permit) => {
                let name = chosen.rule.name.clone();
                let charges = chosen.verdict.charges();
                dispatch.rules.decide(&mut state, proposal, charges);
                drop(state);
                let step = self.step(dispatch, topic, chosen, permit);
                tracing::debug!(%proposal, rule = %name, "decided by a rule");
                // Before what follows of the decision.
                note(dispatch, noted);
                step.carry_out();
            }
            Err(refusal) => {
                drop(state);
                drop(topic);
                note(dispatch, noted);
                self.not_decided(dispatch, &chosen.rule, &refusal);
            }
        }
    }

    /// Steps the topic with the decision of a rule.
    fn step<'d>(
        &self,
        dispatch: &'d Arc<Dispatch>,
        topic: MutexGuard<'d, Topic>,
        chosen: ChosenRule,
        permit: RecordPermit,
    ) -> Step<'d> {
        let ChosenRule { rule, verdict } = chosen;
        let reason = format!("rule {}: {}", rule.name, rule.sentence());
        let fulfilment = dispatch.context.operation().to_string();
        let (decision, fulfilment) = match verdict {
            RuleVerdict::Approve { .. } => {
                let (shown, current) = (self.shown, self.current);
                (Decision::Approve { shown, current }, Some(&*fulfilment))
            }
            RuleVerdict::Reject => {
                let reason = Some(reason.as_str());
                (Decision::Reject { reason }, None)
            }
        };
        let params = approvals::running_params(self.content, None);
        let ruling = Ruling::new(params, permit).by_rule(DecidingRule {
            name: rule.name,
            charges: verdict.into_charges(),
        });
        let author = self.authors.iter().find(|author| author.id == rule.author);
        let event = Event::Decide {
            proposal: self.proposal,
            by: &rule.author,
            outside: author.and_then(|author| author.outside.as_ref()),
            narrowing: None,
            decision,
            fulfilment,
            amended: None,
            ruling: Arc::new(ruling),
        };
        dispatch.step_locked(topic, event, Refused::ByEffect)
    }

    /// Records a decision that does not count, as one of a person is recorded.
    fn not_decided(&self, dispatch: &Dispatch, rule: &CallRule, refusal: &Refusal) {
        let decided_by = AuthoredRule {
            rule: &rule.name,
            author: &rule.author,
        };
        let why = format!("{}: by {decided_by}", refusal.code.as_str());
        Record(dispatch).not_decided(self.proposal, Some(&**self.content), RULES, &why, None);
    }
}

/// Logs suspensions, and writes down what the rules did beside deciding.
fn note(dispatch: &Dispatch, noted: Vec<RuleRecord>) {
    log(dispatch, &noted);
    write(dispatch, noted);
}

fn log(dispatch: &Dispatch, suspended: &[RuleRecord]) {
    for record in suspended {
        if let RuleRecord::Suspended(suspended) = record {
            tracing::warn!(
                target: "portmoot::rules", topic = %dispatch.name(), rule = %suspended.rule,
                cause = suspended.cause.words(), "suspended"
            );
        }
    }
}
