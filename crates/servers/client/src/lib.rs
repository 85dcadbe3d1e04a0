//! Links to MCP servers.
//!
//! A [`ServerLink`] carries messages of JSON-RPC or proto-mcp as bytes, in both directions. Its transport
//! is a child process ([`StdioSpec`]), Streamable HTTP or the HTTP+SSE of 2024-11-05
//! ([`HttpSpec`]), a socket, a WebSocket or gRPC for proto-mcp, or one that another crate provides
//! ([`LinkTransport`]). A link does not read the messages; it knows which request a message belongs
//! to, if the transport knows it. The [`guard`] ends child processes that would outlive this
//! process.

mod account;
mod authorize;
mod error;
mod framed;
mod grpc;
pub mod guard;
mod http;
mod link;
mod pipes;
pub mod processes;
mod queue;
pub mod sandbox;
mod stdio;
mod transport;

pub use account::AccountFault;
pub use authorize::{AccountHolder, Accounts, Authorization, Authorize, Authorizing, Challenge};
pub use error::{LinkError, SendError};
pub use guard::Guard;
pub use http::{
    ApiAnswer, ApiClient, ApiRequest, HttpLimits, HttpSpec, Post, dial, exchange, post,
};
pub use link::ServerLink;
pub use queue::Framing;
pub use sandbox::{Confinement, FileAccess, ProcessLimits};
pub use stdio::{
    CHILD_QUEUE_BYTES_MAX, PARTICIPANT_CHILD_QUEUE_BYTES_MAX, StdioSpec, find_program,
};
pub use stdio::{HookEnd, HookLimits, run_hook};
pub use stdio::{STDERR_BYTES_MAX, STDERR_LINES_MAX, StderrLine, StderrLog};
pub use transport::{Closing, Flow, LinkInbox, LinkTransport, SendMeta};
