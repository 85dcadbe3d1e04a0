//! Deferred calls of a serial session: they leave it when the server waits for an answer of the
//! caller, which may take as long as a person needs.

use client::SendError;

use super::Session;
use super::pending::{DeferredCall, PendingRequest};
use crate::{fault::Fault, session_api::CallNumber};

/// A call that a session took and has not sent.
pub struct UnsentCall {
    request: PendingRequest,
    deferred: DeferredCall,
}

impl Session {
    /// Notifies the calls that wait behind one whose server waits for an answer of the caller. Each
    /// is its own caller's: calls of several topics share a session.
    pub fn offer_deferred(&self) {
        if !self.is_asking() {
            return;
        }
        // Not under the lock: a call may be taken out at once.
        let waiting = self.pending.lock().deferred_events();
        for events in waiting {
            events.deferred();
        }
    }

    /// Takes out a call that waits for its turn; `None` if it has been sent, or has ended.
    #[must_use]
    pub fn take_unsent(&self, call: CallNumber) -> Option<UnsentCall> {
        let (request, deferred) = self.pending.lock().take_deferred(call.0)?;
        Some(UnsentCall { request, deferred })
    }

    /// Sends a call that a session of the same caller has not sent.
    pub fn adopt(&self, call: UnsentCall) {
        let UnsentCall {
            mut request,
            deferred,
        } = call;
        request.moved_to(&self.queue_shares);
        let mut pending = self.pending.lock();
        if pending.ended.is_some() {
            // Not under the lock: the caller may send its next call at once.
            drop(pending);
            return self.deliver(request, Err(Fault::Unsent(SendError::Closed)));
        }
        let is_first = pending.requests.is_empty();
        let defer = self.must_wait_its_turn(&pending);
        pending.requests.insert(deferred.number, request);
        if defer {
            pending.deferred.push_back(deferred);
        } else {
            drop(pending);
            self.send_kept(deferred.number, deferred.sent);
        }
        // The timer goes on by itself while a request is pending.
        if is_first {
            self.timer.notify_one();
        }
    }
}
