//! What is decided about proposals, and what follows: written down first, told second, carried out once.
//!
//! Must not know how a decision came in.

use auth::Participant;
use json::quote;
use model::{Digest, OperationId, ParticipantId, ProposalState, Refusal, RefusalCode};
use room::{Audience, Message, RoomEvent};
use tokio::sync::{oneshot, watch};
use topic::{Decision, Effect, Event};
use wire::mcpx::check::Call;
use wire::mcpx::{Envelope, Head};

use super::Pump;
use super::record::reason;
use super::run::Shown;
use crate::caller::Caller;
use crate::desk::{Case, Ruling, unknown_proposal};

/// The kind by which a proposer hears what becomes of its proposal.
pub const PROPOSAL_STATE: &str = "portmoot/proposal";

/// What somebody decides about a proposal.
#[derive(Debug, Clone)]
pub enum Choice {
    /// It may run.
    Approve {
        /// The digest of what was shown.
        digest: Digest,
        /// Other arguments than those that were proposed: a JSON object.
        arguments: Option<String>,
    },
    /// It never runs.
    Reject {
        /// Why, in words for the proposer.
        reason: Option<String>,
    },
    /// Its proposer takes it back.
    Withdraw {
        /// Why.
        reason: Option<String>,
    },
}

impl Pump {
    /// Decides, and waits until the decision is on disk.
    ///
    /// # Errors
    /// Why the decision does not count; of a proposal that `who` may not see, that there is none.
    pub async fn decide(&self, who: &Participant, id: OperationId, choice: Choice) -> Result<(), Refusal> {
        if let Some(mut opened) = self.opening(id) {
            let _ = opened.changed().await;
        }
        if !self.shows(id, who) {
            let refusal = unknown_proposal();
            self.record_undecided(id, &who.id, reason(&refusal), None);
            return Err(refusal);
        }
        let params = match &choice {
            Choice::Approve { arguments: Some(arguments), .. } => {
                let edited = self.edited(id, arguments);
                Some(edited.inspect_err(|no| self.record_undecided(id, &who.id, reason(no), None))?)
            }
            Choice::Approve { .. } | Choice::Reject { .. } | Choice::Withdraw { .. } => None,
        };
        if let Choice::Approve { .. } = choice {
            // After a restart servers list their tools a little later.
            self.wait_for_servers().await;
        }
        let ruling = Ruling { params, ..Ruling::default() };
        let heard = self.rule(who, id, &choice, ruling)?;
        heard.await.unwrap_or_else(|_| Err(Refusal::new(RefusalCode::Internal, "the decision was lost")))
    }

    /// Hands a decision to the topic; what comes of it is heard later.
    pub(super) fn rule(
        &self,
        who: &Participant,
        id: OperationId,
        choice: &Choice,
        ruling: Ruling,
    ) -> Result<oneshot::Receiver<Result<(), Refusal>>, Refusal> {
        let place = self.audit.reserve()?;
        let ruling = Ruling { place: Some(place), ..ruling };
        let heard = self.put(who, id, choice, ruling);
        heard.inspect_err(|refusal| self.record_undecided(id, &who.id, reason(refusal), None))
    }

    fn put(
        &self,
        who: &Participant,
        id: OperationId,
        choice: &Choice,
        ruling: Ruling,
    ) -> Result<oneshot::Receiver<Result<(), Refusal>>, Refusal> {
        if matches!(choice, Choice::Approve { .. }) && self.is_redefined(id) {
            let message = "its server describes the tool otherwise now than was shown";
            let refusal = Refusal::new(RefusalCode::Conflict, message);
            return Err(refusal.hint("reject it, and have it proposed again"));
        }
        let (told, heard) = oneshot::channel();
        self.desk.rule(id, Ruling { told: Some(told), ..ruling })?;
        match self.opening(id) {
            None => self.step_decision(who, id, choice),
            // Whoever hears of it in the room may answer before it is on disk: that counts once it is.
            Some(mut opened) => {
                let (pump, who, choice) = (self.this.clone(), who.clone(), choice.clone());
                tokio::spawn(async move {
                    if let (Ok(()), Some(pump)) = (opened.changed().await, pump.upgrade()) {
                        pump.step_decision(&who, id, &choice);
                    }
                });
            }
        }
        Ok(heard)
    }

