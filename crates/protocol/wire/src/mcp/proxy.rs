//! The proxy tool (MCP Proxy Extension v0.1, wire-compatible with Magg 1.3.0): its arguments, the
//! request that a call stands for, and answers as results of the tool. Bytes are spliced; nothing
//! is decoded and written again.

mod answer;
mod arguments;
mod batch;
mod query;

use strum::{EnumString, IntoStaticStr};

pub use answer::{NOT_IN_A_BATCH, answered, operated};
pub use arguments::{
    BATCH_MAX, Filter, LIST_MAX, ProxyCall, ProxyList, ProxyPage, ProxyRequest, ReadOperation,
    params_of,
};
pub use batch::{BatchResult, batched, operation_params};
pub use query::{ListedEntry, Query, query, resource_name};

/// The name of the tool.
pub const NAME: &str = "proxy";

/// Subject of an operation (section 2.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum ProxySubject {
    /// A tool.
    Tool,
    /// A resource, or a template of resources.
    Resource,
    /// A prompt.
    Prompt,
}

impl ProxySubject {
    /// As the argument `type` and the annotation `proxyType` spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// As Magg's errors spell it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Tool => "Tool",
            Self::Resource => "Resource",
            Self::Prompt => "Prompt",
        }
    }

    /// The method of a call.
    #[must_use]
    pub fn method(self) -> &'static str {
        match self {
            Self::Tool => "tools/call",
            Self::Resource => "resources/read",
            Self::Prompt => "prompts/get",
        }
    }

    /// The text about a target that does not exist for the caller, in Magg's words.
    #[must_use]
    pub fn unknown(self, path: &str) -> String {
        match self {
            Self::Tool => format!("Unknown tool: '{path}'"),
            Self::Resource => failed(&format!("Resource not found: Unknown resource: '{path}'")),
            Self::Prompt => failed(&format!("Unknown prompt: '{path}'")),
        }
    }

    /// The text about a target of `info` that does not exist for the caller.
    #[must_use]
    pub fn not_found(self, path: &str) -> String {
        failed(&format!("{} '{path}' not found", self.title()))
    }
}

/// A fault of an operation, in Magg's words.
pub(crate) fn failed(why: &str) -> String {
    format!("Error calling tool '{NAME}': {why}")
}

#[cfg(test)]
mod tests;
