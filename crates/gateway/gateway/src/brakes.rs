//! Pauses of participants: in the topic, in the journal, on record and in the room.
//!
//! Here and in the topic a pause is called a brake: a call is paused too, while its caller is asked
//! something.
//!
//! A pause is in force before it is on disk, and holds whatever the journal answers and the audit log
//! takes: a brake must work also where nothing can be written. A resumption counts once it is on disk,
//! unless a pause has come since. No lock is held while the disk is waited for.

pub(crate) mod kept;
pub(crate) mod places;

use std::net::IpAddr;
use std::sync::Arc;

use model::{GATEWAY, OperationId, PAUSE, ParticipantId, RESUME, Refusal, RefusalCode};
use platform::{Taken, unix_ms};
use serde::Deserialize;
use store::recorder::RecordPermit;
use store::{StoreError, not_written};
use tokio::sync::oneshot;
use topic::Brake;
use wire::mcpx::Envelope;

use crate::brakes::kept::{BrakeRecord, KeptBrake};
use crate::dispatch::Dispatch;
use crate::judges;
use crate::link::Link;
use crate::live::{Event, Server};
use crate::record::Record;
use crate::written_act;

/// The longest reason of a pause, in bytes.
pub const PAUSE_REASON_BYTES_MAX: usize = 1000;

/// A participant that pauses or resumes another one, whose right to do so is known.
#[derive(Debug, Clone)]
pub struct Braking {
    /// The participant that acts.
    pub by: ParticipantId,
    /// The one that is paused or resumed. It need not be in the topic.
    pub participant: ParticipantId,
    /// Why, in words.
    pub reason: Option<String>,
    /// The address from which it acts.
    pub address: Option<IpAddr>,
}

/// A pause that is in force, while it is written down.
struct Pausing {
    brake: Brake,
    written: BrakeWrite,
}

/// A resumption that is being written down.
struct Resuming {
    /// Tells it from later ones of the same participant.
    id: OperationId,
    permit: RecordPermit,
    written: BrakeWrite,
}

/// The end of a record's write, as the journal will report it.
struct BrakeWrite(oneshot::Receiver<Result<(), StoreError>>);

impl BrakeWrite {
    async fn end(self) -> Result<(), StoreError> {
        self.0.await.unwrap_or(Err(StoreError::Stopped))
    }
}

impl Pausing {
    async fn end(self) -> Result<Brake, Refusal> {
        self.written.end().await.map_err(|error| {
            let why = "it is paused, and that could not be written down: it ends with a restart";
            Refusal::new(RefusalCode::LogUnavailable, why).hint(not_written(&error).message)
        })?;
        Ok(self.brake)
    }
}

impl Dispatch {
    /// Pauses a participant: its calls wait for decisions of others, and it decides nothing, until it
    /// is resumed. In force before this waits for anything.
    ///
    /// # Errors
    /// Why it is not paused; [`RefusalCode::LogUnavailable`] only if it is, and that is not on disk.
    pub async fn pause(self: &Arc<Self>, braking: Braking) -> Result<Brake, Refusal> {
        self.put_in_force(&braking)?.end().await
    }

    /// Resumes a participant that is paused.
    ///
    /// # Errors
    /// Why it stays as it is.
    pub async fn resume_paused(self: &Arc<Self>, braking: Braking) -> Result<(), Refusal> {
        let resuming = self.begin_to_resume(&braking)?;
        // To its end, also if the one that asked for it is gone.
        let end = tokio::spawn(Arc::clone(self).resumed(braking, resuming));
        let lost = |_| Refusal::new(RefusalCode::Internal, "the change was interrupted");
        end.await.map_err(lost)?
    }

