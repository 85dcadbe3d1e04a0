//! Parameters of operations: where each goes, how it is written, and its text in a request.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::openapi::path::{Parameter as Described, ParameterIn, ParameterStyle};
use utoipa::openapi::{Deprecated, Required};

use crate::document::Document;
use crate::refs::{self, Unusable};

/// What is not percent-encoded: the unreserved characters of RFC 3986.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The longest name of a parameter, in bytes.
const NAME_BYTES_MAX: usize = 256;
/// The longest description that is read, in characters.
const DESCRIPTION_CHARS_MAX: usize = 2048;

/// Headers that are never an argument: the connection's own, the negotiation of contents, and credentials, which are configured.
const RESERVED_HEADERS: [&str; 17] = [
    "accept",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Where a parameter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Path,
    Query,
    Header,
    Cookie,
}

impl Place {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }
}

/// How lists and objects are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Matrix,
    Label,
    Form,
    Simple,
    Space,
    Pipe,
    Deep,
    /// As JSON.
    Json,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    /// The argument that has its value.
    pub(crate) argument: String,
    /// Its own name.
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) style: Style,
    pub(crate) explode: bool,
    pub(crate) required: bool,
}

/// A parameter as the description has it.
pub(crate) struct Read<'d> {
    pub(crate) parameter: Parameter,
    pub(crate) description: Option<String>,
    pub(crate) deprecated: bool,
    pub(crate) schema: Option<&'d Value>,
}

/// Reads a parameter, or a reference to one. `None` is one that is no argument.
pub(crate) fn read<'d>(document: &'d Document, value: &'d Value) -> Result<Option<Read<'d>>, Unusable> {
    let value = refs::object(&document.root, value)?;
    let wrong = |why: &str| Unusable::Because(format!("one of its parameters {why}"));
    // Without its schema, which the types would not keep as it is, and without its examples.
    let part = |key: &str| value.get(key).map(|value| (key.to_owned(), value.clone()));
    let mut parts: Map<String, Value> =
        ["in", "required", "deprecated", "style", "explode"].into_iter().filter_map(part).collect();
    parts.entry("required").or_insert(false.into());
    let name = value.get("name").and_then(Value::as_str).filter(|name| name.len() <= NAME_BYTES_MAX);
    let name = name.ok_or_else(|| wrong("has no name, or one that is too long"))?;
    parts.insert("name".to_owned(), name.into());
    let described = Described::deserialize(Value::from(parts));
    let described = described.map_err(|_| wrong(&format!("cannot be read: `{}`", name.escape_debug())))?;
    let place = match described.parameter_in {
        ParameterIn::Path => Place::Path,
        ParameterIn::Query => Place::Query,
        ParameterIn::Header => Place::Header,
        ParameterIn::Cookie => Place::Cookie,
        ParameterIn::QueryString => return Err(wrong("is a whole query, which is not supported")),
    };
    let lower = name.to_ascii_lowercase();
    if place == Place::Header && (RESERVED_HEADERS.contains(&lower.as_str()) || lower.starts_with("proxy-")) {
        return Ok(None);
    }
    let is_token = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    if matches!(place, Place::Header | Place::Cookie) && !is_token(name) {
        return Err(wrong(&format!("is a {} with an invalid name", place.name())));
    }
    let content = value.get("content").and_then(Value::as_object).and_then(|content| content.iter().next());
    let style = match described.style {
        _ if content.is_some() => Style::Json,
        Some(ParameterStyle::Matrix) => Style::Matrix,
        Some(ParameterStyle::Label) => Style::Label,
        Some(ParameterStyle::Form) => Style::Form,
        Some(ParameterStyle::Simple) => Style::Simple,
        Some(ParameterStyle::SpaceDelimited) => Style::Space,
        Some(ParameterStyle::PipeDelimited) => Style::Pipe,
        Some(ParameterStyle::DeepObject) => Style::Deep,
        Some(ParameterStyle::Cookie) => Style::Form,
        None if matches!(place, Place::Path | Place::Header) => Style::Simple,
        None => Style::Form,
    };
    let description = value.get("description").and_then(Value::as_str);
    Ok(Some(Read {
        parameter: Parameter {
            argument: String::new(),
            name: name.to_owned(),
            place,
            style,
            explode: described.explode.unwrap_or(style == Style::Form),
            required: described.required == Required::True || place == Place::Path,
        },
        description: description.map(|text| text.chars().take(DESCRIPTION_CHARS_MAX).collect()),
        deprecated: described.deprecated == Some(Deprecated::True),
        schema: content.map_or_else(|| value.get("schema"), |(_, media)| media.get("schema")),
    }))
}

