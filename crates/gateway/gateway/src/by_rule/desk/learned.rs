//! Learned rules at the desk: accepted, contradicted, ended.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};

use auth::Incarnations;
use model::{ParticipantId, Refusal, RefusalCode};
use platform::default_share;
use rules::{
    CallRule, LifeEvent, QuarantineCause, RuleEvidence, RuleName, RulePhase, RuleSet, RuledTool,
    SuspendCause,
};
use store::StoreError;

use super::super::kept::{
    AcceptedRule, DismissedOffer, EndedRule, LearnedText, RuleRecord, UsedUp,
};
use super::{AcceptingRule, DeskState, RuleDesk, bearers_of};
use crate::ledgers::TopicLedgers;

/// The most rules that were added by hand, learned rules and dismissed offers of a topic, those that
/// ended within 90 days among them; of one author a quarter.
pub const LEARNED_RULES_MAX: usize = 1_000;

/// The number of rejections at a moment, all of which the journal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeenRejections(u64);

/// A rule that its author accepts, or adds by hand.
pub(crate) struct AcceptedOffer<'o> {
    pub(crate) rule: CallRule,
    /// The version of it that is in force now, if it is renewed.
    pub(crate) renews: Option<RuleName>,
    /// The rejections beside which it was made.
    pub(crate) seen: SeenRejections,
    /// Whether its author has written it by hand.
    pub(crate) by_hand: bool,
    pub(crate) incarnations: &'o Incarnations,
    /// In Unix milliseconds.
    pub(crate) at_ms: u64,
}

/// A rejection that may speak against rules.
#[derive(Clone, Copy)]
struct Contradiction<'r> {
    rejection: &'r RuleEvidence,
    /// The participants that had approved the same call.
    approved_by: &'r BTreeSet<ParticipantId>,
}

