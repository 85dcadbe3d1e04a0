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
    let mut printer = Printer {
        out: Vec::new(),
        path: Path::default(),
        empty: marks.empty.iter().cloned().collect(),
        null: marks.null.iter().cloned().collect(),
        absent,
    };
    printer.message(message)?;
    Ok(printer.out)
}

struct Printer<'a> {
    out: Vec<u8>,
    path: Path<'a>,
    /// Pointers of lists and maps that are there, but empty.
    empty: HashSet<String>,
    /// Pointers of members that are there, but null.
    null: HashSet<String>,
    /// Meanings of absent fields, by full name.
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
            // A scalar without presence is always there: its zero value and none are the same.
            let can_be_absent = field.supports_presence() || field.is_list() || field.is_map();
            if message.has_field(&field) || !can_be_absent {
                self.key(&field, start);
                self.field(&field, &message.get_field(&field))?;
            } else if let Some(absent) = self.absent(&field) {
                self.key(&field, start);
                match absent {
                    Absent::Null => self.raw("null"),
                    Absent::Empty if field.is_map() => self.raw("{}"),
                    Absent::Empty => self.raw("[]"),
                }
            }
            self.path.leave();
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Begins a member of the object whose members begin at `start` of the output.
    fn key(&mut self, field: &FieldDescriptor, start: usize) {
        if self.out.len() > start {
            self.out.push(b',');
        }
        self.text(field.json_name());
        self.out.push(b':');
    }

    /// Value to write for a field that is not there.
    fn absent(&self, field: &FieldDescriptor) -> Option<Absent> {
        let has_marks = !(self.empty.is_empty() && self.null.is_empty());
        if has_marks {
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
            Value::Map(map) => self.map(field, map),
            Value::List(list) => self.list(field, list),
            value => self.one(&field.kind(), value),
        }
    }

    fn map(&mut self, field: &FieldDescriptor, map: &HashMap<MapKey, Value>) -> Result<()> {
        let Kind::Message(entry) = field.kind() else {
            return Ok(());
        };
        let kind = entry.map_entry_value_field().kind();
        let mut entries: Vec<_> = map.iter().collect();
        // A hash map has another order in each run; equal messages are to be equal JSON.
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

    fn list(&mut self, field: &FieldDescriptor, list: &[Value]) -> Result<()> {
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
            Value::EnumNumber(number) => self.enumerated(kind, *number),
            Value::Message(message) => self.message(message)?,
            Value::List(_) | Value::Map(_) => {}
        }
        Ok(())
    }

    /// A value of an enum: its name, or its number if the schema does not have it.
    fn enumerated(&mut self, kind: &Kind, number: i32) {
        let of = kind.as_enum();
        let is_null = of.is_some_and(|of| of.full_name() == "google.protobuf.NullValue");
        match of.and_then(|of| of.get_value(number)) {
            Some(_) if is_null => self.raw("null"),
            Some(value) => self.text(value.name()),
            None => self.raw(number),
        }
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
        let is_negative_zero = number == 0.0 && number.is_sign_negative();
        // A Value has doubles only: `1` must not come back as `1.0`, which is no integer to some
        // readers.
        if number.fract() == 0.0 && number.abs() < 1e15 && !is_negative_zero {
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
