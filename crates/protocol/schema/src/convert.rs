//! JSON Schema to proto3 messages.

use std::collections::{HashMap, HashSet};

use crate::file::{Absent, Field, File, Label, Message, Type};
use crate::names::{Names, camel, pascal, snake};
use crate::node::Node;
use crate::numbers::Numbers;
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
    (names, numbers): (&mut Names, &Numbers),
    style: Style,
) -> Converted {
    let mut file = File {
        package: package.to_owned(),
        path,
        comment: tool
            .description
            .map(|what| format!("Tool `{}`.\n\n{}", tool.name, what.trim())),
        messages: Vec::new(),
    };
    let mut root = |schema: &[u8], end: &str, comment: String| {
        let document = Node(schema);
        let shape = ValueShape::read(document, document);
        let Kind::Object(object) = shape.kind else {
            return STRUCT.to_owned();
        };
        let name = names.unique(&(pascal(tool.name) + end));
        let mut converter = Converter {
            document,
            root: name.clone(),
            numbers,
            style,
            shared: HashMap::new(),
            messages: 1,
        };
        let mut message = converter.message(&name, &name, &object, 0);
        message.messages.extend(converter.take_shared());
        message.comment = message
            .comment
            .or((style == Style::Lossless).then_some(comment));
        file.messages.push(message);
        format!("{package}.{name}")
    };
    let input = root(
        tool.input,
        "Request",
        format!("The arguments of `{}`.", tool.name),
    );
    let output = tool.output.map(|schema| {
        root(
            schema,
            "Response",
            format!("The structured result of `{}`.", tool.name),
        )
    });
    Converted {
        file,
        input,
        output,
    }
}

struct Converter<'a, 'n> {
    document: Node<'a>,
    root: String,
    numbers: &'n Numbers,
    style: Style,
    /// Messages that several fields name, by reference; `None` while one is being made.
    shared: HashMap<String, (String, Option<Message>)>,
    messages: usize,
}

