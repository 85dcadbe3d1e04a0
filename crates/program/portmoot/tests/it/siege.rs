//! Some 1,400 attacks of a participant that may call one tool and read one folder: whatever it
//! sends, its server receives nothing else, the gateway answers or closes, and an honest request
//! after it works. The rows are made of spellings and wires.

mod spellings;

use std::io::{Read, Write};

use serde_json::{Value, json};

use crate::http::Connection;
use crate::peer::Peer;
use crate::support::{Client, Gateway, until};
use crate::ws::{GOOD, PONG, Socket, TEXT, people, token};
use spellings::{bodies, heads, names, uris};

const MODERN: &str = "2026-07-28";
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
const MAY: &[&str] = &[
    "mcp/request:tools/call:vault_echo",
    "mcp/request:tools/call:echo",
    "mcp/request:tools/call:proxy",
    "mcp/request:tools/list",
    "mcp/request:resources/*:file:///notes/*",
    "mcp/response:*",
];

/// Calls by the tool `proxy` are attacked too.
const TOPIC: &str = "[topics.main]\nbuiltin = [\"proxy\", \"search_tools\"]\n";

/// A server with a harmless tool, a harmful one, and files of which some are private.
fn vault() -> Peer {
    Peer::stdio(|message| {
        let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "serverInfo": { "name": "vault", "version": "1" },
                "capabilities": { "tools": {}, "resources": { "subscribe": true }, "prompts": {}, "completions": {} },
            }),
            "tools/list" => json!({ "tools": [tool("echo"), tool("wipe")] }),
            "resources/list" => json!({ "resources": [{ "uri": "file:///notes/a", "name": "a" }] }),
            "resources/templates/list" => {
                json!({ "resourceTemplates": [{ "uriTemplate": "file:///{+path}", "name": "f" }] })
            }
            "prompts/list" => json!({ "prompts": [{ "name": "secret" }] }),
            "tools/call" => {
                json!({ "content": [{ "type": "text", "text": message["params"]["name"] }] })
            }
            _ => json!({ "contents": [] }),
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        if message["id"].is_null() {
            vec![]
        } else {
            vec![answer.to_string().into_bytes()]
        }
    })
}

/// Whether the participant may cause this message, or the gateway sends it of its own accord.
fn is_allowed(line: &str) -> bool {
    let message: Value = serde_json::from_str(line).unwrap_or_default();
    let (method, params) = (
        message["method"].as_str().unwrap_or_default(),
        &message["params"],
    );
    match method {
        "tools/call" => params["name"] == "echo",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            let uri = params["uri"].as_str().unwrap_or_default();
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:*{}$~".contains(c);
            uri.starts_with("file:///notes/")
                && uri.chars().all(plain)
                && !uri.contains("/..")
                && !uri.contains("/./")
        }
        "initialize" | "ping" => true,
        _ => method.starts_with("notifications/") || method.ends_with("/list"),
    }
}

struct Siege {
    gateway: Gateway,
    vault: Peer,
    count: usize,
    _home: crate::home::Home,
}

impl Siege {
    fn new() -> Siege {
        let (home, people) = people(&[("scout", MAY), ("boss", &["mcp/*", "portmoot/*"])]);
        let vault = vault();
        let gateway = Gateway::start(&home, &(vault.child("vault", "vault") + &people + TOPIC));
        gateway.ready("vault");
        Siege {
            gateway,
            vault,
            count: 0,
            _home: home,
        }
    }

    /// The headers of a legacy session of the scout.
    fn legacy(&self) -> String {
        let session = Client::of(&self.gateway, &token("scout")).session.clone();
        format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n")
    }

