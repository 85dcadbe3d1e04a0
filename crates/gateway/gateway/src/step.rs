//! Step that was taken: its verdict, its effects, and the mailboxes that it has made busy.

use std::sync::Arc;

use model::Refusal;
use smallvec::SmallVec;
use topic::{Addressee, Effects, Verdict};

use crate::live::{Effect, Live};
use crate::mailbox::{Mailbox, Waiting};
use crate::{call::Call, link::Link};

/// The mailboxes of a topic. Those of calls and links are with these.
#[derive(Default)]
pub(crate) struct Mailboxes {
    /// The mailbox of effects that are for no call and no link.
    gateway: Mailbox,
    waiting: Waiting<Effect>,
}

impl Mailboxes {
    /// The mailbox of an addressee; `None` if it needs none.
    fn of<'m>(&'m self, to: Addressee<'m, Live>) -> Option<&'m Mailbox> {
        match to {
            Addressee::Call(call) => Some(&call.mailbox),
            Addressee::Link(link) => Some(&link.mailbox),
            Addressee::Gateway => Some(&self.gateway),
            // It gets one effect, so there is no order to keep.
            Addressee::Question(_) => None,
        }
    }

    /// The effects that other steps have left in a mailbox, for the thread that has it. `None` if
    /// there are none: then it is idle again.
    pub(crate) fn next(&self, recipient: &Recipient) -> Option<Vec<Effect>> {
        self.waiting.next(recipient.mailbox(self))
    }
}

/// The owner of a mailbox that a step has made busy.
#[derive(Debug)]
pub(crate) enum Recipient {
    Call(Arc<Call>),
    Link(Arc<Link>),
    Gateway,
}

impl Recipient {
    /// The owner of the mailbox of an addressee, if it has one.
    fn of(to: Addressee<'_, Live>) -> Option<Self> {
        match to {
            Addressee::Call(call) => Some(Self::Call(Arc::clone(call))),
            Addressee::Link(link) => Some(Self::Link(Arc::clone(link))),
            Addressee::Gateway => Some(Self::Gateway),
            Addressee::Question(_) => None,
        }
    }

    fn mailbox<'m>(&'m self, mailboxes: &'m Mailboxes) -> &'m Mailbox {
        match self {
            Self::Call(call) => &call.mailbox,
            Self::Link(link) => &link.mailbox,
            Self::Gateway => &mailboxes.gateway,
        }
    }
}

/// The owners of the mailboxes that a step has made busy: few have more than one.
pub(crate) type Busy = SmallVec<[Recipient; 2]>;

/// A step that was taken: its verdict, and the effects that its thread carries out, once, with
/// [`Dispatch::carry_out`](crate::Dispatch::carry_out).
#[must_use = "its mailboxes are busy until its effects are carried out"]
pub(crate) struct Step {
    pub(crate) effects: Effects<Live>,
    pub(crate) busy: Busy,
}

impl Step {
    /// Puts the effects of a step into the mailboxes of their addressees. The caller holds the
    /// topic's lock.
    pub(crate) fn delivered(mailboxes: &Mailboxes, mut effects: Effects<Live>) -> Self {
        let mut busy = Busy::new();
        let mut at = 0;
        while let Some(effect) = effects.all.get(at) {
            if takes(&mut busy, mailboxes, effect.addressee()) {
                at += 1;
                continue;
            }
            let effect = effects.all.remove(at);
            let Some(recipient) = Recipient::of(effect.addressee()) else {
                continue;
            };
            let mailbox = recipient.mailbox(mailboxes);
            if let Err(effect) = mailboxes.waiting.add(mailbox, effect) {
                busy.push(recipient);
                effects.all.insert(at, effect);
                at += 1;
            }
        }
        Self { effects, busy }
    }

    /// The verdict about the event.
    pub(crate) fn verdict(&self) -> Option<&Verdict> {
        self.effects.verdict.as_ref()
    }

    /// Takes the refusal, if the sender waits for it. No effect says it once more.
    pub(crate) fn take_refusal(&mut self) -> Option<Box<Refusal>> {
        self.effects.take_refusal()
    }
}

/// Whether the thread of a step carries out its effects to this addressee: the mailbox was idle, or
/// the step, which has made these busy, has it already.
fn takes(busy: &mut Busy, mailboxes: &Mailboxes, to: Addressee<'_, Live>) -> bool {
    let Some(mailbox) = mailboxes.of(to) else {
        return true;
    };
    if mailbox.begin() {
        busy.extend(Recipient::of(to));
        return true;
    }
    // Mostly the effect before went to the same addressee.
    let mut own = busy.iter().rev();
    own.any(|recipient| std::ptr::eq(recipient.mailbox(mailboxes), mailbox))
}

#[cfg(test)]
mod tests;
