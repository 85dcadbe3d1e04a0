//! A gateway and a raw HTTP client: requests are written to the socket unchanged.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::Deref;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::TIMEOUT;
use crate::support;

/// The newest legacy revision.
pub(crate) const LEGACY: &str = "2025-11-25";
/// The modern revision.
pub(crate) const MODERN: &str = "2026-07-28";
/// The `_meta` of every modern request.
pub(crate) const MODERN_META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A running gateway with a home of its own.
pub(crate) struct Gateway {
    running: support::Gateway,
    _home: Home,
}

/// The headers of every POST.
const USUAL: [(&str, &str); 2] = [
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
];

/// A TOML table of a server that is started as a child process.
pub(crate) fn stdio_server(name: &str, prefix: &str, command: &str, args: &[&str]) -> String {
    format!("[servers.{name}]\ncommand = {command:?}\nargs = {args:?}\nprefix = {prefix:?}\n")
}

/// A TOML table of the fixture as a child, under its own names.
pub(crate) fn fixture_server(name: &str, prefix: &str, args: &[&str]) -> String {
    let binary = harness::fixture_binary();
    stdio_server(
        name,
        prefix,
        binary.to_str().unwrap(),
        &[&["--stdio"], args].concat(),
    )
}

impl Gateway {
    /// Serves this configuration on a free port.
    pub(crate) fn serve(config: &str) -> Gateway {
        Self::serve_with(config, &[])
    }

    /// The same, with these environment variables.
    pub(crate) fn serve_with(config: &str, env: &[(&str, &str)]) -> Gateway {
        let home = env
            .iter()
            .fold(Home::new(), |home, (name, value)| home.env(name, value));
        Gateway {
            running: support::Gateway::start(&home, config),
            _home: home,
        }
    }

    /// Resident memory, bytes.
    pub(crate) fn resident(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        line.split_whitespace()
            .next()
            .unwrap()
            .parse::<usize>()
            .unwrap()
            * 1024
    }

    /// A new connection.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Sends bytes on a new connection and reads until the other side closes.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        // The gateway may answer and close before it has read everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    /// One request on a connection of its own. Headers are added to `Host` and `Connection` only.
    pub(crate) fn request(&self, line: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        Reply::read(&self.raw(&self.written(line, headers, body)))
    }

    /// The same; the answer is read as a stream.
    pub(crate) fn begin(&self, line: &str, headers: &[(&str, &str)], body: &[u8]) -> Events {
        Events::new(self.send(line, headers, body))
    }

    /// The same; the answer is not read.
    fn send(&self, line: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        stream
            .write_all(&self.written(line, headers, body))
            .unwrap();
        stream
    }

    fn written(&self, line: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
        let mut bytes = format!(
            "{line} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n",
            self.address()
        );
        for (name, value) in headers {
            bytes.push_str(&format!("{name}: {value}\r\n"));
        }
        if line.starts_with("POST") {
            bytes.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        bytes.push_str("\r\n");
        [bytes.as_bytes(), body].concat()
    }

    /// A POST to the endpoint with the usual content type and `Accept`.
    pub(crate) fn post(&self, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Reply {
        self.request("POST /mcp", &[&USUAL, headers].concat(), body.as_ref())
    }

    /// The same; the answer is read as a stream.
    pub(crate) fn begin_post(&self, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Events {
        self.begin("POST /mcp", &[&USUAL, headers].concat(), body.as_ref())
    }

    /// A modern request; `name` is what `Mcp-Name` repeats.
    pub(crate) fn modern(&self, method: &str, name: Option<&str>, params: &str) -> Reply {
        self.modern_as(&[], method, name, params)
    }

    /// The same with more headers.
    pub(crate) fn modern_as(
        &self,
        more: &[(&str, &str)],
        method: &str,
        name: Option<&str>,
        params: &str,
    ) -> Reply {
        self.post(
            &[&modern_headers(method, name), more].concat(),
            modern_body(method, params),
        )
    }

    /// Opens a legacy session.
    pub(crate) fn session(&self) -> Session<'_> {
        self.session_as(&[], LEGACY, "{}")
    }

    /// Opens a legacy session with these headers on every request, of this revision, with these
    /// capabilities.
    pub(crate) fn session_as(
        &self,
        headers: &[(&str, &str)],
        version: &str,
        capabilities: &str,
    ) -> Session<'_> {
        let reply = self.post(headers, initialize(version, capabilities));
        assert_eq!(reply.status, 200, "{reply:?}");
        let id = reply
            .header("mcp-session-id")
            .expect("a session id")
            .to_owned();
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let session = Session {
            gateway: self,
            id,
            headers,
        };
        let reply = session.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert_eq!(reply.status, 202, "{reply:?}");
        session
    }
}

impl Deref for Gateway {
    type Target = support::Gateway;

