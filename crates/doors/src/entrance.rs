//! All ways into a gateway, from their start to their stop.

use std::io;
use std::sync::Arc;

use auth::Participant;
use axum::Router;
use gateway::Registry;
use model::TopicName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::http::{self, Endpoints};
use crate::links::ClientLinks;
use crate::stdio;

/// All ways into a gateway.
pub struct Doors {
    links: Arc<ClientLinks>,
    endpoints: Arc<Endpoints>,
    stop: watch::Sender<bool>,
}

impl Doors {
    /// The doors of a gateway, closed. `pages` are served over HTTP beside MCP. Must be called inside a runtime.
    pub fn new(registry: Arc<Registry>, pages: Router) -> Self {
        let links = ClientLinks::start(registry);
        let endpoints = Endpoints::new(Arc::clone(&links), pages);
        Self { links, endpoints, stop: watch::Sender::new(false) }
    }

    /// Serves HTTP on a listener until [`Doors::stop`], then lets open requests finish for a bounded time.
    pub fn serve(&self, listener: TcpListener) -> impl Future<Output = ()> + Send + 'static {
        http::serve(listener, Arc::clone(&self.endpoints), self.stop.subscribe())
    }

    /// Serves HTTP on an open connection. Does not wait for a stream or WebSocket that the connection becomes: that goes on by
    /// itself.
    pub async fn connection(&self, wire: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        http::connection(wire, Arc::clone(&self.endpoints), self.stop.subscribe(), None).await;
    }

    /// Serves one client on a pipe, as this participant, until the client closes its side.
    ///
    /// # Errors
    /// When there is no such topic, or the pipe breaks.
    pub async fn stdio(
        &self,
        topic: &str,
        participant: &Arc<Participant>,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<()> {
        let unknown = || io::Error::new(io::ErrorKind::NotFound, format!("there is no topic `{topic}`"));
        let name = TopicName::new(topic).map_err(|_| unknown())?;
        let dispatch = self.links.registry().topic(&name).ok_or_else(unknown)?;
        stdio::serve(&self.links, &dispatch, participant, input, output).await
    }

    /// How many legacy sessions over HTTP are open.
    pub fn sessions_len(&self) -> usize {
        self.links.sessions().len()
    }

    /// Stops listening, ends all sessions over HTTP, and waits until the journal has the ended ones. Call it before
    /// [`Registry::stop`], and after [`Registry::release_held`]. [`Doors::serve`] returns some time later.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        self.links.stop().await;
    }
}
