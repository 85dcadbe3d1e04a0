use super::*;

#[test]
fn kinds_are_cut_at_the_first_two_colons() {
    let check = |text: &str, parts: (&str, Option<&str>, Option<&str>)| {
        let kind = KindRef::parse(text).unwrap();
        assert_eq!(
            (kind.head(), kind.method(), kind.context()),
            parts,
            "{text}"
        );
        assert_eq!(kind.to_string(), text);
    };
    check("chat", ("chat", None, None));
    check("acme/a:b", ("acme/a:b", None, None));
    check(
        "mcp/request:tools/call",
        ("mcp/request", Some("tools/call"), None),
    );
    check(
        "mcp/request:tools/call:x",
        ("mcp/request", Some("tools/call"), Some("x")),
    );
    check(
        "mcp/request:resources/read:a://b:c",
        ("mcp/request", Some("resources/read"), Some("a://b:c")),
    );
    check(
        "mcp/request:tools/call:*",
        ("mcp/request", Some("tools/call"), Some("*")),
    );
}

#[test]
fn malformed_kinds_are_refused() {
    let check =
        |text: &str, expected: KindError| assert_eq!(KindRef::parse(text), Err(expected), "{text}");
    check("", KindError::NoHead);
    check(":x", KindError::NoHead);
    check("mcp/", KindError::NoMethod);
    check("mcp/:x", KindError::NoHead);
    check("mcp/request", KindError::NoMethod);
    check("mcp/request:", KindError::NoMethod);
    check("mcp/request::x", KindError::NoMethod);
    check("mcp/request:tools/call:", KindError::EmptyContext);
    check("mcp/request:tools/*", KindError::Wildcard);
    check("mcp/*:tools/call", KindError::Wildcard);
    check("acme/*", KindError::Wildcard);
}

#[test]
fn a_method_from_a_wire_cannot_smuggle_a_context() {
    assert_eq!(
        KindRef::request("tools/call:x", None),
        Err(KindError::Colon)
    );
    assert_eq!(KindRef::request("*", None), Err(KindError::Wildcard));
    assert_eq!(KindRef::request("", None), Err(KindError::NoMethod));
    assert_eq!(
        KindRef::request("tools/call", Some("")),
        Err(KindError::EmptyContext)
    );
    let kind = KindRef::request("tools/call", Some("x")).unwrap();
    assert_eq!(Ok(kind), KindRef::parse("mcp/request:tools/call:x"));
}

#[test]
fn the_gateways_own_words_are_reserved() {
    let reserved = [
        "system",
        "presence",
        "system/welcome",
        "presence/x",
        "system:x",
        "presence:y",
    ];
    for (kinds, expected) in [
        (&reserved[..], true),
        (&["systems", "presences/x", "chat"][..], false),
    ] {
        for kind in kinds {
            assert_eq!(
                KindRef::parse(kind).unwrap().is_reserved(),
                expected,
                "{kind}"
            );
        }
    }
}
