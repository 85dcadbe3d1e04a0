//! Notifications of servers about tasks, on their way to the tasks' holders.

use std::sync::Arc;

use model::{Form, Notice, ParticipantId};
use upstream::tasks::{ServerTask, look};
use upstream::{CallNumber, Session};
use wire::mcp::result;
use wire::mcp::task::{self, TaskReport, TaskStatus};

use super::{awaiting, book};
use crate::dispatch::Dispatch;

/// Takes a server's notification of a task's state.
pub(crate) fn state(dispatch: &Arc<Dispatch>, session: &Arc<Session>, notice: Notice) {
    let Some(report) = task::report(&notice.payload) else {
        return;
    };
    let Some(task) = book::find_in(dispatch, session, &report.named.id) else {
        return;
    };
    task.update(&report, &notice.payload.bytes);
    // No caller knows a task that the gateway follows; a caller that has cancelled one sees no more
    // of it.
    if task.followed || task.is_cancelled() {
        return;
    }
    match session.era() {
        Form::Legacy => to_modern(dispatch, session, &task, &report, &notice),
        Form::Modern => {
            if let Some(notice) = task::notice_to_legacy(&notice, &task.public) {
                book::notify(dispatch, &task, notice);
            }
        }
    }
    let payload = report.named.rename(&notice.payload, &task.public);
    let payload = result::payload_without_approval(payload);
    book::notify(dispatch, &task, Notice { payload, ..notice });
}

/// Passes a notification of 2025-11-25 to the listen streams that name the task. There a task that
/// has ended has its result.
fn to_modern(
    dispatch: &Arc<Dispatch>,
    session: &Arc<Session>,
    task: &Arc<ServerTask>,
    report: &TaskReport,
    notice: &Notice,
) {
    if !dispatch.with(|topic| topic.is_watched(&task.public)) {
        return;
    }
    if !matches!(
        report.status,
        Some(TaskStatus::Completed | TaskStatus::Failed)
    ) {
        let written = report.task.of(&notice.payload.bytes);
        let asked = awaiting::questions(dispatch, task);
        if asked.is_none() && report.status == Some(TaskStatus::InputRequired) {
            // The notification follows with its first question.
            let _ = awaiting::begin_for_holder(dispatch, task);
            return;
        }
        return awaiting::notify(dispatch, task, written, asked.as_deref());
    }
    let dispatch = Arc::clone(dispatch);
    let session = Arc::clone(session);
    let task = Arc::clone(task);
    tokio::spawn(async move {
        // Notifications of 2025-11-25 carry no result: the server is asked for it.
        let Ok(now) = look::look(&session, &task).await else {
            return;
        };
        let Ok(end) = look::end_of(&session, &task, &now).await else {
            return;
        };
        let end = end.as_ref().map(task::standing_of);
        if let Some(notice) = task::notice_to_modern(now.raw(), &task.public, end) {
            book::notify(&dispatch, &task, notice);
        }
    });
}

/// Takes progress of a call that has become a task: to the request that waits for the task's
/// result, else to its holder.
pub(crate) fn progress(dispatch: &Arc<Dispatch>, session: &Session, notice: Notice) {
    let Some(number) = notice.latest.as_deref().and_then(CallNumber::of_token) else {
        return;
    };
    let operation = dispatch.context.numbered(number.0);
    let task = dispatch.with(|topic| topic.task(operation));
    let Some(task) = task.filter(|task| task.origin.call == Some((session.instance(), number)))
    else {
        return;
    };
    let Some(token) = &task.origin.progress else {
        return;
    };
    let notice = book::rename_notice(dispatch, session, notice);
    let Some(notice) = wire::mcp::relay::with_progress_token(&notice, token) else {
        return;
    };
    book::notify_of_call(dispatch, &task, notice);
}

/// Takes the end of a session, with which its tasks end.
pub(crate) fn lose(dispatch: &Arc<Dispatch>, session: &Session) {
    let Ok(server) = ParticipantId::new(session.upstream()) else {
        return;
    };
    book::lose(dispatch, &server, session.instance());
}

/// Ends a task whose session has ended; its holder is notified.
pub(crate) fn lost(dispatch: &Arc<Dispatch>, task: &ServerTask) {
    if !task.lose() || task.followed {
        return;
    }
    for form in [Form::Legacy, Form::Modern] {
        let notice = task.lost_view(form, |view| task::notice(view, form));
        book::notify(dispatch, task, notice);
    }
}
