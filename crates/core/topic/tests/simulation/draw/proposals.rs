//! Proposals by envelope, and decisions about all proposals.

use std::sync::Arc;

use model::{Capabilities, LinkId, OperationId, ParticipantId, Refusal, RefusalCode};
use topic::{Decision, Intent};

use crate::{
    books::{
        deals::{Deal, Written, amended_digest, bytes_of},
        envelopes::{Envelope, Fate},
        limits::LIMITS,
        unpublished::Unpublished,
    },
    draw::held::{FIRST, OTHER, blank, terms},
    names::{CALLERS, NAMES, SERVERS, id},
    numbers::{Amended, Effect, Event},
    turn::{Decided, Turn},
    world::World,
};

/// The answer to the sender of an envelope whose id names a proposal already.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Again {
    /// Nothing yet: the opening is not on disk.
    Nothing,
    /// The present state of its own proposal.
    State(OperationId),
    /// That it is rejected, as before.
    Rejection,
    /// A refusal: it names another proposal, or one that only its digest is known of.
    Refusal,
}

impl World {
    /// The addressees of a proposal: mostly one server, sometimes others or none.
    fn proposed_to(&mut self) -> Vec<ParticipantId> {
        match self.prng.below(8) {
            0 => Vec::new(),
            1 => vec![id(self.prng.any(&CALLERS))],
            2 => vec![id(self.prng.any(&CALLERS)), id("one")],
            3 => vec![ParticipantId::gateway()],
            _ => vec![id(self.prng.any(&SERVERS).0)],
        }
    }

    pub(crate) fn propose(&mut self) {
        let link = self.speaker();
        let to = self.proposed_to();
        if self.prng.one_in(8) {
            return self.proposes_nothing(link);
        }
        self.proposes(link, to);
    }

    /// An envelope id that names a proposal already, and sometimes a link of the participant that
    /// used it.
    fn taken_id(&mut self, link: LinkId) -> Option<(String, LinkId)> {
        let known: Vec<(String, ParticipantId)> = self
            .books
            .deals
            .values()
            .map(|deal| (deal.envelope.clone(), deal.by.clone()))
            .collect();
        let (envelope, by) = self
            .prng
            .pick(&known)
            .cloned()
            .filter(|_| self.prng.one_in(6))?;
        let own = self
            .books
            .links_of(&by)
            .first()
            .copied()
            .filter(|_| !self.prng.one_in(3));
        Some((envelope, own.unwrap_or(link)))
    }

    /// Returns the id of the proposal, if the topic accepts it.
    pub(crate) fn proposes(&mut self, link: LinkId, to: Vec<ParticipantId>) -> Option<OperationId> {
        let taken = self.taken_id(link);
        let (envelope, link) = taken.unwrap_or_else(|| (format!("e{}", self.number()), link));
        let by = self.books.owner(link).unwrap_or_else(|| id("ann"));
        let own = self.prng.any(&NAMES[..3]);
        let proposal = self.fresh();
        let mut content = self.number();
        let expires_ms = self.expiry();
        let named = self.books.deal_of(&envelope);
        if let Some(known) = named
            .map(|id| &self.books.deals[&id])
            .filter(|known| known.by == by)
        {
            content = known.content;
        }
        if self.prng.one_in(4) {
            content = self.number();
        }
        let own = Some(own.to_owned());
        let expires_wall_ms = expires_ms + (self.wall_ms() - self.now_ms);
        let deal = Deal {
            own,
            expires_wall_ms,
            ..blank(
                by.clone(),
                "tools/call",
                to.clone(),
                &envelope,
                (expires_ms, content),
            )
        };
        let kind = format!(
            "mcp/proposal:tools/call:{}",
            deal.own.as_deref().unwrap_or_default()
        );
        let id = envelope.clone();
        let to = to.iter().map(ToString::to_string).collect();
        let correlation = None;
        let drawn = Envelope {
            link,
            id,
            kind: kind.clone(),
            to,
            correlation,
            token: self.token(),
            tightening: None,
        };
        let again = self.taken(&envelope, &by, Some(content));
        let not = self.unproposable(&deal);
        let admitted = self.books.peek(&drawn, self.now_ms) == Fate::Published;
        if admitted && again.is_none() {
            self.books.deals.insert(proposal, deal.clone());
        }
        let mut turn = Turn {
            waits: true,
            ..self.turn_of(again)
        };
        turn.proposing = again.is_none().then_some(proposal);
        let intent = Intent::Propose {
            proposal,
            terms: Box::new(terms(&deal)),
            content,
        };
        let (fate, waiting, effects) = self.sends_waiting(drawn, turn, intent);
        if fate != Fate::Published {
            return None;
        }
        if let Some(again) = again {
            self.check_again(again, &effects.all);
            return None;
        }
        self.check_proposed(proposal, not, &effects.all);
        match (waiting, not) {
            (Some(message), None) => {
                let own = false;
                let proposes = true;
                self.books.unpublished.push(Unpublished {
                    proposal,
                    own,
                    proposes,
                    rejects: false,
                    link,
                    kind,
                    token: None,
                    message,
                });
            }
            _ => self.books.count("not published"),
        }
        not.is_none().then_some(proposal)
    }

