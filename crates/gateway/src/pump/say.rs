//! What is said in a topic over MCPx: admitted by the topic, then put into its room in the topic's order.
//!
//! Owns the way of an envelope from its door to the room, and to those here who answer it. It opens no payload: receivers
//! do.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use json::quote;
use model::{Capabilities, LinkId, ParticipantId, Refusal};
use topic::{Cause, Ear, Effect, End, Event, Topic};
use wire::mcpx::system::{self, Notice, Person};
use wire::mcpx::{self, Breach, Draft, Envelope};
use wire::time::rfc3339;

use super::Pump;
use super::record::reason;
use super::repeats::Repeats;
use crate::caller::Caller;
use crate::hosted;
use platform::unix_ms;
use room::{Audience, Close, Cursor, Message, Newcomer, Room, RoomEvent, Socket, text};

/// How somebody hears.
pub struct Hearing {
    /// What it wants to hear.
    pub ear: Ear,
    /// Whether it hears what it says itself.
    pub echo: bool,
    /// What it has heard already: epoch and offset.
    pub since: Option<(u64, u64)>,
    /// Where to write.
    pub socket: Arc<Socket>,
}

impl Pump {
    /// The room of this topic.
    pub fn room(&self) -> &Arc<Room> {
        &self.room
    }

    /// Takes an envelope: admitted, it goes to everybody who hears it; else its sender is told why not.
    pub fn say(self: &Arc<Self>, caller: &Arc<Caller>, envelope: &Envelope) {
        if let Err(refusal) = self.speak(caller, envelope) {
            self.tell_refused(caller, envelope, &refusal);
        }
    }

