//! TLS gateway: calls, rooms, client certificates that are participants, certificates that change
//! while it runs.

use std::process::Command;

use harness::{grpc_client, proto_client, proto_references};
use participant::{Event, Events, Participant, ParticipantSpec};
use serde_json::json;
use tls::{ClientFiles, ClientTls, Oldest};

use super::authority::{Authority, Pair};
use crate::home::{Home, Ran};
use crate::http::TIMEOUT;
use crate::participants::{enter, receive};
use crate::proto_clients::{TOO_BIG, check, check_messages, websocket};
use crate::proto_grpc;
use crate::registry::Buf;
use crate::socket::fixture_server;
use crate::support::{Gateway, until};

/// A gateway behind TLS, with the fixture behind it.
struct Secure {
    gateway: Gateway,
    authority: Authority,
    home: Home,
    config: String,
}

impl Secure {
    /// `more` is further configuration.
    fn start(more: impl FnOnce(&Authority) -> String) -> Self {
        let home = Home::new();
        let authority = Authority::new(&home, "ca");
        let own = authority.issue_local(&home, "gate");
        let config = own.table() + &more(&authority) + &fixture_server("f", "", &[]);
        Self {
            gateway: Gateway::start(&home, &config),
            authority,
            home,
            config,
        }
    }

    /// Runs a command with the gateway's URL, trusting its authority.
    fn run(&self, args: &[&str]) -> Ran {
        let url = self.gateway.url();
        let ca = self.authority.file.to_str().unwrap();
        self.home
            .run(&[args, &["--url", &url, "--ca", ca]].concat())
    }

    /// Calls a tool as the holder of this certificate.
    fn echo(&self, shown: &[&str]) -> Ran {
        self.run(&[&["tools", "call", "echo", "text=hello"], shown].concat())
    }

    fn spec(&self, shown: Option<&Pair>) -> ParticipantSpec {
        let (cert, key) = (
            shown.map(|pair| pair.cert.clone()),
            shown.map(|pair| pair.key.clone()),
        );
        let files = ClientFiles {
            ca: Some(self.authority.file.clone()),
            cert,
            key,
        };
        let tls = ClientTls::read(files, Oldest::Tls13, platform::unix_ms()).unwrap();
        let spec = ParticipantSpec::new(&self.gateway.url(), None, "main");
        ParticipantSpec {
            tls,
            request_timeout: TIMEOUT,
            ..spec
        }
    }
}

/// The tables of participants that are known by their certificates.
fn certified(authority: &Authority, people: &[(&str, &str)]) -> String {
    let tables = people
        .iter()
        .map(|(name, keys)| format!("[participants.{name}]\n{keys}\n"));
    format!(
        "client_ca = {:?}\n{}",
        authority.file,
        tables.collect::<String>()
    )
}

async fn hear(events: &mut Events) -> (String, String) {
    let said = |event| match event {
        Event::Chat { from, text, .. } => Some((from, text)),
        _ => None,
    };
    receive(events, "something is said", said).await
}

