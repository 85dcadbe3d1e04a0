//! Traces: spans of calls and of waiting proposals, and the contexts that lead from one to the other.

use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};

use super::OFTEN;
use super::collector::{Collector, text};
use crate::home::Home;
use crate::http::Reply;
use crate::peer::{Peer, answer, tool};
use crate::support::{Client, Gateway, modern};
use crate::ws::{people, token};

pub(super) const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
pub(super) const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
pub(super) const SPAN: &str = "b7ad6b7169203331";

pub(super) const SERVER: i32 = 2;
pub(super) const CLIENT: i32 = 3;
pub(super) const INTERNAL: i32 = 1;

/// A server of one era, over pipes or HTTP, whose one tool is `echo`.
fn peer(is_modern: bool, over_http: bool) -> Peer {
    let script = move |message: &Value| -> Vec<Vec<u8>> {
        let said = said(message, is_modern);
        if !over_http {
            return said.into_iter().map(String::into_bytes).collect();
        }
        let reply = match said {
            Some(body) => format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            ),
            None => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned(),
        };
        vec![reply.into_bytes()]
    };
    if over_http {
        Peer::http(script)
    } else {
        Peer::stdio(script)
    }
}

/// The answer to a message, if it has one.
fn said(message: &Value, is_modern: bool) -> Option<String> {
    message.get("id")?;
    let kept = if is_modern {
        r#""resultType":"complete","ttlMs":7000,"cacheScope":"public","#
    } else {
        ""
    };
    let result = match message["method"].as_str()? {
        "server/discover" if is_modern => {
            format!(r#"{{{kept}"supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}}}}}}"#)
        }
        "initialize" if !is_modern => r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"peer","version":"1"}}"#.to_owned(),
        "tools/list" => format!(r#"{{{kept}"tools":[{}]}}"#, tool("echo")),
        "tools/call" if is_modern => r#"{"resultType":"complete","content":[]}"#.to_owned(),
        "tools/call" => r#"{"content":[]}"#.to_owned(),
        _ => {
            let id = &message["id"];
            return Some(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#
            ));
        }
    };
    Some(answer(message, &result))
}

/// The table of a server.
fn table(peer: &Peer, is_modern: bool, over_http: bool) -> String {
    let era = if is_modern { "modern" } else { "legacy" };
    if over_http {
        let url = peer.url();
        return format!("[servers.tools]\nurl = \"{url}\"\nera = \"{era}\"\n");
    }
    peer.child("tools", "tools")
        .replace("era = \"legacy\"", &format!("era = \"{era}\""))
}

/// A gateway whose spans are collected: `ann` may do everything, `scout` may only propose.
pub(super) struct Traced {
    home: Home,
    pub(super) gateway: Gateway,
    pub(super) peer: Peer,
    collector: Collector,
}

impl Traced {
    fn new(more: &str) -> Traced {
        Traced::with(more, false, false)
    }

    pub(super) fn with(more: &str, is_modern: bool, over_http: bool) -> Traced {
        let collector = Collector::new();
        let telemetry = collector.table(&format!("{OFTEN}{more}"));
        let peer = peer(is_modern, over_http);
        let (home, config) = people(&[
            ("ann", &["mcp/*", "portmoot/*"]),
            ("scout", &["mcp/proposal:*"]),
        ]);
        let config = config.replace("[server]\n", "[server]\nlegacy_sse = true\n");
        let config = config + &table(&peer, is_modern, over_http) + &telemetry;
        let gateway = Gateway::start(&home, &config);
        gateway.ready("tools");
        Traced {
            home,
            gateway,
            peer,
            collector,
        }
    }

    /// Calls the tool with these members of `_meta`, as a client of one era.
    #[track_caller]
    fn call(&self, is_modern: bool, meta: &Value) {
        let params = json!({ "name": "tools_echo", "arguments": {}, "_meta": meta });
        let answer = if is_modern {
            let reply: Reply = modern(&self.gateway, Some(&token("ann")), "tools/call", params);
            reply.json()
        } else {
            Client::of(&self.gateway, &token("ann")).ask("tools/call", params)
        };
        assert!(answer["result"].is_object(), "{answer}");
    }

