//! Field numbers that an earlier conversion has given out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::compile::{CompileError, compiled};
use crate::file::{Field, Label, Type};

/// Numbers that protobuf keeps for itself.
const RESERVED_BY_PROTOBUF: std::ops::RangeInclusive<u32> = 19_000..=19_999;

/// The field numbers of the messages of one package. A property keeps its number as long as its
/// type stays; a number that is free again is reserved, and never given out a second time.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldNumbering {
    messages: BTreeMap<String, KnownMessage>,
}

/// The numbers of one message.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KnownMessage {
    fields: Vec<KnownField>,
    reserved: Vec<u32>,
}

/// The number of one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KnownField {
    /// The two names under which JSON may have the field.
    property: String,
    name: String,
    number: u32,
    /// Coding of the field, of [`wire`].
    wire: String,
}

/// The numbers that a message gets.
pub(crate) struct AssignedNumbers {
    /// The number of each field, in the order of the fields.
    pub(crate) numbers: Vec<u32>,
    /// Numbers that no field of the message may have.
    pub(crate) reserved: Vec<u32>,
}

impl FieldNumbering {
    /// Reads the numbers in the files of an earlier conversion, by path.
    ///
    /// # Errors
    /// [`CompileError`]: the text of a file that does not compile.
    pub fn read(files: &[(String, String)]) -> Result<Self, CompileError> {
        let set = compiled(files)?.file_descriptor_set();
        let mut numbers = Self::default();
        for file in set.file {
            // The set also has the imports of these files.
            if !files.iter().any(|(path, _)| path == file.name()) {
                continue;
            }
            for message in &file.message_type {
                numbers.learn(String::new(), message);
            }
        }
        Ok(numbers)
    }

    /// These and the newer ones. What is gone keeps its number, and gets it again if it comes back.
    #[must_use]
    pub fn followed_by(mut self, newer: Self) -> Self {
        for (message, mut newer) in newer.messages {
            let older = self.messages.remove(&message).unwrap_or_default();
            let gone: Vec<_> = older
                .fields
                .into_iter()
                .filter(|field| !has_number(&newer.fields, field.number))
                .collect();
            // A number that is only reserved could not come back to its property.
            newer.reserved.retain(|number| !has_number(&gone, *number));
            newer.fields.extend(gone);
            self.messages.insert(message, newer);
        }
        self
    }

    /// The messages of these that are not as they were before.
    #[must_use]
    pub fn changed_since(&self, before: &Self) -> Self {
        let is_changed =
            |(name, known): &(&String, &KnownMessage)| before.messages.get(*name) != Some(*known);
        let changed = self.messages.iter().filter(is_changed);
        let messages = changed
            .map(|(name, known)| (name.clone(), known.clone()))
            .collect();
        Self { messages }
    }

    /// Replaces the numbers of these messages.
    pub fn replace_messages(&mut self, changed: &Self) {
        for (name, known) in &changed.messages {
            self.messages.insert(name.clone(), known.clone());
        }
    }

