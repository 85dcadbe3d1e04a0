//! Calls that are proposed, and people who decide about them, while nodes fail; and the book of all
//! that was reported to them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeFrom;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::ws::token;

use super::attempt::api;
use super::callers::{Caller, Learned, decide, number_of, open};
use super::nodes::{AddressBook, SHORT};

/// The first call of those about which rules decide, and of those whose proposers are revoked.
/// People decide about the calls before.
pub(super) const RULED: u64 = 1_000_000;
pub(super) const REVOKED: u64 = 2_000_000;
/// The calls of one rule, or of one token.
pub(super) const LIFE: u64 = 1_000;
/// The number of people's calls of which one is rejected.
const REJECTED: u64 = 5;
/// The time between two attempts of one who insists.
const PAUSE: Duration = Duration::from_millis(10);

/// The life of a rule or of a token to which a call belongs, as the number of its first call.
pub(super) fn life(number: u64) -> u64 {
    number - number % LIFE
}

/// Whether the holder of a token that is revoked made this call, and it waits for that.
pub(super) fn waits_for_revocation(number: u64) -> bool {
    number >= REVOKED && !number.is_multiple_of(2)
}

/// The reports to callers and to those who decide.
#[derive(Default)]
pub(super) struct Book {
    /// Callers that learned that they are to come back, and learned no end yet.
    pub(super) waiting: BTreeMap<u64, Caller>,
    /// The end that each caller learned.
    pub(super) ended: BTreeMap<u64, Value>,
    /// Calls that were made and not answered: they may have been proposed.
    pub(super) unanswered: BTreeSet<u64>,
    pub(super) pending: BTreeSet<u64>,
    pub(super) approved: BTreeSet<u64>,
    pub(super) rejected: BTreeSet<u64>,
    /// The rules that are in force, as was confirmed, by their lives.
    pub(super) rules: BTreeMap<u64, String>,
    /// The tokens that are revoked, as was confirmed, by their lives.
    pub(super) revoked: BTreeMap<u64, String>,
    /// The lives that are over, confirmed or not: people decide about what is left.
    pub(super) over: BTreeSet<u64>,
    /// The calls that no rule and no approval may let run any more.
    pub(super) never: BTreeSet<u64>,
}

impl Book {
    /// The decision of people about a pending call, if they make one now.
    fn verdict(&self, number: u64) -> Option<&'static str> {
        let is_over = self.over.contains(&life(number));
        match number {
            ..RULED if number.is_multiple_of(REJECTED) => Some("reject"),
            ..RULED => Some("approve"),
            RULED..REVOKED => is_over.then_some("reject"),
            REVOKED.. => (is_over || !waits_for_revocation(number)).then_some("approve"),
        }
    }

    /// Notes that a caller learned the end of its call.
    #[track_caller]
    pub(super) fn end(&mut self, number: u64, end: Value) {
        let before = self.ended.insert(number, end);
        assert!(before.is_none(), "{number} learned two ends");
    }
}

/// The load, and what it learned.
#[derive(Default)]
pub(super) struct Load {
    nodes: AddressBook,
    book: Mutex<Book>,
    next: AtomicU64,
    is_over: AtomicBool,
    turn: AtomicU64,
}

