//! Servers that lose their sessions and say so in their own ways: calls go on, each runs once.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::home::Home;
use crate::peer::{Peer, answer, small, tool};
use crate::support::{Client, Gateway, until};

/// How a server says that it does not know a session: status, type and body, for a request with
/// this id.
type Words = fn(&Value) -> (u16, &'static str, String);

const JSON: &str = "application/json";
const STREAM: &str = "text/event-stream";

fn error(id: &Value, code: i64, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }).to_string()
}

/// All ways, with a name for each.
const WAYS: [(&str, Words); 9] = [
    ("404 without words", |_| (404, JSON, String::new())),
    ("400 as the example of the TypeScript SDK", |_| {
        (
            400,
            JSON,
            error(
                &Value::Null,
                -32000,
                "Bad Request: No valid session ID provided",
            ),
        )
    }),
    ("400 with a page", |_| {
        (400, "text/html", "<h1>Bad Request</h1>".to_owned())
    }),
    ("403", |_| (403, JSON, "{}".to_owned())),
    ("410", |_| (410, JSON, String::new())),
    ("200 with an object that is no message", |_| {
        (200, JSON, r#"{"error":"Session not found"}"#.to_owned())
    }),
    ("200 with a stream of it", |_| {
        (
            200,
            STREAM,
            "event: message\ndata: {\"error\":\"Session not found\"}\n\n".to_owned(),
        )
    }),
    (
        "an error with the request's id, which names the method",
        |id| {
            (
                200,
                JSON,
                error(
                    id,
                    -32602,
                    &format!("request {id} before initialization was complete"),
                ),
            )
        },
    ),
    ("a stream with an error without an id", |_| {
        (
            200,
            STREAM,
            format!(
                "data: {}\n\n",
                error(&Value::Null, -32001, "Session not found")
            ),
        )
    }),
];

/// A legacy server over Streamable HTTP, or over HTTP+SSE below `/sse`.
struct Forgetful {
    origin: String,
    sessions: Mutex<HashMap<String, Option<TcpStream>>>,
    opened: AtomicUsize,
    words: Mutex<Words>,
    /// The texts with which the tool `echo` was called.
    calls: Mutex<Vec<String>>,
}

impl Forgetful {
    fn start() -> Arc<Forgetful> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Arc::new(Forgetful {
            origin: format!("http://{}", listener.local_addr().unwrap()),
            sessions: Mutex::default(),
            opened: AtomicUsize::new(0),
            words: Mutex::new(WAYS[0].1),
            calls: Mutex::default(),
        });
        let serving = Arc::clone(&server);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = Arc::clone(&serving);
                std::thread::spawn(move || serving.serve(stream));
            }
        });
        server
    }

    /// Forgets all sessions. Streams stay open.
    fn forget(&self, words: Words) {
        *self.words.lock().unwrap() = words;
        let mut sessions = self.sessions.lock().unwrap();
        // Their streams must not end: that would tell it.
        std::mem::forget(std::mem::take(&mut *sessions));
    }

    fn initialized(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }

    fn serve(&self, stream: TcpStream) {
        let mut out = stream.try_clone().unwrap();
        let mut reader = BufReader::new(stream);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if reader.read_line(&mut head).unwrap_or(0) == 0 {
                    return;
                }
            }
            let header = |name: &str| {
                head.lines().find_map(|line| {
                    let (key, value) = line.split_once(": ")?;
                    key.eq_ignore_ascii_case(name).then(|| value.to_owned())
                })
            };
            let mut body =
                vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
            reader.read_exact(&mut body).unwrap();
            let message: Value = serde_json::from_slice(&body).unwrap_or_default();
            let target = head.split(' ').nth(1).unwrap().to_owned();
            let reply = |status: u16, more: &str, body: &str| {
                format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{more}\r\n{body}",
                    body.len()
                )
            };
            let said = if head.starts_with("GET /sse HTTP") {
                // As a mount of Starlette does.
                reply(307, "location: /sse/\r\n", "")
            } else if head.starts_with("GET /sse/ HTTP") {
                let id = format!("e{}", self.opened.fetch_add(1, Ordering::SeqCst));
                let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\n";
                let endpoint = format!("event: endpoint\ndata: messages?session={id}\n\n");
                out.write_all(format!("{head}{endpoint}").as_bytes())
                    .unwrap();
                self.sessions.lock().unwrap().insert(id, Some(out));
                return;
            } else if let Some(id) = target.strip_prefix("/sse/messages?session=") {
                let mut sessions = self.sessions.lock().unwrap();
                match sessions.get_mut(id) {
                    Some(Some(stream)) => {
                        if let Some(said) = self.answer(&message) {
                            stream
                                .write_all(format!("data: {said}\n\n").as_bytes())
                                .unwrap();
                        }
                        reply(202, "", "")
                    }
                    _ => {
                        let (status, kind, body) = (*self.words.lock().unwrap())(&message["id"]);
                        reply(status, &format!("content-type: {kind}\r\n"), &body)
                    }
                }
            } else if !head.starts_with("POST /mcp ") {
                reply(405, "", "")
            } else if message["method"] == "initialize" {
                let id = format!("s{}", self.opened.fetch_add(1, Ordering::SeqCst));
                self.sessions.lock().unwrap().insert(id.clone(), None);
                let more = format!("content-type: {JSON}\r\nmcp-session-id: {id}\r\n");
                reply(200, &more, &self.answer(&message).unwrap())
            } else if !header("mcp-session-id")
                .is_some_and(|id| self.sessions.lock().unwrap().contains_key(&id))
            {
                let (status, kind, body) = (*self.words.lock().unwrap())(&message["id"]);
                reply(status, &format!("content-type: {kind}\r\n"), &body)
            } else {
                match self.answer(&message) {
                    Some(said) if said.contains("\"refused\"") => {
                        reply(400, &format!("content-type: {JSON}\r\n"), &said)
                    }
                    Some(said) => reply(200, &format!("content-type: {JSON}\r\n"), &said),
                    None => reply(202, "", ""),
                }
            };
            if out.write_all(said.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, message: &Value) -> Option<String> {
        message.get("id")?;
        let tools = format!("[{},{}]", tool("echo"), tool("refuse"));
        small(message, &tools).or_else(|| {
            let text = message["params"]["arguments"]["text"]
                .as_str()
                .unwrap_or_default();
            self.calls.lock().unwrap().push(text.to_owned());
            match message["params"]["name"].as_str() {
                Some("echo") => Some(answer(
                    message,
                    &json!({ "content": [{ "type": "text", "text": text }] }).to_string(),
                )),
                _ => Some(error(&message["id"], -32000, "refused")),
            }
        })
    }
}

