//! What a participant needs to come in: where, with which token, to hear what, and what it serves.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;

use super::error::ConnectError;
use super::serve::Serve;
use super::tools::Tools;

/// The longest message that is read, in bytes. A welcome may carry what was said before.
pub const FRAME_BYTES_MAX: usize = 16 << 20;

/// Which envelopes a participant hears (MCPx v0.1, section 6.3). It always hears what is for everybody or names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Everything in the topic.
    #[default]
    All,
    /// Only what is for everybody, or names it.
    Directed,
    /// That, and all proposals: for reviewers.
    DirectedAndProposals,
}

impl Mode {
    /// As the query spells it. A plus sign would be read as a space.
    fn as_query(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Directed => "directed",
            Self::DirectedAndProposals => "directed%2Bproposals",
        }
    }
}

/// How to come into a topic.
#[derive(Clone)]
pub struct ParticipantSpec {
    /// The gateway: `http://`, `https://`, `ws://` or `wss://`, with or without `/ws` or `/mcp` behind it.
    pub url: String,
    /// The token to show. Without one the gateway decides what a nameless caller may do.
    pub token: Option<String>,
    /// The topic to enter.
    pub topic: String,
    /// What to hear.
    pub mode: Mode,
    /// Whether to hear what it says itself.
    pub echo: bool,
    /// What answers requests that name this participant. By default nothing but the handshake, pings and empty lists.
    pub serve: Arc<dyn Serve>,
    /// How long to wait for a connection with its welcome.
    pub connect_timeout: Duration,
    /// How long to wait for the answer to a request.
    pub request_timeout: Duration,
    /// How long [`Participant::call`](super::Participant::call) waits for the outcome of a proposal.
    pub proposal_timeout: Duration,
}

impl ParticipantSpec {
    /// A participant that hears everything in `topic` and serves nothing: 10 s to connect, a minute for an answer, six
    /// minutes for a decision (a gateway's proposals expire after five, as the specification's example).
    #[must_use]
    pub fn new(url: &str, token: Option<&str>, topic: &str) -> Self {
        Self {
            url: url.to_owned(),
            token: token.map(str::to_owned),
            topic: topic.to_owned(),
            mode: Mode::All,
            echo: false,
            serve: Arc::new(Tools::new("participant", env!("CARGO_PKG_VERSION"))),
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(60),
            proposal_timeout: Duration::from_secs(360),
        }
    }

    /// A participant as the environment says: `PORTMOOT_URL` (by default `http://127.0.0.1:7070`), `PORTMOOT_TOKEN`,
    /// `PORTMOOT_TOPIC` (by default `main`).
    #[must_use]
    pub fn from_env() -> Self {
        let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let url = read("PORTMOOT_URL").unwrap_or_else(|| "http://127.0.0.1:7070".to_owned());
        let topic = read("PORTMOOT_TOPIC").unwrap_or_else(|| "main".to_owned());
        Self::new(&url, read("PORTMOOT_TOKEN").as_deref(), &topic)
    }

    /// The same, serving this.
    #[must_use]
    pub fn serving(mut self, serve: impl Serve) -> Self {
        self.serve = Arc::new(serve);
        self
    }

    /// The same, hearing this.
    #[must_use]
    pub fn hearing(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The WebSocket's address (section 6.2).
    pub(super) fn address(&self) -> Result<Uri, ConnectError> {
        let wrong = |why: &'static str| ConnectError::BadUrl(why);
        let uri: Uri = self.url.parse().map_err(|_| wrong("it cannot be read"))?;
        let scheme = match uri.scheme_str() {
            Some("http" | "ws") => "ws",
            Some("https" | "wss") => "wss",
            Some(_) | None => return Err(wrong("it must begin with http://, https://, ws:// or wss://")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("it carries a user; give a token instead"));
        }
        if uri.query().is_some() {
            return Err(wrong("it has a query; topic and mode are given apart"));
        }
        let path = uri.path().trim_end_matches('/');
        let base = path.strip_suffix("/ws").or_else(|| path.strip_suffix("/mcp")).unwrap_or(path);
        let (topic, mode, echo) = (encoded(&self.topic), self.mode.as_query(), self.echo);
        format!("{scheme}://{authority}{base}/ws?topic={topic}&mode={mode}&echo={echo}")
            .parse()
            .map_err(|_| wrong("it cannot be read"))
    }
}

impl fmt::Debug for ParticipantSpec {
    /// Without the token.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, topic, mode, echo, .. } = self;
        write!(out, "ParticipantSpec {{ url: {url:?}, topic: {topic:?}, mode: {mode:?}, echo: {echo}, .. }}")
    }
}

/// Percent-encodes everything but letters, digits and `-._`.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_where_they_lead() {
        for (url, expect) in [
            ("http://127.0.0.1:7070", Some("ws://127.0.0.1:7070/ws")),
            ("http://gate.example/mcp", Some("ws://gate.example/ws")),
            ("https://gate.example/base/", Some("wss://gate.example/base/ws")),
            ("wss://gate.example/ws", Some("wss://gate.example/ws")),
            ("ws://[::1]:7070/ws/", Some("ws://[::1]:7070/ws")),
            ("ftp://gate.example", None),
            ("gate.example", None),
            ("http://a:b@gate.example", None),
            ("http://gate.example/ws?topic=x", None),
            ("", None),
        ] {
            let found = ParticipantSpec::new(url, None, "main").address().ok().map(|uri| uri.to_string());
            let expect = expect.map(|expect| format!("{expect}?topic=main&mode=all&echo=false"));
            assert_eq!(found, expect, "{url}");
        }
    }

    #[test]
    fn what_stands_in_the_query_is_encoded() {
        let spec = ParticipantSpec::new("http://h", Some("secret"), "a b&c");
        let spec = ParticipantSpec { echo: true, ..spec }.hearing(Mode::DirectedAndProposals);
        let address = spec.address().unwrap().to_string();
        assert_eq!(address, "ws://h/ws?topic=a%20b%26c&mode=directed%2Bproposals&echo=true");
        assert!(!format!("{spec:?}").contains("secret"));
    }
}
