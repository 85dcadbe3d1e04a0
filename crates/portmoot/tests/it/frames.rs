//! Attacks on a WebSocket itself: frames, sizes, silence, slowness, and comings and goings without end.

use std::io::Write;
use std::net::TcpStream;
use std::ops::Deref;

use serde_json::json;

use crate::ledger::Ledger;
use crate::runner::Home;
use crate::support::{Gateway, until};
use crate::ws::{BINARY, CLOSE, PING, PONG, Socket, TEXT, envelope, masked, people};

const FULL: &[&str] = &["mcp/*", "chat", "acme/*"];
const CONNECTION: &str = "portmoot/connection";

/// A gateway and the home that it needs.
struct Held {
    gateway: Gateway,
    home: Home,
}

impl Held {
    fn ledger(&self) -> Ledger<'_> {
        Ledger(&self.home)
    }
}

impl Deref for Held {
    type Target = Gateway;

    fn deref(&self) -> &Gateway {
        &self.gateway
    }
}

fn two(more: &str) -> (Held, Socket, Socket) {
    let (home, config) = people(&[("mallory", FULL), ("watcher", FULL)]);
    let gateway = Gateway::start(&home, &format!("{more}\n{config}"));
    let mut watcher = Socket::enter(&gateway, "watcher", "");
    let mallory = Socket::enter(&gateway, "mallory", "");
    watcher.hear();
    (Held { gateway, home }, watcher, mallory)
}

fn chat(id: &str) -> String {
    envelope("mallory", "chat", id, &[], json!({}), &json!({ "text": "ü" }))
}

/// An envelope of exactly so many bytes.
fn of_bytes(id: &str, bytes: usize) -> String {
    let short = envelope("mallory", "chat", id, &[], json!({}), &json!({ "text": "" }));
    let text = "x".repeat(bytes - short.len());
    let long = short.replace("\"text\":\"\"", &format!("\"text\":\"{text}\""));
    assert_eq!(long.len(), bytes);
    long
}

/// Resident memory, bytes.
fn resident(gateway: &Gateway) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
}

/// Everybody hears that this one is gone, and goes on.
#[track_caller]
fn gone(watcher: &mut Socket) {
    let heard = watcher.hear();
    assert_eq!(heard["payload"], json!({ "event": "leave", "participant": { "id": "mallory" } }), "{heard}");
    watcher.chat("on");
    watcher.expect("on");
}

#[test]
fn the_longest_message_passes_and_a_longer_one_ends_its_connection() {
    const MAX: usize = 64 * 1024;
    let (gateway, mut watcher, mut mallory) = two("[server.limits]\nenvelope_bytes_max = \"64KiB\"");
    let longest = of_bytes("longest", MAX);
    mallory.text(&longest);
    assert_eq!(mallory.hear_text(), longest);
    assert_eq!(watcher.hear_text(), longest);
    // The same in two fragments.
    mallory.frame(TEXT, &longest.as_bytes()[..MAX / 2]);
    mallory.frame(0x80, &longest.as_bytes()[MAX / 2..]);
    assert_eq!(mallory.hear_text(), longest);
    assert_eq!(watcher.hear_text(), longest);

    let longer = of_bytes("longer", MAX + 1);
    let halves = [masked(TEXT, &longer.as_bytes()[..MAX / 2]), masked(0x80, &longer.as_bytes()[MAX / 2..])];
    // The head alone is enough, and a length that no memory holds costs none.
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
        let told = mallory.refused("", "message_too_large");
        assert!(told["payload"]["message"].as_str().unwrap().contains("65536"), "{told}");
        assert_eq!(mallory.closed(), 1009);
        gone(&mut watcher);
        mallory = Socket::enter(&gateway, "mallory", "");
        watcher.hear();
    }
    let ledger = gateway.ledger();
    ledger.has("mallory", CONNECTION, "refused", "closed 1009");
    ledger.comes_to(4, "mallory", "portmoot/malformed", "refused", "message_too_large");
    ledger.comes_to(4, "mallory", CONNECTION, "refused", "closed 1009: the message is too long");
    ledger.comes_to(2, "mallory", "chat", "admitted", "");
}

