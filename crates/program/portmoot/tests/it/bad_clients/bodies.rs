//! Bad messages of the legacy era, over HTTP and on a pipe.

use super::*;

/// Bodies in a legacy session: description, body, status, error code.
fn legacy_bodies() -> Vec<(&'static str, Vec<u8>, u16, Option<i64>)> {
    let text = |what, body: &str, status, code| (what, body.as_bytes().to_vec(), status, code);
    let member = |members: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"tools/call","params":{{"name":"echo","arguments":{{}}}}{members}}}"#
        )
    };
    vec![
        text("nothing", "", 400, Some(-32700)),
        text("half a message", &ECHO[..ECHO.len() - 1], 400, Some(-32700)),
        text("two messages", &format!("{ECHO}{ECHO}"), 400, Some(-32700)),
        text(
            "two messages on two lines",
            &format!("{ECHO}\n{ECHO}"),
            400,
            Some(-32700),
        ),
        text(
            "a byte order mark",
            &format!("\u{feff}{ECHO}"),
            400,
            Some(-32700),
        ),
        (
            "invalid UTF-8 in a value",
            ECHO.replace('x', "\u{1}")
                .into_bytes()
                .iter()
                .map(|b| if *b == 1 { 0xff } else { *b })
                .collect(),
            400,
            Some(-32700),
        ),
        (
            "overlong UTF-8",
            [
                b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"x\":\"".as_slice(),
                &[0xc0, 0xaf],
                b"\"}",
            ]
            .concat(),
            400,
            Some(-32700),
        ),
        text(
            "a raw control character in a string",
            &ECHO.replace("\"x\"", "\"a\nb\""),
            400,
            Some(-32700),
        ),
        text("a lone word", "true", 400, Some(-32600)),
        text(
            "another version",
            &ECHO.replace("2.0", "1.0"),
            400,
            Some(-32600),
        ),
        text(
            "no version",
            &ECHO.replace("\"jsonrpc\":\"2.0\",", ""),
            400,
            Some(-32600),
        ),
        text("id null", &member(r#","id":null"#), 400, Some(-32600)),
        text("id fraction", &member(r#","id":1.5"#), 400, Some(-32600)),
        text("id object", &member(r#","id":{}"#), 400, Some(-32600)),
        text("id array", &member(r#","id":[1]"#), 400, Some(-32600)),
        text("id true", &member(r#","id":true"#), 400, Some(-32600)),
        text(
            "duplicate method",
            &member(r#","id":1,"method":"ping""#),
            400,
            Some(-32600),
        ),
        text(
            "duplicate id",
            &member(r#","id":1,"id":2"#),
            400,
            Some(-32600),
        ),
        text(
            "duplicate params",
            &member(r#","id":1,"params":{}"#),
            400,
            Some(-32600),
        ),
        text(
            "duplicate, spelled with an escape",
            &member(r#","id":1,"m\u0065thod":"ping""#),
            400,
            Some(-32600),
        ),
        text(
            "duplicate name in params",
            &ECHO.replace("\"name\"", "\"name\":\"record\",\"name\""),
            200,
            Some(-32600),
        ),
        text(
            "the same, escaped",
            &ECHO.replace("\"name\"", "\"n\\u0061me\":\"record\",\"name\""),
            200,
            Some(-32600),
        ),
        text(
            "duplicate in _meta",
            &ECHO.replace(
                "\"name\"",
                "\"_meta\":{\"progressToken\":1,\"progressToke\\u006e\":2},\"name\"",
            ),
            200,
            Some(-32600),
        ),
        text(
            "method and result",
            &member(r#","id":1,"result":{}"#),
            400,
            Some(-32600),
        ),
        text(
            "method no string",
            r#"{"jsonrpc":"2.0","id":1,"method":1}"#,
            400,
            Some(-32600),
        ),
        text(
            "params no object",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":7}"#,
            400,
            Some(-32600),
        ),
        text(
            "params an array",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["echo"]}"#,
            200,
            Some(-32602),
        ),
        text(
            "name no string",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["echo"]}}"#,
            200,
            Some(-32602),
        ),
        text(
            "an unknown name",
            &ECHO.replace("echo", &"n".repeat(100_000)),
            200,
            Some(-32602),
        ),
        text(
            "an unknown URI",
            &format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{{"uri":"x://{}"}}}}"#,
                "u".repeat(100_000)
            ),
            200,
            Some(-32002),
        ),
        text(
            "an unknown cursor",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"garbage"}}"#,
            200,
            Some(-32602),
        ),
        text(
            "a second initialize",
            &initialize(LEGACY, "{}"),
            400,
            Some(-32600),
        ),
        text("a batch", &format!("[{ECHO}]"), 400, Some(-32600)),
        text(
            "a batch with space before it",
            &format!(" \n[{ECHO}]"),
            400,
            Some(-32600),
        ),
        text("deep nesting", &"[".repeat(1 << 20), 400, Some(-32600)),
        text(
            "deep nesting in params",
            &format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}"#,
                "{\"a\":".repeat(200_000)
            ),
            400,
            Some(-32700),
        ),
        // Accepted without effect: there is no request to answer.
        text("a notification that is a call", &member(""), 202, None),
        text(
            "an answer without a request",
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            202,
            None,
        ),
        text(
            "an error without a request",
            r#"{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"x"}}"#,
            202,
            None,
        ),
    ]
}

#[test]
fn legacy_bodies_over_http() {
    let gateway = fixture();
    let session = gateway.session();
    let mut calls = executed(&session);
    for (what, body, status, code) in legacy_bodies() {
        let reply = session.post(&body);
        assert_eq!(
            (reply.status, reply.code()),
            (status, code),
            "{what}: {}",
            reply.text()
        );
        calls += 1;
        assert_eq!(executed(&session), calls, "{what} was executed");
    }
}

#[test]
fn lines_on_a_pipe() {
    let mut piped = Piped::initialized(&fixture_server("fixture", "", &[]), LEGACY);
    for (what, body, _, code) in legacy_bodies() {
        if body.contains(&b'\n')
            || body.is_empty()
            || what == "deep nesting"
            || what == "a second initialize"
        {
            continue;
        }
        piped.send(&body);
        if let Some(code) = code {
            let answer = piped.json();
            assert_eq!(
                answer.pointer("/error/code"),
                Some(&json!(code)),
                "{what}: {answer}"
            );
        }
    }
    piped.send(call("\"last\"", "record", "{}"));
    let answer = piped.json();
    assert_eq!(
        (
            &answer["id"],
            answer.pointer("/result/structuredContent/calls")
        ),
        (&json!("last"), Some(&json!(1)))
    );
}
