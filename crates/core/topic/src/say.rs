//! Envelopes to the room: admission by kind and addressees, publication, and the receivers' part.

use std::sync::Arc;

use model::{
    APPROVE, Digest, KindRef, LinkId, Narrowing, OperationId, Outcome, PAUSE, ParticipantId,
    ProposalState, REJECT, RESUME, Refusal,
};

use crate::{
    Handles, Topic,
    admission::judge_kind,
    audience::{Audience, Reach},
    brakes::{is_braked_envelope, proposed_request},
    effect::{AdmittedBy, Cause, Effect, Ignored, RoomEffect, Verdict},
    event::{Decision, Intent, OperationRef, Requested, Say, Terms},
    proposals::{DEFERRED_MAX, Phase, Proposal, RoomCall, RoomRequests, Ruling, Unpublished},
    refusals::{self, Refused},
};

/// An envelope that was admitted.
pub(crate) struct Said<'a, H: Handles> {
    pub(crate) from: ParticipantId,
    pub(crate) kind: KindRef<'a>,
    pub(crate) say: Say<'a, H>,
    /// Its message, unless that is published.
    pub(crate) unpublished: Option<Unpublished<H>>,
}

/// The head of the kinds by which a server notifies about a request.
const NOTIFICATIONS: &str = "mcp/request:notifications/";
/// The beginning of the heads of the gateway's own kinds.
const GATEWAYS: &str = "portmoot/";
/// The gateway's own kinds that participants may send, to act on it.
const ACTS: [&str; 3] = [REJECT, PAUSE, RESUME];
/// Heads of the kinds by which a server answers or notifies.
const ANSWERS: [&str; 2] = ["mcp/response:", NOTIFICATIONS];

impl<H: Handles> Topic<H> {
    /// Takes an envelope: admits it, publishes it or keeps it back, gives it to the gateway's
    /// session with its sender, and acts on it, in this order.
    pub(crate) fn say(&mut self, mut say: Say<'_, H>) {
        let link = say.link;
        let kind = say.kind;
        let intent = std::mem::replace(&mut say.intent, Intent::None);
        // A pause is about the participant that it names, wherever it is sent.
        let aimed = match &intent {
            Intent::Brake { participant } => Some([participant.as_str()]),
            _ => None,
        };
        let to = aimed.as_ref().map_or(say.to, |aimed| &aimed[..]);
        let by = match self.admit_envelope(link, say.narrowing, kind, to) {
            Ok(by) => by,
            Err(refused) => {
                let cause = refused.cause;
                let refusal = refused.or_else(|cause| refusals::of_envelope(cause, kind));
                return self.refuse_envelope(link, say.message, refusal, cause);
            }
        };
        if let Some(tightening) = say.tightening.take()
            && !self.names_anothers(link, say.correlation)
        {
            let refusal = refusals::of_tightening(&tightening);
            return self.refuse_envelope(link, say.message, refusal, tightening.cause());
        }
        // Without a capability for its kind the envelope is for the gateway alone, and so is one that
        // pauses or resumes: the gateway announces that it is done.
        let is_for_gateway = by.at.is_none() || kind == PAUSE || kind == RESUME;
        self.effects.verdict = Some(Verdict::Admitted {
            to: None,
            own: None,
            by,
        });
        let Some(from) = self.participant(link).cloned() else {
            return;
        };
        let Ok(parsed) = KindRef::parse(kind) else {
            return;
        };
        let is_private = self.is_private(kind, say.correlation);
        let mut unpublished = None;
        if !is_private && !is_for_gateway {
            let envelope = self.unpublished(&say, parsed);
            if self.waits_for_proposal(&say, parsed) {
                unpublished = Some(envelope);
            } else {
                self.publish(envelope.message, envelope.bytes, envelope.audience);
            }
        }
        // A notification of a participant that serves may be for the sessions that the gateway has
        // with it.
        if is_private || kind.starts_with(NOTIFICATIONS) && self.serves(&from) {
            self.receive(link, &from, &say.message);
        }
        if is_private {
            return;
        }
        let said = Said {
            from,
            kind: parsed,
            say,
            unpublished,
        };
        self.act(said, intent);
    }

    /// An envelope that was admitted, with its audience.
    fn unpublished(&self, say: &Say<'_, H>, kind: KindRef<'_>) -> Unpublished<H> {
        let reach = self.reach_of(kind, say.correlation);
        Unpublished {
            message: say.message.clone(),
            bytes: say.bytes,
            audience: Audience::new(Some(say.link), say.to, say.kind, reach),
        }
    }

