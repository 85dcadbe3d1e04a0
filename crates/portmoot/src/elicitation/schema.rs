//! From a requested schema to fields, in the order in which the server wrote them. Must not know how they are asked.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::form::field::{Choice, Field, Shape};

/// Why a form cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SchemaError {
    /// Not an object with properties.
    #[error("the form is no flat object schema: {0}")]
    NoForm(String),
    /// A field of a kind that forms may not have.
    #[error("the field `{0}` is neither text, number, true or false, nor a choice")]
    Field(String),
}

#[derive(Deserialize)]
struct Requested {
    #[serde(default)]
    properties: Members,
    #[serde(default)]
    required: Vec<String>,
}

/// The fields of a form.
///
/// # Errors
/// When the schema is not one that forms may have.
pub(crate) fn fields(schema: &str) -> Result<Vec<Field>, SchemaError> {
    if !schema.trim_start().starts_with('{') {
        return Err(SchemaError::NoForm("it is no object".into()));
    }
    let requested: Requested =
        serde_json::from_str(schema).map_err(|error| SchemaError::NoForm(error.to_string()))?;
    let field = |(name, schema): (String, Value)| {
        let shape = shape(&schema).ok_or_else(|| SchemaError::Field(name.clone()))?;
        let text = |key: &str| schema.get(key).and_then(Value::as_str).map(str::to_owned);
        Ok(Field {
            required: requested.required.contains(&name),
            title: text("title"),
            description: text("description"),
            default: schema.get("default").cloned(),
            name,
            shape,
        })
    };
    requested.properties.0.into_iter().map(field).collect()
}

fn shape(schema: &Value) -> Option<Shape> {
    let count =
        |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    match schema.get("type").and_then(Value::as_str)? {
        "string" => Some(match choices(schema, "oneOf") {
            Some(choices) => Shape::One(choices),
            None => Shape::Text {
                min: count("minLength"),
                max: count("maxLength"),
                format: schema.get("format").and_then(Value::as_str).map(str::to_owned),
            },
        }),
        "number" => Some(Shape::Number { whole: false, min: number("minimum"), max: number("maximum") }),
        "integer" => Some(Shape::Number { whole: true, min: number("minimum"), max: number("maximum") }),
        "boolean" => Some(Shape::Flag),
        "array" => {
            let choices = choices(schema.get("items")?, "anyOf")?;
            Some(Shape::Many { choices, min: count("minItems"), max: count("maxItems") })
        }
        _ => None,
    }
}

/// `enum` with `enumNames`, or `{const, title}` under `oneOf` or `anyOf`.
fn choices(schema: &Value, titled: &str) -> Option<Vec<Choice>> {
    if let Some(options) = schema.get(titled).and_then(Value::as_array) {
        let choice = |option: &Value| {
            let value = option.get("const")?.as_str()?.to_owned();
            let title = option.get("title").and_then(Value::as_str).map(str::to_owned);
            Some(Choice { value, title })
        };
        return options.iter().map(choice).collect();
    }
    let names = schema.get("enumNames").and_then(Value::as_array);
    let options = schema.get("enum").and_then(Value::as_array)?;
    let choice = |(at, option): (usize, &Value)| {
        let title = names.and_then(|names| names.get(at)).and_then(Value::as_str).map(str::to_owned);
        Some(Choice { value: option.as_str()?.to_owned(), title })
    };
    options.iter().enumerate().map(choice).collect()
}

/// Members of an object in the order in which they were written.
#[derive(Default)]
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members: Vec<(String, Value)> = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            if members.iter().any(|(known, _)| *known == name) {
                map.next_value::<IgnoredAny>()?;
            } else {
                members.push((name, map.next_value()?));
            }
        }
        Ok(Members(members))
    }
}
