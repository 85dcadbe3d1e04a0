//! How the caller of a held call is answered, each in its own way (design, section 4, "Promotion").
//!
//! Must not know how a proposal is decided or carried out.

use std::sync::Arc;

use bytes::Bytes;
use model::{Era, OperationId, ProposalState, Refusal, RefusalCode};
use topic::Event;
use wire::mcp::task;
use wire::rpc::{self, Id};

use super::Pump;
use crate::desk::Way;
use crate::operation::Operation;
use crate::views::{self, View};

impl Pump {
    /// A call is held: its caller gets a task at once, or waits a while.
    pub(super) fn answer_held(&self, id: OperationId) {
        let way = self.desk.with(id, |case| case.held.as_ref().map(|held| held.way)).flatten();
        match way {
            None => {}
            Some(Way::Task) => self.release(id),
            Some(Way::Retry | Way::Words) => {
                let (pump, hold) = (self.this.clone(), self.hold);
                tokio::spawn(async move {
                    tokio::time::sleep(hold).await;
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
            Way::Words if operation.method != "tools/call" => {
                let waiting = self.view(id, |view| view.waiting()).unwrap_or_default();
                return operation.refuse(&Refusal::new(RefusalCode::CapabilityViolation, waiting));
            }
            Way::Words => self.view(id, views::still_waiting),
        };
        if let Some(result) = result {
            operation.answer(rpc::result(&operation.request, &result), None);
        }
    }

    /// Answers all whose calls are held for now: the gateway stops, and their proposals go on after it has started again.
    pub(crate) fn release_held(&self) {
        self.stopping.send_replace(true);
        for id in self.desk.all(|id, case| case.held.is_some().then_some(id)) {
            self.release(id);
        }
    }

    /// Whether the gateway is about to stop: nobody's proposal is withdrawn because of that.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// A call that was held and was not carried out is answered in words that a model reads, as a tool's own errors are.
    pub(super) fn answer_undone(&self, id: OperationId, call: &Arc<Operation>, state: ProposalState) {
        let undone =
            matches!(state, ProposalState::Rejected | ProposalState::Expired | ProposalState::Withdrawn);
        if undone && let Some(end) = self.end_of(id, &call.request, call.method, call.caller.era()) {
            call.answer(end, None);
        }
    }

    /// Looks at a proposal as whoever made it sees it.
    pub(crate) fn view<T>(&self, id: OperationId, look: impl FnOnce(&View<'_>) -> T) -> Option<T> {
        let deciders: Vec<String> =
            self.with(|topic| topic.deciders(id).map(ToString::to_string).collect::<Vec<_>>());
        self.desk.with(id, |case| look(&View::new(id, case, &deciders)))
    }

    /// Waits until a proposal is over, no longer than calls are held.
    pub(crate) async fn wait_for(&self, id: OperationId) {
        let Some(mut changed) = self.desk.with(id, |case| case.changed.subscribe()) else { return };
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            _ = tokio::time::timeout(self.hold, changed.wait_for(|state| state.is_over())) => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    }

    /// What the call of a proposal that is over is answered, in its caller's form; nothing while it is not over.
    pub(crate) fn end_of(&self, id: OperationId, request: &Id, method: &str, era: Era) -> Option<Bytes> {
        self.view(id, |view| view.end(request, method, era)).flatten()
    }
}
