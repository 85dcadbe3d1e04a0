//! Slot of one POST: the answer in place if it comes first, else an event stream.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use control::Bounds;
use futures_util::task::AtomicWaker;
use model::{Refusal, RefusalCode};
use platform::{Mutex, MutexGuard};

use crate::reply::Sink;
use crate::sessions::Session;
use crate::stream::{Lifetime, Reader, Stream, Unsent};
use crate::unread::until_written;

/// The form of the stream that a slot opens if it needs one.
pub(crate) enum Opener {
    /// A resumable stream of a session.
    Session(Arc<Session>, u64),
    /// A stream that ends with its reader.
    Modern(Bounds),
}

/// First reply of a slot.
pub(crate) enum FirstReply {
    /// The answer, on its caller's account until it is written, and the code if it is an error.
    Answer(Bytes, Option<i64>),
    /// A stream: something else came before the answer, or the answer takes long.
    Stream(Reader),
    /// No answer follows.
    Nothing,
}

enum State {
    /// Nothing has come.
    Waiting,
    /// The answer came first.
    Answered(Bytes, Option<i64>),
    /// A stream takes everything.
    Streaming(Arc<Stream>),
    /// The answer was taken, or none will come.
    Over,
}

/// The place where the messages of one POST with one request go.
pub(crate) struct Slot {
    opener: Opener,
    state: Mutex<State>,
    /// Whether anything has come: until then a poll leaves the state alone.
    came: AtomicBool,
    waker: AtomicWaker,
    /// The refusal, if the answer is that the caller's access token has too little scope.
    lacking: OnceLock<Box<Refusal>>,
}

impl Slot {
    /// An empty slot.
    pub(crate) fn new(opener: Opener) -> Self {
        let came = AtomicBool::new(false);
        let waker = AtomicWaker::new();
        let lacking = OnceLock::new();
        Self {
            opener,
            state: Mutex::new(State::Waiting),
            came,
            waker,
            lacking,
        }
    }

    /// The refusal, if the answer in place is that the caller's access token has too little scope
    /// for the request.
    pub(crate) fn lacking(&self) -> Option<&Refusal> {
        self.lacking.get().map(|refusal| &**refusal)
    }

    /// The slot's first reply, once there is one.
    pub(crate) fn poll_first(&self, cx: &mut Context<'_>) -> Poll<FirstReply> {
        // Before the look, so that what comes after it wakes the task.
        self.waker.register(cx.waker());
        if !self.came.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        let mut state = self.state.lock();
        match &*state {
            State::Waiting => Poll::Pending,
            State::Streaming(stream) => Poll::Ready(
                stream
                    .read(None)
                    .map_or(FirstReply::Nothing, FirstReply::Stream),
            ),
            State::Answered(..) | State::Over => {
                let State::Answered(frame, error) = std::mem::replace(&mut *state, State::Over)
                else {
                    return Poll::Ready(FirstReply::Nothing);
                };
                Poll::Ready(FirstReply::Answer(frame, error))
            }
        }
    }

    /// Has a stream take everything from now on, if nothing has come. Leaves the slot as it is if
    /// there are too many streams.
    pub(crate) fn open_stream(&self) {
        let state = self.state.lock();
        if let State::Waiting = &*state
            && let Some(stream) = self.open()
        {
            self.come(state, State::Streaming(stream));
        }
    }

    /// Whether the answer has come, or none will.
    pub(crate) fn is_answered(&self) -> bool {
        match &*self.state.lock() {
            State::Waiting => false,
            State::Answered(..) | State::Over => true,
            State::Streaming(stream) => stream.has_ended(),
        }
    }

    fn open(&self) -> Option<Arc<Stream>> {
        match &self.opener {
            Opener::Session(session, now_ms) => session.open_stream(1, *now_ms),
            Opener::Modern(bounds) => Some(Stream::new(0, Lifetime::Reader, 1, bounds)),
        }
    }

