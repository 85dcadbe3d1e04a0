//! Bodies of requests: which of the described media types is sent, and the bytes of an argument in
//! it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::openapi::path::ParameterStyle;

use crate::document::Document;
use crate::refs::{self, Unusable};
use crate::schema::is_binary;
use crate::style::{Spelling, Style, pairs};
use crate::written::{Others, Pairs, Written, plain};

/// The longest body of a request, in bytes.
const REQUEST_BODY_BYTES_MAX: usize = 16 << 20;
/// Most bytes of a part of a form beside its name and its content.
const PART_BYTES: usize = 192;
/// The most parts of a form whose encoding the description gives.
const ENCODINGS_MAX: usize = 256;

/// How a body is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BodyForm {
    Json,
    /// `application/x-www-form-urlencoded`; how single members are written, where the description
    /// says it.
    Form(BTreeMap<String, Spelling>),
    /// `multipart/form-data`; the members whose texts are bytes as base64.
    Multipart(BTreeSet<String>),
    /// A text as it is.
    Text,
    /// Bytes, which the argument has as base64.
    Bytes,
}

/// A body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Body {
    /// The argument that has its value.
    pub(crate) argument: String,
    pub(crate) required: bool,
    /// The media type, without parameters.
    pub(crate) media: String,
    pub(crate) form: BodyForm,
}

/// A body as the description has it.
pub(crate) struct Read<'d> {
    pub(crate) body: Body,
    pub(crate) description: Option<&'d str>,
    pub(crate) schema: Option<&'d Value>,
}

/// Reads the body of an operation, if it has one.
pub(crate) fn read<'d>(
    document: &'d Document,
    operation: &'d Value,
) -> Result<Option<Read<'d>>, Unusable> {
    let Some(body) = operation.get("requestBody") else {
        return Ok(None);
    };
    let body = refs::object(&document.root, body)?;
    let Some(content) = body.get("content").and_then(Value::as_object) else {
        return Ok(None);
    };
    // The first of those that rank alike.
    let best = content
        .iter()
        .min_by_key(|(media, _)| rank(&essence(media)));
    let Some((media, described)) = best else {
        return Ok(None);
    };
    let media = essence(media);
    let schema = described.get("schema");
    let form = match rank(&media) {
        Rank::Json | Rank::OtherJson | Rank::Any => BodyForm::Json,
        Rank::Form => BodyForm::Form(encodings(described)),
        Rank::Multipart => BodyForm::Multipart(binaries(document, schema)?),
        Rank::Text => BodyForm::Text,
        Rank::Other if is_written_as_text(&media) => BodyForm::Text,
        Rank::Other => BodyForm::Bytes,
    };
    // A range of media types is what the API accepts; a request has one of them.
    let media = match &form {
        BodyForm::Json if media.contains('*') => "application/json".to_owned(),
        BodyForm::Text if media == "text/*" => "text/plain".to_owned(),
        BodyForm::Bytes if media.contains('*') => "application/octet-stream".to_owned(),
        _ => media,
    };
    let mut bytes = media.bytes();
    // It becomes a header: nothing in it may end the line.
    if !bytes.all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+/".contains(&byte)) {
        return Err(Unusable::because("the media type of its body is not valid"));
    }
    Ok(Some(Read {
        body: Body {
            argument: String::new(),
            required: body.get("required") == Some(&Value::Bool(true)),
            media,
            form,
        },
        description: body.get("description").and_then(Value::as_str),
        schema,
    }))
}

/// Place of a media type among those of a body: the first is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Json,
    /// JSON by another name, such as `application/merge-patch+json`.
    OtherJson,
    Form,
    Multipart,
    Text,
    /// `*/*`, which JSON fits.
    Any,
    Other,
}

fn rank(media: &str) -> Rank {
    match media {
        "application/json" => Rank::Json,
        _ if is_json(media) => Rank::OtherJson,
        "application/x-www-form-urlencoded" => Rank::Form,
        "multipart/form-data" => Rank::Multipart,
        _ if media.starts_with("text/") => Rank::Text,
        "*/*" | "application/*" => Rank::Any,
        _ => Rank::Other,
    }
}

