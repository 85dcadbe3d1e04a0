//! A proto3 file: its messages, fields and rules.

/// A proto3 file with one tool's messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The package, such as `acme.tools.v1`.
    pub package: String,
    /// The path from the root of its module, such as `acme/tools/v1/web_search.proto`.
    pub path: String,
    /// Purpose of the file, for a person.
    pub(crate) comment: Option<String>,
    pub(crate) messages: Vec<Message>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Message {
    pub(crate) name: String,
    pub(crate) comment: Option<String>,
    pub(crate) fields: Vec<Field>,
    pub(crate) messages: Vec<Message>,
    /// Numbers of fields that the schema had once.
    pub(crate) reserved: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// The property, exactly.
    pub(crate) property: String,
    /// Whether `json_name` says the property, or the field's own name does.
    pub(crate) has_json_name: bool,
    pub(crate) number: u32,
    pub(crate) label: Label,
    pub(crate) ty: Type,
    pub(crate) rules: Vec<Rule>,
    pub(crate) absent: Option<Absent>,
    pub(crate) comment: Option<String>,
}

/// Meaning of an absent member in JSON, as far as the message does not say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// A required list or map.
    Empty,
    /// A required member that may be null.
    Null,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    /// A message, or a scalar that is always there.
    Plain,
    /// A scalar with explicit presence.
    Optional,
    Repeated,
    /// A map from strings.
    Map,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Type {
    Bool,
    Double,
    Int32,
    Int64,
    String,
    Value,
    Struct,
    ListValue,
    /// A message of this file, as it is named where the field stands.
    Message(String),
}

impl Type {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Bool => "bool",
            Self::Double => "double",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::String => "string",
            Self::Value => "google.protobuf.Value",
            Self::Struct => "google.protobuf.Struct",
            Self::ListValue => "google.protobuf.ListValue",
            Self::Message(name) => name,
        }
    }

    pub(crate) fn is_message(&self) -> bool {
        matches!(
            self,
            Self::Value | Self::Struct | Self::ListValue | Self::Message(_)
        )
    }
}

/// One rule of `buf.validate`: the path below `(buf.validate.field)`, and the value as it is
/// written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) path: String,
    pub(crate) value: String,
}

impl File {
    /// Path and text, as [`crate::compile`] takes them.
    #[must_use]
    pub fn source(&self) -> (String, String) {
        (self.path.clone(), self.text())
    }
}

impl File {
    /// Meanings of absent fields, by the full name of the field.
    pub(crate) fn absent(&self) -> Vec<(String, Absent)> {
        let mut absent = Vec::new();
        self.messages
            .iter()
            .for_each(|message| message.absent(&self.package, &mut absent));
        absent
    }
}

impl Message {
    fn absent(&self, scope: &str, absent: &mut Vec<(String, Absent)>) {
        let scope = format!("{scope}.{}", self.name);
        let fields = self
            .fields
            .iter()
            .filter_map(|field| Some((format!("{scope}.{}", field.name), field.absent?)));
        absent.extend(fields);
        self.messages
            .iter()
            .for_each(|inner| inner.absent(&scope, absent));
    }

    /// This message and all inside it.
    pub(crate) fn all(&self) -> Vec<&Message> {
        std::iter::once(self)
            .chain(self.messages.iter().flat_map(Message::all))
            .collect()
    }
}