#[test]
fn sixteen_malformed_messages_in_a_row_are_too_many() {
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
    // What was understood and refused is not malformed, and binary messages are.
    for _ in 0..40 {
        mallory.say("system/error", "x", &[], json!({}), &json!({}));
        mallory.refused("x", "capability_violation");
    }
    for number in 0..16 {
        mallory.frame(0x80 | if number % 2 == 0 { BINARY } else { TEXT }, b"\x00");
        mallory.refused("", "malformed_envelope");
    }
    mallory.text(chat("too late"));
    assert_eq!(mallory.closed(), 1008);
    gone(&mut watcher);
    let ledger = gateway.ledger();
    ledger.has("mallory", CONNECTION, "refused", "closed 1008: too many malformed messages");
    ledger.comes_to(3 * 15 + 16, "mallory", "portmoot/malformed", "refused", "malformed");
    ledger.comes_to(40, "mallory", "system/error", "refused", "reserved");
}

#[test]
fn a_binary_message_is_no_envelope() {
    let (_gateway, mut watcher, mut mallory) = two("");
    mallory.frame(0x80 | BINARY, chat("binary").as_bytes());
    mallory.refused("", "malformed_envelope");
    mallory.text(chat("text"));
    mallory.expect("text");
    watcher.expect("text");
}

#[test]
fn fragments_are_one_message() {
    let (gateway, mut watcher, mut mallory) = two("");
    let text = chat("in pieces");
    let bytes = text.as_bytes();
    // Byte by byte, so that letters are cut in two, with control frames and empty fragments between.
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
    assert_eq!(mallory.hear_text(), text);
    assert_eq!(watcher.hear_text(), text);
    // One that is never finished is heard by nobody.
    mallory.frame(TEXT, text.as_bytes());
    mallory.frame(0x80 | CLOSE, &1000_u16.to_be_bytes());
    assert_eq!(mallory.closed(), 1000);
    gone(&mut watcher);
    let mut mallory = Socket::enter(&gateway, "mallory", "");
    watcher.hear();
    mallory.frame(TEXT, text.as_bytes());
    drop(mallory);
    gone(&mut watcher);
    // What was begun twice and never said is in the log as that: two connections ended, one thing said.
    let ledger = gateway.ledger();
    ledger.has("mallory", CONNECTION, "completed", "lost");
    ledger.has("mallory", CONNECTION, "completed", "left");
    ledger.comes_to(1, "mallory", "chat", "admitted", "");
}

#[test]
fn who_breaks_the_protocol_is_closed_with_the_code_that_says_so() {
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
        ("a message within another", [masked(TEXT, b"{"), masked(0x80 | TEXT, b"}")].concat(), 1002),
        ("a close of one byte", masked(0x80 | CLOSE, b"\x03"), 1002),
        ("a close with a code that none may send", masked(0x80 | CLOSE, &1005_u16.to_be_bytes()), 1002),
        ("no UTF-8", masked(0x80 | TEXT, b"{\"id\":\"\xff\"}"), 1007),
        ("no UTF-8 over two fragments", [masked(TEXT, b"\"\xc3"), masked(0x80, b"\x28\"")].concat(), 1007),
    ];
    for (what, bytes, code) in rows {
        let mut socket = Socket::enter(&gateway, "mallory", "");
        watcher.hear();
        socket.raw(&bytes);
        socket.raw(chat("after").as_bytes());
        assert_eq!(socket.closed(), code, "{what}");
        gone(&mut watcher);
    }
    // A close without a code is answered as one.
    let mut socket = Socket::enter(&gateway, "mallory", "");
    watcher.hear();
    socket.frame(0x80 | CLOSE, b"");
    assert_eq!(socket.closed(), 0);
    gone(&mut watcher);
    let ledger = gateway.ledger();
    until("all are recorded", || {
        (ledger.count("mallory", CONNECTION, "completed", "left") == 2).then_some(())
    });
    ledger.comes_to(10, "mallory", CONNECTION, "refused", "closed 1002: the protocol was broken");
    ledger.comes_to(2, "mallory", CONNECTION, "refused", "closed 1007: the protocol was broken");
    assert_eq!(ledger.count("mallory", "chat", "admitted", ""), 0);
}

