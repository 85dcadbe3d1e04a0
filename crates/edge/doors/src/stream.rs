//! Message stream of one reader: order, bounds, resumption.
//!
//! A writer never waits. A reader may leave and, on a resumable stream, come back for what it
//! missed.

mod silence;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use control::Bounds;
use platform::{Mutex, MutexGuard};
use silence::Silence;

/// Lifetime of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// It outlasts its reader, and a later reader resumes it (legacy HTTP).
    Resumable,
    /// It ends with its reader (modern HTTP, the 2024-11-05 pair, pipes).
    Reader,
}

/// Why a message was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsent {
    /// The stream's bound is reached: its reader is too slow. The stream has been ended; a
    /// resumable one that no answer ends is open again for the next reader.
    Full,
    /// The session has too many streams to open one for this request.
    NoStream,
    /// The stream has ended.
    Ended,
}

/// One message of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamItem {
    /// Its number in the stream, from 1.
    pub(crate) number: u64,
    /// The JSON-RPC message.
    pub(crate) frame: Bytes,
    /// Whether it is the stream's last message.
    pub(crate) last: bool,
    /// The code of an error.
    pub(crate) error: Option<i64>,
}

#[derive(Debug)]
struct Queued {
    frame: Bytes,
    /// A later message with the same key makes this one stale: a progress token, a resource, the
    /// name of a list.
    latest: Option<Bytes>,
    last: bool,
    error: Option<i64>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Queued>,
    /// Number of the first message in `queue`.
    first: u64,
    /// Number of the next message that no reader has read.
    unsent: u64,
    unsent_bytes: usize,
    sent_bytes: usize,
    /// Answers that are due before the stream ends; 0 for streams that no answer ends.
    answers: u32,
    /// Answers of requests that came by a pipe, which it must have before it is ended.
    owed: usize,
    ended: bool,
    /// It has ended for its present reader only, which is too slow. Only streams that no answer
    /// ends.
    overrun: bool,
    reader: u64,
    attached: bool,
    silence: Silence,
    waker: Option<Waker>,
}

/// A bounded, ordered stream of JSON-RPC messages to one reader.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Its number within its session; event ids begin with it.
    pub(crate) id: u64,
    lifetime: Lifetime,
    /// Its bounds.
    pub(crate) bounds: Bounds,
    state: Mutex<State>,
}

impl Stream {
    /// A stream that ends after `answers` answers; with 0 it ends only by [`Stream::end`].
    pub(crate) fn new(id: u64, lifetime: Lifetime, answers: u32, bounds: &Bounds) -> Arc<Self> {
        let state = State {
            first: 1,
            unsent: 1,
            answers,
            ..State::default()
        };
        Arc::new(Self {
            id,
            lifetime,
            bounds: bounds.clone(),
            state: Mutex::new(state),
        })
    }

    /// Queues a notification or a question. `latest` is what makes an older message stale if the
    /// stream is full.
    ///
    /// # Errors
    /// Why it was not queued.
    pub(crate) fn send(&self, frame: Bytes, latest: Option<Bytes>) -> Result<(), Unsent> {
        let mut state = self.lock();
        if state.ended {
            return Err(Unsent::Ended);
        }
        if !state.attached && state.answers == 0 && self.lifetime == Lifetime::Resumable {
            state.make_room(frame.len(), &self.bounds);
        }
        if state.is_full(frame.len(), &self.bounds)
            && !state.merge(latest.as_deref(), frame.len(), &self.bounds)
        {
            state.overrun = state.answers == 0 && self.lifetime == Lifetime::Resumable;
            state.end();
            return Err(Unsent::Full);
        }
        state.push(
            Queued {
                frame,
                latest,
                last: false,
                error: None,
            },
            &self.bounds,
        );
        Ok(())
    }

