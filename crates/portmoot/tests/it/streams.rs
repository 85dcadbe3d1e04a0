//! What the SDKs do not show: batches, streams that are lost and taken up again, and calls that are cancelled.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use harness::Running;
use serde_json::{Value, json};

use crate::front::{Front, over_http, over_stdio};
use crate::http::PATIENCE;
use crate::socket::until;

/// One exchange, whose answer is read as it comes.
struct Exchange {
    reader: BufReader<TcpStream>,
    status: u16,
    session: Option<String>,
}

impl Exchange {
    fn begin(front: &Front, method: &str, headers: &[(&str, &str)], body: &str) -> Exchange {
        let url = front.url("");
        let address = url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head = format!("{method} /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
        head += "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n";
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
        let mut exchange = Exchange { reader: BufReader::new(stream), status: 0, session: None };
        loop {
            let line = exchange.line().expect("a whole head");
            if exchange.status == 0 {
                exchange.status = line.split(' ').nth(1).unwrap().parse().unwrap();
            } else if let Some(("mcp-session-id", id)) = line.split_once(": ") {
                exchange.session = Some(id.to_owned());
            } else if line.is_empty() {
                return exchange;
            }
        }
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line).unwrap();
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// The next event with a message in it, and its id; nothing at the end.
    fn event(&mut self) -> Option<(String, Value)> {
        let mut id = String::new();
        loop {
            let line = self.line()?;
            if let Some(value) = line.strip_prefix("id: ") {
                id = value.to_owned();
            } else if let Some(message) =
                line.strip_prefix("data: ").and_then(|data| serde_json::from_str(data).ok())
            {
                return Some((id, message));
            }
        }
    }

    /// The answer, if it is the only message.
    fn whole(&mut self) -> Value {
        let mut answer = String::new();
        self.reader.read_to_string(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|why| panic!("{why}: {answer}"))
    }

    /// The messages that are still to come.
    fn messages(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.event()).map(|(_, message)| message).collect()
    }
}

/// A legacy session.
struct Session<'f> {
    front: &'f Front,
    id: String,
}

impl<'f> Session<'f> {
    fn open(front: &'f Front, version: &str) -> Session<'f> {
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": info });
        let opened = Exchange::begin(front, "POST", &[], &request(0, "initialize", &params));
        let session = Session { front, id: opened.session.expect("a session") };
        session.begin(
            "POST",
            None,
            &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
        );
        session
    }

    fn begin(&self, method: &str, after: Option<&str>, body: &str) -> Exchange {
        let mut headers = vec![("mcp-session-id", self.id.as_str())];
        headers.extend(after.map(|id| ("last-event-id", id)));
        Exchange::begin(self.front, method, &headers, body)
    }

    /// The GET stream, from the beginning or after an event.
    fn listen(&self, after: Option<&str>) -> Exchange {
        let stream = self.begin("GET", after, "");
        assert_eq!(stream.status, 200);
        stream
    }

    fn call(&self, tool: &str) -> Value {
        let params = json!({ "name": tool, "arguments": {} });
        self.begin("POST", None, &request(1, "tools/call", &params)).whole()
    }
}

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn slow(id: u64, ms: u64, meta: &Value) -> String {
    request(id, "tools/call", &json!({ "name": "slow", "arguments": { "ms": ms }, "_meta": meta }))
}

#[test]
fn batches_belong_to_one_revision() {
    let front = Front::serve(&over_stdio("", &[]));
    let call = json!({ "name": "echo", "arguments": { "text": "in a batch" } });
    let unknown = request(3, "tools/call", &json!({ "name": "nobody_has_it" }));
    let parts = [request(1, "ping", &json!({})), request(2, "tools/call", &call), "{}".to_owned(), unknown];
    let batch = format!("[{},{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}}]", parts.join(","));

    let session = Session::open(&front, "2025-03-26");
    let mut answers = session.begin("POST", None, &batch).messages();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let [bad, pong, echo, unknown] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!(bad["error"]["code"], -32600);
    assert_eq!(pong["result"], json!({}));
    assert_eq!(echo["result"]["content"][0]["text"], "in a batch");
    assert!(unknown["error"]["code"].is_i64(), "{unknown}");
    let silent = "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}]";
    assert_eq!(session.begin("POST", None, silent).status, 202);

    for other in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        assert_eq!(Session::open(&front, other).begin("POST", None, &batch).status, 400, "{other}");
    }
}