    fn step_decision(&self, who: &Participant, id: OperationId, choice: &Choice) {
        let decision = match choice {
            Choice::Approve { digest, .. } => Decision::Approve { digest: *digest },
            Choice::Reject { reason } => Decision::Reject { reason: reason.as_deref() },
            Choice::Withdraw { reason } => Decision::Withdraw { reason: reason.as_deref() },
        };
        let outside = Some(&*who.capabilities);
        self.step(Event::Decide { proposal: id, by: &who.id, outside, decision });
    }

    /// Wakes when a proposal is on disk, if it is not yet.
    fn opening(&self, id: OperationId) -> Option<watch::Receiver<ProposalState>> {
        self.desk.with(id, |case| (!case.told).then(|| case.changed.subscribe())).flatten()
    }

    /// The proposal that an envelope of this id made.
    pub(crate) fn proposal_of(&self, envelope: &str) -> Option<OperationId> {
        drop(self.opening.lock());
        self.desk.proposed_by(envelope)
    }

    /// Whether this participant made it.
    pub(crate) fn is_proposer(&self, id: OperationId, who: &str) -> bool {
        self.desk.with(id, |case| case.opened.by == who).unwrap_or(false)
    }

    /// Somebody fulfils a proposal by an envelope of its own, which the topic has admitted.
    pub(crate) fn approve_by(
        &self,
        caller: &Caller,
        envelope: &Envelope,
        call: &Call,
        id: OperationId,
    ) -> Approval {
        let params = call.params().map(|params| String::from_utf8_lossy(params).into_owned());
        let seen = self.desk.with(id, |case| {
            let same = case.opened.method == call.method()
                && case.opened.context.as_deref() == call.target()
                && is_to(&case.opened.to, &case.opened.by, envelope);
            let canonical = |params: &Option<String>| {
                wire::digest::call_params(params.as_deref().unwrap_or("{}").as_bytes()).ok()
            };
            let edited = canonical(&params) != canonical(&case.opened.params);
            let held = case.held.is_some();
            (same, edited, held, case.opened.digest.parse(), case.opened.by.clone())
        });
        let proposer = seen.as_ref().and_then(|(_, _, held, _, by)| (!held).then(|| by.clone()));
        let heard = match seen {
            Some((true, edited, _, Ok(digest), _)) => {
                let ruling = Ruling {
                    params: params.filter(|_| edited),
                    envelope: Some(envelope.id().to_owned()),
                    ..Ruling::default()
                };
                let choice = Choice::Approve { digest, arguments: None };
                self.rule(caller.participant(), id, &choice, ruling)
            }
            Some(_) => {
                let why = "conflict: this is not what was proposed";
                self.record_undecided(id, &caller.participant().id, why, None);
                let refusal = Refusal::new(RefusalCode::Conflict, "this is not what was proposed");
                Err(refusal.hint(
                    "say method and target as they were proposed, and in `to` those whom the proposal names",
                ))
            }
            None => Err(unknown_proposal()),
        };
        Approval { heard, proposer }
    }

    /// Tells a proposer that what it said is no proposal.
    pub(crate) fn not_proposed(&self, caller: &Caller, envelope: &Envelope, why: &str) {
        self.tell_state(&caller.participant().id, envelope.id(), None, ProposalState::Rejected, Some(why));
    }

