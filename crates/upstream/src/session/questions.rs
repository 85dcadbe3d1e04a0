//! Questions: requests of the server to clients (sampling, elicitation, roots), their receivers and answers.
//!
//! A question that belongs to no known call is rejected, never sent to a guessed caller.

use std::sync::Arc;
use std::time::Instant;

use client::SendMeta;
use json::Splice;
use model::{Refusal, RefusalCode};
use wire::mcp::{Params, task};
use wire::rpc::{Message, error, result};

use super::Session;
use super::pending::{PendingQuestion, Waiter};
use super::requests::member;
use crate::fault::Fault;
use crate::session_api::{CallEvents, QuestionId, SessionKey};

/// JSON-RPC error code: the method does not exist, here for this client.
const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC error code: internal error.
const INTERNAL_ERROR: i64 = -32603;

/// The receiver of a question.
enum Addressee {
    /// The caller of this call.
    Call(u64, Arc<dyn CallEvents>),
    /// The owner of the session.
    Owner,
}

impl Session {
    /// Handles a question, or answers a ping.
    pub(super) fn handle_question(self: &Arc<Self>, message: Message, stream_of: Option<u64>) {
        let Some(id) = message.id().cloned() else { return };
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
            self.reply(error(Some(&id), METHOD_NOT_FOUND, "this client does not support the method", None));
            return;
        }
        let Some(addressee) = self.addressee(stream_of, &message) else {
            tracing::warn!(
                server = self.upstream(),
                method = message.method(),
                "rejected a request of the server: it belongs to no call"
            );
            self.reply(error(Some(&id), INTERNAL_ERROR, "the request belongs to no open call", None));
            return;
        };
        let call = match &addressee {
            Addressee::Call(number, _) => Some(*number),
            Addressee::Owner => None,
        };
        let max = self.setup.spec.bounds.questions_max;
        let asked = PendingQuestion { id: id.clone(), call };
        let Some(number) = self.pending().add_question(asked, max) else {
            self.reply(error(Some(&id), INTERNAL_ERROR, "too many open requests", None));
            return;
        };
        match addressee {
            Addressee::Call(_, events) => events.question(QuestionId(number), message),
            Addressee::Owner => self.setup.events.question(self, QuestionId(number), message),
        }
    }

    /// Answers a question; `answer` is a result or an error with any id.
    ///
    /// # Errors
    /// A refusal when the question is not open any more or the answer cannot be sent.
    pub fn answer(&self, question: QuestionId, answer: &Message) -> Result<(), Refusal> {
        let asked = {
            let mut pending = self.pending();
            let Some(asked) = pending.take_question(question.0) else {
                return Err(Refusal::new(
                    RefusalCode::Cancelled,
                    "the server's request is not open any more",
                ));
            };
            if let Some(call) = asked.call {
                pending.extend(call, Instant::now());
            }
            asked
        };
        let mut splice = Splice::new();
        answer.set_id(&mut splice, &asked.id);
        self.send(answer.edited(&splice), SendMeta::default())
            .map_err(|unsent| self.refusal(&Fault::Unsent(unsent)))
    }

    /// Handles the server's cancellation of a question.
    pub(super) fn question_cancelled(self: &Arc<Self>, message: &Message) {
        let Some(id) = Params::read(message).ok().and_then(|params| params.request_id()) else { return };
        let found = self.pending().withdraw_question(&id);
        let Some((number, asked)) = found else { return };
        match asked.call {
            None => self.setup.events.withdrawn(self, QuestionId(number)),
            Some(call) => {
                let events = match self.pending().get(call).map(|request| &request.waiter) {
                    Some(Waiter::Call { events, .. }) => Some(Arc::clone(events)),
                    Some(Waiter::Own(_)) | None => None,
                };
                if let Some(events) = events {
                    events.withdrawn(QuestionId(number));
                }
            }
        }
    }

    /// The receiver of a question: the call on whose response stream it came; without response streams the owner's only
    /// pending call, else the owner. A question about a task goes to the owner, because a task outlives its call.
    fn addressee(&self, stream_of: Option<u64>, message: &Message) -> Option<Addressee> {
        let owned = matches!(self.setup.key, SessionKey::Legacy(_));
        if owned && self.tasks() > 0 && task::related_to(message).is_some() {
            return Some(Addressee::Owner);
        }
        let pending = self.pending();
        let number = match (stream_of, &self.setup.key) {
            (Some(number), _) => Some(number),
            (None, SessionKey::Shared) => return None,
            (None, SessionKey::Legacy(_) | SessionKey::Principal { .. }) => pending.only_call(),
        };
        let request = number.and_then(|number| pending.get(number));
        match request.map(|request| (&request.waiter, number)) {
            Some((Waiter::Call { events, .. }, Some(number))) => {
                Some(Addressee::Call(number, Arc::clone(events)))
            }
            _ if owned => Some(Addressee::Owner),
            _ => None,
        }
    }

    /// Whether the configuration and the client's declaration permit a question of this method.
    fn may_ask(&self, method: &str) -> bool {
        let policy = self.setup.spec.questions;
        let (allowed, capability) = match method {
            "sampling/createMessage" => (policy.sampling, "sampling"),
            "elicitation/create" => (policy.elicitation, "elicitation"),
            "roots/list" => (policy.roots, "roots"),
            // Tasks that a client runs for the server (2025-11-25).
            "tasks/get" | "tasks/result" | "tasks/list" | "tasks/cancel" => (true, "tasks"),
            _ => return false,
        };
        allowed
            && self.setup.key != SessionKey::Shared
            && self
                .setup
                .client
                .as_ref()
                .is_some_and(|client| member(&client.capabilities, capability).is_some())
    }

    fn reply(&self, frame: bytes::Bytes) {
        if self.send(frame, SendMeta::default()).is_err() {
            tracing::debug!(server = self.upstream(), "a reply to the server could not be sent");
        }
    }
}
