//! A stream: what waits to be sent to one reader, in order, within bounds.
//!
//! Owns the queue between those who have something to say (upstream readers, the pump) and the one connection that
//! carries it out. A writer never waits; a reader may leave and, on a resumable stream, come back for what it
//! missed. Must not know what a message means, nor how it is framed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use platform::{Mutex, MutexGuard};

use crate::bounds::Bounds;

/// What becomes of a stream when its reader leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// It stays, and a later reader takes up where the last one left (legacy HTTP).
    Resumable,
    /// It ends with its reader (modern HTTP, the 2024-11-05 pair, stdio).
    Reader,
}

/// The stream has no room, or nobody will ever read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Its bound is reached: the reader is too slow. The stream has been ended; one that no answer ends and that can be
    /// resumed is open again for the next reader.
    Full,
    /// It has ended.
    Ended,
}

/// One message in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its number in the stream, from 1.
    pub number: u64,
    /// The JSON-RPC message.
    pub frame: Bytes,
    /// Whether the stream ends with it.
    pub last: bool,
    /// The code, if it is an error.
    pub error: Option<i64>,
}

#[derive(Debug)]
struct Queued {
    frame: Bytes,
    /// What a later message with the same key makes stale: a progress token, the name of a list.
    progress: Option<Bytes>,
    last: bool,
    error: Option<i64>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Queued>,
    /// Number of the first message in `queue`.
    first: u64,
    /// Number of the next message that nobody has been given.
    unsent: u64,
    unsent_bytes: usize,
    sent_bytes: usize,
    /// Answers that are still to come before the stream ends; 0 with `open` for streams that no answer ends.
    answers: u32,
    ended: bool,
    /// It has ended for this reader only, who was too slow: nothing else ends a stream that no answer ends.
    overrun: bool,
    reader: u64,
    attached: bool,
    waker: Option<Waker>,
}

/// A bounded, ordered, single-reader stream of JSON-RPC messages.
#[derive(Debug)]
pub struct Stream {
    id: u64,
    lifetime: Lifetime,
    bounds: Arc<Bounds>,
    state: Mutex<State>,
}

impl Stream {
    /// A stream that ends after `answers` answers; with 0 it ends only by [`Stream::end`].
    pub fn new(id: u64, lifetime: Lifetime, answers: u32, bounds: &Arc<Bounds>) -> Arc<Self> {
        let state = State { first: 1, unsent: 1, answers, ..State::default() };
        Arc::new(Self { id, lifetime, bounds: Arc::clone(bounds), state: Mutex::new(state) })
    }

    /// Its bounds.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// The stream's number within its session; event ids begin with it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Says what is not an answer: a notification or a question. `progress` is the token of a progress notification.
    pub fn say(&self, frame: Bytes, progress: Option<Bytes>) -> Result<(), Refused> {
        let mut state = self.lock();
        if state.ended {
            return Err(Refused::Ended);
        }
        if !state.attached && state.answers == 0 && self.lifetime == Lifetime::Resumable {
            state.make_room(frame.len(), &self.bounds);
        }
        if state.is_full(frame.len(), &self.bounds)
            && !state.merge(progress.as_deref(), frame.len(), &self.bounds)
        {
            state.overrun = state.answers == 0 && self.lifetime == Lifetime::Resumable;
            state.end();
            return Err(Refused::Full);
        }
        state.push(Queued { frame, progress, last: false, error: None }, &self.bounds);
        Ok(())
    }

    /// Says what makes an unsent message with the same key stale: that one goes, this one comes last.
    pub fn say_latest(&self, key: Bytes, frame: Bytes) -> Result<(), Refused> {
        {
            let mut state = self.lock();
            let stale = state.stale(&key);
            state.drop_unsent(stale, &self.bounds);
        }
        self.say(frame, Some(key))
    }

    /// Gives an answer. Its place is always there: an answer is bounded where it is read.
    pub fn answer(&self, frame: Bytes) {
        self.answer_with(frame, None);
    }

    /// Gives an answer that is an error of this code.
    pub fn answer_with(&self, frame: Bytes, error: Option<i64>) {
        let mut state = self.lock();
        if state.ended {
            return;
        }
        let last = state.answers == 1;
        state.answers = state.answers.saturating_sub(1);
        state.push(Queued { frame, progress: None, last, error }, &self.bounds);
        state.ended = last;
    }

    /// Counts an answer that will not come.
    pub fn skip(&self) {
        let mut state = self.lock();
        if state.answers == 1 {
            state.end();
        }
        state.answers = state.answers.saturating_sub(1);
    }

    /// Ends the stream after what is queued.
    pub fn end(&self) {
        let mut state = self.lock();
        state.overrun = false;
        state.end();
    }

    /// Whether nothing more will be said.
    pub fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// Whether a reader is attached.
    pub fn is_attached(&self) -> bool {
        self.lock().attached
    }

