//! Forms of JSON Schema, and the protobuf that each becomes.

use crate::assert_fields;

/// The message of one property, `a`.
#[track_caller]
fn assert_field(property: &str, lines: &[&str]) {
    assert_fields(
        &format!(r#"{{"type":"object","properties":{{"a":{property}}}}}"#),
        lines,
    );
}

#[test]
fn scalars_have_explicit_presence() {
    assert_field(r#"{"type":"string"}"#, &["optional string a = 1;"]);
    assert_field(r#"{"type":"integer"}"#, &["optional int64 a = 1;"]);
    assert_field(r#"{"type":"number"}"#, &["optional double a = 1;"]);
    assert_field(r#"{"type":"boolean"}"#, &["optional bool a = 1;"]);
    assert_field(r#"{"type":["string","null"]}"#, &["optional string a = 1;"]);
    assert_field(
        r#"{"anyOf":[{"type":"null"},{"type":"integer"}]}"#,
        &["optional int64 a = 1;"],
    );
}

#[test]
fn what_protobuf_cannot_say_is_a_value() {
    for any in [
        "true",
        "{}",
        r#"{"type":["string","integer"]}"#,
        r#"{"oneOf":[{"type":"string"},{"type":"integer"}]}"#,
        r#"{"enum":["a",1]}"#,
        r#"{"$ref":"https://example.com/other"}"#,
        r##"{"$ref":"#/properties/a"}"##,
        r#"{"allOf":[{"type":"string"},{"minLength":1}]}"#,
    ] {
        assert_field(any, &["google.protobuf.Value a = 1;"]);
    }
    for free in [
        r#"{"type":"object"}"#,
        r#"{"type":"object","additionalProperties":{}}"#,
        r#"{"type":"object","additionalProperties":{"type":"array"}}"#,
        r#"{"type":"object","properties":{"b":{}},"additionalProperties":{"type":"string"}}"#,
        r#"{"type":"object","properties":{"b":{}},"patternProperties":{"^x":{}}}"#,
    ] {
        assert_field(free, &["google.protobuf.Struct a = 1;"]);
    }
    for list in [
        r#"{"type":"array"}"#,
        r#"{"type":"array","items":{}}"#,
        r#"{"type":"array","items":{"type":"array","items":{"type":"string"}}}"#,
        r#"{"type":"array","items":{"type":["string","null"]}}"#,
        r#"{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"string"}}"#,
        r#"{"type":"array","items":[{"type":"string"}]}"#,
    ] {
        assert_field(list, &["google.protobuf.ListValue a = 1;"]);
    }
}

#[test]
fn lists_and_maps_have_rules_of_their_own_and_of_what_is_in_them() {
    assert_field(
        r#"{"type":"array","minItems":1,"uniqueItems":true,"items":{"type":"string","minLength":2}}"#,
        &[
            "repeated string a = 1 [",
            "(buf.validate.field).ignore = IGNORE_IF_ZERO_VALUE,",
            "(buf.validate.field).repeated.min_items = 1,",
            "(buf.validate.field).repeated.unique = true,",
            "(buf.validate.field).repeated.items.string.min_len = 2",
            "];",
        ],
    );
    assert_field(
        r#"{"type":"object","additionalProperties":{"type":"integer","minimum":0,"maximum":9},"maxProperties":3}"#,
        &[
            "map<string, int32> a = 1 [",
            "(buf.validate.field).map.max_pairs = 3,",
            "(buf.validate.field).map.values.int32.gte = 0,",
            "(buf.validate.field).map.values.int32.lte = 9",
            "];",
        ],
    );
}

#[test]
fn bounds_become_rules() {
    for (bounds, rule) in [
        (r#""minimum":1"#, "int64.gte = 1"),
        (r#""minimum":0.5"#, "int64.gte = 1"),
        (r#""exclusiveMinimum":0"#, "int64.gt = 0"),
        (r#""exclusiveMinimum":0.5"#, "int64.gte = 1"),
        (r#""minimum":0,"exclusiveMinimum":true"#, "int64.gt = 0"),
        (r#""maximum":9"#, "int64.lte = 9"),
        (r#""exclusiveMaximum":9"#, "int64.lt = 9"),
    ] {
        let line = format!("optional int64 a = 1 [(buf.validate.field).{rule}];");
        assert_field(&format!(r#"{{"type":"integer",{bounds}}}"#), &[&line]);
    }
    assert_field(
        r#"{"type":"number","minimum":-0.5,"maximum":1e300}"#,
        &[
            "optional double a = 1 [",
            "(buf.validate.field).double.gte = -0.5,",
            "(buf.validate.field).double.lte = 1e300",
            "];",
        ],
    );
    assert_field(
        r#"{"type":"integer","minimum":5,"maximum":1}"#,
        &["optional int32 a = 1;"],
    );
    assert_field(
        r#"{"type":"integer","minimum":1e300}"#,
        &["optional int64 a = 1;"],
    );
}

#[test]
fn texts_keep_their_values_lengths_patterns_and_formats() {
    assert_field(
        r#"{"enum":["plain","with \"quotes\"\n","größe"]}"#,
        &[
            "optional string a = 1 [",
            r#"(buf.validate.field).string.in = "plain","#,
            r#"(buf.validate.field).string.in = "with \"quotes\"\n","#,
            r#"(buf.validate.field).string.in = "größe""#,
            "];",
        ],
    );
    assert_field(
        r#"{"const":"x"}"#,
        &[r#"optional string a = 1 [(buf.validate.field).string.const = "x"];"#],
    );
    assert_field(
        r#"{"enum":["x",null]}"#,
        &[r#"optional string a = 1 [(buf.validate.field).string.in = "x"];"#],
    );
    assert_field(
        r#"{"type":"string","pattern":"^[a-z]+\\d$"}"#,
        &[r#"optional string a = 1 [(buf.validate.field).string.pattern = "^[a-z]+\\d$"];"#],
    );
    assert_field(
        r#"{"type":"string","pattern":"^(?!x)"}"#,
        &["optional string a = 1;"],
    );
    assert_field(
        r#"{"type":"string","format":"uri-reference"}"#,
        &["optional string a = 1 [(buf.validate.field).string.uri_ref = true];"],
    );
    assert_field(
        r#"{"type":"string","format":"date-time"}"#,
        &["optional string a = 1;"],
    );
}

#[test]
fn objects_are_nested_messages() {
    assert_field(
        r#"{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}"#,
        &[
            "A a = 1;",
            "",
            "message A {",
            "optional string b = 1 [(buf.validate.field).required = true];",
            "}",
        ],
    );
    assert_field(
        r#"{"type":"object","additionalProperties":false}"#,
        &["A a = 1;", "", "message A {}"],
    );
}

#[test]
fn a_reference_is_one_message_and_may_lead_back() {
    assert_fields(
        r##"{"type":"object","properties":{"one":{"$ref":"#/$defs/Tree"},"other":{"$ref":"#/$defs/Tree"},"all":{"$ref":"#"}},
          "$defs":{"Tree":{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#/$defs/Tree"}}}}}}"##,
        &[
            "WebSearchRequest.TreeShape one = 1;",
            "WebSearchRequest.TreeShape other = 2;",
            "WebSearchRequest all = 3;",
            "",
            "message TreeShape {",
            "repeated WebSearchRequest.TreeShape children = 1;",
            "}",
        ],
    );
}

#[test]
fn properties_keep_their_names_in_json() {
    assert_fields(
        r#"{"type":"object","properties":{"maxResults":{"type":"string"},"max_results":{"type":"string"},
          "$filter":{"type":"string"},"größe":{"type":"string"},"":{"type":"string"}}}"#,
        &[
            r#"optional string x_max_results = 1 [json_name = "maxResults"];"#,
            r#"optional string max_results_2 = 2 [json_name = "max_results"];"#,
            r#"optional string filter = 3 [json_name = "$filter"];"#,
            r#"optional string gr_e = 4 [json_name = "größe"];"#,
            r#"optional string field = 5 [json_name = ""];"#,
        ],
    );
}

#[test]
fn no_text_of_a_schema_leaves_its_comment_or_its_literal() {
    assert_field(
        r#"{"type":"string","description":"*/ one\r\ntwo\u2028three\u000bfour\u0000;","const":"\"; option x = \u0000\u007f"}"#,
        &[
            r#"optional string a = 1 [(buf.validate.field).string.const = "\"; option x = \000\177"];"#,
        ],
    );
}

#[test]
fn a_least_number_does_not_ask_for_lists_and_maps_that_may_be_left_out() {
    let list = r#"{"type":"array","items":{"type":"string"},"minItems":1}"#;
    let ignored = "(buf.validate.field).ignore = IGNORE_IF_ZERO_VALUE";
    assert_field(
        list,
        &[
            "repeated string a = 1 [",
            &format!("{ignored},"),
            "(buf.validate.field).repeated.min_items = 1",
            "];",
        ],
    );
    assert_field(
        r#"{"type":"object","additionalProperties":{"type":"string"},"minProperties":2}"#,
        &[
            "map<string, string> a = 1 [",
            &format!("{ignored},"),
            "(buf.validate.field).map.min_pairs = 2",
            "];",
        ],
    );
    // Nothing is refused that is empty, and what is required must have its least number.
    assert_field(
        r#"{"type":"array","items":{"type":"string"},"minItems":0}"#,
        &["repeated string a = 1 [(buf.validate.field).repeated.min_items = 0];"],
    );
    assert_fields(
        &format!(r#"{{"type":"object","properties":{{"a":{list}}},"required":["a"]}}"#),
        &["repeated string a = 1 [(buf.validate.field).repeated.min_items = 1];"],
    );
}

#[test]
fn no_field_has_the_name_of_another_property_or_of_what_optional_adds() {
    let fields = |names: &[&str], lines: &[&str]| {
        let properties = names
            .iter()
            .map(|name| format!(r#""{name}":{{"type":"string"}}"#));
        let properties = properties.collect::<Vec<_>>().join(",");
        assert_fields(
            &format!(r#"{{"type":"object","properties":{{{properties}}}}}"#),
            lines,
        );
    };
    fields(
        &["_id"],
        &[r#"optional string x_id = 1 [json_name = "_id"];"#],
    );
    fields(
        &["fooBar", "foo_bar"],
        &[
            r#"optional string x_foo_bar = 1 [json_name = "fooBar"];"#,
            r#"optional string foo_bar_2 = 2 [json_name = "foo_bar"];"#,
        ],
    );
    fields(
        &["foo_bar"],
        &[r#"optional string foo_bar = 1 [json_name = "foo_bar"];"#],
    );
    fields(
        &["id", "_id"],
        &[
            r#"optional string x_id = 1 [json_name = "id"];"#,
            r#"optional string id_2 = 2 [json_name = "_id"];"#,
        ],
    );
}
