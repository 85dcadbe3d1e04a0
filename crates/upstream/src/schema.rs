//! Check of a tool's input schema: dialect, syntax, limits. References to other documents are never fetched.

use jsonschema::meta;
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
    let schema: Value =
        serde_json::from_slice(&bounded(raw)).map_err(|_| "its input schema cannot be parsed".to_owned())?;
    let Value::Object(members) = &schema else {
        return Err("its input schema is not an object".to_owned());
    };
    if members.get("type").and_then(Value::as_str) != Some("object") {
        return Err("its input schema does not have `\"type\": \"object\"`".to_owned());
    }
    let known = match members.get("$schema") {
        None => true,
        Some(Value::String(dialect)) => known_dialect(dialect),
        Some(_) => false,
    };
    if !known {
        return Err("its input schema is written in an unknown dialect".to_owned());
    }
    meta::validate(&schema).map_err(|error| {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { "the root".to_owned() } else { format!("`{place}`") };
        format!("its input schema is not valid at {place}")
    })
}

/// Replaces numbers beyond the range of `f64` (`1e400`): they are valid JSON, but the parser rejects them.
fn bounded(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(byte) = rest.first() {
        let inside = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
        let length = match byte {
            b'"' => string_len(rest),
            b'-' | b'0'..=b'9' => rest.iter().take_while(|byte| inside(byte)).count(),
            _ => 1,
        };
        let (token, after) = rest.split_at(length.clamp(1, rest.len()));
        let number = std::str::from_utf8(token).ok().filter(|_| *byte != b'"');
        match number.and_then(|text| text.parse::<f64>().ok()) {
            Some(number) if number.is_infinite() => out.extend_from_slice(b"1e308"),
            Some(_) | None => out.extend_from_slice(token),
        }
        rest = after;
    }
    out
}

/// Length in bytes of the string at the start of the text, quotes included.
fn string_len(text: &[u8]) -> usize {
    let mut escaped = false;
    let end = text.iter().skip(1).position(|byte| {
        let ends = !escaped && *byte == b'"';
        escaped = !escaped && *byte == b'\\';
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

fn known_dialect(dialect: &str) -> bool {
    let name = dialect.trim_end_matches('#').trim_start_matches("https://").trim_start_matches("http://");
    matches!(
        name,
        "json-schema.org/draft/2020-12/schema"
            | "json-schema.org/draft/2019-09/schema"
            | "json-schema.org/draft-07/schema"
            | "json-schema.org/draft-06/schema"
            | "json-schema.org/draft-04/schema"
    )
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn schemas_are_accepted_or_rejected_with_a_reason() {
        for (schema, reason) in [
            (r#"{"type":"object"}"#, None),
            (r#"{"type":"object","x":[1e400,-1e400,-0.0,"1e400\"",12345678901234567890]}"#, None),
            (r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#, None),
            (r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}"#, None),
            (
                r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"a":true}}"#,
                None,
            ),
            (r#"{"type":"object","properties":{"a":{"$ref":"https://nowhere.test/x"}}}"#, None),
            ("[]", Some("not an object")),
            ("null", Some("not an object")),
            (r#"{"type":"string"}"#, Some("type")),
            (r#"{}"#, Some("type")),
            (r#"{"type":"object","properties":{"a":{"type":"strin"}}}"#, Some("not valid at `/properties/a")),
            (r#"{"type":"object","required":"a"}"#, Some("not valid at `/required")),
            (r#"{"$schema":"http://nowhere.test/","type":"object"}"#, Some("dialect")),
        ] {
            match (check(schema.as_bytes()), reason) {
                (Ok(()), None) => {}
                (Err(why), Some(reason)) => assert!(why.contains(reason), "{schema}: {why}"),
                (outcome, _) => panic!("{schema}: {outcome:?}"),
            }
        }
    }
}
