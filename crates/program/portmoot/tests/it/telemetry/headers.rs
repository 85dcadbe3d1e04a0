//! Trace contexts in the headers of HTTP, and the `tracestate` beside a context.

use serde_json::{Value, json};

use super::traces::{
    CLIENT, PARENT, SERVER, SPAN, TRACE, Traced, attribute, hexadecimal, only, traceparent,
};
use crate::http::{Connection, Reply};
use crate::support::{Client, modern_request};
use crate::ws::token;

pub(super) const OTHER: &str = "00-11111111111111111111111111111111-2222222222222222-01";

/// The params of a call with these members of `_meta`.
fn params(meta: &Value) -> Value {
    json!({ "name": "tools_echo", "arguments": {}, "_meta": meta })
}

/// Calls the tool over HTTP with these headers beside those of MCP, as a client of one era.
#[track_caller]
fn call(traced: &Traced, is_modern: bool, meta: &Value, headers: &[(&str, &str)]) {
    let params = params(meta);
    let reply: Reply = if is_modern {
        let (written, body) = modern_request(Some(&token("ann")), "tools/call", params);
        let mut all: Vec<_> = written
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect();
        all.extend(headers);
        Connection::open(traced.gateway.address()).exchange("POST", "/mcp", &all, &body)
    } else {
        let ann = Client::of(&traced.gateway, &token("ann"));
        ann.post_with(headers, &ann.request("tools/call", params))
    };
    assert!(reply.json()["result"].is_object(), "{reply:?}");
}

/// The call that the server received: `_meta`, and the headers over HTTP.
pub(super) struct Sent {
    pub(super) meta: Value,
    head: String,
}

impl Sent {
    #[track_caller]
    pub(super) fn of(traced: &Traced) -> Sent {
        let all = traced.peer.received();
        let call = all
            .iter()
            .rfind(|one| one.contains("\"tools/call\""))
            .unwrap();
        let (head, body) = call.rsplit_once("\r\n\r\n").unwrap_or(("", call));
        let mut message: Value = serde_json::from_str(body).unwrap();
        Sent {
            meta: message["params"]["_meta"].take(),
            head: head.to_owned(),
        }
    }

    /// The value of a header; empty if there is none.
    pub(super) fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }
}

#[test]
fn a_context_in_headers_is_the_parent_where_meta_has_none() {
    let headers = [
        ("traceparent", PARENT),
        ("tracestate", "a=1"),
        ("tracestate", "b=2"),
    ];
    for (client, server) in [(false, false), (true, true)] {
        let traced = Traced::with("", server, true);
        // Without a context beside it, a state says nothing.
        call(&traced, client, &json!({ "tracestate": "c=3" }), &headers);
        let sent = Sent::of(&traced);
        let spans = traced.spans();
        let (of_server, of_client) = (only(&spans, SERVER), only(&spans, CLIENT));
        assert_eq!(hexadecimal(&of_server.trace_id), TRACE);
        assert_eq!(hexadecimal(&of_server.parent_span_id), SPAN);
        assert!(of_server.links.is_empty(), "{of_server:?}");
        let context = traceparent(&of_client);
        assert_eq!(sent.meta["traceparent"], *context);
        assert_eq!(sent.meta["tracestate"], "a=1,b=2");
        // The server gets the same in both places.
        assert_eq!(sent.header("traceparent"), context);
        assert_eq!(sent.header("tracestate"), "a=1,b=2");
    }
}

#[test]
fn a_context_in_meta_goes_first_and_that_of_the_headers_is_linked() {
    let traced = Traced::with("", true, true);
    let meta = json!({ "traceparent": PARENT, "tracestate": "a=1" });
    let headers = [("traceparent", OTHER), ("tracestate", "b=2")];
    call(&traced, true, &meta, &headers);
    let sent = Sent::of(&traced);
    let span = only(&traced.spans(), SERVER);
    assert_eq!(hexadecimal(&span.trace_id), TRACE);
    assert_eq!(hexadecimal(&span.parent_span_id), SPAN);
    assert_eq!(hexadecimal(&span.links[0].span_id), "2222222222222222");
    assert_eq!(sent.meta["tracestate"], "a=1");
    assert_eq!(sent.header("tracestate"), "a=1");
}

