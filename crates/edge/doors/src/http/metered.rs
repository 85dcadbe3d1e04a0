//! Bodies and connections of senders that are not known yet, bounded and on an account.
//!
//! A byte that arrives before its sender has shown who it is stands on the account of its address:
//! handshakes, heads and first frames that are not whole, forms of people who sign in, questions of
//! gRPC clients, and everything that a connection of HTTP/2 sends.

use std::future::Future as _;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use control::Registry;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use platform::{Share, Taken};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};
use tonic::Status;

use super::connection::{Client, Connection};
use super::handover::Watch;
use super::places::network;

/// Bytes of one connection of HTTP/2 that are on no account: a head with a token.
const FREE_BYTES: usize = 4 * 1024;
/// Bytes that a connection of HTTP/2 may send before its sender is known. After half of them its
/// client is asked to begin anew.
const NEWCOMER_BYTES_MAX: usize = 48 * 1024;
/// Time that a connection that has sent too much goes on, so that what was answered can be written.
const LAST_WRITE: Duration = Duration::from_secs(5);
/// Time that the gateway may take to find out whose a request is, before its client is asked to
/// begin anew.
const INTRODUCTION: Duration = Duration::from_secs(1);
/// First wait of a connection that has sent much, until it is looked whether its sender is known.
/// It doubles.
const LOOK: Duration = Duration::from_millis(5);
/// Bytes that a request takes of its address's account while it waits for more of its sender, or
/// has an answer without an end: its task and its stream.
const REQUEST_BYTES: usize = 8 * 1024;
/// Bytes that a client may send to health or reflection in one stream.
const QUESTIONS_BYTES_MAX: usize = 16 * 1024;
/// Time that a client may take for its questions to health or reflection.
const QUESTIONS_WAIT: Duration = Duration::from_secs(60);

impl Connection {
    /// The account of what this client sends while it is not known.
    pub(super) fn newcomer(&self) -> Arc<Share> {
        account_of(&self.links.registry, self.peer)
    }

    /// The place of a request of this client while it is not known; `None` if its address has too
    /// many that wait.
    pub(super) fn place(&self) -> Option<Taken> {
        place_on(&self.newcomer())
    }
}

impl Watch for Connection {
    fn written(&self) {
        self.handover.written();
    }

    fn read(&self, bytes: usize) -> bool {
        self.unfinished
            .grow(bytes, || (!self.client.is_known()).then(|| self.newcomer()))
    }
}

/// The account of an address whose sender is not known.
pub(super) fn account_of(registry: &Registry, peer: Option<IpAddr>) -> Arc<Share> {
    let address = peer
        .map(|peer| network(peer).to_string())
        .unwrap_or_default();
    registry.newcomers.of(&address)
}

/// The place of a request on the account of its address.
pub(super) fn place_on(account: &Arc<Share>) -> Option<Taken> {
    account.take(REQUEST_BYTES).ok()
}

/// The body of a response that keeps the place of its request.
pub(super) struct Placed {
    /// The body.
    pub(super) body: axum::body::Body,
    /// The place, given back with the body.
    pub(super) _place: Taken,
}

impl http_body::Body for Placed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Input of a connection of HTTP/2. Until its sender is known, its bytes are bounded and on an
/// account.
pub(super) struct Metered<R> {
    inner: R,
    client: Arc<Client>,
    account: Arc<Share>,
    taken: Option<Taken>,
    bytes: usize,
    is_known: bool,
    stopped: Option<Stopped>,
    meter: Arc<Meter>,
}

/// A connection that has sent too much, and is read no more unless its sender becomes known.
struct Stopped {
    look: Pin<Box<Sleep>>,
    wait: Duration,
    until: Instant,
}

/// Progress of a connection, as its input is metered.
#[derive(Default)]
pub(super) struct Meter(OnceLock<Instant>);

impl Meter {
    /// Whether a client that is not known has sent so much that it should begin anew, with another
    /// connection.
    pub(super) fn asks_anew(&self, client: &Client) -> bool {
        self.0
            .get()
            .is_some_and(|since| since.elapsed() > INTRODUCTION)
            && !client.is_known()
    }
}

