//! Questions of legacy servers to modern clients: asked in results, answered by retries. And what
//! attackers do with the state.

use std::sync::Mutex;

use serde_json::{Value, json};

use harness::Running;

use crate::home::Home;
use crate::peer::{Peer, answer, small, tool};
use crate::support::{Client, Gateway, fixture, modern, modern_stream, until};
use crate::ws::{people, token};

const ABLE: &str = "io.modelcontextprotocol/clientCapabilities";

pub(crate) fn able() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} })
}

/// A gateway with a legacy server on a pipe, `old`, and one over HTTP, `web`.
struct Bridge {
    gateway: Gateway,
    _web: Running,
    _home: Home,
}

impl Bridge {
    fn start() -> Bridge {
        let web = Running::fixture(&["--era", "legacy"]);
        let (home, config) = people(&[("ann", &["mcp/*"]), ("bob", &["mcp/*"])]);
        let old = fixture("old", &["--era", "legacy"]);
        // For a state of 10 MB, which the usual limit of bodies refuses before it is read.
        let limits = "[server.limits]\nbody_bytes_max = \"16MiB\"\n";
        let config = format!(
            "{config}{limits}{old}[servers.web]\nurl = \"http://{}/mcp\"\n",
            web.address()
        );
        let gateway = Gateway::start(&home, &config);
        gateway.ready("old");
        gateway.ready("web");
        Bridge {
            gateway,
            _web: web,
            _home: home,
        }
    }

    fn call(&self, who: &str, name: &str, arguments: Value, more: Value) -> Value {
        let mut params = json!({ "name": name, "arguments": arguments, "_meta": { ABLE: able() } });
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap_or_default());
        modern(&self.gateway, Some(&token(who)), "tools/call", params).json()
    }

    /// A call that is asked something: the entries of `inputRequests` and the state.
    #[track_caller]
    fn asked(&self, name: &str, arguments: Value) -> (Vec<(String, Value)>, String) {
        questions(&self.call("ann", name, arguments, json!({})))
    }
}

#[track_caller]
pub(crate) fn questions(answer: &Value) -> (Vec<(String, Value)>, String) {
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let asked = result["inputRequests"].as_object().unwrap();
    let asked = asked
        .iter()
        .map(|(key, question)| (key.clone(), question.clone()))
        .collect();
    (asked, result["requestState"].as_str().unwrap().to_owned())
}

pub(crate) fn back(key: &str, answer: Value, state: &str) -> Value {
    json!({ "inputResponses": { key: answer }, "requestState": state })
}

