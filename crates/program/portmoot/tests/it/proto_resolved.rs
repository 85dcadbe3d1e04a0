//! Servers of proto-mcp whose tools have their schemas in a registry: `[registry]` says which one
//! is asked.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use prost::Message as _;
use registry::messages::module::{DownloadResponse, GetGraphResponse};
use serde_json::{Value, json};
use wire::proto::contract::McpMessage;
use wire::proto::contract::mcp_message::Payload;

use crate::home::Home;
use crate::proto_servers::child;
use crate::registry::{TestRegistry, keeping};
use crate::support::{Client, Gateway, fixture, until};
use crate::tls::TlsProxy;

const TOKEN: &str = "a-token-that-is-long-enough";

/// A gateway with the server `p`, which has these tools with references.
fn gateway(home: &Home, registry: &str, tools: &[(&str, &str)]) -> Gateway {
    let record = home.path().join("record");
    let far = tools
        .iter()
        .flat_map(|(tool, reference)| ["--far", tool, reference]);
    let words: Vec<_> = far.chain(["--record", record.to_str().unwrap()]).collect();
    let gateway = Gateway::start(home, &(child("p", &words) + registry));
    gateway.ready("p");
    gateway
}

/// Whether the gateway said to the server that it reads references.
fn declared(home: &Home) -> bool {
    let record = fs::read_to_string(home.path().join("record")).unwrap();
    let first = record.lines().next().unwrap();
    let byte = |at: usize| u8::from_str_radix(&first[at..at + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..first.len()).step_by(2).map(byte).collect();
    let Some(Payload::InitializeRequest(hello)) = McpMessage::decode(&*bytes).unwrap().payload
    else {
        panic!("{first}")
    };
    hello.capabilities.unwrap().supports_bsr_refs
}

/// The `[registry]` that allows these hosts.
fn allowing(hosts: &[&str]) -> String {
    format!("[registry]\nhosts = {hosts:?}\n")
}

/// The arguments of a tool as a client of JSON-RPC sees them.
fn input(client: &Client, tool: &str) -> Value {
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    tools
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == tool)
        .unwrap()["inputSchema"]
        .clone()
}

