//! One proposal: its terms, its phase, the decision about it.

use std::sync::Arc;

use model::{
    Capabilities, Digest, KindRef, LinkId, Method, Narrowing, OperationId, ParticipantId,
    ProposalState,
};

use crate::{
    Audience, Handles,
    admission::judge_kind,
    event::{Amended, CountedApproval, Decision, Terms},
};

/// The phase of a proposal. A change that must be on disk first takes two steps, so three phases
/// wait for the journal.
#[derive(Debug, Clone)]
pub(crate) enum Phase<H: Handles> {
    /// Its opening is being written.
    Opening,
    /// Open to decisions.
    Pending,
    /// A later step of a plan, whose turn has not come: it is not decided about.
    Waiting,
    /// A step whose turn has come: the shell is asked whether it can run as it was shown.
    Due,
    /// A decision is being written.
    Deciding(Box<Ruling<H>>),
    /// Approved: it runs, once.
    Running,
    /// Its end is being written.
    Ending(LastState),
}

/// The state in which a proposal is over.
#[derive(Debug, Clone)]
pub(crate) struct LastState {
    pub(crate) state: ProposalState,
    /// The reason, in words for the proposer.
    pub(crate) reason: Option<Arc<str>>,
}

/// The digests of the request that a participant approves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Approval {
    /// As the participant saw it.
    pub(crate) shown: Digest,
    /// As it is now; `None` if it cannot be made any more.
    pub(crate) current: Option<Digest>,
}

/// The participant that decided about a proposal.
#[derive(Debug, Clone)]
pub(crate) struct Decided<H: Handles> {
    pub(crate) by: ParticipantId,
    /// The shell's part of its decision.
    pub(crate) ruling: Option<H::Ruling>,
}

/// The change of a proposal that a participant makes without a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TermsChange {
    /// There is more time to decide.
    Extension,
    /// Its proposer has other arguments.
    Amendment,
}

/// A decision that a participant made.
#[derive(Debug, Clone)]
pub(crate) struct Ruling<H: Handles> {
    pub(crate) by: ParticipantId,
    /// The capabilities of `by`, if it is not in the topic.
    pub(crate) outside: Option<Arc<Capabilities>>,
    /// The narrowing of its access token, by which the decision is judged whenever it is.
    pub(crate) narrowing: Option<Narrowing>,
    /// [`ProposalState::Running`], [`ProposalState::Rejected`] or [`ProposalState::Withdrawn`]; of a
    /// change [`ProposalState::Pending`].
    pub(crate) state: ProposalState,
    /// The change, if it decides nothing.
    pub(crate) change: Option<TermsChange>,
    pub(crate) reason: Option<Arc<str>>,
    /// The approved request, if it is an approval.
    pub(crate) approves: Option<Approval>,
    /// The shell's part of it; `None` if the topic itself withdraws the proposal, even if the
    /// journal fails.
    pub(crate) handle: Option<H::Ruling>,
    /// The envelope that fulfils the proposal, or the one that announces an approval without an
    /// envelope.
    pub(crate) fulfilment: Option<Arc<str>>,
    /// The calls by which servers carry it out, if it was a request in the room.
    pub(crate) requested: Option<RoomRequests<H>>,
    /// The participants that such a request names.
    pub(crate) named: Box<[ParticipantId]>,
    /// The other arguments that it is about, of an approval among several or an amendment.
    pub(crate) amended: Option<Amended<H>>,
    /// The bytes of the content that it replaces, while other arguments are being written.
    pub(crate) older_bytes: usize,
    /// Whether other approvals must follow, of an approval that is being written.
    pub(crate) is_partial: bool,
    /// Whether the name of `by` has another bearer by now: nothing of it counts for that one.
    pub(crate) is_void: bool,
    /// The participants whose approvals count beside it, of the last approval that is needed.
    pub(crate) beside: Box<[ParticipantId]>,
    /// The envelope that rejects: participants get it once that counts.
    pub(crate) unpublished: Option<Box<Unpublished<H>>>,
}

impl<H: Handles> Ruling<H> {
    /// A decision without an envelope, of a participant in the topic.
    pub(crate) fn new(
        by: ParticipantId,
        decision: Decision<'_>,
        handle: Option<H::Ruling>,
    ) -> Self {
        let mut ruling = Self {
            by,
            outside: None,
            narrowing: None,
            state: ProposalState::Running,
            change: None,
            reason: None,
            approves: None,
            handle,
            fulfilment: None,
            requested: None,
            named: Box::default(),
            amended: None,
            older_bytes: 0,
            is_partial: false,
            is_void: false,
            beside: Box::default(),
            unpublished: None,
        };
        match decision {
            Decision::Approve { shown, current } => {
                ruling.approves = Some(Approval { shown, current });
            }
            Decision::Extend => ruling.becomes(TermsChange::Extension),
            Decision::Amend => ruling.becomes(TermsChange::Amendment),
            Decision::Reject { reason } => {
                ruling.state = ProposalState::Rejected;
                ruling.reason = reason.map(Arc::from);
            }
            Decision::Withdraw { reason } => {
                ruling.state = ProposalState::Withdrawn;
                ruling.reason = reason.map(Arc::from);
            }
        }
        ruling
    }

