//! Channels between nodes over the bus: calls and tunnels.
//!
//! The bus may lose, double and delay; a channel does not. Both sides number what they say, keep it
//! until it was received, and say no more than the other one reads. A channel that the other side
//! has taken up once is never taken up again: no retry acts twice. It ends with its use, or with
//! the incarnation of the other node ([`Mesh::peer_ended`]).

mod broadcast;
mod calls;
mod channel;
mod error;
mod frame;
mod handle;
mod limits;
mod peer;
mod shared;
mod tunnel;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use platform::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::bus::{Bus, BusError};
use crate::seal::{ClusterKeys, FrameOpener, FrameReceiver, FrameSealer, Incarnation, SEAL_BYTES};
use crate::subject::{SubjectError, SubjectName, SubjectPattern};
use broadcast::named;
pub use broadcast::{Broadcast, Broadcasts};
pub use calls::{PeerCall, ServedCall};
pub use error::PeerCallError;
use frame::Purpose;
use handle::Handle;
pub use limits::{
    ACCEPT_MAX, CHANNELS_MAX, CREDIT_BYTES, ENDED_CHANNELS_MAX, MESSAGE_BYTES_MAX,
    NODE_WAITING_BYTES_MAX,
};
pub use shared::MeshCounts;
use shared::{Shared, State, inbox};
pub use tunnel::Tunnel;

/// A channel that another node has opened.
#[derive(Debug)]
pub enum PeerChannel {
    /// A call.
    Call(ServedCall),
    /// A tunnel.
    Tunnel(Tunnel),
}

/// The channels of one incarnation of a node.
#[derive(Debug)]
pub struct Mesh {
    shared: Arc<Shared>,
}

impl Mesh {
    /// Joins the nodes whose frames are messages below `root`, as this incarnation. Frames are
    /// carried until the mesh is dropped.
    ///
    /// # Errors
    /// [`BusError`] when the bus cannot be listened to.
    pub async fn join(
        bus: Arc<dyn Bus>,
        root: SubjectName,
        keys: ClusterKeys,
        own: Incarnation,
    ) -> Result<Self, BusError> {
        let unfit = |why: SubjectError| BusError::Unavailable(why.to_string());
        let subject = inbox(&root, own).map_err(unfit)?;
        let frames = bus.subscribe(&(&subject).into()).await?;
        let state = State {
            sealer: FrameSealer::new(keys.clone(), own),
            opener: FrameOpener::new(keys, own),
            peers: HashMap::new(),
            came: VecDeque::new(),
            counts: MeshCounts::default(),
            has_ended: false,
        };
        let shared = Arc::new(Shared {
            bus,
            root,
            own,
            start: Instant::now(),
            work: Notify::new(),
            came: Notify::new(),
            ended: Notify::new(),
            state: Mutex::new(state),
        });
        tokio::spawn(shared::receive(Arc::clone(&shared), frames));
        tokio::spawn(shared::send(Arc::clone(&shared)));
        Ok(Self { shared })
    }

    /// Calls a node: it has acknowledged the call when this returns.
    ///
    /// # Errors
    /// [`PeerCallError`], which says whether the call may have been carried out.
    pub async fn call(&self, peer: Incarnation, request: Bytes) -> Result<PeerCall, PeerCallError> {
        let handle = Handle::open(&self.shared, peer, Purpose::Call)?;
        PeerCall::begin(handle, request).await
    }

    /// Opens a tunnel to a node.
    ///
    /// # Errors
    /// [`PeerCallError::Busy`] when too many channels to it are open, [`PeerCallError::NodeEnded`]
    /// when it or the bus has ended.
    pub fn tunnel(&self, peer: Incarnation) -> Result<Tunnel, PeerCallError> {
        Handle::open(&self.shared, peer, Purpose::Tunnel).map(Tunnel::new)
    }

    /// The next channel that another node opens.
    pub async fn accept(&self) -> PeerChannel {
        loop {
            let came = self.shared.came.notified();
            let next = self.shared.state.lock().came.pop_front();
            if let Some(next) = next {
                let handle = Handle::of(&self.shared, next.peer, next.channel);
                return match next.purpose {
                    Purpose::Call => PeerChannel::Call(ServedCall::new(handle)),
                    Purpose::Tunnel => PeerChannel::Tunnel(Tunnel::new(handle)),
                };
            }
            came.await;
        }
    }

    /// Sends a message to all nodes that listen to a subject.
    ///
    /// # Errors
    /// [`BusError`] when it is too large, or no server is reached.
    pub async fn broadcast(&self, subject: &SubjectName, content: &[u8]) -> Result<(), BusError> {
        let named = named(subject, content);
        let sealed = {
            let mut state = self.shared.state.lock();
            state.sealer.seal(FrameReceiver::All, &named)
        };
        let frame = sealed.ok_or(BusError::TooLarge(named.len() + SEAL_BYTES))?;
        self.shared.bus.publish(subject, frame).await
    }

    /// Listens to what other nodes send to all.
    ///
    /// # Errors
    /// [`BusError`] when the bus cannot be listened to.
    pub async fn listen(&self, pattern: &SubjectPattern) -> Result<Broadcasts, BusError> {
        let messages = self.shared.bus.subscribe(pattern).await?;
        Ok(Broadcasts::new(Arc::clone(&self.shared), messages))
    }

    /// Ends all channels with an incarnation that does not answer. It may come back: then it opens
    /// others.
    pub fn peer_lost(&self, peer: Incarnation) {
        let mut state = self.shared.state.lock();
        if let Some(channels) = state.peers.get_mut(&peer) {
            channels.lose();
        }
    }

    /// Ends all channels with an incarnation that has ended. Later frames of it have no effect.
    pub fn peer_ended(&self, peer: Incarnation) {
        let mut state = self.shared.state.lock();
        state.opener.end(peer);
        state.end_channels(peer);
    }

    /// Whether no channel has anything to say, also nothing again.
    #[cfg(test)]
    pub(crate) fn is_quiet(&self) -> bool {
        let state = self.shared.state.lock();
        let mut peers = state.peers.values();
        peers.all(|peer| peer.out.is_empty() && peer.is_idle())
    }

    /// Frames that had no effect so far.
    #[must_use]
    pub fn counts(&self) -> MeshCounts {
        self.shared.state.lock().counts
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        self.shared.end();
        self.shared.ended.notify_one();
    }
}

#[cfg(test)]
pub(crate) mod tests;
