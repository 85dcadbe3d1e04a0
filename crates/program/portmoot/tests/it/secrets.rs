//! Secrets: headers of callers do not reach upstreams, and details of upstreams do not reach
//! callers.

use std::io::Write as _;

use harness::Running;
use serde_json::{Value, json};

use crate::peer::Peer;
use crate::socket::{Gateway, LEGACY, call, fixture_server, initialize, until};

/// Headers of a caller beyond those of MCP; none of them is for an upstream.
const SHOWN: [(&str, &str); 9] = [
    ("authorization", "Bearer inbound-inbound-inbound"),
    ("cookie", "inbound=inbound"),
    ("proxy-authorization", "Basic inbound"),
    ("x-api-key", "inbound"),
    ("x-forwarded-for", "inbound"),
    ("x-inbound", "inbound"),
    ("forwarded", "for=inbound"),
    ("traceparent", "00-inbound"),
    ("user-agent", "inbound"),
];

fn who() -> &'static str {
    "[participants.ann]\ntoken_env = \"T_ann\"\ncapabilities = [\"mcp/*\"]\n"
}

const TOKEN: (&str, &str) = ("T_ann", "inbound-inbound-inbound");

#[test]
fn nothing_of_a_caller_reaches_an_http_upstream() {
    for era in ["legacy", "modern"] {
        let served = Running::fixture(&["--era", era]);
        let config = format!(
            "[servers.fixture]\nurl = \"{}\"\nprefix = \"\"\nheaders = {{ \"x-configured\" = \"${{OUTBOUND}}\" }}\n{}",
            served.url(),
            who()
        );
        let gateway = Gateway::serve_with(&config, &[TOKEN, ("OUTBOUND", "outbound-secret")]);
        let session = gateway.session_as(&SHOWN, LEGACY, "{}");
        let modern = gateway.modern_as(
            &SHOWN,
            "tools/call",
            Some("record"),
            r#""name":"record","arguments":{}"#,
        );
        let modern = modern
            .json()
            .pointer("/result/structuredContent")
            .cloned()
            .unwrap();
        for seen in [session.record("record"), modern] {
            let headers = &seen["headers"];
            assert_eq!(headers["x-configured"], "outbound-secret");
            let all = seen.to_string();
            assert!(
                !all.contains("inbound") && !all.contains(&session.id),
                "{era}: {headers}"
            );
        }
    }
}

#[test]
fn nothing_of_a_caller_or_of_the_gateway_reaches_a_child() {
    let config = format!(
        "{}env = {{ OWN = \"${{OUTBOUND}}\" }}\n{}",
        fixture_server("fixture", "", &[]),
        who()
    );
    let env = [
        TOKEN,
        ("OUTBOUND", "outbound-secret"),
        ("UNRELATED", "inbound"),
    ];
    let gateway = Gateway::serve_with(&config, &env);
    let session = gateway.session_as(&SHOWN, LEGACY, "{}");
    let seen = session.record("record");
    let environment = seen["environment"].as_object().unwrap();
    assert_eq!(environment["OWN"], "outbound-secret");
    let all = seen.to_string();
    assert!(
        !all.contains("inbound") && !all.contains(&session.id),
        "{all}"
    );
    for name in environment.keys() {
        let known = [
            "PATH", "HOME", "OWN", "LANG", "USER", "SHELL", "TERM", "TMPDIR", "TZ", "LOGNAME",
        ];
        assert!(
            known.contains(&name.as_str()) || name.starts_with("LC_"),
            "{name}"
        );
    }
}

