//! Examples of the specification and of Decision 002, rejected frames, and properties.

mod acts;
mod examples;
mod properties;

use bytes::Bytes;
use model::{Capabilities, Refusal, RefusalCode};

use super::envelope::{ID_BYTES_MAX, TO_MAX};
use super::system::Stamp;
use super::*;

fn read(text: &str) -> Result<Envelope, Breach> {
    Envelope::read(Bytes::copy_from_slice(text.as_bytes()))
}

/// An envelope with these members instead of, or beside, the usual ones; `-` leaves one out.
fn with(changes: &[(&str, &str)]) -> String {
    let usual = [
        ("protocol", "\"mcpx/v0.1\""),
        ("id", "\"e1\""),
        ("from", "\"a\""),
        ("kind", "\"chat\""),
        ("payload", "{\"text\":\"hi\"}"),
    ];
    let changed = |key: &str| changes.iter().any(|(other, _)| *other == key);
    let all = usual.iter().filter(|(key, _)| !changed(key)).chain(changes);
    let members = all
        .filter(|(_, raw)| *raw != "-")
        .map(|(key, raw)| format!("\"{key}\":{raw}"));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

#[test]
fn malformed_envelopes_are_refused_with_a_reason() {
    let long = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
    let many = format!("[{}]", vec!["\"b\""; TO_MAX + 1].join(","));
    let (id, name, kind) = (long(ID_BYTES_MAX + 1), long(129), long(KIND_BYTES_MAX + 1));
    let names = format!("[{name}]");
    for (change, id, message) in [
        (("id", "-"), None, "`id` is missing"),
        (("id", "7"), None, "`id` must be a string"),
        (("id", "\"\""), None, "`id` must not be empty"),
        (("id", &id), None, "`id` is longer than 256 bytes"),
        (("protocol", "-"), Some("e1"), "`protocol` is missing"),
        (("protocol", "1"), Some("e1"), "`protocol` must be a string"),
        (("from", "-"), Some("e1"), "`from` is missing"),
        (("from", "null"), Some("e1"), "`from` must be a string"),
        (
            ("from", &name),
            Some("e1"),
            "`from` is longer than 128 bytes",
        ),
        (("kind", "-"), Some("e1"), "`kind` is missing"),
        (("kind", "\"\""), Some("e1"), "`kind` must not be empty"),
        (
            ("kind", &kind),
            Some("e1"),
            "`kind` is longer than 4096 bytes",
        ),
        (("payload", "-"), Some("e1"), "`payload` is missing"),
        (("payload", "[]"), Some("e1"), "`payload` must be an object"),
        (
            ("payload", "null"),
            Some("e1"),
            "`payload` must be an object",
        ),
        (("ts", "5"), Some("e1"), "`ts` must be a string"),
        (
            ("to", "\"b\""),
            Some("e1"),
            "`to` must be an array of participant ids",
        ),
        (
            ("to", "null"),
            Some("e1"),
            "`to` must be an array of participant ids",
        ),
        (
            ("to", "[1]"),
            Some("e1"),
            "`to` must be an array of participant ids",
        ),
        (
            ("to", "[\"\"]"),
            Some("e1"),
            "`to` must be an array of participant ids",
        ),
        (
            ("to", &names),
            Some("e1"),
            "`to` must be an array of participant ids",
        ),
        (
            ("to", &many),
            Some("e1"),
            "`to` names more than 64 participants",
        ),
        (
            ("correlation_id", "null"),
            Some("e1"),
            "`correlation_id` must be a string",
        ),
        (
            ("correlation_id", "[\"x\"]"),
            Some("e1"),
            "`correlation_id` must be a string",
        ),
        (
            ("k\\u0069nd", "\"chat\""),
            Some("e1"),
            "the member \"kind\" occurs twice",
        ),
        (
            ("x\":1,\"x", "1"),
            Some("e1"),
            "the member \"x\" occurs twice",
        ),
        (
            ("id\":\"e2\",\"id", "\"e3\""),
            None,
            "the member \"id\" occurs twice",
        ),
        (
            ("kind", "\"mcp/response:tools/call\""),
            Some("e1"),
            "a response needs `correlation_id`: the id of the request that it answers",
        ),
        (
            ("kind", "\"mcp/proposal:x\",\"correlation_id\":\"y\""),
            Some("e1"),
            "a proposal must not have `correlation_id`",
        ),
    ] {
        let breach = read(&with(&[change])).unwrap_err();
        assert_eq!(
            (breach.code, breach.message.as_str(), breach.id.as_deref()),
            (RefusalCode::Malformed, message, id),
            "{change:?}"
        );
    }
    for (depth, id, message) in [
        (NESTING_MAX + 1, Some("e1"), "it is nested deeper than 100"),
        (10_000, Some("e1"), "it is nested deeper than 100"),
    ] {
        let breach = read(&nested(depth)).unwrap_err();
        assert_eq!(
            (breach.message.as_str(), breach.id.as_deref()),
            (message, id),
            "{depth}"
        );
    }
    for bad in ["", "x", "[]", "null", "{", "{}x", "\u{0}", r#"{"a":1,}"#] {
        assert_eq!(
            read(bad).unwrap_err().code,
            RefusalCode::Malformed,
            "{bad:?}"
        );
        assert_eq!(read(bad).unwrap_err().id, None, "{bad:?}");
    }
    assert_eq!(
        Envelope::read(Bytes::from_static(b"{\"id\":\"\xff\"}"))
            .unwrap_err()
            .id,
        None
    );
}

#[test]
fn another_protocol_is_refused_before_any_other_fault() {
    for other in [
        "mcp-x/v0",
        "meup/v0.2",
        "mew/v0.4",
        "mcpx/v0.10",
        "MCPX/v0.1",
        "",
    ] {
        let text = with(&[("protocol", &format!("\"{other}\"")), ("payload", "-")]);
        let breach = read(&text).unwrap_err();
        assert_eq!(breach.code, RefusalCode::UnsupportedProtocol, "{other}");
        assert_eq!(breach.id.as_deref(), Some("e1"));
        assert!(breach.message.contains(PROTOCOL));
    }
}

#[test]
fn lengths_at_the_limits_are_accepted() {
    let long = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
    let many = format!("[{}]", vec![long(128); TO_MAX].join(","));
    let text = with(&[
        ("id", &long(ID_BYTES_MAX)),
        ("from", &long(128)),
        ("to", &many),
        ("kind", &long(KIND_BYTES_MAX)),
        ("correlation_id", &long(ID_BYTES_MAX)),
    ]);
    assert_eq!(read(&text).unwrap().to().len(), TO_MAX);
    assert!(read(&nested(NESTING_MAX)).is_ok());
}

/// An envelope in which so many objects and arrays lie inside each other.
fn nested(depth: usize) -> String {
    let (open, close) = ("[".repeat(depth - 2), "]".repeat(depth - 2));
    with(&[("payload", &format!("{{\"x\":{open}{close}}}"))])
}

#[test]
fn unknown_members_are_ignored() {
    let text = format!(
        " {}\n",
        with(&[
            ("x", "[1e400,{\"a\":1,\"a\":2}]"),
            ("to", "[ ]"),
            ("ts", "\"soon\"")
        ])
    );
    let envelope = read(&text).unwrap();
    assert_eq!(envelope.frame(), text.as_bytes());
    assert!(envelope.is_broadcast());
    assert_eq!(
        (envelope.id(), envelope.from(), envelope.ts()),
        ("e1", "a", Some("soon"))
    );
    // The reader does not look into the payload: a member there may even occur twice.
    let twice = with(&[("payload", "{\"a\":1,\"a\":2}")]);
    assert_eq!(read(&twice).unwrap().payload(), b"{\"a\":1,\"a\":2}");
}

#[test]
fn escapes_are_understood() {
    let text = with(&[
        ("id", "\"\\u0065\\\"1\""),
        ("\\u0074o", "[\"b\\u0062\", \"c\"]"),
        ("kind", "\"mcp\\/request:x\""),
    ]);
    let envelope = read(&text).unwrap();
    assert_eq!((envelope.id(), envelope.kind()), ("e\"1", "mcp/request:x"));
    assert_eq!(envelope.to().collect::<Vec<_>>(), ["bb", "c"]);
    // A head with an escape is recognised too.
    let hidden = with(&[("kind", "\"mcp/\\u0072esponse:x\"")]);
    assert!(
        read(&hidden)
            .unwrap_err()
            .message
            .starts_with("a response needs")
    );
}

#[test]
fn participants_take_a_correlation_id_in_an_array() {
    let receive = |raw: &str| {
        let text = with(&[("correlation_id", raw)]);
        Envelope::receive(Bytes::from(text))
            .map(|envelope| envelope.correlation_id().map(str::to_owned))
    };
    assert_eq!(receive("[\"x\"]"), Ok(Some("x".to_owned())));
    assert_eq!(receive("\"x\""), Ok(Some("x".to_owned())));
    for bad in ["[]", "[\"x\",\"y\"]", "[1]", "null", "[[\"x\"]]"] {
        assert!(receive(bad).is_err(), "{bad}");
    }
}

#[test]
fn refusals_carry_hints_and_capabilities() {
    let stamp = Stamp {
        id: "s1",
        ts: Some("T"),
    };
    let able = Capabilities::parse(["chat"]).unwrap();
    let sender = ("a", &able);
    let cause = read(&with(&[("kind", "\"mcp/request:x\"")])).unwrap();
    for (refusal, payload) in [
        (
            Refusal::new(RefusalCode::RateLimited, "too much").retry_after_ms(250),
            r#"{"error":"rate_limited","message":"too much","retry_after_ms":250}"#,
        ),
        (
            Refusal::new(RefusalCode::CapabilityViolation, "no").hint("propose it"),
            r#"{"error":"capability_violation","message":"no (propose it)","attempted_kind":"mcp/request:x","your_capabilities":["chat"]}"#,
        ),
        (
            Refusal::new(RefusalCode::TooLarge, "big"),
            r#"{"error":"message_too_large","message":"big"}"#,
        ),
    ] {
        let frame = system::refused(stamp, &refusal, &cause, sender);
        let error = Envelope::read(frame).unwrap();
        assert_eq!(
            (error.from(), error.kind(), error.ts()),
            ("system:gateway", "system/error", Some("T"))
        );
        assert_eq!(
            (error.correlation_id(), error.to().collect::<Vec<_>>()),
            (Some("e1"), vec!["a"])
        );
        assert_eq!(std::str::from_utf8(error.payload()).unwrap(), payload);
    }
    let breach = read(&with(&[("payload", "1")])).unwrap_err();
    let error = Envelope::read(system::breach(stamp, "a", &breach)).unwrap();
    assert_eq!(error.correlation_id(), Some("e1"));
    assert_eq!(
        error.payload(),
        br#"{"error":"malformed_envelope","message":"`payload` must be an object"}"#
    );
}

#[test]
fn codes_are_distinct() {
    let mut seen = std::collections::BTreeSet::new();
    for code in RefusalCode::ALL {
        assert!(seen.insert(system::code_of(*code)), "{code}");
    }
}
