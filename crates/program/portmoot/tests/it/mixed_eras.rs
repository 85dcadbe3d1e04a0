//! Callers and servers of different eras: members without a meaning in an era keep their spelling;
//! progress messages.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use serde_json::{Value, json};

use crate::lossless::{extra_members, raw_json, run};
use crate::peer::{Peer, answer, small, tool};
use crate::socket::{Gateway, LEGACY, MODERN, Session, until};

/// Members of a modern result beside its content.
const MODERN_RESULT: &str = r#""resultType":"complete","#;
const MODERN_CACHE: &str = r#""resultType":"complete","ttlMs":7,"cacheScope":"public","#;

/// A server of one era that answers calls, reads and gets with `result`, and lists with the raw
/// items in `listed`.
fn peer(
    era: &'static str,
    result: Arc<Mutex<String>>,
    listed: Vec<String>,
    extras: String,
) -> Peer {
    Peer::stdio(move |message| {
        let modern = era == "modern";
        let cache = if modern { MODERN_CACHE } else { "" };
        let own = |key: &str, name: &str| {
            let items: Vec<String> = listed
                .iter()
                .enumerate()
                .map(|(number, members)| {
                    format!(r#"{{{}{members}}}"#, name.replace('#', &number.to_string()))
                })
                .collect();
            format!(r#"{{{cache}"{key}":[{}]{extras}}}"#, items.join(","))
        };
        let Some(method) = message["method"]
            .as_str()
            .filter(|_| message.get("id").is_some())
        else {
            return Vec::new();
        };
        let said = match method {
            "server/discover" if modern => format!(
                r#"{{{cache}"supportedVersions":["{MODERN}"],"capabilities":{{"tools":{{}},"prompts":{{}},"resources":{{}}}}}}"#
            ),
            "initialize" if !modern => format!(
                r#"{{"protocolVersion":"{LEGACY}","capabilities":{{"tools":{{}},"prompts":{{}},"resources":{{}}}},"serverInfo":{{"name":"peer","version":"1"}}}}"#
            ),
            "tools/list" => own("tools", r##""name":"t#","inputSchema":{"type":"object"}"##),
            "prompts/list" => own("prompts", r##""name":"p#""##),
            "resources/list" => own("resources", r##""uri":"x:#","name":"r""##),
            "resources/templates/list" => own(
                "resourceTemplates",
                r##""uriTemplate":"y:#{a}","name":"r""##,
            ),
            "tools/call" | "resources/read" | "prompts/get" => result.lock().unwrap().clone(),
            _ => return Vec::new(),
        };
        vec![answer(message, &said).into_bytes()]
    })
}

/// A caller of the other era.
struct Caller<'g> {
    gateway: &'g Gateway,
    session: Option<Session<'g>>,
}

impl Caller<'_> {
    /// The answer to a request with these params, unparsed.
    fn ask(&self, method: &str, name: Option<&str>, params: &str) -> String {
        match &self.session {
            Some(session) => {
                let body = format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#
                );
                session.post(body).message()
            }
            None => self.gateway.modern(method, name, params).message(),
        }
    }
}

fn serve(peer: &Peer, era: &str) -> Gateway {
    let table = peer
        .child("peer", "")
        .replace("era = \"legacy\"", &format!("era = \"{era}\""));
    Gateway::serve(&format!("{table}request_timeout = \"5s\"\n"))
}

fn caller<'g>(gateway: &'g Gateway, era: &str) -> Caller<'g> {
    Caller {
        gateway,
        session: (era == "modern").then(|| gateway.session()),
    }
}

