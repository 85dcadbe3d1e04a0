//! Servers that dial in: participants that serve over MCPx (v0.1, sections 3.1 and 4.3).
//!
//! The gateway sends requests to such a participant as envelopes and takes its answers out of
//! envelopes. [`DialIn`] tracks whether the participant is connected, its conversation, and whether
//! its tools stay listed after it disconnects.

mod conversation;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{collections::HashMap, sync::Arc, time::Duration};

use client::{LinkError, LinkInbox, ServerLink};
use model::{LinkId, ParticipantId};
use platform::Mutex;
use tokio::{sync::watch, time::timeout};
use wire::mcpx::Envelope;

use conversation::Conversation;
pub use conversation::{Outbox, Receipt};

/// One participant that serves, in one topic.
pub struct DialIn {
    id: ParticipantId,
    /// Longest envelope, in bytes.
    envelope_bytes_max: AtomicUsize,
    outbox: Arc<dyn Outbox>,
    /// The link under which the participant is connected.
    presence: watch::Sender<Option<LinkId>>,
    conversation: Mutex<Option<Arc<Conversation>>>,
    /// Whether the participant's last manifest is listed.
    listed: Mutex<bool>,
}

/// A disconnect of the participant, which its next connection ends.
#[derive(Debug)]
pub struct Departure(watch::Receiver<Option<LinkId>>);

impl DialIn {
    /// A participant that is not connected.
    pub fn new(id: ParticipantId, envelope_bytes_max: usize, outbox: Arc<dyn Outbox>) -> Self {
        let presence = watch::Sender::new(None);
        let conversation = Mutex::default();
        let listed = Mutex::new(true);
        Self {
            id,
            envelope_bytes_max: AtomicUsize::new(envelope_bytes_max),
            outbox,
            presence,
            conversation,
            listed,
        }
    }

    /// Bounds the envelopes of the next conversations, in bytes.
    pub fn limit_envelopes(&self, bytes_max: usize) {
        self.envelope_bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Records that the participant is connected under this link, and ends the conversation of an
    /// older link. Of two links the newer one counts, in whatever order they are recorded.
    pub fn connected(&self, link: LinkId) {
        let newer = self.presence.send_if_modified(|current| {
            let newer = current.is_none_or(|current| current < link);
            if newer {
                *current = Some(link);
            }
            newer
        });
        if newer {
            *self.listed.lock() = true;
            // One over this link may have begun already.
            self.hang_up(|conversation| conversation.link != link);
        }
    }

    /// Records a participant that may have connected before it was configured to serve; `find`
    /// looks up its link. Returns the link if the participant disconnected meanwhile: the caller
    /// must then record that, too.
    pub fn connect_existing(&self, find: impl Fn() -> Option<LinkId>) -> Option<LinkId> {
        let link = find()?;
        self.connected(link);
        (find() != Some(link)).then_some(link)
    }

    /// Records that this link of the participant is closed. If the participant served over it, the
    /// caller then calls [`DialIn::unlist_after`] with what this returns.
    pub fn disconnected(&self, link: LinkId) -> Option<Departure> {
        let was_current =
            |current: &mut Option<LinkId>| current.take_if(|current| *current == link).is_some();
        if !self.presence.send_if_modified(was_current) {
            return None;
        }
        self.hang_up(|_| true);
        Some(Departure(self.presence.subscribe()))
    }

    /// The link under which the participant is connected.
    pub fn link(&self) -> Option<LinkId> {
        *self.presence.borrow()
    }

    /// Whether the participant's last manifest is listed.
    pub fn is_listed(&self) -> bool {
        *self.listed.lock()
    }

    /// Waits for the grace period of a disconnect, and unlists the participant if it has been away
    /// all the time; false if it has connected meanwhile.
    pub async fn unlist_after(&self, mut departure: Departure, grace: Duration) -> bool {
        let presence = &mut departure.0;
        let back = async {
            if presence.borrow().is_none() {
                let _ = presence.changed().await;
            }
        };
        if timeout(grace, back).await.is_ok() {
            return false;
        }
        let mut listed = self.listed.lock();
        let away = !presence.has_changed().unwrap_or(true);
        *listed &= !away;
        away
    }

    /// Takes an envelope of the participant, after the topic has admitted it.
    pub fn receive(&self, envelope: &Envelope) -> Receipt {
        self.conversation()
            .map_or(Receipt::Unrelated, |conversation| {
                conversation.receive(envelope)
            })
    }

    /// Whether the request in the envelope of this id is pending at the participant.
    pub fn is_pending(&self, envelope: &str) -> bool {
        self.conversation()
            .is_some_and(|conversation| conversation.is_pending(envelope))
    }

    /// Opens a link for a new session, and ends the conversation of the previous session.
    ///
    /// # Errors
    /// [`LinkError::NotConnected`] when the participant is not connected.
    pub(crate) fn dial(&self, inbox: Arc<dyn LinkInbox>) -> Result<ServerLink, LinkError> {
        let link = self.link().ok_or(LinkError::NotConnected)?;
        let conversation = Arc::new(Conversation {
            id: self.id.clone(),
            link,
            envelope_bytes_max: self.envelope_bytes_max.load(Ordering::Relaxed),
            outbox: Arc::clone(&self.outbox),
            inbox,
            requests: Mutex::new(Some(HashMap::new())),
        });
        let older = self.conversation.lock().replace(Arc::clone(&conversation));
        if let Some(older) = older {
            older.hang_up();
        }
        if self.link() != Some(link) {
            // A disconnect or a newer link meanwhile may have missed this conversation.
            conversation.hang_up();
            return Err(LinkError::NotConnected);
        }
        Ok(ServerLink::custom(conversation))
    }

    /// The link under which the participant is connected, and each change of it.
    pub(crate) fn presence(&self) -> watch::Receiver<Option<LinkId>> {
        self.presence.subscribe()
    }

    fn conversation(&self) -> Option<Arc<Conversation>> {
        self.conversation.lock().clone()
    }

    fn hang_up(&self, which: impl Fn(&Conversation) -> bool) {
        let conversation = self
            .conversation
            .lock()
            .take_if(|conversation| which(conversation));
        if let Some(conversation) = conversation {
            conversation.hang_up();
        }
    }
}

#[cfg(test)]
mod tests;
