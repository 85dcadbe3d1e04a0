//! Configuration of a participant: gateway, token, topic, what it receives and what it serves.

use std::{fmt, sync::Arc, time::Duration};

use http::Uri;
use http::header::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tls::ClientTls;

use crate::error::ConnectError;
use crate::protocol::Cursor;
use crate::serve::Serve;
use crate::tools::Tools;

/// The longest message that is read, in bytes. A welcome may contain earlier envelopes.
pub const FRAME_BYTES_MAX: usize = 16 << 20;
/// The characters that are encoded in the query.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// The envelopes that a participant receives (MCPx v0.1, section 6.3). It always receives
/// broadcasts and envelopes that name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// All envelopes of the topic.
    #[default]
    All,
    /// Only broadcasts and envelopes that name it.
    Directed,
    /// Those, and all proposals: for reviewers.
    DirectedAndProposals,
}

impl Mode {
    /// The value in the query. A plus sign would be decoded as a space.
    fn as_query(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Directed => "directed",
            Self::DirectedAndProposals => "directed%2Bproposals",
        }
    }
}

/// The configuration of a participant.
#[derive(Clone)]
pub struct ParticipantSpec {
    /// The gateway: `http://`, `https://`, `ws://` or `wss://`, with or without `/ws` or `/mcp` at
    /// the end.
    pub url: String,
    /// The token. Without one, the gateway decides what an anonymous participant may do.
    pub token: Option<String>,
    /// Authorities that are trusted, and the certificate that is shown, where the gateway speaks
    /// TLS.
    pub tls: ClientTls,
    /// The topic to join.
    pub topic: String,
    /// The envelopes to receive.
    pub mode: Mode,
    /// Whether to receive its own envelopes.
    pub echo: bool,
    /// Whether to receive envelopes with their places in the topic:
    /// [`Participant::place`](crate::Participant::place).
    pub places: bool,
    /// Where the history begins: the [`cursor`](crate::Participant::cursor) of an earlier
    /// connection, also of another process.
    pub since: Option<Cursor>,
    /// Answers requests that name this participant. The default answers only the handshake, pings
    /// and lists, which are empty.
    pub serve: Arc<dyn Serve>,
    /// Time to connect, up to the welcome.
    pub connect_timeout: Duration,
    /// Time to the answer to a request.
    pub request_timeout: Duration,
    /// Time that [`Participant::call`](crate::Participant::call) waits for the outcome of a
    /// proposal.
    pub proposal_timeout: Duration,
}

impl ParticipantSpec {
    /// A participant that receives all envelopes of `topic` and serves nothing: 10 s to connect, 60
    /// s for an answer, 360 s for the outcome of a proposal (by default, a gateway's proposals
    /// expire after 300 s).
    #[must_use]
    pub fn new(url: &str, token: Option<&str>, topic: &str) -> Self {
        Self {
            url: url.to_owned(),
            token: token.map(str::to_owned),
            tls: ClientTls::of_machine(),
            topic: topic.to_owned(),
            mode: Mode::All,
            echo: false,
            places: false,
            since: None,
            serve: Arc::new(Tools::new("participant", env!("CARGO_PKG_VERSION"))),
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(60),
            proposal_timeout: Duration::from_secs(360),
        }
    }

    /// Reads the environment: `PORTMOOT_URL` (by default `http://127.0.0.1:7070`),
    /// `PORTMOOT_TOKEN`, `PORTMOOT_TOPIC` (by default `main`).
    #[must_use]
    pub fn from_env() -> Self {
        let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let url = read("PORTMOOT_URL").unwrap_or_else(|| "http://127.0.0.1:7070".to_owned());
        let topic = read("PORTMOOT_TOPIC").unwrap_or_else(|| "main".to_owned());
        Self::new(&url, read("PORTMOOT_TOKEN").as_deref(), &topic)
    }

    /// Sets what answers requests.
    #[must_use]
    pub fn serving(mut self, serve: impl Serve) -> Self {
        self.serve = Arc::new(serve);
        self
    }