#[track_caller]
pub(crate) fn text(answer: &Value) -> &str {
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

/// A legacy server with the tool `go`, which asks for its client's roots and never answers by
/// itself.
fn asking() -> Peer {
    Peer::stdio(|message| {
        let line = match message["method"].as_str() {
            Some("tools/call") => {
                Some(r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#.to_owned())
            }
            _ => small(message, &format!("[{}]", tool("go"))),
        };
        line.into_iter().map(String::into_bytes).collect()
    })
}

#[test]
fn a_legacy_server_asks_a_modern_client() {
    let bridge = Bridge::start();
    for server in ["old", "web"] {
        let name = format!("{server}_test_elicitation");
        for (action, content) in [
            ("accept", json!({ "username": "ann" })),
            ("decline", json!(null)),
            ("cancel", json!(null)),
        ] {
            let arguments = json!({ "message": "Who?" });
            let (asked, state) = bridge.asked(&name, arguments.clone());
            let [(key, question)] = asked.as_slice() else {
                panic!("{asked:?}")
            };
            assert_eq!(
                (&question["method"], &question["params"]["message"]),
                (&json!("elicitation/create"), &json!("Who?"))
            );
            assert!(
                question["params"]["requestedSchema"]["properties"]["username"].is_object(),
                "{question}"
            );
            let mut given = json!({ "action": action });
            if !content.is_null() {
                given["content"] = content.clone();
            }
            let answer = bridge.call("ann", &name, arguments, back(key, given, &state));
            assert_eq!(
                text(&answer),
                format!("Elicitation completed: action={action}, content={content}"),
                "{server}"
            );
        }
        let (asked, state) = bridge.asked(
            &format!("{server}_test_sampling"),
            json!({ "prompt": "Say hello" }),
        );
        assert_eq!(asked[0].1["method"], "sampling/createMessage");
        let message = json!({ "role": "assistant", "content": { "type": "text", "text": "hello" }, "model": "m" });
        let answer = bridge.call(
            "ann",
            &format!("{server}_test_sampling"),
            json!({ "prompt": "Say hello" }),
            back(&asked[0].0, message, &state),
        );
        assert_eq!(text(&answer), "LLM response: hello");
        let (asked, state) = bridge.asked(&format!("{server}_ask_roots"), json!({}));
        let roots = json!({ "roots": [{ "uri": "file:///a" }] });
        let answer = bridge.call(
            "ann",
            &format!("{server}_ask_roots"),
            json!({}),
            back(&asked[0].0, roots, &state),
        );
        assert!(text(&answer).contains("file:///a"), "{answer}");
        let (asked, state) = bridge.asked(&format!("{server}_ask_url"), json!({}));
        let params = &asked[0].1["params"];
        assert_eq!(
            (&params["url"], params.get("elicitationId")),
            (&json!("https://example.com/visit"), None)
        );
        let answer = bridge.call(
            "ann",
            &format!("{server}_ask_url"),
            json!({}),
            back(&asked[0].0, json!({ "action": "accept" }), &state),
        );
        assert!(text(&answer).contains("action=accept"), "{answer}");
    }
}

#[test]
fn a_state_serves_its_request_and_participant_once() {
    let bridge = Bridge::start();
    let (name, arguments) = ("old_test_elicitation", json!({ "message": "Who?" }));
    let (asked, state) = bridge.asked(name, arguments.clone());
    let given = json!({ "action": "accept", "content": { "username": "ann" } });
    let with = |state: &str| back(&asked[0].0, given.clone(), state);
    let refused = |answer: Value| {
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains("requestState"),
            "{answer}"
        );
    };
    let mut tampered = state.clone();
    let last = if tampered.pop() == Some('A') {
        'B'
    } else {
        'A'
    };
    tampered.push(last);
    refused(bridge.call("ann", name, arguments.clone(), with(&tampered)));
    refused(bridge.call("ann", name, arguments.clone(), with("portmoot.")));
    refused(bridge.call(
        "ann",
        name,
        arguments.clone(),
        with("a state that no server of this era gives out"),
    ));
    refused(bridge.call(
        "ann",
        name,
        arguments.clone(),
        with(&format!("{state}{}", "A".repeat(10_000_000))),
    ));
    refused(bridge.call("bob", name, arguments.clone(), with(&state)));
    refused(bridge.call("ann", name, json!({ "message": "Other?" }), with(&state)));
    refused(bridge.call(
        "ann",
        "web_test_elicitation",
        arguments.clone(),
        with(&state),
    ));
    // An answer that is none asks again, and so does another key.
    let again = bridge.call(
        "ann",
        name,
        arguments.clone(),
        back("other", given.clone(), &state),
    );
    let (asked, newer) = questions(&again);
    refused(bridge.call("ann", name, arguments.clone(), with(&state)));
    let wrong = bridge.call(
        "ann",
        name,
        arguments.clone(),
        back(&asked[0].0, json!(7), &newer),
    );
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    let answer = bridge.call(
        "ann",
        name,
        arguments.clone(),
        back(&asked[0].0, given.clone(), &newer),
    );
    assert!(text(&answer).contains("action=accept"), "{answer}");
    refused(bridge.call("ann", name, arguments, back(&asked[0].0, given, &newer)));
}

#[test]
fn a_state_of_a_modern_server_serves_its_participant_server_and_target() {
    let (_home, _web, gateway) = with_modern();
    let call = |who: &str, name: &str, more: Value| {
        let mut params = json!({ "name": name, "arguments": {}, "_meta": { ABLE: able() } });
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap_or_default());
        modern(&gateway, Some(&token(who)), "tools/call", params).json()
    };
    // Both tools, and both servers, take each other's states.
    let name = "new_test_input_required_result_request_state";
    let (asked, state) = questions(&call("ann", name, json!({})));
    let with = |state: &str| {
        back(
            &asked[0].0,
            json!({ "action": "accept", "content": { "ok": true } }),
            state,
        )
    };
    let (_, bobs) = questions(&call("bob", name, json!({})));
    for (who, name, state) in [
        ("bob", name, state.as_str()),
        ("ann", name, bobs.as_str()),
        (
            "ann",
            "new_test_input_required_result_tampered_state",
            &state,
        ),
        (
            "ann",
            "web_test_input_required_result_request_state",
            &state,
        ),
        ("ann", name, &state[..state.len() - 1]),
        ("ann", name, state.trim_start_matches("portmoot-server.")),
    ] {
        let refused = call(who, name, with(state));
        assert_eq!(refused["error"]["code"], -32602, "{who} {name}: {refused}");
        assert!(
            refused["error"]["message"]
                .as_str()
                .unwrap()
                .contains("requestState"),
            "{refused}"
        );
    }
    assert_eq!(
        text(&call("ann", name, with(&state))),
        "Confirmed: state-ok"
    );
    assert_eq!(text(&call("bob", name, with(&bobs))), "Confirmed: state-ok");
}

