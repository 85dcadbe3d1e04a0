//! Operations `list` and `info`: what the caller's own lists show, and nothing else.

use std::sync::Arc;

use model::Refusal;
use wire::mcp::proxy::ReadOperation;

use crate::{call::Call, dispatch::Dispatch, manifests};

/// The result of `list` or `info`, or words about a target that the caller cannot see.
pub(super) async fn up(
    dispatch: Arc<Dispatch>,
    call: Arc<Call>,
    look: ReadOperation,
) -> Result<Vec<u8>, Refusal> {
    let seen = manifests::seen(&dispatch, &call).await?;
    Ok(lists::look_up(&seen, &look, call.request.payload.form))
}