    /// Refuses a participant that is paused here: it decides nothing, and gives nothing to others.
    ///
    /// # Errors
    /// If it is paused.
    pub fn refuse_paused(&self, by: &ParticipantId) -> Result<(), Refusal> {
        if !self.with(|topic| topic.is_braked(by)) {
            return Ok(());
        }
        let why = "a paused participant decides nothing until it is resumed";
        let hint = "ask a participant that holds `portmoot/pause`";
        Err(Refusal::new(RefusalCode::CapabilityViolation, why).hint(hint))
    }

    /// Carries out an envelope that pauses or resumes and was admitted. Its sender gets the refusal,
    /// if there is one.
    pub(crate) fn brake_asked(
        self: &Arc<Self>,
        link: &Arc<Link>,
        envelope: Arc<Envelope>,
        asked: BrakeAsk,
    ) {
        let braking = Braking {
            by: link.participant.id.clone(),
            participant: asked.participant,
            reason: asked.reason,
            address: link.address(),
        };
        let (dispatch, link) = (Arc::clone(self), Arc::clone(link));
        if envelope.kind() == PAUSE {
            let pausing = self.put_in_force(&braking);
            tokio::spawn(async move {
                let end = match pausing {
                    Ok(pausing) => pausing.end().await.map(drop),
                    Err(refusal) => Err(refusal),
                };
                dispatch.tell_brake(&link, &envelope, end);
            });
        } else {
            // In the order of its envelopes: a pause that follows is not undone by it.
            let resuming = self.begin_to_resume(&braking);
            tokio::spawn(async move {
                let end = match resuming {
                    Ok(resuming) => Arc::clone(&dispatch).resumed(braking, resuming).await,
                    Err(refusal) => Err(refusal),
                };
                dispatch.tell_brake(&link, &envelope, end);
            });
        }
    }

    /// Gives the sender of an envelope that pauses or resumes the refusal, if there is one.
    fn tell_brake(&self, link: &Link, envelope: &Envelope, end: Result<(), Refusal>) {
        if let Err(refusal) = end {
            self.tell_refused(link.id, &link.participant.id, envelope, &refusal);
        }
    }

    /// Pauses a participant at once, while the journal gets it.
    fn put_in_force(self: &Arc<Self>, braking: &Braking) -> Result<Pausing, Refusal> {
        let Braking {
            by,
            participant,
            reason,
            address,
        } = braking;
        let reason = reason.as_deref();
        // In the journal's order, so that a restart comes to the same state.
        let mut resuming = self.resuming.lock();
        let place = self
            .may_brake(by, participant)
            .and_then(|()| self.may_pause(participant, reason))
            .and_then(|()| self.braking_places.take(PAUSE, by))
            .inspect_err(|refusal| self.record_refused(braking, PAUSE, refusal))?;
        let brake = Brake {
            by: by.clone(),
            reason: reason.map(Arc::from),
            since_ms: unix_ms(),
        };
        let kept = KeptBrake::of(self.name(), participant, &brake);
        let written = self.write_brake(BrakeRecord::Paused(kept), place);
        // The journal has it after a resumption that it is still writing.
        resuming.remove(participant);
        self.take(Event::Brake {
            participant,
            brake: Some(brake.clone()),
        });
        // An audit log without room stops no brake: the loss is counted.
        let permit = self.audit.reserve_or_count().from_address(*address);
        Record(self).brake(permit, by, participant, PAUSE, reason);
        self.announce_brake(by, participant, PAUSE, reason);
        Ok(Pausing { brake, written })
    }

    /// Has the journal write that a participant is resumed.
    fn begin_to_resume(&self, braking: &Braking) -> Result<Resuming, Refusal> {
        let (by, participant) = (&braking.by, &braking.participant);
        let mut resuming = self.resuming.lock();
        let place = self
            .may_brake(by, participant)
            .and_then(|()| self.may_resume(participant))
            .and_then(|()| {
                if resuming.contains_key(participant) {
                    return Err(conflict("this participant is being resumed already"));
                }
                self.braking_places.take(RESUME, by)
            })
            .inspect_err(|refusal| self.record_refused(braking, RESUME, refusal))?;
        let permit = self.audit.reserve_of(by)?.from_address(braking.address);
        let record = BrakeRecord::Resumed {
            topic: self.name().to_string(),
            participant: participant.to_string(),
            by: by.to_string(),
            at_ms: unix_ms(),
        };
        let written = self.write_brake(record, place);
        let id = self.context.operation();
        resuming.insert(participant.clone(), id);
        Ok(Resuming {
            id,
            permit,
            written,
        })
    }

