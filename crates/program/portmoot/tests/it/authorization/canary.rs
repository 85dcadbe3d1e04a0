//! Secrets as canaries: tokens of callers through every way in, tokens of servers through every
//! transport. Each is found where it belongs and nowhere else: no other server, answer, log,
//! metric, page of the API or file has it, in any spelling.

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use harness::{grpc_client, proto_client};
use serde_json::{Value, json};

use super::provider::Provider;
use super::{PUBLIC, resource};
use crate::home::Home;
use crate::http::{Connection, Reply, TIMEOUT};
use crate::peer::{Peer, answer, small, tool};
use crate::proto_clients::websocket;
use crate::proto_servers::child;
use crate::socket::{Events, LEGACY, Piped, initialize};
use crate::support::{Client, Gateway, modern, modern_request, until};
use crate::ws::Socket;

const ANN: &str = "canary-of-ann-which-is-configured";
const SCOUT: &str = "canary-of-scout-who-may-only-propose";
/// Tokens of the gateway at servers that have one each.
const AT_PLAIN: &str = "canary-at-plain-which-is-configured";
const AT_ECHOING: &str = "canary-at-echoing-which-says-it-again";
const AT_REFUSING: &str = "canary-at-refusing-which-says-it-again";
/// The same, printed by a command, in a file, and kept by the gateway.
const AT_COMMANDED: &str = "canary-at-commanded-which-is-printed";
const AT_FILED: &str = "canary-at-filed-which-is-in-a-file";
const AT_KEPT: &str = "canary-at-kept-which-is-set-by-a-command";
/// Secrets of servers that are processes: printed by a command, and in a file.
const IN_PROTO: &str = "canary-in-proto-which-is-printed";
const IN_PIPE: &str = "canary-in-pipe-which-is-in-a-file";
/// The token of a caller, in a file.
const FILER: &str = "canary-of-filer-whose-token-is-in-a-file";
/// The secret of the gateway as a client of the provider.
const CLIENT_SECRET: &str = "gateway-secret";

/// The servers that answer calls: over HTTP with a configured token, over HTTP with a token of the
/// provider, on a pipe, proto-mcp.
const ANSWERING: [&str; 4] = ["plain", "machine", "pipe", "proto"];
/// Servers that say the token that they got, in an error after a call and in a challenge.
const TELLING: [&str; 2] = ["echoing", "refusing"];
/// Servers whose tokens are named and not configured.
const NAMED: [&str; 3] = ["commanded", "filed", "kept"];

