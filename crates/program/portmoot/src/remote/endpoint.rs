//! Gateway endpoints: connections, `Host` value, token.

use std::future::Future;
use std::pin::Pin;

use tls::ClientTls;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::TcpStream;

use terminal::exit::Exit;
use terminal::failure::Failure;

/// Buffer size of a pipe to a gateway, bytes.
pub(crate) const PIPE_BYTES: usize = 64 * 1024;

/// The service of one MCP client on a pipe, until the client closes it.
pub(crate) type Serving = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// A connection to a gateway that speaks HTTP/1.1.
pub(crate) type GatewayConnection = Box<dyn Duplex>;

/// Read and write halves of a connection.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A gateway to connect to: over TCP, or in this process through a pipe.
pub(crate) trait Endpoint: Send + Sync {
    /// Opens a new connection.
    fn connect(
        &self,
    ) -> Pin<Box<dyn Future<Output = Result<GatewayConnection, Failure>> + Send + '_>>;

    /// Serves an MCP client in a topic on a pipe, one message a line.
    fn serve(&self, topic: &str, pipe: DuplexStream) -> Serving;

    /// Value of the `Host` header.
    fn authority(&self) -> &str {
        "localhost"
    }

    /// Bearer token, if any.
    fn token(&self) -> Option<&str> {
        None
    }
}

/// A gateway at an http or https URL.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    authority: String,
    host: String,
    port: u16,
    token: Option<String>,
    /// Authorities that are trusted, and the certificate that is shown; `None` speaks plain HTTP.
    tls: Option<ClientTls>,
}

impl Remote {
    /// Parses `http://HOST[:PORT]` or `https://HOST[:PORT]`; a path is ignored, so that the URL of
    /// `/mcp` works too.
    /// `ws` and `wss` name the same gateway, so that the URL of a topic works too.
    ///
    /// # Errors
    /// When the URL is of another scheme, or has a user or password.
    pub(crate) fn new(url: &str, token: Option<String>, tls: ClientTls) -> Result<Remote, Failure> {
        let uri: hyper::Uri = url
            .parse()
            .map_err(|_| bad_url(format!("`{url}` is not a URL")))?;
        let (tls, standard_port) = match uri.scheme_str() {
            Some("http" | "ws") => (None, 80),
            Some("https" | "wss") => (Some(tls), 443),
            Some(_) | None => {
                return Err(bad_url(format!(
                    "`{url}` does not begin with http:// or https://"
                )));
            }
        };
        let authority = uri
            .authority()
            .ok_or_else(|| bad_url(format!("`{url}` has no host")))?;
        if authority.as_str().contains('@') {
            return Err(
                bad_url("a gateway URL must not contain a user or password".into())
                    .hint("pass a token with --token"),
            );
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let port = authority.port_u16().unwrap_or(standard_port);
        Ok(Remote {
            authority: authority.to_string(),
            host,
            port,
            token,
            tls,
        })
    }

    /// `http` or `https`.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Authorities that are trusted, and the certificate that is shown, as the scheme needs it.
    pub(crate) fn tls(&self) -> ClientTls {
        self.tls.clone().unwrap_or_else(ClientTls::of_machine)
    }
}

impl Endpoint for Remote {
    fn connect(
        &self,
    ) -> Pin<Box<dyn Future<Output = Result<GatewayConnection, Failure>> + Send + '_>> {
        Box::pin(async move {
            let connected = TcpStream::connect((self.host.as_str(), self.port)).await;
            let stream = connected.map_err(|error| {
                let message = format!("cannot connect to a gateway at {}: {error}", self.authority);
                Failure::new(Exit::Failed, "gateway_unreachable", message)
                    .hint("start one with: portmoot serve")
            })?;
            let Some(tls) = &self.tls else {
                return Ok(Box::new(stream) as GatewayConnection);
            };
            let secured = tls.connect(&self.host, stream).await.map_err(|error| {
                let message = format!("cannot connect to the gateway at {} over TLS: {error}", self.authority);
                Failure::new(Exit::Failed, "gateway_untrusted", message)
                    .hint("name the authority of its certificate with --ca FILE, and the gateway as the certificate does")
            })?;
            Ok(Box::new(secured) as GatewayConnection)
        })
    }

    fn serve(&self, topic: &str, pipe: DuplexStream) -> Serving {
        let remote = self.clone();
        let topic = topic.to_owned();
        let (input, output) = tokio::io::split(pipe);
        Box::pin(async move { remote.relay(&topic, input, output).await })
    }

    fn authority(&self) -> &str {
        &self.authority
    }

    fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }
}

fn bad_url(message: String) -> Failure {
    Failure::new(Exit::Usage, "bad_url", message).hint("for example --url http://127.0.0.1:7070")
}

/// The pipe to an MCP client broke.
pub(crate) fn broken_pipe(error: std::io::Error) -> Failure {
    Failure::new(
        Exit::Failed,
        "pipe",
        format!("the connection to the client broke: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed() {
        let check = |url: &str| {
            Remote::new(url, None, ClientTls::of_machine())
                .map(|remote| (remote.authority, remote.host, remote.port))
                .ok()
        };
        let expect =
            |authority: &str, host: &str, port| Some((authority.to_owned(), host.to_owned(), port));
        assert_eq!(
            check("http://127.0.0.1:7070"),
            expect("127.0.0.1:7070", "127.0.0.1", 7070)
        );
        assert_eq!(
            check("http://gate.example/mcp"),
            expect("gate.example", "gate.example", 80)
        );
        assert_eq!(
            check("http://[::1]:7070/"),
            expect("[::1]:7070", "::1", 7070)
        );
        assert_eq!(
            check("https://gate.example"),
            expect("gate.example", "gate.example", 443)
        );
        assert_eq!(
            check("ws://127.0.0.1:7070/ws"),
            expect("127.0.0.1:7070", "127.0.0.1", 7070)
        );
        assert_eq!(
            check("wss://gate.example"),
            expect("gate.example", "gate.example", 443)
        );
        for url in [
            "",
            "127.0.0.1:7070",
            "ftp://gate.example",
            "http://",
            "http://a:b@c/",
        ] {
            assert_eq!(check(url), None, "{url}");
        }
    }
}
