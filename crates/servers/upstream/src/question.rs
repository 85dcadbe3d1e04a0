//! Question: a request of a server to a client, and its answer.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use model::{Answer, Outcome, Refusal, RefusalCode, Request};
use wire::mcp::input;
use wire::rpc::Id;

/// The session on which a server asks, as far as its question needs it.
pub trait Asking: Send + Sync {
    /// Takes the client's answer to a question, or the refusal in its place.
    ///
    /// # Errors
    /// A refusal when the server is busy or down.
    fn take_answer(
        &self,
        question: &Question,
        given: Result<&Answer, &Refusal>,
    ) -> Result<(), Refusal>;
    /// Takes that a question reached no client, for this reason; false if the server gets that as
    /// the answer.
    fn is_undelivered(&self, _why: &Refusal) -> bool {
        false
    }
    /// Counts a question that begins or ends.
    fn count_question(&self, call: Option<u64>, begins: bool);
}

/// The answer to an elicitation that a client refuses to show.
const CANCELLED: &[u8] = br#"{"action":"cancel"}"#;

/// Whether a user may cancel a question: an elicitation.
pub(crate) fn may_cancel(question: &Request) -> bool {
    question.method.as_str() == "elicitation/create"
}

/// Answer to a question as a modern server gets it: a client's error is a cancelled elicitation,
/// and no answer to another question, because the server could do nothing with an error.
pub(crate) fn given(answer: Option<&Answer>, may_cancel: bool) -> Option<Bytes> {
    match answer {
        Some(answer) if answer.outcome == Outcome::Ok => Some(answer.payload.to_body()),
        Some(_) | None => may_cancel.then(|| Bytes::from_static(CANCELLED)),
    }
}

/// Checks what a modern server asks a client with these capabilities.
///
/// # Errors
/// The refusal of a question that the client has not declared.
pub(crate) fn check_declared(
    capabilities: &[u8],
    questions: &[(String, Request)],
) -> Result<(), Refusal> {
    let Some((_, question)) = questions
        .iter()
        .find(|(_, question)| !input::is_declared(capabilities, question))
    else {
        return Ok(());
    };
    let what = format!(
        "the server asks for `{}`, which this client does not support",
        question.method.as_str()
    );
    Err(Refusal::new(RefusalCode::UpstreamFailed, what))
}

/// The refusal of a call whose client did not answer.
pub(crate) fn unanswered() -> Refusal {
    Refusal::new(
        RefusalCode::UpstreamFailed,
        "the client did not answer what the server asks",
    )
}

/// A question: a request of a server to a client. Cheap to clone. While it exists, the call that it
/// belongs to does not expire before its hard maximum: a person may be typing.
#[derive(Debug, Clone)]
pub struct Question(Arc<Asked>);

struct Asked {
    session: Weak<dyn Asking>,
    instance: u64,
    id: Id,
    request: Request,
    call: Option<u64>,
}

impl Question {
    /// A question on the session of this instance number.
    pub fn new(
        session: Weak<dyn Asking>,
        instance: u64,
        id: Id,
        request: Request,
        call: Option<u64>,
    ) -> Self {
        if let Some(session) = session.upgrade() {
            session.count_question(call, true);
        }
        Self(Arc::new(Asked {
            session,
            instance,
            id,
            request,
            call,
        }))
    }

    /// The request, as the server wrote it.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.0.request
    }

    /// The server's id of it.
    #[must_use]
    pub fn id(&self) -> &Id {
        &self.0.id
    }

    /// The instance number of its session, which tells equal ids of several sessions apart.
    #[must_use]
    pub fn instance(&self) -> u64 {
        self.0.instance
    }

    /// The number of the call that it belongs to, if there is one.
    pub(crate) fn call(&self) -> Option<u64> {
        self.0.call
    }

    /// Sends the client's answer to the server.
    ///
    /// # Errors
    /// A refusal when the server is busy or down.
    pub fn answer(&self, answer: &Answer) -> Result<(), Refusal> {
        // A session that is gone waits for nothing.
        let Some(session) = self.0.session.upgrade() else {
            return Ok(());
        };
        session.take_answer(self, Ok(answer))
    }

    /// Answers the server that there is no answer, for this reason.
    pub fn refuse(&self, refusal: &Refusal) {
        let Some(session) = self
            .0
            .session
            .upgrade()
            .filter(|session| !session.is_undelivered(refusal))
        else {
            return;
        };
        if let Err(unsent) = session.take_answer(self, Err(refusal)) {
            tracing::debug!(refusal = %unsent, "a question could not be refused");
        }
    }
}

impl std::fmt::Debug for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Question")
            .field("id", &self.id)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(session) = self.session.upgrade() {
            session.count_question(self.call, false);
        }
    }
}
