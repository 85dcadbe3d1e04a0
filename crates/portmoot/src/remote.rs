//! Client side of a gateway: connections, the REST API, an MCP session. The gateway may run in this process or elsewhere.

mod api;
mod endpoint;
mod http;
mod session;
pub(crate) use api::ApiClient;
pub(crate) use endpoint::{Endpoint, GatewayConnection, Remote};
pub(crate) use session::{ClientSession, Responder, ServerRequest, unsupported};
