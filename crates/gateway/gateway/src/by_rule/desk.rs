//! The rules of one topic in force, and what they have spent, under one lock.

pub(crate) mod learned;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use auth::Incarnations;
use model::{OperationId, ParticipantId};
use platform::{Mutex, MutexGuard};
use rules::{
    CallRule, CallStage, LifeEvent, RuleDecision, RuleId, RuleName, RulePhase, RuleSet, RuledCall,
    ShadowEnd, SpotEnd, SuspendCause,
};
use store::{StoreError, not_written};

use super::kept::{
    AcceptedRule, CheckedSpot, ReturnedUse, RuleBook, RuleLife, RuleRecord, ShadowEnded, SpotSeed,
    SpottedCall, SuspendedRule,
};
use crate::ledgers::TopicLedgers;

/// Why no rule is in force where nothing is kept.
const NO_JOURNAL: &str = "its uses cannot be recorded: the gateway keeps no journal";

/// The rules of one topic.
pub(crate) struct RuleDesk {
    topic: String,
    /// Whether it has rules: without any, nothing is looked at.
    has_rules: AtomicBool,
    /// Whether one of its rules rejects or asks: without any, nothing is taken of a call that needs no
    /// approval.
    tightens: AtomicBool,
    /// Whether one of its rules rejects or asks, in shadow or not: without any, no call that needs no
    /// approval is looked at.
    looks_at_direct: AtomicBool,
    /// Whether one of its rules is in shadow, or was since a proposal that waits.
    has_shadows: AtomicBool,
    /// Whether one of its rules asks for an earlier call: without any, no answer is looked at.
    awaits_answers: AtomicBool,
    /// Whether its rules decide nothing, until others are put in force.
    is_paused: AtomicBool,
    /// Whether a rule has decided something since the start.
    has_ever_decided: AtomicBool,
    /// Whether a rule may have left a proposal to people that is not over: without, no end is looked at.
    leaves: AtomicBool,
    /// Rejections that count as evidence since the start.
    rejections: AtomicU64,
    /// Those of them about which the journal has answered.
    written_rejections: AtomicU64,
    state: Mutex<DeskState>,
    /// Records of lives that found the journal's queue full, which go to it with the next ones.
    unwritten: Arc<Mutex<Vec<RuleRecord>>>,
}

/// The rules of one topic, as its desk has them.
#[derive(Default)]
pub(crate) struct DeskState {
    /// The rules as the journal has them, with all that is being written to it.
    pub(crate) book: RuleBook,
    /// The rules that match calls: those in force, and all that reject or ask. What one of these
    /// matches that is not in force waits for people.
    pub(crate) set: RuleSet,
    /// While the rules are paused: those that reject or ask and come into force after it.
    pub(crate) coming: RuleSet,
    /// All rules of the file and all learned ones, as one set, for explanations.
    pub(crate) whole: RuleSet,
    /// All rules of the file, in its order.
    written: Vec<CallRule>,
    /// The rules that were learned or added by hand and have not ended, in the order in which they came
    /// into force.
    learned: Vec<Arc<CallRule>>,
    /// Learned rules whose acceptance is being written: they decide nothing.
    accepting: Vec<AcceptingRule>,
    /// Learned rules whose ends are being written: no next versions of them come into force.
    ending: BTreeSet<RuleId>,
    /// Rules that did not come into force, with the reasons.
    refused: BTreeMap<RuleId, String>,
    /// Proposals that a rule has decided, until they are over. A decision that the topic refuses leaves
    /// its proposal open at once, and the charge is given back a little later: a second decision
    /// between the two would run on that charge.
    decided: BTreeSet<OperationId>,
}

/// A learned rule whose acceptance is being written.
struct AcceptingRule {
    rule: Arc<CallRule>,
    /// Whether decisions taught it.
    is_taught: bool,
    /// A cause to suspend it that a rejection was meanwhile.
    contradicted: Option<SuspendCause>,
}

