//! Messages whose JSON is not an object of their fields.

use prost_reflect::{FieldDescriptor, MessageDescriptor};

pub(super) enum WellKnown {
    Struct,
    Value,
    List,
    /// A scalar in a message, so that it can be absent.
    Wrapper(FieldDescriptor),
    /// A message that protobuf's own JSON writes in a form of its own, such as a time.
    Special,
    No,
}

impl WellKnown {
    pub(super) fn of(message: &MessageDescriptor) -> Self {
        let Some(name) = message.full_name().strip_prefix("google.protobuf.") else {
            return Self::No;
        };
        match name {
            "Struct" => Self::Struct,
            "Value" => Self::Value,
            "ListValue" => Self::List,
            "Timestamp" | "Duration" | "FieldMask" | "Any" => Self::Special,
            "BoolValue" | "BytesValue" | "DoubleValue" | "FloatValue" | "Int32Value"
            | "Int64Value" | "StringValue" | "UInt32Value" | "UInt64Value" => {
                message.get_field(1).map_or(Self::No, Self::Wrapper)
            }
            _ => Self::No,
        }
    }
}

/// Numbers of `google.protobuf.Value`.
pub(super) mod value {
    pub(crate) const NULL: u32 = 1;
    pub(crate) const NUMBER: u32 = 2;
    pub(crate) const TEXT: u32 = 3;
    pub(crate) const BOOL: u32 = 4;
    pub(crate) const STRUCT: u32 = 5;
    pub(crate) const LIST: u32 = 6;
}

/// The number of the only field of `Struct`, `ListValue` and the wrappers.
pub(super) const ONLY: u32 = 1;