    /// Sets which envelopes to receive.
    #[must_use]
    pub fn receiving(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The URL of the WebSocket (section 6.2), for the history since this place.
    pub(crate) fn address(&self, since: Option<Cursor>) -> Result<Uri, ConnectError> {
        let topic = utf8_percent_encode(&self.topic, QUERY);
        let mode = self.mode.as_query();
        let echo = self.echo;
        let places = if self.places { "&places=true" } else { "" };
        let since = since.map(|Cursor { epoch, offset }| format!("&epoch={epoch}&offset={offset}"));
        let since = since.unwrap_or_default();
        self.below(&format!(
            "/ws?topic={topic}&mode={mode}&echo={echo}{places}{since}"
        ))
    }

    /// The URL of a path of the REST API, with the scheme that [`crate::dial`] knows.
    pub(crate) fn api(&self, segments: &[&str]) -> Result<Uri, ConnectError> {
        let segments = segments
            .iter()
            .map(|segment| format!("/{}", utf8_percent_encode(segment, QUERY)));
        self.below(&format!("/api/v1{}", segments.collect::<String>()))
    }

    /// The value of the header `Authorization`, if there is a token.
    pub(crate) fn bearer(&self) -> Result<Option<HeaderValue>, ConnectError> {
        let Some(token) = &self.token else {
            return Ok(None);
        };
        let mut bearer = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
            ConnectError::Unauthenticated("a token must not contain control characters".to_owned())
        })?;
        bearer.set_sensitive(true);
        Ok(Some(bearer))
    }

    /// The URL of a path of the gateway.
    fn below(&self, path: &str) -> Result<Uri, ConnectError> {
        let wrong = |why: &'static str| ConnectError::BadUrl(why);
        let uri: Uri = self.url.parse().map_err(|_| wrong("it cannot be read"))?;
        let scheme = match uri.scheme_str() {
            Some("http" | "ws") => "ws",
            Some("https" | "wss") => "wss",
            Some(_) | None => {
                return Err(wrong(
                    "it must begin with http://, https://, ws:// or wss://",
                ));
            }
        };
        let authority = uri.authority().ok_or_else(|| wrong("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("it has a user name; set the token instead"));
        }
        if uri.query().is_some() {
            return Err(wrong("it has a query; set topic and mode instead"));
        }
        let own = uri.path().trim_end_matches('/');
        let base = own
            .strip_suffix("/ws")
            .or_else(|| own.strip_suffix("/mcp"))
            .unwrap_or(own);
        format!("{scheme}://{authority}{base}{path}")
            .parse()
            .map_err(|_| wrong("it cannot be read"))
    }
}

impl fmt::Debug for ParticipantSpec {
    /// Without the token.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            url,
            topic,
            mode,
            echo,
            ..
        } = self;
        write!(
            out,
            "ParticipantSpec {{ url: {url:?}, topic: {topic:?}, mode: {mode:?}, echo: {echo}, .. }}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_become_websocket_addresses() {
        for (url, expect) in [
            ("http://127.0.0.1:7070", Some("ws://127.0.0.1:7070/ws")),
            ("http://gate.example/mcp", Some("ws://gate.example/ws")),
            (
                "https://gate.example/base/",
                Some("wss://gate.example/base/ws"),
            ),
            ("wss://gate.example/ws", Some("wss://gate.example/ws")),
            ("ws://[::1]:7070/ws/", Some("ws://[::1]:7070/ws")),
            ("ftp://gate.example", None),
            ("gate.example", None),
            ("http://a:b@gate.example", None),
            ("http://gate.example/ws?topic=x", None),
            ("", None),
        ] {
            let found = ParticipantSpec::new(url, None, "main")
                .address(None)
                .ok()
                .map(|uri| uri.to_string());
            let expect = expect.map(|expect| format!("{expect}?topic=main&mode=all&echo=false"));
            assert_eq!(found, expect, "{url}");
        }
    }

    #[test]
    fn the_query_is_encoded_and_the_token_is_not_printed() {
        let spec = ParticipantSpec::new("http://h", Some("secret"), "a b&c");
        let spec = ParticipantSpec { echo: true, ..spec }.receiving(Mode::DirectedAndProposals);
        let address = spec.address(None).unwrap().to_string();
        assert_eq!(
            address,
            "ws://h/ws?topic=a%20b%26c&mode=directed%2Bproposals&echo=true"
        );
        let since = spec
            .address(Some(Cursor {
                epoch: 7,
                offset: 3,
            }))
            .unwrap()
            .to_string();
        assert_eq!(since, address.clone() + "&epoch=7&offset=3");
        let placed = ParticipantSpec {
            places: true,
            ..spec.clone()
        };
        let placed = placed.address(None).unwrap().to_string();
        assert_eq!(placed, address + "&places=true");
        assert!(!format!("{spec:?}").contains("secret"));
    }
}
