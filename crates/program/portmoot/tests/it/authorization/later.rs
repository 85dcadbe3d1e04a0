//! Consequences of a request that come later than it: its own token's scope counts, whatever token
//! its link has served by then.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use serde_json::{Value, json};

use super::provider::Provider;
use crate::home::Home;
use crate::http::Reply;
use crate::peer::{Peer, answer, small, tool};
use crate::support::{Gateway, modern, modern_stream, until};

const SCOUT: &str = "the-token-of-scout-is-secret";
const SCOPES: &str = "[scopes.small]\ncapabilities = [\"mcp/request:tools/call:a_echo\", \"mcp/request:tools/call:p_wait\", \
    \"chat\"]\n[scopes.large]\ncapabilities = [\"mcp/*\", \"chat\", \"secret\", \"portmoot/*\"]\n";

/// A gateway with a participant that may do all, by tokens of two scopes that its modern link
/// serves in turn.
struct Stage {
    _provider: Provider,
    _home: Home,
    gateway: Gateway,
    small: String,
    large: String,
}

impl Stage {
    fn start(servers: &str) -> Self {
        let provider = Provider::start(600);
        let home = Home::new().env("SCOUT", SCOUT);
        let scout =
            "[participants.scout]\ntoken_env = \"SCOUT\"\ncapabilities = [\"mcp/proposal:*\"]\n";
        let built_in = "[topics.main]\nlist_wait = \"60s\"\nbuiltin = [\"proposals\", \"room\", \"proxy\", \"search_tools\"]\n";
        let config = super::config(&provider, &format!("{SCOPES}{scout}"))
            .replace("[topics.main]\n", built_in)
            .replace(
                "capabilities = [\"mcp/*\", \"chat\", \"portmoot/*\"]\n[profiles.machines]",
                "capabilities = [\"mcp/*\", \"chat\", \"secret\", \"portmoot/*\"]\n[profiles.machines]",
            );
        let gateway = Gateway::start(&home, &format!("{config}{servers}"));
        gateway.ready("a");
        let token = |scope: &str| provider.forged(json!({}), json!({ "scope": scope }), "a");
        let (small, large) = (token("small"), token("large"));
        Self {
            _provider: provider,
            _home: home,
            gateway,
            small,
            large,
        }
    }

    fn call(&self, token: &str, tool: &str, arguments: Value) -> Value {
        let reply = modern(
            &self.gateway,
            Some(token),
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        );
        let answer = reply.json();
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Requests with the large token, over and over, while something is done.
    fn beside_the_other<T>(&self, act: impl FnOnce() -> T) -> T {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        modern(&self.gateway, Some(&self.large), "tools/list", json!({}));
                    }
                });
            }
            let acted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
            done.store(true, Ordering::Relaxed);
            acted.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[test]
fn a_narrow_token_approves_and_sees_by_tools_what_it_is_good_for_alone() {
    let stage = Stage::start("");
    let held = |tool: &str| {
        let call = json!({ "name": tool, "arguments": {"a": 1, "b": 2, "text": "x"} });
        modern_stream(&stage.gateway, Some(SCOUT), "tools/call", call)
    };
    let (_one, _two) = (held("a_add"), held("a_echo"));
    let pending = || -> Vec<Value> {
        let listed = stage.call(&stage.large, "list_proposals", json!({}));
        listed["structuredContent"]["proposals"]
            .as_array()
            .unwrap()
            .clone()
    };
    let all = until("two wait", || Some(pending()).filter(|all| all.len() == 2));
    let of = |tool: &str| {
        all.iter()
            .find(|one| one["target"] == tool)
            .unwrap()
            .clone()
    };
    let (beyond, within) = (of("add"), of("echo"));
    let decision = |one: &Value| json!({ "id": one["id"], "digest": one["digest"] });
    stage.beside_the_other(|| {
        for _ in 0..40 {
            let refused = stage.call(&stage.small, "approve_proposal", decision(&beyond));
            assert!(
                text(&refused).contains("there is no such proposal"),
                "{refused}"
            );
            let rejected = stage.call(
                &stage.small,
                "reject_proposal",
                json!({ "id": beyond["id"] }),
            );
            assert!(
                text(&rejected).contains("there is no such proposal"),
                "{rejected}"
            );
            let shown = stage.call(&stage.small, "show_proposal", json!({ "id": beyond["id"] }));
            assert!(
                text(&shown).contains("there is no such proposal"),
                "{shown}"
            );
            let listed = stage.call(&stage.small, "list_proposals", json!({}));
            let listed = listed["structuredContent"]["proposals"]
                .as_array()
                .unwrap()
                .clone();
            assert!(
                listed.iter().all(|one| one["id"] == within["id"]),
                "{listed:?}"
            );
        }
    });
    let approved = stage.call(&stage.small, "approve_proposal", decision(&within));
    assert_eq!(approved["isError"], false, "{approved}");
    let approved = stage.call(&stage.large, "approve_proposal", decision(&beyond));
    assert_eq!(approved["isError"], false, "{approved}");
}

