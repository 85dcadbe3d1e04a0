//! How the caller of a held call is answered, each in its own way (design, section 4, "Promotion").
//!
//! Must not know how a proposal is decided or carried out.

use std::time::Duration;

use bytes::Bytes;
use model::{Era, OperationId, ProposalState};
use topic::Event;
use wire::mcp::task;
use wire::rpc::{self, Id};

use super::Pump;
use crate::desk::Way;
use crate::views::{self, View};

/// How long a call is held before its caller is answered for now. Clients give up after a minute.
pub const HOLD: Duration = Duration::from_secs(50);

impl Pump {
    /// A call is held: its caller gets a task at once, or waits a while.
    pub(super) fn answer_held(&self, id: OperationId) {
        let way = self.desk.with(id, |case| case.held.as_ref().map(|held| held.way)).flatten();
        match way {
            None => {}
            Some(Way::Task) => self.release(id),
            Some(Way::Retry | Way::Words) => {
                let pump = self.this.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(HOLD).await;
                    if let Some(pump) = pump.upgrade() {
                        pump.release(id);
                    }
                });
            }
        }
    }

    /// Answers the caller for now. What it proposed goes on waiting.
    fn release(&self, id: OperationId) {
        let pending = self.desk.with(id, |case| case.state == ProposalState::Pending).unwrap_or(false);
        let Some(held) = pending.then(|| self.desk.release(id)).flatten() else { return };
        self.step(Event::Release { operation: held.operation.id });
        let operation = &held.operation;
        let result = match held.way {
            Way::Task => self.view(id, |view| {
                let immediate = view.waiting();
                task::created(&view.task(), operation.caller.era(), Some(&immediate))
            }),
            Way::Retry => {
                self.view(id, |view| views::retry(&views::seal(self.ground.sealer(), operation, view.id())))
            }
            Way::Words => self.view(id, |view| views::words(&view.waiting(), true)),
        };
        if let Some(result) = result {
            operation.answer(rpc::result(&operation.request, &result), None);
        }
    }

    /// Looks at a proposal as whoever made it sees it.
    pub(crate) fn view<T>(&self, id: OperationId, look: impl FnOnce(&View<'_>) -> T) -> Option<T> {
        let deciders: Vec<String> =
            self.with(|topic| topic.deciders(id).map(ToString::to_string).collect::<Vec<_>>());
        self.desk.with(id, |case| look(&View::new(id, case, &deciders)))
    }

    /// The calls that this participant has had held, as tasks (2025-11-25, "tasks/list").
    pub(crate) fn task_list(&self, who: &str) -> Vec<u8> {
        let ids = self.desk.all(|id, case| (case.opened.held && case.opened.by == who).then_some(id));
        let tasks: Vec<Vec<u8>> = ids
            .into_iter()
            .filter_map(|id| self.view(id, |view| task::get(&view.task(), Era::Legacy)))
            .collect();
        [b"{\"tasks\":[".as_slice(), &tasks.join(b",".as_slice()), b"]}"].concat()
    }

    /// Waits until a proposal is over, no longer than [`HOLD`].
    pub(crate) async fn wait_for(&self, id: OperationId) {
        let Some(mut changed) = self.desk.with(id, |case| case.changed.subscribe()) else { return };
        let _ = tokio::time::timeout(HOLD, changed.wait_for(|state| state.is_over())).await;
    }

    /// What the call of a proposal that is over is answered, in its caller's form; nothing while it is not over.
    pub(crate) fn end_of(&self, id: OperationId, request: &Id, method: &str, era: Era) -> Option<Bytes> {
        self.view(id, |view| view.end(request, method, era)).flatten()
    }
}
