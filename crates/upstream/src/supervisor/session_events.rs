//! Events of a server's sessions: the supervisor handles them first, then the gateway.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use wire::mcp::ListKind;
use wire::rpc::Message;

use super::Upstream;
use crate::session::{Session, SessionEvents};
use crate::session_api::QuestionId;

/// The receiver of the events of all sessions of one server.
pub(super) struct SupervisedEvents {
    pub(super) upstream: Weak<Upstream>,
    /// The gateway's receiver.
    pub(super) events: Arc<dyn SessionEvents>,
}

impl SessionEvents for SupervisedEvents {
    fn notice(&self, session: &Arc<Session>, method: &str, frame: Bytes) {
        self.events.notice(session, method, frame);
    }

    fn question(&self, session: &Arc<Session>, question: QuestionId, message: Message) {
        self.events.question(session, question, message);
    }

    fn withdrawn(&self, session: &Arc<Session>, question: QuestionId) {
        self.events.withdrawn(session, question);
    }

    fn changed(&self, session: &Arc<Session>, announced: &[ListKind]) {
        if let Some(upstream) = self.upstream.upgrade() {
            upstream.manifest_changed(session);
        }
        self.events.changed(session, announced);
    }

    fn ended(&self, session: &Arc<Session>) {
        if let Some(upstream) = self.upstream.upgrade() {
            upstream.session_ended(session);
        }
        self.events.ended(session);
    }

    fn state(&self) {
        if let Some(upstream) = self.upstream.upgrade() {
            upstream.log_status();
        }
    }
}
