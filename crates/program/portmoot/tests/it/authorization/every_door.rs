//! One access token on every wire: whose it is, for which endpoint it is good, and which scope it
//! lacks.

use std::io::{Read, Write};
use std::net::TcpStream;

use harness::grpc_client;
use prost::Message as _;
use serde_json::{Value, json};
use wire::proto::contract::mcp_message::Payload;
use wire::proto::contract::{CallToolRequest, InitializeRequest, McpMessage, call_tool_response};

use super::provider::Provider;
use super::{initialize, resource};
use crate::home::Home;
use crate::http::{Connection, TIMEOUT};
use crate::socket::Piped;
use crate::support::{Gateway, modern, until};
use crate::ws::{self, BINARY, GOOD, Socket};

const SCOPES: &str = "[scopes.\"mcp:read\"]\nbaseline = true\ncapabilities = [\"mcp/request:tools/call:a_add\"]\n\
    [scopes.\"mcp:write\"]\nimplies = [\"mcp:read\"]\ncapabilities = [\"mcp/request:tools/call:*\", \"portmoot/tokens\"]\n";

/// What a caller learns that says `echo` on a wire: the text, or the code of the refusal and the
/// scope in it.
type Said = Result<String, (String, Option<String>)>;

/// One way in: says a text with a token.
type Door = fn(&Gateway, &str, &str) -> Said;

const DOORS: [(&str, Door); 8] = [
    ("MCP, legacy", legacy),
    ("MCP, modern", of_modern),
    ("a pipe", stdio),
    ("MCPx", room),
    ("frames over TCP", frames),
    ("frames over WebSocket", frames_on_socket),
    ("gRPC", grpc),
    ("REST", rest),
];

#[test]
fn one_token_is_one_participant_one_audience_and_one_scope_on_every_wire() {
    let provider = Provider::start(600);
    let home = Home::new();
    let issuer = format!("issuer = \"{}\"\n", provider.issuer());
    let config =
        super::config(&provider, SCOPES).replace(&issuer, &format!("{issuer}step_up = true\n"));
    let gateway = Gateway::start(&home, &config);
    gateway.ready("a");
    let token = |audience: &str, scope: &str| {
        provider.forged(
            json!({}),
            json!({"aud": resource(audience), "scope": scope}),
            "a",
        )
    };
    let (good, foreign, small) = (
        token("/mcp", "mcp:write"),
        token("/mcp/ops", "mcp:write"),
        token("/mcp", "mcp:read"),
    );
    let mut acts = acts_of_ann(&home);
    for (name, door) in DOORS {
        let text = format!("hello by {name}");
        assert_eq!(door(&gateway, &good, &text), Ok(text.clone()), "{name}");
        // Each act is recorded as the same participant's.
        acts = until(&format!("{name} is recorded"), || {
            Some(acts_of_ann(&home)).filter(|now| *now > acts)
        });
        let (refused, scope) = door(&gateway, &foreign, &text).unwrap_err();
        let known = ["token_foreign", "unauthenticated", "401"].contains(&refused.as_str());
        assert!(known && scope.is_none(), "{name}: {refused}");
        let lacking = door(&gateway, &small, &text).unwrap_err();
        let expected = match name {
            // The API asks for capabilities; its clients do not sign in again.
            "REST" => ("capability_violation".to_owned(), None),
            _ => (
                "insufficient_scope".to_owned(),
                Some("mcp:write".to_owned()),
            ),
        };
        assert_eq!(lacking, expected, "{name}");
    }
    // What a token was not good for is recorded as refused.
    let refused = [
        "--participant",
        "corp:ann",
        "--verdict",
        "refused",
        "--json",
    ];
    let printed = home
        .run(&[&["audit", "query"], &refused[..]].concat())
        .expect(0)
        .stdout;
    assert!(printed.matches("a_echo").count() >= 6, "{printed}");
}

