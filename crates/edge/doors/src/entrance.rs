//! All ways into a gateway, from their start to their close.

use std::io;
use std::net::{self, IpAddr, SocketAddr};
use std::sync::Arc;

use auth::Participant;
use axum::Router;
use control::Registry;
use gateway::Dispatch;
use platform::Mutex;
use store::{Entry, StoreError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::http::{self, Endpoints, SocketEnds};
use crate::links::ClientLinks;
use crate::nodes::{NodeWire, OtherNodes};
use crate::outlet::Visitor;
use crate::pipe;

/// All ways into a gateway.
pub struct Doors {
    links: Arc<ClientLinks>,
    endpoints: Arc<Endpoints>,
    stop: watch::Sender<bool>,
    closing: watch::Sender<bool>,
    listeners: Mutex<JoinSet<()>>,
}

impl Doors {
    /// The doors of a gateway; they listen on nothing yet. `pages` are served over HTTP beside MCP.
    /// Must be called inside a runtime.
    ///
    /// # Errors
    /// When the journal has a record of sessions that cannot be read.
    pub fn new(registry: Arc<Registry>, pages: Router) -> Result<Self, StoreError> {
        Self::of_node(registry, pages, None)
    }

    /// The doors of a node of a cluster. A branch makes plain calls itself, and passes all other
    /// requests on to the home. Must be called inside a runtime.
    ///
    /// # Errors
    /// As [`Doors::new`].
    pub fn of_node(
        registry: Arc<Registry>,
        pages: Router,
        nodes: Option<Arc<dyn OtherNodes>>,
    ) -> Result<Self, StoreError> {
        let links = ClientLinks::start(registry)?;
        let endpoints = Endpoints::new(Arc::clone(&links), pages, nodes);
        let [stop, closing] = [(); 2].map(|()| watch::Sender::new(false));
        Ok(Self {
            links,
            endpoints,
            stop,
            closing,
            listeners: Mutex::default(),
        })
    }

    /// Listens on an address, and serves HTTP there until [`Doors::close`]. Returns the bound
    /// address.
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn listen(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        let listener = http::bind(address)?;
        let bound = listener.local_addr()?;
        self.serve(listener);
        Ok(bound)
    }

    /// A socket that listens on an address.
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn bind(address: SocketAddr) -> io::Result<net::TcpListener> {
        http::bind(address)?.into_std()
    }

    /// Serves HTTP on a socket that listens, until [`Doors::close`].
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn listen_on(&self, listener: net::TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        self.serve(TcpListener::from_std(listener)?);
        Ok(())
    }

    fn serve(&self, listener: TcpListener) {
        let serving = http::serve(
            listener,
            Arc::clone(&self.endpoints),
            self.stop.subscribe(),
            self.closing.subscribe(),
        );
        self.listeners.lock().spawn(serving);
    }

    /// Serves a connection whose client has reached another node, at the address `at`, as if the
    /// client had come here from its address.
    ///
    /// # Errors
    /// Errors of the pair of sockets through which it goes, if its client speaks TLS to this gateway.
    pub async fn conveyed(
        &self,
        io: impl NodeWire + 'static,
        client: IpAddr,
        at: SocketAddr,
    ) -> io::Result<()> {
        let ends = SocketEnds {
            peer: client,
            at: Some(at),
        };
        let endpoints = Arc::clone(&self.endpoints);
        http::serve_conveyed(Box::new(io), ends, endpoints, self.stop.subscribe()).await
    }

    /// Serves a connection that a branch has accepted at the address `at`.
    pub async fn accepted(&self, socket: TcpStream, client: IpAddr, at: SocketAddr) {
        let ends = SocketEnds {
            peer: client,
            at: Some(at),
        };
        let endpoints = Arc::clone(&self.endpoints);
        http::serve_accepted(socket, ends, endpoints, self.stop.subscribe()).await;
    }

    /// Takes over which sessions have ended, from entries that another process has written.
    pub fn follow(&self, entries: &[Entry]) {
        self.links.follow(entries);
    }

    /// Takes over which sessions have ended, all of them.
    pub fn follow_all(&self) {
        self.links.follow_all();
    }

    /// Serves HTTP on an open connection. Does not wait for a stream or WebSocket that the
    /// connection becomes: that goes on by itself.
    pub async fn connection(&self, io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        http::connection(
            io,
            Arc::clone(&self.endpoints),
            self.stop.subscribe(),
            None,
            http::ConnectionEnds::default(),
        )
        .await;
    }

    /// Serves one client on a pipe, as this participant, until the client closes its side.
    ///
    /// # Errors
    /// Errors of the pipe.
    pub async fn stdio(
        &self,
        dispatch: &Arc<Dispatch>,
        participant: &Arc<Participant>,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<()> {
        let visitor = Visitor {
            dispatch: Arc::clone(dispatch),
            participant: Arc::clone(participant),
        };
        pipe::serve(&self.links, visitor, input, output).await
    }

    /// Stops listening; open requests are still answered.
    pub fn stop_listening(&self) {
        self.stop.send_replace(true);
    }

    /// Stops listening and ends all sessions over HTTP, at once. The future waits until the journal
    /// has the ended sessions, and until connections have ended, within a bound. Call it after
    /// [`Registry::release_held`].
    pub fn close(&self) -> impl Future<Output = ()> + Send + use<> {
        self.stop_listening();
        self.closing.send_replace(true);
        let written = self.links.end_all();
        let mut listeners = std::mem::take(&mut *self.listeners.lock());
        async move {
            // Without a journal the sender was dropped.
            let _ = written.await;
            while listeners.join_next().await.is_some() {}
        }
    }
}
