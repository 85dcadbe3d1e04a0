//! A shard that a node is about to take over.

use crate::home::Sending;
use crate::record::JournalHead;

/// The step of a take-over that is under way.
#[derive(Debug, Clone)]
pub(crate) enum TakingStep<R> {
    /// The end of the journal is asked for.
    Look,
    /// The epoch of the former home is ended by one append.
    Fence(Box<Sending<R>>),
    /// The new epoch is begun by one append.
    Begin(Box<Sending<R>>),
    /// The journal is read up to the beginning of the new epoch.
    Replay {
        /// The place of that beginning.
        begun: JournalHead,
        /// The place that it follows.
        follows: JournalHead,
        /// Its sequence.
        sequence: u64,
        /// When the append was sent, milliseconds.
        acked_ms: u64,
    },
}

/// A take-over.
#[derive(Debug, Clone)]
pub(crate) struct Taking<R> {
    pub(crate) step: TakingStep<R>,
    /// The epoch that it ends, once it is known.
    pub(crate) ends: Option<u64>,
    /// Whether a person has accepted that messages were lost.
    pub(crate) accepts: bool,
    /// The latest request to read, and when it was made.
    pub(crate) request: u64,
    pub(crate) asked_ms: u64,
}

impl<R> Taking<R> {
    pub(crate) fn new(accepts: bool) -> Self {
        Self {
            step: TakingStep::Look,
            ends: None,
            accepts,
            request: 0,
            asked_ms: 0,
        }
    }

    /// The append that has no answer yet.
    pub(crate) fn sending(&mut self) -> Option<&mut Sending<R>> {
        match &mut self.step {
            TakingStep::Fence(sending) | TakingStep::Begin(sending) => Some(sending),
            TakingStep::Look | TakingStep::Replay { .. } => None,
        }
    }

    /// Whether another node's claim ends it: nothing was written yet.
    pub(crate) fn may_end(&self) -> bool {
        matches!(self.step, TakingStep::Look | TakingStep::Fence(_)) && !self.accepts
    }
}