    /// The params of a proposal with other arguments.
    fn edited(&self, id: OperationId, arguments: &str) -> Result<String, Refusal> {
        let wrong = |why: &str| Refusal::new(RefusalCode::Malformed, why.to_owned());
        json::refuse_duplicates(arguments.as_bytes())
            .map_err(|error| wrong(&format!("the arguments are no JSON: {error}")))?;
        if !json::is_object(arguments.as_bytes()) {
            return Err(wrong("the arguments must be a JSON object"));
        }
        let params = self.desk.with(id, |case| case.opened.params.clone()).flatten();
        let params = params.unwrap_or_else(|| "{}".to_owned());
        super::run::with_arguments(&params, arguments).ok_or_else(|| wrong("the arguments cannot be edited"))
    }

    /// Carries out what a step says about proposals.
    pub(super) fn carry_proposal(&self, effect: Effect) {
        match effect {
            Effect::Store { proposal, what } => {
                let (pump, runtime) = (self.this.clone(), tokio::runtime::Handle::current());
                self.desk.store(proposal, &what, move |durable| {
                    // On the journal's thread, or within a step: the next step is taken elsewhere.
                    runtime.spawn(async move {
                        let Some(pump) = pump.upgrade() else { return };
                        pump.step(if durable {
                            Event::Stored { proposal }
                        } else {
                            Event::NotStored { proposal }
                        });
                    });
                });
            }
            Effect::Proposed { proposal } => {
                self.record_proposed(proposal);
                // From now on it can expire.
                self.expiry.notify_one();
                self.proposal_opened(proposal);
            }
            Effect::NotProposed { proposal, by, refusal, cause } => {
                let Some(mut case) = self.desk.forget(proposal) else { return };
                self.record_not_proposed(proposal, &mut case, cause);
                case.ruled(Err(unknown_proposal()));
                if case.held.is_none() {
                    let (envelope, why) = (&case.opened.envelope, refusal.to_string());
                    self.tell_state(&by, envelope, None, ProposalState::Rejected, Some(&why));
                }
            }
            Effect::Approved { proposal, by } => {
                self.record_approved(proposal, &by);
                self.approved(proposal, &by);
            }
            Effect::Told { proposal, by, state, reason } => {
                self.record_over(proposal, state, reason.as_deref());
                let envelope = self.desk.with(proposal, |case| {
                    case.ruled(Ok(()));
                    case.opened.envelope.clone()
                });
                let held =
                    self.desk.with(proposal, |case| case.held.as_ref().map(|held| held.operation.clone()));
                self.desk.stands(proposal, state, reason.as_deref());
                if let Some(call) = held.flatten() {
                    self.answer_undone(proposal, &call, state);
                }
                if let Some(envelope) = envelope {
                    self.tell_state(&by, &envelope, Some(proposal), state, reason.as_deref());
                }
            }
            Effect::RefuseDecision { proposal, by, refusal, cause } => {
                let place = self.desk.with(proposal, Case::decision_place).flatten();
                self.record_undecided(proposal, &by, cause.as_str(), place);
                self.desk.with(proposal, |case| case.ruled(Err(*refusal)));
                self.expiry.notify_one();
            }
            Effect::Joined { .. } | Effect::NotJoined { .. } | Effect::Left { .. } | Effect::Ended { .. } => {
            }
            Effect::Publish { .. } | Effect::Withhold { .. } | Effect::Regranted { .. } => {}
            Effect::Deliver { .. } | Effect::Hold { .. } | Effect::DeliverAsk { .. } => {}
            Effect::Settle { .. } | Effect::SettleAsk { .. } => {}
            Effect::Refuse { .. } | Effect::RefuseAsk { .. } => {}
            Effect::CancelAt { .. } | Effect::CancelAsk { .. } | Effect::ListChanged { .. } => {}
        }
    }