    async fn resumed(self: Arc<Self>, braking: Braking, resuming: Resuming) -> Result<(), Refusal> {
        let Resuming {
            id,
            permit,
            written,
        } = resuming;
        let written = written.end().await;
        self.end_resumption(&braking, id, permit, written)?;
        // Its own rules decide again, and those that approve what it proposes.
        judges::all(&self);
        self.context.notifications.look_again();
        Ok(())
    }

    /// Resumes a participant, once that is on disk, unless it was paused again meanwhile.
    fn end_resumption(
        self: &Arc<Self>,
        braking: &Braking,
        id: OperationId,
        permit: RecordPermit,
        written: Result<(), StoreError>,
    ) -> Result<(), Refusal> {
        let (by, participant) = (&braking.by, &braking.participant);
        let mut resuming = self.resuming.lock();
        let is_latest = resuming.get(participant) == Some(&id);
        if is_latest {
            resuming.remove(participant);
        }
        written.map_err(|error| not_written(&error))?;
        if !is_latest {
            let refusal = conflict("this participant was paused again meanwhile");
            self.record_refused(braking, RESUME, &refusal);
            return Err(refusal);
        }
        self.take(Event::Brake {
            participant,
            brake: None,
        });
        let reason = braking.reason.as_deref();
        Record(self).brake(permit, by, participant, RESUME, reason);
        self.announce_brake(by, participant, RESUME, reason);
        Ok(())
    }

    /// Whether one participant may pause or resume another one at all.
    fn may_brake(&self, by: &ParticipantId, participant: &ParticipantId) -> Result<(), Refusal> {
        if by == participant {
            return Err(conflict("no participant pauses or resumes itself")
                .hint("ask another one that holds `portmoot/pause`"));
        }
        self.refuse_paused(by)
    }

    fn may_pause(&self, participant: &ParticipantId, reason: Option<&str>) -> Result<(), Refusal> {
        if reason.is_some_and(|reason| reason.len() > PAUSE_REASON_BYTES_MAX) {
            let why = format!("a reason has at most {PAUSE_REASON_BYTES_MAX} bytes");
            return Err(Refusal::new(RefusalCode::TooLarge, why));
        }
        if participant.is_guest() {
            // In its next session it has another name.
            let why = "a guest cannot be paused: it would come back under another name";
            return Err(Refusal::new(RefusalCode::Unsupported, why)
                .hint("close the topic to guests: remove `anonymous` of [topics.TOPIC]"));
        }
        if self.is_plain_server(participant) {
            let why = "a server makes no calls of its own, so it cannot be paused";
            return Err(Refusal::new(RefusalCode::Unsupported, why)
                .hint("take it out of use: portmoot servers disable NAME"));
        }
        // A misspelled name would be paused in vain.
        let is_known = self.with(|topic| topic.has_participant(participant))
            || (self.standing)(participant).is_some();
        if !is_known {
            let why = "there is no participant of this name here";
            return Err(Refusal::new(RefusalCode::UnknownTarget, why)
                .hint("list them: portmoot participants ls"));
        }
        if !self.with(|topic| topic.has_room_for_brake(participant)) {
            let why = "as many participants as may be are paused here already";
            return Err(Refusal::new(RefusalCode::Overloaded, why)
                .hint("resume those that are gone: portmoot participants resume NAME"));
        }
        Ok(())
    }

