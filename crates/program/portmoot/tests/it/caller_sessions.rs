//! Limits of callers' own sessions at a server: the longest idle one is closed for a new one, busy
//! ones are not.

use serde_json::{Value, json};

use crate::socket::{Gateway, LEGACY, Session, call, fixture_server, until};
use crate::support::{is_alive, modern, modern_stream, signal};

fn limited(limits: &str) -> Gateway {
    let fixture = fixture_server("fixture", "", &["--era", "legacy"]);
    Gateway::serve(&format!("[server.limits]\n{limits}\n{fixture}"))
}

/// A caller with sampling, which needs a session of its own.
fn sampler(gateway: &Gateway) -> Session<'_> {
    gateway.session_as(&[], LEGACY, r#"{"sampling":{}}"#)
}

fn child(session: &Session<'_>) -> u64 {
    session.record("record")["pid"].as_u64().unwrap()
}

fn status(gateway: &Gateway) -> Value {
    gateway
        .request("GET /api/v1/servers/fixture", &[], b"")
        .json()
}

fn gone(pid: u64) {
    until("its child has ended", || !is_alive(pid));
}

#[test]
fn the_longest_idle_session_is_closed_for_a_new_one() {
    let gateway = limited("upstream_sessions_max = 2\nparticipant_upstream_sessions_max = 2");
    let [one, two, three] = [(); 3].map(|()| sampler(&gateway));
    let (first, second) = (child(&one), child(&two));
    assert_ne!(first, second);
    assert_eq!(
        status(&gateway)["sessions"],
        3,
        "two and the shared one: the bound is reached"
    );
    assert_eq!(
        (child(&one), child(&two)),
        (first, second),
        "the sessions of the others stay"
    );
    assert_eq!(child(&one), first);
    let third = child(&three);
    gone(second);
    assert!(is_alive(first) && is_alive(third));
    assert_eq!(child(&one), first);
    // The caller whose session was closed gets a new one.
    let again = child(&two);
    assert_ne!(again, second);
    gone(third);
    assert_eq!((child(&one), child(&two)), (first, again));
}

#[test]
fn busy_sessions_are_not_closed_for_new_ones() {
    let gateway = limited("upstream_sessions_max = 2\nparticipant_upstream_sessions_max = 2");
    let [one, two, three] = [(); 3].map(|()| sampler(&gateway));
    let children = [child(&one), child(&two)];
    let calls = [&one, &two].map(|session| session.send(call("7", "hang", "{}")));
    until("both are busy", || status(&gateway)["calls"] == 2);
    let refused = three.call("record", &json!({}));
    assert_eq!(
        refused.pointer("/error/data/code"),
        Some(&json!("upstream_busy")),
        "{refused}"
    );
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("too many sessions"), "{message}");
    // Callers of the shared session are not affected.
    child(&gateway.session());
    two.post(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
    until("one is idle", || status(&gateway)["calls"] == 1);
    let third = child(&three);
    gone(children[1]);
    assert!(is_alive(children[0]) && is_alive(third));
    drop(calls);
}

#[test]
fn a_lost_session_frees_its_slot() {
    let gateway = limited("upstream_sessions_max = 2\nparticipant_upstream_sessions_max = 2");
    let [one, two, three] = [(); 3].map(|()| sampler(&gateway));
    let children = [child(&one), child(&two)];
    let calls = [&one, &two].map(|session| session.send(call("7", "hang", "{}")));
    until("both are busy", || status(&gateway)["calls"] == 2);
    signal(u32::try_from(children[1]).unwrap(), "KILL");
    until("it is noticed", || status(&gateway)["sessions"] == 2);
    let third = child(&three);
    assert!(is_alive(children[0]) && is_alive(third));
    drop(calls);
}

#[test]
fn an_idle_session_ends_and_a_busy_one_does_not() {
    let gateway = limited("upstream_session_idle = \"2s\"");
    let [idle, busy, follower] = [(); 3].map(|()| sampler(&gateway));
    let children = [child(&idle), child(&busy), child(&follower)];
    let held = busy.send(call("7", "hang", "{}"));
    until("it is busy", || status(&gateway)["calls"] == 1);
    let subscribed = follower.post(
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"test://watched-resource"}}"#,
    );
    assert!(subscribed.json()["result"].is_object(), "{subscribed:?}");
    gone(children[0]);
    assert!(is_alive(children[1]), "what is called");
    assert!(is_alive(children[2]), "what is to tell of a resource");
    assert_ne!(
        child(&idle),
        children[0],
        "its caller has another when it needs one"
    );
    drop(held);
}

#[test]
fn a_modern_caller_follows_the_lists_of_its_own_session() {
    let gateway = limited("");
    let meta = || json!({ "io.modelcontextprotocol/clientCapabilities": { "sampling": {} } });
    let ask = |method: &str, mut params: Value| {
        params["_meta"] = meta();
        modern(&gateway, None, method, params).json()["result"].clone()
    };
    let call = |tool: &str| ask("tools/call", json!({ "name": tool, "arguments": {} }));
    let lists_it = || {
        let listed = ask("tools/list", json!({}));
        let tools = listed["tools"]
            .as_array()
            .unwrap_or_else(|| panic!("{listed}"));
        tools.iter().any(|tool| tool["name"] == "sometimes")
    };
    let own = call("record")["structuredContent"]["pid"].as_u64().unwrap();
    assert_ne!(own, child(&gateway.session()));
    let wanted = json!({ "notifications": { "toolsListChanged": true }, "_meta": meta() });
    let listening = modern_stream(&gateway, None, "subscriptions/listen", wanted);
    listening.next_of("notifications/subscriptions/acknowledged");
    assert!(!lists_it());
    // Its own child changes its list, and tells that to its own session alone.
    call("toggle_tool");
    listening.next_of("notifications/tools/list_changed");
    assert!(lists_it());
    assert_eq!(
        call("sometimes")["content"][0]["text"],
        "a tool that is listed at times"
    );
    let plain = gateway
        .session()
        .post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)
        .text();
    assert!(
        !plain.contains("\"sometimes\""),
        "another caller has another child"
    );
    // Without its session it sees the shared lists again.
    signal(u32::try_from(own).unwrap(), "KILL");
    listening.next_of("notifications/tools/list_changed");
    assert!(!lists_it());
}
