//! Ways into a gateway: HTTP in both eras of MCP, event streams, MCPx over WebSocket, pipes.
//!
//! - [`Doors`]: all ways in: [`Doors::listen`], [`Doors::connection`], [`Doors::stdio`],
//!   [`Doors::close`].
//!
//! A door decodes each message once, and hands it to a topic's dispatch; a reply encodes the answer
//! once. What a message may do the topic decides.

mod duplex;
mod entrance;
#[cfg(test)]
mod fixture;
mod http;
mod keep_alive;
mod legacy;
mod links;
mod listening;
mod liveness;
mod modern;
mod nodes;
mod outlet;
mod pipe;
mod proto;
mod reply;
mod sessions;
mod slot;
mod stdio;
mod stream;
mod unread;

pub use duplex::linger;
pub use entrance::Doors;
pub use nodes::{NoNode, NodeWire, OtherNodes, PassedEnds, PassedTo, ReachingNode};
pub use pipe::first_byte;

#[cfg(test)]
mod tests;
