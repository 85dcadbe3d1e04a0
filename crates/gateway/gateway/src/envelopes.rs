//! Envelopes of a topic's room: those that participants send, and those that the gateway sends.
//!
//! The topic decides about an envelope by its kind and addressees; what it asks of the gateway is
//! read from its payload before (`ask`), so that the decision and everything that follows from it
//! are one step.

mod ask;

use std::sync::Arc;

use bytes::Bytes;
use json::quote;
use model::{KindRef, LinkId, PAUSE, ParticipantId, Refusal, RefusalCode};
use platform::unix_ms;
use room::{RoomEvent, text};
use topic::{Audience, Cause, Ignored, Reach, Say, Verdict};
use wire::mcpx::system::{self, ErrorDraft, Stamp};
use wire::mcpx::{self, Breach, Draft, Envelope, Head, check::strict, payload};
use wire::time::rfc3339;

use crate::brakes::{self, BrakeAsk};
use crate::dispatch::{Dispatch, Refused, Step};
use crate::link::{Link, Requester};
use crate::live::Event;
use crate::proposals::kept::closed_digest;
use crate::{
    by_rule::tighten, record::Record, record::why_of, shadow_acts, traces, violations::Violation,
};

/// Beginnings of the kinds of requests and of their answers.
const REQUEST: &str = "mcp/request:";
const RESPONSE: &str = "mcp/response:";

impl Dispatch {
    /// Takes an envelope of a WebSocket: published to its audience, or answered with a
    /// `system/error`.
    pub fn say(self: &Arc<Self>, link: &Arc<Link>, envelope: Envelope) {
        let envelope = Arc::new(envelope);
        let brake = brakes::asked_by(&envelope);
        match self.step_envelope(link.opener(), &envelope, Refused::ByEffect, brake.as_ref()) {
            Ok(step) => {
                let verdict = step.carry_out();
                if let Some(Ok(asked)) = brake
                    && matches!(verdict, Some(Verdict::Admitted { .. }))
                {
                    self.brake_asked(link, envelope, asked);
                }
            }
            Err(refusal) => self.tell_refused(link.id, &link.participant.id, &envelope, &refusal),
        }
    }

    /// Takes an envelope of a sender that waits for the verdict.
    ///
    /// # Errors
    /// Why the envelope is not published.
    pub(crate) fn speak(
        self: &Arc<Self>,
        by: Requester<'_>,
        envelope: Envelope,
    ) -> Result<(), Box<Refusal>> {
        let mut step = self.step_envelope(by, &Arc::new(envelope), Refused::InStep, None)?;
        let refusal = step.refusal.take();
        step.carry_out();
        refusal.map_or(Ok(()), Err)
    }

