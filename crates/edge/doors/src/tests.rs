//! Doors of a gateway without servers, over connections in memory.

mod locks;
mod unread;

use std::sync::Arc;
use std::time::Duration;

use auth::{Credential, Identities, Participant, TokenHash};
use axum::Router;
use config::GatewayLimits;
use control::{Concerned, Registry};
use gateway::Dispatch;
use identity::AccessJournal;
use identity::config::ParticipantConfig;
use model::{Capabilities, ParticipantId, TopicName};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::timeout;
use topic::section::TopicLimits;

use crate::Doors;
use crate::fixture::{config, registry, registry_for, user};

const PIPE_BYTES: usize = 64 * 1024;
const LONG: Duration = Duration::from_secs(5);
const LEGACY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}"#;

struct Gateway {
    doors: Arc<Doors>,
    registry: Arc<Registry>,
}

impl Gateway {
    fn new() -> Self {
        let topics = TopicLimits {
            keep_alive: Duration::from_millis(50),
            ..TopicLimits::default()
        };
        let registry = registry(GatewayLimits {
            topics,
            ..GatewayLimits::default()
        });
        Self::of(registry)
    }

    /// A gateway that knows `scout` by the token `pm_scout`.
    fn with_scout() -> Self {
        Self::of(registry_for(
            config(GatewayLimits::default()),
            Self::scout(),
        ))
    }

    fn scout() -> Identities {
        let scout = Self::configured_scout();
        let participant = Arc::clone(&scout.participant);
        let credentials = scout.credentials.into_iter();
        Identities::tokens(credentials.map(|one| (one, Arc::clone(&participant))))
    }

    fn configured_scout() -> ParticipantConfig {
        let topic = TopicName::new("main").unwrap();
        let scout = Participant::new(
            ParticipantId::new("scout").unwrap(),
            Arc::new(Capabilities::full()),
            vec![topic],
        );
        let credential = Credential {
            hash: TokenHash::of("pm_scout"),
            expires_ms: None,
        };
        ParticipantConfig {
            participant: Arc::new(scout),
            credentials: vec![credential],
            subject: None,
            certificates: Vec::new(),
            capabilities_written: true,
            shadow: None,
            serves: false,
        }
    }

    fn of(registry: Arc<Registry>) -> Self {
        Self {
            doors: Arc::new(Doors::new(Arc::clone(&registry), Router::new()).unwrap()),
            registry,
        }
    }

    fn connect(&self) -> Client {
        let (near, far) = duplex(PIPE_BYTES);
        let doors = Arc::clone(&self.doors);
        tokio::spawn(async move { doors.connection(far).await });
        Client {
            io: near,
            read: String::new(),
        }
    }

    fn dispatch(&self) -> Arc<Dispatch> {
        self.registry
            .topic(&TopicName::new("main").unwrap())
            .unwrap()
    }
}

/// An HTTP client that reads as little as it must.
struct Client {
    io: DuplexStream,
    read: String,
}

struct Reply {
    head: String,
    body: String,
}

impl Reply {
    fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

impl Client {
    async fn send(&mut self, start: &str, headers: &[(&str, &str)], body: &str) {
        let mut text = format!(
            "{start} HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        );
        headers
            .iter()
            .for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
        self.io
            .write_all((text + "\r\n" + body).as_bytes())
            .await
            .unwrap();
    }

    async fn more(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let count = timeout(LONG, self.io.read(&mut bytes))
            .await
            .expect("nothing comes")
            .unwrap();
        self.read += &String::from_utf8_lossy(&bytes[..count]);
        count > 0
    }

    /// Reads up to this text and returns everything read, with it.
    async fn until(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.read.find(text) {
                let rest = self.read.split_off(at + text.len());
                return std::mem::replace(&mut self.read, rest);
            }
            assert!(
                self.more().await,
                "the connection ended before {text:?}: {:?}",
                self.read
            );
        }
    }

    async fn reply(&mut self) -> Reply {
        let head = self.until("\r\n\r\n").await;
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        while self.read.len() < length {
            assert!(self.more().await);
        }
        let rest = self.read.split_off(length);
        Reply {
            head,
            body: std::mem::replace(&mut self.read, rest),
        }
    }

