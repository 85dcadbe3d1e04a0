//! Proposals in effects: what must be on disk, and a proposal at one moment.

use std::sync::Arc;

use model::{OperationId, ParticipantId, ProposalState};

use crate::{Handles, event::PlanPlace};

/// A change of a proposal that must be on disk before it has effects.
#[derive(Debug, Clone)]
pub enum ProposalChange<H: Handles> {
    /// A participant opened it; of the first step of a plan, the whole plan.
    Opened,
    /// A participant approved it, and others must before it runs.
    Counted {
        /// The participant that approved.
        by: ParticipantId,
        /// Whether the approval is about other arguments than those of before: the content has them.
        amended: bool,
        /// The shell's part of the decision.
        ruling: H::Ruling,
    },
    /// A participant gave more time to decide about it.
    Extended {
        /// The participant.
        by: ParticipantId,
        /// Its new expiry on the wall clock, milliseconds.
        expires_wall_ms: u64,
        /// The shell's part of the extension.
        ruling: H::Ruling,
    },
    /// Its proposer replaced its arguments: the content has the new ones.
    Amended {
        /// The proposer.
        by: ParticipantId,
        /// The shell's part of the amendment.
        ruling: H::Ruling,
    },
    /// A participant decided about it. A rejected or withdrawn proposal is over; no
    /// [`ProposalChange::Ended`] follows.
    Decided {
        /// The participant that decided.
        by: ParticipantId,
        /// [`ProposalState::Running`] if it was approved, or rejected or withdrawn.
        state: ProposalState,
        /// The reason, in words for the proposer.
        reason: Option<Arc<str>>,
        /// Of an approval: the envelope that fulfils it.
        fulfilment: Option<Arc<str>>,
        /// The shell's part of the decision; `None` if the topic withdraws the proposal itself.
        ruling: Option<H::Ruling>,
    },
    /// It is over: completed, failed or expired, or withdrawn after it was approved and before it
    /// ran.
    Ended {
        /// Its last state.
        state: ProposalState,
        /// The reason, in words for the proposer.
        reason: Option<Arc<str>>,
        /// The answer of the server or participant that carried it out.
        answer: Option<H::Answer>,
    },
}

/// The most participants that a [`ProposalView`] names as able to decide.
pub const DECIDERS_SHOWN_MAX: usize = 16;

/// A participant that looks at a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The participant.
    pub by: ParticipantId,
    /// The time since when, in Unix milliseconds.
    pub since_ms: u64,
}

/// The note that came with an approval, before the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotedApproval {
    /// The participant that approved.
    pub by: ParticipantId,
    /// Its note for the proposer.
    pub note: Arc<str>,
}

/// A proposal at one moment, with the shell's handles.
#[derive(Debug, Clone)]
pub struct ProposalView<H: Handles> {
    /// Its id.
    pub id: OperationId,
    /// The proposer.
    pub by: ParticipantId,
    /// The id of the envelope that proposed.
    pub envelope: Arc<str>,
    /// The proposed request, in full.
    pub content: H::Content,
    /// Whether it was a held call.
    pub held: bool,
    /// Its state.
    pub state: ProposalState,
    /// The reason for its end, in words for the proposer.
    pub reason: Option<Arc<str>>,
    /// Its place in a plan, if it is a step of one. A later step is pending until its turn comes, and
    /// is not decided about.
    pub plan: Option<PlanPlace>,
    /// When it expires without a decision, on the wall clock, milliseconds.
    pub expires_wall_ms: u64,
    /// The number of times that its expiry was moved.
    pub extensions: usize,
    /// The number of times that its proposer replaced its arguments.
    pub amendments: usize,
    /// The number of participants that must approve it.
    pub approvals: usize,
    /// While it is pending, the participants whose approvals count so far, in their order; then those
    /// whose approvals counted beside the last one.
    pub approved_by: Vec<ParticipantId>,
    /// The notes that came with these approvals.
    pub notes: Vec<NotedApproval>,
    /// The participant that decided.
    pub decided_by: Option<ParticipantId>,
    /// The shell's part of the decision.
    pub ruling: Option<H::Ruling>,
    /// The envelope that fulfils it.
    pub fulfilment: Option<Arc<str>>,
    /// Whether a participant carries it out in the room, or was to.
    pub in_room: bool,
    /// The outcome and the answer.
    pub answer: Option<H::Answer>,
    /// The time of its latest change, on the clock of [`Topic::step`](crate::Topic::step).
    pub updated_ms: u64,
    /// While it is pending, the participants that look at it, by name.
    pub claims: Vec<Claim>,
    /// While it is pending, participants in the topic that could decide; [`DECIDERS_SHOWN_MAX`] at
    /// most. Empty in lists of proposals.
    pub deciders: Vec<ParticipantId>,
    /// While it is pending, participants that it names and that are not in the topic. Empty in
    /// lists of proposals.
    pub absent: Vec<ParticipantId>,
}