impl<R> Metered<R> {
    /// With a meter that says when the client should begin anew.
    pub(super) fn new(inner: R, connection: &Connection) -> (Self, Arc<Meter>) {
        let client = Arc::clone(&connection.client);
        let account = connection.newcomer();
        let meter = Arc::<Meter>::default();
        let kept = Arc::clone(&meter);
        let taken = None;
        let stopped = None;
        (
            Self {
                inner,
                client,
                account,
                taken,
                bytes: 0,
                is_known: false,
                stopped,
                meter,
            },
            kept,
        )
    }

    /// Counts what was read; false if nothing more may be.
    fn count(&mut self, more: usize) -> bool {
        self.bytes = self.bytes.saturating_add(more);
        if self.bytes > NEWCOMER_BYTES_MAX / 2 {
            self.meter.0.get_or_init(Instant::now);
        }
        if self.bytes <= FREE_BYTES {
            return true;
        }
        let is_taken = match &mut self.taken {
            Some(taken) => taken.grow(more).is_ok(),
            None => self
                .account
                .take(more)
                .map(|taken| self.taken = Some(taken))
                .is_ok(),
        };
        is_taken && self.bytes < NEWCOMER_BYTES_MAX
    }
}

impl Stopped {
    fn new() -> Self {
        Self {
            look: Box::pin(sleep(LOOK)),
            wait: LOOK,
            until: Instant::now() + LAST_WRITE,
        }
    }

    /// Ready when the connection ends.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        while self.look.as_mut().poll(cx).is_ready() {
            if Instant::now() >= self.until {
                return Poll::Ready(io::Error::other(
                    "a sender that is not known has sent too much",
                ));
            }
            self.wait = self.wait.saturating_mul(2);
            self.look.as_mut().reset(Instant::now() + self.wait);
        }
        Poll::Pending
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Metered<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        if !me.is_known && me.client.is_known() {
            (me.is_known, me.taken, me.stopped) = (true, None, None);
        }
        if let Some(stopped) = &mut me.stopped {
            return stopped.poll_end(cx).map(Err);
        }
        if me.is_known {
            return Pin::new(&mut me.inner).poll_read(cx, buffer);
        }
        // In small parts, so that little has been read when the account is full.
        let room = buffer.remaining().min(FREE_BYTES);
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(room));
        ready!(Pin::new(&mut me.inner).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        buffer.advance(read);
        if !me.count(read) {
            me.stopped = Some(Stopped::new());
        }
        Poll::Ready(Ok(()))
    }
}

/// Questions of a client to services that anybody may ask: bounded, in time, and on an account.
pub(super) struct Questions {
    body: Incoming,
    account: Arc<Share>,
    taken: Option<Taken>,
    bytes: usize,
    end: Option<Pin<Box<Sleep>>>,
}

impl Questions {
    /// The questions in the body of a request.
    pub(super) fn new(body: Incoming, connection: &Connection) -> Self {
        Self {
            body,
            account: connection.newcomer(),
            taken: None,
            bytes: 0,
            end: None,
        }
    }

    fn count(&mut self, more: usize) -> Result<(), Status> {
        self.bytes = self.bytes.saturating_add(more);
        if self.bytes > QUESTIONS_BYTES_MAX {
            return Err(Status::resource_exhausted(
                "these are too many questions: ask the rest anew",
            ));
        }
        let grown = match &mut self.taken {
            Some(taken) => taken.grow(more),
            None => self
                .account
                .take(more)
                .map(|taken| self.taken = Some(taken)),
        };
        grown.map_err(|_| Status::resource_exhausted("too many questions of your address wait"))
    }
}

impl http_body::Body for Questions {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let me = self.get_mut();
        match Pin::new(&mut me.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let counted = me.count(frame.data_ref().map_or(0, Bytes::len));
                Poll::Ready(Some(counted.map(|()| frame)))
            }
            Poll::Ready(Some(Err(_))) => {
                Poll::Ready(Some(Err(Status::cancelled("the questions broke off"))))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => {
                let end = me
                    .end
                    .get_or_insert_with(|| Box::pin(sleep(QUESTIONS_WAIT)));
                ready!(end.as_mut().poll(cx));
                Poll::Ready(Some(Err(Status::deadline_exceeded(
                    "the questions took too long",
                ))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
