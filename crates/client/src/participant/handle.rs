//! The participant itself, as an agent's program holds it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use platform::Mutex;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use wire::mcpx::check::Call;
use wire::mcpx::system::Seen;
use wire::mcpx::{CHAT, Chat, Format, Head};
use wire::rpc::{self, Id};

use super::dial::dial;
use super::error::{CallError, ConnectError};
use super::life::live;
use super::listeners::Events;
use super::proposal::{Proposal, read};
use super::shared::{Shared, Standing};
use super::spec::ParticipantSpec;
use super::waiting::Open;

/// A participant of one topic. Clones are the same participant; it leaves when the last one is dropped.
#[derive(Clone)]
pub struct Participant(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    /// The first listener's events, from before it asked.
    first: Mutex<Option<Events>>,
    stop: watch::Sender<bool>,
    request_timeout: Duration,
    proposal_timeout: Duration,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// How something may be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Directly.
    Request,
    /// Only as a proposal, for somebody else to make.
    Propose,
}

impl Participant {
    /// Comes into a topic, and stays: a connection that breaks is dialled again, with growing waits.
    ///
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`ConnectError`] when the first attempt fails.
    pub async fn connect(spec: ParticipantSpec) -> Result<Self, ConnectError> {
        let socket = dial(&spec).await?;
        let shared = Shared::new(&spec);
        let first = Mutex::new(Some(shared.listen()));
        let (stop, stopped) = watch::channel(false);
        let (request_timeout, proposal_timeout) = (spec.request_timeout, spec.proposal_timeout);
        let patience = spec.connect_timeout;
        tokio::spawn(live(Arc::clone(&shared), spec, socket, stopped));
        let inner = Inner { shared, first, stop, request_timeout, proposal_timeout };
        let participant = Self(Arc::new(inner));
        match timeout(patience, participant.here()).await {
            Ok(Ok(())) => Ok(participant),
            Ok(Err(why)) => Err(why),
            Err(_) => Err(ConnectError::Broken("no welcome came in time".to_owned())),
        }
    }

    /// Waits until it is in the topic: at once, or after the next successful attempt.
    ///
    /// # Errors
    /// Why it will never be there again.
    pub async fn here(&self) -> Result<(), ConnectError> {
        let mut standing = self.0.shared.standing.subscribe();
        let settled = standing.wait_for(|standing| *standing != Standing::Coming).await;
        match settled.as_deref() {
            Ok(Standing::Gone(why)) => Err(why.clone()),
            Ok(Standing::Here | Standing::Coming) => Ok(()),
            Err(_) => Err(ConnectError::Closed),
        }
    }

    /// Its id and what it may do, as the latest welcome says.
    #[must_use]
    pub fn you(&self) -> Seen {
        self.0.shared.desk().roster.you().cloned().unwrap_or_default()
    }

    /// The others in the topic, by id.
    #[must_use]
    pub fn others(&self) -> Vec<Seen> {
        self.0.shared.desk().roster.others().cloned().collect()
    }

    /// Who broke the rules, and how often.
    #[must_use]
    pub fn misbehaviour(&self) -> BTreeMap<String, u64> {
        self.0.shared.desk().conduct.all()
    }

    /// A stream of what happens. The first one begins with the first welcome, later ones with what comes next.
    #[must_use]
    pub fn events(&self) -> Events {
        let first = self.0.first.lock().take();
        first.unwrap_or_else(|| self.0.shared.listen())
    }

    /// Says something to everybody; gives the envelope's id. What the gateway refuses comes as [`Event::Refused`](super::Event::Refused).
    ///
    /// # Errors
    /// [`CallError::Away`] or [`CallError::Busy`]: nothing was sent.
    pub fn chat(&self, text: &str) -> Result<String, CallError> {
        let payload = Chat { text: text.into(), format: Format::Plain }.payload();
        self.0.shared.say(None, CHAT, &[], None, &payload)
    }

    /// Says an envelope of any kind; gives its id. The payload must be an object. It is not checked against the kind:
    /// receivers do that.
    ///
    /// # Errors
    /// As [`Participant::chat`], and [`CallError::Unspeakable`] for what is no envelope.
    pub fn say(
        &self,
        kind: &str,
        to: &[&str],
        correlation_id: Option<&str>,
        payload: &(impl Serialize + ?Sized),
    ) -> Result<String, CallError> {
        let payload = to_raw_value(payload).map_err(|error| CallError::Unspeakable(error.to_string()))?;
        self.0.shared.say(None, kind, to, correlation_id, payload.get().as_bytes())
    }

    /// Makes a request and waits for its answer, the JSON-RPC result. Null params are left out. Only `to` may answer.
    ///
    /// # Errors
    /// See [`CallError`]. It is sent whether or not the welcome allows it; the gateway decides.
    pub async fn request(
        &self,
        to: &str,
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Result<Box<RawValue>, CallError> {
        let params = raw(params)?;
        self.send(&[to], method, params.as_deref(), None).await
    }

    /// Tells something that wants no answer, such as `notifications/initialized`.
    ///
    /// # Errors
    /// As [`Participant::say`].
    pub fn notify(
        &self,
        to: &[&str],
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Result<String, CallError> {
        let params = raw(params)?;
        let payload = rpc::notification(method, params.as_deref().map(|params| params.get().as_bytes()));
        self.0.shared.say(None, &format!("mcp/request:{method}"), to, None, &payload)
    }

    /// Proposes a call for somebody else to make (MCPx v0.1, 3.2); see [`Proposal::outcome`].
    ///
    /// # Errors
    /// As [`Participant::say`].
    pub fn propose(
        &self,
        to: &[&str],
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Result<Proposal, CallError> {
        let shared = &self.0.shared;
        let params = raw(params)?;
        let (call, _) = shared.call(method, params.as_deref().map(|params| params.get().as_bytes()))?;
        let (kind, request_kind) = (kind(&call, Head::Proposal)?, kind(&call, Head::Request)?);
        let payload = json::object(|payload| {
            payload.text("method", method);
            if let Some(params) = &params {
                payload.raw("params", params.get().as_bytes());
            }
        });
        let id = shared.id();
        let news = shared.desk().waiting.propose(&id, owned(to), request_kind)?;
        // From here on it is forgotten when it is dropped.
        let proposal = Proposal { id: id.clone(), news, shared: Arc::clone(shared), ended: None };
        shared.say(Some(id), &kind, to, None, &payload)?;
        Ok(proposal)
    }

    /// How a call may be made, by the latest welcome; `None` if not at all.
    ///
    /// # Errors
    /// [`CallError::Unspeakable`] for what is no call.
    pub fn way(
        &self,
        to: &str,
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Result<Option<Way>, CallError> {
        let params = raw(params)?;
        let shared = &self.0.shared;
        let (call, _) = shared.call(method, params.as_deref().map(|params| params.get().as_bytes()))?;
        let desk = shared.desk();
        for (head, way) in [(Head::Request, Way::Request), (Head::Proposal, Way::Propose)] {
            if desk.roster.allows(&kind(&call, head)?, &[to]) {
                return Ok(Some(way));
            }
        }
        Ok(None)
    }

    /// Makes a call as far as the latest welcome allows: a request, else a proposal whose outcome is waited for, else
    /// nothing is sent.
    ///
    /// # Errors
    /// [`CallError::NotAllowed`], and as [`Participant::request`] or [`Proposal::outcome`].
    pub async fn call(
        &self,
        to: &str,
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Result<Box<RawValue>, CallError> {
        let params = raw(params)?;
        match self.way(to, method, &params)? {
            Some(Way::Request) => self.send(&[to], method, params.as_deref(), None).await,
            Some(Way::Propose) => {
                self.propose(&[to], method, &params)?.outcome(self.0.proposal_timeout).await
            }
            None => Err(CallError::NotAllowed { kind: format!("mcp/request:{method}") }),
        }
    }

    /// Leaves: what was said is still sent.
    pub async fn close(self) {
        self.0.stop.send_replace(true);
        let mut standing = self.0.shared.standing.subscribe();
        // The sender lives as long as this.
        let _ = standing.wait_for(|standing| matches!(standing, Standing::Gone(_))).await;
    }

    pub(super) async fn send(
        &self,
        to: &[&str],
        method: &str,
        params: Option<&RawValue>,
        about: Option<&str>,
    ) -> Result<Box<RawValue>, CallError> {
        let shared = &self.0.shared;
        if to.is_empty() {
            return Err(CallError::Unspeakable("a request needs somebody whom to ask".to_owned()));
        }
        let (call, rpc): (Call, Id) = shared.call(method, params.map(|params| params.get().as_bytes()))?;
        let kind = kind(&call, Head::Request)?;
        let (tell, told) = oneshot::channel();
        let id = shared.id();
        let open = Open { to: owned(to), kind: kind.clone(), rpc, tell };
        shared.desk().waiting.request(&id, open)?;
        let _waits = Waits { shared, id: &id };
        shared.say(Some(id.clone()), &kind, to, about, call.message().frame())?;
        match timeout(self.0.request_timeout, told).await {
            Ok(Ok(verdict)) => read(&verdict?),
            Ok(Err(_)) => Err(CallError::Lost),
            Err(_) => Err(CallError::Timeout),
        }
    }
}

/// A request that is waited for until this is dropped.
struct Waits<'s> {
    shared: &'s Shared,
    id: &'s str,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.shared.desk().waiting.forget(self.id);
    }
}

/// Params as JSON; none for null.
fn raw(params: &(impl Serialize + ?Sized)) -> Result<Option<Box<RawValue>>, CallError> {
    let raw = to_raw_value(params).map_err(|error| CallError::Unspeakable(error.to_string()))?;
    Ok(Some(raw).filter(|raw| raw.get() != "null"))
}

fn kind(call: &Call, head: Head) -> Result<String, CallError> {
    call.kind(head).map_err(|why| CallError::Unspeakable(why.to_string()))
}

fn owned(to: &[&str]) -> Vec<String> {
    to.iter().map(|to| (*to).to_owned()).collect()
}

impl fmt::Debug for Participant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Participant({})", self.you().id)
    }
}
