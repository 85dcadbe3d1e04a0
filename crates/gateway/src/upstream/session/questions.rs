//! Requests of the server: whom they may be asked, and their answers. A question is never guessed to a caller.

use std::sync::Arc;
use std::time::Instant;

use client::SendMeta;
use json::Splice;
use model::{Refusal, RefusalCode};
use wire::mcp::{Params, task};
use wire::rpc::{Message, error, result};

use super::super::sink::{CallSink, QuestionId, SessionKey};
use super::Session;
use super::calls::{Question, Waiter};
use super::own::member;

/// JSON-RPC: there is no such method (here: not for this client).
const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: our own trouble.
const INTERNAL_ERROR: i64 = -32603;

/// Who is asked.
enum Asked {
    Call(u64, Arc<dyn CallSink>),
    Owner,
}

impl Session {
    /// A request of the server.
    pub(super) fn asked(self: &Arc<Self>, message: Message, about: Option<u64>) {
        let Some(id) = message.id().cloned() else { return };
        if message.method() == "ping" {
            self.reply(result(&id, b"{}"));
            return;
        }
        if !self.may_ask(message.method()) {
            tracing::debug!(
                server = self.upstream(),
                method = message.method(),
                "a question that is not allowed"
            );
            self.reply(error(Some(&id), METHOD_NOT_FOUND, "this client does not support the method", None));
            return;
        }
        let Some(asked) = self.addressee(about, &message) else {
            tracing::warn!(
                server = self.upstream(),
                method = message.method(),
                "a question that belongs to no call"
            );
            self.reply(error(Some(&id), INTERNAL_ERROR, "the request belongs to no open call", None));
            return;
        };
        let call = match &asked {
            Asked::Call(number, _) => Some(*number),
            Asked::Owner => None,
        };
        let max = self.opening.spec.bounds.questions_max;
        let Some(number) = self.open().ask(Question { id: id.clone(), about: call }, max) else {
            self.reply(error(Some(&id), INTERNAL_ERROR, "too many open requests", None));
            return;
        };
        match asked {
            Asked::Call(_, sink) => sink.question(QuestionId(number), message),
            Asked::Owner => self.opening.sink.question(self, QuestionId(number), message),
        }
    }

    /// Answers a server's question; `answer` is a result or an error with any id.
    ///
    /// # Errors
    /// A refusal when the question is not open any more or the answer cannot be sent.
    pub fn answer(&self, question: QuestionId, answer: &Message) -> Result<(), Refusal> {
        let question = {
            let mut open = self.open();
            let Some(question) = open.answered(question.0) else {
                return Err(Refusal::new(RefusalCode::Cancelled, "the question is not open any more"));
            };
            if let Some(call) = question.about {
                open.extend(call, Instant::now());
            }
            question
        };
        let mut splice = Splice::new();
        answer.set_id(&mut splice, &question.id);
        self.send(answer.edited(&splice), SendMeta::default())
            .map_err(|unsent| self.refusal(&super::Fault::Unsent(unsent)))
    }

    /// The server has cancelled its question.
    pub(super) fn withdrawn(self: &Arc<Self>, message: &Message) {
        let Some(id) = Params::read(message).ok().and_then(|params| params.request_id()) else { return };
        let found = self.open().withdrawn(&id);
        let Some((number, question)) = found else { return };
        match question.about {
            None => self.opening.sink.withdrawn(self, QuestionId(number)),
            Some(call) => {
                let sink = match self.open().get(call).map(|open| &open.waiter) {
                    Some(Waiter::Call { sink, .. }) => Some(Arc::clone(sink)),
                    Some(Waiter::Own(_)) | None => None,
                };
                if let Some(sink) = sink {
                    sink.withdrawn(QuestionId(number));
                }
            }
        }
    }

    /// The call on whose stream it came; without streams the owner's only open call, or the owner itself. What belongs to a
    /// task outlives the call on whose stream it came: it is for the owner.
    fn addressee(&self, about: Option<u64>, message: &Message) -> Option<Asked> {
        let owned = matches!(self.opening.key, SessionKey::Legacy(_));
        if owned && self.tasks() > 0 && task::related_to(message).is_some() {
            return Some(Asked::Owner);
        }
        let open = self.open();
        let number = match (about, &self.opening.key) {
            (Some(number), _) => Some(number),
            (None, SessionKey::Shared) => return None,
            (None, SessionKey::Legacy(_) | SessionKey::Principal { .. }) => open.only_call(),
        };
        match number.and_then(|number| open.get(number)).map(|open| (&open.waiter, number)) {
            Some((Waiter::Call { sink, .. }, Some(number))) => Some(Asked::Call(number, Arc::clone(sink))),
            _ if owned => Some(Asked::Owner),
            _ => None,
        }
    }

    /// Whether configuration and the client's declaration allow this question.
    fn may_ask(&self, method: &str) -> bool {
        let questions = self.opening.spec.questions;
        let (allowed, capability) = match method {
            "sampling/createMessage" => (questions.sampling, "sampling"),
            "elicitation/create" => (questions.elicitation, "elicitation"),
            "roots/list" => (questions.roots, "roots"),
            // Tasks that a client runs for the server (2025-11-25).
            "tasks/get" | "tasks/result" | "tasks/list" | "tasks/cancel" => (true, "tasks"),
            _ => return false,
        };
        allowed
            && self.opening.key != SessionKey::Shared
            && self
                .opening
                .hello
                .as_ref()
                .is_some_and(|hello| member(&hello.capabilities, capability).is_some())
    }

    fn reply(&self, frame: bytes::Bytes) {
        if self.send(frame, SendMeta::default()).is_err() {
            tracing::debug!(server = self.upstream(), "an answer could not be sent");
        }
    }
}
