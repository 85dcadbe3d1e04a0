//! The mailboxes of a topic, and which of a step's effects its thread carries out.

use std::sync::Arc;

use smallvec::SmallVec;
use topic::Addressee;

use crate::live::{Effect, Live};
use crate::mailbox::{InOrder, Mailbox, Waiting};
use crate::{call::Call, link::Link};

/// The mailboxes of a topic. Those of calls and links are with these.
#[derive(Default)]
pub(crate) struct Mailboxes {
    /// The mailbox of effects that are for no call and no link.
    gateway: Mailbox,
    /// The effects that wait for the threads that have these mailboxes.
    pub(crate) waiting: Waiting<Effect>,
}

impl Mailboxes {
    /// Puts the effects of a step into the mailboxes of their addressees. Those that are left are
    /// for the thread that steps; it has made the mailboxes busy that are returned. The caller holds
    /// the topic's lock.
    pub(crate) fn deliver(&self, effects: &mut Effects) -> Busy {
        let mut busy = Busy::new();
        let mut at = 0;
        while let Some(effect) = effects.get(at) {
            let Some(recipient) = Recipient::of(effect.addressee()) else {
                at += 1;
                continue;
            };
            let mailbox = recipient.mailbox(self);
            if mailbox.begin() {
                busy.push(recipient);
                at += 1;
                continue;
            }
            // Backwards: mostly the effect before went to the same addressee.
            let mut own = busy.iter().rev();
            if own.any(|one| std::ptr::eq(one.mailbox(self), mailbox)) {
                at += 1;
                continue;
            }
            let effect = effects.remove(at);
            if let Err(effect) = self.waiting.add(mailbox, effect) {
                // Its thread has left the mailbox meanwhile: this one has it now.
                busy.push(recipient);
                effects.insert(at, effect);
                at += 1;
            }
        }
        busy
    }
}

/// Effects in the topic's order: few steps have more than two.
pub(crate) type Effects = InOrder<Effect>;

/// The owners of the mailboxes that a step has made busy: few have more than one.
pub(crate) type Busy = SmallVec<[Recipient; 2]>;

/// The owner of a mailbox that a step has made busy.
#[derive(Debug)]
pub(crate) enum Recipient {
    Call(Arc<Call>),
    Link(Arc<Link>),
    Gateway,
}

impl Recipient {
    /// The owner of an addressee's mailbox; `None` if it needs none.
    fn of(to: Addressee<'_, Live>) -> Option<Self> {
        match to {
            Addressee::Call(call) => Some(Self::Call(Arc::clone(call))),
            Addressee::Link(link) => Some(Self::Link(Arc::clone(link))),
            Addressee::Gateway => Some(Self::Gateway),
            // It gets one effect, so there is no order to keep.
            Addressee::Question(_) => None,
        }
    }

    /// Its mailbox.
    pub(crate) fn mailbox<'m>(&'m self, mailboxes: &'m Mailboxes) -> &'m Mailbox {
        match self {
            Self::Call(call) => &call.mailbox,
            Self::Link(link) => &link.mailbox,
            Self::Gateway => &mailboxes.gateway,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