    /// Steps the topic with an envelope, and records the verdict.
    fn step_envelope(
        self: &Arc<Self>,
        by: Requester<'_>,
        envelope: &Arc<Envelope>,
        refused: Refused,
        brake: Option<&Result<BrakeAsk, Refusal>>,
    ) -> Result<Step<'_>, Box<Refusal>> {
        let link = by.link;
        // First: an envelope whose verdict cannot be recorded is not judged, unless it pauses.
        let permit = if envelope.kind() == PAUSE {
            self.audit.reserve_or_count()
        } else {
            self.audit.reserve_on(link.audit())?
        };
        let id = &link.participant.id;
        let from = link.participant.id.as_str();
        if envelope.from() != from {
            let refusal = Refusal::new(
                RefusalCode::AuthViolation,
                format!("`from` must be \"{id}\", the id of this connection's participant"),
            );
            self.violations.count(Violation::Sender);
            let why = format!("{}: `from` was {}", refusal.code, quote(envelope.from()));
            Record(self).envelope(permit, (envelope, by), false, Some(&why));
            return Err(Box::new(refusal));
        }
        let to = addressees(envelope);
        let intent = match ask::read(self, by, envelope, &to, brake) {
            Ok(ask) => ask,
            Err(refusal) => {
                Record(self).envelope(permit, (envelope, by), false, Some(refusal.code.as_str()));
                return Err(Box::new(refusal));
            }
        };
        let traced = ask::traced(&intent);
        // Also of a proposal that the topic knows now: it may keep only the digest by the time of
        // the step.
        let digest = |about: &str| closed_digest(self.name().as_str(), about);
        let head = KindRef::parse(envelope.kind()).ok().and_then(Head::of);
        let about = match head {
            Some(Head::Proposal) => Some(envelope.id()),
            Some(Head::Request) => envelope.correlation_id(),
            Some(Head::Response) | None => None,
        };
        let event = Event::Say(Say {
            link: link.id,
            id: envelope.id(),
            kind: envelope.kind(),
            to: &to,
            correlation: envelope.correlation_id(),
            proposal_digest: about.map(digest),
            narrowing: by.narrowing(),
            tightening: None,
            message: Arc::clone(envelope),
            bytes: envelope.frame().len(),
            intent,
        });
        let (step, rule) = tighten::step_envelope(self, id, envelope, event, refused);
        if let Some(verdict) = &step.verdict {
            traces::note_asked(self, &traced, verdict);
        }
        let by_rule = step.verdict.as_ref();
        let by_rule = by_rule.and_then(|verdict| why_of(verdict, rule.as_ref()));
        let (admitted, why) = match &step.verdict {
            Some(Verdict::Admitted { by, .. }) => (true, by.as_str()),
            Some(Verdict::Held { .. }) | None => (true, None),
            Some(Verdict::Refused(cause)) => (false, Some(cause.as_str())),
        };
        match &step.verdict {
            Some(Verdict::Refused(Cause::NotAdmitted | Cause::Reserved)) => {
                self.violations.count(Violation::Capability);
            }
            Some(Verdict::Refused(Cause::Malformed)) => self.violations.count(Violation::Malformed),
            _ => {}
        }
        // What becomes of an admitted pause is recorded when it is known.
        if brake.is_none() || !admitted {
            let why = by_rule.as_deref().or(why);
            Record(self).envelope(permit, (envelope, by), admitted, why);
        }
        if self.shadow_sets.is_any()
            && let Some(verdict) = &step.verdict
        {
            shadow_acts::envelope(self, id, by.narrowing(), envelope, &to, verdict);
        }
        Ok(step)
    }

    /// Publishes an envelope in the name of the gateway or of a participant for which it acts, and
    /// returns the envelope's id. Without an audience, the envelope's addressees and every listener
    /// in mode `all` get it.
    pub(crate) fn announce(
        self: &Arc<Self>,
        from: &ParticipantId,
        to: &[&str],
        kind: &str,
        correlation: Option<&str>,
        payload: &[u8],
        audience: Option<Audience>,
    ) -> String {
        let (id, ts) = self.stamp();
        let ts = Some(ts.as_str());
        let from = from.as_str();
        let draft = Draft {
            id: &id,
            ts,
            from,
            to,
            kind,
            correlation_id: correlation,
            payload,
        };
        self.publish(&draft, audience);
        id
    }

    /// Publishes an envelope under an id that is known already. Effects do this too, by a step from
    /// inside them: only steps put messages into the room's one order.
    pub(crate) fn publish(self: &Arc<Self>, draft: &Draft<'_>, audience: Option<Audience>) {
        let message = Arc::new(Envelope::write(draft));
        let audience =
            audience.unwrap_or_else(|| Audience::new(None, draft.to, draft.kind, Reach::Listeners));
        self.take(Event::Announce {
            bytes: message.frame().len(),
            message,
            audience,
        });
    }

    /// Publishes and records an envelope of a server that the gateway plays in the room. The
    /// gateway's own are not recorded: they follow from what is.
    pub(crate) fn announce_server(
        self: &Arc<Self>,
        from: &ParticipantId,
        to: &[&str],
        kind: &str,
        correlation: &str,
        payload: &[u8],
    ) {
        if from.as_str() != model::GATEWAY {
            Record(self).server_envelope(from.as_str(), to, kind, payload);
        }
        self.announce(from, to, kind, Some(correlation), payload, None);
    }

    /// Sends an answer of a server that the gateway plays in the room to one link alone.
    pub(crate) fn answer_alone(
        &self,
        link: LinkId,
        from: &ParticipantId,
        to: &[&str],
        kind: &str,
        correlation: &str,
        payload: &[u8],
    ) {
        let (id, ts) = self.stamp();
        let ts = Some(ts.as_str());
        let from = from.as_str();
        let correlation_id = Some(correlation);
        self.whisper(
            link,
            &mcpx::envelope(&Draft {
                id: &id,
                ts,
                from,
                to,
                kind,
                correlation_id,
                payload,
            }),
        );
    }

    /// Sends an envelope to one link alone. The room does not keep it.
    pub(crate) fn whisper(&self, link: LinkId, envelope: &[u8]) {
        self.whisper_frame(link, text(envelope));
    }

    /// Sends a WebSocket frame to one link alone.
    pub fn whisper_frame(&self, link: LinkId, frame: Bytes) {
        self.room.push([RoomEvent::Direct { link, frame }]);
    }

    /// Answers bytes that are no envelope (MCPx v0.1, section 3.5.2).
    pub fn tell_breach(&self, link: &Link, breach: &Breach) {
        let from = link.participant.id.as_str();
        Record(self).malformed(link, breach.refusal().code.as_str());
        self.tell(link.id, |stamp| system::breach(stamp, from, breach));
    }

    /// Answers a message that is too long or no text.
    pub fn tell_error(&self, link: &Link, error: &str, message: &str) {
        let from = link.participant.id.as_str();
        Record(self).malformed(link, error);
        let notice = ErrorDraft {
            error,
            message,
            ..ErrorDraft::default()
        };
        self.tell(link.id, |stamp| system::error(stamp, from, &notice));
    }

    /// Answers an envelope that is refused.
    pub(crate) fn tell_refused(
        &self,
        link: LinkId,
        participant: &ParticipantId,
        envelope: &Envelope,
        refusal: &Refusal,
    ) {
        let capabilities = self.capabilities_of(participant);
        let sender = (participant.as_str(), &*capabilities);
        self.tell(link, |stamp| {
            system::refused(stamp, refusal, envelope, sender)
        });
    }

    /// Sends an envelope of the gateway, with a new id, to one link alone.
    fn tell(&self, link: LinkId, envelope: impl FnOnce(Stamp<'_>) -> Bytes) {
        let (id, ts) = self.stamp();
        self.whisper(
            link,
            &envelope(Stamp {
                id: &id,
                ts: Some(&ts),
            }),
        );
    }

    /// Id and time for an envelope of the gateway.
    pub(crate) fn stamp(&self) -> (String, String) {
        (self.context.operation().to_string(), rfc3339(unix_ms()))
    }
}

