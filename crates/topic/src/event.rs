//! Owns the closed inventory of what can happen to a topic.
//! Must not know what follows from it (see `effect`).

use std::sync::Arc;

use model::{Capabilities, Digest, LinkId, OperationId, Outcome, ParticipantId, ProposalState};

use crate::{Ear, ListKind, Manifest, RateLimit, UpstreamNames};

/// On which side a participant stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Opens requests and answers asks.
    Caller,
    /// Lists what it has, answers requests and asks. Must be named by the topic's configuration.
    Upstream,
}

/// For whom a manifest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum View {
    /// For every caller without a session of its own at that upstream.
    Shared,
    /// For this link alone: what its own session lists wins over the shared view.
    Link(LinkId),
}

/// What a request is about, under its public spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target<'a> {
    /// A tool's public name.
    Tool(&'a str),
    /// A prompt's public name.
    Prompt(&'a str),
    /// A resource's public URI, or a public URI template.
    Uri(&'a str),
    /// An upstream itself, for a method that names nothing in it.
    Upstream(&'a str),
}

impl<'a> Target<'a> {
    /// The part of the kind that the target is: its context.
    pub fn context(self) -> Option<&'a str> {
        match self {
            Self::Tool(text) | Self::Prompt(text) | Self::Uri(text) => Some(text),
            Self::Upstream(_) => None,
        }
    }
}

/// What an ask belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum About {
    /// An open call at the asking upstream; the ask goes to the link that opened it.
    Call(OperationId),
    /// The session that this link has of its own at the asking upstream (see [`Event::Attach`]).
    Session(LinkId),
}

/// What is proposed, by whom, and until when.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// The proposer.
    pub by: &'a ParticipantId,
    /// The method of the request that is proposed.
    pub method: &'a str,
    /// The upstream's own name or URI, if the method has one.
    pub context: Option<&'a str>,
    /// Whom it names; nobody is anybody.
    pub to: &'a [ParticipantId],
    /// Of what is shown to whoever decides.
    pub digest: Digest,
    /// When it expires, on the clock of [`Topic::step`](crate::Topic::step).
    pub expires_ms: u64,
}

/// What somebody decides about a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision<'a> {
    /// It may run, once.
    Approve {
        /// Of what was shown.
        digest: Digest,
    },
    /// It never runs.
    Reject {
        /// Why, in words for the proposer.
        reason: Option<&'a str>,
    },
    /// Its proposer takes it back.
    Withdraw {
        /// Why, for the record.
        reason: Option<&'a str>,
    },
}

