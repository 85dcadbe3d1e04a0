//! Shapes: the values that a JSON Schema allows, as far as protobuf can say it.

use crate::node::Node;

/// References that lead to references, followed at most.
const REFERENCES_MAX: usize = 16;
/// Properties of one object; one with more is a `Struct`.
const PROPERTIES_MAX: usize = 500;

/// Values that a schema allows.
pub(crate) struct ValueShape<'a> {
    pub(crate) kind: Kind<'a>,
    /// Whether `null` is allowed beside them.
    pub(crate) nullable: bool,
    /// Node with the rules.
    pub(crate) node: Node<'a>,
}

pub(crate) enum Kind<'a> {
    Text,
    Integer,
    Number,
    Bool,
    /// Anything: unions, or no type at all.
    Any,
    /// An object with named properties.
    Object(Object<'a>),
    /// An object whose members all have this shape.
    Map(Box<ValueShape<'a>>),
    /// Any other object.
    FreeObject,
    List(Box<ValueShape<'a>>),
    /// An array of anything, a tuple, or of arrays.
    FreeList,
}

pub(crate) struct Object<'a> {
    pub(crate) node: Node<'a>,
    /// The reference that led here; objects of one reference are one message.
    pub(crate) reference: Option<String>,
}

impl<'a> ValueShape<'a> {
    fn any(node: Node<'a>) -> Self {
        Self {
            kind: Kind::Any,
            nullable: false,
            node,
        }
    }

    /// Reads a schema inside this document.
    pub(crate) fn read(document: Node<'a>, node: Node<'a>) -> Self {
        Self::read_at(document, node, None, 0)
    }

    fn read_at(
        document: Node<'a>,
        node: Node<'a>,
        reference: Option<String>,
        depth: usize,
    ) -> Self {
        if depth > REFERENCES_MAX || node.members().is_none() {
            return Self::any(node);
        }
        if let Some(target) = node.get("$ref").and_then(Node::text) {
            return match document.at_pointer(&target) {
                Some(found) => Self::read_at(document, found, Some(target.into_owned()), depth + 1),
                None => Self::any(node),
            };
        }
        if let Some(shape) = Self::of_values(node) {
            return shape;
        }
        let types = match node.get("type") {
            Some(one) if one.text().is_some() => vec![one],
            Some(several) => several.elements(),
            None => return Self::of_branches(document, node, reference, depth),
        };
        let nullable = types.iter().any(|name| name.is("\"null\""));
        let mut others = types
            .iter()
            .filter_map(|name| name.text())
            .filter(|name| name != "null");
        let (Some(name), None) = (others.next(), others.next()) else {
            return Self::any(node);
        };
        let kind = match &*name {
            "string" => Kind::Text,
            "integer" => Kind::Integer,
            "number" => Kind::Number,
            "boolean" => Kind::Bool,
            "array" => Self::list(document, node, depth),
            "object" => Self::object(document, node, reference, depth),
            _ => Kind::Any,
        };
        Self {
            kind,
            nullable,
            node,
        }
    }

    /// The shape of a schema that lists its values.
    fn of_values(node: Node<'a>) -> Option<Self> {
        let values = match node.get("const") {
            Some(value) => vec![value],
            None => node.get("enum")?.elements(),
        };
        let nullable = values.iter().any(|value| value.is("null"));
        let values: Vec<_> = values
            .into_iter()
            .filter(|value| !value.is("null"))
            .collect();
        let kind = if values.is_empty() {
            Kind::Any
        } else if values.iter().all(|value| value.text().is_some()) {
            Kind::Text
        } else if values.iter().all(|value| value.integer().is_some()) {
            Kind::Integer
        } else if values
            .iter()
            .all(|value| value.is("true") || value.is("false"))
        {
            Kind::Bool
        } else {
            Kind::Any
        };
        Some(Self {
            kind,
            nullable,
            node,
        })
    }

    /// The shape of a schema without a type: a nullable one, one that only names another, or
    /// anything.
    fn of_branches(
        document: Node<'a>,
        node: Node<'a>,
        reference: Option<String>,
        depth: usize,
    ) -> Self {
        let branches = ["anyOf", "oneOf", "allOf"]
            .into_iter()
            .find_map(|key| Some((key, node.get(key)?.elements())));
        let Some((key, branches)) = branches else {
            return Self::any(node);
        };
        // Of `allOf` every branch counts: null beside another type allows nothing.
        let nullable = key != "allOf" && branches.iter().any(is_null);
        let mut others = branches.into_iter().filter(|branch| !is_null(branch));
        let (Some(one), None) = (others.next(), others.next()) else {
            return Self::any(node);
        };
        let shape = Self::read_at(document, one, reference, depth + 1);
        Self {
            nullable: shape.nullable || nullable,
            ..shape
        }
    }

    fn list(document: Node<'a>, node: Node<'a>, depth: usize) -> Kind<'a> {
        if node.get("prefixItems").is_some() {
            return Kind::FreeList;
        }
        let Some(items) = node.get("items") else {
            return Kind::FreeList;
        };
        let item = Self::read_at(document, items, None, depth + 1);
        match item.kind {
            // protobuf has no lists of lists or of maps.
            Kind::List(_) | Kind::FreeList | Kind::Map(_) | Kind::Any => Kind::FreeList,
            // A repeated field has no null among its elements.
            _ if item.nullable => Kind::FreeList,
            _ => Kind::List(Box::new(item)),
        }
    }

    fn object(
        document: Node<'a>,
        node: Node<'a>,
        reference: Option<String>,
        depth: usize,
    ) -> Kind<'a> {
        let properties = node.get("properties").and_then(count_of).unwrap_or(0);
        let patterns = node
            .get("patternProperties")
            .and_then(count_of)
            .unwrap_or(0);
        if properties > PROPERTIES_MAX || patterns > 0 {
            return Kind::FreeObject;
        }
        let is_object = match OtherMembers::read(node) {
            OtherMembers::Refused => true,
            OtherMembers::Shaped(others) if properties == 0 => {
                return Self::map(document, others, depth);
            }
            // A message cannot carry members that it does not name.
            OtherMembers::Shaped(_) => false,
            // Most schemas say nothing of other members, and mean none.
            OtherMembers::Any => properties > 0,
        };
        if is_object {
            Kind::Object(Object { node, reference })
        } else {
            Kind::FreeObject
        }
    }

    /// The shape of an object whose members all have the schema `others`.
    fn map(document: Node<'a>, others: Node<'a>, depth: usize) -> Kind<'a> {
        let value = Self::read_at(document, others, None, depth + 1);
        match value.kind {
            Kind::List(_) | Kind::FreeList | Kind::Map(_) | Kind::Any | Kind::FreeObject => {
                Kind::FreeObject
            }
            _ if value.nullable => Kind::FreeObject,
            _ => Kind::Map(Box::new(value)),
        }
    }
}

/// Members that an object may have beside its properties (`additionalProperties`).
enum OtherMembers<'a> {
    Refused,
    /// Those of a schema.
    Shaped(Node<'a>),
    Any,
}

impl<'a> OtherMembers<'a> {
    fn read(node: Node<'a>) -> Self {
        match node.get("additionalProperties") {
            None => Self::Any,
            Some(others) if others.is("false") => Self::Refused,
            // A schema without a word is `true`.
            Some(others) if others.is("true") || count_of(others) == Some(0) => Self::Any,
            Some(others) => Self::Shaped(others),
        }
    }
}

/// The number of members; `None` if this is no object.
fn count_of(node: Node<'_>) -> Option<usize> {
    node.members().map(|members| members.len())
}

/// Whether a schema allows null alone.
fn is_null(branch: &Node<'_>) -> bool {
    branch.get("type").is_some_and(|name| name.is("\"null\""))
}
