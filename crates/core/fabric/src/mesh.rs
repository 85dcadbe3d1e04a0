//! Channels between nodes over the bus: calls and tunnels.
//!
//! The bus may lose, double and delay; a channel does not. Both sides number what they say, keep it
//! until it was received, and say no more than the other one reads. A channel that the other side has
//! taken up once is never taken up again: no retry acts twice. It ends with its use, or with the
//! incarnation of the other node ([`Mesh::peer_ended`]).

mod broadcast;
mod calls;
mod channel;
mod frame;
mod handle;
mod limits;
mod peer;
mod tunnel;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use platform::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

pub use broadcast::{Broadcast, Broadcasts};
pub use calls::{PeerCall, PeerCallError, ServedCall};
use frame::{Frame, Purpose};
use handle::Handle;
pub use limits::{
    ACCEPT_MAX, CHANNELS_MAX, CREDIT_BYTES, ENDED_CHANNELS_MAX, MESSAGE_BYTES_MAX,
    NODE_WAITING_BYTES_MAX,
};
use peer::Peer;
pub use tunnel::Tunnel;

use crate::bus::{Bus, BusError, Delivery};
use crate::seal::{ClusterKeys, FrameOpener, FrameReceiver, FrameSealer, Incarnation};
use crate::subject::SubjectName;

/// Time between two looks at what has had no answer.
const LOOK: Duration = Duration::from_millis(50);

/// A channel that another node has opened.
#[derive(Debug)]
pub enum PeerChannel {
    /// A call.
    Call(ServedCall),
    /// A tunnel.
    Tunnel(Tunnel),
}

/// Frames that had no effect, and messages that the bus dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MeshCounts {
    /// Frames that were forged, repeated, or of others.
    pub refused: u64,
    /// Messages that were dropped because too many waited.
    pub dropped: u64,
}

/// The channels of one incarnation of a node.
#[derive(Debug)]
pub struct Mesh {
    shared: Arc<Shared>,
}

struct Shared {
    bus: Arc<dyn Bus>,
    root: SubjectName,
    own: Incarnation,
    start: Instant,
    /// Something is to be sent, or the mesh has ended.
    work: Notify,
    /// A channel was opened by another node.
    came: Notify,
    ended: Notify,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    sealer: FrameSealer,
    opener: FrameOpener,
    peers: HashMap<Incarnation, Peer>,
    came: VecDeque<PeerChannel>,
    counts: MeshCounts,
    has_ended: bool,
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
        let unfit = |why: crate::SubjectError| BusError::Unavailable(why.to_string());
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
        tokio::spawn(receive(Arc::clone(&shared), frames));
        tokio::spawn(send(Arc::clone(&shared)));
        Ok(Self { shared })
    }

    /// Calls a node: it has acknowledged the call when this returns.
    ///
    /// # Errors
    /// [`PeerCallError`], which says whether the call may have been carried out.
    pub async fn call(&self, peer: Incarnation, request: Bytes) -> Result<PeerCall, PeerCallError> {
        let handle = Handle::open(&self.shared, peer, Purpose::Call).ok_or(PeerCallError::Busy)?;
        PeerCall::begin(handle, request).await
    }

    /// Opens a tunnel to a node; `None` when too many channels to it are open.
    #[must_use]
    pub fn tunnel(&self, peer: Incarnation) -> Option<Tunnel> {
        Handle::open(&self.shared, peer, Purpose::Tunnel).map(Tunnel::new)
    }

    /// The next channel that another node opens.
    pub async fn accept(&self) -> PeerChannel {
        loop {
            let came = self.shared.came.notified();
            if let Some(incoming) = self.shared.state.lock().came.pop_front() {
                return incoming;
            }
            came.await;
        }
    }

    /// Ends all channels with an incarnation that has ended. Later frames of it have no effect.
    pub fn peer_ended(&self, peer: Incarnation) {
        let mut state = self.shared.state.lock();
        state.opener.end(peer);
        state.sealer.forget(peer);
        let channels = state.peers.remove(&peer);
        drop(state);
        if let Some(mut channels) = channels {
            channels.end();
        }
    }

    /// Frames that had no effect so far.
    #[must_use]
    pub fn counts(&self) -> MeshCounts {
        self.shared.state.lock().counts
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.has_ended = true;
        let mut peers = std::mem::take(&mut state.peers);
        let came = std::mem::take(&mut state.came);
        drop(state);
        peers.values_mut().for_each(Peer::end);
        drop(came);
        self.shared.work.notify_one();
        self.shared.ended.notify_one();
    }
}

