//! Requests in the room: to servers, to fulfil a proposal, or the proposer's own.

use model::{Digest, LinkId, Method, OperationId, ParticipantId, ProposalState};
use topic::{Intent, Requested};

use crate::{
    books::{
        calls::{Call, Waiting},
        deals::{Deal, Written},
        envelopes::Envelope,
        unpublished::Unpublished,
    },
    draw::{
        held::{FIRST, OTHER},
        requests::blank,
    },
    names::{BUILT_IN, NAMES, SERVERS, id},
    numbers::{Effect, Effects},
    turn::{Decided, Turn},
    world::World,
};

/// The expected fate of the calls of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Plan {
    /// No receiver that the gateway plays acts on it.
    Untaken,
    /// The same, and no participant that it names is there.
    Absent,
    Repeat,
    /// They are refused.
    Refused,
    /// They run now, or a limit refuses them.
    Run,
    /// They wait for the withdrawal of the proposal.
    Own(OperationId),
    /// They come with a decision.
    Decision(OperationId),
}

/// A request as it is drawn.
struct Request {
    context: String,
    tag: Option<u8>,
    calls: Vec<(ParticipantId, OperationId, u64)>,
    ruling: Option<(Option<Digest>, u64)>,
}

impl World {
    /// Mostly a correct fulfilment of a proposal.
    pub(crate) fn fulfil(&mut self) {
        let known: Vec<OperationId> = self
            .books
            .deals
            .iter()
            .filter(|(_, deal)| deal.is_pending())
            .map(|(id, _)| *id)
            .collect();
        let late: Vec<OperationId> = self.books.deals.keys().copied().collect();
        let opening =
            |deal: &Deal| deal.is_known() && deal.durable.is_empty() && deal.writing.is_some();
        let early: Vec<OperationId> = self
            .books
            .deals
            .iter()
            .filter(|(_, deal)| opening(deal))
            .map(|(id, _)| *id)
            .collect();
        let named = match self.prng.below(8) {
            0 => None,
            1 | 2 => self.prng.pick(&late).copied(),
            3 | 4 => self.prng.pick(&early).copied(),
            _ => self.prng.pick(&known).copied(),
        };
        self.fulfils(named);
    }

    /// A participant that could send it, or the proposer, or any.
    fn fulfiller(&mut self, deal: Option<&Deal>) -> LinkId {
        let any = self.speaker();
        let Some(deal) = deal.filter(|_| !self.prng.one_in(6)) else {
            return any;
        };
        let own = self.prng.one_in(4);
        let fits = |by: &ParticipantId| {
            if own {
                *by == deal.by
            } else {
                self.books.could_send(by, deal)
            }
        };
        let links = self
            .books
            .links
            .iter()
            .filter(|(_, link)| fits(&link.participant));
        let links: Vec<LinkId> = links.map(|(link, _)| *link).collect();
        self.prng.pick(&links).copied().unwrap_or(any)
    }

    pub(crate) fn fulfils(&mut self, named: Option<OperationId>) {
        let deal = named.and_then(|id| self.books.deals.get(&id)).cloned();
        let link = self.fulfiller(deal.as_ref());
        let mut to = self.addressees();
        let mut context = self.prng.any(&NAMES[..3]).to_owned();
        if let Some(deal) = &deal {
            if !deal.to.is_empty() && !self.prng.one_in(8) {
                to = deal.to.iter().map(ToString::to_string).collect();
                to.extend(self.prng.one_in(4).then(|| deal.by.to_string()));
            }
            if !self.prng.one_in(10) {
                context = deal.own.clone().unwrap_or_default();
            }
        } else if self.prng.one_in(2) {
            to = vec![self.prng.any(&SERVERS).0.to_owned()];
        } else if self.prng.one_in(2) {
            to = vec!["portmoot".to_owned()];
            context = self.prng.any(&BUILT_IN).to_owned();
        }
        let acted: Vec<String> = self
            .books
            .log
            .acted
            .iter()
            .map(|(_, id)| id.clone())
            .collect();
        let again = self
            .prng
            .pick(&acted)
            .cloned()
            .filter(|_| self.prng.one_in(12));
        let id = again.unwrap_or_else(|| format!("f{}", self.number()));
        let method = deal.as_ref().map_or("tools/call", |deal| deal.method);
        let kind = format!("mcp/request:{method}:{context}");
        let correlation = deal.as_ref().map(|deal| deal.envelope.clone());
        let tag = self.prng.one_in(2).then(|| self.prng.below(3) as u8);
        let calls = to
            .iter()
            .map(|to| (self::id(to), self.fresh(), self.number()))
            .collect();
        let own = deal.as_ref().map_or(FIRST, Deal::digest);
        let current = if self.prng.one_in(10) { OTHER } else { own };
        let ruling = (!self.prng.one_in(20)).then(|| (Some(current), self.number()));
        let request = Request {
            context,
            tag,
            calls,
            ruling,
        };
        let token = self.token();
        let tightening = self.tightening();
        self.requests(
            Envelope {
                link,
                id,
                kind,
                to,
                correlation,
                token,
                tightening,
            },
            method,
            request,
        );
    }