/// The origin of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RuleOrigin {
    /// The topic's file.
    File,
    /// Decisions of its author, who accepted it.
    Learned,
    /// Its author, who added it by hand.
    Added,
}

/// The place of a rule in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RuleStanding {
    /// It decides.
    InForce,
    /// It is suspended since this time, in Unix milliseconds.
    Suspended { cause: SuspendCause, at_ms: u64 },
    /// It did not come into force.
    Refused(String),
}

impl RuleDesk {
    /// A desk without rules, which knows what the journal has of those before.
    pub(crate) fn open(topic: &str, ledgers: Option<&TopicLedgers>) -> Self {
        let book = ledgers.map(|ledgers| ledgers.rules.state(|kept| kept.of_topic(topic)));
        let book = book.unwrap_or_default();
        let leaves = AtomicBool::new(book.has_seed());
        let has_shadows = AtomicBool::new(book.spent.has_open_shadows());
        let state = DeskState {
            book,
            ..DeskState::default()
        };
        Self {
            topic: topic.to_owned(),
            has_rules: AtomicBool::new(false),
            tightens: AtomicBool::new(false),
            looks_at_direct: AtomicBool::new(false),
            has_shadows,
            awaits_answers: AtomicBool::new(false),
            is_paused: AtomicBool::new(false),
            has_ever_decided: AtomicBool::new(false),
            leaves,
            rejections: AtomicU64::new(0),
            written_rejections: AtomicU64::new(0),
            state: Mutex::new(state),
            unwritten: Arc::default(),
        }
    }

    /// Whether its rules judge proposals: there are some, and they are not paused.
    pub(crate) fn judges(&self) -> bool {
        self.has_rules.load(Ordering::Relaxed) && !self.is_paused.load(Ordering::Relaxed)
    }

    /// Whether a call that needs no approval is to be looked at: a rule rejects or asks, paused or not,
    /// in shadow or not. Asked while the topic is locked: nothing that a configuration gives is used
    /// before its rules are known.
    pub(crate) fn looks_at_direct(&self) -> bool {
        self.looks_at_direct.load(Ordering::Relaxed)
    }

    /// Whether one of its rules is in shadow, or may have been.
    pub(crate) fn has_shadows(&self) -> bool {
        self.has_shadows.load(Ordering::Relaxed)
    }

    /// Whether something may be taken of a call that needs no approval: a rule rejects or asks, paused
    /// or not.
    pub(crate) fn tightens(&self) -> bool {
        self.tightens.load(Ordering::Relaxed)
    }

    /// Whether one of its rules asks for an earlier call.
    pub(crate) fn awaits_answers(&self) -> bool {
        self.awaits_answers.load(Ordering::Relaxed)
    }

