//! Questions: requests of the server to clients (sampling, elicitation, roots), their receivers and
//! answers.
//!
//! A question that belongs to no known call is rejected, never sent to a guessed caller.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

use bytes::Bytes;
use client::SendMeta;
use model::{Answer, Refusal};
use wire::mcp::{Params, refusal, relay, task};
use wire::rpc::code::{INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND};
use wire::rpc::{Message, error, result};

use super::{Session, SessionEvent, pending::Waiter};
use crate::fault::Fault;
use crate::question::{Asking, Question};
use crate::session_api::{CallEvents, QUESTIONS, SessionKey};

/// The receiver of a question.
enum Addressee {
    /// The caller of this call.
    Call(u64, Arc<dyn CallEvents>),
    /// The owner of the session.
    Owner,
}

impl Asking for Session {
    fn take_answer(
        &self,
        question: &Question,
        given: Result<&Answer, &Refusal>,
    ) -> Result<(), Refusal> {
        let form = self.era();
        let id = question.id();
        let method = question.request().method.as_str();
        let frame = match given {
            Ok(answer) => relay::encode_answer(answer, method, form, id, &|_| None).frame,
            Err(refusal) => refusal::encode(refusal, form, method, None).answer(Some(id)),
        };
        if let Some(call) = question.call() {
            self.pending.lock().extend(call, Instant::now());
        }
        self.send(frame, SendMeta::default())
            .map_err(|unsent| self.refusal(&Fault::Unsent(unsent)))
    }

    fn count_question(&self, call: Option<u64>, begins: bool) {
        match (call, begins) {
            (None, _) => {}
            (Some(_), true) => _ = self.asking.fetch_add(1, Ordering::Relaxed),
            (Some(_), false) => _ = self.asking.fetch_sub(1, Ordering::Relaxed),
        }
        self.pending.lock().count_question(call, begins);
    }
}

impl Session {
    /// Handles a question, or answers a ping.
    pub(super) fn handle_question(self: &Arc<Self>, message: Message, stream_of: Option<u64>) {
        let Some(id) = message.id().cloned() else {
            return;
        };
        if message.method() == "ping" {
            self.reply(result(&id, b"{}"));
            return;
        }
        if !self.may_ask(message.method()) {
            tracing::debug!(
                server = self.upstream(),
                method = message.method(),
                "rejected a request of the server: not permitted"
            );
            self.reply(error(
                Some(&id),
                METHOD_NOT_FOUND,
                "this client does not support the method",
                None,
            ));
            return;
        }
        let Some(addressee) = self.addressee(stream_of, &message) else {
            tracing::warn!(
                server = self.upstream(),
                method = message.method(),
                "rejected a request of the server: it belongs to no call"
            );
            self.reply(error(
                Some(&id),
                INTERNAL_ERROR,
                "the request belongs to no open call",
                None,
            ));
            return;
        };
        let Ok(params) = Params::read(&message) else {
            self.reply(error(
                Some(&id),
                INVALID_PARAMS,
                "the params cannot be read",
                None,
            ));
            return;
        };
        let request = relay::decode_request(&params, self.era());
        let asking: Weak<dyn Asking> = Arc::downgrade(&(Arc::clone(self) as Arc<dyn Asking>));
        let call = match &addressee {
            Addressee::Call(number, _) => Some(*number),
            Addressee::Owner => None,
        };
        let question = Question::new(asking, self.instance(), id, request, call);
        match addressee {
            Addressee::Call(_, events) => events.question(question),
            Addressee::Owner => self.emit(SessionEvent::Question(question)),
        }
    }

    /// Whether the server waits for an answer of a modern caller, which has gone to ask its user
    /// and may never come back.
    #[must_use]
    pub fn is_asking(&self) -> bool {
        matches!(self.setup.key, SessionKey::Principal { .. })
            && self.asking.load(Ordering::Relaxed) > 0
    }

    /// Handles the server's cancellation of a question.
    pub(super) fn question_cancelled(self: &Arc<Self>, message: &Message) {
        if let Some(id) = Params::read(message)
            .ok()
            .and_then(|params| params.request_id())
        {
            self.emit(SessionEvent::Withdrawn(id));
        }
    }

    /// The receiver of a question: the call on whose response stream it came; without response
    /// streams the owner's only pending call, else the owner. A question about a task belongs to no
    /// call of the session, because a task outlives its call: the gateway finds where the task's
    /// result is awaited.
    fn addressee(&self, stream_of: Option<u64>, message: &Message) -> Option<Addressee> {
        if self.setup.key.is_own() && self.tasks() > 0 && task::related_in(message).is_some() {
            return Some(Addressee::Owner);
        }
        let pending = self.pending.lock();
        let number = match (stream_of, &self.setup.key) {
            (Some(number), _) => Some(number),
            (None, SessionKey::Shared) => return None,
            (None, SessionKey::Legacy { .. } | SessionKey::Principal { .. }) => pending.only_call(),
        };
        if let Some(number) = number
            && let Some(request) = pending.requests.get(&number)
            && let Waiter::Call { events, .. } = &request.waiter
        {
            return Some(Addressee::Call(number, Arc::clone(events)));
        }
        self.setup.key.owner().map(|_| Addressee::Owner)
    }

    /// Whether the client's declaration permits a question of this method. Whether the server may
    /// ask it is the topic's decision.
    fn may_ask(&self, method: &str) -> bool {
        let capability = match method {
            // Tasks that a client runs for the server (2025-11-25).
            "tasks/get" | "tasks/result" | "tasks/list" | "tasks/cancel" => "tasks",
            _ => match QUESTIONS.iter().find(|(_, asked)| *asked == method) {
                Some((capability, _)) => capability,
                None => return false,
            },
        };
        match &self.setup.owner {
            Some(owner) => json::at(&owner.client.capabilities, &[capability]).is_some(),
            None => false,
        }
    }

    fn reply(&self, frame: Bytes) {
        if self.send(frame, SendMeta::default()).is_err() {
            tracing::debug!(
                server = self.upstream(),
                "a reply to the server could not be sent"
            );
        }
    }
}
