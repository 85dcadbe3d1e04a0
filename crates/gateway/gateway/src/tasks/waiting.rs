//! Sessions by which servers are asked about tasks, and requests that wait for the end of a modern
//! task.

use std::sync::Arc;

use bytes::Bytes;
use model::{Refusal, RefusalCode};
use upstream::tasks::{AwaitsEnd, LOST, ServerTask};
use upstream::{CallEvents, Session};

use super::book;
use crate::{call::Call, dispatch::Dispatch};

/// A request that waits.
pub(super) struct Waiting<'c>(pub(super) &'c Arc<Dispatch>, pub(super) &'c Call);

/// The session by which a task's server is asked.
///
/// # Errors
/// The refusal of a task whose session is gone, or whose server cannot be reached.
pub(super) async fn session_of(
    dispatch: &Arc<Dispatch>,
    call: &Call,
    task: &ServerTask,
) -> Result<Arc<Session>, Refusal> {
    let lost = || Refusal::new(RefusalCode::UpstreamDown, LOST);
    // Number 0: any session of its server knows the task, so one may be opened to ask.
    if task.origin.instance != 0 {
        return task.session().ok_or_else(lost);
    }
    let server = dispatch.server(&task.origin.server).ok_or_else(lost)?;
    server.upstream.session(&call.caller()).await
}

impl AwaitsEnd for Waiting<'_> {
    async fn session(&self, task: &ServerTask) -> Result<Arc<Session>, Refusal> {
        session_of(self.0, self.1, task).await
    }

    fn capabilities(&self) -> &Bytes {
        &self.1.client().capabilities
    }

    /// Of the requests that wait for a task, the one that came last is asked.
    fn is_asked(&self, task: &ServerTask) -> bool {
        book::awaited(self.0, task).is_none_or(|last| last == self.1.id)
    }

    /// The server is asked again and again for as long as a call waits, so each time it is to be
    /// known whether one does.
    fn is_over(&self) -> bool {
        !self.0.with(|topic| topic.is_open(self.1.id))
    }

    fn events(&self) -> &dyn CallEvents {
        self.1
    }
}
