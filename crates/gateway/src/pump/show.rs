//! When the room sees MCP clients' calls: in the topic's order, and only while somebody watches.
//!
//! Must not know how a call is written.

use std::sync::Arc;

use model::{Era, Outcome};
use room::{Message, RoomEvent};
use topic::{Effect, Topic};
use wire::mcp::Params;
use wire::time::rfc3339;

use super::Pump;
use crate::config::McpCalls;
use crate::operation::Operation;
use crate::sight::{Answered, Asked, Sight, Stamp};
use platform::unix_ms;
use upstream::Answer;

impl Pump {
    /// Shows a request that goes to an upstream. Called before the topic is let go.
    pub(super) fn show_call(
        &self,
        topic: &Topic,
        effects: &[Effect],
        operation: &Operation,
        params: &Params<'_>,
    ) {
        if !topic.is_watched() || self.mcp_calls == McpCalls::None {
            return;
        }
        let delivered = effects.iter().find_map(|effect| {
            let Effect::Deliver { operation: id, to, own, .. } = effect else { return None };
            (*id == operation.id && *to != self.own.0).then_some((to, own))
        });
        let Some((to, own)) = delivered else { return };
        let message = params.message();
        // A task's id is no part of a kind.
        let named = params.target().filter(|target| !matches!(target, wire::mcp::Target::Task(_)));
        let context = own.clone().or_else(|| named.map(|target| target.text().into()));
        let from = &operation.caller.participant().id;
        let sight = Sight::new(operation.id, [from, to], message.method(), context);
        // An operation is delivered once.
        let _ = operation.shown.set(Arc::clone(&sight));
        let asked = (self.mcp_calls == McpCalls::Full).then(|| Asked {
            message: message.clone(),
            era: operation.caller.era(),
            own: own.clone(),
        });
        let (bytes, at_ms) = (asked.as_ref().map_or(0, |asked| asked.message.frame().len()), unix_ms());
        self.show_later(bytes, move || sight.request(&rfc3339(at_ms), asked.as_ref()));
    }

    /// Shows the end of a call that was shown, if this step settled it. Called before the topic is let go.
    pub(super) fn show_answer(
        &self,
        topic: &Topic,
        effects: &[Effect],
        operation: &Operation,
        answer: Option<&Answer>,
    ) {
        if operation.shown.get().is_none() {
            return;
        }
        let settled = effects.iter().find_map(|effect| {
            let Effect::Settle { operation: id, outcome, .. } = effect else { return None };
            (*id == operation.id).then_some(*outcome)
        });
        if let Some(outcome) = settled {
            self.show_end(topic, operation, outcome, answer);
        }
    }

    /// Shows that a call came to nothing.
    pub(super) fn show_unanswered(&self, operation: &Operation, outcome: Outcome) {
        if operation.shown.get().is_some() {
            self.show_end(&self.topic(), operation, outcome, None);
        }
    }

    fn show_end(&self, topic: &Topic, operation: &Operation, outcome: Outcome, answer: Option<&Answer>) {
        let Some(sight) = operation.shown.get().filter(|sight| sight.ends()) else { return };
        if !topic.is_watched() {
            return;
        }
        let (whole, era) =
            (self.mcp_calls == McpCalls::Full, operation.session().map(|session| session.era()));
        // A modern server's answer may be a question.
        let era = era.filter(|era| whole || *era == Era::Modern);
        let answered =
            answer.zip(era).map(|(answer, era)| Answered { message: answer.message.clone(), era, whole });
        let bytes = answered.as_ref().map_or(0, |answered| answered.message.frame().len());
        let (id, at_ms, sight) = (self.ground.operation(), unix_ms(), Arc::clone(sight));
        self.show_later(bytes, move || {
            let stamp = Stamp { id: id.to_string(), ts: rfc3339(at_ms) };
            sight.response(&stamp, outcome, answered.as_ref())
        });
    }

    /// It is written by the room's own task, and only its place is taken here.
    fn show_later(&self, bytes: usize, write: impl FnOnce() -> Option<Message> + Send + 'static) {
        self.room.push(RoomEvent::Mirror { bytes, write: Box::new(write) });
    }
}
