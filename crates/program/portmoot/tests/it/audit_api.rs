//! The audit log over the REST API: who may read what, pages, calls, and the check of the chain.

use std::fs;

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::support::{Gateway, fixture, until};
use crate::ws::{config_of, home_of, token};

/// The participants: one that reads all of the log, one that reads it in one topic, two without the
/// right.
const PEOPLE: [(&str, &[&str]); 4] = [
    ("boss", &["mcp/*", "portmoot/audit", "portmoot/grants"]),
    ("auditor", &["portmoot/audit"]),
    ("scout", &["mcp/proposal:tools/call"]),
    ("bo", &["mcp/*", "chat", "portmoot/servers"]),
];

fn stage() -> (Home, Gateway) {
    let home = home_of(&PEOPLE);
    let both = "topics = [\"main\", \"secret\"]\ncapabilities = [\"mcp/*\", \"portmoot/audit\", \"portmoot/grants\"]";
    let boss = "capabilities = [\"mcp/*\", \"portmoot/audit\", \"portmoot/grants\"]";
    let config = config_of(&home, &PEOPLE).replace(boss, both);
    let topics = "[topics.main]\n[topics.secret]\n";
    let gateway = Gateway::start(&home, &(config + topics + &fixture("files", &[])));
    gateway.ready("files");
    (home, gateway)
}

fn ask(gateway: &Gateway, who: &str, method: &str, path: &str, body: &Value) -> Reply {
    let bearer = format!("Bearer {}", token(who));
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let path = format!("/api/v1/{path}");
    Connection::open(gateway.address()).exchange(method, &path, &headers, &body.to_string())
}

#[track_caller]
fn call(gateway: &Gateway, who: &str, text: &str, topic: &str) -> Reply {
    let path = format!("tools/files_echo/call?topic={topic}");
    let body = json!({ "arguments": { "text": text } });
    let reply = ask(gateway, who, "POST", &path, &body);
    assert!(matches!(reply.status, 200 | 202), "{reply:?}");
    reply
}

fn get(gateway: &Gateway, who: &str, path: &str) -> Reply {
    ask(gateway, who, "GET", path, &Value::Null)
}

/// The entries of an answer.
fn entries(answer: &Value) -> &[Value] {
    answer["entries"].as_array().unwrap()
}

/// Waits until there are so many entries of calls.
fn come_to(gateway: &Gateway, count: usize) {
    until("the entries are on disk", || {
        let found = get(gateway, "boss", "audit?kinds=mcp/request:*").json();
        (entries(&found).len() == count).then_some(())
    });
}

#[test]
fn the_log_is_read_with_the_right_and_only_of_the_topics_of_its_reader() {
    let (_home, gateway) = stage();
    call(&gateway, "bo", "one", "main");
    call(&gateway, "boss", "two", "secret");
    come_to(&gateway, 2);
    for path in [
        "audit",
        "audit/verify",
        "audit/calls",
        "audit/calls/00000000000000000000000000000007",
    ] {
        for who in ["bo", "scout"] {
            let refused = get(&gateway, who, path);
            assert_eq!(refused.status, 403, "{who} {path}: {refused:?}");
            let why = refused.json();
            assert_eq!(why["code"], "capability_violation");
            assert!(why["message"].as_str().unwrap().contains("portmoot/audit"));
        }
        let path = format!("/api/v1/{path}");
        let refused = Connection::open(gateway.address()).exchange("GET", &path, &[], "");
        assert_eq!(refused.status, 401, "{path}");
    }
    // The auditor may not enter the other topic: neither its entries nor those outside of topics.
    let seen = get(&gateway, "auditor", "audit").json();
    assert!(!entries(&seen).is_empty());
    assert!(
        entries(&seen).iter().all(|one| one["topic"] == "main"),
        "{seen}"
    );
    for query in [
        "topic=secret",
        "participant=boss&topic=secret",
        "kinds=portmoot/*",
    ] {
        let seen = get(&gateway, "auditor", &format!("audit?{query}")).json();
        assert_eq!(entries(&seen), [json!(null); 0], "{query}");
    }
    let calls = get(&gateway, "auditor", "audit/calls").json();
    assert_eq!(calls["calls"].as_array().unwrap().len(), 1, "{calls}");
    let all = get(&gateway, "boss", "audit?topic=secret").json();
    let hidden = entries(&all)[0]["operation"].as_str().unwrap().to_owned();
    let timeline = format!("audit/calls/{hidden}");
    assert_eq!(get(&gateway, "auditor", &timeline).status, 404);
    assert_eq!(get(&gateway, "boss", &timeline).status, 200);
    assert_eq!(get(&gateway, "auditor", "audit/verify").status, 403);
    // A right that is taken in one topic is no right to know of all of them.
    let grants = "participants/boss/grants?topic=secret";
    let taken = json!({ "remove": ["portmoot/audit"] });
    assert_eq!(get(&gateway, "boss", "audit/verify").status, 200);
    let reply = ask(&gateway, "boss", "POST", grants, &taken);
    assert_eq!(reply.status, 200, "{reply:?}");
    let seen = get(&gateway, "boss", "audit").json();
    assert!(
        entries(&seen).iter().all(|one| one["topic"] == "main"),
        "{seen}"
    );
    assert_eq!(get(&gateway, "boss", "audit/verify").status, 403);
    for wrong in [
        "audit?verdicts=held",
        "audit?limit=0",
        "audit?after=x",
        "audit?since=now",
    ] {
        assert_eq!(get(&gateway, "boss", wrong).status, 400, "{wrong}");
    }
}