    /// The same for a sender that hears in another way why it is refused.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn speak(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        envelope: &Envelope,
    ) -> Result<(), Box<Refusal>> {
        let who = caller.participant();
        let place = self.audit.reserve()?;
        let proposes = envelope.kind().starts_with("mcp/proposal:");
        let _opening = proposes.then(|| self.opening.lock());
        if envelope.from() != who.id.as_str() {
            let refusal = Refusal::new(
                model::RefusalCode::AuthViolation,
                format!("`from` must be \"{}\", who you are", who.id),
            );
            let why = format!("{}: `from` was {}", reason(&refusal), quote(envelope.from()));
            self.record_said(place, caller, envelope, Err(&why));
            return Err(Box::new(refusal));
        }
        let to: Vec<&str> = envelope.to().collect();
        let claim = self.claim(caller, envelope);
        // What is between a server and whoever asked it is heard by nobody else.
        let reach =
            (!self.is_private(caller, envelope)).then(|| Audience::matching_except(self.skips(envelope)));
        let private = reach.is_none();
        match self.publish(caller.link(), envelope.frame(), &to, envelope.kind(), reach) {
            Ok(Some(authority)) => {
                self.record_said(place, caller, envelope, Ok(&authority));
                self.overheard(caller, envelope);
                if !private {
                    hosted::receive(self, caller, envelope, claim);
                }
                Ok(())
            }
            // It is not here any more: its socket is being closed.
            Ok(None) => Ok(()),
            Err((refusal, cause)) => {
                self.record_said(place, caller, envelope, Err(cause.as_str()));
                Err(refusal)
            }
        }
    }

    /// How long calls are held at most.
    pub(crate) fn hold_max(&self) -> Duration {
        self.hold
    }

    /// Waits until something is said after this place; no longer than this.
    pub(crate) async fn wait_for_words(&self, place: Cursor, at_most: Duration) {
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            _ = tokio::time::timeout(at_most, self.room.message_after(place)) => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    }

    /// Says something in the name of a participant that the gateway hosts.
    pub(crate) fn announce(
        &self,
        link: LinkId,
        from: &str,
        to: &[&str],
        kind: &str,
        correlation_id: Option<&str>,
        payload: &[u8],
    ) {
        let (id, ts) = self.stamp();
        let (id, ts) = (id.as_str(), Some(ts.as_str()));
        let envelope = mcpx::envelope(&Draft { id, ts, from, to, kind, correlation_id, payload });
        let end = self.publish(link, &envelope, to, kind, Some(Audience::Matching));
        // What becomes of proposals, of which the gateway tells, is recorded as that.
        if from != model::GATEWAY {
            let why = end.as_ref().err().map(|(_, cause)| cause.as_str());
            self.record_hosted(from, to, kind, payload, why);
        }
        if let Err((refusal, _)) = end {
            tracing::warn!(from, kind, %refusal, "a hosted participant may not say this");
        }
    }

    /// The same to one hearer alone. It is not kept for anybody who comes later.
    pub(crate) fn answer_alone(
        &self,
        link: LinkId,
        from: &str,
        to: &[&str],
        kind: &str,
        correlation_id: &str,
        payload: &[u8],
    ) {
        let (id, ts) = self.stamp();
        let (id, ts, correlation_id) = (id.as_str(), Some(ts.as_str()), Some(correlation_id));
        self.whisper(link, &mcpx::envelope(&Draft { id, ts, from, to, kind, correlation_id, payload }));
    }

    /// The link of the gateway's own participant.
    pub(crate) fn own_link(&self) -> LinkId {
        self.own.1
    }

    /// What hosted participants have acted on lately.
    pub(crate) fn repeats(&self) -> &Repeats {
        &self.repeats
    }

    /// Remembers whom a request names.
    pub(crate) fn note_asked(&self, caller: &Caller, envelope: &Envelope) {
        self.asked.note(caller.participant().id.as_str(), envelope.id(), envelope.to());
    }

    /// Records an answer of somebody who was not asked. It was said like any other; whoever hears it need not believe it.
    pub(crate) fn note_answer(&self, caller: &Caller, envelope: &Envelope) {
        let from = caller.participant().id.as_str();
        let intrudes = |request: &str| self.asked.is_intrusion(from, request, envelope.to());
        if let Some(request) = envelope.correlation_id().filter(|request| intrudes(request)) {
            let why = format!("not_asked: {} named others", quote(request));
            self.record_ignored(caller, envelope, &[model::GATEWAY], &why);
        }
    }

    /// Puts an envelope into the room, for whoever it is to reach, if the topic admits it; and gives what its sender may do; nothing if the topic does
    /// not know this link.
    fn publish(
        &self,
        link: LinkId,
        envelope: &Bytes,
        to: &[&str],
        kind: &str,
        reach: Option<Audience>,
    ) -> Result<Option<Arc<Capabilities>>, (Box<Refusal>, Cause)> {
        let mut said = false;
        let mut topic = self.topic();
        let effects = topic.step(self.ground.now_ms(), Event::Say { link, kind, to });
        for effect in effects {
            match effect {
                Effect::Publish { .. } => {
                    said = true;
                    if let Some(reach) = &reach {
                        self.room.push(RoomEvent::Message(Message {
                            link: Some(link),
                            envelope: envelope.clone(),
                            to: to.iter().map(|to| Box::from(*to)).collect(),
                            kind: kind.into(),
                            audience: reach.clone(),
                        }));
                    }
                }
                Effect::Withhold { refusal, cause, .. } => return Err((refusal, cause)),
                other => self.carry(other),
            }
        }
        let sender = topic.participant(link).and_then(|id| topic.capabilities(id));
        Ok(said.then(|| sender.cloned().unwrap_or_default()))
    }

    /// Says to one hearer alone that its envelope is refused (MCPx v0.1, 3.5.2).
    pub(crate) fn tell_refused(&self, caller: &Caller, envelope: &Envelope, refusal: &Refusal) {
        let capabilities = self.capabilities_of(&caller.participant().id);
        let sender = Person { id: caller.participant().id.as_str(), capabilities: &capabilities };
        let (id, ts) = self.stamp();
        let stamp = system::Stamp { id: &id, ts: Some(&ts) };
        self.whisper(caller.link(), &system::refused(stamp, refusal, envelope, sender));
    }

    /// The same for bytes that are no envelope.
    pub fn tell_breach(&self, caller: &Caller, breach: &Breach) {
        self.record_malformed(caller, reason(&breach.refusal()));
        let (id, ts) = self.stamp();
        let stamp = system::Stamp { id: &id, ts: Some(&ts) };
        self.whisper(caller.link(), &system::breach(stamp, caller.participant().id.as_str(), breach));
    }

    /// The same for a message that is not even text, or too long.
    pub fn tell_error(&self, caller: &Caller, error: &str, message: &str) {
        self.record_malformed(caller, error);
        let (id, ts) = self.stamp();
        let stamp = system::Stamp { id: &id, ts: Some(&ts) };
        let notice = Notice { error, message, ..Notice::default() };
        self.whisper(caller.link(), &system::error(stamp, caller.participant().id.as_str(), &notice));
    }

    /// Says an envelope to one hearer alone.
    pub(crate) fn whisper(&self, link: LinkId, envelope: &[u8]) {
        self.room.push(RoomEvent::Direct { link, frame: text(envelope) });
    }

    /// Writes a frame to one socket alone.
    pub fn whisper_frame(&self, link: LinkId, frame: Bytes) {
        self.room.push(RoomEvent::Direct { link, frame });
    }

    /// Closes a hearer's socket after everything that was said before. Its door lets it leave.
    pub fn cut(&self, link: LinkId, close: Close) {
        self.room.push(RoomEvent::Detach { link, close: Some(close) });
    }

    /// Id and time of an envelope of ours.
    pub(crate) fn stamp(&self) -> (String, String) {
        (self.ground.operation().to_string(), rfc3339(unix_ms()))
    }

    /// What a participant may do here now.
    pub(crate) fn capabilities_of(&self, id: &ParticipantId) -> Arc<Capabilities> {
        self.with(|topic| topic.capabilities(id).cloned()).unwrap_or_default()
    }

    /// Puts into the room what a step means to it. Called before the topic is let go, so that there is one order.
    pub(super) fn note(&self, topic: &Topic, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Joined { participant: id } => {
                    if let Some(json) = person(topic, id) {
                        self.room.push(RoomEvent::Joined { id: id.clone(), profile: json });
                    }
                }
                Effect::Left { participant: id } => self.room.push(RoomEvent::Left { id: id.clone() }),
                Effect::Regranted { link } => {
                    let id = topic.participant(*link);
                    if let Some((id, json)) = id.and_then(|id| Some((id.clone(), person(topic, id)?))) {
                        self.room.push(RoomEvent::Updated { id, profile: json });
                    }
                }
                Effect::Ended { link, why } => {
                    let close = match why {
                        End::Revoked => Close::Revoked,
                        End::Replaced => Close::Replaced,
                    };
                    self.room.push(RoomEvent::Detach { link: *link, close: Some(close) });
                }
                Effect::NotJoined { .. } | Effect::ListChanged { .. } => {}
                Effect::Publish { .. } | Effect::Withhold { .. } => {}
                Effect::Deliver { .. } | Effect::Settle { .. } | Effect::Refuse { .. } => {}
                Effect::DeliverAsk { .. } | Effect::SettleAsk { .. } | Effect::RefuseAsk { .. } => {}
                Effect::CancelAt { .. } | Effect::CancelAsk { .. } => {}
                Effect::Hold { .. } | Effect::Store { .. } | Effect::Proposed { .. } => {}
                Effect::NotProposed { .. } | Effect::Approved { .. } | Effect::Told { .. } => {}
                Effect::RefuseDecision { .. } => {}
            }
        }
    }

    /// Lets a hearer in: it is welcomed, then everybody hears that it is there.
    pub(super) fn enter(&self, caller: &Caller, event: Event<'_>, hearing: Hearing) -> Vec<Effect> {
        let Hearing { ear, echo, since, socket } = hearing;
        let (link, id) = (caller.link(), caller.participant().id.clone());
        let effects = {
            let mut topic = self.topic();
            let effects = topic.step(self.ground.now_ms(), event);
            // What became of an older connection comes before, its own presence after.
            let own =
                |effect: &Effect| matches!(effect, Effect::Joined { participant } if *participant == id);
            let at = effects.iter().position(own).unwrap_or(effects.len());
            let (before, after) = effects.split_at(at);
            self.note(&topic, before);
            if let Some(you) = topic.participant(link).and_then(|id| person(&topic, id)) {
                self.room.push(RoomEvent::Attach(Newcomer {
                    link,
                    id: id.clone(),
                    profile: you,
                    ear,
                    echo,
                    socket,
                    since,
                }));
            }
            self.note(&topic, after);
            effects
        };
        self.carry_all(effects)
    }
}

/// A participant as others see it.
fn person(topic: &Topic, id: &ParticipantId) -> Option<Bytes> {
    let capabilities = topic.capabilities(id)?;
    Some(system::person(Person { id: id.as_str(), capabilities }).into())
}

#[cfg(test)]
mod tests;
