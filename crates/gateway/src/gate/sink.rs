//! What upstream sessions tell that is about no call: passed on to every topic in which the server takes part.
//!
//! Must not know what a topic does with it.

use std::sync::Arc;

use bytes::Bytes;
use upstream::{QuestionId, Session, SessionEvents};
use wire::mcp::ListKind;
use wire::rpc::Message;

use super::Gate;
use crate::operation::decline;

impl SessionEvents for Gate {
    fn notice(&self, session: &Arc<Session>, method: &str, frame: Bytes) {
        self.topics().iter().for_each(|pump| pump.tell(session, method, &frame));
    }

    fn question(&self, session: &Arc<Session>, question: QuestionId, message: Message) {
        if !self.topics().iter().any(|pump| pump.ask_owner(session, question, &message)) {
            decline(session, question);
        }
    }

    fn withdrawn(&self, session: &Arc<Session>, question: QuestionId) {
        self.topics().iter().for_each(|pump| pump.unask_owner(session, question));
    }

    fn changed(&self, session: &Arc<Session>, told: &[ListKind]) {
        for pump in self.topics() {
            pump.changed(session, told);
            pump.opened(session);
        }
    }

    fn ended(&self, session: &Arc<Session>) {
        self.topics().iter().for_each(|pump| pump.ended(session));
    }
}
