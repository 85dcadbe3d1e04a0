//! Shared state of a participant: its protocol, its connection and its subscribers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use model::KindRef;
use platform::{Mutex, random, unix_ms};
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc, watch};
use wire::mcpx::check::{Act, EnvelopeCall, strict};
use wire::mcpx::{Draft, Envelope, envelope};
use wire::rpc::{self, Id};
use wire::time::rfc3339;

use crate::error::{CallError, ConnectError, RpcError};
use crate::event::Event;
use crate::protocol::{Job, Protocol, Reaction, ReplyTo, payload};
use crate::serve::{CALLS_MAX, ServeResult};
use crate::spec::{Mode, ParticipantSpec};
use crate::subscribers::{Events, Subscribers};

/// JSON-RPC: internal error.
const INTERNAL: i64 = -32603;
/// More requests than the participant answers at one time.
const BUSY: i64 = -32000;

/// The state of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// Connecting, or waiting for the next attempt.
    Connecting,
    /// Welcomed by the gateway.
    Connected,
    /// Ended; no attempt follows.
    Closed(ConnectError),
}

/// State that the handles and the tasks of one participant share.
pub(crate) struct Shared {
    pub(crate) protocol: Mutex<Protocol>,
    subscribers: Mutex<Subscribers>,
    /// The queue of the open connection.
    outgoing: Mutex<Option<mpsc::Sender<Bytes>>>,
    pub(crate) state: watch::Sender<ConnectionState>,
    pub(crate) spec: ParticipantSpec,
    permits: Arc<Semaphore>,
    /// The prefix of all envelope ids.
    id_prefix: String,
    next_id: AtomicU64,
}

impl Shared {
    pub(crate) fn new(spec: ParticipantSpec) -> Arc<Self> {
        let id_prefix = format!("{:016x}{:016x}", random_u64(), random_u64());
        let mut protocol = Protocol::new(spec.mode != Mode::All, &id_prefix);
        protocol.cursor = spec.since;
        Arc::new(Self {
            protocol: Mutex::new(protocol),
            subscribers: Mutex::default(),
            outgoing: Mutex::default(),
            state: watch::Sender::new(ConnectionState::Connecting),
            spec,
            permits: Arc::new(Semaphore::new(CALLS_MAX)),
            id_prefix,
            next_id: AtomicU64::new(1),
        })
    }

    pub(crate) fn subscribe(&self) -> Events {
        self.subscribers.lock().subscribe()
    }

    /// Sends envelopes to this queue from now on.
    pub(crate) fn connected(&self, outgoing: mpsc::Sender<Bytes>) {
        *self.outgoing.lock() = Some(outgoing);
    }

    /// Fails pending requests and reports that the connection is lost.
    pub(crate) fn disconnected(&self, why: &ConnectError, is_final: bool) {
        *self.outgoing.lock() = None;
        self.state.send_replace(if is_final {
            ConnectionState::Closed(why.clone())
        } else {
            ConnectionState::Connecting
        });
        self.protocol.lock().disconnected();
        let mut subscribers = self.subscribers.lock();
        subscribers.send(&Event::Disconnected {
            why: why.to_string(),
            is_final,
        });
        if is_final {
            subscribers.end();
        }
    }

    /// Processes one message of the gateway.
    pub(crate) fn receive(self: &Arc<Self>, frame: Bytes) {
        let envelope = match Envelope::receive(frame) {
            Ok(envelope) => envelope,
            Err(breach) => return tracing::warn!(%breach, "the gateway sent an invalid envelope"),
        };
        let reactions = self.protocol.lock().receive(envelope);
        for reaction in reactions {
            match reaction {
                Reaction::Event(event) => {
                    if matches!(*event, Event::Welcomed { .. }) {
                        self.state.send_replace(ConnectionState::Connected);
                    }
                    self.subscribers.lock().send(&event);
                }
                Reaction::Job(job) => self.run(*job),
                Reaction::Refuse(reply_to, error) => self.answer_now(&reply_to, &Err(error)),
            }
        }
    }

