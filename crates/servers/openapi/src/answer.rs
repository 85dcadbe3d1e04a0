//! Answers of APIs as results of tools.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::body::{essence, is_json};
use crate::operation::Operation;

/// The longest text of an answer that is an error, in bytes; what follows is left out.
const ERROR_BYTES_MAX: usize = 64 << 10;
/// The longest `Location` that is shown, in characters.
const LOCATION_CHARS_MAX: usize = 2048;
/// The status of an answer to a request that was carried out, whose result is at another place.
const SEE_OTHER: u16 = 303;

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationAnswer<'a> {
    /// The status code.
    pub status: u16,
    /// `Content-Type`.
    pub media: Option<&'a str>,
    /// `Location`.
    pub location: Option<&'a str>,
    /// The body.
    pub body: &'a [u8],
}

impl OperationAnswer<'_> {
    /// The result of the call: JSON objects are structured content and text, texts are text, images
    /// and sounds are what they are, other bytes a resource. A status that is no success is an
    /// error, with its text; 303 is a success that is found elsewhere.
    #[must_use]
    pub fn result(&self, operation: &Operation) -> Value {
        let media = self.media.map(essence).filter(|media| is_media(media));
        if self.status == SEE_OTHER && !operation.is_safe() {
            return self.see_other(operation);
        }
        if !(200..300).contains(&self.status) {
            return self.error();
        }
        let object = self.object(media.as_deref());
        if operation.promises_object && object.is_none() {
            return self.no_object(media.as_deref());
        }
        let mut result = json!({ "content": [self.content(operation, media.as_deref())] });
        if let Some(object) = object
            && let Some(members) = result.as_object_mut()
        {
            members.insert("structuredContent".to_owned(), object);
        }
        result
    }

    /// The body as a JSON object, if it is one; without a media type it is looked at too.
    fn object(&self, media: Option<&str>) -> Option<Value> {
        if media.is_some_and(|media| !is_json(media)) {
            return None;
        }
        match serde_json::from_slice(self.body) {
            Ok(object @ Value::Object(_)) => Some(object),
            _ => None,
        }
    }

    /// The error that an answer is which is not the JSON object that was promised.
    fn no_object(&self, media: Option<&str>) -> Value {
        let what = match media {
            _ if self.body.is_empty() => "nothing",
            Some(media) => media,
            None => "something else",
        };
        let why = format!(
            "HTTP {}: the API answered with {what}, and its description promises a JSON object.",
            self.status
        );
        json!({ "content": [{ "type": "text", "text": with_text(why, self.body) }], "isError": true })
    }

    fn content(&self, operation: &Operation, media: Option<&str>) -> Value {
        if self.body.is_empty() {
            let mut text = format!("HTTP {}, without content", self.status);
            if let Some(location) = self.location {
                text.push_str(&format!(", Location: {location}"));
            }
            return json!({ "type": "text", "text": text });
        }
        let Some(media) = media else {
            return match std::str::from_utf8(self.body) {
                Ok(text) => json!({ "type": "text", "text": text }),
                Err(_) => self.resource(operation, "application/octet-stream"),
            };
        };
        // SVG is an image that is a text.
        if media.starts_with("image/") && media != "image/svg+xml" {
            json!({ "type": "image", "data": STANDARD.encode(self.body), "mimeType": media })
        } else if media.starts_with("audio/") {
            json!({ "type": "audio", "data": STANDARD.encode(self.body), "mimeType": media })
        } else if is_text(media) {
            json!({ "type": "text", "text": String::from_utf8_lossy(self.body) })
        } else {
            self.resource(operation, media)
        }
    }

    /// The body as bytes of a media type that is neither text, image nor sound.
    fn resource(&self, operation: &Operation, media: &str) -> Value {
        let uri = format!("response:{}", operation.name);
        let blob = STANDARD.encode(self.body);
        json!({ "type": "resource", "resource": { "uri": uri, "mimeType": media, "blob": blob } })
    }

    /// The result of a request that was carried out, and whose answer is at another place. Were it
    /// an error, a model would repeat a write that was done.
    fn see_other(&self, operation: &Operation) -> Value {
        let place = self
            .location
            .unwrap_or("a place that the API does not name");
        let place: String = place.chars().take(LOCATION_CHARS_MAX).collect();
        let done = format!("HTTP {SEE_OTHER}: done; the result is at {place}");
        let text = with_text(done, self.body);
        if operation.promises_object {
            // Clients take a result without the promised object for an error. No schema of answers
            // demands members.
            json!({ "content": [{ "type": "text", "text": text }], "structuredContent": {} })
        } else {
            json!({ "content": [{ "type": "text", "text": text }] })
        }
    }

    /// Whether the API refused the credentials of the gateway.
    #[must_use]
    pub fn refuses_credentials(&self) -> bool {
        matches!(self.status, 401 | 403)
    }

    fn error(&self) -> Value {
        let mut text = format!("HTTP {}", self.status);
        if (300..400).contains(&self.status) {
            text.push_str(": the API redirects the request, and it was not followed");
        }
        // Which ones it wants is the operator's business.
        if self.refuses_credentials() {
            text.push_str(": the gateway's credentials were refused");
        }
        json!({ "content": [{ "type": "text", "text": with_text(text, self.body) }], "isError": true })
    }
}