    /// Sends one HTTP request as the scout and reads its answer.
    fn post(&mut self, what: &str, head: &str, body: &[u8]) {
        let address = self.gateway.address().to_owned();
        let mut request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n{head}\r\n",
            token("scout"),
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(crate::http::TIMEOUT)).unwrap();
        let _ = stream.write_all(&request);
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        let timed_out = read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(
            !timed_out,
            "{what}: neither answered nor closed; so far: {answer}"
        );
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse::<u16>().ok())
            .unwrap_or_default();
        assert!(status < 500, "{what}: {answer}");
        self.count += 1;
    }

    fn modern(&mut self, what: &str, method: &str, name: &str, body: &str) {
        let head = format!(
            "mcp-protocol-version: {MODERN}\r\nmcp-method: {method}\r\nmcp-name: {name}\r\n"
        );
        self.post(what, &head, body.as_bytes());
    }

    /// Sends one text over a WebSocket of its own, and waits until it was read.
    fn say(&mut self, what: &str, text: &[u8]) {
        let (mut socket, _) = Socket::welcomed(&self.gateway, "scout", "?mode=directed");
        socket.frame(0x80 | TEXT, text);
        socket.frame(0x89, b"read");
        while let Some(frame) = socket.next() {
            let text = String::from_utf8_lossy(&frame.payload).into_owned();
            assert!(
                !text.contains("\"wipe\"") || text.contains("system/"),
                "{what}: {text}"
            );
            if frame.opcode == PONG {
                break;
            }
        }
        self.count += 1;
    }

    /// Fails if the server received what the scout may not cause, or an honest call does not work.
    #[track_caller]
    fn holds(&self, wave: &str) {
        let client = Client::of(&self.gateway, &token("scout"));
        assert_eq!(
            client.call("vault_echo", json!({ "after": wave }))["content"][0]["text"],
            "echo"
        );
        assert!(!client.names("tools").contains(&"vault_wipe".to_owned()));
        let marker = format!("\"after\":\"{wave}\"");
        // Lines arrive in order: everything that was sent before is here as well.
        until("the honest call has arrived", || {
            self.vault
                .received()
                .iter()
                .any(|line| line.contains(&marker))
                .then_some(())
        });
        let through: Vec<String> = self
            .vault
            .received()
            .into_iter()
            .filter(|line| !is_allowed(line))
            .collect();
        assert!(
            through.is_empty(),
            "{wave}: {} got through: {:#?}",
            through.len(),
            &through[..through.len().min(99)]
        );
    }
}

#[test]
fn no_spelling_of_a_name_reaches_another_tool() {
    let mut siege = Siege::new();
    let legacy = siege.legacy();
    for (at, name) in names().iter().enumerate() {
        let inner = format!(r#""name":{name},"arguments":{{"attack":{at}}}"#);
        let call = |params: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":{at},"method":"tools/call","params":{{{params}}}}}"#)
        };
        siege.post(
            &format!("legacy {name:.80}"),
            &legacy,
            call(&inner).as_bytes(),
        );
        let with_meta = call(&format!("{inner},{META}"));
        siege.modern(
            &format!("modern, another header, {name:.80}"),
            "tools/call",
            "vault_echo",
            &with_meta,
        );
        let spelled = name.trim_matches('"').get(..60).unwrap_or("vault_wipe");
        siege.modern(
            &format!("modern {name:.80}"),
            "tools/call",
            spelled,
            &with_meta,
        );
        let proxied = format!(
            r#""name":"proxy","arguments":{{"action":"call","type":"tool","path":{name},"args":{{"attack":{at}}}}}"#
        );
        siege.post(
            &format!("proxy {name:.80}"),
            &legacy,
            call(&proxied).as_bytes(),
        );
        let envelope = |kind: &str| {
            format!(
                r#"{{"protocol":"mcp-x/v0","id":"e{at}","ts":"2026-01-01T00:00:00Z","from":"scout","to":["vault"],"kind":"{kind}","payload":{}}}"#,
                call(&inner)
            )
        };
        siege.say(
            &format!("envelope, another kind, {name:.80}"),
            envelope("mcp/request:tools/call:echo").as_bytes(),
        );
        let kind = name.trim_matches('"').get(..60).unwrap_or("wipe");
        siege.say(
            &format!("envelope {name:.80}"),
            envelope(&format!("mcp/request:tools/call:{kind}")).as_bytes(),
        );
    }
    siege.holds("names");
    assert!(siege.count > 400, "{}", siege.count);
}

