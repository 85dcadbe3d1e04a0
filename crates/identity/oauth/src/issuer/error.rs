//! Failures to ask an issuer.

use crate::dialer::DialError;

/// Why an issuer could not be asked. The text is for the log, not for callers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IssuerError {
    /// It, or the network to it, failed.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// It answered with this status.
    #[error("`{0}` answered with {1}")]
    Status(String, u16),
    /// Its answer cannot be used.
    #[error("`{0}`: {1}")]
    Answer(String, String),
}
