//! Parameters of operations: where each goes, how it is written, and its text in a request.

use percent_encoding::utf8_percent_encode;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::openapi::path::{Parameter as Described, ParameterIn, ParameterStyle};
use utoipa::openapi::{Deprecated, Required};

use crate::document::Document;
use crate::refs::{self, Unusable};
use crate::written::{Others, Pairs, Put, UNRESERVED, Written, plain};

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
    /// Whether its schema allows objects: only then are keys of one sent as names.
    pub(crate) takes_objects: bool,
}

/// How a value becomes pairs of names and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PairStyle {
    pub(crate) style: Style,
    /// Whether each item or member is a pair of its own.
    pub(crate) explode: bool,
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
    // Without its schema, which the types would not keep as it is, and without its examples.
    let mut parts = Map::from_iter([("required".to_owned(), false.into())]);
    for key in ["in", "required", "deprecated", "style", "explode"] {
        let Some(part) = value.get(key) else { continue };
        if part.is_array()
            || part.is_object()
            || part
                .as_str()
                .is_some_and(|text| text.len() > NAME_BYTES_MAX)
        {
            return Err(wrong(&format!("has a `{key}` that cannot be read")));
        }
        parts.insert(key.to_owned(), part.clone());
    }
    let name = value
        .get("name")
        .and_then(Value::as_str)
        .filter(|name| name.len() <= NAME_BYTES_MAX);
    let name = name.ok_or_else(|| wrong("has no name, or one that is too long"))?;
    parts.insert("name".to_owned(), name.into());
    let described = Described::deserialize(Value::from(parts));
    let described =
        described.map_err(|_| wrong(&format!("cannot be read: `{}`", name.escape_debug())))?;
    let place = match described.parameter_in {
        ParameterIn::Path => Place::Path,
        ParameterIn::Query => Place::Query,
        ParameterIn::Header => Place::Header,
        ParameterIn::Cookie => Place::Cookie,
        ParameterIn::QueryString => return Err(wrong("is a whole query, which is not supported")),
    };
    let lower = name.to_ascii_lowercase();
    if place == Place::Header
        && (RESERVED_HEADERS.contains(&lower.as_str()) || lower.starts_with("proxy-"))
    {
        return Ok(None);
    }
    if matches!(place, Place::Header | Place::Cookie) && !is_token(name) {
        return Err(wrong(&format!(
            "is a {} with an invalid name",
            place.name()
        )));
    }
    let content = value
        .get("content")
        .and_then(Value::as_object)
        .and_then(|content| content.iter().next());
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
    let schema = content.map_or_else(|| value.get("schema"), |(_, media)| media.get("schema"));
    let mut left = ALTERNATIVES_MAX;
    let takes_objects = schema.is_none_or(|schema| allows_objects(document, schema, &mut left));
    Ok(Some(Read {
        parameter: Parameter {
            argument: String::new(),
            name: name.to_owned(),
            place,
            style,
            explode: described.explode.unwrap_or(style == Style::Form),
            required: described.required == Required::True || place == Place::Path,
            takes_objects,
        },
        description: description.map(|text| text.chars().take(DESCRIPTION_CHARS_MAX).collect()),
        deprecated: described.deprecated == Some(Deprecated::True),
        schema,
    }))
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
        style: Style::Simple,
        explode: false,
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

/// A text, percent-encoded: none of its characters means anything in a URL.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
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
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    let is_object = |name: &Value| name == "object";
    let of_type = match schema.get("type") {
        Some(Value::Array(names)) => names.iter().any(is_object),
        Some(name) => is_object(name),
        None => true,
    };
    of_type
        && schema.get("const").is_none_or(Value::is_object)
        && list("enum").is_none_or(|values| values.iter().any(Value::is_object))
        && list("allOf").is_none_or(|all| all.iter().all(|one| allows_objects(document, one, left)))
        && list("anyOf").is_none_or(|any| any.iter().any(|one| allows_objects(document, one, left)))
        && list("oneOf").is_none_or(|any| any.iter().any(|one| allows_objects(document, one, left)))
}

