use super::*;

fn constant(json: &str) -> Constant {
    Constant::parse(json).unwrap()
}

fn number(raw: &str) -> Decimal {
    Decimal::parse(raw).unwrap()
}

#[track_caller]
fn check(test: &ValueTest, raw: &str, expect: Fit) {
    let canonical = json::canonical(raw.as_bytes()).unwrap();
    assert_eq!(test.fit(&canonical), expect, "{} {raw}", test.words());
    assert_eq!(test.holds(&canonical), expect == Fit::Held, "{raw}");
}

#[test]
fn constants_are_equal_by_bytes() {
    let test = ValueTest::one_of(["\"acme/site\"", "7", "null"].map(constant));
    for held in ["\"acme/site\"", "\"acme\\/site\"", "7", "null"] {
        check(&test, held, Fit::Held);
    }
    for unclear in [
        "7.0",
        "7e0",
        "70e-1",
        "\"7\"",
        "\" 7\"",
        "\"ACME/site\"",
        "\"acme/site \"",
        "\"acme/s\\u200bite\"",
        "\"аcme/site\"",
        "\"\"",
        "[7]",
        "{}",
    ] {
        check(&test, unclear, Fit::Unclear);
    }
    for failed in ["\"acme/docs\"", "8", "true", "\"acme\""] {
        check(&test, failed, Fit::Failed);
    }
}

#[test]
fn truth_values_are_converted_from_numbers_and_words() {
    let is_true = ValueTest::one_of([constant("true")]);
    check(&is_true, "true", Fit::Held);
    for unclear in [
        "1",
        "1.0",
        "5",
        "\"1\"",
        "\"yes\"",
        "\"On\"",
        "\"t\"",
        "\" TRUE \"",
        "[true]",
        "\"0x1\"",
    ] {
        check(&is_true, unclear, Fit::Unclear);
    }
    for failed in ["false", "0", "null", "\"no\"", "\"\"", "\"maybe\""] {
        check(&is_true, failed, Fit::Failed);
    }
    let is_false = ValueTest::one_of([constant("false")]);
    for unclear in ["0", "null", "\"off\"", "\"N\"", "\"\"", "\"0.0\""] {
        check(&is_false, unclear, Fit::Unclear);
    }
    check(&is_false, "1", Fit::Failed);
    let yes = ValueTest::one_of(["\"yes\"", "1", "5"].map(constant));
    check(&yes, "true", Fit::Unclear);
    check(&yes, "false", Fit::Failed);
}

#[test]
fn numbers_are_read_from_texts_as_readers_do() {
    let test = ValueTest::one_of([constant("500")]);
    for unclear in [
        "\"+500\"",
        "\"500.0\"",
        "\"5_00\"",
        "\" 500\"",
        "\"0x1f4\"",
        "\".5e3\"",
        "\"٥٠٠\"",
        "\"５００\"",
    ] {
        check(&test, unclear, Fit::Unclear);
    }
    check(&test, "\"501\"", Fit::Failed);
    check(&test, "\"+501\"", Fit::Failed);
}

#[test]
fn numbers_lie_in_ranges_by_their_spelling() {
    let test = ValueTest::Integer(number("1"), number("200"));
    for held in ["1", "200", "77"] {
        check(&test, held, Fit::Held);
    }
    for unclear in [
        "1e2",
        "100.0",
        "\"100\"",
        "1000000000000000",
        "[5]",
        "null",
        "-0",
    ] {
        check(&test, unclear, Fit::Unclear);
    }
    for failed in ["0", "201", "-5", "200.5"] {
        check(&test, failed, Fit::Failed);
    }
    let test = ValueTest::Fraction(number("0.5"), number("99.95"));
    check(&test, "99.95", Fit::Held);
    check(&test, "99.950", Fit::Held);
    check(&test, "99.96", Fit::Failed);
    check(&test, "50", Fit::Unclear);
    check(&test, "9e1", Fit::Unclear);
}

