//! Field numbers that an earlier conversion has given out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::compile::{CompileError, compiled};
use crate::file::{Label, Type};

/// Numbers that protobuf keeps for itself.
const RESERVED_BY_PROTOBUF: std::ops::RangeInclusive<u32> = 19_000..=19_999;

/// The field numbers of the messages of one package. A property keeps its number as long as its
/// type stays; a number that is free again is reserved, and never given out a second time.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbers {
    messages: BTreeMap<String, WellKnown>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WellKnown {
    fields: Vec<Place>,
    reserved: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    /// The two names under which JSON may have the field.
    property: String,
    name: String,
    number: u32,
    wire: String,
}

impl Numbers {
    /// Reads the numbers in the files of an earlier conversion, by path.
    ///
    /// # Errors
    /// What is wrong with the text of one.
    pub fn read(files: &[(String, String)]) -> Result<Self, CompileError> {
        let set = compiled(files)?.file_descriptor_set();
        let mut numbers = Self::default();
        let own = set
            .file
            .into_iter()
            .filter(|file| files.iter().any(|(path, _)| path == file.name()));
        for message in own.flat_map(|file| file.message_type) {
            numbers.learn(String::new(), &message);
        }
        Ok(numbers)
    }

    /// These and the newer ones. What is gone keeps its number, and gets it again if it comes back.
    #[must_use]
    pub fn followed_by(mut self, newer: Self) -> Self {
        for (message, mut newer) in newer.messages {
            let older = self.messages.remove(&message).unwrap_or_default();
            let is_new = |number: u32| newer.fields.iter().any(|field| field.number == number);
            let gone: Vec<_> = older
                .fields
                .into_iter()
                .filter(|field| !is_new(field.number))
                .collect();
            newer
                .reserved
                .retain(|number| gone.iter().all(|field| field.number != *number));
            newer.fields.extend(gone);
            self.messages.insert(message, newer);
        }
        self
    }

    /// The messages of these that are not as they were before.
    #[must_use]
    pub fn changed_since(&self, before: &Self) -> Self {
        let is_changed =
            |(name, known): &(&String, &WellKnown)| before.messages.get(*name) != Some(*known);
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

    fn learn(&mut self, scope: String, message: &Descriptor) {
        let name = scope + message.name();
        let mut known = WellKnown::default();
        for field in &message.field {
            let number = u32::try_from(field.number()).unwrap_or_default();
            let property = field.json_name().to_owned();
            let name = field.name().to_owned();
            known.fields.push(Place {
                property,
                name,
                number,
                wire: wire_of(message, field),
            });
        }
        for range in &message.reserved_range {
            known.reserved.extend(
                (range.start()..range.end()).filter_map(|number| u32::try_from(number).ok()),
            );
        }
        self.messages.insert(name.clone(), known);
        for inner in &message.nested_type {
            self.learn(format!("{name}."), inner);
        }
    }

    /// The numbers of a message's fields, and those that are reserved in it.
    pub(crate) fn assign(
        &self,
        message: &str,
        fields: &[(String, Label, Type)],
    ) -> (Vec<u32>, Vec<u32>) {
        let none = WellKnown::default();
        let known = self.messages.get(message).unwrap_or(&none);
        let kept = |(property, label, ty): &(String, Label, Type)| {
            let wire = wire(*label, ty);
            let same = |place: &&Place| place.wire == wire && place.property == *property;
            let named = |place: &&Place| place.wire == wire && place.name == *property;
            let found = known
                .fields
                .iter()
                .find(same)
                .or_else(|| known.fields.iter().find(named));
            found.map(|place| place.number)
        };
        let kept: Vec<_> = fields.iter().map(kept).collect();
        let used = known
            .fields
            .iter()
            .map(|place| place.number)
            .chain(known.reserved.iter().copied());
        let mut next = used.clone().max().unwrap_or(0) + 1;
        let mut give = || {
            if RESERVED_BY_PROTOBUF.contains(&next) {
                next = RESERVED_BY_PROTOBUF.end() + 1;
            }
            next += 1;
            next - 1
        };
        let mut reserved: Vec<_> = used
            .filter(|number| !kept.contains(&Some(*number)))
            .collect();
        reserved.sort_unstable();
        reserved.dedup();
        (
            kept.into_iter()
                .map(|kept| kept.unwrap_or_else(&mut give))
                .collect(),
            reserved,
        )
    }
}

/// Coding of a field: two fields with the same one can read each other's bytes.
fn wire(label: Label, ty: &Type) -> String {
    let ty = match ty {
        Type::Int32 => "int64",
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

fn wire_of(message: &Descriptor, field: &FieldDescriptor) -> String {
    use protox::prost_reflect::prost_types::field_descriptor_proto::{
        Label as Times, Type as Wire,
    };
    let last = field.type_name().rsplit('.').next().unwrap_or_default();
    let is_entry = |inner: &&Descriptor| {
        inner.name() == last && inner.options.as_ref().is_some_and(|own| own.map_entry())
    };
    if let Some(entry) = message.nested_type.iter().find(is_entry) {
        let value = entry.field.iter().find(|field| field.name() == "value");
        return format!(
            "map {}",
            value.map(|value| wire_of(entry, value)).unwrap_or_default()
        );
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
