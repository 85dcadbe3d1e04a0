//! Refused TLS connections: old revisions, plain text, handshakes that never end; files that cannot
//! be used.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use harness::{grpc_client, proto_client};
use prost::Message as _;
use serde_json::json;
use wire::proto::contract::McpMessage;
use wire::proto::contract::mcp_message::Payload;

use super::authority::Authority;
use crate::home::Home;
use crate::http::{Connection, TIMEOUT};
use crate::proto_clients::UPGRADE;
use crate::support::{Gateway, fixture};

/// A client that speaks at most TLS 1.2, then any; prints what came of both.
const OLD_CLIENT: &str = r#"
import socket, ssl, sys
port, ca = int(sys.argv[1]), sys.argv[2]
for newest in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
    context = ssl.create_default_context(cafile=ca)
    context.maximum_version = newest
    try:
        with socket.create_connection(("127.0.0.1", port)) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as secure:
                print("connected", secure.version())
    except ssl.SSLError as error:
        print("refused", error.reason)
"#;

fn start(more: &str) -> (Gateway, Authority, Home) {
    let home = Home::new();
    let authority = Authority::new(&home, "ca");
    let own = authority.issue_local(&home, "gate");
    (
        Gateway::start(&home, &(own.table() + more)),
        authority,
        home,
    )
}

fn connect(gateway: &Gateway) -> TcpStream {
    let stream = TcpStream::connect(gateway.address()).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

#[test]
fn tls_1_2_is_refused() {
    let (gateway, authority, _home) = start("");
    let port = gateway.address().rsplit(':').next().unwrap();
    let ran = Command::new("python3")
        .args(["-c", OLD_CLIENT, port])
        .arg(&authority.file)
        .output()
        .unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines.len(),
        2,
        "{text} {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    assert_eq!(
        (lines[0], lines[1]),
        ("refused TLSV1_ALERT_PROTOCOL_VERSION", "connected TLSv1.3"),
        "{text}"
    );
    gateway.receive("a connection ended before its first request");
}

#[test]
fn plain_http_on_the_tls_port_is_answered_with_the_reason() {
    const EXPECTED: &str = "this port speaks TLS: use a URL with `https://`";
    let (gateway, _authority, home) = start("");
    let mut stream = connect(&gateway);
    stream
        .write_all(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.contains(EXPECTED),
        "{answer}"
    );
    drop(stream);
    gateway.receive("the client does not speak TLS");
    // Commands and clients on a pipe have it too.
    let plain = gateway.url().replace("https", "http");
    let refused = home.run(&["tools", "ls", "--url", &plain]).expect(1);
    assert!(refused.stderr.contains(EXPECTED), "{}", refused.stderr);
    let refused = home.run(&["participants", "ls", "--url", &plain]).expect(1);
    assert!(refused.stderr.contains(EXPECTED), "{}", refused.stderr);
}

#[test]
fn a_plain_frame_on_the_tls_port_is_answered_in_its_protocol() {
    let (gateway, ..) = start("");
    let mut stream = connect(&gateway);
    // A ping.
    stream.write_all(&[0, 0, 0, 2, 8, 1]).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let message = McpMessage::decode(&answer[4..]).unwrap();
    assert_eq!(
        u32::from_be_bytes(*answer.first_chunk().unwrap()) as usize,
        answer.len() - 4
    );
    let Some(Payload::ErrorResponse(error)) = message.payload else {
        panic!("{message:?}")
    };
    assert_eq!(
        (message.id, error.code, error.message.as_str()),
        (0, -32600, "this port speaks TLS")
    );
    drop(stream);
    gateway.receive("the client does not speak TLS");
}

