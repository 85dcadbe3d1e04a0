//! Question: a request of a server to a client, and its answer.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use model::{Answer, Form, Refusal, Request};
use wire::mcp::{refusal, relay};
use wire::rpc::Id;

/// The session on which a server asks, as far as its question needs it.
pub trait Asking: Send + Sync {
    /// The form of its payloads.
    fn form(&self) -> Form;
    /// Sends the answer to a question.
    fn send_answer(&self, call: Option<u64>, frame: Bytes) -> Result<(), Refusal>;
    /// Counts a question that begins or ends.
    fn count_question(&self, call: Option<u64>, begins: bool);
}

/// A question: a request of a server to a client. Cheap to clone. While it exists, the call that it belongs to does not expire
/// before its hard maximum: a person may be typing.
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
        Self(Arc::new(Asked { session, instance, id, request, call }))
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

    /// Sends the client's answer to the server.
    ///
    /// # Errors
    /// A refusal when the server is busy or down.
    pub fn answer(&self, answer: &Answer) -> Result<(), Refusal> {
        // A session that is gone waits for nothing.
        let Some(session) = self.0.session.upgrade() else { return Ok(()) };
        let (form, id, method) = (session.form(), &self.0.id, self.0.request.method.as_str());
        let encoded = relay::encode_answer(answer, method, form, id, &|_| None);
        session.send_answer(self.0.call, encoded.frame)
    }

    /// Answers the server that there is no answer, for this reason.
    pub fn refuse(&self, refusal: &Refusal) {
        let Some(session) = self.0.session.upgrade() else { return };
        let method = self.0.request.method.as_str();
        let encoded = refusal::encode(refusal, session.form(), method, None);
        if let Err(unsent) = session.send_answer(self.0.call, encoded.answer(Some(&self.0.id))) {
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
