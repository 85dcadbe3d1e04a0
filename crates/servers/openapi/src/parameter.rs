//! Parameters of operations: where each goes, how it is written, and whether an argument may be its
//! value.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::openapi::path::{Parameter as Described, ParameterIn, ParameterStyle};
use utoipa::openapi::{Deprecated, Required};

use crate::document::Document;
use crate::refs::{self, Unusable};
use crate::style::{self, Spelling, Style};
use crate::written::{Others, Pairs, Written};

/// The most schemas that are looked at to see whether a parameter's allows an object. Beyond them
/// it does not.
const ALTERNATIVES_MAX: usize = 256;
/// The longest name of a parameter, in bytes; what else says how it is written is not longer.
const NAME_BYTES_MAX: usize = 256;
/// The longest description that is read, in characters.
const DESCRIPTION_CHARS_MAX: usize = 2048;

/// Headers that are never an argument: the connection's own, the negotiation of contents, and
/// credentials, which are configured.
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

/// A parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    /// The argument that has its value; empty until the operation's arguments have their names.
    pub(crate) argument: String,
    /// Its own name.
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) spelling: Spelling,
    pub(crate) required: bool,
    /// Whether its schema allows objects: only then are keys of one sent as names.
    pub(crate) takes_objects: bool,
}

/// A parameter as the description has it.
pub(crate) struct Read<'d> {
    pub(crate) parameter: Parameter,
    pub(crate) description: Option<String>,
    pub(crate) deprecated: bool,
    pub(crate) schema: Option<&'d Value>,
}

/// Reads a parameter, or a reference to one. `None` is one that is no argument.
pub(crate) fn read<'d>(
    document: &'d Document,
    value: &'d Value,
) -> Result<Option<Read<'d>>, Unusable> {
    let value = refs::object(&document.root, value)?;
    let described = described(value)?;
    let name = described.name.as_str();
    let place = match described.parameter_in {
        ParameterIn::Path => Place::Path,
        ParameterIn::Query => Place::Query,
        ParameterIn::Header => Place::Header,
        ParameterIn::Cookie => Place::Cookie,
        ParameterIn::QueryString => return Err(wrong("is a whole query, which is not supported")),
    };
    if place == Place::Header && is_reserved(name) {
        return Ok(None);
    }
    if matches!(place, Place::Header | Place::Cookie) && !is_token(name) {
        return Err(wrong(&format!(
            "is a {} with an invalid name",
            place.name()
        )));
    }
    // A parameter has either a schema and a style, or a media type; of several the first counts.
    let media = value
        .get("content")
        .and_then(Value::as_object)
        .and_then(|content| content.values().next());
    let (style, schema) = match media {
        Some(media) => (Style::Json, media.get("schema")),
        None => (style_of(described.style, place), value.get("schema")),
    };
    let description = value.get("description").and_then(Value::as_str);
    let mut left = ALTERNATIVES_MAX;
    let takes_objects = match schema {
        Some(schema) => allows_objects(document, schema, &mut left),
        None => true,
    };
    Ok(Some(Read {
        parameter: Parameter {
            argument: String::new(),
            name: name.to_owned(),
            place,
            spelling: Spelling {
                style,
                explode: described.explode.unwrap_or(style == Style::Form),
            },
            // A path without one of its parts would be another path.
            required: described.required == Required::True || place == Place::Path,
            takes_objects,
        },
        description: description.map(|text| text.chars().take(DESCRIPTION_CHARS_MAX).collect()),
        deprecated: described.deprecated == Some(Deprecated::True),
        schema,
    }))
}

/// The name of a described parameter.
fn name_of(value: &Value) -> Result<&str, Unusable> {
    match value.get("name").and_then(Value::as_str) {
        Some(name) if name.len() <= NAME_BYTES_MAX => Ok(name),
        _ => Err(wrong("has no name, or one that is too long")),
    }
}