const REQUESTS: [(&str, &str, &str, &str); 3] = [
    ("tools/call", "t0", r#""name":"t0""#, ""),
    ("prompts/get", "p0", r#""name":"p0""#, ""),
    (
        "resources/read",
        "x:0",
        r#""uri":"x:0""#,
        r#""ttlMs":7,"cacheScope":"public","#,
    ),
];

/// Arbitrary members of params and results of call, get and read, with a server of this era and a
/// caller of the other.
fn calls_survive(era: &'static str) {
    let result = Arc::new(Mutex::new(String::new()));
    let peer = peer(era, Arc::clone(&result), vec![String::new()], String::new());
    let gateway = serve(&peer, era);
    let caller = caller(&gateway, era);
    until("it is listed", || {
        caller.ask("tools/list", None, "").contains("\"t0\"")
    });
    run(60, (raw_json(), extra_members()), |(value, members)| {
        for (method, name, target, cache) in REQUESTS {
            // `content` has a meaning in both eras; `_meta` has members of third parties.
            let content = format!(
                r#""content": {value}{members},"_meta":{{"com.example/x": {value}{members}}}"#
            );
            let (complete, cache) = if era == "modern" {
                (MODERN_RESULT, cache)
            } else {
                ("", "")
            };
            *result.lock().unwrap() = format!("{{{complete}{cache}{content}}}");
            let meta = format!(r#""com.example/x": {value}{members}"#);
            // A modern caller adds its own keys to `_meta`: there can be only one `_meta`.
            let with_meta = if era == "modern" {
                format!(r#","_meta":{{{meta}}}"#)
            } else {
                String::new()
            };
            let params = format!(r#"{target},"arguments": {value}{members}{with_meta}"#);
            let got = caller.ask(method, Some(name), &params);
            let start = if era == "modern" { "{" } else { "" };
            let expect = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{start}"#);
            assert!(got.starts_with(&expect), "{got}");
            assert!(got.contains(&content), "{method}: {got}\n{content}");
            if era == "modern" {
                assert_eq!(
                    got,
                    format!("{expect}{content}}}}}"),
                    "and nothing of its era"
                );
            } else {
                assert_eq!(
                    got.matches(r#""resultType":"complete""#).count(),
                    1,
                    "{got}"
                );
            }
            let received = peer.received().pop().unwrap();
            assert!(
                received.contains(&format!(r#"{target},"arguments": {value}{members}"#)),
                "{received}"
            );
            if era == "modern" {
                assert!(
                    received.contains(&format!(r#""_meta":{{{meta},"#)),
                    "{received}"
                );
            } else {
                assert!(!received.contains("io.modelcontextprotocol/"), "{received}");
            }
        }
    });
}

#[test]
fn calls_of_a_legacy_client_at_a_modern_server_lose_nothing() {
    calls_survive("modern");
}

#[test]
fn calls_of_a_modern_client_at_a_legacy_server_lose_nothing() {
    calls_survive("legacy");
}

/// Arbitrary members of list items and of the lists.
fn lists_survive(era: &'static str) {
    let items = prop::collection::vec((raw_json(), extra_members()), 30);
    let mut runner = proptest::test_runner::TestRunner::default();
    let items = items.new_tree(&mut runner).unwrap().current();
    let listed: Vec<String> = items
        .iter()
        .map(|(value, members)| {
            format!(r#", "x-value":{value}{members},"_meta":{{"com.example/x":{value}}}"#)
        })
        .collect();
    let extras = format!(
        r#","x-list":{}{}"#,
        items[0].0,
        items[1].1.replace("\"x-", "\"y-")
    );
    let peer = peer(era, Arc::default(), listed.clone(), extras.clone());
    let gateway = serve(&peer, era);
    let caller = caller(&gateway, era);
    until("they are listed", || {
        caller.ask("tools/list", None, "").contains("\"t0\"")
    });
    for method in [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    ] {
        let got = caller.ask(method, None, "");
        for members in &listed {
            assert!(got.contains(members), "{method}: {members}\n{got}");
        }
        let parsed: Value = serde_json::from_str(&got).unwrap_or_default();
        let of_era =
            ["resultType", "ttlMs", "cacheScope"].map(|key| got.contains(&format!("\"{key}\"")));
        assert_eq!(of_era, [era == "legacy"; 3], "{method}: {parsed}");
        // In their order, apart from white space around them.
        for extra in [
            format!(r#""x-list":{}"#, items[0].0),
            items[1].1.replace("\"x-", "\"y-").replace("\": ", "\":"),
        ] {
            let got = got.replace("\": ", "\":");
            assert!(
                got.contains(&extra.replace("\": ", "\":")),
                "{method}: {extra}\n{got}"
            );
        }
    }
}

#[test]
fn lists_of_a_modern_server_lose_nothing_to_a_legacy_client() {
    lists_survive("modern");
}

#[test]
fn lists_of_a_legacy_server_lose_nothing_to_a_modern_client() {
    lists_survive("legacy");
}

/// Progress messages arrive unchanged, under the caller's token.
#[test]
fn progress_survives_but_for_its_token() {
    let said = Arc::new(Mutex::new(String::new()));
    let script = Arc::clone(&said);
    let peer = Peer::stdio(move |message| {
        let mut lines = Vec::new();
        if message["method"] == "tools/call" {
            let token = message["params"]["_meta"]["progressToken"].to_string();
            lines.push(script.lock().unwrap().replace("@TOKEN@", &token));
        }
        if message.get("id").is_some() {
            lines.push(
                small(message, &format!("[{}]", tool("go")))
                    .unwrap_or_else(|| answer(message, r#"{"content":[]}"#)),
            );
        }
        lines.into_iter().map(String::into_bytes).collect()
    });
    let gateway = Gateway::serve(&peer.child("peer", ""));
    let session = gateway.session();
    assert!(session.call("go", &json!({})).get("error").is_none());
    let tokens = [r#""p\u00e9\/1""#, "7", r#""""#, "9007199254740993"];
    let mut turn = tokens.iter().cycle();
    let turn = std::cell::RefCell::new(&mut turn);
    run(80, (raw_json(), extra_members()), |(value, members)| {
        let token = turn.borrow_mut().next().unwrap();
        let notice = |token: &str| {
            format!(
                r#"{{"jsonrpc":"2.0", "method":"notifications/progress","params":{{"x-value":{value}, "progressToken":{token} ,"progress":1e400,"total":-0.0,"message":"\u00e9\/"{members},"_meta":{{"com.example/x":{value}}}}}}}"#
            )
        };
        *said.lock().unwrap() = notice("@TOKEN@");
        let body = |meta: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"go","_meta":{{{meta}}}}}}}"#
            )
        };
        let reply = session.post(body(&format!(r#""progressToken":{token}"#)));
        let events = crate::socket::events(&reply.text());
        assert_eq!(events.len(), 2, "{}", reply.text());
        assert_eq!(events[0], notice(token));
        // The caller did not ask for progress.
        assert_eq!(
            session.post(body("")).text(),
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#
        );
    });
}

/// The answers of a server of this era, which sends `result`, to a caller of the other.
fn answers_to_the_other_era(era: &'static str, result: &str) -> Vec<Value> {
    let said = Arc::new(Mutex::new(result.to_owned()));
    let peer = peer(era, said, vec![String::new()], String::new());
    let gateway = serve(&peer, era);
    let caller = caller(&gateway, era);
    until("the server runs", || {
        caller.ask("tools/list", None, "").contains("\"t0\"")
    });
    let requests = [
        ("tools/call", "t0", r#""name":"t0""#),
        ("prompts/get", "p0", r#""name":"p0""#),
        ("resources/read", "x:0", r#""uri":"x:0""#),
    ];
    let ask = |(method, name, params)| {
        serde_json::from_str(&caller.ask(method, Some(name), params)).unwrap()
    };
    requests.map(ask).to_vec()
}

#[test]
fn a_kind_of_result_stays_in_its_era() {
    for result in [
        r#"{"resultType":"input_required","inputRequests":[]}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{}}}"#,
        r#"{"resultType":"task","taskId":"t","status":"working"}"#,
        r#"{"resultType":"vendor/later","content":[],"contents":[],"messages":[]}"#,
    ] {
        for answer in answers_to_the_other_era("modern", result) {
            assert!(
                answer["error"]["message"].is_string() && answer.get("result").is_none(),
                "{answer}"
            );
        }
    }
    let asks = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"content":[]}"#;
    for answer in answers_to_the_other_era("legacy", asks) {
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    }
}
