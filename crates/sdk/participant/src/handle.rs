//! Handle of a participant, for an agent's program.

use std::{collections::BTreeMap, fmt, sync::Arc};

use json::Span;
use model::{GATEWAY, MethodFacts};
use platform::Mutex;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use wire::mcpx::{CHAT, Chat, Envelope, EnvelopePlace, Format, Head};
use wire::{mcpx::check::EnvelopeCall, mcpx::system::ParticipantInfo, rpc};

use crate::connection::{dial, run};
use crate::error::{CallError, ConnectError};
use crate::proposal::{Proposal, result};
use crate::protocol::Cursor;
use crate::shared::{ConnectionState, Pending, Shared};
use crate::{
    event::IncomingProposal, pending::PendingRequest, spec::ParticipantSpec, subscribers::Events,
};

/// The key of `_meta` with the note of a reviewer, in the params of a request that fulfils a
/// proposal.
const NOTE_KEY: &str = "portmoot/note";

/// A participant of one topic. Clones are the same participant; it leaves the topic when the last
/// one is dropped.
#[derive(Clone)]
pub struct Participant(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
    /// The events since the connect, for the first subscriber.
    first_events: Mutex<Option<Events>>,
    stop: watch::Sender<bool>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// The way in which a participant may make a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallMode {
    /// As a request.
    Request,
    /// Only as a proposal, which another participant fulfils.
    Propose,
}

