//! Bad input of proto-mcp clients: every first byte, frames in pieces, limits, garbage, nesting,
//! floods of tiny messages.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use prost::Message;
use wire::proto::contract::mcp_message::Payload;
use wire::proto::contract::{CallToolRequest, McpMessage};
use wire::proto::frame::framed;
use wire::proto::sniff::{Sniffed, sniff};

use crate::home::Home;
use crate::http::TIMEOUT;
use crate::socket::{Gateway, fixture_server};

/// A message with nothing but an id, as a frame.
const PING: [u8; 6] = [0, 0, 0, 2, 8, 1];
/// How the answer to what is neither begins.
const PARSE_ERROR: &[u8] = br#"{"jsonrpc":"2.0","error":{"code":-32700"#;
/// The configured limit of a message, in bytes.
const LIMIT: usize = 100_000;

fn gateway() -> Gateway {
    let config = format!("[server.limits]\nbody_bytes_max = {LIMIT}\n");
    Gateway::serve(&(config + &fixture_server("fixture", "", &[])))
}

/// The next message; `None` once the gateway has closed.
fn receive(stream: &mut TcpStream) -> Option<McpMessage> {
    let mut len = [0; 4];
    stream.read_exact(&mut len).ok()?;
    let mut message = vec![0; u32::from_be_bytes(len) as usize];
    stream.read_exact(&mut message).unwrap();
    if message.is_empty() {
        receive(stream)
    } else {
        Some(McpMessage::decode(&*message).unwrap())
    }
}

/// Id and error code of the answer to these bytes on a connection of their own, and whether the
/// connection goes on.
fn answer(gateway: &Gateway, bytes: &[u8]) -> (u64, i32, bool) {
    let mut stream = gateway.connect();
    stream.write_all(bytes).unwrap();
    let answer = receive(&mut stream).unwrap();
    let code = if let Some(Payload::ErrorResponse(error)) = answer.payload {
        error.code
    } else {
        0
    };
    let goes_on =
        stream.write_all(&PING).is_ok() && receive(&mut stream).is_some_and(|pong| pong.id == 1);
    (answer.id, code, goes_on)
}

fn message(bytes: &[u8]) -> Vec<u8> {
    framed(bytes).unwrap().to_vec()
}

/// A field with a length, of at most 2^28 bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut len = Vec::new();
    prost::encoding::encode_varint(content.len() as u64, &mut len);
    [&[number << 3 | 2], &len[..], content].concat()
}

#[test]
fn every_first_byte_on_the_port_has_its_answer() {
    let gateway = gateway();
    for first in 0..=u8::MAX {
        let seen = match sniff(first) {
            // A pong, or for a length beyond the limit the refusal.
            Sniffed::Proto => &[0_u8, 0, 0][..],
            Sniffed::Json | Sniffed::Tls | Sniffed::Http | Sniffed::Unknown => b"HTTP",
        };
        let mut stream = gateway.connect();
        stream
            .write_all(&[&[first], &PING[1..], b" / HTTP/1.1\r\n\r\n"].concat())
            .unwrap();
        let mut read = [0xff; 4];
        let len = stream.read(&mut read).unwrap();
        // Blank lines before a request are skipped (RFC 9112, section 2.2): what follows is none.
        assert!(
            read[..len].starts_with(&seen[..seen.len().min(len)]) && len > 0,
            "{first:#x}: {read:?}"
        );
    }
    assert_eq!(answer(&gateway, &PING), (1, 0, true));
}