impl Contradiction<'_> {
    /// The cause for which it suspends a rule, if it does.
    fn cause(self, rule: &CallRule, is_taught: bool) -> Option<SuspendCause> {
        let rejection = self.rejection;
        if rule.shadow {
            return None;
        }
        if rule.covers(rejection) {
            return Some(SuspendCause::Contradicted(rejection.operation));
        }
        let is_about = is_taught && rule.scope.is_of_tool(&rejection.tool);
        let was_approved = self.approved_by.contains(&rule.author);
        let quarantine = QuarantineCause::of_rejection(rejection, was_approved);
        quarantine
            .filter(|_| is_about)
            .map(|_| SuspendCause::ToolQuarantined)
    }
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

    /// The present version of a rule that its author added by hand, if there is one.
    pub(crate) fn version_before(&self, rule: &CallRule) -> Option<RuleName> {
        let state = self.lock();
        let life = state.book.life(&rule.name.id)?;
        let is_own = life.by_hand && life.is_now(&life.name);
        let mut own = state.learned_by(&rule.author);
        (is_own && own.any(|one| one.name == life.name)).then(|| life.name.clone())
    }

    /// The approvals that became rules, or were not to become some.
    pub(crate) fn used_up(&self) -> Vec<UsedUp> {
        self.lock().book.used_up()
    }

    /// Whether rules in force that were learned may be about calls of a tool.
    pub(crate) fn has_taught(&self, tool: &RuledTool) -> bool {
        let state = self.lock();
        let of_tool = |rule: &Arc<CallRule>| rule.scope.is_of_tool(tool) && state.was_taught(rule);
        let mut accepting = state.accepting.iter();
        accepting.any(|one| one.is_taught && one.rule.scope.is_of_tool(tool))
            || state.learned.iter().any(of_tool)
    }

    /// Suspends the rules that cover a rejection, and those that were learned of its tool if it says
    /// that the arguments were not the reason, or their authors (`approved_by`) had approved the same
    /// call. Those of the file are the operator's, and those in shadow count it. Returns what the journal
    /// must have of it together with the rejection, which is reported by [`Self::rejection_written`].
    pub(crate) fn contradict(
        &self,
        rejection: &RuleEvidence,
        approved_by: &BTreeSet<ParticipantId>,
        now_ms: u64,
    ) -> Vec<RuleRecord> {
        // Before the lock: an acceptance that is not seen here sees this.
        self.rejections.fetch_add(1, Ordering::SeqCst);
        let mut state = self.lock();
        let against = Contradiction {
            rejection,
            approved_by,
        };
        let mut causes: Vec<(RuleName, SuspendCause)> = Vec::new();
        for accepting in &mut state.accepting {
            if let Some(cause) = against.cause(&accepting.rule, accepting.is_taught) {
                accepting.contradicted = Some(cause.clone());
                causes.push((accepting.rule.name.clone(), cause));
            }
        }
        let new = state.learned.iter().filter_map(|rule| {
            let cause = against.cause(rule, state.was_taught(rule))?;
            let life = state.book.life(&rule.name.id)?;
            let is_new = life.is_suspended_by(&cause);
            is_new.then(|| (rule.name.clone(), cause))
        });
        causes.extend(new);
        self.suspend(&mut state, causes, now_ms)
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
        let renews = offer.renews.as_ref();
        let accepted = LifeEvent::Accepted {
            by: rule.author.clone(),
            digest: rule.digest(),
            shadow: rule.shadow,
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
            by_hand: offer.by_hand,
        });
        let (report, written) = mpsc::sync_channel(1);
        let seed = {
            let mut state = self.lock();
            state.forget_gone(at_ms);
            if renews.is_none() {
                state.has_room_for(&rule.author)?;
            }
            state.has_place_for(&rule, renews)?;
            state.accepting.push(AcceptingRule {
                rule: Arc::clone(&rule),
                is_taught: !offer.by_hand,
                contradicted: None,
            });
            if self.seen_rejections() != Some(offer.seen) {
                state.accepted(&rule.name);
                return Err(decided_meanwhile());
            }
            // Under the lock: what suspends it from now on follows it in the journal.
            let report = move |result| _ = report.send(result);
            let seed = self.seed(&mut state);
            let records: Vec<RuleRecord> = seed.iter().chain([&record]).cloned().collect();
            ledgers.rules.submit(&records, report);
            seed
        };
        let written = written.recv().unwrap_or(Err(StoreError::Stopped));
        let mut state = self.lock();
        let accepting = state.accepted(&rule.name);
        if let Err(error) = written {
            self.unwritten.lock().extend(seed);
            return Err(not_recorded(&error, "the rule is not in force"));
        }
        state.book.apply(&record);
        state.put(&rule, renews);
        self.note_rules(&state);
        if let Some(cause) = accepting.and_then(|accepting| accepting.contradicted) {
            // Its suspension is written already.
            self.suspend(&mut state, vec![(rule.name.clone(), cause)], at_ms);
        }
        drop(state);
        // What found the queue full before, such as the secret of the spot checks.
        self.write(ledgers, Vec::new());
        Ok(())
    }

    /// Ends a learned rule, and returns it. Blocks until that is written. It decides nothing from the
    /// beginning on, whatever comes of it.
    ///
    /// # Errors
    /// It is not there, or its next version is being accepted, or the journal does not take its end:
    /// then it is suspended.
    pub(crate) fn end(
        &self,
        ledgers: &TopicLedgers,
        rule: &RuleName,
        by: &ParticipantId,
        at_ms: u64,
    ) -> Result<Arc<CallRule>, Refusal> {
        let record = RuleRecord::Ended(EndedRule {
            topic: self.topic.clone(),
            rule: rule.clone(),
            by: by.to_string(),
            at_ms,
        });
        let (ended, suspended) = {
            let mut state = self.lock();
            let ended = state.begin_to_end(rule)?;
            let cause = vec![(rule.clone(), SuspendCause::LogUnavailable)];
            (ended, self.suspend(&mut state, cause, at_ms))
        };
        let written = ledgers.rules.append(std::slice::from_ref(&record));
        let mut state = self.lock();
        state.ending.remove(&rule.id);
        if let Err(error) = written {
            self.unwritten.lock().extend(suspended);
            let what = "the rule is suspended, and has not ended: end it again when the disk takes records";
            return Err(not_recorded(&error, what));
        }
        state.book.apply(&record);
        state.learned.retain(|one| one.name != *rule);
        let gone = std::slice::from_ref(rule);
        state.set = state.set.without(gone);
        state.whole = state.whole.without(gone);
        state.refused.remove(&rule.id);
        self.note_rules(&state);
        Ok(ended)
    }

    /// Takes that its author does not want a rule that it was offered. Blocks until that is written.
    ///
    /// # Errors
    /// There are too many, or the journal does not take it.
    pub(crate) fn dismiss(
        &self,
        ledgers: &TopicLedgers,
        rule: &CallRule,
        renews: Option<&RuleName>,
        at_ms: u64,
    ) -> Result<(), Refusal> {
        {
            let state = self.lock();
            state.has_room_for(&rule.author)?;
            state.has_place_for(rule, renews)?;
        }
        let record = RuleRecord::Dismissed(DismissedOffer {
            topic: self.topic.clone(),
            rule: LearnedText(Arc::new(rule.clone())),
            at_ms,
        });
        let written = ledgers.rules.append(std::slice::from_ref(&record));
        written.map_err(|error| not_recorded(&error, "the offer stays"))?;
        self.apply(&record);
        Ok(())
    }
}

impl DeskState {
    /// The rules of an author that were learned or added by hand, and have not ended.
    fn learned_by(&self, author: &ParticipantId) -> impl Iterator<Item = &Arc<CallRule>> {
        let learned = self.learned.iter();
        learned.filter(move |rule| rule.author == *author)
    }

