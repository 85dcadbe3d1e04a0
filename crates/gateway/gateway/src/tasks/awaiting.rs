//! Questions of servers of 2025-11-25 about tasks of modern callers. Such a server asks where the
//! task's result is awaited, so the gateway awaits it in the caller's name (`tasks/result`). The
//! questions stay open at that request; the caller reads them with `tasks/get` and answers them
//! with `tasks/update`.

use std::sync::{Arc, Weak};

use auth::Bearer;
use model::method::TASK_RESULT;
use model::{Answer, Form, LinkId, OperationId, Refusal, Request};
use topic::End;
use upstream::tasks::ServerTask;
use wire::mcp::input;
use wire::mcp::task::{self, OperationState};

use super::book;
use crate::call::{Call, Reply};
use crate::incoming::Incoming;
use crate::link::{Questioned, Requester, Respell, Undelivered};
use crate::live::{Event, ServerQuestion};
use crate::{dispatch::Dispatch, returns};

/// The reply of a request that awaits a task's result in its caller's name.
struct Awaiting {
    dispatch: Weak<Dispatch>,
    task: Arc<ServerTask>,
}

impl Reply for Awaiting {
    /// The caller gets the result with `tasks/get`.
    fn settle(&self, _: &Call, _: &Answer, _: &Respell<'_>) {}

    fn refuse(&self, call: &Call, refusal: &Refusal) {
        let server = &self.task.origin.server;
        tracing::debug!(%server, operation = %call.id, %refusal, "a task's result is not awaited any more");
    }

    /// The question waits for the caller.
    fn ask(&self, _: &Call, _: &Questioned<'_>) -> Result<(), Undelivered> {
        let Some(dispatch) = self.dispatch.upgrade() else {
            return Ok(());
        };
        let written = self.task.listed();
        let asked = questions(&dispatch, &self.task);
        if let (Some(written), Some(asked)) = (written, asked) {
            notify(&dispatch, &self.task, &written, Some(&asked));
        }
        Ok(())
    }
}

/// Awaits the result of a task in the name of a caller that asks about it, unless a request does.
pub(super) fn begin(dispatch: &Arc<Dispatch>, by: Requester<'_>, task: &Arc<ServerTask>) {
    if book::awaited(dispatch, task).is_some() {
        return;
    }
    let awaits = task::request(TASK_RESULT.name, &task.public, Form::Legacy);
    let reply = Arc::new(Awaiting {
        dispatch: Arc::downgrade(dispatch),
        task: Arc::clone(task),
    });
    dispatch.request(by, Incoming::plain(awaits, None), reply);
}

/// The request that awaits a task's result, or that does from now on in the name of the modern
/// caller that asked about it last.
pub(crate) fn begin_for_holder(
    dispatch: &Arc<Dispatch>,
    task: &Arc<ServerTask>,
) -> Option<OperationId> {
    let link = dispatch.with(|topic| topic.link_asking_about_task(task.operation));
    if let Some(link) = link.filter(|link| link.form == Form::Modern) {
        // No request is served here: the caller reads the questions with requests of its own, each
        // with its own token. So the scopes of the latest token do not matter, which may have come
        // with something else.
        let bearer = link.latest_token().map(|latest| {
            Arc::new(Bearer {
                narrowing: None,
                ..Bearer::clone(&latest)
            })
        });
        let by = Requester {
            link: &link,
            bearer: bearer.as_ref(),
            address: link.address(),
        };
        begin(dispatch, by, task);
    }
    book::awaited(dispatch, task)
}

/// The open questions about a task (`inputRequests`); `None` if there are none.
pub(super) fn questions(dispatch: &Dispatch, task: &ServerTask) -> Option<Vec<u8>> {
    let open = open(dispatch, task);
    if open.is_empty() {
        return None;
    }
    let entry = |(operation, link, asked): &(OperationId, LinkId, Arc<ServerQuestion>)| {
        asked.entry(*operation, &|own| {
            dispatch.respelled(*link, &asked.server, own)
        })
    };
    Some(input::entries(
        &open.iter().filter_map(entry).collect::<Vec<_>>(),
    ))
}

/// Answers questions about a task (`tasks/update`). Answers to other questions are ignored.
///
/// # Errors
/// A refusal of answers that cannot be read.
pub(super) fn answer(
    dispatch: &Arc<Dispatch>,
    request: &Request,
    task: &ServerTask,
) -> Result<(), Refusal> {
    let answers = returns::responses(request)?;
    for (operation, link, _) in open(dispatch, task) {
        let key = operation.number().to_string();
        if let Some((_, answer)) = answers.iter().find(|(of, _)| *of == key) {
            let end = End::Answered {
                outcome: answer.outcome,
                answer: answer.clone(),
            };
            dispatch.take(Event::Answer {
                link,
                operation,
                end,
            });
        }
    }
    Ok(())
}

fn open(dispatch: &Dispatch, task: &ServerTask) -> Vec<(OperationId, LinkId, Arc<ServerQuestion>)> {
    dispatch.with(|topic| {
        let waiting = topic.request_awaiting_task(task.operation);
        waiting.map_or_else(Vec::new, |waiting| topic.questions_about(waiting))
    })
}

/// Notifies the listen streams that name a task of 2025-11-25, by what its server wrote last and
/// its open questions.
pub(super) fn notify(
    dispatch: &Arc<Dispatch>,
    task: &ServerTask,
    written: &[u8],
    asked: Option<&[u8]>,
) {
    let standing = asked.map(OperationState::InputRequired);
    if let Some(notice) = task::notice_to_modern(written, &task.public, standing) {
        book::notify(dispatch, task, notice);
    }
}
