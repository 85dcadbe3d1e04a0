//! Ways from this node to the others, for its doors: to the home, and to the node that has what a
//! client sends something about.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use doors::{NoNode, NodeWire, OtherNodes, PassedEnds, PassedTo, ReachingNode};
use model::TopicName;
use node::{ConveyedEnds, HomeWord, OtherHome, Tunnel};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::super::running::Gateway;
use super::front::{Absence, HOME_WAIT, Reached, moved, reach};
use super::shared::{LOOK, Shared};

/// Bytes that wait on the way to the gateway of this process.
const OWN_BYTES: usize = 64 * 1024;
/// The node has ended that has made the call.
const NODE_LOST: &str =
    r#"{"code":"home_lost","message":"the node of the cluster that had this is lost"}"#;

/// The ways.
pub(super) struct NodeWays {
    shared: Weak<Shared>,
    words: watch::Receiver<Option<HomeWord>>,
    homes: watch::Receiver<Option<OtherHome>>,
}

impl NodeWays {
    /// The ways from this node.
    pub(super) fn of(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::downgrade(shared),
            words: shared.node.home_words(),
            homes: shared.node.other_homes(),
        }
    }
}

impl OtherNodes for NodeWays {
    fn lets_be(&self, topic: &TopicName) -> bool {
        let Some(shared) = self.shared.upgrade() else {
            return false;
        };
        // The former home's word says nothing of what happens here.
        if shared.gateway.borrow().is_some() {
            return false;
        }
        let word = self.words.borrow();
        let Some(word) = word.as_ref() else {
            return false;
        };
        // Of the present home; of the last one, while there is none.
        let home = self.homes.borrow();
        let is_latest = home.as_ref().is_none_or(|home| home.epoch == word.epoch);
        let has_same_config = word.config == shared.digest.load(Ordering::Acquire);
        is_latest && has_same_config && word.lets_be(topic.as_str())
    }

    fn slots(&self) -> Vec<u16> {
        let shared = self.shared.upgrade();
        shared.map_or_else(Vec::new, |shared| shared.node.other_slots())
    }

    fn reach(&self, to: PassedTo, ends: PassedEnds) -> ReachingNode<'_> {
        Box::pin(async move {
            let shared = self.shared.upgrade();
            let shared = shared.ok_or(NoNode(Absence::NoHome.body()))?;
            let node = ends.at.unwrap_or_else(|| shared.config.lock().doors.listen);
            let ends = ConveyedEnds {
                client: SocketAddr::new(ends.client, 0),
                node,
                is_for_node: false,
            };
            match to {
                PassedTo::Home { waits } => home(&shared, ends, waits).await,
                PassedTo::Slot(slot) => match shared.node.convey_to(slot, ends).await {
                    Ok(tunnel) => Ok(Box::new(tunnel) as Box<dyn NodeWire>),
                    Err(why) => {
                        tracing::debug!(%why, slot, "a node is not reached");
                        Err(NoNode(NODE_LOST))
                    }
                },
            }
        })
    }
}

/// A connection to the home.
async fn home(
    shared: &Arc<Shared>,
    ends: ConveyedEnds,
    waits: bool,
) -> Result<Box<dyn NodeWire>, NoNode> {
    let deadline = Instant::now() + HOME_WAIT;
    loop {
        if let Some(reached) = reach(shared, ends).await {
            return Ok(wire(shared, reached, ends));
        }
        let why = Absence::of(shared);
        if !waits || why.needs_a_person() || Instant::now() > deadline {
            return Err(NoNode(why.body()));
        }
        sleep(LOOK).await;
    }
}

fn wire(shared: &Arc<Shared>, reached: Reached, ends: ConveyedEnds) -> Box<dyn NodeWire> {
    match reached {
        Reached::Own(gateway) => Box::new(own_wire(gateway, ends)),
        Reached::Other(tunnel, home) => {
            let shared = Arc::clone(shared);
            Box::new(HomeTunnel {
                tunnel,
                moved: Box::pin(async move { moved(&shared, &home).await }),
            })
        }
    }
}

/// A connection to the gateway of this process, which has become the home.
fn own_wire(gateway: Arc<Gateway>, ends: ConveyedEnds) -> DuplexStream {
    let (near, far) = duplex(OWN_BYTES);
    tokio::spawn(async move { gateway.conveyed(far, ends.client, ends.node).await });
    near
}

/// A tunnel to a home, which ends when another node is the home.
struct HomeTunnel {
    tunnel: Tunnel,
    moved: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl AsyncRead for HomeTunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.moved.as_mut().poll(cx).is_ready() {
            self.moved = Box::pin(std::future::ready(()));
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Pin::new(&mut self.tunnel).poll_read(cx, into)
    }
}

impl AsyncWrite for HomeTunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tunnel).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tunnel).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tunnel).poll_shutdown(cx)
    }
}