impl Participant {
    /// Joins a topic and waits for the welcome. When the connection breaks later, the participant
    /// reconnects, with growing waits.
    ///
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`ConnectError`] when this first attempt fails.
    pub async fn connect(spec: ParticipantSpec) -> Result<Self, ConnectError> {
        let socket = dial(&spec).await?;
        let connect_timeout = spec.connect_timeout;
        let shared = Shared::new(spec);
        let first_events = Mutex::new(Some(shared.subscribe()));
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(run(Arc::clone(&shared), socket, stopped));
        let participant = Self(Arc::new(Handle {
            shared,
            first_events,
            stop,
        }));
        match timeout(connect_timeout, participant.connected()).await {
            Ok(Ok(())) => Ok(participant),
            Ok(Err(why)) => Err(why),
            Err(_) => Err(ConnectError::Broken("no welcome in time".to_owned())),
        }
    }

    /// What it was connected with.
    pub(crate) fn spec(&self) -> &ParticipantSpec {
        &self.0.shared.spec
    }

    /// Waits until the participant is in the topic. Returns at once when it is there.
    ///
    /// # Errors
    /// Why it will not reconnect.
    pub async fn connected(&self) -> Result<(), ConnectError> {
        let mut state = self.0.shared.state.subscribe();
        let settled = state
            .wait_for(|state| *state != ConnectionState::Connecting)
            .await;
        match settled.as_deref() {
            Ok(ConnectionState::Closed(why)) => Err(why.clone()),
            Ok(ConnectionState::Connected | ConnectionState::Connecting) => Ok(()),
            Err(_) => Err(ConnectError::Closed),
        }
    }

    /// Why it will not reconnect; `None` while it is connected or tries to be.
    #[must_use]
    pub fn ended(&self) -> Option<ConnectError> {
        match &*self.0.shared.state.borrow() {
            ConnectionState::Closed(why) => Some(why.clone()),
            ConnectionState::Connected | ConnectionState::Connecting => None,
        }
    }

    /// Its id and capabilities, by the latest welcome.
    #[must_use]
    pub fn you(&self) -> ParticipantInfo {
        self.0
            .shared
            .protocol
            .lock()
            .roster
            .you
            .clone()
            .unwrap_or_default()
    }

    /// The other participants of the topic, by id.
    #[must_use]
    pub fn others(&self) -> Vec<ParticipantInfo> {
        self.0
            .shared
            .protocol
            .lock()
            .roster
            .others
            .values()
            .cloned()
            .collect()
    }

    /// The number of protocol violations of each participant.
    #[must_use]
    pub fn violations(&self) -> BTreeMap<String, u64> {
        self.0.shared.protocol.lock().violations.0.clone()
    }

    /// The place in the topic's history at the latest connect, if the topic keeps one. With it as
    /// [`since`](ParticipantSpec::since), another process receives what came later.
    #[must_use]
    pub fn cursor(&self) -> Option<Cursor> {
        self.0.shared.protocol.lock().cursor
    }

    /// Subscribes to events. The first subscription begins with the first welcome, a later one with
    /// the next event.
    #[must_use]
    pub fn events(&self) -> Events {
        // Subscribed before the first frame was read: the welcome may have come already.
        let first = self.0.first_events.lock().take();
        first.unwrap_or_else(|| self.0.shared.subscribe())
    }

    /// Sends a chat message to the topic; returns the envelope's id. A refusal of the gateway
    /// arrives as [`Event::Refused`](crate::Event::Refused).
    ///
    /// # Errors
    /// [`CallError::NotConnected`] or [`CallError::Busy`]; nothing was sent.
    pub fn chat(&self, text: &str) -> Result<String, CallError> {
        let payload = Chat {
            text: text.into(),
            format: Format::Plain,
        }
        .payload();
        self.0.shared.send(None, CHAT, &[], None, &payload)
    }

    /// Sends a chat message that names these participants; returns the envelope's id. Participants
    /// that receive the whole topic get it too.
    ///
    /// # Errors
    /// As [`Participant::chat`].
    pub fn chat_to(&self, to: &[&str], text: &str) -> Result<String, CallError> {
        let payload = Chat {
            text: text.into(),
            format: Format::Plain,
        }
        .payload();
        self.0.shared.send(None, CHAT, to, None, &payload)
    }

    /// Sends an envelope of any kind to these participants, or to all if `to` is empty; returns its
    /// id. The payload must be a JSON object. It is not checked against the kind; receivers check
    /// it.
    ///
    /// # Errors
    /// As [`Participant::chat`], and [`CallError::Invalid`].
    pub fn send(
        &self,
        kind: &str,
        to: &[&str],
        correlation_id: Option<&str>,
        payload: &(impl Serialize + ?Sized),
    ) -> Result<String, CallError> {
        let payload =
            to_raw_value(payload).map_err(|error| CallError::Invalid(error.to_string()))?;
        self.0
            .shared
            .send(None, kind, to, correlation_id, payload.get().as_bytes())
    }

    /// Sends an MCP request and waits for the result. Null params are left out. Only `to` may
    /// answer.
    ///
    /// The request is sent even if the latest welcome does not allow it; the gateway decides.
    ///
    /// # Errors
    /// [`CallError::Answered`], [`CallError::Refused`], [`CallError::Timeout`],
    /// [`CallError::Lost`], or an error that says that nothing was sent.
    pub async fn request(
        &self,
        to: &str,
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Result<Box<RawValue>, CallError> {
        let params = raw(params)?;
        self.send_request(&[to], method, params.as_deref(), None)
            .await
    }

    /// Sends an MCP notification, such as `notifications/initialized`; returns the envelope's id.
    ///
    /// # Errors
    /// As [`Participant::send`].
    pub fn notify(
        &self,
        to: &[&str],
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Result<String, CallError> {
        let params = raw(params)?;
        let payload = rpc::notification(
            method,
            params.as_deref().map(|params| params.get().as_bytes()),
        );
        self.0
            .shared
            .send(None, &format!("mcp/request:{method}"), to, None, &payload)
    }

    /// Proposes a call for another participant to make (MCPx v0.1, 3.2). [`Proposal::outcome`]
    /// waits for the result.
    ///
    /// # Errors
    /// As [`Participant::send`].
    pub fn propose(
        &self,
        to: &[&str],
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Result<Proposal, CallError> {
        let shared = &self.0.shared;
        let params = raw(params)?;
        let (call, _) = shared.call(method, params.as_deref())?;
        let proposal_kind = kind(&call, Head::Proposal)?;
        let request_kind = kind(&call, Head::Request)?;
        let payload = json::object(|payload| {
            payload.text("method", method);
            if let Some(params) = &params {
                payload.raw("params", params.get().as_bytes());
            }
        });
        let id = shared.envelope_id();
        // Before it is sent: its answer may come at once.
        let updates = shared
            .protocol
            .lock()
            .pending
            .add_proposal(&id, owned(to), request_kind)?;
        // From here on, dropping it removes it from the pending ones.
        let pending = Pending {
            id: id.clone(),
            shared: Arc::clone(shared),
        };
        let proposal = Proposal {
            pending,
            updates,
            ended: None,
        };
        shared.send(Some(id), &proposal_kind, to, None, &payload)?;
        Ok(proposal)
    }

    /// How the latest welcome allows to make a call; `None` if it does not. A paused participant
    /// proposes what it could request.
    ///
    /// # Errors
    /// [`CallError::Invalid`] when the call cannot be written as an envelope.
    pub fn call_mode(
        &self,
        to: &str,
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Result<Option<CallMode>, CallError> {
        let params = raw(params)?;
        let shared = &self.0.shared;
        let (call, _) = shared.call(method, params.as_deref())?;
        let protocol = shared.protocol.lock();
        let requests = protocol.roster.allows(&kind(&call, Head::Request)?, &[to]);
        let proposes = protocol.roster.allows(&kind(&call, Head::Proposal)?, &[to]);
        // While it is paused, it may propose what it could request, and the request is refused.
        let waits =
            protocol.roster.is_paused() && to != GATEWAY && MethodFacts::of(method).is_proposable;
        Ok(match (requests, proposes) {
            (true, _) if !waits => Some(CallMode::Request),
            (false, false) => None,
            (true, _) | (false, true) => Some(CallMode::Propose),
        })
    }

    /// Makes a call in the way that [`Participant::call_mode`] returns: as a request, or as a
    /// proposal whose outcome it waits for.
    ///
    /// # Errors
    /// [`CallError::NotAllowed`] when neither is allowed; else as [`Participant::request`] or
    /// [`Proposal::outcome`].
    pub async fn call(
        &self,
        to: &str,
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Result<Box<RawValue>, CallError> {
        let params = raw(params)?;
        match self.call_mode(to, method, &params)? {
            Some(CallMode::Request) => {
                self.send_request(&[to], method, params.as_deref(), None)
                    .await
            }
            Some(CallMode::Propose) => {
                self.propose(&[to], method, &params)?
                    .outcome(self.0.shared.spec.proposal_timeout)
                    .await
            }
            None => Err(CallError::NotAllowed {
                kind: format!("mcp/request:{method}"),
            }),
        }
    }

    /// The place of an envelope in the topic, and when the gateway took it, where
    /// [`ParticipantSpec::places`] asks for it: the same live and in the history. Presence and
    /// messages to this participant alone have none.
    #[must_use]
    pub fn place(&self, envelope: &Envelope) -> Option<EnvelopePlace> {
        let asks = self.0.shared.spec.places;
        asks.then(|| EnvelopePlace::read(envelope.frame()))?
    }

    /// Fulfils a proposal (MCPx v0.1, 3.2.1): makes the call with the proposed params, or with
    /// these instead, and waits for the answer.
    ///
    /// # Errors
    /// As [`Participant::request`]; [`CallError::Invalid`] if the proposal addresses no
    /// participant.
    pub async fn fulfil(
        &self,
        proposal: &IncomingProposal,
        params: Option<&RawValue>,
    ) -> Result<Box<RawValue>, CallError> {
        self.fulfil_with_note(proposal, params, "").await
    }

    /// [`Self::fulfil`], with a note for the proposer; none if it is empty. All that receive the
    /// request see it.
    ///
    /// # Errors
    /// As [`Self::fulfil`]; [`CallError::Invalid`] for params that a note cannot be added to.
    pub async fn fulfil_with_note(
        &self,
        proposal: &IncomingProposal,
        params: Option<&RawValue>,
        note: &str,
    ) -> Result<Box<RawValue>, CallError> {
        let proposed = proposal
            .call
            .params()
            .and_then(|params| serde_json::from_slice::<Box<RawValue>>(params).ok());
        let mut params = params.map(ToOwned::to_owned).or(proposed);
        if !note.is_empty() {
            params = Some(noted(params.as_deref(), note)?);
        }
        self.send_request(
            &proposal.to(),
            proposal.call.method(),
            params.as_deref(),
            Some(proposal.id()),
        )
        .await
    }

    /// Rejects a proposal, so that its proposer does not wait for it. MCPx has no kind for this: it
    /// is a tool of the gateway.
    ///
    /// # Errors
    /// As [`Participant::request`].
    pub async fn reject(&self, proposal: &str, reason: &str) -> Result<Box<RawValue>, CallError> {
        let arguments = json!({ "proposal": proposal, "reason": reason });
        let params = json!({ "name": "reject_proposal", "arguments": arguments });
        self.request(GATEWAY, "tools/call", &params).await
    }

    /// Leaves the topic, after the envelopes that wait to be sent.
    pub async fn close(self) {
        self.0.stop.send_replace(true);
        let mut state = self.0.shared.state.subscribe();
        // Fails only without a sender, which `self` holds.
        let _ = state
            .wait_for(|state| matches!(state, ConnectionState::Closed(_)))
            .await;
    }

    /// Sends an MCP request, perhaps about another envelope, and waits for the result.
    pub(crate) async fn send_request(
        &self,
        to: &[&str],
        method: &str,
        params: Option<&RawValue>,
        correlation_id: Option<&str>,
    ) -> Result<Box<RawValue>, CallError> {
        let shared = &self.0.shared;
        if to.is_empty() {
            return Err(CallError::Invalid(
                "a request needs an addressee".to_owned(),
            ));
        }
        let (call, rpc_id) = shared.call(method, params)?;
        let kind = kind(&call, Head::Request)?;
        let (outcome, receiver) = oneshot::channel();
        let id = shared.envelope_id();
        let request = PendingRequest {
            to: owned(to),
            kind: kind.clone(),
            rpc_id,
            outcome,
        };
        shared.protocol.lock().pending.add_request(&id, request)?;
        // Removes it from the pending ones when this function ends, or is dropped.
        let pending = Pending {
            id,
            shared: Arc::clone(shared),
        };
        shared.send(
            Some(pending.id.clone()),
            &kind,
            to,
            correlation_id,
            call.message().frame(),
        )?;
        match timeout(shared.spec.request_timeout, receiver).await {
            Ok(Ok(outcome)) => result(&outcome?),
            Ok(Err(_)) => Err(CallError::Lost),
            Err(_) => Err(CallError::Timeout),
        }
    }
}

/// Params with a note for the proposer. All else stays as it was written.
fn noted(params: Option<&RawValue>, note: &str) -> Result<Box<RawValue>, CallError> {
    let invalid = |why: String| CallError::Invalid(why);
    let params = params.map_or("{}", RawValue::get).as_bytes();
    let members =
        json::members(params, Span::all(params)).map_err(|why| invalid(why.to_string()))?;
    let meta = members.get("_meta").map_or(&b"{}"[..], |meta| meta.raw);
    let note = Value::from(note).to_string();
    let meta = json::edited(meta, &[(NOTE_KEY, Some(note.as_bytes()))]);
    let meta = meta.map_err(|why| invalid(why.to_string()))?;
    let noted = json::edited(params, &[("_meta", Some(&meta))]);
    let noted = noted.map_err(|why| invalid(why.to_string()))?;
    serde_json::from_slice(&noted).map_err(|why| invalid(why.to_string()))
}

/// Params as JSON; `None` for null.
fn raw(params: &(impl Serialize + ?Sized)) -> Result<Option<Box<RawValue>>, CallError> {
    let raw = to_raw_value(params).map_err(|error| CallError::Invalid(error.to_string()))?;
    if raw.get() == "null" {
        Ok(None)
    } else {
        Ok(Some(raw))
    }
}

/// The kind of the envelope of a call, such as `mcp/request:tools/call:search`.
fn kind(call: &EnvelopeCall, head: Head) -> Result<String, CallError> {
    call.kind(head)
        .map_err(|why| CallError::Invalid(why.to_string()))
}

fn owned(to: &[&str]) -> Vec<String> {
    to.iter().map(|to| (*to).to_owned()).collect()
}

impl fmt::Debug for Participant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Participant({})", self.you().id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_changes_nothing_else_of_the_params() {
        for (params, expect) in [
            (None, r#"{"_meta":{"portmoot/note":"é"}}"#),
            (
                Some(r#"{ "name": "pay", "arguments": {"a": 1.0} }"#),
                r#"{ "name": "pay", "arguments": {"a": 1.0},"_meta":{"portmoot/note":"é"} }"#,
            ),
            (
                Some(r#"{"_meta": {"portmoot/note": "old", "x": 1e2}, "name": "pay"}"#),
                r#"{"_meta": {"portmoot/note": "é", "x": 1e2}, "name": "pay"}"#,
            ),
        ] {
            let params = params.map(|text| RawValue::from_string(text.to_owned()).unwrap());
            assert_eq!(noted(params.as_deref(), "é").unwrap().get(), expect);
        }
        for params in ["[]", r#"{"_meta":1}"#, r#"{"a":1,"a":2}"#] {
            let params = RawValue::from_string(params.to_owned()).unwrap();
            let refused = noted(Some(&params), "x");
            assert!(matches!(refused, Err(CallError::Invalid(_))), "{refused:?}");
        }
    }
}
