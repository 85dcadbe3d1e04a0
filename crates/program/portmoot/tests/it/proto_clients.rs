//! Clients that know proto-mcp's contract alone, with Google's runtime: over pipes and sockets.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use harness::{grpc_client, proto_client};
use prost::Message as _;
use serde_json::{Value, json};
use wire::proto::contract::mcp_message::Payload;
use wire::proto::contract::{CallToolRequest, McpMessage};

use crate::front::{binary, over_stdio, pipe};
use crate::home::Home;
use crate::http::{Connection, TIMEOUT};
use crate::peer::{Peer, answer, small, tool};
use crate::proto_servers::child;
use crate::support::{Gateway, fixture, until};
use crate::ws::{self, Socket};

const TOKEN: &str = "a-token-that-is-long-enough";
/// The longest first message that is read of a stranger.
const FIRST_BYTES_MAX: u32 = 64 * 1024;

/// How a WebSocket ends whose client sent too long a message (RFC 6455, section 7.4.1).
pub(crate) const TOO_BIG: [u32; 2] = [0, 1009];

/// The address of WebSockets of a gateway.
pub(crate) fn websocket(gateway: &Gateway) -> String {
    gateway.url().replacen("http", "ws", 1) + "/proto"
}

/// What only a WebSocket has: its messages come whole or in parts, with or without a prefix, and
/// are binary.
pub(crate) fn check_messages(report: &Value) {
    assert_eq!(report["in_parts"], json!([901, 901]));
    assert_eq!(report["text_message"], json!(1003));
}

/// What the client saw of the fixture.
/// `end` is what the connection ends with after a message that is too long.
pub(crate) fn check(report: &Value, prefix: &str, end: &Value) {
    let at = |key: &str| report.get(key).unwrap_or(&Value::Null).clone();
    let unsupported = json!([
        -33002,
        "unsupported protocol version (use 1.0.0)",
        "unsupported_protocol"
    ]);
    assert_eq!(at("other_version"), unsupported);
    assert_eq!(
        (at("version"), at("list_changed"), at("prompts")),
        (json!("1.0.0"), json!(true), json!(false))
    );
    assert_eq!(at("ping"), json!([900, null]));
    let tools: Vec<_> = at("tools")
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    for tool in ["echo", "add", "json_schema_2020_12_tool"] {
        assert!(tools.contains(&format!("{prefix}{tool}")), "{tools:?}");
    }
    assert_eq!(at("schemas"), json!(tools.len()));
    assert!(
        at("resources")
            .as_array()
            .unwrap()
            .contains(&json!("test://static-text"))
    );
    assert_eq!(
        (at("plain"), at("typed")),
        (json!(["hello"]), json!(["grüße"]))
    );
    assert_eq!(at("is_error"), json!(true));
    let blocks = json!([["text", ""], ["image", "image/png"], ["data", ""]]);
    assert_eq!(at("blocks"), blocks);
    assert_eq!(at("unknown_tool")[0], json!(-32602));
    if !prefix.is_empty() {
        // Without a prefix the server itself is asked for names that it does not list.
        assert_eq!(at("unknown_tool")[2], json!("unknown_target"));
    }
    assert_eq!(
        (&at("wrong_message")[0], &at("wrong_message")[2]),
        (&json!(-32602), &json!("malformed"))
    );
    assert_eq!(
        (&at("wrong_type")[0], &at("wrong_type")[2]),
        (&json!(-32602), &json!("malformed"))
    );
    assert_eq!(
        (&at("broken_rule")[0], &at("broken_rule")[2]),
        (&json!(-33001), &json!("schema_violation"))
    );
    assert_eq!(at("same_id"), json!([[800, -32600], [800, 0]]));
    assert_eq!(
        at("text"),
        json!(["This is the content of the static text resource."])
    );
    assert_eq!(at("blob"), json!(["image/png", "89504e47"]));
    assert_eq!(at("unknown_resource")[0], json!(-32002));
    assert_eq!(
        (at("garbage"), at("unknown_payload")),
        (json!([0, -32700]), json!([7, -32601]))
    );
    assert_eq!(at("answer")[0], json!(-32601));
    assert_eq!((&at("too_long"), &at("end")), (&json!([0, -32600]), end));
}

