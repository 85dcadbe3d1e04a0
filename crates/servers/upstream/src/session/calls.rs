//! Calls of callers: sent under the session's numbers, settled once, cancelled in the era's way.

use std::{sync::Arc, sync::atomic::Ordering, time::Instant};

use bytes::Bytes;
use client::SendMeta;
use model::{Answer, Refusal, RefusalCode, Target};
use platform::{Full, millis};
use wire::mcp::{Era, relay};
use wire::rpc::{Message, notification};

use super::pending::{Deadlines, PendingRequest, PendingTable, SentRequest, Waiter};
use super::{Session, rounds::Rounds};
use crate::session_api::{CallEvents, CallNumber, Outgoing, SessionKey};
use crate::{config::Transport, demo, fault::Fault};

impl Session {
    /// Sends a request; `events` receives its answer, progress and server requests. Never waits.
    ///
    /// # Errors
    /// A refusal when the server is busy or down, or the request cannot be converted to its era;
    /// `events` then receives nothing.
    pub fn call(&self, call: Outgoing<'_>, events: Arc<dyn CallEvents>) -> Result<(), Refusal> {
        let Outgoing {
            request,
            own,
            related_task,
            client_info,
            capabilities,
            log_level,
            tasks,
            ..
        } = call;
        if self.is_demo() {
            events.done(Ok(demo::respond(request, own)));
            return Ok(());
        }
        let now = Instant::now();
        self.last_call_ms.store(
            millis(now.saturating_duration_since(self.opened_at)),
            Ordering::Relaxed,
        );
        let target = own.or_else(|| request.target.as_ref().map(Target::as_str));
        let tool = target.filter(|_| request.method.as_str() == "tools/call");
        let longest = self.setup.spec.config.timeouts.max;
        // `tasks/result` takes as long as the task: only the hard maximum applies.
        let waits_for_task = request.method.as_str() == "tasks/result";
        let patience = if waits_for_task {
            longest
        } else {
            self.setup.spec.timeout(tool)
        };

        let number = call.number.0;
        let outgoing = relay::OutgoingChanges {
            form: self.era(),
            number,
            own,
            client_info,
            capabilities,
            log_level,
            related_task,
            tasks,
        };
        let encoded = relay::encode_request(request, self.coding(), &outgoing);
        let encoded = encoded.map_err(|malformed| {
            tracing::debug!(server = self.upstream(), %malformed, "a request could not be converted");
            Refusal::new(
                RefusalCode::Internal,
                "the request cannot be converted to the server's protocol revision",
            )
        })?;
        let headers = self.headers_of(
            self.era(),
            &encoded.frame,
            (request.method.as_str(), target),
            self.version(),
        );
        let asks_by_result = self.era() == Era::Modern && request.payload.form == Era::Legacy;
        let events = if asks_by_result {
            Rounds::of(
                self,
                (&call, events),
                (&encoded.frame, headers.as_deref()),
                now + longest,
            )
        } else {
            events
        };

        let mut pending = self.pending.lock();
        if pending.ended.is_some() {
            // Whatever has ended it: this call was not sent.
            return Err(self.refusal(&Fault::Unsent(client::SendError::Closed)));
        }
        let pools = (&*self.setup.calls, &*self.unsent);
        let (place, unsent) = pending
            .place(pools, call.account)
            .map_err(|full| self.full(full))?;
        let first = pending.requests.is_empty();
        let in_turn = !waits_for_task;
        let defer = in_turn && self.must_wait_its_turn(&pending);
        // What waits for a session is kept in any case.
        let keeps = pending.awaiting_reopen.is_some() || self.may_resend(request.method.as_str());
        let written = SentRequest { encoded, headers };
        let kept = keeps.then(|| written.clone());
        let deadlines = Deadlines::new(now, patience, longest);
        let waiter = Waiter::Call {
            events,
            progress: request.progress.clone(),
            place,
            in_turn,
        };
        let deadlines = Some(deadlines);
        let open = PendingRequest {
            waiter,
            deadlines,
            sent: kept,
            questions: 0,
            garbled: false,
        };
        // Before it is sent: its answer may come at once.
        pending.requests.insert(number, open);
        if let Some(requests) = &mut pending.awaiting_reopen {
            requests.push(number);
        } else if defer {
            pending.deferred.push_back((number, written));
        } else {
            drop(pending);
            let from = self
                .link
                .get()
                .is_some_and(|link| link.names_senders())
                .then(|| call.from.into());
            let SentRequest { encoded, headers } = written;
            if let Err(unsent) = self.send(
                encoded.frame,
                SendMeta {
                    request: Some(number),
                    coding: encoded.coding,
                    headers,
                    from,
                    unsent: Some(unsent),
                },
            ) {
                // A call that was deferred behind it meanwhile has its turn.
                self.settle(number);
                return Err(self.refusal(&Fault::Unsent(unsent)));
            }
        }
        if first {
            self.timer.notify_one();
        }
        Ok(())
    }

