//! Agreement of kind and payload, required before an addressee acts on an envelope.

use bytes::Bytes;
use model::KindRef;

use crate::mcpx::check::{Act, EnvelopeCall, Mismatch, answers, strict};
use crate::mcpx::{Envelope, Head, kind_of};
use crate::rpc::MessageKind;

fn check(kind: &str, payload: &str) -> Result<Act, Mismatch> {
    strict(kind, Bytes::copy_from_slice(payload.as_bytes()))
}

/// A request with these params, under this kind.
fn request(kind: &str, method: &str, params: &str) -> Result<EnvelopeCall, String> {
    let payload = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    match check(kind, &payload) {
        Ok(Act::Request(call)) => Ok(call),
        Ok(other) => panic!("{other:?}"),
        Err(why) => Err(why.to_string()),
    }
}

const CALL: &str = "mcp/request:tools/call";

#[test]
fn kinds_agree_with_their_payloads() {
    let uri = r#"{"uri":"file:///a:b"}"#;
    let prompt = r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"x","value":"y"}}"#;
    let template =
        r#"{"ref":{"type":"ref/resource","uri":"a:{b}"},"argument":{"name":"x","value":"y"}}"#;
    for (kind, method, params, expect) in [
        (
            "tools/call:read_file",
            "tools/call",
            r#"{"name":"read_file"}"#,
            Ok(Some("read_file")),
        ),
        (
            "tools/call",
            "tools/call",
            r#"{"name":"read_file"}"#,
            Ok(Some("read_file")),
        ),
        (
            "tools/call:a:b",
            "tools/call",
            r#"{"name":"a:b"}"#,
            Ok(Some("a:b")),
        ),
        (
            "prompts/get:p",
            "prompts/get",
            r#"{"name":"p"}"#,
            Ok(Some("p")),
        ),
        (
            "resources/read:file:///a:b",
            "resources/read",
            uri,
            Ok(Some("file:///a:b")),
        ),
        (
            "resources/subscribe:file:///a:b",
            "resources/subscribe",
            uri,
            Ok(Some("file:///a:b")),
        ),
        (
            "resources/unsubscribe:file:///a:b",
            "resources/unsubscribe",
            uri,
            Ok(Some("file:///a:b")),
        ),
        (
            "completion/complete:p",
            "completion/complete",
            prompt,
            Ok(Some("p")),
        ),
        (
            "completion/complete:a:{b}",
            "completion/complete",
            template,
            Ok(Some("a:{b}")),
        ),
        ("tools/list", "tools/list", "{}", Ok(None)),
        ("vendor/x", "vendor/x", r#"{"name":"y"}"#, Ok(None)),
        (
            "tools/call:safe_tool",
            "tools/call",
            r#"{"name":"dangerous_tool"}"#,
            Err("the kind says `safe_tool`, the payload names `dangerous_tool`"),
        ),
        (
            "tools/call:safe",
            "tools/call",
            r#"{"name":"Safe"}"#,
            Err("the kind says `safe`, the payload names `Safe`"),
        ),
        (
            "tools/list",
            "tools/call",
            r#"{"name":"x"}"#,
            Err("the kind says `tools/list`, the payload's method is `tools/call`"),
        ),
        (
            "tools/list:x",
            "tools/list",
            "{}",
            Err("the kind says `x`, but the payload names nothing"),
        ),
        (
            "vendor/x:y",
            "vendor/x",
            r#"{"name":"y"}"#,
            Err("the kind says `y`, but the payload names nothing"),
        ),
        (
            "resources/read:file:///a",
            "resources/read",
            uri,
            Err("the kind says `file:///a`, the payload names `file:///a:b`"),
        ),
        (
            "tools/call:x",
            "tools/call",
            "{}",
            Err("`params.name` must be a string"),
        ),
        (
            "tools/call:x",
            "tools/call",
            r#"{"name":["x"]}"#,
            Err("`params.name` must be a string"),
        ),
        (
            "tools/call:x",
            "tools/call",
            "[]",
            Err("`params` must be an object"),
        ),
        (
            "tools/call:x",
            "tools/call",
            "7",
            Err("`params` must be an object"),
        ),
        (
            "tools/call:x",
            "tools/call",
            r#"{"name":"x","na\u006de":"y"}"#,
            Err("the member \"name\" occurs twice"),
        ),
        (
            "tools/call:x",
            "tools/call",
            r#"{"name":"x","arguments":{"a":[{"b":1,"b":2}]}}"#,
            Err("the member \"b\" occurs twice"),
        ),
        (
            "tools/call:x",
            "tools/call",
            r#"{"name":"x","Name":"y"}"#,
            Err("the member \"Name\" could be taken for `name`"),
        ),
        (
            "tools/call:x",
            "tools/call",
            "{\"name\":\"x\",\"argument\u{17f}\":{}}",
            Err("the member \"argumentſ\" could be taken for `arguments`"),
        ),
        (
            "tools/call:",
            "tools/call",
            "{}",
            Err("the part after the last colon is empty"),
        ),
        (
            "*",
            "tools/call",
            "{}",
            Err("a kind names one kind of message: `*` belongs in a capability"),
        ),
    ] {
        let read = request(&format!("mcp/request:{kind}"), method, params);
        let read = read
            .as_ref()
            .map(EnvelopeCall::target)
            .map_err(String::as_str);
        assert_eq!(read, expect, "{kind} {params}");
    }
}

