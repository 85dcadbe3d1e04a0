//! Tool arguments on the command line: `key=text`, `key:=json`, or one JSON object; `@FILE` in
//! place of a value. Numbers keep their spelling.

use std::fs::File;
use std::io::{Read, stdin};

use json::{Span, members, quote};
use serde_json::Value;
use serde_json::value::RawValue;

use terminal::failure::Failure;

/// Largest file of an argument, bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Keywords of schemas that may allow further keys: what these are, the gateway or the server
/// checks.
const MORE_KEYS: [&str; 4] = ["patternProperties", "allOf", "anyOf", "oneOf"];
/// Least similarity of a key that is meant, from 0 to 1.
const NEAR: f64 = 0.75;
const FORMS: &str = "write key=text, key:=json, key=@FILE, or --args JSON";

/// The value of an argument.
#[derive(Debug, Clone, PartialEq)]
enum Given {
    /// JSON, as it is spelled.
    Json(String),
    /// A text, unless the tool's schema wants another type that it spells.
    Text(String),
}

/// The arguments of one call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Arguments {
    all: Vec<(String, Given)>,
    /// The keys that were typed one by one.
    typed: Vec<String>,
}

impl Arguments {
    /// Reads one JSON object: `whole`, with the members of `single` added or replaced.
    ///
    /// # Errors
    /// When an argument cannot be parsed, or its file cannot be read.
    pub(crate) fn read(whole: Option<&str>, single: &[String]) -> Result<Arguments, Failure> {
        let whole = match whole {
            None => "{}".to_owned(),
            Some("-") => content("stdin", stdin().lock())?,
            Some(text) => match text.strip_prefix('@') {
                Some(path) => file(path)?,
                None => text.to_owned(),
            },
        };
        let whole = whole.as_bytes();
        let given = members(whole, Span::all(whole)).map_err(|error| {
            wrong(
                format!("--args is not a JSON object: {error}"),
                "for example --args '{\"path\": \"/tmp\"}', --args @FILE, or --args - for stdin",
            )
        })?;
        let text = |raw| Given::Json(String::from_utf8_lossy(raw).into_owned());
        let mut all: Vec<(String, Given)> = given
            .iter()
            .map(|(key, value)| (key.to_owned(), text(value.raw)))
            .collect();
        let mut typed = Vec::new();
        for argument in single {
            let (key, value) = one(argument)?;
            typed.push(key.to_owned());
            match all.iter_mut().find(|(known, _)| known == key) {
                Some(member) => member.1 = value,
                None => all.push((key.to_owned(), value)),
            }
        }
        Ok(Arguments { all, typed })
    }

    /// Refuses a typed key that a tool with this `inputSchema` does not have.
    ///
    /// # Errors
    /// The key, with the most similar one of the tool.
    pub(crate) fn check(&self, schema: &Value) -> Result<(), Failure> {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Ok(());
        };
        let takes_more = match schema.get("additionalProperties") {
            None | Some(Value::Bool(false)) => false,
            Some(_) => true,
        };
        if takes_more || MORE_KEYS.iter().any(|key| schema.get(key).is_some()) {
            return Ok(());
        }
        let Some(unknown) = self.typed.iter().find(|key| !properties.contains_key(*key)) else {
            return Ok(());
        };
        let score = |known: &&String| strsim::jaro_winkler(unknown, known);
        let nearest = properties
            .keys()
            .max_by(|one, other| score(one).total_cmp(&score(other)));
        let all = properties
            .keys()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ");
        let hint = match nearest.filter(|known| score(known) > NEAR) {
            Some(known) => format!("did you mean `{known}`?"),
            None if all.is_empty() => "it takes no arguments".to_owned(),
            None => format!("it has: {}", json::visible::line(&all)),
        };
        let message = format!(
            "the tool has no argument `{}`",
            json::visible::line(unknown)
        );
        Err(wrong(
            message,
            &format!("{hint} To send it all the same: --args JSON"),
        ))
    }

    /// The object to send to a tool with this `inputSchema`.
    pub(crate) fn object(&self, schema: &Value) -> String {
        let properties = schema.get("properties");
        let written = json::object(|object| {
            for (key, given) in &self.all {
                let wanted = properties.and_then(|properties| properties.get(key));
                let is_spelled = |text: &str| wanted.is_some_and(|schema| spells(schema, text));
                match given {
                    Given::Json(raw) => object.raw(key, raw.as_bytes()),
                    Given::Text(text) if is_spelled(text) => object.raw(key, text.as_bytes()),
                    Given::Text(text) => object.raw(key, quote(text).as_bytes()),
                };
            }
        });
        String::from_utf8_lossy(&written).into_owned()
    }
}

