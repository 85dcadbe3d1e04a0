//! Refusal of a server's result that is none of its method.

use model::{Refusal, RefusalCode};

/// The refusal of a result that is none of its method.
pub(super) fn unreadable() -> Refusal {
    Refusal::new(
        RefusalCode::UpstreamFailed,
        "the server's result cannot be read",
    )
}
