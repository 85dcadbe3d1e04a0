//! What the parts of one participant share: its desk, the way out, and who listens. Must not know how to dial.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use model::KindRef;
use platform::{Mutex, MutexGuard, random, unix_ms};
use tokio::sync::{Semaphore, mpsc, watch};
use wire::mcpx::check::{Act, Call, strict};
use wire::mcpx::{Draft, Envelope, envelope};
use wire::rpc::{self, Id};
use wire::time::rfc3339;

use super::desk::{Desk, Job, Reaction, Reply, payload};
use super::error::{CallError, ConnectError, RpcError};
use super::event::Event;
use super::listeners::{Events, Listeners};
use super::serve::{Answer, CALLS_MAX, Serve};
use super::spec::{Mode, ParticipantSpec};

/// JSON-RPC: something went wrong inside.
const INTERNAL: i64 = -32603;
/// Too much is asked at one time.
const BUSY: i64 = -32000;

/// How it stands with the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// Dialling, or waiting to.
    Coming,
    /// Welcomed.
    Here,
    /// For good.
    Gone(ConnectError),
}

/// See the file's head.
pub(super) struct Shared {
    desk: Mutex<Desk>,
    listeners: Mutex<Listeners>,
    out: Mutex<Option<mpsc::Sender<Bytes>>>,
    pub(super) standing: watch::Sender<Standing>,
    serve: Arc<dyn Serve>,
    permits: Arc<Semaphore>,
    /// What all ids of this participant begin with.
    tag: String,
    next: AtomicU64,
}

impl Shared {
    pub(super) fn new(spec: &ParticipantSpec) -> Arc<Self> {
        Arc::new(Self {
            desk: Mutex::new(Desk::new(spec.mode != Mode::All)),
            listeners: Mutex::default(),
            out: Mutex::default(),
            standing: watch::Sender::new(Standing::Coming),
            serve: Arc::clone(&spec.serve),
            permits: Arc::new(Semaphore::new(CALLS_MAX)),
            tag: format!("{:016x}{:016x}", chance(), chance()),
            next: AtomicU64::new(1),
        })
    }