#[test]
fn a_lost_answer_is_fetched_again() {
    let fixture = Running::fixture(&[]);
    let front = Front::serve(&over_http(&fixture, ""));
    let session = Session::open(&front, "2025-11-25");
    let mut first = session.begin("POST", None, &slow(7, 1000, &json!({ "progressToken": "mine" })));
    let (id, progress) = first.event().unwrap();
    assert_eq!(progress["params"]["progress"], 1.0);
    assert_eq!(progress["params"]["progressToken"], "mine");
    drop(first);

    let rest = session.listen(Some(&id)).messages();
    let steps: Vec<u64> = rest
        .iter()
        .filter_map(|message| message["params"]["progress"].as_f64())
        .map(|step| step as u64)
        .collect();
    assert_eq!(steps, [2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(rest.last().unwrap()["id"], 7);
    assert_eq!(rest.last().unwrap()["result"]["content"][0]["text"], "1000 ms later");
    // The same once more, after the end.
    assert_eq!(session.listen(Some(&id)).messages(), rest);
    assert_eq!(Session::open(&front, "2025-11-25").begin("GET", Some(&id), "").status, 400);
}

#[test]
fn a_lost_get_stream_misses_nothing() {
    let fixture = Running::fixture(&["--era", "legacy"]);
    let front = Front::serve(&over_http(&fixture, ""));
    let session = Session::open(&front, "2025-11-25");
    let mut stream = session.listen(None);
    session.call("toggle_tool");
    let (id, first) = stream.event().unwrap();
    assert_eq!(first["method"], "notifications/tools/list_changed");
    drop(stream);

    session.call("test_trigger_prompt_change");
    let mut again = session.listen(Some(&id));
    let (next, second) = again.event().unwrap();
    assert_eq!(second["method"], "notifications/prompts/list_changed");
    assert_ne!(id, next);
    let mut replayed = session.listen(Some(&id));
    assert_eq!(replayed.event().unwrap(), (next, second));
}

/// A modern tool call.
fn modern(front: &Front, tool: &str, arguments: &Value) -> Exchange {
    let meta = json!({
        "progressToken": 1,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool)];
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    Exchange::begin(front, "POST", &headers, &request(7, "tools/call", &params))
}

#[test]
fn a_cancelled_call_is_cancelled_at_the_server() {
    let fixture = Running::fixture(&[]);
    for config in [over_http(&fixture, ""), over_stdio("", &[])] {
        let front = Front::serve(&config);
        let count = |answer: &Value| answer["result"]["structuredContent"]["cancelled"].as_u64().unwrap();

        // Legacy: by a notification.
        let session = Session::open(&front, "2025-11-25");
        let before = count(&session.call("record"));
        let mut open = session.begin("POST", None, &slow(7, 5000, &json!({ "progressToken": 1 })));
        open.event().unwrap();
        let params = json!({ "requestId": 7, "reason": "changed my mind" });
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        assert_eq!(session.begin("POST", None, &cancel.to_string()).status, 202);
        until("the legacy call is cancelled", || count(&session.call("record")) == before + 1);

        // Modern: by closing the stream.
        let counted = || count(&modern(&front, "record", &json!({})).whole());
        let before = counted();
        let mut open = modern(&front, "slow", &json!({ "ms": 5000 }));
        open.event().unwrap();
        drop(open);
        until("the modern call is cancelled", || counted() == before + 1);
    }
}
