//! JSON to messages.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use json::{Token, Tokens};
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage as _, Value,
};

use super::known::{ONLY, WellKnown, value};
use super::path::{Path, ValueError};
use super::typed::{Typed, UnsaidParts};

/// Integers below this one are exact as doubles.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Reads one JSON value as a message.
pub(super) fn encode(json: &[u8], message: &MessageDescriptor) -> Result<Typed, ValueError> {
    let mut encoder = Encoder {
        raw: json,
        tokens: Tokens::new(json),
        path: Path::default(),
        marks: UnsaidParts::default(),
    };
    // The tokens below are not checked again: commas and colons are skipped unseen.
    json::check(json).map_err(|why| encoder.path.error(why.to_string()))?;
    let first = encoder.next()?;
    let message = encoder.message(message, first)?;
    Ok(Typed {
        message,
        marks: encoder.marks,
    })
}

/// The reader of one JSON value. A function that gets a `token` reads the value that begins with
/// it, to its end.
struct Encoder<'a> {
    raw: &'a [u8],
    tokens: Tokens<'a>,
    path: Path<'a>,
    marks: UnsaidParts,
}

/// A member of an object whose value is about to be read.
struct Entry<'a> {
    key: Cow<'a, str>,
    /// The first token of its value.
    token: Token<'a>,
}

type Result<T, E = ValueError> = std::result::Result<T, E>;

