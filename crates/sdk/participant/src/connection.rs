//! Connection of a participant: dialing a gateway (MCPx v0.1, section 6.2), reading, writing, and
//! reconnecting when the connection breaks, after waits that grow.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use http::header::AUTHORIZATION;
use http::{StatusCode, Uri};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{
    Error, Message, Utf8Bytes, client::IntoClientRequest, http::Response,
};

use crate::dial::{self, Socket};
use crate::error::ConnectError;
use crate::protocol::Cursor;
use crate::shared::{ConnectionState, Shared, random_u64};
use crate::spec::{FRAME_BYTES_MAX, ParticipantSpec};

/// Envelopes that may wait to be written.
pub const SEND_QUEUE_MAX: usize = 1024;
/// Silence after which a ping is sent. After the same time again the connection counts as broken.
const SILENCE: Duration = Duration::from_secs(45);
/// How long closing may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The gateway's close code when another connection of the same participant took over.
const REPLACED: u16 = 4001;

/// Keeps the participant connected, first over this socket, until `stop` is set or an attempt fails
/// for good.
pub(crate) async fn run(shared: Arc<Shared>, first: WebSocket, mut stop: watch::Receiver<bool>) {
    let mut socket = Some(first);
    let mut backoff = Backoff::default();
    loop {
        let why = match socket.take() {
            Some(socket) => connection(&shared, socket, stop.clone()).await,
            None => match unless_stopped(&mut stop, dial_again(&shared)).await {
                Some(Ok(dialed)) => {
                    socket = Some(dialed);
                    continue;
                }
                Some(Err(why)) => why,
                None => ConnectError::Closed,
            },
        };
        if *shared.state.borrow() == ConnectionState::Connected {
            backoff.reset();
        }
        let is_final = !why.is_transient();
        shared.disconnected(&why, is_final);
        let wait = backoff.next(u32::try_from(random_u64() >> 32).unwrap_or_default());
        if is_final {
            return;
        }
        if unless_stopped(&mut stop, sleep(wait)).await.is_none() {
            return shared.disconnected(&ConnectError::Closed, true);
        }
    }
}