impl Parameter {
    /// Whether the keys of this value would be sent as names.
    pub(crate) fn sends_keys(&self, value: &Value) -> bool {
        match self.style {
            Style::Json => false,
            Style::Deep => value.is_object() || value.is_array(),
            _ => self.explode && value.is_object(),
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
        let how = PairStyle {
            style: self.style,
            explode: self.explode,
        };
        pairs(out, &self.name, value, how, others)
    }

    /// Writes its text into a path, encoded.
    pub(crate) fn in_path(
        &self,
        out: &mut Written,
        value: &Value,
        others: &Others,
    ) -> Result<(), String> {
        match self.style {
            Style::Label => {
                out.push(".")?;
                let by = if self.explode { "." } else { "," };
                joined(out, value, by, self.explode, Written::encoded)
            }
            Style::Matrix => match value {
                Value::Array(items) if self.explode => {
                    for item in items {
                        matrix_pair(out, &self.name, &plain(item).into())?;
                    }
                    Ok(())
                }
                Value::Object(members) if self.explode => {
                    for (key, value) in members {
                        others.refuse(key)?;
                        matrix_pair(out, key, &plain(value).into())?;
                    }
                    Ok(())
                }
                _ => matrix_pair(out, &self.name, value),
            },
            Style::Json => out.encoded(&value.to_string()),
            Style::Form | Style::Simple | Style::Space | Style::Pipe | Style::Deep => {
                joined(out, value, ",", self.explode, Written::encoded)
            }
        }
    }

    /// Writes its text for a header, as it is.
    pub(crate) fn in_header(&self, out: &mut Written, value: &Value) -> Result<(), String> {
        match self.style {
            Style::Json => out.push(&value.to_string()),
            _ => joined(out, value, ",", self.explode, Written::push),
        }
    }
}

/// Writes `;name=value` into a path.
fn matrix_pair(out: &mut Written, name: &str, value: &Value) -> Result<(), String> {
    out.push(";")?;
    out.encoded(name)?;
    out.push("=")?;
    joined(out, value, ",", false, Written::encoded)
}

/// Writes the items of a list, or the members of an object, as one text.
fn joined(
    out: &mut Written,
    value: &Value,
    by: &str,
    explode: bool,
    write: Put,
) -> Result<(), String> {
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(by)?;
                }
                write(out, &plain(item))?;
            }
            Ok(())
        }
        Value::Object(members) => {
            for (at, (key, value)) in members.iter().enumerate() {
                if at > 0 {
                    out.push(by)?;
                }
                write(out, key)?;
                out.push(if explode { "=" } else { by })?;
                write(out, &plain(value))?;
            }
            Ok(())
        }
        _ => write(out, &plain(value)),
    }
}

/// Adds the pairs of a value to a query, a form or cookies.
///
/// # Errors
/// They would be too long, or a key is the name of another parameter; in words for the caller.
pub(crate) fn pairs(
    out: &mut Pairs,
    name: &str,
    value: &Value,
    PairStyle { style, explode }: PairStyle,
    others: &Others,
) -> Result<(), String> {
    match (value, style) {
        (_, Style::Json) => out.pair(name, &value.to_string()),
        (Value::Object(_) | Value::Array(_), Style::Deep) => {
            deep(out, &mut name.to_owned(), name.len(), value, others)
        }
        (Value::Array(items), _) if explode => {
            for item in items {
                out.pair(name, &plain(item))?;
            }
            Ok(())
        }
        (Value::Object(members), _) if explode => {
            for (key, value) in members {
                others.refuse(key)?;
                out.pair(key, &plain(value))?;
            }
            Ok(())
        }
        (Value::Array(_) | Value::Object(_), _) => {
            let by = match style {
                Style::Space => "%20",
                Style::Pipe => "%7C",
                _ => ",",
            };
            joined(out.name(name)?, value, by, false, Written::encoded)
        }
        _ => out.pair(name, &plain(value)),
    }
}

/// `name[key]=value`, for objects in objects too; a list repeats its name. `name` has the keys on
/// the way, after the first `own_bytes`, which are the parameter's own name.
fn deep(
    out: &mut Pairs,
    name: &mut String,
    own_bytes: usize,
    value: &Value,
    others: &Others,
) -> Result<(), String> {
    let here = name.len();
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                for piece in ["[", key, "]"] {
                    name.push_str(piece);
                }
                deep(out, name, own_bytes, value, others)?;
                name.truncate(here);
            }
            Ok(())
        }
        Value::Array(items) => {
            for item in items {
                if item.is_object() || item.is_array() {
                    name.push_str("[]");
                    deep(out, name, own_bytes, item, others)?;
                    name.truncate(here);
                } else {
                    deep_pair(out, name, own_bytes, item, others)?;
                }
            }
            Ok(())
        }
        _ => deep_pair(out, name, own_bytes, value, others),
    }
}