#[test]
fn a_narrow_token_sends_messages_of_its_kinds_alone() {
    let stage = Stage::start("");
    let say = |kind: &str| {
        stage.call(
            &stage.small,
            "say",
            json!({ "kind": kind, "payload": {"text": "x"} }),
        )
    };
    stage.beside_the_other(|| {
        for _ in 0..40 {
            let refused = say("secret");
            assert_eq!(refused["isError"], true, "{refused}");
        }
        assert_eq!(say("chat")["isError"], false);
    });
    assert_eq!(
        stage.call(&stage.large, "say", json!({ "kind": "secret" }))["isError"],
        false
    );
}

#[test]
fn operations_of_a_batch_are_judged_by_the_token_of_the_batch() {
    // The server answers the first operation after the large token was served.
    let waiting = Mutex::new(None);
    let peer = Peer::stdio(move |message| {
        let done =
            |message: &Value| answer(message, r#"{"content":[{"type":"text","text":"done"}]}"#);
        let said = match (
            message["method"].as_str(),
            message["params"]["name"].as_str(),
        ) {
            (Some("tools/call"), Some("wait")) => {
                *waiting.lock().unwrap() = Some(message.clone());
                Vec::new()
            }
            (Some("tools/call"), _) => {
                let before = waiting.lock().unwrap().take();
                [Some(message), before.as_ref()]
                    .into_iter()
                    .flatten()
                    .map(done)
                    .collect()
            }
            _ => small(message, &format!("[{},{}]", tool("wait"), tool("go")))
                .into_iter()
                .collect(),
        };
        said.into_iter().map(String::into_bytes).collect()
    });
    let stage = Stage::start(&peer.child("p", "p"));
    stage.gateway.ready("p");
    let call = |tool: &str| json!({ "action": "call", "type": "tool", "path": tool, "args": {"a": 1, "b": 2} });
    let list = json!({ "action": "list", "type": "tool" });
    let operations =
        json!({ "action": "batch", "operations": [call("p_wait"), call("a_add"), list] });
    let result = std::thread::scope(|scope| {
        let batch = scope.spawn(|| stage.call(&stage.small, "proxy", operations));
        until("the first is under way", || {
            (peer.calls("wait") == 1).then_some(())
        });
        assert_eq!(
            stage.call(&stage.large, "p_go", json!({}))["isError"],
            Value::Null
        );
        batch.join().unwrap()
    });
    let content = result["content"].as_array().unwrap();
    assert_eq!(
        (content[0]["text"].as_str(), content[1]["text"].as_str()),
        (Some("done"), Some("Unknown tool: 'a_add'"))
    );
    assert!(!result.to_string().contains("p_go"), "{result}");
    assert_eq!(
        stage.call(&stage.large, "a_add", json!({ "a": 1, "b": 2 }))["structuredContent"],
        json!({ "sum": 3 })
    );
}

#[test]
fn a_list_that_waits_for_a_server_is_the_one_of_its_own_token() {
    let (start, started) = mpsc::channel::<()>();
    let started = Mutex::new(started);
    let peer = Peer::stdio(move |message| {
        if message["method"] == "initialize" {
            let _ = started.lock().unwrap().recv();
        }
        small(message, &format!("[{},{}]", tool("wait"), tool("go")))
            .map(String::into_bytes)
            .into_iter()
            .collect()
    });
    let stage = Stage::start(&peer.child("p", "p"));
    let served = || -> usize {
        let metrics = stage.gateway.get("/metrics", Some(&stage.large)).body;
        let line = metrics
            .lines()
            .find(|line| line.contains("admitted") && line.contains("main"));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
            .unwrap_or_default()
    };
    let list = |token: &str| modern(&stage.gateway, Some(token), "tools/list", json!({}));
    let names = |reply: Reply| -> Vec<String> {
        let listed = reply.json();
        let tools = listed["result"]["tools"]
            .as_array()
            .unwrap_or_else(|| panic!("{listed}"));
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    std::thread::scope(|scope| {
        let before = served();
        let of_small = scope.spawn(|| names(list(&stage.small)));
        until("the first waits", || (served() > before).then_some(()));
        let of_large = scope.spawn(|| names(list(&stage.large)));
        until("the second waits", || (served() > before + 1).then_some(()));
        start.send(()).unwrap();
        let (of_small, of_large) = (of_small.join().unwrap(), of_large.join().unwrap());
        assert!(
            of_large.contains(&"a_add".to_owned()) && of_large.contains(&"p_go".to_owned()),
            "{of_large:?}"
        );
        assert!(
            of_small.contains(&"a_echo".to_owned()) && of_small.contains(&"p_wait".to_owned()),
            "{of_small:?}"
        );
        assert!(!of_small.contains(&"p_go".to_owned()), "{of_small:?}");
    });
}
