//! TLS gateway: calls, rooms, client certificates that are participants, certificates that change while it runs.

use client::participant::{Event, Events};
use client::{Participant, ParticipantSpec};
use harness::proto_client;
use serde_json::json;
use tls::{ClientFiles, ClientTls, Oldest};

use super::authority::{Authority, Pair};
use crate::home::{Home, Ran};
use crate::http::TIMEOUT;
use crate::participants::{enter, receive};
use crate::proto_clients::{TOO_BIG, check, check_messages, websocket};
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
        Self { gateway: Gateway::start(&home, &config), authority, home, config }
    }

    /// Runs a command with the gateway's URL, trusting its authority.
    fn run(&self, args: &[&str]) -> Ran {
        let url = self.gateway.url();
        let ca = self.authority.file.to_str().unwrap();
        self.home.run(&[args, &["--url", &url, "--ca", ca]].concat())
    }

    /// Calls a tool as the holder of this certificate.
    fn echo(&self, shown: &[&str]) -> Ran {
        self.run(&[&["tools", "call", "echo", "text=hello"], shown].concat())
    }

    fn spec(&self, shown: Option<&Pair>) -> ParticipantSpec {
        let (cert, key) = (shown.map(|pair| pair.cert.clone()), shown.map(|pair| pair.key.clone()));
        let files = ClientFiles { ca: Some(self.authority.file.clone()), cert, key };
        let tls = ClientTls::read(files, Oldest::Tls13, platform::unix_ms()).unwrap();
        let spec = ParticipantSpec::new(&self.gateway.url(), None, "main");
        ParticipantSpec { tls, request_timeout: TIMEOUT, ..spec }
    }
}

/// The tables of participants that are known by their certificates.
fn certified(authority: &Authority, people: &[(&str, &str)]) -> String {
    let tables = people.iter().map(|(name, keys)| format!("[participants.{name}]\n{keys}\n"));
    format!("client_ca = {:?}\n{}", authority.file, tables.collect::<String>())
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
    assert!(secure.gateway.url().starts_with("https://"), "{}", secure.gateway.url());
    assert!(secure.echo(&[]).expect(0).stdout.contains("hello"));
    assert!(secure.run(&["status"]).expect(0).stdout.contains("https://"));
    // On its own machine it is found by the data directory, which names its certificate.
    assert!(secure.home.run(&["tools", "call", "echo", "text=here"]).expect(0).stdout.contains("here"));
    let stranger = Authority::new(&secure.home, "other");
    let other = stranger.file.to_str().unwrap();
    let refused = secure.home.run(&["tools", "ls", "--url", &secure.gateway.url(), "--ca", other]).expect(1);
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
        certified(ca, &people.into_iter().zip(keys.iter().map(String::as_str)).collect::<Vec<_>>())
    });
    let mut all = Vec::new();
    for name in ["ann", "bob", "eve"] {
        let shown = secure.authority.issue(&secure.home, name, &[&format!("{name}.example")]);
        all.push(enter(ParticipantSpec { echo: true, ..secure.spec(Some(&shown)) }).await);
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
    assert!(orders[0].iter().any(|(from, text)| from == "bob" && text.ends_with(&long)));
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
        let caller = "client_cert_san = \"ci.example\"\ncapabilities = [\"mcp/request:tools/call:echo\"]";
        certified(ca, &[("ci", caller), ("mute", "client_cert_san = \"mute.example\"\ncapabilities = []")])
    });
    let issue = |file: &str, name: &str| secure.authority.issue(&secure.home, file, &[name]);
    let ci = issue("ci", "ci.example");
    assert!(secure.echo(&ci.options()).expect(0).stdout.contains("hello"));
    // Its own rights, and no more.
    secure.run(&[&["servers", "ls"], &ci.options()[..]].concat()).expect(3);
    secure.echo(&issue("mute", "mute.example").options()).expect(5);
    let unnamed = secure.echo(&issue("unnamed", "other.example").options()).expect(4);
    assert!(unnamed.stderr.contains("portmoot") || unnamed.stderr.contains("token"), "{}", unnamed.stderr);
    // A token says more exactly who it is than the certificate.
    let token = [&["--token", "a-token-that-is-not-valid"], &ci.options()[..]].concat();
    secure.echo(&token).expect(4);
    // No certificate, and one of another authority.
    assert!(secure.echo(&[]).expect(1).stderr.contains("CertificateRequired"));
    let foreign = Authority::new(&secure.home, "foreign").issue(&secure.home, "forged", &["ci.example"]);
    let forged = secure.echo(&foreign.options()).expect(1).stderr;
    assert!(forged.contains("UnknownCA") || forged.contains("DecryptError"), "{forged}");
}

