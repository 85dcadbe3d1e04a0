//! Gateway endpoints: connections, `Host` value, token.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use client::LinkError;
use tls::ClientTls;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};

use terminal::exit::Exit;
use terminal::failure::Failure;

/// Buffer size of a pipe to a gateway, bytes.
pub(crate) const PIPE_BYTES: usize = 64 * 1024;

/// Time to connect to a gateway, TLS included.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

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

    /// Whether it runs in this process, for this command alone.
    fn is_own(&self) -> bool {
        false
    }

    /// Bearer token, if any.
    fn token(&self) -> Option<&str> {
        None
    }
}

/// A gateway at an http or https URL.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    /// `http` or `https`.
    scheme: &'static str,
    authority: String,
    token: Option<String>,
    /// Authorities that are trusted, and the certificate that is shown.
    tls: ClientTls,
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
        let scheme = match uri.scheme_str() {
            Some("http" | "ws") => "http",
            Some("https" | "wss") => "https",
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
        Ok(Remote {
            scheme,
            authority: authority.to_string(),
            token,
            tls,
        })
    }

    /// `http` or `https`.
    pub(crate) fn scheme(&self) -> &'static str {
        self.scheme
    }

    /// Authorities that are trusted, and the certificate that is shown.
    pub(crate) fn tls(&self) -> ClientTls {
        self.tls.clone()
    }

    /// Why no connection could be opened.
    fn unconnected(&self, error: LinkError) -> Failure {
        let authority = &self.authority;
        let (code, hint) = match &error {
            LinkError::Untrusted(_) => (
                "gateway_untrusted",
                "name the authority of its certificate with --ca FILE, and the gateway as the certificate does".to_owned(),
            ),
            LinkError::NotTls => (
                "gateway_unreachable",
                format!("if it is meant to have no TLS, its URL is http://{authority}: a token is then sent unencrypted"),
            ),
            _ => (
                "gateway_unreachable",
                "start one with: portmoot serve".to_owned(),
            ),
        };
        let why = match error {
            LinkError::Unreachable(why) => why,
            other => other.to_string(),
        };
        let way = if self.scheme == "https" {
            " over TLS"
        } else {
            ""
        };
        let message = format!("cannot connect to a gateway at {authority}{way}: {why}");
        Failure::new(Exit::Failed, code, message).hint(hint)
    }
}

impl Endpoint for Remote {
    fn connect(
        &self,
    ) -> Pin<Box<dyn Future<Output = Result<GatewayConnection, Failure>> + Send + '_>> {
        Box::pin(async move {
            let url = format!("{}://{}", self.scheme, self.authority);
            match client::dial(&url, &self.tls, CONNECT_LIMIT).await {
                Ok(connection) => Ok(Box::new(connection) as GatewayConnection),
                Err(error) => Err(self.unconnected(error)),
            }
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
                .map(|remote| (remote.scheme, remote.authority))
                .ok()
        };
        for (url, scheme, authority) in [
            ("http://127.0.0.1:7070", "http", "127.0.0.1:7070"),
            ("http://gate.example/mcp", "http", "gate.example"),
            ("http://[::1]:7070/", "http", "[::1]:7070"),
            ("https://gate.example", "https", "gate.example"),
            ("ws://127.0.0.1:7070/ws", "http", "127.0.0.1:7070"),
            ("wss://gate.example", "https", "gate.example"),
        ] {
            assert_eq!(check(url), Some((scheme, authority.to_owned())), "{url}");
        }
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
