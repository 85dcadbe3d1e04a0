//! Terms of proposals, decisions about them, and proposals of before a restart.

use std::sync::Arc;

use model::{Digest, Method, OperationId, ParticipantId, ProposalState};

use crate::handles::Handles;

/// The terms of a proposal: proposer, request, addressees, expiry.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The proposer.
    pub by: ParticipantId,
    /// The method of the proposed request.
    pub method: Method,
    /// The server's own name or URI, if the method has one.
    pub context: Option<Arc<str>>,
    /// The servers or participants that the proposal names. A proposal that names none is for any of them.
    pub to: Box<[ParticipantId]>,
    /// The id of the envelope that proposes.
    pub envelope: Arc<str>,
    /// The digest of the request as reviewers see it.
    pub digest: Digest,
    /// When the proposal expires.
    pub expires_ms: u64,
}

/// A participant's decision about a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision<'a> {
    /// The proposed request may run, once.
    Approve {
        /// The digest of the request as this reviewer saw it.
        shown: Digest,
        /// The digest of the same with what the server lists now; `None` if it cannot be made any more.
        current: Option<Digest>,
    },
    /// It never runs.
    Reject {
        /// Why, in words for the proposer.
        reason: Option<&'a str>,
    },
    /// The proposer withdraws it.
    Withdraw {
        /// Why, for the record.
        reason: Option<&'a str>,
    },
}

/// A proposal of before a restart.
#[derive(Debug, Clone)]
pub struct Restore<'a, H: Handles> {
    /// Its id.
    pub proposal: OperationId,
    /// The proposed request.
    pub terms: Terms,
    /// The same in full.
    pub content: H::Content,
    /// Whether it was a held call.
    pub held: bool,
    /// The public name or URI under which the call was held.
    pub public: Option<&'a str>,
    /// Its end: it is kept for queries. Without an end it is pending.
    pub end: Option<EndedProposal<H>>,
}

/// The end of a proposal from before a restart.
#[derive(Debug, Clone)]
pub struct EndedProposal<H: Handles> {
    /// One of the states that are over.
    pub state: ProposalState,
    /// The reason, in words for the proposer.
    pub reason: Option<Arc<str>>,
    /// The participant that decided, with the shell's part of its decision.
    pub decided: Option<(ParticipantId, H::Ruling)>,
    /// The answer of the server or participant that carried it out.
    pub answer: Option<H::Answer>,
}
