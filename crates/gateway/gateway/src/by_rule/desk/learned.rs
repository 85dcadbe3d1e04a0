//! Learned rules at the desk: accepted, contradicted, ended.

use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};

use auth::Incarnations;
use model::{ParticipantId, Refusal, RefusalCode};
use platform::default_share;
use rules::{CallRule, LifeEvent, RuleEvidence, RuleName, RulePhase, RuleSet, SuspendCause};

use super::super::kept::{
    AcceptedRule, DismissedOffer, EndedRule, LearnedText, RuleRecord, UsedUp,
};
use super::{AcceptingRule, DeskState, RuleDesk, bearers_of};
use crate::ledgers::TopicLedgers;

/// The most learned rules and dismissed offers of a topic, those that ended within 90 days among
/// them; of one author a quarter.
pub const LEARNED_RULES_MAX: usize = 1_000;

/// The number of rejections at a moment, all of which the journal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeenRejections(u64);

/// A rule that its author accepts.
pub(crate) struct AcceptedOffer<'o> {
    pub(crate) rule: CallRule,
    /// The rejections beside which it was made.
    pub(crate) seen: SeenRejections,
    pub(crate) incarnations: &'o Incarnations,
    /// In Unix milliseconds.
    pub(crate) at_ms: u64,
}

impl RuleDesk {
    /// The rejections up to now; `None` while one of them is being written.
    pub(crate) fn seen_rejections(&self) -> Option<SeenRejections> {
        let written = self.written_rejections.load(Ordering::SeqCst);
        let all = self.rejections.load(Ordering::SeqCst);
        (written == all).then_some(SeenRejections(all))
    }

    /// The rules that approve, or rather did, or are about to: what one of them covers is not offered.
    pub(crate) fn known(&self) -> RuleSet {
        self.lock().whole.clone()
    }

    /// The approvals that became rules, or were not to become some.
    pub(crate) fn used_up(&self) -> Vec<UsedUp> {
        self.lock().book.used_up()
    }

    /// Suspends the learned rules that cover a rejection, and no other ones: those of the file are the
    /// operator's. Returns what the journal must have of it together with the rejection, which is
    /// reported by [`Self::rejection_written`].
    pub(crate) fn contradict(&self, rejection: &RuleEvidence, now_ms: u64) -> Vec<RuleRecord> {
        // Before the lock: an acceptance that is not seen here sees this.
        self.rejections.fetch_add(1, Ordering::SeqCst);
        let mut state = self.lock();
        let cause = SuspendCause::Contradicted(rejection.operation);
        let mut names: Vec<RuleName> = Vec::new();
        for accepting in &mut state.accepting {
            if accepting.rule.covers(rejection) {
                accepting.contradicted = Some(cause.clone());
                names.push(accepting.rule.name.clone());
            }
        }
        let covering = state.learned.iter().filter(|rule| {
            let life = state.book.life(&rule.name.id);
            rule.covers(rejection) && life.is_some_and(|life| life.is_suspended_by(&cause))
        });
        names.extend(covering.map(|rule| rule.name.clone()));
        let causes = names.into_iter().map(|name| (name, cause.clone()));
        self.suspend(&mut state, causes.collect(), now_ms)
    }

    /// Takes that the journal has a rejection, or cannot have it.
    pub(crate) fn rejection_written(&self) {
        self.written_rejections.fetch_add(1, Ordering::SeqCst);
    }

    /// Puts a learned rule in force: first its acceptance is written, so that none is in force that
    /// the journal does not have. Blocks until then.
    ///
    /// # Errors
    /// Why it does not come into force.
    pub(crate) fn accept(
        &self,
        ledgers: &TopicLedgers,
        offer: AcceptedOffer<'_>,
    ) -> Result<(), Refusal> {
        let (rule, at_ms) = (Arc::new(offer.rule), offer.at_ms);
        let accepted = LifeEvent::Accepted {
            by: rule.author.clone(),
            digest: rule.digest(),
            shadow: false,
            at_ms,
        };
        RulePhase::Offered
            .step(&rule, &accepted)
            .map_err(|error| Refusal::new(RefusalCode::Conflict, error.to_string()))?;
        let record = RuleRecord::Accepted(AcceptedRule {
            topic: self.topic.clone(),
            rule: rule.name.clone(),
            digest: rule.digest(),
            at_ms,
            bearers: bearers_of(&rule, offer.incarnations),
            learned: Some(LearnedText(Arc::clone(&rule))),
        });
        let (report, written) = mpsc::sync_channel(1);
        {
            let mut state = self.lock();
            state.has_room_for(&rule)?;
            state.accepting.push(AcceptingRule {
                rule: Arc::clone(&rule),
                contradicted: None,
            });
            if self.seen_rejections() != Some(offer.seen) {
                state.accepted(&rule.name);
                return Err(decided_meanwhile());
            }
            // Under the lock: what suspends it from now on follows it in the journal.
            let report = move |result| _ = report.send(result);
            ledgers.rules.submit(std::slice::from_ref(&record), report);
        }
        let written = written.recv();
        let mut state = self.lock();
        let accepting = state.accepted(&rule.name);
        if !matches!(written, Ok(Ok(()))) {
            return Err(not_recorded("the rule is not in force"));
        }
        state.book.apply(&record);
        state.learned.push(Arc::clone(&rule));
        self.note_rules(&state);
        match accepting.and_then(|accepting| accepting.contradicted) {
            // Its suspension is written already.
            Some(cause) => _ = self.suspend(&mut state, vec![(rule.name.clone(), cause)], at_ms),
            None => state.put(&rule),
        }
        Ok(())
    }

