//! Values of tools: JSON to messages and back.

mod encode;
mod known;
pub(crate) mod path;
mod print;
mod typed;

use std::collections::HashMap;

use prost_reflect::{DynamicMessage, MessageDescriptor};

use crate::common::common;
use crate::convert::STRUCT;
use crate::tool::ToolSchema;
pub use path::ValueError;
pub use typed::{Typed, UnsaidParts, type_url};

/// The message of any JSON value.
const VALUE: &str = "google.protobuf.Value";

impl ToolSchema {
    /// Reads the arguments of a call, a JSON object.
    ///
    /// # Errors
    /// [`ValueError`]: a member that the schema does not name, another type, an integer that does
    /// not fit, and more than 100 messages inside each other.
    pub fn arguments_from_json(&self, json: &[u8]) -> Result<Typed, ValueError> {
        encode::encode(json, self.input())
    }

    /// Reads the arguments of a call from the parts of an `Any`: the message of the arguments, or a
    /// `google.protobuf.Struct`. Both parts are empty where a call has none.
    ///
    /// # Errors
    /// As [`ToolSchema::arguments_from_json`]; also another type, bytes that are no message, and
    /// unknown fields.
    pub fn arguments_from_message(
        &self,
        type_url: &str,
        bytes: &[u8],
        marks: UnsaidParts,
    ) -> Result<Typed, ValueError> {
        let wanted = self.input().full_name();
        let name = if type_url.is_empty() && bytes.is_empty() {
            wanted
        } else {
            last(type_url)
        };
        if name != wanted && name == STRUCT {
            // By way of its JSON, so that its members are checked as those of any JSON caller.
            let message = self.decode(STRUCT, bytes)?;
            return self.arguments_from_json(&print::print(&message, &marks, &HashMap::new())?);
        }
        if name != wanted {
            return Err(path::whole(format!("is a {name}, not a {wanted}")));
        }
        let message = self.decode(name, bytes)?;
        // They would be lost on the way to a server that is given JSON, and no rule has seen them.
        path::refuse_unknown(&message)?;
        Ok(Typed { message, marks })
    }

    /// Reads the structured result of a call; a tool without a message for it gives a
    /// `google.protobuf.Value`.
    ///
    /// # Errors
    /// As [`ToolSchema::arguments_from_json`].
    pub fn result_from_json(&self, json: &[u8]) -> Result<Typed, ValueError> {
        match self.output() {
            Some(output) => encode::encode(json, output),
            None => encode::encode(json, &self.known(VALUE)?),
        }
    }

    /// Reads the structured result of a call from the parts of an `Any`: its message, or any JSON
    /// value. Fields that the descriptors do not have are left out.
    ///
    /// # Errors
    /// [`ValueError`]: another type, and bytes that are no message.
    pub fn result_from_message(
        &self,
        type_url: &str,
        bytes: &[u8],
        marks: UnsaidParts,
    ) -> Result<Typed, ValueError> {
        let name = last(type_url);
        let is_output = self
            .output()
            .is_some_and(|output| output.full_name() == name);
        if !is_output && ![STRUCT, VALUE, "google.protobuf.ListValue"].contains(&name) {
            return Err(path::whole(format!(
                "is a {name}, not the result of the tool"
            )));
        }
        Ok(Typed {
            message: self.decode(name, bytes)?,
            marks,
        })
    }

    /// Writes arguments or a result as JSON, equal to the JSON that they came from. Lists that a
    /// JSON Schema requires are there even if they are empty, and required members that may be null
    /// are null.
    ///
    /// # Errors
    /// [`ValueError`]: a value that JSON does not have, such as infinity.
    pub fn json(&self, typed: &Typed) -> Result<Vec<u8>, ValueError> {
        print::print(&typed.message, &typed.marks, self.absent())
    }

    /// The descriptor of a message by its full name.
    fn known(&self, name: &str) -> Result<MessageDescriptor, ValueError> {
        self.descriptors()
            .message(name)
            .ok_or_else(|| path::whole(format!("is a {name}, which is not known")))
    }

    /// Reads bytes as the message of this full name.
    fn decode(&self, name: &str, bytes: &[u8]) -> Result<DynamicMessage, ValueError> {
        DynamicMessage::decode(self.known(name)?, bytes)
            .map_err(|why| path::whole(format!("is no {name}: {why}")))
    }
}

/// Any JSON object as a `google.protobuf.Struct`: arguments of a tool whose schema is not known, or
/// does not name them all.
///
/// # Errors
/// As [`ToolSchema::arguments_from_json`].
pub fn struct_from_json(json: &[u8]) -> Result<Typed, ValueError> {
    let Some(message) = common().pool.get_message_by_name(STRUCT) else {
        return Err(path::whole(format!("is no {STRUCT}")));
    };
    encode::encode(json, &message)
}

/// The name of the type in a `type_url`, whatever comes before it.
fn last(type_url: &str) -> &str {
    type_url.rsplit('/').next().unwrap_or_default()
}
