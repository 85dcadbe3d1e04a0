//! Check of a tool's input schema: dialect, syntax, limits. References to other documents are never
//! fetched.

use json::{Splice, Token, Tokens};
use jsonschema::{Draft, meta};
use serde_json::Value;

/// Longest accepted schema, in bytes.
const SCHEMA_BYTES_MAX: usize = 1 << 20;

/// Checks a raw `inputSchema`.
///
/// # Errors
/// Why the schema is unusable, in words for the operator.
pub(crate) fn check(raw: &[u8]) -> Result<(), String> {
    if raw.len() > SCHEMA_BYTES_MAX {
        return Err("its input schema is too long".to_owned());
    }
    let schema = read(raw)?;
    let Value::Object(members) = &schema else {
        return Err("its input schema is not an object".to_owned());
    };
    if members.get("type").and_then(Value::as_str) != Some("object") {
        return Err("its input schema does not have `\"type\": \"object\"`".to_owned());
    }
    let known = match members.get("$schema") {
        None => true,
        Some(Value::String(dialect)) => matches!(
            Draft::from_schema_uri(dialect),
            Draft::Draft4 | Draft::Draft6 | Draft::Draft7 | Draft::Draft201909 | Draft::Draft202012
        ),
        Some(_) => false,
    };
    if !known {
        return Err("its input schema is written in an unknown dialect".to_owned());
    }
    meta::validate(&schema).map_err(|error| {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() {
            "the root".to_owned()
        } else {
            format!("`{place}`")
        };
        format!("its input schema is not valid at {place}")
    })
}

/// Reads JSON; a number beyond the range of `f64` is the largest.
pub(crate) fn read(raw: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(&bounded(raw))
        .map_err(|_| "its input schema cannot be parsed".to_owned())
}

/// Replaces numbers beyond the range of `f64` (`1e400`): they are valid JSON, but the parser
/// rejects them.
fn bounded(raw: &[u8]) -> Vec<u8> {
    let mut splice = Splice::new();
    let mut tokens = Tokens::new(raw);
    while let Some(token) = tokens.next() {
        if let Token::Plain(text) = token
            && std::str::from_utf8(text).is_ok_and(|text| text.parse().is_ok_and(f64::is_infinite))
            // `inf` is no JSON.
            && json::check(text).is_ok()
        {
            splice.replace(tokens.span(), b"1e308");
        }
    }
    splice.apply_to(raw)
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn schemas_are_accepted_or_rejected_with_a_reason() {
        for (schema, reason) in [
            (r#"{"type":"object"}"#, None),
            (
                r#"{"type":"object","x":[1e400,-1e400,-0.0,"1e400\"",12345678901234567890]}"#,
                None,
            ),
            (
                r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#,
                None,
            ),
            (
                r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}"#,
                None,
            ),
            (
                r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"a":true}}"#,
                None,
            ),
            (
                r#"{"$schema":"https://json-schema.org/schema","type":"object","required":["a"]}"#,
                None,
            ),
            (
                r#"{"$schema":"https://json-schema.org/schema","type":"object","required":"a"}"#,
                Some("not valid"),
            ),
            (
                r#"{"type":"object","properties":{"a":{"$ref":"https://nowhere.test/x"}}}"#,
                None,
            ),
            ("[]", Some("not an object")),
            ("null", Some("not an object")),
            (r#"{"type":"string"}"#, Some("type")),
            (r#"{}"#, Some("type")),
            (r#"{"type":"object","x":-inf}"#, Some("parsed")),
            (r#"{"type":"object","x":+1e400}"#, Some("parsed")),
            (
                r#"{"type":"object","properties":{"a":{"type":"strin"}}}"#,
                Some("not valid at `/properties/a"),
            ),
            (
                r#"{"type":"object","required":"a"}"#,
                Some("not valid at `/required"),
            ),
            (
                r#"{"$schema":"http://nowhere.test/","type":"object"}"#,
                Some("dialect"),
            ),
        ] {
            match (check(schema.as_bytes()), reason) {
                (Ok(()), None) => {}
                (Err(why), Some(reason)) => assert!(why.contains(reason), "{schema}: {why}"),
                (outcome, _) => panic!("{schema}: {outcome:?}"),
            }
        }
    }
}
