//! Connections of clients that a node conveys to the home, each through a tunnel.
//!
//! The tunnel begins with the ends of the connection, after their length; then the home answers one
//! byte once it serves it. A client's bytes follow only after that, so a connection that the home
//! has not taken can be conveyed to its successor.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use fabric::{PeerCallError, Tunnel};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::timeout;

/// The time in which a home takes a connection.
const TAKE_MAX: Duration = Duration::from_secs(5);
/// The most bytes of the ends.
const ENDS_BYTES_MAX: usize = 1024;
/// The home serves the connection.
const TAKEN: u8 = b'+';

/// The two ends of a client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConveyedEnds {
    /// The client's address.
    pub client: SocketAddr,
    /// The address at which the client reached the node.
    pub node: SocketAddr,
    /// Whether its requests are for the node to which it is conveyed, and not for the home.
    #[serde(default)]
    pub is_for_node: bool,
}

/// A connection that was not conveyed. None of its bytes were read.
#[derive(Debug, thiserror::Error)]
pub enum NotConveyed {
    /// No node is the home now.
    #[error("no node is the home of the cluster")]
    NoHome,
    /// No tunnel leads to the home.
    #[error(transparent)]
    Tunnel(#[from] PeerCallError),
    /// The home has closed it.
    #[error("the home did not take the connection: {0}")]
    Refused(#[from] io::Error),
    /// The home did not answer in time.
    #[error("the home did not answer")]
    Silent,
}

/// A client's connection that another node conveys to this one.
#[derive(Debug)]
pub struct Conveyed {
    tunnel: Tunnel,
    /// Its ends.
    pub ends: ConveyedEnds,
}

impl Conveyed {
    /// Reads the ends of a connection, from a tunnel that another node has opened.
    pub(crate) async fn read(tunnel: Tunnel) -> Option<Self> {
        match timeout(TAKE_MAX, read_ends(tunnel)).await {
            Ok(Ok(conveyed)) => Some(conveyed),
            Ok(Err(why)) => {
                tracing::debug!(%why, "a connection was not conveyed whole");
                None
            }
            Err(_) => None,
        }
    }

    /// Takes the connection: its bytes follow.
    ///
    /// # Errors
    /// When the other node has left.
    pub async fn take(mut self) -> io::Result<Self> {
        self.tunnel.write_all(&[TAKEN]).await?;
        self.tunnel.flush().await?;
        Ok(self)
    }
}

async fn read_ends(mut tunnel: Tunnel) -> io::Result<Conveyed> {
    let length = usize::from(tunnel.read_u16().await?);
    if length > ENDS_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length];
    tunnel.read_exact(&mut text).await?;
    let ends = serde_json::from_slice(&text)?;
    Ok(Conveyed { tunnel, ends })
}

/// Has the node at the other side of a tunnel take a connection.
pub(crate) async fn convey(mut tunnel: Tunnel, ends: ConveyedEnds) -> Result<Tunnel, NotConveyed> {
    let text = serde_json::to_vec(&ends).map_err(io::Error::from)?;
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    let asked = async {
        tunnel.write_u16(length).await?;
        tunnel.write_all(&text).await?;
        tunnel.flush().await?;
        tunnel.read_u8().await
    };
    match timeout(TAKE_MAX, asked).await {
        Ok(Ok(TAKEN)) => Ok(tunnel),
        Ok(Ok(_)) => Err(NotConveyed::Refused(io::ErrorKind::InvalidData.into())),
        Ok(Err(why)) => Err(NotConveyed::Refused(why)),
        Err(_) => Err(NotConveyed::Silent),
    }
}

impl AsyncRead for Conveyed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tunnel).poll_read(context, into)
    }
}

impl AsyncWrite for Conveyed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tunnel).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tunnel).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tunnel).poll_shutdown(context)
    }
}
