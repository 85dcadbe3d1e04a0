//! Refusal codes of MCPx: the `error` of a `system/error`, in one table (MCPx v0.1, 3.5.2; reference 2.3).

use model::RefusalCode;

/// The code as receivers see it. A refusal that the protocol does not define keeps Portmoot's code.
#[must_use]
pub(crate) fn code(code: RefusalCode) -> &'static str {
    match code {
        RefusalCode::Malformed => "malformed_envelope",
        RefusalCode::TooLarge => "message_too_large",
        RefusalCode::UnknownTarget
        | RefusalCode::CapabilityViolation
        | RefusalCode::RateLimited
        | RefusalCode::UpstreamBusy
        | RefusalCode::UpstreamDown
        | RefusalCode::UpstreamTimeout
        | RefusalCode::UpstreamFailed
        | RefusalCode::Unsupported
        | RefusalCode::Unauthenticated
        | RefusalCode::Forbidden
        | RefusalCode::UnknownSession
        | RefusalCode::Cancelled
        | RefusalCode::Overloaded
        | RefusalCode::Internal
        | RefusalCode::AuthViolation
        | RefusalCode::UnsupportedProtocol
        | RefusalCode::LogUnavailable
        | RefusalCode::OutcomeUnknown
        | RefusalCode::Conflict => code.as_str(),
    }
}
