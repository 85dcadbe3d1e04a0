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
        let mut written = BTreeMap::new();
        while let Some(message) = writer
            .defs
            .iter()
            .find(|one| !written.contains_key(one.full_name()))
            .cloned()
        {
            let schema = json::object(|object| writer.members(object, &message, 1));
            written.insert(message.full_name().to_owned(), schema);
        }
        if !written.is_empty() {
            object.object("$defs", |all| {
                for message in &writer.defs {
                    all.raw(
                        &writer.key(message),
                        written
                            .get(message.full_name())
                            .map_or(b"{}", Vec::as_slice),
                    );
                }
            });
        }
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

    /// The name of a definition; a conversion calls the message by it again.
    fn key(&self, message: &MessageDescriptor) -> String {
        let name = |message: &MessageDescriptor| {
            let name = pascal(message.name());
            name.strip_suffix("Shape")
                .filter(|name| !name.is_empty())
                .unwrap_or(&name)
                .to_owned()
        };
        let own = name(message);
        let same = self.defs.iter().filter(|other| name(other) == own);
        match same.take_while(|other| *other != message).count() {
            0 => own,
            before => format!("{own}{}", before + 1),
        }
    }

    fn members(&mut self, object: &mut Object<'_>, message: &MessageDescriptor, depth: usize) {
        let file = message.parent_file();
        let path = message.path().to_vec();
        self.describe(object, file.name(), &path, &file, None);
        object.text("type", "object");
        let mut required = Vec::new();
        object.object("properties", |properties| {
            for field in message.fields() {
                let rules = rules_of(&field);
                if rules
                    .as_ref()
                    .and_then(|rules| rule(rules, "required"))
                    .is_some_and(|is| is == Value::Bool(true))
                {
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
        let others = field.containing_oneof().map(|of| {
            of.fields()
                .map(|field| field.json_name().to_owned())
                .collect::<Vec<_>>()
        });
        let note = others
            .filter(|all| all.len() > 1)
            .map(|all| format!("At most one of {}.", all.join(", ")));
        let file = field.parent_message().parent_file();
        self.describe(object, file.name(), field.path(), &file, note);
        let typed = rules.and_then(|rules| {
            rules
                .fields()
                .find_map(|(_, value)| value.as_message().cloned())
        });
        let typed = typed.as_ref();
        if field.is_map() {
            let Kind::Message(entry) = field.kind() else {
                return;
            };
            object.text("type", "object");
            count(
                object,
                typed,
                [
                    ("min_pairs", "minProperties"),
                    ("max_pairs", "maxProperties"),
                ],
            );
            let values = typed.and_then(|rules| inner(rules, "values"));
            let value = json::object(|object| {
                self.one(
                    object,
                    &entry.map_entry_value_field().kind(),
                    values.as_ref(),
                    depth,
                )
            });
            object.raw("additionalProperties", &value);
        } else if field.is_list() {
            object.text("type", "array");
            count(
                object,
                typed,
                [("min_items", "minItems"), ("max_items", "maxItems")],
            );
            if typed.and_then(|rules| rule(rules, "unique")) == Some(Value::Bool(true)) {
                object.bool("uniqueItems", true);
            }
            let items = typed.and_then(|rules| inner(rules, "items"));
            let item =
                json::object(|object| self.one(object, &field.kind(), items.as_ref(), depth));
            object.raw("items", &item);
        } else {
            self.one(object, &field.kind(), typed, depth);
        }
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
            Kind::Double | Kind::Float => number(object, "number", rules, [None, None]),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
                number(
                    object,
                    "integer",
                    rules,
                    [Some(i32::MIN.into()), Some(i32::MAX.into())],
                );
            }
            Kind::Uint32 | Kind::Fixed32 => {
                number(object, "integer", rules, [Some(0), Some(u32::MAX.into())])
            }
            Kind::Uint64 | Kind::Fixed64 => number(object, "integer", rules, [Some(0), None]),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
                number(object, "integer", rules, [None, None])
            }
        }
    }

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
        let comments = self.comments.entry(name.to_owned()).or_insert_with(|| {
            let info = file.file_descriptor_proto().source_code_info.as_ref();
            let places = info.iter().flat_map(|info| &info.location);
            places
                .map(|place| {
                    (
                        place.path.clone(),
                        place.leading_comments().trim().to_owned(),
                    )
                })
                .collect()
        });
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

/// The rules of elements or values, those of their type.
fn inner(rules: &DynamicMessage, name: &str) -> Option<DynamicMessage> {
    let rules = rule(rules, name)?;
    rules
        .as_message()?
        .fields()
        .find_map(|(_, value)| value.as_message().cloned())
}

fn count(object: &mut Object<'_>, rules: Option<&DynamicMessage>, names: [(&str, &str); 2]) {
    for (name, keyword) in names {
        if let Some(Value::U64(count)) = rules.and_then(|rules| rule(rules, name)) {
            object.number(keyword, count);
        }
    }
}

/// `const` and `enum`. Whether there are any.
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
    count(
        object,
        rules,
        [("min_len", "minLength"), ("max_len", "maxLength")],
    );
    let Some(rules) = rules else { return };
    if let Some(Value::String(pattern)) = rule(rules, "pattern") {
        object.text("pattern", &shown(&pattern));
    }
    for (name, format) in crate::rules::formats() {
        if rule(rules, name) == Some(Value::Bool(true)) {
            object.text("format", format);
        }
    }
}

/// A number whose type has these bounds.
fn number(
    object: &mut Object<'_>,
    ty: &str,
    rules: Option<&DynamicMessage>,
    bounds: [Option<i64>; 2],
) {
    object.text("type", ty);
    if values(object, rules) {
        return;
    }
    let names = [["gte", "gt"], ["lte", "lt"]];
    let keywords = [
        ["minimum", "exclusiveMinimum"],
        ["maximum", "exclusiveMaximum"],
    ];
    for ((names, keywords), bound) in names.into_iter().zip(keywords).zip(bounds) {
        let mut is_bounded = false;
        for (name, keyword) in names.into_iter().zip(keywords) {
            if let Some(value) = rules
                .and_then(|rules| rule(rules, name))
                .as_ref()
                .and_then(spell)
            {
                object.raw(keyword, value.as_bytes());
                is_bounded = true;
            }
        }
        let [inclusive, _] = keywords;
        if let Some(bound) = bound.filter(|_| !is_bounded) {
            object.number(inclusive, bound);
        }
    }
}