/// How many acts of `corp:ann` were admitted.
fn acts_of_ann(home: &Home) -> usize {
    let query = [
        "audit",
        "query",
        "--participant",
        "corp:ann",
        "--verdict",
        "admitted",
        "--json",
    ];
    let printed: Value = serde_json::from_str(&home.run(&query).expect(0).stdout).unwrap();
    let is_act = |entry: &&Value| entry["kind"] != "portmoot/connection";
    printed["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_act)
        .count()
}

/// What a JSON-RPC answer says.
fn said(answer: &Value) -> Said {
    if let Some(text) = answer["result"]["content"][0]["text"].as_str() {
        return Ok(text.to_owned());
    }
    let data = &answer["error"]["data"];
    let text = |name: &str| data[name].as_str().map(str::to_owned);
    Err((
        text("code").unwrap_or_else(|| panic!("{answer}")),
        text("scope"),
    ))
}

fn call(text: &str) -> Value {
    json!({"name": "a_echo", "arguments": {"text": text}})
}

fn legacy(gateway: &Gateway, token: &str, text: &str) -> Said {
    let opened = initialize(gateway, "/mcp", Some(token));
    let Some(session) = opened.header("mcp-session-id") else {
        return said(&opened.json());
    };
    let bearer = format!("Bearer {token}");
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-session-id", session),
        ("authorization", bearer.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let message = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call(text)});
    said(
        &Connection::open(gateway.address())
            .exchange("POST", "/mcp", &headers, &message.to_string())
            .json(),
    )
}

fn of_modern(gateway: &Gateway, token: &str, text: &str) -> Said {
    let reply = modern(gateway, Some(token), "tools/call", call(text));
    let answer = reply.json();
    let code = answer["error"]["data"]["code"].as_str();
    assert_eq!(
        reply.status == 403,
        code == Some("insufficient_scope"),
        "{reply:?}"
    );
    said(&answer)
}

fn stdio(gateway: &Gateway, token: &str, text: &str) -> Said {
    let home = Home::new().env("PORTMOOT_TOKEN", token);
    let mut piped = Piped::with(home, &["stdio", "--url", &gateway.url()]);
    piped.send(super::initialize_message().to_string());
    let opened = piped.json();
    if opened["error"].is_object() {
        return said(&opened);
    }
    piped.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    piped.send(
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call(text)})
            .to_string(),
    );
    said(&piped.json())
}

fn room(gateway: &Gateway, token: &str, text: &str) -> Said {
    let bearer = format!("Bearer {token}");
    let headers = [&GOOD[..], &[("authorization", bearer.as_str())]].concat();
    let status = ws::answer(gateway, "/ws", &headers).status;
    if status != 101 {
        return Err((status.to_string(), None));
    }
    let mut socket = Socket::open_with(gateway, "corp:ann", "?mode=directed", &bearer);
    let welcome = socket.receive_until(|received| received["kind"] == "system/welcome");
    assert_eq!(welcome["payload"]["you"]["id"], "corp:ann");
    socket.call("call-1", &["a"], "echo", json!({ "text": text }));
    let answer = socket.receive_until(|received| received["correlation_id"].is_string());
    let payload = &answer["payload"];
    if answer["kind"] == "system/error" {
        let text = |name: &str| payload[name].as_str().map(str::to_owned);
        return Err((text("error").unwrap(), text("scope")));
    }
    said(payload)
}

pub(super) fn hello(token: &str) -> McpMessage {
    let metadata = [("authorization".to_owned(), format!("Bearer {token}"))].into();
    let hello = InitializeRequest {
        protocol_version: "1.0.0".into(),
        metadata,
        ..InitializeRequest::default()
    };
    McpMessage {
        id: 1,
        payload: Some(Payload::InitializeRequest(hello)),
    }
}

fn echo(text: &str) -> McpMessage {
    let value = prost_types::Value {
        kind: Some(prost_types::value::Kind::StringValue(text.to_owned())),
    };
    let arguments = prost_types::Struct {
        fields: [("text".to_owned(), value)].into(),
    };
    let arguments = prost_types::Any {
        type_url: "type.googleapis.com/google.protobuf.Struct".to_owned(),
        value: arguments.encode_to_vec(),
    };
    let call = CallToolRequest {
        name: "a_echo".into(),
        arguments: Some(arguments),
        ..CallToolRequest::default()
    };
    McpMessage {
        id: 2,
        payload: Some(Payload::CallToolRequest(call)),
    }
}

