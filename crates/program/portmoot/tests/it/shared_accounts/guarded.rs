//! An MCP server that checks the access tokens of its callers (RFC 6750, 8707, 9728), with answers
//! that can lie.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::http::Connection;
use crate::peer::{answer, small, tool};
use crate::support::until;

/// Called for each request with a good token, before it is answered.
type Watch = Arc<dyn Fn(&str) + Send + Sync>;

/// The server.
pub(super) struct Guarded {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    url: String,
    provider: Mutex<String>,
    /// What it says about itself, in place of the truth.
    metadata: Mutex<Option<String>>,
    challenge: Mutex<Option<String>>,
    /// Good tokens, and the second in which each expires.
    accepted: Mutex<BTreeMap<String, u64>>,
    /// Tokens that are good no more.
    ended: Mutex<BTreeSet<String>>,
    watch: Mutex<Option<Watch>>,
    /// All that it has received.
    got: Mutex<String>,
}

impl Guarded {
    pub(super) fn start() -> Guarded {
        Guarded::start_at("127.0.0.1", IpAddr::from([127, 0, 0, 1]))
    }

    /// At an address that has this name.
    pub(super) fn start_at(name: &str, address: IpAddr) -> Guarded {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            url: format!("http://{name}:{port}/mcp"),
            ..Shared::default()
        });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&serving);
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Guarded { shared }
    }

    pub(super) fn url(&self) -> String {
        self.shared.url.clone()
    }

    /// Trusts the provider at this address.
    pub(super) fn set_provider(&self, address: &str) {
        *self.shared.provider.lock().unwrap() = address.to_owned();
    }

    /// Says this about itself from now on; `None` is the truth again.
    pub(super) fn set_metadata(&self, metadata: Option<&str>) {
        *self.shared.metadata.lock().unwrap() = metadata.map(str::to_owned);
    }

    /// Refuses all callers with this challenge from now on; `None` ends that.
    pub(super) fn set_challenge(&self, challenge: Option<&str>) {
        *self.shared.challenge.lock().unwrap() = challenge.map(str::to_owned);
    }

    /// Accepts no token any more that it has accepted.
    pub(super) fn expire(&self) {
        let accepted = std::mem::take(&mut *self.shared.accepted.lock().unwrap());
        self.shared
            .ended
            .lock()
            .unwrap()
            .extend(accepted.into_keys());
    }

    /// Waits until every token that it has accepted has expired.
    pub(super) fn wait_expired(&self) {
        until("the tokens expire", || {
            let accepted = self.shared.accepted.lock().unwrap();
            accepted.values().all(|until| *until <= now()).then_some(())
        });
    }

    /// Calls this with the token of each request that has a good one, before it is answered.
    pub(super) fn watch(&self, watch: impl Fn(&str) + Send + Sync + 'static) {
        *self.shared.watch.lock().unwrap() = Some(Arc::new(watch));
    }

    pub(super) fn unwatch(&self) {
        *self.shared.watch.lock().unwrap() = None;
    }

    /// All that it has received.
    pub(super) fn got(&self) -> String {
        self.shared.got.lock().unwrap().clone()
    }

    /// The good tokens that it has got, each once.
    pub(super) fn accepted(&self) -> Vec<String> {
        self.shared
            .accepted
            .lock()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    }
}

impl Shared {
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
            let header = |wanted: &str| {
                let mut lines = head.lines().filter_map(|line| line.split_once(": "));
                lines
                    .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
                    .map(|(_, value)| value.to_owned())
            };
            let length = header("content-length").map_or(0, |length| length.parse().unwrap());
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                return;
            }
            *self.got.lock().unwrap() += &format!("{head}{}", String::from_utf8_lossy(&body));
            let token = header("authorization")
                .and_then(|line| line.strip_prefix("Bearer ").map(str::to_owned));
            let answered = self.answer(&head, token, &body);
            if out.write_all(answered.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, head: &str, token: Option<String>, body: &[u8]) -> String {
        let origin = self.url.trim_end_matches("/mcp");
        if head.starts_with("GET /.well-known/oauth-protected-resource/mcp ") {
            let truth = json!({
                "resource": self.url,
                "authorization_servers": [format!("http://{}", self.provider.lock().unwrap())],
                "scopes_supported": ["mcp:read", "mcp:write"],
            });
            let said = self
                .metadata
                .lock()
                .unwrap()
                .clone()
                .unwrap_or_else(|| truth.to_string());
            return response("200 OK", "", &said);
        }
        if !head.starts_with("POST /mcp ") {
            let status = if head.starts_with("DELETE /mcp ") {
                "200 OK"
            } else {
                "405 Method Not Allowed"
            };
            return response(status, "", "");
        }
        let message: Value = serde_json::from_slice(body).unwrap_or_default();
        let document =
            format!("resource_metadata=\"{origin}/.well-known/oauth-protected-resource/mcp\"");
        if let Some(challenge) = &*self.challenge.lock().unwrap() {
            return response(
                "401 Unauthorized",
                &format!("www-authenticate: {challenge}\r\n"),
                "",
            );
        }
        let Some(token) = token else {
            let challenge = format!("www-authenticate: Bearer {document}\r\n");
            return response("401 Unauthorized", &challenge, "");
        };
        if !self.accepts(&token) {
            let challenge =
                format!("www-authenticate: Bearer error=\"invalid_token\", {document}\r\n");
            return response("401 Unauthorized", &challenge, "");
        }
        let watch = self.watch.lock().unwrap().clone();
        if let Some(watch) = watch {
            watch(&token);
        }
        if message["id"].is_null() {
            return response("202 Accepted", "", "");
        }
        let tools = format!("[{}]", tool("search"));
        let found = r#"{"content":[{"type":"text","text":"found"}]}"#;
        let said = small(&message, &tools).unwrap_or_else(|| answer(&message, found));
        response("200 OK", "", &said)
    }

    fn accepts(&self, token: &str) -> bool {
        if self.ended.lock().unwrap().contains(token) {
            return false;
        }
        let known = self.accepted.lock().unwrap().get(token).copied();
        let until = known.or_else(|| {
            let order = json!({ "op": "accepted", "token": token, "audience": self.url });
            let address = self.provider.lock().unwrap().clone();
            let headers = [("content-type", "application/json")];
            let said = Connection::open(&address).exchange(
                "POST",
                "/control",
                &headers,
                &order.to_string(),
            );
            said.json()["claims"]["exp"].as_u64()
        });
        if let (None, Some(until)) = (known, until) {
            self.accepted
                .lock()
                .unwrap()
                .insert(token.to_owned(), until);
        }
        until.is_some_and(|until| now() < until)
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