    /// Whether its rules decide nothing. Asked while the desk is locked.
    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Relaxed)
    }

    /// Whether a rule has decided something since the start: without, no call is a use of one.
    pub(crate) fn has_ever_decided(&self) -> bool {
        self.has_ever_decided.load(Ordering::Relaxed)
    }

    /// Takes that a rule decides a proposal, with what it counts of it.
    pub(crate) fn decide(
        &self,
        state: &mut DeskState,
        proposal: OperationId,
        charges: &[RuleRecord],
    ) {
        charges.iter().for_each(|charge| state.book.apply(charge));
        self.has_ever_decided.store(true, Ordering::Relaxed);
        state.decided.insert(proposal);
    }

    /// Takes that a rule leaves a proposal to people. Returns what the journal must have of it.
    pub(crate) fn leave(
        &self,
        state: &mut DeskState,
        rule: RuleName,
        proposal: OperationId,
    ) -> RuleRecord {
        self.leaves.store(true, Ordering::Relaxed);
        let record = RuleRecord::Spotted(SpottedCall {
            topic: self.topic.clone(),
            rule,
            operation: proposal,
        });
        state.book.apply(&record);
        record
    }

    /// The end of a proposal that a rule has left to people; `None` of any other one. The journal gets
    /// it with the end itself, and [`Self::apply`] once it has both.
    pub(crate) fn end_of_check(&self, proposal: OperationId, end: SpotEnd) -> Option<RuleRecord> {
        let is_left =
            self.leaves.load(Ordering::Relaxed) && self.lock().book.spent.is_left(proposal);
        is_left.then(|| {
            RuleRecord::Checked(CheckedSpot {
                topic: self.topic.clone(),
                operation: proposal,
                end,
            })
        })
    }

    /// The end of a proposal at which rules in shadow have looked; `None` of any other one. The journal
    /// gets it with the end itself, and [`Self::apply`] once it has both.
    pub(crate) fn end_of_shadow(
        &self,
        proposal: OperationId,
        end: ShadowEnd,
    ) -> Option<RuleRecord> {
        let is_seen = self.has_shadows() && self.lock().book.spent.is_shadowed(proposal);
        is_seen.then(|| {
            RuleRecord::ShadowEnded(ShadowEnded {
                topic: self.topic.clone(),
                operation: proposal,
                end,
            })
        })
    }

    /// The return of what rules count of a proposal that is over and did not run: of one that needs
    /// several approvals they counted when a rule gave one of them. `None` if they count nothing of it.
    /// The journal gets it with the end itself, and [`Self::apply`] once it has both.
    pub(crate) fn return_of(&self, proposal: OperationId) -> Option<RuleRecord> {
        let is_charged = self.lock().book.spent.is_charged(proposal);
        is_charged.then(|| {
            RuleRecord::Returned(ReturnedUse {
                topic: self.topic.clone(),
                operation: proposal,
            })
        })
    }

    /// Counts calls that are no uses of rules: of those that reject or ask.
    pub(crate) fn count(&self, charges: &[RuleRecord]) {
        if charges.is_empty() {
            return;
        }
        let mut state = self.lock();
        charges.iter().for_each(|charge| state.book.apply(charge));
    }

    /// Takes that a proposal is over.
    pub(crate) fn conclude(&self, proposal: OperationId) {
        if self.has_ever_decided() {
            self.lock().decided.remove(&proposal);
        }
    }

    /// The state of the desk. Taken after the lock of the topic, never before.
    pub(crate) fn lock(&self) -> MutexGuard<'_, DeskState> {
        self.state.lock()
    }

    /// Has the rules decide nothing more, until others are put in force: those of before are not to
    /// decide under a configuration that has them no more. Until then people decide what one of those
    /// before, or of those that come, rejects or asks for.
    pub(crate) fn pause(&self, coming: &[CallRule]) {
        let tightening = coming.iter().filter(|rule| rule.decision.tightens());
        let coming = RuleSet::new(tightening.cloned()).unwrap_or_default();
        // Under the lock: what was chosen by then is decided before the topic takes the next step.
        let mut state = self.lock();
        if coming.tightens() {
            self.tightens.store(true, Ordering::Relaxed);
            self.looks_at_direct.store(true, Ordering::Relaxed);
        }
        state.coming = coming;
        self.is_paused.store(true, Ordering::Relaxed);
    }

    /// Puts the rules of a file in force in place of those before. Returns what the journal must
    /// have of it.
    pub(crate) fn put_in_force(
        &self,
        rules: &[CallRule],
        keeps: bool,
        incarnations: &Incarnations,
        now_ms: u64,
    ) -> Vec<RuleRecord> {
        let mut state = self.lock();
        state.book.drop_old(now_ms);
        let mut records = Vec::new();
        let mut refused = BTreeMap::new();
        let mut active = Vec::new();
        let learned = if keeps {
            state.book.learned()
        } else {
            Vec::new()
        };
        if !learned.is_empty() {
            // Rules that were accepted before there were spot checks.
            records.extend(self.seed(&mut state));
        }
        for rule in rules {
            let taken = if keeps {
                self.admit(&state.book, rule, incarnations, now_ms)
            } else {
                Err(NO_JOURNAL.to_owned())
            };
            match taken {
                Ok(record) => {
                    if let Some(record) = record {
                        state.book.apply(&record);
                        records.push(record);
                    }
                }
                Err(why) => _ = refused.insert(rule.name.id.clone(), why),
            }
            let is_out = refused.contains_key(&rule.name.id) || state.is_suspended(rule);
            if !is_out || (rule.decision.tightens() && !rule.shadow) {
                active.push(rule.clone());
            }
        }
        let fitting = fitting(rules, &learned, &mut refused);
        let whole: Vec<CallRule> = rules.iter().chain(&fitting).cloned().collect();
        active.extend(fitting.into_iter().filter(|rule| !state.is_suspended(rule)));
        // A file was read as these, so that they are sets.
        let sets = RuleSet::new(active).and_then(|active| Ok((active, RuleSet::new(whole)?)));
        let (set, whole) = sets.unwrap_or_else(|error| {
            tracing::error!(topic = self.topic, %error, "no rule is in force: the gateway has a fault");
            let why = error.to_string();
            let all = rules.iter().map(|rule| (rule.name.id.clone(), why.clone()));
            refused.extend(all);
            (RuleSet::default(), RuleSet::default())
        });
        self.tightens.store(set.tightens(), Ordering::Relaxed);
        self.looks_at_direct
            .store(set.looks_at_direct(), Ordering::Relaxed);
        state.set = set;
        state.coming = RuleSet::default();
        state.whole = whole;
        state.refused = refused;
        state.written = rules.to_vec();
        state.learned = learned;
        self.note_rules(&state);
        self.is_paused.store(false, Ordering::Relaxed);
        records
    }

    /// The secret by which spot checks are drawn, if there is none yet, for the journal.
    fn seed(&self, state: &mut DeskState) -> Option<RuleRecord> {
        if state.book.has_seed() {
            return None;
        }
        let record = RuleRecord::Seeded(SpotSeed::random(&self.topic));
        state.book.apply(&record);
        Some(record)
    }

    /// Notes whether there are rules, whether one asks for an earlier call, and whether one is in shadow.
    fn note_rules(&self, state: &DeskState) {
        self.awaits_answers
            .store(state.set.awaits_answers(), Ordering::Relaxed);
        if state.whole.has_shadows() {
            // It stays so: they have looked at proposals that wait.
            self.has_shadows.store(true, Ordering::Relaxed);
        }
        let has_rules = !state.written.is_empty() || !state.learned.is_empty();
        self.has_rules.store(has_rules, Ordering::Relaxed);
    }

    /// Whether a rule may be in force: with a record, if it comes into force now.
    fn admit(
        &self,
        book: &RuleBook,
        rule: &CallRule,
        incarnations: &Incarnations,
        now_ms: u64,
    ) -> Result<Option<RuleRecord>, String> {
        let digest = rule.digest();
        if let Some(life) = book.life(&rule.name.id) {
            let next = life.name.version.saturating_add(1);
            if life.name.version > rule.name.version {
                return Err(format!(
                    "{} was in force already: write `version = {next}`",
                    life.name
                ));
            }
            if life.name == rule.name {
                return if life.digest == digest {
                    Ok(None)
                } else {
                    Err(format!(
                        "it was changed since it came into force: write `version = {next}`"
                    ))
                };
            }
        }
        // The operator, whose file it is, has written it in its author's name.
        let accepted = LifeEvent::Accepted {
            by: rule.author.clone(),
            digest,
            shadow: rule.shadow,
            at_ms: now_ms,
        };
        match RulePhase::Offered.step(rule, &accepted) {
            Ok(_) => Ok(Some(RuleRecord::Accepted(AcceptedRule {
                topic: self.topic.clone(),
                rule: rule.name.clone(),
                digest,
                at_ms: now_ms,
                bearers: bearers_of(rule, incarnations),
                learned: None,
                by_hand: false,
            }))),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The sentence of the rule that would reject a proposed call, if there is one.
    pub(crate) fn rejecting(&self, call: &RuledCall<'_>) -> Option<String> {
        let state = self.lock();
        let answer = state
            .set
            .decide(call, &state.book.spent, CallStage::Proposed)?;
        let rule = answer.rule;
        (rule.decision == RuleDecision::Reject).then(|| {
            let sentence = rule.sentence();
            format!(
                "rejected by rule {} of {}: {sentence}",
                rule.name, rule.author
            )
        })
    }

    /// Gives back the use of a decision that did not count. Returns what the journal must have of
    /// it.
    pub(crate) fn give_back(&self, operation: OperationId) -> RuleRecord {
        let record = RuleRecord::Returned(ReturnedUse {
            topic: self.topic.clone(),
            operation,
        });
        let mut state = self.lock();
        state.book.apply(&record);
        state.decided.remove(&operation);
        record
    }

    /// This time, or the latest one that the rules have seen, where a clock was set back.
    pub(crate) fn not_before(&self, now_ms: u64) -> u64 {
        self.lock().book.spent.not_before(now_ms)
    }

    /// Takes a change that the journal gets.
    pub(crate) fn apply(&self, record: &RuleRecord) {
        self.lock().book.apply(record);
    }

    /// Suspends rules. Returns what the journal must have of it.
    pub(crate) fn suspend(
        &self,
        state: &mut DeskState,
        causes: Vec<(RuleName, SuspendCause)>,
        now_ms: u64,
    ) -> Vec<RuleRecord> {
        if causes.is_empty() {
            return Vec::new();
        }
        let names: Vec<RuleName> = causes.iter().map(|(name, _)| name.clone()).collect();
        state.set = state.set.without(&names);
        let record = |(rule, cause)| {
            RuleRecord::Suspended(SuspendedRule {
                topic: self.topic.clone(),
                rule,
                cause,
                at_ms: now_ms,
            })
        };
        let records: Vec<RuleRecord> = causes.into_iter().map(record).collect();
        records.iter().for_each(|record| state.book.apply(record));
        records
    }

    /// Writes records down for which nothing waits: those before them, that they follow from, are
    /// lost with them. Lives of rules that find the journal's queue full follow with the next records.
    pub(crate) fn write(&self, ledgers: &TopicLedgers, records: Vec<RuleRecord>) {
        let mut all = std::mem::take(&mut *self.unwritten.lock());
        all.extend(records);
        if all.is_empty() {
            return;
        }
        let all: Arc<[RuleRecord]> = all.into();
        let unwritten = Arc::clone(&self.unwritten);
        let again = Arc::clone(&all);
        ledgers.rules.submit(&all, move |result| {
            let Err(error) = result else {
                return;
            };
            tracing::error!(error = %not_written(&error), "the journal has no record of rules");
            if matches!(error, StoreError::Busy) {
                // A use that is not given back costs a use, and is no reason to hold more and more.
                let lives = again.iter().filter(|record| record.is_of_life());
                unwritten.lock().extend(lives.cloned());
            }
        });
    }
}

impl DeskState {
    /// Whether a rule has decided a proposal that is not over.
    pub(crate) fn is_decided(&self, proposal: OperationId) -> bool {
        self.decided.contains(&proposal)
    }

    fn is_suspended(&self, rule: &CallRule) -> bool {
        let life = self.book.life(&rule.name.id);
        life.is_some_and(|life| life.suspension().is_some())
    }

    /// When a rule in force came into force, in Unix milliseconds.
    pub(crate) fn since_ms(&self, rule: &CallRule) -> u64 {
        self.book
            .life(&rule.name.id)
            .map_or(0, |life| life.since_ms)
    }

    /// The name of a rule's author, or of one of its proposers, that has another bearer than when the
    /// rule came into force, or none any more.
    pub(crate) fn replaced(
        &self,
        rule: &CallRule,
        incarnations: &Incarnations,
    ) -> Option<Box<str>> {
        let before = &self.book.life(&rule.name.id)?.bearers;
        let has_other_bearer = |name: &&str| {
            let bearer = before.get(*name).map(String::as_str);
            let is_of_rule = names_in(rule).any(|own| own == *name);
            !is_of_rule || !incarnations.is(name, bearer)
        };
        let mut names = before.keys().map(String::as_str).chain(names_in(rule));
        names.find(has_other_bearer).map(Into::into)
    }

    /// All rules of the file and all learned ones, each with its standing.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&CallRule, RuleStanding)> {
        let learned = self.learned.iter().map(AsRef::as_ref);
        let all = self.written.iter().chain(learned);
        all.map(|rule| (rule, self.standing(rule)))
    }

    /// The rules of an author that were learned from decisions and have not ended, and whose renewals are
    /// not being written.
    pub(crate) fn learned_of(
        &self,
        author: &ParticipantId,
    ) -> impl Iterator<Item = &Arc<CallRule>> {
        let own = self
            .learned
            .iter()
            .filter(move |rule| rule.author == *author);
        own.filter(|rule| self.was_taught(rule) && !self.is_accepting(&rule.name.id))
    }

    /// Whether a version of a learned rule is being written.
    fn is_accepting(&self, id: &RuleId) -> bool {
        let mut accepting = self.accepting.iter();
        accepting.any(|one| one.rule.name.id == *id)
    }

    /// Whether a rule was learned from decisions.
    pub(crate) fn was_taught(&self, rule: &CallRule) -> bool {
        let life = self.book.life(&rule.name.id);
        life.is_some_and(|life| life.taught().is_some())
    }

    /// The origin of a rule.
    pub(crate) fn origin(&self, rule: &CallRule) -> RuleOrigin {
        match self.book.life(&rule.name.id) {
            Some(life) if life.taught().is_some() => RuleOrigin::Learned,
            Some(life) if life.by_hand => RuleOrigin::Added,
            Some(_) | None => RuleOrigin::File,
        }
    }

    /// When its author accepted a rule that was learned, or added it by hand, in Unix milliseconds;
    /// `None` of a rule of the file.
    pub(crate) fn accepted_ms(&self, rule: &CallRule) -> Option<u64> {
        let life = self.book.life(&rule.name.id)?;
        life.learned.as_ref().map(|_| life.since_ms)
    }

    /// The standing of a rule.
    pub(crate) fn standing(&self, rule: &CallRule) -> RuleStanding {
        if let Some(why) = self.refused.get(&rule.name.id) {
            return RuleStanding::Refused(why.clone());
        }
        let life = self.book.life(&rule.name.id);
        match life.and_then(RuleLife::suspension) {
            Some(suspension) => RuleStanding::Suspended {
                cause: suspension.cause.clone(),
                at_ms: suspension.at_ms,
            },
            None => RuleStanding::InForce,
        }
    }
}

