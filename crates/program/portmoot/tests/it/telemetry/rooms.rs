//! Traces of what is asked for in a room: by envelopes to servers, and by proposals.

use serde_json::{Value, json};

use super::traces::{
    CLIENT, INTERNAL, PARENT, SERVER, SPAN, TRACE, Traced, attribute, hexadecimal, only,
};
use crate::ws::Socket;

const CALL: &str = "mcp/request:tools/call:echo";

/// A call of the tool, whose params name [`PARENT`].
fn call() -> Value {
    let meta = json!({ "traceparent": PARENT, "tracestate": "a=1", "baggage": "user=ann" });
    json!({ "name": "echo", "arguments": {}, "_meta": meta })
}

/// The payload of a request with these params.
fn request(params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params })
}

#[test]
fn a_request_in_a_room_has_the_spans_of_a_call() {
    for (is_modern, over_http) in [(false, false), (true, true)] {
        let traced = Traced::with("", is_modern, over_http);
        let mut ann = Socket::enter(&traced.gateway, "ann", "");
        ann.send(CALL, "r1", &["tools"], json!({}), &request(&call()));
        ann.receive_until(|one| one["kind"] == "mcp/response:tools/call:echo");
        let sent = traced.received().remove(0)["_meta"].clone();
        let spans = traced.spans();
        let (server, client) = (only(&spans, SERVER), only(&spans, CLIENT));
        assert_eq!(server.name, "tools/call echo");
        assert_eq!(hexadecimal(&server.trace_id), TRACE);
        assert_eq!(hexadecimal(&server.parent_span_id), SPAN);
        assert_eq!(attribute(&server, "portmoot.verdict"), "admitted");
        assert_eq!(attribute(&server, "jsonrpc.request.id"), "7");
        assert_eq!(client.parent_span_id, server.span_id);
        let named = format!("00-{TRACE}-{}-01", hexadecimal(&client.span_id));
        assert_eq!(sent["traceparent"], named, "{sent}");
        assert_eq!(
            (&sent["tracestate"], &sent["baggage"]),
            (&json!("a=1"), &Value::Null)
        );
    }
}

#[test]
fn a_refused_request_in_a_room_has_a_span_in_no_trace_of_a_stranger() {
    let traced = Traced::with("", false, false);
    let mut scout = Socket::enter(&traced.gateway, "scout", "");
    scout.send(CALL, "r1", &["tools"], json!({}), &request(&call()));
    scout.receive_until(|one| one["kind"] == "system/error");
    let span = only(&traced.spans(), SERVER);
    assert_ne!(hexadecimal(&span.trace_id), TRACE);
    assert_eq!(hexadecimal(&span.links[0].span_id), SPAN);
    assert_eq!(attribute(&span, "portmoot.verdict"), "refused");
}

#[test]
fn a_proposal_in_a_room_is_linked_and_its_fulfilment_is_its_child() {
    let traced = Traced::with("", false, false);
    let [mut scout, mut ann] =
        ["scout", "ann"].map(|name| Socket::enter(&traced.gateway, name, ""));
    let proposed = json!({ "method": "tools/call", "params": call() });
    scout.send(
        "mcp/proposal:tools/call:echo",
        "p1",
        &["tools"],
        json!({}),
        &proposed,
    );
    ann.receive_until(|one| one["payload"]["state"] == "pending");
    let about = json!({ "correlation_id": "p1" });
    // The person's own trace is no part of what runs.
    let params = json!({ "name": "echo", "arguments": {} });
    ann.send(CALL, "f1", &["tools"], about, &request(&params));
    ann.receive_until(|one| one["kind"] == "mcp/response:tools/call:echo");
    let spans = traced.spans();
    let proposal = only(&spans, INTERNAL);
    assert_eq!(proposal.name, "proposal echo");
    assert_ne!(hexadecimal(&proposal.trace_id), TRACE);
    assert!(proposal.parent_span_id.is_empty());
    assert_eq!(hexadecimal(&proposal.links[0].trace_id), TRACE);
    assert_eq!(hexadecimal(&proposal.links[0].span_id), SPAN);
    assert_eq!(attribute(&proposal, "portmoot.decision"), "approved");
    let client = only(&spans, CLIENT);
    assert_eq!(client.parent_span_id, proposal.span_id);
    assert_eq!(client.trace_id, proposal.trace_id);
}