    /// Whether a call has to wait until another one that runs alone has ended.
    pub(super) fn must_wait_its_turn(&self, pending: &PendingTable) -> bool {
        self.is_serial() && pending.has_turn()
    }

    pub(super) fn full(&self, full: Full) -> Refusal {
        match full {
            Full::Share => {
                let what = format!(
                    "you have too many open calls at the server `{}`",
                    self.upstream()
                );
                Refusal::new(RefusalCode::UpstreamBusy, what).hint("wait for one of them to end")
            }
            Full::Pool => self.refusal(&Fault::Unsent(client::SendError::Busy)),
        }
    }

    /// Whether the server is the built-in demo server, which answers on the spot.
    fn is_demo(&self) -> bool {
        self.setup.spec.config.transport == Transport::Demo
    }

    /// Cancels a call: the server gets its era's cancellation, and the call's events receive
    /// nothing more.
    pub fn cancel(&self, call: CallNumber, reason: &str) {
        let number = self
            .pending
            .lock()
            .retried
            .remove(&call.0)
            .unwrap_or(call.0);
        if self.settle(number).is_some() {
            self.send_cancellation(number, reason);
            self.close_if_done();
        }
    }

    /// Sends a notification of the session's owner, such as `notifications/roots/list_changed`.
    ///
    /// # Errors
    /// A refusal when the server is busy or down.
    pub fn notify(&self, frame: Bytes) -> Result<(), Refusal> {
        self.send(frame, SendMeta::default())
            .map_err(|unsent| self.refusal(&Fault::Unsent(unsent)))
    }

    /// Removes a request from the table and sends the call that was deferred behind it.
    pub(super) fn settle(&self, number: u64) -> Option<PendingRequest> {
        let (settled, next) = self.pending.lock().settle(number);
        if let Some((number, request)) = next {
            self.send_kept(number, request);
        }
        settled
    }

    /// Sends a request whose frame was kept: deferred, or to be sent again.
    pub(super) fn send_kept(&self, number: u64, kept: SentRequest) {
        if let Err(unsent) = self.send(
            kept.encoded.frame,
            SendMeta {
                request: Some(number),
                coding: kept.encoded.coding,
                headers: kept.headers,
                ..SendMeta::default()
            },
        ) {
            self.finish(number, Err(Fault::Unsent(unsent)));
        }
    }

    /// Ends a request, if it is still pending, with its answer or the fault that replaces one.
    pub(super) fn finish(&self, number: u64, end: Result<Message, Fault>) {
        if let Some(request) = self.settle(number) {
            self.deliver(request, end);
        }
    }

    /// Gives a settled request its answer, or the fault that replaces one.
    pub(super) fn deliver(&self, request: PendingRequest, end: Result<Message, Fault>) {
        match request.waiter {
            Waiter::Own(waiter) => drop(waiter.send(end)),
            Waiter::Call { .. } => {
                self.deliver_as(
                    request,
                    end.map(|message| relay::decode_answer(&message, self.era())),
                );
            }
        }
    }

    /// Gives the caller of a settled request its answer; a request of the session itself has none
    /// of this kind.
    pub(super) fn deliver_as(&self, request: PendingRequest, end: Result<Answer, Fault>) {
        if let Waiter::Call { events, place, .. } = request.waiter {
            // First: its caller may call again at once.
            drop(place);
            events.done(end.map_err(|fault| self.refusal(&fault)));
            self.close_if_done();
        }
    }

    /// Cancels a request at the server: `notifications/cancelled`, or the end of its stream
    /// (modern, HTTP).
    pub(super) fn send_cancellation(&self, number: u64, reason: &str) {
        let Some(link) = self.link.get() else { return };
        if !(self.era() == Era::Modern && self.over_http()) {
            let params = json::object(|params| {
                params.number("requestId", number).text("reason", reason);
            });
            let frame = notification("notifications/cancelled", Some(&params));
            let _ = link.send(frame, SendMeta::default());
        }
        link.cancel(number);
    }

    /// Lets the session end with its calls.
    pub(crate) fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
        self.close_if_done();
    }

    /// Closes a session that ends with its calls, once it has neither a call nor a task.
    pub(super) fn close_if_done(&self) {
        if (self.setup.single_call || self.is_retired.load(Ordering::Relaxed))
            && self.calls() == 0
            && self.tasks() == 0
            && let Some(me) = self.me.upgrade()
        {
            tokio::spawn(async move { me.close().await });
        }
    }

    /// Whether calls run one after the other. A modern caller has no client session that could take
    /// a question, and a question on a shared stream does not say to which of several calls it
    /// belongs.
    pub(super) fn is_serial(&self) -> bool {
        matches!(self.setup.key, SessionKey::Principal { .. })
            && self.era() == Era::Legacy
            && !self.over_http()
    }
}
