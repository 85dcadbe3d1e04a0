//! Parser of requested schemas: fields in the order of the server's schema.

use json::{Member, Span, members};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::elicitation::field::{FieldChoice, FieldType, FormField};

/// Error in a requested schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SchemaError {
    /// The schema is not an object with properties.
    #[error("the form is not a flat object schema: {0}")]
    NotAForm(String),
    /// A field has a type that forms do not support.
    #[error("the field `{0}` is neither a text, a number, a boolean nor a choice")]
    Field(String),
}

#[derive(Deserialize)]
struct Requested<'a> {
    #[serde(borrow, default)]
    properties: Option<&'a RawValue>,
    #[serde(default)]
    required: Vec<String>,
}

/// Parses the fields of a form.
///
/// # Errors
/// When the schema is not a valid form schema.
pub(crate) fn fields(schema: &str) -> Result<Vec<FormField>, SchemaError> {
    if !schema.trim_start().starts_with('{') {
        return Err(SchemaError::NotAForm("it is not an object".into()));
    }
    let requested: Requested<'_> =
        serde_json::from_str(schema).map_err(|error| not_a_form(&error))?;
    let properties = requested.properties.map_or("{}", RawValue::get).as_bytes();
    let properties =
        members(properties, Span::all(properties)).map_err(|error| not_a_form(&error))?;
    let field = |(name, member): (&str, Member<'_>)| {
        let schema: Value =
            serde_json::from_slice(member.raw).map_err(|error| not_a_form(&error))?;
        let text = |key: &str| schema.get(key).and_then(Value::as_str).map(str::to_owned);
        Ok(FormField {
            name: name.to_owned(),
            required: requested.required.iter().any(|required| required == name),
            title: text("title"),
            description: text("description"),
            default: schema.get("default").cloned(),
            field_type: field_type(&schema).ok_or_else(|| SchemaError::Field(name.to_owned()))?,
        })
    };
    properties.iter().map(field).collect()
}

fn not_a_form(error: &dyn std::fmt::Display) -> SchemaError {
    SchemaError::NotAForm(error.to_string())
}

fn field_type(schema: &Value) -> Option<FieldType> {
    let count = |key: &str| {
        schema
            .get(key)
            .and_then(Value::as_u64)
            .and_then(|count| usize::try_from(count).ok())
    };
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    match schema.get("type").and_then(Value::as_str)? {
        "string" => Some(match choices(schema, "oneOf") {
            Some(choices) => FieldType::One(choices),
            None => FieldType::Text {
                min: count("minLength"),
                max: count("maxLength"),
                format: schema
                    .get("format")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            },
        }),
        "number" => Some(FieldType::Number {
            whole: false,
            min: number("minimum"),
            max: number("maximum"),
        }),
        "integer" => Some(FieldType::Number {
            whole: true,
            min: number("minimum"),
            max: number("maximum"),
        }),
        "boolean" => Some(FieldType::Flag),
        "array" => {
            let choices = choices(schema.get("items")?, "anyOf")?;
            Some(FieldType::Many {
                choices,
                min: count("minItems"),
                max: count("maxItems"),
            })
        }
        _ => None,
    }
}

/// `enum` with `enumNames`, or `{const, title}` under `oneOf` or `anyOf`.
fn choices(schema: &Value, titled: &str) -> Option<Vec<FieldChoice>> {
    if let Some(options) = schema.get(titled).and_then(Value::as_array) {
        let choice = |option: &Value| {
            let value = option.get("const")?.as_str()?.to_owned();
            let title = option
                .get("title")
                .and_then(Value::as_str)
                .map(str::to_owned);
            Some(FieldChoice { value, title })
        };
        return options.iter().map(choice).collect();
    }
    let names = schema.get("enumNames").and_then(Value::as_array);
    let options = schema.get("enum").and_then(Value::as_array)?;
    let choice = |(at, option): (usize, &Value)| {
        let title = names
            .and_then(|names| names.get(at))
            .and_then(Value::as_str)
            .map(str::to_owned);
        Some(FieldChoice {
            value: option.as_str()?.to_owned(),
            title,
        })
    };
    options.iter().enumerate().map(choice).collect()
}