    /// An envelope of what cannot be proposed.
    fn proposes_nothing(&mut self, link: LinkId) {
        let taken = self.taken_id(link);
        let (envelope, link) = taken.unwrap_or_else(|| (format!("e{}", self.number()), link));
        let by = self.books.owner(link).unwrap_or_else(|| id("ann"));
        let kind = "mcp/proposal:tools/call:data".to_owned();
        let drawn = Envelope {
            link,
            id: envelope.clone(),
            kind,
            to: Vec::new(),
            correlation: None,
            token: self.token(),
            tightening: None,
        };
        let again = self.taken(&envelope, &by, None);
        if self.books.peek(&drawn, self.now_ms) == Fate::Published && again.is_none() {
            self.books.rejected.insert(envelope, by);
        }
        let refusal = Box::new(Refusal::new(
            RefusalCode::Malformed,
            "kind and payload differ",
        ));
        let turn = Turn {
            waits: true,
            ..self.turn_of(again)
        };
        let (fate, _, effects) = self.sends_waiting(
            drawn,
            turn,
            Intent::Reject {
                refusal,
                published: false,
            },
        );
        match again {
            _ if fate != Fate::Published => {}
            Some(again) => self.check_again(again, &effects.all),
            None => assert!(matches!(effects.all.as_slice(), [Effect::Rejected { .. }])),
        }
    }

    /// The answer to an envelope whose id names a proposal already, for ever.
    fn taken(&self, envelope: &str, by: &ParticipantId, content: Option<u64>) -> Option<Again> {
        if let Some(id) = self.books.deal_of(envelope) {
            let deal = &self.books.deals[&id];
            return Some(match deal.by == *by && content == Some(deal.content) {
                true if deal.durable.is_empty() => Again::Nothing,
                true => Again::State(id),
                false => Again::Refusal,
            });
        }
        match self.books.rejected.get(envelope) {
            Some(first) if first == by => Some(Again::Rejection),
            Some(_) => Some(Again::Refusal),
            None => self.books.is_closed(envelope).then_some(Again::Refusal),
        }
    }

    fn turn_of(&self, again: Option<Again>) -> Turn {
        let reminds = match again {
            Some(Again::State(id)) => Some(id),
            _ => None,
        };
        Turn {
            taken: again == Some(Again::Refusal),
            reminds,
            ..Turn::default()
        }
    }

    fn check_again(&mut self, again: Again, effects: &[Effect]) {
        match (again, effects) {
            (Again::Nothing, []) => self.books.count("sent again while it was opened"),
            (Again::State(_), [Effect::Remind { .. }])
            | (Again::Rejection, [Effect::Rejected { .. }]) => {}
            other => panic!("{other:?}"),
        }
    }

    /// Any proposal, sometimes one that is over.
    pub(crate) fn any_deal(&mut self, fits: impl Fn(&Deal) -> bool) -> OperationId {
        let late = self.prng.one_in(6);
        let open = |deal: &Deal| deal.is_known() && deal.over.is_none();
        let fit = |deal: &Deal| (late || open(deal)) && fits(deal);
        let mut found: Vec<OperationId> = self
            .books
            .deals
            .iter()
            .filter(|(_, deal)| fit(deal))
            .map(|(id, _)| *id)
            .collect();
        // Few proposals have a caller that waits.
        if self.prng.one_in(2) {
            let waited: Vec<OperationId> = found
                .iter()
                .copied()
                .filter(|id| self.books.is_waited_for(*id))
                .collect();
            found = if waited.is_empty() { found } else { waited };
        }
        self.prng.pick(&found).copied().unwrap_or(OperationId(1))
    }

    pub(crate) fn decide(&mut self) {
        let proposal = self.any_deal(|deal| {
            let counted = matches!(
                deal.writing,
                Some(Written::Counted(_) | Written::Extended { .. } | Written::Amended { .. })
            );
            deal.writing.is_none() || deal.durable.is_empty() || counted
        });
        self.decides(proposal);
    }

    /// The server of a proposal lists its tool for the first time: decisions are about another
    /// content from now on.
    pub(crate) fn describe(&mut self) {
        let proposal = self.any_deal(|_| true);
        let content = self.number();
        let bytes = usize::try_from(content % 8).unwrap();
        let open = || {
            self.books
                .deals
                .values()
                .filter(|deal| deal.is_known() && deal.over.is_none())
        };
        if let Some(deal) = self
            .books
            .deals
            .get(&proposal)
            .filter(|deal| deal.is_pending())
        {
            let own = open()
                .filter(|known| known.by == deal.by)
                .map(Deal::bytes)
                .sum::<usize>();
            let all = open().map(Deal::bytes).sum::<usize>();
            let fits = all - deal.bytes() + bytes <= LIMITS.proposal_bytes_max
                && own - deal.bytes() + bytes <= LIMITS.proposal_bytes_per_participant_max;
            if fits {
                self.books.deals.get_mut(&proposal).unwrap().content = content;
                self.books.count("described");
            }
        }
        let effects = self.live(
            Event::Describe {
                proposal,
                digest: self.books.deals.get(&proposal).map_or(FIRST, Deal::digest),
                content,
                bytes,
            },
            Turn::default(),
        );
        assert!(effects.all.is_empty() && effects.room.is_empty());
    }