    fn becomes(&mut self, change: TermsChange) {
        self.state = ProposalState::Pending;
        self.change = Some(change);
    }

    /// Whether it gives more time to decide.
    pub(crate) fn is_extension(&self) -> bool {
        self.change == Some(TermsChange::Extension)
    }

    /// Whether its proposer replaces its arguments.
    pub(crate) fn is_amendment(&self) -> bool {
        self.change == Some(TermsChange::Amendment)
    }

    /// Whether the proposal stays open to decisions once this one is on disk.
    pub(crate) fn leaves_it_open(&self) -> bool {
        self.is_partial || self.change.is_some()
    }

    /// The form in which it came.
    pub(crate) fn form(&self) -> RulingForm {
        if self.requested.is_some() {
            RulingForm::Request
        } else if self.unpublished.is_some() {
            RulingForm::Envelope
        } else {
            RulingForm::Plain
        }
    }
}

/// The form of a decision.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RulingForm {
    /// An envelope that is the proposed request.
    Request,
    /// Another envelope.
    Envelope,
    /// No envelope: it came through the API, the command line or a built-in tool.
    Plain,
}

/// A call of a request in the room.
#[derive(Debug, Clone)]
pub(crate) struct RoomCall<H: Handles> {
    pub(crate) server: ParticipantId,
    pub(crate) operation: OperationId,
    pub(crate) call: H::Call,
}

/// A request in the room, at each of the servers that it names.
#[derive(Debug, Clone)]
pub(crate) struct RoomRequests<H: Handles> {
    pub(crate) link: LinkId,
    /// The narrowing of the envelope that requests: it holds also where the request waits for the
    /// journal.
    pub(crate) narrowing: Option<Narrowing>,
    pub(crate) tag: Option<H::Tag>,
    pub(crate) method: Method,
    pub(crate) context: Option<Arc<str>>,
    pub(crate) calls: Vec<RoomCall<H>>,
    /// Its envelope, if it names a proposal: participants that carry it out get it when servers do.
    pub(crate) unpublished: Option<Unpublished<H>>,
}

/// An envelope that was admitted and is not published yet.
#[derive(Debug, Clone)]
pub(crate) struct Unpublished<H: Handles> {
    pub(crate) message: H::Message,
    pub(crate) bytes: usize,
    pub(crate) audience: Audience,
}

impl<H: Handles> Unpublished<H> {
    /// Whether these capabilities admit it as this request to its addressees.
    pub(crate) fn is_admitted(
        &self,
        capabilities: &Capabilities,
        method: &str,
        context: Option<&str>,
    ) -> bool {
        let Ok(kind) = KindRef::request(method, context) else {
            return false;
        };
        judge_kind(capabilities, kind, &self.addressees()).is_ok()
    }

    /// Its addressees.
    pub(crate) fn addressees(&self) -> Vec<&str> {
        self.audience.to.iter().map(|to| &**to).collect()
    }
}

impl<H: Handles> RoomRequests<H> {
    /// Whether it asks for what was proposed, at whatever server.
    pub(crate) fn asks_for(&self, proposal: &Proposal<H>) -> bool {
        self.method == proposal.terms.method && self.context == proposal.terms.context
    }
}

/// One proposal.
#[derive(Debug)]
pub(crate) struct Proposal<H: Handles> {
    /// Its number in the order of opening.
    pub(crate) order: u64,
    pub(crate) terms: Terms,
    /// The public name or URI, of a held call.
    pub(crate) public: Option<Arc<str>>,
    pub(crate) content: H::Content,
    /// Whether it was a held call.
    pub(crate) held: bool,
    /// The held or parked call behind it, and later the operation that carries it out.
    pub(crate) call: Option<OperationId>,
    pub(crate) phase: Phase<H>,
    /// The reason for which it is withdrawn as soon as the change that is being written is on disk.
    pub(crate) recalled: Option<Arc<str>>,
    /// The digest under which its envelope's id is kept once it is over, if it came as an envelope
    /// in this run.
    pub(crate) id_digest: Option<u128>,
    /// Its envelope, until its opening is on disk: then participants get it.
    pub(crate) unpublished: Option<Unpublished<H>>,
    /// A decision that arrived before the opening was on disk, or the approval before it.
    pub(crate) queued: Option<Box<Ruling<H>>>,
    /// Requests of the proposer itself that run once the withdrawal is on disk.
    pub(crate) deferred: Vec<RoomRequests<H>>,
    /// The approvals of one that needs several, in their order. Whether one counts is judged whenever
    /// that matters.
    pub(crate) approved_by: Vec<CountedApproval>,
    pub(crate) decided: Option<Decided<H>>,
    /// The envelope that fulfils it, once known.
    pub(crate) fulfilment: Option<Arc<str>>,
    /// When those who may decide are warned that it expires, on the steady clock.
    pub(crate) warn_ms: Option<u64>,
    /// The time until which a participant may answer in the room.
    pub(crate) run_until_ms: Option<u64>,
    /// The participants that were asked to carry it out in the room; none if any may.
    pub(crate) asked: Box<[ParticipantId]>,
    /// The outcome and the answer.
    pub(crate) answer: Option<H::Answer>,
    /// Its last state, once it is over.
    pub(crate) over: Option<LastState>,
    /// Whether its end could not be written, so that it is pending again after a restart.
    pub(crate) end_lost: bool,
    pub(crate) updated_ms: u64,
    /// Operations that wait for its end.
    pub(crate) waiting: Vec<OperationId>,
    /// Whether its proposer's name has another bearer by now.
    pub(crate) is_disowned: bool,
}