/// The subject of the frames for an incarnation.
fn inbox(root: &SubjectName, of: Incarnation) -> Result<SubjectName, crate::SubjectError> {
    format!("{root}.{of}").parse()
}

impl Shared {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Acts on the channels with a node, and has sent what they have to say. `None` when the node or
    /// the mesh has ended.
    fn with<T>(&self, peer: Incarnation, act: impl FnOnce(&mut Peer, Duration) -> T) -> Option<T> {
        let now = self.now();
        let mut state = self.state.lock();
        let channels = state.peers.get_mut(&peer)?;
        let result = act(channels, now);
        let has_work = !channels.out.is_empty();
        drop(state);
        if has_work {
            self.work.notify_one();
        }
        Some(result)
    }

    /// Takes a message of the bus in.
    fn take(self: &Arc<Self>, message: &Bytes) {
        let now = self.now();
        let mut state = self.state.lock();
        if state.has_ended {
            return;
        }
        let opened = match state.opener.open(message) {
            Ok(opened) if !opened.is_to_all => opened,
            _ => {
                state.counts.refused += 1;
                return;
            }
        };
        let Some(frame) = Frame::decode(&opened.content) else {
            state.counts.refused += 1;
            return;
        };
        let peer = state.peers.entry(opened.sender).or_default();
        let taken_up = peer.receive(now, frame);
        if let Some(channel) = taken_up {
            let purpose = peer.get(channel).map(|one| one.purpose);
            let handle = Handle::of(self, opened.sender, channel);
            state.came.push_back(match purpose {
                Some(Purpose::Tunnel) => PeerChannel::Tunnel(Tunnel::new(handle)),
                _ => PeerChannel::Call(ServedCall::new(handle)),
            });
            self.came.notify_one();
        }
        drop(state);
        self.work.notify_one();
    }

    /// Sealed frames that are to be sent, each with its receiver's subject.
    fn outgoing(&self, looks: bool) -> Outgoing {
        let now = self.now();
        let mut state = self.state.lock();
        let State { sealer, peers, .. } = &mut *state;
        let mut frames = Vec::new();
        let mut is_idle = true;
        for (peer, channels) in peers {
            if looks {
                channels.again(now);
            }
            is_idle &= channels.is_idle();
            let Ok(subject) = inbox(&self.root, *peer) else {
                continue;
            };
            for frame in channels.out.drain(..) {
                let sealed = sealer.seal(FrameReceiver::One(*peer), &frame.encode());
                frames.extend(sealed.map(|sealed| (subject.clone(), sealed)));
            }
        }
        Outgoing {
            frames,
            is_idle,
            has_ended: state.has_ended,
        }
    }
}

/// Frames that are to be sent.
struct Outgoing {
    frames: Vec<(SubjectName, Bytes)>,
    is_idle: bool,
    has_ended: bool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mesh({} as {})", self.root, self.own)
    }
}

async fn receive(shared: Arc<Shared>, mut frames: crate::BusSubscription) {
    loop {
        let delivery = tokio::select! {
            () = shared.ended.notified() => return,
            delivery = frames.next() => delivery,
        };
        match delivery {
            Some(Delivery::Message(message)) => shared.take(&message.bytes),
            // What was dropped is sent again.
            Some(Delivery::Dropped(number)) => shared.state.lock().counts.dropped += number,
            None => return,
        }
    }
}

async fn send(shared: Arc<Shared>) {
    let mut look = Instant::now() + LOOK;
    loop {
        let looks = Instant::now() >= look;
        if looks {
            look = Instant::now() + LOOK;
        }
        let outgoing = shared.outgoing(looks);
        if outgoing.has_ended {
            return;
        }
        for (subject, frame) in outgoing.frames {
            // A frame that cannot be sent is lost like one that the bus drops.
            let _lost = shared.bus.publish(&subject, frame).await;
        }
        if outgoing.is_idle {
            shared.work.notified().await;
            look = look.max(Instant::now());
        } else {
            tokio::select! {
                () = shared.work.notified() => {}
                () = tokio::time::sleep_until(look) => {}
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
