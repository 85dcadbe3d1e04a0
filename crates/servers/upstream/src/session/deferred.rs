//! Deferred calls of a serial session: they leave it when the server waits for an answer of the
//! caller, which may take as long as a person needs.

use client::SendError;
use model::Refusal;

use super::Session;
use super::pending::{PendingRequest, SentRequest, Waiter};
use crate::{fault::Fault, session_api::CallNumber};

/// A call that a session took and has not sent.
pub struct UnsentCall {
    number: u64,
    request: PendingRequest,
    sent: SentRequest,
}

impl Session {
    /// Takes out the calls that wait behind one whose server waits for an answer of the caller.
    #[must_use]
    pub fn take_deferred(&self) -> Vec<UnsentCall> {
        let deferred = if self.is_asking() {
            self.pending.lock().take_deferred()
        } else {
            Vec::new()
        };
        deferred
            .into_iter()
            .map(|(number, request, sent)| UnsentCall {
                number,
                request,
                sent,
            })
            .collect()
    }

    /// Sends a call that a session of the same caller has not sent.
    pub fn adopt(&self, call: UnsentCall) {
        let UnsentCall {
            number,
            request,
            sent,
        } = call;
        let mut pending = self.pending.lock();
        if pending.ended.is_some() {
            drop(pending);
            return self.deliver(request, Err(Fault::Unsent(SendError::Closed)));
        }
        let first = pending.requests.is_empty();
        let defer = self.must_wait_its_turn(&pending);
        pending.requests.insert(number, request);
        if defer {
            pending.deferred.push_back((number, sent));
        } else {
            drop(pending);
            self.send_kept(number, sent);
        }
        if first {
            self.timer.notify_one();
        }
    }
}

impl UnsentCall {
    /// The number under which it is sent.
    #[must_use]
    pub fn number(&self) -> CallNumber {
        CallNumber(self.number)
    }

    /// Ends it: no session sends it.
    pub fn refuse(self, refusal: &Refusal) {
        if let Waiter::Call { events, place, .. } = self.request.waiter {
            // First: its caller may call again at once.
            drop(place);
            events.done(Err(refusal.clone()));
        }
    }
}
