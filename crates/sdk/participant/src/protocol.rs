//! Protocol state machine of a participant: the effects of each envelope (MCPx v0.1, 4.3 and 8.2).
//!
//! It has no socket and no clock. It delivers to pending requests and proposals; everything else
//! that follows from an envelope is returned as a [`Reaction`].

use bytes::Bytes;
use model::{GATEWAY, KindRef, SYSTEM};
use serde::Deserialize;
use wire::mcpx::check::{Act, EnvelopeCall, strict};
use wire::mcpx::system::{PresenceChange, System, WelcomeHistory};
use wire::mcpx::{CHAT, Chat, Envelope, Head};
use wire::rpc::{self, Id, Message};

use crate::error::RpcError;
use crate::event::{Claim, Event, IncomingProposal, Note};
use crate::pending::{Match, PendingCalls, StateReport, View};
use crate::roster::{Recent, Roster, Violations};
use crate::serve::{FulfilledProposal, IncomingRequest, ServeResult};

/// The kind in which the gateway reports the state of a proposal to its proposer.
const PROPOSAL_STATE: &str = "portmoot/proposal";
/// JSON-RPC: the message is not a valid request.
const INVALID_REQUEST: i64 = -32600;

/// The state of one participant's protocol.
#[derive(Debug, Default)]
pub(crate) struct Protocol {
    pub(crate) roster: Roster,
    pub(crate) pending: PendingCalls,
    pub(crate) violations: Violations,
    recent: Recent,
    /// The beginning of the ids of all envelopes that this participant sends.
    id_prefix: String,
    /// The place in the topic's history at the latest connect, if the topic keeps one.
    pub(crate) cursor: Option<Cursor>,
    /// Whether the gateway withholds some envelopes of others, as the participant asked it to.
    is_filtered: bool,
}

/// A place in the history of a topic, as a welcome gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The number of the gateway process that assigns the offsets.
    pub epoch: u64,
    /// The offset of the next envelope.
    pub offset: u64,
}

/// A request to be answered.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: IncomingRequest,
    pub(crate) reply_to: ReplyTo,
}

/// The receiver of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReplyTo {
    /// The requester, and the proposer if the request fulfils a known proposal.
    pub(crate) to: Vec<String>,
    /// The kind of the response.
    pub(crate) kind: String,
    /// The id of the request's envelope.
    pub(crate) envelope_id: String,
    /// The request's JSON-RPC id.
    pub(crate) rpc_id: Id,
}

/// The effect of an envelope.
#[derive(Debug)]
pub(crate) enum Reaction {
    /// An event for the subscribers.
    Event(Box<Event>),
    /// A request to run and answer.
    Job(Box<Job>),
    /// A request to answer with this error at once.
    Refuse(ReplyTo, RpcError),
}

#[derive(Deserialize)]
struct StatePayload {
    proposal: String,
    state: String,
    #[serde(default)]
    by: Option<String>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    fulfilment: Option<String>,
    #[serde(default)]
    edited: bool,
    #[serde(default)]
    absent: Vec<String>,
    #[serde(default)]
    expiring: bool,
    #[serde(default)]
    claims: Vec<Claim>,
    #[serde(default)]
    notes: Vec<Note>,
}

impl Protocol {
    /// The state before the first welcome.
    pub(crate) fn new(is_filtered: bool, id_prefix: &str) -> Self {
        Self {
            is_filtered,
            id_prefix: id_prefix.to_owned(),
            ..Self::default()
        }
    }

    /// Fails pending requests: the connection is lost.
    pub(crate) fn disconnected(&mut self) {
        self.roster.disconnected();
        self.pending.fail_requests();
    }

    /// Processes one envelope.
    pub(crate) fn receive(&mut self, envelope: Envelope) -> Vec<Reaction> {
        if envelope.from() == SYSTEM {
            return self.system(&envelope);
        }
        if self.recent.is_duplicate(envelope.from(), envelope.id()) {
            return Vec::new();
        }
        let head = match KindRef::parse(envelope.kind()) {
            Ok(kind) if kind.is_reserved() => {
                return self.violation(&envelope, "this kind is reserved for the gateway");
            }
            Ok(kind) => Head::of(kind),
            Err(why) => return self.violation(&envelope, &why.to_string()),
        };
        match head {
            Some(Head::Request) => self.request(envelope),
            Some(Head::Proposal) => self.proposal(envelope),
            Some(Head::Response) => {
                match self
                    .pending
                    .deliver(&envelope, self.roster.id(), self.view())
                {
                    Match::Delivered => Vec::new(),
                    Match::None => other(envelope),
                    Match::Violation(why) => self.violation(&envelope, &why),
                }
            }
            None => self.plain(envelope),
        }
    }

