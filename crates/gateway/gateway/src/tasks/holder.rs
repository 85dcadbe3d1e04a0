//! Notifications of a task's state, to the participant whose call became the task.

use std::sync::Arc;

use model::Notice;
use topic::{Subject, TaskRef};
use upstream::tasks::Task;

use crate::{dispatch::Dispatch, live::Event};

/// Notifies a task's holder. Also from inside an effect: only a step knows the holder's links.
pub(super) fn notify(dispatch: &Arc<Dispatch>, task: &Task, notice: Notice) {
    let (origin, public, link) = (&task.origin, &task.public, Some(task.link()));
    let subject = TaskRef {
        holder: &origin.holder,
        tool: &origin.tool,
        held: origin.held,
        public,
        link,
    };
    let server = &origin.server;
    dispatch.take(Event::Notice {
        server,
        subject: Subject::Task(subject),
        level: None,
        notice,
    });
}
