mod oracle;

use bytes::Bytes;
use proptest::prelude::*;

use super::canonical::CANONICAL_DEPTH_MAX;
use super::strategies::{object_of, value};
use super::text::trim;
use super::*;

fn keys(text: &str) -> Result<Vec<String>, JsonError> {
    Ok(members(text.as_bytes(), Span::all(text.as_bytes()))?
        .iter()
        .map(|(key, _)| key.to_owned())
        .collect())
}

#[test]
fn members_keep_spelling_and_places() {
    let text = b" { \"a\" : -0.0 ,\"\\u0062\":1e400,\n\"c\":12345678901234567890 , \"d\":null, \"e\":\"\\u00e9\\ud800\" } ";
    let read = members(text, Span::all(text)).unwrap();
    let raw: Vec<_> = read
        .iter()
        .map(|(key, m)| (key, std::str::from_utf8(m.raw).unwrap()))
        .collect();
    let expect = [
        ("a", "-0.0"),
        ("b", "1e400"),
        ("c", "12345678901234567890"),
        ("d", "null"),
        ("e", "\"\\u00e9\\ud800\""),
    ];
    assert_eq!(raw, expect);
    for (_, member) in read.iter() {
        assert_eq!(member.span.of(text), member.raw);
        assert_eq!(member.whole.of(text).first(), Some(&b'"'));
        assert!(member.whole.of(text).ends_with(member.raw));
    }
    assert_eq!(read.get("b").unwrap().whole.of(text), b"\"\\u0062\":1e400");
}