    fn requests(&mut self, drawn: Envelope, method: &'static str, request: Request) {
        let by = self.books.owner(drawn.link);
        let plan = by.as_ref().map_or(Plan::Untaken, |by| {
            self.plan(&drawn, by, (method, &request))
        });
        let mut turn = Turn::default();
        let from = by.clone().unwrap_or_else(ParticipantId::gateway);
        for (server, operation, call) in &request.calls {
            let own = Some(request.context.clone());
            let open = Call {
                tag: request.tag,
                public: own.clone(),
                own,
                in_room: true,
                tightened: drawn.tightening.is_some(),
                ..blank(*call, drawn.link, from.clone(), server.clone(), method)
            };
            turn.calls.insert(*call, (*operation, open));
        }
        let calls = turn.calls.clone();
        let about = drawn.correlation.as_deref();
        let about = about.and_then(|envelope| self.books.deal_of(envelope));
        let shown = about.map_or(FIRST, |id| self.books.deals[&id].digest());
        let decided = request.ruling.map(|(current, ruling)| Decided {
            by: from.clone(),
            ruling,
            outside: None,
            token: drawn.token.clone(),
            digests: Some((shown, current)),
            withdraws: false,
            approves: true,
            extends: false,
            amends: None,
            fulfilment: Some(drawn.id.clone()),
            requested: true,
            named: drawn.to.iter().map(|to| id(to)).collect(),
        });
        if let (Plan::Decision(proposal), Some(decided)) = (plan, &decided) {
            turn.decision = Some((proposal, decided.clone()));
        }
        if let Plan::Own(proposal) = plan {
            turn.own = Some(proposal);
        }
        let id = drawn.id.clone();
        let to = drawn.to.clone();
        // The gateway's session with a participant that serves carries out a call that was held for
        // it.
        let named = drawn
            .correlation
            .as_deref()
            .and_then(|envelope| self.books.deal_of(envelope));
        let held = named.is_some_and(|id| self.books.deals[&id].held);
        let handed = request
            .calls
            .iter()
            .map(|(_, operation, call)| (*operation, *call))
            .collect();
        let intent = Intent::Request(Requested {
            method: Method::Known(method),
            context: Some(request.context.as_str().into()),
            tag: request.tag,
            calls: handed,
            ruling: request.ruling,
        });
        let fate = self.books.peek(&drawn, self.now_ms);
        let plan = if fate.is_acted_on() {
            plan
        } else {
            Plan::Untaken
        };
        turn.waits = match plan {
            Plan::Own(_) | Plan::Decision(_) | Plan::Refused => true,
            Plan::Repeat => named.is_some(),
            Plan::Untaken | Plan::Absent | Plan::Run => false,
        };
        if plan == Plan::Untaken {
            (turn.decision, turn.own) = (None, None);
        }
        if let Some((proposal, decided)) = &turn.decision {
            self.books.decides(*proposal, decided.ruling);
        }
        let link = drawn.link;
        let kind = drawn.kind.clone();
        let token = drawn.token.clone();
        let (fate, waiting, effects) = self.sends_waiting(drawn, turn, intent);
        if !fate.is_acted_on() {
            return assert!(calls.keys().all(|call| !self.books.has(*call)));
        }
        self.books.log.ask(&id, &from, &to);
        if !matches!(plan, Plan::Untaken | Plan::Absent | Plan::Repeat) {
            self.books.log.acted.insert((from, id));
        }
        let waits_with = self.check_plan((plan, held), calls, decided, &effects);
        let Some(message) = waiting else { return };
        let withheld = effects
            .all
            .iter()
            .any(|effect| matches!(effect, Effect::Withhold { .. }));
        let refused = effects
            .all
            .iter()
            .any(|effect| matches!(effect, Effect::Refuse { .. }));
        assert_eq!(
            withheld,
            plan == Plan::Refused && !refused,
            "its sender hears of it once"
        );
        match waits_with {
            Some((proposal, own)) => {
                let proposes = false;
                self.books.unpublished.push(Unpublished {
                    proposal,
                    own,
                    proposes,
                    rejects: false,
                    link,
                    kind,
                    token,
                    message,
                });
            }
            None => self.books.count("not published"),
        }
    }