impl<'a> Encoder<'a> {
    fn next(&mut self) -> Result<Token<'a>> {
        self.tokens
            .next()
            .ok_or_else(|| self.path.error("not one value"))
    }

    /// The next element of an array, or key of an object; `None` at its end.
    fn item(&mut self) -> Result<Option<Token<'a>>> {
        Ok(match self.next()? {
            Token::Comma => Some(self.next()?),
            Token::Close(_) => None,
            token => Some(token),
        })
    }

    /// The next member of an object; `None` at its end.
    fn entry(&mut self) -> Result<Option<Entry<'a>>> {
        let Some(key) = self.item()? else {
            return Ok(None);
        };
        let key = self.text(key)?;
        let _colon = self.next()?;
        let token = self.next()?;
        Ok(Some(Entry { key, token }))
    }

    /// The error that the value here is not what the schema says.
    fn wants(&self, what: &str) -> ValueError {
        self.path.error(format!("is not {what}"))
    }

    /// Checks that an object begins here, with `{`, or an array, with `[`.
    fn opens(&self, token: Token<'_>, with: u8) -> Result<()> {
        if token == Token::Open(with) {
            return Ok(());
        }
        let what = if with == b'{' {
            "an object"
        } else {
            "an array"
        };
        Err(self.wants(what))
    }

    fn message(&mut self, message: &MessageDescriptor, token: Token<'a>) -> Result<DynamicMessage> {
        self.path.deeper(1)?;
        let mut made = DynamicMessage::new(message.clone());
        match WellKnown::of(message) {
            WellKnown::No => self.fields(&mut made, message, token)?,
            WellKnown::Value => self.value(&mut made, token)?,
            WellKnown::Special => made = self.special(message, token)?,
            WellKnown::Wrapper(field) => {
                let value = self.one(&field.kind(), token)?;
                made.set_field(&field, value);
            }
            WellKnown::Struct | WellKnown::List => {
                if let Some(field) = message.get_field(ONLY) {
                    let value = self.field(&field, token)?;
                    made.set_field(&field, value);
                }
            }
        }
        self.path.back(1);
        Ok(made)
    }

    fn fields(
        &mut self,
        made: &mut DynamicMessage,
        message: &MessageDescriptor,
        token: Token<'a>,
    ) -> Result<()> {
        self.opens(token, b'{')?;
        let mut seen = HashSet::new();
        while let Some(Entry { key, token }) = self.entry()? {
            let field = message.get_field_by_json_name(&key);
            self.path.member(key);
            let Some(field) = field else {
                return Err(self.path.error("is not an argument that the schema names"));
            };
            // Not by what the message has: a null and an empty list leave nothing in it.
            if !seen.insert(field.number()) {
                return Err(self.path.error("occurs twice"));
            }
            if token == Token::Plain(b"null") && !takes_null(&field) {
                self.marks.null.push(self.path.pointer());
                self.path.leave();
                continue;
            }
            if let Some(other) = set_in_oneof(made, &field) {
                return Err(self.path.error(format!("excludes {}", other.json_name())));
            }
            let value = self.field(&field, token)?;
            let is_empty = value.as_list().is_some_and(<[_]>::is_empty)
                || value.as_map().is_some_and(HashMap::is_empty);
            if is_empty {
                self.marks.empty.push(self.path.pointer());
            }
            made.set_field(&field, value);
            self.path.leave();
        }
        Ok(())
    }

    /// The value of a field: a map, a list, or one value.
    fn field(&mut self, field: &FieldDescriptor, token: Token<'a>) -> Result<Value> {
        if field.is_map() {
            self.map(field, token)
        } else if field.is_list() {
            self.list(field, token)
        } else {
            self.one(&field.kind(), token)
        }
    }

    fn map(&mut self, field: &FieldDescriptor, token: Token<'a>) -> Result<Value> {
        self.opens(token, b'{')?;
        self.path.deeper(1)?;
        let Kind::Message(entry) = field.kind() else {
            return Err(self.wants("an object"));
        };
        let key_kind = entry.map_entry_key_field().kind();
        let kind = entry.map_entry_value_field().kind();
        let mut map = HashMap::new();
        while let Some(Entry { key, token }) = self.entry()? {
            self.path.key(key.clone());
            let key = self.map_key(&key_kind, key)?;
            let value = self.one(&kind, token)?;
            if map.insert(key, value).is_some() {
                return Err(self.path.error("occurs twice"));
            }
            self.path.leave();
        }
        self.path.back(1);
        Ok(Value::Map(map))
    }

    /// The key of a map; in JSON a number or a boolean is a string there.
    fn map_key(&self, kind: &Kind, key: Cow<'_, str>) -> Result<MapKey> {
        let value = match kind {
            Kind::String => return Ok(MapKey::String(key.into_owned())),
            Kind::Bool => self.bool(Token::Plain(key.as_bytes()))?,
            kind => self.number(kind, key.as_bytes())?,
        };
        value.into_map_key().ok_or_else(|| self.wants("a key"))
    }

    fn list(&mut self, field: &FieldDescriptor, token: Token<'a>) -> Result<Value> {
        self.opens(token, b'[')?;
        let kind = field.kind();
        let mut list = Vec::new();
        while let Some(token) = self.item()? {
            self.path.index(list.len());
            list.push(self.one(&kind, token)?);
            self.path.leave();
        }
        Ok(Value::List(list))
    }

    fn one(&mut self, kind: &Kind, token: Token<'a>) -> Result<Value> {
        match (kind, token) {
            (Kind::Message(message), token) => self.message(message, token).map(Value::Message),
            (Kind::String, token) => Ok(Value::String(self.text(token)?.into_owned())),
            (Kind::Bool, token) => self.bool(token),
            (Kind::Bytes, token) => {
                let text = self.text(token)?;
                match base64::engine::general_purpose::STANDARD.decode(&*text) {
                    Ok(bytes) => Ok(Value::Bytes(bytes.into())),
                    Err(_) => Err(self.wants("base64")),
                }
            }
            (Kind::Enum(of), Token::Text(_)) => {
                let name = self.text(token)?;
                match of.get_value_by_name(&name) {
                    Some(value) => Ok(Value::EnumNumber(value.number())),
                    None => Err(self.wants("one of the names")),
                }
            }
            (kind, Token::Plain(text)) => self.number(kind, text),
            _ => Err(self.wants("a number")),
        }
    }

    fn text(&self, token: Token<'a>) -> Result<Cow<'a, str>> {
        let Token::Text(raw) = token else {
            return Err(self.wants("a string"));
        };
        json::text(raw).ok_or_else(|| self.path.error("has half a surrogate pair"))
    }

    fn bool(&self, token: Token<'_>) -> Result<Value> {
        match token {
            Token::Plain(b"true") => Ok(Value::Bool(true)),
            Token::Plain(b"false") => Ok(Value::Bool(false)),
            _ => Err(self.wants("a boolean")),
        }
    }

    fn number(&self, kind: &Kind, raw: &[u8]) -> Result<Value> {
        let text = std::str::from_utf8(raw).unwrap_or_default();
        match kind {
            Kind::Double => Ok(Value::F64(self.double(text)?)),
            Kind::Float => {
                let short = self.double(text)? as f32;
                if short.is_finite() {
                    Ok(Value::F32(short))
                } else {
                    Err(self.wants("in the range of a float"))
                }
            }
            kind => self.whole_number(kind, text),
        }
    }

    /// An integer of any width, or an enum that is written as a number.
    fn whole_number(&self, kind: &Kind, text: &str) -> Result<Value> {
        let Some(whole) = whole(text) else {
            let what = if finite(text).is_some() {
                "a whole number"
            } else {
                "a number"
            };
            return Err(self.wants(what));
        };
        let made = match kind {
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => i32::try_from(whole).map(Value::I32),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => i64::try_from(whole).map(Value::I64),
            Kind::Uint32 | Kind::Fixed32 => u32::try_from(whole).map(Value::U32),
            Kind::Uint64 | Kind::Fixed64 => u64::try_from(whole).map(Value::U64),
            _ => i32::try_from(whole).map(Value::EnumNumber),
        };
        made.map_err(|_| {
            self.path
                .error(format!("is not in the range of {kind:?}").to_lowercase())
        })
    }

    /// A number as a double, if that loses no digit of an integer.
    fn double(&self, text: &str) -> Result<f64> {
        let number = finite(text).ok_or_else(|| self.wants("a number"))?;
        let is_integer = text
            .bytes()
            .all(|letter| letter == b'-' || letter.is_ascii_digit());
        // Numbers with a point are rounded by every reader of JSON; identifiers must not be.
        if number.abs() < EXACT_MAX || !is_integer || format!("{number:.0}") == text {
            Ok(number)
        } else {
            Err(self.path.error("is an integer that a double cannot hold"))
        }
    }

    /// Reads any JSON value into a `google.protobuf.Value`.
    fn value(&mut self, made: &mut DynamicMessage, token: Token<'a>) -> Result<()> {
        let (number, value) = match token {
            Token::Plain(b"null") => (value::NULL, Value::EnumNumber(0)),
            Token::Plain(b"true" | b"false") => (value::BOOL, self.bool(token)?),
            Token::Plain(text) => (value::NUMBER, self.number(&Kind::Double, text)?),
            Token::Text(_) => (value::TEXT, Value::String(self.text(token)?.into_owned())),
            Token::Open(open) => {
                let number = if open == b'{' {
                    value::STRUCT
                } else {
                    value::LIST
                };
                let field = made.descriptor().get_field(number);
                let Some(Kind::Message(inner)) = field.map(|field| field.kind()) else {
                    return Err(self.wants("a value"));
                };
                (number, Value::Message(self.message(&inner, token)?))
            }
            Token::Close(_) | Token::Comma | Token::Colon => return Err(self.wants("a value")),
        };
        made.set_field_by_number(number, value);
        Ok(())
    }

    /// Leaves a value to the JSON that protobuf defines.
    fn special(&mut self, message: &MessageDescriptor, token: Token<'a>) -> Result<DynamicMessage> {
        let start = self.tokens.span().start;
        let mut depth = usize::from(matches!(token, Token::Open(_)));
        while depth > 0 {
            match self.next()? {
                Token::Open(_) => depth += 1,
                Token::Close(_) => depth -= 1,
                Token::Comma | Token::Colon | Token::Text(_) | Token::Plain(_) => {}
            }
        }
        let raw = self
            .raw
            .get(start..self.tokens.span().end)
            .unwrap_or_default();
        let mut reader = serde_json::Deserializer::from_slice(raw);
        DynamicMessage::deserialize(message.clone(), &mut reader)
            .map_err(|why| self.path.error(why.to_string()))
    }
}

/// The number that a text of JSON is, if a double has it.
fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The whole number that a text of JSON is; it may be written as `1.0` or `1e3`.
fn whole(text: &str) -> Option<i128> {
    if let Ok(whole) = text.parse() {
        return Some(whole);
    }
    let number = finite(text)?;
    let is_exact = number.fract() == 0.0 && number.abs() < EXACT_MAX;
    is_exact.then_some(number as i128)
}

/// A field of a message that is set and excludes this one.
fn set_in_oneof(message: &DynamicMessage, field: &FieldDescriptor) -> Option<FieldDescriptor> {
    let oneof = field.containing_oneof()?;
    oneof.fields().find(|other| message.has_field(other))
}

/// Whether null is a value of this field rather than none.
fn takes_null(field: &FieldDescriptor) -> bool {
    matches!(field.kind(), Kind::Message(of) if of.full_name() == "google.protobuf.Value")
        && !field.is_list()
        && !field.is_map()
}
