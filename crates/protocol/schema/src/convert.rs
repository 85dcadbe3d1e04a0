//! JSON Schema to proto3 messages.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::file::{Absent, Field, File, Label, Message, Type};
use crate::names::{Names, camel, pascal, snake};
use crate::node::Node;
use crate::numbers::FieldNumbering;
use crate::rules::{self, Bounds};
use crate::shape::{Kind, Object, ValueShape};

/// Nested messages below each other; deeper objects are a `Struct`.
const DEPTH_MAX: usize = 24;
/// Messages of one tool; further objects are a `Struct`.
const MESSAGES_MAX: usize = 2_000;
/// The message of arguments that no message can carry.
pub const STRUCT: &str = "google.protobuf.Struct";

/// Declaration of scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// With explicit presence, and integers of 64 bits: nothing is lost.
    #[default]
    Lossless,
    /// As proto-mcp's document writes them ("JSON-to-Proto Conversion"): required scalars without
    /// presence, so that an empty one and an absent one are the same bytes, and integers of 32
    /// bits.
    Spec,
}

/// A tool as its server lists it.
#[derive(Debug, Clone, Copy)]
pub struct ListedTool<'a> {
    /// Its name.
    pub name: &'a str,
    /// Description of the tool, for the comment.
    pub description: Option<&'a str>,
    /// The JSON Schema of its arguments, as it was written.
    pub input: &'a [u8],
    /// The JSON Schema of its structured result.
    pub output: Option<&'a [u8]>,
}

/// A tool's schemas in protobuf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// The file with its messages.
    pub file: File,
    /// The full name of the message of its arguments; [`STRUCT`] if no message can carry them.
    pub input: String,
    /// The full name of the message of its structured result.
    pub output: Option<String>,
}

/// Converts a tool. `names` has the messages of the package that are taken; `numbers` those of an
/// earlier conversion of the same tool, which stay.
#[must_use]
pub fn convert(
    tool: &ListedTool<'_>,
    (package, path): (&str, String),
    (names, numbers): (&mut Names, &FieldNumbering),
    style: Style,
) -> Converted {
    let comment = tool
        .description
        .map(|what| format!("Tool `{}`.\n\n{}", tool.name, what.trim()));
    let mut conversion = Conversion {
        file: File {
            package: package.to_owned(),
            path,
            comment,
            messages: Vec::new(),
        },
        names,
        numbers,
        style,
    };
    let stem = pascal(tool.name);
    let input = conversion.add_root(
        tool.input,
        &format!("{stem}Request"),
        format!("The arguments of `{}`.", tool.name),
    );
    let output = tool.output.map(|schema| {
        conversion.add_root(
            schema,
            &format!("{stem}Response"),
            format!("The structured result of `{}`.", tool.name),
        )
    });
    Converted {
        file: conversion.file,
        input,
        output,
    }
}

/// The file of one tool while its messages are added.
struct Conversion<'c> {
    file: File,
    /// Messages of the package that are taken.
    names: &'c mut Names,
    numbers: &'c FieldNumbering,
    style: Style,
}

impl Conversion<'_> {
    /// Adds the message of one of the tool's schemas, named `name` or like it, and returns its
    /// full name; [`STRUCT`] if no message can carry the values of the schema. `comment` is for a
    /// schema without a description.
    fn add_root(&mut self, schema: &[u8], name: &str, comment: String) -> String {
        let document = Node(schema);
        let shape = ValueShape::read(document, document);
        let Kind::Object(object) = shape.kind else {
            return STRUCT.to_owned();
        };
        let name = self.names.unique(name);
        let mut converter = Converter {
            document,
            root: name.clone(),
            numbers: self.numbers,
            style: self.style,
            shared: HashMap::new(),
            messages: 1,
        };
        let mut message = converter.message(&name, &name, &object, 0);
        message.messages.extend(converter.take_shared());
        if message.comment.is_none() && self.style == Style::Lossless {
            message.comment = Some(comment);
        }
        self.file.messages.push(message);
        format!("{}.{name}", self.file.package)
    }
}

/// One schema while its messages are made.
struct Converter<'a, 'n> {
    document: Node<'a>,
    /// The name of the message of the whole schema.
    root: String,
    numbers: &'n FieldNumbering,
    style: Style,
    /// Messages that several fields may name, by reference.
    shared: HashMap<String, SharedMessage>,
    /// Messages that were made so far.
    messages: usize,
}

/// The message of the objects that one reference of the schema names.
struct SharedMessage {
    name: String,
    /// `None` while it is being made.
    message: Option<Message>,
}

