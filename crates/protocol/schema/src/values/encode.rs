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
    json::check(json).map_err(|why| encoder.path.error(why.to_string()))?;
    let first = encoder.next()?;
    let message = encoder.message(message, first)?;
    Ok(Typed {
        message,
        marks: encoder.marks,
    })
}

struct Encoder<'a> {
    raw: &'a [u8],
    tokens: Tokens<'a>,
    path: Path<'a>,
    marks: UnsaidParts,
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

    /// The next member of an object: its key, and the first token of its value.
    fn entry(&mut self) -> Result<Option<(Cow<'a, str>, Token<'a>)>> {
        let Some(key) = self.item()? else {
            return Ok(None);
        };
        let key = self.text(key)?;
        self.next()?;
        Ok(Some((key, self.next()?)))
    }

    fn wants(&self, what: &str) -> ValueError {
        self.path.error(format!("is not {what}"))
    }

    fn opens(&self, token: Token<'_>, with: u8) -> Result<()> {
        let what = if with == b'{' {
            "an object"
        } else {
            "an array"
        };
        if token == Token::Open(with) {
            Ok(())
        } else {
            Err(self.wants(what))
        }
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
                    let value = if field.is_map() {
                        self.map(&field, token)?
                    } else {
                        self.list(&field, token)?
                    };
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
        while let Some((key, token)) = self.entry()? {
            let field = message.get_field_by_json_name(&key);
            self.path.member(key);
            let Some(field) = field else {
                return Err(self.path.error("is not an argument that the schema names"));
            };
            if !seen.insert(field.number()) {
                return Err(self.path.error("occurs twice"));
            }
            if token == Token::Plain(b"null") && !takes_null(&field) {
                self.marks.null.push(self.path.pointer());
                self.path.leave();
                continue;
            }
            let other = field
                .containing_oneof()
                .and_then(|of| of.fields().find(|other| made.has_field(other)));
            if let Some(other) = other {
                return Err(self.path.error(format!("excludes {}", other.json_name())));
            }
            let value = match () {
                () if field.is_map() => self.map(&field, token)?,
                () if field.is_list() => self.list(&field, token)?,
                () => self.one(&field.kind(), token)?,
            };
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

    fn map(&mut self, field: &FieldDescriptor, token: Token<'a>) -> Result<Value> {
        self.opens(token, b'{')?;
        self.path.deeper(1)?;
        let Kind::Message(entry) = field.kind() else {
            return Err(self.wants("an object"));
        };
        let key_kind = entry.map_entry_key_field().kind();
        let kind = entry.map_entry_value_field().kind();
        let mut map = HashMap::new();
        while let Some((key, token)) = self.entry()? {
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

    fn map_key(&self, kind: &Kind, key: Cow<'_, str>) -> Result<MapKey> {
        if *kind == Kind::String {
            return Ok(MapKey::String(key.into_owned()));
        }
        let token = Token::Plain(key.as_bytes());
        let key = match kind {
            Kind::Bool => self.bool(token)?,
            kind => self.number(kind, key.as_bytes())?,
        };
        key.into_map_key().ok_or_else(|| self.wants("a key"))
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
                let bytes = base64::engine::general_purpose::STANDARD.decode(&*text);
                bytes
                    .map(|bytes| Value::Bytes(bytes.into()))
                    .map_err(|_| self.wants("base64"))
            }
            (Kind::Enum(of), Token::Text(_)) => {
                let name = self.text(token)?;
                let number = of
                    .get_value_by_name(&name)
                    .map(|value| Value::EnumNumber(value.number()));
                number.ok_or_else(|| self.wants("one of the names"))
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
        let double = || text.parse().ok().filter(|number: &f64| number.is_finite());
        if matches!(kind, Kind::Double | Kind::Float) {
            let number = self.double(text)?;
            let short = number as f32;
            return match kind {
                Kind::Double => Ok(Value::F64(number)),
                _ if short.is_finite() => Ok(Value::F32(short)),
                _ => Err(self.wants("in the range of a float")),
            };
        }
        // A whole number may be written as 1.0 or 1e3.
        let whole = text.parse().ok().or_else(|| {
            let number =
                double().filter(|number| number.fract() == 0.0 && number.abs() < EXACT_MAX)?;
            Some(number as i128)
        });
        let Some(whole) = whole else {
            return Err(self.wants(if double().is_some() {
                "a whole number"
            } else {
                "a number"
            }));
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
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        let number = number.ok_or_else(|| self.wants("a number"))?;
        let is_exact = number.abs() < EXACT_MAX
            || !text
                .bytes()
                .all(|letter| letter == b'-' || letter.is_ascii_digit())
            || format!("{number:.0}") == text;
        if is_exact {
            Ok(number)
        } else {
            Err(self.path.error("is an integer that a double cannot hold"))
        }
    }

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
                let inner = made
                    .descriptor()
                    .get_field(number)
                    .map(|field| field.kind());
                let Some(Kind::Message(inner)) = inner else {
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

/// Whether null is a value of this field rather than none.
fn takes_null(field: &FieldDescriptor) -> bool {
    matches!(field.kind(), Kind::Message(of) if of.full_name() == "google.protobuf.Value")
        && !field.is_list()
        && !field.is_map()
}