/// Whether a text spells a value of a type that a schema names. If it allows texts, the text is
/// meant as one.
fn spells(schema: &Value, text: &str) -> bool {
    let mut names = Vec::new();
    types(schema, &mut names);
    let has = |name| names.contains(&name);
    !has("string")
        && match serde_json::from_str(text) {
            Ok(Value::Number(_)) => has("number") || has("integer"),
            Ok(Value::Bool(_)) => has("boolean"),
            Ok(Value::Null) => has("null"),
            Ok(Value::Array(_)) => has("array"),
            Ok(Value::Object(_)) => has("object"),
            Ok(Value::String(_)) | Err(_) => false,
        }
}

/// The type names of a schema and of its alternatives.
fn types<'a>(schema: &'a Value, names: &mut Vec<&'a str>) {
    match schema.get("type") {
        Some(Value::String(name)) => names.push(name),
        Some(Value::Array(all)) => names.extend(all.iter().filter_map(Value::as_str)),
        _ => {}
    }
    let alternatives = ["anyOf", "oneOf"]
        .iter()
        .filter_map(|key| schema.get(key)?.as_array());
    alternatives
        .flatten()
        .for_each(|alternative| types(alternative, names));
}

fn one(argument: &str) -> Result<(&str, Given), Failure> {
    let (key, value) = argument
        .split_once('=')
        .ok_or_else(|| wrong(format!("`{argument}` has no `=`"), FORMS))?;
    // `@@` begins a text with `@`.
    let from_file = value
        .strip_prefix('@')
        .filter(|path| !path.starts_with('@'))
        .map(file)
        .transpose()?;
    let is_file = from_file.is_some();
    let text = from_file.unwrap_or_else(|| value.strip_prefix('@').unwrap_or(value).to_owned());
    let (key, given) = match key.strip_suffix(':') {
        // A file is a text, whatever it has in it.
        None if is_file => (key, Given::Json(quote(&text))),
        None => (key, Given::Text(text)),
        Some(key) => {
            let raw: Result<&RawValue, _> = serde_json::from_str(&text);
            let leave = "to pass a text, leave out the colon: key=text";
            let wrong = |error| wrong(format!("the value of `{key}` is not JSON: {error}"), leave);
            (key, Given::Json(raw.map_err(wrong)?.get().to_owned()))
        }
    };
    if key.is_empty() {
        return Err(wrong(format!("`{argument}` has no key"), FORMS));
    }
    Ok((key, given))
}

fn file(path: &str) -> Result<String, Failure> {
    let open = File::open(path);
    content(
        path,
        open.map_err(|error| unreadable(path, &error.to_string()))?,
    )
}

fn content(name: &str, from: impl Read) -> Result<String, Failure> {
    let mut text = String::new();
    let read = from.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    match read.map_err(|error| unreadable(name, &error.to_string()))? as u64 {
        0..=FILE_BYTES_MAX => Ok(text),
        _ => Err(unreadable(
            name,
            &format!("it has more than {FILE_BYTES_MAX} bytes"),
        )),
    }
}