    /// Whether participants get an envelope only if its proposal comes to something: it proposes or
    /// rejects, or is a request that names a proposal.
    fn waits_for_proposal(&mut self, say: &Say<'_, H>, kind: KindRef<'_>) -> bool {
        if kind.head() == model::PROPOSAL || kind.head() == REJECT {
            return true;
        }
        let requests = kind.head() == model::REQUEST && !say.kind.starts_with(NOTIFICATIONS);
        requests && self.names_proposal(say)
    }

    /// Gives an envelope to the gateway's session with its sender.
    fn receive(&mut self, link: LinkId, from: &ParticipantId, message: &H::Message) {
        let Some(handle) = self.handle(link) else {
            return;
        };
        let mut server = None;
        if self.serves(from)
            && let Some(seat) = self.members.server(from)
            && let Some(member) = self.members.get(seat)
        {
            server = member.server.clone();
        }
        self.effects.push(Effect::Receive {
            handle,
            server,
            message: message.clone(),
        });
    }

    /// Whether an envelope on this link names a proposal of another participant: as a request it
    /// approves that, or is refused.
    fn names_anothers(&self, link: LinkId, correlation: Option<&str>) -> bool {
        let proposal = correlation.and_then(|id| self.proposal_of(id));
        let named_by = self.participant(link);
        proposal.is_some_and(|proposal| named_by != Some(&proposal.terms.by))
    }

    /// Whether an envelope names a proposal, be it over.
    fn names_proposal(&mut self, say: &Say<'_, H>) -> bool {
        if let Some(id) = say.correlation
            && self.proposals.of_envelope(id).is_some()
        {
            return true;
        }
        self.is_closed(say.proposal_digest)
    }

    /// Whether a proposal of this digest is over or was rejected when it arrived, and the topic
    /// knows no more of it.
    pub(crate) fn is_closed(&mut self, digest: Option<u128>) -> bool {
        let Some(digest) = digest else {
            return false;
        };
        self.proposals.rejected.by(digest).is_some()
            || self.proposals.closed.contains(self.now_ms, digest)
    }

    /// Does not publish an envelope that was admitted: its sender gets the refusal.
    pub(crate) fn withhold(&mut self, link: LinkId, message: H::Message, cause: Cause) {
        self.refuse_envelope(link, message, refusals::plain(cause), cause);
    }

    /// Gives the sender of an envelope its refusal: to one that waits for it, and on its link.
    fn refuse_envelope(
        &mut self,
        link: LinkId,
        message: H::Message,
        refusal: Box<Refusal>,
        cause: Cause,
    ) {
        self.effects.verdict = Some(Verdict::Refused(cause));
        self.effects.refusal = Some(refusal.clone());
        if let Some(handle) = self.handle(link) {
            self.effects.push(Effect::Withhold {
                handle,
                message,
                refusal,
            });
        }
    }

    /// The capability that admits an envelope; takes a token.
    fn admit_envelope(
        &mut self,
        link: LinkId,
        narrowing: Option<&Narrowing>,
        kind: &str,
        to: &[&str],
    ) -> Result<AdmittedBy, Refused> {
        self.members.narrow(link, narrowing);
        self.take_token_of(link)?;
        let parsed = KindRef::parse(kind).map_err(|_| Cause::Malformed)?;
        // A state of a proposal that others could report would be believed.
        let is_gateways = parsed.head() == model::GATEWAY || parsed.head().starts_with(GATEWAYS);
        // The right to approve is no right to say so.
        let is_reserved = parsed.is_reserved() || is_gateways || parsed.head() == APPROVE;
        if is_reserved && !ACTS.contains(&kind) {
            return Err(Cause::Reserved.into());
        }
        let (at_link, member) = self.members.linked(link).ok_or(Cause::Moot)?;
        let granted = at_link.granted(member, narrowing);
        let is_braked = self.is_braked(&member.id);
        let parsed = if kind == RESUME {
            // The right to pause is the right to resume.
            KindRef::parse(PAUSE).map_err(|_| Cause::Malformed)?
        } else {
            parsed
        };
        let judged = match judge_kind(&granted, parsed, to) {
            // What it could request it may propose, while it is paused.
            Err(cause) if is_braked => {
                let request = proposed_request(parsed).ok_or(cause);
                request.and_then(|request| judge_kind(&granted, request, to))
            }
            judged => judged,
        };
        let at = judged.map_err(|cause| Refused {
            cause,
            refusal: self.lacking_kind(link, narrowing, parsed, to),
        })?;
        if is_braked && is_braked_envelope(parsed, to) {
            return Err(Cause::Paused.into());
        }
        Ok(AdmittedBy {
            capabilities: granted,
            at,
        })
    }

