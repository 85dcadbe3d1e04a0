//! Events of a server's sessions: the supervisor handles them first, then the gateway.

use std::sync::{Arc, Weak};

use model::Notice;
use wire::mcp::ListKind;
use wire::rpc::Id;

use super::Upstream;
use crate::session::{Session, SessionEvents};
use crate::question::Question;

/// The receiver of the events of all sessions of one server.
pub(super) struct SupervisedEvents {
    pub(super) upstream: Weak<Upstream>,
    /// The gateway's receiver.
    pub(super) events: Arc<dyn SessionEvents>,
}

impl SessionEvents for SupervisedEvents {
    fn notice(&self, session: &Arc<Session>, notice: Notice) {
        self.events.notice(session, notice);
    }

    fn question(&self, session: &Arc<Session>, question: Question) {
        self.events.question(session, question);
    }

    fn withdrawn(&self, session: &Arc<Session>, id: Id) {
        self.events.withdrawn(session, id);
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