    /// Ends the wait.
    fn come(&self, mut state: MutexGuard<'_, State>, what: State) {
        *state = what;
        drop(state);
        // After the state, which a poll that sees this reads.
        self.came.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl Sink for Slot {
    fn send(&self, frame: Bytes, latest: Option<Bytes>) -> Result<(), Unsent> {
        let state = self.state.lock();
        match &*state {
            State::Streaming(stream) => stream.send(frame, latest),
            State::Waiting => {
                let Some(stream) = self.open() else {
                    return Err(Unsent::NoStream);
                };
                let sent = stream.send(frame, latest);
                self.come(state, State::Streaming(stream));
                sent
            }
            State::Answered(..) | State::Over => Err(Unsent::Ended),
        }
    }

    fn answer(&self, frame: Bytes, error: Option<i64>) {
        let state = self.state.lock();
        match &*state {
            State::Streaming(stream) => stream.answer_with(frame, error),
            State::Waiting => {
                let frame = until_written(frame, &self.bounds().held);
                self.come(state, State::Answered(frame, error));
            }
            State::Answered(..) | State::Over => {}
        }
    }

    fn refused(&self, refusal: &Refusal) {
        let is_first = matches!(&*self.state.lock(), State::Waiting);
        if is_first && refusal.code == RefusalCode::InsufficientScope {
            // A request is refused once.
            let _ = self.lacking.set(Box::new(refusal.clone()));
        }
    }

    fn skip(&self) {
        let state = self.state.lock();
        match &*state {
            State::Streaming(stream) => stream.skip(),
            State::Waiting => self.come(state, State::Over),
            State::Answered(..) | State::Over => {}
        }
    }

    fn bounds(&self) -> &Bounds {
        match &self.opener {
            Opener::Session(session, _) => &session.joined.home.bounds,
            Opener::Modern(bounds) => bounds,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use platform::Shares;

    use super::*;
    use crate::unread::UNCOUNTED_BYTES_MAX;

    fn slot(held_max: usize) -> Slot {
        let held = Shares::new(held_max, held_max).of("ann");
        Slot::new(Opener::Modern(Bounds {
            limits: Arc::default(),
            held,
        }))
    }

    fn first(slot: &Slot) -> Option<FirstReply> {
        match slot.poll_first(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(first) => Some(first),
            Poll::Pending => None,
        }
    }

    #[test]
    fn an_answer_that_comes_first_is_taken_once_without_a_stream() {
        let slot = slot(1 << 20);
        assert!(first(&slot).is_none());
        slot.answer(Bytes::from_static(b"a"), Some(5));
        assert!(matches!(first(&slot), Some(FirstReply::Answer(frame, Some(5))) if frame == "a"));
        assert!(matches!(first(&slot), Some(FirstReply::Nothing)));
        assert_eq!(slot.send(Bytes::new(), None), Err(Unsent::Ended));
    }

    #[test]
    fn a_notification_that_comes_first_opens_a_stream_that_ends_with_the_answer() {
        let slot = slot(1 << 20);
        slot.send(Bytes::from_static(b"a"), None).unwrap();
        slot.answer(Bytes::from_static(b"b"), None);
        let Some(FirstReply::Stream(mut reader)) = first(&slot) else {
            panic!("there is no stream")
        };
        let items: Vec<_> = std::iter::from_fn(|| reader.try_next()).collect();
        assert_eq!(
            items
                .iter()
                .map(|item| (&*item.frame, item.last))
                .collect::<Vec<_>>(),
            [(&b"a"[..], false), (b"b", true)]
        );
    }

    #[test]
    fn an_answer_that_takes_long_comes_on_a_stream() {
        let slot = slot(1 << 20);
        slot.open_stream();
        let Some(FirstReply::Stream(mut reader)) = first(&slot) else {
            panic!("there is no stream")
        };
        assert!(reader.try_next().is_none());
        slot.answer(Bytes::from_static(b"a"), None);
        assert!(reader.try_next().is_some_and(|item| item.last));
    }

    #[test]
    fn a_call_without_an_answer_leaves_nothing() {
        let slot = slot(1 << 20);
        slot.skip();
        assert!(matches!(first(&slot), Some(FirstReply::Nothing)));
        slot.answer(Bytes::from_static(b"late"), None);
        assert!(matches!(first(&slot), Some(FirstReply::Nothing)));
    }

    #[test]
    fn a_long_answer_is_on_the_account_until_it_is_written() {
        let slot = slot(10_000);
        let held = Arc::clone(&slot.bounds().held);
        slot.answer(Bytes::from(vec![b'x'; UNCOUNTED_BYTES_MAX + 1]), None);
        assert_eq!(held.taken(), UNCOUNTED_BYTES_MAX + 1);
        let taken = first(&slot);
        assert_eq!(held.taken(), UNCOUNTED_BYTES_MAX + 1);
        let Some(FirstReply::Answer(frame, None)) = taken else {
            panic!("there is no answer")
        };
        drop(slot);
        assert_eq!(held.taken(), UNCOUNTED_BYTES_MAX + 1);
        drop(frame);
        assert_eq!(held.taken(), 0);
    }
}
