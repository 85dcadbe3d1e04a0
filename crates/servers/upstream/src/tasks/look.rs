//! Looks at servers' tasks: one look, and looks until the end.

use std::time::Duration;
use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use model::{Answer, Outcome, Refusal, RefusalCode};
use platform::millis;
use tokio::task::JoinSet;
use wire::mcp::relay;
use wire::mcp::task::{self, TaskStatus};
use wire::rpc::code;

use super::task::ServerTask;
use crate::session::{TaskQuestions, Unanswered};
use crate::{CallEvents, Session};

/// Time between two looks at a task whose server names none, in milliseconds.
const POLL_MS: u64 = 1000;
/// Shortest time between two looks at a task, whatever its server says, in milliseconds.
pub const POLL_MS_MIN: u64 = 50;
/// Longest time between two looks at a task, whatever its server says, in milliseconds.
pub const POLL_MS_MAX: u64 = 30_000;
/// Looks that may fail one after the other.
const FAILURES_MAX: u32 = 3;

/// Why a look did not succeed.
pub enum Failed {
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
pub struct WrittenTask {
    answer: Answer,
    /// Its status, if the protocol defines it.
    pub status: Option<TaskStatus>,
}

impl WrittenTask {
    /// The task's object.
    pub fn raw(&self) -> &[u8] {
        self.answer.payload.body_bytes()
    }
}

/// A request that waits for the end of a modern task.
pub trait AwaitsEnd: Sync {
    /// The session by which the task's server is asked.
    fn session(
        &self,
        task: &ServerTask,
    ) -> impl Future<Output = Result<Arc<Session>, Refusal>> + Send;
    /// Capabilities that the caller's client declares.
    fn capabilities(&self) -> &Bytes;
    /// Whether the questions of the task go to the caller of this request.
    fn is_asked(&self, task: &ServerTask) -> bool;
    /// Whether it has ended.
    fn is_over(&self) -> bool;
    /// Receives the questions.
    fn events(&self) -> &dyn CallEvents;
}

/// Looks at a task (`tasks/get`).
///
/// # Errors
/// Why its state is not known.
pub async fn look(session: &Session, task: &ServerTask) -> Result<WrittenTask, Failed> {
    let answer = session.ask_task("tasks/get", &task.origin.own).await?;
    if answer.outcome != Outcome::Ok {
        return Err(Failed::Error(answer));
    }
    let own = task::report(&answer.payload).filter(|report| *report.named.id == *task.origin.own);
    let report = own.ok_or_else(|| {
        let what = format!(
            "the server `{}` gave an unusable answer about a task",
            session.upstream()
        );
        Refusal::new(RefusalCode::UpstreamFailed, what)
    })?;
    task.update(&report, &answer.payload.bytes);
    Ok(WrittenTask {
        answer,
        status: report.status,
    })
}

/// The end of a task of 2025-11-25, as the answer of its call (`tasks/result`); `None` while it has
/// none.
///
/// # Errors
/// A refusal when the server cannot be asked.
pub async fn end_of(
    session: &Session,
    task: &ServerTask,
    look: &WrittenTask,
) -> Result<Option<Answer>, Refusal> {
    match look.status {
        Some(TaskStatus::Completed | TaskStatus::Failed) => {}
        Some(TaskStatus::Working | TaskStatus::InputRequired | TaskStatus::Cancelled) | None => {
            return Ok(None);
        }
    }
    let end = session.ask_task("tasks/result", &task.origin.own).await?;
    task.relayed("tasks/result", end.outcome);
    Ok(Some(end))
}

/// Waits for the end of a modern task on behalf of a request, and returns the answer of the task's
/// call. Ends at once, with any refusal, when the request is over.
///
/// # Errors
/// Why there is no answer.
pub async fn wait(by: &impl AwaitsEnd, task: &ServerTask) -> Result<Answer, Refusal> {
    let began = Instant::now();
    let mut failures = 0;
    let questions = TaskQuestions::new(&task.origin.own, by.capabilities());
    loop {
        let session = by.session(task).await?;
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
                    (Some(TaskStatus::Cancelled), _) => return Err(cancelled()),
                    (Some(TaskStatus::Completed | TaskStatus::Failed), None) => {
                        let what = "the server ended the task without a result";
                        return Err(Refusal::new(RefusalCode::UpstreamFailed, what));
                    }
                    (Some(TaskStatus::InputRequired), None) if by.is_asked(task) => {
                        if let Err(refusal) = questions.ask(&session, look.raw(), by.events()) {
                            cancel(&session, task).await;
                            return Err(refusal);
                        }
                    }
                    (Some(TaskStatus::Working | TaskStatus::InputRequired) | None, None) => {}
                }
                task::poll_ms(look.raw()).unwrap_or(POLL_MS)
            }
        };
        if task.is_cancelled() {
            return Err(cancelled());
        }
        let left = session.longest().saturating_sub(began.elapsed());
        let pause = bounded(pause_ms).min(left);
        if by.is_over() || millis(pause) == 0 {
            return Err(session.too_slow());
        }
        // What is answered meanwhile may end it.
        let _ = tokio::time::timeout(pause, questions.changed()).await;
        match questions.failed() {
            Some(Unanswered::Undelivered(refusal)) => return Err(refusal),
            Some(Unanswered::Refused(refusal)) => {
                cancel(&session, task).await;
                return Err(refusal);
            }
            None => {}
        }
    }
}

/// The time before the next look, of one that its server wishes, in milliseconds.
fn bounded(pause_ms: u64) -> Duration {
    Duration::from_millis(pause_ms.clamp(POLL_MS_MIN, POLL_MS_MAX))
}

/// Cancels a task that asks what its caller cannot be asked. A task that is followed ends with its
/// call.
async fn cancel(session: &Session, task: &ServerTask) {
    if !task.followed {
        session.cancel_task(&task.origin.own).await;
        task.cancel();
    }
}

/// The refusal of the result of a task that was cancelled.
pub fn cancelled() -> Refusal {
    Refusal::new(RefusalCode::UpstreamFailed, "the task was cancelled")
}

/// Asks the servers for the states of tasks, each by this session. A task whose server does not
/// answer in time keeps the state that is known; one that its server does not know any more is
/// over, and forgotten.
pub async fn refresh(tasks: impl Iterator<Item = (Arc<ServerTask>, Arc<Session>)>) {
    let mut asking = JoinSet::new();
    for (task, session) in tasks {
        asking.spawn(async move {
            let Some(message) = session.get_task(&task.origin.own).await else {
                return;
            };
            if message
                .error_object()
                .is_some_and(|error| error.code == code::INVALID_PARAMS)
            {
                return task.dismiss();
            }
            let payload = relay::decode_answer(&message, session.era()).payload;
            if let Some(report) =
                task::report(&payload).filter(|report| *report.named.id == *task.origin.own)
            {
                task.update(&report, &payload.bytes);
            }
        });
    }
    while asking.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_at_a_task_are_neither_too_frequent_nor_too_rare() {
        for (wished, expected) in [
            (0, POLL_MS_MIN),
            (POLL_MS_MIN - 1, POLL_MS_MIN),
            (POLL_MS_MIN, POLL_MS_MIN),
            (POLL_MS, POLL_MS),
            (POLL_MS_MAX, POLL_MS_MAX),
            (POLL_MS_MAX + 1, POLL_MS_MAX),
            (u64::MAX, POLL_MS_MAX),
        ] {
            assert_eq!(bounded(wished), Duration::from_millis(expected), "{wished}");
        }
    }
}
