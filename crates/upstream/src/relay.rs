//! Between a session and whoever listens to it: the upstream hears first what concerns it.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use wire::mcp::ListKind;
use wire::rpc::Message;

use super::session::{Session, SessionSink};
use super::sink::QuestionId;

/// What an upstream must hear of its sessions.
pub(super) trait Overseer: Send + Sync {
    /// A session has ended.
    fn lost(&self, session: &Arc<Session>);
    /// A session's manifest is another now.
    fn listed(&self, session: &Arc<Session>);
    /// Trouble with a session has begun, or is over.
    fn state(&self);
}

/// The sink that every session of an upstream is given.
pub(super) struct Relay {
    upstream: Weak<dyn Overseer>,
    sink: Arc<dyn SessionSink>,
}

impl Relay {
    pub(super) fn new(upstream: Weak<dyn Overseer>, sink: Arc<dyn SessionSink>) -> Self {
        Self { upstream, sink }
    }
}

impl SessionSink for Relay {
    fn notice(&self, session: &Arc<Session>, method: &str, frame: Bytes) {
        self.sink.notice(session, method, frame);
    }

    fn question(&self, session: &Arc<Session>, question: QuestionId, message: Message) {
        self.sink.question(session, question, message);
    }

    fn withdrawn(&self, session: &Arc<Session>, question: QuestionId) {
        self.sink.withdrawn(session, question);
    }

    fn changed(&self, session: &Arc<Session>, told: &[ListKind]) {
        if let Some(upstream) = self.upstream.upgrade() {
            upstream.listed(session);
        }
        self.sink.changed(session, told);
    }

    fn ended(&self, session: &Arc<Session>) {
        if let Some(upstream) = self.upstream.upgrade() {
            upstream.lost(session);
        }
        self.sink.ended(session);
    }

    fn state(&self) {
        if let Some(upstream) = self.upstream.upgrade() {
            upstream.state();
        }
    }
}