#[test]
fn only_a_request_with_a_method_is_a_request() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#;
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#;
    let both =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"},"result":{}}"#;
    let bare = r#"{"method":"tools/call","params":{"name":"x"}}"#;
    for (head, payload, fine) in [
        ("mcp/request", call, true),
        ("mcp/request", result, false),
        ("mcp/request", error, false),
        ("mcp/request", both, false),
        ("mcp/request", bare, false),
        ("mcp/proposal", bare, true),
        ("mcp/proposal", call, true),
        ("mcp/proposal", both, false),
        ("mcp/proposal", result, false),
        (
            "mcp/proposal",
            r#"{"jsonrpc":"1.0","method":"tools/call","params":{"name":"x"}}"#,
            false,
        ),
        (
            "mcp/proposal",
            r#"{"method":"tools/call","params":{"name":"y"}}"#,
            false,
        ),
        (
            "mcp/proposal",
            r#"{"method":"tools/call","METHOD":"x","params":{"name":"x"}}"#,
            false,
        ),
        (
            "mcp/proposal",
            r#"{"method":"tools/call","params":{"name":"x","arguments":{"a":1,"a":2}}}"#,
            false,
        ),
        ("mcp/proposal", "{}", false),
        ("mcp/response", result, true),
        ("mcp/response", error, true),
        ("mcp/response", call, false),
        (
            "mcp/response",
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            false,
        ),
        ("mcp/response", r#"{"jsonrpc":"2.0","id":1}"#, false),
        ("mcp/reject", "{}", true),
        ("chat", "{}", true),
    ] {
        let kind = if head == "chat" {
            head.to_owned()
        } else {
            format!("{head}:tools/call:x")
        };
        let act = check(&kind, payload);
        assert_eq!(act.is_ok(), fine, "{kind} {payload}");
        let Ok(act) = act else { continue };
        let found = match act {
            Act::Request(_) => "mcp/request",
            Act::Proposal(_) => "mcp/proposal",
            Act::Answer(_) => "mcp/response",
            Act::Other => head,
        };
        assert_eq!(found, head);
    }
}