/// A server over HTTP: `call` has what it answers to calls, with the end of the status line. With
/// `wants_token` it refuses its first request.
fn over_http(wants_token: bool, call: fn(&Value) -> (&'static str, String)) -> Peer {
    let refuses = AtomicBool::new(wants_token);
    Peer::http(move |message| {
        let (head, body) = match message["method"].as_str() {
            Some(_) if refuses.swap(false, Ordering::SeqCst) => {
                ("401 No\r\nwww-authenticate: Bearer", String::new())
            }
            Some("tools/call") => call(message),
            Some(method) if method.starts_with("notifications/") => ("202 Accepted", String::new()),
            Some(_) => (
                "200 OK",
                small(message, &format!("[{}]", tool("echo"))).unwrap_or_default(),
            ),
            None => ("405 Method Not Allowed", String::new()),
        };
        let length = body.len();
        let kind = "content-type: application/json";
        vec![
            format!("HTTP/1.1 {head}\r\n{kind}\r\ncontent-length: {length}\r\n\r\n{body}")
                .into_bytes(),
        ]
    })
}

fn done(message: &Value) -> String {
    answer(message, r#"{"content":[{"type":"text","text":"done"}]}"#)
}

/// The gateway with its servers, and all that was answered.
struct Stage {
    provider: Provider,
    home: Home,
    gateway: Gateway,
    plain: Peer,
    machine: Peer,
    pipe: Peer,
    telling: [Peer; 2],
    /// Servers whose tokens are named: printed by a command, in a file, kept.
    named: [Peer; 3],
    /// The files of secrets, outside of the home directory.
    outside: tempfile::TempDir,
    answers: Vec<String>,
}

/// The URL of a server; the harness takes the first one with `/mcp` in the log for the gateway's.
fn url(peer: &Peer) -> String {
    peer.url().replace("/mcp", "/rpc")
}

/// A file that its owner alone may read.
fn private(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// A process of the gateway: its id, its command line and its environment.
#[cfg(target_os = "linux")]
struct Process {
    pid: u64,
    command_line: String,
    environment: String,
}

/// The gateway and all processes below it.
#[cfg(target_os = "linux")]
fn processes(gateway: &Gateway) -> Vec<Process> {
    let text = |pid: u64, name: &str| {
        let bytes = std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    let parent = |pid: u64| -> Option<u64> {
        text(pid, "stat")
            .rsplit_once(')')?
            .1
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let all: Vec<u64> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    let top = u64::from(gateway.pid());
    let is_below =
        |pid: u64| std::iter::successors(Some(pid), |pid| parent(*pid)).any(|one| one == top);
    let below = all.into_iter().filter(|pid| is_below(*pid));
    below
        .map(|pid| Process {
            pid,
            command_line: text(pid, "cmdline"),
            environment: text(pid, "environ"),
        })
        .collect()
}

/// Each process of a server has its own secret in its environment, no other has it, and no list of
/// processes shows any.
#[cfg(target_os = "linux")]
fn processes_have_their_own(stage: &Stage) {
    let all = processes(&stage.gateway);
    let of = |server: &str| {
        let shown = stage
            .gateway
            .get(&format!("/api/v1/servers/{server}"), Some(ANN))
            .json();
        shown["pid"].as_u64().unwrap()
    };
    for (server, own, in_gateway) in [("pipe", IN_PIPE, false), ("proto", IN_PROTO, true)] {
        let pid = of(server);
        let its = all.iter().find(|process| process.pid == pid).unwrap();
        assert!(
            its.environment.contains(own),
            "{server}: {}",
            its.environment
        );
        // The server's process and what it has started; the program itself got that variable from
        // its operator.
        let is_portmoot = |process: &Process| process.command_line.contains("portmoot");
        let others = all
            .iter()
            .filter(|process| !process.environment.contains(&format!("OWN={own}")));
        for other in others.filter(|process| !(in_gateway && is_portmoot(process))) {
            absent(
                own,
                &format!("process {}", other.command_line),
                [&other.environment],
            );
        }
    }
    let is_child = |process: &&Process| process.environment.contains("OWN=");
    assert!(
        all.iter().filter(is_child).count() >= 2 && all.len() > 4,
        "{}",
        all.len()
    );
    for secret in [
        ANN,
        SCOUT,
        FILER,
        AT_PLAIN,
        AT_COMMANDED,
        AT_FILED,
        AT_KEPT,
        IN_PIPE,
        IN_PROTO,
        CLIENT_SECRET,
    ] {
        absent(
            secret,
            "a list of processes",
            all.iter().map(|process| &process.command_line),
        );
        if ![IN_PIPE, IN_PROTO].contains(&secret) {
            absent(
                secret,
                "a server",
                all.iter()
                    .filter(is_child)
                    .map(|process| &process.environment),
            );
        }
    }
}

/// A caller: its name and its token.
type Caller<'c> = (&'c str, &'c str);

impl Stage {
    fn start() -> Stage {
        let [plain, machine] =
            [false, true].map(|wants| over_http(wants, |message| ("200 OK", done(message))));
        let named = [(); 3].map(|()| over_http(false, |message| ("200 OK", done(message))));
        let outside = tempfile::tempdir().unwrap();
        let file = |name: &str, secret: &str| private(outside.path(), name, secret);
        let telling = [
            over_http(false, |_| {
                (
                    "500 Oops",
                    format!("{{\"why\":\"I got Bearer {AT_ECHOING}\"}}"),
                )
            }),
            over_http(false, |_| {
                let head = "401 No\r\nwww-authenticate: Bearer error=\"invalid_token\", error_description=";
                // The head goes on where the status line ends.
                (
                    Box::leak(format!("{head}\"{AT_REFUSING}\"").into_boxed_str()),
                    format!("no: {AT_REFUSING}"),
                )
            }),
        ];
        let pipe = Peer::stdio(|message| {
            let said = (message["method"] == "tools/call").then(|| done(message));
            let said = said.or_else(|| small(message, &format!("[{}]", tool("echo"))));
            said.map(String::into_bytes).into_iter().collect()
        });
        let provider = Provider::of(&[resource("/mcp"), resource("/sse"), url(&machine)], 600);
        let home = Home::new()
            .env("ANN", ANN)
            .env("SCOUT", SCOUT)
            .env("CLIENT_SECRET", CLIENT_SECRET);
        let home = home.env("AT_PLAIN", AT_PLAIN).env("AT_ECHOING", AT_ECHOING);
        let home = home
            .env("AT_COMMANDED", AT_COMMANDED)
            .env("IN_PROTO", IN_PROTO);
        // All that any part of the program would ever log.
        let home = home
            .env("AT_REFUSING", AT_REFUSING)
            .env("PORTMOOT_LOG", "trace");
        let with_token = |name: &str, peer: &Peer, variable: &str| {
            format!(
                "[servers.{name}]\nurl = \"{}\"\nheaders = {{ Authorization = \"Bearer ${{{variable}}}\" }}\n\
                 [servers.{name}.auth]\nkind = \"headers\"\n",
                url(peer)
            )
        };
        let record = home.path().join("elsewhere");
        let config = [
            format!(
                "[server]\npublic_url = \"{PUBLIC}\"\nlegacy_sse = true\ndata_dir = \"data\"\nkey_file = {:?}\n",
                file("key", &"07".repeat(32))
            ),
            "[profiles.ops]\ncapabilities = [\"mcp/*\", \"chat\", \"portmoot/*\"]\n".to_owned(),
            format!("[issuers.corp]\nissuer = \"{}\"\n", provider.issuer()),
            "[[issuers.corp.map]]\nwhen = { groups = \"ops\" }\nprofile = \"ops\"\n".to_owned(),
            "[participants.ann]\ntoken_env = \"ANN\"\nprofile = \"ops\"\n".to_owned(),
            "[participants.scout]\ntoken = { command = [\"printenv\", \"SCOUT\"] }\ncapabilities = [\"mcp/proposal:*\"]\n".to_owned(),
            format!(
                "[participants.filer]\ntoken = {{ file = {:?} }}\nprofile = \"ops\"\n",
                file("filer", FILER)
            ),
            format!(
                "[servers.commanded]\nurl = \"{}\"\n\
                 headers = {{ Authorization = {{ command = [\"printenv\", \"AT_COMMANDED\"], prefix = \"Bearer \" }} }}\n",
                url(&named[0])
            ),
            format!(
                "[servers.filed]\nurl = \"{}\"\nheaders = {{ X-Api-Key = {{ file = {:?} }} }}\n\
                 [servers.filed.auth]\nkind = \"headers\"\n",
                url(&named[1]),
                file("filed", AT_FILED)
            ),
            format!(
                "[servers.kept]\nurl = \"{}\"\nheaders = {{ X-Api-Key = {{ secret = \"kept\" }} }}\n[servers.kept.auth]\nkind = \"headers\"\n",
                url(&named[2])
            ),
            with_token("plain", &plain, "AT_PLAIN"),
            with_token("echoing", &telling[0], "AT_ECHOING"),
            with_token("refusing", &telling[1], "AT_REFUSING"),
            format!(
                "[servers.machine]\nurl = \"{}\"\n[servers.machine.auth]\nkind = \"client_credentials\"\nissuer = \"{}\"\n\
                 client_id = \"gateway\"\nclient_secret = {{ command = [\"printenv\", \"CLIENT_SECRET\"] }}\n",
                url(&machine),
                provider.issuer()
            ),
            pipe.child("pipe", "pipe"),
            format!("env = {{ OWN = {{ file = {:?} }} }}\n", file("pipe", IN_PIPE)),
            child("proto", &["--record", record.to_str().unwrap()]),
            "env = { OWN = { command = [\"printenv\", \"IN_PROTO\"] } }\n".to_owned(),
        ];
        home.write("portmoot.toml", &config.concat());
        let value = file("kept", AT_KEPT);
        let from = value.to_str().unwrap();
        home.run(&[
            "secret",
            "set",
            "kept",
            "--from-file",
            from,
            "--config",
            "portmoot.toml",
        ])
        .expect(0);
        let gateway = Gateway::start(&home, &config.concat());
        ANSWERING
            .iter()
            .chain(&TELLING)
            .chain(&NAMED)
            .for_each(|name| gateway.ready(name));
        Stage {
            provider,
            home,
            gateway,
            plain,
            machine,
            pipe,
            telling,
            named,
            outside,
            answers: Vec::new(),
        }
    }

    fn keep(&mut self, answer: impl ToString) -> String {
        self.answers.push(answer.to_string());
        self.answers.last().unwrap().clone()
    }

    fn keep_reply(&mut self, reply: &Reply) -> String {
        self.keep(format!("{:?}\n{}", reply.headers, reply.body))
    }

    /// What the proto server got, in hexadecimal.
    fn recorded(&self) -> String {
        std::fs::read_to_string(self.home.path().join("elsewhere")).unwrap_or_default()
    }

    /// How many calls each server that answers them has got.
    fn calls(&self) -> [usize; 4] {
        let echo: String = "echo".bytes().map(|byte| format!("{byte:02x}")).collect();
        let of_proto = self
            .recorded()
            .lines()
            .filter(|line| line.contains(&echo))
            .count();
        [
            self.plain.calls("echo"),
            self.machine.calls("echo"),
            self.pipe.calls("echo"),
            of_proto,
        ]
    }
}

/// A way in: calls a tool of a server as a caller.
type Door = fn(&mut Stage, Caller<'_>, &str);

/// Each door with the servers that it calls at; programs of others take long to start.
const DOORS: [(&str, Door, &[&str]); 10] = [
    ("HTTP, with a session", by_session, &ANSWERING),
    ("HTTP, modern", by_modern, &ANSWERING),
    (
        "HTTP, with the token in other headers too",
        by_other_headers,
        &ANSWERING,
    ),
    ("HTTP+SSE", by_sse, &ANSWERING),
    ("WebSocket", by_websocket, &ANSWERING),
    ("a pipe", by_pipe, &ANSWERING),
    ("proto-mcp over TCP", by_tcp, &["machine", "proto"]),
    (
        "proto-mcp over a WebSocket",
        by_proto_websocket,
        &["plain", "proto"],
    ),
    ("gRPC", by_grpc, &["machine", "proto"]),
    ("REST: an approved proposal", by_rest, &ANSWERING),
];

fn echo(server: &str) -> (String, Value) {
    (format!("{server}_echo"), json!({ "text": "hello" }))
}

fn by_session(stage: &mut Stage, (_, token): Caller<'_>, server: &str) {
    let (name, arguments) = echo(server);
    let client = Client::of(&stage.gateway, token);
    let answer = client.ask(
        "tools/call",
        json!({ "name": name, "arguments": arguments }),
    );
    stage.keep(answer);
    let listed = client.ask("tools/list", json!({}));
    assert!(stage.keep(listed).contains(&name));
}

fn by_modern(stage: &mut Stage, (_, token): Caller<'_>, server: &str) {
    let (name, arguments) = echo(server);
    let call = json!({ "name": name, "arguments": arguments });
    let reply = modern(&stage.gateway, Some(token), "tools/call", call);
    stage.keep_reply(&reply);
}

fn by_other_headers(stage: &mut Stage, (_, token): Caller<'_>, server: &str) {
    let (name, arguments) = echo(server);
    let call = json!({ "name": name, "arguments": arguments });
    let (headers, body) = modern_request(Some(token), "tools/call", call);
    let cookie = format!("token={token}");
    let mut headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    for name in [
        "proxy-authorization",
        "x-forwarded-access-token",
        "dpop",
        "x-api-key",
        "traceparent",
    ] {
        headers.push((name, token));
    }
    headers.extend([
        ("cookie", cookie.as_str()),
        ("user-agent", token),
        ("referer", token),
    ]);
    let mut connection = Connection::open(stage.gateway.address());
    let reply = connection.exchange("POST", "/mcp", &headers, &body);
    stage.keep_reply(&reply);
}

fn by_sse(stage: &mut Stage, (_, token): Caller<'_>, server: &str) {
    let address = stage.gateway.address().to_owned();
    let bearer = format!("Bearer {token}");
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let head = format!(
        "GET /sse HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nauthorization: {bearer}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut events = Events::new(stream);
    assert_eq!(events.status, 200);
    let (_, endpoint) = events.next().unwrap();
    stage.keep(&endpoint);
    let (name, arguments) = echo(server);
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": name, "arguments": arguments } });
    let headers = [
        ("content-type", "application/json"),
        ("authorization", bearer.as_str()),
    ];
    for message in [
        initialize("2024-11-05", "{}"),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
        call.to_string(),
    ] {
        let reply = Connection::open(&address).exchange("POST", &endpoint, &headers, &message);
        assert_eq!(reply.status, 202, "{reply:?}");
    }
    loop {
        let (_, message) = events.message().unwrap();
        stage.keep(&message);
        if message["id"] == 2 {
            return;
        }
    }
}

fn by_websocket(stage: &mut Stage, (who, token): Caller<'_>, server: &str) {
    let bearer = format!("Bearer {token}");
    let mut socket = Socket::open_with(&stage.gateway, who, "?topic=main", &bearer);
    let id = format!("canary-call-of-{server}");
    socket.call(&id, &[server], "echo", json!({ "text": "hello" }));
    loop {
        let received = socket.receive();
        stage.keep(&received);
        if received["correlation_id"] == id.as_str() {
            return socket.leave();
        }
    }
}

fn by_pipe(stage: &mut Stage, (_, token): Caller<'_>, server: &str) {
    let home = Home::new().env("PORTMOOT_TOKEN", token);
    let url = stage.gateway.url();
    let mut piped = Piped::with(home, &["stdio", "--url", &url]);
    let (name, arguments) = echo(server);
    piped.send(initialize(LEGACY, "{}"));
    stage.keep(piped.receive());
    piped.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": name, "arguments": arguments } });
    piped.send(call.to_string());
    while !stage.keep(piped.receive()).contains("\"id\":2") {}
}

fn by_tcp(stage: &mut Stage, (_, token): Caller<'_>, server: &str) {
    let name = echo(server).0;
    let words = [
        "--call",
        &name,
        "hello",
        "--tcp",
        stage.gateway.address(),
        "--token",
        token,
    ];
    let report = proto_client(&words);
    stage.keep(report);
}

fn by_proto_websocket(stage: &mut Stage, (_, token): Caller<'_>, server: &str) {
    let (name, url) = (echo(server).0, websocket(&stage.gateway));
    let report = proto_client(&["--call", &name, "hello", "--ws", &url, "--token", token]);
    stage.keep(report);
}

fn by_grpc(stage: &mut Stage, (_, token): Caller<'_>, server: &str) {
    let prefix = format!("{server}_");
    let report = grpc_client(&[
        stage.gateway.address(),
        &prefix,
        "--token",
        token,
        "--call-token",
        token,
    ]);
    stage.keep(report);
}

fn by_rest(stage: &mut Stage, (_, token): Caller<'_>, server: &str) {
    let (name, arguments) = echo(server);
    let scout = Client::of(&stage.gateway, SCOUT);
    let held = scout.begin(&scout.request(
        "tools/call",
        json!({ "name": name, "arguments": arguments }),
    ));
    let proposal = until("it waits", || {
        let reply = stage.gateway.get("/api/v1/proposals", Some(token));
        let all = reply.json()["proposals"].as_array().unwrap().clone();
        let found = all.into_iter().find(|one| one["state"] == "pending");
        found.inspect(|_| stage.answers.push(reply.body))
    });
    let path = format!(
        "/api/v1/proposals/{}/approve",
        proposal["id"].as_str().unwrap()
    );
    let bearer = format!("Bearer {token}");
    let headers = [
        ("content-type", "application/json"),
        ("authorization", bearer.as_str()),
    ];
    let body = json!({ "digest": proposal["digest"] }).to_string();
    let reply = Connection::open(stage.gateway.address()).exchange("POST", &path, &headers, &body);
    assert_eq!(reply.status, 200, "{reply:?}");
    stage.keep_reply(&reply);
    stage.keep(held.next());
}

/// A token that is none, at every door that a test's program can knock at.
fn refused(stage: &mut Stage, token: &str) {
    let bad = format!("{token}x");
    let bearer = format!("Bearer {bad}");
    let body = initialize(LEGACY, "{}");
    let address = stage.gateway.address().to_owned();
    let upgrade = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
        ("authorization", bearer.as_str()),
    ];
    for (method, path) in [
        ("POST", "/mcp"),
        ("GET", "/sse"),
        ("GET", "/ws?topic=main"),
        ("GET", "/proto"),
        ("GET", "/api/v1/tools"),
        ("POST", "/api/v1/proposals/00/approve"),
        ("GET", "/metrics"),
    ] {
        let headers = if path.starts_with("/ws") || path == "/proto" {
            &upgrade[..]
        } else {
            &[
                ("content-type", "application/json"),
                ("authorization", bearer.as_str()),
            ]
        };
        let reply = Connection::open(&address).exchange(method, path, headers, &body);
        assert_eq!(reply.status, 401, "{path}: {reply:?}");
        stage.keep_reply(&reply);
    }
    let in_query = format!("/mcp?access_token={token}");
    let reply = Connection::open(&address).exchange("POST", &in_query, &[], &body);
    assert_eq!(reply.status, 400, "{reply:?}");
    stage.keep_reply(&reply);
    let report = grpc_client(&[address.as_str(), "plain_", "--token", &bad]);
    stage.keep(report);
    let report = proto_client(&[
        "--call",
        "plain_echo",
        "hello",
        "--tcp",
        &address,
        "--token",
        &bad,
    ]);
    stage.keep(report);
}

/// All that the gateway shows an operator: every path of its API that reads, and what commands
/// print.
fn shown(stage: &mut Stage) {
    let document: Value = stage.gateway.get("/api/v1/openapi.json", Some(ANN)).json();
    let mut read = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        if methods.get("get").is_none() {
            continue;
        }
        for name in [
            "plain",
            "machine",
            "echoing",
            "refusing",
            "commanded",
            "kept",
            "ann",
            "corp:ann",
            "plain_echo",
        ] {
            let filled = path
                .replace("{name}", name)
                .replace("{server}", name)
                .replace("{id}", name);
            let reply = stage.gateway.get(&filled, Some(ANN));
            stage.keep_reply(&reply);
            read += 1;
        }
    }
    assert!(read > 60, "{read}");
    let proposals = stage.gateway.get("/api/v1/proposals?all=true", Some(ANN));
    assert!(stage.keep_reply(&proposals).contains("completed"));
    let url = stage.gateway.url();
    for words in [
        &["audit", "query", "--json", "--config", "portmoot.toml"][..],
        &["servers", "auth", "--json"],
        &["servers", "show", "refusing"],
        &["servers", "show", "echoing"],
        &["participants", "ls"],
        &["config", "show", "--config", "portmoot.toml"],
        &["secret", "list", "--config", "portmoot.toml"],
        &[
            "doctor",
            "--listen",
            "127.0.0.1:0",
            "--config",
            "portmoot.toml",
        ],
    ] {
        let is_offline = ["audit", "config", "doctor", "secret"].contains(&words[0]);
        let at: &[&str] = if is_offline {
            &[]
        } else {
            &["--url", &url, "--token", ANN]
        };
        let ran = stage.home.run(&[words, at].concat());
        assert!(!ran.stdout.is_empty(), "{words:?}: {}", ran.stderr);
        stage.keep(ran.stdout + &ran.stderr);
    }
}

/// The texts of all files below a folder but the record of the proto server.
fn files(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files(&entry.path(), found);
        } else if kind.is_file() && entry.file_name() != "elsewhere" {
            found.push(String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned());
        }
    }
}

/// A secret as it may be spelled: plain, in hexadecimal, and in base64 at every offset.
fn spellings(secret: &str) -> Vec<String> {
    let mut all = vec![
        secret.to_owned(),
        secret.bytes().map(|byte| format!("{byte:02x}")).collect(),
    ];
    for offset in 0..3 {
        let shifted = [vec![b' '; offset], secret.as_bytes().to_vec()].concat();
        let whole = STANDARD_NO_PAD.encode(shifted);
        // The first and the last characters have bits of what is beside.
        let inner = whole[if offset == 0 { 0 } else { 4 }..whole.len() - 2].to_owned();
        all.extend([inner.replace('+', "-").replace('/', "_"), inner]);
    }
    all
}

#[track_caller]
fn absent<'t>(secret: &str, place: &str, texts: impl IntoIterator<Item = &'t String>) {
    let spelled = spellings(secret);
    for text in texts {
        for one in &spelled {
            let Some(at) = text.find(one.as_str()) else {
                continue;
            };
            let before: Vec<char> = text[..at].chars().rev().take(200).collect();
            let before: String = before.iter().rev().collect();
            panic!("{secret} is in {place}, as {one}, behind: {before}");
        }
    }
}

#[test]
fn every_token_is_where_it_belongs_and_nowhere_else() {
    let mut stage = Stage::start();
    let audiences = json!({ "jti": "canary", "aud": [resource("/mcp"), resource("/sse")] });
    let jwt = stage.provider.forged(json!({}), audiences, "a");
    let url = stage.gateway.url();
    let new = [
        "token",
        "new",
        "guest",
        "--capability",
        "mcp/*",
        "--capability",
        "portmoot/*",
    ];
    let issued = stage
        .home
        .run(&[&new[..], &["--url", &url, "--token", ANN]].concat())
        .expect(0)
        .stdout;
    let issued = issued.trim().to_owned();
    for caller in [
        ("ann", ANN),
        ("guest", issued.as_str()),
        ("corp:ann", jwt.as_str()),
    ] {
        for (what, door, servers) in DOORS {
            let before = stage.calls();
            for server in servers {
                door(&mut stage, caller, server);
            }
            let after = stage.calls();
            for (number, name) in ANSWERING.iter().enumerate() {
                let expected = before[number] + usize::from(servers.contains(name));
                let last = stage.answers.last();
                assert_eq!(
                    after[number], expected,
                    "{what}: {name} as {}: {last:?}",
                    caller.0
                );
            }
        }
        for server in TELLING {
            let before = stage.telling.each_ref().map(|peer| peer.calls("echo"));
            by_session(&mut stage, caller, server);
            let after = stage.telling.each_ref().map(|peer| peer.calls("echo"));
            assert_ne!(before, after, "{server} as {}", caller.0);
        }
        refused(&mut stage, caller.1);
    }
    for (server, peer) in NAMED.iter().zip([0, 1, 2]) {
        by_session(&mut stage, ("filer", FILER), server);
        assert_eq!(stage.named[peer].calls("echo"), 1, "{server}");
    }
    #[cfg(target_os = "linux")]
    processes_have_their_own(&stage);
    shown(&mut stage);

    let of_machine = stage.machine.received().into_iter().find_map(|request| {
        let line = request
            .lines()
            .find(|line| line.to_lowercase().starts_with("authorization: bearer "))?;
        Some(line["authorization: bearer ".len()..].trim().to_owned())
    });
    let of_machine = of_machine.expect("the server got a token of the provider");
    let servers = [
        ("plain", stage.plain.received(), Some(AT_PLAIN)),
        (
            "machine",
            stage.machine.received(),
            Some(of_machine.as_str()),
        ),
        ("echoing", stage.telling[0].received(), Some(AT_ECHOING)),
        ("refusing", stage.telling[1].received(), Some(AT_REFUSING)),
        ("commanded", stage.named[0].received(), Some(AT_COMMANDED)),
        ("filed", stage.named[1].received(), Some(AT_FILED)),
        ("kept", stage.named[2].received(), Some(AT_KEPT)),
        ("pipe", stage.pipe.received(), None),
        ("proto", vec![stage.recorded()], None),
    ];
    for (name, received, own) in &servers {
        let has = |own: &str| received.iter().any(|request| request.contains(own));
        assert!(own.is_none_or(has), "{name} gets its own token");
    }
    let Stage {
        home,
        gateway,
        answers,
        outside: _outside,
        ..
    } = stage;
    let ended = gateway.stop().expect(0);
    let mut written = Vec::new();
    files(home.path(), &mut written);
    assert!(
        written.iter().any(|text| text.contains("\"refused\"")),
        "the audit log is among the files"
    );
    let log = [ended.stderr];
    assert!(
        log[0].contains("TRACE") && answers.len() > 200,
        "{}",
        answers.len()
    );
    let signature = jwt.rsplit('.').next().unwrap();
    let of_machine_signed = of_machine.rsplit('.').next().unwrap();
    for secret in [
        ANN,
        SCOUT,
        &issued,
        &jwt,
        signature,
        AT_PLAIN,
        AT_ECHOING,
        AT_REFUSING,
        &of_machine,
        of_machine_signed,
        CLIENT_SECRET,
        FILER,
        AT_COMMANDED,
        AT_FILED,
        AT_KEPT,
        IN_PROTO,
        IN_PIPE,
    ] {
        for (name, received, own) in &servers {
            if !own.is_some_and(|own| own.contains(secret)) {
                absent(secret, &format!("what {name} got"), received);
            }
        }
        absent(secret, "an answer", &answers);
        absent(secret, "the log", &log);
        absent(secret, "a file", &written);
    }
}

#[test]
fn a_secret_is_found_however_it_is_spelled() {
    for around in ["", "a", "ab", "abc"] {
        let text = format!("{around}{ANN}{around}");
        let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        for spelled in [text.clone(), hex, STANDARD_NO_PAD.encode(&text)] {
            assert!(
                spellings(ANN)
                    .iter()
                    .any(|one| spelled.contains(one.as_str())),
                "{spelled}"
            );
        }
    }
}
