//! The way in which a client writes a server.

use serde_json::{Map, Value, json};

use crate::edit::NewEntry;

/// The keys and values of a client's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientFormat {
    /// `type` of a server that the client starts, if it writes one.
    pub(crate) stdio: Option<&'static str>,
    pub(crate) command: &'static str,
    pub(crate) env: &'static str,
    /// `None`: the client starts all of its servers.
    pub(crate) http: Option<Http>,
    pub(crate) variables: Variables,
    /// A `url` without a type means HTTP+SSE.
    pub(crate) bare_url_is_sse: bool,
    /// `timeout` is in milliseconds, elsewhere in seconds.
    pub(crate) timeout_ms: bool,
    /// Each entry repeats its name, whether it is enabled, and has a timeout.
    pub(crate) is_goose: bool,
}

/// Form in which a server with a URL is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Http {
    pub(crate) url: &'static str,
    pub(crate) headers: &'static str,
    /// `type`, if the client writes one.
    pub(crate) kind: Option<&'static str>,
    /// The headers are inside `requestOptions`.
    pub(crate) in_options: bool,
}

/// Variables that a client expands in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variables {
    /// None: `${X}` is a text.
    None,
    /// `${X}` and `${X:-default}`.
    Braces,
    /// `${env:X}`, `${input:x}`, `${workspaceFolder}`, `${userHome}`.
    Editor,
    /// `$X` and `${X}`.
    Dollar,
    /// `${{ secrets.X }}`.
    Secrets,
}

impl Http {
    pub(crate) const PLAIN: Self = Self {
        url: "url",
        headers: "headers",
        kind: None,
        in_options: false,
    };
}

impl ClientFormat {
    pub(crate) const PLAIN: Self = Self {
        stdio: None,
        command: "command",
        env: "env",
        http: Some(Http::PLAIN),
        variables: Variables::None,
        bare_url_is_sse: false,
        timeout_ms: false,
        is_goose: false,
    };

    /// Whether the client can connect to a URL.
    #[must_use]
    pub fn speaks_http(&self) -> bool {
        self.http.is_some()
    }
}

/// Way in which a client reaches the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// The program that the client starts.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment.
    pub env: Vec<(String, String)>,
    /// The URL of `/mcp`, for a client that connects itself.
    pub url: Option<String>,
    /// The headers of its requests.
    pub headers: Vec<(String, String)>,
}

/// Seconds for which Goose waits for an answer: as in its own entries.
const GOOSE_TIMEOUT: u64 = 300;

impl Gateway {
    /// The entry for a client. One that cannot connect to a URL starts the program.
    #[must_use]
    pub fn fields(&self, name: &str, shape: &ClientFormat) -> NewEntry {
        let mut fields: NewEntry = Vec::new();
        let mut add = |key: &str, value: Value| fields.push((key.to_owned(), value));
        let http = self.url.as_ref().and_then(|url| Some((url, shape.http?)));
        let kind = http.map_or(shape.stdio, |(_, http)| http.kind);
        if let Some(kind) = kind {
            add("type", kind.into());
        }
        if shape.is_goose {
            add("name", name.into());
            add("enabled", true.into());
        }
        match http {
            Some((url, http)) => {
                add(http.url, url.as_str().into());
                let headers = object(&self.headers);
                match (self.headers.is_empty(), http.in_options) {
                    (true, _) => {}
                    (false, true) => add("requestOptions", json!({ http.headers: headers })),
                    (false, false) => add(http.headers, headers),
                }
            }
            None => {
                add(shape.command, self.command.as_str().into());
                add("args", self.args.clone().into());
                if !self.env.is_empty() || shape.is_goose {
                    add(shape.env, object(&self.env));
                }
            }
        }
        if shape.is_goose {
            add("timeout", GOOSE_TIMEOUT.into());
        }
        fields
    }
}

/// The URL of `/mcp`, if a gateway's address is named without a path, or of a topic.
#[must_use]
pub fn endpoint(url: &str, topic: Option<&str>) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path = if path.trim_matches('/').is_empty() {
        "mcp"
    } else {
        path.trim_end_matches('/')
    };
    let topic = topic.map_or(String::new(), |topic| format!("/{topic}"));
    format!("{scheme}://{host}/{path}{topic}")
}

fn object(pairs: &[(String, String)]) -> Value {
    let pairs = pairs
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    Value::Object(pairs.collect::<Map<_, _>>())
}
