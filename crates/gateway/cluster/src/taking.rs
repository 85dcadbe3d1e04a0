//! A shard that a node is about to take over.

use crate::home::{Beginning, Sending};

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
        /// The beginning of the new epoch.
        beginning: Beginning,
        /// The time since which it is known to be in the log, milliseconds.
        known_ms: u64,
    },
}

/// A question to the log. It has one number, however often it is repeated: each answer to it is of
/// a reading that began when it was first asked, or later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    pub(crate) request: u64,
    /// The time at which it was asked first, milliseconds.
    pub(crate) first_ms: u64,
}

/// A take-over.
#[derive(Debug, Clone)]
pub(crate) struct Taking<R> {
    pub(crate) step: TakingStep<R>,
    /// The epoch that it ends, once it is known.
    pub(crate) ends: Option<u64>,
    /// The beginning that it wrote.
    pub(crate) wrote: Option<Beginning>,
    /// Whether a person has accepted that messages were lost.
    pub(crate) accepts: bool,
    /// The question that has no answer yet.
    pub(crate) question: Option<Question>,
    /// The time at which the log is asked next, milliseconds.
    pub(crate) asks_at_ms: u64,
}

impl<R> Taking<R> {
    pub(crate) fn new(accepts: bool) -> Self {
        Self {
            step: TakingStep::Look,
            ends: None,
            wrote: None,
            accepts,
            question: None,
            asks_at_ms: 0,
        }
    }

    /// The append that has no answer yet.
    pub(crate) fn sending(&mut self) -> Option<&mut Sending<R>> {
        match &mut self.step {
            TakingStep::Fence(sending) | TakingStep::Begin(sending) => Some(sending),
            TakingStep::Look | TakingStep::Replay { .. } => None,
        }
    }

    /// Whether this request is the question that has no answer yet; then it has one now.
    pub(crate) fn answer(&mut self, request: u64) -> Option<Question> {
        self.question
            .take_if(|question| question.request == request)
    }

    /// Whether another node's claim ends it: nothing was sent yet that another node has to follow.
    pub(crate) fn may_end(&self) -> bool {
        matches!(self.step, TakingStep::Look) && self.wrote.is_none() && !self.accepts
    }

    /// Whether it is given up when the node is about to stop.
    pub(crate) fn is_early(&self) -> bool {
        matches!(self.step, TakingStep::Look | TakingStep::Fence(_))
    }
}