#[test]
fn a_certificate_is_named_by_its_sha256_and_may_be_optional() {
    let home = Home::new();
    let authority = Authority::new(&home, "ca");
    let pair = authority.issue(&home, "ci", &["ci.example"]);
    let printed = std::process::Command::new("openssl")
        .args(["x509", "-noout", "-fingerprint", "-sha256", "-in", pair.cert.to_str().unwrap()])
        .output()
        .unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let sha256 = printed.trim().split_once('=').unwrap().1;
    let keys = format!("client_cert_sha256 = {sha256:?}\ncapabilities = [\"mcp/request:tools/call:echo\"]");
    let own = authority.issue_local(&home, "gate");
    let tables = format!("client_auth = \"optional\"\n{}", certified(&authority, &[("ci", &keys)]));
    let config = own.table() + &tables + &fixture_server("f", "", &[]);
    let gateway = Gateway::start(&home, &config);
    let secure = Secure { gateway, authority, home, config };
    assert!(secure.echo(&pair.options()).expect(0).stdout.contains("hello"));
    secure.echo(&[]).expect(4);
    secure.echo(&secure.authority.issue(&secure.home, "next", &["ci.example"]).options()).expect(4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_participant_loses_its_connections() {
    let keys = |name: &str| format!("client_cert_san = \"{name}.example\"\ncapabilities = [\"chat\"]");
    let secure = Secure::start(|ca| certified(ca, &[("ann", &keys("ann")), ("bob", &keys("bob"))]));
    let issue = |name: &str| secure.authority.issue(&secure.home, name, &[&format!("{name}.example")]);
    let (ann, bob) = (issue("ann"), issue("bob"));
    let (_bob, mut said) = enter(secure.spec(Some(&bob))).await;
    let (_ann, mut events) = enter(secure.spec(Some(&ann))).await;
    let without = secure.config.replace(&format!("[participants.ann]\n{}", keys("ann")), "");
    assert_ne!(without, secure.config);
    secure.home.write("portmoot.toml", &without);
    receive(&mut events, "ann is cut off", |event| matches!(event, Event::Disconnected { .. }).then_some(()))
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
    let (first, mut said) = enter(ParticipantSpec { echo: true, ..secure.spec(None) }).await;
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
        (secure.home.run(&["tools", "ls", "--url", &url, "--ca", &trusted]).code == 0).then_some(())
    });
    assert!(secure.echo(&[]).expect(1).stderr.contains("UnknownIssuer"));
    first.chat("still here").unwrap();
    assert_eq!(hear(&mut said).await.1, "still here");
    // Commands on this machine follow.
    until("the data directory names it", || (secure.home.run(&["tools", "ls"]).code == 0).then_some(()));
}

/// The port speaks TLS 1.3 only (`refused`), so this does.
#[test]
fn a_proto_mcp_client_is_the_participant_of_its_certificate() {
    let secure = Secure::start(|authority| {
        certified(authority, &[("scout", "client_cert_san = \"scout\"\ncapabilities = [\"mcp/request:*\"]")])
    });
    let scout = secure.authority.issue(&secure.home, "scout", &["scout"]);
    let (url, text) = (websocket(&secure.gateway), |path: &std::path::Path| path.display().to_string());
    let [ca, cert, key] = [text(&secure.authority.file), text(&scout.cert), text(&scout.key)];
    let way = ["--ws", &url, "--ca", &ca, "--cert", &cert, "--key", &key];
    let report = proto_client(&way);
    check(&report, "", &json!(TOO_BIG));
    check_messages(&report);
}
