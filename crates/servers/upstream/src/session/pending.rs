//! Table of one session's pending requests: deadlines, deferred calls, open questions of the
//! server.
//!
//! A plain structure under the session's lock: no I/O, time is an argument.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use client::SendMeta;
use foldhash::fast::RandomState;
use http::HeaderMap;
use platform::{Full, Share, Shares, Taken};
use tokio::sync::oneshot;
use wire::mcp::relay::EncodedRequest;
use wire::rpc::Message;

use super::doubts::Doubted;
use crate::{fault::Fault, measured::Began, session_api::CallEvents};

/// A request as it goes to the server: its frame, and the headers that mirror it.
#[derive(Debug, Clone)]
pub(super) struct WrittenRequest {
    /// The message, and its coding.
    pub(super) encoded: EncodedRequest,
    /// Headers, over Streamable HTTP.
    pub(super) headers: Option<Box<HeaderMap>>,
}

/// A call that waits for its turn (serial sessions).
pub(super) struct DeferredCall {
    pub(super) number: u64,
    pub(super) sent: WrittenRequest,
}

/// A call whose headers the server refused.
pub(super) struct HeadersRefused {
    pub(super) number: u64,
    /// The server's answer.
    pub(super) answer: Message,
}

/// A call's share of what the calls of its account use at a server.
pub(super) struct CallPlace {
    /// Its place among the open calls.
    pub(super) call: Taken,
    pub(super) sender: Sender,
}

/// The participant of a call, as links know it, each time that the call is sent.
#[derive(Clone)]
pub(super) struct Sender {
    /// Its account at the server.
    account: Arc<str>,
    /// The account's share of what waits for the session's child process.
    queue_share: Arc<Share>,
    /// Its name, for a link that names senders.
    name: Option<Arc<str>>,
}

impl Sender {
    /// The delivery options of its request.
    pub(super) fn meta(self, number: u64) -> SendMeta {
        SendMeta {
            from: self.name,
            unsent: Some(self.queue_share),
            ..SendMeta::request(number)
        }
    }

    /// The sender as another session of the server knows it, which has another queue.
    fn moved_to(&mut self, queue: &Shares) {
        self.queue_share = queue.of(&self.account);
    }
}

/// A request that has left the table.
#[derive(Default)]
pub(super) struct Settled {
    /// `None` if it was not in the table: it had ended already.
    pub(super) request: Option<PendingRequest>,
    /// The call whose turn it is now.
    pub(super) next: Option<DeferredCall>,
}

/// A request that was pending when its session ended.
pub(super) struct Unfinished {
    pub(super) request: PendingRequest,
    /// Whether the server is known not to have run it.
    pub(super) is_unsent: bool,
}

/// The receiver of an answer.
pub(super) enum Waiter {
    /// A caller.
    Call {
        events: Arc<dyn CallEvents>,
        /// The progress token that it chose, as it spelled it.
        progress: Option<Bytes>,
        /// Its place among the open calls at the server.
        place: Taken,
        sender: Sender,
        /// Whether calls that run one after the other wait for this one, and what the server asks
        /// meanwhile is about it. A request for a task's result is no such call: it lasts as long
        /// as the task, and questions name their task.
        in_turn: bool,
        /// What is measured of it; `None` while its caller, not the server, is waited for.
        began: Option<Began>,
    },
    /// The session itself.
    Own(oneshot::Sender<Result<Message, Fault>>),
}

/// One request without an answer.
pub(super) struct PendingRequest {
    pub(super) waiter: Waiter,
    /// The time of its expiry; `None` for a stream that stays open.
    pub(super) deadlines: Option<Deadlines>,
    /// The sent request, kept if it may have to be sent again.
    pub(super) sent: Option<WrittenRequest>,
    /// Open questions of the server that belong to it.
    pub(super) questions: u32,
    /// Whether something that is no message came on its stream.
    pub(super) garbled: bool,
}

impl PendingRequest {
    fn is_in_turn(&self) -> bool {
        matches!(self.waiter, Waiter::Call { in_turn: true, .. })
    }

    /// Moves its account to the session with this queue, which will send it.
    pub(super) fn moved_to(&mut self, queue: &Shares) {
        if let Waiter::Call { sender, .. } = &mut self.waiter {
            sender.moved_to(queue);
        }
    }
}

/// The expiry of a request: `patience` after the last progress, at the latest at `hard`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadlines {
    patience: Duration,
    next: Instant,
    hard: Instant,
}

impl Deadlines {
    pub(super) fn new(now: Instant, patience: Duration, max: Duration) -> Self {
        let hard = now + max;
        Self {
            patience,
            next: (now + patience).min(hard),
            hard,
        }
    }

    fn extend(&mut self, now: Instant) {
        self.next = (now + self.patience).min(self.hard);
    }
}

/// Accounts that a session remembers. Beyond them it looks each up again.
const ACCOUNTS_MAX: usize = 1024;

