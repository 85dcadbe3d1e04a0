//! The messages of one tool.

use bytes::Bytes;
use prost_reflect::MessageDescriptor;

use crate::common::complete;
use crate::convert::STRUCT;
use crate::files::SetError;
use crate::names::pascal;
use crate::set::Descriptors;

/// The messages of a tool's arguments and of its structured result. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ToolSchema {
    descriptors: Descriptors,
    input: MessageDescriptor,
    output: Option<MessageDescriptor>,
}

/// What a peer says of its tool, as far as it says it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Named<'a> {
    /// The name of the tool.
    pub tool: &'a str,
    /// The symbol of its reference: the full name of a message, or a tool's name.
    pub symbol: Option<&'a str>,
    /// The full name of the message of its arguments (`mcp.input_message`).
    pub input: Option<&'a str>,
    /// The full name of the message of its structured result (`mcp.output_message`).
    pub output: Option<&'a str>,
}

impl ToolSchema {
    /// The schema of a tool with these messages.
    pub(crate) fn new(
        descriptors: &Descriptors,
        input: MessageDescriptor,
        output: Option<MessageDescriptor>,
    ) -> Self {
        Self { descriptors: descriptors.clone(), input, output }
    }

    /// Finds the messages of a tool in a peer's descriptors. Its arguments are the message that the reference names, else the
    /// metadata, else the only one with the name `Pascal(tool)Request`; its result is what the metadata names, else what the method
    /// with these arguments returns, else the `...Response` beside the `...Request`.
    ///
    /// # Errors
    /// [`SetError::NoMessage`], [`SetError::Ambiguous`].
    pub fn find(descriptors: &Descriptors, named: &Named<'_>) -> Result<Self, SetError> {
        let exact =
            |name: &str| descriptors.message(name).ok_or_else(|| SetError::NoMessage(name.to_owned()));
        let input = match (named.symbol, named.input) {
            (Some(symbol), _) if symbol.contains('.') => exact(symbol)?,
            (Some(symbol), _) => input_of(descriptors, symbol)?,
            (None, Some(name)) => exact(name)?,
            (None, None) => input_of(descriptors, named.tool)?,
        };
        let output = match named.output {
            Some(name) => Some(exact(name)?),
            None => output_of(descriptors, &input),
        };
        Ok(Self::new(descriptors, input, output))
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

    /// The descriptors with the tool's messages, and perhaps those of other tools.
    #[must_use]
    pub fn descriptors(&self) -> &Descriptors {
        &self.descriptors
    }

    /// The tool's files as a serialized `google.protobuf.FileDescriptorSet`, each after its imports, without
    /// `google/protobuf/*`, without `buf/validate/validate.proto` and without source information. Empty if it needs no other.
    #[must_use]
    pub fn set(&self) -> Bytes {
        self.descriptors.set_of([Some(&self.input), self.output.as_ref()].into_iter().flatten())
    }

    /// The same with all imports.
    #[must_use]
    pub fn full_set(&self) -> Bytes {
        complete(&self.set())
    }
}

/// The arguments of a tool of this name: a message, or those of a method.
fn input_of(descriptors: &Descriptors, tool: &str) -> Result<MessageDescriptor, SetError> {
    let method = pascal(tool);
    let name = format!("{method}Request");
    let messages = descriptors.own_messages().filter(|message| message.name() == name);
    let methods = descriptors.pool().services().flat_map(|service| service.methods().collect::<Vec<_>>());
    let inputs = methods.filter(|found| found.name() == method).map(|found| found.input());
    let mut found: Vec<_> = messages.chain(inputs).collect();
    found.sort_by(|one, other| one.full_name().cmp(other.full_name()));
    found.dedup();
    match found.len() {
        0 => Err(SetError::NoMessage(name)),
        1 => found.pop().ok_or(SetError::NoMessage(name)),
        _ => Err(SetError::Ambiguous(name)),
    }
}

fn output_of(descriptors: &Descriptors, input: &MessageDescriptor) -> Option<MessageDescriptor> {
    let methods = descriptors.pool().services().flat_map(|service| service.methods().collect::<Vec<_>>());
    let mut outputs: Vec<_> =
        methods.filter(|method| method.input() == *input).map(|method| method.output()).collect();
    outputs.dedup();
    if let [one] = outputs.as_slice() {
        return (one.full_name() != "google.protobuf.Empty").then(|| one.clone());
    }
    let sibling = input.full_name().strip_suffix("Request").map(|stem| format!("{stem}Response"))?;
    descriptors.message(&sibling)
}
