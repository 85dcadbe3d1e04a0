//! Attacks on a WebSocket: frames, sizes, silence, load.

mod load;

use std::io::Write;
use std::net::TcpStream;
use std::ops::Deref;

use serde_json::json;

use crate::audit_log::AuditLog;
use crate::home::Home;
use crate::support::{Gateway, until};
use crate::ws::{BINARY, CLOSE, PING, PONG, Socket, TEXT, envelope, masked, people};

const FULL: &[&str] = &["mcp/*", "chat", "acme/*"];
const CONNECTION: &str = "portmoot/connection";

/// A gateway and its home directory.
struct Started {
    gateway: Gateway,
    home: Home,
}

impl Started {
    fn audit_log(&self) -> AuditLog<'_> {
        AuditLog(&self.home)
    }
}

impl Deref for Started {
    type Target = Gateway;

    fn deref(&self) -> &Gateway {
        &self.gateway
    }
}

fn two(more: &str) -> (Started, Socket, Socket) {
    let (home, config) = people(&[("mallory", FULL), ("watcher", FULL)]);
    let gateway = Gateway::start(&home, &format!("{more}\n{config}"));
    let mut watcher = Socket::enter(&gateway, "watcher", "");
    let mallory = Socket::enter(&gateway, "mallory", "");
    watcher.receive();
    (Started { gateway, home }, watcher, mallory)
}

fn chat(id: &str) -> String {
    envelope(
        "mallory",
        "chat",
        id,
        &[],
        json!({}),
        &json!({ "text": "ü" }),
    )
}

/// An envelope of exactly this many bytes.
fn of_bytes(id: &str, bytes: usize) -> String {
    let short = envelope(
        "mallory",
        "chat",
        id,
        &[],
        json!({}),
        &json!({ "text": "" }),
    );
    let text = "x".repeat(bytes - short.len());
    let long = short.replace("\"text\":\"\"", &format!("\"text\":\"{text}\""));
    assert_eq!(long.len(), bytes);
    long
}

/// The watcher receives the leave of this participant, and the room continues.
#[track_caller]
fn gone(watcher: &mut Socket) {
    let received = watcher.receive();
    assert_eq!(
        received["payload"],
        json!({ "event": "leave", "participant": { "id": "mallory" } }),
        "{received}"
    );
    watcher.chat("on");
    watcher.expect("on");
}

#[test]
fn the_longest_message_passes_and_a_longer_one_closes_the_connection() {
    const MAX: usize = 64 * 1024;
    let (gateway, mut watcher, mut mallory) =
        two("[server.limits]\nenvelope_bytes_max = \"64KiB\"");
    let longest = of_bytes("longest", MAX);
    mallory.text(&longest);
    assert_eq!(mallory.receive_text(), longest);
    assert_eq!(watcher.receive_text(), longest);
    // The same in two fragments.
    mallory.frame(TEXT, &longest.as_bytes()[..MAX / 2]);
    mallory.frame(0x80, &longest.as_bytes()[MAX / 2..]);
    assert_eq!(mallory.receive_text(), longest);
    assert_eq!(watcher.receive_text(), longest);

    let longer = of_bytes("longer", MAX + 1);
    let halves = [
        masked(TEXT, &longer.as_bytes()[..MAX / 2]),
        masked(0x80, &longer.as_bytes()[MAX / 2..]),
    ];
    // The header alone closes the connection; a huge length allocates no memory.
    let mut huge = vec![0x80 | TEXT, 0x80 | 127];
    huge.extend((1_u64 << 62).to_be_bytes());
    huge.extend([0; 4]);
    for bytes in [
        masked(0x80 | TEXT, longer.as_bytes()),
        halves.concat(),
        huge,
        masked(0x80 | BINARY, longer.as_bytes()),
    ] {
        mallory.raw(&bytes);
        let woken = mallory.refused("", "message_too_large");
        assert!(
            woken["payload"]["message"]
                .as_str()
                .unwrap()
                .contains("65536"),
            "{woken}"
        );
        assert_eq!(mallory.closed(), 1009);
        gone(&mut watcher);
        mallory = Socket::enter(&gateway, "mallory", "");
        watcher.receive();
    }
    let audit_log = gateway.audit_log();
    audit_log.has("mallory", CONNECTION, "refused", "closed 1009");
    audit_log.comes_to(
        4,
        "mallory",
        "portmoot/malformed",
        "refused",
        "message_too_large",
    );
    audit_log.comes_to(
        4,
        "mallory",
        CONNECTION,
        "refused",
        "closed 1009: the message is too long",
    );
    audit_log.comes_to(2, "mallory", "chat", "admitted", "");
}

