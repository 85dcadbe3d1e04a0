//! Proxy errors: no tool, failed operations, answers that are not what the extension prescribes.

use serde_json::value::RawValue;

use crate::CallError;

/// Why an operation of a [`ProxyClient`](super::ProxyClient) failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ProxyError {
    /// The request failed, or its answer is a JSON-RPC error.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The server has no proxy tool; nothing was sent.
    #[error("the server has no proxy tool")]
    NoProxy,
    /// The tool answered with an error (section 5); this is its text, written for a model.
    #[error("{0}")]
    Failed(String),
    /// The result is not final: it asks for something first, or names a task.
    #[error("the result is not final")]
    Unfinished(Box<RawValue>),
    /// The answer is not what section 3 prescribes.
    #[error("unreadable answer of the proxy tool: {0}")]
    Unreadable(&'static str),
    /// The annotations name a type that the operation does not give (section 4.1.2).
    #[error("the proxy tool answered with the type `{0}`")]
    UnexpectedType(String),
    /// A list is longer than [`LIST_BYTES_MAX`](super::LIST_BYTES_MAX), or has more pages than
    /// [`PAGES_MAX`](super::PAGES_MAX).
    #[error("a list is longer than the limit")]
    ListTooLong,
    /// A list ended before the number of entries that the tool had named.
    #[error("the list ended after {read} of {total} entries")]
    ListCut {
        /// Entries that arrived.
        read: usize,
        /// Entries that the annotation `totalCount` named last.
        total: usize,
    },
}
