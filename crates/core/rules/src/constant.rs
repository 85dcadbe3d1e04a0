//! Constants of conditions: values of JSON in canonical form.

use std::fmt;

use crate::arguments::ArgumentValue;
use crate::spelling;

/// The longest constant of a condition, in bytes of its canonical form.
pub const CONSTANT_BYTES_MAX: usize = 1024;

/// The type of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ValueType {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number.
    Number,
    /// A string.
    Text,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl ValueType {
    /// All types, in the order of their definition.
    pub const ALL: [Self; 6] = [
        Self::Null,
        Self::Boolean,
        Self::Number,
        Self::Text,
        Self::Array,
        Self::Object,
    ];

    /// The type of a value in canonical form.
    #[must_use]
    pub fn of(raw: &[u8]) -> Self {
        Self::of_value(&ArgumentValue::of(raw))
    }

    /// The type of a value.
    pub(crate) fn of_value(value: &ArgumentValue<'_>) -> Self {
        match value {
            ArgumentValue::Null => Self::Null,
            ArgumentValue::Bool(_) => Self::Boolean,
            ArgumentValue::Number(_) => Self::Number,
            ArgumentValue::Text(_) => Self::Text,
            ArgumentValue::Array(_) => Self::Array,
            ArgumentValue::Object => Self::Object,
        }
    }

    /// The name of the type in JSON Schema, by which rules name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Number => "number",
            Self::Text => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// The type of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }
}

/// Why a value is no [`Constant`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConstantError {
    /// No JSON, or a member occurs twice.
    #[error("the constant is not valid JSON: {0}")]
    Syntax(String),
    /// More than [`CONSTANT_BYTES_MAX`].
    #[error("a constant has at most {CONSTANT_BYTES_MAX} bytes")]
    TooLong,
    /// Its text can be taken for another one.
    #[error("the constant can be read in several ways: {0}")]
    Odd(&'static str),
}

/// A value that a condition compares with. Two are equal if their canonical texts are, so that `1`
/// and `1.0` differ.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Constant(Box<str>);

impl Constant {
    /// The constant that this JSON text spells.
    ///
    /// # Errors
    /// The text is no JSON, is too long, or holds a text that people cannot tell from others.
    pub fn parse(json: &str) -> Result<Self, ConstantError> {
        let canonical = json::canonical(json.as_bytes())
            .map_err(|error| ConstantError::Syntax(json::visible::line(&error.to_string())))?;
        let text = String::from_utf8(canonical)
            .map_err(|error| ConstantError::Syntax(error.to_string()))?;
        Self::plain(text.into())
    }

    /// The constant that this canonical text is, if it can be one.
    pub(crate) fn of_canonical(raw: &[u8]) -> Option<Self> {
        Self::plain(std::str::from_utf8(raw).ok()?.into()).ok()
    }

    fn plain(text: Box<str>) -> Result<Self, ConstantError> {
        if text.len() > CONSTANT_BYTES_MAX {
            return Err(ConstantError::TooLong);
        }
        let mut tokens = json::Tokens::new(text.as_bytes());
        let odd = tokens.find_map(|token| match token {
            json::Token::Text(raw) => json::text(raw).as_deref().and_then(spelling::oddity),
            json::Token::Open(_)
            | json::Token::Close(_)
            | json::Token::Comma
            | json::Token::Colon
            | json::Token::Plain(_) => None,
        });
        match odd {
            Some(why) => Err(ConstantError::Odd(why)),
            None => Ok(Self(text)),
        }
    }

    /// The constant of a string.
    ///
    /// # Errors
    /// As [`Constant::parse`].
    pub fn of_text(text: &str) -> Result<Self, ConstantError> {
        Self::parse(&json::quote(text))
    }

    /// The canonical text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The type of its value.
    #[must_use]
    pub fn value_type(&self) -> ValueType {
        ValueType::of(self.0.as_bytes())
    }

    /// Its value.
    #[must_use]
    pub fn value(&self) -> ArgumentValue<'_> {
        ArgumentValue::of(self.0.as_bytes())
    }
}

impl fmt::Display for Constant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&json::visible::value(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_canonical() {
        let read = |json: &str| Constant::parse(json).map(|one| one.as_str().to_owned());
        assert_eq!(
            read(r#" {"b":1, "a":"\u0062"} "#).unwrap(),
            r#"{"a":"b","b":1}"#
        );
        assert_eq!(read("1.0").unwrap(), "1.0");
        assert!(read("{").is_err());
        assert!(read(r#"{"a":1,"a":2}"#).is_err());
        assert!(matches!(read("\"a\u{200b}\""), Err(ConstantError::Odd(_))));
        assert!(matches!(
            read(r#""p\u0430ypal""#),
            Err(ConstantError::Odd(_))
        ));
        assert_eq!(
            Constant::parse("[]").unwrap().value_type(),
            ValueType::Array
        );
    }

    #[test]
    fn the_longest_constant_has_its_limit() {
        let text = "x".repeat(CONSTANT_BYTES_MAX - 2);
        assert!(Constant::of_text(&text).is_ok());
        assert_eq!(
            Constant::of_text(&format!("{text}x")),
            Err(ConstantError::TooLong)
        );
    }

    #[test]
    fn types_have_the_names_of_json_schema() {
        for one in ValueType::ALL {
            assert_eq!(ValueType::parse(one.as_str()), Some(one));
        }
        assert_eq!(ValueType::parse("any"), None);
    }
}