    /// An envelope of the gateway's system.
    fn system(&mut self, envelope: &Envelope) -> Vec<Reaction> {
        let event = match System::read(envelope) {
            Some(Ok(System::Welcome(welcome))) => {
                self.roster.welcome(&welcome);
                let history = welcome.history.and_then(|history| self.history(history));
                let welcomed = Event::Welcomed {
                    you: welcome.you,
                    others: welcome.participants,
                };
                let events = [welcomed].into_iter().chain(history);
                return events
                    .map(|event| Reaction::Event(Box::new(event)))
                    .collect();
            }
            Some(Ok(System::Presence(change))) => {
                let is_here = self.roster.change(&change);
                match change {
                    PresenceChange::Join(seen) if is_here => Event::Changed(seen),
                    PresenceChange::Join(seen) => Event::Joined(seen),
                    PresenceChange::Leave(seen) => Event::Left(seen),
                }
            }
            Some(Ok(System::Error(error))) => {
                match self.pending.refuse(envelope.correlation_id(), error) {
                    Some(error) => Event::Refused {
                        envelope_id: envelope.correlation_id().map(str::to_owned),
                        error,
                    },
                    None => return Vec::new(),
                }
            }
            Some(Ok(System::Other)) | None => return Vec::new(),
            Some(Err(why)) => {
                tracing::warn!(%why, kind = envelope.kind(), "an envelope of the gateway cannot be read");
                return Vec::new();
            }
        };
        vec![Reaction::Event(Box::new(event))]
    }

    /// Reads the envelopes from before this connection: those that this participant has neither
    /// received nor sent. They may answer what is pending, and nothing is run.
    fn history(&mut self, history: WelcomeHistory) -> Option<Event> {
        let WelcomeHistory {
            epoch,
            offset,
            complete,
            envelopes,
        } = history;
        let returns = self.cursor.replace(Cursor { epoch, offset }).is_some();
        let mut past = Vec::new();
        for envelope in envelopes {
            let Ok(envelope) = Envelope::receive(Bytes::from(String::from(envelope))) else {
                continue;
            };
            let own =
                self.roster.is_me(envelope.from()) && envelope.id().starts_with(&self.id_prefix);
            if !own && !self.recent.is_duplicate(envelope.from(), envelope.id()) {
                past.push(self.past(envelope));
            }
        }
        let is_cut = returns && !complete;
        (is_cut || !past.is_empty()).then_some(Event::History { past, is_cut })
    }

    /// The event of an envelope from before this connection. One that violates the protocol is not
    /// counted now.
    fn past(&mut self, envelope: Envelope) -> Event {
        let head = KindRef::parse(envelope.kind()).ok().and_then(Head::of);
        match head {
            Some(Head::Request) => {
                // What cannot fulfil a proposal changes nothing.
                let _ = self.pending.add_fulfilment(&envelope, self.roster.id());
            }
            Some(Head::Response) => {
                let _ = self
                    .pending
                    .deliver(&envelope, self.roster.id(), self.view());
            }
            Some(Head::Proposal) => {
                if let Ok(Act::Proposal(call)) = strict(envelope.kind(), envelope.payload_bytes()) {
                    self.recent.add_proposal(envelope.id(), envelope.from());
                    return Event::Proposal(Box::new(IncomingProposal { envelope, call }));
                }
            }
            None => {
                if let Some(event) = self.read_plain(&envelope) {
                    return event;
                }
            }
        }
        Event::Other(envelope)
    }

    /// A request is run only if it names this participant and its kind agrees with its payload.
    fn request(&mut self, envelope: Envelope) -> Vec<Reaction> {
        let mut reactions = Vec::new();
        if let Err(why) = self.pending.add_fulfilment(&envelope, self.roster.id()) {
            reactions = self.violation(&envelope, &why);
        }
        if !envelope.to().any(|to| self.roster.is_me(to)) {
            return if reactions.is_empty() {
                other(envelope)
            } else {
                reactions
            };
        }
        match strict(envelope.kind(), envelope.payload_bytes()) {
            Ok(Act::Request(call)) => match call.message().id().cloned() {
                Some(rpc_id) => reactions.push(self.job(&envelope, call, rpc_id)),
                None => reactions.extend(other(envelope)),
            },
            Ok(Act::Proposal(_) | Act::Answer(_) | Act::Other) => {}
            Err(why) => {
                let why = why.to_string();
                // Its sender waits for an answer, whatever is wrong with the request.
                let reply_to = invalid_reply_to(&envelope);
                reactions.extend(self.violation(&envelope, &why));
                reactions.extend(reply_to.map(|reply_to| {
                    Reaction::Refuse(reply_to, RpcError::new(INVALID_REQUEST, why))
                }));
            }
        }
        reactions
    }

    fn job(&self, envelope: &Envelope, call: EnvelopeCall, rpc_id: Id) -> Reaction {
        let from = envelope.from().to_owned();
        let mut to = vec![from.clone()];
        let fulfils = envelope.correlation_id().map(|id| FulfilledProposal {
            proposal: id.to_owned(),
            proposer: self.recent.proposer(id).map(str::to_owned),
        });
        if let Some(FulfilledProposal {
            proposer: Some(proposer),
            ..
        }) = &fulfils
            && *proposer != from
        {
            // The proposer waits for the answer of a fulfilment (MCPx v0.1, 3.2.1).
            to.push(proposer.clone());
        }
        // A target that cannot be part of a kind is left out.
        let kind = call
            .kind(Head::Response)
            .unwrap_or_else(|_| format!("mcp/response:{}", call.method()));
        let reply_to = ReplyTo {
            to,
            kind,
            envelope_id: envelope.id().to_owned(),
            rpc_id,
        };
        let request = IncomingRequest {
            from,
            envelope_id: envelope.id().to_owned(),
            fulfils,
            call,
        };
        Reaction::Job(Box::new(Job { request, reply_to }))
    }

