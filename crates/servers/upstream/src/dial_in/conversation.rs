//! Conversation with a participant that serves: its pending requests by envelope, and the answers
//! that count.
//!
//! An answer counts if the participant itself sends it, to the sender of a pending request, in the
//! request's kind and id.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use client::{Closing, LinkError, LinkInbox, LinkTransport, SendError, SendMeta};
use model::{LinkId, ParticipantId};
use platform::Mutex;
use wire::mcp::Params;
use wire::mcpx::check::{Act, answer_to, strict};
use wire::mcpx::{self, Draft, Envelope, Head, is_too_deep, kind_of};
use wire::rpc::{Message, MessageKind};

/// Notifications that a server may send without a pending request, to all clients or to the
/// gateway.
const NOTICES: [&str; 4] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
];
const RESPONSE: &str = "mcp/response:";
const NOTICE: &str = "mcp/request:notifications/";

/// Sends envelopes to a participant.
pub trait Outbox: Send + Sync {
    /// Id and time for an envelope of the gateway.
    fn stamp(&self) -> (String, String);
    /// Sends an envelope to one link alone.
    fn send(&self, link: LinkId, envelope: &[u8]);
}

/// The outcome of an envelope of the participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receipt {
    /// It belongs to no pending request.
    Unrelated,
    /// The session got it.
    Accepted,
    /// It is no valid answer, for this reason.
    Rejected(String),
}

/// One pending request.
pub(super) struct Request {
    number: u64,
    /// The participant that sent it.
    from: Arc<str>,
    kind: String,
}

/// Pending requests by envelope id.
type Requests = HashMap<Arc<str>, Request>;

/// The conversation of one session with a participant, over one of its links.
pub(super) struct Conversation {
    pub(super) id: ParticipantId,
    pub(super) link: LinkId,
    pub(super) envelope_bytes_max: usize,
    pub(super) outbox: Arc<dyn Outbox>,
    pub(super) inbox: Arc<dyn LinkInbox>,
    /// `None` after the conversation has ended.
    pub(super) requests: Mutex<Option<Requests>>,
}

impl Conversation {
    /// Ends the conversation because the participant has disconnected: pending requests get no
    /// answer.
    pub(super) fn hang_up(&self) {
        let open = self.requests.lock().take();
        if open.is_some() {
            self.inbox.closed(LinkError::Disconnected);
        }
    }

    pub(super) fn is_pending(&self, envelope: &str) -> bool {
        self.requests
            .lock()
            .as_ref()
            .is_some_and(|requests| requests.contains_key(envelope))
    }

    /// Takes an envelope of the participant.
    pub(super) fn receive(&self, envelope: &Envelope) -> Receipt {
        let kind = envelope.kind();
        if kind.starts_with(RESPONSE) {
            self.answered(envelope)
        } else if kind.starts_with(NOTICE) {
            self.notified(envelope)
        } else {
            Receipt::Unrelated
        }
    }

    fn answered(&self, envelope: &Envelope) -> Receipt {
        let Some(about) = envelope.correlation_id() else {
            return Receipt::Unrelated;
        };
        let request = {
            let mut requests = self.requests.lock();
            let Some(requests) = requests.as_mut() else {
                return Receipt::Unrelated;
            };
            let Some(request) = requests.get(about) else {
                return Receipt::Unrelated;
            };
            // The request stays open: the right answer may follow.
            if !envelope.to().any(|to| *to == *request.from) {
                return Receipt::Rejected(
                    "`to` does not name the sender of the request".to_owned(),
                );
            }
            requests.remove(about)
        };
        let Some(request) = request else {
            return Receipt::Unrelated;
        };
        match answer_frame(envelope, &request) {
            Ok(frame) => {
                let _ = self.inbox.frame(frame, Some(request.number));
                Receipt::Accepted
            }
            Err(why) => {
                self.inbox
                    .failed(request.number, LinkError::Malformed(why.clone()));
                Receipt::Rejected(why)
            }
        }
    }