    /// The expected fate of a published request.
    fn plan(
        &self,
        drawn: &Envelope,
        by: &ParticipantId,
        (method, request): (&str, &Request),
    ) -> Plan {
        let named = drawn
            .correlation
            .as_deref()
            .and_then(|envelope| self.books.deal_of(envelope));
        let closed = || {
            drawn
                .correlation
                .as_deref()
                .is_some_and(|envelope| self.books.is_closed(envelope))
        };
        let is_closed = named.is_none() && closed();
        let plays = drawn.to.iter().any(|to| self.is_played(to, false));
        if named.is_none() && !is_closed && !plays {
            let is_here = |to: &String| !self.books.links_of(&self::id(to)).is_empty();
            let is_absent = !drawn.to.is_empty() && !drawn.to.iter().any(is_here);
            return if is_absent {
                Plan::Absent
            } else {
                Plan::Untaken
            };
        }
        let fulfils = named.is_some_and(|id| self.books.deals[&id].by != *by) || is_closed;
        if self
            .books
            .log
            .acted
            .contains(&(by.clone(), drawn.id.clone()))
            && !fulfils
        {
            return Plan::Repeat;
        }
        let Some(id) = named else {
            return if is_closed { Plan::Refused } else { Plan::Run };
        };
        let deal = &self.books.deals[&id];
        let same = deal.method == method && deal.own.as_deref() == Some(&request.context);
        match (deal.by == *by, same) {
            (true, false) => Plan::Run,
            (true, true) => plan_own(id, deal),
            (false, _) if request.ruling.is_none() => Plan::Refused,
            (false, _) => Plan::Decision(id),
        }
    }

    fn check_plan(
        &mut self,
        (plan, held): (Plan, bool),
        calls: std::collections::BTreeMap<u64, (OperationId, Call)>,
        decided: Option<Decided>,
        effects: &Effects,
    ) -> Option<(OperationId, bool)> {
        let ignored = effects
            .all
            .iter()
            .any(|effect| matches!(effect, Effect::Ignore { .. }));
        assert_eq!(
            ignored,
            matches!(plan, Plan::Repeat | Plan::Absent),
            "{plan:?}"
        );
        let own = decided.as_ref().map(|decided| decided.ruling);
        let refused_decision = effects
            .all
            .iter()
            .any(|effect| matches!(effect, Effect::RefuseDecision(one) if Some(one.ruling) == own));
        let waits_with = match plan {
            Plan::Own(id) => Some((id, true)),
            Plan::Decision(id) if !refused_decision => Some((id, false)),
            _ => None,
        };
        for (call, (operation, open)) in calls {
            let taken = self.is_played(open.server.as_str(), held) || plan == Plan::Refused;
            let has = self.books.has(call);
            match (plan, waits_with) {
                (Plan::Untaken | Plan::Absent | Plan::Repeat, _) => {
                    assert!(!has, "{call} was taken")
                }
                (Plan::Own(_) | Plan::Decision(_), Some((proposal, own))) if taken => {
                    assert!(!has, "{call} waits");
                    self.books.waiting.insert(
                        call,
                        Waiting {
                            operation,
                            call: open,
                            proposal,
                            own,
                        },
                    );
                }
                (Plan::Refused, _) => {
                    let played = self.is_played(open.server.as_str(), true);
                    assert!(
                        !has || self.books.returned.contains(&call) && played,
                        "{call} is refused"
                    );
                }
                _ => assert_eq!(has, taken, "{call} by {plan:?}"),
            }
        }
        if let (Plan::Decision(proposal), Some(decided), false) = (plan, decided, refused_decision)
        {
            let stored = effects
                .all
                .iter()
                .any(|effect| matches!(effect, Effect::Store { .. }));
            if !stored {
                self.queues(proposal, decided);
            }
        }
        if plan == Plan::Refused
            && effects
                .all
                .iter()
                .any(|effect| matches!(effect, Effect::Refuse { .. }))
        {
            self.books.count("late fulfilment refused");
        }
        waits_with
    }
}

/// The proposer's own request runs once its proposal is withdrawn, and not at all if the proposal
/// may run or has run.
fn plan_own(id: OperationId, deal: &Deal) -> Plan {
    let withdrawn =
        |state: &ProposalState| matches!(state, ProposalState::Withdrawn | ProposalState::Expired);
    if let Some(state) = deal.over {
        let again = state == ProposalState::Withdrawn && !deal.end_lost;
        return if again { Plan::Run } else { Plan::Refused };
    }
    match &deal.writing {
        Some(Written::Decided { state, .. } | Written::Ended { state, .. })
            if !withdrawn(state) =>
        {
            Plan::Refused
        }
        None if deal.approved > 0 => Plan::Refused,
        Some(_) | None => Plan::Own(id),
    }
}