    pub(crate) fn decides(&mut self, proposal: OperationId) {
        let outsider = self.prng.one_in(2);
        let by = if outsider {
            id("operator")
        } else {
            id(self.prng.any(&CALLERS))
        };
        let proposer = self.books.deals.get(&proposal).map(|deal| deal.by.clone());
        let by = proposer.filter(|_| self.prng.one_in(5)).unwrap_or(by);
        let full = Arc::new(Capabilities::full());
        let outside = outsider.then_some(&full).filter(|_| !self.prng.one_in(4));
        let own = self.books.deals.get(&proposal).map_or(FIRST, Deal::digest);
        let decision = match self.prng.below(9) {
            _ if self.beside.one_in(8) => Decision::Extend,
            _ if self.beside.one_in(8) => Decision::Amend,
            0..2 => Decision::Reject { reason: Some("no") },
            2 => Decision::Withdraw { reason: None },
            3 => Decision::Approve {
                shown: OTHER,
                current: Some(own),
            },
            4 => Decision::Approve {
                shown: own,
                current: Some(OTHER).filter(|_| self.prng.one_in(2)),
            },
            _ => Decision::Approve {
                shown: own,
                current: Some(own),
            },
        };
        let by = if decision == Decision::Amend {
            self.amends(proposal).unwrap_or(by)
        } else {
            by
        };
        let digests = match decision {
            Decision::Approve { shown, current } => Some((shown, current)),
            _ => None,
        };
        let ruling = self.number();
        let amended = (decision == Decision::Amend).then(|| self.amended(proposal));
        let token = self.token();
        let approves = matches!(decision, Decision::Approve { .. });
        let fulfilment = (approves && self.prng.one_in(2)).then(|| format!("f{}", self.number()));
        let decided = Decided {
            by: by.clone(),
            ruling,
            outside: outside.cloned(),
            token: token.clone(),
            digests,
            withdraws: matches!(decision, Decision::Withdraw { .. }),
            approves,
            extends: matches!(decision, Decision::Extend),
            amends: amended.as_ref().map(|amended| amended.content),
            fulfilment: fulfilment.clone(),
            requested: false,
            named: Vec::new(),
        };
        self.books.decides(proposal, ruling);
        let turn = Turn {
            decision: Some((proposal, decided.clone())),
            ..Turn::default()
        };
        let fulfilment = fulfilment.as_deref();
        let effects = self.live(
            Event::Decide {
                proposal,
                by: &by,
                outside,
                narrowing: token.as_ref(),
                decision,
                fulfilment,
                amended,
                ruling,
            },
            turn,
        );
        match effects.all.as_slice() {
            [] => self.queues(proposal, decided),
            [.., Effect::RefuseDecision(refused)] if refused.ruling != ruling => {
                self.queues(proposal, decided);
            }
            [Effect::Store { .. } | Effect::RefuseDecision(_)] => {}
            other => panic!("a decision counts, waits or is refused: {other:?}"),
        }
    }

    /// The proposer of a proposal, mostly: no other participant may amend it.
    fn amends(&mut self, proposal: OperationId) -> Option<ParticipantId> {
        let proposer = self.books.deals.get(&proposal).map(|deal| deal.by.clone());
        proposer.filter(|_| !self.beside.one_in(6))
    }

    /// Another version of a proposal.
    fn amended(&mut self, proposal: OperationId) -> Amended {
        let content = self.number();
        let is_known = self.books.deals.contains_key(&proposal);
        Amended {
            digest: if is_known {
                amended_digest(content)
            } else {
                FIRST
            },
            content,
            bytes: bytes_of(content),
        }
    }

    /// A decision waits for the opening to be on disk; its participant may decide.
    pub(crate) fn queues(&mut self, proposal: OperationId, decided: Decided) {
        let deal = &self.books.deals[&proposal];
        assert!(
            deal.queued.is_none()
                && (deal.durable.is_empty() && deal.writing == Some(Written::Opened)
                    || matches!(
                        deal.writing,
                        Some(
                            Written::Counted(_)
                                | Written::Extended { .. }
                                | Written::Amended { .. }
                        )
                    ))
        );
        let may = if decided.withdraws || decided.amends.is_some() {
            decided.by == deal.by && self.books.is_in_scope(decided.token.as_ref(), deal)
        } else {
            decided.by != deal.by
                && self.books.could(&decided, deal)
                && !self.books.braked.contains(&decided.by)
        };
        assert!(may, "it waits in vain");
        self.books.deals.get_mut(&proposal).unwrap().queued = Some(decided);
        self.books.count("queued");
    }
}
