//! What one participant does with each envelope that it hears: the strict side of the protocol (MCPx v0.1, 4.3 and 8.2).
//!
//! Pure but for the waiters it wakes: no socket, no clock. What follows from an envelope is given back as a [`Reaction`].

use model::{GATEWAY, KindRef, SYSTEM};
use serde::Deserialize;
use wire::mcpx::check::{Act, Call, strict};
use wire::mcpx::system::{Change, System};
use wire::mcpx::{CHAT, Chat, Envelope, Head};
use wire::rpc::{self, Id, Message};

use super::conduct::Conduct;
use super::error::RpcError;
use super::event::{Event, Proposed};
use super::memory::Memory;
use super::roster::Roster;
use super::serve::Asked;
use super::waiting::{Fit, Waiting};

/// The kind by which the gateway tells a proposer what became of a proposal.
const PROPOSAL_STATE: &str = "portmoot/proposal";
/// JSON-RPC: the message is no valid request.
const INVALID_REQUEST: i64 = -32600;

/// One participant's knowledge.
#[derive(Debug, Default)]
pub(super) struct Desk {
    pub(super) roster: Roster,
    pub(super) waiting: Waiting,
    pub(super) conduct: Conduct,
    memory: Memory,
    /// Whether some of the others' envelopes are not heard.
    hears_part: bool,
}

/// A request to be answered.
#[derive(Debug)]
pub(super) struct Job {
    /// What is asked.
    pub(super) asked: Asked,
    /// Where the answer goes.
    pub(super) reply: Reply,
}

/// Where an answer goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    /// Whoever asked, and the proposer if its proposal was seen.
    pub(super) to: Vec<String>,
    /// The response's kind.
    pub(super) kind: String,
    /// The request's envelope.
    pub(super) about: String,
    /// The request's JSON-RPC id.
    pub(super) rpc: Id,
}

/// What follows from an envelope.
#[derive(Debug)]
pub(super) enum Reaction {
    /// To be told to whoever listens.
    Event(Box<Event>),
    /// To be done and answered.
    Job(Box<Job>),
    /// To be answered with this error at once.
    Refuse(Reply, RpcError),
}

#[derive(Deserialize)]
struct State {
    proposal: String,
    state: String,
    #[serde(default)]
    reason: Option<String>,
}

impl Desk {
    /// A newcomer's desk.
    pub(super) fn new(hears_part: bool) -> Self {
        Self { hears_part, ..Self::default() }
    }

    /// Takes one envelope.
    pub(super) fn hear(&mut self, envelope: Envelope) -> Vec<Reaction> {
        if envelope.from() == SYSTEM {
            return self.system(&envelope);
        }
        if self.memory.is_repeat(envelope.from(), envelope.id()) {
            return Vec::new();
        }
        let head = match KindRef::parse(envelope.kind()) {
            Ok(kind) if kind.is_reserved() => return self.broke(&envelope, "this kind is the gateway's own"),
            Ok(kind) => Head::of(kind),
            Err(why) => return self.broke(&envelope, &why.to_string()),
        };
        match head {
            Some(Head::Request) => self.request(envelope),
            Some(Head::Proposal) => self.proposal(envelope),
            Some(Head::Response) => match self.waiting.answer(&envelope, self.roster.id(), self.hears_part) {
                Fit::Taken => Vec::new(),
                Fit::Nobody => heard(envelope),
                Fit::Wrong(why) => self.broke(&envelope, &why),
            },
            None => self.other(envelope),
        }
    }

    fn system(&mut self, envelope: &Envelope) -> Vec<Reaction> {
        let event = match System::read(envelope) {
            Some(Ok(System::Welcome(welcome))) => {
                self.roster.welcome(&welcome);
                Event::Welcomed { you: welcome.you, others: welcome.participants }
            }
            Some(Ok(System::Presence(change))) => {
                self.roster.change(&change);
                match change {
                    Change::Join(seen) => Event::Joined(seen),
                    Change::Leave(seen) => Event::Left(seen),
                }
            }
            Some(Ok(System::Error(told))) => match self.waiting.refused(envelope.correlation_id(), told) {
                Some(told) => Event::Refused { envelope: envelope.correlation_id().map(str::to_owned), told },
                None => return Vec::new(),
            },
            Some(Ok(System::Other)) | None => return Vec::new(),
            Some(Err(why)) => {
                tracing::warn!(%why, kind = envelope.kind(), "the gateway said what cannot be read");
                return Vec::new();
            }
        };
        vec![Reaction::Event(Box::new(event))]
    }

