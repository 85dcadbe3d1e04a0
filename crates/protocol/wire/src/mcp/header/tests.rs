use bytes::Bytes;
use proptest::prelude::*;

use super::check::{METHOD, NAME};
use super::value::decode;
use super::*;
use crate::mcp::params::Params;
use crate::mcp::rejection::Rejection;
use crate::mcp::version::Version;
use crate::rpc::{Id, Message};

const V: &str = "2026-07-28";
const GOOD: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn call(method: &str, params: &str) -> Message {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#);
    Message::read(Bytes::from(text)).unwrap()
}

fn getter<'h>(headers: &'h [(&'h str, &'h str)]) -> impl Fn(&str) -> Option<&'h str> {
    move |name| {
        headers
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| *value)
    }
}

fn run(headers: &[(&str, &str)], method: &str, params: &str) -> Result<Version, (u16, i64)> {
    let message = call(method, params);
    let params = Params::read(&message).unwrap();
    check(getter(headers), &params).map_err(|error| (error.status, error.code))
}

#[test]
fn the_era_is_detected() {
    for (headers, method, params, expect) in [
        (
            &[(PROTOCOL_VERSION, V)][..],
            "tools/list",
            "",
            Opening::Modern,
        ),
        (
            &[(PROTOCOL_VERSION, " 2030-01-01 ")],
            "tools/list",
            "",
            Opening::Modern,
        ),
        (&[], "tools/list", GOOD, Opening::Modern),
        (&[], "initialize", GOOD, Opening::Modern),
        (&[], "initialize", "", Opening::LegacyInitialize),
        (
            &[(PROTOCOL_VERSION, "2025-11-25"), ("mcp-session-id", "s")],
            "tools/list",
            "",
            Opening::Legacy,
        ),
        (
            &[(PROTOCOL_VERSION, "nonsense")],
            "tools/list",
            "",
            Opening::Legacy,
        ),
        (&[], "tools/list", "", Opening::Legacy),
    ] {
        let message = call(method, params);
        assert_eq!(
            classify(getter(headers), &Params::read(&message).unwrap()),
            expect,
            "{headers:?} {params}"
        );
    }
}

#[test]
fn headers_and_body_must_agree() {
    let (version, method) = ((PROTOCOL_VERSION, V), (METHOD, "tools/call"));
    let named = format!(r#""name":"a b",{GOOD}"#);
    let good = GOOD.to_owned();
    let no_capabilities =
        r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#.to_owned();
    let no_version = r#""_meta":{"io.modelcontextprotocol/clientCapabilities":{}}"#.to_owned();
    let future = good.replace(V, "2030-01-01");
    let old = good.replace(V, "2025-11-25");
    let ok = Ok(Version::V2026_07_28);
    for (headers, name, params, expect) in [
        (
            vec![version, method, (NAME, " a b\t")],
            "tools/call",
            &named,
            ok,
        ),
        (
            vec![version, method, (NAME, "=?base64?YSBi?=")],
            "tools/call",
            &named,
            ok,
        ),
        (
            vec![version, method, (NAME, "=?base64?!?=")],
            "tools/call",
            &named,
            Err((400, -32020)),
        ),
        (
            vec![version, method, (NAME, "A b")],
            "tools/call",
            &named,
            Err((400, -32020)),
        ),
        (
            vec![version, method, (NAME, "a b, a b")],
            "tools/call",
            &named,
            Err((400, -32020)),
        ),
        (
            vec![version, method],
            "tools/call",
            &named,
            Err((400, -32020)),
        ),
        (
            vec![version, (NAME, "a b")],
            "tools/call",
            &named,
            Err((400, -32020)),
        ),
        (
            vec![version, (METHOD, "TOOLS/LIST")],
            "tools/list",
            &good,
            Err((400, -32020)),
        ),
        (
            vec![version, (METHOD, "tools/list")],
            "tools/list",
            &good,
            ok,
        ),
        (
            vec![(METHOD, "tools/list")],
            "tools/list",
            &good,
            Err((400, -32020)),
        ),
        (
            vec![(PROTOCOL_VERSION, "2030-01-01")],
            "tools/list",
            &good,
            Err((400, -32020)),
        ),
        (vec![version], "tools/list", &future, Err((400, -32020))),
        (
            vec![(PROTOCOL_VERSION, "2030-01-01")],
            "tools/list",
            &future,
            Err((400, -32022)),
        ),
        (
            vec![(PROTOCOL_VERSION, "2025-11-25")],
            "tools/list",
            &old,
            Err((400, -32022)),
        ),
        (
            vec![version, (METHOD, "tools/list")],
            "tools/list",
            &String::new(),
            Err((400, -32602)),
        ),
        (
            vec![version, (METHOD, "tools/list")],
            "tools/list",
            &no_version,
            Err((400, -32602)),
        ),
        (
            vec![version, (METHOD, "tools/list")],
            "tools/list",
            &no_capabilities,
            Err((400, -32602)),
        ),
        (
            vec![version, (METHOD, "initialize")],
            "initialize",
            &good,
            Err((404, -32601)),
        ),
        (
            vec![version, (METHOD, "ping")],
            "ping",
            &good,
            Err((404, -32601)),
        ),
        (vec![version, (METHOD, "vendor/x")], "vendor/x", &good, ok),
    ] {
        assert_eq!(run(&headers, name, params), expect, "{headers:?} {params}");
    }
}

#[test]
fn answers_carry_id_and_data() {
    let id = Id::string("q");
    assert_eq!(
        &Rejection::unsupported_version("2030-01-01").answer(Some(&id))[..],
        br#"{"jsonrpc":"2.0","id":"q","error":{"code":-32022,"message":"this protocol version is not supported","data":{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"2030-01-01"}}}"#
    );
    let missing = Rejection::missing_capability(r#"{"sampling":{}}"#);
    assert_eq!(
        (missing.status, missing.data.as_deref()),
        (
            400,
            Some(&br#"{"requiredCapabilities":{"sampling":{}}}"#[..])
        )
    );
}

#[test]
fn values_are_encoded_where_needed() {
    for (text, expect) in [
        ("us-west1", "us-west1"),
        ("a b\tc", "a b\tc"),
        ("", ""),
        (" a", "=?base64?IGE=?="),
        ("a\t", "=?base64?YQk=?="),
        ("a\r\nb", "=?base64?YQ0KYg==?="),
        ("\u{e9}", "=?base64?w6k=?="),
        ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ("=?BASE64?x?=", "=?BASE64?x?="),
    ] {
        assert_eq!(encode(text), expect);
        assert_eq!(decode(expect).as_deref(), Some(text));
    }
    assert_eq!(decode("=?base64?/w==?="), None);
    assert_eq!(decode("caf\u{e9}"), None);
}

const SCHEMA: &str = r#"{"type":"object","properties":{
    "region":{"type":"string","x-mcp-header":"Region"},
    "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-\u0068eader":"N"}}},
    "flag":{"type":"boolean","x-mcp-header":"Flag"},
    "x-mcp-header":{"type":"string","default":{"x-mcp-header":"not a schema"}}}}"#;