#[test]
fn sixteen_malformed_messages_in_a_row_close_the_connection() {
    let (gateway, mut watcher, mut mallory) = two("");
    for round in 0..3 {
        for _ in 0..15 {
            mallory.text("{");
            mallory.refused("", "malformed_envelope");
        }
        let id = round.to_string();
        mallory.text(chat(&id));
        mallory.expect(&id);
        watcher.expect(&id);
    }
    // Refused envelopes are not malformed; binary messages are.
    for _ in 0..40 {
        mallory.send("system/error", "x", &[], json!({}), &json!({}));
        mallory.refused("x", "capability_violation");
    }
    for number in 0..16 {
        mallory.frame(0x80 | if number % 2 == 0 { BINARY } else { TEXT }, b"\x00");
        mallory.refused("", "malformed_envelope");
    }
    mallory.text(chat("too late"));
    assert_eq!(mallory.closed(), 1008);
    gone(&mut watcher);
    let audit_log = gateway.audit_log();
    audit_log.has(
        "mallory",
        CONNECTION,
        "refused",
        "closed 1008: too many malformed messages",
    );
    audit_log.comes_to(
        3 * 15 + 16,
        "mallory",
        "portmoot/malformed",
        "refused",
        "malformed",
    );
    audit_log.comes_to(40, "mallory", "system/error", "refused", "reserved");
}

#[test]
fn binary_messages_are_refused() {
    let (_gateway, mut watcher, mut mallory) = two("");
    mallory.frame(0x80 | BINARY, chat("binary").as_bytes());
    mallory.refused("", "malformed_envelope");
    mallory.text(chat("text"));
    mallory.expect("text");
    watcher.expect("text");
}

#[test]
fn fragments_are_joined_to_one_message() {
    let (gateway, mut watcher, mut mallory) = two("");
    let text = chat("in pieces");
    let bytes = text.as_bytes();
    // Byte by byte, so that characters are split, with control frames and empty fragments between.
    mallory.frame(TEXT, b"");
    for (at, byte) in bytes.iter().enumerate() {
        mallory.frame(0, &[*byte]);
        if at % 10 == 3 {
            mallory.frame(0, b"");
            mallory.frame(0x80 | PING, &[*byte]);
            mallory.frame(0x80 | PONG, b"unasked");
            let pong = mallory.next().unwrap();
            assert_eq!((pong.opcode, pong.payload), (PONG, vec![*byte]));
        }
    }
    mallory.frame(0x80, b"");
    assert_eq!(mallory.receive_text(), text);
    assert_eq!(watcher.receive_text(), text);
    // An unfinished message is not delivered.
    mallory.frame(TEXT, text.as_bytes());
    mallory.frame(0x80 | CLOSE, &1000_u16.to_be_bytes());
    assert_eq!(mallory.closed(), 1000);
    gone(&mut watcher);
    let mut mallory = Socket::enter(&gateway, "mallory", "");
    watcher.receive();
    mallory.frame(TEXT, text.as_bytes());
    drop(mallory);
    gone(&mut watcher);
    // The log has two ended connections and one chat; unfinished messages have no entry.
    let audit_log = gateway.audit_log();
    audit_log.has("mallory", CONNECTION, "completed", "lost");
    audit_log.has("mallory", CONNECTION, "completed", "left");
    audit_log.comes_to(1, "mallory", "chat", "admitted", "");
}

#[test]
fn protocol_violations_close_the_connection_with_their_code() {
    let (gateway, mut watcher, mallory) = two("");
    mallory.leave();
    gone(&mut watcher);
    let unmasked = [&[0x81, 5][..], b"hello"].concat();
    let long_ping = masked(0x80 | PING, &[b'x'; 126]);
    let rows: [(&str, Vec<u8>, u16); 12] = [
        ("unmasked", unmasked, 1002),
        ("a reserved bit", masked(0xc0 | TEXT, b"{}"), 1002),
        ("an unknown opcode", masked(0x83, b"{}"), 1002),
        ("an unknown control opcode", masked(0x8b, b""), 1002),
        ("a fragmented ping", masked(PING, b""), 1002),
        ("a ping that is too long", long_ping, 1002),
        ("a continuation of nothing", masked(0x80, b"{}"), 1002),
        (
            "a message within another",
            [masked(TEXT, b"{"), masked(0x80 | TEXT, b"}")].concat(),
            1002,
        ),
        ("a close of one byte", masked(0x80 | CLOSE, b"\x03"), 1002),
        (
            "a close with a code that none may send",
            masked(0x80 | CLOSE, &1005_u16.to_be_bytes()),
            1002,
        ),
        ("no UTF-8", masked(0x80 | TEXT, b"{\"id\":\"\xff\"}"), 1007),
        (
            "no UTF-8 over two fragments",
            [masked(TEXT, b"\"\xc3"), masked(0x80, b"\x28\"")].concat(),
            1007,
        ),
    ];
    for (what, bytes, code) in rows {
        let mut socket = Socket::enter(&gateway, "mallory", "");
        watcher.receive();
        socket.raw(&bytes);
        socket.raw(chat("after").as_bytes());
        assert_eq!(socket.closed(), code, "{what}");
        gone(&mut watcher);
    }
    // A close without a code is answered without a code.
    let mut socket = Socket::enter(&gateway, "mallory", "");
    watcher.receive();
    socket.frame(0x80 | CLOSE, b"");
    assert_eq!(socket.closed(), 0);
    gone(&mut watcher);
    let audit_log = gateway.audit_log();
    until("all are recorded", || {
        (audit_log.count("mallory", CONNECTION, "completed", "left") == 2).then_some(())
    });
    audit_log.comes_to(
        10,
        "mallory",
        CONNECTION,
        "refused",
        "closed 1002: the protocol was broken",
    );
    audit_log.comes_to(
        2,
        "mallory",
        CONNECTION,
        "refused",
        "closed 1007: the protocol was broken",
    );
    assert_eq!(audit_log.count("mallory", "chat", "admitted", ""), 0);
}