#[test]
fn duplicates_and_bad_syntax_are_rejected() {
    assert_eq!(
        keys(r#"{"a":1,"\u0061":2}"#),
        Err(JsonError::Duplicate("a".into()))
    );
    let many = format!(
        "{{{},\"k3\":0}}",
        (0..40)
            .map(|n| format!("\"k{n}\":{n}"))
            .collect::<Vec<_>>()
            .join(",")
    );
    assert_eq!(keys(&many), Err(JsonError::Duplicate("k3".into())));
    assert_eq!(keys("[1]"), Err(JsonError::NotAnObject));
    for bad in [
        "",
        " ",
        "{",
        "{}x",
        "{\"a\":01}",
        "{\"a\":1,}",
        "{'a':1}",
        "{\"a\":\"\n\"}",
        "{\"a\":NaN}",
        "[",
        "\u{feff}{}",
    ] {
        assert!(matches!(keys(bad), Err(JsonError::Syntax(_))), "{bad:?}");
    }
    for bad in [
        &b"{\"a\":\"\xff\"}"[..],
        b"{\"\xc3\":1}",
        b"{\"a\":[\"\xed\xa0\x80\"]}",
    ] {
        assert!(
            matches!(members(bad, Span::all(bad)), Err(JsonError::Syntax(_))),
            "{bad:?}"
        );
    }
}

#[test]
fn deep_nesting_does_not_overflow() {
    let open = "[".repeat(1 << 20);
    assert!(matches!(keys(&open), Err(JsonError::Syntax(_))));
    let text = format!("{{\"a\":{open}{}}}", "]".repeat(1 << 20));
    assert_eq!(keys(&text).unwrap(), ["a"]);
    assert_eq!(refuse_duplicates(text.as_bytes()), Ok(()));
    let objects = format!("{}1{}", "{\"a\":".repeat(1 << 18), "}".repeat(1 << 18));
    assert_eq!(refuse_duplicates(objects.as_bytes()), Ok(()));
}

#[test]
fn deep_nesting_is_counted() {
    for (text, is_deep, expect) in [
        ("{}".to_owned(), false, 1),
        (r#"{"a\"}":"[[{","b":[{},[{"c":1}]]}"#.to_owned(), false, 4),
        (
            format!("{{\"a\":{}{}}}", "[".repeat(32), "]".repeat(32)),
            false,
            33,
        ),
        (
            format!("{{\"a\":{}{}}}", "[".repeat(33), "]".repeat(33)),
            true,
            34,
        ),
        (
            format!("{}1{}", "{\"a\":".repeat(1 << 18), "}".repeat(1 << 18)),
            true,
            1 << 18,
        ),
    ] {
        assert_eq!(
            each_member(text.as_bytes(), |_, _| {}),
            Ok(is_deep),
            "{expect}"
        );
        assert_eq!(nesting(text.as_bytes()), expect);
    }
}

#[test]
fn duplicates_are_found_at_any_depth() {
    let dup = |text: &str| refuse_duplicates(text.as_bytes());
    assert_eq!(
        dup(r#"{"a":[{"b":1e400,"c":{"x":1,"\u0078":2}}]}"#),
        Err(JsonError::Duplicate("x".into()))
    );
    assert_eq!(
        dup(r#"[{"a":1},{"a":2},"a","a",{"a":"a","b":["a","a"],"c":{"a":1}}]"#),
        Ok(())
    );
    assert_eq!(dup(r#"{"a\"}":1,"b":"{\"b\":1,\"b\"\\","a\\":[]}"#), Ok(()));
    assert!(matches!(dup("{"), Err(JsonError::Syntax(_))));
}

fn edited(text: &str, set: &[(&str, &str)], remove: &[&str]) -> String {
    let frame = Bytes::copy_from_slice(text.as_bytes());
    let read = members(&frame, Span::all(&frame)).unwrap();
    let gone = remove.iter().map(|key| (*key, None));
    let set = set.iter().map(|(key, raw)| (*key, Some(raw.as_bytes())));
    let mut splice = Splice::new();
    edit_object(&read, &gone.chain(set).collect::<Vec<_>>(), &mut splice);
    String::from_utf8(splice.apply(&frame).to_vec()).unwrap()
}

#[test]
fn object_edits_keep_the_commas_right() {
    let text = r#"{ "a":1, "b":2 , "c":3 }"#;
    for (set, remove, expect) in [
        (vec![], vec!["a"], r#"{ "b":2 , "c":3 }"#),
        (vec![], vec!["b"], r#"{ "a":1 , "c":3 }"#),
        (vec![], vec!["c"], r#"{ "a":1, "b":2 }"#),
        (vec![], vec!["a", "b"], r#"{ "c":3 }"#),
        (vec![], vec!["b", "c"], r#"{ "a":1 }"#),
        (vec![], vec!["a", "c"], r#"{ "b":2 }"#),
        (vec![], vec!["a", "b", "c", "x"], r#"{  }"#),
        (vec![("x", "9")], vec!["a", "b", "c"], r#"{"x":9  }"#),
        (
            vec![("x", "9"), ("y", "8")],
            vec!["c"],
            r#"{ "a":1, "b":2,"x":9,"y":8 }"#,
        ),
        (vec![("b", "7")], vec![], r#"{ "a":1, "b":7 , "c":3 }"#),
        (
            vec![("c", "7"), ("x", "1")],
            vec!["b"],
            r#"{ "a":1 , "c":7,"x":1 }"#,
        ),
    ] {
        assert_eq!(edited(text, &set, &remove), expect);
    }
    assert_eq!(edited("{}", &[("a\"", "1")], &["b"]), r#"{"a\"":1}"#);
}

#[test]
fn a_splice_without_edits_copies_nothing() {
    let frame = Bytes::from_static(b"{}");
    assert_eq!(Splice::new().apply(&frame).as_ptr(), frame.as_ptr());
}

#[test]
fn an_edit_inside_a_replaced_span_is_dropped() {
    let frame = Bytes::from_static(b"abcdef");
    let mut splice = Splice::new();
    splice.replace(Span { start: 3, end: 4 }, b"X");
    splice.replace(Span { start: 1, end: 5 }, b"-");
    splice.insert(1, b"<");
    splice.insert(5, b">");
    assert_eq!(&splice.apply(&frame)[..], b"a<->f");
}

/// Whether the scan and `serde_json` read the same in an object or an array, or both reject it.
fn scan_agrees(frame: &[u8]) -> bool {
    let value = trim(frame, Span::all(frame));
    let mut elements = Vec::new();
    let mut spans = Vec::new();
    let array = scan::array(frame, value, |span| elements.push(span)).map(|()| elements);
    let object = scan::object(frame, value, &[], |span| spans.push(span)).map(|_| spans);
    // A key with half a surrogate pair is found and then rejected.
    let object = object.filter(|_| {
        !matches!(
            members_with_duplicates(frame, Span::all(frame)),
            Err(JsonError::Syntax(_))
        )
    });
    array == oracle::array(frame) && object == oracle::object(frame)
}

proptest! {
    #[test]
    fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = members(&bytes, Span::all(&bytes));
        let _ = elements(&bytes, Span::all(&bytes));
        let _ = refuse_duplicates(&bytes);
    }

    #[test]
    fn never_panics_near_json(text in "[\\[\\]{}\":,\\\\ua-f0-9 ]{0,60}") {
        let _ = members(text.as_bytes(), Span::all(text.as_bytes()));
        let _ = refuse_duplicates(text.as_bytes());
    }

    #[test]
    fn the_scan_agrees_with_serde_json(
        text in object_of(value()), at in any::<prop::sample::Index>(), gone in 0..3usize,
        put in prop::sample::select(vec!["", "\"", "\\", "{", "}", "[", "]", ",", ":", " ", "0", "-", ".", "e", "\n", "\u{1}", "\u{7f}", "\\u12", "t"]),
    ) {
        let text = text.replace("\\u0078", "x").into_bytes();
        prop_assert!(scan_agrees(&text));
        let at = at.index(text.len());
        let end = (at + gone).min(text.len());
        let changed = [&text[..at], put.as_bytes(), &text[end..]].concat();
        for changed in [[b" [1, ", &*changed, b"]"].concat(), changed] {
            prop_assert!(scan_agrees(&changed), "{}", String::from_utf8_lossy(&changed));
        }
    }

    #[test]
    fn the_scan_agrees_with_serde_json_near_json(text in "\\{\"a\":[\\[\\]{}\":,\\\\ue0-2.+-Enultr ]{0,12}\\}") {
        prop_assert!(scan_agrees(text.as_bytes()));
    }

    #[test]
    fn text_reads_as_serde_json_does(raw in "\"[a\\\\\"\u{1}\u{7f}u0\u{e9}]{0,6}\"?") {
        let expected = serde_json::from_str::<String>(&raw).ok();
        prop_assert_eq!(super::text(raw.as_bytes()).map(std::borrow::Cow::into_owned), expected);
    }

    #[test]
    fn quote_and_text_are_inverse(text in any::<String>()) {
        let quoted = quote(&text);
        prop_assert_eq!(super::text(quoted.as_bytes()).unwrap(), text);
    }

    #[test]
    fn edits_leave_valid_json_and_all_other_members(text in object_of(value()), gone in prop::collection::vec(0..5u8, 0..4), new in value()) {
        let remove: Vec<String> = gone.iter().map(|at| format!("kx{at}")).collect();
        let remove: Vec<&str> = remove.iter().map(String::as_str).collect();
        let out = edited(&text, &[("new", &new)], &remove);
        let before = members(text.as_bytes(), Span::all(text.as_bytes())).unwrap();
        let after = members(out.as_bytes(), Span::all(out.as_bytes())).unwrap();
        for (key, member) in before.iter() {
            let found = after.get(key).map(|m| m.raw);
            prop_assert_eq!(found, (!remove.contains(&key)).then_some(member.raw));
        }
        prop_assert_eq!(after.get("new").unwrap().raw, new.as_bytes());
    }
}

fn canon(text: &str) -> Result<String, JsonError> {
    Ok(String::from_utf8(canonical(text.as_bytes())?).unwrap())
}

#[test]
fn canonical_text_is_one_spelling_of_a_value() {
    for (text, expect) in [
        (
            r#" { "b" : [ 1 , true,null ] , "a":-0.0 } "#,
            r#"{"a":-0.0,"b":[1,true,null]}"#,
        ),
        (
            r#"{"b":{"d":1,"c":{"f":"","e":[]}},"a":{}}"#,
            r#"{"a":{},"b":{"c":{"e":[],"f":""},"d":1}}"#,
        ),
        (
            r#"{"\u0062":"\u00e9\/\n\u000a\u0001\"\\","a":"\ud83d\ude00"}"#,
            "{\"a\":\"😀\",\"b\":\"é/\\n\\n\\u0001\\\"\\\\\"}",
        ),
        (
            r#"{"ab":1,"a":2,"":3,"B":4,"é":5,"z":6}"#,
            r#"{"":3,"B":4,"a":2,"ab":1,"z":6,"é":5}"#,
        ),
        ("1e400", "1e400"),
        (" \"x\" ", "\"x\""),
        (
            r#"[{"b":1,"a":2},{"a":"}"}]"#,
            r#"[{"a":2,"b":1},{"a":"}"}]"#,
        ),
        (
            r#"{"c":{"b":1,"a":[{"z":1,"y":2}]},"b":"c","a":","}"#,
            r#"{"a":",","b":"c","c":{"a":[{"y":2,"z":1}],"b":1}}"#,
        ),
    ] {
        assert_eq!(canon(text).as_deref(), Ok(expect), "{text}");
        assert_eq!(canon(expect).as_deref(), Ok(expect));
    }
    assert_eq!(
        canon(r#"[{"b":1,"a":2,"\u0062":3}]"#),
        Err(JsonError::Duplicate("b".into()))
    );
    assert_eq!(
        canon(r#"{"a":1,"a":1}"#),
        Err(JsonError::Duplicate("a".into()))
    );
    for bad in [
        "",
        "{",
        "1 2",
        "{\"a\":01}",
        r#""\ud800""#,
        r#"{"\udc00":1}"#,
    ] {
        assert!(matches!(canon(bad), Err(JsonError::Syntax(_))), "{bad:?}");
    }
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(
        canon(&nested(CANONICAL_DEPTH_MAX)),
        Ok(nested(CANONICAL_DEPTH_MAX))
    );
    assert!(matches!(
        canon(&nested(CANONICAL_DEPTH_MAX + 1)),
        Err(JsonError::Syntax(_))
    ));
}

proptest! {
    #[test]
    fn canonical_text_is_the_same_value_and_its_own_canonical_text(text in object_of(value())) {
        match (canonical(text.as_bytes()), refuse_duplicates(text.as_bytes())) {
            (Ok(canon), Ok(())) => {
                prop_assert_eq!(canonical(&canon), Ok(canon.clone()));
                let tree = |raw: &[u8]| serde_json::from_slice::<serde_json::Value>(raw).ok();
                prop_assert_eq!(tree(&canon), tree(text.as_bytes()));
            }
            (Err(_), Err(_)) => {}
            (Err(JsonError::Syntax(why)), Ok(())) => prop_assert!(why.contains("surrogate"), "{why}"),
            (canon, plain) => prop_assert!(false, "{canon:?} {plain:?}"),
        }
    }
}

#[test]
fn tokens_have_their_places() {
    let text = b" { \"a\\\"\" :[ -1.5e3,\t\"\" ], \"b\": null }\n";
    let mut tokens = Tokens::new(text);
    let mut found = Vec::new();
    while let Some(token) = tokens.next() {
        let raw = tokens.span().of(text);
        match token {
            Token::Open(byte) | Token::Close(byte) => assert_eq!(raw, [byte]),
            Token::Comma => assert_eq!(raw, b","),
            Token::Colon => assert_eq!(raw, b":"),
            Token::Text(same) | Token::Plain(same) => assert_eq!(raw, same),
        }
        found.push(std::str::from_utf8(raw).unwrap());
    }
    let expect = [
        "{",
        "\"a\\\"\"",
        ":",
        "[",
        "-1.5e3",
        ",",
        "\"\"",
        "]",
        ",",
        "\"b\"",
        ":",
        "null",
        "}",
    ];
    assert_eq!(found, expect);
}

#[test]
fn a_value_is_skipped_with_all_that_is_in_it() {
    for (text, end) in [
        ("1 ,2", "1"),
        (" \"a,}\" ]", " \"a,}\""),
        ("{\"a\":[1,{}]} }", "{\"a\":[1,{}]}"),
        ("[] ,", "[]"),
        ("[1,", "[1,"),
    ] {
        let mut tokens = Tokens::new(text.as_bytes());
        tokens.skip_value();
        assert_eq!(&text[..tokens.span().end], end);
    }
}

/// The end of a string, byte by byte.
fn slow_string_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    loop {
        match text.get(at) {
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
            None => return text.len(),
        }
    }
}

#[test]
fn strings_end_at_their_closing_quote() {
    for len in 0..80 {
        for (at, back) in (0..len).flat_map(|at| (0..3).map(move |back| (at, back))) {
            let mut text = vec![b'x'; len];
            text[at] = b'"';
            text[at.saturating_sub(back)..at].fill(b'\\');
            assert_eq!(
                scan::string_end(&text, 0),
                slow_string_end(&text, 0),
                "{text:?}"
            );
        }
    }
}

proptest! {
    #[test]
    fn tokens_cover_all_but_white_space(text in value()) {
        let mut tokens = Tokens::checked(text.as_bytes()).unwrap();
        let mut raw = Vec::new();
        while tokens.next().is_some() {
            raw.extend_from_slice(tokens.span().of(text.as_bytes()));
        }
        prop_assert!(check(&raw).is_ok());
        prop_assert_eq!(canonical(&raw), canonical(text.as_bytes()));
    }

    #[test]
    fn tokens_of_any_bytes_never_go_back(bytes in prop::collection::vec(prop::sample::select(b"{}[]\",:\\ \n1eu\xff".to_vec()), 0..40)) {
        let mut tokens = Tokens::new(&bytes);
        let mut end = 0;
        while tokens.next().is_some() {
            let span = tokens.span();
            prop_assert!(span.start >= end && span.end > span.start && span.end <= bytes.len());
            end = span.end;
        }
        Tokens::new(&bytes).skip_value();
    }

    #[test]
    fn check_agrees_with_serde_json(bytes in prop::collection::vec(prop::sample::select(b"{}[]\",:\\ \n1e.0untrl\xc3\xa9".to_vec()), 0..12), inner in value()) {
        let valid = |raw: &[u8]| serde_json::from_slice::<&serde_json::value::RawValue>(raw).is_ok();
        prop_assert_eq!(check(&bytes).is_ok(), valid(&bytes));
        prop_assert!(check(inner.as_bytes()).is_ok());
        let cut = &inner.as_bytes()[..inner.len() - 1];
        prop_assert_eq!(check(cut).is_ok(), valid(cut));
    }
}

#[test]
fn a_text_is_plain_unless_a_byte_needs_an_escape() {
    for byte in 0..=u8::MAX {
        for (at, length) in (0..20).flat_map(|length| (0..length).map(move |at| (at, length))) {
            let mut text = vec![b'!'; length];
            text[at] = byte;
            assert_eq!(
                scan::is_plain(&text),
                !matches!(byte, b'"' | b'\\' | 0..b' '),
                "{text:?}"
            );
        }
    }
    assert!(scan::is_plain(b""));
}

#[test]
fn objects_are_written_member_by_member() {
    assert_eq!(object(|_| {}), b"{}");
    let written = object(|object| {
        assert!(object.is_empty());
        object
            .text("a\n", "x\"\u{1}\u{1f}\t\r\n\\é")
            .raw("b", b"[1e400]")
            .number("c", -3_i64);
        assert!(!object.is_empty());
        object
            .number("d", u64::MAX)
            .bool("e", true)
            .bool("f", false)
            .null("g");
        object.optional_text("h", None).optional_text("i", Some(""));
        object
            .joined("j", ["a", "\"", ""], ":")
            .texts("k", ["x", "\n"])
            .texts("l", [""; 0]);
        object.object("m", |inner| {
            inner.array("n", |array| {
                array.text("t").raw(b"null").object(|_| {}).object(|last| {
                    last.bool("o", false);
                });
            });
        });
    });
    let expect = r#"{"a\n":"x\"\u0001\u001f\t\r\n\\é","b":[1e400],"c":-3,"d":18446744073709551615,"e":true,"f":false,"g":null,"i":"","j":"a:\":","k":["x","\n"],"l":[],"m":{"n":["t",null,{},{"o":false}]}}"#;
    assert_eq!(String::from_utf8(written).unwrap(), expect);
    let mut part = b"{\"a\":1,".to_vec();
    Object::write_members(&mut part, |members| {
        members.number("b", 2_u8).text("c", "3");
    });
    assert_eq!(part, br#"{"a":1,"b":2,"c":"3""#);
}

proptest! {
    #[test]
    fn written_texts_are_read_back(key in any::<String>(), text in any::<String>(), parts in prop::collection::vec(any::<String>(), 0..4)) {
        let written = object(|object| {
            object.text(&key, &text);
        });
        let read = members(&written, Span::all(&written)).unwrap();
        prop_assert_eq!(read.get(&key).unwrap().text().unwrap(), text);
        prop_assert_eq!(canonical(&written).unwrap(), &written[..]);
        let joined = object(|object| {
            object.joined("k", parts.iter().map(String::as_str), "\n");
        });
        let read = members(&joined, Span::all(&joined)).unwrap();
        prop_assert_eq!(read.get("k").unwrap().text().unwrap(), parts.join("\n"));
    }
}