    /// Number of the field numbers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.messages
            .values()
            .map(|known| known.fields.len() + known.reserved.len())
            .sum()
    }

    /// Adds the numbers of a message and of those in it; `scope` is what its name stands in, such
    /// as `Outer.`.
    fn learn(&mut self, scope: String, message: &Descriptor) {
        let name = scope + message.name();
        let mut known = KnownMessage::default();
        for field in &message.field {
            known.fields.push(KnownField {
                property: field.json_name().to_owned(),
                name: field.name().to_owned(),
                number: u32::try_from(field.number()).unwrap_or_default(),
                wire: wire_of(message, field),
            });
        }
        for range in &message.reserved_range {
            let numbers = range.start()..range.end();
            known
                .reserved
                .extend(numbers.filter_map(|number| u32::try_from(number).ok()));
        }
        self.messages.insert(name.clone(), known);
        for inner in &message.nested_type {
            self.learn(format!("{name}."), inner);
        }
    }

    /// The numbers of the fields of the message with this path, and those that are reserved in it.
    pub(crate) fn assign(&self, message: &str, fields: &[Field]) -> AssignedNumbers {
        let none = KnownMessage::default();
        let known = self.messages.get(message).unwrap_or(&none);
        let kept: Vec<_> = fields.iter().map(|field| known.number_of(field)).collect();
        let used = known
            .fields
            .iter()
            .map(|field| field.number)
            .chain(known.reserved.iter().copied());
        // Beyond all that were ever used: bytes of an earlier schema must not be read as this one's.
        let mut next = used.clone().max().unwrap_or(0) + 1;
        let mut reserved: Vec<_> = used
            .filter(|number| !kept.contains(&Some(*number)))
            .collect();
        reserved.sort_unstable();
        reserved.dedup();
        let mut numbers = Vec::with_capacity(kept.len());
        for kept in kept {
            numbers.push(kept.unwrap_or_else(|| take_number(&mut next)));
        }
        AssignedNumbers { numbers, reserved }
    }
}

impl KnownMessage {
    /// The number that a field had, if its type has stayed.
    fn number_of(&self, field: &Field) -> Option<u32> {
        let wire = wire(field.label, &field.ty);
        let mut by_name = None;
        for known in self.fields.iter().filter(|known| known.wire == wire) {
            // The JSON name counts first: another field may have the property as its own name.
            if known.property == field.property {
                return Some(known.number);
            }
            if by_name.is_none() && known.name == field.property {
                by_name = Some(known.number);
            }
        }
        by_name
    }
}

/// Whether one of these fields has this number.
fn has_number(fields: &[KnownField], number: u32) -> bool {
    fields.iter().any(|field| field.number == number)
}

/// The next number that a field may have; `next` is the one after it.
fn take_number(next: &mut u32) -> u32 {
    if RESERVED_BY_PROTOBUF.contains(&*next) {
        *next = RESERVED_BY_PROTOBUF.end() + 1;
    }
    let taken = *next;
    *next += 1;
    taken
}

/// Coding of a field: two fields with the same one can read each other's bytes.
fn wire(label: Label, ty: &Type) -> String {
    let ty = match ty {
        // Both are varints.
        Type::Int32 => "int64",
        // The same message may be named with more or less of its scope.
        Type::Message(name) => name.rsplit('.').next().unwrap_or_default(),
        other => other.name().rsplit('.').next().unwrap_or_default(),
    };
    match label {
        Label::Plain | Label::Optional => ty.to_owned(),
        Label::Repeated => format!("repeated {ty}"),
        Label::Map => format!("map {ty}"),
    }
}

type Descriptor = protox::prost_reflect::prost_types::DescriptorProto;
type FieldDescriptor = protox::prost_reflect::prost_types::FieldDescriptorProto;

/// Coding of a field of a compiled message, as [`wire`] says it.
fn wire_of(message: &Descriptor, field: &FieldDescriptor) -> String {
    use protox::prost_reflect::prost_types::field_descriptor_proto::{
        Label as Times, Type as Wire,
    };
    let last = field.type_name().rsplit('.').next().unwrap_or_default();
    // The compiler makes `map<K, V>` a repeated nested message with a key and a value.
    for entry in &message.nested_type {
        let is_map_entry = entry.options.as_ref().is_some_and(|own| own.map_entry());
        if is_map_entry && entry.name() == last {
            let value = entry.field.iter().find(|field| field.name() == "value");
            let value = value.map(|value| wire_of(entry, value)).unwrap_or_default();
            return format!("map {value}");
        }
    }
    let ty = match field.r#type() {
        Wire::Bool => "bool",
        Wire::Double => "double",
        Wire::Int32 | Wire::Int64 => "int64",
        Wire::String => "string",
        _ => last,
    };
    if field.label() == Times::Repeated {
        format!("repeated {ty}")
    } else {
        ty.to_owned()
    }
}