impl<H: Handles> Proposal<H> {
    /// One that no participant has decided about.
    pub(crate) fn new(terms: Terms, content: H::Content, phase: Phase<H>) -> Self {
        Self {
            order: 0,
            terms,
            public: None,
            content,
            held: false,
            call: None,
            phase,
            recalled: None,
            id_digest: None,
            unpublished: None,
            queued: None,
            deferred: Vec::new(),
            approved_by: Vec::new(),
            decided: None,
            fulfilment: None,
            warn_ms: None,
            run_until_ms: None,
            asked: Box::default(),
            answer: None,
            over: None,
            end_lost: false,
            updated_ms: 0,
            waiting: Vec::new(),
            is_disowned: false,
        }
    }

    /// Whether it runs, or can still be approved: no other end of it is being written.
    pub(crate) fn is_to_run(&self) -> bool {
        let may_run = match &self.phase {
            Phase::Pending | Phase::Running => true,
            Phase::Deciding(ruling) => {
                ruling.state == ProposalState::Running || ruling.is_extension()
            }
            Phase::Opening | Phase::Waiting | Phase::Due | Phase::Ending(_) => false,
        };
        may_run && self.recalled.is_none() && self.over.is_none()
    }

    /// Notes that a name has another bearer from now on. Of the former one an approval among several that
    /// is being written is void, and so is whatever waits behind another record; a decision that is being
    /// written stands.
    pub(crate) fn void_of(&mut self, by: &ParticipantId) {
        if let Phase::Deciding(ruling) = &mut self.phase
            && ruling.is_partial
            && ruling.by == *by
        {
            ruling.is_void = true;
        }
        if let Some(queued) = &mut self.queued
            && queued.by == *by
        {
            queued.is_void = true;
        }
    }

    /// Whether it is of the present bearer of this name.
    pub(crate) fn is_of(&self, who: &ParticipantId) -> bool {
        self.terms.by == *who && !self.is_disowned
    }

    /// Its addressees, for capabilities to match.
    pub(crate) fn addressees(&self) -> Vec<&str> {
        self.terms.to.iter().map(ParticipantId::as_str).collect()
    }

    /// Whether these capabilities admit the proposed request as an envelope to its addressees.
    pub(crate) fn is_asked_for(&self, capabilities: &Capabilities) -> bool {
        KindRef::request(self.terms.method.as_str(), self.terms.context.as_deref())
            .is_ok_and(|kind| capabilities.admits(kind, &self.addressees()))
    }

    /// Whether these capabilities let a participant decide about it by an envelope.
    pub(crate) fn is_decidable_by(&self, capabilities: &Capabilities) -> bool {
        let (method, context) = (self.terms.method.as_str(), self.terms.context.as_deref());
        capabilities.admits_deciding(method, context, &self.addressees())
    }

    /// Whether it is open to decisions.
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.phase, Phase::Pending) && self.over.is_none()
    }

    /// Whether it is a later step of a plan, and its turn has not come, or has just come.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting | Phase::Due) && self.over.is_none()
    }

    /// Whether no participant has decided about it, as far as that is on disk.
    pub(crate) fn is_undecided(&self) -> bool {
        let is_undecided = match self.phase {
            Phase::Opening | Phase::Pending | Phase::Waiting | Phase::Due | Phase::Deciding(_) => {
                true
            }
            Phase::Running | Phase::Ending(_) => false,
        };
        is_undecided && self.over.is_none()
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running) && self.over.is_none()
    }

    /// Whether its opening is on disk, so that participants may learn of it.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.phase, Phase::Opening)
    }

    /// Its state, as participants may learn it.
    pub(crate) fn state(&self) -> ProposalState {
        if let Some(over) = &self.over {
            return over.state;
        }
        match &self.phase {
            Phase::Opening | Phase::Pending | Phase::Waiting | Phase::Due | Phase::Deciding(_) => {
                ProposalState::Pending
            }
            Phase::Running => ProposalState::Running,
            // An end counts once it is on disk. Until then it is what it was before.
            Phase::Ending(last) => match last.state {
                ProposalState::Completed | ProposalState::Failed => ProposalState::Running,
                _ => ProposalState::Pending,
            },
        }
    }

    /// Whether a response in the room of this sender and kind answers it.
    pub(crate) fn is_answered_by(&self, from: &ParticipantId, kind: KindRef<'_>) -> bool {
        (self.terms.to.is_empty() || self.terms.to.contains(from))
            && kind.answers(self.terms.method.as_str(), self.terms.context.as_deref())
    }
}