    fn deref(&self) -> &support::Gateway {
        &self.running
    }
}

/// A modern request's headers.
pub(crate) fn modern_headers<'a>(
    method: &'a str,
    name: Option<&'a str>,
) -> Vec<(&'a str, &'a str)> {
    let named = name.map(|name| ("mcp-name", name));
    [("mcp-protocol-version", MODERN), ("mcp-method", method)]
        .into_iter()
        .chain(named)
        .collect()
}

/// A modern request's body, id 1; `params` are members.
pub(crate) fn modern_body(method: &str, params: &str) -> String {
    let comma = if params.is_empty() { "" } else { "," };
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}{comma}{MODERN_META}}}}}"#
    )
}

/// An `initialize` request.
pub(crate) fn initialize(version: &str, capabilities: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{{"name":"test","version":"1"}}}}}}"#
    )
}

/// A `tools/call` request.
pub(crate) fn call(id: &str, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// A legacy session over HTTP.
pub(crate) struct Session<'g> {
    pub(crate) gateway: &'g Gateway,
    pub(crate) id: String,
    headers: Vec<(String, String)>,
}

impl Session<'_> {
    /// Headers of every request in it.
    pub(crate) fn headers(&self) -> Vec<(&str, &str)> {
        let own = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        [("mcp-session-id", self.id.as_str())]
            .into_iter()
            .chain(own)
            .collect()
    }

    /// A POST in it.
    pub(crate) fn post(&self, body: impl AsRef<[u8]>) -> Reply {
        self.gateway.post(&self.headers(), body)
    }

    /// The same; the answer is read as a stream.
    pub(crate) fn begin(&self, body: impl AsRef<[u8]>) -> Events {
        self.gateway.begin_post(&self.headers(), body)
    }

    /// The same; the answer is not read.
    pub(crate) fn send(&self, body: impl AsRef<[u8]>) -> TcpStream {
        self.gateway.send(
            "POST /mcp",
            &[&USUAL, &self.headers()[..]].concat(),
            body.as_ref(),
        )
    }

    /// Calls a tool and returns the whole answer.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.post(call("1", tool, &arguments.to_string())).json()
    }

    /// The result of the fixture's `record` tool.
    pub(crate) fn record(&self, tool: &str) -> Value {
        let answer = self.call(tool, &json!({}));
        answer
            .pointer("/result/structuredContent")
            .cloned()
            .unwrap_or_else(|| panic!("{answer}"))
    }

    /// Opens the GET stream, or a stream after this event.
    pub(crate) fn listen(&self, after: Option<&str>) -> Events {
        let accept = [("accept", "text/event-stream")];
        let after: Vec<_> = after.iter().map(|id| ("last-event-id", *id)).collect();
        self.gateway.begin(
            "GET /mcp",
            &[&self.headers(), &accept[..], &after].concat(),
            b"",
        )
    }
}

/// One answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// Parses one answer; status 0 if there is none.
    pub(crate) fn read(bytes: &[u8]) -> Reply {
        let at = bytes
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
        let body = bytes.get(at + 4..).unwrap_or_default();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or(0);
        let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        let body = if chunked {
            unchunk(body)
        } else {
            body.to_vec()
        };
        Reply { status, head, body }
    }

    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The JSON message, or the last one of the event stream, unparsed.
    pub(crate) fn message(&self) -> String {
        if self.header("content-type") != Some("text/event-stream") {
            return self.text();
        }
        events(&self.text()).pop().unwrap_or_default()
    }

    /// The same, parsed; null if there is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.message()).unwrap_or_default()
    }

    /// The code of a JSON-RPC error.
    pub(crate) fn code(&self) -> Option<i64> {
        self.json().pointer("/error/code").and_then(Value::as_i64)
    }
}

