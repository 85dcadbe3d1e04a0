//! What goes to a session and what comes out of one: the words that the pump and the sessions share.
//!
//! It must not know how a session works.

use bytes::Bytes;
use json::{ObjectEdit, Span, Splice, members};
use model::{ParticipantId, Refusal};
use wire::mcp::{Params, ParamsEdit, Version};
use wire::rpc::{Id, Message};

/// Whose session is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SessionKey {
    /// Everybody's.
    Shared,
    /// That of one legacy session at our door.
    Legacy(u64),
    /// That of a modern caller: who, and a hash of what it declares.
    Principal {
        /// Who calls.
        participant: ParticipantId,
        /// Hash of the declared client capabilities.
        capabilities: u64,
    },
}

/// What a caller says about itself, as raw JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Its `ClientCapabilities` object.
    pub capabilities: Bytes,
    /// Its `Implementation` object, if it gave one.
    pub client_info: Option<Bytes>,
    /// The revision that it speaks.
    pub version: Version,
}

impl Hello {
    /// Whether servers may ask it something: it declares sampling, elicitation or roots.
    #[must_use]
    pub fn can_be_asked(&self) -> bool {
        // What most clients declare.
        if *self.capabilities == *b"{}" {
            return false;
        }
        let Ok(declared) = members(&self.capabilities, Span::all(&self.capabilities)) else { return false };
        ["sampling", "elicitation", "roots"].iter().any(|name| declared.get(name).is_some())
    }
}

/// A request on its way to an upstream, in the era of the session.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// The params of the request as the caller wrote it (and, through them, the request).
    pub params: &'a Params<'a>,
    /// Edits of the params. Id and progress token are the session's and not among them.
    pub edit: ParamsEdit<'a, 'a>,
    /// The server's own name of the tool or prompt, the URI or the task, as it will be sent. For timeouts and headers.
    pub target: Option<&'a str>,
    /// Whose request it is. Servers that are participants themselves are told.
    pub from: &'a str,
}

/// An answer: the upstream's message as it came, and the id that the caller knows.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The result or error as the upstream wrote it; its id is the session's, or missing.
    pub message: Message,
    /// The caller's id.
    pub id: Id,
}

impl Answer {
    /// The frame for the caller: its own id, and these edits; one copy.
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

/// The handle on an open call, for `Session::cancel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(pub(super) u64);

/// A server's question, for `Session::answer`; means something only to its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuestionId(pub(super) u64);

/// Where everything about one call goes. Called from the session's tasks; must not block.
pub trait CallSink: Send + Sync {
    /// A notification about this call; the caller's progress token is already back in it.
    fn notice(&self, method: &str, frame: Bytes);
    /// The server asks this caller something; the id in the message is the server's.
    fn question(&self, question: QuestionId, message: Message);
    /// The server does not want an answer to this question any more.
    fn withdrawn(&self, question: QuestionId) {
        let _ = question;
    }
    /// The end; called exactly once unless the call was cancelled, and nothing follows it.
    fn done(&self, end: Result<Answer, Refusal>);
}
