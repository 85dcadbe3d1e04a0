//! Messages that participants without a socket send into their room: by the tool `say`, and by the
//! API. Each goes the way of every envelope, [`Dispatch::speak`].

use std::sync::Arc;

use model::{KindRef, PAUSE, ParticipantId, REJECT, REQUEST, RESUME, Refusal, RefusalCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use topic::section::BuiltIn;
use utoipa::ToSchema;
use wire::mcpx::{self, CHAT, Chat, Draft, Envelope, Format};
use wire::rpc::one_line;

use crate::dispatch::Dispatch;
use crate::link::Requester;

/// A message, as its sender writes it: a `text`, or a `payload` with its `kind`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RoomMessage {
    /// The text of a chat message.
    pub text: Option<String>,
    /// The kind; without it `chat`.
    pub kind: Option<String>,
    /// The payload, an object; without it an empty one.
    #[schema(value_type = Option<Object>)]
    pub payload: Option<Box<RawValue>>,
    /// The addressees; without any it is for all participants.
    #[serde(default)]
    pub to: Vec<String>,
    /// The id of the envelope that it is about.
    pub correlation_id: Option<String>,
}

/// A message that was sent.
#[derive(Debug, Serialize, ToSchema)]
pub struct SentMessage {
    /// The id of its envelope.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Its addressees.
    pub to: Vec<String>,
    /// The addressees that are not in the topic: they do not get it.
    pub absent: Vec<String>,
}

impl RoomMessage {
    /// Its kind and payload.
    fn content(&mut self) -> Result<(String, Vec<u8>), Refusal> {
        match (self.text.take(), self.kind.take(), self.payload.take()) {
            (Some(text), None, None) => {
                let chat = Chat {
                    text: text.into(),
                    format: Format::Plain,
                };
                Ok((CHAT.to_owned(), chat.payload()))
            }
            (None, kind, Some(payload)) => {
                let kind = kind.unwrap_or_else(|| CHAT.to_owned());
                Ok((kind, payload.get().as_bytes().to_vec()))
            }
            (None, Some(kind), None) => Ok((kind, b"{}".to_vec())),
            _ => Err(malformed("give a `text`, or a `kind` with its `payload`")),
        }
    }
}

impl Dispatch {
    /// Sends a message into the room in the name of a requester's participant: with the
    /// capabilities, limits and audit entries of every envelope of it.
    ///
    /// # Errors
    /// Why it is not published.
    pub async fn send_message(
        self: &Arc<Self>,
        by: Requester<'_>,
        mut message: RoomMessage,
    ) -> Result<SentMessage, Refusal> {
        let (kind, payload) = message.content()?;
        refuse_acts(&kind)?;
        let RoomMessage {
            to, correlation_id, ..
        } = message;
        let (id, ts) = self.stamp();
        let addressees: Vec<&str> = to.iter().map(String::as_str).collect();
        let frame = mcpx::envelope(&Draft {
            id: &id,
            ts: Some(&ts),
            from: by.link.participant.id.as_str(),
            to: &addressees,
            kind: &kind,
            correlation_id: correlation_id.as_deref(),
            payload: &payload,
        });
        let bytes_max = self.settings().limits.envelope_bytes_max;
        let bytes = frame.len();
        if bytes > bytes_max {
            let why = format!("a message has at most {bytes_max} bytes");
            return Err(Refusal::new(RefusalCode::TooLarge, why));
        }
        // Arguments may contain line breaks, and some participants read line by line.
        let envelope = Envelope::read(one_line(frame)).map_err(|breach| breach.refusal())?;
        // As a WebSocket does: a sender that is too fast waits, and the others do not.
        self.room.wait_for_space(by.link.queued()).await;
        self.room.count(by.link.queued(), bytes);
        self.speak(by, envelope).map_err(|refusal| *refusal)?;
        let absent = self.absent_of(&to);
        Ok(SentMessage {
            id,
            kind,
            to,
            absent,
        })
    }

    /// Whether the topic offers the tools of its room.
    pub fn has_room_tools(&self) -> bool {
        self.settings().topic.builtin.contains(&BuiltIn::Room)
    }

    /// Those of these names that are of no participant in the topic.
    fn absent_of(&self, names: &[String]) -> Vec<String> {
        self.with(|topic| {
            let is_here = |name: &&String| {
                ParticipantId::new(name).is_ok_and(|id| topic.has_participant(&id))
            };
            names
                .iter()
                .filter(|name| !is_here(name))
                .cloned()
                .collect()
        })
    }
}

/// Refuses kinds that ask for an answer, which no message gets.
fn refuse_acts(kind: &str) -> Result<(), Refusal> {
    if KindRef::parse(kind).is_ok_and(|kind| kind.head() == REQUEST) {
        return Err(malformed("a request cannot be sent as a message").hint(
            "call the tool itself, by the name under which it is listed; approve with approve_proposal",
        ));
    }
    if kind == REJECT {
        return Err(malformed("a rejection cannot be sent as a message")
            .hint("reject with reject_proposal, or with POST /api/v1/proposals/ID/reject"));
    }
    if kind == PAUSE || kind == RESUME {
        return Err(malformed("a pause cannot be sent as a message")
            .hint("pause with POST /api/v1/topics/TOPIC/participants/NAME/pause"));
    }
    Ok(())
}

fn malformed(why: &str) -> Refusal {
    Refusal::new(RefusalCode::Malformed, why.to_owned())
}