#[test]
fn mcp_calls_and_commands_work_over_tls() {
    let secure = Secure::start(|_| String::new());
    assert!(
        secure.gateway.url().starts_with("https://"),
        "{}",
        secure.gateway.url()
    );
    assert!(secure.echo(&[]).expect(0).stdout.contains("hello"));
    assert!(
        secure
            .run(&["status"])
            .expect(0)
            .stdout
            .contains("https://")
    );
    // On its own machine it is found by the data directory, which names its certificate.
    assert!(
        secure
            .home
            .run(&["tools", "call", "echo", "text=here"])
            .expect(0)
            .stdout
            .contains("here")
    );
    let stranger = Authority::new(&secure.home, "other");
    let other = stranger.file.to_str().unwrap();
    let refused = secure
        .home
        .run(&["tools", "ls", "--url", &secure.gateway.url(), "--ca", other])
        .expect(1);
    assert!(
        refused.stderr.contains("UnknownIssuer") && refused.stderr.contains("--ca"),
        "{}",
        refused.stderr
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_sends_the_same_to_all_over_tls() {
    const SAID: usize = 60;
    let secure = Secure::start(|ca| {
        let people = ["ann", "bob", "eve"];
        let keys: Vec<_> = people
            .map(|name| format!("client_cert_san = \"{name}.example\"\ncapabilities = [\"chat\"]"))
            .into();
        certified(
            ca,
            &people
                .into_iter()
                .zip(keys.iter().map(String::as_str))
                .collect::<Vec<_>>(),
        )
    });
    let mut all = Vec::new();
    for name in ["ann", "bob", "eve"] {
        let shown = secure
            .authority
            .issue(&secure.home, name, &[&format!("{name}.example")]);
        all.push(
            enter(ParticipantSpec {
                echo: true,
                ..secure.spec(Some(&shown))
            })
            .await,
        );
    }
    let long = "x".repeat(10_000);
    for number in 0..SAID {
        all[number % 3].0.chat(&format!("{number} {long}")).unwrap();
    }
    let mut orders = Vec::new();
    for (_, events) in &mut all {
        let mut order = Vec::new();
        while order.len() < SAID {
            order.push(hear(events).await);
        }
        orders.push(order);
    }
    assert_eq!(orders[0], orders[1]);
    assert_eq!(orders[0], orders[2]);
    assert!(
        orders[0]
            .iter()
            .any(|(from, text)| from == "bob" && text.ends_with(&long))
    );
    // One that closes is gone for the others.
    let (gone, _) = all.pop().unwrap();
    gone.close().await;
    receive(&mut all[0].1, "eve leaves", |event| match event {
        Event::Left(id) => (id.id.as_str() == "eve").then_some(()),
        _ => None,
    })
    .await;
}

#[test]
fn a_certificate_is_its_participant_with_its_capabilities() {
    let secure = Secure::start(|ca| {
        let caller =
            "client_cert_san = \"ci.example\"\ncapabilities = [\"mcp/request:tools/call:echo\"]";
        certified(
            ca,
            &[
                ("ci", caller),
                (
                    "mute",
                    "client_cert_san = \"mute.example\"\ncapabilities = []",
                ),
            ],
        )
    });
    let issue = |file: &str, name: &str| secure.authority.issue(&secure.home, file, &[name]);
    let ci = issue("ci", "ci.example");
    assert!(
        secure
            .echo(&ci.options())
            .expect(0)
            .stdout
            .contains("hello")
    );
    // Its own rights, and no more.
    secure
        .run(&[&["servers", "ls"], &ci.options()[..]].concat())
        .expect(3);
    secure
        .echo(&issue("mute", "mute.example").options())
        .expect(5);
    let unnamed = secure
        .echo(&issue("unnamed", "other.example").options())
        .expect(4);
    assert!(
        unnamed.stderr.contains("portmoot") || unnamed.stderr.contains("token"),
        "{}",
        unnamed.stderr
    );
    // A token says more exactly who it is than the certificate.
    let token = [&["--token", "a-token-that-is-not-valid"], &ci.options()[..]].concat();
    secure.echo(&token).expect(4);
    // No certificate, and one of another authority.
    assert!(
        secure
            .echo(&[])
            .expect(1)
            .stderr
            .contains("CertificateRequired")
    );
    let foreign =
        Authority::new(&secure.home, "foreign").issue(&secure.home, "forged", &["ci.example"]);
    let forged = secure.echo(&foreign.options()).expect(1).stderr;
    assert!(
        forged.contains("UnknownCA") || forged.contains("DecryptError"),
        "{forged}"
    );
}

#[test]
fn a_uri_of_a_certificate_is_no_name_of_a_host() {
    let uri = "urn:example:robot";
    let secure = Secure::start(|ca| {
        let keys = |name: &str| {
            format!("client_cert_san = {name:?}\ncapabilities = [\"mcp/request:tools/call:echo\"]")
        };
        certified(ca, &[("ci", &keys("ci.example")), ("robot", &keys(uri))])
    });
    let issue = |file: &str, uri: &str| secure.authority.issue_uri(&secure.home, file, uri);
    for (file, uri) in [
        ("bare", "ci.example"),
        ("web", "https://ci.example"),
        ("path", "ci.example/"),
    ] {
        secure.echo(&issue(file, uri).options()).expect(4);
    }
    assert!(
        secure
            .echo(&issue("robot", uri).options())
            .expect(0)
            .stdout
            .contains("hello")
    );
    let host = secure
        .authority
        .issue(&secure.home, "host", &["ci.example"]);
    assert!(
        secure
            .echo(&host.options())
            .expect(0)
            .stdout
            .contains("hello")
    );
}

#[test]
fn a_certificate_is_named_by_its_sha256_and_may_be_optional() {
    let home = Home::new();
    let authority = Authority::new(&home, "ca");
    let pair = authority.issue(&home, "ci", &["ci.example"]);
    let printed = std::process::Command::new("openssl")
        .args([
            "x509",
            "-noout",
            "-fingerprint",
            "-sha256",
            "-in",
            pair.cert.to_str().unwrap(),
        ])
        .output()
        .unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let sha256 = printed.trim().split_once('=').unwrap().1;
    let keys = format!(
        "client_cert_sha256 = {sha256:?}\ncapabilities = [\"mcp/request:tools/call:echo\"]"
    );
    let own = authority.issue_local(&home, "gate");
    let tables = format!(
        "client_auth = \"optional\"\n{}",
        certified(&authority, &[("ci", &keys)])
    );
    let config = own.table() + &tables + &fixture_server("f", "", &[]);
    let gateway = Gateway::start(&home, &config);
    let secure = Secure {
        gateway,
        authority,
        home,
        config,
    };
    assert!(
        secure
            .echo(&pair.options())
            .expect(0)
            .stdout
            .contains("hello")
    );
    secure.echo(&[]).expect(4);
    secure
        .echo(
            &secure
                .authority
                .issue(&secure.home, "next", &["ci.example"])
                .options(),
        )
        .expect(4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_participant_loses_its_connections() {
    let keys =
        |name: &str| format!("client_cert_san = \"{name}.example\"\ncapabilities = [\"chat\"]");
    let secure = Secure::start(|ca| certified(ca, &[("ann", &keys("ann")), ("bob", &keys("bob"))]));
    let issue = |name: &str| {
        secure
            .authority
            .issue(&secure.home, name, &[&format!("{name}.example")])
    };
    let (ann, bob) = (issue("ann"), issue("bob"));
    let (_bob, mut said) = enter(secure.spec(Some(&bob))).await;
    let (_ann, mut events) = enter(secure.spec(Some(&ann))).await;
    let without = secure
        .config
        .replace(&format!("[participants.ann]\n{}", keys("ann")), "");
    assert_ne!(without, secure.config);
    secure.home.write("portmoot.toml", &without);
    receive(&mut events, "ann is cut off", |event| {
        matches!(event, Event::Disconnected { .. }).then_some(())
    })
    .await;
    receive(&mut said, "ann leaves", |event| match event {
        Event::Left(id) => (id.id.as_str() == "ann").then_some(()),
        _ => None,
    })
    .await;
    assert!(Participant::connect(secure.spec(Some(&ann))).await.is_err());
    assert!(Participant::connect(secure.spec(Some(&bob))).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_certificate_is_taken_over_while_a_session_stays() {
    let secure = Secure::start(|_| String::new());
    let (first, mut said) = enter(ParticipantSpec {
        echo: true,
        ..secure.spec(None)
    })
    .await;
    // First a certificate without its key: the old ones stay in use.
    let other = Authority::new(&secure.home, "new");
    let pair = other.issue_local(&secure.home, "next");
    std::fs::copy(&pair.cert, secure.home.path().join("gate.pem")).unwrap();
    secure.gateway.receive("does not belong to the certificate");
    assert!(secure.echo(&[]).expect(0).stdout.contains("hello"));
    std::fs::copy(&pair.key, secure.home.path().join("gate.key")).unwrap();
    let trusted = other.file.to_str().unwrap().to_owned();
    let url = secure.gateway.url();
    until("the new certificate is shown", || {
        (secure
            .home
            .run(&["tools", "ls", "--url", &url, "--ca", &trusted])
            .code
            == 0)
            .then_some(())
    });
    assert!(secure.echo(&[]).expect(1).stderr.contains("UnknownIssuer"));
    first.chat("still here").unwrap();
    assert_eq!(hear(&mut said).await.1, "still here");
    // Commands on this machine follow.
    until("the data directory names it", || {
        (secure.home.run(&["tools", "ls"]).code == 0).then_some(())
    });
}

/// The port speaks TLS 1.3 only (`refused`), so this does.
#[test]
fn a_proto_mcp_client_is_the_participant_of_its_certificate() {
    let secure = Secure::start(|authority| {
        certified(
            authority,
            &[(
                "scout",
                "client_cert_san = \"scout\"\ncapabilities = [\"mcp/request:*\"]",
            )],
        )
    });
    let scout = secure.authority.issue(&secure.home, "scout", &["scout"]);
    let (url, text) = (websocket(&secure.gateway), |path: &std::path::Path| {
        path.display().to_string()
    });
    let [ca, cert, key] = [
        text(&secure.authority.file),
        text(&scout.cert),
        text(&scout.key),
    ];
    let shown = ["--ca", &ca, "--cert", &cert, "--key", &key];
    let report = proto_client(&[&["--ws", &url], &shown[..]].concat());
    check(&report, "", &json!(TOO_BIG));
    check_messages(&report);
    let report = proto_client(&[&["--tcp", secure.gateway.address()], &shown[..]].concat());
    check(&report, "", &json!([0, 0]));
    // By TCP it names the gateway in TLS alone, and a reference names it so too.
    let echo = [
        "--tool",
        "echo",
        "--arguments",
        r#"{"text":"by reference"}"#,
    ];
    let report =
        proto_references(&[&["--tcp", secure.gateway.address()], &shown[..], &echo].concat());
    let host = report["references"]["echo"]
        .as_str()
        .unwrap()
        .split(':')
        .next();
    assert_eq!(
        (host, &report["answer"]),
        (Some("localhost"), &json!(["by reference"])),
        "{report:#}"
    );
    let by_grpc = ["--grpc", secure.gateway.address()];
    let report = proto_references(&[&by_grpc, &shown[..], &echo].concat());
    assert_eq!(
        (&report["answer"], &report["same"]),
        (&json!(["by reference"]), &json!(true)),
        "{report:#}"
    );
}

#[test]
fn a_grpc_client_is_the_participant_of_its_certificate() {
    let secure = Secure::start(|authority| {
        let mute = ("mute", "client_cert_san = \"mute\"\ncapabilities = []");
        certified(
            authority,
            &[
                (
                    "scout",
                    "client_cert_san = \"scout\"\ncapabilities = [\"mcp/request:*\"]",
                ),
                mute,
            ],
        )
    });
    let ca = secure.authority.file.to_str().unwrap();
    let call =
        |more: &[&str]| grpc_client(&[&[secure.gateway.address(), "", "--ca", ca], more].concat());
    let shown = |name: &str| secure.authority.issue(&secure.home, name, &[name]);
    let (scout, mute) = (shown("scout"), shown("mute"));
    let way = |pair: &Pair| {
        [
            "--cert",
            pair.cert.to_str().unwrap(),
            "--key",
            pair.key.to_str().unwrap(),
        ]
        .map(str::to_owned)
    };
    let [scout, mute] = [way(&scout), way(&mute)];
    let words = |way: &[String], more: &[&'static str]| -> Vec<String> {
        way.iter()
            .cloned()
            .chain(more.iter().map(|word| (*word).to_owned()))
            .collect()
    };
    let run = |words: Vec<String>| call(&words.iter().map(String::as_str).collect::<Vec<_>>());
    proto_grpc::check(&run(words(&scout, &["--tour"])), "");
    // What it may not call does not exist for it.
    assert_eq!(run(words(&mute, &[]))["echo"], json!("NOT_FOUND"));
    // No certificate: no connection.
    assert_eq!(call(&[])["refused"][0], json!("UNAVAILABLE"));
}

/// The registry and the service are on one port, behind one certificate.
#[test]
fn buf_curl_takes_the_schema_of_a_call_from_the_registry() {
    let secure = Secure::start(|_| String::new());
    let ca = secure.authority.file.to_str().unwrap();
    let buf = Buf::trusting(&std::fs::read_to_string(ca).unwrap());
    let host = secure.gateway.address().replace("127.0.0.1", "localhost");
    secure.gateway.ready("f");
    let (module, url) = (
        format!("{host}/portmoot/server-f"),
        format!("https://{host}/buf.mcp.v1.MCPService/CallTool"),
    );
    let arguments = r#"{"@type": "type.googleapis.com/f.v1.EchoRequest", "text": "typed"}"#;
    let call = format!(r#"{{"name": "echo", "arguments": {arguments}}}"#);
    let schemas = [
        "--schema",
        module.as_str(),
        "--reflect",
        "--protocol",
        "grpc",
    ];
    let said = buf.succeeds(
        None,
        &[
            &["curl"],
            &schemas[..],
            &["--cacert", ca, "--data", &call, &url],
        ]
        .concat(),
    );
    let said: serde_json::Value = serde_json::from_slice(&said).unwrap();
    assert_eq!(said["success"]["content"][0]["text"], json!("typed"));
}

/// Node's own client of HTTP/2: a session of MCP in JSON, whose stream of events is open while
/// calls are answered.
const HTTP_2: &str = r#"
const http2 = require("node:http2"), fs = require("node:fs")
const [url, ca] = process.argv.slice(1)
const client = http2.connect(url, { ca: fs.readFileSync(ca) })
const seen = {}
function ask(headers, body, streamed) {
  return new Promise((resolve, reject) => {
    const request = client.request({ ":path": "/mcp", accept: "application/json, text/event-stream",
      "content-type": "application/json", ...headers })
    let head, text = ""
    request.on("response", (got) => { head = got; if (streamed) resolve({ head, request }) })
    request.setEncoding("utf8")
    if (!streamed) request.on("data", (more) => { text += more })
    request.on("end", () => resolve({ head, text }))
    request.on("error", reject)
    request.end(body && JSON.stringify({ jsonrpc: "2.0", ...body }))
  })
}
async function main() {
  const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "h2", version: "1" } }
  const began = await ask({ ":method": "POST" }, { id: 1, method: "initialize", params: hello })
  seen.protocol = client.alpnProtocol
  const session = { "mcp-session-id": began.head["mcp-session-id"], "mcp-protocol-version": "2025-11-25" }
  const post = { ":method": "POST", ...session }
  seen.noted = (await ask(post, { method: "notifications/initialized" })).head[":status"]
  const events = await ask({ ":method": "GET", ...session }, null, true)
  seen.stream = events.head["content-type"]
  const call = (id, name, args) => ask(post, { id, method: "tools/call", params: { name, arguments: args } })
  const both = await Promise.all([call(2, "echo", { text: "one" }), call(3, "echo", { text: "two" })])
  seen.said = both.map(({ text }) => JSON.parse(text.replace(/^data: /m, "")).result.content[0].text)
  const pushed = new Promise((resolve) => events.request.on("data", (text) => { if (text.includes("list_changed")) resolve(true) }))
  await call(4, process.argv[3], {})
  seen.pushed = await pushed
  seen.ended = (await ask({ ":method": "DELETE", ...session })).head[":status"]
  seen.upgrade = (await ask({ ":method": "GET", ":path": "/ws" })).head[":status"]
  client.close()
  console.log(JSON.stringify(seen))
}
main().catch((error) => { console.log(JSON.stringify({ ...seen, error: String(error) })); process.exit(1) })
"#;

#[test]
fn a_client_of_http_2_has_sessions_and_streams() {
    let secure = Secure::start(|_| String::new());
    let mut node = Command::new(harness::deps().node());
    node.args(["-e", HTTP_2, &secure.gateway.url()])
        .arg(&secure.authority.file)
        .arg("toggle_tool");
    let ran = node.output().unwrap();
    let seen: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap_or_default();
    let expected = json!({
        "protocol": "h2", "noted": 202, "stream": "text/event-stream", "said": ["one", "two"], "pushed": true,
        "ended": 204, "upgrade": 426,
    });
    assert_eq!(seen, expected, "{}", String::from_utf8_lossy(&ran.stderr));
}
