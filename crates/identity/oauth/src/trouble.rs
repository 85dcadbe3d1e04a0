//! Troubles of a sign-in: what went wrong at the server's metadata or at its authorization server.

use std::time::Duration;

use crate::dialer::DialError;

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The fetch failed or was refused.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The authorization server failed, or wants fewer requests.
    #[error("{host} answered {status}")]
    Busy {
        /// Its host.
        host: String,
        /// 429 or 5xx.
        status: u16,
        /// Time that the server wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// A document is not acceptable; the sentence says which and why.
    #[error("{0}")]
    Metadata(String),
    /// The authorization server registers no clients by itself.
    #[error("{0} registers no clients by itself")]
    NoRegistration(String),
    /// Another node of the cluster is to renew the tokens, or the time for it is over here.
    #[error("another node of the cluster is to renew the tokens")]
    Elsewhere,
    /// The authorization server refused (RFC 6749 section 5.2).
    #[error("{host} refused: {error}{}", .description.as_ref().map(|text| format!(" ({text})")).unwrap_or_default())]
    Refused {
        /// Its host.
        host: String,
        /// The code, such as `invalid_grant`.
        error: String,
        /// Its words, made safe.
        description: Option<String>,
    },
}

impl Trouble {
    /// Whether the same step may succeed later, so that nothing is given up.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Dial(error) => error.is_transient(),
            Self::Busy { .. } | Self::Elsewhere => true,
            Self::Refused { error, .. } => {
                matches!(
                    error.as_str(),
                    "temporarily_unavailable" | "server_error" | "slow_down"
                )
            }
            Self::Metadata(_) | Self::NoRegistration(_) => false,
        }
    }

    /// Whether the authorization server has refused in so many words. Anything else that it
    /// answers, such as a page of a proxy in front of it, says nothing about the tokens.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        let is_code = |code: &str| {
            code.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        };
        matches!(self, Self::Refused { error, .. } if is_code(error)) && !self.is_transient()
    }

    /// Whether this is an OAuth error with this code.
    #[must_use]
    pub fn is_error(&self, code: &str) -> bool {
        matches!(self, Self::Refused { error, .. } if error == code)
    }
}
