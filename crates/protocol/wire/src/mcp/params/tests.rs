use bytes::Bytes;
use json::Splice;
use json::strategies::{object_of, value};
use proptest::prelude::*;

use super::*;
use crate::mcp::{BodyEdit, TargetKind, meta};
use crate::rpc::{Id, Message};

fn message(text: &str) -> Message {
    Message::read(Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

fn call(method: &str, params: &str) -> Message {
    message(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#
    ))
}

fn edited(message: &Message, change: impl FnOnce(&mut BodyEdit<'_, '_>)) -> String {
    let params = Params::read(message).unwrap();
    let mut edit = params.edit();
    change(&mut edit);
    let mut splice = Splice::new();
    edit.finish(&mut splice);
    let out = message.edited(&splice);
    Message::read(out.clone()).unwrap();
    String::from_utf8(out.to_vec()).unwrap()
}

#[test]
fn targets() {
    for (method, params, expect) in [
        (
            "tools/call",
            r#"{"name":"a\u0062"}"#,
            Some((TargetKind::Name, "ab")),
        ),
        (
            "resources/read",
            r#"{"uri":"file:///x"}"#,
            Some((TargetKind::Uri, "file:///x")),
        ),
        (
            "tasks/get",
            r#"{"taskId":"t"}"#,
            Some((TargetKind::Task, "t")),
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"p"}}"#,
            Some((TargetKind::Name, "p")),
        ),
        (
            "completion/complete",
            r#"{"ref":{"uri":"u{x}","type":"ref/resource"}}"#,
            Some((TargetKind::Uri, "u{x}")),
        ),
        ("tools/list", r#"{"name":"a"}"#, None),
        ("vendor/method", r#"{"name":5}"#, None),
    ] {
        let call = call(method, params);
        let read = Params::read(&call).unwrap();
        assert_eq!(
            read.target().map(|text| (read.target_kind(), text)),
            expect,
            "{method} {params}"
        );
    }
}

#[test]
fn wrong_params() {
    for (method, params, code) in [
        ("tools/call", r#"{}"#, -32602),
        ("tools/call", r#"{"name":5}"#, -32602),
        ("tools/call", r#"{"name":null}"#, -32602),
        ("tools/call", r#"[1]"#, -32602),
        ("tools/call", r#"{"name":"a","n\u0061me":"b"}"#, -32600),
        (
            "tools/call",
            r#"{"name":"a","_meta":{"x":1,"x":2}}"#,
            -32600,
        ),
        ("tools/call", r#"{"name":"a","_meta":5}"#, -32602),
        (
            "tools/call",
            r#"{"name":"a","_meta":{"progressToken":1.5}}"#,
            -32602,
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/tool","name":"p"}}"#,
            -32602,
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"p","name":"q"}}"#,
            -32600,
        ),
    ] {
        let malformed = Params::read(&call(method, params)).unwrap_err();
        assert_eq!(
            (malformed.code, malformed.id),
            (code, Some(Id::number(1))),
            "{method} {params}"
        );
    }
    assert!(
        Params::read(&message(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#
        ))
        .is_err()
    );
}

#[test]
fn members_that_some_reader_takes_for_others_are_refused() {
    for (method, params) in [
        ("tools/call", r#"{"name":"a","Name":"b"}"#),
        ("tools/call", r#"{"name":"a","ARGUMENTS":{}}"#),
        ("tools/call", r#"{"name":"a","argument\u017f":{}}"#),
        ("tools/call", r#"{"name":"a","_META":{}}"#),
        ("tools/call", r#"{"name":"a","RequestState":"s"}"#),
        ("resources/read", r#"{"uri":"a:b","URI":"c:d"}"#),
        ("tasks/get", r#"{"taskId":"a","taskID":"b"}"#),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"a","Name":"b"}}"#,
        ),
        ("unknown/method", r#"{"Name":"b"}"#),
    ] {
        let message = call(method, params);
        let malformed = Params::read(&message).unwrap_err();
        assert_eq!(malformed.code, -32600, "{params}");
        assert_eq!(malformed.id, Some(Id::number(1)), "{params}");
        let bare = BareParams::read(method, params.as_bytes());
        assert!(bare.is_err(), "{params}");
    }
    // Arguments are the tool's own.
    let message = call("tools/call", r#"{"name":"a","arguments":{"a":1,"A":2}}"#);
    Params::read(&message).unwrap();
}

#[test]
fn the_modern_keys() {
    let message = call(
        "tools/call",
        r#"{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"x":1},"io.modelcontextprotocol/logLevel":"info","progressToken":7},"inputResponses":{},"requestState":"s"}"#,
    );
    let params = Params::read(&message).unwrap();
    assert!(params.is_modern() && params.get("inputResponses").is_some());
    assert_eq!(params.protocol_version().unwrap(), "2026-07-28");
    assert_eq!(params.client_capabilities().unwrap(), br#"{"x":1}"#);
    assert_eq!(params.client_info(), None);
    assert_eq!(params.meta_text(meta::LOG_LEVEL).unwrap(), "info");
    assert_eq!(params.progress_token(), Some(Id::number(7)));
    assert_eq!(params.request_state().unwrap(), b"\"s\"");
}

#[test]
fn edits_are_splices() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{ "name" : "gh_a","arguments":{"n":-0.0},"_meta":{"progressToken":1,"k":1e400} }}"#;
    let message = message(text);
    let out = edited(&message, |edit| {
        edit.set_target("a")
            .set_progress_token(&Id::string("t"))
            .set_meta("m", b"{}");
    });
    assert_eq!(
        out,
        text.replace("gh_a", "a")
            .replace(":1,\"k\":1e400", ":\"t\",\"k\":1e400,\"m\":{}")
    );
    let out = edited(&message, |edit| {
        edit.remove_meta(&["progressToken", "k"]);
    });
    assert_eq!(
        out,
        text.replace(r#","_meta":{"progressToken":1,"k":1e400}"#, "")
    );
    assert_eq!(
        edited(&message, |edit| {
            edit.remove_meta(&["absent"]);
        }),
        text
    );
}

#[test]
fn params_and_meta_are_made_where_they_are_missing() {
    let bare = message(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert_eq!(
        edited(&bare, |edit| {
            edit.set("cursor", b"\"c\"")
                .set_meta("m", b"1")
                .set_meta("m", b"2");
        }),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"c","_meta":{"m":2}}}"#
    );
    assert_eq!(
        edited(&bare, |edit| {
            edit.remove("cursor").remove_meta(&["m"]);
        }),
        *bare.frame()
    );
    let null = call("tools/list", r#"{"_meta":null}"#);
    assert!(
        edited(&null, |edit| {
            edit.set_meta("m", b"1");
        })
        .contains(r#""params":{"_meta":{"m":1}}"#)
    );
}

#[test]
fn notifications() {
    let progress = message(
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":0.5}}"#,
    );
    assert_eq!(
        Params::read(&progress).unwrap().progress_token(),
        Some(Id::number(7))
    );
    assert!(
        edited(&progress, |edit| {
            edit.set_progress_token(&Id::string("x"));
        })
        .contains(r#"{"progressToken":"x","progress":0.5}"#)
    );
    let cancelled = message(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}"#,
    );
    assert_eq!(
        Params::read(&cancelled).unwrap().request_id(),
        Some(Id::string("7"))
    );
    assert!(
        edited(&cancelled, |edit| {
            edit.set("requestId", b"9");
        })
        .contains(r#"{"requestId":9}"#)
    );
    let updated = message(
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a"}}"#,
    );
    assert!(
        edited(&updated, |edit| {
            edit.set_target("b");
        })
        .contains(r#"{"uri":"b"}"#)
    );
}

proptest! {
    #[test]
    fn members_survive_every_edit(arguments in value(), extra in value(), meta in object_of(value())) {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"x":{extra},"name":"old_name","arguments":{arguments},"_meta":{meta}}}}}"#
        );
        let message = message(&text);
        let out = edited(&message, |edit| { edit.set_target("new_name"); });
        prop_assert_eq!(&out, &text.replace("old_name", "new_name"));
        let out = edited(&message, |edit| { edit.set_meta("added", b"1"); });
        let back = self::message(&out);
        let out = edited(&back, |edit| { edit.remove_meta(&["added"]); });
        let before = Params::read(&message).unwrap();
        let again = self::message(&out);
        let after = Params::read(&again).unwrap();
        for (key, member) in before.members.as_ref().unwrap().iter().filter(|(key, _)| *key != "_meta") {
            prop_assert_eq!(after.get(key).unwrap().raw, member.raw);
        }
        for (key, member) in before.meta.as_ref().unwrap().iter() {
            prop_assert_eq!(after.meta_raw(key), Some(member.raw));
        }
    }

    #[test]
    fn never_panics(params in "[\\[\\]{}\":,\\\\a-z0-9_/]{0,60}", method in "(tools/call|completion/complete|tasks/get|x)") {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        if let Ok(message) = Message::read(Bytes::from(text)) {
            let _ = Params::read(&message);
        }
    }
}

#[test]
fn a_method_that_the_era_lacks_needs_no_target() {
    let read = |params: &str| Params::read(&call("resources/subscribe", params)).is_ok();
    assert!(read(
        r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#
    ));
    assert!(!read("{}"));
}
