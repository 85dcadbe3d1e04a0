use std::borrow::Cow;

use bytes::Bytes;
use json::{JsonError, Member, Members, OUTLINE_MEMBERS_MAX, Splice, members};
use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Result<Message, Malformed> {
    Message::read(Bytes::copy_from_slice(text.as_bytes()))
}

#[test]
fn shapes() {
    for (text, shape) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#,
            MessageKind::Request,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"a","params":{}}"#,
            MessageKind::Notification,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"x","result":null}"#,
            MessageKind::Result,
        ),
        (
            r#"{"jsonrpc":"2.0","id":-3,"error":{"code":-1,"message":"m"}}"#,
            MessageKind::Error,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}"#,
            MessageKind::Error,
        ),
        (
            r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"m"}}"#,
            MessageKind::Error,
        ),
        // A notification with an id is a request, despite its name.
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}"#,
            MessageKind::Request,
        ),
        (
            "\n {\"\\u006asonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"} \r",
            MessageKind::Request,
        ),
    ] {
        assert_eq!(
            read(text).map(|message| message.shape()),
            Ok(shape),
            "{text}"
        );
    }
}

#[test]
fn malformed_messages_are_rejected() {
    for (text, code, id) in [
        ("", -32700, None),
        ("{", -32700, None),
        ("\u{0}", -32700, None),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a"} {"jsonrpc":"2.0","id":2,"method":"b"}"#,
            -32700,
            None,
        ),
        ("[]", -32600, None),
        ("1", -32600, None),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#, -32600, None),
        (r#"{"id":1,"method":"a"}"#, -32600, Some("1")),
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#,
            -32600,
            Some("1"),
        ),
        (r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":1e3,"method":"a"}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":true,"method":"a"}"#, -32600, None),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"a"}"#,
            -32600,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"a","m\u0065thod":"b"}"#,
            -32600,
            Some("7"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"a","x":1,"x":1}"#,
            -32600,
            Some("7"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":"q","method":5}"#,
            -32600,
            Some("\"q\""),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"a","params":5}"#,
            -32600,
            Some("7"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"a","result":5}"#,
            -32600,
            Some("7"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":""},"result":5}"#,
            -32600,
            Some("7"),
        ),
        (r#"{"jsonrpc":"2.0","id":7,"error":5}"#, -32600, Some("7")),
        (r#"{"jsonrpc":"2.0","id":7}"#, -32600, Some("7")),
        (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","result":{}}"#, -32600, None),
    ] {
        let malformed = read(text).unwrap_err();
        assert_eq!(malformed.code, code, "{text}");
        assert_eq!(
            malformed.id.as_ref().map(ToString::to_string).as_deref(),
            id,
            "{text}"
        );
    }
    assert_eq!(
        Message::read(Bytes::from_static(
            b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}"
        ))
        .unwrap_err()
        .code,
        -32700
    );
}

#[test]
fn ids_are_typed_and_keep_their_spelling() {
    let id = |raw: &str| Id::read(raw.as_bytes()).unwrap();
    assert_ne!(id("1"), id("\"1\""));
    assert_eq!(id("\"\\u0061\""), id("\"a\""));
    assert_eq!(id("\"\\u0061\"").raw(), b"\"\\u0061\"");
    assert_ne!(id("12345678901234567890"), id("12345678901234567891"));
    let long = format!("\"{}\"", "x".repeat(300));
    assert_eq!(id(&long).raw(), long.as_bytes());
    for bad in [
        "",
        "01",
        "-",
        "1.0",
        "null",
        "\"",
        "\"\\ud800\"",
        "1 ",
        "[1]",
    ] {
        assert!(Id::read(bad.as_bytes()).is_none(), "{bad}");
    }
    assert_eq!(Id::number(u64::MAX).as_number(), Some(u64::MAX));
    assert_eq!(Id::string("a\"b"), id("\"a\\u0022b\""));
}

#[test]
fn methods_with_escapes_are_read() {
    let message = read(r#"{"jsonrpc":"2.0","id":1,"method":"tools\/c\u0061ll"}"#).unwrap();
    assert_eq!(message.method(), "tools/call");
}

#[test]
fn a_new_id_changes_nothing_else() {
    let text = r#"{"id" : "old","jsonrpc":"2.0", "result":{"n":-0.0},"extra":1e400}"#;
    let message = read(text).unwrap();
    let mut splice = Splice::new();
    message.set_id(&mut splice, &Id::number(7));
    assert_eq!(message.edited(&splice), text.replace("\"old\"", "7"));
}

#[test]
fn a_member_that_differs_in_letter_case_is_refused() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"a","Params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}"#,
        r#"{"JSONRPC":"2.0","jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"Re\u017fult":{}}"#,
    ] {
        let malformed = read(text).unwrap_err();
        assert_eq!(malformed.code, -32600, "{text}");
        assert_eq!(malformed.id, Some(Id::number(1)), "{text}");
    }
}

#[test]
fn a_request_loses_members_that_json_rpc_does_not_define() {
    let text = r#"{"a":1, "jsonrpc":"2.0","extra":[1e400],"id":1,"method":"m","params":{"b":-0.0},"z":{}}"#;
    let message = read(text).unwrap();
    let kept = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"b":-0.0}}"#;
    assert_eq!(&message.frame()[..], kept.as_bytes());
    assert!(message.is_outlined());
    // An answer keeps them.
    let text = r#"{"jsonrpc":"2.0","id":1,"result":{},"extra":1}"#;
    assert_eq!(&read(text).unwrap().frame()[..], text.as_bytes());
}

