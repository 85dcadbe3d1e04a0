//! What a participant waits for: answers to its requests, outcomes of its proposals. Decides who may give them.
//!
//! An answer counts only from somebody in the request's `to`, for the same JSON-RPC id and a kind that fits. It must not
//! know sockets or clocks.

use std::collections::HashMap;

use model::{GATEWAY, KindRef, ProposalState};
use tokio::sync::{mpsc, oneshot};
use wire::mcpx::check::{Act, answers, strict};
use wire::mcpx::system::Told;
use wire::mcpx::{Envelope, Head};
use wire::rpc::{Id, Message};

use super::error::CallError;

/// Requests and proposals that may wait at one time.
pub const OPEN_MAX: usize = 1024;
/// Fulfilments of one proposal that are followed.
const FULFILMENTS_MAX: usize = 16;
/// News of one proposal that may wait to be taken.
const NEWS_MAX: usize = 16;

/// What a waiting request is told.
pub(super) type Verdict = Result<Message, CallError>;

/// A request that was sent.
#[derive(Debug)]
pub(super) struct Open {
    /// Who may answer.
    pub(super) to: Vec<String>,
    /// Its kind, with context.
    pub(super) kind: String,
    /// Its JSON-RPC id.
    pub(super) rpc: Id,
    /// Who waits.
    pub(super) tell: oneshot::Sender<Verdict>,
}

/// What becomes of a proposal.
#[derive(Debug)]
pub(super) enum News {
    /// The answer to its fulfilment.
    Answer(Box<Message>),
    /// The gateway tells its state.
    State(ProposalState, Option<String>),
    /// The gateway did not take it.
    Refused(Told),
}

/// A proposal that was sent.
#[derive(Debug)]
struct Proposed {
    to: Vec<String>,
    /// The kind of the request that fulfils it.
    kind: String,
    /// Requests that fulfil it, by envelope id: whom each is for.
    fulfilments: HashMap<String, Vec<String>>,
    tell: mpsc::Sender<News>,
}

/// How an answer fits.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It was waited for, and was handed on.
    Taken,
    /// Nobody here waits for it.
    Nobody,
    /// It names something that is waited for, but breaks the rules.
    Wrong(String),
}

/// Everything that is waited for.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    requests: HashMap<String, Open>,
    proposals: HashMap<String, Proposed>,
}

impl Waiting {
    /// Notes a request before it is sent.
    pub(super) fn request(&mut self, id: &str, open: Open) -> Result<(), CallError> {
        self.room()?;
        self.requests.insert(id.to_owned(), open);
        Ok(())
    }

    /// Notes a proposal before it is sent.
    pub(super) fn propose(
        &mut self,
        id: &str,
        to: Vec<String>,
        kind: String,
    ) -> Result<mpsc::Receiver<News>, CallError> {
        self.room()?;
        let (tell, news) = mpsc::channel(NEWS_MAX);
        let proposed = Proposed { to, kind, fulfilments: HashMap::new(), tell };
        self.proposals.insert(id.to_owned(), proposed);
        Ok(news)
    }

    fn room(&self) -> Result<(), CallError> {
        if self.requests.len() + self.proposals.len() < OPEN_MAX { Ok(()) } else { Err(CallError::Busy) }
    }

    /// Nobody waits for this any more.
    pub(super) fn forget(&mut self, id: &str) {
        self.requests.remove(id);
        self.proposals.remove(id);
    }

    /// The connection broke: no request gets its answer. Proposals go on, the gateway keeps them.
    pub(super) fn lost(&mut self) {
        for (_, open) in self.requests.drain() {
            let _ = open.tell.send(Err(CallError::Lost));
        }
    }

    /// Takes a refusal of the gateway; gives it back if it is about nothing that waits.
    pub(super) fn refused(&mut self, about: Option<&str>, told: Told) -> Option<Told> {
        let Some(id) = about else { return Some(told) };
        if let Some(open) = self.requests.remove(id) {
            let _ = open.tell.send(Err(CallError::Refused(told)));
            return None;
        }
        match self.proposals.get(id) {
            Some(proposed) => {
                let _ = proposed.tell.try_send(News::Refused(told));
                None
            }
            None => Some(told),
        }
    }

    /// Takes what the gateway tells of a proposal.
    pub(super) fn state(&self, proposal: &str, state: ProposalState, reason: Option<&str>) {
        if let Some(proposed) = self.proposals.get(proposal) {
            let _ = proposed.tell.try_send(News::State(state, reason.map(str::to_owned)));
        }
    }

    /// Whether this request claims to fulfil a proposal that waits here.
    pub(super) fn is_about(&self, fulfilment: &Envelope) -> bool {
        fulfilment.correlation_id().is_some_and(|id| self.proposals.contains_key(id))
    }

