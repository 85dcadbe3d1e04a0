//! Listening.

use std::sync::Arc;

use model::{LinkId, Refusal, Request};
use topic::Interest;

use crate::call::Call;
use crate::dispatch::Dispatch;
use crate::link::Link;
use crate::live::Server;

/// The interest that a request announces.
///
/// # Errors
/// When a listen request is malformed or names too much.
pub fn interest(_request: &Request) -> Result<Interest, Refusal> {
    todo!()
}

pub(crate) fn serve(_dispatch: &Arc<Dispatch>, _call: &Arc<Call>) {
    todo!()
}

pub(crate) fn forget(_dispatch: &Dispatch, _link: LinkId) {
    todo!()
}

pub(crate) fn unsubscribe(_dispatch: &Dispatch, _link: &Arc<Link>, _server: &Server, _own: &str) {
    todo!()
}

pub(crate) fn unwatch(_dispatch: &Dispatch, _link: &Arc<Link>, _tasks: &[Arc<str>]) {
    todo!()
}
