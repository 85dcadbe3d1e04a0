//! Tasks that run at the server in this session: what keeps it open for them, and looking at one.
//!
//! Must not know whose tasks they are, nor under which ids callers know them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use json::quote;
use model::Era;
use wire::mcp::task;
use wire::rpc::{Id, Message};

use super::super::sink::Ticket;
use super::Session;

/// How long a look at one task may take while a list of tasks waits for it.
const LOOK: Duration = Duration::from_secs(5);

/// A task that may still be asked for: its session is not closed for being idle while this is held.
#[derive(Debug)]
pub struct Hold(Arc<Session>);

impl Hold {
    /// The session in which the task was made.
    #[must_use]
    pub fn session(&self) -> &Arc<Session> {
        &self.0
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.tasks.fetch_sub(1, Ordering::Relaxed);
        self.0.rest();
    }
}

impl Session {
    /// Which session this is, of all that ever were: nobody can guess it.
    #[must_use]
    pub fn birth(&self) -> u64 {
        self.birth
    }

    /// Tasks that hold it open.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.tasks.load(Ordering::Relaxed)
    }

    /// Keeps it open for one more task.
    #[must_use]
    pub fn hold(self: &Arc<Self>) -> Hold {
        self.tasks.fetch_add(1, Ordering::Relaxed);
        Hold(Arc::clone(self))
    }

    /// Whether its tasks are the server's, whichever session asks: modern servers over HTTP know no sessions.
    #[must_use]
    pub fn shares_tasks(&self) -> bool {
        self.era() == Era::Modern && self.over_http()
    }

    /// Whether a call of this tool may ask to become a task (2025-11-25, "Tool-Level Negotiation"). What the server does not
    /// list it judges itself.
    #[must_use]
    pub fn takes_task(&self, tool: &str) -> bool {
        let greeting = self.greeted();
        let able = greeting.is_some_and(|greeting| task::serves_calls(&greeting.capabilities));
        let manifest = self.manifest();
        let listed = manifest.tools.items.iter().find(|item| item.key == tool);
        able && listed.is_none_or(|item| task::supported_by(&item.raw))
    }

    /// How a task stands now: the server's answer to `tasks/get`, or nothing when it gives none in time.
    pub async fn look_at(&self, task: &str) -> Option<Message> {
        let raw = quote(task);
        let asked = self.ask(Era::Legacy, "tasks/get", &[("taskId", raw.as_bytes())], Some(LOOK));
        asked.ok()?.answer().await.ok()
    }
}

impl Ticket {
    /// The number under which the server knows the call: also its progress token there.
    #[must_use]
    pub fn of_answer(answer: &Message) -> Option<Self> {
        answer.id()?.as_number().map(Self)
    }

    /// The same, of the progress token that the server was given.
    #[must_use]
    pub fn of_token(token: &Id) -> Option<Self> {
        token.as_number().map(Self)
    }
}