    /// A request is executed only if it names this participant, and only if its kind says what its payload says.
    fn request(&mut self, envelope: Envelope) -> Vec<Reaction> {
        let mut reactions = Vec::new();
        if self.waiting.is_about(&envelope)
            && let Err(why) = self.waiting.fulfilled(&envelope)
        {
            reactions = self.broke(&envelope, &why);
        }
        if !envelope.to().any(|to| self.roster.is_me(to)) {
            return if reactions.is_empty() { heard(envelope) } else { reactions };
        }
        match strict(envelope.kind(), envelope.payload_bytes()) {
            Ok(Act::Request(call)) => match call.message().id().cloned() {
                Some(rpc) => reactions.push(self.job(&envelope, call, rpc)),
                None => reactions.extend(heard(envelope)),
            },
            Ok(Act::Proposal(_) | Act::Answer(_) | Act::Other) => {}
            Err(why) => {
                let why = why.to_string();
                let refuse = unfit_reply(&envelope);
                reactions.extend(self.broke(&envelope, &why));
                reactions
                    .extend(refuse.map(|reply| Reaction::Refuse(reply, RpcError::new(INVALID_REQUEST, why))));
            }
        }
        reactions
    }

    fn job(&self, envelope: &Envelope, call: Call, rpc: Id) -> Reaction {
        let from = envelope.from().to_owned();
        let mut to = vec![from.clone()];
        let fulfils =
            envelope.correlation_id().map(|id| (id.to_owned(), self.memory.proposer(id).map(str::to_owned)));
        if let Some((_, Some(proposer))) = &fulfils
            && *proposer != from
        {
            to.push(proposer.clone());
        }
        // Without a target that could stand in a kind, the kind is short.
        let kind = call.kind(Head::Response).unwrap_or_else(|_| format!("mcp/response:{}", call.method()));
        let reply = Reply { to, kind, about: envelope.id().to_owned(), rpc };
        let asked = Asked { from, envelope: envelope.id().to_owned(), fulfils, call };
        Reaction::Job(Box::new(Job { asked, reply }))
    }

    fn proposal(&mut self, envelope: Envelope) -> Vec<Reaction> {
        match strict(envelope.kind(), envelope.payload_bytes()) {
            Ok(Act::Proposal(call)) => {
                self.memory.proposed(envelope.id(), envelope.from());
                let proposed = Box::new(Proposed { envelope, call });
                vec![Reaction::Event(Box::new(Event::Proposal(proposed)))]
            }
            Ok(_) => Vec::new(),
            Err(why) => self.broke(&envelope, &why.to_string()),
        }
    }

    fn other(&mut self, envelope: Envelope) -> Vec<Reaction> {
        let event = match envelope.kind() {
            CHAT => match Chat::read(envelope.payload()) {
                Ok(chat) => {
                    let (from, text) = (envelope.from().to_owned(), chat.text.into_owned());
                    Event::Chat { from, text, envelope }
                }
                Err(why) => return self.broke(&envelope, &why.to_string()),
            },
            PROPOSAL_STATE if envelope.from() == GATEWAY => match read_state(&envelope) {
                Some(event) => {
                    if let Event::ProposalState { proposal, state, reason } = &event {
                        self.waiting.state(proposal, *state, reason.as_deref());
                    }
                    event
                }
                None => Event::Heard(envelope),
            },
            PROPOSAL_STATE => {
                return self.broke(&envelope, "only the gateway tells what becomes of proposals");
            }
            _ => Event::Heard(envelope),
        };
        vec![Reaction::Event(Box::new(event))]
    }

    fn broke(&mut self, envelope: &Envelope, why: &str) -> Vec<Reaction> {
        self.conduct.broke(envelope.from());
        let (from, envelope) = (envelope.from().to_owned(), envelope.id().to_owned());
        vec![Reaction::Event(Box::new(Event::Misbehaved { from, envelope, why: why.to_owned() }))]
    }
}

fn heard(envelope: Envelope) -> Vec<Reaction> {
    vec![Reaction::Event(Box::new(Event::Heard(envelope)))]
}

fn read_state(envelope: &Envelope) -> Option<Event> {
    let State { proposal, state, reason } = serde_json::from_slice(envelope.payload()).ok()?;
    Some(Event::ProposalState { proposal, state: state.parse().ok()?, reason })
}

/// Where the refusal of a request goes whose payload does not fit its kind, if its id can be read.
fn unfit_reply(envelope: &Envelope) -> Option<Reply> {
    let rpc = Message::read(envelope.payload_bytes()).ok()?.id()?.clone();
    let kind = format!("mcp/response{}", envelope.kind().strip_prefix("mcp/request")?);
    Some(Reply { to: vec![envelope.from().to_owned()], kind, about: envelope.id().to_owned(), rpc })
}

/// The payload of an answer.
pub(super) fn payload(rpc: &Id, answer: &super::serve::Answer) -> bytes::Bytes {
    match answer {
        Ok(result) => rpc::result(rpc, result.get().as_bytes()),
        Err(error) => {
            let data = (!error.data.is_null()).then(|| error.data.to_string());
            rpc::error(Some(rpc), error.code, &error.message, data.as_ref().map(|data| data.as_bytes()))
        }
    }
}

#[cfg(test)]
mod tests;