    /// Puts a message into the room's queue and, if so configured, into the replay ring.
    pub(crate) fn publish(&mut self, message: H::Message, bytes: usize, audience: Audience) {
        let received_ms = self.wall_ms;
        let place = self.ring.push(&message, &audience, bytes, received_ms);
        self.effects.publish(RoomEffect::Publish {
            message,
            audience,
            place,
            received_ms,
        });
    }

    /// Whether an envelope answers, or notifies about, a request that the gateway sent to one
    /// participant alone. Such an envelope is not published.
    fn is_private(&self, kind: &str, correlation: Option<&str>) -> bool {
        let Some(Ok(request)) = correlation.map(str::parse::<OperationId>) else {
            return false;
        };
        let is_direct = request.0 >> 64 == u128::from(self.direct);
        is_direct && ANSWERS.iter().any(|head| kind.starts_with(head))
    }

    /// The listeners that an envelope reaches. The gateway sends a held call to the participant
    /// that it is for, so that participant must not also get the request that fulfils the proposal.
    fn reach_of(&self, kind: KindRef<'_>, correlation: Option<&str>) -> Reach {
        if kind.head() == model::REQUEST
            && let Some(proposal) = correlation.and_then(|id| self.proposal_of(id))
            && proposal.held
            && let Some(server) = proposal.terms.to.iter().find(|to| self.serves(to))
        {
            return Reach::Except(server.clone());
        }
        Reach::Listeners
    }

    /// The proposal that an envelope of this id made, over or not.
    fn proposal_of(&self, envelope: &str) -> Option<&Proposal<H>> {
        self.proposals.known(self.proposals.of_envelope(envelope)?)
    }

    /// Does what an envelope asks the gateway for.
    fn act(&mut self, envelope: Said<'_, H>, intent: Intent<H>) {
        match intent {
            // The shell carries out a pause that was admitted.
            Intent::Brake { .. } => {}
            Intent::None => self.nothing(envelope),
            Intent::Mismatch => self.mismatch(envelope),
            Intent::Request(requested) => {
                self.log
                    .ask(&envelope.from, envelope.say.id, envelope.say.to);
                self.requested(envelope, requested);
            }
            Intent::Cancel { tag } => self.cancel(envelope.say.link, OperationRef::Tag(tag)),
            Intent::Propose {
                proposal,
                terms,
                content,
            } => {
                self.propose_said(envelope, proposal, *terms, content);
            }
            Intent::Reject { refusal, published } => self.reject_said(envelope, refusal, published),
            Intent::Rejection { reason, ruling } => self.rejects(envelope, reason, ruling),
            Intent::Unreadable { refusal } => {
                let Say { link, message, .. } = envelope.say;
                self.refuse_envelope(link, message, refusal, Cause::Malformed);
            }
            Intent::Answer { outcome, answer } => self.answered(envelope, outcome, answer),
        }
    }

    /// An envelope that rejects a proposal: published once that is on disk.
    fn rejects(
        &mut self,
        mut envelope: Said<'_, H>,
        reason: Option<Arc<str>>,
        ruling: Option<H::Ruling>,
    ) {
        let Say {
            link,
            correlation,
            narrowing,
            ..
        } = envelope.say;
        let named = correlation.and_then(|id| self.proposals.of_envelope(id));
        let (Some(id), Some(handle), Some(unpublished)) =
            (named, ruling, envelope.unpublished.take())
        else {
            let refusal = refusals::of_decision(Cause::Unknown);
            return self.refuse_envelope(link, envelope.say.message, refusal, Cause::Unknown);
        };
        let reason = reason.as_deref();
        let mut ruling = Ruling::new(envelope.from, Decision::Reject { reason }, Some(handle));
        ruling.narrowing = narrowing.cloned();
        ruling.unpublished = Some(Box::new(unpublished));
        self.decide(id, ruling);
    }

