//! Envelopes to the room: admission by kind and addressees, publication, and the receivers' part.

use model::{
    Digest, KindRef, LinkId, Narrowing, OperationId, Outcome, ParticipantId, ProposalState,
};

use crate::{
    Handles, Topic,
    admission::judge_kind,
    audience::{Audience, Reach},
    effect::{Cause, Effect, Ignored, RoomEffect, Rule, Verdict},
    event::{Decision, Intent, OperationRef, Requested, Say},
    members::Member,
    proposals::{DEFERRED_MAX, Phase, RoomRequests, Ruling, Unpublished},
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
/// Heads of the kinds by which it answers or notifies.
const ANSWERS: [&str; 2] = ["mcp/response:", NOTIFICATIONS];

impl<H: Handles> Topic<H> {
    pub(crate) fn say(&mut self, mut say: Say<'_, H>) {
        let Say {
            link,
            kind,
            to,
            correlation,
            bytes,
            ..
        } = say;
        let intent = std::mem::replace(&mut say.intent, Intent::None);
        let rule = match self.admit_envelope(link, say.narrowing, kind, to) {
            Ok(rule) => rule,
            Err(refused) => {
                self.effects.verdict = Some(Verdict::Refused(refused.cause));
                let handle = self.handle(link);
                let refusal = refused.or_else(|cause| refusals::of_envelope(cause, kind));
                self.effects.refusal = Some(refusal.clone());
                let withhold = |handle| Effect::Withhold {
                    handle,
                    message: say.message,
                    refusal,
                };
                return self.effects.all.extend(handle.map(withhold));
            }
        };
        // Without a capability for its kind the envelope is for the gateway alone.
        let alone = rule.at.is_none();
        self.effects.verdict = Some(Verdict::Admitted {
            to: None,
            own: None,
            rule,
        });
        let (Some(from), Ok(parsed)) = (self.participant(link).cloned(), KindRef::parse(kind))
        else {
            return;
        };
        let private = self.is_private(kind, correlation);
        let mut unpublished = (!private && !alone).then(|| Unpublished {
            message: say.message.clone(),
            bytes,
            audience: Audience::new(Some(link), to, kind, self.reach_of(parsed, correlation)),
        });
        // What becomes of the proposal decides first whether participants get it, and a request
        // that names one.
        let asks = parsed.head() == model::REQUEST && !kind.starts_with(NOTIFICATIONS);
        let waits = parsed.head() == model::PROPOSAL || asks && self.names_proposal(&say);
        if let Some(envelope) = unpublished.take_if(|_| !waits) {
            self.publish(envelope.message, envelope.bytes, envelope.audience);
        }
        let serves = self.serves(&from);
        // A notification of a participant that serves may be for the sessions that the gateway has
        // with it.
        if private || serves && kind.starts_with(NOTIFICATIONS) {
            let seat = self.members.server(&from).filter(|_| serves);
            let server = seat.and_then(|seat| self.members.get(seat)?.server.clone());
            let receive = |handle| Effect::Receive {
                handle,
                server,
                message: say.message.clone(),
            };
            self.effects.all.extend(self.handle(link).map(receive));
        }
        if private {
            return;
        }
        self.act(
            Said {
                from,
                kind: parsed,
                say,
                unpublished,
            },
            intent,
        );
    }

    /// Whether an envelope names a proposal, be it over.
    fn names_proposal(&mut self, say: &Say<'_, H>) -> bool {
        let known = say
            .correlation
            .is_some_and(|id| self.proposals.of_envelope(id).is_some());
        known || self.is_closed(say.proposal_digest)
    }

    /// Whether a proposal of this digest is over or was rejected when it arrived, and the topic
    /// knows no more of it.
    pub(crate) fn is_closed(&mut self, digest: Option<u128>) -> bool {
        let proposals = &mut self.proposals;
        digest.is_some_and(|digest| {
            proposals.rejected.by(digest).is_some()
                || proposals.closed.contains(self.now_ms, digest)
        })
    }

    /// Does not publish an envelope that was admitted: its sender gets the refusal.
    pub(crate) fn withhold(&mut self, link: LinkId, message: H::Message, cause: Cause) {
        let refusal = refusals::plain(cause);
        self.effects.verdict = Some(Verdict::Refused(cause));
        self.effects.refusal = Some(refusal.clone());
        let withhold = |handle| Effect::Withhold {
            handle,
            message,
            refusal,
        };
        self.effects.all.extend(self.handle(link).map(withhold));
    }

    /// The rule that admits an envelope; takes a token.
    fn admit_envelope(
        &mut self,
        link: LinkId,
        narrowing: Option<&Narrowing>,
        kind: &str,
        to: &[&str],
    ) -> Result<Rule, Refused> {
        self.members.narrow(link, narrowing);
        let seat = self
            .members
            .link(link)
            .map(|own| own.seat)
            .ok_or(Cause::Moot)?;
        let member = self.members.get_mut(seat).ok_or(Cause::Moot)?;
        member.take_token(self.now_ms)?;
        let parsed = KindRef::parse(kind).map_err(|_| Cause::Malformed)?;
        // A state of a proposal that others could report would be believed.
        let is_own = parsed.head() == model::GATEWAY || parsed.head().starts_with(GATEWAYS);
        if parsed.is_reserved() || is_own {
            return Err(Cause::Reserved.into());
        }
        let (own, member) = self.members.linked(link).ok_or(Cause::Moot)?;
        let granted = own.granted(member, narrowing);
        let at = judge_kind(&granted, parsed, to).map_err(|cause| Refused {
            cause,
            refusal: self.lacking_kind(link, narrowing, parsed, to),
        })?;
        Ok(Rule {
            capabilities: granted,
            at,
        })
    }

    /// Puts a message into the room's queue and, if so configured, into the replay ring.
    pub(crate) fn publish(&mut self, message: H::Message, bytes: usize, audience: Audience) {
        self.ring.push(&message, &audience, bytes);
        self.effects
            .publish(RoomEffect::Publish { message, audience });
    }

    /// Whether an envelope answers, or notifies about, a request that the gateway sent to one
    /// participant alone. Such an envelope is not published.
    fn is_private(&self, kind: &str, correlation: Option<&str>) -> bool {
        let request = correlation.and_then(|id| id.parse::<OperationId>().ok());
        ANSWERS.iter().any(|head| kind.starts_with(head))
            && request.is_some_and(|id| id.0 >> 64 == u128::from(self.direct))
    }

    /// The listeners that an envelope reaches. The gateway sends a held call to the participant
    /// that it is for, so that participant must not also get the request that fulfils the proposal.
    fn reach_of(&self, kind: KindRef<'_>, correlation: Option<&str>) -> Reach {
        let fulfils = || {
            let proposal = self
                .proposals
                .known(self.proposals.of_envelope(correlation?)?)?;
            let serves = |to: &&ParticipantId| proposal.held && self.serves(to);
            proposal.terms.to.iter().find(serves).cloned()
        };
        let asked = (kind.head() == model::REQUEST).then(fulfils).flatten();
        asked.map_or(Reach::Listeners, Reach::Except)
    }

    fn act(&mut self, envelope: Said<'_, H>, intent: Intent<H>) {
        match intent {
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
                self.propose_said(envelope, proposal, terms, content);
            }
            Intent::Reject { refusal, published } => self.reject_said(envelope, refusal, published),
            Intent::Answer { outcome, answer } => self.answered(envelope, outcome, answer),
        }
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
        let own = proposal.is_some_and(|proposal| proposal.terms.by == envelope.from);
        // The gateway's session with a participant that serves carries out a call that was held for
        // it.
        let held = proposal.is_some_and(|proposal| proposal.held);
        // What becomes of the proposal decides about a request that fulfils, however often it
        // comes.
        let fulfils = named.is_some() && !own || is_closed;
        if self.log.is_repeat(&envelope.from, envelope.say.id) && !fulfils {
            return self.ignore(&envelope, plays, Ignored::Repeat);
        }
        let Requested {
            method,
            context,
            tag,
            calls,
            ruling,
        } = requested;
        let calls = envelope.say.to.iter().zip(calls);
        let calls = calls.filter_map(|(to, (operation, call))| {
            let server = ParticipantId::new(to).ok()?;
            self.is_played(&server, held)
                .then_some((server, operation, call))
        });
        let calls = calls.collect();
        let link = envelope.say.link;
        let narrowing = envelope.say.narrowing.cloned();
        let unpublished = envelope.unpublished.take();
        let requests = RoomRequests {
            link,
            narrowing,
            tag,
            method,
            context,
            calls,
            unpublished,
        };
        match named {
            Some(id) if own => self.proposers_own(id, &envelope, requests),
            Some(id) => self.fulfils(id, envelope, requests, ruling),
            None if is_closed => self.refuse_room(requests, Cause::Decided),
            None => self.run_requests(requests, None),
        }
    }

    /// A request that participants alone may answer: its sender learns at once that none of them is
    /// there.
    fn between_participants(&mut self, envelope: &Said<'_, H>) {
        let named: Vec<_> = envelope
            .say
            .to
            .iter()
            .filter_map(|to| ParticipantId::new(to).ok())
            .collect();
        let is_here = |one: &ParticipantId| self.members.of_id(one).is_some_and(Member::is_caller);
        if !envelope.say.to.is_empty() && !named.iter().any(is_here) {
            self.ignore(envelope, named, Ignored::Absent);
        }
    }

    /// The participants that an envelope names and that the gateway plays.
    fn played(&self, envelope: &Said<'_, H>) -> Vec<ParticipantId> {
        let named = envelope
            .say
            .to
            .iter()
            .filter_map(|to| ParticipantId::new(to).ok());
        named.filter(|to| self.is_played(to, false)).collect()
    }

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
            // The proposal is over: carried out or given up. The request would run it a second
            // time.
            let known = self.proposals.known(id);
            let withdrawn = known.is_some_and(|own| own.state() == ProposalState::Withdrawn);
            return match (withdrawn, known.is_some_and(|own| own.end_lost)) {
                (true, false) => self.run_requests(requests, None),
                (true, true) => self.refuse_room(requests, Cause::LogUnavailable),
                (false, _) => self.refuse_room(requests, Cause::Decided),
            };
        };
        let never_runs = match &proposal.phase {
            Phase::Opening | Phase::Pending => true,
            Phase::Deciding(ruling) => ruling.state == ProposalState::Withdrawn,
            Phase::Ending(state, _) => {
                matches!(state, ProposalState::Withdrawn | ProposalState::Expired)
            }
            Phase::Running => false,
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
        let same = requests.asks_for(proposal)
            && is_to(&proposal.terms.to, &proposal.terms.by, envelope.say.to);
        let approval = Decision::Approve {
            shown: proposal.terms.digest,
            current,
        };
        let ruling = Ruling {
            fulfilment: Some(envelope.say.id.into()),
            requested: Some(requests),
            named: envelope
                .say
                .to
                .iter()
                .filter_map(|to| ParticipantId::new(to).ok())
                .collect(),
            ..Ruling::new(envelope.from.clone(), approval, Some(handle))
        };
        if same {
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
        let Said {
            from, kind, say, ..
        } = envelope;
        self.answered_in_room(
            &from,
            kind,
            say.to,
            correlation,
            (outcome, answer, say.message),
        );
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
        self.effects.push(Effect::Ignore {
            from,
            message,
            by,
            why,
        });
    }
}

/// Whether a fulfilment goes to the participants that the proposal names. It may name the proposer
/// too, so that the proposer gets it.
fn is_to(proposed: &[ParticipantId], by: &ParticipantId, to: &[&str]) -> bool {
    let meant = |to: &str| proposed.iter().any(|one| one.as_str() == to);
    proposed.is_empty()
        || (to.iter().all(|to| meant(to) || *to == by.as_str())
            && proposed.iter().all(|one| to.contains(&one.as_str())))
}