#[test]
fn every_first_byte_on_a_pipe_has_its_answer() {
    let home = Home::new();
    home.write("portmoot.toml", "");
    for (first, rest, seen) in [
        (0, &PING[1..], &PING[..]),
        (
            b'{',
            &br#""jsonrpc":"2.0","id":1,"method":"ping"}"#[..],
            b"{\"jsonrpc\"",
        ),
        (
            b'\n',
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
            b"{\"jsonrpc\"",
        ),
        (
            0xef,
            b"\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
            b"{\"jsonrpc\"",
        ),
        (0x16, b"\x03\x01", PARSE_ERROR),
        (b'G', b"ET / HTTP/1.1", PARSE_ERROR),
        (0x80, b"", PARSE_ERROR),
    ] {
        let mut command = home.command(&["stdio", "--config", "portmoot.toml"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It may have ended before it has read everything.
        let _ = child
            .stdin
            .take()
            .unwrap()
            .write_all(&[&[first], rest, b"\n"].concat());
        let ended = child.wait_with_output().unwrap();
        assert!(
            ended.stdout.starts_with(seen),
            "{first:#x}: {}",
            String::from_utf8_lossy(&ended.stdout)
        );
    }
}

#[test]
fn frames_may_come_in_pieces() {
    let gateway = gateway();
    for at in 1..PING.len() {
        let mut stream = gateway.connect();
        stream.write_all(&PING).unwrap();
        assert_eq!(receive(&mut stream).unwrap().id, 1);
        let (first, rest) = PING.split_at(at);
        stream.write_all(first).unwrap();
        // An answer to something else shows that the piece was read.
        assert_eq!(answer(&gateway, &PING), (1, 0, true));
        stream.write_all(rest).unwrap();
        assert_eq!(receive(&mut stream).unwrap().id, 1);
    }
    let mut stream = gateway.connect();
    for byte in PING {
        stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(receive(&mut stream).unwrap().id, 1);
}

#[test]
fn what_is_no_request_is_refused_and_the_limit_holds() {
    let gateway = gateway();
    // A field that no message has, as long as is needed.
    let padded = |len: usize| {
        let filled = field(15, &vec![0; len - 6]);
        let padded = [&[8, 5][..], &filled].concat();
        assert_eq!(padded.len(), len);
        message(&padded)
    };
    let too_long = u32::try_from(LIMIT + 1).unwrap().to_be_bytes();
    for (what, bytes, expected) in [
        ("garbage", message(b"\xff\xff\xff"), (0, -32700, true)),
        ("half a field", message(&[8, 1, 0x22, 9]), (0, -32700, true)),
        ("a group", message(&[8, 1, 0x0b]), (0, -32700, true)),
        (
            "an unknown payload",
            message(&[8, 7, 0x6a, 0]),
            (7, -32601, true),
        ),
        ("an answer", message(&[8, 7, 0x62, 0]), (7, -32601, true)),
        ("as long as may be", padded(LIMIT), (5, -32601, true)),
        ("one byte longer", too_long.to_vec(), (0, -32600, false)),
        (
            "as long as a length may be",
            vec![2, 0, 0, 0],
            (0, -32600, false),
        ),
    ] {
        // A connection that is known reads more than its first message may have.
        let bytes = [&PING[..], &bytes].concat();
        let mut stream = gateway.connect();
        stream.write_all(&bytes).unwrap();
        assert_eq!(receive(&mut stream).unwrap().id, 1, "{what}");
        let seen = receive(&mut stream).unwrap();
        let code = if let Some(Payload::ErrorResponse(error)) = seen.payload {
            error.code
        } else {
            0
        };
        let goes_on = stream.write_all(&PING).is_ok() && receive(&mut stream).is_some();
        assert_eq!((seen.id, code, goes_on), expected, "{what}");
    }
}

#[test]
fn arguments_that_are_nested_too_deep_are_refused() {
    let gateway = gateway();
    // google.protobuf.Value: a list (6) of one value (1), and so on.
    let nested = |depth: usize| {
        let value = (0..depth).fold(vec![0x20, 1], |inner, _| field(6, &field(1, &inner)));
        let entry = [field(1, b"text"), field(2, &value)].concat();
        let arguments = prost_types::Any {
            type_url: "type.googleapis.com/google.protobuf.Struct".to_owned(),
            value: field(1, &entry),
        };
        let call = CallToolRequest {
            name: "echo".to_owned(),
            arguments: Some(arguments),
            ..CallToolRequest::default()
        };
        message(
            &McpMessage {
                id: 3,
                payload: Some(Payload::CallToolRequest(call)),
            }
            .encode_to_vec(),
        )
    };
    for depth in [1, 40, 49, 50, 51, 100, 101, 5_000] {
        assert_eq!(
            answer(&gateway, &nested(depth)),
            (3, -32602, true),
            "{depth}"
        );
    }
}

#[test]
fn a_flood_of_tiny_messages_costs_its_sender_alone() {
    const FLOOD: usize = 400_000;
    let gateway = gateway();
    assert_eq!(answer(&gateway, &PING), (1, 0, true));
    let before = gateway.resident();
    let mut greedy = gateway.connect();
    greedy.set_write_timeout(Some(TIMEOUT / 10)).unwrap();
    // It reads none of its answers: the gateway ends the connection, or reads no more.
    let flood = PING.repeat(1_000);
    let written = (0..FLOOD / 1_000)
        .take_while(|_| greedy.write_all(&flood).is_ok())
        .count();
    assert!(written > 0);
    assert_eq!(answer(&gateway, &PING), (1, 0, true));
    let grown = gateway.resident().saturating_sub(before);
    assert!(
        grown < 16 << 20,
        "{grown} bytes after {written} thousand messages"
    );
}
