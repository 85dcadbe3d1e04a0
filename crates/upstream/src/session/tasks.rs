//! Tasks at the server: they keep the session open, and the gateway can ask for their state.

use std::{sync::Arc, sync::atomic::Ordering, time::Duration};

use json::quote;
use wire::{mcp::Era, mcp::task, rpc::Message};

use super::Session;

/// Longest wait for the answer to a request of the gateway's own about one task. A client may wait for its list of tasks.
const ASK_TASK: Duration = Duration::from_secs(5);

/// Keeps the session of a task open: an idle session is not closed while a hold exists.
#[derive(Debug)]
pub struct TaskHold(Arc<Session>);

impl TaskHold {
    /// The session that created the task.
    #[must_use]
    pub fn session(&self) -> &Arc<Session> {
        &self.0
    }
}

impl Drop for TaskHold {
    fn drop(&mut self) {
        self.0.tasks.fetch_sub(1, Ordering::Relaxed);
        self.0.close_if_done();
    }
}

impl Session {
    /// Tasks that keep the session open.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.tasks.load(Ordering::Relaxed)
    }

    /// Keeps the session open for one more task.
    #[must_use]
    pub fn hold(self: &Arc<Self>) -> TaskHold {
        self.tasks.fetch_add(1, Ordering::Relaxed);
        TaskHold(Arc::clone(self))
    }

    /// Whether any session can ask for its tasks: modern servers over HTTP have no sessions.
    #[must_use]
    pub fn shares_tasks(&self) -> bool {
        self.era() == Era::Modern && self.over_http()
    }

    /// Whether a call of this tool may ask to become a task (2025-11-25, "Tool-Level Negotiation"). For a tool that is not
    /// listed the answer is yes: the server decides.
    #[must_use]
    pub fn takes_task(&self, tool: &str) -> bool {
        let able = self.handshake().is_some_and(|handshake| task::serves_calls(&handshake.capabilities));
        let manifest = self.manifest();
        let listed = manifest.tools.items.iter().find(|item| item.key == tool);
        able && listed.is_none_or(|item| task::supported_by(&item.raw))
    }

    /// Asks a legacy server for the state of a task (`tasks/get`); `None` when it does not answer in time.
    pub async fn get_task(&self, task: &str) -> Option<Message> {
        let raw = quote(task);
        self.ask(Era::Legacy, "tasks/get", &[("taskId", raw.as_bytes())], ASK_TASK).await.ok()
    }

    /// Asks the server to cancel a task (`tasks/cancel`), and waits a bounded time for its answer.
    pub async fn cancel_task(&self, task: &str) {
        let (raw, what) = (quote(task), ("tasks/cancel", Some(task)));
        let asked = self.request_about(self.era(), what, &[("taskId", raw.as_bytes())], Some(ASK_TASK));
        let done = match asked {
            Ok(mut asked) => asked.answer().await.map(drop),
            Err(fault) => Err(fault),
        };
        if let Err(fault) = done {
            tracing::debug!(server = self.upstream(), %fault, "the server did not cancel a task");
        }
    }
}
