//! Access tests: topics, grants and revocations while participants are connected, guests.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::{Connection, Reply, TIMEOUT};
use crate::support::{Client, Gateway, fixture, modern, until};

const ADMIN: &str = "token-of-the-administrator";
const AGENT: &str = "token-of-the-agent-called-a";

/// The participants of the promotion example (MCPx v0.1, section 11.3).
const PEOPLE: &str = "[participants.admin-user]\ntoken_env = \"ADMIN_TOKEN\"\n\
    capabilities = [\"mcp/*\", \"chat\", \"portmoot/grants\"]\ntopics = [\"main\", \"lobby\", \"board\"]\n\
    [participants.agent-a]\ntoken_env = \"AGENT_TOKEN\"\ncapabilities = [\"mcp/proposal:*\", \"chat\"]\n";
const TOPICS: &str = "[topics.main]\n[topics.board]\naccess = \"private\"\n[topics.lobby]\naccess = \"public\"\n\
    anonymous = \"reader\"\n[profiles.reader]\ncapabilities = [\"chat\", \"mcp/request:tools/call:a_echo\"]\n";

fn setup() -> (Home, String) {
    let home = Home::new()
        .env("ADMIN_TOKEN", ADMIN)
        .env("AGENT_TOKEN", AGENT);
    let data = format!(
        "[server]\ndata_dir = \"{}\"\n",
        home.path().join("data").display()
    );
    (home, data + PEOPLE + TOPICS + &fixture("a", &[]))
}

/// A participant on a WebSocket.
struct Ws(TcpStream);

impl Ws {
    /// Status and head of the upgrade, and the connection if it succeeded.
    fn try_open(gateway: &Gateway, topic: &str, token: Option<&str>) -> (u16, String, Option<Ws>) {
        let mut stream = TcpStream::connect(gateway.address()).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let bearer = token
            .map(|token| format!("authorization: Bearer {token}\r\n"))
            .unwrap_or_default();
        let head = format!(
            "GET /ws?topic={topic} HTTP/1.1\r\nhost: {}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{bearer}\r\n",
            gateway.address()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        if status == 101 {
            return (status, String::new(), Some(Ws(stream)));
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body).unwrap();
        (status, String::from_utf8(body).unwrap(), None)
    }

    #[track_caller]
    fn open(gateway: &Gateway, topic: &str, token: Option<&str>) -> Ws {
        let (status, why, ws) = Ws::try_open(gateway, topic, token);
        ws.unwrap_or_else(|| panic!("{status} {why}"))
    }

    fn send(&mut self, envelope: &Value) {
        let text = envelope.to_string();
        let length = u16::try_from(text.len()).unwrap();
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend(length.to_be_bytes());
        // A mask of zeros leaves the text unchanged.
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.0.write_all(&frame).unwrap();
    }

    fn request(&mut self, from: &str, id: &str, tool: &str) {
        self.send(&json!({
            "protocol": "mcpx/v0.1", "id": id, "from": from, "to": ["a"],
            "kind": format!("mcp/request:tools/call:{tool}"),
            "payload": { "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": { "text": id } } }
        }));
    }

    /// The next envelope of this kind; others are skipped.
    #[track_caller]
    fn receive(&mut self, kind: &str) -> Value {
        loop {
            let mut head = [0; 2];
            self.0
                .read_exact(&mut head)
                .unwrap_or_else(|error| panic!("{kind}: {error}"));
            let length = match head[1] {
                126 => {
                    let mut long = [0; 2];
                    self.0.read_exact(&mut long).unwrap();
                    usize::from(u16::from_be_bytes(long))
                }
                short => usize::from(short),
            };
            let mut payload = vec![0; length];
            self.0.read_exact(&mut payload).unwrap();
            if head[0] != 0x81 {
                continue;
            }
            let envelope: Value = serde_json::from_slice(&payload).unwrap();
            if envelope["kind"]
                .as_str()
                .is_some_and(|own| own.starts_with(kind))
            {
                return envelope;
            }
        }
    }