    /// Takes a request that names a proposal. It fulfils it if it is the same call, of the same target, for nobody else;
    /// anything else only speaks of it. `Err` if its kind lies.
    pub(super) fn fulfilled(&mut self, fulfilment: &Envelope) -> Result<(), String> {
        let proposed = fulfilment.correlation_id().and_then(|id| self.proposals.get_mut(id));
        let Some(proposed) = proposed else { return Ok(()) };
        let act = strict(fulfilment.kind(), fulfilment.payload_bytes()).map_err(|why| why.to_string())?;
        let Act::Request(call) = act else { return Ok(()) };
        let is_same = call.kind(Head::Request).as_ref() == Ok(&proposed.kind);
        let to: Vec<String> = fulfilment.to().map(str::to_owned).collect();
        let is_proposed = |one: &String| proposed.to.is_empty() || proposed.to.contains(one);
        let is_there = !to.is_empty() && to.iter().all(is_proposed);
        if is_same && is_there && proposed.fulfilments.len() < FULFILMENTS_MAX {
            proposed.fulfilments.insert(fulfilment.id().to_owned(), to);
        }
        Ok(())
    }

    /// Takes a response. `unseen` says that fulfilments may have passed unheard: then an answer that names `me` and fits
    /// exactly one proposal is taken for it.
    pub(super) fn answer(&mut self, response: &Envelope, me: &str, unseen: bool) -> Fit {
        let Some(about) = response.correlation_id() else { return Fit::Nobody };
        if self.requests.contains_key(about) {
            return self.requested(about, response, me);
        }
        let known = self.proposals.iter().find(|(_, proposed)| proposed.fulfilments.contains_key(about));
        let id = match known {
            Some((id, _)) => Some(id.clone()),
            None if unseen && response.to().any(|to| to == me) => self.only(response),
            None => None,
        };
        let Some(proposed) = id.and_then(|id| self.proposals.get(&id)) else { return Fit::Nobody };
        let may = proposed.fulfilments.get(about).unwrap_or(&proposed.to);
        // The gateway may announce an answer again that left its proposer out.
        if response.from() != GATEWAY && !may.iter().any(|one| one == response.from()) {
            return Fit::Wrong("it answers a request that was made of others".to_owned());
        }
        match message(response, &proposed.kind) {
            Ok(message) => {
                let _ = proposed.tell.try_send(News::Answer(Box::new(message)));
                Fit::Taken
            }
            Err(why) => Fit::Wrong(why),
        }
    }

    fn requested(&mut self, about: &str, response: &Envelope, me: &str) -> Fit {
        let Some(open) = self.requests.get(about) else { return Fit::Nobody };
        if !open.to.iter().any(|one| one == response.from()) {
            return Fit::Wrong("it answers a request that was made of others".to_owned());
        }
        if !response.is_broadcast() && !response.to().any(|to| to == me) {
            return Fit::Wrong("it answers, but not whoever asked".to_owned());
        }
        let message = match message(response, &open.kind) {
            Ok(message) => message,
            Err(why) => return Fit::Wrong(why),
        };
        // An error may lack an id, where the request's could not be read.
        if message.id().is_some_and(|id| *id != open.rpc)
            || (message.id().is_none() && message.error().is_none())
        {
            return Fit::Wrong("its payload answers another JSON-RPC id".to_owned());
        }
        if let Some(open) = self.requests.remove(about) {
            let _ = open.tell.send(Ok(message));
        }
        Fit::Taken
    }

    /// The one proposal that this response fits, if there is just one.
    fn only(&self, response: &Envelope) -> Option<String> {
        let kind = KindRef::parse(response.kind()).ok()?;
        let mut fitting = self.proposals.iter().filter(|(_, proposed)| {
            (response.from() == GATEWAY || proposed.to.iter().any(|one| one == response.from()))
                && KindRef::parse(&proposed.kind).is_ok_and(|request| answers(kind, request))
        });
        let (id, _) = fitting.next()?;
        fitting.next().is_none().then(|| id.clone())
    }
}

/// The payload of a response, if it can answer a request of this kind.
fn message(response: &Envelope, kind: &str) -> Result<Message, String> {
    let fits = match (KindRef::parse(response.kind()), KindRef::parse(kind)) {
        (Ok(response), Ok(request)) => answers(response, request),
        _ => false,
    };
    if !fits {
        return Err(format!("its kind `{}` answers no `{kind}`", response.kind()));
    }
    match strict(response.kind(), response.payload_bytes()) {
        Ok(Act::Answer(message)) => Ok(message),
        Ok(_) => Err("it is no response".to_owned()),
        Err(why) => Err(why.to_string()),
    }
}