#[test]
fn pings_are_answered_and_silence_is_not_endured() {
    let (gateway, mut watcher, mut mallory) = two("[server.limits]\nkeep_alive = \"100ms\"");
    // Many at once, and each is answered or a later one is (RFC 6455, section 5.5.3).
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
    let heard = watcher.hear();
    assert_eq!(heard["payload"]["event"], "leave", "{heard}");
    let (pings, code) = silent.join().unwrap();
    assert!(pings >= 2, "{pings}");
    assert_eq!(code, Some(4004));
    watcher.chat("still here");
    watcher.expect("still here");
    gateway.ledger().has("mallory", CONNECTION, "refused", "closed 4004: no frame arrived");
}

#[test]
fn who_never_reads_is_cut_off_and_costs_the_others_nothing() {
    const MESSAGES: usize = 3_000;
    let (home, config) = people(&[("sender", FULL), ("reader", FULL), ("stuck", FULL), ("dead", FULL)]);
    let gateway = Gateway::start(&home, &config);
    let mut reader = Socket::enter(&gateway, "reader", "");
    let mut sender = Socket::enter(&gateway, "sender", "?echo=false");
    let mut stuck = Socket::open(&gateway, "stuck", "");
    // Reads nothing and says much.
    let mut dead = Socket::open(&gateway, "dead", "");
    for _ in 0..3 {
        reader.hear();
    }
    let before = resident(&gateway);
    let text = "x".repeat(16 * 1024);
    let (tell, told) = std::sync::mpsc::channel();
    // Once it is cut off it looks, and finds out why behind all that it left unread.
    let looking = std::thread::spawn(move || {
        told.recv().unwrap();
        stuck.closed()
    });
    let hearing = std::thread::spawn(move || {
        let (mut left, mut next) = (Vec::new(), 0);
        while next < MESSAGES || left.len() < 2 {
            let heard = reader.hear();
            if heard["kind"] == "system/presence" {
                assert_eq!(heard["payload"]["event"], "leave");
                let who = heard["payload"]["participant"]["id"].as_str().unwrap().to_owned();
                if who == "stuck" {
                    tell.send(()).unwrap();
                }
                left.push(who);
            } else if heard["from"] == "sender" {
                assert_eq!(heard["id"], next.to_string(), "none is lost");
                next += 1;
            }
        }
        left.sort();
        left
    });
    let mut peak = 0;
    for number in 0..MESSAGES {
        sender.say("chat", &number.to_string(), &[], json!({}), &json!({ "text": text }));
        if number % 100 == 0 {
            dead.chat("me too");
            peak = peak.max(resident(&gateway));
        }
    }
    assert_eq!(hearing.join().unwrap(), ["dead", "stuck"]);
    // 48 MB went by.
    let grown = peak.saturating_sub(before) >> 20;
    assert!(grown < 24, "{grown} MiB");
    assert_eq!(looking.join().unwrap(), 4003);
    // The sender has heard of it as all others have.
    sender.chat("end");
    assert_eq!(sender.hear()["payload"]["event"], "join");
    let ledger = Ledger(&home);
    for who in ["stuck", "dead"] {
        ledger.has(who, CONNECTION, "refused", "closed 4003: reading too slowly");
    }
    ledger.comes_to(MESSAGES + 1, "sender", "chat", "admitted", "chat");
    ledger.is_whole();
}

