//! Reply to an envelope: answers, notifications and refusals of a call that came from the room
//! (MCPx v0.1, section 3.1.2).

use std::sync::{Arc, Weak};

use model::{Answer, LinkId, ParticipantId, Refusal};
use wire::mcp::relay;
use wire::mcpx::{is_too_deep, payload};

use crate::call::{Call, Reply};
use crate::dispatch::Dispatch;
use crate::link::{Passed, Respell, Undelivered};

/// The way back of a call that came as an envelope, or of an approved proposal that the gateway has
/// a server carry out: an envelope of the server to the sender and, if the call carries out a
/// proposal, to its proposer.
pub(crate) struct RoomReply {
    dispatch: Weak<Dispatch>,
    /// The server.
    from: ParticipantId,
    to: Vec<String>,
    /// The kind of the answer.
    kind: String,
    /// The envelope that is answered.
    correlation: String,
    /// The only link that gets the answer.
    pub(crate) alone: Option<LinkId>,
}

impl RoomReply {
    /// The way back to these participants, as the answer of this kind to an envelope.
    pub(crate) fn new(
        dispatch: &Arc<Dispatch>,
        server: &ParticipantId,
        to: Vec<String>,
        kind: String,
        envelope: &str,
    ) -> Self {
        let dispatch = Arc::downgrade(dispatch);
        let correlation = envelope.to_owned();
        Self {
            dispatch,
            from: server.clone(),
            to,
            kind,
            correlation,
            alone: None,
        }
    }

    fn send(&self, call: &Call, kind: &str, payload: &[u8]) {
        let Some(dispatch) = self.dispatch.upgrade() else {
            return;
        };
        let proposal = call
            .delivered
            .get()
            .and_then(|delivered| delivered.proposal);
        let proposer = proposal.and_then(|id| dispatch.with(|topic| Some(topic.proposal(id)?.by)));
        let to = receivers(&self.to, proposer.as_ref().map(ParticipantId::as_str));
        let Some(link) = self.alone else {
            return dispatch.announce_server(&self.from, &to, kind, &self.correlation, payload);
        };
        dispatch.answer_alone(link, &self.from, &to, kind, &self.correlation, payload);
    }
}

impl Reply for RoomReply {
    fn settle(&self, call: &Call, answer: &Answer, _: &Respell<'_>) {
        let id = call.tag.as_ref().map(|tag| &tag.id);
        self.send(
            call,
            &self.kind,
            &payload::room_answer(answer, call.request.method.as_str(), id),
        );
    }

    fn refuse(&self, call: &Call, refusal: &Refusal) {
        let id = call.tag.as_ref().map(|tag| &tag.id);
        self.send(
            call,
            &self.kind,
            &payload::refused(refusal, call.request.method.as_str(), id),
        );
    }

    fn notify(&self, call: &Call, notice: &Passed<'_>) -> Result<(), Undelivered> {
        let kind = format!("mcp/request:{}", notice.notice.method.as_str());
        let payload = relay::encode_notice(notice.notice, None);
        if !is_too_deep(&payload) {
            self.send(call, &kind, &payload);
        }
        Ok(())
    }
}

/// The receivers of an envelope, the proposer among them.
fn receivers<'r>(to: &'r [String], proposer: Option<&'r str>) -> Vec<&'r str> {
    let mut all: Vec<&str> = to.iter().map(String::as_str).collect();
    all.extend(proposer.filter(|proposer| !to.iter().any(|to| to == proposer)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proposer_is_named_once() {
        let to = ["ann".to_owned(), "bob".to_owned()];
        assert_eq!(receivers(&to, None), ["ann", "bob"]);
        assert_eq!(receivers(&to, Some("bob")), ["ann", "bob"]);
        assert_eq!(receivers(&to, Some("cid")), ["ann", "bob", "cid"]);
    }
}
