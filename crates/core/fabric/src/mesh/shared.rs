//! The state that a mesh, its channels and its tasks have in common.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use platform::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::frame::{ChannelId, Frame, Purpose};
use super::peer::Peer;
use crate::bus::{Bus, BusSubscription, Delivery};
use crate::seal::{FrameOpener, FrameReceiver, FrameSealer, Incarnation, OpenError, Opened};
use crate::subject::{SubjectError, SubjectName};

/// Time between two looks at what has had no answer.
const LOOK: Duration = Duration::from_millis(50);

/// Frames that had no effect, and messages that the bus dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MeshCounts {
    /// Frames that were forged, repeated, or of others.
    pub refused: u64,
    /// Messages that were dropped because too many waited.
    pub dropped: u64,
}

pub(super) struct Shared {
    pub(super) bus: Arc<dyn Bus>,
    pub(super) root: SubjectName,
    pub(super) own: Incarnation,
    pub(super) start: Instant,
    /// Something is to be sent, or the mesh has ended.
    pub(super) work: Notify,
    /// A channel was opened by another node.
    pub(super) came: Notify,
    pub(super) ended: Notify,
    pub(super) state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) sealer: FrameSealer,
    pub(super) opener: FrameOpener,
    pub(super) peers: HashMap<Incarnation, Peer>,
    pub(super) came: VecDeque<Came>,
    pub(super) counts: MeshCounts,
    pub(super) has_ended: bool,
}

/// A channel that another node has opened.
#[derive(Debug)]
pub(super) struct Came {
    pub(super) peer: Incarnation,
    pub(super) channel: ChannelId,
    pub(super) purpose: Purpose,
}

/// The subject of the frames for an incarnation.
pub(super) fn inbox(root: &SubjectName, of: Incarnation) -> Result<SubjectName, SubjectError> {
    format!("{root}.{of}").parse()
}

impl State {
    /// Opens a frame. The channels of a sender that has ended to make way end too.
    pub(super) fn open(&mut self, frame: &[u8]) -> Result<Opened, OpenError> {
        let opened = self.opener.open(frame)?;
        if let Some(ended) = opened.made_way {
            tracing::warn!(%ended, "too many nodes send frames: a silent one counts as ended");
            self.end_channels(ended);
        }
        Ok(opened)
    }

    /// Ends the channels with an incarnation that has ended.
    pub(super) fn end_channels(&mut self, peer: Incarnation) {
        self.sealer.forget(peer);
        if let Some(mut channels) = self.peers.remove(&peer) {
            channels.end();
        }
    }
}

impl Shared {
    /// Ends all channels: no frame comes or goes any more.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.has_ended = true;
        let mut peers = std::mem::take(&mut state.peers);
        state.came.clear();
        drop(state);
        peers.values_mut().for_each(Peer::end);
        self.work.notify_one();
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Acts on the channels with a node, and has sent what they have to say. `None` when the node
    /// or the mesh has ended.
    pub(super) fn with<T>(
        &self,
        peer: Incarnation,
        act: impl FnOnce(&mut Peer, Duration) -> T,
    ) -> Option<T> {
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
    fn take(&self, message: &Bytes) {
        let now = self.now();
        let mut state = self.state.lock();
        if state.has_ended {
            return;
        }
        let opened = match state.open(message) {
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
        let purpose = taken_up.and_then(|channel| peer.get(channel).map(|one| one.purpose));
        if let (Some(channel), Some(purpose)) = (taken_up, purpose) {
            state.came.push_back(Came {
                peer: opened.sender,
                channel,
                purpose,
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

/// The way of frames from the bus to their channels, until the mesh or the bus ends.
pub(super) async fn receive(shared: Arc<Shared>, mut frames: BusSubscription) {
    loop {
        let delivery = tokio::select! {
            () = shared.ended.notified() => return,
            delivery = frames.next() => delivery,
        };
        match delivery {
            Some(Delivery::Message(message)) => shared.take(&message.bytes),
            // What was dropped is sent again.
            Some(Delivery::Dropped(number)) => shared.state.lock().counts.dropped += number,
            None => {
                tracing::error!("the bus has ended: all channels to other nodes end");
                return shared.end();
            }
        }
    }
}

/// The way of frames from their channels to the bus, until the mesh ends.
pub(super) async fn send(shared: Arc<Shared>) {
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
