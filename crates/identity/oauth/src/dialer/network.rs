//! Names to addresses, and addresses to connections: a seam for tests.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

/// An answer of a network that is on its way.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// Resolves names and opens connections.
pub trait Network: Send + Sync {
    /// All addresses of a name.
    fn resolve<'a>(&'a self, name: &'a str) -> Pending<'a, Vec<IpAddr>>;
    /// A connection to exactly this address.
    fn connect(&self, to: SocketAddr) -> Pending<'_, TcpStream>;
}

/// The time for one of several addresses: the next one gets a chance within the limit of the fetch.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// The machine's own resolver and network.
#[derive(Debug, Clone, Copy)]
pub struct Direct;

impl Network for Direct {
    fn resolve<'a>(&'a self, name: &'a str) -> Pending<'a, Vec<IpAddr>> {
        Box::pin(async move {
            Ok(lookup_host((name, 0))
                .await?
                .map(|address| address.ip())
                .collect())
        })
    }

    fn connect(&self, to: SocketAddr) -> Pending<'_, TcpStream> {
        Box::pin(async move {
            let stream = timeout(CONNECT_LIMIT, TcpStream::connect(to)).await??;
            stream.set_nodelay(true)?;
            Ok(stream)
        })
    }
}
