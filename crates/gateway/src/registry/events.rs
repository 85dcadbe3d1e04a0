//! Events of servers' sessions, passed to every topic in which the server takes part.

use std::sync::Arc;

use model::{ListKind, Notice};
use upstream::{Question, Session, SessionEvents};
use wire::rpc::Id;

use super::Registry;
use crate::servers::unasked;

impl SessionEvents for Registry {
    fn notice(&self, session: &Arc<Session>, notice: Notice) {
        self.topics().iter().for_each(|dispatch| dispatch.session_notice(session, notice.clone()));
    }

    fn question(&self, session: &Arc<Session>, question: Question) {
        if !self.topics().iter().any(|dispatch| dispatch.session_question(session, &question)) {
            question.refuse(&unasked());
        }
    }

    fn withdrawn(&self, session: &Arc<Session>, id: Id) {
        self.topics().iter().for_each(|dispatch| dispatch.session_withdrawn(session, id.clone()));
    }

    fn changed(&self, session: &Arc<Session>, announced: &[ListKind]) {
        self.topics().iter().for_each(|dispatch| dispatch.session_changed(session, announced));
    }

    fn ended(&self, session: &Arc<Session>) {
        self.topics().iter().for_each(|dispatch| dispatch.session_ended(session));
    }
}