/// Messages that are nested in the one being made.
#[derive(Default)]
struct NestedMessages {
    messages: Vec<Message>,
    names: Names,
}

/// Declaration of a field: `repeated string` is [`Label::Repeated`] and [`Type::String`].
struct Declared {
    label: Label,
    ty: Type,
}

impl Declared {
    fn new(label: Label, ty: Type) -> Self {
        Self { label, ty }
    }
}

impl<'a> Converter<'a, '_> {
    fn take_shared(&mut self) -> Vec<Message> {
        let mut shared: Vec<_> = self
            .shared
            .drain()
            .filter_map(|(_, shared)| shared.message)
            .collect();
        // A hash map has another order in each run; the file is the same in all.
        shared.sort_by(|one, other| one.name.cmp(&other.name));
        shared
    }

    /// The message of an object; `path` is its name from the root message on.
    fn message(&mut self, name: &str, path: &str, object: &Object<'a>, depth: usize) -> Message {
        let required: Vec<_> = match object.node.get("required") {
            Some(list) => list.elements().into_iter().filter_map(Node::text).collect(),
            None => Vec::new(),
        };
        let properties = object.node.get("properties").and_then(Node::members);
        let all_properties: HashSet<_> = properties
            .iter()
            .flat_map(json::Members::iter)
            .map(|(property, _)| property.to_owned())
            .collect();
        let mut names = Names::default();
        let mut nested = NestedMessages::default();
        let mut fields = Vec::new();
        for (property, member) in properties.iter().flat_map(json::Members::iter) {
            let shape = ValueShape::read(self.document, Node(member.raw));
            let declared = self.declared(&shape, property, path, &mut nested, depth);
            let name = field_name(&mut names, property, &all_properties);
            let is_required = required.iter().any(|one| one == property);
            fields.push(self.field(&shape, declared, name, property, is_required));
        }
        let given = self.numbers.assign(path, &fields);
        for (field, number) in fields.iter_mut().zip(given.numbers) {
            field.number = number;
        }
        Message {
            name: name.to_owned(),
            comment: object.node.description().map(Cow::into_owned),
            fields,
            messages: nested.messages,
            reserved: given.reserved,
        }
    }

    /// The field of a property; its number comes later.
    fn field(
        &self,
        shape: &ValueShape<'_>,
        declared: Declared,
        name: String,
        property: &str,
        is_required: bool,
    ) -> Field {
        let Declared { label, ty } = declared;
        let absent = match label {
            _ if !is_required => None,
            _ if shape.nullable => Some(Absent::Null),
            Label::Repeated | Label::Map => Some(Absent::Empty),
            Label::Plain | Label::Optional => None,
        };
        // A field that is null is left out of the message, which no rule may refuse.
        let must_be_there = is_required && !shape.nullable;
        let mut rules = rules::of(shape, &ty);
        let is_several = matches!(label, Label::Repeated | Label::Map);
        if is_several && !must_be_there && rules::refuse_none(&rules) {
            rules.insert(0, rules::unless_empty());
        }
        let label = match label {
            // Without presence an empty text is an absent one: a rule would refuse it.
            Label::Optional if must_be_there && self.style == Style::Spec => Label::Plain,
            Label::Plain | Label::Optional if must_be_there => {
                rules.insert(0, rules::required());
                label
            }
            label => label,
        };
        let has_json_name = match self.style {
            Style::Lossless => camel(&name) != property,
            Style::Spec => camel(&name) != property && name != property,
        };
        Field {
            name,
            property: property.to_owned(),
            has_json_name,
            number: 0,
            label,
            ty,
            rules,
            absent,
            comment: shape.node.description().map(Cow::into_owned),
        }
    }

    /// Declaration of a field of this shape; a message of its own is added to `nested`.
    fn declared(
        &mut self,
        shape: &ValueShape<'a>,
        property: &str,
        path: &str,
        nested: &mut NestedMessages,
        depth: usize,
    ) -> Declared {
        match &shape.kind {
            Kind::Text => Declared::new(Label::Optional, Type::String),
            Kind::Integer => Declared::new(Label::Optional, self.integer(shape.node)),
            Kind::Number => Declared::new(Label::Optional, Type::Double),
            Kind::Bool => Declared::new(Label::Optional, Type::Bool),
            Kind::Any => Declared::new(Label::Plain, Type::Value),
            Kind::FreeObject => Declared::new(Label::Plain, Type::Struct),
            Kind::FreeList => Declared::new(Label::Plain, Type::ListValue),
            Kind::Object(object) => {
                let ty = self.object(object, property, path, nested, depth);
                Declared::new(Label::Plain, ty)
            }
            Kind::List(item) => {
                let item = self.declared(item, property, path, nested, depth);
                Declared::new(Label::Repeated, item.ty)
            }
            Kind::Map(value) => {
                let value = self.declared(value, property, path, nested, depth);
                Declared::new(Label::Map, value.ty)
            }
        }
    }

    /// The type of an integer: 32 bits only if no value that the schema allows needs more. The
    /// style of proto-mcp's document also has them where the schema bounds nothing.
    fn integer(&self, node: Node<'_>) -> Type {
        let listed = match node.get("const") {
            Some(value) => Some(vec![value]),
            None => node.get("enum").map(Node::elements),
        };
        let Bounds { lower, upper } = Bounds::read(node);
        let lower_fits = lower.map(|bound| fits_int32(bound.value));
        let upper_fits = upper.map(|bound| fits_int32(bound.value));
        let is_small = match (listed, self.style) {
            (Some(values), _) => values
                .iter()
                .all(|value| value.number().is_none_or(fits_int32)),
            (None, Style::Lossless) => lower_fits == Some(true) && upper_fits == Some(true),
            (None, Style::Spec) => lower_fits != Some(false) && upper_fits != Some(false),
        };
        if is_small { Type::Int32 } else { Type::Int64 }
    }

    /// The type of an object's field: its message, which is made here unless a reference names it.
    fn object(
        &mut self,
        object: &Object<'a>,
        property: &str,
        path: &str,
        nested: &mut NestedMessages,
        depth: usize,
    ) -> Type {
        if let Some(reference) = &object.reference {
            return self.shared(object, reference);
        }
        if depth >= DEPTH_MAX || self.messages >= MESSAGES_MAX {
            return Type::Struct;
        }
        self.messages += 1;
        let name = nested.names.unique(&self.apart_from_root(pascal(property)));
        let message = self.message(&name, &format!("{path}.{name}"), object, depth + 1);
        nested.messages.push(message);
        Type::Message(name)
    }

    /// The type of an object that a reference names: one message for all, inside the root message.
    fn shared(&mut self, object: &Object<'a>, reference: &str) -> Type {
        if reference == "#" {
            return Type::Message(self.root.clone());
        }
        if let Some(shared) = self.shared.get(reference) {
            return Type::Message(format!("{}.{}", self.root, shared.name));
        }
        if self.messages >= MESSAGES_MAX {
            return Type::Struct;
        }
        self.messages += 1;
        let name = self.shared_name(reference);
        // Before its fields are read: one of them may lead back to it.
        self.shared.insert(
            reference.to_owned(),
            SharedMessage {
                name: name.clone(),
                message: None,
            },
        );
        let path = format!("{}.{name}", self.root);
        // Depth 0: it stands right below the root message, however deep the first field that
        // names it is.
        let message = self.message(&name, &path, object, 0);
        self.shared.insert(
            reference.to_owned(),
            SharedMessage {
                name,
                message: Some(message),
            },
        );
        Type::Message(path)
    }

    /// A name for the message of a reference, such as `DateShape` for `#/$defs/Date`: the ending
    /// keeps it apart from nested messages, which are named like their properties.
    fn shared_name(&self, reference: &str) -> String {
        let last = reference.rsplit('/').next().unwrap_or_default();
        let stem = self.apart_from_root(pascal(last)) + "Shape";
        let mut name = stem.clone();
        let mut count = 1;
        while self.shared.values().any(|other| other.name == name) {
            count += 1;
            name = format!("{stem}{count}");
        }
        name
    }

    /// A nested message named like the root would hide it.
    fn apart_from_root(&self, name: String) -> String {
        if name == self.root {
            name + "Value"
        } else {
            name
        }
    }
}

/// Whether a number is in the range of `int32`.
fn fits_int32(value: f64) -> bool {
    (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value)
}

/// The name of a property's field. Google's runtimes keep the names of fields, of their JSON and of
/// what `optional` adds (`_name`) in one table, so that none may be the exact name of another
/// property.
fn field_name(names: &mut Names, property: &str, all: &HashSet<String>) -> String {
    let mut name = names.unique(&snake(property));
    while is_other_property(&name, property, all) {
        name = names.unique(&format!("x_{name}"));
    }
    name
}

/// Whether a field of this name, or the `_name` that `optional` adds to it, would be named like
/// another property.
fn is_other_property(name: &str, property: &str, all: &HashSet<String>) -> bool {
    name != property && all.contains(name) || all.contains(&format!("_{name}"))
}