    fn proposal(&mut self, envelope: Envelope) -> Vec<Reaction> {
        match strict(envelope.kind(), envelope.payload_bytes()) {
            Ok(Act::Proposal(call)) => {
                self.recent.add_proposal(envelope.id(), envelope.from());
                let proposal = Box::new(IncomingProposal { envelope, call });
                vec![Reaction::Event(Box::new(Event::Proposal(proposal)))]
            }
            Ok(_) => Vec::new(),
            Err(why) => self.violation(&envelope, &why.to_string()),
        }
    }

    /// An envelope that is neither a request, a proposal nor a response.
    fn plain(&mut self, envelope: Envelope) -> Vec<Reaction> {
        if envelope.kind() == PROPOSAL_STATE && envelope.from() != GATEWAY {
            return self.violation(&envelope, "only the gateway reports the state of proposals");
        }
        if envelope.kind() == CHAT
            && let Err(why) = Chat::read(envelope.payload())
        {
            return self.violation(&envelope, &why.to_string());
        }
        let event = self.read_plain(&envelope).unwrap_or(Event::Other(envelope));
        vec![Reaction::Event(Box::new(event))]
    }

    /// The event of a chat message, or of a report of the gateway, which it passes on; `None` for
    /// any other envelope.
    fn read_plain(&mut self, envelope: &Envelope) -> Option<Event> {
        match envelope.kind() {
            CHAT => {
                let text = Chat::read(envelope.payload()).ok()?.text.into_owned();
                Some(Event::Chat {
                    from: envelope.from().to_owned(),
                    text,
                    envelope: envelope.clone(),
                })
            }
            PROPOSAL_STATE if envelope.from() == GATEWAY => {
                let event = read_state(envelope)?;
                if let Event::ProposalState {
                    proposal,
                    to,
                    state,
                    by,
                    reason,
                    fulfilment,
                    ..
                } = &event
                    && self.roster.is_me(to)
                {
                    let by = by.as_deref();
                    let reason = reason.as_deref();
                    let fulfilment = fulfilment.as_deref();
                    let report = StateReport {
                        state: *state,
                        by,
                        reason,
                        fulfilment,
                    };
                    let view = self.view();
                    self.pending
                        .update_state(proposal, report, self.roster.id(), view);
                }
                Some(event)
            }
            _ => None,
        }
    }

    /// A gateway that reports the state of proposals is a participant of the topic itself.
    fn view(&self) -> View {
        View {
            misses_fulfilments: self.is_filtered,
            reports_approvals: self.roster.others.contains_key(GATEWAY),
        }
    }

    fn violation(&mut self, envelope: &Envelope, why: &str) -> Vec<Reaction> {
        self.violations.add(envelope.from());
        let from = envelope.from().to_owned();
        let envelope_id = envelope.id().to_owned();
        vec![Reaction::Event(Box::new(Event::Violation {
            from,
            envelope_id,
            why: why.to_owned(),
        }))]
    }
}

fn other(envelope: Envelope) -> Vec<Reaction> {
    vec![Reaction::Event(Box::new(Event::Other(envelope)))]
}

fn read_state(envelope: &Envelope) -> Option<Event> {
    let StatePayload {
        proposal,
        state,
        by,
        reason,
        fulfilment,
        edited,
        absent,
        expiring,
        claims,
        notes,
    } = serde_json::from_slice(envelope.payload()).ok()?;
    let to = envelope.to().next()?.to_owned();
    let state = state.parse().ok()?;
    Some(Event::ProposalState {
        proposal,
        to,
        state,
        by,
        reason,
        fulfilment,
        edited,
        absent,
        expiring,
        claims,
        notes,
    })
}

/// Where the error goes for a request whose kind and payload disagree; `None` when its JSON-RPC id
/// cannot be read.
fn invalid_reply_to(envelope: &Envelope) -> Option<ReplyTo> {
    let rpc_id = Message::id_in(envelope.payload_bytes())?;
    let kind = format!(
        "mcp/response{}",
        envelope.kind().strip_prefix("mcp/request")?
    );
    Some(ReplyTo {
        to: vec![envelope.from().to_owned()],
        kind,
        envelope_id: envelope.id().to_owned(),
        rpc_id,
    })
}

/// The payload of an answer.
pub(crate) fn payload(rpc_id: &Id, result: &ServeResult) -> Bytes {
    match result {
        Ok(result) => rpc::result(rpc_id, result.get().as_bytes()),
        Err(error) => {
            let data = (!error.data.is_null()).then(|| error.data.to_string());
            rpc::error(
                Some(rpc_id),
                error.code,
                &error.message,
                data.as_ref().map(|data| data.as_bytes()),
            )
        }
    }
}

#[cfg(test)]
mod tests;
