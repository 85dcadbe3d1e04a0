//! One proposal in full. Must not know where it is kept.

use std::sync::Arc;

use bytes::Bytes;
use model::{KindRef, ProposalState, Refusal};
use store::{DecidedProposal, OpenedProposal};
use tokio::sync::{oneshot, watch};
use wire::mcpx::check::answers;
use wire::rpc::Message;

use crate::audit::Place;
use crate::operation::Operation;
use platform::unix_ms;
use upstream::ClientProfile;

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
    pub(crate) hello: ClientProfile,
    /// How it is answered.
    pub(crate) way: Way,
}

/// An envelope that fulfils a proposal. Two participants may use one id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fulfilment {
    /// Whose it is.
    pub(crate) by: String,
    /// Its id.
    pub(crate) envelope: String,
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
    /// What fulfils it, while it runs.
    pub(crate) fulfilment: Option<Fulfilment>,
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
            fulfilment: None,
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

    /// Notes how it stands, and wakes who waits for it.
    pub(super) fn stands(&mut self, state: ProposalState, reason: Option<&str>) {
        self.state = state;
        self.reason = reason.map(str::to_owned).or(self.reason.take());
        self.updated_ms = unix_ms();
        self.changed.send_replace(state);
    }

    /// Whether this participant, with an envelope of this kind, answers what was proposed.
    pub(super) fn is_answered_by(&self, from: &str, kind: &str) -> bool {
        let OpenedProposal { to, method, context, .. } = &self.opened;
        let fits =
            |kind| KindRef::request(method, context.as_deref()).is_ok_and(|asked| answers(kind, asked));
        (to.is_empty() || to.iter().any(|to| to == from)) && KindRef::parse(kind).is_ok_and(fits)
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