#[test]
fn elements_are_tested_each() {
    let label = ValueTest::one_of(["\"bot\"", "\"report\""].map(constant));
    let range = CountRange::new(0, 3).unwrap();
    let test = ValueTest::Each(range, Some(Box::new(label.clone())));
    for held in ["[]", "[\"bot\"]", "[\"bot\",\"report\",\"bot\"]"] {
        check(&test, held, Fit::Held);
    }
    check(&test, "[\"bot\",\"bot\",\"bot\",\"bot\"]", Fit::Failed);
    check(&test, "[\"bot\",\"x\"]", Fit::Failed);
    check(&test, "[\"Bot\"]", Fit::Unclear);
    check(&test, "\"bot\"", Fit::Unclear);
    check(&test, "\"[\\\"bot\\\"]\"", Fit::Unclear);
    let some = ValueTest::Some(Box::new(label));
    check(&some, "[\"x\",\"bot\"]", Fit::Held);
    check(&some, "[\"x\",\"BOT\"]", Fit::Unclear);
    check(&some, "[\"x\"]", Fit::Failed);
    check(&some, "\"bot\"", Fit::Unclear);
    check(&some, "\"x\"", Fit::Failed);
    check(&some, "\" [\\\"bot\\\"]\"", Fit::Unclear);
    check(&some, "\"x,bot\"", Fit::Unclear);
}

#[test]
fn texts_are_measured_in_characters() {
    let length = CountRange::new(2, 3).unwrap();
    let chars = ValueTest::Chars(CharSet::parse("A-Z0-9").unwrap(), length);
    check(&chars, "\"AB\"", Fit::Held);
    check(&chars, "\"ABCD\"", Fit::Failed);
    check(&chars, "\"ab\"", Fit::Unclear);
    check(&chars, "12", Fit::Unclear);
    let shape = ValueTest::Shape(vec![Shape::parse("A-9").unwrap()], CountRange::one(3));
    check(&shape, "\"A-1\"", Fit::Held);
    check(&shape, "\"A-12\"", Fit::Failed);
    let text = ValueTest::Length(length);
    check(&text, "\"éé\"", Fit::Held);
    check(&text, "\"é\"", Fit::Failed);
}

#[test]
fn tests_of_what_a_value_is_like_are_not_for_approval() {
    let some = ValueTest::Some(Box::new(ValueTest::Absent));
    for test in [
        ValueTest::Type(ValueType::Text),
        ValueTest::Length(CountRange::one(1)),
        some,
    ] {
        assert!(!test.is_for_approval(), "{test:?}");
    }
    check(&ValueTest::Type(ValueType::Number), "5", Fit::Held);
    check(&ValueTest::Type(ValueType::Number), "\"5\"", Fit::Unclear);
    check(&ValueTest::Type(ValueType::Number), "true", Fit::Failed);
}

#[test]
fn the_quick_look_at_two_texts_says_what_the_thorough_one_does() {
    let texts = [
        "",
        " ",
        ".",
        "a",
        "A",
        "a.",
        " a ",
        "a b",
        "A  b",
        "b",
        "stop 1",
        "Stop 1.",
        "1",
        "+1",
        "-a",
        ".a",
        "1 a",
        " 1",
        "true",
        "no",
        "a_b",
        "~",
        "a\\\"b",
        "a\\\\",
        "é",
        "а",
        "null",
        "a\u{200b}",
    ];
    let mut quick = 0;
    for one in texts {
        for other in texts {
            let (one, other) = (format!("\"{one}\""), format!("\"{other}\""));
            let (one, other) = (one.as_bytes(), other.as_bytes());
            let Some(is_like) = are_like_words(one, other) else {
                continue;
            };
            quick += 1;
            let thorough = ReadValue::of(one).reads_like(&ReadValue::of(other));
            assert_eq!(is_like, thorough, "{one:?} {other:?}");
        }
    }
    assert!(quick > 100, "{quick} pairs");
    assert_eq!(are_like_words(b"\"1\"", b"\"a\""), None, "a number");
    assert_eq!(are_like_words(b"1", b"\"a\""), None, "no text");
}