impl Load {
    /// A load of these nodes.
    pub(super) fn of(nodes: AddressBook) -> Load {
        Load {
            nodes,
            ..Load::default()
        }
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn nodes(&self) -> &AddressBook {
        &self.nodes
    }

    /// The number of people's calls that were made.
    pub(super) fn made(&self) -> u64 {
        self.next.load(Ordering::SeqCst)
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// The address of the node whose turn it is.
    pub(super) fn address(&self) -> Option<String> {
        let turn = self.turn.fetch_add(1, Ordering::SeqCst);
        self.nodes.in_turn(usize::try_from(turn).unwrap())
    }

    /// The number of decisions that were acknowledged.
    pub(super) fn decided(&self) -> usize {
        let book = self.book();
        book.approved.len() + book.rejected.len()
    }

    /// Asks one node after the other until it has an answer; `None` once the load is over.
    pub(super) fn insist<T>(&self, mut ask: impl FnMut(&str) -> Option<T>) -> Option<T> {
        while !self.is_over() {
            let answer = self.address().and_then(|at| ask(&at));
            if answer.is_some() {
                return answer;
            }
            std::thread::sleep(PAUSE);
        }
        None
    }

    /// Makes a call at the node whose turn it is, or comes back for it.
    pub(super) fn ask(&self, caller: &mut Caller) -> Learned {
        let address = self.address();
        address.map_or(Learned::Nothing, |at| caller.ask(&at, SHORT))
    }

    /// Makes a call and comes back until it learns the end, at most so many times.
    pub(super) fn follow(&self, mut caller: Caller, times: usize) {
        let number = caller.number();
        for _ in 0..times {
            match self.ask(&mut caller) {
                Learned::End(end) => return self.book().end(number, end),
                Learned::Nothing if !caller.has_state() => {
                    self.book().unanswered.insert(number);
                    return;
                }
                Learned::Refused => panic!("{number}: a configured token is not known"),
                Learned::Later | Learned::Nothing if self.is_over() => break,
                Learned::Later | Learned::Nothing => {}
            }
        }
        self.book().waiting.insert(number, caller);
    }

    /// Makes calls of a configured proposer until one of them learns that it is to come back.
    pub(super) fn propose(&self, who: &str, numbers: &mut RangeFrom<u64>) -> Option<Caller> {
        while !self.is_over() {
            let number = numbers.next()?;
            let mut caller = Caller::of(number, &token(who));
            match self.ask(&mut caller) {
                Learned::Later => return Some(caller),
                Learned::End(end) => self.book().end(number, end),
                Learned::Refused | Learned::Nothing => _ = self.book().unanswered.insert(number),
            }
        }
        None
    }

    /// Makes one call of the agent after the other, each of which comes back until it learns the
    /// end.
    pub(super) fn call(&self) {
        while !self.is_over() {
            let number = self.next.fetch_add(1, Ordering::SeqCst);
            self.follow(Caller::new(number), usize::MAX);
        }
    }

    /// Has people decide about all that is pending.
    pub(super) fn decide(&self) {
        while !self.is_over() {
            let all = self.address().and_then(|at| open(&at, SHORT));
            for proposal in all.unwrap_or_default() {
                let number = number_of(&proposal);
                if proposal["state"] != "pending" {
                    continue;
                }
                self.book().pending.insert(number);
                let verdict = self.book().verdict(number);
                if let (Some(verdict), Some(at)) = (verdict, self.address()) {
                    self.decide_one(&at, &proposal, verdict);
                }
            }
        }
    }

    /// Decides about what is pending once the load is over. Returns whether nothing is.
    pub(super) fn decide_rest(&self) -> Option<()> {
        let address = self.nodes.in_turn(0)?;
        let mut all = open(&address, SHORT)?;
        all.retain(|one| one["state"] == "pending");
        for proposal in &all {
            let verdict = self.book().verdict(number_of(proposal));
            self.decide_one(&address, proposal, verdict.unwrap_or("reject"));
        }
        all.is_empty().then_some(())
    }

    /// Decides about a pending proposal. Returns whether that was acknowledged.
    #[track_caller]
    pub(super) fn decide_one(&self, address: &str, proposal: &Value, verdict: &str) -> bool {
        let number = number_of(proposal);
        let is_revoked = self.book().revoked.contains_key(&life(number));
        if decide(address, SHORT, proposal, verdict) != Some(200) {
            return false;
        }
        let mut book = self.book();
        book.pending.remove(&number);
        let is_new = match verdict {
            "approve" => {
                assert!(!is_revoked, "{number} was approved for a revoked proposer");
                book.approved.insert(number)
            }
            _ => book.rejected.insert(number),
        };
        assert!(is_new, "{number} was decided twice");
        true
    }
}

/// A request of the one who decides, and the body of the answer if that has this status.
pub(super) fn asked(address: &str, line: &str, body: &Value, status: u16) -> Option<Value> {
    let reply = api(address, SHORT, &token("boss"), line, body)?;
    (reply.status == status).then(|| reply.json())
}
