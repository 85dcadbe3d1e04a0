//! Refusal codes of MCPx: the `error` of a `system/error`, in one table (MCPx v0.1, 3.5.2; reference 2.3).

use model::RefusalCode;

/// The code as receivers see it. A refusal that the protocol does not define keeps Portmoot's code.
#[must_use]
pub(crate) fn code(code: RefusalCode) -> &'static str {
    if code == RefusalCode::Malformed {
        "malformed_envelope"
    } else if code == RefusalCode::TooLarge {
        "message_too_large"
    } else {
        code.as_str()
    }
}
