//! Dialing a gateway: its addresses one after the other (RFC 8305), and TLS for `wss`.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http::Uri;
use tls::ClientTls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Time that an address has before the next one is tried beside it (RFC 8305, "Connection Attempt
/// Delay").
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);

/// A connection to a gateway, with or without TLS.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Socket for T {}

/// Connects to the host of a `ws` or `wss` URL.
///
/// # Errors
/// Why no address of the host answers, or why this machine does not trust the gateway.
pub(crate) async fn connect(address: &Uri, tls: &ClientTls) -> io::Result<Box<dyn Socket>> {
    let host = address.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_secure = address.scheme_str() == Some("wss");
    let port = address
        .port_u16()
        .unwrap_or(if is_secure { 443 } else { 80 });
    let stream = first_of(lookup_host((host, port)).await?).await?;
    stream.set_nodelay(true)?;
    Ok(if is_secure {
        Box::new(tls.connect(host, stream).await?)
    } else {
        Box::new(stream)
    })
}

/// A connection to the first of these addresses that answers.
async fn first_of(mut addresses: impl Iterator<Item = SocketAddr>) -> io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    let mut why = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    loop {
        let next = addresses.next();
        let is_last = next.is_none();
        if let Some(address) = next {
            attempts.spawn(TcpStream::connect(address));
        }
        let ended = if is_last {
            attempts.join_next().await
        } else {
            match timeout(NEXT_ADDRESS_AFTER, attempts.join_next()).await {
                Ok(ended) => ended,
                Err(_elapsed) => continue,
            }
        };
        match ended {
            Some(Ok(Ok(stream))) => return Ok(stream),
            Some(Ok(Err(failed))) => why = failed,
            Some(Err(_)) => {}
            None => return Err(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_first_address_that_answers_is_the_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        let closed = TcpListener::bind("127.0.0.1:0")
            .await
            .unwrap()
            .local_addr()
            .unwrap();
        // No address of this block is anyone's (RFC 5737): a packet to it has no answer, or the
        // network refuses it.
        let silent: SocketAddr = "192.0.2.1:9".parse().unwrap();
        for addresses in [
            vec![open],
            vec![closed, open],
            vec![silent, open],
            vec![closed, silent, open],
        ] {
            let stream = first_of(addresses.clone().into_iter()).await.unwrap();
            assert_eq!(stream.peer_addr().unwrap(), open, "{addresses:?}");
        }
        let refused = first_of([closed].into_iter()).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let none = first_of(std::iter::empty()).await.unwrap_err();
        assert_eq!(none.to_string(), "the host has no address");
    }
}
