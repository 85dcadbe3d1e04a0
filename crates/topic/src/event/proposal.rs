//! Terms of proposals, and decisions about them.

use model::{Digest, ParticipantId};

/// The terms of a proposal: proposer, request, addressees, expiry.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// The proposer.
    pub by: &'a ParticipantId,
    /// The method of the proposed request.
    pub method: &'a str,
    /// The server's own name or URI, if the method has one.
    pub context: Option<&'a str>,
    /// The servers or participants that the proposal names. A proposal that names none is for any of them.
    pub to: &'a [ParticipantId],
    /// The id of the envelope that proposes.
    pub envelope: &'a str,
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