    /// The params of the calls that the server has received.
    pub(super) fn received(&self) -> Vec<Value> {
        let all = self.peer.received().into_iter();
        let bodies = all.filter_map(|one| {
            let body = one.rsplit("\r\n\r\n").next().unwrap_or_default();
            serde_json::from_str::<Value>(body).ok()
        });
        let calls = bodies.filter(|one| one["method"] == "tools/call");
        calls.map(|one| one["params"].clone()).collect()
    }

    /// Stops the gateway, and returns all spans.
    #[track_caller]
    pub(super) fn spans(self) -> Vec<Span> {
        self.gateway.stop().expect(0);
        self.collector.spans()
    }
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The only span of this kind.
#[track_caller]
pub(super) fn only(spans: &[Span], kind: i32) -> Span {
    let found: Vec<_> = spans.iter().filter(|span| span.kind == kind).collect();
    let [span] = found[..] else {
        panic!("{} of kind {kind}: {spans:?}", found.len());
    };
    span.clone()
}

pub(super) fn attribute(span: &Span, name: &str) -> String {
    let found = span.attributes.iter().find(|one| one.key == name);
    found.map_or_else(String::new, |one| text(one).to_owned())
}

/// The `traceparent` that names a span.
pub(super) fn traceparent(span: &Span) -> String {
    let (trace, id) = (hexadecimal(&span.trace_id), hexadecimal(&span.span_id));
    format!("00-{trace}-{id}-01")
}

#[test]
fn a_call_is_one_trace_through_both_eras_and_transports() {
    for (client, server, over_http) in [
        (false, false, false),
        (false, true, true),
        (true, false, true),
        (true, true, false),
    ] {
        let traced = Traced::with("", server, over_http);
        traced.call(
            client,
            &json!({ "traceparent": PARENT, "tracestate": "a=1" }),
        );
        let received = traced.received().pop().unwrap();
        let spans = traced.spans();
        let (of_server, of_client) = (only(&spans, SERVER), only(&spans, CLIENT));
        assert_eq!(hexadecimal(&of_server.trace_id), TRACE);
        assert_eq!(hexadecimal(&of_server.parent_span_id), SPAN);
        assert_eq!(of_client.trace_id, of_server.trace_id);
        assert_eq!(of_client.parent_span_id, of_server.span_id);
        assert_eq!(received["_meta"]["traceparent"], traceparent(&of_client));
        assert_eq!(received["_meta"]["tracestate"], "a=1");
        assert_eq!(
            (&*of_server.name, &*of_client.name),
            ("tools/call tools_echo", "tools/call echo")
        );
        let transport = if over_http { "tcp" } else { "pipe" };
        assert_eq!(attribute(&of_client, "network.transport"), transport);
        assert_eq!(attribute(&of_client, "portmoot.server"), "tools");
        assert_eq!(attribute(&of_server, "portmoot.verdict"), "admitted");
        assert!(of_server.links.is_empty() && of_server.status.is_none());
        assert!(of_server.end_time_unix_nano >= of_client.end_time_unix_nano);
    }
}

#[test]
fn a_held_call_is_one_trace_with_the_wait_for_the_decision() {
    let traced = Traced::new("");
    let params =
        json!({ "name": "tools_echo", "arguments": {}, "_meta": { "traceparent": PARENT } });
    let call = std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            let scout = Client::of(&traced.gateway, &token("scout"));
            scout.ask("tools/call", params)
        });
        let proposal = traced.gateway.pending(&traced.home, &token("ann"));
        let id = proposal["id"].as_str().unwrap();
        let url = traced.gateway.url();
        let ann = token("ann");
        let approve = ["proposals", "approve", id, "--yes", "--no-wait"];
        let at = ["--url", &url, "--token", &ann];
        traced.home.run(&[&approve[..], &at].concat()).expect(0);
        call.join().unwrap()
    });
    assert!(call["result"].is_object(), "{call}");
    let received = traced.received().pop().unwrap();
    let spans = traced.spans();
    let (of_server, wait) = (only(&spans, SERVER), only(&spans, INTERNAL));
    let of_client = only(&spans, CLIENT);
    // A participant that may only propose chooses no trace: its own is linked.
    assert_ne!(hexadecimal(&of_server.trace_id), TRACE);
    assert!(of_server.parent_span_id.is_empty());
    assert_eq!(hexadecimal(&of_server.links[0].span_id), SPAN);
    for span in [&wait, &of_client] {
        assert_eq!(span.trace_id, of_server.trace_id);
    }
    assert_eq!(wait.parent_span_id, of_server.span_id);
    assert_eq!(of_client.parent_span_id, wait.span_id);
    assert_eq!(received["_meta"]["traceparent"], traceparent(&of_client));
    assert_eq!(wait.name, "proposal echo");
    assert_eq!(attribute(&wait, "portmoot.decision"), "approved");
    assert_eq!(attribute(&wait, "portmoot.decided_by"), "person");
    assert_eq!(attribute(&of_server, "portmoot.verdict"), "held");
}