    /// A proposal is open to decisions: its proposer learns the id, and one that stands for a call is shown to the room.
    fn proposal_opened(&self, id: OperationId) {
        let seen = self.desk.with(id, |case| {
            case.told = true;
            (case.opened.clone(), case.held.is_some())
        });
        let Some((opened, held)) = seen else { return };
        let Ok(by) = ParticipantId::new(&opened.by) else { return };
        if held {
            self.show(&Shown {
                from: &opened.by,
                head: Head::Proposal,
                opened: &opened,
                id: &opened.envelope,
                correlation_id: None,
                params: opened.params.as_deref(),
            });
            self.answer_held(id);
        }
        self.tell_state(&by, &opened.envelope, Some(id), ProposalState::Pending, None);
        let _ = self.desk.with(id, |case| case.changed.send_replace(ProposalState::Pending));
    }

    /// Tells a proposer how its proposal stands, in its own private namespace.
    pub(super) fn tell_state(
        &self,
        by: &ParticipantId,
        envelope: &str,
        id: Option<OperationId>,
        state: ProposalState,
        reason: Option<&str>,
    ) {
        let mut payload = format!("{{\"proposal\":{}", quote(envelope));
        if let Some(id) = id {
            payload += &format!(",\"operation\":\"{id}\"");
        }
        payload += &format!(",\"state\":\"{}\"", state.as_str());
        let decided =
            id.and_then(|id| self.desk.with(id, |case| case.decided.as_ref().map(|d| d.by.clone())));
        if let Some(decider) = decided.flatten().filter(|_| state != ProposalState::Withdrawn) {
            payload += &format!(",\"by\":{}", quote(&decider));
        }
        if let Some(reason) = reason {
            payload += &format!(",\"reason\":{}", quote(reason));
        }
        payload.push('}');
        let (link, from) = (self.own_link(), model::GATEWAY);
        self.announce(link, from, &[by.as_str()], PROPOSAL_STATE, Some(envelope), payload.as_bytes());
    }

    /// Puts an envelope into the room that the topic has decided about already: in the name of whoever decided or asked.
    /// `skip` is asked another way and does not hear it.
    pub(super) fn post(
        &self,
        from: &str,
        to: &[&str],
        kind: &str,
        frame: bytes::Bytes,
        skip: Option<ParticipantId>,
    ) {
        tracing::debug!(from, kind, "posted");
        let to = to.iter().map(|to| Box::from(*to)).collect();
        let audience = Audience::matching_except(skip);
        let message = Message { link: None, envelope: frame, to, kind: kind.into(), audience };
        // Under the topic's lock, as everything that is said.
        let _topic = self.topic();
        self.room.push(RoomEvent::Message(message));
    }
}

/// Whether a fulfilment goes to whom the proposal names. It may name the proposer too, so that it hears of it.
fn is_to(proposed: &[String], by: &str, envelope: &Envelope) -> bool {
    let meant = |to: &str| proposed.iter().any(|one| one == to);
    proposed.is_empty()
        || (envelope.to().all(|to| meant(to) || to == by)
            && proposed.iter().all(|one| envelope.to().any(|to| to == one)))
}

/// An approval on its way to the disk.
pub(crate) struct Approval {
    heard: Result<oneshot::Receiver<Result<(), Refusal>>, Refusal>,
    proposer: Option<String>,
}

impl Approval {
    /// The proposer, if the fulfilling request is to be carried out now; nobody, if a call behind the proposal is.
    ///
    /// # Errors
    /// Why the approval does not count.
    pub(crate) async fn decided(self) -> Result<Option<String>, Refusal> {
        let lost = |_| Err(Refusal::new(RefusalCode::Internal, "the decision was lost"));
        self.heard?.await.unwrap_or_else(lost).map(|()| self.proposer)
    }
}

/// What a decision needs of a proposal's digest, if it is spelled right.
pub fn digest(text: &str) -> Result<Digest, Refusal> {
    text.parse().map_err(|_| Refusal::new(RefusalCode::Malformed, "a digest has 64 hexadecimal digits"))
}