    /// A request that may fulfil a proposal, or that names servers which the gateway plays.
    fn requested(&mut self, mut envelope: Said<'_, H>, requested: Requested<H>) {
        let named = envelope
            .say
            .correlation
            .and_then(|id| self.proposals.of_envelope(id));
        let is_closed = named.is_none() && self.is_closed(envelope.say.proposal_digest);
        let plays = self.played(&envelope);
        if named.is_none() && !is_closed && plays.is_empty() {
            return self.between_participants(&envelope);
        }
        let proposal = named.and_then(|id| self.proposals.known(id));
        let is_own = proposal.is_some_and(|proposal| proposal.terms.by == envelope.from);
        // The gateway's session with a participant that serves carries out a call that was held for
        // it.
        let is_held = proposal.is_some_and(|proposal| proposal.held);
        // What becomes of the proposal decides about a request that fulfils, however often it
        // comes.
        let fulfils = named.is_some() && !is_own || is_closed;
        if self.log.is_repeat(&envelope.from, envelope.say.id) && !fulfils {
            return self.ignore(&envelope, plays, Ignored::Repeat);
        }
        let mut calls = Vec::new();
        for (to, (operation, call)) in envelope.say.to.iter().zip(requested.calls) {
            if let Ok(server) = ParticipantId::new(to)
                && self.is_played(&server, is_held)
            {
                calls.push(RoomCall {
                    server,
                    operation,
                    call,
                });
            }
        }
        let requests = RoomRequests {
            link: envelope.say.link,
            narrowing: envelope.say.narrowing.cloned(),
            tag: requested.tag,
            method: requested.method,
            context: requested.context,
            calls,
            unpublished: envelope.unpublished.take(),
        };
        match named {
            Some(id) if is_own => self.proposers_own(id, &envelope, requests),
            Some(id) => self.fulfils(id, envelope, requests, requested.ruling),
            None if is_closed => self.refuse_room(requests, Cause::Decided),
            None => self.run_requests(requests, None),
        }
    }

    /// A request that participants alone may answer: its sender learns at once that none of them is
    /// there.
    fn between_participants(&mut self, envelope: &Said<'_, H>) {
        if envelope.say.to.is_empty() {
            return;
        }
        let named = participants(envelope.say.to);
        if !named.iter().any(|one| self.is_here(one)) {
            self.ignore(envelope, named, Ignored::Absent);
        }
    }

    /// The participants that an envelope names and that the gateway plays.
    fn played(&self, envelope: &Said<'_, H>) -> Vec<ParticipantId> {
        let mut named = participants(envelope.say.to);
        named.retain(|to| self.is_played(to, false));
        named
    }

    /// Whether the gateway acts for a server on a request in the room. A participant that serves
    /// gets the request itself, unless a call was held for it.
    fn is_played(&self, server: &ParticipantId, held: bool) -> bool {
        let names = self.catalog.names_of(server);
        names.is_some_and(|names| held || !names.serves)
    }

    /// Runs a request that the proposer may by now make itself: the topic withdraws the proposal
    /// first.
    fn proposers_own(
        &mut self,
        id: OperationId,
        envelope: &Said<'_, H>,
        requests: RoomRequests<H>,
    ) {
        if !self
            .proposals
            .known(id)
            .is_some_and(|proposal| requests.asks_for(proposal))
        {
            return self.run_requests(requests, None);
        }
        let Some(proposal) = self.proposals.get_mut(id) else {
            return self.proposers_own_again(id, requests);
        };
        if proposal.terms.plan.is_some() {
            return self.refuse_room(requests, Cause::WholePlan);
        }
        let never_runs = match &proposal.phase {
            Phase::Opening | Phase::Pending => true,
            Phase::Deciding(ruling) => {
                ruling.leaves_it_open() || ruling.state == ProposalState::Withdrawn
            }
            Phase::Ending(last) => {
                matches!(
                    last.state,
                    ProposalState::Withdrawn | ProposalState::Expired
                )
            }
            Phase::Waiting | Phase::Due | Phase::Running => false,
        };
        if !never_runs {
            return self.refuse_room(requests, Cause::Decided);
        }
        if proposal.deferred.len() >= DEFERRED_MAX {
            return self.refuse_room(requests, Cause::Limit);
        }
        proposal.deferred.push(requests);
        // The request waits also while a withdrawal is being written, because the journal may fail.
        let by = envelope.from.as_str();
        self.recall(id, format!("carried out by its proposer, {by}").into());
    }

