//! Sealed state with which the caller of a held call comes back.

use model::OperationId;

use crate::dispatch::Dispatch;
use crate::link::Link;

/// The state of a parked call; only its participant can use it.
pub(crate) fn seal(dispatch: &Dispatch, link: &Link, proposal: OperationId) -> String {
    todo!()
}

/// The proposal of a state that was sealed for this participant.
pub(crate) fn open(dispatch: &Dispatch, link: &Link, sealed: &str) -> Option<OperationId> {
    todo!()
}
