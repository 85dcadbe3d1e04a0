//! Tool results as plain text.

use serde_json::Value;

use json::visible;

/// Text blocks with control characters made visible, a summary of every other block; structured
/// content if there are no blocks.
#[must_use]
pub fn text(result: &Value) -> String {
    let blocks = result
        .get("content")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    if blocks.is_empty() {
        let structured = result.get("structuredContent").unwrap_or(result);
        return visible::lines(&serde_json::to_string_pretty(structured).unwrap_or_default());
    }
    blocks.iter().map(block).collect::<Vec<_>>().join("\n")
}

fn block(block: &Value) -> String {
    let text = |value: &Value, name: &str| {
        value
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let media = |what: &str, value: &Value, data: &str| {
        let mime = visible::line(&text(value, "mimeType"));
        format!(
            "[{what} {mime}, {} characters of base64; --json shows them]",
            text(value, data).len()
        )
    };
    match block.get("type").and_then(Value::as_str) {
        Some("text") => visible::lines(&text(block, "text")),
        Some("image") => media("image", block, "data"),
        Some("audio") => media("audio", block, "data"),
        Some("resource_link") => {
            format!(
                "[resource {} {}]",
                visible::line(&text(block, "uri")),
                visible::line(&text(block, "name"))
            )
        }
        Some("resource") => {
            let resource = block.get("resource").unwrap_or(&Value::Null);
            let head = format!("[resource {}]", visible::line(&text(resource, "uri")));
            match resource.get("text").and_then(Value::as_str) {
                Some(text) => format!("{head}\n{}", visible::lines(text)),
                None => format!("{head}\n{}", media("bytes", resource, "blob")),
            }
        }
        Some(_) | None => visible::lines(&block.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_are_printed_as_text() {
        for (result, expect) in [
            (
                json!({ "content": [{ "type": "text", "text": "a\nb\u{1b}[0m" }, { "type": "text", "text": "c" }] }),
                "a\nb\\u{1b}[0m\nc",
            ),
            (
                json!({ "content": [{ "type": "image", "data": "AAAA", "mimeType": "image/png" }] }),
                "[image image/png, 4 characters of base64; --json shows them]",
            ),
            (
                json!({ "content": [{ "type": "resource", "resource": { "uri": "demo://x", "text": "t" } }] }),
                "[resource demo://x]\nt",
            ),
            (
                json!({ "content": [{ "type": "resource_link", "uri": "demo://x", "name": "n" }] }),
                "[resource demo://x n]",
            ),
            (
                json!({ "content": [], "structuredContent": { "a": 1 } }),
                "{\n  \"a\": 1\n}",
            ),
            (
                json!({ "content": [{ "type": "new" }] }),
                r#"{"type":"new"}"#,
            ),
        ] {
            assert_eq!(text(&result), expect);
        }
    }
}
