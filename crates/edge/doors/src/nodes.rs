//! Other nodes of a cluster, as the doors of one of them reach them.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use model::TopicName;
use tokio::io::{AsyncRead, AsyncWrite};

/// A connection to another node. One to the home ends when another node is the home.
pub trait NodeWire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> NodeWire for T {}

/// A node that cannot be reached now; the text is the body of the answer, as errors of the API have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoNode(pub &'static str);

/// A connection that is being opened.
pub type ReachingNode<'n> =
    Pin<Box<dyn Future<Output = Result<Box<dyn NodeWire>, NoNode>> + Send + 'n>>;

/// A client's connection to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassedEnds {
    /// The client's address.
    pub client: IpAddr,
    /// The address at which the client reached the node.
    pub at: Option<SocketAddr>,
}

/// The node to which a request is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassedTo {
    /// The home. `waits` is whether the request waits until there is one, within a bound.
    Home {
        /// Whether it waits.
        waits: bool,
    },
    /// The node of this slot, which answers itself: it does not pass the request on.
    Slot(u16),
}

/// The other nodes of a cluster.
pub trait OtherNodes: Send + Sync {
    /// Whether calls of this topic may be made here now: nothing of them is shown at the home.
    fn lets_be(&self, topic: &TopicName) -> bool;

    /// The slots of all other nodes.
    fn slots(&self) -> Vec<u16>;

    /// Opens a connection to a node for requests of this client.
    fn reach(&self, to: PassedTo, ends: PassedEnds) -> ReachingNode<'_>;
}