/// Whether a media type that is not `text/…` is a text nevertheless.
fn is_written_as_text(media: &str) -> bool {
    media.ends_with("/xml") || media.ends_with("+xml") || media.contains("yaml")
}

/// A media type without its parameters, in lower case.
pub(crate) fn essence(media: &str) -> String {
    media
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

/// Whether a media type, without parameters, is JSON.
pub(crate) fn is_json(media: &str) -> bool {
    media == "application/json" || media == "text/json" || media.ends_with("+json")
}

/// How members of a form are written, as far as its media type says it.
fn encodings(media: &Value) -> BTreeMap<String, Spelling> {
    let all = media.get("encoding").and_then(Value::as_object);
    let mut read = BTreeMap::new();
    for (name, value) in all.into_iter().flatten().take(ENCODINGS_MAX) {
        let Some(style) = style_of(value) else {
            continue;
        };
        let explode = value.get("explode").and_then(Value::as_bool);
        let spelling = Spelling {
            style,
            explode: explode.unwrap_or(style == Style::Form),
        };
        read.insert(name.clone(), spelling);
    }
    read
}

/// The style of a member by its encoding; `None` if that does not say it.
fn style_of(encoding: &Value) -> Option<Style> {
    let style = encoding.get("style");
    match style.and_then(|style| ParameterStyle::deserialize(style).ok()) {
        Some(ParameterStyle::DeepObject) => Some(Style::Deep),
        Some(ParameterStyle::SpaceDelimited) => Some(Style::Space),
        Some(ParameterStyle::PipeDelimited) => Some(Style::Pipe),
        Some(_) => Some(Style::Form),
        None => {
            let media = encoding.get("contentType")?.as_str()?;
            is_json(&essence(media)).then_some(Style::Json)
        }
    }
}

/// The members of a form whose texts are bytes as base64.
fn binaries(document: &Document, schema: Option<&Value>) -> Result<BTreeSet<String>, Unusable> {
    let Some(schema) = schema else {
        return Ok(BTreeSet::new());
    };
    let schema = refs::object(&document.root, schema)?;
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut binaries = BTreeSet::new();
    for (name, schema) in properties.into_iter().flatten().take(ENCODINGS_MAX) {
        if is_bytes(document, schema) {
            binaries.insert(name.clone());
        }
    }
    Ok(binaries)
}

/// Whether a member of a form, or each item of it, is bytes.
fn is_bytes(document: &Document, schema: &Value) -> bool {
    let Ok(schema) = refs::object(&document.root, schema) else {
        return false;
    };
    let one = schema.get("items").unwrap_or(schema);
    let Some(one) = one.as_object() else {
        return false;
    };
    let has_media = one.contains_key("contentMediaType");
    is_binary(one) || has_media && !one.contains_key("contentEncoding")
}

impl Body {
    /// The content type and the bytes of a value.
    ///
    /// # Errors
    /// Why the value cannot be the body, in words for the caller.
    pub(crate) fn written(&self, value: &Value) -> Result<(String, Vec<u8>), String> {
        let mut written = Written::new("its body", REQUEST_BODY_BYTES_MAX);
        let mut media = self.media.clone();
        match &self.form {
            BodyForm::Json => written.push(&value.to_string())?,
            BodyForm::Text => {
                written.push(&plain(value))?;
                media.push_str("; charset=utf-8");
            }
            BodyForm::Bytes => written.extend(&bytes(&self.argument, value)?)?,
            BodyForm::Form(encodings) => written = form(written, self.object(value)?, encodings)?,
            BodyForm::Multipart(binaries) => {
                let boundary = multipart(&mut written, self.object(value)?, binaries)?;
                media = format!("multipart/form-data; boundary={boundary}");
            }
        }
        Ok((media, written.into_bytes()))
    }

    /// The members of a form.
    fn object<'v>(&self, value: &'v Value) -> Result<&'v Map<String, Value>, String> {
        value
            .as_object()
            .ok_or_else(|| format!("`{}` must be an object", self.argument))
    }
}

