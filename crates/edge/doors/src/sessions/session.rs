//! Legacy session over HTTP: its link, and the streams of its POSTs.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use gateway::SlottedNumber;
use platform::{Mutex, MutexGuard};
use smallvec::SmallVec;

use super::id::Mark;
use crate::outlet::Joined;
use crate::stream::{Lifetime, Stream};

/// Finished streams that one session keeps, so that a client that lost its connection can still
/// fetch the answer.
const STREAMS_KEPT_MAX: usize = 8;
/// Time that a finished stream is kept for such a client, in seconds.
const STREAM_KEPT_SECS: u64 = 60;
/// Streams open at once in one session.
pub(crate) const STREAMS_MAX: usize = 1024;

/// A session id by its hashes under two keys of this process: the sealed id itself has some 240
/// bytes.
pub(super) type Key = [u64; 2];

/// One legacy session over HTTP.
pub(crate) struct Session {
    pub(super) key: Key,
    pub(super) mark: Mark,
    /// Its link.
    pub(crate) joined: Joined,
    streams: Mutex<Streams>,
}

/// A session as the table finds it: by its key.
pub(super) struct ByKey(pub(super) Arc<Session>);

#[derive(Default)]
struct Streams {
    next: u64,
    /// Streams that a client may still ask for, oldest first, with the time at which a finished one
    /// was left. Mostly one at most, which is kept in place.
    live: SmallVec<[(Arc<Stream>, Option<u64>); 1]>,
}

impl Session {
    pub(super) fn new((key, mark): (Key, Mark), joined: Joined) -> Self {
        Self {
            key,
            mark,
            joined,
            streams: Mutex::default(),
        }
    }

    /// A stream for one POST with `answers` requests in it. `None` if too many are open.
    pub(crate) fn open_stream(&self, answers: u32, now_ms: u64) -> Option<Arc<Stream>> {
        let mut streams = self.streams();
        streams.forget(now_ms);
        if streams.live.len() >= STREAMS_MAX {
            return None;
        }
        streams.next += 1;
        // Unique among those of all nodes: any of them may be asked to go on with it.
        let id = SlottedNumber {
            slot: self.joined.dispatch.context.slot,
            number: streams.next,
        };
        let stream = Stream::new(
            id.whole(),
            Lifetime::Resumable,
            answers,
            &self.joined.home.bounds,
        );
        streams.live.push((Arc::clone(&stream), None));
        Some(stream)
    }

    /// The stream of this number, if it is still kept; 0 is the one for messages that belong to no
    /// request.
    pub(crate) fn stream(&self, id: u64) -> Option<Arc<Stream>> {
        if id == 0 {
            return Some(Arc::clone(self.joined.home.stream()));
        }
        self.streams()
            .live
            .iter()
            .find(|(stream, _)| stream.id == id)
            .map(|(stream, _)| Arc::clone(stream))
    }

    /// Whether its client has no request open and reads no stream.
    pub(super) fn is_idle(&self) -> bool {
        !self.joined.home.is_attached() && !self.joined.is_busy()
    }

    /// Forgets streams that were left long ago.
    pub(super) fn forget_streams(&self, now_ms: u64) {
        self.streams().forget(now_ms);
    }

    /// Ends the streams of its POSTs.
    pub(crate) fn end_streams(&self) {
        for (stream, _) in self.streams().live.drain(..) {
            stream.end();
        }
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock()
    }
}

impl Borrow<Key> for ByKey {
    fn borrow(&self) -> &Key {
        &self.0.key
    }
}

impl Hash for ByKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for ByKey {}

impl Streams {
    fn forget(&mut self, now_ms: u64) {
        if self.live.is_empty() {
            return;
        }
        for (stream, left) in &mut self.live {
            if left.is_none() && stream.has_ended() && !stream.is_attached() {
                *left = Some(now_ms);
            }
        }
        let old = |left: &Option<u64>| {
            left.is_some_and(|at| now_ms.saturating_sub(at) > STREAM_KEPT_SECS * 1000)
        };
        self.live.retain(|(_, left)| !old(left));
        let left = self.live.iter().filter(|(_, left)| left.is_some()).count();
        let mut spare = left.saturating_sub(STREAMS_KEPT_MAX);
        self.live.retain(|(_, left)| {
            let drop = left.is_some() && spare > 0;
            spare -= usize::from(drop);
            !drop
        });
    }
}