/// A variable of a path that no parameter declares.
pub(crate) fn undeclared<'d>(name: String) -> Read<'d> {
    let parameter = Parameter {
        argument: String::new(),
        name,
        place: Place::Path,
        style: Style::Simple,
        explode: false,
        required: true,
    };
    Read { parameter, description: None, deprecated: false, schema: None }
}

/// A text, percent-encoded: none of its characters means anything in a URL.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// A value as one text.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

impl Parameter {
    /// The name and value pairs of a query, a form or cookies, encoded.
    pub(crate) fn pairs(&self, value: &Value) -> Vec<(String, String)> {
        pairs(&self.name, value, self.style, self.explode)
    }

    /// Its text in a path, encoded.
    pub(crate) fn in_path(&self, value: &Value) -> String {
        let name = encoded(&self.name);
        match self.style {
            Style::Label => {
                let by = if self.explode { "." } else { "," };
                format!(".{}", joined(value, by, self.explode, encoded))
            }
            Style::Matrix => match value {
                Value::Array(items) if self.explode => {
                    items.iter().map(|item| format!(";{name}={}", encoded(&plain(item)))).collect()
                }
                Value::Object(members) if self.explode => members
                    .iter()
                    .map(|(key, value)| format!(";{}={}", encoded(key), encoded(&plain(value))))
                    .collect(),
                _ => format!(";{name}={}", joined(value, ",", false, encoded)),
            },
            Style::Json => encoded(&value.to_string()),
            Style::Form | Style::Simple | Style::Space | Style::Pipe | Style::Deep => {
                joined(value, ",", self.explode, encoded)
            }
        }
    }

    /// Its text in a header, as it is.
    pub(crate) fn in_header(&self, value: &Value) -> String {
        match self.style {
            Style::Json => value.to_string(),
            _ => joined(value, ",", self.explode, str::to_owned),
        }
    }
}

/// The items of a list, or the members of an object, in one text.
fn joined(value: &Value, by: &str, explode: bool, encode: fn(&str) -> String) -> String {
    match value {
        Value::Array(items) => items.iter().map(|item| encode(&plain(item))).collect::<Vec<_>>().join(by),
        Value::Object(members) => {
            let between = if explode { "=" } else { by };
            let pair = |(key, value): (&String, &Value)| {
                format!("{}{between}{}", encode(key), encode(&plain(value)))
            };
            members.iter().map(pair).collect::<Vec<_>>().join(by)
        }
        _ => encode(&plain(value)),
    }
}

/// The pairs of a query or a form, encoded.
pub(crate) fn pairs(name: &str, value: &Value, style: Style, explode: bool) -> Vec<(String, String)> {
    let own = encoded(name);
    match (value, style) {
        (_, Style::Json) => vec![(own, encoded(&value.to_string()))],
        (Value::Object(_) | Value::Array(_), Style::Deep) => {
            let mut out = Vec::new();
            deep(&own, value, &mut out);
            out
        }
        (Value::Array(items), _) if explode => {
            items.iter().map(|item| (own.clone(), encoded(&plain(item)))).collect()
        }
        (Value::Object(members), _) if explode => {
            members.iter().map(|(key, value)| (encoded(key), encoded(&plain(value)))).collect()
        }
        (Value::Array(_) | Value::Object(_), _) => {
            let by = match style {
                Style::Space => "%20",
                Style::Pipe => "%7C",
                _ => ",",
            };
            vec![(own, joined(value, by, false, encoded))]
        }
        _ => vec![(own, encoded(&plain(value)))],
    }
}