#[test]
fn a_client_on_a_pipe_reaches_what_the_gateway_has() {
    for (server, prefix) in [("", ""), ("fixture", "fixture_")] {
        for era in ["legacy", "modern"] {
            let home = Home::new();
            let words = pipe(&home, &over_stdio(server, &["--era", era, "--page", "2"]));
            let mut way = vec!["--prefix", prefix, "--pipe"];
            way.extend(words.iter().map(String::as_str));
            check(&proto_client(&way), prefix, &json!([0, 0]));
        }
    }
}

#[test]
fn a_client_on_a_websocket_reaches_what_the_gateway_has() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("fixture", &[]));
    let report = proto_client(&["--prefix", "fixture_", "--ws", &websocket(&gateway)]);
    check(&report, "fixture_", &json!(TOO_BIG));
    check_messages(&report);
}

#[test]
fn a_client_over_tcp_reaches_what_the_gateway_has() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("fixture", &[]));
    let report = proto_client(&["--prefix", "fixture_", "--tcp", gateway.address()]);
    check(&report, "fixture_", &json!([0, 0]));
}

#[test]
fn a_client_on_a_pipe_reaches_a_gateway_that_runs() {
    let home = Home::new().env("ONE_TOKEN", TOKEN);
    let one = "[participants.one]\ntoken_env = \"ONE_TOKEN\"\ncapabilities = [\"mcp/request:*\"]\n";
    let gateway = Gateway::start(&home, &[&fixture("fixture", &[]), one].concat());
    let (url, program) = (gateway.url(), binary());
    let way = ["--pipe", &program, "stdio", "--url", &url, "--token"];
    let report = proto_client(&[&["--prefix", "fixture_"], &way[..], &[TOKEN]].concat());
    check(&report, "fixture_", &json!([0, 0]));
    let mut refused = Command::new(&program);
    refused
        .args(&way[2..])
        .arg("a-token-that-is-not-valid")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped());
    let mut refused = refused.spawn().unwrap();
    // A ping.
    refused
        .stdin
        .take()
        .unwrap()
        .write_all(&[0, 0, 0, 2, 8, 1])
        .unwrap();
    let ended = refused.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&ended.stderr);
    assert!(
        ended.status.code() == Some(4) && words.contains("PORTMOOT_TOKEN"),
        "{words}"
    );
}

#[test]
fn a_client_over_tcp_names_itself_in_its_first_message() {
    let home = Home::new().env("ONE_TOKEN", TOKEN);
    let one = "[participants.one]\ntoken_env = \"ONE_TOKEN\"\ncapabilities = [\"mcp/request:*\"]\n";
    let gateway = Gateway::start(&home, &[&fixture("a", &[]), one].concat());
    let call = |token: &[&str]| {
        proto_client(
            &[
                &["--call", "a_echo", "hello", "--tcp", gateway.address()],
                token,
            ]
            .concat(),
        )["answer"]
            .clone()
    };
    assert_eq!(call(&["--token", TOKEN]), json!(["hello"]));
    for token in [&[][..], &["--token", "a-token-that-is-not-valid"]] {
        let answer = call(token);
        assert_eq!(answer[2], json!("unauthenticated"), "{answer}");
    }
    // Of a stranger no long message is read, and its connection ends.
    let mut stream = TcpStream::connect(gateway.address()).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
        .write_all(&(FIRST_BYTES_MAX + 1).to_be_bytes())
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(
        String::from_utf8_lossy(&answer).contains("unauthenticated"),
        "{answer:?}"
    );
}

/// A message with nothing but an id.
const PING: [u8; 2] = [8, 1];

#[test]
fn a_silent_connection_is_kept_alive_and_a_lost_one_ends() {
    let home = Home::new();
    let gateway = Gateway::start(&home, "[server.limits]\nkeep_alive = \"50ms\"\n");
    let mut plain = TcpStream::connect(gateway.address()).unwrap();
    plain.set_read_timeout(Some(TIMEOUT)).unwrap();
    plain
        .write_all(&[&[0, 0, 0, 2][..], &PING].concat())
        .unwrap();
    let mut seen = [1; 6];
    plain.read_exact(&mut seen).unwrap();
    assert_eq!(seen, [0, 0, 0, 2, 8, 1]);
    let mut kept = [1; 8];
    plain.read_exact(&mut kept).unwrap();
    assert_eq!(kept, [0; 8]);
    // A WebSocket is asked, and ends if it does not answer.
    let mut socket = Socket::at(&gateway, "/proto", &[]);
    assert_eq!(socket.next().map(|frame| frame.opcode), Some(ws::PING));
    assert_eq!(socket.closed(), 1001);
}

