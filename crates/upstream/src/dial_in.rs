//! Servers that dial in: participants that serve over MCPx (v0.1, sections 3.1 and 4.3).
//!
//! The gateway sends requests to such a participant as envelopes and takes its answers out of envelopes. [`DialIn`] tracks
//! whether the participant is connected, its conversation, and whether its tools stay listed after it disconnects.

mod conversation;
mod recent_requests;

use std::sync::Arc;

use client::{Inbox, Link, LinkError};
use model::{LinkId, ParticipantId};
use platform::Mutex;
use tokio::sync::watch;
use wire::mcpx::Envelope;

use conversation::Conversation;
pub use conversation::{Outbox, Receipt};
pub use recent_requests::RecentRequests;

/// One participant that serves, in one topic.
pub struct DialIn {
    id: ParticipantId,
    /// Longest envelope, in bytes.
    envelope_bytes_max: usize,
    outbox: Arc<dyn Outbox>,
    /// The link under which the participant is connected.
    presence: watch::Sender<Option<LinkId>>,
    conversation: Mutex<Option<Arc<Conversation>>>,
    recent: Arc<RecentRequests>,
    listing: Mutex<Listing>,
}

/// Whether the participant's last manifest is listed.
struct Listing {
    listed: bool,
    /// Number of disconnects.
    departures: u64,
    /// Whether a task waits for the end of the grace period.
    awaited: bool,
}

/// The state of a disconnected participant at the end of its grace period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// The participant is connected again.
    Ended,
    /// The participant stayed away: its last manifest is not listed any more.
    Expired,
    /// The participant connected and disconnected again, and a new grace period began: the number of this disconnect.
    Renewed(u64),
}

impl DialIn {
    /// A participant that is not connected. `recent` has the requests that it got in this topic before.
    pub fn new(
        id: ParticipantId,
        envelope_bytes_max: usize,
        outbox: Arc<dyn Outbox>,
        recent: Arc<RecentRequests>,
    ) -> Self {
        let presence = watch::Sender::new(None);
        let listing = Mutex::new(Listing { listed: true, departures: 0, awaited: false });
        let conversation = Mutex::default();
        Self { id, envelope_bytes_max, outbox, presence, conversation, recent, listing }
    }

    /// Records that the participant is connected under this link, and ends the conversation of an older link. Of two links the
    /// newer one counts, in whatever order they are recorded.
    pub fn connected(&self, link: LinkId) {
        let newer = self.presence.send_if_modified(|current| {
            let newer = current.is_none_or(|current| current < link);
            if newer {
                *current = Some(link);
            }
            newer
        });
        if newer {
            self.listing.lock().listed = true;
            self.hang_up_all_but(link);
        }
    }

    /// Records a participant that may have connected before it was configured to serve; `find` looks up its link. Returns the
    /// link if the participant disconnected meanwhile: the caller must then record that, too.
    pub fn connect_existing(&self, find: impl Fn() -> Option<LinkId>) -> Option<LinkId> {
        let link = find()?;
        self.connected(link);
        (find() != Some(link)).then_some(link)
    }

    /// Records that this link of the participant is closed. Returns the number of the disconnect if no task waits for the end
    /// of the grace period yet: the caller then waits, and calls [`DialIn::grace_period_over`].
    pub fn disconnected(&self, link: LinkId) -> Option<u64> {
        let gone = self.presence.send_if_modified(|current| {
            let gone = *current == Some(link);
            if gone {
                *current = None;
            }
            gone
        });
        if !gone {
            return None;
        }
        self.hang_up();
        let mut listing = self.listing.lock();
        listing.departures += 1;
        (!std::mem::replace(&mut listing.awaited, true)).then_some(listing.departures)
    }

    /// The link under which the participant is connected.
    pub fn link(&self) -> Option<LinkId> {
        *self.presence.borrow()
    }

    /// Whether the participant's last manifest is listed.
    pub fn is_listed(&self) -> bool {
        self.listing.lock().listed
    }

    /// Ends the grace period of a disconnect; unlists the participant if it is still away.
    pub fn grace_period_over(&self, departure: u64) -> Absence {
        let mut listing = self.listing.lock();
        if self.link().is_none() && listing.departures != departure {
            return Absence::Renewed(listing.departures);
        }
        listing.awaited = false;
        if self.link().is_some() {
            return Absence::Ended;
        }
        listing.listed = false;
        Absence::Expired
    }

    /// Whether an envelope that the participant sends on this link is for the sender of the request alone. Without a
    /// conversation on the link, a late answer to an earlier conversation is.
    pub fn is_private(&self, link: LinkId, envelope: &Envelope) -> bool {
        let current = self
            .conversation()
            .filter(|conversation| conversation.link() == link && self.link() == Some(link));
        match (current, envelope.correlation_id()) {
            (Some(conversation), _) => conversation.is_private(envelope),
            (None, Some(about)) => self.recent.contains(about),
            (None, None) => false,
        }
    }

    /// Takes an envelope of the participant, after the topic has admitted it.
    pub fn receive(&self, envelope: &Envelope) -> Receipt {
        self.conversation().map_or(Receipt::Unrelated, |conversation| conversation.receive(envelope))
    }

    /// Whether the request in the envelope of this id is pending at the participant.
    pub fn is_pending(&self, envelope: &str) -> bool {
        self.conversation().is_some_and(|conversation| conversation.is_pending(envelope))
    }

    /// Opens a link for a new session, and ends the conversation of the previous session.
    ///
    /// # Errors
    /// [`LinkError::NotConnected`] when the participant is not connected.
    pub(crate) fn dial(&self, inbox: Arc<dyn Inbox>) -> Result<Link, LinkError> {
        let link = self.link().ok_or(LinkError::NotConnected)?;
        let (id, outbox) = (self.id.clone(), Arc::clone(&self.outbox));
        let recent = Arc::clone(&self.recent);
        let conversation =
            Arc::new(Conversation::new(id, link, self.envelope_bytes_max, outbox, inbox, recent));
        let older = self.conversation.lock().replace(Arc::clone(&conversation));
        if let Some(older) = older {
            older.hang_up();
        }
        if self.link() != Some(link) {
            // A disconnect or a newer link meanwhile may have missed this conversation.
            conversation.hang_up();
            return Err(LinkError::NotConnected);
        }
        Ok(Link::custom(conversation))
    }

    /// The link under which the participant is connected, and each change of it.
    pub(crate) fn presence(&self) -> watch::Receiver<Option<LinkId>> {
        self.presence.subscribe()
    }

    fn conversation(&self) -> Option<Arc<Conversation>> {
        self.conversation.lock().clone()
    }

    fn hang_up(&self) {
        let conversation = self.conversation.lock().take();
        if let Some(conversation) = conversation {
            conversation.hang_up();
        }
    }

    /// Ends a conversation over another link; one over this link may have begun already.
    fn hang_up_all_but(&self, link: LinkId) {
        let conversation = self.conversation.lock().take_if(|conversation| conversation.link() != link);
        if let Some(conversation) = conversation {
            conversation.hang_up();
        }
    }
}

#[cfg(test)]
mod tests;
