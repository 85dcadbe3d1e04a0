//! Part of a call in tasks: the task that it became, or the one that it is about.

use std::sync::{Arc, OnceLock};

use super::task::ServerTask;
use crate::CallNumber;

/// Part of a call in tasks. Most calls have nothing.
#[derive(Debug, Default)]
pub struct CallTask(OnceLock<Box<Part>>);

#[derive(Debug)]
enum Part {
    /// It may become a task, and has become this one.
    Asks(OnceLock<Arc<ServerTask>>),
    /// It may become a task that the gateway follows, and has become this one: its caller sees a
    /// call.
    Follows(OnceLock<Followed>),
    /// It is about this task.
    About(Arc<ServerTask>),
}

/// A task that the gateway follows, and the request that waits for its result, if the server has
/// such.
#[derive(Debug)]
struct Followed {
    task: Arc<ServerTask>,
    waits: Option<CallNumber>,
}

impl CallTask {
    /// Notes the task that the call is about.
    pub fn set_about(&self, task: &Arc<ServerTask>) {
        // A call is about one task.
        let _ = self.0.set(Box::new(Part::About(Arc::clone(task))));
    }

    /// The task that the call is about.
    pub fn about(&self) -> Option<&Arc<ServerTask>> {
        match &**self.0.get()? {
            Part::About(task) => Some(task),
            Part::Asks(_) | Part::Follows(_) => None,
        }
    }

    /// The task to which the server's questions about the call belong: the one that it is about, or
    /// that the gateway follows for it.
    pub fn asking(&self) -> Option<&Arc<ServerTask>> {
        self.about()
            .or_else(|| self.followed().map(|followed| &followed.task))
    }

    /// Notes that the call may become a task of its caller.
    pub fn ask(&self) {
        // A call is sent once.
        let _ = self.0.set(Box::new(Part::Asks(OnceLock::new())));
    }

    /// Notes that the call may become a task that the gateway follows.
    pub fn follow(&self) {
        // It may be sent again.
        let _ = self.0.set(Box::new(Part::Follows(OnceLock::new())));
    }

    /// Notes the task of its caller that the call has become.
    pub fn set_became(&self, task: &Arc<ServerTask>) {
        if let Some(Part::Asks(slot)) = self.0.get().map(|part| &**part) {
            // A call becomes one task.
            let _ = slot.set(Arc::clone(task));
        }
    }

    /// The task of its caller that the call has become.
    pub fn became(&self) -> Option<&Arc<ServerTask>> {
        match &**self.0.get()? {
            Part::Asks(task) => task.get(),
            Part::Follows(_) | Part::About(_) => None,
        }
    }

    /// Notes the task that the gateway follows, and the request that waits for its result.
    pub fn set_followed(&self, task: &Arc<ServerTask>, waits: Option<CallNumber>) {
        if let Some(Part::Follows(slot)) = self.0.get().map(|part| &**part) {
            // A call becomes one task.
            let _ = slot.set(Followed {
                task: Arc::clone(task),
                waits,
            });
        }
    }

    /// Whether the call may become a task of its caller.
    pub fn asks(&self) -> bool {
        matches!(self.0.get().map(|part| &**part), Some(Part::Asks(_)))
    }

    /// Whether the call may become a task that the gateway follows.
    pub fn follows(&self) -> bool {
        matches!(self.0.get().map(|part| &**part), Some(Part::Follows(_)))
    }

    /// Cancels the request that waits for the result of a task that the gateway follows. The task
    /// itself ends with the call.
    pub fn stop(&self, reason: &str) {
        let Some(Followed { task, waits }) = self.followed() else {
            return;
        };
        if let (Some(session), Some(number)) = (task.last_session(), waits) {
            session.cancel(*number, reason);
        }
    }

    fn followed(&self) -> Option<&Followed> {
        match &**self.0.get()? {
            Part::Follows(task) => task.get(),
            Part::Asks(_) | Part::About(_) => None,
        }
    }
}