#[test]
fn a_traceparent_that_is_malformed_is_ignored() {
    let traced = Traced::new("");
    let cases = [
        json!(PARENT.to_uppercase()),
        json!(PARENT.replace("00-0a", "01-0a")),
        json!(PARENT.replace(TRACE, &"0".repeat(32))),
        json!(PARENT.replace(SPAN, &"0".repeat(16))),
        json!(format!("{PARENT}-x")),
        json!(""),
        json!(7),
    ];
    for wrong in &cases {
        traced.call(false, &json!({ "traceparent": wrong }));
    }
    let spans = traced.spans();
    let roots = spans.iter().filter(|span| span.kind == SERVER);
    let roots: Vec<_> = roots.collect();
    assert_eq!(roots.len(), cases.len());
    for root in roots {
        assert!(
            root.parent_span_id.is_empty() && root.links.is_empty(),
            "{root:?}"
        );
        assert_ne!(hexadecimal(&root.trace_id), TRACE);
    }
}

#[test]
fn a_refusal_is_a_span_whose_error_is_the_clients() {
    let traced = Traced::new("");
    let ann = Client::of(&traced.gateway, &token("ann"));
    let answer = ann.ask("tools/call", json!({ "name": "none", "arguments": {} }));
    assert_eq!(answer["error"]["code"], -32602);
    let span = only(&traced.spans(), SERVER);
    assert_eq!(attribute(&span, "error.type"), "-32602");
    assert_eq!(attribute(&span, "rpc.response.status_code"), "-32602");
    assert_eq!(attribute(&span, "portmoot.verdict"), "refused");
    assert_eq!(span.status, None);
}

#[test]
fn baggage_goes_to_no_server_while_traces_are_on_recorded_or_not() {
    for sample in ["1", "0.000001"] {
        let traced = Traced::new(&format!("sample = {sample}\n"));
        traced.call(false, &json!({ "baggage": "user=ann", "own": 1 }));
        let received = traced.received().pop().unwrap();
        assert_eq!(received["_meta"]["baggage"], Value::Null, "{received}");
        assert_eq!(received["_meta"]["own"], 1);
    }
}

#[test]
fn without_traces_a_context_passes_as_it_came() {
    let traced = Traced::new("sample = 0\n");
    let meta = json!({ "traceparent": PARENT, "baggage": "user=ann" });
    traced.call(false, &meta);
    assert_eq!(traced.received().pop().unwrap()["_meta"], meta);
    assert!(traced.spans().is_empty());
}

#[test]
fn whose_parents_are_taken_is_configured() {
    for (parent, is_taken) in [("always", true), ("link", false)] {
        let traced = Traced::new(&format!("parent = \"{parent}\"\n"));
        traced.call(true, &json!({ "traceparent": PARENT }));
        let span = only(&traced.spans(), SERVER);
        assert_eq!(hexadecimal(&span.trace_id) == TRACE, is_taken, "{parent}");
        assert_eq!(span.links.is_empty(), is_taken, "{parent}");
    }
}
