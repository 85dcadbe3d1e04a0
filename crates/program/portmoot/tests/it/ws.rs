//! Raw WebSocket client (RFC 6455): frames are written unchanged and read one by one.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::{Reply, TIMEOUT};
use crate::support::Gateway;

pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// Participants of a test, each with these capabilities and its own token.
pub(crate) fn people(all: &[(&str, &[&str])]) -> (Home, String) {
    let home = home_of(all);
    let config = config_of(&home, all);
    (home, config)
}

fn variable(name: &str) -> String {
    format!("TOKEN_{}", name.to_uppercase().replace('-', "_"))
}

/// A home with the tokens of these participants in its environment.
pub(crate) fn home_of(all: &[(&str, &[&str])]) -> Home {
    all.iter().fold(Home::new(), |home, (name, _)| {
        home.env(&variable(name), &token(name))
    })
}

/// The tables of these participants, and a data directory in the home.
pub(crate) fn config_of(home: &Home, all: &[(&str, &[&str])]) -> String {
    let table = |(name, capabilities): &(&str, &[&str])| {
        let variable = variable(name);
        format!(
            "[participants.{name}]\ntoken_env = {variable:?}\ncapabilities = {capabilities:?}\n"
        )
    };
    let tables: String = all.iter().map(table).collect();
    format!(
        "{tables}[server]\ndata_dir = {:?}\n",
        home.path().join("data")
    )
}

/// The token of one of them.
pub(crate) fn token(name: &str) -> String {
    format!("token-of-the-participant-{name}")
}

/// One frame of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) opcode: u8,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The code of a close frame.
    pub(crate) fn code(&self) -> Option<u16> {
        let bytes = self.payload.get(..2).filter(|_| self.opcode == CLOSE)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }
}

/// One side of a WebSocket.
pub(crate) struct Socket {
    stream: TcpStream,
    read: Vec<u8>,
    /// Number of bytes of `read` already parsed.
    at: usize,
    pub(crate) id: String,
}

/// Sends an upgrade with these headers; returns the stream, the head of the answer, and the bytes
/// after it.
fn upgrade(address: &str, path: &str, headers: &[(&str, &str)]) -> (TcpStream, String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    let (mut read, mut part) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(end + 4);
            return (stream, String::from_utf8(read).unwrap(), rest);
        }
        match stream.read(&mut part).unwrap() {
            0 => return (stream, String::from_utf8(read).unwrap(), Vec::new()),
            count => read.extend_from_slice(&part[..count]),
        }
    }
}

/// The headers of a valid upgrade.
pub(crate) const GOOD: [(&str, &str); 4] = [
    ("connection", "keep-alive, Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", KEY),
];

/// The answer to an upgrade with only these headers.
pub(crate) fn answer(gateway: &Gateway, path: &str, headers: &[(&str, &str)]) -> Reply {
    let (_, head, _) = upgrade(gateway.address(), path, headers);
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let headers = lines
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    Reply {
        status,
        headers,
        body: String::new(),
    }
}

impl Socket {
    /// Joins as this participant; returns the welcome too.
    #[track_caller]
    pub(crate) fn welcomed(gateway: &Gateway, name: &str, query: &str) -> (Socket, Value) {
        let mut socket = Socket::open(gateway, name, query);
        let welcome = socket.receive();
        assert_eq!(welcome["kind"], "system/welcome", "{welcome}");
        (socket, welcome)
    }

    /// Joins and waits for its own join message.
    #[track_caller]
    pub(crate) fn enter(gateway: &Gateway, name: &str, query: &str) -> Socket {
        let (mut socket, _) = Socket::welcomed(gateway, name, query);
        let presence = socket.receive();
        assert_eq!(presence["payload"]["event"], "join", "{presence}");
        assert_eq!(presence["payload"]["participant"]["id"], name, "{presence}");
        socket
    }

    /// Upgrades, and reads nothing.
    #[track_caller]
    pub(crate) fn open(gateway: &Gateway, name: &str, query: &str) -> Socket {
        let bearer = format!("Bearer {}", token(name));
        Socket::open_with(gateway, name, query, &bearer)
    }