impl<'a> Converter<'a, '_> {
    fn take_shared(&mut self) -> Vec<Message> {
        let mut shared: Vec<_> = self
            .shared
            .drain()
            .filter_map(|(_, (_, message))| message)
            .collect();
        shared.sort_by(|one, other| one.name.cmp(&other.name));
        shared
    }

    /// The message of an object; `path` is its name from the root message on.
    fn message(&mut self, name: &str, path: &str, object: &Object<'a>, depth: usize) -> Message {
        let required: Vec<_> = object
            .node
            .get("required")
            .map(Node::elements)
            .unwrap_or_default();
        let required: Vec<_> = required.into_iter().filter_map(Node::text).collect();
        let mut message = Message {
            name: name.to_owned(),
            ..Message::default()
        };
        message.comment = object.node.description().map(std::borrow::Cow::into_owned);
        let mut names = Names::default();
        let mut inner = Names::default();
        let properties = object.node.get("properties").and_then(Node::members);
        let all: HashSet<_> = properties
            .iter()
            .flat_map(json::Members::iter)
            .map(|(property, _)| property.to_owned())
            .collect();
        for (property, member) in properties.iter().flat_map(json::Members::iter) {
            let shape = ValueShape::read(self.document, Node(member.raw));
            let (label, ty) = self.place(
                &shape,
                property,
                path,
                (&mut message.messages, &mut inner),
                depth,
            );
            let is_required = required.iter().any(|name| name == property);
            message.fields.push(self.field(
                &shape,
                (label, ty),
                field_name(&mut names, property, &all),
                property,
                is_required,
            ));
        }
        let places: Vec<_> = message
            .fields
            .iter()
            .map(|field| (field.property.clone(), field.label, field.ty.clone()))
            .collect();
        let (numbers, reserved) = self.numbers.assign(path, &places);
        message
            .fields
            .iter_mut()
            .zip(numbers)
            .for_each(|(field, number)| field.number = number);
        message.reserved = reserved;
        message
    }

    fn field(
        &self,
        shape: &ValueShape<'_>,
        (label, ty): (Label, Type),
        name: String,
        property: &str,
        is_required: bool,
    ) -> Field {
        let absent = match label {
            _ if !is_required => None,
            _ if shape.nullable => Some(Absent::Null),
            Label::Repeated | Label::Map => Some(Absent::Empty),
            Label::Plain | Label::Optional => None,
        };
        let is_required = is_required && !shape.nullable;
        let mut rules = rules::of(shape, &ty);
        let is_several = matches!(label, Label::Repeated | Label::Map);
        if is_several && !is_required && rules::refuse_none(&rules) {
            rules.insert(0, rules::unless_empty());
        }
        let label = match label {
            Label::Optional if is_required && self.style == Style::Spec => Label::Plain,
            Label::Plain | Label::Optional if is_required => {
                rules.insert(0, rules::required());
                label
            }
            label => label,
        };
        let comment = shape.node.description().map(std::borrow::Cow::into_owned);
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
            comment,
        }
    }

    /// Declaration of a field of this shape; a message of its own is added to `inner`.
    fn place(
        &mut self,
        shape: &ValueShape<'a>,
        property: &str,
        path: &str,
        inner: (&mut Vec<Message>, &mut Names),
        depth: usize,
    ) -> (Label, Type) {
        match &shape.kind {
            Kind::Text => (Label::Optional, Type::String),
            Kind::Integer => (Label::Optional, self.integer(shape.node)),
            Kind::Number => (Label::Optional, Type::Double),
            Kind::Bool => (Label::Optional, Type::Bool),
            Kind::Any => (Label::Plain, Type::Value),
            Kind::FreeObject => (Label::Plain, Type::Struct),
            Kind::FreeList => (Label::Plain, Type::ListValue),
            Kind::Object(object) => (
                Label::Plain,
                self.nested(object, property, path, inner, depth),
            ),
            Kind::List(item) => (
                Label::Repeated,
                self.place(item, property, path, inner, depth).1,
            ),
            Kind::Map(value) => (
                Label::Map,
                self.place(value, property, path, inner, depth).1,
            ),
        }
    }

    fn integer(&self, node: Node<'_>) -> Type {
        let fits = |value: f64| (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value);
        let listed = node
            .get("const")
            .map(|value| vec![value])
            .or_else(|| Some(node.get("enum")?.elements()));
        let Bounds { lower, upper } = Bounds::read(node);
        let (lower, upper) = (
            lower.map(|bound| fits(bound.value)),
            upper.map(|bound| fits(bound.value)),
        );
        let is_small = match (listed, self.style) {
            (Some(values), _) => values.iter().all(|value| value.number().is_none_or(fits)),
            (None, Style::Lossless) => lower == Some(true) && upper == Some(true),
            (None, Style::Spec) => lower != Some(false) && upper != Some(false),
        };
        if is_small { Type::Int32 } else { Type::Int64 }
    }

    /// The message of a nested object.
    fn nested(
        &mut self,
        object: &Object<'a>,
        property: &str,
        path: &str,
        (inner, names): (&mut Vec<Message>, &mut Names),
        depth: usize,
    ) -> Type {
        if let Some(reference) = &object.reference {
            return self.shared(object, reference);
        }
        if depth >= DEPTH_MAX || self.messages >= MESSAGES_MAX {
            return Type::Struct;
        }
        self.messages += 1;
        let name = names.unique(&self.apart_from_root(pascal(property)));
        let message = self.message(&name, &format!("{path}.{name}"), object, depth + 1);
        inner.push(message);
        Type::Message(name)
    }

    /// The message of an object that references name: one for all, inside the root message.
    fn shared(&mut self, object: &Object<'a>, reference: &str) -> Type {
        if reference == "#" {
            return Type::Message(self.root.clone());
        }
        if let Some((name, _)) = self.shared.get(reference) {
            return Type::Message(format!("{}.{name}", self.root));
        }
        if self.messages >= MESSAGES_MAX {
            return Type::Struct;
        }
        self.messages += 1;
        let own = self.apart_from_root(pascal(reference.rsplit('/').next().unwrap_or_default()));
        let is_taken = |name: &String| self.shared.values().any(|(taken, _)| taken == name);
        let name = (1..).map(|count| {
            if count == 1 {
                format!("{own}Shape")
            } else {
                format!("{own}Shape{count}")
            }
        });
        let name = name
            .into_iter()
            .find(|name| !is_taken(name))
            .unwrap_or_default();
        self.shared
            .insert(reference.to_owned(), (name.clone(), None));
        let message = self.message(&name, &format!("{}.{name}", self.root), object, 0);
        self.shared
            .insert(reference.to_owned(), (name.clone(), Some(message)));
        Type::Message(format!("{}.{name}", self.root))
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

/// The name of a property's field. Google's runtimes keep the names of fields, of their JSON and of
/// what `optional` adds (`_name`) in one table, so that none may be the exact name of another
/// property.
fn field_name(names: &mut Names, property: &str, all: &HashSet<String>) -> String {
    let is_taken =
        |name: &String| name != property && all.contains(name) || all.contains(&format!("_{name}"));
    let mut name = names.unique(&snake(property));
    while is_taken(&name) {
        name = names.unique(&format!("x_{name}"));
    }
    name
}
