//! Tests of `audit query` and `audit verify`, on a written log and with a running gateway.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};
use store::JournalWriter;
use store::audit::{AuditEntry, AuditLog, EntryOrigin, LogFiles, Policy, RecordedVerdict};

use crate::home::Home;
use crate::http::{Connection, TIMEOUT};
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{config_of, home_of, token};

/// A home whose data directory has a log of three entries, and the path of the log file.
fn home() -> (Home, std::path::PathBuf) {
    let home = Home::new();
    let dir = home.path().join("data");
    let journal = JournalWriter::open(&dir).unwrap();
    let audit = AuditLog::open(
        &journal,
        &[3; 32],
        1_000,
        Policy::default(),
        LogFiles::default(),
    )
    .unwrap();
    let entry = AuditEntry {
        at_ms: 1_785_241_800_250,
        topic: Some("main"),
        from: "scout",
        origin: EntryOrigin::default(),
        kind: "mcp/request:tools/call:write_file".into(),
        own: None,
        to: &["files"],
        verdict: RecordedVerdict::Refused,
        why: Some("capability_violation"),
        operation: Some(model::OperationId(7)),
        trace: None,
        digest: None,
        payload: None,
    };
    let forged = AuditEntry {
        kind: "system/\u{202e}error".into(),
        to: &[],
        topic: None,
        ..entry
    };
    let chat = AuditEntry {
        kind: "chat".into(),
        verdict: RecordedVerdict::Admitted,
        at_ms: 1_785_241_900_000,
        ..entry
    };
    for entry in [entry, forged, chat] {
        audit.reserve().unwrap().write(&entry);
    }
    audit.flush().unwrap();
    let segment = fs::read_dir(dir.join("audit"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    (home, segment)
}

#[test]
fn the_log_is_queried_by_kind_participant_time_and_operation() {
    let (home, _) = home();
    let check = |args: &[&str], expected: &[u64]| {
        let ran = home
            .run(&[&["audit", "query", "--json", "--data-dir", "data"], args].concat())
            .expect(0);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        let found = answer["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["seq"].as_u64().unwrap());
        assert_eq!(found.collect::<Vec<_>>(), expected, "{args:?}");
    };
    check(&[], &[1, 2, 3]);
    check(&["mcp/request:tools/call:*"], &[1]);
    check(&["system/*"], &[2]);
    check(&["--participant", "files"], &[1, 3]);
    check(&["--participant", "absent"], &[]);
    check(&["--verdict", "refused", "--topic", "main"], &[1]);
    check(
        &["--operation", &format!("{:032x}", 7), "--last", "1"],
        &[3],
    );
    check(&["--since", "2026-07-28T12:31:00Z"], &[3]);
    check(&["--until", "2026-07-28T12:31:00Z"], &[1, 2]);
    let shown = home
        .run(&["audit", "query", "--data-dir", "data"])
        .expect(0)
        .stdout;
    let expected = [
        r"ENTRY  TIME                      TOPIC  FROM   KIND                               TO     VERDICT   WHY",
        r"1      2026-07-28T12:30:00.250Z  main   scout  mcp/request:tools/call:write_file  files  refused   capability_violation",
        r"2      2026-07-28T12:30:00.250Z  -      scout  system/\u{202e}error               -      refused   capability_violation",
        r"3      2026-07-28T12:31:40.000Z  main   scout  chat                               files  admitted  capability_violation",
    ];
    assert_eq!(shown.lines().collect::<Vec<_>>(), expected);
    for wrong in [["*", ""], ["--since", "yesterday"]] {
        let args: Vec<&str> = wrong.into_iter().filter(|arg| !arg.is_empty()).collect();
        home.run(&[&["audit", "query", "--data-dir", "data"], &args[..]].concat())
            .expect(2);
    }
}

#[test]
fn changed_entries_are_found() {
    let (home, segment) = home();
    let verify =
        |more: &[&str]| home.run(&[&["audit", "verify", "--data-dir", "data"], more].concat());
    let summaries = verify(&[]).expect(0).stdout;
    let head = summaries
        .trim()
        .strip_prefix("intact: 3 entries, head ")
        .unwrap()
        .to_owned();
    verify(&["--head", &head]).expect(0);
    verify(&["--head", "3"]).expect(2);
    let text = fs::read_to_string(&segment).unwrap();
    fs::write(&segment, text.replace("refused", "admitted")).unwrap();
    let summaries = verify(&[]).expect(1).stdout;
    assert!(
        summaries.starts_with("entry 1, or the entry before it, was changed\n"),
        "{summaries}"
    );
    let report: Value = serde_json::from_str(&verify(&["--json"]).expect(1).stdout).unwrap();
    assert_eq!(
        (&report["intact"], &report["findings_count"]),
        (&Value::Bool(false), &Value::from(2))
    );
    fs::write(&segment, text.lines().next().unwrap().to_owned() + "\n").unwrap();
    let summaries = verify(&["--head", &head]).expect(1).stdout;
    assert!(
        summaries.starts_with("the end was cut off: entries 2 to 3 are missing\n"),
        "{summaries}"
    );
    home.run(&["audit", "verify", "--data-dir", "elsewhere"])
        .expect(5);
}

/// The participants.
const PEOPLE: [(&str, &[&str]); 3] = [
    (
        "boss",
        &["mcp/*", "chat", "portmoot/tokens", "portmoot/grants"],
    ),
    (
        "scout",
        &["mcp/proposal:tools/call", "mcp/response:*", "chat"],
    ),
    ("mallory", &["mcp/response:*", "chat"]),
];

fn audited() -> Home {
    home_of(&PEOPLE)
}

fn start(home: &Home, audit: &str) -> Gateway {
    let topics = "topics = [\"main\", \"short\"]\ncapabilities =";
    let config = config_of(home, &PEOPLE).replace("capabilities =", topics);
    let more = "[topics.main]\n[topics.short]\nproposal_ttl = \"200ms\"\n";
    Gateway::start(
        home,
        &format!("{config}[audit]\n{audit}\n{more}{}", fixture("files", &[])),
    )
}

fn client(gateway: &Gateway, name: &str, path: &str) -> Client {
    Client::open(gateway, Some(&token(name)), path, json!({}))
}

fn api(gateway: &Gateway, name: &str, method: &str, path: &str, body: &Value) -> Value {
    let bearer = format!("Bearer {}", token(name));
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let mut connection = Connection::open(gateway.address());
    let reply = connection.exchange(
        method,
        &format!("/api/v1/{path}"),
        &headers,
        &body.to_string(),
    );
    serde_json::from_str(&reply.body).unwrap_or_default()
}

/// The pending proposal of a topic.
fn pending(gateway: &Gateway) -> Value {
    until("a proposal waits", || {
        let proposals = api(gateway, "boss", "GET", "proposals", &json!({}));
        proposals["proposals"]
            .as_array()?
            .iter()
            .find(|one| one["state"] == "pending")
            .cloned()
    })
}

/// Sends these texts on a WebSocket and waits for a message that contains `received`.
fn send(gateway: &Gateway, name: &str, texts: &[String], received: &str) {
    let mut stream = TcpStream::connect(gateway.address()).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let head = format!(
        "GET /ws?topic=main HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         authorization: Bearer {}\r\n\r\n",
        token(name)
    );
    stream.write_all(head.as_bytes()).unwrap();
    for text in texts {
        let length = u16::try_from(text.len()).unwrap().to_be_bytes();
        // A mask of zeros leaves the text unchanged.
        let frame = [&[0x81, 0xfe], &length[..], &[0; 4], text.as_bytes()].concat();
        stream.write_all(&frame).unwrap();
    }
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&all).contains(received) {
        let read = stream.read(&mut part).unwrap();
        assert!(
            read > 0,
            "never: {received} in {}",
            String::from_utf8_lossy(&all)
        );
        all.extend_from_slice(&part[..read]);
    }
}

fn envelope(from: &str, kind: &str, payload: &Value) -> String {
    let id = format!("envelope-of-{from}-{}", kind.replace(['/', ':'], "-"));
    let mut text = json!({ "protocol": "mcpx/v0.1", "id": id, "from": from, "kind": kind, "payload": payload });
    text["ts"] = json!("2026-07-28T12:30:00Z");
    // Longer than a frame with a one-byte length.
    text["padding"] = json!("-".repeat(130));
    text.to_string()
}

fn entries(home: &Home, args: &[&str]) -> Vec<Value> {
    let ran = home
        .run(&[&["audit", "query", "--json", "--data-dir", "data"], args].concat())
        .expect(0);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    answer["entries"].as_array().unwrap().clone()
}

/// Entries as `FROM KIND [own OWN] > TO: VERDICT, WHY`.
fn summaries(entries: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let line = |entry: &Value| {
        let own = entry["own"]
            .as_str()
            .map(|own| format!(" [{own}]"))
            .unwrap_or_default();
        let to: Vec<String> = entry["to"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect();
        let (from, kind) = (text(&entry["from"]), text(&entry["kind"]));
        let (verdict, why) = (text(&entry["verdict"]), text(&entry["why"]));
        format!("{from} {kind}{own} > {}: {verdict}, {why}", to.join(","))
    };
    entries.iter().map(line).collect()
}

#[test]
fn requests_and_envelopes_are_recorded_without_secrets() {
    let home = audited();
    let mut gateway = start(&home, "payloads = \"full\"\nredact = [\"pin\"]");
    let (boss, mallory) = (
        client(&gateway, "boss", "/mcp"),
        client(&gateway, "mallory", "/mcp"),
    );
    boss.call(
        "files_echo",
        json!({ "text": "hi", "password": "hunter2", "a": { "Token": "t-1" }, "pin": 4_711_047_110_471_i64 }),
    );
    boss.names("tools");
    for tool in ["files_echo", "nothing"] {
        assert!(
            mallory.ask("tools/call", json!({ "name": tool, "arguments": {} }))["error"]
                .is_object()
        );
    }
    let chat = json!({ "text": "hello", "format": "plain" });
    let said = [
        ("boss", "chat"),
        ("mallory", "system/error"),
        ("mallory", "chat"),
    ];
    let mut said: Vec<String> = said
        .iter()
        .map(|(from, kind)| envelope(from, kind, &chat))
        .collect();
    said.push(format!("{{{}", " ".repeat(130)));
    send(&gateway, "mallory", &said, "malformed_envelope");
    api(
        &gateway,
        "boss",
        "POST",
        "tokens",
        &json!({ "name": "guest" }),
    );
    api(&gateway, "boss", "DELETE", "tokens/guest", &json!({}));
    api(
        &gateway,
        "boss",
        "POST",
        "participants/mallory/grants?topic=main",
        &json!({ "add": ["mcp/request:ping"] }),
    );
    gateway.signal("TERM");
    gateway.wait();
    let (came_and_went, all): (Vec<_>, Vec<_>) = entries(&home, &[])
        .into_iter()
        .partition(|entry| entry["kind"] == "portmoot/connection");
    let expected = ["admitted, opened", "completed, lost"];
    assert_eq!(
        summaries(&came_and_went),
        expected.map(|end| format!("mallory portmoot/connection > : {end}"))
    );
    let expected = [
        "boss mcp/request:tools/call:files_echo [echo] > files: admitted, mcp/*",
        "mallory mcp/request:tools/call:files_echo > : refused, not_admitted",
        "mallory mcp/request:tools/call:nothing > : refused, unknown",
        "mallory chat > : refused, auth_violation: `from` was \"boss\"",
        "mallory system/error > : refused, reserved",
        "mallory chat > : admitted, chat",
        "mallory portmoot/malformed > : refused, malformed",
        "boss portmoot/tokens > guest: admitted, issued",
        "boss portmoot/tokens > guest: admitted, revoked",
        "boss portmoot/grants > mallory: admitted, adds [mcp/request:ping], removes []",
    ];
    assert_eq!(summaries(&all), expected);
    assert_eq!(summaries(&entries(&home, &["system/*"])), [expected[4]]);
    assert_eq!(
        entries(&home, &["--participant", "mallory", "--verdict", "refused"]).len(),
        5
    );
    let operation = all[0]["operation"].as_str().unwrap();
    assert_eq!(
        entries(&home, &["--operation", operation]),
        [all[0].clone()]
    );
    assert_eq!(all[0]["payload"]["arguments"]["text"], "hi");
    let log =
        fs::read_to_string(home.path().join("data/audit/00000000000000000001.jsonl")).unwrap();
    for secret in ["hunter2", "t-1", "4711047110471", "token-of-"] {
        assert!(!log.contains(secret), "{secret}");
    }
    home.run(&["audit", "verify", "--data-dir", "data"])
        .expect(0);
}

#[test]
fn proposal_decisions_and_outcomes_are_recorded() {
    let home = audited();
    let mut gateway = start(&home, "");
    let scout = client(&gateway, "scout", "/mcp");
    let ends: [(&str, Value); 2] = [
        (
            "approve",
            json!({ "arguments": { "text": "other", "token": "t-2" } }),
        ),
        ("reject", json!({ "reason": "not today" })),
    ];
    for (verb, mut body) in ends {
        let answers = scout.begin_call("files_echo", json!({ "text": "mine" }));
        let proposal = pending(&gateway);
        let path = format!("proposals/{}", proposal["id"].as_str().unwrap());
        if verb == "approve" {
            body["digest"] = proposal["digest"].clone();
            // A participant cannot approve its own proposal.
            api(&gateway, "scout", "POST", &format!("{path}/approve"), &body);
        }
        api(&gateway, "boss", "POST", &format!("{path}/{verb}"), &body);
        let answer = answers.next();
        assert_eq!(
            answer["result"]["isError"] == true,
            verb == "reject",
            "{answer}"
        );
    }
    let short = client(&gateway, "scout", "/mcp/short");
    assert!(
        short
            .ask(
                "tools/call",
                json!({ "name": "files_echo", "arguments": {} })
            )
            .is_object()
    );
    gateway.signal("TERM");
    gateway.wait();
    let proposal = "mcp/proposal:tools/call:echo > files:";
    let ends = [
        (
            "boss",
            vec![
                "refused, own",
                "approved, proposed by scout, arguments edited",
                "completed, -",
            ],
        ),
        ("boss", vec!["rejected, not today"]),
    ];
    let calls = entries(&home, &["--topic", "main", "mcp/request:*"]);
    let opened = entries(
        &home,
        &["--topic", "main", "--verdict", "held", "mcp/proposal:*"],
    );
    for ((decider, ends), (call, opened)) in ends.into_iter().zip(calls.iter().zip(&opened)) {
        let held = "scout mcp/request:tools/call:files_echo [echo] > files: held, -";
        assert_eq!(summaries(std::slice::from_ref(call)), [held]);
        let mut expected = vec![format!(
            "scout {proposal} held, for the call {}",
            call["operation"].as_str().unwrap()
        )];
        for end in ends {
            let decides = end.starts_with("approved") || end.starts_with("rejected");
            expected.push(format!(
                "{} {proposal} {end}",
                if decides { decider } else { "scout" }
            ));
        }
        assert_eq!(
            summaries(&entries(
                &home,
                &["--operation", opened["operation"].as_str().unwrap()]
            )),
            expected
        );
    }
    let all = entries(
        &home,
        &["--operation", opened[0]["operation"].as_str().unwrap()],
    );
    // The digest of the shown params; that of the edited params differs. Neither text is recorded.
    assert_eq!(all[0]["digest"], all[2]["digest"]);
    assert_ne!(all[0]["payload_sha256"], all[2]["payload_sha256"]);
    assert!(all[2]["payload_sha256"].is_string() && all[2]["payload"].is_null());
    let short = summaries(&entries(
        &home,
        &["--topic", "short", "--verdict", "expired"],
    ));
    assert!(
        short[0].starts_with(&format!("scout {proposal} expired, ")),
        "{short:?}"
    );
    home.run(&["audit", "verify", "--data-dir", "data"])
        .expect(0);
}

#[test]
fn the_log_is_intact_after_a_crash_under_load_and_continues() {
    let home = audited();
    let segment = home.path().join("data/audit/00000000000000000001.jsonl");
    let lines = |file: &Path| fs::read_to_string(file).unwrap_or_default().lines().count();
    for crash in 1..=2 {
        let gateway = start(&home, "");
        let open = std::thread::scope(|scope| {
            let load = || {
                let client = client(&gateway, "boss", "/mcp");
                for _ in 0..75 {
                    client.call("files_echo", json!({ "text": "again" }));
                }
                // Calls are open, and their entries are queued.
                [(); 20].map(|()| client.begin_call("files_echo", json!({ "text": "last" })))
            };
            let threads = [(); 4].map(|()| scope.spawn(load));
            threads.map(|thread| thread.join().unwrap())
        });
        // The disk may be slower than the calls; the entries after these are still queued.
        until("most entries are written", || {
            (lines(&segment) > crash * 200).then_some(())
        });
        gateway.signal("KILL");
        drop(open);
        drop(gateway);
        let summaries = home
            .run(&["audit", "verify", "--data-dir", "data"])
            .expect(0)
            .stdout;
        let count: usize = summaries.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(count > crash * 200, "{summaries}");
    }
    let text = fs::read_to_string(&segment).unwrap();
    fs::write(&segment, text.replacen("\"boss\"", "\"loss\"", 1)).unwrap();
    let summaries = home
        .run(&["audit", "verify", "--data-dir", "data"])
        .expect(1)
        .stdout;
    assert!(
        summaries.starts_with("entry 1, or the entry before it, was changed\n"),
        "{summaries}"
    );
}

#[test]
fn operations_that_cannot_be_recorded_are_refused() {
    let home = audited();
    let gateway = start(&home, "");
    let boss = client(&gateway, "boss", "/mcp");
    // A full disk.
    let folder = home.path().join("data/audit");
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.join("00000000000000000001.jsonl")).unwrap();
    let message = json!({ "name": "files_echo", "arguments": { "text": "hi" } });
    let refused = until("calls are refused", || {
        let answer = boss.ask("tools/call", message.clone());
        answer["error"].is_object().then_some(answer)
    });
    assert!(refused.to_string().contains("log_unavailable"), "{refused}");
    assert!(boss.names("tools").contains(&"files_echo".to_owned()));
    let ready = gateway.get("/readyz", None);
    assert_eq!(
        (ready.status, &ready.json()["audit"]),
        (503, &json!("unavailable"))
    );
    let metrics = gateway.get("/metrics", Some(&token("boss"))).body;
    assert!(
        metrics.contains("portmoot_audit_available 0\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("portmoot_journal_available 1\n"),
        "{metrics}"
    );
    let no = api(
        &gateway,
        "boss",
        "POST",
        "tokens",
        &json!({ "name": "guest" }),
    );
    assert_eq!(no["code"], "log_unavailable");
    let metrics = gateway.get("/metrics", Some(&token("boss"))).body;
    let refused = metrics
        .lines()
        .find_map(|line| line.strip_prefix("portmoot_audit_refused_total "));
    assert!(refused.unwrap().parse::<u64>().unwrap() >= 2, "{metrics}");
    let chat = envelope(
        "mallory",
        "chat",
        &json!({ "text": "hello", "format": "plain" }),
    );
    send(&gateway, "mallory", &[chat], "log_unavailable");
}

#[test]
fn a_disabled_log_writes_nothing() {
    let home = audited();
    let mut gateway = start(&home, "enabled = false");
    client(&gateway, "boss", "/mcp").call("files_echo", json!({ "text": "hi" }));
    gateway.signal("TERM");
    gateway.wait();
    assert!(!home.path().join("data/audit").exists());
    home.run(&["audit", "verify", "--data-dir", "data"])
        .expect(5);
}

#[test]
fn a_segment_that_cannot_be_opened_is_opened_later() {
    let home = audited();
    let mut gateway = start(&home, "");
    gateway.ready("files");
    // In the place of the file that the first entry needs.
    let segment = home.path().join("data/audit/00000000000000000001.jsonl");
    fs::create_dir_all(&segment).unwrap();
    let boss = client(&gateway, "boss", "/mcp");
    let mut carried_out = 0;
    let mut echo = || {
        let answer = boss.ask(
            "tools/call",
            json!({ "name": "files_echo", "arguments": { "text": "x" } }),
        );
        carried_out += usize::from(answer["result"].is_object());
        answer
    };
    let refused = until("acts are refused", || {
        Some(echo()).filter(|answer| answer["error"].is_object())
    });
    assert_eq!(
        refused["error"]["data"]["code"], "log_unavailable",
        "{refused}"
    );
    fs::remove_dir(&segment).unwrap();
    until("acts are recorded again", || {
        Some(echo()).filter(|answer| answer["result"].is_object())
    });
    echo();
    gateway.signal("TERM");
    gateway.wait();
    let recorded = entries(
        &home,
        &[
            "--participant",
            "boss",
            "--verdict",
            "admitted",
            "mcp/request:tools/call:*",
        ],
    );
    assert_eq!(recorded.len(), carried_out, "{recorded:?}");
    home.run(&["audit", "verify", "--data-dir", "data"])
        .expect(0);
}
