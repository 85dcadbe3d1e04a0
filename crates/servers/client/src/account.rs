//! Faults of accounts at servers, and the refusals that callers see of them.

use model::{Refusal, RefusalCode};

/// Why an account has no token for a request. People read it; it has no token, no secret and no URL
/// with one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountFault {
    /// The operator, or the caller where accounts are theirs, has to sign in.
    #[error("the server wants a sign-in")]
    LoginNeeded,
    /// The operator, or the caller where accounts are theirs, has to sign in again: the server's
    /// authorization server refused to renew the token.
    #[error("the authorization server refused to renew the sign-in")]
    LoginLost,
    /// The caller has to enter its key.
    #[error("the server wants a key of each caller")]
    KeyNeeded,
    /// The participant has to enter another key: the server refused the one before.
    #[error("the server refused the key of the caller")]
    KeyRefused,
    /// The token is good and its scopes are too narrow for this request.
    #[error("the request needs the scopes `{0}`")]
    ScopesNeeded(String),
    /// The scopes are too narrow, and signing in again has not changed that.
    #[error("the server wants the scopes `{0}` and has not granted them in {1} sign-ins")]
    ScopesRefused(String, usize),
    /// The authorization server registers no clients by itself, and none is configured.
    #[error("{0} registers no clients by itself")]
    ClientNeeded(String),
    /// The metadata of the server or of its authorization server are not acceptable.
    #[error("{0}")]
    MetadataRefused(String),
    /// The authorization server refused a token to a machine.
    #[error("the authorization server refused a token: {0}")]
    Refused(String),
    /// The authorization server cannot be reached; the account is tried again.
    #[error("the authorization server cannot be reached: {why}")]
    Waiting {
        /// The reason.
        why: String,
        /// Milliseconds until the next attempt.
        retry_after_ms: u64,
    },
    /// Another sign-in, or another configuration of the server, has replaced the one that the
    /// request was for.
    #[error("another sign-in or configuration is in force")]
    Replaced,
    /// The sign-in cannot be kept: the gateway has no key to seal it, or its journal fails.
    #[error("{0}")]
    NotKept(String),
}

impl AccountFault {
    /// Whether only a person, or the operator, can change it: no request succeeds meanwhile.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::LoginNeeded
            | Self::LoginLost
            | Self::KeyNeeded
            | Self::KeyRefused
            | Self::ClientNeeded(_)
            | Self::MetadataRefused(_)
            | Self::Refused(_)
            | Self::NotKept(_) => true,
            Self::ScopesNeeded(_)
            | Self::ScopesRefused(..)
            | Self::Waiting { .. }
            | Self::Replaced => false,
        }
    }

    /// The refusal for callers whose request has no token at this server. The name of an
    /// authorization server is for operators.
    #[must_use]
    pub fn refusal(&self, server: &str) -> Refusal {
        let new = |code, what: &str| Refusal::new(code, format!("the server `{server}` {what}"));
        let login = || format!("sign in: portmoot servers login {server}");
        let enter = || format!("enter it: portmoot servers login {server} --key");
        match self {
            Self::KeyNeeded => {
                new(RefusalCode::UpstreamLoginNeeded, "wants a key of yours").hint(enter())
            }
            Self::KeyRefused => {
                new(RefusalCode::UpstreamLoginLost, "refused your key").hint(enter())
            }
            Self::LoginNeeded => {
                new(RefusalCode::UpstreamLoginNeeded, "wants a sign-in").hint(login())
            }
            Self::LoginLost => new(
                RefusalCode::UpstreamLoginLost,
                "refused to renew its sign-in",
            )
            .hint(login()),
            Self::ScopesNeeded(scopes) => new(
                RefusalCode::UpstreamLoginNeeded,
                &format!("wants the scopes `{scopes}` for this call"),
            )
            .hint(login()),
            Self::ScopesRefused(scopes, times) => new(
                RefusalCode::UpstreamFailed,
                &format!(
                    "wants the scopes `{scopes}` for this call and did not grant them in {times} sign-ins"
                ),
            ),
            Self::ClientNeeded(_) => new(
                RefusalCode::UpstreamClientNeeded,
                "needs a client that is registered by hand",
            )
            .hint("tell the operator: portmoot servers auth says what to configure"),
            Self::MetadataRefused(_) => new(
                RefusalCode::UpstreamMetadataRefused,
                "describes its authorization in a way that is not acceptable",
            )
            .hint("tell the operator: portmoot servers auth says what is wrong"),
            Self::Refused(_) => new(
                RefusalCode::UpstreamLoginLost,
                "refuses the gateway a token",
            )
            .hint("tell the operator"),
            Self::Waiting { retry_after_ms, .. } => new(
                RefusalCode::UpstreamDown,
                "cannot be used: its authorization server cannot be reached",
            )
            .hint("try again later")
            .retry_after_ms(*retry_after_ms),
            Self::Replaced => new(
                RefusalCode::UpstreamDown,
                "has another sign-in or configuration now",
            )
            .hint("try again"),
            Self::NotKept(_) => new(
                RefusalCode::UpstreamLoginNeeded,
                "wants a sign-in that the gateway cannot keep",
            )
            .hint("tell the operator"),
        }
    }
}
