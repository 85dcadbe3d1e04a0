//! Reasons why a reference has no schema.

use client::LinkError;

use crate::connect::Error;

/// Why a reference has no schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// Its host is not allowed; nothing was sent.
    #[error("the registry {0} is not allowed")]
    ForeignHost(String),
    /// No answer.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The registry refused it.
    #[error("the registry refused it: {0}")]
    Refused(Error),
    /// An HTTP status without an error of the registry, a redirect among them.
    #[error("the registry answered with HTTP status {0}")]
    Status(u16),
    /// The registry has neither of the two APIs.
    #[error("the registry has no FileDescriptorSetService")]
    Absent,
    /// The answer is not what was asked for.
    #[error("the registry's answer cannot be used")]
    Malformed,
    /// The token is no header value; nothing was sent.
    #[error("the registry's token has characters that no token has")]
    Token,
}
