//! Types between the gateway and a session: session key, client profile, call, answer, events of a call.

use bytes::Bytes;
use json::{ObjectEdit, Span, Splice, members};
use model::{LinkId, ParticipantId, Refusal};
use wire::mcp::{Params, ParamsEdit, Version};
use wire::rpc::{Id, Message};

/// The owner of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SessionKey {
    /// All callers share the session.
    Shared,
    /// One legacy client session of the gateway owns it; the number is its link.
    Legacy(u64),
    /// One modern caller owns it.
    Principal {
        /// The caller.
        participant: ParticipantId,
        /// Hash of the client capabilities that the caller declares.
        capabilities: u64,
    },
}

impl SessionKey {
    /// Whether one caller owns the session.
    #[must_use]
    pub fn is_own(&self) -> bool {
        match self {
            Self::Shared => false,
            Self::Legacy(_) | Self::Principal { .. } => true,
        }
    }

    /// The link of the legacy client that owns the session.
    #[must_use]
    pub fn owner(&self) -> Option<LinkId> {
        match self {
            Self::Legacy(link) => Some(LinkId(*link)),
            Self::Shared | Self::Principal { .. } => None,
        }
    }
}

/// What a client declares about itself, as raw JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientProfile {
    /// Its `ClientCapabilities` object.
    pub capabilities: Bytes,
    /// Its `Implementation` object, if it sent one.
    pub client_info: Option<Bytes>,
    /// The protocol revision that it speaks.
    pub version: Version,
}

impl ClientProfile {
    /// Whether servers may send requests to the client: it declares sampling, elicitation or roots.
    #[must_use]
    pub fn can_be_asked(&self) -> bool {
        // Most clients declare no capabilities.
        if *self.capabilities == *b"{}" {
            return false;
        }
        let Ok(declared) = members(&self.capabilities, Span::all(&self.capabilities)) else { return false };
        ["sampling", "elicitation", "roots"].iter().any(|name| declared.get(name).is_some())
    }
}

/// A request to a server, in the era of the session.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// The params as the caller wrote them, and through them the request.
    pub params: &'a Params<'a>,
    /// Edits of the params. The session itself replaces the id and the progress token.
    pub edit: ParamsEdit<'a, 'a>,
    /// The server's own name of the tool or prompt, the URI or the task id, as the session sends it. Selects the timeout and
    /// the HTTP headers.
    pub target: Option<&'a str>,
    /// The participant that sends the request. Only servers that dial in learn it.
    pub from: &'a str,
}

/// An answer of a server, with the id that the caller chose.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The result or error as the server wrote it; its id is the session's number, or missing.
    pub message: Message,
    /// The caller's id.
    pub id: Id,
}

impl Answer {
    /// The frame for the caller: the caller's id and the edits of `splice`, applied in one copy.
    #[must_use]
    pub fn frame(&self, mut splice: Splice) -> Bytes {
        if self.message.id_span().is_some() {
            self.message.set_id(&mut splice, &self.id);
        } else if let Ok(members) = members(self.message.frame(), Span::all(self.message.frame())) {
            let mut edit = ObjectEdit::new(&members);
            edit.set("id", self.id.raw());
            edit.finish(&mut splice);
        }
        self.message.edited(&splice)
    }
}

/// The number of a call: JSON-RPC id and progress token of the call at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallNumber(pub(crate) u64);

impl CallNumber {
    /// The number in the id of an answer.
    #[must_use]
    pub fn of_answer(answer: &Message) -> Option<Self> {
        answer.id()?.as_number().map(Self)
    }

    /// The number in a progress token that the server sends back.
    #[must_use]
    pub fn of_token(token: &Id) -> Option<Self> {
        token.as_number().map(Self)
    }
}

/// The number of a question, a request of the server to a client; for `Session::answer`, within its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuestionId(pub(crate) u64);

/// Receives everything about one call. The session's tasks call it; an implementation must not block.
pub trait CallEvents: Send + Sync {
    /// The server sent a notification about this call; it carries the caller's progress token.
    fn notice(&self, method: &str, frame: Bytes);
    /// The server sends a request to this caller: a question. The message carries the server's id.
    fn question(&self, question: QuestionId, message: Message);
    /// The server cancelled the question.
    fn withdrawn(&self, question: QuestionId) {
        let _ = question;
    }
    /// The call ended. Called exactly once, as the last event; never after a cancellation.
    fn done(&self, end: Result<Answer, Refusal>);
}