/// One pair of a deep value. A name with keys of the caller's must not be that of another
/// parameter.
fn deep_pair(
    out: &mut Pairs,
    name: &str,
    own_bytes: usize,
    value: &Value,
    others: &Others,
) -> Result<(), String> {
    if name.len() > own_bytes {
        others.refuse(name)?;
    }
    out.pair(name, &plain(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(place: Place, style: Style, explode: bool) -> Parameter {
        let argument = "color".to_owned();
        let required = true;
        let takes_objects = true;
        Parameter {
            name: argument.clone(),
            argument,
            place,
            style,
            explode,
            required,
            takes_objects,
        }
    }

    fn query(parameter: &Parameter, value: &Value) -> Result<String, String> {
        let mut out = Pairs::new("&", Written::new("its URL", 1024));
        parameter.pairs(&mut out, value, &Others::new(["hidden"].into_iter()))?;
        Ok(out.written.text().to_owned())
    }

    fn path(parameter: &Parameter, value: &Value) -> Result<String, String> {
        let mut out = Written::new("its URL", 1024);
        parameter.in_path(&mut out, value, &Others::new(["hidden"].into_iter()))?;
        Ok(out.text().to_owned())
    }

    /// The examples of the specification ("Style Examples").
    #[test]
    fn every_style_writes_texts_lists_and_objects() {
        let values = [
            json!("blue"),
            json!(["blue", "black"]),
            json!({ "B": 150, "R": 100 }),
        ];
        for (style, explode, expected) in [
            (
                Style::Matrix,
                false,
                [";color=blue", ";color=blue,black", ";color=B,150,R,100"],
            ),
            (
                Style::Matrix,
                true,
                [";color=blue", ";color=blue;color=black", ";B=150;R=100"],
            ),
            (
                Style::Label,
                false,
                [".blue", ".blue,black", ".B,150,R,100"],
            ),
            (Style::Label, true, [".blue", ".blue.black", ".B=150.R=100"]),
            (Style::Simple, false, ["blue", "blue,black", "B,150,R,100"]),
            (Style::Simple, true, ["blue", "blue,black", "B=150,R=100"]),
        ] {
            let parameter = of(Place::Path, style, explode);
            let written = values
                .clone()
                .map(|value| path(&parameter, &value).unwrap());
            assert_eq!(written, expected, "{style:?} {explode}");
        }
        for (style, explode, expected) in [
            (
                Style::Form,
                false,
                ["color=blue", "color=blue,black", "color=B,150,R,100"],
            ),
            (
                Style::Form,
                true,
                ["color=blue", "color=blue&color=black", "B=150&R=100"],
            ),
            (
                Style::Space,
                false,
                [
                    "color=blue",
                    "color=blue%20black",
                    "color=B%20150%20R%20100",
                ],
            ),
            (
                Style::Pipe,
                false,
                [
                    "color=blue",
                    "color=blue%7Cblack",
                    "color=B%7C150%7CR%7C100",
                ],
            ),
            (
                Style::Deep,
                true,
                [
                    "color=blue",
                    "color=blue&color=black",
                    "color%5BB%5D=150&color%5BR%5D=100",
                ],
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
            let written = values
                .clone()
                .map(|value| query(&parameter, &value).unwrap());
            assert_eq!(written, expected, "{style:?} {explode}");
        }
        let header = of(Place::Header, Style::Simple, true);
        let written = values.map(|value| {
            let mut out = Written::new("a header", 1024);
            header.in_header(&mut out, &value).unwrap();
            out.text().to_owned()
        });
        assert_eq!(written, ["blue", "blue,black", "B=150,R=100"]);
    }

    #[test]
    fn nested_values_have_their_way_in_brackets() {
        let value = json!({ "a": { "b c": [1, 2] }, "d": [{ "e": true }] });
        assert_eq!(
            query(&of(Place::Query, Style::Deep, true), &value).unwrap(),
            "color%5Ba%5D%5Bb%20c%5D=1&color%5Ba%5D%5Bb%20c%5D=2&color%5Bd%5D%5B%5D%5Be%5D=true"
        );
    }

    #[test]
    fn no_key_is_sent_as_the_name_of_another_parameter() {
        let value = json!({ "hidden": "mine" });
        for (place, style) in [(Place::Query, Style::Form), (Place::Cookie, Style::Form)] {
            assert!(
                query(&of(place, style, true), &value)
                    .unwrap_err()
                    .contains("another parameter")
            );
            assert_eq!(
                query(&of(place, style, false), &value).unwrap(),
                "color=hidden,mine"
            );
        }
        assert!(
            path(&of(Place::Path, Style::Matrix, true), &value)
                .unwrap_err()
                .contains("another parameter")
        );
        let mut deep = of(Place::Query, Style::Deep, true);
        assert_eq!(query(&deep, &value).unwrap(), "color%5Bhidden%5D=mine");
        deep.name = "hid".to_owned();
        assert_eq!(
            query(&deep, &json!({ "den": 1 })).unwrap(),
            "hid%5Bden%5D=1"
        );
    }

    /// A long key, and many empty lists below it: nothing is written of them, and nothing is made
    /// of their names.
    #[test]
    fn long_keys_are_not_repeated_for_what_is_not_sent() {
        let items = vec![json!([]); 200_000];
        let value = json!({ "k".repeat(1 << 20): items });
        assert_eq!(
            query(&of(Place::Query, Style::Deep, true), &value).unwrap(),
            ""
        );
    }

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