/// The data of all events with data.
pub(crate) fn events(text: &str) -> Vec<String> {
    let data = |event: &str| {
        let lines: Vec<&str> = event
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .collect();
        lines.join("\n")
    };
    text.split("\n\n")
        .map(data)
        .filter(|data| !data.is_empty())
        .collect()
}

fn unchunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(at) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&bytes[..at])
            .ok()
            .and_then(|size| usize::from_str_radix(size, 16).ok());
        let Some(size) = size.filter(|size| *size > 0) else {
            break;
        };
        bytes = &bytes[at + 2..];
        body.extend_from_slice(&bytes[..size.min(bytes.len())]);
        bytes = bytes.get(size + 2..).unwrap_or_default();
    }
    body
}

/// An event stream.
pub(crate) struct Events {
    lines: BufReader<TcpStream>,
    /// The status of the answer.
    pub(crate) status: u16,
}

impl Events {
    /// Reads the head of the answer.
    pub(crate) fn new(stream: TcpStream) -> Events {
        let mut events = Events {
            lines: BufReader::new(stream),
            status: 0,
        };
        let mut head = String::new();
        while events.lines.read_line(&mut head).unwrap_or(0) > 2 && !head.ends_with("\r\n\r\n") {}
        events.status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or(0);
        events
    }

    /// The next event that has data, with its id; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<(Option<String>, String)> {
        let (mut id, mut data) = (None, Vec::new());
        let mut line = String::new();
        while self.lines.read_line(&mut line).ok()? > 0 {
            let text = line.trim_end_matches(['\r', '\n']);
            if let Some(value) = text.strip_prefix("id: ") {
                id = Some(value.to_owned());
            } else if let Some(value) = text.strip_prefix("data: ") {
                data.push(value.to_owned());
            } else if text.is_empty() && data.iter().any(|line| !line.is_empty()) {
                return Some((id, data.join("\n")));
            }
            line.clear();
        }
        None
    }

    /// The next message, with the id of its event; `None` at the end.
    pub(crate) fn message(&mut self) -> Option<(String, Value)> {
        let (id, data) = self.next()?;
        Some((
            id.unwrap_or_default(),
            serde_json::from_str(&data).unwrap_or_else(|_| panic!("no JSON: {data}")),
        ))
    }

    /// The remaining messages.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.message())
            .map(|(_, message)| message)
            .collect()
    }

    /// Closes the connection at once.
    pub(crate) fn close(self) {
        let _ = self.lines.get_ref().shutdown(Shutdown::Both);
    }
}

/// A client on a pipe: `portmoot stdio`.
pub(crate) struct Piped {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
    _home: Home,
}

impl Piped {
    /// Starts it with this configuration.
    pub(crate) fn start(config: &str) -> Piped {
        let home = Home::new();
        home.write("portmoot.toml", config);
        Self::with(home, &["stdio", "--config", "portmoot.toml"])
    }

    /// Starts it with these arguments.
    pub(crate) fn with(home: Home, args: &[&str]) -> Piped {
        let mut child = home
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Piped {
            child,
            lines,
            _home: home,
        }
    }

    /// The same, past its handshake.
    pub(crate) fn initialized(config: &str, version: &str) -> Piped {
        let mut piped = Self::start(config);
        piped.send(initialize(version, "{}"));
        assert!(piped.receive().contains("serverInfo"));
        piped.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        piped
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes one line.
    pub(crate) fn send(&mut self, line: impl AsRef<[u8]>) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(&[line.as_ref(), b"\n"].concat()).unwrap();
        input.flush().unwrap();
    }

    /// The next line.
    pub(crate) fn receive(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The next line, parsed.
    pub(crate) fn json(&mut self) -> Value {
        let line = self.receive();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"))
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Polls until the condition is true.
#[track_caller]
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    support::until(what, || so().then_some(()));
}