    /// Whether one more rule of an author may be learned, or not wanted.
    fn has_room_for(&self, author: &ParticipantId) -> Result<(), Refusal> {
        let full = |why: String| Err(Refusal::new(RefusalCode::Overloaded, why));
        let used = self.book.used_up();
        let own = used.iter().filter(|one| one.rule.author == *author);
        let own_by_hand = self.book.authors_by_hand().filter(|one| *one == author);
        let of_author = default_share(LEARNED_RULES_MAX);
        if own.count() + own_by_hand.count() >= of_author {
            return full(format!(
                "you have {of_author} rules that were added, or accepted and dismissed within 90 days: there is room for no more now"
            ));
        }
        let by_hand = self.book.authors_by_hand().count();
        if used.len() + by_hand + self.accepting.len() >= LEARNED_RULES_MAX {
            return full(format!(
                "{LEARNED_RULES_MAX} rules were added, or accepted and dismissed within 90 days: there is room for no more now"
            ));
        }
        Ok(())
    }

    /// Forgets the rules that were added by hand and are over.
    fn forget_gone(&mut self, now_ms: u64) {
        self.book.drop_old(now_ms);
        let book = &self.book;
        let is_gone = |rule: &Arc<CallRule>| book.life(&rule.name.id).is_none();
        let gone = self.learned.iter().filter(|rule| is_gone(rule));
        let gone: Vec<RuleName> = gone.map(|rule| rule.name.clone()).collect();
        if gone.is_empty() {
            return;
        }
        self.learned.retain(|rule| !gone.contains(&rule.name));
        self.set = self.set.without(&gone);
        self.whole = self.whole.without(&gone);
    }

    /// Whether a rule may come into force beside the others, in place of this version before.
    fn has_place_for(&self, rule: &CallRule, renews: Option<&RuleName>) -> Result<(), Refusal> {
        let conflict = |why: String| Refusal::new(RefusalCode::Conflict, why);
        if self.is_accepting(&rule.name.id) {
            return Err(conflict("it is being accepted".to_owned()));
        }
        if self.ending.contains(&rule.name.id) {
            return Err(conflict("it is being ended".to_owned()));
        }
        let life = self.book.life(&rule.name.id);
        match (renews, life) {
            (None, Some(_)) => return Err(conflict("there was a rule of this id".to_owned())),
            (Some(before), life)
                if life.is_none_or(|life| !life.is_now(before))
                    || rule.name.version <= before.version =>
            {
                return Err(conflict(format!(
                    "{before} is not the present version any more"
                )));
            }
            (None, None) | (Some(_), _) => {}
        }
        let others = self
            .whole
            .without(renews.map_or(&[][..], std::slice::from_ref));
        match others.with(rule.clone()) {
            Ok(_) => Ok(()),
            Err(error) => Err(conflict(error.to_string())),
        }
    }

    /// Begins to end a learned rule, and returns it.
    fn begin_to_end(&mut self, rule: &RuleName) -> Result<Arc<CallRule>, Refusal> {
        let busy = |why| Refusal::new(RefusalCode::Conflict, why).hint("try again");
        if self.is_accepting(&rule.id) {
            return Err(busy("its next version is being accepted"));
        }
        if self.ending.contains(&rule.id) {
            return Err(busy("it is being ended already"));
        }
        let mut learned = self.learned.iter();
        let found = learned.find(|one| one.name == *rule).cloned();
        let why = "there is no such learned rule";
        let found = found.ok_or_else(|| Refusal::new(RefusalCode::UnknownTarget, why))?;
        self.ending.insert(rule.id.clone());
        Ok(found)
    }

    /// Takes out a rule whose acceptance is written, or is not.
    fn accepted(&mut self, rule: &RuleName) -> Option<AcceptingRule> {
        let mut accepting = self.accepting.iter();
        let at = accepting.position(|one| one.rule.name == *rule)?;
        Some(self.accepting.swap_remove(at))
    }

    /// Has a rule that was learned or added match calls, in place of this version before.
    fn put(&mut self, rule: &Arc<CallRule>, before: Option<&RuleName>) {
        let gone = before.map_or(&[][..], std::slice::from_ref);
        self.learned.retain(|one| !gone.contains(&one.name));
        self.learned.push(Arc::clone(rule));
        let whole = self.whole.without(gone).with((**rule).clone());
        let set = self.set.without(gone).with((**rule).clone());
        match (set, whole) {
            (Ok(set), Ok(whole)) => {
                self.set = set;
                self.whole = whole;
                self.refused.remove(&rule.name.id);
            }
            (Err(error), _) | (_, Err(error)) => {
                self.set = self.set.without(gone);
                self.refused.insert(rule.name.id.clone(), error.to_string());
            }
        }
    }
}

fn decided_meanwhile() -> Refusal {
    let why = "a proposal was rejected meanwhile";
    Refusal::new(RefusalCode::Conflict, why).hint("look at the offers again: portmoot rules offers")
}

/// The refusal of a change of rules that the journal has not taken, with what follows from that.
fn not_recorded(error: &StoreError, what: &str) -> Refusal {
    // The next home of the cluster may have it.
    if matches!(error, StoreError::Elsewhere) {
        return store::not_written(error);
    }
    Refusal::new(
        RefusalCode::LogUnavailable,
        format!("the journal cannot be written: {what}"),
    )
}

#[cfg(test)]
mod tests;
