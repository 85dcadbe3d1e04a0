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
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            task: Arc::clone(task),
            capabilities: capabilities.clone(),
            asked: Mutex::default(),
            changed: Notify::new(),
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
        let Some(mut questions) = asked else {
            return Err(failed("the server asks for something that cannot be read"));
        };
        let mut ids = Vec::with_capacity(questions.len());
        {
            let mut all = self.asked.lock();
            all.session = Arc::downgrade(session);
            // A server repeats its questions until it has the answers.
            questions.retain(|(key, _)| all.questions.iter().all(|known| known.key != *key));
            question::check_declared(&self.capabilities, &questions)?;
            if all.questions.len() + questions.len() > TASK_QUESTIONS_MAX {
                return Err(failed("the server asks again and again"));
            }
            for (key, request) in &questions {
                let id = numbers.next();
                ids.push(id);
                all.questions.push(Asked {
                    key: key.clone(),
                    id,
                    may_cancel: question::may_cancel(request),
                    answered: false,
                });
            }
        }
        // Not under the lock: an answer may come at once.
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

    /// Receives the answer to one question, if the client gave one.
    fn receive(&self, id: &Id, answer: Option<&Answer>) {
        let Some(id) = id.as_number() else {
            return;
        };
        let mut all = self.asked.lock();
        let session = all.session.upgrade();
        let open = all
            .questions
            .iter_mut()
            .find(|asked| asked.id == id && !asked.answered);
        let Some(asked) = open else { return };
        asked.answered = true;
        let key = asked.key.clone();
        let given = question::given(answer, asked.may_cancel);
        drop(all);
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
        let answer = given.ok().map(|answer| plain(answer, method));
        self.receive(question.id(), answer.as_ref());
        Ok(())
    }

    fn is_undelivered(&self, why: &Refusal) -> bool {
        self.fail(Unanswered::Undelivered(why.clone()));
        true
    }

    fn count_question(&self, _: Option<u64>, _: bool) {}
}

/// An answer as the server of the task reads it: the modern form has no messages that belong to a
/// task.
fn plain(answer: &Answer, method: &str) -> Answer {
    let payload = task::unrelated(&answer.payload);
    let unrelated = Answer {
        payload: payload.unwrap_or_else(|| answer.payload.clone()),
        outcome: answer.outcome,
    };
    relay::convert_answer(&unrelated, method, Form::Legacy, &|_| None)
}

fn failed(what: &'static str) -> Refusal {
    Refusal::new(RefusalCode::UpstreamFailed, what)
}
