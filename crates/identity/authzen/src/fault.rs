//! Faults for which a service's answer decides nothing.

use oauth::dialer::DialError;

/// Why a request to a service has no answer that counts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthzenFault {
    /// It was not sent, or no answer came.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The answer is a refusal.
    #[error("the answer has the status {0}")]
    Status(u16),
    /// The answer cannot be read.
    #[error("the answer is malformed: {0}")]
    Malformed(&'static str),
    /// The answer names an address of another origin.
    #[error("the answer points to another origin: `{0}`")]
    Elsewhere(&'static str),
}

impl AuthzenFault {
    /// Whether the same request may have an answer later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Dial(error) => error.is_transient(),
            Self::Status(status) => *status == 429 || *status >= 500,
            Self::Malformed(_) | Self::Elsewhere(_) => false,
        }
    }

    /// Whether the service fails for every request alike: it gives no answer, or knows the gateway not.
    /// An answer about one request alone says nothing of others.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        self.is_transient() || matches!(self, Self::Status(401 | 403))
    }
}