#[test]
fn a_state_that_has_expired_is_refused() {
    let peer = asking();
    let (home, config) = people(&[("ann", &["mcp/*"])]);
    let limits = "[server.limits]\npause = \"300ms\"\n";
    let gateway = Gateway::start(&home, &(config + limits + &peer.child("peer", "")));
    gateway.ready("peer");
    let call = |more: Value| {
        let mut params = json!({ "name": "go", "_meta": { ABLE: able() } });
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap_or_default());
        modern(&gateway, Some(&token("ann")), "tools/call", params).json()
    };
    let (asked, state) = questions(&call(json!({})));
    let cancelled = || {
        peer.received()
            .iter()
            .any(|line| line.contains("notifications/cancelled"))
    };
    until("the call is cancelled at the server", || {
        cancelled().then_some(())
    });
    let answer = call(back(&asked[0].0, json!({ "roots": [] }), &state));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("requestState"),
        "{answer}"
    );
    assert_eq!(peer.calls("go"), 1, "nothing was called again");
}

#[test]
fn an_unanswered_question_delays_no_other_call() {
    let bridge = Bridge::start();
    for server in ["old", "web"] {
        let name = format!("{server}_test_elicitation");
        let ask = |message: &str| {
            let (asked, state) = bridge.asked(&name, json!({ "message": message }));
            assert_eq!(asked[0].1["params"]["message"], message);
            (message.to_owned(), asked[0].0.clone(), state)
        };
        let open = [ask("One?"), ask("Two?"), ask("Three?")];
        for (message, key, state) in open.iter().rev() {
            let given = json!({ "action": "accept", "content": { "username": message } });
            let answer = bridge.call(
                "ann",
                &name,
                json!({ "message": message }),
                back(key, given, state),
            );
            assert!(
                text(&answer).contains(message.as_str()),
                "{server}: {answer}"
            );
        }
    }
}

#[test]
fn unanswered_questions_take_a_callers_share_of_sessions() {
    let (home, config) = people(&[("ann", &["mcp/*"]), ("bob", &["mcp/*"])]);
    let limits = "[server.limits]\nupstream_sessions_max = 8\n";
    let gateway = Gateway::start(
        &home,
        &(config + limits + &fixture("old", &["--era", "legacy"])),
    );
    gateway.ready("old");
    let call = |who: &str| {
        let meta = json!({ ABLE: able() });
        let params = json!({ "name": "old_test_elicitation", "arguments": { "message": "?" }, "_meta": meta });
        modern(&gateway, Some(&token(who)), "tools/call", params).json()
    };
    for _ in 0..2 {
        questions(&call("ann"));
    }
    assert_eq!(call("ann")["error"]["data"]["code"], "upstream_busy");
    questions(&call("bob"));
}

