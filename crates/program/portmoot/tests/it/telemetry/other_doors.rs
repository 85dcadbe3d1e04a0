//! Trace contexts in the headers of what is more than a POST of one message: batches, HTTP+SSE,
//! WebSockets, gRPC, and calls over the REST API.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use harness::{grpc_client, proto_client};
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};

use super::headers::{OTHER, Sent};
use super::traces::{PARENT, SERVER, SPAN, TRACE, Traced, hexadecimal, only};
use crate::http::{Connection, TIMEOUT};
use crate::support::{Client, until};
use crate::ws::token;

/// The ids in [`OTHER`].
const OTHER_TRACE: &str = "11111111111111111111111111111111";
const OTHER_SPAN: &str = "2222222222222222";

/// Asserts that a call is a child of the context in its headers.
#[track_caller]
fn is_child_of_headers(span: &Span) {
    assert_eq!(hexadecimal(&span.trace_id), TRACE);
    assert_eq!(hexadecimal(&span.parent_span_id), SPAN);
    assert!(span.links.is_empty(), "{span:?}");
}

/// Asserts that a call is a child of the context that it has itself, with a link to that in the
/// headers.
#[track_caller]
fn is_child_of_its_own(span: &Span) {
    assert_eq!(hexadecimal(&span.trace_id), OTHER_TRACE);
    assert_eq!(hexadecimal(&span.parent_span_id), OTHER_SPAN);
    assert_eq!(hexadecimal(&span.links[0].span_id), SPAN);
}

/// The request of a call with these members of `_meta`.
fn request(id: u64, meta: &Value) -> Value {
    let params = json!({ "name": "tools_echo", "arguments": {}, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

#[test]
fn headers_of_a_batch_are_the_context_of_each_request_without_one() {
    let traced = Traced::with("", false, true);
    let ann = Client::of_revision(&traced.gateway, &token("ann"), "2025-03-26");
    let own = json!({ "traceparent": OTHER });
    let batch = json!([request(11, &json!({})), request(12, &own)]);
    let headers = [("traceparent", PARENT), ("tracestate", "a=1")];
    let reply = ann.post_with(&headers, &batch);
    assert_eq!(reply.status, 200, "{reply:?}");
    let spans = traced.spans();
    is_child_of_headers(in_trace(&spans, TRACE));
    is_child_of_its_own(in_trace(&spans, OTHER_TRACE));
}

/// The call in this trace.
#[track_caller]
fn in_trace<'s>(spans: &'s [Span], trace: &str) -> &'s Span {
    let mut calls = spans.iter().filter(|span| span.kind == SERVER);
    let found = calls.find(|span| hexadecimal(&span.trace_id) == trace);
    found.unwrap_or_else(|| panic!("none in {trace}: {spans:?}"))
}

#[test]
fn headers_of_a_message_over_http_and_sse_are_its_context() {
    let traced = Traced::with("", false, true);
    let address = traced.gateway.address().to_owned();
    let bearer = format!("Bearer {}", token("ann"));
    let (_events, place) = open_events(&address, &bearer);
    let post = |more: &[(&str, &str)], message: &Value| {
        let mut headers = vec![
            ("authorization", &*bearer),
            ("content-type", "application/json"),
        ];
        headers.extend(more);
        let reply =
            Connection::open(&address).exchange("POST", &place, &headers, &message.to_string());
        assert_eq!(reply.status, 202, "{reply:?}");
    };
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": info });
    post(
        &[],
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }),
    );
    let headers = [("traceparent", PARENT), ("tracestate", "a=1")];
    post(&headers, &request(2, &json!({})));
    until("the call", || {
        let all = traced.peer.received();
        all.iter()
            .any(|one| one.contains("\"tools/call\""))
            .then_some(())
    });
    assert_eq!(Sent::of(&traced).meta["tracestate"], "a=1");
    is_child_of_headers(&only(&traced.spans(), SERVER));
}

/// Opens the stream of events of HTTP+SSE; returns it with the path for messages, which comes first.
fn open_events(address: &str, bearer: &str) -> (BufReader<TcpStream>, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let head = format!(
        "GET /sse HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nauthorization: {bearer}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut events = BufReader::new(stream);
    loop {
        let mut line = String::new();
        assert_ne!(events.read_line(&mut line).unwrap(), 0, "no endpoint");
        if let Some(place) = line.strip_prefix("data: ") {
            return (events, place.trim().to_owned());
        }
    }
}

#[test]
fn headers_of_an_upgrade_are_the_context_of_each_message_without_one() {
    let own = json!({ "traceparent": OTHER }).to_string();
    let (none, its_own) = (&[][..], &["--metadata", &*own][..]);
    for metadata in [none, its_own] {
        let traced = Traced::with("", false, true);
        let url = format!("ws://{}/proto", traced.gateway.address());
        let ann = token("ann");
        let call = ["--plain", "tools_echo", "{}", "--ws", &url, "--token", &ann];
        let headers = ["--traceparent", PARENT, "--tracestate", "a=1"];
        let report = proto_client(&[&call[..], &headers, metadata].concat());
        let sent = Sent::of(&traced);
        let span = only(&traced.spans(), SERVER);
        if metadata.is_empty() {
            is_child_of_headers(&span);
            assert_eq!(sent.header("tracestate"), "a=1", "{report}");
        } else {
            is_child_of_its_own(&span);
            assert_eq!(sent.header("tracestate"), "", "{report}");
        }
    }
}

#[test]
fn the_metadata_of_a_call_over_grpc_is_its_context() {
    let traced = Traced::with("", false, true);
    let ann = token("ann");
    let address = traced.gateway.address().to_owned();
    let call = [&*address, "", "--token", &ann, "--call", "tools_echo", "x"];
    let metadata = ["--traceparent", PARENT, "--tracestate", "a=1"];
    let report = grpc_client(&[&call[..], &metadata].concat());
    let sent = Sent::of(&traced);
    is_child_of_headers(&only(&traced.spans(), SERVER));
    assert_eq!(sent.header("tracestate"), "a=1", "{report}");
}

#[test]
fn headers_of_a_call_over_the_api_are_its_context() {
    let traced = Traced::with("", false, true);
    let bearer = format!("Bearer {}", token("ann"));
    let headers = [
        ("authorization", &*bearer),
        ("content-type", "application/json"),
        ("traceparent", PARENT),
        ("tracestate", "a=1"),
    ];
    let path = "/api/v1/tools/tools_echo/call";
    let mut connection = Connection::open(traced.gateway.address());
    let reply = connection.exchange("POST", path, &headers, "{}");
    assert_eq!(reply.status, 200, "{reply:?}");
    let sent = Sent::of(&traced);
    is_child_of_headers(&only(&traced.spans(), SERVER));
    assert_eq!(sent.header("tracestate"), "a=1");
}
