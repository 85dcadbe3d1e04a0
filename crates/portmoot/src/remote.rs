//! Client side of a gateway: connections, the REST API, an MCP session. The gateway may run in this process or elsewhere.

mod api;
mod endpoint;
mod http;
mod session;

pub(crate) use api::Api;
pub(crate) use session::{ClientSession, Responder, ServerRequest, unsupported};
pub(crate) use source::{Connection, Endpoint, Remote};