fn table(url: &str, more: &str) -> String {
    format!("[servers.s]\nurl = \"{url}\"\nera = \"legacy\"\n{more}\n")
}

fn echoes(client: &Client, text: &str) {
    let said = client.call("s_echo", json!({ "text": text }));
    assert_eq!(said["content"][0]["text"], text, "{said}");
}

/// The table of a peer on a pipe that runs all the time.
fn running(peer: &Peer, prefix: &str) -> String {
    format!("{}start = \"always\"\n", peer.child("s", prefix))
}

#[test]
fn a_lost_session_is_opened_again_however_the_server_says_it() {
    for (name, words) in WAYS {
        let (home, server) = (Home::new(), Forgetful::start());
        let gateway = Gateway::start(&home, &table(&format!("{}/mcp", server.origin), ""));
        gateway.ready("s");
        let client = Client::plain(&gateway);
        for round in 0..2 {
            echoes(&client, &format!("before {round}"));
            server.forget(words);
            echoes(&client, &format!("after {round}"));
        }
        let calls = server.calls.lock().unwrap().clone();
        assert_eq!(
            calls,
            ["before 0", "after 0", "before 1", "after 1"],
            "{name}"
        );
        assert_eq!(
            (server.initialized(), gateway.server("s")["state"].as_str()),
            (3, Some("ready")),
            "{name}"
        );
    }
}

#[test]
fn a_lost_session_over_http_with_sse_gets_another_stream() {
    for (name, words) in WAYS
        .into_iter()
        .filter(|(name, _)| !name.contains("200") && !name.contains("stream"))
    {
        if name.contains("with the request's id") {
            continue;
        }
        let (home, server) = (Home::new(), Forgetful::start());
        let gateway = Gateway::start(
            &home,
            &table(&format!("{}/sse", server.origin), "type = \"sse\""),
        );
        gateway.ready("s");
        let client = Client::plain(&gateway);
        echoes(&client, "before");
        server.forget(words);
        echoes(&client, "after");
        echoes(&client, "again");
        assert_eq!(
            *server.calls.lock().unwrap(),
            ["before", "after", "again"],
            "{name}"
        );
    }
}

#[test]
fn a_refusal_of_one_call_leaves_its_session_alone() {
    let (home, server) = (Home::new(), Forgetful::start());
    let gateway = Gateway::start(&home, &table(&format!("{}/mcp", server.origin), ""));
    gateway.ready("s");
    let client = Client::plain(&gateway);
    for _ in 0..3 {
        let call = json!({ "name": "s_refuse", "arguments": { "text": "no" } });
        let said = client.ask("tools/call", call);
        assert_eq!(said["error"]["message"], "refused", "{said}");
        echoes(&client, "yes");
    }
    assert_eq!(server.initialized(), 1);
    assert_eq!(
        *server.calls.lock().unwrap(),
        ["no", "yes", "no", "yes", "no", "yes"]
    );
}