#[test]
fn ten_thousand_comings_and_goings_leave_nothing_behind() {
    const ROUNDS: usize = 2_500;
    let names = ["a", "b", "c", "d"];
    let mut all: Vec<(&str, &[&str])> = names.iter().map(|name| (*name, FULL)).collect();
    all.push(("watcher", FULL));
    let (home, config) = people(&all);
    let mut gateway = Gateway::start(&home, &config);
    // Who comes, speaks and goes politely or not.
    let visit = |name: &str, round: usize| {
        let mode = if round.is_multiple_of(2) { "" } else { "?mode=directed" };
        let (mut socket, _) = Socket::welcomed(&gateway, name, mode);
        match round % 4 {
            0 => socket.leave(),
            1 => drop(socket),
            2 => {
                socket.chat("hello");
                drop(socket);
            }
            _ => socket.raw(&masked(0x80 | CLOSE, &1000_u16.to_be_bytes())),
        }
    };
    let rounds = |count: usize| {
        std::thread::scope(|scope| {
            for name in names {
                scope.spawn(move || (0..count).for_each(|round| visit(name, round)));
            }
        });
    };
    let alone = || {
        until("only the gateway's own participant is left", || {
            let (socket, welcome) = Socket::welcomed(&gateway, "watcher", "");
            socket.leave();
            let others = welcome["payload"]["participants"].as_array().unwrap().len();
            (others == 1).then_some(())
        });
    };
    let open = || std::fs::read_dir(format!("/proc/{}/fd", gateway.pid())).unwrap().count();
    rounds(ROUNDS / 5);
    alone();
    let before = resident(&gateway);
    rounds(ROUNDS - ROUNDS / 5);
    alone();
    let grown = resident(&gateway).saturating_sub(before) >> 20;
    assert!(grown < 8, "{grown} MiB");
    until("no socket is left", || (open() < 40).then_some(()));
    // Every coming and every going is in the log; so many of them as counts.
    gateway.signal("TERM");
    gateway.wait();
    let ledger = Ledger(&home);
    for name in names {
        assert_eq!(ledger.counted(name, CONNECTION, "admitted", "opened"), ROUNDS as u64, "{name}");
        let ends = ["left", "lost"].map(|end| ledger.counted(name, CONNECTION, "completed", end));
        let replaced = ledger.counted(name, CONNECTION, "completed", "closed 4001");
        assert_eq!(ends[0] + ends[1] + replaced, ROUNDS as u64, "{name}: {ends:?} {replaced}");
    }
    let bytes: u64 = std::fs::read_dir(home.path().join("data/audit"))
        .unwrap()
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes < 4 << 20, "{bytes}");
    ledger.is_whole();
}

#[test]
fn a_hearer_is_told_of_every_coming_and_going_in_turn() {
    let (gateway, mut watcher, mallory) = two("");
    mallory.leave();
    for _ in 0..50 {
        Socket::enter(&gateway, "mallory", "").leave();
    }
    let expected = (0..101).map(|number| if number % 2 == 0 { "leave" } else { "join" });
    for event in expected {
        assert_eq!(watcher.hear()["payload"]["event"], event);
    }
}

#[test]
fn who_loses_access_is_cut_off_and_all_are_told_when_the_gateway_stops() {
    let (home, config) = people(&[("admin", &["portmoot/*", "chat"]), ("watcher", FULL)]);
    let mut gateway = Gateway::start(&home, &config);
    let cli = |gateway: &Gateway, args: &[&str]| {
        let (url, token) = (gateway.url(), crate::ws::token("admin"));
        home.run(&[args, &["--url", &url, "--token", &token]].concat()).expect(0).stdout.trim().to_owned()
    };
    let issued = cli(&gateway, &["token", "new", "guest", "--capability", "chat"]);
    let mut watcher = Socket::enter(&gateway, "watcher", "");
    let mut guest = Socket::open_with(&gateway, "guest", "", &format!("Bearer {issued}"));
    assert_eq!(watcher.hear()["payload"]["participant"]["id"], "guest");
    cli(&gateway, &["token", "revoke", "guest"]);
    assert_eq!(guest.closed(), 4002);
    assert_eq!(watcher.hear()["payload"], json!({ "event": "leave", "participant": { "id": "guest" } }));
    // Another participant that the configuration no longer has.
    let mut admin = Socket::enter(&gateway, "admin", "");
    watcher.hear();
    let without = config.replace("[participants.watcher]", "[participants.somebody]");
    home.write("portmoot.toml", &without);
    gateway.signal("HUP");
    assert_eq!(watcher.closed(), 4002);
    assert_eq!(admin.hear()["payload"]["event"], "leave");
    gateway.signal("TERM");
    assert_eq!(admin.closed(), 1001);
    drop((admin, watcher, guest));
    gateway.wait();
}

#[test]
fn what_comes_with_the_upgrade_is_not_lost() {
    let (gateway, mut watcher, mallory) = two("");
    mallory.leave();
    watcher.hear();
    let mut stream = TcpStream::connect(gateway.address()).unwrap();
    let head = format!(
        "GET /ws HTTP/1.1\r\nhost: {}\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nauthorization: Bearer {}\r\n\r\n",
        gateway.address(),
        crate::ws::token("mallory")
    );
    let frames = [masked(0x80 | TEXT, chat("early").as_bytes()), masked(TEXT, &chat("late").as_bytes()[..9])];
    stream.write_all(&[head.as_bytes(), &frames.concat()].concat()).unwrap();
    watcher.expect("early");
    stream.write_all(&masked(0x80, &chat("late").as_bytes()[9..])).unwrap();
    watcher.expect("late");
}