/// Waits for this; `None` when the participant is to stop first.
async fn unless_stopped<T>(
    stop: &mut watch::Receiver<bool>,
    work: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        done = work => Some(done),
        () = stopped(stop) => None,
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that every handle is dropped, which stops the participant too.
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn connection(
    shared: &Arc<Shared>,
    socket: WebSocket,
    stop: watch::Receiver<bool>,
) -> ConnectError {
    let (sink, stream) = socket.split();
    let (outgoing, queue) = mpsc::channel(SEND_QUEUE_MAX);
    let (ping, pings) = mpsc::channel(1);
    shared.connected(outgoing);
    let welcome_is_late = async {
        let mut state = shared.state.subscribe();
        let connected = state.wait_for(|state| *state == ConnectionState::Connected);
        if timeout(shared.spec.connect_timeout, connected)
            .await
            .is_ok()
        {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        why = read(shared, stream, ping) => why,
        why = write(sink, queue, pings, stop) => why,
        () = welcome_is_late => ConnectError::Broken("no welcome in time".to_owned()),
    }
}

async fn read(
    shared: &Arc<Shared>,
    mut stream: SplitStream<WebSocket>,
    ping: mpsc::Sender<()>,
) -> ConnectError {
    let broken = |why: String| ConnectError::Broken(why);
    let mut silent = false;
    loop {
        match timeout(SILENCE, stream.next()).await {
            Ok(Some(Ok(Message::Text(text)))) => shared.receive(Bytes::from(text)),
            Ok(Some(Ok(Message::Close(frame)))) => return closed(frame),
            Ok(Some(Ok(_))) => {}
            Ok(Some(Err(error))) => return broken(error.to_string()),
            Ok(None) => return broken("the connection ended".to_owned()),
            Err(_) if silent => return broken("the gateway is silent".to_owned()),
            Err(_) => {
                silent = true;
                // One ping that waits is enough.
                let _ = ping.try_send(());
                continue;
            }
        }
        silent = false;
    }
}

fn closed(frame: Option<CloseFrame>) -> ConnectError {
    match frame {
        Some(frame) if u16::from(frame.code) == REPLACED => ConnectError::Replaced,
        Some(frame) => {
            ConnectError::Broken(format!("{} ({})", frame.reason, u16::from(frame.code)))
        }
        None => ConnectError::Broken("the gateway closed the connection".to_owned()),
    }
}

async fn write(
    mut sink: SplitSink<WebSocket, Message>,
    mut queue: mpsc::Receiver<Bytes>,
    mut pings: mpsc::Receiver<()>,
    mut stop: watch::Receiver<bool>,
) -> ConnectError {
    loop {
        let sent = tokio::select! {
            biased;
            () = stopped(&mut stop) => {
                close(sink, queue).await;
                return ConnectError::Closed;
            }
            Some(()) = pings.recv() => sink.send(Message::Ping(Bytes::new())).await,
            Some(envelope) = queue.recv() => write_all(&mut sink, envelope, &mut queue).await,
            else => return ConnectError::Closed,
        };
        if let Err(error) = sent {
            return ConnectError::Broken(error.to_string());
        }
    }
}

/// Writes this envelope and those that wait behind it, then flushes once.
async fn write_all(
    sink: &mut SplitSink<WebSocket, Message>,
    first: Bytes,
    queue: &mut mpsc::Receiver<Bytes>,
) -> Result<(), Error> {
    let mut next = Some(first);
    while let Some(envelope) = next {
        if let Ok(text) = Utf8Bytes::try_from(envelope) {
            sink.feed(Message::Text(text)).await?;
        }
        next = queue.try_recv().ok();
    }
    sink.flush().await
}

/// Writes the waiting envelopes and closes the connection.
async fn close(mut sink: SplitSink<WebSocket, Message>, mut queue: mpsc::Receiver<Bytes>) {
    let close = async {
        if let Ok(last) = queue.try_recv() {
            write_all(&mut sink, last, &mut queue).await?;
        }
        sink.close().await
    };
    // The connection is dropped in any case.
    let _ = timeout(CLOSE_TIMEOUT, close).await;
}

/// The first wait, at most.
const FIRST: Duration = Duration::from_millis(250);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(30);

/// Waits that double up to a limit. Each is shortened at random, to half of it at most, so that
/// many participants do not reconnect at once.
#[derive(Debug, Default)]
struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// The next wait. `random` is any random number.
    fn next(&mut self, random: u32) -> Duration {
        let whole = FIRST
            .saturating_mul(1 << self.attempts.min(16))
            .min(LONGEST);
        self.attempts = self.attempts.saturating_add(1);
        whole / 2 + (whole / 2).mul_f64(f64::from(random) / f64::from(u32::MAX))
    }

    /// Makes the next wait short again, after a success.
    fn reset(&mut self) {
        self.attempts = 0;
    }
}

/// Characters of a gateway's explanation that are kept.
const MESSAGE_CHARS: usize = 300;

/// A WebSocket after its handshake.
type WebSocket = WebSocketStream<Box<dyn Socket>>;

/// Dials once, for the first time.
pub(crate) async fn dial(spec: &ParticipantSpec) -> Result<WebSocket, ConnectError> {
    dial_since(spec, spec.since).await
}

/// Dials once, and asks for the envelopes since the latest connect.
async fn dial_again(shared: &Shared) -> Result<WebSocket, ConnectError> {
    let since = shared.protocol.lock().cursor;
    dial_since(&shared.spec, since).await
}

async fn dial_since(
    spec: &ParticipantSpec,
    since: Option<Cursor>,
) -> Result<WebSocket, ConnectError> {
    let address = spec.address(since)?;
    let dialed = timeout(spec.connect_timeout, open(spec, &address));
    dialed.await.unwrap_or_else(|_| {
        Err(ConnectError::Unreachable(
            "connecting took too long".to_owned(),
        ))
    })
}

async fn open(spec: &ParticipantSpec, address: &Uri) -> Result<WebSocket, ConnectError> {
    let dialed = dial::connect(address, &spec.tls).await;
    let socket = dialed.map_err(|why| ConnectError::Unreachable(why.to_string()))?;
    let mut request = address
        .clone()
        .into_client_request()
        .map_err(|_| ConnectError::BadUrl("it cannot be written as a request"))?;
    if let Some(bearer) = spec.bearer()? {
        request.headers_mut().insert(AUTHORIZATION, bearer);
    }
    let config = WebSocketConfig::default()
        .max_message_size(Some(FRAME_BYTES_MAX))
        .max_frame_size(Some(FRAME_BYTES_MAX));
    match tokio_tungstenite::client_async_with_config(request, socket, Some(config)).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) => Err(refused(*response)),
        Err(error) => Err(ConnectError::Unreachable(error.to_string())),
    }
}

fn refused(response: Response<Option<Vec<u8>>>) -> ConnectError {
    let (head, body) = response.into_parts();
    let body = Bytes::from(body.unwrap_or_default());
    let message: String = String::from_utf8_lossy(&body)
        .trim()
        .chars()
        .take(MESSAGE_CHARS)
        .collect();
    match head.status {
        StatusCode::UNAUTHORIZED => ConnectError::Unauthenticated(message),
        StatusCode::FORBIDDEN => ConnectError::Forbidden(message),
        status => ConnectError::Http {
            status: status.as_u16(),
            message,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_vary() {
        let mut backoff = Backoff::default();
        for ms in [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000] {
            let attempts = backoff.attempts;
            assert_eq!(backoff.next(u32::MAX), Duration::from_millis(ms));
            assert_eq!(Backoff { attempts }.next(0), Duration::from_millis(ms) / 2);
        }
        backoff.attempts = u32::MAX;
        assert_eq!(backoff.next(u32::MAX), LONGEST);
        backoff.reset();
        assert_eq!(backoff.next(u32::MAX), FIRST);
    }
}