#[test]
fn a_client_that_declares_nothing_is_asked_nothing() {
    let bridge = Bridge::start();
    let params = json!({ "name": "old_test_elicitation", "arguments": { "message": "Who?" } });
    let answer = modern(&bridge.gateway, Some(&token("ann")), "tools/call", params).json();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
}

#[test]
fn an_error_that_asks_for_a_url_becomes_a_question() {
    let peer = Peer::stdio(|message| {
        let line = match message["method"].as_str() {
            Some("tools/call") => format!(
                r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32042,"message":"m","data":{{"elicitations":[{{"mode":"url","url":"https://a.example","message":"Sign in","elicitationId":"e"}}]}}}}}}"#,
                message["id"]
            ),
            _ => small(message, &format!("[{}]", tool("go"))).unwrap_or_default(),
        };
        if line.is_empty() {
            Vec::new()
        } else {
            vec![line.into_bytes()]
        }
    });
    let (home, config) = people(&[("ann", &["mcp/*"])]);
    let gateway = Gateway::start(&home, &(config + &peer.child("peer", "")));
    gateway.ready("peer");
    let call = |able: Value, more: Value| {
        let mut params = json!({ "name": "go", "_meta": { ABLE: able } });
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap_or_default());
        modern(&gateway, Some(&token("ann")), "tools/call", params).json()
    };
    for more in [
        json!({}),
        json!({ "inputResponses": { "0": { "action": "accept" } } }),
    ] {
        let asked = call(able(), more);
        let question = &asked["result"]["inputRequests"]["0"];
        assert_eq!(
            question["params"],
            json!({ "mode": "url", "url": "https://a.example", "message": "Sign in" })
        );
        assert!(
            asked["result"].get("requestState").is_none(),
            "the call is simply repeated"
        );
    }
    assert!(
        peer.received()
            .iter()
            .all(|line| !line.contains("inputResponses"))
    );
    assert_eq!(
        call(json!({}), json!({}))["error"]["code"],
        -32603,
        "this client opens no URLs"
    );
}

#[test]
fn what_belongs_to_a_call_reaches_the_request_with_which_its_caller_came_back() {
    let open = Mutex::new(Value::Null);
    let peer = Peer::stdio(move |message| {
        let mut open = open.lock().unwrap();
        let lines = match message["method"].as_str() {
            Some("tools/call") => {
                *open = message.clone();
                vec![r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#.to_owned()]
            }
            None if message["id"] == "q" => {
                let token = &open["params"]["_meta"]["progressToken"];
                let progress = json!({ "progressToken": token, "progress": 1 });
                let notice = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress });
                vec![notice.to_string(), answer(&open, r#"{"content":[]}"#)]
            }
            _ => small(message, &format!("[{}]", tool("go")))
                .into_iter()
                .collect(),
        };
        lines.into_iter().map(String::into_bytes).collect()
    });
    let (home, config) = people(&[("ann", &["mcp/*"])]);
    let gateway = Gateway::start(&home, &(config + &peer.child("peer", "")));
    gateway.ready("peer");
    let call = |progress: Value, more: Value| {
        let mut params =
            json!({ "name": "go", "_meta": { ABLE: able(), "progressToken": progress } });
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap_or_default());
        modern_stream(&gateway, Some(&token("ann")), "tools/call", params)
    };
    let params = json!({ "name": "go", "_meta": { ABLE: able(), "progressToken": "first" } });
    let asked = modern(&gateway, Some(&token("ann")), "tools/call", params).json();
    let (asked, state) = questions(&asked);
    let events = call(
        json!("second"),
        back(&asked[0].0, json!({ "roots": [] }), &state),
    );
    let progress = events.next_of("notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "second", "{progress}");
    assert_eq!(events.next()["result"]["resultType"], "complete");
}

#[test]
fn progress_of_a_call_reaches_its_caller_although_it_was_away() {
    let peer = asking();
    let (home, config) = people(&[("ann", &["mcp/*"])]);
    let gateway = Gateway::start(&home, &(config + &peer.child("peer", "")));
    gateway.ready("peer");
    let params = json!({ "name": "go", "_meta": { ABLE: able(), "progressToken": "first" } });
    let asked = modern(&gateway, Some(&token("ann")), "tools/call", params).json();
    let (asked, state) = questions(&asked);

    // The server does not wait for the answer to its question.
    let received = || {
        peer.received()
            .into_iter()
            .map(|line| serde_json::from_str::<Value>(&line).unwrap())
    };
    let open = received()
        .find(|message| message["method"] == "tools/call")
        .unwrap();
    for progress in [1, 2] {
        let params = json!({ "progressToken": open["params"]["_meta"]["progressToken"], "progress": progress });
        peer.say(
            &json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }),
        );
    }
    peer.say(&json!({ "jsonrpc": "2.0", "id": open["id"], "result": { "content": [] } }));
    let refused = || received().any(|message| message["id"] == "q" && message["error"].is_object());
    until(
        "the question about the call that is over is refused",
        || refused().then_some(()),
    );

    let mut params = back(&asked[0].0, json!({ "roots": [] }), &state);
    params["name"] = json!("go");
    params["_meta"] = json!({ ABLE: able(), "progressToken": "second" });
    let events = modern_stream(&gateway, Some(&token("ann")), "tools/call", params);
    for progress in [1, 2] {
        let notice = events.next();
        assert_eq!(
            notice["params"],
            json!({ "progressToken": "second", "progress": progress })
        );
    }
    assert_eq!(events.next()["result"]["resultType"], "complete");
}