    /// The capabilities in the next welcome.
    #[track_caller]
    fn welcomed(&mut self) -> Value {
        self.receive("system/welcome")["payload"]["you"]["capabilities"].clone()
    }
}

fn exchange(gateway: &Gateway, method: &str, path: &str, token: &str, body: &Value) -> Reply {
    Connection::open(gateway.address()).api(method, path, token, body)
}

#[track_caller]
fn change(gateway: &Gateway, query: &str, body: Value) -> Value {
    let path = format!("/admin/participants/agent-a/capabilities{query}");
    let reply = exchange(gateway, "POST", &path, ADMIN, &body);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

fn held(gateway: &Gateway, topic: &str) -> Value {
    let all = gateway
        .get(&format!("/api/v1/participants?topic={topic}"), Some(ADMIN))
        .json();
    let found = all["participants"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["id"] == "agent-a")
        .cloned();
    found.unwrap_or_else(|| panic!("{all}"))["capabilities"].clone()
}

#[test]
fn the_promotion_example_of_the_specification_works() {
    let (home, config) = setup();
    let gateway = Gateway::start(&home, &config);
    let mut answer = change(
        &gateway,
        "",
        json!({ "add": ["mcp/request:tools/*"], "remove": [] }),
    );
    let at = answer["modifiedAt"].take();
    assert!(
        at.as_str()
            .is_some_and(|at| at.len() == "2025-08-26T14:30:00Z".len() && at.ends_with('Z'))
    );
    answer["modifiedAt"] = json!("2025-08-26T14:30:00Z");
    assert_eq!(
        answer,
        json!({
            "participantId": "agent-a",
            "oldCapabilities": ["mcp/proposal:*", "chat"],
            "newCapabilities": ["mcp/proposal:*", "mcp/request:tools/*", "chat"],
            "modifiedBy": "admin-user",
            "modifiedAt": "2025-08-26T14:30:00Z"
        })
    );
    // Other participants cannot, and invalid requests change nothing.
    let path = "/admin/participants/agent-a/capabilities";
    for (token, path, body, status, code) in [
        (
            AGENT,
            path,
            json!({ "add": ["mcp/*"] }),
            403,
            "capability_violation",
        ),
        (
            "no-such-token-at-all",
            path,
            json!({ "add": ["mcp/*"] }),
            401,
            "unauthenticated",
        ),
        (
            ADMIN,
            path,
            json!({ "add": ["game/x"] }),
            403,
            "capability_violation",
        ),
        (
            ADMIN,
            path,
            json!({ "add": ["portmoot/tokens"] }),
            403,
            "capability_violation",
        ),
        (
            ADMIN,
            path,
            json!({ "add": ["mcp/request:*", "*"] }),
            400,
            "malformed",
        ),
        (
            ADMIN,
            path,
            json!({ "add": ["mcp/request:*"], "remove": ["gone/x"] }),
            400,
            "malformed",
        ),
        (
            ADMIN,
            path,
            json!({ "add": ["mcp/request:*"], "expires": "soon" }),
            400,
            "malformed",
        ),
        (
            ADMIN,
            path,
            json!({ "add": ["mcp/request:*"], "more": 1 }),
            400,
            "malformed",
        ),
        (ADMIN, path, json!({}), 400, "malformed"),
        (
            ADMIN,
            "/admin/participants/absent/capabilities",
            json!({ "add": ["chat"] }),
            404,
            "unknown_target",
        ),
        (
            ADMIN,
            "/admin/participants/a/capabilities",
            json!({ "add": ["chat"] }),
            404,
            "unknown_target",
        ),
        (
            ADMIN,
            "/admin/participants/anonymous-1/capabilities",
            json!({ "add": ["chat"] }),
            404,
            "unknown_target",
        ),
    ] {
        let reply = exchange(&gateway, "POST", path, token, &body);
        assert_eq!(
            (reply.status, reply.json()["code"].as_str()),
            (status, Some(code)),
            "{body} {reply:?}"
        );
    }
    assert_eq!(
        held(&gateway, "main"),
        json!(["mcp/proposal:*", "mcp/request:tools/*", "chat"])
    );
}

#[test]
fn a_connected_participant_is_notified_of_grants_and_revocations() {
    let (home, config) = setup();
    let gateway = Gateway::start(&home, &config);
    let mut agent = Ws::open(&gateway, "main", Some(AGENT));
    assert_eq!(agent.welcomed(), json!(["mcp/proposal:*", "chat"]));
    agent.request("agent-a", "r1", "echo");
    let refused = agent.receive("system/error");
    assert_eq!(
        (&refused["payload"]["error"], &refused["correlation_id"]),
        (&json!("capability_violation"), &json!("r1"))
    );
    change(&gateway, "", json!({ "add": ["mcp/request:tools/*"] }));
    assert_eq!(
        agent.welcomed(),
        json!(["mcp/proposal:*", "mcp/request:tools/*", "chat"])
    );
    agent.request("agent-a", "r2", "echo");
    let answer = agent.receive("mcp/response");
    assert_eq!(answer["correlation_id"], "r2", "{answer}");
    // Revoking ends open calls, over MCP too.
    let client = Client::of(&gateway, AGENT);
    let open = client.begin_call("a_hang", json!({}));
    let calls = || (gateway.get("/api/v1/servers/a", Some(ADMIN)).status, ());
    until("the call is open", || {
        let metrics = gateway.get("/metrics", Some(ADMIN)).body;
        metrics
            .contains("portmoot_topic_operations{topic=\"main\"} 1")
            .then_some(())
    });
    assert_eq!(calls().0, 403, "granting is not looking at servers");
    let began = Instant::now();
    change(
        &gateway,
        "",
        json!({ "remove": ["mcp/request:tools/*"], "reason": "enough" }),
    );
    assert_eq!(agent.welcomed(), json!(["mcp/proposal:*", "chat"]));
    let ended = open.rest().pop().unwrap();
    assert!(ended["error"].is_object(), "{ended}");
    assert!(began.elapsed() < Duration::from_secs(10), "at once");
    agent.request("agent-a", "r3", "echo");
    assert_eq!(agent.receive("system/error")["correlation_id"], "r3");
}

#[test]
fn a_temporary_grant_expires_on_time() {
    let (home, config) = setup();
    let gateway = Gateway::start(&home, &config);
    let mut agent = Ws::open(&gateway, "main", Some(AGENT));
    agent.welcomed();
    let began = Instant::now();
    let answer = change(
        &gateway,
        "",
        json!({ "add": ["mcp/request:*"], "expires_in_seconds": 1 }),
    );
    assert!(answer["expiresAt"].is_string(), "{answer}");
    assert_eq!(
        agent.welcomed(),
        json!(["mcp/proposal:*", "mcp/request:*", "chat"])
    );
    assert_eq!(agent.welcomed(), json!(["mcp/proposal:*", "chat"]));
    let took = began.elapsed();
    assert!((900..2_500).contains(&took.as_millis()), "{took:?}");
    let path = "/api/v1/participants/agent-a/grants";
    let past = json!({ "add": ["mcp/request:*"], "expires": "2020-01-01T00:00:00Z" });
    assert_eq!(exchange(&gateway, "POST", path, ADMIN, &past).status, 400);
}

#[test]
fn grants_outlive_restarts_and_reloads_and_can_be_cleared() {
    let (home, config) = setup();
    let mut gateway = Gateway::start(&home, &config);
    change(
        &gateway,
        "",
        json!({ "add": ["mcp/request:tools/*"], "remove": ["chat"] }),
    );
    change(
        &gateway,
        "?topic=lobby",
        json!({ "add": ["mcp/request:prompts/*"] }),
    );
    let (main, lobby) = (held(&gateway, "main"), held(&gateway, "lobby"));
    assert_eq!(main, json!(["mcp/proposal:*", "mcp/request:tools/*"]));
    assert_eq!(
        lobby,
        json!([
            "mcp/proposal:*",
            "mcp/request:tools/*",
            "mcp/request:prompts/*"
        ])
    );
    gateway.signal("KILL");
    gateway.wait();
    let gateway = Gateway::start(&home, &config);
    assert_eq!(
        (held(&gateway, "main"), held(&gateway, "lobby")),
        (main.clone(), lobby)
    );
    let mut agent = Ws::open(&gateway, "main", Some(AGENT));
    assert_eq!(agent.welcomed(), main);
    // The configuration can change below the grants.
    home.write(
        "portmoot.toml",
        &config.replace("\"mcp/proposal:*\", \"chat\"", "\"game/*\", \"chat\""),
    );
    gateway.signal("HUP");
    assert_eq!(agent.welcomed(), json!(["game/*", "mcp/request:tools/*"]));
    let path = "/api/v1/participants/agent-a/grants";
    assert_eq!(
        exchange(&gateway, "DELETE", path, AGENT, &Value::Null).status,
        403
    );
    let reply = exchange(&gateway, "DELETE", path, ADMIN, &Value::Null);
    assert_eq!(reply.status, 204, "{reply:?}");
    assert_eq!(agent.welcomed(), json!(["game/*", "chat"]));
    assert_eq!(held(&gateway, "lobby"), json!(["game/*", "chat"]));
}

#[test]
fn guests_have_the_capabilities_of_the_anonymous_profile() {
    let (home, config) = setup();
    let gateway = Gateway::start(&home, &config);
    let [mut one, mut two] = [(); 2].map(|()| Ws::open(&gateway, "lobby", None));
    let names =
        [&mut one, &mut two].map(|ws| ws.receive("system/welcome")["payload"]["you"].clone());
    assert!(
        names
            .iter()
            .all(|you| you["id"].as_str().unwrap().starts_with("anonymous-")),
        "{names:?}"
    );
    assert_ne!(names[0]["id"], names[1]["id"]);
    assert_eq!(
        names[0]["capabilities"],
        json!(["chat", "mcp/request:tools/call:a_echo"])
    );
    one.request(names[0]["id"].as_str().unwrap(), "r1", "hang");
    assert_eq!(
        one.receive("system/error")["payload"]["error"],
        "capability_violation"
    );
    one.request("admin-user", "r2", "echo");
    assert_eq!(
        one.receive("system/error")["payload"]["error"],
        "auth_violation"
    );
    // The same over MCP, in both eras.
    let client = Client::open(&gateway, None, "/mcp/lobby", json!({}));
    assert_eq!(client.names("tools"), ["a_echo"]);
    assert_eq!(
        client.call("a_echo", json!({ "text": "hi" }))["content"][0]["text"],
        "hi"
    );
    let other = Client::open(&gateway, None, "/mcp/lobby", json!({}));
    assert_ne!(client.session, other.session);
    // Not in other topics, and not on the API.
    for topic in ["main", "board", "gone"] {
        assert_eq!(Ws::try_open(&gateway, topic, None).0, 401, "{topic}");
    }
    assert_eq!(
        Ws::try_open(&gateway, "lobby", Some("a-token-that-is-nobodys")).0,
        401
    );
    assert_eq!(modern(&gateway, None, "tools/list", json!({})).status, 401);
    for path in [
        "/api/v1/participants",
        "/api/v1/tools?topic=lobby",
        "/metrics",
    ] {
        assert_eq!(gateway.get(path, None).status, 401, "{path}");
    }
    // Every configured participant may join a public topic. When its access changes, guests are
    // disconnected.
    Ws::open(&gateway, "lobby", Some(AGENT)).welcomed();
    home.write(
        "portmoot.toml",
        &config.replace("anonymous = \"reader\"\n", ""),
    );
    gateway.signal("HUP");
    until("guests are refused", || {
        (Ws::try_open(&gateway, "lobby", None).0 == 401).then_some(())
    });
    let mut rest = Vec::new();
    one.0.read_to_end(&mut rest).unwrap();
    assert_eq!(client.status("ping", json!({})), 401);
}

#[test]
fn the_command_line_lists_grants_and_revokes() {
    let (home, config) = setup();
    let gateway = Gateway::start(&home, &config);
    let url = gateway.url();
    let cli =
        |args: &[&str], token: &str| home.run(&[args, &["--url", &url, "--token", token]].concat());
    let granted = cli(
        &[
            "participants",
            "grant",
            "agent-a",
            "mcp/request:*",
            "--for",
            "30m",
            "--reason",
            "a try",
        ],
        ADMIN,
    );
    assert_eq!(
        granted.expect(0).stdout,
        "mcp/proposal:*\nmcp/request:*\nchat\n"
    );
    let listed = cli(&["participants", "ls", "--topic", "main"], ADMIN)
        .expect(0)
        .stdout;
    assert!(
        listed.contains("+mcp/request:* by admin-user until "),
        "{listed}"
    );
    let listed = cli(&["participants", "ls", "--json"], AGENT)
        .expect(0)
        .stdout;
    assert!(
        !listed.contains("a try") && !listed.contains("board"),
        "{listed}"
    );
    let taken = cli(
        &["participants", "revoke", "agent-a", "mcp/request:*", "chat"],
        ADMIN,
    )
    .expect(0);
    assert_eq!(taken.stdout, "mcp/proposal:*\n");
    cli(&["participants", "grant", "agent-a", "chat"], AGENT).expect(3);
    cli(&["participants", "grant", "absent", "chat"], ADMIN).expect(5);
    cli(
        &["participants", "grant", "agent-a", "chat", "--for", "soon"],
        ADMIN,
    )
    .expect(2);
    home.run(&["participants", "ls", "--data-dir", "nowhere"])
        .expect(1);
}

#[test]
fn a_private_topic_looks_like_an_unknown_one_to_outsiders() {
    let (home, config) = setup();
    let gateway = Gateway::start(&home, &config);
    Ws::open(&gateway, "board", Some(ADMIN)).welcomed();
    let seen = |token: &str, topic: &str| {
        let (status, text, _) = Ws::try_open(&gateway, topic, Some(token));
        let mcp = Client::resume(&gateway, Some(token), &format!("/mcp/{topic}"), "");
        let mcp = mcp.post(&mcp.request("tools/list", json!({})));
        let tools = gateway.get(&format!("/api/v1/tools?topic={topic}"), Some(token));
        let people = gateway.get(&format!("/api/v1/participants?topic={topic}"), Some(token));
        let replies =
            [mcp, tools, people].map(|reply| (reply.status, reply.body.replace(topic, "TOPIC")));
        (status, text.replace(topic, "TOPIC"), replies)
    };
    assert_eq!(seen(AGENT, "board"), seen(AGENT, "gone"));
    assert_eq!(seen(AGENT, "board").0, 403);
    let grant = |token: &str, topic: &str| {
        let path = format!("/api/v1/participants/agent-a/grants?topic={topic}");
        let reply = exchange(&gateway, "POST", &path, token, &json!({ "add": ["chat"] }));
        (reply.status, reply.body.replace(topic, "TOPIC"))
    };
    assert_eq!(grant(AGENT, "board"), grant(AGENT, "gone"));
    for path in ["/api/v1/participants", "/metrics"] {
        let text = gateway.get(path, Some(AGENT)).body;
        assert!(
            text.contains("lobby") && !text.contains("board"),
            "{path}: {text}"
        );
        assert!(
            gateway.get(path, Some(ADMIN)).body.contains("board"),
            "{path}"
        );
    }
}
