//! The messages of one tool.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use prost_reflect::MessageDescriptor;

use crate::common::complete;
use crate::convert::STRUCT;
use crate::costs::Costs;
use crate::file::Absent;
use crate::files::SetError;
use crate::names::pascal;
use crate::set::Descriptors;
use crate::validate::Invalid;
use crate::values::Typed;

/// The messages of a tool's arguments and of its structured result. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ToolSchema {
    descriptors: Descriptors,
    input: MessageDescriptor,
    output: Option<MessageDescriptor>,
    absent: Arc<HashMap<String, Absent>>,
    /// Of a peer's expressions; ours has none.
    costs: Arc<Costs>,
}

/// Parts of a tool that its peer names, as far as it names them.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolReference<'a> {
    /// The name of the tool.
    pub tool: &'a str,
    /// The symbol of its reference: the full name of a message, or a tool's name.
    pub symbol: Option<&'a str>,
    /// The full name of the message of its arguments (`mcp.input_message`).
    pub input: Option<&'a str>,
    /// The full name of the message of its structured result (`mcp.output_message`).
    pub output: Option<&'a str>,
}

/// Equal are schemas whose messages have the same names and files.
impl PartialEq for ToolSchema {
    fn eq(&self, other: &Self) -> bool {
        let output = self.output.as_ref().map(MessageDescriptor::full_name);
        let others_output = other.output.as_ref().map(MessageDescriptor::full_name);
        // The sets last: they are made anew for this.
        self.input.full_name() == other.input.full_name()
            && output == others_output
            && self.absent == other.absent
            && self.set() == other.set()
    }
}

impl Eq for ToolSchema {}

impl ToolSchema {
    /// The schema of a tool with these messages.
    pub(crate) fn new(
        descriptors: &Descriptors,
        input: MessageDescriptor,
        output: Option<MessageDescriptor>,
        absent: Vec<(String, Absent)>,
    ) -> Self {
        Self {
            descriptors: descriptors.clone(),
            input,
            output,
            absent: Arc::new(absent.into_iter().collect()),
            costs: Arc::default(),
        }
    }

    /// Finds the messages of a tool in a peer's descriptors. Its arguments are the message that the
    /// reference names, else the metadata, else the only one with the name `Pascal(tool)Request`;
    /// its result is what the metadata names, else what the method with these arguments returns,
    /// else the `...Response` beside the `...Request`.
    ///
    /// # Errors
    /// [`SetError::NoMessage`], [`SetError::Ambiguous`], and [`SetError::Rule`]: all rules are
    /// compiled here, and none is left out.
    pub fn find(descriptors: &Descriptors, named: &ToolReference<'_>) -> Result<Self, SetError> {
        let input = match (named.symbol, named.input) {
            // Without a dot it is no full name, but that of a tool.
            (Some(symbol), _) if symbol.contains('.') => message(descriptors, symbol)?,
            (Some(symbol), _) => input_of(descriptors, symbol)?,
            (None, Some(name)) => message(descriptors, name)?,
            (None, None) => input_of(descriptors, named.tool)?,
        };
        let output = match named.output {
            Some(name) => Some(message(descriptors, name)?),
            None => output_of(descriptors, &input),
        };
        let found = Self::new(descriptors, input, output, Vec::new());
        let costs = Arc::new(found.costs_of_rules().map_err(SetError::Rule)?);
        Ok(Self { costs, ..found })
    }

    /// Whether this is the other one, or a copy of it. Equal schemas that were read apart are not.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.costs, &other.costs) && self.input == other.input
    }

    /// The message of the arguments; [`STRUCT`] if no message names them.
    #[must_use]
    pub fn input(&self) -> &MessageDescriptor {
        &self.input
    }

    /// The message of the structured result.
    #[must_use]
    pub fn output(&self) -> Option<&MessageDescriptor> {
        self.output.as_ref()
    }

    /// Whether the arguments are a `google.protobuf.Struct`.
    #[must_use]
    pub fn takes_struct(&self) -> bool {
        self.input.full_name() == STRUCT
    }

    /// Meanings of absent fields, by full name.
    pub(crate) fn absent(&self) -> &HashMap<String, Absent> {
        &self.absent
    }

    /// Compiles the rules of all its messages, which the first check would do: about three
    /// milliseconds.
    ///
    /// # Errors
    /// The first rule that cannot be compiled, in words.
    pub fn compile_rules(&self) -> Result<(), String> {
        self.costs_of_rules().map(drop)
    }

    fn costs_of_rules(&self) -> Result<Costs, String> {
        let roots = std::iter::once(self.input.clone()).chain(self.output.clone());
        self.descriptors.rules().compile(roots)
    }

    /// Checks arguments or a result by the rules of `buf.validate` in the schema. What the JSON
    /// Schema demands beyond them is checked on the JSON.
    ///
    /// # Errors
    /// [`Invalid`]: all violations.
    pub fn validate(&self, typed: &Typed) -> Result<(), Invalid> {
        self.descriptors.rules().check(&self.costs, &typed.message)
    }

    /// The descriptors with the tool's messages, and perhaps those of other tools.
    #[must_use]
    pub fn descriptors(&self) -> &Descriptors {
        &self.descriptors
    }

    /// The tool's files as a serialized `google.protobuf.FileDescriptorSet`, each after its
    /// imports, without `google/protobuf/*`, without `buf/validate/validate.proto` and without
    /// source information. Empty if it needs no other.
    #[must_use]
    pub fn set(&self) -> Bytes {
        self.descriptors.set_of(
            [Some(&self.input), self.output.as_ref()]
                .into_iter()
                .flatten(),
        )
    }

    /// The set with all imports.
    #[must_use]
    pub fn full_set(&self) -> Bytes {
        complete(&self.set())
    }
}

/// The message of this full name.
fn message(descriptors: &Descriptors, name: &str) -> Result<MessageDescriptor, SetError> {
    descriptors
        .message(name)
        .ok_or_else(|| SetError::NoMessage(name.to_owned()))
}

/// The arguments of a tool of this name: a message, or the input of a method.
fn input_of(descriptors: &Descriptors, tool: &str) -> Result<MessageDescriptor, SetError> {
    let method = pascal(tool);
    let name = format!("{method}Request");
    let messages = descriptors
        .own_messages()
        .filter(|message| message.name() == name);
    let methods = descriptors.methods().filter(|found| found.name() == method);
    let inputs = methods.map(|found| found.input());
    let mut found: Vec<_> = messages.chain(inputs).collect();
    found.sort_by(|one, other| one.full_name().cmp(other.full_name()));
    found.dedup();
    match found.len() {
        0 => Err(SetError::NoMessage(name)),
        1 => found.pop().ok_or(SetError::NoMessage(name)),
        _ => Err(SetError::Ambiguous(name)),
    }
}

/// The structured result of the tool with these arguments: the output of the only method that has
/// them, or else the `...Response` beside the `...Request`.
fn output_of(descriptors: &Descriptors, input: &MessageDescriptor) -> Option<MessageDescriptor> {
    let methods = descriptors
        .methods()
        .filter(|method| method.input() == *input);
    let mut outputs: Vec<_> = methods.map(|method| method.output()).collect();
    outputs.dedup();
    if let [one] = outputs.as_slice() {
        // A method must return something: one that returns `Empty` has no structured result.
        let is_empty = one.full_name() == "google.protobuf.Empty";
        return (!is_empty).then(|| one.clone());
    }
    let stem = input.full_name().strip_suffix("Request")?;
    descriptors.message(&format!("{stem}Response"))
}
