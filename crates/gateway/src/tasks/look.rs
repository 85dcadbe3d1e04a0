//! Looks at servers' tasks for callers of the other form: one look, and looks until the end.

use std::time::Duration;
use std::{sync::Arc, time::Instant};

use model::{Answer, Outcome, Refusal, RefusalCode};
use platform::millis;
use upstream::Session;
use upstream::tasks::{LOST, Task};
use wire::mcp::task::{self, Status};

use crate::{call::Call, dispatch::Dispatch};

/// Time between two looks at a task whose server names none, in milliseconds.
const POLL_MS: u64 = 1000;
/// Shortest time between two looks at a task, whatever its server says, in milliseconds.
pub const POLL_MS_MIN: u64 = 50;
/// Longest time between two looks at a task, whatever its server says, in milliseconds.
pub const POLL_MS_MAX: u64 = 30_000;
/// Looks that may fail one after the other.
const FAILURES_MAX: u32 = 3;

/// Why a look did not succeed.
pub(super) enum Failed {
    /// The server answered with an error.
    Error(Answer),
    /// It could not be asked.
    Refused(Refusal),
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Failed> for Result<Answer, Refusal> {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Error(answer) => Ok(answer),
            Failed::Refused(refusal) => Err(refusal),
        }
    }
}

/// A task as its server has just written it.
pub(super) struct Look {
    answer: Answer,
    /// Its status, if the protocol defines it.
    pub(super) status: Option<Status>,
}

impl Look {
    /// The task's object.
    pub(super) fn raw(&self) -> &[u8] {
        self.answer.payload.body_bytes()
    }
}

/// The session by which a task's server is asked.
///
/// # Errors
/// The refusal of a task whose session is gone, or whose server cannot be reached.
pub(super) async fn session_of(
    dispatch: &Arc<Dispatch>,
    call: &Call,
    task: &Task,
) -> Result<Arc<Session>, Refusal> {
    let lost = || Refusal::new(RefusalCode::UpstreamDown, LOST);
    if task.origin.instance != 0 {
        return task.session().ok_or_else(lost);
    }
    let server = dispatch.server(&task.origin.server).ok_or_else(lost)?;
    server.upstream.session(&call.link.caller(call.client.as_ref())).await
}

/// Looks at a task (`tasks/get`).
pub(super) async fn look(session: &Session, task: &Task) -> Result<Look, Failed> {
    let answer = session.ask_task("tasks/get", &task.origin.own).await?;
    if answer.outcome != Outcome::Ok {
        return Err(Failed::Error(answer));
    }
    let own = task::report(&answer.payload).filter(|report| *report.named.id == *task.origin.own);
    let report = own.ok_or_else(|| {
        let what = format!("the server `{}` gave an unusable answer about a task", session.upstream());
        Refusal::new(RefusalCode::UpstreamFailed, what)
    })?;
    task.update(&report, &answer.payload.bytes);
    Ok(Look { answer, status: report.status })
}

/// The end of a task of 2025-11-25, as the answer of its call (`tasks/result`); `None` while it has none.
pub(super) async fn end_of(session: &Session, task: &Task, look: &Look) -> Result<Option<Answer>, Refusal> {
    match look.status {
        Some(Status::Completed | Status::Failed) => {}
        Some(Status::Working | Status::InputRequired | Status::Cancelled) | None => return Ok(None),
    }
    let end = session.ask_task("tasks/result", &task.origin.own).await?;
    task.relayed("tasks/result", end.outcome);
    Ok(Some(end))
}

/// Waits for the end of a modern task on behalf of a call, and returns the answer of the task's call. Ends at once, with any
/// refusal, when the waiting call is over.
pub(super) async fn wait(dispatch: &Arc<Dispatch>, call: &Call, task: &Task) -> Result<Answer, Refusal> {
    let (began, mut failures) = (Instant::now(), 0);
    loop {
        let session = session_of(dispatch, call, task).await?;
        let pause_ms = match look(&session, task).await {
            Err(Failed::Refused(_)) if failures + 1 < FAILURES_MAX && !task.is_lost() => {
                failures += 1;
                POLL_MS
            }
            Err(failed) => return failed.into(),
            Ok(look) => {
                failures = 0;
                match (look.status, task::end_of(look.raw())) {
                    (_, Some(end)) => return Ok(end),
                    (Some(Status::Cancelled), _) => return Err(cancelled()),
                    (Some(Status::InputRequired), _) => return Err(asks()),
                    (Some(Status::Completed | Status::Failed), None) => {
                        let what = "the server ended the task without a result";
                        return Err(Refusal::new(RefusalCode::UpstreamFailed, what));
                    }
                    (Some(Status::Working) | None, None) => task::poll_ms(look.raw()).unwrap_or(POLL_MS),
                }
            }
        };
        if task.is_cancelled() {
            return Err(cancelled());
        }
        let left = session.longest().saturating_sub(began.elapsed());
        let pause = Duration::from_millis(pause_ms.clamp(POLL_MS_MIN, POLL_MS_MAX)).min(left);
        if call.is_over() || millis(pause) == 0 {
            return Err(session.too_slow());
        }
        tokio::time::sleep(pause).await;
    }
}

pub(super) fn cancelled() -> Refusal {
    Refusal::new(RefusalCode::UpstreamFailed, "the task was cancelled")
}

fn asks() -> Refusal {
    let what = "the task asks its user for input, which this caller cannot be asked for";
    Refusal::new(RefusalCode::Unsupported, what)
}
