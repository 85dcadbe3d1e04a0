//! Refusal: a stable code, a sentence, and what to do next.

use std::{borrow::Cow, fmt};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// Stable codes. Each wire has one table that translates them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum RefusalCode {
    /// No such tool, resource, prompt or participant, as far as this caller can see.
    UnknownTarget,
    /// The target is known and the act not granted. Used only where the protocol requires it.
    CapabilityViolation,
    /// Too many requests in too short a time.
    RateLimited,
    /// The upstream's queue is full.
    UpstreamBusy,
    /// The upstream is not running or cannot be reached.
    UpstreamDown,
    /// The upstream did not answer in time.
    UpstreamTimeout,
    /// The upstream sent an invalid answer.
    UpstreamFailed,
    /// The message cannot be read.
    Malformed,
    /// The message is longer than its limit.
    TooLarge,
    /// The other side does not support this.
    Unsupported,
    /// The caller is not authenticated.
    Unauthenticated,
    /// The caller's access token has expired.
    TokenExpired,
    /// The caller's access token was issued for another resource.
    TokenForeign,
    /// The caller's access token is signed with a key that its issuer does not publish.
    TokenUnknownKey,
    /// The issuer of the caller's access token is not configured.
    IssuerUnknown,
    /// The issuer of the caller's access token cannot be asked now.
    IssuerUnreachable,
    /// The caller's access token is valid, and no rule gives its subject a place here.
    NoPlace,
    /// The caller may do this, and its access token was issued for less.
    InsufficientScope,
    /// The caller is authenticated, and may not do this.
    Forbidden,
    /// No such session, as far as this caller can see.
    UnknownSession,
    /// The caller cancelled the request before its answer.
    Cancelled,
    /// The gateway has reached a limit of its own.
    Overloaded,
    /// The gateway failed; its log has the cause.
    Internal,
    /// The envelope's sender is not the participant of the connection. Source: MCPx v0.1 section 5.
    AuthViolation,
    /// An envelope of an unsupported protocol. Source: MCPx v0.1 section 3.
    UnsupportedProtocol,
    /// The gateway cannot write the record that must precede the act.
    LogUnavailable,
    /// The act began and its outcome is unknown. The gateway does not repeat it.
    OutcomeUnknown,
    /// The act conflicts with the state of its object: decided already, changed since the review,
    /// or the reviewer's own.
    Conflict,
    /// The schema of a tool cannot be had: its reference does not resolve, or it cannot be
    /// compiled. Source: proto-mcp v1.0, "Error Codes".
    SchemaUnresolved,
    /// The arguments break a rule of the tool's schema. Source: proto-mcp v1.0, "Error Codes".
    SchemaViolation,
    /// The server wants a sign-in, of the operator or of this caller, that was not made yet.
    UpstreamLoginNeeded,
    /// The sign-in at the server is lost: its authorization server refused to renew it.
    UpstreamLoginLost,
    /// The server's authorization server registers no clients, and none is configured.
    UpstreamClientNeeded,
    /// The metadata of the server, or of its authorization server, are not acceptable.
    UpstreamMetadataRefused,
    /// The server has changed the tool or prompt since it was pinned, and no operator has approved
    /// that.
    ToolChanged,
}

/// Why one field of a call's arguments is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The path of the field, such as `filter.tags[2]`. Empty for the arguments as a whole.
    pub field: String,
    /// The rule's id, such as `string.min_len`.
    pub rule: String,
    /// Message about the fault, for people.
    pub message: String,
}

impl RefusalCode {
    /// Every code, in the order of their definition.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Whether the caller has presented nothing, or nothing that is valid: another token would
    /// help.
    #[must_use]
    pub fn is_unauthenticated(self) -> bool {
        matches!(
            self,
            Self::Unauthenticated
                | Self::TokenExpired
                | Self::TokenForeign
                | Self::TokenUnknownKey
                | Self::IssuerUnknown
        )
    }

    /// The code as scripts see it. Never changes.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A refusal, with only the details that participants may see. Internal causes are logged where
/// they occur.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: RefusalCode,
    /// The cause: one sentence, lower case, no full stop.
    pub message: Cow<'static, str>,
    /// The next step for the caller.
    pub hint: Option<Cow<'static, str>>,
    /// The time after which a retry may succeed, in milliseconds from now.
    pub retry_after_ms: Option<u64>,
    /// Faults of the arguments, field by field.
    pub violations: Vec<Violation>,
    /// The scopes that an access token needs for this, with blanks between them.
    pub scope: Option<Box<str>>,
}

impl Refusal {
    /// A refusal without a hint.
    pub fn new(code: RefusalCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            retry_after_ms: None,
            violations: Vec::new(),
            scope: None,
        }
    }

    /// Adds the next step for the caller.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the time after which a retry may succeed, in milliseconds from now.
    #[must_use]
    pub fn retry_after_ms(mut self, retry_after_ms: u64) -> Self {
        self.retry_after_ms = Some(retry_after_ms);
        self
    }

    /// Adds the scopes that an access token needs for this, with blanks between them.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<Box<str>>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// Adds what is wrong with the arguments.
    #[must_use]
    pub fn violations(mut self, violations: Vec<Violation>) -> Self {
        self.violations = violations;
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(out, " ({hint})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_distinct_and_complete() {
        let names: BTreeSet<&str> = RefusalCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), RefusalCode::ALL.len());
        assert!(names.iter().all(|name| {
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        }));
    }

    #[test]
    fn prints_the_message_and_the_hint() {
        let refusal = Refusal::new(RefusalCode::RateLimited, "too many requests")
            .hint("wait")
            .retry_after_ms(5);
        assert_eq!(refusal.to_string(), "too many requests (wait)");
        assert_eq!(refusal.retry_after_ms, Some(5));
    }
}