    /// Joins without a token; returns the welcome too.
    #[track_caller]
    pub(crate) fn guest(gateway: &Gateway, query: &str) -> (Socket, Value) {
        let (stream, head, read) = upgrade(gateway.address(), &format!("/ws{query}"), &GOOD);
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        let mut socket = Socket {
            stream,
            read,
            at: 0,
            id: String::new(),
        };
        let welcome = socket.receive();
        (socket, welcome)
    }

    /// Upgrades at this path, with these headers too.
    #[track_caller]
    pub(crate) fn at(gateway: &Gateway, path: &str, headers: &[(&str, &str)]) -> Socket {
        let (stream, head, read) = upgrade(gateway.address(), path, &[&GOOD[..], headers].concat());
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        Socket {
            stream,
            read,
            at: 0,
            id: path.to_owned(),
        }
    }

    /// Upgrades with this `Authorization`.
    #[track_caller]
    pub(crate) fn open_with(gateway: &Gateway, name: &str, query: &str, bearer: &str) -> Socket {
        let headers = [&GOOD[..], &[("authorization", bearer)]].concat();
        let (stream, head, read) = upgrade(gateway.address(), &format!("/ws{query}"), &headers);
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(
            head.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
            "{head}"
        );
        Socket {
            stream,
            read,
            at: 0,
            id: name.to_owned(),
        }
    }

    /// Writes bytes unchanged; errors of a closed connection are ignored.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Writes one frame. `head` is its first byte; 0x80 marks the end of a message.
    pub(crate) fn frame(&mut self, head: u8, payload: &[u8]) {
        let frame = masked(head, payload);
        self.raw(&frame);
    }

    /// Writes a text message.
    pub(crate) fn text(&mut self, text: impl AsRef<[u8]>) {
        self.frame(0x80 | TEXT, text.as_ref());
    }

    /// Sends an envelope with this kind, id and payload.
    pub(crate) fn send(&mut self, kind: &str, id: &str, to: &[&str], more: Value, payload: &Value) {
        let from = self.id.clone();
        self.text(envelope(&from, kind, id, to, more, payload));
    }

    /// Sends a chat to all.
    pub(crate) fn chat(&mut self, id: &str) {
        self.send("chat", id, &[], json!({}), &json!({ "text": "hello" }));
    }

    /// Sends a tool call to participants.
    pub(crate) fn call(&mut self, id: &str, to: &[&str], tool: &str, arguments: Value) {
        let kind = format!("mcp/request:tools/call:{tool}");
        let params = json!({ "name": tool, "arguments": arguments });
        let payload =
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        self.send(&kind, id, to, json!({}), &payload);
    }

