//! What a participant hears, as events. Must not know who listens.

use model::{KindError, ProposalState};
use wire::mcpx::check::Call;
use wire::mcpx::system::{Seen, Told};
use wire::mcpx::{Envelope, Head};

/// A proposal that somebody made, strictly checked: its kind and its payload agree.
#[derive(Debug, Clone)]
pub struct Proposed {
    /// The envelope as it came.
    pub envelope: Envelope,
    /// Method and params. It is for review: nothing may be executed from it.
    pub call: Call,
}

impl Proposed {
    /// The proposal's id, which a fulfilment carries as `correlation_id`.
    #[must_use]
    pub fn id(&self) -> &str {
        self.envelope.id()
    }

    /// Who proposes.
    #[must_use]
    pub fn from(&self) -> &str {
        self.envelope.from()
    }

    /// Whom the call is for; nobody if the proposer left it open.
    #[must_use]
    pub fn to(&self) -> Vec<&str> {
        self.envelope.to().collect()
    }

    /// The kind of the request that would fulfil it.
    ///
    /// # Errors
    /// [`KindError`] when the target is empty.
    pub fn request_kind(&self) -> Result<String, KindError> {
        self.call.kind(Head::Request)
    }
}

/// Something that happened in the topic, or to the connection. Texts of others may hold any character.
#[derive(Debug, Clone)]
pub enum Event {
    /// Welcomed: after each connect, and again when one's capabilities change.
    Welcomed {
        /// Who one is and what one may do.
        you: Seen,
        /// The others.
        others: Vec<Seen>,
    },
    /// Somebody came.
    Joined(Seen),
    /// Somebody went.
    Left(Seen),
    /// Somebody said something.
    Chat {
        /// Who.
        from: String,
        /// What.
        text: String,
        /// The envelope, with everything else.
        envelope: Envelope,
    },
    /// Somebody proposes.
    Proposal(Box<Proposed>),
    /// A proposal is in another state, as the gateway tells its proposer.
    ProposalState {
        /// The proposal's id.
        proposal: String,
        /// Where it stands.
        state: ProposalState,
        /// Why.
        reason: Option<String>,
    },
    /// The gateway refused something that nothing here waits for.
    Refused {
        /// The envelope that it is about.
        envelope: Option<String>,
        /// Why.
        told: Told,
    },
    /// Any other envelope. Its payload was not looked into: check it before acting on it.
    Heard(Envelope),
    /// Somebody broke the rules: what it sent was not acted on, and was counted.
    Misbehaved {
        /// Who.
        from: String,
        /// The envelope's id.
        envelope: String,
        /// What was wrong.
        why: String,
    },
    /// The connection is lost; it is tried again unless this is final.
    Away {
        /// Why.
        why: String,
        /// Nothing more will come.
        is_final: bool,
    },
    /// This listener was too slow: so many events were dropped for it.
    Missed(u64),
}

impl Event {
    /// About how many bytes it keeps.
    pub(super) fn bytes(&self) -> usize {
        let seen = |seen: &Seen| seen.capabilities.iter().map(String::len).sum::<usize>() + seen.id.len();
        let kept = match self {
            Self::Welcomed { you, others } => seen(you) + others.iter().map(seen).sum::<usize>(),
            Self::Joined(who) | Self::Left(who) => seen(who),
            Self::Chat { text, envelope, .. } => text.len() + envelope.frame().len(),
            // The call of a proposal is a copy.
            Self::Proposal(proposed) => 2 * proposed.envelope.frame().len(),
            Self::Heard(envelope) => envelope.frame().len(),
            Self::ProposalState { reason, .. } => reason.as_ref().map_or(0, String::len),
            Self::Refused { told, .. } => told.message.len(),
            Self::Misbehaved { why, .. } | Self::Away { why, .. } => why.len(),
            Self::Missed(_) => 0,
        };
        size_of::<Self>() + kept
    }
}