/// A gateway with a modern server on a pipe, `new`, and one over HTTP, `web`.
fn with_modern() -> (Home, Running, Gateway) {
    let web = Running::fixture(&["--era", "modern"]);
    let (home, config) = people(&[("ann", &["mcp/*"]), ("bob", &["mcp/*"])]);
    let new = fixture("new", &["--era", "modern"]);
    let gateway = Gateway::start(
        &home,
        &format!("{config}{new}[servers.web]\nurl = {:?}\n", web.url()),
    );
    gateway.ready("new");
    gateway.ready("web");
    (home, web, gateway)
}

fn legacy(gateway: &Gateway, capabilities: Value) -> Client {
    Client::open(gateway, Some(&token("ann")), "/mcp", capabilities)
}

/// Calls a tool, and answers the questions by their methods; returns the questions and the last
/// answer.
fn converse(client: &Client, name: &str, answer: impl Fn(&Value) -> Value) -> (Vec<Value>, Value) {
    let (events, mut asked) = (client.begin_call(name, json!({})), Vec::new());
    loop {
        let message = events.next();
        if message.get("method").is_none() {
            return (asked, message);
        }
        if message.get("id").is_some() {
            client.answer(&message, answer(&message));
            asked.push(message);
        }
    }
}

fn plain_answer(question: &Value) -> Value {
    match question["method"].as_str().unwrap() {
        "elicitation/create" => {
            json!({ "action": "accept", "content": { "name": "Ann", "color": "red", "ok": true } })
        }
        "sampling/createMessage" => {
            json!({ "role": "assistant", "content": { "type": "text", "text": "Paris" }, "model": "m" })
        }
        "roots/list" => json!({ "roots": [{ "uri": "file:///a" }] }),
        other => panic!("{other}"),
    }
}

