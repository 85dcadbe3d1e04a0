//! Front of a node: connections of its clients, and those that other nodes convey to it.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use node::{ConveyedEnds, NodeStanding, OtherHome, Tunnel};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, Interest, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use super::super::running::Gateway;
use super::shared::{LOOK, Shared};

/// The time that a connection waits for the cluster to have a home. A take-over is over before.
pub(super) const HOME_WAIT: Duration = Duration::from_secs(15);
/// The time that a client has to end its side, once the home has ended the other.
const LINGER: Duration = Duration::from_secs(5);
/// The pause after a connection that cannot be accepted.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// The first bytes of the methods of HTTP.
const METHODS: [&[u8; METHOD_BYTES]; 7] = [
    b"GET ", b"POST", b"PUT ", b"PATC", b"DELE", b"HEAD", b"OPTI",
];
/// So many bytes tell HTTP/1 from other protocols.
const METHOD_BYTES: usize = 4;
/// The time that a client has to begin. One that takes longer is conveyed.
const BEGIN_MAX: Duration = Duration::from_secs(30);
/// The pause between two looks at a client that has begun with fewer bytes.
const BEGIN_LOOK: Duration = Duration::from_millis(5);
/// The bytes of a request that say which page of health it is for.
const HEAD_BYTES: usize = 16;

/// Accepts connections, whenever this node runs no gateway: its gateway accepts them itself.
pub(super) async fn accept(shared: Arc<Shared>) -> Infallible {
    let places = shared.config.lock().limits.connections_max;
    let places = Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)));
    let mut gateway = shared.gateway.subscribe();
    loop {
        let at_home = gateway.borrow_and_update().clone();
        let socket = shared.socket.get().map(std::net::TcpListener::try_clone);
        let listening = match (socket, at_home) {
            (Some(Ok(socket)), Some(at_home)) => {
                at_home.listen_on(socket).map_err(|why| why.message)
            }
            (Some(Ok(socket)), None) => {
                let mut changed = gateway.clone();
                tokio::select! {
                    end = serve_all(&shared, socket, &places) => end.map_err(|why| why.to_string()),
                    _ = changed.changed() => continue,
                }
            }
            (Some(Err(why)), _) => Err(why.to_string()),
            (None, _) => Err("it does not listen".to_owned()),
        };
        if let Err(why) = listening {
            tracing::error!(why, "this node accepts no connections");
            sleep(ACCEPT_RETRY).await;
            continue;
        }
        let _ = gateway.changed().await;
    }
}