fn bytes(argument: &str, value: &Value) -> Result<Vec<u8>, String> {
    let text = value.as_str().and_then(|text| STANDARD.decode(text).ok());
    text.ok_or_else(|| format!("`{argument}` must be bytes in base64"))
}

/// Writes the members of an object as pairs of a form.
fn form(
    out: Written,
    members: &Map<String, Value>,
    encodings: &BTreeMap<String, Spelling>,
) -> Result<Written, String> {
    let mut all = Pairs::new("&", out);
    for (name, value) in members {
        if value.is_null() {
            continue;
        }
        let spelling = match encodings.get(name) {
            Some(spelling) => *spelling,
            None => without_encoding(value),
        };
        // All of a body is one argument: none of its members is preset alone.
        pairs(&mut all, name, value, spelling, &Others::default())?;
    }
    Ok(all.written)
}

/// How a member is written whose encoding the description does not give (OpenAPI, "Encoding
/// Object").
fn without_encoding(value: &Value) -> Spelling {
    if value.is_object() {
        Spelling {
            style: Style::Json,
            explode: false,
        }
    } else {
        Spelling {
            style: Style::Form,
            explode: true,
        }
    }
}

/// A part of a form.
struct Part<'v> {
    name: &'v str,
    bytes: Cow<'v, [u8]>,
    kind: PartKind,
}

/// Content of a part of a form.
#[derive(Clone, Copy)]
enum PartKind {
    Text,
    Json,
    File,
}

impl<'v> Part<'v> {
    fn new(name: &'v str, value: &'v Value, is_binary: bool) -> Result<Self, String> {
        if is_binary {
            return Ok(Self {
                name,
                bytes: Cow::Owned(bytes(name, value)?),
                kind: PartKind::File,
            });
        }
        let text = plain(value);
        let kind = match value {
            Value::Object(_) | Value::Array(_) => PartKind::Json,
            _ => PartKind::Text,
        };
        let bytes = match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        Ok(Self { name, bytes, kind })
    }
}

/// Writes the members of an object as the parts of a form, and gives the boundary between them.
fn multipart(
    out: &mut Written,
    members: &Map<String, Value>,
    binaries: &BTreeSet<String>,
) -> Result<String, String> {
    let parts = parts(out, members, binaries)?;
    let boundary = boundary(&parts);
    for Part { name, bytes, kind } in &parts {
        out.push(&format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\""
        ))?;
        match kind {
            PartKind::Text => {}
            PartKind::Json => out.push("\r\nContent-Type: application/json")?,
            PartKind::File => {
                out.push(&format!(
                    "; filename=\"{name}\"\r\nContent-Type: application/octet-stream"
                ))?;
            }
        }
        out.push("\r\n\r\n")?;
        out.extend(bytes)?;
        out.push("\r\n")?;
    }
    out.push(&format!("--{boundary}--\r\n"))?;
    Ok(boundary)
}

/// The parts of a form. No more are made than `out` has room for.
fn parts<'v>(
    out: &Written,
    members: &'v Map<String, Value>,
    binaries: &BTreeSet<String>,
) -> Result<Vec<Part<'v>>, String> {
    let mut parts = Vec::new();
    let mut spent = 0;
    for (name, value) in members {
        if value.is_null() {
            continue;
        }
        // It stands in quotes in a line of its part's head.
        if name.contains(['"', '\\']) || name.contains(char::is_control) {
            let shown: String = name.chars().take(64).collect();
            return Err(format!(
                "`{}` cannot be the name of a part",
                shown.escape_debug()
            ));
        }
        // A list is one part for each item.
        let values = match value {
            Value::Array(items) => items.as_slice(),
            single => std::slice::from_ref(single),
        };
        for value in values {
            let part = Part::new(name, value, binaries.contains(name))?;
            // A file has its name twice.
            spent += 2 * name.len() + part.bytes.len() + PART_BYTES;
            out.spare(spent)?;
            parts.push(part);
        }
    }
    Ok(parts)
}