#[test]
fn headers_that_are_no_context_are_ignored() {
    let traced = Traced::with("", false, true);
    let upper = PARENT.to_uppercase();
    for headers in [
        &[("traceparent", &*upper), ("tracestate", "a=1")][..],
        &[("traceparent", PARENT), ("traceparent", PARENT)],
        &[("tracestate", "a=1")],
    ] {
        call(&traced, false, &json!({ "tracestate": "c=3" }), headers);
        let sent = Sent::of(&traced);
        assert_ne!(sent.header("traceparent"), "");
        assert_eq!(sent.header("tracestate"), "");
        assert_eq!(sent.meta["tracestate"], Value::Null);
    }
    for span in traced.spans() {
        assert_ne!(hexadecimal(&span.trace_id), TRACE);
        assert!(span.links.is_empty(), "{span:?}");
    }
}

#[test]
fn a_context_that_is_not_recorded_goes_on_to_the_server() {
    let traced = Traced::with("", false, true);
    let unrecorded = PARENT.replace("-01", "-00");
    let headers = [("traceparent", &*unrecorded), ("tracestate", "a=1")];
    call(&traced, false, &json!({ "baggage": "user=ann" }), &headers);
    let sent = Sent::of(&traced);
    let expected = json!({ "traceparent": unrecorded, "tracestate": "a=1" });
    assert_eq!(sent.meta, expected);
    assert_eq!(sent.header("traceparent"), unrecorded);
    assert!(traced.spans().is_empty());
}

#[test]
fn a_context_of_the_headers_that_is_not_trusted_is_a_link_and_its_state_goes_nowhere() {
    let traced = Traced::with("parent = \"link\"\n", false, true);
    let headers = [("traceparent", PARENT), ("tracestate", "a=1")];
    call(&traced, false, &json!({ "tracestate": "b=2" }), &headers);
    let sent = Sent::of(&traced);
    let span = only(&traced.spans(), SERVER);
    assert_ne!(hexadecimal(&span.trace_id), TRACE);
    assert_eq!(hexadecimal(&span.links[0].span_id), SPAN);
    assert_eq!(attribute(&span, "portmoot.verdict"), "admitted");
    assert_eq!(sent.meta["tracestate"], Value::Null);
    assert_eq!(sent.header("tracestate"), "");
}

#[test]
fn without_traces_headers_of_a_context_go_nowhere() {
    let traced = Traced::with("sample = 0\n", false, true);
    let headers = [("traceparent", PARENT), ("tracestate", "a=1")];
    call(&traced, false, &json!({ "own": 1 }), &headers);
    let sent = Sent::of(&traced);
    assert_eq!(sent.meta, json!({ "own": 1 }));
    assert_eq!(sent.header("traceparent"), "");
}

#[test]
fn a_tracestate_passes_up_to_its_limits_in_meta_and_in_headers() {
    let members = |count: usize| {
        let all: Vec<_> = (0..count).map(|at| format!("k{at}=v")).collect();
        all.join(",")
    };
    let member = |key: &str, chars: usize| format!("{key}={}", "v".repeat(chars - 2));
    let three = [member("b", 128), member("c", 128), member("d", 128)].join(",");
    let full = format!("{three},{}", member("e", 125));
    assert_eq!(full.len(), 512);
    let cases = [
        (members(32), members(32)),
        (members(33), members(32)),
        (full.clone(), full),
        // A character more: the last member does not pass, or first one of more than 128.
        (format!("{three},{}", member("e", 126)), three.clone()),
        (format!("{},{three}", member("a", 129)), three),
        ("a=1,b".to_owned(), String::new()),
    ];
    let traced = Traced::with("", false, true);
    for (written, passed) in &cases {
        for in_meta in [true, false] {
            let both = [("traceparent", PARENT), ("tracestate", &**written)];
            if in_meta {
                let meta = json!({ "traceparent": PARENT, "tracestate": written });
                call(&traced, false, &meta, &[]);
            } else {
                call(&traced, false, &json!({}), &both);
            }
            let sent = Sent::of(&traced);
            assert_eq!(sent.header("tracestate"), passed);
            assert_eq!(sent.meta["tracestate"].as_str().unwrap_or(""), passed);
        }
    }
    traced.gateway.stop().expect(0);
}