    /// Attaches a reader to what comes after message `after`, or to all that nobody has been given. An earlier
    /// reader is put off. `None` if messages after `after` are no longer kept.
    pub fn read(self: &Arc<Self>, after: Option<u64>) -> Option<Reader> {
        let mut state = self.lock();
        let next = after.map_or(state.unsent, |number| number.saturating_add(1));
        if next < state.first || next > state.next() {
            return None;
        }
        state.recover();
        state.reader += 1;
        state.attached = true;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
        Some(Reader { stream: Arc::clone(self), generation: state.reader, next })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn next(&self) -> u64 {
        self.first + self.queue.len() as u64
    }

    fn unsent_messages(&self) -> usize {
        usize::try_from(self.next().saturating_sub(self.unsent)).unwrap_or(usize::MAX)
    }

    fn is_full(&self, more: usize, bounds: &Bounds) -> bool {
        self.unsent_messages() >= bounds.unsent_messages_max
            || self.unsent_bytes.saturating_add(more) > bounds.unsent_bytes_max
            || !bounds.held.has_room(more)
    }

    /// Drops an unsent message with the same key, so that the new one may take its room.
    fn merge(&mut self, key: Option<&[u8]>, more: usize, bounds: &Bounds) -> bool {
        let stale = key.and_then(|key| self.stale(key));
        self.drop_unsent(stale, bounds) && !self.is_full(more, bounds)
    }

    /// Where an unsent message with this key lies.
    fn stale(&self, key: &[u8]) -> Option<usize> {
        let sent = self.queue.len().saturating_sub(self.unsent_messages());
        let at = self.queue.iter().skip(sent).position(|queued| queued.progress.as_deref() == Some(key))?;
        Some(sent + at)
    }

    fn drop_unsent(&mut self, at: Option<usize>, bounds: &Bounds) -> bool {
        let Some(queued) = at.and_then(|at| self.queue.remove(at)) else { return false };
        self.unsent_bytes = self.unsent_bytes.saturating_sub(queued.frame.len());
        bounds.held.remove(queued.frame.len());
        true
    }

    /// Keeps what waits for a reader that may never come within the bounds of a replay: the oldest goes.
    fn make_room(&mut self, more: usize, bounds: &Bounds) {
        while self.unsent_messages() >= bounds.replay_messages_max
            || (self.unsent_bytes.saturating_add(more) > bounds.replay_bytes_max
                && self.unsent_messages() > 0)
        {
            let oldest = self.queue.len().saturating_sub(self.unsent_messages());
            if !self.drop_unsent(Some(oldest), bounds) {
                break;
            }
            tracing::debug!("nobody reads a session's stream: its oldest message was dropped");
        }
    }

    fn push(&mut self, queued: Queued, bounds: &Bounds) {
        bounds.held.add(queued.frame.len());
        self.unsent_bytes = self.unsent_bytes.saturating_add(queued.frame.len());
        self.queue.push_back(queued);
        self.wake();
    }

    fn end(&mut self) {
        self.ended = true;
        self.wake();
    }

    /// The reader that was too slow is gone: the next one finds the stream open again.
    fn recover(&mut self) {
        if std::mem::take(&mut self.overrun) {
            self.ended = false;
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn take(&mut self, number: u64, keep: bool, bounds: &Bounds) -> Option<Item> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let queued = self.queue.get(at)?;
        let item = Item { number, frame: queued.frame.clone(), last: queued.last, error: queued.error };
        if number >= self.unsent {
            self.unsent = number + 1;
            self.unsent_bytes = self.unsent_bytes.saturating_sub(item.frame.len());
            self.sent_bytes = self.sent_bytes.saturating_add(item.frame.len());
        }
        self.forget(keep, bounds);
        Some(item)
    }

    fn forget(&mut self, keep: bool, bounds: &Bounds) {
        let messages = if keep { bounds.replay_messages_max } else { 0 };
        let bytes = if keep { bounds.replay_bytes_max } else { 0 };
        while self.first < self.unsent {
            let sent = self.unsent - self.first;
            if sent <= messages as u64 && self.sent_bytes <= bytes {
                break;
            }
            let Some(gone) = self.queue.pop_front() else { break };
            self.sent_bytes = self.sent_bytes.saturating_sub(gone.frame.len());
            bounds.held.remove(gone.frame.len());
            self.first += 1;
        }
        if self.queue.is_empty() {
            self.queue.shrink_to(0);
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        self.bounds.held.remove(state.queue.iter().map(|queued| queued.frame.len()).sum());
    }
}

/// The one who reads a stream now.
#[derive(Debug)]
pub struct Reader {
    stream: Arc<Stream>,
    generation: u64,
    next: u64,
}

impl Reader {
    /// The stream that is read.
    pub fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    /// The next message; `None` when the stream has ended or another reader has taken over.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        let mut state = self.stream.lock();
        if state.reader != self.generation {
            return Poll::Ready(None);
        }
        let keep = self.stream.lifetime == Lifetime::Resumable;
        if let Some(item) = state.take(self.next, keep, &self.stream.bounds) {
            self.next = item.number + 1;
            return Poll::Ready(Some(item));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        match &state.waker {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            _ => state.waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// The next message, as a future.
    pub async fn next(&mut self) -> Option<Item> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The next message if it is there already.
    pub fn try_next(&mut self) -> Option<Item> {
        match self.poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(item) => item,
            Poll::Pending => None,
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.stream.lock();
        if state.reader != self.generation {
            return;
        }
        state.attached = false;
        state.waker = None;
        state.recover();
        if self.stream.lifetime == Lifetime::Reader {
            state.end();
        }
    }
}

#[cfg(test)]
mod tests;