    /// The next frame; `None` when the other side has closed.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some((frame, taken)) = parse(&self.read[self.at..]) {
                self.at += taken;
                return Some(frame);
            }
            self.read.drain(..self.at);
            self.at = 0;
            let mut part = [0; 65_536];
            match self.stream.read(&mut part) {
                Ok(0) => return None,
                Ok(count) => self.read.extend_from_slice(&part[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{} hears nothing: {error}", self.id),
            }
        }
    }

    /// The next text. Pings are answered.
    #[track_caller]
    pub(crate) fn receive_text(&mut self) -> String {
        let end = Instant::now() + TIMEOUT;
        loop {
            assert!(Instant::now() < end, "{} hears nothing but pings", self.id);
            let frame = self
                .next()
                .unwrap_or_else(|| panic!("{} is cut off", self.id));
            match frame.opcode {
                TEXT => return String::from_utf8(frame.payload).unwrap(),
                PING => self.frame(0x80 | PONG, &frame.payload),
                _ => panic!(
                    "{} hears {frame:?}, {:?}",
                    self.id,
                    String::from_utf8_lossy(&frame.payload)
                ),
            }
        }
    }

    /// The next envelope.
    #[track_caller]
    pub(crate) fn receive(&mut self) -> Value {
        let text = self.receive_text();
        serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {text}"))
    }

    /// The next envelope that satisfies this condition; others are skipped.
    #[track_caller]
    pub(crate) fn receive_until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let received = self.receive();
            if wanted(&received) {
                return received;
            }
        }
    }

    /// The next envelope that is neither presence nor a notice about a proposal.
    #[track_caller]
    pub(crate) fn receive_message(&mut self) -> Value {
        loop {
            let received = self.receive();
            if received["kind"] != "system/presence" && received["kind"] != "portmoot/proposal" {
                return received;
            }
        }
    }

    /// The next envelope, which has this id.
    #[track_caller]
    pub(crate) fn expect(&mut self, id: &str) -> Value {
        let received = self.receive_message();
        assert_eq!(received["id"], id, "{received}");
        received
    }

    /// The next envelope, which is the refusal of this id with this code.
    #[track_caller]
    pub(crate) fn refused(&mut self, id: &str, code: &str) -> Value {
        let received = self.receive_message();
        assert_eq!(received["kind"], "system/error", "{received}");
        assert_eq!(received["payload"]["error"], code, "{received}");
        assert_eq!(
            received["correlation_id"],
            if id.is_empty() {
                Value::Null
            } else {
                json!(id)
            },
            "{received}"
        );
        assert_eq!(received["to"], json!([self.id]), "{received}");
        received
    }

    /// Reads until the other side closes; returns the code. Texts are skipped.
    #[track_caller]
    pub(crate) fn closed(&mut self) -> u16 {
        loop {
            let frame = self
                .next()
                .unwrap_or_else(|| panic!("{} is cut off without a word", self.id));
            if frame.opcode == CLOSE {
                let code = frame.code().unwrap_or_default();
                assert!(self.next().is_none(), "nothing comes after a close");
                return code;
            }
        }
    }

    /// Sends a close frame and waits for the answer.
    #[track_caller]
    pub(crate) fn leave(mut self) {
        self.frame(0x80 | CLOSE, &1000_u16.to_be_bytes());
        assert_eq!(self.closed(), 1000);
    }
}

/// An envelope as text.
pub(crate) fn envelope(
    from: &str,
    kind: &str,
    id: &str,
    to: &[&str],
    more: Value,
    payload: &Value,
) -> String {
    let mut envelope = json!({ "protocol": "mcpx/v0.1", "id": id, "from": from, "kind": kind, "payload": payload });
    if !to.is_empty() {
        envelope["to"] = json!(to);
    }
    for (key, value) in more.as_object().unwrap() {
        envelope[key] = value.clone();
    }
    envelope.to_string()
}

/// A masked client frame.
pub(crate) fn masked(head: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    let mut frame = vec![head];
    match payload.len() {
        len @ 0..=125 => frame.push(0x80 | u8::try_from(len).unwrap()),
        len @ 126..=65_535 => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(len).unwrap().to_be_bytes());
        }
        len => {
            frame.push(0x80 | 127);
            frame.extend((len as u64).to_be_bytes());
        }
    }
    frame.extend(mask);
    frame.extend(
        payload
            .iter()
            .zip(mask.iter().cycle())
            .map(|(byte, mask)| byte ^ mask),
    );
    frame
}

/// Parses a whole frame of a server; returns its length too.
fn parse(bytes: &[u8]) -> Option<(Frame, usize)> {
    let (&head, &short) = (bytes.first()?, bytes.get(1)?);
    assert_eq!(head & 0xf0, 0x80, "a whole message without extensions");
    assert_eq!(short & 0x80, 0, "a server does not mask");
    let (begin, len) = match short {
        126 => (
            4,
            usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().unwrap())),
        ),
        127 => (
            10,
            usize::try_from(u64::from_be_bytes(bytes.get(2..10)?.try_into().unwrap())).unwrap(),
        ),
        len => (2, usize::from(len)),
    };
    let payload = bytes.get(begin..begin + len)?.to_vec();
    Some((
        Frame {
            opcode: head & 0x0f,
            payload,
        },
        begin + len,
    ))
}
