//! Pages of `tasks/list` (MCP 2025-11-25): held proposals of a participant and its tasks at servers.

use std::sync::Arc;

use model::Refusal;

use crate::call::Call;
use crate::dispatch::Dispatch;

/// One page of the tasks of a caller's participant, oldest first.
///
/// # Errors
/// A refusal (-32602) of a cursor that the gateway did not make.
pub(crate) async fn page(_dispatch: &Arc<Dispatch>, _call: &Call) -> Result<Vec<u8>, Refusal> {
    todo!()
}
