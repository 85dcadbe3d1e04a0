//! Pauses of participants: in the topic, in the journal, on record and in the room.
//!
//! Here and in the topic a pause is called a brake: a call is paused too, while its caller is asked
//! something.
//!
//! A pause is in force as soon as the journal has answered, whatever it says: a brake must hold also
//! where nothing can be written. A resumption counts once it is on disk.

pub(crate) mod kept;
pub(crate) mod places;

use std::sync::Arc;

use model::{GATEWAY, PAUSE, ParticipantId, RESUME, Refusal, RefusalCode};
use platform::unix_ms;
use serde::Deserialize;
use store::{StoreError, not_written};
use tokio::sync::oneshot;
use topic::Brake;
use wire::mcpx::Envelope;

use crate::brakes::kept::{BrakeRecord, KeptBrake};
use crate::by_rule::judge;
use crate::dispatch::Dispatch;
use crate::link::Link;
use crate::live::{Event, Server};
use crate::record::Record;

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
}

impl Dispatch {
    /// Pauses a participant: its calls wait for decisions of others, and it decides nothing, until it
    /// is resumed.
    ///
    /// # Errors
    /// Why it is not paused; [`RefusalCode::LogUnavailable`] if it is, and that is not on disk.
    pub async fn pause(self: &Arc<Self>, braking: Braking) -> Result<Brake, Refusal> {
        self.spawn_braking(braking, Self::paused).await
    }

    /// Resumes a participant that is paused.
    ///
    /// # Errors
    /// Why it stays as it is.
    pub async fn resume_paused(self: &Arc<Self>, braking: Braking) -> Result<(), Refusal> {
        self.spawn_braking(braking, Self::resumed).await
    }

    /// Runs a change to its end, also if the one that asked for it is gone.
    async fn spawn_braking<T, F>(
        self: &Arc<Self>,
        braking: Braking,
        change: impl FnOnce(Arc<Self>, Braking) -> F,
    ) -> Result<T, Refusal>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Refusal>> + Send + 'static,
    {
        let change = tokio::spawn(change(Arc::clone(self), braking));
        let lost = |_| Refusal::new(RefusalCode::Internal, "the change was interrupted");
        change.await.map_err(lost)?
    }

    /// Carries out an envelope that pauses or resumes and was admitted. Its sender gets the refusal,
    /// if there is one.
    pub(crate) fn brake_asked(self: &Arc<Self>, link: &Arc<Link>, envelope: Arc<Envelope>) {
        let by = &link.participant.id;
        let Ok(Asked {
            participant,
            reason,
        }) = asked_by(&envelope)
        else {
            return;
        };
        let Ok(place) = self.braking_places.of(by.account()).take(1) else {
            let why = "too many pauses wait to be written down";
            let refusal = Refusal::new(RefusalCode::Overloaded, why);
            return self.tell_refused(link.id, by, &envelope, &refusal);
        };
        let braking = Braking {
            by: by.clone(),
            participant,
            reason,
        };
        let (dispatch, link) = (Arc::clone(self), Arc::clone(link));
        tokio::spawn(async move {
            let _place = place;
            if let Err(refusal) = dispatch.brake_by(&envelope, braking).await {
                dispatch.tell_refused(link.id, &link.participant.id, &envelope, &refusal);
            }
        });
    }

    async fn brake_by(
        self: &Arc<Self>,
        envelope: &Envelope,
        braking: Braking,
    ) -> Result<(), Refusal> {
        if envelope.kind() == PAUSE {
            Arc::clone(self).paused(braking).await.map(drop)
        } else {
            Arc::clone(self).resumed(braking).await
        }
    }

    async fn paused(self: Arc<Self>, braking: Braking) -> Result<Brake, Refusal> {
        let Braking {
            by,
            participant,
            reason,
        } = braking;
        // In the journal's order, so that a restart comes to the same state.
        let _one = self.braking.lock().await;
        self.may_brake(&by, &participant)
            .and_then(|()| self.may_pause(&participant, reason.as_deref()))
            .inspect_err(|refusal| self.record_refused(&by, &participant, PAUSE, refusal))?;
        let permit = self.audit.reserve_of(&by)?;
        let brake = Brake {
            by: by.clone(),
            reason: reason.as_deref().map(Arc::from),
            since_ms: unix_ms(),
        };
        let kept = KeptBrake::of(self.name(), &participant, &brake);
        let written = self.write_brake(BrakeRecord::Paused(kept)).await;
        self.take(Event::Brake {
            participant: &participant,
            brake: Some(brake.clone()),
        });
        Record(&self).brake(permit, &by, &participant, PAUSE, reason.as_deref());
        self.announce_brake(&by, &participant, PAUSE, reason.as_deref());
        written.map_err(|error| {
            let why = "it is paused, and that could not be written down: it ends with a restart";
            Refusal::new(RefusalCode::LogUnavailable, why).hint(not_written(&error).message)
        })?;
        Ok(brake)
    }