#[test]
fn annotations_are_found() {
    let found = annotations(SCHEMA.as_bytes()).unwrap();
    let read: Vec<_> = found
        .iter()
        .map(|p| (p.name.as_str(), p.path.join("."), p.kind))
        .collect();
    assert_eq!(
        read,
        [
            ("Region", "region".to_owned(), HeaderType::String),
            ("N", "deep.n".to_owned(), HeaderType::Integer),
            ("Flag", "flag".to_owned(), HeaderType::Boolean),
        ]
    );
    assert_eq!(annotations(br#"{"type":"object"}"#), Ok(vec![]));
}

#[test]
fn wrong_annotations_are_rejected() {
    for bad in [
        r#"{"x-mcp-header":"A"}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":5}}}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"a:b"}}}"#,
        r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
        r#"{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}"#,
        r#"{"properties":{"a":{"x-mcp-header":"A"}}}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#,
        r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#,
        r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
        r#"{"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"A","x-mcp-header":"B"}}}"#,
    ] {
        assert!(annotations(bad.as_bytes()).is_err(), "{bad}");
    }
    let deep = format!(
        "{}{{\"x-mcp-header\":1}}{}",
        r#"{"not":"#.repeat(200),
        "}".repeat(200)
    );
    assert!(annotations(deep.as_bytes()).is_err());
}

#[test]
fn arguments_are_mirrored() {
    let message = call(
        "tools/call",
        r#""name":"t","arguments":{"region":" \u00e9","deep":{"n":42.0},"flag":null}"#,
    );
    let params = Params::read(&message).unwrap();
    let found = annotations(SCHEMA.as_bytes()).unwrap();
    let mut headers = standard(Version::V2026_07_28, "tools/call", Some("t"));
    headers.extend(compute(&params, &found).unwrap());
    let written: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        written,
        [
            ("MCP-Protocol-Version", V),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "t"),
            ("Mcp-Param-Region", "=?base64?IMOp?="),
            ("Mcp-Param-N", "42"),
        ]
    );
    let n = |value| {
        [
            ("mcp-param-region", "=?base64?IMOp?="),
            ("mcp-param-n", value),
        ]
    };
    let check = |headers: &[(&str, &str)]| {
        check_params(getter(headers), &params, &found).map_err(|error| error.code)
    };
    assert_eq!(check(&n("42")), Ok(()));
    assert_eq!(check(&n("42.0")), Ok(()));
    assert_eq!(check(&n("43")), Err(-32020));
    assert_eq!(check(&n("=?base64?%?=")), Err(-32020));
    assert_eq!(check(&n("42")[1..]), Err(-32020));
    let with_null = [
        ("mcp-param-flag", "true"),
        ("mcp-param-n", "42"),
        ("mcp-param-region", "=?base64?IMOp?="),
    ];
    assert_eq!(check(&with_null), Err(-32020));
    let twice = call(
        "tools/call",
        r#""name":"t","arguments":{"region":"a","region":"b"}"#,
    );
    let twice = Params::read(&twice).unwrap();
    assert_eq!(
        check_params(getter(&n("42")), &twice, &found)
            .unwrap_err()
            .code,
        -32600
    );
}

proptest! {
    #[test]
    fn values_round_trip(text in any::<String>()) {
        let value = encode(&text);
        prop_assert!(value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')));
        prop_assert_eq!(decode(&value), Some(text));
    }

    #[test]
    fn never_panics(value in any::<String>(), schema in prop::collection::vec(any::<u8>(), 0..99), near in r#"[{}\[\]":,a]{0,20}"#) {
        let _ = decode(&value);
        let _ = annotations(&schema);
        let _ = annotations(format!(r#"{{"properties":{{"x-mcp-header":{near}}}}}"#).as_bytes());
        let message = call("tools/call", r#""name":"t""#);
        let _ = check(|_| Some(&*value), &Params::read(&message).unwrap());
    }
}