/// The learned rules that have a place beside those of a file. The others are refused.
fn fitting(
    written: &[CallRule],
    learned: &[Arc<CallRule>],
    refused: &mut BTreeMap<RuleId, String>,
) -> Vec<CallRule> {
    let all = || learned.iter().map(|rule| (**rule).clone());
    if RuleSet::new(written.iter().cloned().chain(all())).is_ok() {
        return all().collect();
    }
    let mut set = RuleSet::new(written.iter().cloned()).unwrap_or_default();
    let mut fitting = Vec::new();
    for rule in all() {
        match set.with(rule.clone()) {
            Ok(more) => {
                set = more;
                fitting.push(rule);
            }
            Err(error) => _ = refused.insert(rule.name.id.clone(), error.to_string()),
        }
    }
    fitting
}

/// Incarnations of the names of a rule's author and its proposers, of those that have one.
fn bearers_of(rule: &CallRule, incarnations: &Incarnations) -> BTreeMap<String, String> {
    let of = |name: &str| Some((name.to_owned(), incarnations.of(name)?));
    names_in(rule).filter_map(of).collect()
}

/// The names of a rule's author and its proposers.
fn names_in(rule: &CallRule) -> impl Iterator<Item = &str> {
    let proposers = rule.scope.proposers.iter().map(|one| one.as_str());
    iter::once(rule.author.as_str()).chain(proposers)
}

#[cfg(test)]
mod tests;