/// What can happen. An event of a link that is not in the topic has no effects.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// A link comes in; its participant joins with the first. If the participant is there already, the
    /// capabilities count as a [`Event::Regrant`] and the rate replaces the older one. A link with an ear
    /// replaces the participant's older one with an ear: that ends first. Of two the one with the greater number is
    /// newer, whichever comes first.
    Join {
        /// The new link.
        link: LinkId,
        /// Whose link it is.
        participant: &'a ParticipantId,
        /// On which side.
        role: Role,
        /// What the participant may do.
        capabilities: Arc<Capabilities>,
        /// How often it may ask; `None` is without limit.
        rate: Option<RateLimit>,
        /// What the link hears of the room; `None` is nothing, as on MCP wires and for upstreams.
        ear: Option<Ear>,
        /// Whether its wire cannot say a proposal, so that what it may only propose is held as one. Lists then
        /// show what it could do or propose.
        promotes: bool,
    },
    /// A link goes; its participant leaves with the last. What the link opened is cancelled.
    Leave {
        /// The link that goes.
        link: LinkId,
    },
    /// A participant is cut off: all its links end, and each is told so.
    Revoke {
        /// Who is cut off.
        participant: &'a ParticipantId,
    },
    /// A participant's capabilities change. Open operations that are no longer admitted are ended.
    Regrant {
        /// Whose capabilities.
        participant: &'a ParticipantId,
        /// The new ones, whole.
        capabilities: Arc<Capabilities>,
    },
    /// The configuration of upstreams changes, whole. Views of upstreams that stay are kept; those that are
    /// no longer named are cut off.
    Configure {
        /// All upstreams, in configuration order.
        upstreams: &'a [UpstreamNames],
    },
    /// A link has a session of its own at an upstream.
    Attach {
        /// The caller's link.
        link: LinkId,
        /// The upstream.
        upstream: &'a ParticipantId,
    },
    /// That session is over: the shared view counts again, asks of that session are ended.
    Detach {
        /// The caller's link.
        link: LinkId,
        /// The upstream.
        upstream: &'a ParticipantId,
    },
    /// An upstream says what it has. A view of one link attaches that link. The gateway's own participant
    /// has only a shared view.
    Listed {
        /// The upstream.
        upstream: &'a ParticipantId,
        /// For whom this counts.
        view: View,
        /// Everything that it has, whole.
        manifest: Manifest,
        /// Lists of which it says itself that they changed: whoever could see such a list is told, even if
        /// nothing in it is different.
        told: &'a [ListKind],
    },
    /// A caller asks for something.
    Request {
        /// The caller's link.
        link: LinkId,
        /// A new id for this request's life. An id that is open already is ignored.
        operation: OperationId,
        /// The method.
        method: &'a str,
        /// What it is about; `None` is for the gateway itself.
        target: Option<Target<'a>>,
    },
    /// A link says something to the room: judged by its kind and its addressees alone.
    Say {
        /// Who says it.
        link: LinkId,
        /// The kind, as it was written.
        kind: &'a str,
        /// Whom it names; none is everybody.
        to: &'a [&'a str],
    },
    /// An upstream that the gateway hosts carries out a request that a link said to the room and that was
    /// admitted there: no capability is asked for again, and no token taken. It counts as an operation of that
    /// link and ends like a [`Event::Request`].
    Execute {
        /// Who said it.
        link: LinkId,
        /// A new id for this request's life. An id that is open already is ignored.
        operation: OperationId,
        /// The upstream that it named.
        upstream: &'a ParticipantId,
        /// The method.
        method: &'a str,
        /// The upstream's own name or URI, if the method has one.
        context: Option<&'a str>,
        /// The approved proposal that this carries out: once, and with nothing else than what was proposed.
        /// The end of the operation is then the end of the proposal, and what its link may do is not asked
        /// for. If there is no room for it, the proposal has failed.
        proposal: Option<OperationId>,
    },
    /// The caller of a held call was answered for now, so that the call is over. Its proposal is not; when it is
    /// approved, nothing is delivered with that. A call that is not held any more goes on.
    Release {
        /// The held call.
        operation: OperationId,
    },
    /// Somebody proposes what was admitted as a proposal.
    Propose {
        /// A new id for this proposal's life. An id that is in use is ignored.
        proposal: OperationId,
        /// What, by whom, until when.
        terms: Terms<'a>,
        /// The call that is held behind it (see [`Effect::Hold`](crate::Effect::Hold)), of the same participant.
        held: Option<OperationId>,
    },
    /// A proposal that was open before a restart is open again. Nothing follows.
    Restore {
        /// Its id.
        proposal: OperationId,
        /// What, by whom, until when.
        terms: Terms<'a>,
    },
    /// Somebody decides. Whoever could make the request may approve or reject it, except its proposer; only its
    /// proposer may withdraw it. The first decision counts.
    Decide {
        /// About which proposal.
        proposal: OperationId,
        /// Who decides.
        by: &'a ParticipantId,
        /// What it may do, if it is not in the topic: then it decides through the API.
        outside: Option<&'a Capabilities>,
        /// What is decided.
        decision: Decision<'a>,
    },
    /// What [`Effect::Store`](crate::Effect::Store) named last of this proposal is written down.
    Stored {
        /// The proposal.
        proposal: OperationId,
    },
    /// It could not be written down. Openings and decisions are then as if they had never been; an end holds.
    NotStored {
        /// The proposal.
        proposal: OperationId,
    },
    /// An approved proposal was carried out, or could not be. One that an operation carries out ends with that
    /// anyway; the first end counts.
    Outcome {
        /// The proposal.
        proposal: OperationId,
        /// [`ProposalState::Completed`] or [`ProposalState::Failed`]; anything else is ignored.
        state: ProposalState,
        /// Why, in words for the proposer.
        reason: Option<&'a str>,
    },
    /// Time goes on: pending proposals expire. See [`Topic::next_expiry_ms`](crate::Topic::next_expiry_ms).
    Tick,
    /// An upstream asks its current caller something: sampling, elicitation, roots.
    Ask {
        /// The asking upstream.
        upstream: &'a ParticipantId,
        /// A new id for this ask's life. An id that is open already is ignored.
        operation: OperationId,
        /// What it belongs to.
        about: About,
        /// The method.
        method: &'a str,
    },
    /// An answer to a request or an ask, from the link that it was delivered to. A late answer, a second one
    /// and one of somebody else are ignored.
    Answer {
        /// The answering link.
        link: LinkId,
        /// What is answered.
        operation: OperationId,
        /// How it went.
        outcome: Outcome,
    },
    /// Whoever opened an operation takes it back.
    Cancel {
        /// The link that opened it.
        link: LinkId,
        /// What is taken back.
        operation: OperationId,
    },
    /// An operation's time is over.
    Expire {
        /// Which one.
        operation: OperationId,
    },
}