/// A line that is in none of the parts. Each number that is in one takes bytes of it, so this ends.
fn boundary(parts: &[Part<'_>]) -> String {
    const START: &[u8] = b"portmoot-part-";
    let mut numbers = BTreeSet::new();
    for part in parts {
        for (at, text) in part.bytes.windows(START.len()).enumerate() {
            if text != START {
                continue;
            }
            let after = part.bytes.iter().skip(at + START.len());
            let digits = after.take_while(|byte| byte.is_ascii_digit()).take(20);
            let number = digits.fold(0_u64, |number, digit| {
                number
                    .saturating_mul(10)
                    .saturating_add(u64::from(digit - b'0'))
            });
            numbers.insert(number);
        }
    }
    // A longer number in a part begins with a shorter one: the boundary has an end.
    let free = (0..)
        .find(|number| !numbers.contains(number))
        .unwrap_or_default();
    format!("portmoot-part-{free}-end")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(content: &Value) -> Body {
        let document = Document::read(br#"{"openapi":"3.1.0","paths":{}}"#).unwrap();
        let operation = json!({ "requestBody": { "content": content } });
        let mut body = read(&document, &operation).unwrap().unwrap().body;
        body.argument = "body".to_owned();
        body
    }

    fn written(content: &Value, value: &Value) -> (String, String) {
        let (media, bytes) = body(content).written(value).unwrap();
        (media, String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn json_comes_first_then_forms_then_texts_then_bytes() {
        let value = json!({ "a": "x y" });
        for (content, media, text) in [
            (
                json!({ "text/plain": {}, "application/json; charset=utf-8": {} }),
                "application/json",
                r#"{"a":"x y"}"#,
            ),
            (
                json!({ "application/xml": {}, "application/vnd.a+json": {} }),
                "application/vnd.a+json",
                r#"{"a":"x y"}"#,
            ),
            (json!({ "*/*": {} }), "application/json", r#"{"a":"x y"}"#),
            (
                json!({ "multipart/form-data": {}, "application/x-www-form-urlencoded": {} }),
                "application/x-www-form-urlencoded",
                "a=x%20y",
            ),
        ] {
            assert_eq!(
                written(&content, &value),
                (media.to_owned(), text.to_owned()),
                "{content}"
            );
        }
        let xml = written(&json!({ "application/xml": {} }), &json!("<a/>"));
        assert_eq!(
            xml,
            (
                "application/xml; charset=utf-8".to_owned(),
                "<a/>".to_owned()
            )
        );
        let bytes = written(&json!({ "image/png": {} }), &json!("UE5H"));
        assert_eq!(bytes, ("image/png".to_owned(), "PNG".to_owned()));
        assert!(
            body(&json!({ "image/*": {} }))
                .written(&json!("no base64!"))
                .is_err()
        );
        assert!(
            body(&json!({ "application/x-www-form-urlencoded": {} }))
                .written(&json!([]))
                .is_err()
        );
    }

    #[test]
    fn members_of_forms_are_written_as_the_description_has_it() {
        let content = json!({ "application/x-www-form-urlencoded": { "encoding": {
            "deep": { "style": "deepObject", "explode": true }, "pipe": { "style": "pipeDelimited" },
            "json": { "contentType": "application/json" } } } });
        let value = json!({ "deep": { "a": 1 }, "pipe": [1, 2], "json": [1], "list": ["x", "&="], "object": { "b": 2 }, "none": null });
        let text = written(&content, &value).1;
        let expected =
            "deep%5Ba%5D=1&json=%5B1%5D&list=x&list=%26%3D&object=%7B%22b%22%3A2%7D&pipe=1%7C2";
        assert_eq!(text, expected);
    }

    #[test]
    fn parts_of_a_form_cannot_end_it() {
        let content = json!({ "multipart/form-data": { "schema": { "properties": {
            "file": { "type": "string", "format": "binary" }, "files": { "items": { "format": "binary" } } } } } });
        let hostile = "\r\n--portmoot-part-0-end--\r\n--portmoot-part-1-end";
        let value =
            json!({ "file": "UE5H", "files": ["QQ=="], "note": hostile, "meta": { "a": 1 } });
        let (media, text) = written(&content, &value);
        assert_eq!(media, "multipart/form-data; boundary=portmoot-part-2-end");
        let parts: Vec<&str> = text.split("--portmoot-part-2-end").collect();
        assert_eq!(parts.len(), 6, "{text}");
        assert!(
            parts[1].contains("name=\"file\"; filename=\"file\"")
                && parts[1].ends_with("\r\n\r\nPNG\r\n")
        );
        assert!(parts[2].ends_with("\r\n\r\nA\r\n"));
        assert!(parts[3].ends_with("Content-Type: application/json\r\n\r\n{\"a\":1}\r\n"));
        assert!(parts[4].ends_with(&format!("\r\n\r\n{hostile}\r\n")));
        assert_eq!(parts[5], "--\r\n");
        assert!(
            body(&content)
                .written(&json!({ "a\"; x=\"": "1" }))
                .is_err()
        );
        assert!(body(&content).written(&json!({ "a\r\nb": "1" })).is_err());
    }

    /// A name that is repeated for each of a million items is not: the body ends at its longest.
    #[test]
    fn a_body_is_written_up_to_its_longest_and_not_beyond() {
        let too_long = Err(
            "the request would be too long: its body may have at most 16777216 bytes".to_owned(),
        );
        let form = body(&json!({ "application/x-www-form-urlencoded": {} }));
        // `a=` and its letters.
        let letters = |count: usize| json!({ "a": "x".repeat(count) });
        assert_eq!(
            form.written(&letters(REQUEST_BODY_BYTES_MAX - 2))
                .unwrap()
                .1
                .len(),
            REQUEST_BODY_BYTES_MAX
        );
        assert_eq!(form.written(&letters(REQUEST_BODY_BYTES_MAX - 1)), too_long);
        let json = body(&json!({ "application/json": {} }));
        let text = |count: usize| json!("x".repeat(count));
        assert_eq!(
            json.written(&text(REQUEST_BODY_BYTES_MAX - 2))
                .unwrap()
                .1
                .len(),
            REQUEST_BODY_BYTES_MAX
        );
        assert_eq!(json.written(&text(REQUEST_BODY_BYTES_MAX - 1)), too_long);
        let multipart = body(
            &json!({ "multipart/form-data": { "schema": { "properties": {
            "f": { "format": "binary" } } } } }),
        );
        let part = |count: usize| json!({ "a": "x".repeat(count) });
        let written = multipart
            .written(&part(REQUEST_BODY_BYTES_MAX - PART_BYTES - 2))
            .unwrap()
            .1
            .len();
        assert!(
            written <= REQUEST_BODY_BYTES_MAX && written > REQUEST_BODY_BYTES_MAX - PART_BYTES,
            "{written}"
        );
        assert_eq!(
            multipart.written(&part(REQUEST_BODY_BYTES_MAX - PART_BYTES - 1)),
            too_long
        );
        let deep = body(&json!({ "application/x-www-form-urlencoded": {
            "encoding": { "k".repeat(1 << 20): { "style": "deepObject" } } } }));
        let repeated = json!({ "k".repeat(1 << 20): vec![0; 1_000_000] });
        for body in [&form, &multipart, &deep] {
            assert_eq!(body.written(&repeated), too_long);
        }
        // As many parts as fit, each of a file: none is longer than what it costs.
        let files = multipart
            .written(&json!({ "f": vec![""; REQUEST_BODY_BYTES_MAX / (PART_BYTES + 2)] }))
            .unwrap();
        assert!(files.1.len() <= REQUEST_BODY_BYTES_MAX);
    }
}
