//! Callers that come back for a proposal, or wait for it; and the clock.

use model::{LinkId, Narrowing, OperationId, ParticipantId};
use topic::{Cause, Parked, Resume};

use crate::{
    books::{
        calls::{Call, Place},
        deals::Deal,
        limits::LIMITS,
        tasks::TaskTurn,
    },
    draw::requests::blank,
    numbers::{Effect, Event},
    seen::cause_of_ask,
    turn::Turn,
    world::World,
};

impl World {
    /// Whether this participant made a proposal that the topic has on disk.
    fn is_proposer(&self, proposal: OperationId, by: &ParticipantId) -> bool {
        let on_disk =
            |deal: &Deal| deal.is_known() && (!deal.durable.is_empty() || deal.over.is_some());
        self.books
            .deals
            .get(&proposal)
            .is_some_and(|deal| on_disk(deal) && deal.by == *by)
    }

    /// The expected effect of an operation that waits: none, a report, or an answer for now.
    fn check_wait(&self, proposal: OperationId, effects: &[Effect]) {
        let over = self.books.deals[&proposal].over.is_some();
        // Questions about a call end before it.
        let asked = effects
            .iter()
            .take_while(|effect| ends_question(effect))
            .count();
        match &effects[asked..] {
            [] if asked > 0 => panic!("questions end, and the call goes on"),
            [] => assert!(!over && !self.books.stopping),
            [Effect::Report { .. }] => assert!(over),
            [Effect::Park { .. }] => assert!(!over && self.books.stopping),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn resume(&mut self) {
        let parked = self.any_deal(|_| true);
        let operation = self.operation();
        let call = self.number();
        let by = self.books.deals.get(&parked).map(|deal| deal.by.clone());
        let own = by.and_then(|by| self.books.links_of(&by).first().copied());
        let any = self.any_link();
        let link = own.filter(|_| !self.prng.one_in(6)).unwrap_or(any);
        let until_ms = self.now_ms + self.prng.below(3_000) as u64;
        let tag = self.prng.one_in(2).then(|| self.prng.below(3) as u8);
        let token = self.token_of_return();
        let must = self.must_resume(link, token.as_ref(), operation, parked);
        let gateway = ParticipantId::gateway();
        let by = self
            .books
            .owner(link)
            .unwrap_or_else(ParticipantId::gateway);
        let open = Call {
            tag,
            ..blank(call, link, by, gateway, "tasks/result")
        };
        let mut turn = Turn {
            parks: self.books.stopping,
            ..Turn::default()
        };
        match must {
            Some(Ok(())) => {
                let place = Place::Waiting { withdraws: true };
                let proposal = Some(parked);
                self.books.opens(
                    operation,
                    Call {
                        place,
                        proposal,
                        ..open
                    },
                );
                self.books.count("resumed");
            }
            Some(Err(_)) | None => drop(turn.calls.insert(call, (operation, open))),
        }
        let waits = Parked::Proposal {
            proposal: parked,
            until_ms,
        };
        let event = Event::Resume(Resume {
            link,
            operation,
            tag,
            parked: waits,
            narrowing: token.as_ref(),
            call,
        });
        let effects = self.live(event, turn);
        match (must, effects.all.as_slice()) {
            (None, []) => {}
            (Some(Err(must)), [Effect::Refuse { cause, .. }]) => assert_eq!(*cause, must),
            (Some(Ok(())), effects) => self.check_wait(parked, effects),
            other => panic!("{other:?}"),
        }
    }

    fn must_resume(
        &mut self,
        link: LinkId,
        token: Option<&Narrowing>,
        operation: OperationId,
        parked: OperationId,
    ) -> Option<Result<(), Cause>> {
        let books = &mut self.books;
        if books.calls.contains_key(&operation) || books.questions.contains_key(&operation) {
            return None;
        }
        let Some(by) = books.owner(link) else {
            return Some(Err(Cause::Moot));
        };
        if books.links.contains_key(&link) && !books.take_token(&by, self.now_ms) {
            return Some(Err(Cause::RateLimited));
        }
        if books.is_full(link, &by) {
            return Some(Err(Cause::Limit));
        }
        let gateway = books.servers.contains_key(&ParticipantId::gateway());
        let known = gateway
            && self.books.links.contains_key(&link)
            && self.is_proposer(parked, &by)
            && self.books.is_in_scope(token, &self.books.deals[&parked]);
        Some(if known { Ok(()) } else { Err(Cause::Unknown) })
    }

    /// The gateway waits for a proposal with a call that it serves.
    pub(crate) fn wait(&mut self) {
        let gateway = ParticipantId::gateway();
        let served = |open: &&Call| {
            open.server == gateway && open.place == Place::AtServer && open.listen.is_none()
        };
        let served: Vec<OperationId> = self
            .books
            .calls
            .iter()
            .filter(|(_, open)| served(open))
            .map(|(id, _)| *id)
            .collect();
        let Some(operation) = self.prng.pick(&served).copied() else {
            return;
        };
        let open = self.books.calls[&operation].clone();
        let own = self.any_deal(|deal| deal.by == open.by);
        let any = self.any_deal(|_| true);
        let proposal = if self.prng.one_in(5) { any } else { own };
        let until_ms = self
            .prng
            .one_in(2)
            .then(|| self.now_ms + self.prng.below(3_000) as u64);
        let waits = open.proposal.is_none() && self.is_proposer(proposal, &open.by);
        if open.proposal.is_some() {
            return;
        }
        if waits {
            let own = self.books.calls.get_mut(&operation).unwrap();
            (own.place, own.proposal) = (Place::Waiting { withdraws: false }, Some(proposal));
            self.books.count("waited");
        }
        let turn = Turn {
            parks: self.books.stopping,
            ..Turn::default()
        };
        let effects = self.live(
            Event::Wait {
                operation,
                proposal,
                until_ms,
            },
            turn,
        );
        if waits {
            self.check_wait(proposal, &effects.all)
        } else {
            let refused = effects.all.iter().any(|one| {
                matches!(
                    one,
                    Effect::Refuse {
                        cause: Cause::Unknown,
                        ..
                    }
                )
            });
            assert!(refused, "it is not the caller's: {effects:?}");
        }
    }

    pub(crate) fn tick(&mut self) {
        self.now_ms += if self.prng.one_in(3) { 1 } else { 300 };
        self.books.now_ms = self.now_ms;
        self.books.end_due_claims();
        let due = self
            .topic
            .next_deadline_ms()
            .is_some_and(|due_ms| due_ms <= self.now_ms)
            || self
                .topic
                .next_wall_deadline_ms()
                .is_some_and(|due_ms| due_ms <= self.wall_ms());
        let effects = self.live(
            Event::Tick,
            Turn {
                parks: true,
                tasks: TaskTurn {
                    expires: true,
                    ..TaskTurn::default()
                },
                ..Turn::default()
            },
        );
        assert!(due || effects.all.is_empty(), "nothing is due");
        let now_ms = self.now_ms;
        let is_warned = |deal: &Deal| deal.warn_ms.is_none_or(|due_ms| due_ms > now_ms);
        let mut pending = self.books.deals.values().filter(|deal| deal.is_pending());
        assert!(pending.all(is_warned), "a warning is missing");
        assert!(
            self.topic
                .next_deadline_ms()
                .is_none_or(|due_ms| due_ms > self.now_ms)
        );
        assert!(
            self.topic
                .next_wall_deadline_ms()
                .is_none_or(|due_ms| due_ms > self.wall_ms())
        );
        let gathers = |(id, open): (&OperationId, &Call)| {
            open.pauses && open.place == Place::AtServer && !self.books.asked_about(*id).is_empty()
        };
        if self.books.calls.iter().any(gathers) {
            let due_ms = self
                .topic
                .next_deadline_ms()
                .expect("its caller is asked in time");
            assert!(due_ms <= self.now_ms + LIMITS.gather_ms);
            self.books.count("gathered questions");
        }
    }

    pub(crate) fn stop(&mut self) {
        self.books.stopping = true;
        self.books.count("stopped");
        let effects = self.live(
            Event::Stop,
            Turn {
                parks: true,
                ..Turn::default()
            },
        );
        let parked = effects
            .all
            .iter()
            .filter(|effect| matches!(effect, Effect::Park { .. }))
            .count();
        assert_eq!(
            parked,
            effects
                .all
                .iter()
                .filter(|effect| !ends_question(effect))
                .count()
        );
        if parked > 0 {
            self.books.count("parked while stopping");
        }
        let waits = |place: Place| matches!(place, Place::Waiting { .. });
        assert!(
            !self.books.calls.values().any(|open| waits(open.place)),
            "all that wait are answered"
        );
    }
}

/// Whether an effect ends a question about a call that is over.
fn ends_question(effect: &Effect) -> bool {
    match effect {
        Effect::CancelAsk { .. } => true,
        Effect::RefuseAsk { refusal, .. } => cause_of_ask(refusal) == Cause::Moot,
        _ => false,
    }
}