    /// Queues a message in place of an unsent one with the same key.
    ///
    /// # Errors
    /// Why it was not queued.
    pub(crate) fn send_latest(&self, key: Bytes, frame: Bytes) -> Result<(), Unsent> {
        {
            let mut state = self.lock();
            let stale = state.stale(&key);
            state.drop_unsent(stale, &self.bounds);
        }
        self.send(frame, Some(key))
    }

    /// Queues an answer. It always has room, because answers are bounded where they are read.
    pub(crate) fn answer(&self, frame: Bytes) {
        self.answer_with(frame, None);
    }

    /// Queues an answer that is an error of this code.
    pub(crate) fn answer_with(&self, frame: Bytes, error: Option<i64>) {
        let mut state = self.lock();
        if state.ended {
            return;
        }
        let last = state.answers == 1;
        state.answers = state.answers.saturating_sub(1);
        state.push(
            Queued {
                frame,
                latest: None,
                last,
                error,
            },
            &self.bounds,
        );
        state.ended = last;
    }

    /// Counts an answer that will not come.
    pub(crate) fn skip(&self) {
        let mut state = self.lock();
        if state.answers == 1 {
            state.end();
        }
        state.answers = state.answers.saturating_sub(1);
    }

    /// Counts an answer that a request on a pipe will have.
    pub(crate) fn owe(&self) {
        self.lock().owed += 1;
    }

    /// Counts that an owed answer is queued, or will not come.
    pub(crate) fn settle_owed(&self) {
        let mut state = self.lock();
        state.owed = state.owed.saturating_sub(1);
    }

    /// Whether an owed answer is not queued yet.
    pub(crate) fn is_owing(&self) -> bool {
        self.lock().owed > 0
    }

    /// Ends the stream after the queued messages.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.overrun = false;
        state.end();
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// Whether a reader is attached.
    pub(crate) fn is_attached(&self) -> bool {
        self.lock().attached
    }

    /// Whether it has had readers, and none is attached now.
    pub(crate) fn was_left(&self) -> bool {
        let state = self.lock();
        state.reader > 0 && !state.attached
    }

    /// Attaches a reader, to the messages after number `after` or to all that no reader has read.
    /// An earlier reader is detached. `None` if messages after `after` are no longer kept.
    pub(crate) fn read(self: &Arc<Self>, after: Option<u64>) -> Option<Reader> {
        let mut state = self.lock();
        let next = after.map_or(state.unsent, |number| number.saturating_add(1));
        if next < state.first || next > state.next() {
            return None;
        }
        state.recover();
        state.reader += 1;
        state.attached = true;
        state.wake();
        Some(Reader {
            stream: Arc::clone(self),
            generation: state.reader,
            next,
        })
    }

    /// Begins to watch for silence; false if it is watched already.
    pub(crate) fn begin_watch(&self) -> bool {
        self.lock().silence.watch()
    }

    /// Looks whether the stream is silent, and wakes its reader if it was for two looks. False, and
    /// no look follows, if it has no reader.
    pub(crate) fn watch(&self) -> bool {
        let mut state = self.lock();
        if !state.attached {
            state.silence.leave();
        } else if state.silence.look() {
            state.wake();
        }
        state.attached
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
        self.unsent_messages() >= bounds.limits.queue_len_max()
            || self.unsent_bytes.saturating_add(more) > bounds.unsent_bytes_max()
            || !bounds.held.has_room(more)
    }

    /// Drops an unsent message with the same key, so that the new one may take its room.
    fn merge(&mut self, key: Option<&[u8]>, more: usize, bounds: &Bounds) -> bool {
        let stale = key.and_then(|key| self.stale(key));
        self.drop_unsent(stale, bounds) && !self.is_full(more, bounds)
    }

    /// The place of an unsent message with this key.
    fn stale(&self, key: &[u8]) -> Option<usize> {
        let sent = self.queue.len().saturating_sub(self.unsent_messages());
        let at = self
            .queue
            .iter()
            .skip(sent)
            .position(|queued| queued.latest.as_deref() == Some(key))?;
        Some(sent + at)
    }