#[test]
fn tls_on_a_plain_port_is_logged_and_its_command_names_the_url() {
    let home = Home::new();
    let gateway = Gateway::start(&home, "");
    let refused = home
        .run(&[
            "tools",
            "ls",
            "--url",
            &gateway.url().replace("http", "https"),
        ])
        .expect(1);
    for expected in [
        "over TLS: it does not speak TLS",
        &format!("its URL is {}:", gateway.url()),
    ] {
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
    gateway.receive("speaks TLS to a port that does not");
}

/// The share of an address holds for connections that never finish their handshake: the oldest
/// makes way.
#[test]
fn silent_handshakes_of_one_address_make_way() {
    let (gateway, authority, home) =
        start("[server.limits]\nconnections_max = 8\nparticipant_connections_max = 2\n");
    // A hello that never ends, and silence.
    let mut first = connect(&gateway);
    first.write_all(&[22, 3, 1, 0, 200, 1]).unwrap();
    let silent: Vec<TcpStream> = (0..8).map(|_| connect(&gateway)).collect();
    assert_eq!(
        first.read(&mut [0; 64]).unwrap_or_default(),
        0,
        "it made way"
    );
    let ca = authority.file.to_str().unwrap();
    home.run(&["tools", "ls", "--url", &gateway.url(), "--ca", ca])
        .expect(0);
    drop(silent);
}

#[test]
fn files_that_cannot_be_used_are_problems_with_their_place() {
    let home = Home::new();
    let authority = Authority::new(&home, "ca");
    let (own, other) = (
        authority.issue_local(&home, "gate"),
        authority.issue_local(&home, "other"),
    );
    let check = |config: &str| {
        home.write("portmoot.toml", config);
        home.run(&["config", "check", "--config", "portmoot.toml"])
    };
    let good = own.table();
    let mixed = good.replace("gate.key", "other.key");
    for (config, expected) in [
        (mixed.clone(), "`server.tls.key`: the key in"),
        (
            good.replace("gate.pem", "gone.pem"),
            "`server.tls.cert`: cannot read",
        ),
        (
            good.replace("gate.pem", "gate.key"),
            "has no certificate in PEM format",
        ),
        (
            good.clone() + "client_auth = \"optional\"\n",
            "has no effect without `client_ca`",
        ),
        ("[server.tls]\n".to_owned(), "needs `cert` and `key`"),
        (
            good.clone() + "[participants.a]\nclient_cert_san = \"a\"\n",
            "clients are asked for none",
        ),
        (
            format!("{good}client_ca = {:?}\n", authority.file)
                + "[participants.a]\nclient_cert_san = \"a\"\n[participants.b]\nclient_cert_san = \"a\"\n",
            "have the same client certificate",
        ),
        (
            "[participants.a]\nclient_cert_sha256 = \"ab\"\n".to_owned(),
            "64 hexadecimal digits",
        ),
        (
            "[servers.a]\nurl = \"https://a/\"\nclient_cert = \"x.pem\"\n".to_owned(),
            "needs both",
        ),
        (
            format!(
                "[servers.a]\nurl = \"http://a/\"\nca = {:?}\n",
                authority.file
            ),
            "the connection is not encrypted",
        ),
    ] {
        let refused = check(&config).expect(2);
        assert!(
            refused.stderr.contains(expected),
            "{expected}: {}",
            refused.stderr
        );
    }
    check(&good).expect(0);
    std::fs::set_permissions(
        &own.key,
        std::os::unix::fs::PermissionsExt::from_mode(0o644),
    )
    .unwrap();
    let warned = check(&good).expect(0);
    assert!(
        warned
            .stderr
            .contains("every user of this machine may read the key"),
        "{}",
        warned.stderr
    );
    let refused = home.run(&[
        "tools",
        "ls",
        "--url",
        "https://127.0.0.1:1",
        "--ca",
        other.key.to_str().unwrap(),
    ]);
    assert!(refused.expect(2).stderr.contains("has no certificate"));
}

#[test]
fn a_wider_bind_serves_proto_mcp_with_tls_only() {
    const TOKEN: &str = "a-token-that-is-long-enough";
    const REFUSED: &str = "listening on 0.0.0.0:0 for proto-mcp needs TLS";
    let home = Home::new().env("ONE_TOKEN", TOKEN);
    let ca = Authority::new(&home, "ca");
    let own = ca.issue_local(&home, "gate").table();
    let one = "[participants.one]\ntoken_env = \"ONE_TOKEN\"\ncapabilities = [\"mcp/request:*\"]\n";
    let config = [&fixture("a", &[]), one].concat();
    let serve = |config: &str| {
        home.write("portmoot.toml", config);
        let listen = [
            "serve",
            "--config",
            "portmoot.toml",
            "--listen",
            "0.0.0.0:0",
        ];
        let gateway = Gateway::serve(home.command(&listen));
        gateway.ready("a");
        gateway
    };
    let framed = |way: &[&str]| {
        let call = ["--call", "a_echo", "hello"];
        proto_client(&[&call[..], way, &["--token", TOKEN]].concat())["answer"].clone()
    };
    // Without TLS no peer is served, one on this machine neither.
    let gateway = serve(&config);
    let refused = framed(&["--tcp", gateway.address()]);
    assert!(
        refused[1].as_str().unwrap().starts_with(REFUSED) && refused[2] == "forbidden",
        "{refused}"
    );
    let words = [gateway.address(), "a_", "--token", TOKEN];
    let refused = grpc_client(&words)["refused"].clone();
    assert_eq!(refused[0], "PERMISSION_DENIED", "{refused}");
    assert!(
        refused[1].as_str().unwrap().starts_with(REFUSED),
        "{refused}"
    );
    let bearer = format!("Bearer {TOKEN}");
    let token = ("authorization", bearer.as_str());
    let upgrade = Connection::open(gateway.address()).exchange(
        "GET",
        "/proto",
        &[&UPGRADE[..], &[token]].concat(),
        "",
    );
    assert!(
        upgrade.status == 403 && upgrade.body.contains(REFUSED),
        "{} {}",
        upgrade.status,
        upgrade.body
    );
    // JSON-RPC is, with its token.
    let words = [
        "tools",
        "call",
        "a_echo",
        "text=hello",
        "--url",
        &gateway.url(),
        "--token",
        TOKEN,
    ];
    assert!(home.run(&words).expect(0).stdout.contains("hello"));
    drop(gateway);
    let gateway = serve(&(own + &config));
    let at = gateway.address().replace("127.0.0.1", "localhost");
    let (file, url) = (ca.file.to_str().unwrap(), format!("wss://{at}/proto"));
    for way in [["--tcp", &at], ["--ws", &url]] {
        assert_eq!(
            framed(&[&way[..], &["--ca", file]].concat()),
            json!(["hello"]),
            "{way:?}"
        );
    }
    let words = [&at, "a_", "--token", TOKEN, "--ca", file];
    assert_eq!(grpc_client(&words)["echo"], json!(["hello"]));
}
