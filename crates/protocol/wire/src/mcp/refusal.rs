//! Refusals in MCP: JSON-RPC code, message, data and HTTP status for each era, in one table.

use model::{Refusal, RefusalCode, Violation};

use super::code::{RESOURCE_NOT_FOUND, SCHEMA_UNRESOLVED, SCHEMA_VIOLATION};
use super::method::{TargetKind, lookup};
use super::rejection::Rejection;
use super::version::Era;
use crate::rpc::code::{
    INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR,
};

/// Encodes the refusal of a request of `method` with this target.
///
/// For legacy callers the status of a refused request is 200: a 404 would mean that their session
/// has ended.
#[must_use]
pub fn encode(refusal: &Refusal, era: Era, method: &str, target: Option<&str>) -> Rejection {
    let known = lookup(method);
    let aims_at_uri = known.is_some_and(|method| method.target == TargetKind::Uri);
    // Portmoot's own codes, from -31001, lie outside -32768..-32000, which JSON-RPC and MCP
    // reserve.
    let (code, legacy, modern) = match refusal.code {
        RefusalCode::UnknownTarget if known.is_none() => (METHOD_NOT_FOUND, 200, 404),
        RefusalCode::UnknownTarget => match era {
            Era::Legacy if aims_at_uri => (RESOURCE_NOT_FOUND, 200, 200),
            Era::Legacy | Era::Modern => (INVALID_PARAMS, 200, 200),
        },
        RefusalCode::CapabilityViolation => (-31001, 200, 200),
        RefusalCode::RateLimited => (-31002, 200, 200),
        RefusalCode::UpstreamBusy => (-31003, 200, 200),
        RefusalCode::UpstreamDown => (-31004, 200, 200),
        RefusalCode::UpstreamTimeout => (-31005, 200, 200),
        RefusalCode::UpstreamFailed => (-31006, 200, 200),
        // If the method is known, only the params can be wrong.
        RefusalCode::Malformed if known.is_some() => (INVALID_PARAMS, 200, 400),
        RefusalCode::Malformed => (INVALID_REQUEST, 400, 400),
        RefusalCode::TooLarge => (-31007, 413, 413),
        RefusalCode::Unsupported => (METHOD_NOT_FOUND, 200, 404),
        RefusalCode::Unauthenticated => (-31008, 401, 401),
        RefusalCode::TokenExpired => (-31018, 401, 401),
        RefusalCode::TokenForeign => (-31019, 401, 401),
        RefusalCode::TokenUnknownKey => (-31020, 401, 401),
        RefusalCode::IssuerUnknown => (-31021, 401, 401),
        RefusalCode::IssuerUnreachable => (-31022, 503, 503),
        RefusalCode::NoPlace => (-31023, 403, 403),
        RefusalCode::InsufficientScope => (-31024, 403, 403),
        RefusalCode::Forbidden => (-31009, 403, 403),
        RefusalCode::UnknownSession => (-31010, 404, 400),
        RefusalCode::Cancelled => (-31011, 200, 200),
        RefusalCode::Overloaded => (-31012, 503, 503),
        RefusalCode::Internal => (INTERNAL_ERROR, 200, 200),
        RefusalCode::AuthViolation => (-31013, 403, 403),
        RefusalCode::UnsupportedProtocol => (-31014, 400, 400),
        RefusalCode::LogUnavailable => (-31015, 503, 503),
        RefusalCode::OutcomeUnknown => (-31016, 200, 200),
        RefusalCode::Conflict => (-31017, 200, 200),
        RefusalCode::UpstreamLoginNeeded => (-31030, 200, 200),
        RefusalCode::UpstreamLoginLost => (-31031, 200, 200),
        RefusalCode::UpstreamClientNeeded => (-31032, 200, 200),
        RefusalCode::UpstreamMetadataRefused => (-31033, 200, 200),
        RefusalCode::ToolChanged => (-31025, 200, 200),
        // proto-mcp's own codes, the same on every wire.
        RefusalCode::SchemaUnresolved => (SCHEMA_UNRESOLVED, 200, 200),
        RefusalCode::SchemaViolation => (SCHEMA_VIOLATION, 200, 200),
    };
    let status = match era {
        Era::Legacy => legacy,
        Era::Modern => modern,
    };
    let names_uri = aims_at_uri && refusal.code == RefusalCode::UnknownTarget;
    let uri = if names_uri { target } else { None };
    Rejection {
        status,
        code,
        message: refusal.to_string(),
        data: Some(data(refusal, uri)),
    }
}