    /// Ends a learned rule. Blocks until that is written.
    ///
    /// # Errors
    /// It is not there, or the journal does not take it.
    pub(crate) fn end(
        &self,
        ledgers: &TopicLedgers,
        rule: &RuleName,
        by: &ParticipantId,
        at_ms: u64,
    ) -> Result<(), Refusal> {
        let record = RuleRecord::Ended(EndedRule {
            topic: self.topic.clone(),
            rule: rule.clone(),
            by: by.to_string(),
            at_ms,
        });
        {
            let mut state = self.lock();
            if !state.learned.iter().any(|one| one.name == *rule) {
                return Err(Refusal::new(
                    RefusalCode::UnknownTarget,
                    "there is no such learned rule",
                ));
            }
            state.book.apply(&record);
            state.learned.retain(|one| one.name != *rule);
            let gone = std::slice::from_ref(rule);
            state.set = state.set.without(gone);
            state.whole = state.whole.without(gone);
            state.refused.remove(&rule.id);
            self.note_rules(&state);
        }
        let written = ledgers.rules.append(std::slice::from_ref(&record));
        written.map_err(|_| {
            self.unwritten.lock().push(record);
            not_recorded("the rule decides nothing until the gateway restarts")
        })
    }

    /// Takes that its author does not want a rule that it was offered. Blocks until that is written.
    ///
    /// # Errors
    /// There are too many, or the journal does not take it.
    pub(crate) fn dismiss(
        &self,
        ledgers: &TopicLedgers,
        rule: CallRule,
        at_ms: u64,
    ) -> Result<(), Refusal> {
        self.lock().has_room_for(&rule)?;
        let record = RuleRecord::Dismissed(DismissedOffer {
            topic: self.topic.clone(),
            rule: LearnedText(Arc::new(rule)),
            at_ms,
        });
        let written = ledgers.rules.append(std::slice::from_ref(&record));
        written.map_err(|_| not_recorded("the offer stays"))?;
        self.apply(&record);
        Ok(())
    }
}

impl DeskState {
    /// Whether one more rule of an author may be learned.
    fn has_room_for(&self, rule: &CallRule) -> Result<(), Refusal> {
        let full = |why: String| Err(Refusal::new(RefusalCode::Overloaded, why));
        let used = self.book.used_up();
        let own = used.iter().filter(|one| one.rule.author == rule.author);
        let of_author = default_share(LEARNED_RULES_MAX);
        if own.count() >= of_author {
            return full(format!(
                "you have accepted and dismissed {of_author} rules within 90 days: no more may be learned now"
            ));
        }
        if used.len() + self.accepting.len() >= LEARNED_RULES_MAX {
            return full(format!(
                "{LEARNED_RULES_MAX} rules were accepted and dismissed within 90 days: no more may be learned now"
            ));
        }
        if self.book.life(&rule.name.id).is_some() {
            let why = "there was a rule of this id";
            return Err(Refusal::new(RefusalCode::Conflict, why));
        }
        match self.whole.with(rule.clone()) {
            Ok(_) => Ok(()),
            Err(error) => Err(Refusal::new(RefusalCode::Conflict, error.to_string())),
        }
    }

    /// Takes out a rule whose acceptance is written, or is not.
    fn accepted(&mut self, rule: &RuleName) -> Option<AcceptingRule> {
        let mut accepting = self.accepting.iter();
        let at = accepting.position(|one| one.rule.name == *rule)?;
        Some(self.accepting.swap_remove(at))
    }

    /// Has a learned rule match calls.
    fn put(&mut self, rule: &CallRule) {
        let sets = self
            .set
            .with(rule.clone())
            .and_then(|set| Ok((set, self.whole.with(rule.clone())?)));
        match sets {
            Ok((set, whole)) => {
                self.set = set;
                self.whole = whole;
            }
            Err(error) => _ = self.refused.insert(rule.name.id.clone(), error.to_string()),
        }
    }
}

fn decided_meanwhile() -> Refusal {
    let why = "a proposal was rejected meanwhile";
    Refusal::new(RefusalCode::Conflict, why).hint("look at the offers again: portmoot rules offers")
}

fn not_recorded(what: &str) -> Refusal {
    Refusal::new(
        RefusalCode::LogUnavailable,
        format!("the journal cannot be written: {what}"),
    )
}

#[cfg(test)]
mod tests;
