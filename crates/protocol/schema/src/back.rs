//! Messages to JSON Schema, for clients that speak JSON-RPC.

use std::collections::{BTreeMap, HashMap};

use json::Object;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};

use crate::names::pascal;
use crate::pattern::shown;

/// Messages that stand inside each other; deeper ones are definitions.
const INSIDE_MAX: usize = 16;

/// The JSON Schema of the JSON of a message (2020-12): an object at the top, never a union. What
/// several fields use, or what leads back to itself, is a definition.
#[must_use]
pub fn json_schema(message: &MessageDescriptor) -> Vec<u8> {
    let mut writer = Writer {
        root: message.clone(),
        uses: HashMap::new(),
        defs: Vec::new(),
        comments: HashMap::new(),
    };
    writer.count(message);
    let mut out = Vec::new();
    Object::write(&mut out, |object| {
        writer.members(object, message, 0);
        writer.definitions(object);
    });
    out
}

struct Writer {
    root: MessageDescriptor,
    /// Fields of each message type.
    uses: HashMap<String, usize>,
    /// Messages that are definitions.
    defs: Vec<MessageDescriptor>,
    /// Comments by file and path.
    comments: HashMap<String, HashMap<Vec<i32>, String>>,
}

impl Writer {
    /// Counts what uses each message.
    fn count(&mut self, message: &MessageDescriptor) {
        let mut open = vec![message.clone()];
        while let Some(message) = open.pop() {
            for field in message.fields() {
                let Kind::Message(inner) = field.kind() else {
                    continue;
                };
                let uses = self.uses.entry(inner.full_name().to_owned()).or_default();
                *uses += 1;
                if *uses == 1 {
                    open.push(inner);
                }
            }
        }
    }

    /// Writes `$defs`, if there are any.
    fn definitions(&mut self, object: &mut Object<'_>) {
        let mut written = BTreeMap::new();
        // A definition may add further ones while it is written.
        while let Some(message) = self
            .defs
            .iter()
            .find(|one| !written.contains_key(one.full_name()))
            .cloned()
        {
            let schema = json::object(|object| self.members(object, &message, 1));
            written.insert(message.full_name().to_owned(), schema);
        }
        if written.is_empty() {
            return;
        }
        object.object("$defs", |all| {
            for message in &self.defs {
                let schema = written.get(message.full_name());
                all.raw(&self.key(message), schema.map_or(b"{}", Vec::as_slice));
            }
        });
    }

    /// The name of a definition; a conversion calls the message by it again.
    fn key(&self, message: &MessageDescriptor) -> String {
        let name = definition_name(message);
        let alike = self
            .defs
            .iter()
            .filter(|other| definition_name(other) == name);
        // Definitions are only ever added at the end, so that the name of an earlier one stays.
        match alike.take_while(|other| *other != message).count() {
            0 => name,
            before => format!("{name}{}", before + 1),
        }
    }

    /// Writes the schema of a message: its fields as properties of an object.
    fn members(&mut self, object: &mut Object<'_>, message: &MessageDescriptor, depth: usize) {
        let file = message.parent_file();
        let path = message.path().to_vec();
        self.describe(object, file.name(), &path, &file, None);
        object.text("type", "object");
        let mut required = Vec::new();
        object.object("properties", |properties| {
            for field in message.fields() {
                let rules = rules_of(&field);
                if has(rules.as_ref(), "required") {
                    required.push(field.json_name().to_owned());
                }
                let schema =
                    json::object(|object| self.field(object, &field, rules.as_ref(), depth));
                properties.raw(field.json_name(), &schema);
            }
        });
        if !required.is_empty() {
            object.texts("required", required);
        }
        object.bool("additionalProperties", false);
    }

    fn field(
        &mut self,
        object: &mut Object<'_>,
        field: &FieldDescriptor,
        rules: Option<&DynamicMessage>,
        depth: usize,
    ) {
        let file = field.parent_message().parent_file();
        self.describe(object, file.name(), field.path(), &file, oneof_note(field));
        let of_type = rules.and_then(rules_of_type);
        let of_type = of_type.as_ref();
        if field.is_map() {
            self.map(object, field, of_type, depth);
        } else if field.is_list() {
            self.list(object, field, of_type, depth);
        } else {
            self.one(object, &field.kind(), of_type, depth);
        }
    }

    /// A map; `rules` are those of maps.
    fn map(
        &mut self,
        object: &mut Object<'_>,
        field: &FieldDescriptor,
        rules: Option<&DynamicMessage>,
        depth: usize,
    ) {
        let Kind::Message(entry) = field.kind() else {
            return;
        };
        object.text("type", "object");
        count(object, rules, "min_pairs", "minProperties");
        count(object, rules, "max_pairs", "maxProperties");
        let of_values = rules.and_then(|rules| inner(rules, "values"));
        let kind = entry.map_entry_value_field().kind();
        let value = json::object(|object| self.one(object, &kind, of_values.as_ref(), depth));
        object.raw("additionalProperties", &value);
    }

