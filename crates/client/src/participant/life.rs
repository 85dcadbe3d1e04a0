//! The life of a participant's connection: reading, writing, and dialling again when it breaks.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::backoff::Backoff;
use super::dial::{Socket, dial};
use super::error::ConnectError;
use super::shared::{Shared, Standing, chance};
use super::spec::ParticipantSpec;

/// Envelopes that may wait to be written.
pub const QUEUE_MAX: usize = 1024;
/// Silence after which a sign of life is asked for; after as much again the connection counts as broken.
const SILENCE: Duration = Duration::from_secs(45);
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);
/// The close code of a gateway when another connection of the same participant took over.
const REPLACED: u16 = 4001;

/// Lives on this socket, and on others after it, until `stop` or a final refusal.
pub(super) async fn live(
    shared: Arc<Shared>,
    spec: ParticipantSpec,
    first: Socket,
    mut stop: watch::Receiver<bool>,
) {
    let mut socket = Some(first);
    let mut backoff = Backoff::default();
    loop {
        let why = match socket.take() {
            Some(socket) => connection(&shared, &spec, socket, stop.clone()).await,
            None => match stoppable(&mut stop, dial(&spec)).await {
                Some(Ok(dialled)) => {
                    socket = Some(dialled);
                    continue;
                }
                Some(Err(why)) => why,
                None => ConnectError::Closed,
            },
        };
        if *shared.standing.borrow() == Standing::Here {
            backoff.reset();
        }
        let is_final = !why.may_pass();
        shared.lost(&why, is_final);
        let wait = backoff.next(u32::try_from(chance() >> 32).unwrap_or_default());
        if is_final {
            return;
        }
        if stoppable(&mut stop, sleep(wait)).await.is_none() {
            return shared.lost(&ConnectError::Closed, true);
        }
    }
}

/// Waits for this, unless the participant is to stop.
async fn stoppable<T>(stop: &mut watch::Receiver<bool>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        done = work => Some(done),
        () = stopped(stop) => None,
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Whoever could say it being gone means the same.
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn connection(
    shared: &Arc<Shared>,
    spec: &ParticipantSpec,
    socket: Socket,
    stop: watch::Receiver<bool>,
) -> ConnectError {
    let (sink, stream) = socket.split();
    let (out, queue) = mpsc::channel(QUEUE_MAX);
    let (ping, pings) = mpsc::channel(1);
    shared.connected(out);
    let welcome = async {
        let mut standing = shared.standing.subscribe();
        let here = standing.wait_for(|standing| *standing == Standing::Here);
        if timeout(spec.connect_timeout, here).await.is_ok() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        why = read(shared, stream, ping) => why,
        why = write(sink, queue, pings, stop) => why,
        () = welcome => ConnectError::Broken("no welcome came in time".to_owned()),
    }
}

async fn read(shared: &Arc<Shared>, mut stream: SplitStream<Socket>, ping: mpsc::Sender<()>) -> ConnectError {
    let broken = |why: String| ConnectError::Broken(why);
    let mut silent = false;
    loop {
        match timeout(SILENCE, stream.next()).await {
            Ok(Some(Ok(Message::Text(text)))) => shared.hear(Bytes::from(text)),
            Ok(Some(Ok(Message::Close(frame)))) => return closed(frame),
            Ok(Some(Ok(_))) => {}
            Ok(Some(Err(error))) => return broken(error.to_string()),
            Ok(None) => return broken("the connection ended".to_owned()),
            Err(_) if silent => return broken("nothing was heard any more".to_owned()),
            Err(_) => {
                silent = true;
                // A ping that waits already will do.
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
        Some(frame) => ConnectError::Broken(format!("{} ({})", frame.reason, u16::from(frame.code))),
        None => ConnectError::Broken("the gateway closed the connection".to_owned()),
    }
}

async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut queue: mpsc::Receiver<Bytes>,
    mut pings: mpsc::Receiver<()>,
    mut stop: watch::Receiver<bool>,
) -> ConnectError {
    loop {
        let sent = tokio::select! {
            biased;
            () = stopped(&mut stop) => {
                goodbye(sink, queue).await;
                return ConnectError::Closed;
            }
            Some(()) = pings.recv() => sink.send(Message::Ping(Bytes::new())).await,
            Some(envelope) = queue.recv() => feed(&mut sink, envelope, &mut queue).await,
            else => return ConnectError::Closed,
        };
        if let Err(error) = sent {
            return ConnectError::Broken(error.to_string());
        }
    }
}

type Sent = Result<(), tokio_tungstenite::tungstenite::Error>;

/// Writes this and whatever waits behind it, then flushes once.
async fn feed(
    sink: &mut SplitSink<Socket, Message>,
    first: Bytes,
    queue: &mut mpsc::Receiver<Bytes>,
) -> Sent {
    let mut next = Some(first);
    while let Some(envelope) = next {
        if let Ok(text) = Utf8Bytes::try_from(envelope) {
            sink.feed(Message::Text(text)).await?;
        }
        next = queue.try_recv().ok();
    }
    sink.flush().await
}

/// Says what was still to be said, and closes.
async fn goodbye(mut sink: SplitSink<Socket, Message>, mut queue: mpsc::Receiver<Bytes>) {
    let leave = async {
        if let Ok(last) = queue.try_recv() {
            feed(&mut sink, last, &mut queue).await?;
        }
        sink.close().await
    };
    // It leaves in any case.
    let _ = timeout(GOODBYE, leave).await;
}