/// What a message says: nothing if it is the answer to the first one.
fn of_message(message: &McpMessage) -> Option<Said> {
    match message.payload.as_ref().unwrap() {
        Payload::InitializeResponse(_) => None,
        Payload::CallToolResponse(response) => match response.result.as_ref().unwrap() {
            call_tool_response::Result::Success(result) => {
                let bytes = result.encode_to_vec();
                // The text is in the first block, and long enough to be found.
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let at = text.find("hello by").unwrap();
                let end = text[at..]
                    .find(|one: char| one.is_control())
                    .map_or(text.len(), |len| at + len);
                Some(Ok(text[at..end].to_owned()))
            }
            call_tool_response::Result::Error(error) => panic!("{error:?}"),
        },
        Payload::ErrorResponse(error) => {
            let text = |name: &str| match error.data.as_ref()?.fields.get(name)?.kind.as_ref()? {
                prost_types::value::Kind::StringValue(text) => Some(text.clone()),
                _ => None,
            };
            Some(Err((text("code").unwrap(), text("scope"))))
        }
        other => panic!("{other:?}"),
    }
}

fn frames(gateway: &Gateway, token: &str, text: &str) -> Said {
    let mut stream = TcpStream::connect(gateway.address()).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    for message in [hello(token), echo(text)] {
        let bytes = message.encode_to_vec();
        // A connection that is refused may be closed already.
        let _ = stream.write_all(
            &[
                &u32::try_from(bytes.len()).unwrap().to_be_bytes(),
                &bytes[..],
            ]
            .concat(),
        );
    }
    loop {
        let mut len = [0; 4];
        stream.read_exact(&mut len).unwrap();
        let mut message = vec![0; u32::from_be_bytes(len) as usize];
        stream.read_exact(&mut message).unwrap();
        let message = McpMessage::decode(message.as_slice()).unwrap();
        if let Some(said) = message
            .payload
            .is_some()
            .then(|| of_message(&message))
            .flatten()
        {
            return said;
        }
    }
}

fn frames_on_socket(gateway: &Gateway, token: &str, text: &str) -> Said {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let status = ws::answer(gateway, "/proto", &[&GOOD[..], &headers].concat()).status;
    if status != 101 {
        return Err((status.to_string(), None));
    }
    let mut socket = Socket::at(gateway, "/proto", &headers);
    for message in [hello(token), echo(text)] {
        socket.frame(0x80 | BINARY, &message.encode_to_vec());
    }
    loop {
        let frame = socket.next().unwrap();
        if frame.opcode != BINARY || frame.payload.len() <= 4 {
            continue;
        }
        let message = McpMessage::decode(&frame.payload[4..]).unwrap();
        if let Some(said) = message
            .payload
            .is_some()
            .then(|| of_message(&message))
            .flatten()
        {
            return said;
        }
    }
}

fn grpc(gateway: &Gateway, token: &str, text: &str) -> Said {
    let report = grpc_client(&[
        gateway.address(),
        "a_",
        "--token",
        token,
        "--call",
        "a_echo",
        text,
    ]);
    let answer = &report["answers"][0];
    // Status, code and data of an error; the texts of an answer.
    let Some(data) = answer[2].as_object() else {
        return Ok(answer[0].as_str().unwrap().to_owned());
    };
    let text = |name: &str| data.get(name).and_then(Value::as_str).map(str::to_owned);
    let code = text("code").unwrap();
    let status = if code == "insufficient_scope" {
        "PERMISSION_DENIED"
    } else {
        "UNAUTHENTICATED"
    };
    assert_eq!(answer[0], status, "{report}");
    Err((code, text("scope")))
}

fn rest(gateway: &Gateway, token: &str, text: &str) -> Said {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let body = json!({"name": "made-by-rest", "capabilities": ["mcp/request:tools/call:a_echo"], "lifetime_ms": 60_000});
    let body = body.to_string();
    let reply =
        Connection::open(gateway.address()).exchange("POST", "/api/v1/tokens", &headers, &body);
    let answer = reply.json();
    match answer["code"].as_str() {
        Some(code) => Err((code.to_owned(), answer["scope"].as_str().map(str::to_owned))),
        None => {
            assert!([200, 201].contains(&reply.status), "{reply:?}");
            Ok(text.to_owned())
        }
    }
}
