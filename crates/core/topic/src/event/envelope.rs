//! Envelopes and what they ask for: requests, proposals with their terms, decisions and ends.

use std::sync::Arc;

use model::{
    Capabilities, Digest, LinkId, Method, Narrowing, OperationId, Outcome, ParticipantId,
    ProposalState, Refusal,
};

use super::plan_place::PlanPlace;
use crate::{Handles, event::Tightening};

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
    /// The digest under which the id of the proposal that this envelope makes or names is kept once
    /// that is over: of [`Say::id`] if it proposes, of [`Say::correlation`] if it requests.
    pub proposal_digest: Option<u128>,
    /// The part of the sender's capabilities that its access token is good for; `None` is all of
    /// them.
    pub narrowing: Option<&'a Narrowing>,
    /// The decision of a rule, if it is a request that its sender may make. One that decides about
    /// another participant's proposal is an approval, and no rule takes anything of it.
    pub tightening: Option<Tightening>,
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
        terms: Box<Terms>,
        /// Content of the proposed request, in full.
        content: H::Content,
    },
    /// `mcp/proposal` of what cannot be proposed: it is rejected.
    Reject {
        /// The reason, in words for the sender.
        refusal: Box<Refusal>,
        /// Whether it is published all the same: its payload is not what its kind says, which
        /// participants see for themselves (MCPx v0.1, sections 4.2 and 4.3).
        published: bool,
    },
    /// `portmoot/reject`: the sender rejects the proposal of the envelope that it names.
    Rejection {
        /// Why, in words for the proposer.
        reason: Option<Arc<str>>,
        /// The shell's part of the decision; `None` if the shell knows no such proposal.
        ruling: Option<H::Ruling>,
    },
    /// `portmoot/pause` or `portmoot/resume`: judged as if it were addressed to the participant.
    Brake {
        /// The participant that is to be paused or resumed.
        participant: ParticipantId,
    },
    /// A kind of the gateway's own whose payload says nothing that the gateway can do.
    Unreadable {
        /// The refusal that the sender gets.
        refusal: Box<Refusal>,
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
    /// Kind and payload of a request differ, so that no receiver may act on it (MCPx v0.1, section
    /// 4.3).
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
    /// The digest of the request as the server lists its target now, and the shell's part of the
    /// decision, if the request decides about a proposal.
    pub ruling: Option<(Option<Digest>, H::Ruling)>,
}

/// The terms of a proposal: proposer, request, addressees, expiry.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The proposer.
    pub by: ParticipantId,
    /// The method of the proposed request.
    pub method: Method,
    /// The server's own name or URI, if the method has one.
    pub context: Option<Arc<str>>,
    /// The servers or participants that the proposal names. A proposal that names none is for any
    /// of them.
    pub to: Box<[ParticipantId]>,
    /// The id of the envelope that proposes.
    pub envelope: Arc<str>,
    /// The digest of the request as reviewers see it.
    pub digest: Digest,
    /// When the proposal expires, on the steady clock.
    pub expires_ms: u64,
    /// Expiry of the proposal on the wall clock, milliseconds; the first of both counts.
    pub expires_wall_ms: u64,
    /// The bytes of its content.
    pub bytes: usize,
    /// The number of participants that must approve it before it runs; at least one must.
    pub approvals: usize,
    /// The number of times that its expiry was moved.
    pub extensions: usize,
    /// The number of times that its proposer replaced its arguments.
    pub amendments: usize,
    /// Its place in a plan, if it is a step of one.
    pub plan: Option<PlanPlace>,
}

impl Terms {
    /// Whether more than one participant must approve it.
    pub(crate) fn needs_several(&self) -> bool {
        self.approvals > 1
    }

    /// Whether it is a step of a plan after the first, which is decided about.
    pub(crate) fn is_later_step(&self) -> bool {
        self.plan.as_ref().is_some_and(|place| !place.is_first())
    }

    /// Whether the proposal's time has run out, on one of the clocks.
    pub(crate) fn is_over(&self, now_ms: u64, wall_ms: u64) -> bool {
        self.expires_ms <= now_ms || self.expires_wall_ms <= wall_ms
    }
}

/// A participant's decision about a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision<'a> {
    /// The proposed request may run, once.
    Approve {
        /// The digest of the request as this reviewer saw it.
        shown: Digest,
        /// The digest of the same with what the server lists now; `None` if it cannot be made any
        /// more.
        current: Option<Digest>,
    },
    /// It never runs.
    Reject {
        /// Why, in words for the proposer.
        reason: Option<&'a str>,
    },
    /// It may be decided about for longer, by [`EXTENSION_MS`](crate::EXTENSION_MS).
    Extend,
    /// Its proposer replaces its arguments by those of [`Event::Decide`](crate::Event::Decide): what
    /// reviewers saw and approved before is void.
    Amend,
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
    /// Content of the proposed request, in full.
    pub content: H::Content,
    /// Whether it was a held call.
    pub held: bool,
    /// The public name or URI under which the call was held.
    pub public: Option<&'a str>,
    /// The approvals of a proposal that needs several, in their order.
    pub approved_by: Vec<CountedApproval>,
    /// Its end: it is kept for queries. Without an end it is pending.
    pub end: Option<EndedProposal<H>>,
}

/// One of several approvals that a proposal needs.
#[derive(Debug, Clone)]
pub struct CountedApproval {
    /// The participant that approved.
    pub by: ParticipantId,
    /// Its capabilities while it is not in the topic: as they are, as far as the topic has learned.
    pub outside: Option<Arc<Capabilities>>,
    /// The digest of the request that it approved.
    pub shown: Digest,
    /// Its note for the proposer.
    pub note: Option<Arc<str>>,
}

/// A proposal with other arguments: the version that an approval is about, or the one that its
/// proposer puts in place of the former.
#[derive(Debug, Clone)]
pub struct Amended<H: Handles> {
    /// The digest of the request as reviewers see it from now on.
    pub digest: Digest,
    /// The proposal in full, as reviewers see it from now on.
    pub content: H::Content,
    /// The bytes of this content.
    pub bytes: usize,
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
    /// The envelope that fulfilled it.
    pub fulfilment: Option<Arc<str>>,
    /// The answer of the server or participant that carried it out.
    pub answer: Option<H::Answer>,
}
