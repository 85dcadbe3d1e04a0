//! A participant that serves, as a server: requests go to it as envelopes, its answers come back as envelopes
//! (MCPx v0.1, sections 3.1 and 4.3).
//!
//! Owns which envelopes are open at it and what counts as an answer: only what it says itself, about an open envelope, to
//! whoever asked. Must not know sessions, catalogs or who may call.

mod line;
mod mail;

use std::sync::Arc;

use client::{Inbox, Link, LinkError};
use model::{LinkId, ParticipantId};
use platform::Mutex;
use tokio::sync::watch;
use wire::mcpx::Envelope;

use crate::upstream::Dialer;
use line::Line;
pub(crate) use line::{Heard, Late};
pub(crate) use mail::Mail;

/// One participant that serves, in one topic.
pub(crate) struct Served {
    id: ParticipantId,
    /// Bytes of the longest envelope.
    envelope_bytes_max: usize,
    mail: Arc<dyn Mail>,
    presence: watch::Sender<Option<LinkId>>,
    line: Mutex<Option<Arc<Line>>>,
    late: Arc<Late>,
    listing: Mutex<Listing>,
}

/// Whether what it offered last is listed.
struct Listing {
    listed: bool,
    /// How often it has left.
    partings: u64,
    /// Whether somebody waits already for it to stay away.
    awaited: bool,
}

/// What has become of one that left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absence {
    /// It is here.
    Over,
    /// It stayed away: what it offered last is not listed any more.
    Unlisted,
    /// It came and left again: for the how many-th time.
    Anew(u64),
}

impl Served {
    /// `late` is what it was asked before, in this topic.
    pub(crate) fn new(
        id: ParticipantId,
        envelope_bytes_max: usize,
        mail: Arc<dyn Mail>,
        late: Arc<Late>,
    ) -> Self {
        let presence = watch::Sender::new(None);
        let listing = Mutex::new(Listing { listed: true, partings: 0, awaited: false });
        let line = Mutex::default();
        Self { id, envelope_bytes_max, mail, presence, line, late, listing }
    }

    /// It is here, under this link. Whatever was open under an older one has ended. Of two links the newer counts,
    /// whichever is told first.
    pub(crate) fn arrived(&self, link: LinkId) {
        let newer = self.presence.send_if_modified(|here| {
            let newer = here.is_none_or(|here| here < link);
            if newer {
                *here = Some(link);
            }
            newer
        });
        if newer {
            self.listing.lock().listed = true;
            self.hang_up_all_but(link);
        }
    }

    /// It begins to serve while it may be here already: `look` finds the link under which it is. Gives that link if it has
    /// left meanwhile: whoever told that did not find it here.
    pub(crate) fn meet(&self, look: impl Fn() -> Option<LinkId>) -> Option<LinkId> {
        let link = look()?;
        self.arrived(link);
        (look() != Some(link)).then_some(link)
    }

    /// It has left, if it was here under this link. If nobody waits for it to stay away yet, whoever told this does:
    /// for the how many-th time it has left.
    pub(crate) fn left(&self, link: LinkId) -> Option<u64> {
        let gone = self.presence.send_if_modified(|here| {
            let gone = *here == Some(link);
            if gone {
                *here = None;
            }
            gone
        });
        if !gone {
            return None;
        }
        self.hang_up();
        let mut listing = self.listing.lock();
        listing.partings += 1;
        (!std::mem::replace(&mut listing.awaited, true)).then_some(listing.partings)
    }

    /// The link under which it is here.
    pub(crate) fn here(&self) -> Option<LinkId> {
        *self.presence.borrow()
    }

    /// Whether what it offered last is to be listed.
    pub(crate) fn is_listed(&self) -> bool {
        self.listing.lock().listed
    }

    /// What has become of it some time after it left for this time.
    pub(crate) fn waited(&self, parting: u64) -> Absence {
        let mut listing = self.listing.lock();
        if self.here().is_none() && listing.partings != parting {
            return Absence::Anew(listing.partings);
        }
        listing.awaited = false;
        if self.here().is_some() {
            return Absence::Over;
        }
        listing.listed = false;
        Absence::Unlisted
    }

    /// Whether an envelope that it says under this link is between it and whoever asked it, and for nobody else. Where no
    /// conversation goes over this link, what answers another one is.
    pub(crate) fn is_private(&self, link: LinkId, envelope: &Envelope) -> bool {
        let line = self.line().filter(|line| line.link() == link && self.here() == Some(link));
        match (line, envelope.correlation_id()) {
            (Some(line), _) => line.is_private(envelope),
            (None, Some(about)) => self.late.holds(about),
            (None, None) => false,
        }
    }

    /// Takes an envelope that it has said, after the topic has admitted it.
    pub(crate) fn hear(&self, envelope: &Envelope) -> Heard {
        self.line().map_or(Heard::Nothing, |line| line.hear(envelope))
    }

    /// Whether this envelope id is open at it.
    pub(crate) fn is_open(&self, envelope: &str) -> bool {
        self.line().is_some_and(|line| line.is_open(envelope))
    }

    fn line(&self) -> Option<Arc<Line>> {
        self.line.lock().clone()
    }

    fn hang_up(&self) {
        let line = self.line.lock().take();
        if let Some(line) = line {
            line.hang_up();
        }
    }

    /// Ends a conversation over another link. One over this link may have begun already.
    fn hang_up_all_but(&self, link: LinkId) {
        let line = self.line.lock().take_if(|line| line.link() != link);
        if let Some(line) = line {
            line.hang_up();
        }
    }
}

impl Dialer for Served {
    fn dial(&self, inbox: Arc<dyn Inbox>) -> Result<Link, LinkError> {
        let link = self.here().ok_or(LinkError::NotConnected)?;
        let (id, mail) = (self.id.clone(), Arc::clone(&self.mail));
        let line =
            Arc::new(Line::new(id, link, self.envelope_bytes_max, mail, inbox, Arc::clone(&self.late)));
        let older = self.line.lock().replace(Arc::clone(&line));
        if let Some(older) = older {
            older.hang_up();
        }
        if self.here() != Some(link) {
            // It went, or came again, meanwhile: whoever did that may not have seen this one.
            line.hang_up();
            return Err(LinkError::NotConnected);
        }
        Ok(Link::custom(line))
    }

    fn presence(&self) -> watch::Receiver<Option<LinkId>> {
        self.presence.subscribe()
    }
}

#[cfg(test)]
mod tests;
