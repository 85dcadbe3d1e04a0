//! Header values: encoding of texts and arguments, and the headers of a request that the gateway
//! sends.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use json::JsonError;

use super::schema::HeaderParam;
use crate::mcp::{Params, Version};

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// A text as the value of `Mcp-Name` or `Mcp-Param-*`: plain where that is safe, else in the base64
/// form.
#[must_use]
pub fn encode(text: &str) -> String {
    let outer = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let bytes = text.as_bytes();
    let visible = bytes.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let padded = outer(bytes.first()) || outer(bytes.last());
    let marked = text.starts_with(OPEN) && text.ends_with(CLOSE);
    let plain = visible && !padded && !marked;
    if plain {
        text.to_owned()
    } else {
        format!("{OPEN}{}{CLOSE}", BASE64_STANDARD.encode(text))
    }
}

/// A header's value without the white space around it.
pub(super) fn trim(value: &str) -> &str {
    let is_white = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let bytes = value.as_bytes();
    // Nearly all have none.
    if is_white(bytes.first()) || is_white(bytes.last()) {
        value.trim_matches([' ', '\t'])
    } else {
        value
    }
}

/// The text of a header's value, without white space around it. `None` if its base64 or UTF-8 is
/// bad, or if it contains bytes that need encoding.
#[must_use]
pub fn decode(value: &str) -> Option<String> {
    let value = trim(value);
    match value
        .strip_prefix(OPEN)
        .and_then(|rest| rest.strip_suffix(CLOSE))
    {
        Some(inner) => String::from_utf8(BASE64_STANDARD.decode(inner).ok()?).ok(),
        None => value
            .bytes()
            .all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
            .then(|| value.to_owned()),
    }
}

/// The `Mcp-Param-*` headers of a call, by its tool's annotations. Null and absent arguments have
/// none.
///
/// # Errors
/// [`JsonError::Duplicate`] when an object on the way to an argument has a member twice.
pub fn compute(
    params: &Params<'_>,
    annotations: &[HeaderParam],
) -> Result<Vec<(String, String)>, JsonError> {
    let mut headers = Vec::new();
    for param in annotations {
        if let Some(text) = argument(params, &param.path)? {
            headers.push((format!("Mcp-Param-{}", param.name), encode(&text)));
        }
    }
    Ok(headers)
}

/// The headers of every modern request that mirror its body. `target` is the name, URI or task id
/// in the body as it will be sent. [`compute`] returns those of a tool's arguments.
#[must_use]
pub fn standard(version: Version, method: &str, target: Option<&str>) -> Vec<(String, String)> {
    let mut headers = vec![
        (
            "MCP-Protocol-Version".to_owned(),
            version.as_str().to_owned(),
        ),
        ("Mcp-Method".to_owned(), method.to_owned()),
    ];
    if let (true, Some(target)) = (has_name(method), target) {
        headers.push(("Mcp-Name".to_owned(), encode(target)));
    }
    headers
}

/// Whether requests of this method carry `Mcp-Name`.
pub(super) fn has_name(method: &str) -> bool {
    matches!(
        method,
        "tools/call"
            | "prompts/get"
            | "resources/read"
            | "tasks/get"
            | "tasks/update"
            | "tasks/cancel"
    )
}

/// The argument at `path` as header text. `None` for arguments that no header mirrors: absent,
/// null, objects and arrays.
pub(super) fn argument(params: &Params<'_>, path: &[String]) -> Result<Option<String>, JsonError> {
    let frame = params.message().frame();
    let Some(mut span) = params.get("arguments").map(|arguments| arguments.span) else {
        return Ok(None);
    };
    for step in path {
        if !json::is_object(span.of(frame)) {
            return Ok(None);
        }
        match json::members(frame, span)?.get(step) {
            Some(member) => span = member.span,
            None => return Ok(None),
        }
    }
    Ok(mirrored(span.of(frame)))
}

fn mirrored(raw: &[u8]) -> Option<String> {
    match raw.first()? {
        b'"' => json::text(raw).map(std::borrow::Cow::into_owned),
        b't' | b'f' => String::from_utf8(raw.to_vec()).ok(),
        b'-' | b'0'..=b'9' => {
            let text = std::str::from_utf8(raw).ok()?;
            Some(whole(text).map_or_else(|| text.to_owned(), |number| number.to_string()))
        }
        _ => None,
    }
}

/// The integer value of a number, also of `42.0` or `4.2e1`, if a double represents it exactly.
pub(super) fn whole(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    const EXACT: f64 = 9_007_199_254_740_991.0;
    let number: f64 = text.parse().ok()?;
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}