#[test]
fn the_api_has_the_entries_of_the_command_in_pages() {
    let (home, gateway) = stage();
    for text in ["a", "b", "c", "d", "e"] {
        call(&gateway, "boss", text, "main");
    }
    call(&gateway, "scout", "f", "main");
    come_to(&gateway, 6);
    let filters = ["--participant", "boss", "mcp/request:tools/call:files_*"];
    let command = ["audit", "query", "--json", "--data-dir", "data"];
    let ran = home.run(&[&command[..], &filters].concat()).expect(0);
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    let mut expected = entries(&printed).to_vec();
    expected.reverse();
    assert_eq!(expected.len(), 5);
    let (mut found, mut pages, mut after) = (Vec::new(), 0, String::new());
    loop {
        let query =
            format!("audit?limit=2&participant=boss&kinds=mcp/request:tools/call:files_*{after}");
        let page = get(&gateway, "boss", &query).json();
        assert!(entries(&page).len() <= 2);
        assert_eq!(page["cut"], false);
        found.extend_from_slice(entries(&page));
        pages += 1;
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!((found, pages), (expected, 3));
}

#[test]
fn a_held_call_has_its_decision_and_its_trace() {
    let (home, gateway) = {
        let home = home_of(&PEOPLE);
        let traced = "[telemetry]\notlp = \"http://127.0.0.1:9\"\nsample = 1.0\n";
        let config = config_of(&home, &PEOPLE) + traced;
        let gateway = Gateway::start(&home, &(config + &fixture("files", &[])));
        gateway.ready("files");
        (home, gateway)
    };
    let held = call(&gateway, "scout", "a", "main").json();
    let proposal = held["proposal"].as_str().unwrap();
    let shown = get(&gateway, "boss", &format!("proposals/{proposal}")).json();
    let approve = format!("proposals/{proposal}/approve");
    let digest = json!({ "digest": shown["digest"] });
    assert_eq!(ask(&gateway, "boss", "POST", &approve, &digest).status, 200);
    let calls = until("it has run", || {
        let calls = get(
            &gateway,
            "boss",
            "audit/calls?outcome=completed&tool=files_*",
        )
        .json();
        (calls["calls"].as_array()?.len() == 1).then_some(calls)
    });
    let one = &calls["calls"][0];
    assert_eq!(one["proposal"], proposal);
    assert_eq!(
        (
            &one["by"],
            &one["target"],
            &one["verdict"],
            &one["decided_by"]
        ),
        (
            &json!("scout"),
            &json!("files_echo"),
            &json!("held"),
            &json!("boss")
        )
    );
    let id = one["operation"].as_str().unwrap();
    let place = one["place"].as_str().unwrap();
    let path = format!("audit/calls/{id}?place={place}");
    let timeline = get(&gateway, "boss", &path).json();
    let happened: Vec<String> = entries(&timeline)
        .iter()
        .map(|one| {
            format!(
                "{} {}",
                one["from"].as_str().unwrap(),
                one["verdict"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        happened,
        [
            "scout held",
            "scout held",
            "boss approved",
            "scout completed"
        ]
    );
    // Both are of the trace that the call begins.
    let traces: Vec<&Value> = entries(&timeline)[..2]
        .iter()
        .map(|one| &one["trace"])
        .collect();
    assert_eq!(traces[0].as_str().map(str::len), Some(32), "{timeline}");
    assert_eq!(traces[0], traces[1]);
    assert_eq!(
        get(&gateway, "boss", &format!("audit/calls/{proposal}")).json(),
        timeline
    );
    drop(home);
}

#[test]
fn a_log_that_was_changed_does_not_verify_over_the_api() {
    let (home, gateway) = stage();
    call(&gateway, "boss", "a", "main");
    come_to(&gateway, 1);
    let verify = || get(&gateway, "boss", "audit/verify").json();
    let command = |exit: i32| {
        let ran = home
            .run(&["audit", "verify", "--json", "--data-dir", "data"])
            .expect(exit);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()
    };
    let whole = verify();
    assert_eq!(whole["intact"], true, "{whole}");
    assert_eq!(whole, command(0));
    let head = whole["head"].as_str().unwrap();
    let kept = get(&gateway, "boss", &format!("audit/verify?head={head}")).json();
    assert_eq!(kept, whole);
    let log = home.path().join("data/audit/00000000000000000001.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replace("\"admitted\"", "\"refused\"")).unwrap();
    let broken = verify();
    assert_eq!(broken["intact"], false, "{broken}");
    assert_eq!(
        broken["findings"][0],
        "entry 1, or the entry before it, was changed"
    );
    assert_eq!(broken, command(1));
}

#[test]
fn without_a_log_the_answer_says_how_to_switch_it_on() {
    let home = home_of(&PEOPLE);
    let config = config_of(&home, &PEOPLE) + "[audit]\nenabled = false\n";
    let gateway = Gateway::start(&home, &config);
    for path in ["audit", "audit/calls", "audit/verify"] {
        let refused = get(&gateway, "boss", path);
        assert_eq!(refused.status, 404, "{refused:?}");
        let why = refused.json();
        assert_eq!(why["message"], "this gateway keeps no audit log");
        assert!(
            why["hint"]
                .as_str()
                .unwrap()
                .contains("[audit] enabled = true")
        );
        assert_eq!(get(&gateway, "bo", path).status, 403, "{path}");
    }
}