/// Answers an envelope that the topic does not publish. [`Dispatch::say`] has recorded it.
pub(crate) fn withhold(dispatch: &Dispatch, link: &Link, envelope: &Envelope, refusal: &Refusal) {
    dispatch.tell_refused(link.id, &link.participant.id, envelope, refusal);
}

/// Records an envelope on which these receivers do not act. If its kind and payload differ, its
/// sender gets an error. One whose addressees are absent is on record already, and its sender gets
/// an error too.
pub(crate) fn ignored(
    dispatch: &Arc<Dispatch>,
    from: &ParticipantId,
    envelope: &Envelope,
    by: &[ParticipantId],
    why: Ignored,
) {
    let receivers: Vec<&str> = by.iter().map(ParticipantId::as_str).collect();
    let record = |why: &str| Record(dispatch).ignored(envelope, &receivers, why);
    match why {
        Ignored::Repeat => record(&format!(
            "repeat: {} was acted on before",
            quote(envelope.id())
        )),
        Ignored::NotAsked => {
            let request = envelope.correlation_id().unwrap_or_default();
            record(&format!("not_asked: {} named others", quote(request)));
        }
        Ignored::Absent => {
            let why = match by {
                [one] if envelope.to().count() == 1 => format!("{one} is not in the topic"),
                _ => "none of its addressees is in the topic".to_owned(),
            };
            let refusal = Refusal::new(
                RefusalCode::UpstreamFailed,
                format!("{why}: there will be no answer"),
            );
            if let Some(link) = dispatch.with(|topic| topic.listener(from)) {
                dispatch.tell_refused(link, from, envelope, &refusal);
            }
        }
        Ignored::Mismatch => {
            let Err(mismatch) = strict(envelope.kind(), envelope.payload_bytes()) else {
                return;
            };
            let mismatch = mismatch.to_string();
            Record(dispatch).mismatched(envelope, &receivers, &mismatch);
            let kind = envelope.kind();
            tracing::info!(participant = %from, kind, mismatch, "kind and payload differ: the envelope is ignored");
            tell_mismatch(dispatch, from, envelope, by, &mismatch);
        }
    }
}

fn tell_mismatch(
    dispatch: &Arc<Dispatch>,
    from: &ParticipantId,
    envelope: &Envelope,
    by: &[ParticipantId],
    mismatch: &str,
) {
    let kind = envelope.kind().replacen(REQUEST, RESPONSE, 1);
    let payload = payload::mismatch(mismatch, envelope.payload_bytes());
    for server in by {
        match dispatch
            .with(|topic| topic.listener(from))
            .filter(|_| server.as_str() == model::GATEWAY)
        {
            // As every answer of the gateway's own participant.
            Some(link) => dispatch.answer_alone(
                link,
                server,
                &[from.as_str()],
                &kind,
                envelope.id(),
                &payload,
            ),
            None => {
                dispatch.announce_server(server, &[from.as_str()], &kind, envelope.id(), &payload)
            }
        }
    }
}

/// The addressees of an envelope, each once.
fn addressees(envelope: &Envelope) -> Vec<&str> {
    // An envelope has at most 64 addressees: a search costs less than a set.
    let mut to: Vec<&str> = Vec::with_capacity(envelope.to().len());
    for one in envelope.to() {
        if !to.contains(&one) {
            to.push(one);
        }
    }
    to
}

#[cfg(test)]
pub(crate) mod tests;