    /// A list; `rules` are those of lists.
    fn list(
        &mut self,
        object: &mut Object<'_>,
        field: &FieldDescriptor,
        rules: Option<&DynamicMessage>,
        depth: usize,
    ) {
        object.text("type", "array");
        count(object, rules, "min_items", "minItems");
        count(object, rules, "max_items", "maxItems");
        if has(rules, "unique") {
            object.bool("uniqueItems", true);
        }
        let of_items = rules.and_then(|rules| inner(rules, "items"));
        let item = json::object(|object| self.one(object, &field.kind(), of_items.as_ref(), depth));
        object.raw("items", &item);
    }

    /// One value; `rules` are those of its type.
    fn one(
        &mut self,
        object: &mut Object<'_>,
        kind: &Kind,
        rules: Option<&DynamicMessage>,
        depth: usize,
    ) {
        match kind {
            Kind::Bool => {
                object.text("type", "boolean");
                values(object, rules);
            }
            Kind::String => text(object, rules),
            Kind::Bytes => {
                object
                    .text("type", "string")
                    .text("contentEncoding", "base64");
            }
            Kind::Enum(of) if of.full_name() == "google.protobuf.NullValue" => {
                object.text("type", "null");
            }
            Kind::Enum(of) => {
                object.text("type", "string");
                object.texts("enum", of.values().map(|value| value.name().to_owned()));
            }
            Kind::Message(message) => self.message(object, message, depth),
            Kind::Double | Kind::Float => number(object, "number", rules, Range::ANY),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
                number(object, "integer", rules, Range::INT32);
            }
            Kind::Uint32 | Kind::Fixed32 => number(object, "integer", rules, Range::UINT32),
            Kind::Uint64 | Kind::Fixed64 => number(object, "integer", rules, Range::POSITIVE),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
                number(object, "integer", rules, Range::ANY);
            }
        }
    }

    /// A message: in its place, or as a reference to its definition.
    fn message(&mut self, object: &mut Object<'_>, message: &MessageDescriptor, depth: usize) {
        if let Some(name) = message.full_name().strip_prefix("google.protobuf.") {
            let (ty, format) = match name {
                "Value" => return,
                "ListValue" => ("array", None),
                "Struct" | "Any" => ("object", None),
                "Timestamp" => ("string", Some("date-time")),
                "Duration" | "FieldMask" | "StringValue" => ("string", None),
                "BytesValue" => ("string", Some("byte")),
                "BoolValue" => ("boolean", None),
                "DoubleValue" | "FloatValue" => ("number", None),
                "Int32Value" | "Int64Value" | "UInt32Value" | "UInt64Value" => ("integer", None),
                _ => return self.members(object, message, depth + 1),
            };
            object.text("type", ty).optional_text("format", format);
            return;
        }
        if *message == self.root {
            object.text("$ref", "#");
            return;
        }
        let uses = self
            .uses
            .get(message.full_name())
            .copied()
            .unwrap_or_default();
        if uses < 2 && depth < INSIDE_MAX {
            return self.members(object, message, depth + 1);
        }
        if !self.defs.contains(message) {
            self.defs.push(message.clone());
        }
        object.text("$ref", &format!("#/$defs/{}", self.key(message)));
    }

    /// Writes the comment of a declaration, if the descriptors came with comments, and a note.
    fn describe(
        &mut self,
        object: &mut Object<'_>,
        name: &str,
        path: &[i32],
        file: &prost_reflect::FileDescriptor,
        note: Option<String>,
    ) {
        let comments = self
            .comments
            .entry(name.to_owned())
            .or_insert_with(|| comments_of(file));
        let comment = comments
            .get(path)
            .filter(|comment| !comment.is_empty())
            .cloned();
        let all: Vec<_> = comment.into_iter().chain(note).collect();
        if !all.is_empty() {
            object.text("description", &all.join("\n"));
        }
    }
}

/// The name of a message as a definition, without the ending that a conversion gives it.
fn definition_name(message: &MessageDescriptor) -> String {
    let name = pascal(message.name());
    match name.strip_suffix("Shape") {
        Some(stem) if !stem.is_empty() => stem.to_owned(),
        _ => name,
    }
}

/// The comments of a file, by the path of what they are for.
fn comments_of(file: &prost_reflect::FileDescriptor) -> HashMap<Vec<i32>, String> {
    let mut comments = HashMap::new();
    if let Some(info) = &file.file_descriptor_proto().source_code_info {
        for place in &info.location {
            let comment = place.leading_comments().trim().to_owned();
            comments.insert(place.path.clone(), comment);
        }
    }
    comments
}

/// The sentence that a field excludes others, if it does: JSON Schema would need a union.
fn oneof_note(field: &FieldDescriptor) -> Option<String> {
    let oneof = field.containing_oneof()?;
    let names: Vec<_> = oneof
        .fields()
        .map(|field| field.json_name().to_owned())
        .collect();
    // A oneof of one field is how `optional` is compiled.
    (names.len() > 1).then(|| format!("At most one of {}.", names.join(", ")))
}