/// Serves every connection that a socket accepts.
async fn serve_all(
    shared: &Arc<Shared>,
    socket: std::net::TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    let socket = TcpListener::from_std(socket)?;
    loop {
        // It is never closed.
        let Ok(place) = Arc::clone(places).acquire_owned().await else {
            return Ok(());
        };
        match socket.accept().await {
            Ok((client, peer)) => {
                let _ = client.set_nodelay(true);
                tokio::spawn(serve(Arc::clone(shared), client, peer, place));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

/// Takes connections that other nodes convey: those for the home while this node is it, those for this
/// node while it has a branch. Others are dropped: their node conveys them to the next home.
pub(super) async fn take_conveyed(shared: Arc<Shared>) -> Infallible {
    let mut all = shared.node.conveyed();
    loop {
        let next = async { all.as_mut()?.recv().await };
        let Some(conveyed) = next.await else {
            // The node ends, and this task with it.
            return std::future::pending().await;
        };
        let ends = conveyed.ends;
        let gateway = if ends.is_for_node {
            shared.branch.lock().clone()
        } else {
            shared.gateway().filter(|_| shared.node.leads())
        };
        let Some(gateway) = gateway else {
            continue;
        };
        tokio::spawn(async move {
            if let Ok(stream) = conveyed.take().await {
                gateway.conveyed(stream, ends.client, ends.node).await;
            }
        });
    }
}

/// Serves one connection: by the branch of this node, if there is one and the client speaks HTTP/1,
/// else at the home.
async fn serve(
    shared: Arc<Shared>,
    client: TcpStream,
    peer: SocketAddr,
    place: OwnedSemaphorePermit,
) {
    let Ok(at) = client.local_addr() else {
        return;
    };
    let branch = shared.branch.lock().clone();
    // It may speak TLS since the branch has begun.
    let has_tls = shared.config.lock().doors.tls.is_some();
    if let Some(branch) = branch.filter(|_| !has_tls)
        && begins_as_http(&client).await
    {
        // The branch has places of its own.
        drop(place);
        return branch.accepted(client, peer, at).await;
    }
    let ends = ConveyedEnds {
        client: peer,
        node: at,
        is_for_node: false,
    };
    convey(&shared, client, ends).await;
}

/// Conveys one connection: to the gateway of this process, or to the home.
async fn convey(shared: &Shared, mut client: TcpStream, ends: ConveyedEnds) {
    let deadline = Instant::now() + HOME_WAIT;
    loop {
        match reach(shared, ends).await {
            Some(Reached::Own(gateway)) => {
                return gateway.conveyed(client, ends.client, ends.node).await;
            }
            Some(Reached::Other(tunnel, home)) => return carry(shared, client, tunnel, home).await,
            None => {}
        }
        let why = Absence::of(shared);
        if why.needs_a_person() || Instant::now() > deadline || asks_for_health(&client).await {
            let has_tls = shared.config.lock().doors.tls.is_some();
            // One that speaks TLS reads no plain answer.
            if !has_tls {
                refuse(&mut client, why).await;
            }
            return;
        }
        sleep(LOOK).await;
        // Only one that waited: a client may end its side with its request, and read the answer.
        if has_left(&client) {
            return tracing::trace!("a client left before there was a home");
        }
    }
}

/// The way to a home.
pub(super) enum Reached {
    /// This process is it.
    Own(Arc<Gateway>),
    /// Another node is.
    Other(Tunnel, OtherHome),
}

/// Tries once to reach the home for a connection.
pub(super) async fn reach(shared: &Shared, ends: ConveyedEnds) -> Option<Reached> {
    if let Some(gateway) = shared.gateway() {
        return Some(Reached::Own(gateway));
    }
    let home = shared.node.other_home()?;
    tokio::select! {
        conveyed = shared.node.convey(&home, ends) => match conveyed {
            Ok(tunnel) => Some(Reached::Other(tunnel, home)),
            Err(why) => {
                tracing::debug!(%why, "a connection waits for a home");
                None
            }
        },
        // One that does not answer is not waited for any longer: nothing was sent to it.
        () = moved(shared, &home) => None,
    }
}

/// Carries the bytes of a connection both ways, until it ends or another node is the home.
async fn carry(
    shared: &Shared,
    mut client: TcpStream,
    tunnel: impl AsyncRead + AsyncWrite + Unpin,
    home: OtherHome,
) {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_home, mut to_home) = tokio::io::split(tunnel);
    let there = async {
        copy(&mut from_client, &mut to_home).await?;
        to_home.shutdown().await
    };
    let back = async {
        copy(&mut from_home, &mut to_client).await?;
        to_client.shutdown().await
    };
    let mut there = std::pin::pin!(there);
    let carried = async {
        let mut back = std::pin::pin!(back);
        tokio::select! {
            there_ended = &mut there => match there_ended {
                Ok(()) => back.await,
                Err(why) => Err(why),
            },
            back_ended = &mut back => {
                back_ended?;
                timeout(LINGER, &mut there).await.unwrap_or(Ok(()))
            }
        }
    };
    tokio::select! {
        end = carried => if let Err(why) = end {
            tracing::trace!(%why, "a conveyed connection ended");
        },
        () = moved(shared, &home) => tracing::trace!("a conveyed connection ended with its home"),
    }
}

/// Waits until another home than this one has begun.
pub(super) async fn moved(shared: &Shared, home: &OtherHome) {
    let (mut homes, mut gateway) = (shared.node.other_homes(), shared.gateway.subscribe());
    tokio::select! {
        _ = homes.wait_for(|now| is_after(now.as_ref(), home)) => {}
        _ = gateway.wait_for(Option::is_some) => {}
    }
}

/// Whether another home has begun. What is known of homes may be older than the one at hand.
fn is_after(now: Option<&OtherHome>, home: &OtherHome) -> bool {
    now.is_some_and(|now| now.epoch > home.epoch)
}

/// Whether a client has ended its side: it waits for no answer any more, and what it has sent is not
/// to be carried out later.
fn has_left(client: &TcpStream) -> bool {
    let ready = client.ready(Interest::READABLE).now_or_never();
    ready.is_some_and(|ready| ready.is_ok_and(|ready| ready.is_read_closed()))
}

/// Whether a client begins with a request of HTTP/1; any other protocol is the home's.
async fn begins_as_http(client: &TcpStream) -> bool {
    let mut begin = [0; METHOD_BYTES];
    let seen = async {
        let mut pause = BEGIN_LOOK;
        loop {
            let length = client.peek(&mut begin).await.ok()?;
            let begin = begin.get(..length).unwrap_or_default();
            let may_be = METHODS.iter().any(|method| method.starts_with(begin));
            if !may_be || length == METHOD_BYTES || has_left(client) {
                return Some(may_be && length == METHOD_BYTES);
            }
            // It writes byte by byte.
            sleep(pause).await;
            pause *= 2;
        }
    };
    timeout(BEGIN_MAX, seen)
        .await
        .ok()
        .flatten()
        .unwrap_or_default()
}

/// Whether a client asks whether the gateway is healthy or ready. It learns at once that there is
/// none, so that a balancer chooses another node.
async fn asks_for_health(client: &TcpStream) -> bool {
    let mut head = [0; HEAD_BYTES];
    let Ok(Ok(length)) = timeout(Duration::from_millis(1), client.peek(&mut head)).await else {
        return false;
    };
    let head = head.get(..length).unwrap_or_default();
    [&b"GET /readyz "[..], b"GET /healthz "]
        .iter()
        .any(|page| head.starts_with(page))
}

/// The cause for which no node serves.
#[derive(Debug, Clone, Copy)]
pub(super) enum Absence {
    /// None is the home now.
    NoHome,
    /// Messages were lost, and a person has to look.
    Lost,
}

impl Absence {
    pub(super) fn of(shared: &Shared) -> Self {
        match &*shared.node.standing().borrow() {
            NodeStanding::Lost => Self::Lost,
            NodeStanding::Home(_) | NodeStanding::Away => Self::NoHome,
        }
    }

    /// Whether no node serves before a person has looked.
    pub(super) fn needs_a_person(self) -> bool {
        match self {
            Self::NoHome => false,
            Self::Lost => true,
        }
    }

    /// The body of the answer, as errors of the API have it.
    pub(super) fn body(self) -> &'static str {
        match self {
            Self::NoHome => {
                r#"{"code":"no_home","message":"no node is the home of the cluster now"}"#
            }
            Self::Lost => {
                r#"{"code":"journal_lost","message":"the cluster's log has lost messages","hint":"an operator looks: portmoot cluster status"}"#
            }
        }
    }
}

/// Answers a client that no node serves, in HTTP.
async fn refuse(client: &mut TcpStream, why: Absence) {
    let body = why.body();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    // A client that does not read it sees that the connection ends.
    let _ = client.write_all(answer.as_bytes()).await;
    let _ = client.shutdown().await;
}

#[cfg(test)]
mod tests {
    use cluster::{NodeId, NodeLife};

    use super::*;

    fn home(name: &str, epoch: u64) -> OtherHome {
        let incarnation = NodeLife {
            directory: 1,
            life: 1,
        };
        let node = NodeId {
            name: name.into(),
            incarnation,
        };
        OtherHome { node, epoch }
    }

    #[test]
    fn an_older_word_about_homes_ends_no_connection() {
        let at = home("b", 2);
        assert!(!is_after(None, &at) && !is_after(Some(&at), &at));
        assert!(!is_after(Some(&home("a", 1)), &at));
        assert!(is_after(Some(&home("a", 3)), &at));
    }

    #[tokio::test]
    async fn a_client_that_leaves_is_noticed_although_it_has_sent_something() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        client.write_all(b"POST / HTTP/1.1\r\n").await.unwrap();
        accepted.readable().await.unwrap();
        assert!(!has_left(&accepted));
        drop(client);
        while !has_left(&accepted) {
            tokio::task::yield_now().await;
        }
    }
}