#[test]
fn connections_end_when_the_gateway_stops_or_their_participant_is_gone() {
    let home = Home::new().env("ONE_TOKEN", TOKEN);
    let one = "[participants.one]\ntoken_env = \"ONE_TOKEN\"\n";
    let config = ["[server]\nlisten = \"127.0.0.1:0\"\n", one].concat();
    let gateway = Gateway::start(&home, &config);
    let bearer = format!("Bearer {TOKEN}");
    let open = || {
        let mut socket = Socket::at(&gateway, "/proto", &[("authorization", &bearer)]);
        socket.frame(0x80 | ws::BINARY, &PING);
        // Only then it is a participant.
        assert_eq!(
            socket.next().map(|frame| frame.payload),
            Some(vec![0, 0, 0, 2, 8, 1])
        );
        socket
    };
    let mut revoked = open();
    home.write(
        "portmoot.toml",
        &config.replace(one, "[participants.other]\ntoken_env = \"ONE_TOKEN\"\n"),
    );
    assert_eq!(revoked.closed(), 1008);
    let mut last = open();
    gateway.signal("TERM");
    assert_eq!(last.closed(), 1001);
}

/// The headers of a request for a WebSocket.
pub(crate) const UPGRADE: [(&str, &str); 4] = [
    ("connection", "Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
];

#[test]
fn what_is_no_proto_mcp_over_a_websocket_is_refused_before_it_begins() {
    let home = Home::new().env("ONE_TOKEN", "a-token-that-is-long-enough");
    let gateway = Gateway::start(&home, "[participants.one]\ntoken_env = \"ONE_TOKEN\"\n");
    let token = ("authorization", "Bearer a-token-that-is-long-enough");
    let status = |path: &str, more: &[(&str, &str)]| {
        Connection::open(gateway.address())
            .exchange("GET", path, &[&UPGRADE[..], more].concat(), "")
            .status
    };
    assert_eq!(status("/proto", &[]), 401);
    assert_eq!(
        status("/proto", &[token, ("origin", "https://elsewhere.example")]),
        403
    );
    assert_eq!(
        status("/proto", &[token, ("sec-websocket-protocol", "mqtt")]),
        400
    );
    assert_eq!(status("/proto/absent", &[token]), 403);
    for (method, refused) in [("GET", 426), ("POST", 405)] {
        let reply = Connection::open(gateway.address()).exchange(method, "/proto", &[token], "");
        assert_eq!(reply.status, refused);
    }
}

/// What a server got of calls whose client named itself in metadata: of the connection and of each
/// call.
#[test]
fn a_token_in_metadata_reaches_no_server() {
    let peer = Peer::stdio(|message| {
        let done = (message["method"] == "tools/call")
            .then(|| answer(message, r#"{"content":[{"type":"text","text":"done"}]}"#));
        let tools = format!("[{}]", tool("echo"));
        done.or_else(|| small(message, &tools))
            .map(String::into_bytes)
            .into_iter()
            .collect()
    });
    let home = Home::new().env("ONE_TOKEN", TOKEN);
    let one = "[participants.one]\ntoken_env = \"ONE_TOKEN\"\ncapabilities = [\"mcp/request:*\"]\n";
    let record = home.path().join("record");
    let servers = peer.child("s", "s") + &child("p", &["--record", record.to_str().unwrap()]);
    let gateway = Gateway::start(&home, &(servers + one));
    gateway.ready("s");
    gateway.ready("p");
    for (server, text) in [("s", "done"), ("p", r#"{"text": "hello"}"#)] {
        let (tool, prefix) = (format!("{server}_echo"), format!("{server}_"));
        let by_tcp = [
            "--call",
            &tool,
            "hello",
            "--tcp",
            gateway.address(),
            "--token",
            TOKEN,
        ];
        assert_eq!(proto_client(&by_tcp)["answer"], json!([text]));
        let by_grpc = [
            gateway.address(),
            &prefix,
            "--token",
            TOKEN,
            "--call-token",
            TOKEN,
        ];
        assert_eq!(grpc_client(&by_grpc)["echo"], json!([text]));
    }
    let received = peer.received().concat();
    let calls = std::fs::read_to_string(record).unwrap();
    let hex: String = TOKEN.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert!(
        peer.calls("echo") == 2 && calls.contains("6563686f"),
        "{received} {calls}"
    );
    assert!(
        !received.contains(TOKEN) && !received.contains("authorization"),
        "{received}"
    );
    assert!(!calls.contains(&hex), "{calls}");
}

#[test]
fn a_client_that_may_only_propose_gets_the_result_of_the_approved_call() {
    const BOSS: &str = "token-of-the-one-who-decides";
    const SCOUT: &str = "token-of-the-one-who-proposes";
    let home = Home::new()
        .env("BOSS_TOKEN", BOSS)
        .env("SCOUT_TOKEN", SCOUT);
    let boss = "[participants.boss]\ntoken_env = \"BOSS_TOKEN\"\ncapabilities = [\"mcp/request:*\", \"mcp/response:*\"]\n";
    let scout =
        "[participants.scout]\ntoken_env = \"SCOUT_TOKEN\"\ncapabilities = [\"mcp/proposal:*\"]\n";
    let gateway = Gateway::start(&home, &[&fixture("a", &[]), boss, scout].concat());
    let url = websocket(&gateway);
    let words = ["--call", "a_echo", "do it", "--ws", &url, "--token", SCOUT].map(str::to_owned);
    let client = std::thread::spawn(move || proto_client(&words));
    let proposal = gateway.pending(&home, BOSS);
    assert_eq!(proposal["by"], json!("scout"));
    let id = proposal["id"].as_str().unwrap();
    home.run(&[
        "proposals",
        "approve",
        id,
        "--yes",
        "--no-wait",
        "--url",
        &gateway.url(),
        "--token",
        BOSS,
    ])
    .expect(0);
    assert_eq!(client.join().unwrap()["answer"], json!(["do it"]));
}

/// Messages beyond the limit, which their clients write to the end.
#[test]
fn the_refusal_of_a_message_that_is_too_long_arrives() {
    const LIMIT: usize = 4 << 20;
    let home = Home::new();
    let gateway = Gateway::start(&home, "");
    let refused = |answer: &[u8]| {
        let message = answer
            .get(4..)
            .and_then(|message| McpMessage::decode(message).ok());
        match message.and_then(|message| message.payload) {
            Some(Payload::ErrorResponse(error)) => error.code,
            other => panic!("{other:?}"),
        }
    };
    for bytes in [LIMIT + 1, LIMIT + 5, LIMIT + LIMIT / 4, 20 << 20] {
        let message = vec![0x0a; bytes];
        let frame = [&u32::try_from(bytes).unwrap().to_be_bytes()[..], &message].concat();

        let mut socket = Socket::at(&gateway, "/proto", &[]);
        socket.frame(0x80 | ws::BINARY, &message);
        let answer = loop {
            let next = socket.next().unwrap();
            if next.opcode == ws::BINARY {
                break next.payload;
            }
        };
        assert_eq!(
            (refused(&answer), socket.closed()),
            (-32600, 1009),
            "{bytes}"
        );

        let mut plain = TcpStream::connect(gateway.address()).unwrap();
        plain.set_read_timeout(Some(TIMEOUT)).unwrap();
        plain
            .write_all(&[&[0, 0, 0, 2][..], &PING, &frame].concat())
            .unwrap();
        let mut read = Vec::new();
        plain.read_to_end(&mut read).unwrap();
        assert_eq!(refused(&read[6..]), -32600, "{bytes}");

        let mut command = home.command(&["stdio", "--url", &gateway.url()]);
        let mut pipe = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = pipe.stdin.take().unwrap();
        input.write_all(&frame).unwrap();
        let mut read = Vec::new();
        pipe.stdout.take().unwrap().read_to_end(&mut read).unwrap();
        assert_eq!(refused(&read), -32600, "{bytes}");
        until("the relay ends, though its input is open", || {
            pipe.try_wait().unwrap()
        });
    }
    // The header of one is enough.
    let mut command = home.command(&["stdio", "--url", &gateway.url()]);
    let mut pipe = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = pipe.stdin.take().unwrap();
    input
        .write_all(&u32::try_from(LIMIT + 1).unwrap().to_be_bytes())
        .unwrap();
    let mut read = Vec::new();
    pipe.stdout.take().unwrap().read_to_end(&mut read).unwrap();
    assert_eq!(refused(&read), -32600);
    until("the relay ends", || pipe.try_wait().unwrap());
    assert!(pipe.wait().is_ok());
}

/// What a client writes at once, without waiting for an answer.
#[test]
fn requests_behind_a_handshake_that_has_no_answer_yet_are_answered() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("a", &[]));
    gateway.ready("a");
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" }),
    ];
    // The last line has no end.
    let text = messages.map(|message| message.to_string()).join("\n");
    for round in 0..5 {
        let mut command = home.command(&["stdio", "--url", &gateway.url()]);
        let mut pipe = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        pipe.stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let said = String::from_utf8(pipe.wait_with_output().unwrap().stdout).unwrap();
        let said = said
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut answered: Vec<_> = said
            .filter(|line| line["result"].is_object())
            .filter_map(|line| line["id"].as_u64())
            .collect();
        answered.sort_unstable();
        assert_eq!(answered, [1, 2, 3], "round {round}");
    }
}

/// A slow call that a client makes before it closes its side, of a gateway of its own and of one
/// that runs, in lines and in frames.
#[test]
fn a_slow_call_before_the_end_of_a_pipe_is_answered() {
    // Longer than a list waits for servers that start.
    let ms = 5_500;
    let (home, own) = (Home::new(), [Home::new(), Home::new()]);
    let gateway = Gateway::start(&home, &fixture("a", &[]));
    gateway.ready("a");
    let commands = |own: &Home| {
        let words = pipe(own, &fixture("a", &[]));
        let mut alone = Command::new(&words[0]);
        alone.args(&words[1..]);
        [alone, home.command(&["stdio", "--url", &gateway.url()])]
    };
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let call = json!({ "name": "a_slow", "arguments": { "ms": ms } });
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }),
    ];
    let lines = lines
        .map(|message| message.to_string() + "\n")
        .concat()
        .into_bytes();
    let number = prost_types::value::Kind::NumberValue(f64::from(ms));
    let fields = [("ms".to_owned(), prost_types::Value { kind: Some(number) })].into();
    let arguments = prost_types::Any {
        type_url: "type.googleapis.com/google.protobuf.Struct".to_owned(),
        value: prost_types::Struct { fields }.encode_to_vec(),
    };
    let call = CallToolRequest {
        name: "a_slow".to_owned(),
        arguments: Some(arguments),
        ..Default::default()
    };
    let call = McpMessage {
        id: 2,
        payload: Some(Payload::CallToolRequest(call)),
    }
    .encode_to_vec();
    let frame = [&u32::try_from(call.len()).unwrap().to_be_bytes()[..], &call].concat();
    let mut pipes = Vec::new();
    for (own, written) in own.iter().zip([lines, frame]) {
        for mut command in commands(own) {
            let mut pipe = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            pipe.stdin.take().unwrap().write_all(&written).unwrap();
            pipes.push(pipe);
        }
    }
    for (number, pipe) in pipes.into_iter().enumerate() {
        let said = pipe.wait_with_output().unwrap().stdout;
        assert!(
            String::from_utf8_lossy(&said).contains("5500 ms later"),
            "{number}: {said:?}"
        );
    }
}

/// A list that a client asks for before it closes its side, while the only server is still
/// starting.
#[test]
fn a_list_before_the_end_of_a_pipe_is_answered() {
    let server = harness::fixture_binary();
    let starts = |type_of: &str| {
        let script = format!("sleep 1; exec {} --stdio", server.display());
        format!("[servers.a]\ncommand = \"bash\"\nargs = [\"-c\", {script:?}]\n{type_of}")
    };
    let list = [0, 0, 0, 4, 8, 2, 0x22, 0];
    for config in [starts(""), starts("start = \"always\"\n"), child("a", &[])] {
        let home = Home::new();
        let words = pipe(&home, &config);
        // The second run has what the first one kept.
        for round in 0..2 {
            let mut command = Command::new(&words[0]);
            let mut child = command
                .args(&words[1..])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(&list).unwrap();
            let said = child.wait_with_output().unwrap().stdout;
            let answer = McpMessage::decode(said.get(4..).unwrap_or_default()).unwrap();
            let Some(Payload::ListToolsResponse(listed)) = answer.payload else {
                panic!("{answer:?}")
            };
            assert!(
                answer.id == 2 && listed.tools.iter().any(|tool| tool.name.ends_with("echo")),
                "{round}"
            );
        }
    }
}
