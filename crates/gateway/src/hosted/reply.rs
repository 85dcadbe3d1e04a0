//! The answer of a hosted participant: an envelope to whoever asked (MCPx v0.1, section 3.1.2).
//!
//! Must not know what is answered.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use model::{Era, LinkId, ParticipantId, Refusal};
use wire::mcp::refusal;
use wire::mcpx::check::Call;
use wire::mcpx::{Envelope, Head};
use wire::rpc::{self, Id, Message};

use crate::caller::Caller;
use crate::pump::{Pump, Seat};
use crate::stream::Reader;

/// Where an answer goes, and under which name.
pub(crate) struct Reply {
    pump: Weak<Pump>,
    /// Who answers.
    from: ParticipantId,
    link: LinkId,
    to: Vec<String>,
    kind: String,
    correlation_id: String,
    /// The only one who hears it, if not everybody whose ear it is for.
    alone: Option<LinkId>,
}

impl Reply {
    /// The answer to this envelope. Until [`Reply::about`] its kind is the request's own.
    pub(super) fn new(
        pump: &Arc<Pump>,
        from: ParticipantId,
        link: LinkId,
        caller: &Caller,
        envelope: &Envelope,
    ) -> Self {
        Self {
            pump: Arc::downgrade(pump),
            from,
            link,
            to: vec![caller.participant().id.as_str().to_owned()],
            kind: envelope.kind().replacen("mcp/request:", "mcp/response:", 1),
            correlation_id: envelope.id().to_owned(),
            alone: None,
        }
    }

    /// The answer to what was approved by somebody who may have said no envelope.
    pub(crate) fn of_proposal(
        pump: &Arc<Pump>,
        seat: &Seat,
        to: Vec<String>,
        kind: String,
        fulfilment: &str,
    ) -> Self {
        let (from, link) = (seat.id.clone(), seat.link);
        let (pump, correlation_id) = (Arc::downgrade(pump), fulfilment.to_owned());
        Self { pump, from, link, to, kind, correlation_id, alone: None }
    }

    /// What the gateway's own tools say is for whoever asked, and heard by nobody else.
    pub(super) fn only_to(&mut self, link: LinkId) {
        self.alone = Some(link);
    }

    /// Adds somebody whom the answer concerns.
    pub(super) fn also(&mut self, id: &str) {
        if !self.to.iter().any(|to| to == id) {
            self.to.push(id.to_owned());
        }
    }

    /// Takes the extended kind of a call that was checked (Decision 002).
    pub(super) fn about(&mut self, call: &Call) {
        if let Ok(kind) = call.kind(Head::Response) {
            self.kind = kind;
        }
    }

    /// Says a result.
    pub(super) fn result(&self, request: &Message, result: &[u8]) {
        if let Some(id) = request.id() {
            self.say(&self.kind, &rpc::result(id, result));
        }
    }

    /// Says a whole answer.
    pub(super) fn frame(&self, frame: &[u8]) {
        self.say(&self.kind, frame);
    }

    /// Says a refusal, as MCP spells it.
    pub(super) fn refused(&self, request: &Message, refusal: &Refusal) {
        let spelled = refusal::spell(refusal, Era::Legacy, request.method(), None);
        self.frame(&spelled.answer(request.id()));
    }

    /// Says an error.
    pub(super) fn error(&self, id: Option<&Id>, code: i64, why: &str) {
        self.say(&self.kind, &rpc::error(id, code, why, None));
    }

    /// Says what comes on this stream, until its answer has come.
    pub(super) fn follow(self, mut reader: Reader) {
        while let Some(item) = reader.try_next() {
            if self.pass(&item.frame, item.last) {
                return;
            }
        }
        tokio::spawn(async move {
            while let Some(item) = reader.next().await {
                if self.pass(&item.frame, item.last) {
                    return;
                }
            }
        });
    }

    /// True when it was the last.
    fn pass(&self, frame: &Bytes, last: bool) -> bool {
        if last {
            self.say(&self.kind, frame);
        } else if let Ok(message) = Message::read(frame.clone()) {
            self.say(&format!("mcp/request:{}", message.method()), frame);
        }
        last
    }

    fn say(&self, kind: &str, payload: &[u8]) {
        let Some(pump) = self.pump.upgrade() else { return };
        let to: Vec<&str> = self.to.iter().map(String::as_str).collect();
        let (from, about) = (self.from.as_str(), self.correlation_id.as_str());
        match self.alone {
            Some(link) => pump.answer_alone(link, from, &to, kind, about, payload),
            None => pump.announce(self.link, from, &to, kind, Some(about), payload),
        }
    }
}