    /// A request of a proposer that asks for what it has proposed, after the proposal is over:
    /// unless that was withdrawn, the request would run it a second time.
    fn proposers_own_again(&mut self, id: OperationId, requests: RoomRequests<H>) {
        let Some(proposal) = self.proposals.known(id) else {
            return self.refuse_room(requests, Cause::Decided);
        };
        if proposal.state() != ProposalState::Withdrawn {
            return self.refuse_room(requests, Cause::Decided);
        }
        // It is pending again after a restart, and could run too.
        if proposal.end_lost {
            return self.refuse_room(requests, Cause::LogUnavailable);
        }
        self.run_requests(requests, None);
    }

    /// A request that fulfils another participant's proposal: an approval, on disk before any
    /// server carries it out.
    fn fulfils(
        &mut self,
        id: OperationId,
        envelope: Said<'_, H>,
        requests: RoomRequests<H>,
        ruling: Option<(Option<Digest>, H::Ruling)>,
    ) {
        let Some((current, handle)) = ruling else {
            return self.refuse_room(requests, Cause::Mismatch);
        };
        let Some(proposal) = self.proposals.known(id) else {
            return;
        };
        let is_proposed = requests.asks_for(proposal) && is_to(&proposal.terms, envelope.say.to);
        let approval = Decision::Approve {
            shown: proposal.terms.digest,
            current,
        };
        let mut ruling = Ruling::new(envelope.from.clone(), approval, Some(handle));
        ruling.fulfilment = Some(envelope.say.id.into());
        ruling.narrowing = requests.narrowing.clone();
        ruling.requested = Some(requests);
        ruling.named = participants(envelope.say.to).into();
        if is_proposed {
            self.decide(id, ruling)
        } else {
            self.refuse_ruling(id, ruling, Cause::Mismatch)
        }
    }

    fn answered(&mut self, envelope: Said<'_, H>, outcome: Outcome, answer: H::Answer) {
        let Some(correlation) = envelope.say.correlation else {
            return;
        };
        if self
            .log
            .is_intrusion(envelope.from.as_str(), correlation, envelope.say.to)
        {
            return self.ignore(&envelope, vec![ParticipantId::gateway()], Ignored::NotAsked);
        }
        self.answered_in_room(envelope, correlation, outcome, answer);
    }

    fn mismatch(&mut self, mut envelope: Said<'_, H>) {
        let by = self.played(&envelope);
        // A receiver that does not compare kind and payload would carry out what is no approval.
        let unpublished = envelope.unpublished.take();
        if !by.is_empty() && !self.log.is_repeat(&envelope.from, envelope.say.id) {
            self.ignore(&envelope, by, Ignored::Mismatch);
        } else if unpublished.is_some() {
            self.withhold(envelope.say.link, envelope.say.message, Cause::Mismatch);
        }
    }

    /// An envelope that asks the gateway for nothing. One that names a proposal like a request, and
    /// is none, is not published.
    fn nothing(&mut self, envelope: Said<'_, H>) {
        if envelope.unpublished.is_some() {
            self.withhold(envelope.say.link, envelope.say.message, Cause::Mismatch);
        }
    }

    fn ignore(&mut self, envelope: &Said<'_, H>, by: Vec<ParticipantId>, why: Ignored) {
        let from = envelope.from.clone();
        let message = envelope.say.message.clone();
        self.effects.requests.turn_away();
        self.effects.push(Effect::Ignore {
            from,
            message,
            by,
            why,
        });
    }
}

/// The participants of these names, as far as names can be of participants.
fn participants(names: &[&str]) -> Vec<ParticipantId> {
    let ids = names.iter().map(|name| ParticipantId::new(name));
    ids.filter_map(Result::ok).collect()
}

/// Whether a fulfilment goes to the participants that the proposal names. It may name the proposer
/// too, so that the proposer gets it.
fn is_to(terms: &Terms, to: &[&str]) -> bool {
    if terms.to.is_empty() {
        return true;
    }
    let mut named = terms.to.iter();
    if !named.all(|one| to.contains(&one.as_str())) {
        return false;
    }
    to.iter()
        .all(|name| *name == terms.by.as_str() || terms.to.iter().any(|one| one.as_str() == *name))
}