/// `name[key]=value`, for objects in objects too; a list repeats its name.
fn deep(name: &str, value: &Value, out: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                deep(&format!("{name}%5B{}%5D", encoded(key)), value, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                match item {
                    Value::Object(_) | Value::Array(_) => deep(&format!("{name}%5B%5D"), item, out),
                    _ => out.push((name.to_owned(), encoded(&plain(item)))),
                }
            }
        }
        _ => out.push((name.to_owned(), encoded(&plain(value)))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(place: Place, style: Style, explode: bool) -> Parameter {
        let argument = "color".to_owned();
        Parameter { name: argument.clone(), argument, place, style, explode, required: true }
    }

    /// The examples of the specification ("Style Examples").
    #[test]
    fn every_style_writes_texts_lists_and_objects() {
        let values = [json!("blue"), json!(["blue", "black"]), json!({ "B": 150, "R": 100 })];
        for (style, explode, expected) in [
            (Style::Matrix, false, [";color=blue", ";color=blue,black", ";color=B,150,R,100"]),
            (Style::Matrix, true, [";color=blue", ";color=blue;color=black", ";B=150;R=100"]),
            (Style::Label, false, [".blue", ".blue,black", ".B,150,R,100"]),
            (Style::Label, true, [".blue", ".blue.black", ".B=150.R=100"]),
            (Style::Simple, false, ["blue", "blue,black", "B,150,R,100"]),
            (Style::Simple, true, ["blue", "blue,black", "B=150,R=100"]),
        ] {
            let parameter = of(Place::Path, style, explode);
            assert_eq!(
                values.clone().map(|value| parameter.in_path(&value)),
                expected,
                "{style:?} {explode}"
            );
        }
        for (style, explode, expected) in [
            (Style::Form, false, ["color=blue", "color=blue,black", "color=B,150,R,100"]),
            (Style::Form, true, ["color=blue", "color=blue&color=black", "B=150&R=100"]),
            (Style::Space, false, ["color=blue", "color=blue%20black", "color=B%20150%20R%20100"]),
            (Style::Pipe, false, ["color=blue", "color=blue%7Cblack", "color=B%7C150%7CR%7C100"]),
            (
                Style::Deep,
                true,
                ["color=blue", "color=blue&color=black", "color%5BB%5D=150&color%5BR%5D=100"],
            ),
            (
                Style::Json,
                false,
                [
                    "color=%22blue%22",
                    "color=%5B%22blue%22%2C%22black%22%5D",
                    "color=%7B%22B%22%3A150%2C%22R%22%3A100%7D",
                ],
            ),
        ] {
            let parameter = of(Place::Query, style, explode);
            let written = values.clone().map(|value| {
                let pairs =
                    parameter.pairs(&value).into_iter().map(|(name, value)| format!("{name}={value}"));
                pairs.collect::<Vec<_>>().join("&")
            });
            assert_eq!(written, expected, "{style:?} {explode}");
        }
        let header = of(Place::Header, Style::Simple, true);
        assert_eq!(values.map(|value| header.in_header(&value)), ["blue", "blue,black", "B=150,R=100"]);
    }

    #[test]
    fn nested_values_have_their_way_in_brackets() {
        let value = json!({ "a": { "b c": [1, 2] }, "d": [{ "e": true }] });
        let pairs = of(Place::Query, Style::Deep, true).pairs(&value);
        let texts: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            texts,
            ["color%5Ba%5D%5Bb%20c%5D=1", "color%5Ba%5D%5Bb%20c%5D=2", "color%5Bd%5D%5B%5D%5Be%5D=true"]
        );
    }

    #[test]
    fn headers_of_the_connection_and_credentials_are_no_arguments() {
        let document = Document::read(br#"{"openapi":"3.1.0","paths":{}}"#).unwrap();
        let reads = |name: &str| {
            let value = json!({ "in": "header", "name": name, "schema": { "type": "string" } });
            read(&document, &value).map(|read| read.is_some()).map_err(|why| why.why())
        };
        for name in RESERVED_HEADERS.into_iter().chain(["Host", "AUTHORIZATION", "Proxy-Anything"]) {
            assert_eq!(reads(name), Ok(false), "{name}");
        }
        assert_eq!(reads("X-Trace"), Ok(true));
        for name in ["", "a b", "a\r\nb", "é", &"a".repeat(NAME_BYTES_MAX + 1)] {
            assert!(reads(name).is_err(), "{name}");
        }
        assert_eq!(reads(&"a".repeat(NAME_BYTES_MAX)), Ok(true));
    }
}
