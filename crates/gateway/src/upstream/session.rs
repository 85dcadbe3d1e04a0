//! One session with one server.

use std::sync::Arc;

use bytes::Bytes;
use model::{Era, LinkId, Refusal, RefusalCode};
use wire::rpc::Message;

use super::manifest::Manifest;
use super::sink::{CallSink, Outgoing, QuestionId, SessionKey, Ticket};

/// One session with one server: shared, or one caller's.
#[derive(Debug)]
pub struct Session {
    key: SessionKey,
    era: Era,
}

impl Session {
    /// The server's configured name.
    #[must_use]
    pub fn upstream(&self) -> &str {
        ""
    }

    /// Whose it is.
    #[must_use]
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// The era in which everything on it is written.
    #[must_use]
    pub fn era(&self) -> Era {
        self.era
    }

    /// The revision that was agreed on.
    #[must_use]
    pub fn version(&self) -> &str {
        ""
    }

    /// True until it has ended.
    #[must_use]
    pub fn is_open(&self) -> bool {
        false
    }

    /// What the server offers on this session, as last known.
    #[must_use]
    pub fn manifest(&self) -> Arc<Manifest> {
        Arc::default()
    }

    /// The result of `initialize` (legacy) or `server/discover` (modern), raw.
    #[must_use]
    pub fn greeting(&self) -> Bytes {
        Bytes::new()
    }

    /// Sends a request; its answer, progress and questions go to the sink. Never waits.
    ///
    /// # Errors
    /// A refusal when the upstream is busy or down; then the sink is not used.
    pub fn call(&self, call: Outgoing<'_>, sink: Arc<dyn CallSink>) -> Result<Ticket, Refusal> {
        let _ = (call, sink);
        Err(Refusal::new(RefusalCode::UpstreamDown, "not started"))
    }

    /// Takes a call back: the server is told in its era's way, and the sink hears nothing more.
    pub fn cancel(&self, ticket: Ticket, reason: &str) {
        let _ = (ticket, reason);
    }

    /// Answers a server's question; `answer` is a result or an error with any id.
    ///
    /// # Errors
    /// A refusal when the question is not open any more or the answer cannot be sent.
    pub fn answer(&self, question: QuestionId, answer: &Message) -> Result<(), Refusal> {
        let _ = (question, answer);
        Ok(())
    }

    /// Sends a notification of the session's owner, such as `notifications/roots/list_changed`.
    ///
    /// # Errors
    /// A refusal when the upstream is busy or down.
    pub fn notify(&self, frame: Bytes) -> Result<(), Refusal> {
        let _ = frame;
        Ok(())
    }

    /// Wants updates of a resource for one link of ours; the server is asked once per URI. Updates go to
    /// [`super::SessionSink::notice`].
    ///
    /// # Errors
    /// A refusal when the server cannot do it or said no.
    pub async fn subscribe(&self, link: LinkId, uri: &str) -> Result<(), Refusal> {
        let _ = (link, uri);
        Ok(())
    }

    /// Wants no more updates of a resource.
    pub fn unsubscribe(&self, link: LinkId, uri: &str) {
        let _ = (link, uri);
    }

    /// Drops everything that a link wanted.
    pub fn forget(&self, link: LinkId) {
        let _ = link;
    }

    /// Sets the level of log messages of a legacy session (`logging/setLevel`); nothing where the server has no logging.
    ///
    /// # Errors
    /// A refusal when the server said no.
    pub async fn set_level(&self, level: &str) -> Result<(), Refusal> {
        let _ = level;
        Ok(())
    }

    /// Ends the session in order.
    pub async fn close(&self) {}
}
