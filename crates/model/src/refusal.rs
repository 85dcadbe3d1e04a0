//! Owns the one way to say no: a stable code, a sentence, and what to do next.
//! Must not know how a wire spells it, nor anything that may only be told inside.

use std::{borrow::Cow, fmt};

/// The stable codes. Each wire has one table that spells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RefusalCode {
    /// No such tool, resource, prompt or participant, as far as this caller can see.
    UnknownTarget,
    /// The act is known and not granted. Told only where the protocol demands it.
    CapabilityViolation,
    /// Too many requests in too short a time.
    RateLimited,
    /// The upstream's queue is full.
    UpstreamBusy,
    /// The upstream is not running or cannot be reached.
    UpstreamDown,
    /// The upstream did not answer in time.
    UpstreamTimeout,
    /// The upstream answered with something that is no answer.
    UpstreamFailed,
    /// The message cannot be read.
    Malformed,
    /// The message is longer than allowed.
    TooLarge,
    /// The other side does not offer this.
    Unsupported,
    /// Nobody knows who is asking.
    Unauthenticated,
    /// Who is asking is known, and may not.
    Forbidden,
    /// No such session, as far as this caller can see.
    UnknownSession,
    /// Taken back before it was answered.
    Cancelled,
    /// The gateway has reached a limit of its own.
    Overloaded,
    /// The gateway failed; its log says how.
    Internal,
    /// Somebody speaks in another's name. Source: MCPx v0.1 section 5.
    AuthViolation,
    /// An envelope of a protocol that is not spoken here. Source: MCPx v0.1 section 3.
    UnsupportedProtocol,
    /// What must be written down before it is told cannot be written down.
    LogUnavailable,
    /// It was begun, and nobody knows how it ended. It is not tried again.
    OutcomeUnknown,
    /// It does not fit what has become of it: decided already, changed since it was shown, or one's own.
    Conflict,
}

impl RefusalCode {
    /// Every code, in the order of their definition.
    pub const ALL: [Self; 21] = [
        Self::UnknownTarget,
        Self::CapabilityViolation,
        Self::RateLimited,
        Self::UpstreamBusy,
        Self::UpstreamDown,
        Self::UpstreamTimeout,
        Self::UpstreamFailed,
        Self::Malformed,
        Self::TooLarge,
        Self::Unsupported,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::UnknownSession,
        Self::Cancelled,
        Self::Overloaded,
        Self::Internal,
        Self::AuthViolation,
        Self::UnsupportedProtocol,
        Self::LogUnavailable,
        Self::OutcomeUnknown,
        Self::Conflict,
    ];

    /// The code as scripts see it. Never changes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTarget => "unknown_target",
            Self::CapabilityViolation => "capability_violation",
            Self::RateLimited => "rate_limited",
            Self::UpstreamBusy => "upstream_busy",
            Self::UpstreamDown => "upstream_down",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::UpstreamFailed => "upstream_failed",
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::Unsupported => "unsupported",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::UnknownSession => "unknown_session",
            Self::Cancelled => "cancelled",
            Self::Overloaded => "overloaded",
            Self::Internal => "internal",
            Self::AuthViolation => "auth_violation",
            Self::UnsupportedProtocol => "unsupported_protocol",
            Self::LogUnavailable => "log_unavailable",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Conflict => "conflict",
        }
    }
}

impl fmt::Display for RefusalCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// A no, with only what may be told outside. What happened inside is logged where it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What kind of no.
    pub code: RefusalCode,
    /// What happened: one sentence, lower case, no full stop.
    pub message: Cow<'static, str>,
    /// What to do next.
    pub hint: Option<Cow<'static, str>>,
    /// When trying again may help, in milliseconds from now.
    pub retry_after_ms: Option<u64>,
}

impl Refusal {
    /// A refusal without a hint.
    pub fn new(code: RefusalCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), hint: None, retry_after_ms: None }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds when trying again may help, in milliseconds from now.
    #[must_use]
    pub fn retry_after_ms(mut self, retry_after_ms: u64) -> Self {
        self.retry_after_ms = Some(retry_after_ms);
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
        assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
    }

    #[test]
    fn prints_the_message_and_the_hint() {
        let refusal =
            Refusal::new(RefusalCode::RateLimited, "too many requests").hint("wait").retry_after_ms(5);
        assert_eq!(refusal.to_string(), "too many requests (wait)");
        assert_eq!(refusal.retry_after_ms, Some(5));
    }
}