/// All pending requests of one session, by number.
#[derive(Default)]
pub(super) struct PendingTable {
    pub(super) requests: HashMap<u64, PendingRequest, RandomState>,
    /// Open questions of the server to the session's owner.
    owner_questions: u32,
    /// Calls that wait for the end of the call before them (serial sessions).
    pub(super) deferred: VecDeque<DeferredCall>,
    /// Requests that wait until the session is opened again on the same link; `None` while it is
    /// open.
    pub(super) awaiting_reopen: Option<Vec<u64>>,
    /// Refused requests that wait for the check of the session; `None` while it is not checked.
    pub(super) awaiting_check: Option<Vec<Doubted>>,
    /// Calls whose headers the server refused; they wait until its tools are listed again. `None`
    /// while these are not.
    pub(super) awaiting_headers: Option<Vec<HeadersRefused>>,
    /// The present numbers of calls that were sent again with answers, by their first numbers.
    pub(super) retried: HashMap<u64, u64, RandomState>,
    /// Why the session ended; it accepts no further request.
    pub(super) ended: Option<Fault>,
    /// Accounts of callers at the server, so that a call looks for its own without another lock.
    accounts: HashMap<Arc<str>, Account, RandomState>,
}

/// The shares of one account at a server.
struct Account {
    calls: Arc<Share>,
    /// Its sender, without a name: participants may share an account.
    sender: Sender,
}

impl Account {
    fn place(&self, name: Option<Arc<str>>) -> Result<CallPlace, Full> {
        let call = self.calls.take(1)?;
        let sender = Sender {
            name,
            ..self.sender.clone()
        };
        Ok(CallPlace { call, sender })
    }
}

impl PendingTable {
    /// A place for one more call on this account, of the open calls at the server and of what waits
    /// for the session's child process. `name` is the sender's, for a link that names senders.
    pub(super) fn place(
        &mut self,
        calls: &Shares,
        queue: &Shares,
        account: &str,
        name: Option<Arc<str>>,
    ) -> Result<CallPlace, Full> {
        if let Some(known) = self.accounts.get(account) {
            return known.place(name);
        }
        if self.accounts.len() >= ACCOUNTS_MAX {
            self.accounts.clear();
        }
        let key: Arc<str> = account.into();
        let new = Account {
            calls: calls.of(account),
            sender: Sender {
                account: Arc::clone(&key),
                queue_share: queue.of(account),
                name: None,
            },
        };
        let place = new.place(name)?;
        self.accounts.insert(key, new);
        Ok(place)
    }

    /// The delivery options of a pending request, whenever it is sent; `None` if it has ended.
    pub(super) fn meta_of(&self, number: u64) -> Option<SendMeta> {
        Some(match &self.requests.get(&number)?.waiter {
            Waiter::Call { sender, .. } => sender.clone().meta(number),
            Waiter::Own(_) => SendMeta::request(number),
        })
    }

    /// Pending calls of callers.
    pub(super) fn calls(&self) -> usize {
        self.requests
            .values()
            .filter(|request| matches!(request.waiter, Waiter::Call { .. }))
            .count()
    }

    /// Whether a call is pending that runs alone, if calls run one after the other.
    pub(super) fn has_turn(&self) -> bool {
        self.requests.values().any(PendingRequest::is_in_turn)
    }

    /// Removes a request, and with one that was sent in its turn the call whose turn is next.
    pub(super) fn settle(&mut self, number: u64) -> Settled {
        let Some(request) = self.requests.remove(&number) else {
            return Settled::default();
        };
        let mut next = None;
        if let Some(index) = self.place_in_line(number) {
            // One that was not sent has no turn to give on.
            self.deferred.remove(index);
        } else if request.is_in_turn() {
            next = self.deferred.pop_front();
        }
        Settled {
            request: Some(request),
            next,
        }
    }

    /// The place of a call among the deferred ones; `None` if it was sent.
    fn place_in_line(&self, number: u64) -> Option<usize> {
        self.deferred.iter().position(|call| call.number == number)
    }

    /// The receivers of events of the deferred calls.
    pub(super) fn deferred_events(&self) -> Vec<Arc<dyn CallEvents>> {
        let mut found = Vec::new();
        for call in &self.deferred {
            let request = self.requests.get(&call.number);
            if let Some(Waiter::Call { events, .. }) = request.map(|request| &request.waiter) {
                found.push(Arc::clone(events));
            }
        }
        found
    }

    /// Removes a deferred call, with what is to be sent for it.
    pub(super) fn take_deferred(&mut self, number: u64) -> Option<(PendingRequest, DeferredCall)> {
        let index = self.place_in_line(number)?;
        let call = self.deferred.remove(index)?;
        let request = self.requests.remove(&number)?;
        Some((request, call))
    }

    /// The number of the call that was sent and is pending, if there is exactly one.
    pub(super) fn only_call(&self) -> Option<u64> {
        let mut only = None;
        for (number, request) in &self.requests {
            if !request.is_in_turn() || self.place_in_line(*number).is_some() {
                continue;
            }
            if only.is_some() {
                return None;
            }
            only = Some(*number);
        }
        only
    }