    /// Takes a notification: about a pending request, or about none to all clients or the gateway.
    fn notified(&self, envelope: &Envelope) -> Receipt {
        let about = envelope.correlation_id();
        let number = about.and_then(|about| {
            let requests = self.requests.lock();
            let request = requests.as_ref()?.get(about);
            request
                .filter(|request| envelope.to().any(|to| *to == *request.from))
                .map(|request| request.number)
        });
        let to_gateway = envelope.is_broadcast() || envelope.to().any(|to| to == model::GATEWAY);
        if number.is_none() && !to_gateway {
            return Receipt::Unrelated;
        }
        match strict(envelope.kind(), envelope.payload_bytes()) {
            Ok(Act::Request(call)) if call.is_notification() => {
                if number.is_none() && !NOTICES.contains(&call.method()) {
                    return Receipt::Unrelated;
                }
                let _ = self.inbox.frame(call.message().frame().clone(), number);
                Receipt::Accepted
            }
            Ok(_) => Receipt::Unrelated,
            Err(why) => Receipt::Rejected(why.to_string()),
        }
    }

    /// The sender of a message to the participant, and the envelope that it refers to. A
    /// cancellation has the sender of the request that it cancels.
    fn sender(&self, params: &Params<'_>, from: Option<Arc<str>>) -> (Arc<str>, Option<Arc<str>>) {
        let requests = self.requests.lock();
        let cancels = params.message().method() == "notifications/cancelled";
        let number = params
            .request_id()
            .filter(|_| cancels)
            .and_then(|id| id.as_number());
        let cancelled = |request: &Request| number == Some(request.number);
        match requests
            .iter()
            .flatten()
            .find(|(_, request)| cancelled(request))
        {
            Some((about, request)) => (Arc::clone(&request.from), Some(Arc::clone(about))),
            None => (from.unwrap_or_else(|| Arc::from(model::GATEWAY)), None),
        }
    }
}

/// The JSON-RPC answer in an envelope, if it answers the request.
fn answer_frame(envelope: &Envelope, request: &Request) -> Result<Bytes, String> {
    let message = answer_to(&request.kind, envelope).map_err(|why| why.to_string())?;
    if message.id().and_then(|id| id.as_number()) != Some(request.number) {
        return Err("its `id` is not the request's".to_owned());
    }
    Ok(message.frame().clone())
}

impl LinkTransport for Conversation {
    fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), SendError> {
        let Ok(message) = Message::read(frame) else {
            return Err(SendError::Closed);
        };
        if matches!(message.shape(), MessageKind::Result | MessageKind::Error) {
            // A participant that serves may not send requests, so it gets no answers.
            return Err(SendError::Closed);
        }
        let Ok(params) = Params::read(&message) else {
            return Err(SendError::Closed);
        };
        let (from, about) = self.sender(&params, meta.from);
        let method = message.method();
        let target = params.target();
        // The kind is short when the target has characters that a kind cannot contain.
        let kind = kind_of(Head::Request, method, target)
            .unwrap_or_else(|_| format!("mcp/request:{method}"));
        let (id, ts) = self.outbox.stamp();
        let to = [self.id.as_str()];
        let draft = Draft {
            id: &id,
            ts: Some(&ts),
            from: &from,
            to: &to,
            kind: &kind,
            correlation_id: about.as_deref(),
            payload: message.frame(),
        };
        if is_too_deep(draft.payload) {
            return Err(SendError::TooDeep);
        }
        let envelope = mcpx::envelope(&draft);
        if envelope.len() > self.envelope_bytes_max {
            return Err(SendError::TooLarge);
        }
        {
            let mut requests = self.requests.lock();
            let Some(requests) = requests.as_mut() else {
                return Err(SendError::Closed);
            };
            if let Some(number) = meta.request {
                requests.insert(id.into(), Request { number, from, kind });
            }
        }
        self.outbox.send(self.link, &envelope);
        Ok(())
    }

    fn cancel(&self, request: u64) {
        if let Some(requests) = self.requests.lock().as_mut() {
            requests.retain(|_, pending| pending.number != request);
        }
    }

    fn names_senders(&self) -> bool {
        true
    }

    fn close(&self) -> Closing<'_> {
        *self.requests.lock() = None;
        Box::pin(async {})
    }
}