/// A server on a pipe whose session can be made to be lost, with the number of its sessions so far.
fn on_a_pipe() -> (Peer, Arc<AtomicBool>, Arc<AtomicUsize>) {
    let (knows, opened) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let (known, count) = (Arc::clone(&knows), Arc::clone(&opened));
    let peer = Peer::stdio(move |message| {
        if message.get("id").is_none() {
            return Vec::new();
        }
        if message["method"] == "initialize" {
            known.store(true, Ordering::SeqCst);
            count.fetch_add(1, Ordering::SeqCst);
        }
        let said = match known.load(Ordering::SeqCst) {
            false => error(&message["id"], -32002, "Server not initialized"),
            true => small(message, &format!("[{}]", tool("echo")))
                .unwrap_or_else(|| answer(message, r#"{"content":[{"type":"text","text":"x"}]}"#)),
        };
        vec![said.into_bytes()]
    });
    (peer, knows, opened)
}

#[test]
fn a_bridge_on_a_pipe_whose_server_was_restarted_is_initialized_again() {
    let (peer, knows, opened) = on_a_pipe();
    let home = Home::new();
    // What makes it a bridge, as in `npx mcp-remote URL`.
    let bridge = "env = { REMOTE = \"https://mcp.example/mcp\" }\n";
    let gateway = Gateway::start(&home, &(running(&peer, "s") + bridge));
    gateway.ready("s");
    let client = Client::plain(&gateway);
    echoes(&client, "x");
    let before = opened.load(Ordering::SeqCst);
    knows.store(false, Ordering::SeqCst);
    echoes(&client, "x");
    assert_eq!(opened.load(Ordering::SeqCst), before + 1);
}

#[test]
fn a_session_on_any_other_pipe_is_opened_again_after_one_refusal() {
    let (peer, knows, opened) = on_a_pipe();
    let home = Home::new();
    let gateway = Gateway::start(&home, &running(&peer, "s"));
    gateway.ready("s");
    let client = Client::plain(&gateway);
    echoes(&client, "x");
    let before = opened.load(Ordering::SeqCst);
    knows.store(false, Ordering::SeqCst);
    let refused = client.ask(
        "tools/call",
        json!({ "name": "s_echo", "arguments": { "text": "x" } }),
    );
    assert!(refused.to_string().contains("not initialized"), "{refused}");
    echoes(&client, "x");
    assert_eq!(opened.load(Ordering::SeqCst), before + 1);
}

#[test]
fn an_answer_that_cannot_be_parsed_fails_its_request_at_once() {
    for broken in [
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":{"mean":NaN}}}"#,
        r#"{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"\ud800"}],"x":Infinity},"id":ID}"#,
        r#"{"jsonrpc": "2.0", "id": ID, "result": {"content": [}}"#,
    ] {
        let peer = Peer::stdio(move |message| {
            if message.get("id").is_none() {
                return Vec::new();
            }
            let said = small(message, &format!("[{},{}]", tool("echo"), tool("broken")));
            let said = said.unwrap_or_else(|| match message["params"]["name"].as_str() {
                Some("broken") => broken.replace("ID", &message["id"].to_string()),
                // A mark before the message, as some runtimes on Windows write it; ids as floats,
                // as Lua and Godot have them.
                _ => format!(
                    "\u{feff}{}",
                    answer(message, r#"{"content":[{"type":"text","text":"x"}]}"#)
                )
                .replace(
                    &format!("\"id\":{}", message["id"]),
                    &format!("\"id\":{}.0", message["id"]),
                ),
            });
            vec![said.into_bytes()]
        });
        let home = Home::new();
        let gateway = Gateway::start(&home, &running(&peer, "s"));
        gateway.ready("s");
        let client = Client::plain(&gateway);
        let asked = std::time::Instant::now();
        let said = client.ask("tools/call", json!({ "name": "s_broken", "arguments": {} }));
        assert!(
            said["error"]["message"]
                .as_str()
                .unwrap()
                .contains("cannot be parsed"),
            "{said}"
        );
        assert!(
            asked.elapsed().as_secs() < 10,
            "a call has 60 s: {:?}",
            asked.elapsed()
        );
        echoes(&client, "x");
        until("it is ready", || {
            (gateway.server("s")["state"] == "ready").then_some(())
        });
    }
}

#[test]
fn a_server_that_refuses_the_newest_revision_is_asked_for_an_older_one() {
    for (data, expected) in [
        (
            json!({ "supported": ["2025-06-18"], "requested": "2025-11-25" }),
            "2025-06-18",
        ),
        (
            json!({ "supported": ["2030-01-01", "2024-11-05", "2025-03-26"] }),
            "2025-03-26",
        ),
        (Value::Null, "2025-03-26"),
    ] {
        let peer = Peer::stdio(move |message| {
            if message.get("id").is_none() {
                return Vec::new();
            }
            let asked = message["params"]["protocolVersion"]
                .as_str()
                .unwrap_or(expected);
            if message["method"] == "initialize" && asked > expected {
                let error = json!({ "code": -32602, "message": "Unsupported protocol version", "data": data });
                let said = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
                return vec![said.to_string().into_bytes()];
            }
            let said = small(message, &format!("[{}]", tool("echo")));
            let said = said
                .unwrap_or_else(|| answer(message, r#"{"content":[{"type":"text","text":"x"}]}"#));
            vec![said.into_bytes()]
        });
        let home = Home::new();
        let gateway = Gateway::start(&home, &running(&peer, "s"));
        gateway.ready("s");
        assert_eq!(
            gateway.server("s")["version"],
            expected,
            "{:?}",
            gateway.server("s")
        );
        echoes(&Client::plain(&gateway), "x");
    }
}
