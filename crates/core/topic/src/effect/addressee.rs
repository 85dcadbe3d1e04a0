//! Addressee of an effect: what has one order.

use crate::{Handles, effect::Effect, effect::Receiver};

/// The addressee of an effect. Effects to one addressee are carried out one at a time, in the order
/// in which the topic made them; effects to different ones have no order between them.
#[derive(Debug)]
pub enum Addressee<'e, H: Handles> {
    /// A call: its server's side and its caller's.
    Call(&'e H::Call),
    /// A link of a caller.
    Link(&'e H::Link),
    /// A server's question, to which exactly one effect goes: its end.
    Question(&'e H::Question),
    /// The gateway itself: the journal and what follows from it for proposals, ends of tasks, and
    /// envelopes that the gateway ignores.
    Gateway,
}

// Derived, they would ask for handles that are so themselves.
impl<H: Handles> Clone for Addressee<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: Handles> Copy for Addressee<'_, H> {}

impl<'e, H: Handles> From<&'e Receiver<H>> for Addressee<'e, H> {
    fn from(receiver: &'e Receiver<H>) -> Self {
        match receiver {
            Receiver::Call(call) => Self::Call(call),
            Receiver::Link(link) => Self::Link(link),
        }
    }
}

impl<H: Handles> Effect<H> {
    /// The addressee, whose mailbox the effect goes into.
    pub fn addressee(&self) -> Addressee<'_, H> {
        match self {
            Self::Deliver { call, .. }
            | Self::Hold { call, .. }
            | Self::Park { call, .. }
            | Self::Pause { call, .. }
            | Self::Return { call, .. }
            | Self::Proceed { call, .. }
            | Self::Report { call, .. }
            | Self::Settle { call, .. }
            | Self::Refuse { call, .. }
            | Self::Drop { call }
            | Self::Cancel { call } => Addressee::Call(call),
            Self::Ask { to, .. }
            | Self::CancelAsk { to, .. }
            | Self::Notify { to, .. }
            | Self::ListChanged { to, .. } => to.into(),
            Self::Closed { handle, .. }
            | Self::Withhold { handle, .. }
            | Self::Receive { handle, .. }
            | Self::Unsubscribe { handle, .. }
            | Self::Unwatch { handle, .. } => Addressee::Link(handle),
            Self::SettleAsk { question, .. } | Self::RefuseAsk { question, .. } => {
                Addressee::Question(question)
            }
            // A reminder has a state of its proposal, and must not overtake the next one. What ends
            // tasks is rare, and a task that is lost must not be so after it was forgotten.
            Self::Remind { .. }
            | Self::CancelTask { .. }
            | Self::ForgetTask { .. }
            | Self::LoseTask { .. }
            | Self::Ignore { .. }
            | Self::Store { .. }
            | Self::Proposed { .. }
            | Self::NotProposed { .. }
            | Self::Rejected { .. }
            | Self::Counted { .. }
            | Self::Claimed { .. }
            | Self::Extended { .. }
            | Self::Amended { .. }
            | Self::Expiring { .. }
            | Self::Approved { .. }
            | Self::StepDue { .. }
            | Self::Concluded { .. }
            | Self::Relay { .. }
            | Self::Ruled { .. }
            | Self::RefuseDecision(_) => Addressee::Gateway,
        }
    }
}
