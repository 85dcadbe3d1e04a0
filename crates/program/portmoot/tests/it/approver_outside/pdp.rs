//! A scripted PDP, with the service for access requests in it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// A request that it has received.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) path: String,
    /// Request line and headers, in lower case.
    pub(crate) head: String,
    pub(crate) text: String,
    pub(crate) bytes: Vec<u8>,
}

impl Received {
    pub(crate) fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// The argument `text` of the call that it is asked about.
    pub(crate) fn word(&self) -> String {
        let word = &self.body()["context"]["arguments"]["/text"];
        word.as_str().unwrap_or_default().to_owned()
    }

    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines();
        let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.unwrap_or_else(|| panic!("no {name}: {}", self.head))
    }
}

/// An answer of it.
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// An answer with this status and body.
pub(crate) fn said(status: u16, body: &Value) -> Said {
    raw(status, &body.to_string())
}

pub(crate) fn raw(status: u16, body: &str) -> Said {
    let (head, body) = (String::new(), body.to_owned());
    Said { status, head, body }
}

pub(crate) fn decision(decision: bool) -> Said {
    said(200, &json!({ "decision": decision }))
}

/// A denial that may be requested.
pub(crate) fn requestable() -> Said {
    requestable_with(&json!({}))
}

/// The same with more members of `access_request`.
pub(crate) fn requestable_with(more: &Value) -> Said {
    let mut offer = json!({ "expires_at": "2999-01-01T00:00:00Z", "binding_token": "b.t.k" });
    let offered = offer.as_object_mut().unwrap();
    offered.extend(more.as_object().unwrap().clone());
    let context = json!({ "evaluation_id": "eval-1", "reason": "approval_required", "access_request": offer });
    said(200, &json!({ "decision": false, "context": context }))
}

/// A task with this status, at this service.
pub(crate) fn task(base: &str, id: &str, status: &str) -> Value {
    let endpoint = format!("{base}/requests/{id}");
    json!({ "task": { "id": id, "status": status, "status_endpoint": endpoint,
        "links": { "cancel": format!("{endpoint}/cancel") } } })
}

/// The service.
pub(crate) struct Pdp {
    port: u16,
    received: Arc<Mutex<Vec<Received>>>,
}

type Script = dyn Fn(&Received, &str) -> Said + Send + Sync;

impl Pdp {
    /// A service that answers each request by this script, which gets its own address too.
    pub(crate) fn start(script: impl Fn(&Received, &str) -> Said + Send + Sync + 'static) -> Pdp {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let kept = Arc::clone(&received);
        let script: Arc<Script> = Arc::new(script);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (kept, script) = (Arc::clone(&kept), Arc::clone(&script));
                std::thread::spawn(move || serve(stream, port, &kept, &*script));
            }
        });
        Pdp { port, received }
    }

    pub(crate) fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The requests so far whose paths begin so.
    pub(crate) fn received(&self, path: &str) -> Vec<Received> {
        let all = self.received.lock().unwrap();
        let meant = all.iter().filter(|one| one.path.starts_with(path));
        meant.cloned().collect()
    }
}

fn serve(stream: TcpStream, port: u16, kept: &Mutex<Vec<Received>>, script: &Script) {
    let mut out = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let head = head.to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let text = String::from_utf8_lossy(&body).into_owned();
    let received = Received {
        path,
        head,
        text,
        bytes: body,
    };
    kept.lock().unwrap().push(received.clone());
    let Said { status, head, body } = script(&received, &format!("http://127.0.0.1:{port}"));
    let length = body.len();
    // The client may be gone.
    let _ = write!(
        out,
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n{head}\r\n{body}"
    );
}