fn unreadable(name: &str, why: &str) -> Failure {
    wrong(
        format!("cannot read `{name}`: {why}"),
        "a text that begins with @ is written key=@@text",
    )
}

fn wrong(message: String, hint: &str) -> Failure {
    Failure::bad_argument(message).hint(hint)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_make_an_object() {
        for (whole, single, expect) in [
            (None, &[][..], Some("{}")),
            (
                None,
                &["a=1", "b=x=y", "c="][..],
                Some(r#"{"a":"1","b":"x=y","c":""}"#),
            ),
            (
                None,
                &["n:=12345678901234567890123", "l:=[1, 2]", "t:=true"],
                Some(r#"{"n":12345678901234567890123,"l":[1, 2],"t":true}"#),
            ),
            (
                Some(r#"{"z":-0.0,"a":1e400}"#),
                &["a=q\"", "b:=null"],
                Some(r#"{"z":-0.0,"a":"q\"","b":null}"#),
            ),
            (Some("[]"), &[], None),
            (Some(r#"{"a":1,"a":2}"#), &[], None),
            (None, &["plain"], None),
            (None, &["=x"], None),
            (None, &[":=1"], None),
            (None, &["a:=x"], None),
        ] {
            let single: Vec<String> = single.iter().map(|text| (*text).to_owned()).collect();
            let read = Arguments::read(whole, &single).ok();
            let object = read.map(|arguments| arguments.object(&Value::Null));
            assert_eq!(object.as_deref(), expect, "{whole:?} {single:?}");
        }
    }

    #[test]
    fn a_key_that_the_tool_does_not_have_is_refused() {
        let schema = json!({ "type": "object", "properties": { "path": {}, "depth": {} } });
        let check = |argument: &str, schema: &Value| {
            let failure = Arguments::read(None, &[argument.to_owned()])
                .unwrap()
                .check(schema)
                .err()?;
            Some((failure.message, failure.hint.unwrap()))
        };
        assert_eq!(check("path=x", &schema), None);
        let (message, hint) = check("pth=x", &schema).unwrap();
        assert!(
            message.contains("`pth`") && hint.starts_with("did you mean `path`?"),
            "{message} {hint}"
        );
        assert!(
            check("zzz=1", &schema)
                .unwrap()
                .1
                .starts_with("it has: depth, path")
        );
        let open = json!({ "properties": { "path": {} }, "additionalProperties": true });
        assert_eq!(check("pth=x", &open), None);
        assert_eq!(check("pth=x", &json!({})), None);
        let whole = Arguments::read(Some(r#"{"pth":1}"#), &[]).unwrap();
        assert!(whole.check(&schema).is_ok(), "an object is sent as it is");
    }

    #[test]
    fn the_schema_decides_about_types() {
        let integer = json!({ "type": "integer" });
        let optional = json!({ "anyOf": [{ "type": "number" }, { "type": "null" }] });
        for (schema, value, expect) in [
            (
                &integer,
                "12345678901234567890123",
                "12345678901234567890123",
            ),
            (&integer, "three", r#""three""#),
            (&integer, "true", r#""true""#),
            (&optional, "-1.50", "-1.50"),
            (&optional, "null", "null"),
            (&json!({ "type": ["boolean", "null"] }), "true", "true"),
            (&json!({ "type": ["integer", "string"] }), "3", r#""3""#),
            (&json!({ "type": "string" }), "3", r#""3""#),
            (&json!({ "type": "array" }), "[1, 2]", "[1, 2]"),
            (
                &json!({ "oneOf": [{ "type": "object" }] }),
                r#"{"a":1}"#,
                r#"{"a":1}"#,
            ),
            (&json!({}), "3", r#""3""#),
        ] {
            let arguments = Arguments::read(None, &[format!("n={value}")]).unwrap();
            let schema = json!({ "properties": { "n": schema } });
            assert_eq!(
                arguments.object(&schema),
                format!(r#"{{"n":{expect}}}"#),
                "{schema}"
            );
        }
    }
}