    /// Whether this is a server, or the gateway itself, and no participant that serves.
    fn is_plain_server(&self, participant: &ParticipantId) -> bool {
        let server = self.with(|topic| topic.server(participant));
        let is_server = server.is_some_and(|server| match server.handle {
            Server::Gateway => true,
            Server::Upstream(server) => !server.serves(),
        });
        is_server || participant.as_str() == GATEWAY
    }

    fn may_resume(&self, participant: &ParticipantId) -> Result<(), Refusal> {
        if self.with(|topic| topic.is_braked(participant)) {
            return Ok(());
        }
        Err(conflict("this participant is not paused"))
    }

    /// Has the journal write a record, which keeps its place until then. Without a journal it is
    /// written at once.
    fn write_brake(&self, record: BrakeRecord, place: Taken) -> BrakeWrite {
        let (report, end) = oneshot::channel();
        let report = move |result| {
            drop(place);
            // One that does not wait for it any more needs none.
            _ = report.send(result);
        };
        match &self.ledgers {
            Some(ledgers) => ledgers.brakes.submit(&[record], report),
            None => report(Ok(())),
        }
        BrakeWrite(end)
    }

    /// Announces it in the room. Presence shows it, too.
    fn announce_brake(
        self: &Arc<Self>,
        by: &ParticipantId,
        participant: &ParticipantId,
        kind: &str,
        reason: Option<&str>,
    ) {
        let payload = json::object(|payload| {
            payload
                .text("participant", participant.as_str())
                .text("by", by.as_str())
                .optional_text("reason", reason);
        });
        self.announce(&ParticipantId::gateway(), &[], kind, None, &payload, None);
    }

    fn record_refused(&self, braking: &Braking, kind: &str, refusal: &Refusal) {
        let permit = self.audit.reserve_or_count().from_address(braking.address);
        let (by, participant) = (&braking.by, &braking.participant);
        Record(self).not_braked(permit, by, participant, kind, refusal.code.as_str());
    }
}

/// A participant that an envelope asks to pause or resume, and why.
pub(crate) struct BrakeAsk {
    /// The participant.
    pub(crate) participant: ParticipantId,
    reason: Option<String>,
}

/// The payload of such an envelope.
#[derive(Deserialize)]
struct WrittenBrake {
    participant: String,
    reason: Option<String>,
}

/// The pause or resumption that an envelope asks for; `None` of an envelope of another kind.
pub(crate) fn asked_by(envelope: &Envelope) -> Option<Result<BrakeAsk, Refusal>> {
    let is_brake = envelope.kind() == PAUSE || envelope.kind() == RESUME;
    is_brake.then(|| read_ask(envelope))
}

fn read_ask(envelope: &Envelope) -> Result<BrakeAsk, Refusal> {
    let WrittenBrake {
        participant,
        reason,
    } = written_act::read(
        envelope.payload(),
        "an object with `participant` and perhaps a `reason`, both texts",
    )?;
    let wrong = |why: String| Refusal::new(RefusalCode::Malformed, why);
    let participant = ParticipantId::new(&participant)
        .map_err(|error| wrong(format!("`participant` is no name: {error}")))?;
    // The right to pause may be for some participants alone, and is judged by this one.
    if envelope.to().any(|to| to != participant.as_str()) {
        let why = "`to` names another participant than the payload".to_owned();
        return Err(wrong(why).hint("leave `to` empty"));
    }
    Ok(BrakeAsk {
        participant,
        reason: reason.filter(|reason| !reason.is_empty()),
    })
}

fn conflict(why: &str) -> Refusal {
    Refusal::new(RefusalCode::Conflict, why.to_owned())
}

/// Takes over the pauses of the journal.
pub(crate) fn restore(dispatch: &Arc<Dispatch>) {
    let Some(ledgers) = &dispatch.ledgers else {
        return;
    };
    for (participant, brake) in ledgers.brakes_of(dispatch.name()) {
        dispatch.take(Event::Brake {
            participant: &participant,
            brake: Some(brake),
        });
    }
}

#[cfg(test)]
mod tests;
