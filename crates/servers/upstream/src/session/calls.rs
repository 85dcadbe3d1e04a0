//! Calls of callers: sent under the session's numbers, settled once, cancelled in the era's way.
//!
//! The end of a request has two steps. It is settled: it leaves the table, and the call that waited
//! for it is sent. Then its end is delivered to who waits for it. `finish` does both; the others of
//! these functions are for ends whose request, or whose answer, is looked at in between.

use std::sync::{Arc, atomic::Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use client::{SendError, SendMeta};
use model::method::{CALL_TOOL, TASK_RESULT};
use model::{Answer, Refusal, RefusalCode, Target};
use platform::{Full, millis};
use wire::mcp::Era;
use wire::mcp::relay::{self, EncodedRequest};
use wire::rpc::{Message, notification};

use super::pending::{
    CallPlace, Deadlines, DeferredCall, PendingRequest, PendingTable, Waiter, WrittenRequest,
};
use super::{Session, requests::trace_headers, rounds::Rounds};
use crate::measured::{Began, CANCELLED, error_type};
use crate::session_api::{AtServer, CallEvents, CallNumber, Outgoing, SessionKey};
use crate::{config::Transport, demo, fault::Fault};

/// The method that takes as long as a task: only the hard maximum applies to it, and no call waits
/// for it.
const WAITS_FOR_TASK: &str = TASK_RESULT.name;

impl Session {
    /// Sends a request; `events` receives its answer, progress and server requests. Never waits.
    ///
    /// # Errors
    /// A refusal when the server is busy or down, or the request cannot be converted to its era;
    /// `events` then receives nothing.
    pub fn call(&self, call: Outgoing<'_>, events: Arc<dyn CallEvents>) -> Result<(), Refusal> {
        let request = call.request;
        let now = Instant::now();
        if self.is_demo() {
            self.answer_by_demo(&call, &*events, now);
            return Ok(());
        }
        self.last_call_ms.store(
            millis(now.saturating_duration_since(self.opened_at)),
            Ordering::Relaxed,
        );
        let number = call.number.0;
        let method = request.method.as_str();
        let target = call
            .own
            .or_else(|| request.target.as_ref().map(Target::as_str));
        let longest = self.setup.spec.config.timeouts.max;
        let patience = self.patience_for(method, target);

        let written = self.write_request(&call, method, target)?;
        // A modern server asks by results, which a legacy caller does not know.
        let asks_by_result = self.era() == Era::Modern && request.payload.form == Era::Legacy;
        let events = if asks_by_result {
            Rounds::of(self, &call, events, &written, now + longest)
        } else {
            events
        };

        let name = self.named(call.from);
        let began = self.setup.measured.begin(method, target, now);
        let mut pending = self.pending.lock();
        if pending.ended.is_some() {
            // Whatever has ended it: this call was not sent.
            return Err(self.refusal(&Fault::Unsent(SendError::Closed)));
        }
        let place = self.place(&mut pending, call.account, name)?;
        let sender = place.sender.clone();
        let is_first = pending.requests.is_empty();
        let in_turn = method != WAITS_FOR_TASK;
        let defer = in_turn && self.must_wait_its_turn(&pending);
        let open = PendingRequest {
            waiter: Waiter::Call {
                events,
                progress: request.progress.clone(),
                place: place.call,
                sender: place.sender,
                in_turn,
                began: Some(began),
            },
            deadlines: Some(Deadlines::new(now, patience, longest)),
            sent: self.may_resend(method).then(|| written.clone()),
            questions: 0,
            garbled: false,
        };
        // Before it is sent: its answer may come at once.
        pending.requests.insert(number, open);
        if defer {
            // Also while the session is opened again: the calls before it come first there too.
            pending.deferred.push_back(DeferredCall {
                number,
                sent: written,
            });
        } else if pending.awaiting_reopen.is_some() {
            pending.await_reopen(number, written);
        } else {
            // Not under the lock: the link may deliver something at once, which takes it.
            drop(pending);
            if let Err(error) = self.send_written(written, sender.meta(number)) {
                // A call that was deferred behind it meanwhile has its turn.
                self.settle(number);
                return Err(self.refusal(&Fault::Unsent(error)));
            }
        }
        // The timer goes on by itself while a request is pending.
        if is_first {
            self.timer.notify_one();
        }
        Ok(())
    }

    /// Answers a call as the built-in demo server, on the spot.
    fn answer_by_demo(&self, call: &Outgoing<'_>, events: &dyn CallEvents, now: Instant) {
        let end = Ok(demo::respond(call.request, call.own));
        let (method, named) = (call.request.method.as_str(), call.request.target.as_ref());
        let target = call.own.or_else(|| named.map(Target::as_str));
        let began = self.setup.measured.begin(method, target, now);
        self.measured(began, &end, events);
        events.done(end);
    }

    /// Enters how long a call was at its server, and says so to its events.
    fn measured(&self, began: Began, end: &Result<Answer, Refusal>, events: &dyn CallEvents) {
        let error = error_type(end);
        let time = self.setup.measured.enter(began, error);
        events.measured(AtServer { time, error });
    }

    /// A call as it is sent: its frame, and over HTTP its headers.
    ///
    /// # Errors
    /// As [`Self::encode`].
    fn write_request(
        &self,
        call: &Outgoing<'_>,
        method: &str,
        target: Option<&str>,
    ) -> Result<WrittenRequest, Refusal> {
        let encoded = self.encode(call)?;
        let headers = self.headers_of(self.era(), &encoded.frame, method, target, self.version());
        let headers = match &call.trace {
            Some(trace) if self.over_http() => trace_headers(headers, trace),
            Some(_) | None => headers,
        };
        Ok(WrittenRequest { encoded, headers })
    }

    /// Time that a request waits for progress or its answer.
    fn patience_for(&self, method: &str, target: Option<&str>) -> Duration {
        let spec = &self.setup.spec;
        if method == WAITS_FOR_TASK {
            spec.config.timeouts.max
        } else if method == CALL_TOOL.name {
            spec.timeout(target)
        } else {
            spec.timeout(None)
        }
    }

    /// A call as the server reads it: in its era, under the session's number. It is in protobuf
    /// only if both the server and the caller write that: a server of proto-mcp gets another one as
    /// JSON-RPC, which its link translates.
    ///
    /// # Errors
    /// It has no form in the server's revision.
    fn encode(&self, call: &Outgoing<'_>) -> Result<EncodedRequest, Refusal> {
        let changes = relay::OutgoingChanges {
            form: self.era(),
            number: call.number.0,
            own: call.own,
            client_info: call.client_info,
            capabilities: call.capabilities,
            log_level: call.log_level,
            related_task: call.related_task,
            tasks: call.tasks,
            trace: call.trace,
        };
        relay::encode_request(call.request, self.coding(), &changes).map_err(|malformed| {
            tracing::debug!(server = self.upstream(), %malformed, "a request could not be converted");
            Refusal::new(
                RefusalCode::Internal,
                "the request cannot be converted to the server's protocol revision",
            )
        })
    }

    /// Whether a call has to wait until another one that runs alone has ended.
    pub(super) fn must_wait_its_turn(&self, pending: &PendingTable) -> bool {
        self.is_serial() && pending.has_turn()
    }

    /// A place for one more call on this account.
    ///
    /// # Errors
    /// The refusal of a call for which there is none.
    pub(super) fn place(
        &self,
        pending: &mut PendingTable,
        account: &str,
        name: Option<Arc<str>>,
    ) -> Result<CallPlace, Refusal> {
        pending
            .place(&self.setup.calls, &self.queue_shares, account, name)
            .map_err(|full| self.full(full))
    }

    /// The name of a participant that sends a request, if the link names senders.
    pub(super) fn named(&self, participant: &str) -> Option<Arc<str>> {
        let names_senders = self.link.get().is_some_and(|link| link.names_senders());
        names_senders.then(|| participant.into())
    }

    /// The refusal of a call for which there is no place.
    fn full(&self, full: Full) -> Refusal {
        match full {
            Full::Share => {
                let what = format!(
                    "you have too many open calls at the server `{}`",
                    self.upstream()
                );
                Refusal::new(RefusalCode::UpstreamBusy, what).hint("wait for one of them to end")
            }
            Full::Pool => self.refusal(&Fault::Unsent(SendError::Busy)),
        }
    }

    /// Whether the server is the built-in demo server, which answers on the spot.
    fn is_demo(&self) -> bool {
        self.setup.spec.config.transport == Transport::Demo
    }

    /// Cancels a call: the server gets its era's cancellation, and the call's events receive
    /// nothing more.
    pub fn cancel(&self, call: CallNumber, reason: &str) {
        // A call that was sent again with answers has another number than at first.
        let again = self.pending.lock().retried.remove(&call.0);
        let number = again.unwrap_or(call.0);
        if let Some(cancelled) = self.settle(number) {
            if let Waiter::Call {
                began: Some(began), ..
            } = cancelled.waiter
            {
                self.setup.measured.enter(began, Some(CANCELLED));
            }
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
        let settled = self.pending.lock().settle(number);
        if let Some(next) = settled.next {
            self.send_kept(next.number, next.sent);
        }
        settled.request
    }

    /// Sends a request whose frame was kept: deferred, or to be sent again. It is on the account
    /// and in the name of its caller each time. It waits while the session is opened again, and is
    /// not sent if it has ended meanwhile.
    pub(super) fn send_kept(&self, number: u64, kept: WrittenRequest) {
        let mut pending = self.pending.lock();
        let Some(meta) = pending.meta_of(number) else {
            return;
        };
        if pending.awaiting_reopen.is_some() {
            return pending.await_reopen(number, kept);
        }
        drop(pending);
        if let Err(unsent) = self.send_written(kept, meta) {
            self.finish(number, Err(Fault::Unsent(unsent)));
        }
    }

    /// Gives the link a request.
    pub(super) fn send_written(
        &self,
        written: WrittenRequest,
        meta: SendMeta,
    ) -> Result<(), SendError> {
        let WrittenRequest { encoded, headers } = written;
        let meta = SendMeta {
            coding: encoded.coding,
            headers,
            ..meta
        };
        self.send(encoded.frame, meta)
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
                self.deliver_answer(
                    request,
                    end.map(|message| relay::decode_answer(&message, self.era())),
                );
            }
        }
    }

    /// Gives the caller of a settled request its answer, as callers read it. A request of the session
    /// itself has no caller: nothing happens.
    pub(super) fn deliver_answer(&self, request: PendingRequest, end: Result<Answer, Fault>) {
        if let Waiter::Call {
            events,
            place,
            began,
            ..
        } = request.waiter
        {
            // First: its caller may call again at once.
            drop(place);
            let end = end.map_err(|fault| self.refusal(&fault));
            if let Some(began) = began {
                self.measured(began, &end, &*events);
            }
            events.done(end);
            self.close_if_done();
        }
    }

    /// Cancels a request at the server by `notifications/cancelled`, and stops waiting at the link: in
    /// the modern era over HTTP the end of its stream is the cancellation itself.
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

    /// Has the session close when its last call has ended: no further one is sent in it.
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
