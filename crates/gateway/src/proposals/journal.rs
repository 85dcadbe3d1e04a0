//! Journal of proposals: records of each change, and their return after a restart.

use std::sync::Arc;

use model::OperationId;
use topic::Record;

use super::content::Proposed;
use crate::dispatch::Dispatch;
use crate::live::Live;

/// Writes a change down, then reports to the topic whether it is durable.
pub(crate) fn store(dispatch: &Arc<Dispatch>, proposal: OperationId, content: Arc<Proposed>, record: Record<Live>) {
    todo!()
}

/// Brings back the proposals that the journal has.
pub(crate) fn restore(dispatch: &Arc<Dispatch>) {
    todo!()
}