    fn drop_unsent(&mut self, at: Option<usize>, bounds: &Bounds) -> bool {
        let Some(queued) = at.and_then(|at| self.queue.remove(at)) else {
            return false;
        };
        self.unsent_bytes = self.unsent_bytes.saturating_sub(queued.frame.len());
        bounds.held.remove(queued.frame.len());
        true
    }

    /// Keeps messages that wait for a reader which may never come within the bounds of a replay:
    /// the oldest go.
    fn make_room(&mut self, more: usize, bounds: &Bounds) {
        while self.unsent_messages() >= bounds.limits.resume_events_max
            || (self.unsent_bytes.saturating_add(more) > bounds.limits.resume_bytes_max
                && self.unsent_messages() > 0)
        {
            let oldest = self.queue.len().saturating_sub(self.unsent_messages());
            if !self.drop_unsent(Some(oldest), bounds) {
                break;
            }
            tracing::debug!("no client reads a session's stream: its oldest message was dropped");
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

    fn take(&mut self, number: u64, keep: bool, bounds: &Bounds) -> Option<StreamItem> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let queued = self.queue.get(at)?;
        let item = StreamItem {
            number,
            frame: queued.frame.clone(),
            last: queued.last,
            error: queued.error,
        };
        if number >= self.unsent {
            self.unsent = number + 1;
            self.silence.end();
            self.unsent_bytes = self.unsent_bytes.saturating_sub(item.frame.len());
            self.sent_bytes = self.sent_bytes.saturating_add(item.frame.len());
        }
        self.forget(keep, bounds);
        Some(item)
    }

    fn forget(&mut self, keep: bool, bounds: &Bounds) {
        let messages = if keep {
            bounds.limits.resume_events_max
        } else {
            0
        };
        let bytes = if keep {
            bounds.limits.resume_bytes_max
        } else {
            0
        };
        while self.first < self.unsent {
            let sent = self.unsent - self.first;
            if sent <= messages as u64 && self.sent_bytes <= bytes {
                break;
            }
            let Some(gone) = self.queue.pop_front() else {
                break;
            };
            self.sent_bytes = self.sent_bytes.saturating_sub(gone.frame.len());
            bounds.held.remove(gone.frame.len());
            self.first += 1;
        }
        if self.queue.is_empty() {
            // A silent stream keeps no memory of its messages.
            self.queue.shrink_to(0);
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        self.bounds
            .held
            .remove(state.queue.iter().map(|queued| queued.frame.len()).sum());
    }
}

/// The present reader of a stream.
#[derive(Debug)]
pub(crate) struct Reader {
    /// The stream.
    pub(crate) stream: Arc<Stream>,
    generation: u64,
    next: u64,
}

impl Reader {
    /// The next message; `None` if the stream has ended or another reader has replaced this one.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<StreamItem>> {
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
            Some(_) | None => state.waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Function that ends this reader, and no later one.
    pub(crate) fn leaving(&self) -> impl FnOnce() + Send + use<> {
        let stream = Arc::downgrade(&self.stream);
        let generation = self.generation;
        move || {
            let Some(stream) = stream.upgrade() else {
                return;
            };
            let mut state = stream.lock();
            if state.reader == generation {
                state.reader += 1;
                state.attached = false;
                state.recover();
                state.wake();
            }
        }
    }

    /// Whether its client must get a comment, because the stream was silent for long.
    pub(crate) fn take_comment(&self) -> bool {
        self.stream.lock().silence.take_comment()
    }

    /// The next message, as a future.
    pub(crate) async fn next(&mut self) -> Option<StreamItem> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The next message if it is queued already.
    pub(crate) fn try_next(&mut self) -> Option<StreamItem> {
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
        // It would keep the memory of a task that has ended.
        state.waker = None;
        state.recover();
        if self.stream.lifetime == Lifetime::Reader {
            state.end();
        }
    }
}

#[cfg(test)]
mod tests;
