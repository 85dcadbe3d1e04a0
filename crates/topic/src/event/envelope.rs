//! Envelopes that a participant sends to the room, with what each asks for.

use std::sync::Arc;

use model::{Digest, LinkId, Method, OperationId, Outcome};

use super::proposal::Terms;
use crate::handles::Handles;

/// An envelope that a link sends to the room.
#[derive(Debug)]
pub struct Say<'a, H: Handles> {
    /// The sender's link.
    pub link: LinkId,
    /// The envelope's id.
    pub id: &'a str,
    /// The kind, as it was written.
    pub kind: &'a str,
    /// The addressees; an envelope without addressees is for all participants.
    pub to: &'a [&'a str],
    /// The id of the envelope that this one answers or fulfils.
    pub correlation: Option<&'a str>,
    /// The digest under which [`Say::correlation`] would be kept if it named a proposal that is over.
    pub correlation_digest: Option<u128>,
    /// The envelope's bytes.
    pub message: H::Message,
    /// The length of the bytes.
    pub bytes: usize,
    /// The receiver's task.
    pub intent: Intent<H>,
}

/// The task that an envelope sets the gateway, or a server that the gateway plays.
#[derive(Debug)]
pub enum Intent<H: Handles> {
    /// None: the room gets the envelope, and the gateway takes no further step.
    None,
    /// `mcp/request`: servers that it names carry it out.
    Request(Requested<H>),
    /// `mcp/proposal`: the sender proposes a request.
    Propose {
        /// A new, unguessable id for the proposal's life.
        proposal: OperationId,
        /// The proposed request. `by` is the sender.
        terms: Terms,
        /// The same in full.
        content: H::Content,
    },
    /// `mcp/response`: the sender answers a request.
    Answer {
        /// [`Outcome::Ok`] or [`Outcome::Error`].
        outcome: Outcome,
        /// The answer.
        answer: H::Answer,
    },
    /// `mcp/request` of a notification. Only the participant that called may cancel.
    Cancel {
        /// The name of the request that the sender cancels.
        tag: H::Tag,
    },
    /// Kind and payload differ, so that no receiver may act on it (MCPx v0.1, section 4.3).
    Mismatch,
}

/// A request in the room.
#[derive(Debug)]
pub struct Requested<H: Handles> {
    /// The method.
    pub method: Method,
    /// The server's own name or URI, if the method has one.
    pub context: Option<Arc<str>>,
    /// The name that the sender gave the request.
    pub tag: Option<H::Tag>,
    /// One call for each of [`Say::to`], with a new operation id, in that order.
    pub calls: Vec<(OperationId, H::Call)>,
    /// The digest of the request as the server lists its target now, and the shell's part of the decision, if the request decides
    /// about a proposal.
    pub ruling: Option<(Option<Digest>, H::Ruling)>,
}