#[test]
fn batches() {
    let batch = |text: &'static str| read_batch(&Bytes::from_static(text.as_bytes()), 2);
    assert_eq!(batch("[]").unwrap_err().code, -32600);
    assert_eq!(batch("{}").unwrap_err().code, -32600);
    assert_eq!(batch("[").unwrap_err().code, -32700);
    let two = batch(r#"[{"jsonrpc":"2.0","id":1,"method":"a"} , 5]"#).unwrap();
    assert_eq!(two[0].as_ref().unwrap().method(), "a");
    assert_eq!(two[1].as_ref().unwrap_err().code, -32600);
    assert_eq!(batch("[1,2]").unwrap().len(), 2);
    assert_eq!(batch("[1,2,3]").unwrap_err().code, -32600);
}

#[test]
fn written_messages_can_be_read() {
    let id = Id::string("a\n");
    assert_eq!(
        &result(&id, b"{}")[..],
        br#"{"jsonrpc":"2.0","id":"a\n","result":{}}"#
    );
    assert_eq!(
        &error(Some(&Id::number(1)), -5, "no \"x\"", Some(b"{\"a\":1}"))[..],
        br#"{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"no \"x\"","data":{"a":1}}}"#
    );
    assert_eq!(
        &error(None, -32700, "m", None)[..],
        br#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}"#
    );
    assert_eq!(
        &request(&id, "ping", None)[..],
        br#"{"jsonrpc":"2.0","id":"a\n","method":"ping"}"#
    );
    assert_eq!(
        &notification("x", Some(b"{}"))[..],
        br#"{"jsonrpc":"2.0","method":"x","params":{}}"#
    );
    let message = Message::read(error(Some(&id), -5, "m", Some(b"[1]"))).unwrap();
    let object = message.error_object().unwrap();
    assert_eq!(
        (object.code, &*object.message, object.data),
        (-5, "m", Some(&b"[1]"[..]))
    );
}

#[test]
fn one_line_hides_no_second_call() {
    let evil =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"a\":\r\n\"\\n\"\n}}";
    let line = one_line(Bytes::copy_from_slice(evil.as_bytes()));
    assert!(!line.contains(&b'\n') && !line.contains(&b'\r'));
    assert_eq!(line.len(), evil.len());
    assert!(Message::read(line.clone()).is_ok());
    assert_eq!(one_line(line.clone()).as_ptr(), line.as_ptr());
}

/// Whether the members of params and `_meta` are those that a scan finds there.
fn check_notes(text: &str) -> Result<(), TestCaseError> {
    let message = read(text).unwrap();
    let listed = |members: Result<Members<'_>, JsonError>| {
        let owned = |(key, member): (&str, Member<'_>)| {
            (
                key.to_owned(),
                member.text().map(Cow::into_owned),
                member.span,
                member.whole,
            )
        };
        members.map(|members| {
            (
                members.object(),
                members.len(),
                members.iter().map(owned).collect::<Vec<_>>(),
            )
        })
    };
    let at = message.body_span().unwrap();
    let anew = members(message.frame(), at);
    prop_assert_eq!(
        listed(message.params_members(at)),
        listed(anew.clone()),
        "{}",
        text
    );
    if let Some(meta) = anew.ok().and_then(|params| params.get("_meta")) {
        prop_assert_eq!(
            listed(message.meta_members(meta.span)),
            listed(members(message.frame(), meta.span)),
            "{}",
            text
        );
    }
    Ok(())
}

#[test]
fn outlined_members_are_bounded() {
    for count in [OUTLINE_MEMBERS_MAX, OUTLINE_MEMBERS_MAX + 1] {
        let list: Vec<_> = (1..count).map(|at| format!("\"k{at}\":{at}")).collect();
        for (meta, rest) in [("", &list[..]), (&*list.join(","), &[])] {
            let params = [&[format!("\"_meta\":{{{meta}}}")], rest]
                .concat()
                .join(",");
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{{params}}}}}"#);
            assert_eq!(
                read(&text).unwrap().is_outlined(),
                count == OUTLINE_MEMBERS_MAX
            );
            check_notes(&text).unwrap();
        }
    }
}

proptest! {
    #[test]
    fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = Bytes::from(bytes);
        let _ = Message::read(bytes.clone());
        let _ = read_batch(&bytes, 4);
        let _ = Id::read(&bytes);
    }

    #[test]
    fn an_outline_agrees_with_a_scan(
        params in json::strategies::object_of(json::strategies::value()),
        meta in json::strategies::object_of(json::strategies::value()), twice in 0..4u8, escapes: bool,
    ) {
        let member = match twice {
            0 => format!("\"_meta\" : {meta}"),
            1 => format!("\"_meta\":{meta},\"_meta\":{{\"x\":1}}"),
            2 => format!("\"_meta\":[{meta}],\"x\":{{\"_meta\":{meta}}}"),
            _ => format!("\"x\":1,\"params\":{{\"_meta\":{meta}}}"),
        };
        let params = if params == "{}" { format!("{{{member}}}") } else { params.replacen('{', &format!("{{{member},"), 1) };
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"params": {params},"method":"a","_meta":{meta}}}"#);
        check_notes(&if escapes { text } else { text.replace("\\u0078", "x") })?;
    }

    #[test]
    fn one_line_keeps_the_meaning(text in json::strategies::value()) {
        let spaced = text.replace(" , ", "\r\n,\n");
        let line = one_line(Bytes::from(spaced));
        prop_assert!(serde_json::from_slice::<&serde_json::value::RawValue>(&line).is_ok());
    }
}