/// The HTTP status of a JSON-RPC error that a door returns before it accepts a request.
#[must_use]
pub fn status(code: i64, era: Era) -> u16 {
    match (code, era) {
        (PARSE_ERROR | INVALID_REQUEST, Era::Legacy | Era::Modern) => 400,
        (METHOD_NOT_FOUND, Era::Modern) => 404,
        (INVALID_PARAMS | -32099..=-32020, Era::Modern) => 400,
        (_, Era::Legacy | Era::Modern) => 200,
    }
}

/// `data` of the error: the stable code, the hint, the wait, and the URI of a resource.
fn data(refusal: &Refusal, uri: Option<&str>) -> Vec<u8> {
    json::object(|data| {
        data.text("code", refusal.code.as_str())
            .optional_text("hint", refusal.hint.as_deref());
        if let Some(wait) = refusal.retry_after_ms {
            data.number("retryAfterMs", wait);
        }
        data.optional_text("uri", uri)
            .optional_text("scope", refusal.scope.as_deref());
        if !refusal.violations.is_empty() {
            data.array("violations", |violations| {
                for Violation {
                    field,
                    rule,
                    message,
                } in &refusal.violations
                {
                    violations.object(|one| {
                        one.text("field", field)
                            .text("rule", rule)
                            .text("message", message);
                    });
                }
            });
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::rpc::Id;

    fn encoded(code: RefusalCode, era: Era, method: &str, target: &str) -> (u16, i64, String) {
        let encoded = encode(&Refusal::new(code, "m"), era, method, Some(target));
        (
            encoded.status,
            encoded.code,
            String::from_utf8(encoded.data.unwrap()).unwrap(),
        )
    }

    #[test]
    fn unknown_targets_have_the_code_of_the_era() {
        let unknown = RefusalCode::UnknownTarget;
        for (era, method, status, code, uri) in [
            (Era::Legacy, "tools/call", 200, -32602, false),
            (Era::Modern, "tools/call", 200, -32602, false),
            (Era::Legacy, "resources/read", 200, -32002, true),
            (Era::Modern, "resources/read", 200, -32602, true),
            (Era::Legacy, "vendor/x", 200, -32601, false),
            (Era::Modern, "vendor/x", 404, -32601, false),
        ] {
            let data = if uri {
                r#"{"code":"unknown_target","uri":"t"}"#
            } else {
                r#"{"code":"unknown_target"}"#
            };
            assert_eq!(
                encoded(unknown, era, method, "t"),
                (status, code, data.to_owned()),
                "{era:?} {method}"
            );
        }
    }

    #[test]
    fn own_codes_are_distinct_and_outside_the_reserved_range() {
        let mut seen = HashMap::new();
        for code in RefusalCode::ALL.iter().copied() {
            let encoded = encoded(code, Era::Modern, "tools/call", "t");
            assert!((200..600).contains(&encoded.0));
            if !(-32768..=-32000).contains(&encoded.1) {
                assert_eq!(seen.insert(encoded.1, code), None);
            }
        }
        assert_eq!(seen.len(), 31);
    }

    #[test]
    fn only_a_lost_session_is_a_legacy_404() {
        for code in RefusalCode::ALL.iter().copied() {
            let status = encoded(code, Era::Legacy, "vendor/x", "t").0;
            assert_eq!(status == 404, code == RefusalCode::UnknownSession, "{code}");
        }
    }

    #[test]
    fn hint_and_wait_are_encoded() {
        let refusal = Refusal::new(RefusalCode::RateLimited, "too many requests")
            .hint("wait")
            .retry_after_ms(9);
        let answer = encode(&refusal, Era::Legacy, "tools/call", None).answer(Some(&Id::number(1)));
        assert_eq!(
            answer,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-31002,"message":"too many requests (wait)","data":{"code":"rate_limited","hint":"wait","retryAfterMs":9}}}"#
        );
    }

    #[test]
    fn statuses_at_the_door() {
        for (code, legacy, modern) in [
            (-32700, 400, 400),
            (-32600, 400, 400),
            (-32601, 200, 404),
            (-32602, 200, 400),
            (-32020, 200, 400),
            (5, 200, 200),
        ] {
            assert_eq!(
                (status(code, Era::Legacy), status(code, Era::Modern)),
                (legacy, modern),
                "{code}"
            );
        }
    }
}