    /// Extends the deadline of a request that made progress, and returns the request.
    pub(super) fn extend(&mut self, number: u64, now: Instant) -> Option<&PendingRequest> {
        let request = self.requests.get_mut(&number)?;
        if let Some(deadlines) = &mut request.deadlines {
            deadlines.extend(now);
        }
        Some(request)
    }

    /// Whether a request can be sent again.
    pub(super) fn is_kept(&self, number: u64) -> bool {
        self.requests
            .get(&number)
            .is_some_and(|request| request.sent.is_some())
    }

    /// Whether a request is a call of a caller, and none of the session's own.
    pub(super) fn is_call(&self, number: u64) -> bool {
        self.requests
            .get(&number)
            .is_some_and(|request| matches!(request.waiter, Waiter::Call { .. }))
    }

    /// Whether a request has ended, and its end waits for the check of the session.
    pub(super) fn is_doubted(&self, number: u64) -> bool {
        self.awaiting_check
            .iter()
            .flatten()
            .any(|doubted| doubted.number == number)
    }

    /// Whether the link has no more to deliver for a request.
    pub(super) fn is_settled(&self, number: u64) -> bool {
        !self.requests.contains_key(&number) || self.is_doubted(number)
    }

    /// Has a request sent once the session is open again.
    pub(super) fn await_reopen(&mut self, number: u64, sent: WrittenRequest) {
        if let Some(request) = self.requests.get_mut(&number)
            && let Some(waiting) = &mut self.awaiting_reopen
        {
            request.sent = Some(sent);
            waiting.push(number);
        }
    }

    /// Takes what was sent for a request: it is sent again only once.
    pub(super) fn take_sent(&mut self, number: u64) -> Option<WrittenRequest> {
        self.requests.get_mut(&number)?.sent.take()
    }

    /// Numbers of the expired requests. While the server waits for a client's answer only the hard
    /// maximum counts: a person may be typing.
    pub(super) fn expired(&mut self, now: Instant) -> Vec<u64> {
        let owner_asked = self.owner_questions > 0;
        let mut expired = Vec::new();
        for (number, request) in &mut self.requests {
            let Some(deadlines) = &mut request.deadlines else {
                continue;
            };
            if deadlines.next > now {
                continue;
            }
            if deadlines.hard > now && (owner_asked || request.questions > 0) {
                deadlines.extend(now);
            } else {
                expired.push(*number);
            }
        }
        expired
    }

    /// Removes everything at the end of the session.
    pub(super) fn drain(&mut self) -> Vec<Unfinished> {
        let mut unsent = HashSet::new();
        unsent.extend(self.deferred.drain(..).map(|call| call.number));
        // The server has run none of those that it refused for their headers, or for a session
        // that it does not know.
        if let Some(refused) = self.awaiting_headers.take() {
            unsent.extend(refused.iter().map(|call| call.number));
        }
        unsent.extend(self.awaiting_reopen.take().unwrap_or_default());
        self.awaiting_check = None;
        self.retried.clear();
        let mut unfinished = Vec::with_capacity(self.requests.len());
        for (number, request) in self.requests.drain() {
            unfinished.push(Unfinished {
                request,
                is_unsent: unsent.contains(&number),
            });
        }
        unfinished
    }

    /// Counts a question that begins or ends, of a call or of the session's owner.
    pub(super) fn count_question(&mut self, call: Option<u64>, begins: bool) {
        let count = match call {
            None => &mut self.owner_questions,
            Some(call) => match self.requests.get_mut(&call) {
                Some(request) => &mut request.questions,
                None => return,
            },
        };
        if begins {
            *count += 1;
        } else {
            *count = count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(deadlines: Deadlines) -> PendingRequest {
        let waiter = Waiter::Own(oneshot::channel().0);
        PendingRequest {
            waiter,
            deadlines: Some(deadlines),
            sent: None,
            questions: 0,
            garbled: false,
        }
    }

    #[test]
    fn progress_and_questions_extend_the_deadline_up_to_the_maximum() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let patience = Duration::from_secs(10);
        let max = Duration::from_secs(35);
        let asking = 1;
        let silent = 2;
        for of in [Some(asking), None] {
            let mut table = PendingTable::default();
            for number in [asking, silent] {
                table
                    .requests
                    .insert(number, own(Deadlines::new(start, patience, max)));
            }
            assert!(table.expired(at(9)).is_empty());
            table.extend(silent, at(9));
            table.count_question(of, true);
            assert!(table.expired(at(15)).is_empty());
            // A question to the owner may belong to any call.
            assert_eq!(
                table.expired(at(20)),
                if of.is_some() { vec![silent] } else { vec![] }
            );
            table.settle(silent);
            assert!(table.expired(at(26)).is_empty());
            table.count_question(of, false);
            assert_eq!(table.expired(at(36)), [asking]);
            table.settle(asking);
            table.count_question(Some(asking), false);
        }
    }
}