    pub(super) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock()
    }

    fn out(&self) -> MutexGuard<'_, Option<mpsc::Sender<Bytes>>> {
        self.out.lock()
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock()
    }

    pub(super) fn listen(&self) -> Events {
        self.listeners().listen()
    }

    /// There is a connection: what is said goes here.
    pub(super) fn connected(&self, out: mpsc::Sender<Bytes>) {
        *self.out() = Some(out);
    }

    /// There is none any more.
    pub(super) fn lost(&self, why: &ConnectError, is_final: bool) {
        *self.out() = None;
        self.standing.send_replace(if is_final { Standing::Gone(why.clone()) } else { Standing::Coming });
        self.desk().waiting.lost();
        let mut listeners = self.listeners();
        listeners.tell(&Event::Away { why: why.to_string(), is_final });
        if is_final {
            listeners.end();
        }
    }

    /// Takes one message of the gateway.
    pub(super) fn hear(self: &Arc<Self>, frame: Bytes) {
        let envelope = match Envelope::receive(frame) {
            Ok(envelope) => envelope,
            Err(breach) => return tracing::warn!(%breach, "the gateway passed on what is no envelope"),
        };
        let reactions = self.desk().hear(envelope);
        for reaction in reactions {
            match reaction {
                Reaction::Event(event) => {
                    if matches!(*event, Event::Welcomed { .. }) {
                        self.standing.send_replace(Standing::Here);
                    }
                    self.listeners().tell(&event);
                }
                Reaction::Job(job) => self.run(*job),
                Reaction::Refuse(reply, error) => self.answer_now(&reply, &Err(error)),
            }
        }
    }

    fn run(self: &Arc<Self>, job: Job) {
        let Job { asked, reply } = job;
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            let error = RpcError::new(BUSY, "too much is asked of this participant at one time; try again");
            return self.answer_now(&reply, &Err(error));
        };
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            let serve = Arc::clone(&shared.serve);
            // A task of its own, so that a panic is only this answer's.
            let answer = tokio::spawn(async move { serve.answer(asked).await }).await;
            let answer = answer.unwrap_or_else(|_| Err(RpcError::new(INTERNAL, "the tool failed")));
            drop(permit);
            let Some(out) = shared.out().clone() else { return };
            if let Ok((_, envelope)) = shared.answer(&reply, &answer) {
                // Gone only if the connection is.
                let _ = out.send(envelope).await;
            }
        });
    }

    /// Answers without waiting; what does not fit into the queue is dropped.
    fn answer_now(&self, reply: &Reply, answer: &Answer) {
        if let Err(why) = self.answer(reply, answer).and_then(|(_, envelope)| self.send(envelope)) {
            tracing::warn!(%why, "an answer was dropped");
        }
    }

    fn answer(&self, reply: &Reply, answer: &Answer) -> Result<(String, Bytes), CallError> {
        let to: Vec<&str> = reply.to.iter().map(String::as_str).collect();
        self.written(None, &reply.kind, &to, Some(&reply.about), &payload(&reply.rpc, answer))
    }

    /// A fresh id for an envelope.
    pub(super) fn id(&self) -> String {
        format!("{}-{}", self.tag, self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// A call with a JSON-RPC id of its own, checked as its receiver will.
    pub(super) fn call(&self, method: &str, params: Option<&[u8]>) -> Result<(Call, Id), CallError> {
        let wrong = |why: &dyn ToString| CallError::Unspeakable(why.to_string());
        let id = Id::number(self.next.fetch_add(1, Ordering::Relaxed));
        let kind = format!("mcp/request:{method}");
        match strict(&kind, rpc::request(&id, method, params)).map_err(|why| wrong(&why))? {
            Act::Request(call) => Ok((call, id)),
            Act::Proposal(_) | Act::Answer(_) | Act::Other => Err(wrong(&"it is no request")),
        }
    }

    /// Writes and sends an envelope; gives its id.
    pub(super) fn say(
        &self,
        id: Option<String>,
        kind: &str,
        to: &[&str],
        about: Option<&str>,
        payload: &[u8],
    ) -> Result<String, CallError> {
        let (id, envelope) = self.written(id, kind, to, about, payload)?;
        self.send(envelope)?;
        Ok(id)
    }

    fn written(
        &self,
        id: Option<String>,
        kind: &str,
        to: &[&str],
        about: Option<&str>,
        payload: &[u8],
    ) -> Result<(String, Bytes), CallError> {
        let parsed = KindRef::parse(kind).map_err(|why| CallError::Unspeakable(why.to_string()))?;
        if parsed.is_reserved() {
            return Err(CallError::Unspeakable(format!("`{kind}` is the gateway's own kind")));
        }
        if *self.standing.borrow() != Standing::Here {
            return Err(CallError::Away);
        }
        let id = id.unwrap_or_else(|| self.id());
        let from = self.desk().roster.id().to_owned();
        let ts = rfc3339(unix_ms());
        let draft = Draft { id: &id, ts: Some(&ts), from: &from, to, kind, correlation_id: about, payload };
        let envelope = envelope(&draft);
        // Checked as the gateway will, so that a mistake is told here.
        Envelope::read(envelope.clone()).map_err(|breach| CallError::Unspeakable(breach.message))?;
        Ok((id, envelope))
    }

    fn send(&self, envelope: Bytes) -> Result<(), CallError> {
        let out = self.out();
        let out = out.as_ref().ok_or(CallError::Away)?;
        out.try_send(envelope).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => CallError::Busy,
            mpsc::error::TrySendError::Closed(_) => CallError::Away,
        })
    }
}

/// A random number, to spread load and to name envelopes.
pub(super) fn chance() -> u64 {
    u64::from_le_bytes(random())
}
