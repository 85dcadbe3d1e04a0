//! Load on a WebSocket: slow readers, many joins and leaves.

use super::*;

/// Resident memory, bytes.
fn resident(gateway: &Gateway) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.split_whitespace()
        .next()
        .unwrap()
        .parse::<usize>()
        .unwrap()
        * 1024
}

#[test]
fn a_participant_that_never_reads_is_disconnected_without_delaying_others() {
    const MESSAGES: usize = 3_000;
    let (home, config) = people(&[
        ("sender", FULL),
        ("reader", FULL),
        ("stuck", FULL),
        ("dead", FULL),
    ]);
    let gateway = Gateway::start(&home, &config);
    let mut reader = Socket::enter(&gateway, "reader", "");
    let mut sender = Socket::enter(&gateway, "sender", "?echo=false");
    let mut stuck = Socket::open(&gateway, "stuck", "");
    // Sends many messages and reads none.
    let mut dead = Socket::open(&gateway, "dead", "");
    for _ in 0..3 {
        reader.receive();
    }
    let before = resident(&gateway);
    let text = "x".repeat(16 * 1024);
    let (wake, woken) = std::sync::mpsc::channel();
    // After the disconnect it reads all buffered frames, and then the close code.
    let looking = std::thread::spawn(move || {
        woken.recv().unwrap();
        stuck.closed()
    });
    let hearing = std::thread::spawn(move || {
        let (mut left, mut next) = (Vec::new(), 0);
        while next < MESSAGES || left.len() < 2 {
            let received = reader.receive();
            if received["kind"] == "system/presence" {
                assert_eq!(received["payload"]["event"], "leave");
                let who = received["payload"]["participant"]["id"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                if who == "stuck" {
                    wake.send(()).unwrap();
                }
                left.push(who);
            } else if received["from"] == "sender" {
                assert_eq!(received["id"], next.to_string(), "none is lost");
                next += 1;
            }
        }
        left.sort();
        left
    });
    let mut peak = 0;
    for number in 0..MESSAGES {
        sender.send(
            "chat",
            &number.to_string(),
            &[],
            json!({}),
            &json!({ "text": text }),
        );
        if number % 100 == 0 {
            dead.chat("me too");
            peak = peak.max(resident(&gateway));
        }
    }
    assert_eq!(hearing.join().unwrap(), ["dead", "stuck"]);
    // 48 MB were delivered to the others.
    let grown = peak.saturating_sub(before) >> 20;
    assert!(grown < 24, "{grown} MiB");
    assert_eq!(looking.join().unwrap(), 4003);
    // The sender received the leave, as all others did.
    sender.chat("end");
    assert_eq!(sender.receive()["payload"]["event"], "join");
    let audit_log = AuditLog(&home);
    for who in ["stuck", "dead"] {
        audit_log.has(
            who,
            CONNECTION,
            "refused",
            "closed 4003: reading too slowly",
        );
    }
    audit_log.comes_to(MESSAGES + 1, "sender", "chat", "admitted", "chat");
    audit_log.is_whole();
}

#[test]
fn ten_thousand_joins_and_leaves_leave_no_state() {
    const ROUNDS: usize = 2_500;
    let names = ["a", "b", "c", "d"];
    let mut all: Vec<(&str, &[&str])> = names.iter().map(|name| (*name, FULL)).collect();
    all.push(("watcher", FULL));
    let (home, config) = people(&all);
    // Its descriptors are counted from outside.
    let home = home.env("PORTMOOT_DUMPABLE", "1");
    let mut gateway = Gateway::start(&home, &config);
    // Each joins, sends a chat, and leaves with or without a close frame.
    let visit = |name: &str, round: usize| {
        let mode = if round.is_multiple_of(2) {
            ""
        } else {
            "?mode=directed"
        };
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
    let open = || {
        std::fs::read_dir(format!("/proc/{}/fd", gateway.pid()))
            .unwrap()
            .count()
    };
    rounds(ROUNDS / 5);
    alone();
    let before = resident(&gateway);
    rounds(ROUNDS - ROUNDS / 5);
    alone();
    let grown = resident(&gateway).saturating_sub(before) >> 20;
    assert!(grown < 8, "{grown} MiB");
    until("no socket is left", || (open() < 40).then_some(()));
    // Every join and leave is in the log, most of them in counts.
    gateway.signal("TERM");
    gateway.wait();
    let audit_log = AuditLog(&home);
    for name in names {
        assert_eq!(
            audit_log.counted(name, CONNECTION, "admitted", "opened"),
            ROUNDS as u64,
            "{name}"
        );
        let ends =
            ["left", "lost"].map(|end| audit_log.counted(name, CONNECTION, "completed", end));
        let replaced = audit_log.counted(name, CONNECTION, "completed", "closed 4001");
        assert_eq!(
            ends[0] + ends[1] + replaced,
            ROUNDS as u64,
            "{name}: {ends:?} {replaced}"
        );
    }
    let bytes: u64 = std::fs::read_dir(home.path().join("data/audit"))
        .unwrap()
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes < 6 << 20, "{bytes}");
    audit_log.is_whole();
}

#[test]
fn joins_and_leaves_are_delivered_in_order() {
    let (gateway, mut watcher, mallory) = two("");
    mallory.leave();
    for _ in 0..50 {
        Socket::enter(&gateway, "mallory", "").leave();
    }
    let expected = (0..101).map(|number| if number % 2 == 0 { "leave" } else { "join" });
    for event in expected {
        assert_eq!(watcher.receive()["payload"]["event"], event);
    }
}