#[test]
fn a_proposal_becomes_a_call_with_the_params_as_written() {
    let Ok(Act::Proposal(call)) = check(
        "mcp/proposal:tools/call:x",
        r#"{ "x":1, "params" : {"arguments":{"n":1e400, "t":"\u00e9"},"name":"x"},"method":"tools\/call","id":{} }"#,
    ) else {
        panic!("a proposal")
    };
    assert_eq!((call.method(), call.target()), ("tools/call", Some("x")));
    assert_eq!(
        call.params(),
        Some(&br#"{"arguments":{"n":1e400, "t":"\u00e9"},"name":"x"}"#[..])
    );
    assert_eq!(
        call.kind(Head::Request).as_deref(),
        Ok("mcp/request:tools/call:x")
    );
    let act = check(
        "mcp/proposal:notifications/x",
        r#"{"method":"notifications/x"}"#,
    );
    assert!(matches!(act, Ok(Act::Proposal(call)) if call.is_notification()));
}

#[test]
fn responses_fit_their_requests() {
    for (response, request, fits) in [
        (
            "mcp/response:tools/call:x",
            "mcp/request:tools/call:x",
            true,
        ),
        ("mcp/response:tools/call", "mcp/request:tools/call:x", true),
        ("mcp/response:tools/call:x", "mcp/request:tools/call", true),
        (
            "mcp/response:tools/call:y",
            "mcp/request:tools/call:x",
            false,
        ),
        ("mcp/response:tools/list", "mcp/request:tools/call:x", false),
        (
            "mcp/response:tools/call:x",
            "mcp/proposal:tools/call:x",
            false,
        ),
        (
            "mcp/request:tools/call:x",
            "mcp/request:tools/call:x",
            false,
        ),
        ("chat", "mcp/request:tools/call:x", false),
    ] {
        let kind = |text| KindRef::parse(text).unwrap();
        assert_eq!(
            answers(kind(response), kind(request)),
            fits,
            "{response} {request}"
        );
    }
}

#[test]
fn kinds_are_made_of_their_parts() {
    for (head, method, context, expect) in [
        (
            Head::Request,
            "tools/call",
            Some("a:b"),
            Some("mcp/request:tools/call:a:b"),
        ),
        (
            Head::Response,
            "tools/list",
            None,
            Some("mcp/response:tools/list"),
        ),
        (
            Head::Proposal,
            "prompts/get",
            Some("p"),
            Some("mcp/proposal:prompts/get:p"),
        ),
        (Head::Request, "a:b", None, None),
        (Head::Request, "a*", None, None),
        (Head::Request, "", None, None),
        (Head::Request, "a", Some(""), None),
    ] {
        assert_eq!(kind_of(head, method, context).ok().as_deref(), expect);
    }
}

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../../../tests-data/mcpx/", $name, ".json"))
    };
}

#[test]
fn every_example_agrees_with_itself() {
    for (text, shape, target) in [
        (
            example!("3.1.1-request"),
            MessageKind::Request,
            Some("dangerous_operation"),
        ),
        (example!("3.1.2-response"), MessageKind::Result, None),
        (
            example!("3.2-proposal"),
            MessageKind::Request,
            Some("dangerous_operation"),
        ),
        (
            example!("3.2.1-fulfilment"),
            MessageKind::Request,
            Some("dangerous_operation"),
        ),
        (example!("3.2.1-outcome"), MessageKind::Result, None),
        (example!("decision-002"), MessageKind::Result, None),
    ] {
        let envelope = Envelope::read(Bytes::from_static(text.as_bytes())).unwrap();
        match strict(envelope.kind(), envelope.payload_bytes()).unwrap() {
            Act::Request(call) | Act::Proposal(call) => {
                assert_eq!((call.message().shape(), call.target()), (shape, target));
                // Fulfilment is the proposed call.
                assert_eq!(
                    call.kind(Head::Request).as_deref(),
                    Ok("mcp/request:tools/call:dangerous_operation")
                );
            }
            Act::Answer(message) => assert_eq!((message.shape(), None), (shape, target)),
            Act::Other => panic!("{text}"),
        }
    }
}

/// The decision's sketches of response kinds: the short form that stays valid, and the extended
/// forms.
#[test]
fn kinds_of_the_decision_are_valid() {
    let result = r#"{"jsonrpc":"2.0","id":42,"result":{"content":[{"type":"text","text":"Operation completed"}]}}"#;
    for kind in [
        "mcp/response:tools/call",
        "mcp/response:tools/call:read_file",
        "mcp/response:resources/read:config.json",
        "mcp/response:prompts/get:debug_prompt",
        "mcp/response:completion/complete:ref",
    ] {
        assert!(matches!(check(kind, result), Ok(Act::Answer(_))), "{kind}");
    }
    // Option 2, which the decision rejected: a response that carries its request is neither.
    let option_2 = r#"{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"/tmp/test.txt"}},"result":{"content":[]}}"#;
    assert!(check("mcp/response:tools/call", option_2).is_err());
    assert!(check(CALL, option_2).is_err());
}