/// Servers that fail in many ways: their tables in the configuration, and their upstreams.
fn failing() -> (String, Vec<Peer>) {
    let status = |head: &'static str| {
        Peer::http(move |_| {
            vec![format!("HTTP/1.1 {head}\r\ncontent-length: 11\r\n\r\nSECRET-body").into_bytes()]
        })
    };
    let garbage = Peer::http(|_| {
        vec![
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\nSECRET-junk"
                .to_vec(),
        ]
    });
    let html = Peer::http(|_| {
        vec![b"HTTP/1.1 302 Found\r\nlocation: http://SECRET.example/\r\ncontent-type: text/html\r\ncontent-length: 0\r\n\r\n".to_vec()]
    });
    let peers = vec![
        status("401 No"),
        status("403 No"),
        status("404 No"),
        status("500 No"),
        garbage,
        html,
    ];
    let mut config = String::new();
    for (number, peer) in peers.iter().enumerate() {
        let url = peer
            .url()
            .replace("http://", "http://SECRET-user:SECRET-pass@");
        config.push_str(&format!(
            "[servers.http{number}]\nurl = \"{url}?key=SECRET\"\nheaders = {{ \"x-key\" = \"SECRET\" }}\n"
        ));
    }
    for (name, command, args) in [
        ("absent", "/SECRET/absent", "[]"),
        ("denied", "/etc/passwd", "[\"SECRET\"]"),
        ("dies", "bash", "[\"-c\", \"echo SECRET >&2; exit 3\"]"),
        ("silent", "bash", "[\"-c\", \"sleep 100 # SECRET\"]"),
        (
            "junk",
            "bash",
            "[\"-c\", \"while echo SECRET; do sleep 0.1; done\"]",
        ),
    ] {
        config.push_str(&format!(
            "[servers.{name}]\ncommand = \"{command}\"\nargs = {args}\nenv = {{ KEY = \"SECRET\" }}\n"
        ));
    }
    config.push_str("[servers.unreachable]\nurl = \"http://127.0.0.1:1/SECRET\"\n[servers.nowhere]\nurl = \"http://SECRET.invalid/mcp\"\n");
    (config, peers)
}

#[test]
fn nothing_internal_is_revealed_to_callers() {
    let (config, _peers) = failing();
    let crashing = format!(
        "{}env = {{ KEY = \"SECRET\" }}\n",
        fixture_server("crashing", "c", &["--name", "x"])
    );
    let fixture = harness::fixture_binary().to_str().unwrap().to_owned();
    let gateway = Gateway::serve(&format!(
        "[topics.main]\nlist_wait = \"200ms\"\n{config}{crashing}"
    ));
    let session = gateway.session();
    let mut texts = vec![gateway.post(&[], initialize(LEGACY, "{}")).text()];
    let names: Vec<String> = (0..6).map(|number| format!("http{number}")).collect();
    let others = [
        "absent",
        "denied",
        "dies",
        "silent",
        "junk",
        "unreachable",
        "nowhere",
    ];
    for name in names.iter().map(String::as_str).chain(others) {
        let tool = format!("{name}_tool");
        texts.push(session.post(call("1", &tool, "{}")).text());
        texts.push(
            gateway
                .modern("tools/call", Some(&tool), &format!(r#""name":"{tool}""#))
                .text(),
        );
    }
    until("the one that works is there", || {
        session
            .call("c_echo", &json!({"text": "x"}))
            .get("result")
            .is_some()
    });
    for (tool, arguments) in [
        ("c_crash", json!({"code": 3})),
        ("c_flood", json!({"bytes": 100_000, "text": "SECRET-flood"})),
    ] {
        texts.push(session.call(tool, &arguments).to_string());
    }
    for method in [
        "tools/list",
        "resources/list",
        "prompts/list",
        "resources/templates/list",
        "vendor/thing",
    ] {
        texts.push(
            session
                .post(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#))
                .text(),
        );
        texts.push(gateway.modern(method, None, "").text());
    }
    for path in ["GET /healthz", "GET /metrics", "GET /nothing", "POST /mcp"] {
        texts.push(gateway.request(path, &[], b"").text());
    }
    let mut broken = gateway.connect();
    broken.write_all(b"NONSENSE\r\n\r\n").unwrap();
    let mut answer = String::new();
    let _ = std::io::Read::read_to_string(&mut broken, &mut answer);
    texts.push(answer);
    for text in texts {
        for word in [
            "SECRET",
            fixture.as_str(),
            "/etc/passwd",
            "/tmp/",
            "127.0.0.1:1",
            "os error",
            "panicked",
            ".rs:",
        ] {
            assert!(!text.contains(word), "{word} is revealed: {text}");
        }
    }
    // Operators, as whom programs on this machine count here, see programs, hosts and what was
    // printed in place of messages.
    let ready = gateway.request("GET /readyz", &[], b"").text();
    for word in [
        "SECRET-",
        "key=SECRET",
        "/SECRET",
        fixture.as_str(),
        "/etc/passwd",
        "/tmp/",
        "os error",
    ] {
        assert!(!ready.contains(word), "{word} is revealed: {ready}");
    }
    // The operator's log has the reason.
    assert!(gateway.log().contains("absent"), "{}", gateway.log());
    let _ = Value::Null;
}