#[test]
fn pings_are_answered_and_silent_connections_are_closed() {
    let (gateway, mut watcher, mut mallory) = two("[server.limits]\nkeep_alive = \"100ms\"");
    // Of many pings at once, each or a later one is answered (RFC 6455, section 5.5.3).
    for number in 0..50_u8 {
        mallory.frame(0x80 | PING, &[number]);
    }
    loop {
        let frame = mallory.next().unwrap();
        match frame.opcode {
            PONG if frame.payload == [49] => break,
            PING | PONG => {}
            _ => panic!("{frame:?}"),
        }
    }
    // From here on it answers no ping; the watcher does.
    let silent = std::thread::spawn(move || {
        let mut pings = 0;
        loop {
            match mallory.next().unwrap() {
                frame if frame.opcode == PING => pings += 1,
                frame => return (pings, frame.code()),
            }
        }
    });
    let received = watcher.receive();
    assert_eq!(received["payload"]["event"], "leave", "{received}");
    let (pings, code) = silent.join().unwrap();
    assert!(pings >= 2, "{pings}");
    assert_eq!(code, Some(4004));
    watcher.chat("still here");
    watcher.expect("still here");
    gateway.audit_log().has(
        "mallory",
        CONNECTION,
        "refused",
        "closed 4004: no frame arrived",
    );
}

#[test]
fn lost_access_and_shutdown_close_connections_with_their_codes() {
    let (home, config) = people(&[("admin", &["portmoot/*", "chat"]), ("watcher", FULL)]);
    let mut gateway = Gateway::start(&home, &config);
    let cli = |gateway: &Gateway, args: &[&str]| {
        let (url, token) = (gateway.url(), crate::ws::token("admin"));
        home.run(&[args, &["--url", &url, "--token", &token]].concat())
            .expect(0)
            .stdout
            .trim()
            .to_owned()
    };
    let issued = cli(&gateway, &["token", "new", "guest", "--capability", "chat"]);
    let mut watcher = Socket::enter(&gateway, "watcher", "");
    let mut guest = Socket::open_with(&gateway, "guest", "", &format!("Bearer {issued}"));
    assert_eq!(watcher.receive()["payload"]["participant"]["id"], "guest");
    cli(&gateway, &["token", "revoke", "guest"]);
    assert_eq!(guest.closed(), 4002);
    assert_eq!(
        watcher.receive()["payload"],
        json!({ "event": "leave", "participant": { "id": "guest" } })
    );
    // Another participant, which the configuration no longer has.
    let mut admin = Socket::enter(&gateway, "admin", "");
    watcher.receive();
    let without = config.replace("[participants.watcher]", "[participants.another]");
    home.write("portmoot.toml", &without);
    gateway.signal("HUP");
    assert_eq!(watcher.closed(), 4002);
    assert_eq!(admin.receive()["payload"]["event"], "leave");
    gateway.signal("TERM");
    assert_eq!(admin.closed(), 1001);
    drop((admin, watcher, guest));
    gateway.wait();
}

#[test]
fn frames_sent_with_the_upgrade_are_not_lost() {
    let (gateway, mut watcher, mallory) = two("");
    mallory.leave();
    watcher.receive();
    let mut stream = TcpStream::connect(gateway.address()).unwrap();
    let head = format!(
        "GET /ws HTTP/1.1\r\nhost: {}\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nauthorization: Bearer {}\r\n\r\n",
        gateway.address(),
        crate::ws::token("mallory")
    );
    let frames = [
        masked(0x80 | TEXT, chat("early").as_bytes()),
        masked(TEXT, &chat("late").as_bytes()[..9]),
    ];
    stream
        .write_all(&[head.as_bytes(), &frames.concat()].concat())
        .unwrap();
    watcher.expect("early");
    stream
        .write_all(&masked(0x80, &chat("late").as_bytes()[9..]))
        .unwrap();
    watcher.expect("late");
}