    async fn post(&mut self, headers: &[(&str, &str)], body: &str) -> Reply {
        self.send("POST /mcp", headers, body).await;
        self.reply().await
    }

    async fn modern(&mut self, method: &str, params: &str) -> Reply {
        self.send_modern(method, params).await;
        self.reply().await
    }

    async fn send_modern(&mut self, method: &str, params: &str) {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{META}{params}}}}}"#
        );
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
        ];
        self.send("POST /mcp", &headers, &body).await;
    }
}

fn request(id: u64, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#)
}

#[tokio::test]
async fn a_legacy_session_from_initialize_to_delete() {
    let gateway = Gateway::new();
    let mut client = gateway.connect();
    let welcome = client.post(&[], LEGACY).await;
    assert_eq!(welcome.status(), 200);
    assert!(
        welcome.body.contains(r#""protocolVersion":"2025-11-25""#),
        "{}",
        welcome.body
    );
    let id = welcome.header("mcp-session-id").unwrap().to_owned();
    let session = [("mcp-session-id", id.as_str())];
    let pong = client.post(&session, &request(2, "ping")).await;
    assert_eq!(
        (pong.status(), pong.body.as_str()),
        (200, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#)
    );
    let tools = client.post(&session, &request(3, "tools/list")).await;
    assert!(
        tools.status() == 200 && tools.body.contains(r#""id":3,"result":{"tools":["#),
        "{}",
        tools.body
    );
    let notice = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(client.post(&session, notice).await.status(), 202);
    // On another connection, too.
    let mut other = gateway.connect();
    assert_eq!(
        other
            .post(&session, &request(4, "tools/list"))
            .await
            .status(),
        200
    );
    other.send("DELETE /mcp", &session, "").await;
    assert_eq!(other.reply().await.status(), 204);
    // The first connection knows it at once.
    assert_eq!(
        client
            .post(&session, &request(5, "tools/list"))
            .await
            .status(),
        404
    );
    assert_eq!(
        client.post(&[], &request(6, "tools/list")).await.status(),
        400
    );
}

#[tokio::test]
async fn errors_of_legacy_requests_are_200_and_of_modern_ones_have_statuses() {
    let gateway = Gateway::new();
    let mut client = gateway.connect();
    let id = client
        .post(&[], LEGACY)
        .await
        .header("mcp-session-id")
        .unwrap()
        .to_owned();
    let session = [("mcp-session-id", id.as_str())];
    for (method, code) in [("server/discover", "-32601"), ("initialize", "-32600")] {
        let body = request(2, method).replace('}', r#","params":{}}"#);
        let session: &[_] = if method == "initialize" {
            &[]
        } else {
            &session
        };
        let reply = client.post(session, &body).await;
        assert!(reply.status() == 200, "{method}: {}", reply.head);
        let code = if method == "initialize" {
            "-32602"
        } else {
            code
        };
        assert!(reply.body.contains(code), "{method}: {}", reply.body);
    }
    let unknown = client.modern("vendor/method", "").await;
    assert!(
        unknown.status() == 404 && unknown.body.contains("-32601"),
        "{}",
        unknown.body
    );
    let ping = client.modern("ping", "").await;
    assert_eq!(ping.status(), 404, "{}", ping.body);
    let task = client.modern("tasks/get", r#","taskId":"t""#).await;
    assert_eq!(task.status(), 400, "{}", task.body);
}

#[tokio::test]
async fn modern_requests_share_one_link() {
    let gateway = Gateway::new();
    let before = gateway.dispatch().with(|topic| topic.links_len());
    for _ in 0..2 {
        let mut client = gateway.connect();
        let discovered = client.modern("server/discover", "").await;
        assert!(
            discovered.status() == 200 && discovered.body.contains("supportedVersions"),
            "{}",
            discovered.body
        );
        assert_eq!(client.modern("tools/list", "").await.status(), 200);
    }
    assert_eq!(
        gateway.dispatch().with(|topic| topic.links_len()),
        before + 1
    );
}

#[tokio::test]
async fn a_listen_request_is_acknowledged_first_and_ends_with_its_connection() {
    let gateway = Gateway::new();
    let mut client = gateway.connect();
    client
        .send_modern(
            "subscriptions/listen",
            r#","notifications":{"toolsListChanged":true}"#,
        )
        .await;
    let head = client.until("\r\n\r\n").await;
    assert!(
        head.contains("text/event-stream") && head.contains("connection: close"),
        "{head}"
    );
    let first = client.until("\n\n").await;
    assert!(
        first.contains("notifications/subscriptions/acknowledged"),
        "{first}"
    );
    assert!(first.contains(r#"subscriptionId":7"#), "{first}");
    // Silent, it is kept alive, by chunks without HTTP's machinery.
    client.until(": \n\n").await;
    client.until(": \n\n").await;
    let is_busy = |gateway: &Gateway| gateway.dispatch().with(|topic| topic.operations_len());
    assert_eq!(is_busy(&gateway), 1);
    drop(client);
    for _ in 0..500 {
        if is_busy(&gateway) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the listen request is still open");
}

#[tokio::test]
async fn only_hosts_of_the_gateway_and_small_heads_are_served() {
    let gateway = Gateway::new();
    let mut client = gateway.connect();
    client
        .io
        .write_all(b"GET / HTTP/1.1\r\nhost: evil.example.org\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(client.reply().await.status(), 403);
    client.send("GET /none", &[], "").await;
    assert_eq!(client.reply().await.status(), 404);
    client.send("PUT /mcp", &[], "").await;
    assert_eq!(client.reply().await.status(), 405);
    client
        .send("POST /mcp/nowhere", &[], &request(1, "ping"))
        .await;
    assert_eq!(client.reply().await.status(), 403);
}

#[tokio::test]
async fn the_pair_of_2024_11_05() {
    let gateway = Gateway::new();
    let mut events = gateway.connect();
    let mut client = gateway.connect();
    events.send("GET /sse", &[], "").await;
    events.until("data: ").await;
    let endpoint = events.until("\n").await;
    let start = format!("POST {}", endpoint.trim_end());
    for (body, answer) in [
        (request(1, "ping"), r#""id":1,"result":{}"#),
        (request(2, "tools/list"), "initialize first"),
        (
            LEGACY.replace("2025-11-25", "2024-11-05"),
            r#""protocolVersion":"2024-11-05""#,
        ),
        (LEGACY.to_owned(), "already initialized"),
        (request(3, "tools/list"), r#""id":3,"result":{"tools":["#),
    ] {
        client.send(&start, &[], &body).await;
        assert_eq!(client.reply().await.status(), 202);
        events.until(answer).await;
    }
    drop(events);
    for _ in 0..500 {
        client.send(&start, &[], &request(4, "ping")).await;
        if client.reply().await.status() == 404 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the session is still open");
}

#[tokio::test]
async fn both_eras_on_one_pipe() {
    let gateway = Gateway::new();
    let ((near, far_in), (far_out, out)) = (duplex(PIPE_BYTES), duplex(PIPE_BYTES));
    let doors = Arc::clone(&gateway.doors);
    let dispatch = gateway.dispatch();
    let user = user(&gateway.registry);
    let served = tokio::spawn(async move { doors.stdio(&dispatch, &user, far_in, far_out).await });
    let mut client = Client {
        io: out,
        read: String::new(),
    };
    let mut input = near;
    let modern = |id: u64, method: &str, more: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{META}{more}}}}}"#)
    };
    let listen = modern(
        4,
        "subscriptions/listen",
        r#","notifications":{"toolsListChanged":true}"#,
    );
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}"#;
    for (line, answer) in [
        (request(1, "tools/list"), "initialize first"),
        ("{".to_owned(), "-32700"),
        (modern(2, "tools/list", ""), r#""id":2,"#),
        (LEGACY.to_owned(), "protocolVersion"),
        (request(3, "ping"), r#""id":3,"result":{}"#),
        (listen, "acknowledged"),
        (cancel.to_owned(), r#""id":4,"result""#),
        (request(5, "tools/list"), r#""id":5,"result":{"tools":["#),
    ] {
        input.write_all((line + "\n").as_bytes()).await.unwrap();
        client.until(answer).await;
        client.until("\n").await;
    }
    drop(input);
    timeout(LONG, served).await.unwrap().unwrap().unwrap();
}

/// Revokes every token.
fn revoke_all(registry: &Arc<Registry>) {
    registry.renew(&AccessJournal::new(None, true), Concerned::Everybody);
}

#[tokio::test]
async fn a_participant_that_may_not_enter_any_more_when_its_request_is_complete_does_not_join() {
    let modern = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{{META}}}}}"#);
    let modern_headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/list\r\n";
    let remove_topic = |registry: &Arc<Registry>| {
        let mut config = config(GatewayLimits::default());
        let identity = Arc::make_mut(&mut config.identity);
        identity
            .topics
            .iter_mut()
            .for_each(|topic| topic.name = TopicName::new("side").unwrap());
        identity.participants.push(Gateway::configured_scout());
        registry.reload(config, &AccessJournal::new(None, true));
    };
    let changes: [fn(&Arc<Registry>); 2] = [revoke_all, remove_topic];
    let requests = [("", LEGACY), (modern_headers, &modern)];
    for (change, (headers, body)) in changes
        .into_iter()
        .flat_map(|change| requests.map(|one| (change, one)))
    {
        let gateway = Gateway::with_scout();
        let dispatch = gateway.dispatch();
        let mut client = gateway.connect();
        let token = [("authorization", "Bearer pm_scout")];
        assert_eq!(
            client.post(&token, &request(1, "ping")).await.status(),
            400,
            "the token is valid"
        );
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer pm_scout\r\n{headers}accept: application/json, text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let (first, rest) = body.split_at(1);
        client
            .io
            .write_all((head + first).as_bytes())
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        change(&gateway.registry);
        client.io.write_all(rest.as_bytes()).await.unwrap();
        assert_eq!(client.reply().await.status(), 403);
        assert!(
            !dispatch.with(|topic| topic.has_participant(&ParticipantId::new("scout").unwrap()))
        );
    }
}

#[tokio::test]
async fn a_pipe_ends_when_its_participant_is_revoked() {
    let gateway = Gateway::new();
    let ((near, far_in), (far_out, out)) = (duplex(PIPE_BYTES), duplex(PIPE_BYTES));
    let doors = Arc::clone(&gateway.doors);
    let dispatch = gateway.dispatch();
    let user = user(&gateway.registry);
    let served = tokio::spawn(async move { doors.stdio(&dispatch, &user, far_in, far_out).await });
    let mut client = Client {
        io: out,
        read: String::new(),
    };
    let mut input = near;
    input
        .write_all((LEGACY.to_owned() + "\n").as_bytes())
        .await
        .unwrap();
    client.until("protocolVersion").await;
    revoke_all(&gateway.registry);
    timeout(LONG, served).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn the_user_of_a_pipe_needs_no_token() {
    let gateway = Gateway::with_scout();
    let user = gateway.registry.pipe_user();
    let ((mut input, far_in), (far_out, out)) = (duplex(PIPE_BYTES), duplex(PIPE_BYTES));
    let doors = Arc::clone(&gateway.doors);
    let dispatch = gateway.dispatch();
    let served = tokio::spawn(async move { doors.stdio(&dispatch, &user, far_in, far_out).await });
    let mut client = Client {
        io: out,
        read: String::new(),
    };
    for (line, answer) in [
        (LEGACY.to_owned(), "protocolVersion"),
        (request(2, "tools/list"), r#""id":2,"result""#),
    ] {
        input.write_all((line + "\n").as_bytes()).await.unwrap();
        client.until(answer).await;
        // Tokens that change leave it alone.
        revoke_all(&gateway.registry);
    }
    drop(input);
    timeout(LONG, served).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_close_ends_sessions_and_listeners() {
    let gateway = Gateway::new();
    let address = gateway.doors.listen(([127, 0, 0, 1], 0).into()).unwrap();
    let mut client = gateway.connect();
    let id = client
        .post(&[], LEGACY)
        .await
        .header("mcp-session-id")
        .unwrap()
        .to_owned();
    let mut events = gateway.connect();
    events
        .send("GET /mcp", &[("mcp-session-id", &id)], "")
        .await;
    events.until(": \n\n").await;
    timeout(LONG, gateway.doors.close()).await.unwrap();
    events.until("0\r\n\r\n").await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