/// The members that say where and how a parameter is written. They are picked out: its schema would
/// not stay as it is in the types, and its examples may be large.
fn described(value: &Value) -> Result<Described, Unusable> {
    // The type demands `required`; in a description it may be absent.
    let mut members = Map::from_iter([("required".to_owned(), false.into())]);
    for key in ["in", "required", "deprecated", "style", "explode"] {
        let Some(member) = value.get(key) else {
            continue;
        };
        let is_short = match member {
            Value::String(text) => text.len() <= NAME_BYTES_MAX,
            Value::Array(_) | Value::Object(_) => false,
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        };
        if !is_short {
            return Err(wrong(&format!("has a `{key}` that cannot be read")));
        }
        members.insert(key.to_owned(), member.clone());
    }
    let name = name_of(value)?;
    members.insert("name".to_owned(), name.into());
    Described::deserialize(Value::from(members))
        .map_err(|_| wrong(&format!("cannot be read: `{}`", name.escape_debug())))
}

/// The style of a parameter that is no media type; without one, the default of its place.
fn style_of(described: Option<ParameterStyle>, place: Place) -> Style {
    match described {
        Some(ParameterStyle::Matrix) => Style::Matrix,
        Some(ParameterStyle::Label) => Style::Label,
        Some(ParameterStyle::Form | ParameterStyle::Cookie) => Style::Form,
        Some(ParameterStyle::Simple) => Style::Simple,
        Some(ParameterStyle::SpaceDelimited) => Style::Space,
        Some(ParameterStyle::PipeDelimited) => Style::Pipe,
        Some(ParameterStyle::DeepObject) => Style::Deep,
        None => match place {
            Place::Path | Place::Header => Style::Simple,
            Place::Query | Place::Cookie => Style::Form,
        },
    }
}

/// Whether a header is never an argument.
fn is_reserved(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    RESERVED_HEADERS.contains(&name.as_str()) || name.starts_with("proxy-")
}

/// The reason why an operation with such a parameter is left out.
fn wrong(why: &str) -> Unusable {
    Unusable::Because(format!("one of its parameters {why}"))
}

/// Whether a name is a token (RFC 9110, 5.6.2), as names of headers and cookies must be: any other
/// could end its line and begin another header.
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// A variable of a path that no parameter declares.
pub(crate) fn undeclared<'d>(name: String) -> Read<'d> {
    let parameter = Parameter {
        argument: String::new(),
        name,
        place: Place::Path,
        spelling: Spelling {
            style: Style::Simple,
            explode: false,
        },
        required: true,
        takes_objects: true,
    };
    Read {
        parameter,
        description: None,
        deprecated: false,
        schema: None,
    }
}

/// Whether a schema allows objects. `left` is how many schemas may still be looked at.
fn allows_objects(document: &Document, schema: &Value, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else {
        return false;
    };
    *left = rest;
    let Ok(schema) = refs::object(&document.root, schema) else {
        return false;
    };
    if let Value::Bool(accepts) = schema {
        return *accepts;
    }
    let is_of_type = match schema.get("type") {
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        Some(name) => name == "object",
        None => true,
    };
    if !is_of_type {
        return false;
    }
    if schema.get("const").is_some_and(|value| !value.is_object()) {
        return false;
    }
    if let Some(Value::Array(values)) = schema.get("enum")
        && !values.iter().any(Value::is_object)
    {
        return false;
    }
    if let Some(Value::Array(all)) = schema.get("allOf")
        && !all.iter().all(|one| allows_objects(document, one, left))
    {
        return false;
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(alternatives)) = schema.get(key)
            && !alternatives
                .iter()
                .any(|one| allows_objects(document, one, left))
        {
            return false;
        }
    }
    true
}

impl Parameter {
    /// Whether the keys of this value would be sent as names.
    pub(crate) fn sends_keys(&self, value: &Value) -> bool {
        match self.spelling.style {
            Style::Json => false,
            Style::Deep => value.is_object() || value.is_array(),
            _ => self.spelling.explode && value.is_object(),
        }
    }