#[test]
fn no_spelling_of_a_uri_leads_out_of_a_folder() {
    let mut siege = Siege::new();
    let legacy = siege.legacy();
    for (at, uri) in uris().iter().enumerate() {
        for method in ["resources/read", "resources/subscribe"] {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{at},"method":"{method}","params":{{"uri":"{uri}"}}}}"#
            );
            siege.post(&format!("{method} {uri}"), &legacy, body.as_bytes());
        }
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{at},"method":"resources/read","params":{{"uri":"{uri}",{META}}}}}"#
        );
        siege.modern(&format!("modern {uri}"), "resources/read", uri, &body);
        let proxied = format!(
            r#"{{"jsonrpc":"2.0","id":{at},"method":"tools/call","params":{{"name":"proxy","arguments":{{"action":"call","type":"resource","path":"{uri}"}}}}}}"#
        );
        siege.post(&format!("proxy {uri}"), &legacy, proxied.as_bytes());
    }
    siege.holds("uris");
    assert!(siege.count > 400, "{}", siege.count);
}

#[test]
fn no_spelling_that_a_pattern_refuses_is_given_away_by_its_holder() {
    let clerk = [MAY, &["portmoot/grants", "portmoot/tokens"]].concat();
    let (home, people) = people(&[("clerk", &clerk)]);
    let vault = vault();
    let gateway = Gateway::start(&home, &(vault.child("vault", "vault") + &people));
    let post = |path: &str, body: &Value| {
        let bearer = format!("Bearer {}", token("clerk"));
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        Connection::open(gateway.address())
            .exchange("POST", path, &headers, &body.to_string())
            .status
    };
    let give = |capability: &str| {
        let granted = post(
            "/api/v1/participants/clerk/grants",
            &json!({ "add": [capability] }),
        );
        let issued = post(
            "/api/v1/tokens",
            &json!({ "name": "friend", "capabilities": [capability] }),
        );
        [granted, issued]
    };
    let aside = [
        "file:///private/a",
        "file:///notes/../private/a",
        "file:///notes/%2e%2e/private/a",
        "file:///notes/./../private",
    ];
    for uri in aside {
        let given = give(&format!("mcp/request:resources/read:{uri}"));
        assert!(
            given.iter().all(|status| [400, 403].contains(status)),
            "{uri:?} {given:?}"
        );
    }
    assert_eq!(
        give("mcp/request:resources/read:file:///notes/a"),
        [200, 201]
    );
}

#[test]
fn no_ambiguous_body_or_head_is_taken_for_another_request() {
    let mut siege = Siege::new();
    let legacy = siege.legacy();
    for (at, body) in bodies().iter().enumerate() {
        let shown = String::from_utf8_lossy(body)
            .chars()
            .take(120)
            .collect::<String>();
        siege.post(&format!("body {at}: {shown}"), &legacy, body);
        siege.post(&format!("body {at} without a session: {shown}"), "", body);
        siege.say(&format!("body {at} in a frame: {shown}"), body);
        let head = br#"{"protocol":"mcp-x/v0","id":"b","ts":"2026-01-01T00:00:00Z","from":"scout","to":["vault"],"kind":"mcp/request:tools/call:echo","payload":"#;
        siege.say(
            &format!("body {at} as a payload: {shown}"),
            &[head, body.as_slice(), b"}"].concat(),
        );
    }
    siege.holds("bodies");
    let wipe = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"vault_wipe","arguments":{{}},{META}}}}}"#
    );
    for head in heads() {
        siege.post(
            &format!("head {head}"),
            &format!("{legacy}{head}\r\n"),
            wipe.as_bytes(),
        );
        let modern = format!(
            "mcp-protocol-version: {MODERN}\r\nmcp-method: tools/call\r\nmcp-name: vault_wipe\r\n{head}\r\n"
        );
        siege.post(&format!("modern head {head}"), &modern, wipe.as_bytes());
    }
    siege.holds("heads");
    for (name, value) in [
        ("connection", "close"),
        ("upgrade", "h2c"),
        ("sec-websocket-version", "8"),
        ("sec-websocket-key", "x"),
    ] {
        let headers: Vec<(&str, &str)> = GOOD
            .iter()
            .map(|&(known, good)| (known, if known == name { value } else { good }))
            .collect();
        let bearer = format!("Bearer {}", token("scout"));
        let reply = crate::ws::answer(
            &siege.gateway,
            "/ws",
            &[&headers[..], &[("authorization", &bearer)]].concat(),
        );
        assert!(
            (400..500).contains(&reply.status),
            "{name}: {value}: {reply:?}"
        );
        siege.count += 1;
    }
    assert!(siege.count > 400, "{}", siege.count);
}
