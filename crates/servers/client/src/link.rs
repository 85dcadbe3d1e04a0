//! Links to MCP servers over any transport.

use crate::framed::FramedLink;
use crate::grpc::GrpcLink;
use crate::http::{HttpLink, HttpSpec};
use crate::stdio::{StderrLog, StdioLink, StdioSpec};
use crate::transport::{LinkInbox, LinkTransport};
use crate::{error::LinkError, guard::Guard};
use std::{io, ops::Deref, sync::Arc};

/// A link to one MCP server. It carries messages as bytes in both directions; what arrives goes to
/// its [`LinkInbox`]. Dropping it ends the server's process, if it has one.
pub struct ServerLink(Arc<dyn LinkTransport>);

impl Deref for ServerLink {
    type Target = dyn LinkTransport;
    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl ServerLink {
    /// Starts a child process, and the tasks that read and write its pipes. What it writes to
    /// stderr goes to `log`. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn stdio(
        spec: &StdioSpec,
        inbox: Arc<dyn LinkInbox>,
        guard: Option<Guard>,
        log: Arc<StderrLog>,
    ) -> io::Result<Self> {
        StdioLink::new(spec, inbox, guard, log).map(|link| Self(Arc::new(link)))
    }

    /// A link to a Streamable HTTP server. It connects with the first message.
    ///
    /// # Errors
    /// [`LinkError::Unreachable`] when the URL cannot be used.
    pub fn http(spec: &HttpSpec, inbox: Arc<dyn LinkInbox>) -> Result<Self, LinkError> {
        HttpLink::streamable(spec, inbox).map(|link| Self(Arc::new(link)))
    }

    /// Opens the event stream of a 2024-11-05 server and waits for the endpoint that the server
    /// names.
    ///
    /// # Errors
    /// When there is no stream, no endpoint in time, or an endpoint on another origin.
    pub async fn sse(spec: &HttpSpec, inbox: Arc<dyn LinkInbox>) -> Result<Self, LinkError> {
        HttpLink::sse(spec, inbox)
            .await
            .map(|link| Self(Arc::new(link)))
    }

    /// Connects to a proto-mcp server: over TCP (`http`, `https` with TLS) or, with `websocket`, a
    /// WebSocket.
    ///
    /// # Errors
    /// When there is no connection.
    pub async fn framed(
        spec: &HttpSpec,
        websocket: bool,
        queue_len_max: usize,
        inbox: Arc<dyn LinkInbox>,
    ) -> Result<Self, LinkError> {
        FramedLink::connect(spec, websocket, queue_len_max, inbox)
            .await
            .map(|link| Self(Arc::new(link)))
    }

    /// Connects to a proto-mcp server over gRPC.
    ///
    /// # Errors
    /// When there is no connection.
    pub async fn grpc(spec: &HttpSpec, inbox: Arc<dyn LinkInbox>) -> Result<Self, LinkError> {
        GrpcLink::connect(spec, inbox)
            .await
            .map(|link| Self(Arc::new(link)))
    }

    /// A link over a transport that another component has opened, for example to a server that
    /// dialed in.
    pub fn custom(transport: Arc<dyn LinkTransport>) -> Self {
        Self(transport)
    }
}
