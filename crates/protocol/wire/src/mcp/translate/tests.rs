use bytes::Bytes;
use json::Splice;
use json::strategies::{object_of, value};
use proptest::prelude::*;

use super::*;
use crate::mcp::params::Params;
use crate::mcp::version::Era;
use crate::rpc::Message;

fn message(text: &str) -> Message {
    Message::read(Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

fn text(frame: &Bytes) -> String {
    String::from_utf8(frame.to_vec()).unwrap()
}

/// A request in the other era.
fn requests(from: &Message, to: Era, client_info: Option<&[u8]>) -> Message {
    let (params, mut splice) = (Params::read(from).unwrap(), Splice::new());
    let mut edit = params.edit();
    let (number, own, related_task, log_level, tasks) = (1, None, None, None, false);
    let out = OutgoingChanges {
        form: to,
        number,
        own,
        client_info,
        capabilities: b"{}",
        log_level,
        related_task,
        tasks,
        trace: None,
    };
    request(&mut edit, &out);
    edit.finish(&mut splice);
    message(&text(&from.edited(&splice)))
}

fn results(method: &str, to: Era, from: &str) -> String {
    let frame = message(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{from}}}"#));
    let mut splice = Splice::new();
    result(
        (frame.frame(), frame.body_span().unwrap()),
        method,
        to,
        &mut splice,
    )
    .unwrap();
    let out = message(&text(&frame.edited(&splice)));
    String::from_utf8(out.result().unwrap().to_vec()).unwrap()
}

#[test]
fn requests_gain_and_lose_the_keys_of_one_era() {
    let legacy = message(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1,"k":-0.0}}}"#,
    );
    let modern = requests(&legacy, Era::Modern, Some(br#"{"name":"c"}"#));
    assert_eq!(
        text(modern.frame()),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1,"k":-0.0,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#
    );
    assert_eq!(requests(&modern, Era::Legacy, None).frame(), legacy.frame());
    let bare = message(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let modern = requests(&bare, Era::Modern, None);
    assert_eq!(
        text(requests(&modern, Era::Legacy, None).frame()),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#
    );
}

#[test]
fn results_gain_and_lose_the_members_of_one_era() {
    for (method, to, from, expect) in [
        (
            "tools/call",
            Era::Modern,
            r#"{"content":[]}"#,
            r#"{"content":[],"resultType":"complete"}"#,
        ),
        (
            "tools/list",
            Era::Modern,
            r#"{"tools":[],"ttlMs":5}"#,
            r#"{"tools":[],"ttlMs":5,"resultType":"complete","cacheScope":"private"}"#,
        ),
        (
            "resources/read",
            Era::Modern,
            "{}",
            r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#,
        ),
        ("vendor/x", Era::Modern, "null", "null"),
        (
            "tools/list",
            Era::Legacy,
            r#"{"resultType":"complete","tools":[ ],"ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{}}}"#,
            r#"{"tools":[ ]}"#,
        ),
        (
            "tools/call",
            Era::Legacy,
            r#"{"resultType":"complete","structuredContent":null,"_meta":{"io.modelcontextprotocol/serverInfo":{},"k":1}}"#,
            r#"{"structuredContent":null,"_meta":{"k":1}}"#,
        ),
    ] {
        assert_eq!(results(method, to, from), expect);
    }
}

#[test]
fn kinds_of_results_stay_in_their_era() {
    for from in [
        r#"{"resultType":"input_required","inputRequests":{}}"#,
        r#"{"resultType":"input\u005frequired"}"#,
        r#"{"resultType":"task","taskId":"t"}"#,
        r#"{"resultType":"vendor/x","content":[]}"#,
        r#"{"resultType":null}"#,
        r#"{"resultType":"complete","resultType":"task"}"#,
    ] {
        let frame = message(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{from}}}"#));
        let body = (frame.frame().as_ref(), frame.body_span().unwrap());
        assert!(
            result(body, "tools/call", Era::Legacy, &mut Splice::new()).is_err(),
            "{from}"
        );
    }
    // A legacy server does not ask a modern client past the topic.
    for (from, expect) in [
        (
            r#"{"resultType":"input_required","content":[]}"#,
            r#"{"resultType":"complete","content":[]}"#,
        ),
        (
            r#"{"content":[],"_meta":7}"#,
            r#"{"content":[],"_meta":7,"resultType":"complete"}"#,
        ),
    ] {
        assert_eq!(results("tools/call", Era::Modern, from), expect);
    }
}

#[test]
fn errors() {
    let code = |method: &str, to, error: &str| {
        error_code(&ErrorObject::read(error.as_bytes()).unwrap(), method, to)
    };
    for (method, to, from, expect) in [
        ("resources/read", Era::Modern, -32002, -32602),
        ("resources/read", Era::Legacy, -32602, -32602),
        ("tools/call", Era::Legacy, -32602, -32602),
        ("tools/call", Era::Legacy, -32020, -32603),
        ("tools/call", Era::Modern, -32042, -32603),
        ("tools/call", Era::Legacy, 7, 7),
    ] {
        let error = format!(r#"{{"message":"m","code":{from},"data":[1]}}"#);
        assert_eq!(code(method, to, &error), expect, "{method} {from}");
    }
    let gone = r#"{"code":-32602,"message":"m","data":{"uri":"u"}}"#;
    assert_eq!(code("resources/read", Era::Legacy, gone), -32002);
    assert_eq!(code("tools/call", Era::Legacy, gone), -32602);
}

proptest! {
    #[test]
    fn requests_survive_there_and_back(x in value(), meta in object_of(value())) {
        let legacy = message(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","arguments":{x},"_meta":{meta},"z":{x}}}}}"#
        ));
        let modern = requests(&legacy, Era::Modern, None);
        let back = text(requests(&modern, Era::Legacy, None).frame());
        // An empty `_meta` is not given back; all else is byte for byte.
        let empty = json::members(meta.as_bytes(), json::Span::all(meta.as_bytes())).unwrap().is_empty();
        let expect = text(legacy.frame());
        let expect = if empty { expect.replace(&format!(",\"_meta\":{meta}"), "") } else { expect };
        prop_assert_eq!(back, expect);
    }

    #[test]
    fn results_survive_there_and_back(x in value(), rest in object_of(value())) {
        let legacy = format!(r#"{{"a":{x},"content":[{rest}],"z":{rest}}}"#);
        let modern = results("resources/read", Era::Modern, &legacy);
        let open = &legacy[..legacy.len() - 1];
        prop_assert!(modern.starts_with(open));
        prop_assert_eq!(results("resources/read", Era::Legacy, &modern), legacy);
    }

    #[test]
    fn never_panics(near in "[\\[\\]{}\":,_meta]{0,40}") {
        if let Ok(frame) = Message::read(Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{near}}}"#))) {
            for to in [Era::Legacy, Era::Modern] {
                let body = (frame.frame().as_ref(), frame.body_span().unwrap());
                let _ = result(body, "tools/list", to, &mut Splice::new());
            }
        }
    }
}
