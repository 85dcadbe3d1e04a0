//! One proposal in full. Must not know where it is kept.

use std::sync::Arc;

use bytes::Bytes;
use model::{ProposalState, Refusal};
use store::{DecidedProposal, OpenedProposal};
use tokio::sync::{oneshot, watch};
use wire::mcpx::Envelope;
use wire::rpc::Message;

use crate::audit::Place;
use crate::caller::Caller;
use crate::ground::unix_ms;
use crate::operation::Operation;
use crate::upstream::Hello;

/// How a caller whose call is held is answered (design, section 4, "Promotion").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// At once, with a task.
    Task,
    /// It waits, then is told how to go on waiting: by a retry.
    Retry,
    /// It waits, then is told in words.
    Words,
}

/// A call that waits for a decision.
pub(crate) struct Held {
    /// The call.
    pub(crate) operation: Arc<Operation>,
    /// What was asked, as it came.
    pub(crate) message: Message,
    /// What its caller said of itself.
    pub(crate) hello: Hello,
    /// How it is answered.
    pub(crate) way: Way,
}

/// A decision on its way through the journal.
#[derive(Default)]
pub(crate) struct Ruling {
    /// The params that run, where whoever decides has edited them.
    pub(crate) params: Option<String>,
    /// The envelope that fulfils, if the decision came by one.
    pub(crate) envelope: Option<String>,
    /// Where the decision is recorded.
    pub(crate) place: Option<Place>,
    /// Hears what became of the decision.
    pub(crate) told: Option<oneshot::Sender<Result<(), Refusal>>>,
}

/// One proposal.
pub(crate) struct Case {
    /// What was proposed, by whom.
    pub(crate) opened: OpenedProposal,
    /// What was decided.
    pub(crate) decided: Option<DecidedProposal>,
    /// Whether it is on disk. Nobody is told of it before.
    pub(crate) told: bool,
    /// How it stands.
    pub(crate) state: ProposalState,
    /// Why, in words for its proposer.
    pub(crate) reason: Option<String>,
    /// What it led to: the JSON-RPC answer, in legacy form.
    pub(crate) answer: Option<Bytes>,
    /// An answer in the room that came before the approval was on disk.
    pub(crate) early: Option<(Arc<Caller>, Envelope)>,
    /// The call that is held behind it.
    pub(crate) held: Option<Held>,
    /// The decision that is being written down.
    pub(crate) ruling: Option<Ruling>,
    /// Where it is recorded that it was made, and its end.
    pub(crate) opening: Option<Place>,
    pub(crate) ending: Option<Place>,
    /// When something changed last, milliseconds since 1970.
    pub(crate) updated_ms: u64,
    /// Wakes who waits for it.
    pub(crate) changed: watch::Sender<ProposalState>,
}

impl Case {
    /// A case that nothing has become of yet.
    pub(crate) fn new(opened: OpenedProposal, held: Option<Held>) -> Self {
        Self {
            opened,
            decided: None,
            told: false,
            state: ProposalState::Pending,
            reason: None,
            answer: None,
            early: None,
            held,
            ruling: None,
            opening: None,
            ending: None,
            updated_ms: unix_ms(),
            changed: watch::Sender::new(ProposalState::Pending),
        }
    }

    /// The params that run: as proposed, or as they were edited.
    pub(crate) fn params(&self) -> Option<&str> {
        let edited = self.decided.as_ref().and_then(|decided| decided.params.as_deref());
        edited.or(self.opened.params.as_deref())
    }

    /// Where the decision that is being written down is recorded.
    pub(crate) fn decision_place(&mut self) -> Option<Place> {
        self.ruling.as_mut()?.place.take()
    }

    /// Tells whoever decided what became of it.
    pub(crate) fn ruled(&mut self, end: Result<(), Refusal>) -> Option<Ruling> {
        let mut ruling = self.ruling.take()?;
        if let Some(told) = ruling.told.take() {
            // Whoever asked may have gone.
            let _ = told.send(end);
        }
        Some(ruling)
    }
}
