//! Opening and stopping a topic's dispatch.

use std::sync::Arc;

use store::recorder::Recorder;

use crate::context::Context;
use crate::dispatch::{Dispatch, Settings, StandingOf};
use crate::ledgers::TopicLedgers;
use crate::live::Event;
use crate::run::run;
use crate::{brakes, proposals, tasks};

impl Dispatch {
    /// Opens a topic without participants and servers. `standing` has what a participant may do in
    /// it now. Must be called inside a runtime.
    pub fn open(
        settings: Settings,
        context: Arc<Context>,
        audit: Recorder,
        ledgers: Option<TopicLedgers>,
        standing: StandingOf,
    ) -> Arc<Self> {
        Self::new(settings, context, audit, ledgers, standing, run)
    }

    /// Takes over the pauses, proposals and tasks of the journal, once, before any caller can enter.
    pub fn restore(self: &Arc<Self>) {
        brakes::restore(self);
        proposals::journal::restore(self);
        tasks::journal::restore(self);
    }

    /// Answers all callers of held calls for now, so that their proposals outlast this process.
    pub fn release_held(self: &Arc<Self>) {
        self.stopping.send_replace(true);
        self.take(Event::Stop);
    }

    /// Cancels the servers' tasks that go with this process: those whose callers wait for their
    /// results, and those of guests.
    pub async fn cancel_passing_tasks(&self) {
        tasks::book::cancel_passing(self).await;
    }
}