    /// Refuses an object whose keys would be sent as names, unless it was described that way.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        if value.is_object() && self.sends_keys(value) && !self.takes_objects {
            return Err(format!("`{}` must not be an object", self.argument));
        }
        Ok(())
    }

    /// Adds its names and values to a query or to cookies.
    pub(crate) fn pairs(
        &self,
        out: &mut Pairs,
        value: &Value,
        others: &Others,
    ) -> Result<(), String> {
        style::pairs(out, &self.name, value, self.spelling, others)
    }

    /// Writes its text into a path, encoded.
    pub(crate) fn in_path(
        &self,
        out: &mut Written,
        value: &Value,
        others: &Others,
    ) -> Result<(), String> {
        style::in_path(out, &self.name, value, self.spelling, others)
    }

    /// Writes its text for a header, as it is.
    pub(crate) fn in_header(&self, out: &mut Written, value: &Value) -> Result<(), String> {
        style::in_header(out, value, self.spelling)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_schema_that_allows_objects_has_its_keys_sent_as_names() {
        let text = json!({ "openapi": "3.1.0", "paths": {}, "components": { "schemas": {
            "Object": { "type": "object" }, "Loop": { "anyOf": [{ "$ref": "#/components/schemas/Loop" }] } } } });
        let document = Document::read(text.to_string().as_bytes()).unwrap();
        for (schema, allows) in [
            (json!({}), true),
            (json!(true), true),
            (json!(false), false),
            (json!({ "type": "object" }), true),
            (json!({ "type": ["object", "null"] }), true),
            (json!({ "type": ["string", "null"] }), false),
            (json!({ "type": "string" }), false),
            (json!({ "type": "array" }), false),
            (json!({ "enum": ["a", {}] }), true),
            (json!({ "enum": ["a"] }), false),
            (json!({ "const": 1 }), false),
            (json!({ "$ref": "#/components/schemas/Object" }), true),
            (
                json!({ "anyOf": [{ "type": "string" }, { "$ref": "#/components/schemas/Object" }] }),
                true,
            ),
            (
                json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }] }),
                false,
            ),
            (json!({ "allOf": [{ "type": "string" }, {}] }), false),
            (json!({ "$ref": "#/components/schemas/Loop" }), false),
            (
                json!({ "allOf": vec![json!({}); ALTERNATIVES_MAX - 1] }),
                true,
            ),
            (json!({ "allOf": vec![json!({}); ALTERNATIVES_MAX] }), false),
        ] {
            let described = json!({ "in": "query", "name": "q", "schema": schema });
            let parameter = read(&document, &described).unwrap().unwrap().parameter;
            assert_eq!(
                parameter.takes_objects,
                allows,
                "{}",
                schema.to_string().chars().take(80).collect::<String>()
            );
            assert_eq!(parameter.check(&json!({})).is_ok(), allows);
            assert_eq!(parameter.check(&json!([1])), Ok(()));
        }
    }

    #[test]
    fn what_says_how_a_parameter_is_written_is_short() {
        let document = Document::read(br#"{"openapi":"3.1.0","paths":{}}"#).unwrap();
        for (key, odd) in [
            ("in", json!("q".repeat(NAME_BYTES_MAX + 1))),
            ("style", json!({ "form": 1 })),
            ("explode", json!([true])),
        ] {
            let mut value = json!({ "in": "query", "name": "q" });
            value[key] = odd;
            let why = read(&document, &value).err().map(|why| why.why()).unwrap();
            assert!(
                why.contains(&format!("`{key}` that cannot be read")),
                "{why}"
            );
        }
    }

    #[test]
    fn headers_of_the_connection_and_credentials_are_no_arguments() {
        let document = Document::read(br#"{"openapi":"3.1.0","paths":{}}"#).unwrap();
        let reads = |name: &str| {
            let value = json!({ "in": "header", "name": name, "schema": { "type": "string" } });
            read(&document, &value)
                .map(|read| read.is_some())
                .map_err(|why| why.why())
        };
        for name in RESERVED_HEADERS
            .into_iter()
            .chain(["Host", "AUTHORIZATION", "Proxy-Anything"])
        {
            assert_eq!(reads(name), Ok(false), "{name}");
        }
        assert_eq!(reads("X-Trace"), Ok(true));
        for name in ["", "a b", "a\r\nb", "é", &"a".repeat(NAME_BYTES_MAX + 1)] {
            assert!(reads(name).is_err(), "{name}");
        }
        assert_eq!(reads(&"a".repeat(NAME_BYTES_MAX)), Ok(true));
    }
}
