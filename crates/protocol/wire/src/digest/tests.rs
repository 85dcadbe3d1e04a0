use super::*;

fn params(text: &str) -> Result<String, JsonError> {
    Ok(String::from_utf8(call_params(text.as_bytes())?).unwrap())
}

const BASE: ReviewedCall<'_> = ReviewedCall {
    method: "tools/call",
    to: &["github"],
    params: Some(br#"{"name":"x","arguments":{"a":1}}"#),
    definition: Some(br#"{"name":"x","inputSchema":{}}"#),
};

#[test]
fn the_digest_binds_the_call_and_not_its_spelling() {
    let digest = BASE.digest().unwrap();
    for (same, why) in [
        (
            ReviewedCall {
                params: Some(br#" { "arguments" : {"\u0061":1}, "name":"x" } "#),
                ..BASE
            },
            "spelling",
        ),
        (
            ReviewedCall {
                params: Some(br#"{"name":"x","arguments":{"a":1},"task":{"ttl":1}}"#),
                ..BASE
            },
            "asked for as a task",
        ),
        (
            ReviewedCall {
                params: Some(br#"{"name":"x","_meta":{"progressToken":1},"arguments":{"a":1}}"#),
                ..BASE
            },
            "progress",
        ),
        (
            ReviewedCall {
                definition: Some(br#"{"inputSchema": {}, "name": "x"}"#),
                ..BASE
            },
            "order in the definition",
        ),
        (
            ReviewedCall {
                to: &["github", "github"],
                ..BASE
            },
            "an addressee twice",
        ),
    ] {
        assert_eq!(same.digest(), Ok(digest), "{why}");
    }
    for (other, why) in [
        (
            ReviewedCall {
                method: "tools/cal",
                ..BASE
            },
            "method",
        ),
        (
            ReviewedCall {
                to: &["gitlab"],
                ..BASE
            },
            "addressee",
        ),
        (
            ReviewedCall {
                to: &["github", "gitlab"],
                ..BASE
            },
            "another addressee",
        ),
        (ReviewedCall { to: &[], ..BASE }, "no addressee"),
        (
            ReviewedCall {
                params: None,
                ..BASE
            },
            "no params",
        ),
        (
            ReviewedCall {
                params: Some(br#"{"name":"y","arguments":{"a":1}}"#),
                ..BASE
            },
            "name",
        ),
        (
            ReviewedCall {
                params: Some(br#"{"name":"x","arguments":{"a":1.0}}"#),
                ..BASE
            },
            "a number's spelling",
        ),
        (
            ReviewedCall {
                params: Some(br#"{"name":"x","arguments":{"a":1},"_meta":{"v/k":1}}"#),
                ..BASE
            },
            "_meta",
        ),
        (
            ReviewedCall {
                definition: None,
                ..BASE
            },
            "no definition",
        ),
        (
            ReviewedCall {
                definition: Some(br#"{"name":"x","inputSchema":{"a":1}}"#),
                ..BASE
            },
            "another definition",
        ),
    ] {
        assert_ne!(other.digest(), Ok(digest), "{why}");
    }
}

#[test]
fn parts_cannot_reach_into_each_other() {
    let of = |method, to| {
        ReviewedCall {
            method,
            to,
            params: None,
            definition: None,
        }
        .input()
        .unwrap()
    };
    assert_ne!(of("ab", &["c"]), of("a", &["bc"]));
    assert_ne!(of("a", &["b", "c"]), of("a", &["bc"]));
    let with = |params, definition| {
        ReviewedCall {
            method: "m",
            to: &[],
            params,
            definition,
        }
        .input()
        .unwrap()
    };
    assert_ne!(with(Some(b"{}"), Some(b"{}")), with(Some(b"{}"), None));
}

#[test]
fn no_params_are_an_empty_object() {
    let with = |params| {
        ReviewedCall {
            method: "m",
            to: &[],
            params,
            definition: None,
        }
        .digest()
    };
    assert_eq!(with(None), with(Some(b" { } ")));
}

/// Decisions in the journal are bound to digests: this one may never change.
#[test]
fn the_digest_of_a_known_call_stays() {
    assert_eq!(
        BASE.digest().unwrap().to_string(),
        "20751ac6d5f7f601c6dbbb3b776b72deedb76cdd5b7119c2b30436ba59f108de"
    );
}

#[test]
fn params_leave_out_transport_members() {
    for (text, expect) in [
        ("{}", Ok("{}")),
        (r#"{"task":{}}"#, Ok("{}")),
        (r#"{"_meta":{}}"#, Ok("{}")),
        (
            r#"{"b":1,"_meta":{"progressToken":"t","traceparent":"x","tracestate":"y"},"a":2}"#,
            Ok(r#"{"a":2,"b":1}"#),
        ),
        (
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","v/k":1,"progressToken":"t"}}"#,
            Ok(r#"{"_meta":{"v/k":1}}"#),
        ),
        (
            r#"{"_meta":{"io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/run":1}}"#,
            Ok(r#"{"_meta":{"io.modelcontextprotocol/run":1}}"#),
        ),
        (r#"{"_meta":7}"#, Ok(r#"{"_meta":7}"#)),
        (
            r#"{"arguments":{"task":1,"_meta":{"progressToken":1}}}"#,
            Ok(r#"{"arguments":{"_meta":{"progressToken":1},"task":1}}"#),
        ),
        (
            r#"{"_meta":{"progressToken":1,"progressToken":2}}"#,
            Err(JsonError::Duplicate("progressToken".into())),
        ),
        ("[]", Err(JsonError::NotAnObject)),
    ] {
        assert_eq!(params(text), expect.map(str::to_owned), "{text}");
    }
}
