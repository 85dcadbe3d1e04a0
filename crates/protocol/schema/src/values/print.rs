//! Messages to JSON.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;

use base64::Engine as _;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage as _, Value};

use super::known::{ONLY, WellKnown, value};
use super::path::{Path, ValueError};
use super::typed::UnsaidParts;
use crate::file::Absent;

/// Writes a message as JSON. `absent` says by full name what absent fields are.
pub(super) fn print(
    message: &DynamicMessage,
    marks: &UnsaidParts,
    absent: &HashMap<String, Absent>,
) -> Result<Vec<u8>, ValueError> {
    let set = |pointers: &[String]| pointers.iter().cloned().collect();
    let empty = set(&marks.empty);
    let null = set(&marks.null);
    let mut printer = Printer {
        out: Vec::new(),
        path: Path::default(),
        empty,
        null,
        absent,
    };
    printer.message(message)?;
    Ok(printer.out)
}

struct Printer<'a> {
    out: Vec<u8>,
    path: Path<'a>,
    empty: HashSet<String>,
    null: HashSet<String>,
    absent: &'a HashMap<String, Absent>,
}

type Result<T, E = ValueError> = std::result::Result<T, E>;

impl Printer<'_> {
    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(json::quote(text).as_bytes());
    }

    fn raw(&mut self, text: impl std::fmt::Display) {
        let _ = write!(self.out, "{text}");
    }

    fn message(&mut self, message: &DynamicMessage) -> Result<()> {
        self.path.deeper(1)?;
        match WellKnown::of(&message.descriptor()) {
            WellKnown::No => self.fields(message)?,
            WellKnown::Value => self.any(message)?,
            WellKnown::Special => {
                let mut writer = serde_json::Serializer::new(&mut self.out);
                let written = serde::Serialize::serialize(message, &mut writer);
                written.map_err(|why| self.path.error(why.to_string()))?;
            }
            WellKnown::Wrapper(_) | WellKnown::Struct | WellKnown::List => {
                if let Some(field) = message.descriptor().get_field(ONLY) {
                    self.field(&field, &message.get_field(&field))?;
                }
            }
        }
        self.path.back(1);
        Ok(())
    }

    fn fields(&mut self, message: &DynamicMessage) -> Result<()> {
        self.out.push(b'{');
        let start = self.out.len();
        for field in message.descriptor().fields() {
            self.path.member(field.json_name().to_owned());
            let has_none = field.supports_presence() || field.is_list() || field.is_map();
            let absent = if message.has_field(&field) || !has_none {
                None
            } else {
                match self.absent(&field) {
                    Some(absent) => Some(absent),
                    None => {
                        self.path.leave();
                        continue;
                    }
                }
            };
            if self.out.len() > start {
                self.out.push(b',');
            }
            self.text(field.json_name());
            self.out.push(b':');
            match absent {
                None => self.field(&field, &message.get_field(&field))?,
                Some(Absent::Null) => self.raw("null"),
                Some(Absent::Empty) => self.raw(if field.is_map() { "{}" } else { "[]" }),
            }
            self.path.leave();
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Value to write for a field that is not there.
    fn absent(&self, field: &FieldDescriptor) -> Option<Absent> {
        if !(self.empty.is_empty() && self.null.is_empty()) {
            let pointer = self.path.pointer();
            if self.null.contains(&pointer) {
                return Some(Absent::Null);
            }
            if (field.is_list() || field.is_map()) && self.empty.contains(&pointer) {
                return Some(Absent::Empty);
            }
        }
        self.absent.get(field.full_name()).copied()
    }

    fn field(&mut self, field: &FieldDescriptor, value: &Value) -> Result<()> {
        match value {
            Value::Map(map) => {
                let Kind::Message(entry) = field.kind() else {
                    return Ok(());
                };
                let kind = entry.map_entry_value_field().kind();
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_by_key(|(key, _)| *key);
                self.path.deeper(1)?;
                self.out.push(b'{');
                for (at, (key, value)) in entries.into_iter().enumerate() {
                    if at > 0 {
                        self.out.push(b',');
                    }
                    let key = spell(key);
                    self.text(&key);
                    self.out.push(b':');
                    self.path.key(key);
                    self.one(&kind, value)?;
                    self.path.leave();
                }
                self.out.push(b'}');
                self.path.back(1);
                Ok(())
            }
            Value::List(list) => {
                self.out.push(b'[');
                for (at, value) in list.iter().enumerate() {
                    if at > 0 {
                        self.out.push(b',');
                    }
                    self.path.index(at);
                    self.one(&field.kind(), value)?;
                    self.path.leave();
                }
                self.out.push(b']');
                Ok(())
            }
            value => self.one(&field.kind(), value),
        }
    }

    fn one(&mut self, kind: &Kind, value: &Value) -> Result<()> {
        match value {
            Value::Bool(value) => self.raw(value),
            Value::I32(value) => self.raw(value),
            Value::I64(value) => self.raw(value),
            Value::U32(value) => self.raw(value),
            Value::U64(value) => self.raw(value),
            Value::F32(value) => {
                self.finite(f64::from(*value))?;
                self.raw(format_args!("{value:?}"));
            }
            Value::F64(value) => self.double(*value)?,
            Value::String(text) => self.text(text),
            Value::Bytes(bytes) => {
                self.text(&base64::engine::general_purpose::STANDARD.encode(bytes))
            }
            Value::EnumNumber(number) => {
                let of = kind.as_enum();
                match of.and_then(|of| of.get_value(*number)) {
                    Some(_)
                        if of.is_some_and(|of| of.full_name() == "google.protobuf.NullValue") =>
                    {
                        self.raw("null")
                    }
                    Some(value) => self.text(value.name()),
                    None => self.raw(number),
                }
            }
            Value::Message(message) => self.message(message)?,
            Value::List(_) | Value::Map(_) => {}
        }
        Ok(())
    }

    fn finite(&self, number: f64) -> Result<()> {
        if number.is_finite() {
            Ok(())
        } else {
            Err(self.path.error("is a number that JSON does not have"))
        }
    }

    fn double(&mut self, number: f64) -> Result<()> {
        self.finite(number)?;
        let is_whole = number.fract() == 0.0
            && number.abs() < 1e15
            && !(number == 0.0 && number.is_sign_negative());
        if is_whole {
            self.raw(number as i64)
        } else {
            self.raw(format_args!("{number:?}"))
        }
        Ok(())
    }

    /// A `google.protobuf.Value`.
    fn any(&mut self, message: &DynamicMessage) -> Result<()> {
        let kinds = [
            value::NULL,
            value::NUMBER,
            value::TEXT,
            value::BOOL,
            value::STRUCT,
            value::LIST,
        ];
        let there = kinds
            .into_iter()
            .find(|number| message.has_field_by_number(*number));
        let field = there.and_then(|number| message.descriptor().get_field(number));
        let field = field.ok_or_else(|| self.path.error("is a Value without a value"))?;
        self.field(&field, &message.get_field(&field))
    }
}

fn spell(key: &MapKey) -> String {
    match key {
        MapKey::Bool(key) => key.to_string(),
        MapKey::I32(key) => key.to_string(),
        MapKey::I64(key) => key.to_string(),
        MapKey::U32(key) => key.to_string(),
        MapKey::U64(key) => key.to_string(),
        MapKey::String(key) => key.clone(),
    }
}