/// The rules of a field.
fn rules_of(field: &FieldDescriptor) -> Option<DynamicMessage> {
    let options = field.options();
    let mut extensions = options.extensions();
    let found = extensions.find(|(extension, _)| extension.full_name() == "buf.validate.field");
    found.and_then(|(_, rules)| rules.as_message().cloned())
}

/// A rule, if it is set.
fn rule(rules: &DynamicMessage, name: &str) -> Option<Value> {
    rules
        .fields()
        .find(|(field, _)| field.name() == name)
        .map(|(_, value)| value.clone())
}

/// Whether a rule is set to true.
fn has(rules: Option<&DynamicMessage>, name: &str) -> bool {
    rules.and_then(|rules| rule(rules, name)) == Some(Value::Bool(true))
}

/// The rules of a field that are those of its type, such as `string` or `repeated`.
fn rules_of_type(rules: &DynamicMessage) -> Option<DynamicMessage> {
    rules
        .fields()
        .find_map(|(_, value)| value.as_message().cloned())
}

/// The rules of elements or values, those of their type.
fn inner(rules: &DynamicMessage, name: &str) -> Option<DynamicMessage> {
    let rules = rule(rules, name)?;
    rules_of_type(rules.as_message()?)
}

/// Writes the rule `name`, a count, as the keyword of JSON Schema.
fn count(object: &mut Object<'_>, rules: Option<&DynamicMessage>, name: &str, keyword: &str) {
    if let Some(Value::U64(count)) = rules.and_then(|rules| rule(rules, name)) {
        object.number(keyword, count);
    }
}

/// Writes `const` or `enum`, and returns whether it did.
fn values(object: &mut Object<'_>, rules: Option<&DynamicMessage>) -> bool {
    let Some(rules) = rules else { return false };
    if let Some(value) = rule(rules, "const").as_ref().and_then(spell) {
        object.raw("const", value.as_bytes());
        return true;
    }
    let listed = rule(rules, "in");
    let listed: Vec<_> = listed
        .as_ref()
        .and_then(Value::as_list)
        .unwrap_or_default()
        .iter()
        .filter_map(spell)
        .collect();
    if !listed.is_empty() {
        object.raw("enum", format!("[{}]", listed.join(",")).as_bytes());
    }
    !listed.is_empty()
}

fn spell(value: &Value) -> Option<String> {
    match value {
        Value::Bool(value) => Some(value.to_string()),
        Value::I32(value) => Some(value.to_string()),
        Value::I64(value) => Some(value.to_string()),
        Value::U32(value) => Some(value.to_string()),
        Value::U64(value) => Some(value.to_string()),
        Value::F32(value) => value.is_finite().then(|| format!("{value:?}")),
        Value::F64(value) => value.is_finite().then(|| format!("{value:?}")),
        Value::String(text) => Some(json::quote(text)),
        _ => None,
    }
}

fn text(object: &mut Object<'_>, rules: Option<&DynamicMessage>) {
    object.text("type", "string");
    if values(object, rules) {
        return;
    }
    count(object, rules, "min_len", "minLength");
    count(object, rules, "max_len", "maxLength");
    let Some(rules) = rules else { return };
    if let Some(Value::String(pattern)) = rule(rules, "pattern") {
        object.text("pattern", &shown(&pattern));
    }
    for checked in crate::rules::checked_formats() {
        if has(Some(rules), checked.rule) {
            object.text("format", checked.format);
        }
    }
}

/// The numbers that a type has; `None` for a bound that a schema need not say.
#[derive(Clone, Copy)]
struct Range {
    least: Option<i64>,
    most: Option<i64>,
}

impl Range {
    const ANY: Self = Self {
        least: None,
        most: None,
    };
    const POSITIVE: Self = Self {
        least: Some(0),
        most: None,
    };
    const INT32: Self = Self {
        least: Some(i32::MIN as i64),
        most: Some(i32::MAX as i64),
    };
    const UINT32: Self = Self {
        least: Some(0),
        most: Some(u32::MAX as i64),
    };
}

/// A number of a type with this range.
fn number(object: &mut Object<'_>, ty: &str, rules: Option<&DynamicMessage>, range: Range) {
    object.text("type", ty);
    if values(object, rules) {
        return;
    }
    let has_least = bound(object, rules, "gte", "minimum");
    let has_more_than = bound(object, rules, "gt", "exclusiveMinimum");
    if let Some(least) = range.least
        && !has_least
        && !has_more_than
    {
        object.number("minimum", least);
    }
    let has_most = bound(object, rules, "lte", "maximum");
    let has_less_than = bound(object, rules, "lt", "exclusiveMaximum");
    if let Some(most) = range.most
        && !has_most
        && !has_less_than
    {
        object.number("maximum", most);
    }
}

/// Writes the rule `name`, a bound, as the keyword of JSON Schema, and returns whether it did.
fn bound(
    object: &mut Object<'_>,
    rules: Option<&DynamicMessage>,
    name: &str,
    keyword: &str,
) -> bool {
    let Some(value) = rules.and_then(|rules| rule(rules, name)) else {
        return false;
    };
    let Some(text) = spell(&value) else {
        return false;
    };
    object.raw(keyword, text.as_bytes());
    true
}
