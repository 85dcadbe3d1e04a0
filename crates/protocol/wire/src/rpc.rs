//! JSON-RPC 2.0 as MCP uses it: messages, ids, batches, and a writer.

mod author;
mod batch;
pub mod code;
mod id;
mod message;

pub use author::{error, error_object, notification, one_line, request, result};
pub use batch::read_batch;
pub use id::Id;
pub use message::{ErrorObject, Malformed, Message, MessageKind};

#[cfg(test)]
mod tests;
