//! Events of a participant: envelopes of others, and changes of the connection.

use model::{KindError, ProposalState};
use serde::Deserialize;
use wire::mcpx::check::EnvelopeCall;
use wire::mcpx::system::{ParticipantInfo, SystemError};
use wire::mcpx::{Envelope, Head};

/// A proposal of another participant whose kind and payload agree.
#[derive(Debug, Clone)]
pub struct IncomingProposal {
    /// The envelope as it arrived.
    pub envelope: Envelope,
    /// The proposed method and params, for review. A participant must not run a call because it was
    /// proposed.
    pub call: EnvelopeCall,
}

impl IncomingProposal {
    /// The proposal's id, which the request that fulfils it has as `correlation_id`.
    #[must_use]
    pub fn id(&self) -> &str {
        self.envelope.id()
    }

    /// The proposer.
    #[must_use]
    pub fn from(&self) -> &str {
        self.envelope.from()
    }

    /// The participants that the call is for; empty if the proposer left it open.
    #[must_use]
    pub fn to(&self) -> Vec<&str> {
        self.envelope.to().collect()
    }

    /// The kind of the request that fulfils it.
    ///
    /// # Errors
    /// [`KindError`] when the target is empty.
    pub fn request_kind(&self) -> Result<String, KindError> {
        self.call.kind(Head::Request)
    }
}

/// A participant that looks at a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Claim {
    /// The participant.
    pub by: String,
    /// Since when, as RFC 3339.
    pub since: String,
}

/// A note for the proposer, given with an approval.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Note {
    /// The participant that approved.
    pub by: String,
    /// Its words.
    pub note: String,
}

/// Something that happened in the topic, or to the connection. Texts of others may contain any
/// character; [`visible`](crate::visible) makes them safe for a terminal.
#[derive(Debug, Clone)]
pub enum Event {
    /// The participant is in the topic: after each connect, and again when its capabilities change.
    Welcomed {
        /// Its id and capabilities.
        you: ParticipantInfo,
        /// The other participants.
        others: Vec<ParticipantInfo>,
    },
    /// Envelopes from before this connection, oldest first, where the topic keeps some: after the
    /// first connect the latest ones, after another connect those that the participant has missed.
    /// No request among them was run.
    History {
        /// Each as the event that it would have been.
        past: Vec<Self>,
        /// Whether the participant has missed more than these.
        is_cut: bool,
    },
    /// A participant joined the topic.
    Joined(ParticipantInfo),
    /// The capabilities of a participant have changed.
    Changed(ParticipantInfo),
    /// A participant left the topic.
    Left(ParticipantInfo),
    /// A participant sent a chat message.
    Chat {
        /// The sender.
        from: String,
        /// The text.
        text: String,
        /// The whole envelope.
        envelope: Envelope,
    },
    /// A participant proposed a call.
    Proposal(Box<IncomingProposal>),
    /// A proposal changed its state, as the gateway reports it to the proposer and to all that
    /// receive proposals.
    ProposalState {
        /// The proposal's id.
        proposal: String,
        /// The proposer, which the report is addressed to.
        to: String,
        /// The new state.
        state: ProposalState,
        /// The participant that decided, if one did.
        by: Option<String>,
        /// The reason, if there is one.
        reason: Option<String>,
        /// The id of the request that fulfils it, which its answer has as `correlation_id`.
        fulfilment: Option<String>,
        /// Whether it runs with other arguments than the proposed ones.
        edited: bool,
        /// Of a pending proposal: participants that it names and that were not in the topic.
        absent: Vec<String>,
        /// Whether it expires soon, while it is pending: a reviewer may decide, or give it more time.
        expiring: bool,
        /// Of a pending proposal: participants that look at it.
        claims: Vec<Claim>,
        /// Notes that came with approvals.
        notes: Vec<Note>,
    },
    /// The gateway refused an envelope that is neither a pending request nor a pending proposal.
    Refused {
        /// The id of the envelope, if the gateway named one.
        envelope_id: Option<String>,
        /// The gateway's error.
        error: SystemError,
    },
    /// Any other envelope. Its payload was not checked against its kind.
    Other(Envelope),
    /// A participant violated the protocol. Its envelope had no effect, and was counted.
    Violation {
        /// The sender.
        from: String,
        /// The id of the envelope.
        envelope_id: String,
        /// The fault.
        why: String,
    },
    /// The connection is lost. The participant reconnects unless this is final.
    Disconnected {
        /// The reason.
        why: String,
        /// No event follows.
        is_final: bool,
    },
    /// This subscriber was too slow: so many of the oldest events were dropped.
    Lagged(u64),
}

/// Bytes of the texts of a participant.
fn bytes_of(participant: &ParticipantInfo) -> usize {
    let capabilities: usize = participant.capabilities.iter().map(String::len).sum();
    participant.id.len() + capabilities
}

impl Event {
    /// Roughly how many bytes it occupies.
    pub(crate) fn bytes(&self) -> usize {
        let content = match self {
            Self::Welcomed { you, others } => {
                bytes_of(you) + others.iter().map(bytes_of).sum::<usize>()
            }
            Self::Joined(participant) | Self::Changed(participant) | Self::Left(participant) => {
                bytes_of(participant)
            }
            Self::Chat { text, envelope, .. } => text.len() + envelope.frame().len(),
            // The call of a proposal is a copy.
            Self::Proposal(proposal) => 2 * proposal.envelope.frame().len(),
            Self::Other(envelope) => envelope.frame().len(),
            Self::ProposalState {
                proposal,
                to,
                by,
                reason,
                fulfilment,
                absent,
                claims,
                notes,
                ..
            } => {
                let absent: usize = absent.iter().map(String::len).sum();
                let claims = claims.iter().map(|one| one.by.len() + one.since.len());
                let notes = notes.iter().map(|one| one.by.len() + one.note.len());
                let said: usize = claims.chain(notes).sum();
                let optional: usize = [by, reason, fulfilment]
                    .into_iter()
                    .flatten()
                    .map(String::len)
                    .sum();
                proposal.len() + to.len() + optional + absent + said
            }
            Self::History { past, .. } => past.iter().map(Self::bytes).sum(),
            Self::Refused { error, .. } => error.message.len(),
            Self::Violation { why, .. } | Self::Disconnected { why, .. } => why.len(),
            Self::Lagged(_) => 0,
        };
        size_of::<Self>() + content
    }
}
