//! Simulated shell: mailboxes that are emptied in random interleavings with events, and what each
//! addressee sees of it.
//!
//! What is checked here depends on the order of one mailbox alone. It must hold however mailboxes
//! and events interleave.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use model::OperationId;
use topic::Addressee;

use crate::{
    numbers::{CountedDecision, Effect, Numbers, Receiver},
    prng::Prng,
    seen::Tally,
};

/// The mailbox of an addressee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mailbox {
    Call(u64),
    Link(u64),
    Question(u64),
    Gateway,
}

impl From<Addressee<'_, Numbers>> for Mailbox {
    fn from(addressee: Addressee<'_, Numbers>) -> Self {
        match addressee {
            Addressee::Call(call) => Self::Call(*call),
            Addressee::Link(link) => Self::Link(*link),
            Addressee::Question(question) => Self::Question(*question),
            Addressee::Gateway => Self::Gateway,
        }
    }
}

/// An effect that waits, with the number of its step.
#[derive(Debug)]
struct Waiting {
    step: u64,
    effect: Effect,
}

/// The effects on a call that its caller and its server have seen.
#[derive(Debug, Default)]
struct CallSeen {
    is_delivered: bool,
    is_cancelled: bool,
    is_over: bool,
    /// Its caller was answered for now, and is not back.
    is_away: bool,
    /// The request with which its caller came back last.
    back: Option<u64>,
    /// Questions that its caller was asked on it.
    asked: BTreeSet<OperationId>,
}

/// The effects that a client has seen on its link.
#[derive(Debug, Default)]
struct LinkSeen {
    is_closed: bool,
    asked: BTreeSet<OperationId>,
}

/// The effects on a proposal that the room has seen.
#[derive(Debug, Default)]
struct ProposalSeen {
    is_proposed: bool,
    is_approved: bool,
    is_concluded: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Shell {
    mailboxes: BTreeMap<Mailbox, VecDeque<Waiting>>,
    steps: u64,
    calls: BTreeMap<u64, CallSeen>,
    /// Requests that have their answer.
    answered: BTreeSet<u64>,
    links: BTreeMap<u64, LinkSeen>,
    questions: BTreeSet<u64>,
    rulings: BTreeSet<u64>,
    /// Tasks that were cancelled or forgotten.
    ended_tasks: BTreeSet<u64>,
    proposals: BTreeMap<OperationId, ProposalSeen>,
    pub(crate) tally: Tally,
}

impl Shell {
    /// Puts the effects of one step into the mailboxes, as under the topic's lock.
    pub(crate) fn deliver<'e>(&mut self, effects: impl IntoIterator<Item = &'e Effect>) {
        self.steps += 1;
        for effect in effects {
            let waiting = Waiting {
                step: self.steps,
                effect: effect.clone(),
            };
            self.mailboxes
                .entry(effect.addressee().into())
                .or_default()
                .push_back(waiting);
        }
    }

    /// Carries out some effects of mailboxes at random.
    pub(crate) fn carry_out_some(&mut self, prng: &mut Prng) {
        for _ in 0..prng.below(5) {
            let mailboxes: Vec<Mailbox> = self.mailboxes.keys().copied().collect();
            let Some(mailbox) = prng.pick(&mailboxes).copied() else {
                return;
            };
            for _ in 0..=prng.below(3) {
                self.carry_out_next(mailbox);
            }
        }
    }

    /// Empties one mailbox: something is about to happen that follows from what waits in it.
    pub(crate) fn empty(&mut self, mailbox: Mailbox) {
        while self.carry_out_next(mailbox) {}
    }

    pub(crate) fn empty_all(&mut self) {
        while let Some(mailbox) = self.mailboxes.keys().next().copied() {
            self.empty(mailbox);
        }
    }

    /// At the end every call has its end, but for operations whose callers were answered for now
    /// and did not come back.
    pub(crate) fn check_ends(&self) {
        for (call, seen) in &self.calls {
            assert!(
                seen.is_over || seen.is_away,
                "call {call} has no end: {seen:?}"
            );
        }
    }

    fn carry_out_next(&mut self, mailbox: Mailbox) -> bool {
        let Some(waiting) = self.mailboxes.get_mut(&mailbox) else {
            return false;
        };
        let Some(Waiting { step, effect }) = waiting.pop_front() else {
            return false;
        };
        if waiting.is_empty() {
            self.mailboxes.remove(&mailbox);
        }
        if step < self.steps {
            self.count("carried out after a later step");
        }
        let overtakes = |waiting: &VecDeque<Waiting>| {
            waiting.front().is_some_and(|earlier| earlier.step < step)
        };
        if self.mailboxes.values().any(overtakes) {
            self.count("carried out before an earlier step's");
        }
        match mailbox {
            Mailbox::Call(call) => self.carry_out_for_call(call, &effect),
            Mailbox::Link(link) => self.carry_out_for_link(link, &effect),
            Mailbox::Question(question) => {
                assert!(
                    self.questions.insert(question),
                    "question {question} ended twice"
                );
            }
            Mailbox::Gateway => self.carry_out_for_gateway(&effect),
        }
        true
    }

    fn count(&mut self, name: &'static str) {
        *self.tally.entry(name).or_default() += 1;
    }