    fn run(self: &Arc<Self>, job: Job) {
        let Job { request, reply_to } = job;
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            let error = RpcError::new(
                BUSY,
                "this participant is answering too many requests; try again",
            );
            return self.answer_now(&reply_to, &Err(error));
        };
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            let serve = Arc::clone(&shared.spec.serve);
            // A task of its own, so that a panic fails only this request.
            let result = tokio::spawn(async move { serve.answer(request).await }).await;
            let result = result.unwrap_or_else(|_| Err(RpcError::new(INTERNAL, "the tool failed")));
            drop(permit);
            let Some(outgoing) = shared.outgoing.lock().clone() else {
                return;
            };
            if let Ok((_, envelope)) = shared.response(&reply_to, &result) {
                // Fails only when the connection is lost, and the request with it.
                let _ = outgoing.send(envelope).await;
            }
        });
    }

    /// Answers without waiting. An answer that does not fit into the queue is dropped.
    fn answer_now(&self, reply_to: &ReplyTo, result: &ServeResult) {
        if let Err(why) = self
            .response(reply_to, result)
            .and_then(|(_, envelope)| self.enqueue(envelope))
        {
            tracing::warn!(%why, "an answer was dropped");
        }
    }

    fn response(
        &self,
        reply_to: &ReplyTo,
        result: &ServeResult,
    ) -> Result<(String, Bytes), CallError> {
        let to: Vec<&str> = reply_to.to.iter().map(String::as_str).collect();
        let payload = payload(&reply_to.rpc_id, result);
        self.write(
            None,
            &reply_to.kind,
            &to,
            Some(&reply_to.envelope_id),
            &payload,
        )
    }

    /// A new envelope id.
    pub(crate) fn envelope_id(&self) -> String {
        format!(
            "{}-{}",
            self.id_prefix,
            self.next_id.fetch_add(1, Ordering::Relaxed)
        )
    }

    /// A call with a new JSON-RPC id, checked as its receiver will check it.
    pub(crate) fn call(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(EnvelopeCall, Id), CallError> {
        let invalid = |why: &dyn ToString| CallError::Invalid(why.to_string());
        let id = Id::number(self.next_id.fetch_add(1, Ordering::Relaxed));
        let kind = format!("mcp/request:{method}");
        match strict(
            &kind,
            rpc::request(&id, method, params.map(|params| params.get().as_bytes())),
        )
        .map_err(|why| invalid(&why))?
        {
            Act::Request(call) => Ok((call, id)),
            Act::Proposal(_) | Act::Answer(_) | Act::Other => Err(invalid(&"it is not a request")),
        }
    }

    /// Writes and sends an envelope; returns its id.
    pub(crate) fn send(
        &self,
        id: Option<String>,
        kind: &str,
        to: &[&str],
        correlation_id: Option<&str>,
        payload: &[u8],
    ) -> Result<String, CallError> {
        let (id, envelope) = self.write(id, kind, to, correlation_id, payload)?;
        self.enqueue(envelope)?;
        Ok(id)
    }

    fn write(
        &self,
        id: Option<String>,
        kind: &str,
        to: &[&str],
        correlation_id: Option<&str>,
        payload: &[u8],
    ) -> Result<(String, Bytes), CallError> {
        let parsed = KindRef::parse(kind).map_err(|why| CallError::Invalid(why.to_string()))?;
        if parsed.is_reserved() {
            return Err(CallError::Invalid(format!(
                "the kind `{kind}` is reserved for the gateway"
            )));
        }
        if *self.state.borrow() != ConnectionState::Connected {
            return Err(CallError::NotConnected);
        }
        let id = id.unwrap_or_else(|| self.envelope_id());
        let from = self.protocol.lock().roster.id().to_owned();
        let ts = rfc3339(unix_ms());
        let draft = Draft {
            id: &id,
            ts: Some(&ts),
            from: &from,
            to,
            kind,
            correlation_id,
            payload,
        };
        let envelope = envelope(&draft);
        // Checked as the gateway will check it, so that the caller gets the error.
        Envelope::read(envelope.clone()).map_err(|breach| CallError::Invalid(breach.message))?;
        Ok((id, envelope))
    }

    fn enqueue(&self, envelope: Bytes) -> Result<(), CallError> {
        let outgoing = self.outgoing.lock();
        let outgoing = outgoing.as_ref().ok_or(CallError::NotConnected)?;
        outgoing.try_send(envelope).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => CallError::Busy,
            mpsc::error::TrySendError::Closed(_) => CallError::NotConnected,
        })
    }
}

/// Something pending, under the id of its envelope. It is removed when its caller has the outcome
/// or gives up.
pub(crate) struct Pending {
    pub(crate) id: String,
    pub(crate) shared: Arc<Shared>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.shared.protocol.lock().pending.remove(&self.id);
    }
}

/// A random number.
pub(crate) fn random_u64() -> u64 {
    u64::from_le_bytes(random())
}
