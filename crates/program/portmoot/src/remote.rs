//! Client side of a gateway: connections, the REST API, an MCP session. The gateway may run in this
//! process or elsewhere.

pub(crate) mod api;
mod endpoint;
mod frames;
mod relay;
mod session;
pub(crate) use endpoint::{Endpoint, GatewayConnection, PIPE_BYTES, Remote, Serving, broken_pipe};
pub(crate) use frames::list_bytes;
pub(crate) use relay::BROKEN;
pub(crate) use session::ClientSession;