/// These words, and the text of a body below them, not longer than the bound.
fn with_text(mut words: String, body: &[u8]) -> String {
    let shown = body.get(..ERROR_BYTES_MAX).unwrap_or(body);
    if !shown.is_empty() {
        words.push('\n');
        words.push_str(&String::from_utf8_lossy(shown));
    }
    if shown.len() < body.len() {
        words.push_str(&format!(
            "\n(cut after {ERROR_BYTES_MAX} of {} bytes)",
            body.len()
        ));
    }
    words
}

fn is_text(media: &str) -> bool {
    media.starts_with("text/")
        || is_json(media)
        || media.ends_with("+xml")
        || media.ends_with("+yaml")
        || matches!(
            media,
            "application/xml"
                | "application/yaml"
                | "application/x-yaml"
                | "application/javascript"
                | "application/x-ndjson"
                | "application/graphql"
                | "application/x-www-form-urlencoded"
        )
}

/// Whether a text can be a media type.
fn is_media(text: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+/".contains(&byte);
    text.len() <= 128 && text.contains('/') && text.bytes().all(is_token)
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::{Document, Operations, Presets};

    fn operations() -> Operations {
        let text = json!({ "openapi": "3.1.0", "components": { "securitySchemes": {
                "k": { "type": "apiKey", "in": "header", "name": "X-Key" } } },
            "paths": { "/a": { "get": { "operationId": "any" }, "put": { "operationId": "object", "responses": {
                "200": { "content": { "application/json": { "schema": { "type": "object" } } } } } } } } });
        let document = Document::read(text.to_string().as_bytes()).unwrap();
        document.operations(
            &Url::parse("https://api.test/").unwrap(),
            &Presets::default(),
        )
    }

    fn result(tool: &str, status: u16, media: Option<&str>, body: &[u8]) -> Value {
        let operations = operations();
        let answer = OperationAnswer {
            status,
            media,
            location: None,
            body,
        };
        answer.result(operations.get(tool).unwrap())
    }

    #[test]
    fn answers_become_contents_by_their_media_type() {
        for (media, body, expected) in [
            (
                Some("application/json; charset=utf-8"),
                &br#"{"a":1}"#[..],
                json!({ "content": [{ "type": "text", "text": "{\"a\":1}" }], "structuredContent": { "a": 1 } }),
            ),
            (
                Some("application/problem+json"),
                b"[1]",
                json!({ "content": [{ "type": "text", "text": "[1]" }] }),
            ),
            (
                Some("text/csv"),
                b"a,\xff",
                json!({ "content": [{ "type": "text", "text": "a,\u{fffd}" }] }),
            ),
            (
                Some("image/png"),
                b"PNG",
                json!({ "content": [{ "type": "image", "data": "UE5H", "mimeType": "image/png" }] }),
            ),
            (
                Some("audio/wav"),
                b"PNG",
                json!({ "content": [{ "type": "audio", "data": "UE5H", "mimeType": "audio/wav" }] }),
            ),
            (
                Some("application/zip"),
                b"PNG",
                json!({ "content": [{ "type": "resource", "resource": {
                    "uri": "response:any", "mimeType": "application/zip", "blob": "UE5H" } }] }),
            ),
            (
                None,
                b"plain",
                json!({ "content": [{ "type": "text", "text": "plain" }] }),
            ),
            (
                Some("not a media\r\ntype"),
                b"\xff",
                json!({ "content": [{ "type": "resource", "resource": {
                    "uri": "response:any", "mimeType": "application/octet-stream", "blob": "/w==" } }] }),
            ),
            (
                None,
                b"",
                json!({ "content": [{ "type": "text", "text": "HTTP 200, without content" }] }),
            ),
        ] {
            assert_eq!(result("any", 200, media, body), expected, "{media:?}");
        }
    }

    #[test]
    fn errors_have_their_status_and_text() {
        let text = |result: &Value| result["content"][0]["text"].as_str().unwrap().to_owned();
        let gone = result("any", 404, Some("application/json"), br#"{"m":"no"}"#);
        assert_eq!(
            (gone["isError"].clone(), text(&gone)),
            (true.into(), "HTTP 404\n{\"m\":\"no\"}".to_owned())
        );
        for status in [401, 403] {
            let refused = text(&result("any", status, None, b""));
            assert_eq!(
                refused,
                format!("HTTP {status}: the gateway's credentials were refused")
            );
        }
        assert!(text(&result("any", 302, None, b"")).contains("redirects"));
        let long = "x".repeat(ERROR_BYTES_MAX + 1);
        let whole = text(&result("any", 500, None, &long.as_bytes()[1..]));
        assert_eq!(whole.len(), "HTTP 500\n".len() + ERROR_BYTES_MAX);
        assert!(
            text(&result("any", 500, None, long.as_bytes()))
                .ends_with("(cut after 65536 of 65537 bytes)")
        );
    }

    #[test]
    fn a_request_that_was_carried_out_is_no_error_though_its_result_is_elsewhere() {
        let operations = operations();
        let of = |tool: &str, location| {
            let answer = OperationAnswer {
                status: 303,
                media: None,
                location,
                body: b"",
            };
            answer.result(operations.get(tool).unwrap())
        };
        let at = |location| of("object", location);
        let done = json!({ "content": [{ "type": "text", "text": "HTTP 303: done; the result is at /orders/7" }], "structuredContent": {} });
        assert_eq!(at(Some("/orders/7")), done);
        // Nothing was done by a request that reads.
        assert_eq!(of("any", Some("/orders/7"))["isError"], true);
        let long = "/".repeat(LOCATION_CHARS_MAX + 1);
        let shown = at(Some(&long))["content"][0]["text"]
            .as_str()
            .unwrap()
            .len();
        assert_eq!(
            shown,
            "HTTP 303: done; the result is at ".len() + LOCATION_CHARS_MAX
        );
        assert!(at(None).get("isError").is_none());
    }

    #[test]
    fn a_promised_object_that_does_not_come_is_an_error() {
        assert!(operations().get("object").unwrap().promises_object);
        assert!(
            result("object", 200, Some("application/json"), b"{}")
                .get("isError")
                .is_none()
        );
        for (media, body) in [
            (Some("application/json"), &b"[]"[..]),
            (Some("text/plain"), b"{}"),
            (None, b""),
        ] {
            let result = result("object", 200, media, body);
            assert_eq!(result["isError"], true, "{result}");
            assert!(
                result["content"][0]["text"]
                    .as_str()
                    .unwrap()
                    .contains("promises a JSON object")
            );
        }
    }
}