#[test]
fn a_modern_server_asks_a_legacy_client() {
    let (_home, _web, gateway) = with_modern();
    let client = legacy(&gateway, able());
    for server in ["new", "web"] {
        for (tool, methods, expected) in [
            (
                "test_input_required_result_elicitation",
                &["elicitation/create"][..],
                "Hello, Ann!",
            ),
            (
                "test_input_required_result_sampling",
                &["sampling/createMessage"],
                "The model said: Paris",
            ),
            (
                "test_input_required_result_list_roots",
                &["roots/list"],
                "file:///a",
            ),
            (
                "test_input_required_result_request_state",
                &["elicitation/create"],
                "Confirmed: state-ok",
            ),
            (
                "test_input_required_result_multiple_inputs",
                &["elicitation/create", "roots/list", "sampling/createMessage"],
                "All inputs received",
            ),
            (
                "test_input_required_result_multi_round",
                &["elicitation/create", "elicitation/create"],
                "Two rounds completed",
            ),
            ("input_required_state_only", &[], "the state is back"),
            (
                "input_required_url",
                &["elicitation/create"],
                "visit: \"accept\"",
            ),
        ] {
            let (asked, end) = converse(&client, &format!("{server}_{tool}"), plain_answer);
            let mut got: Vec<&str> = asked
                .iter()
                .map(|one| one["method"].as_str().unwrap())
                .collect();
            got.sort_unstable();
            assert_eq!(got, methods, "{server} {tool}: {end}");
            let result = &end["result"];
            assert!(
                result["content"][0]["text"]
                    .as_str()
                    .is_some_and(|text| text.contains(expected)),
                "{tool}: {end}"
            );
            assert!(result.get("resultType").is_none(), "{end}");
            let ids = asked.iter().filter(|one| one["params"]["mode"] == "url");
            assert!(
                ids.clone()
                    .all(|one| one["params"]["elicitationId"].is_string()),
                "{asked:?}"
            );
        }
    }
}

#[test]
fn a_question_that_a_legacy_client_cannot_be_asked_ends_the_call() {
    let (_home, _web, gateway) = with_modern();
    let plain = legacy(&gateway, json!({ "elicitation": {} }));
    for (tool, what) in [
        (
            "web_test_input_required_result_sampling",
            "sampling/createMessage",
        ),
        ("new_input_required_url", "elicitation/create"),
    ] {
        let answer = plain.ask("tools/call", json!({ "name": tool, "arguments": {} }));
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(
            message.contains(what) && message.contains("does not support"),
            "{answer}"
        );
    }
    // The server learns what the client declared, and asks only for that.
    let (asked, _) = converse(
        &plain,
        "web_test_input_required_result_capabilities",
        plain_answer,
    );
    let methods: Vec<&Value> = asked.iter().map(|one| &one["method"]).collect();
    assert_eq!(methods, ["elicitation/create"]);
}

#[test]
fn a_legacy_client_that_refuses_a_form_cancels_it() {
    let (_home, _web, gateway) = with_modern();
    let client = legacy(&gateway, able());
    let events = client.begin_call("web_input_required_url", json!({}));
    let question = events.next();
    let refused = json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -32601, "message": "no" } });
    assert_eq!(client.post(&refused).status, 202);
    assert_eq!(
        events.next()["result"]["content"][0]["text"],
        "visit: \"cancel\""
    );
    // No answer of another kind can be made up.
    let events = client.begin_call("new_test_input_required_result_sampling", json!({}));
    let question = events.next();
    client.post(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -1, "message": "no" } }));
    let end = events.next();
    assert!(
        end["error"]["message"]
            .as_str()
            .unwrap()
            .contains("did not answer"),
        "{end}"
    );
}

#[test]
fn a_modern_server_asks_a_limited_number_of_times() {
    let (_home, _web, gateway) = with_modern();
    let client = legacy(&gateway, able());
    let (asked, end) = converse(&client, "new_test_streaming_elicitation", plain_answer);
    assert_eq!(asked.len(), 64);
    assert!(
        end["error"]["message"]
            .as_str()
            .unwrap()
            .contains("again and again"),
        "{end}"
    );
}

#[test]
fn a_call_that_is_cancelled_while_its_client_is_asked_is_over() {
    let (_home, _web, gateway) = with_modern();
    let client = legacy(&gateway, able());
    let message = client.request(
        "tools/call",
        json!({ "name": "web_test_input_required_result_elicitation", "arguments": {} }),
    );
    let events = client.begin(&message);
    let question = events.next();
    client.notify(
        "notifications/cancelled",
        json!({ "requestId": message["id"] }),
    );
    let cancelled = events.next_of("notifications/cancelled");
    assert_eq!(
        cancelled["params"]["requestId"], question["id"],
        "the question is withdrawn"
    );
    client.answer(&question, plain_answer(&question));
    assert_eq!(
        client.call("web_echo", json!({ "text": "x" }))["content"][0]["text"],
        "x",
        "the session goes on"
    );
}
