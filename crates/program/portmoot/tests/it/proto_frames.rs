//! Frames that the `buf` CLI writes and reads by the contract, beside those of the gateway.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use prost::Message;
use serde_json::{Value, json};
use wire::proto::contract::McpMessage;
use wire::proto::frame::framed;

use crate::http::TIMEOUT;
use crate::proto_servers::child;
use crate::socket::Gateway;

/// Messages in protobuf's text form, and their frames in hexadecimal, by which implementations of
/// proto-mcp are compared.
const GOLDEN: [(&str, &str); 8] = [
    (
        r#"id: 1 initialize_request { protocol_version: "1.0.0" capabilities { supports_bsr_refs: true encodings: "protobuf" } }"#,
        "00000019080112150a05312e302e30120c08011a0870726f746f627566",
    ),
    (
        r#"id: 1 initialize_response { protocol_version: "1.0.0" capabilities { supports_bsr_refs: true tools { supports_list_changed: true } } }"#,
        "0000001308011a0f0a05312e302e30120608011a020801",
    ),
    (
        r#"id: 2 call_tool_request { name: "web_search" arguments {
            type_url: "type.googleapis.com/acme.tools.v1.WebSearchRequest" value: "\n\010protobuf" } }"#,
        "000000520802324e0a0a7765625f73656172636812400a32747970652e676f6f676c65617069732e636f6d2f61636d652e746f6f6c732e76312e576562536561726368526571756573\
         74120a0a0870726f746f627566",
    ),
    ("id: 2 list_tools_request {}", "0000000408022200"),
    ("id: 3", "000000020803"),
    ("list_tools_response {}", "000000022a00"),
    (
        r#"id: 4 error_response { code: -33002 message: "unsupported protocol version" }"#,
        "0000002d080462290896fefdffffffffffff01121c756e737570706f727465642070726f746f636f6c2076657273696f6e",
    ),
    (
        r#"id: 5 call_tool_request { name: "x" arguments { type_url: "type.googleapis.com/google.protobuf.Struct"
            value: "\n\016\n\001q\022\t\021\000\000\000\000\000\000\360?" } }"#,
        "00000047080532430a0178123e0a2a747970652e676f6f676c65617069732e636f6d2f676f6f676c652e70726f746f6275662e53747275637412100a0e0a0171120911000000000000\
         f03f",
    ),
];

/// A message of the contract, which `buf` converts from one form to another: `binpb`, `txtpb` or
/// `json`.
pub(crate) fn convert(ty: &str, from: &str, message: &[u8], to: &str) -> Vec<u8> {
    let contract = harness::repository().join("crates/protocol/wire/proto");
    let mut command = Command::new(harness::deps().buf());
    command
        .arg("convert")
        .arg(contract)
        .args(["--type", &format!("buf.mcp.v1.{ty}")]);
    command.args([
        "--from",
        &format!("-#format={from}"),
        "--to",
        &format!("-#format={to}"),
    ]);
    let mut run = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    run.stdin.take().unwrap().write_all(message).unwrap();
    let run = run.wait_with_output().unwrap();
    assert!(
        run.status.success(),
        "{ty} from {from}: {}",
        String::from_utf8_lossy(message)
    );
    run.stdout
}

/// A message as protobuf's JSON.
pub(crate) fn shown(message: &[u8]) -> Value {
    serde_json::from_slice(&convert("MCPMessage", "binpb", message, "json")).unwrap()
}

/// A gateway with the tools of the Python server under their own names.
pub(crate) fn gateway() -> Gateway {
    Gateway::serve(&(child("p", &[]) + "prefix = \"\"\n"))
}

/// A connection of frames.
pub(crate) struct Framed(TcpStream);

impl Framed {
    pub(crate) fn open(gateway: &Gateway) -> Framed {
        let stream = gateway.connect();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Framed(stream)
    }

    /// Sends a message, and returns the next one that is not empty.
    pub(crate) fn ask(&mut self, message: &[u8]) -> Vec<u8> {
        self.0
            .write_all(
                &[
                    &u32::try_from(message.len()).unwrap().to_be_bytes(),
                    message,
                ]
                .concat(),
            )
            .unwrap();
        loop {
            let mut len = [0; 4];
            self.0.read_exact(&mut len).unwrap();
            let mut answer = vec![0; u32::from_be_bytes(len) as usize];
            self.0.read_exact(&mut answer).unwrap();
            if !answer.is_empty() {
                return answer;
            }
        }
    }

    /// The same in text and JSON.
    pub(crate) fn ask_text(&mut self, text: &str) -> Value {
        shown(&self.ask(&convert("MCPMessage", "txtpb", text.as_bytes(), "binpb")))
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

#[test]
fn golden_frames_are_those_of_buf() {
    for (text, frame) in GOLDEN {
        let frame = bytes(frame);
        let message = &frame[4..];
        assert_eq!(
            convert("MCPMessage", "txtpb", text.as_bytes(), "binpb"),
            message,
            "{text}"
        );
        let ours = McpMessage::decode(message).unwrap();
        assert_eq!(framed(&ours.encode_to_vec()).unwrap(), frame, "{text}");
        let again = convert("MCPMessage", "binpb", message, "txtpb");
        assert_eq!(
            convert("MCPMessage", "txtpb", &again, "binpb"),
            message,
            "{text}"
        );
    }
}

#[test]
fn frames_of_the_gateway_are_read_by_buf_and_the_other_way_round() {
    let gateway = gateway();
    let mut peer = Framed::open(&gateway);
    // The golden requests themselves, and what the gateway answers.
    for (at, expected) in [(0, "initializeResponse"), (3, "listToolsResponse")] {
        let answer = shown(&peer.ask(&bytes(GOLDEN[at].1)[4..]));
        assert!(answer.get(expected).is_some(), "{answer}");
    }
    assert_eq!(peer.ask(&bytes(GOLDEN[4].1)[4..]), [8, 3]);
    let refused = peer.ask_text(r#"id: 4 initialize_request { protocol_version: "2.0.0" }"#);
    assert_eq!(
        (&refused["id"], &refused["errorResponse"]["code"]),
        (&json!("4"), &json!(-33002))
    );
    // An unknown field beside the payload.
    let listed = shown(&peer.ask(&[0x08, 0x02, 0x22, 0x00, 0xfa, 0x7f, 0x01, 0x00]));
    assert!(listed.get("listToolsResponse").is_some(), "{listed}");
    let call = |id: u64, arguments: &Value| {
        let arguments =
            json!({ "@type": "type.googleapis.com/google.protobuf.Struct", "value": arguments });
        let call = json!({ "id": id, "callToolRequest": { "name": "echo", "arguments": arguments, "metadata": { "k": "é" } } });
        convert("MCPMessage", "json", call.to_string().as_bytes(), "binpb")
    };
    for (id, arguments) in [
        (6, json!({})),
        (
            u64::MAX,
            json!({ "q": 1.5, "l": [null, true, "\u{1F600}", []], "o": { "": { "n": -0.25 } } }),
        ),
    ] {
        let answer = shown(&peer.ask(&call(id, &arguments)));
        assert_eq!(answer["id"], json!(id.to_string()));
        let content = answer["callToolResponse"]["success"]["content"]
            .as_array()
            .unwrap();
        let text: Value = serde_json::from_str(content[0]["text"].as_str().unwrap()).unwrap();
        let data = &content[1]["data"]["value"];
        assert_eq!((&text, data), (&arguments, &arguments));
    }
}