    async fn resumed(self: Arc<Self>, braking: Braking) -> Result<(), Refusal> {
        let Braking {
            by,
            participant,
            reason,
        } = braking;
        let _one = self.braking.lock().await;
        self.may_brake(&by, &participant)
            .and_then(|()| self.may_resume(&participant))
            .inspect_err(|refusal| self.record_refused(&by, &participant, RESUME, refusal))?;
        let permit = self.audit.reserve_of(&by)?;
        let written = self
            .write_brake(BrakeRecord::Resumed {
                topic: self.name().to_string(),
                participant: participant.to_string(),
                by: by.to_string(),
                at_ms: unix_ms(),
            })
            .await;
        written.map_err(|error| not_written(&error))?;
        self.take(Event::Brake {
            participant: &participant,
            brake: None,
        });
        Record(&self).brake(permit, &by, &participant, RESUME, reason.as_deref());
        self.announce_brake(&by, &participant, RESUME, reason.as_deref());
        // Its own rules decide again, and those that approve what it proposes.
        judge::all(&self);
        Ok(())
    }

    /// Whether one participant may pause or resume another one at all.
    fn may_brake(&self, by: &ParticipantId, participant: &ParticipantId) -> Result<(), Refusal> {
        if by == participant {
            let why = "no participant pauses or resumes itself";
            return Err(Refusal::new(RefusalCode::Conflict, why)
                .hint("ask another one that holds `portmoot/pause`"));
        }
        if self.with(|topic| topic.is_braked(by)) {
            let why = "a paused participant pauses and resumes no other one";
            return Err(Refusal::new(RefusalCode::CapabilityViolation, why));
        }
        Ok(())
    }

    fn may_pause(&self, participant: &ParticipantId, reason: Option<&str>) -> Result<(), Refusal> {
        if reason.is_some_and(|reason| reason.len() > PAUSE_REASON_BYTES_MAX) {
            let why = format!("a reason has at most {PAUSE_REASON_BYTES_MAX} bytes");
            return Err(Refusal::new(RefusalCode::TooLarge, why));
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
        Err(Refusal::new(
            RefusalCode::Conflict,
            "this participant is not paused",
        ))
    }

    /// Writes a record down, and waits until it is on disk. Without a journal it is at once.
    async fn write_brake(&self, record: BrakeRecord) -> Result<(), StoreError> {
        let Some(ledgers) = &self.ledgers else {
            return Ok(());
        };
        let (written, end) = oneshot::channel();
        // Its receiver waits below.
        ledgers
            .brakes
            .submit(&[record], move |result| _ = written.send(result));
        end.await.unwrap_or(Err(StoreError::Stopped))
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

    fn record_refused(
        &self,
        by: &ParticipantId,
        participant: &ParticipantId,
        kind: &str,
        refusal: &Refusal,
    ) {
        Record(self).not_braked(by, participant, kind, refusal.code.as_str());
    }
}

/// Whether an envelope asks that a participant be paused or resumed.
pub(crate) fn is_of(envelope: &Envelope) -> bool {
    envelope.kind() == PAUSE || envelope.kind() == RESUME
}

/// The payload of an envelope that pauses or resumes.
#[derive(Deserialize)]
struct WrittenAsk {
    participant: String,
    reason: Option<String>,
}

/// A participant that is to be paused or resumed, and why.
pub(crate) struct Asked {
    participant: ParticipantId,
    reason: Option<String>,
}

/// The request of an envelope that pauses or resumes.
///
/// # Errors
/// If its payload cannot be read.
pub(crate) fn asked_by(envelope: &Envelope) -> Result<Asked, Refusal> {
    let wrong = |why: String| Refusal::new(RefusalCode::Malformed, why);
    json::refuse_duplicates(envelope.payload())
        .map_err(|error| wrong(format!("the payload is no JSON: {error}")))?;
    let WrittenAsk {
        participant,
        reason,
    } = serde_json::from_slice(envelope.payload()).map_err(|_| {
        wrong(
            "the payload is an object with `participant` and perhaps a `reason`, both texts"
                .to_owned(),
        )
    })?;
    let participant = ParticipantId::new(&participant)
        .map_err(|error| wrong(format!("`participant` is no name: {error}")))?;
    let reason = reason.filter(|reason| !reason.is_empty());
    Ok(Asked {
        participant,
        reason,
    })
}

/// Takes over the pauses of the journal.
pub(crate) fn restore(dispatch: &Arc<Dispatch>) {
    let Some(ledgers) = &dispatch.ledgers else {
        return;
    };
    let topic = dispatch.name().as_str();
    let all: Vec<KeptBrake> = ledgers
        .brakes
        .state(|kept| kept.of_topic(topic).cloned().collect());
    for kept in all {
        let (Ok(participant), Ok(by)) = (
            ParticipantId::new(&kept.participant),
            ParticipantId::new(&kept.by),
        ) else {
            tracing::error!(participant = kept.participant, "a pause cannot be read");
            continue;
        };
        dispatch.take(Event::Brake {
            participant: &participant,
            brake: Some(Brake {
                by,
                reason: kept.reason.map(Arc::from),
                since_ms: kept.at_ms,
            }),
        });
    }
}
