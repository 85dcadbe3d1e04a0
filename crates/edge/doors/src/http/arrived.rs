//! Connections as they arrive: the socket, and where it comes from.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpStream;

use super::relay::Relay;
use crate::nodes::NodeWire;

/// The addresses of a connection's two ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SocketEnds {
    /// The client's.
    pub(crate) peer: IpAddr,
    /// That at which the client reached the gateway.
    pub(crate) at: Option<SocketAddr>,
}

/// A connection that another node conveys.
pub(crate) type ConveyedWire = Box<dyn NodeWire>;

/// A connection that has arrived.
pub(crate) struct Arrived {
    pub(crate) socket: TcpStream,
    pub(crate) ends: SocketEnds,
    /// In a cluster, the ways of its client to other nodes.
    pub(crate) relay: Option<Arc<Relay>>,
}
