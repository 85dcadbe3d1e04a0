//! Progress and its result: no result overtakes the progress before it, on any transport, in either
//! era.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::peer::{Peer, answer, small, tool};
use crate::socket::{Gateway, MODERN, MODERN_META, Piped, events, modern_body, modern_headers};

/// Progress notifications of each call.
const STEPS: u64 = 5;
/// Calls on each way in.
const CALLS: u64 = 100;

/// What a server writes after a message: for a call its progress and the result, in one go.
fn said(message: &Value, era: &str) -> Vec<String> {
    if message["method"] == "tools/call" {
        let token = &message["params"]["_meta"]["progressToken"];
        let step = |step: u64| {
            json!({ "jsonrpc": "2.0", "method": "notifications/progress",
                "params": { "progressToken": token, "progress": step } })
        };
        let mut all: Vec<String> = (1..=STEPS).map(|number| step(number).to_string()).collect();
        all.push(answer(message, r#"{"resultType":"complete","content":[]}"#));
        return all;
    }
    if era == "modern" {
        let result = match message["method"].as_str() {
            Some("server/discover") => format!(
                r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["{MODERN}"],"capabilities":{{"tools":{{}}}}}}"#
            ),
            Some("tools/list") => format!(
                r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{}]}}"#,
                tool("go")
            ),
            _ => return Vec::new(),
        };
        return vec![answer(message, &result)];
    }
    small(message, &format!("[{}]", tool("go")))
        .into_iter()
        .collect()
}

/// The servers of one era, on a pipe and over HTTP, with the table of each.
fn servers(era: &'static str) -> (String, [Peer; 2]) {
    let pipe = Peer::stdio(move |message| {
        said(message, era)
            .into_iter()
            .map(String::into_bytes)
            .collect()
    });
    let web = Peer::http(move |message| {
        let all = said(message, era);
        let body: String = all.iter().map(|one| format!("data: {one}\n\n")).collect();
        let head = match (all.is_empty(), message.get("id").is_some()) {
            (false, _) => "200 OK\r\ncontent-type: text/event-stream",
            (true, true) => "404 Not Found",
            (true, false) => "202 Accepted",
        };
        vec![
            format!(
                "HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )
            .into_bytes(),
        ]
    });
    let pipe_table = pipe
        .child("pipe", "pipe")
        .replace("era = \"legacy\"", &format!("era = \"{era}\""));
    let web_table = format!("[servers.web]\nurl = \"{}\"\nera = \"{era}\"\n", web.url());
    (pipe_table + &web_table, [pipe, web])
}

/// Checks the messages of one call: progress that grows up to its end, then the result, and no
/// more.
fn check(messages: &[Value], what: &str) {
    let (last, before) = messages
        .split_last()
        .unwrap_or_else(|| panic!("{what}: nothing"));
    assert!(last["result"].is_object(), "{what}: {messages:?}");
    let steps: Vec<u64> = before
        .iter()
        .filter_map(|one| one["params"]["progress"].as_u64())
        .collect();
    assert!(
        steps.is_sorted() && steps.len() == before.len(),
        "{what}: {messages:?}"
    );
    // Of what a client has not read yet, the newest is kept.
    assert_eq!(steps.last(), Some(&STEPS), "{what}: {messages:?}");
}

fn over_http(gateway: &Gateway, server: &str, what: &str) {
    let session = gateway.session();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let session = &session;
            scope.spawn(move || {
                for number in 0..CALLS / 4 {
                    let id = worker * CALLS + number;
                    let params = format!(r#""name":"{server}_go","arguments":{{}}"#);
                    let legacy = format!(
                        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{params},"_meta":{{"progressToken":{id}}}}}}}"#
                    );
                    let modern = modern_body("tools/call", &params).replace("\"_meta\":{", "\"_meta\":{\"progressToken\":1,");
                    let name = format!("{server}_go");
                    let headers = modern_headers("tools/call", Some(&name));
                    for reply in [session.post(legacy), gateway.post(&headers, modern)] {
                        let messages = events(&reply.text());
                        let messages: Vec<Value> =
                            messages.iter().map(|one| serde_json::from_str(one).unwrap()).collect();
                        check(&messages, &format!("{what}, {server}: {}", reply.text()));
                    }
                }
            });
        }
    });
}

fn on_a_pipe(config: &str, server: &str, what: &str) {
    for meta in ["", MODERN_META] {
        let mut piped = if meta.is_empty() {
            Piped::initialized(config, "2025-11-25")
        } else {
            Piped::start(config)
        };
        let meta = meta
            .strip_prefix("\"_meta\":{")
            .map_or("}".to_owned(), |rest| format!(",{rest}"));
        for id in 1..=CALLS {
            piped.send(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{server}_go","arguments":{{}},"_meta":{{"progressToken":{id}{meta}}}}}"#
            ));
        }
        let (mut of_calls, mut ended) = (BTreeMap::<u64, Vec<Value>>::new(), BTreeSet::new());
        while ended.len() < usize::try_from(CALLS).unwrap() {
            let message = piped.json();
            let token = message["params"]["progressToken"].as_u64();
            let Some(id) = token.or_else(|| message["id"].as_u64()) else {
                continue;
            };
            assert!(
                !ended.contains(&id),
                "{what}, {server}: after the result: {message}"
            );
            if token.is_none() {
                ended.insert(id);
            }
            of_calls.entry(id).or_default().push(message);
        }
        of_calls.values().for_each(|messages| check(messages, what));
    }
}

#[test]
fn no_result_overtakes_its_progress() {
    for era in ["legacy", "modern"] {
        let (config, _peers) = servers(era);
        let gateway = Gateway::serve(&config);
        ["pipe", "web"]
            .iter()
            .for_each(|server| gateway.ready(server));
        for server in ["pipe", "web"] {
            over_http(&gateway, server, era);
            on_a_pipe(&config, server, era);
        }
    }
}