/// Why a tool of `p` has no schema.
#[track_caller]
fn why(gateway: &Gateway, tool: &str) -> String {
    let untyped = gateway.server("p")["untyped_tools"].clone();
    let found = untyped
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == tool)
        .cloned();
    found.unwrap_or_else(|| panic!("{untyped}"))["reason"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn a_schema_is_resolved_at_another_gateway_with_the_token_of_its_host() {
    let people = "[participants.admin]\ntoken_env = \"ADMIN\"\ncapabilities = [\"mcp/*\"]\n";
    let other = Gateway::start(
        &Home::new().env("ADMIN", TOKEN),
        &[&fixture("tools", &[]), people].concat(),
    );
    other.ready("tools");
    let host = other.address();
    let reference = format!("{host}/portmoot/tools/tools.v1.EchoRequest:v1");
    let by_name = format!("{host}/portmoot/tools/add");
    let tools = [("far", reference.as_str()), ("adds", &by_name)];
    let allowed = allowing(&[&format!("http://{host}")]);
    let home = Home::new().env("BUF_TOKEN", &format!("{TOKEN}@{host}"));
    let gateway = gateway(&home, &allowed, &tools);
    assert!(declared(&home));
    let client = Client::plain(&gateway);
    let schema = input(&client, "p_far");
    assert_eq!(
        (&schema["properties"]["text"]["type"], &schema["required"]),
        (&json!("string"), &json!(["text"]))
    );
    assert_eq!(input(&client, "p_adds")["required"], json!(["a", "b"]));
    let said = client.call("p_far", json!({ "text": "hello" }));
    assert_eq!(
        said["content"][0]["text"],
        json!("tools.v1.EchoRequest 0a0568656c6c6f"),
        "{said}"
    );
    let refused = client.ask(
        "tools/call",
        json!({ "name": "p_far", "arguments": { "text": 5 } }),
    );
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    // What is inline needs no registry, and what is elsewhere stays there.
    assert_eq!(
        input(&client, "p_find")["properties"]["query"]["type"],
        "string"
    );
    assert!(why(&gateway, "distant").contains("the registry buf.build is not allowed"));
    assert_eq!(input(&client, "p_distant"), json!({ "type": "object" }));
}

#[test]
fn a_schema_of_a_foreign_host_is_not_fetched_and_its_tool_says_why() {
    let (foreign, at_foreign) = keeping("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned());
    let redirect =
        format!("HTTP/1.1 307 Moved\r\nlocation: http://{foreign}/x\r\ncontent-length: 0\r\n\r\n");
    let (moving, at_moving) = keeping(redirect);
    let at = |host: &str| format!("{host}/portmoot/one/one.v1.EchoRequest:main");
    let tools = [
        ("foreign", at(&foreign)),
        ("moved", at(&moving)),
        ("odd", "no reference\n".to_owned()),
    ];
    let tools = tools
        .each_ref()
        .map(|(tool, reference)| (*tool, reference.as_str()));
    let home = Home::new().env("BUF_TOKEN", &format!("{TOKEN}@{moving},{TOKEN}2@{foreign}"));
    let allowed = gateway(&home, &allowing(&[&format!("http://{moving}")]), &tools);
    assert!(why(&allowed, "foreign").contains(&format!("the registry {foreign} is not allowed")));
    assert!(why(&allowed, "moved").contains("HTTP status 307"));
    assert!(why(&allowed, "odd").contains("`no reference\\n` is not a reference"));
    let seen = at_moving.lock().unwrap().clone();
    assert!(
        seen.len() == 1 && seen[0].contains(&format!("authorization: Bearer {TOKEN}\r\n")),
        "{seen:?}"
    );
    // Without the table nothing is fetched, and the tools are there.
    let home = Home::new();
    let nothing = gateway(&home, "", &tools);
    assert!(!declared(&home));
    assert!(why(&nothing, "moved").contains("is in a registry, and none is allowed"));
    let said = Client::plain(&nothing).call("p_moved", json!({}));
    assert_eq!(said["content"][0]["text"], "google.protobuf.Struct ");
    assert_eq!(at_moving.lock().unwrap().len(), 1);
    // Connections are seen in their order: this one is the first.
    TcpStream::connect(&foreign)
        .unwrap()
        .write_all(b"x")
        .unwrap();
    until("a connection is seen", || {
        (!at_foreign.lock().unwrap().is_empty()).then_some(())
    });
    assert_eq!(*at_foreign.lock().unwrap(), ["x"]);
}

#[test]
fn the_netrc_file_has_the_tokens_of_hosts_and_its_default_goes_to_none() {
    let people = "[participants.admin]\ntoken_env = \"ADMIN\"\ncapabilities = [\"mcp/*\"]\n";
    let at_home = Home::new().env("ADMIN", TOKEN);
    let asked = Gateway::start(&at_home, &[&fixture("tools", &[]), people].concat());
    asked.ready("tools");
    let host = asked.address();
    let (other, at_other) =
        keeping("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n".to_owned());
    let (far, away) = (
        format!("{host}/portmoot/tools/tools.v1.EchoRequest:v1"),
        format!("{other}/portmoot/one/one.v1.EchoRequest:main"),
    );
    let allowed = allowing(&[&format!("http://{host}"), &format!("http://{other}")]);
    let netrc = format!(
        "machine {host}\n  login me\n  password {TOKEN}\ndefault login me password {TOKEN}2\n"
    );
    let typed = |client: &Client| input(client, "p_far")["properties"]["text"]["type"] == "string";
    let invalid = format!("a-token-that-is-not-valid@{host}");
    for (name, variable, refused) in [
        (".netrc", None, None),
        ("elsewhere", Some(("NETRC", "elsewhere")), None),
        // The variable comes before the file.
        (
            ".netrc",
            Some(("BUF_TOKEN", &*invalid)),
            Some("this token is not valid"),
        ),
        ("unread", None, Some("token")),
    ] {
        let home = variable
            .into_iter()
            .fold(Home::new(), |home, (name, value)| home.env(name, value));
        home.write(name, &netrc);
        let gateway = gateway(&home, &allowed, &[("far", &far), ("away", &away)]);
        match refused {
            Some(refused) => assert!(
                why(&gateway, "far").contains(refused),
                "{}",
                why(&gateway, "far")
            ),
            None => assert!(
                typed(&Client::plain(&gateway)),
                "{name}: {}",
                gateway.server("p")
            ),
        }
        assert!(
            why(&gateway, "away").contains("401"),
            "{}",
            why(&gateway, "away")
        );
    }
    let seen = at_other.lock().unwrap().concat().to_ascii_lowercase();
    assert!(
        seen.contains("post /buf.registry.") && !seen.contains("authorization"),
        "{seen}"
    );
}

/// The files of a cache.
fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

#[test]
fn a_cache_on_disk_survives_a_restart_and_a_changed_file_is_noticed() {
    let registry = TestRegistry::start(|_, answer| answer);
    let home = Home::new();
    let cache = home.path().join("schemas");
    let table =
        allowing(&[&format!("http://{}", registry.address)]) + &format!("cache_dir = {cache:?}\n");
    let reference = format!("{}/portmoot/one/one.v1.EchoRequest", registry.address);
    let run = |fetched: usize| {
        let gateway = gateway(&home, &table, &[("far", &reference)]);
        let schema = input(&Client::plain(&gateway), "p_far");
        assert_eq!(schema["properties"]["text"]["type"], "string", "{schema}");
        assert_eq!(registry.answers(), fetched);
        // A label and a set.
        assert_eq!(files(&cache).len(), 2);
        gateway.stop().stderr
    };
    // The modules, and their files.
    run(2);
    run(2);
    let longest = files(&cache)
        .into_iter()
        .max_by_key(|file| fs::metadata(file).unwrap().len())
        .unwrap();
    let mut bytes = fs::read(&longest).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&longest, bytes).unwrap();
    let log = run(4);
    assert!(log.contains("is not as it was written"), "{log}");
    run(4);
}

/// A gateway whose tool `far` has the schema of this version at a registry.
fn resolving(home: &Home, registry: &TestRegistry, version: &str, more: &str) -> Gateway {
    let reference = format!(
        "{}/portmoot/one/one.v1.EchoRequest:{version}",
        registry.address
    );
    let allowed = allowing(&[&format!("http://{}", registry.address)]);
    gateway(home, &(allowed + more), &[("far", &reference)])
}

/// The commit of the registry's one module.
fn commit() -> registry::Commit {
    registry::Commit::new(
        "one",
        registry::ModuleSource::files(&crate::registry::One, "one").unwrap(),
        1,
    )
}

#[test]
fn an_answer_that_is_not_what_the_reference_names_is_not_used() {
    let other = TestRegistry::start(|path, answer| {
        assert!(path.ends_with("/GetGraph"), "{path}");
        let mut answer = GetGraphResponse::decode(answer).unwrap();
        answer.graph.as_mut().unwrap().commits[0].id = "0".repeat(32);
        answer.encode_to_vec().into()
    });
    let right = TestRegistry::start(|_, answer| answer);
    let homes = [Home::new(), Home::new()];
    let good = resolving(&homes[0], &right, commit().id(), "");
    assert_eq!(
        input(&Client::plain(&good), "p_far")["properties"]["text"]["type"],
        "string"
    );
    let bad = resolving(&homes[1], &other, commit().id(), "");
    assert!(
        why(&bad, "far").contains("answer cannot be used"),
        "{}",
        why(&bad, "far")
    );
    assert_eq!(
        input(&Client::plain(&bad), "p_far"),
        json!({ "type": "object" })
    );
}

#[test]
fn sources_that_do_not_have_their_digest_are_not_used() {
    let lying = TestRegistry::start(|path, answer| {
        if !path.ends_with("/Download") {
            return answer;
        }
        let mut answer = DownloadResponse::decode(answer).unwrap();
        answer.contents[0].files[0].content.extend(b"// and more\n");
        answer.encode_to_vec().into()
    });
    let home = Home::new();
    let gateway = resolving(&home, &lying, commit().id(), "");
    let (module, expected) = (format!("{}/portmoot/one", lying.address), commit().digest());
    let reason = why(&gateway, "far");
    assert!(
        reason.contains(&format!("the digest of {module} is b5:")),
        "{reason}"
    );
    assert!(reason.contains(&format!(", not {expected}")), "{reason}");
    assert_eq!(
        input(&Client::plain(&gateway), "p_far"),
        json!({ "type": "object" })
    );
    let log = gateway.stop().stderr;
    assert!(
        log.contains("the digest of") && log.contains(&expected),
        "{log}"
    );
}

#[test]
fn a_configured_digest_decides_what_a_commit_may_be() {
    let registry = TestRegistry::start(|_, answer| answer);
    let homes = [Home::new(), Home::new()];
    let configured = |home: &Home, digest: &str| {
        let key = format!("{}/portmoot/one:{}", registry.address, commit().id());
        resolving(
            home,
            &registry,
            "v1",
            &format!("digests = {{ {key:?} = {digest:?} }}\n"),
        )
    };
    let right = configured(&homes[0], &commit().digest());
    assert_eq!(
        input(&Client::plain(&right), "p_far")["properties"]["text"]["type"],
        "string"
    );
    let other = format!("b5:{}", "00".repeat(64));
    let reason = why(&configured(&homes[1], &other), "far");
    assert!(
        reason.contains(&format!("is {}, not {other}", commit().digest())),
        "{reason}"
    );
}

#[test]
fn a_reference_without_an_answer_is_resolved_again() {
    let is_down = Arc::new(AtomicBool::new(true));
    let down = Arc::clone(&is_down);
    let registry = TestRegistry::start(move |_, answer| {
        if down.load(Ordering::SeqCst) {
            Bytes::from_static(&[0xff])
        } else {
            answer
        }
    });
    let home = Home::new();
    let gateway = resolving(&home, &registry, "v1", "retry = \"20ms\"\n");
    assert!(why(&gateway, "far").contains("answer cannot be used"));
    let client = Client::plain(&gateway);
    until("it is asked again", || {
        (registry.answers() > 2).then_some(())
    });
    assert_eq!(input(&client, "p_far"), json!({ "type": "object" }));
    is_down.store(false, Ordering::SeqCst);
    until("it has an answer", || {
        (input(&client, "p_far")["properties"]["text"]["type"] == "string").then_some(())
    });
    let untyped = gateway.server("p")["untyped_tools"].clone();
    let is_there = |tool: &Value| tool["name"] == "far";
    assert!(
        !untyped.as_array().unwrap().iter().any(is_there),
        "{untyped}"
    );
}

#[test]
fn the_certificate_of_a_registry_is_trusted_by_its_authority_or_its_pin() {
    let registry = TestRegistry::start(|_, answer| answer);
    let front = TlsProxy::of(&registry.address);
    let host = format!("localhost:{}", front.port);
    let reference = format!("{host}/portmoot/one/one.v1.EchoRequest");
    let home = Home::new();
    let ca = home.write("ca.pem", &front.pem);
    let printed = &front.sha256;
    let wrong = "00".repeat(32);
    let run = |more: &str| {
        let gateway = gateway(&home, &(allowing(&[&host]) + more), &[("far", &reference)]);
        let typed =
            input(&Client::plain(&gateway), "p_far")["properties"]["text"]["type"] == "string";
        if typed {
            Ok(())
        } else {
            Err(why(&gateway, "far"))
        }
    };
    assert_eq!(run(&format!("ca = {ca:?}\n")), Ok(()));
    assert_eq!(
        run(&format!("pins = {{ {host:?} = {printed:?} }}\n")),
        Ok(())
    );
    for untrusted in [
        String::new(),
        format!("ca = {ca:?}\npins = {{ {host:?} = {wrong:?} }}\n"),
    ] {
        let why = run(&untrusted).unwrap_err();
        assert!(why.contains("certificate"), "{why}");
    }
}