    fn carry_out_for_call(&mut self, call: u64, effect: &Effect) {
        let seen = self.calls.entry(call).or_default();
        assert!(!seen.is_over, "{effect:?} follows the end of call {call}");
        let waits = seen.back.unwrap_or(call);
        let reaches_caller = |seen: &CallSeen| assert!(!seen.is_away, "{effect:?} has no caller");
        let mut answers = false;
        match effect {
            Effect::Deliver { .. } => {
                assert!(!seen.is_delivered, "call {call} was delivered twice");
                seen.is_delivered = true;
            }
            Effect::Hold { .. } => assert!(!seen.is_delivered),
            Effect::Proceed { .. } => assert!(!seen.is_cancelled),
            Effect::Cancel { .. } => {
                assert!(seen.is_delivered && !seen.is_cancelled, "{effect:?}");
                seen.is_cancelled = true;
            }
            Effect::Park { .. } | Effect::Pause { .. } => {
                reaches_caller(seen);
                seen.is_away = true;
                seen.asked.clear();
                answers = true;
            }
            Effect::Return { by, .. } => {
                assert!(seen.is_away, "call {call} waits already");
                seen.is_away = false;
                seen.back = Some(*by);
            }
            Effect::Report { .. } | Effect::Settle { .. } | Effect::Refuse { .. } => {
                answers = !seen.is_away;
                seen.is_over = true;
            }
            Effect::Drop { .. } => seen.is_over = true,
            Effect::Notify { .. } | Effect::ListChanged { .. } => reaches_caller(seen),
            Effect::Ask { operation, .. } => {
                reaches_caller(seen);
                assert!(seen.asked.insert(*operation), "{effect:?} is asked twice");
            }
            Effect::CancelAsk { operation, .. } => {
                reaches_caller(seen);
                assert!(seen.asked.remove(operation), "{effect:?} was not asked");
            }
            other => panic!("{other:?} is not for a call"),
        }
        if answers {
            assert!(self.answered.insert(waits), "{waits} is answered twice");
        }
    }

    fn carry_out_for_link(&mut self, link: u64, effect: &Effect) {
        let seen = self.links.entry(link).or_default();
        assert!(!seen.is_closed, "{effect:?} follows the end of link {link}");
        match effect {
            Effect::Closed { .. } => seen.is_closed = true,
            Effect::Ask { operation, .. } => assert!(seen.asked.insert(*operation)),
            Effect::CancelAsk { operation, .. } => {
                assert!(
                    seen.asked.remove(operation),
                    "{effect:?}: a withdrawal overtakes its question"
                );
            }
            Effect::Withhold { .. }
            | Effect::Receive { .. }
            | Effect::Notify {
                to: Receiver::Link(_),
                ..
            }
            | Effect::ListChanged { .. }
            | Effect::Unsubscribe { .. }
            | Effect::Unwatch { .. } => {}
            other => panic!("{other:?} is not for a link"),
        }
    }

    fn carry_out_for_gateway(&mut self, effect: &Effect) {
        match effect {
            Effect::Proposed { proposal } => {
                let seen = self.proposals.entry(proposal.id).or_default();
                assert!(!seen.is_proposed && !seen.is_approved && !seen.is_concluded);
                seen.is_proposed = true;
            }
            Effect::Counted(CountedDecision { proposal, .. }) => {
                let seen = self.proposals.entry(proposal.id).or_default();
                assert!(!seen.is_approved && !seen.is_concluded, "{effect:?}");
            }
            Effect::Claimed { proposal }
            | Effect::Extended { proposal, .. }
            | Effect::Amended { proposal, .. }
            | Effect::Expiring { proposal } => {
                let seen = self.proposals.entry(proposal.id).or_default();
                assert!(!seen.is_approved && !seen.is_concluded, "{effect:?}");
            }
            Effect::Approved { proposal, .. } => {
                let seen = self.proposals.entry(proposal.id).or_default();
                assert!(!seen.is_approved && !seen.is_concluded, "{effect:?}");
                seen.is_approved = true;
            }
            Effect::Concluded { proposal } => {
                let seen = self.proposals.entry(proposal.id).or_default();
                assert!(!seen.is_concluded, "{effect:?} is over already");
                seen.is_concluded = true;
            }
            Effect::Ruled { ruling } => assert!(self.rulings.insert(*ruling)),
            Effect::CancelTask { task } | Effect::ForgetTask { task } => {
                assert!(self.ended_tasks.insert(*task), "{effect:?}: it has ended");
            }
            Effect::LoseTask { task } => assert!(!self.ended_tasks.contains(task), "{effect:?}"),
            Effect::RefuseDecision(refused) => assert!(self.rulings.insert(refused.ruling)),
            Effect::Store { .. }
            | Effect::Remind { .. }
            | Effect::Ignore { .. }
            | Effect::NotProposed { .. }
            | Effect::Rejected { .. }
            | Effect::Relay { .. } => {}
            other => panic!("{other:?} is not for the gateway"),
        }
    }

    /// Enters a crash: nothing that waits is carried out.
    pub(crate) fn forget(&mut self) {
        let steps = self.steps;
        let tally = std::mem::take(&mut self.tally);
        *self = Self {
            steps,
            tally,
            ..Self::default()
        };
    }
}
