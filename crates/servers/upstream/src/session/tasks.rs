//! Tasks at the server: they keep the session open, and the gateway can ask for their state.

use std::{sync::Arc, sync::atomic::Ordering, time::Duration};

use json::quote;
use model::{Answer, Refusal};
use wire::mcp::task::{self, TaskSupport};
use wire::{mcp::Era, mcp::relay, rpc::Message};

use super::Session;
use crate::fault::Fault;

/// Longest wait for the answer to a request of the gateway's own about one task. A client may wait
/// for its list of tasks.
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
    /// Notes that its client answered a question with this task.
    pub fn note_client_task(&self, id: &str) {
        self.client_tasks.add(id);
    }

    /// Whether its client answered one of its questions with this task.
    #[must_use]
    pub fn has_client_task(&self, id: &str) -> bool {
        self.client_tasks.has(id)
    }

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

    /// The server's support for tasks of this tool. A modern server says it of all its tools.
    #[must_use]
    pub fn task_support(&self, tool: &str) -> TaskSupport {
        let manifest = self.manifest();
        if let Some(support) = manifest.tasks.get(tool) {
            return *support;
        }
        let able = |serves: fn(&[u8]) -> bool| {
            self.handshake()
                .is_some_and(|handshake| serves(&handshake.capabilities))
        };
        match self.era() {
            Era::Modern if able(task::declares) => TaskSupport::Optional,
            Era::Legacy if able(task::serves_calls) => {
                let listed = manifest.tools.items.iter().any(|item| item.key == tool);
                if listed {
                    TaskSupport::None
                } else {
                    TaskSupport::Unlisted
                }
            }
            Era::Modern | Era::Legacy => TaskSupport::None,
        }
    }

    /// Whether calls of this tool must become tasks (2025-11-25).
    #[must_use]
    pub fn requires_task(&self, tool: &str) -> bool {
        self.manifest().tasks.get(tool) == Some(&TaskSupport::Required)
    }

    /// Asks the server for the state of a task (`tasks/get`); `None` when it does not answer in
    /// time.
    pub async fn get_task(&self, task: &str) -> Option<Message> {
        self.about_task("tasks/get", task, None, ASK_TASK)
            .await
            .ok()
    }

    /// Makes a request of the gateway's own about a task, and returns the server's answer, which
    /// may be an error.
    ///
    /// # Errors
    /// A refusal when the server cannot be asked or does not answer in time.
    pub async fn ask_task(&self, method: &str, task: &str) -> Result<Answer, Refusal> {
        let patience = self.setup.spec.timeout(None);
        let message = self.about_task(method, task, None, patience).await;
        let message = message.map_err(|fault| self.refusal(&fault))?;
        Ok(relay::decode_answer(&message, self.era()))
    }

    /// Answers questions of a modern task (`tasks/update`).
    pub(super) async fn answer_task(&self, task: &str, responses: &[u8]) -> Result<(), Fault> {
        let patience = self.setup.spec.timeout(None);
        let responses = Some(("inputResponses", responses));
        let message = self
            .about_task("tasks/update", task, responses, patience)
            .await?;
        match message.error_object() {
            None => Ok(()),
            Some(error) => Err(Fault::Answer(error.message)),
        }
    }

    /// Asks the server to cancel a task (`tasks/cancel`), and waits a bounded time for its answer.
    pub async fn cancel_task(&self, task: &str) {
        if let Err(fault) = self.about_task("tasks/cancel", task, None, ASK_TASK).await {
            tracing::debug!(server = self.upstream(), %fault, "the server did not cancel a task");
        }
    }

    /// The longest time that a call may take.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.setup.spec.config.timeouts.max
    }

    /// The refusal of a call whose task takes longer than [`Session::longest`].
    #[must_use]
    pub fn too_slow(&self) -> Refusal {
        self.refusal(&Fault::Timeout)
    }

    async fn about_task(
        &self,
        method: &str,
        task: &str,
        more: Option<(&str, &[u8])>,
        patience: Duration,
    ) -> Result<Message, Fault> {
        let raw = quote(task);
        let params: Vec<(&str, &[u8])> = [("taskId", raw.as_bytes())]
            .into_iter()
            .chain(more)
            .collect();
        self.request_about(self.era(), method, Some(task), &params, Some(patience))?
            .answer()
            .await
    }
}
