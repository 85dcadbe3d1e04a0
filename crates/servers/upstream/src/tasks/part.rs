//! Part of a call in tasks: a place for the task that it may become, the task that it became, or
//! the one that it is about.

use std::sync::{Arc, OnceLock};

use platform::Mutex;

use super::{places::TaskPlace, task::Task};
use crate::CallNumber;

/// Part of a call in tasks. Most calls have nothing.
#[derive(Debug, Default)]
pub struct CallTask(OnceLock<Box<Part>>);

#[derive(Debug)]
enum Part {
    /// It may become a task.
    Asks(SessionPlace),
    /// It may become a task that the gateway follows: its caller sees a call.
    Follows {
        place: SessionPlace,
        task: OnceLock<Followed>,
    },
    /// It is about this task.
    About(Arc<Task>),
}

type SessionPlace = Mutex<Option<TaskPlace>>;

/// A task that the gateway follows, and the request that waits for its result, if the server has
/// such.
#[derive(Debug)]
struct Followed {
    task: Arc<Task>,
    waits: Option<CallNumber>,
}

impl CallTask {
    /// Notes the task that the call is about.
    pub fn set_about(&self, task: &Arc<Task>) {
        // A call is about one task.
        let _ = self.0.set(Box::new(Part::About(Arc::clone(task))));
    }

    /// The task that the call is about.
    pub fn about(&self) -> Option<&Arc<Task>> {
        match &**self.0.get()? {
            Part::About(task) => Some(task),
            Part::Asks(_) | Part::Follows { .. } => None,
        }
    }

    /// The task to which the server's questions about the call belong: the one that it is about, or
    /// that the gateway follows for it.
    pub fn asking(&self) -> Option<&Arc<Task>> {
        self.about()
            .or_else(|| self.followed().map(|followed| &followed.task))
    }

    /// Keeps a place for the task that the call may become.
    pub fn keep(&self, place: Option<TaskPlace>) {
        // A call is sent once.
        let _ = self.0.set(Box::new(Part::Asks(Mutex::new(place))));
    }

    /// Keeps a place for the task that the call may become, and that the gateway follows.
    pub fn follow(&self, place: Option<TaskPlace>) {
        let part = Part::Follows {
            place: Mutex::new(place),
            task: OnceLock::new(),
        };
        // It may be sent again, and keeps its first place.
        let _ = self.0.set(Box::new(part));
    }

    /// Notes the task that the gateway follows, and the request that waits for its result.
    pub fn set_followed(&self, task: &Arc<Task>, waits: Option<CallNumber>) {
        if let Some(Part::Follows { task: slot, .. }) = self.0.get().map(|part| &**part) {
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
        matches!(self.0.get().map(|part| &**part), Some(Part::Follows { .. }))
    }

    /// Takes the place.
    pub fn take_place(&self) -> Option<TaskPlace> {
        match &**self.0.get()? {
            Part::Asks(place) | Part::Follows { place, .. } => place.lock().take(),
            Part::About(_) => None,
        }
    }

    /// Gives the place back, and lets go of a task that was followed: the call has ended.
    pub fn give_back(&self) {
        drop(self.take_place());
        if let Some(followed) = self.followed() {
            followed.task.dismiss();
        }
    }

    /// Cancels the task that the gateway follows at its server.
    pub fn stop(&self, reason: &str) {
        let Some(Followed { task, waits }) = self.followed() else {
            return;
        };
        let session = task.last_session();
        task.dismiss();
        let Some(session) = session else { return };
        if let Some(number) = waits {
            session.cancel(*number, reason);
        }
        let own = Arc::clone(&task.origin.own);
        tokio::spawn(async move { session.cancel_task(&own).await });
    }

    fn followed(&self) -> Option<&Followed> {
        match &**self.0.get()? {
            Part::Follows { task, .. } => task.get(),
            Part::Asks(_) | Part::About(_) => None,
        }
    }
}
