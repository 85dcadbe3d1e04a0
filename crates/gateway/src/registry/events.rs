//! Events of servers' sessions, passed to every topic in which the server takes part.

use std::sync::Arc;

use upstream::{Session, SessionEvent, SessionEvents};

use super::Registry;
use crate::servers::unasked;

impl SessionEvents for Registry {
    fn event(&self, session: &Arc<Session>, event: SessionEvent<'_>) {
        match &event {
            SessionEvent::Question(question) => {
                if !self.topics().iter().any(|dispatch| dispatch.session_question(session, question)) {
                    question.refuse(&unasked());
                }
            }
            _ => self.topics().iter().for_each(|dispatch| dispatch.session_event(session, &event)),
        }
    }
}
