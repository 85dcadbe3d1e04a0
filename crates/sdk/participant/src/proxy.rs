//! Client of the MCP Proxy Extension v0.1 (section 9.1): everything that a server gives through its
//! one tool `proxy`.
//!
//! [`ProxyClient`] finds the tool, lists, describes and calls what is behind it, and in transparent
//! mode stands for a plain client of the server. [`Requester`] is what it needs of a connection.
//! JSON stays as the server wrote it.

mod cache;
mod definition;
mod detect;
mod error;
mod facade;
mod read;
mod requester;

pub use model::ListKind;
pub use wire::mcp::proxy::ProxySubject;

pub use definition::Definition;
pub use detect::TRIALS_MAX;
pub use error::ProxyError;
pub use facade::{LIST_BYTES_MAX, PAGES_MAX, ProxyClient};
pub use requester::{Requester, RoomServer};

#[cfg(test)]
mod tests;
