//! Reasons why a reference has no schema.

use client::LinkError;

use crate::connect::ConnectError;

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
    Refused(ConnectError),
    /// An HTTP status without an error of the registry, a redirect among them.
    #[error("the registry answered with HTTP status {0}")]
    Status(u16),
    /// The registry has neither of the two APIs.
    #[error("the registry has no FileDescriptorSetService")]
    Absent,
    /// The answer is not what was asked for.
    #[error("the registry's answer cannot be used")]
    Malformed,
    /// A module's files, or what they depend on, do not have the digest that the registry or the
    /// configuration names.
    #[error(
        "the digest of {module} is {computed}, not {expected}: its sources are not what they should be"
    )]
    Digest {
        /// The module; what it depends on is named by its commit.
        module: String,
        /// As `buf.lock` has it: `b5:` and hexadecimal digits.
        expected: String,
        /// Digest of the sources that came, in the same form.
        computed: String,
    },
    /// The configuration has a digest of the module, and the registry gives no sources that could
    /// be compared with it.
    #[error("the registry gives no sources that could be compared with the configured digest")]
    NoSources,
    /// The sources are no proto files, or do not have what is wanted.
    #[error("its sources cannot be used: {0}")]
    Sources(String),
    /// The token is no header value; nothing was sent.
    #[error("the registry's token has characters that no token has")]
    Token,
}
