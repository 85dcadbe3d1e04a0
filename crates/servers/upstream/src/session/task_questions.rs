//! Questions of a modern server's task (`inputRequests`), asked of a caller that awaits the task's
//! end and is asked by requests. Each answer goes back at once (`tasks/update`).

use std::sync::{Arc, Weak};

use bytes::Bytes;
use model::{Answer, Form, Refusal, RefusalCode};
use platform::Mutex;
use tokio::sync::Notify;
use wire::mcp::{input, relay, task};
use wire::rpc::Id;

use super::Session;
use crate::question::{self, Asking, Question};
use crate::session_api::CallEvents;

/// Questions of one task that its caller is asked while it waits. A task that asks more gets no
/// answer, and the caller an error.
pub const TASK_QUESTIONS_MAX: usize = 64;

/// The questions that the caller of one request was asked.
#[derive(Debug)]
pub struct TaskQuestions {
    me: Weak<Self>,
    /// The server's id of the task.
    task: Arc<str>,
    /// Capabilities that the caller's client declares.
    capabilities: Bytes,
    asked: Mutex<AllAsked>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct AllAsked {
    /// The session by which the task was looked at last.
    session: Weak<Session>,
    questions: Vec<Asked>,
    failed: Option<Unanswered>,
}

/// Why a question has no answer.
#[derive(Debug, Clone)]
pub enum Unanswered {
    /// It reached no client: another request for the task's end can be asked.
    Undelivered(Refusal),
    /// The client did not answer it, or the server did not take the answer.
    Refused(Refusal),
}

#[derive(Debug)]
struct Asked {
    /// Its key at the server, which is never used again.
    key: String,
    /// Its id at the caller.
    id: u64,
    may_cancel: bool,
    answered: bool,
}

impl TaskQuestions {
    /// The questions of a task to a client with these capabilities.
    #[must_use]
    pub fn new(task: &Arc<str>, capabilities: &Bytes) -> Arc<Self> {
        let task = Arc::clone(task);
        let capabilities = capabilities.clone();
        let (asked, changed) = <_>::default();
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            task,
            capabilities,
            asked,
            changed,
        })
    }

    /// Asks what the task asks as its server has just written it, and was not asked before.
    ///
    /// # Errors
    /// Why the caller cannot be asked.
    pub fn ask(
        &self,
        session: &Arc<Session>,
        task: &[u8],
        events: &dyn CallEvents,
    ) -> Result<(), Refusal> {
        let numbers = &session.setup.environment.numbers;
        let asked = input::of_task(task, &self.task, || format!("portmoot-{}", numbers.next()));
        let mut questions =
            asked.ok_or_else(|| failed("the server asks for something that cannot be read"))?;
        let ids: Vec<u64> = {
            let mut all = self.asked.lock();
            all.session = Arc::downgrade(session);
            questions.retain(|(key, _)| all.questions.iter().all(|known| known.key != *key));
            question::check_declared(&self.capabilities, &questions)?;
            if all.questions.len() + questions.len() > TASK_QUESTIONS_MAX {
                return Err(failed("the server asks again and again"));
            }
            let asked = questions.iter().map(|(key, request)| Asked {
                key: key.clone(),
                id: numbers.next(),
                may_cancel: question::may_cancel(request),
                answered: false,
            });
            let asked: Vec<Asked> = asked.collect();
            let ids = asked.iter().map(|asked| asked.id).collect();
            all.questions.extend(asked);
            ids
        };
        let asking: Weak<dyn Asking> = Weak::<Self>::clone(&self.me);
        for ((_, request), id) in questions.into_iter().zip(ids) {
            let asking = Weak::clone(&asking);
            events.question(Question::new(
                asking,
                session.instance(),
                Id::number(id),
                request,
                None,
            ));
        }
        Ok(())
    }

    /// Why the questions have no answers.
    pub fn failed(&self) -> Option<Unanswered> {
        self.asked.lock().failed.clone()
    }

    /// Waits until the server has an answer, or there is none.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    fn fail(&self, why: Unanswered) {
        self.asked.lock().failed.get_or_insert(why);
        self.changed.notify_one();
    }

    /// Takes the answer to one question, if the client gave one.
    fn take(&self, id: &Id, answer: Option<&Answer>) {
        let Some(id) = id.as_number() else {
            return;
        };
        let (session, key, given) = {
            let mut all = self.asked.lock();
            let session = all.session.upgrade();
            let open = all
                .questions
                .iter_mut()
                .find(|asked| asked.id == id && !asked.answered);
            let Some(asked) = open else { return };
            asked.answered = true;
            (
                session,
                asked.key.clone(),
                question::given(answer, asked.may_cancel),
            )
        };
        let (Some(session), Some(me)) = (session, self.me.upgrade()) else {
            return;
        };
        let Some(given) = given else {
            return self.fail(Unanswered::Refused(question::unanswered()));
        };
        let responses = input::entries(&[(key, given.to_vec())]);
        tokio::spawn(async move {
            match session.answer_task(&me.task, &responses).await {
                Ok(()) => me.changed.notify_one(),
                Err(fault) => me.fail(Unanswered::Refused(session.refusal(&fault))),
            }
        });
    }
}

impl Asking for TaskQuestions {
    fn take_answer(
        &self,
        question: &Question,
        given: Result<&Answer, &Refusal>,
    ) -> Result<(), Refusal> {
        let method = question.request().method.as_str();
        let convert = |answer: &Answer| {
            // The modern form has no messages that belong to a task.
            let payload = task::unrelated(&answer.payload);
            let payload = payload.unwrap_or_else(|| answer.payload.clone());
            let plain = Answer {
                payload,
                outcome: answer.outcome,
            };
            relay::convert_answer(&plain, method, Form::Legacy, &|_| None)
        };
        self.take(question.id(), given.ok().map(convert).as_ref());
        Ok(())
    }

    fn is_undelivered(&self, why: &Refusal) -> bool {
        self.fail(Unanswered::Undelivered(why.clone()));
        true
    }

    fn count_question(&self, _: Option<u64>, _: bool) {}
}

fn failed(what: &'static str) -> Refusal {
    Refusal::new(RefusalCode::UpstreamFailed, what)
}
