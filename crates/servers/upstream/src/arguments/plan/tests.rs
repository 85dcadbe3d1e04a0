use serde_json::json;

use super::*;

fn refused(schema: &Value) -> String {
    Plan::new(schema).err().unwrap_or_default()
}

#[test]
fn what_cannot_be_followed_has_no_plan() {
    for (schema, why) in [
        (
            json!({"$ref": "https://nowhere.test/x"}),
            "refers to another document",
        ),
        (
            json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}),
            "refers to another document",
        ),
        (
            json!({"properties": {"a": {"$ref": "other.json#/x"}}}),
            "refers to another document",
        ),
        (json!({"$ref": "#/$defs/none"}), "leads nowhere"),
        (
            json!({"$ref": "#anchor", "$defs": {"a": {"$anchor": "anchor"}}}),
            "leads nowhere",
        ),
        (json!({"$ref": "#/default", "default": 1}), "no schema"),
        (json!({"$dynamicRef": "#a"}), "`$dynamicRef`"),
        (json!({"$recursiveRef": "#"}), "`$recursiveRef`"),
        (
            json!({"$defs": {"a": {"$id": "https://nowhere.test/a"}}}),
            "`$id`",
        ),
        (
            json!({"$defs": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}),
            "`$schema`",
        ),
        (
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "definitions": {"a": {"id": "#b"}}}),
            "`id`",
        ),
    ] {
        assert!(
            refused(&schema).contains(why),
            "{schema}: {}",
            refused(&schema)
        );
    }
    for schema in [
        json!({"$id": "https://nowhere.test/root", "$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": true}}),
        json!({"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}, "pattern": {}}}),
        json!({"properties": {"child": {"$ref": "#"}, "left": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}}),
    ] {
        assert_eq!(refused(&schema), "", "{schema}");
    }
}

#[test]
fn no_subschema_applies_to_one_value_again_and_again() {
    for schema in [
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$ref": "#"}),
        json!({"not": {"$ref": "#"}}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"if": {"$ref": "#/$defs/a"}}}}),
        json!({"properties": {"x": {"oneOf": [{"$ref": "#/properties/x"}]}}}),
        json!({"dependentSchemas": {"x": {"$ref": "#"}}}),
        json!({"dependencies": {"x": {"$ref": "#"}}}),
    ] {
        assert!(
            refused(&schema).contains("again and again"),
            "{schema}: {}",
            refused(&schema)
        );
    }
}

/// `count` schemas, each of which refers to the next so many times.
fn doubling(count: usize, times: usize) -> Value {
    let mut defs = serde_json::Map::new();
    for at in 0..count {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        defs.insert(format!("d{at}"), json!({"anyOf": vec![next; times]}));
    }
    defs.insert(format!("d{count}"), json!(true));
    json!({"$ref": "#/$defs/d0", "$defs": defs})
}

#[test]
fn subschemas_for_one_value_are_limited() {
    // Each round has a reference and a choice: 1 + 2 + 2 * (1 + 2 * ...).
    assert_eq!(refused(&doubling(10, 2)), "");
    assert!(
        refused(&doubling(13, 2)).contains("more than 10000 subschemas"),
        "{}",
        refused(&doubling(13, 2))
    );
    // The whole, its reference to the first, two for each round.
    assert_eq!(refused(&doubling(31, 1)), "");
    assert!(refused(&doubling(32, 1)).contains("again and again"));
    assert!(refused(&doubling(1_500, 1)).contains("again and again"));
}

#[test]
fn sizes_of_a_schema_are_limited() {
    let wide = |values: usize| json!({"enum": vec![1; values - 2]});
    assert_eq!(refused(&wide(10_000)), "");
    assert_eq!(Plan::new(&wide(10_000)).unwrap().values(), 10_000);
    assert!(refused(&wide(10_001)).contains("10000 values"));
    assert_eq!(refused(&json!({"pattern": "a".repeat(2_048)})), "");
    assert!(refused(&json!({"pattern": "a".repeat(2_049)})).contains("2048 bytes"));
    assert!(refused(&json!({"patternProperties": {"a".repeat(2_049): {}}})).contains("2048 bytes"));
}

#[test]
fn patterns_of_a_schema_are_limited_by_what_they_become() {
    assert_eq!((patterns::states("abc"), patterns::states("(?=a)")), (3, 1));
    // One for the whole, one for each repetition of three.
    let exact = format!("(?:abc){{{}}}", patterns::STATES_MAX / 4);
    assert_eq!(patterns::states(&exact), patterns::STATES_MAX);
    assert_eq!(refused(&json!({"pattern": exact})), "");
    for more in [
        json!({"pattern": exact, "items": {"pattern": "a"}}),
        json!({"pattern": exact, "patternProperties": {"a": {}}}),
        json!({"pattern": "((a{100}){100}){100}"}),
        json!({"pattern": r"(\p{L}{99}){99}"}),
    ] {
        assert!(
            refused(&more).contains("too large together"),
            "{more}: {}",
            refused(&more)
        );
    }
    assert_eq!(
        Plan::new(&json!({"pattern": exact})).unwrap().values(),
        2 + 1 + 5_000
    );
}

#[test]
fn steps_of_a_check_are_limited() {
    let cost = |schema: &Value, value: &Value| Plan::new(schema).unwrap().cost(value);
    // Each level of the value is looked at twice by each of the two: 4, 16, 64...
    let tree = json!({"anyOf": [{"properties": {"x": {"$ref": "#"}}}, {"properties": {"x": {"$ref": "#"}}}]});
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({"x": inner}));
    assert!(!cost(&tree, &nested(10)).is_too_high());
    assert!(cost(&tree, &nested(30)).is_too_high());
    // Depth alone: two subschemas for each level.
    let line = json!({"properties": {"x": {"$ref": "#"}}});
    assert!(!cost(&line, &nested(127)).is_too_high());
    assert!(cost(&line, &nested(128)).is_too_high());
    // Items that are compared with each other.
    let unique = json!({"uniqueItems": true});
    let lists = |count: usize| Value::from(vec![json!([]); count]);
    assert!(!cost(&unique, &lists(3_900)).is_too_high());
    assert!(cost(&unique, &lists(4_100)).is_too_high());
    assert!(!cost(&unique, &Value::from(vec![1; 100_000])).is_too_high());
    // Names by patterns, twice if others are judged too.
    let names = |schema: &Value, bytes: usize| cost(schema, &json!({"a".repeat(bytes): 1}));
    let one = json!({"patternProperties": {"a": {}}});
    let both = json!({"patternProperties": {"a": {}}, "additionalProperties": false});
    assert!(!names(&one, 600_000).is_too_high() && names(&both, 600_000).is_too_high());
    // Texts that are read whole, in each place.
    let texts = |count: usize| Value::from(vec![json!("a".repeat(64_000)); count]);
    let long = json!({"items": {"allOf": vec![json!({"minLength": 1}); 10]}});
    assert!(!cost(&long, &texts(50)).is_too_high() && cost(&long, &texts(150)).is_too_high());
}

#[test]
fn unevaluated_members_cost_another_round() {
    let plain = json!({"allOf": [{"properties": {"a": {}}}]});
    let again = json!({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": false});
    let value = json!({"a": 1});
    let steps = |schema: &Value| Plan::new(schema).unwrap().cost(&value).steps;
    assert!(
        steps(&again) > steps(&plain) + 2,
        "{} {}",
        steps(&again),
        steps(&plain)
    );
}
