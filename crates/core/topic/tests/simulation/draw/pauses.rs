//! Callers that come back with answers to a paused call.

use model::{Narrowing, OperationId};
use topic::{Cause, Parked, Resume};

use crate::{
    books::{
        calls::{Call, Place},
        limits::LIMITS,
    },
    draw::{requests::blank, tasks::is_task_end},
    numbers::{Effect, Event, Receiver},
    turn::{Returning, Turn},
    world::World,
};

fn is_paused(place: Place) -> bool {
    matches!(place, Place::Paused | Place::Kept { .. })
}

impl World {
    pub(crate) fn come_back(&mut self) {
        let paused = self
            .books
            .calls
            .iter()
            .filter(|(_, open)| is_paused(open.place));
        let paused: Vec<OperationId> = paused.map(|(id, _)| *id).collect();
        let any = self.any_open();
        let operation = self
            .prng
            .pick(&paused)
            .copied()
            .filter(|_| !self.prng.one_in(12))
            .unwrap_or(any);
        if self.prng.one_in(3) {
            self.notice_about(operation, None);
        }
        if self.prng.one_in(4) {
            self.answers(operation);
        }
        let open = self.books.calls.get(&operation).cloned();
        let links = open
            .as_ref()
            .map(|open| self.books.links_of(&open.by))
            .unwrap_or_default();
        let own = self.prng.pick(&links).copied();
        let any = self.any_link();
        let link = own.filter(|_| !self.prng.one_in(8)).unwrap_or(any);
        let round = open.as_ref().map_or(1, |open| open.rounds);
        let round = if self.prng.one_in(8) {
            round.wrapping_sub(1)
        } else {
            round
        };
        let mut answers = Vec::new();
        for (ask, _) in self.books.asked_about(operation) {
            if !self.prng.one_in(4) {
                answers.push((ask, self.number()));
            }
        }
        if self.prng.one_in(6) {
            answers.push((self.any_open(), self.number()));
        }
        self.comes_back(operation, link, round, answers);
        // Some come back again and again and answer nothing.
        let again = if self.prng.one_in(2) {
            LIMITS.rounds_max
        } else {
            0
        };
        for _ in 0..again {
            let paused = self
                .books
                .calls
                .get(&operation)
                .filter(|open| open.place == Place::Paused);
            let Some(round) = paused.map(|open| open.rounds) else {
                return;
            };
            self.comes_back(operation, link, round, Vec::new());
        }
    }

    fn comes_back(
        &mut self,
        operation: OperationId,
        link: model::LinkId,
        round: u32,
        answers: Vec<(OperationId, u64)>,
    ) {
        let by = self.number();
        let tag = self.prng.one_in(2).then(|| self.prng.below(3) as u8);
        // Its caller has the questions.
        self.reach(operation);
        let token = self.token_of_return();
        let must = self.must_come_back(operation, link, round, token.as_ref());
        let mut turn = Turn::default();
        let kept = self
            .books
            .calls
            .get(&operation)
            .is_some_and(|open| open.place != Place::Paused);
        let open = self
            .books
            .calls
            .get_mut(&operation)
            .filter(|_| must.is_ok());
        let missed = open
            .map(|open| std::mem::take(&mut open.missed))
            .unwrap_or_default();
        match must {
            Ok(()) => {
                let answers = answers.clone();
                turn.returning = Some(Returning {
                    operation,
                    link,
                    tag,
                    round,
                    answers,
                });
            }
            Err(_) => {
                let gateway = model::ParticipantId::gateway;
                let open = blank(by, link, gateway(), gateway(), "tools/call");
                turn.calls.insert(by, (operation, open));
            }
        }
        let parked = Parked::Questions { round, answers };
        let effects = self.live(
            Event::Resume(Resume {
                link,
                operation,
                tag,
                parked,
                narrowing: token.as_ref(),
                call: by,
            }),
            turn,
        );
        // A followed task ends with its call.
        let all = effects.all.iter().filter(|one| !is_task_end(one));
        let all: Vec<Effect> = all.cloned().collect();
        let all = match (must, all.as_slice()) {
            (Ok(()), [Effect::Return { by: own, .. }, all @ ..]) => {
                assert_eq!(*own, by);
                all
            }
            (Err(_), all) => all,
            other => panic!("{other:?}"),
        };
        let (notices, rest) = all.split_at(missed.len());
        let notice = |effect: &Effect| match effect {
            Effect::Notify {
                to: Receiver::Call(_),
                notice,
                ..
            } => *notice,
            other => panic!("{other:?}"),
        };
        assert_eq!(notices.iter().map(notice).collect::<Vec<_>>(), missed);
        match (must, rest) {
            (Err(must), [Effect::Refuse { cause, .. }]) => assert_eq!(*cause, must),
            (Ok(()), [Effect::Settle { .. } | Effect::Refuse { .. }]) => assert!(kept),
            (Ok(()), [settled @ .., Effect::Pause { .. }]) => {
                assert!(
                    settled
                        .iter()
                        .all(|effect| matches!(effect, Effect::SettleAsk { .. }))
                );
            }
            (Ok(()), [.., Effect::Cancel { .. }, Effect::Refuse { cause, .. }]) => {
                assert_eq!((*cause, round), (Cause::Limit, LIMITS.rounds_max));
                self.books.count("came back too often");
            }
            (Ok(()), settled) => {
                assert!(
                    settled
                        .iter()
                        .all(|effect| matches!(effect, Effect::SettleAsk { .. }))
                );
                assert!(
                    self.books.asked_about(operation).is_empty(),
                    "what is open is asked again"
                );
            }
            other => panic!("{other:?}"),
        }
    }

    fn must_come_back(
        &mut self,
        operation: OperationId,
        link: model::LinkId,
        round: u32,
        token: Option<&Narrowing>,
    ) -> Result<(), Cause> {
        let books = &mut self.books;
        let by = books.owner(link).ok_or(Cause::Moot)?;
        if books.links.contains_key(&link) && !books.take_token(&by, self.now_ms) {
            return Err(Cause::RateLimited);
        }
        let fits = |open: &&Call| is_paused(open.place) && open.rounds == round && open.by == by;
        // A participant may also serve: it does not come back on that link.
        let comes_back = books.links.contains_key(&link);
        let open = books
            .calls
            .get(&operation)
            .filter(fits)
            .filter(|_| comes_back)
            .ok_or(Cause::Unknown)?;
        let context = open.public.as_deref();
        let at = open.server.as_str();
        let approved = open.place == Place::Paused && open.proposal.is_some();
        if !approved && !books.admits(&by, token, open.method, context, at) {
            assert!(token.is_some(), "an open call is admitted");
            books.count("came back with too small a token");
            return Err(Cause::NotAdmitted);
        }
        let about = books.asked_about(operation).len();
        let full = books.open_of(link) + about >= LIMITS.operations_per_link_max
            || books.asks_of(link) + about > LIMITS.asks_per_link_max;
        if open.link != link && full {
            Err(Cause::Limit)
        } else {
            Ok(())
        }
    }
}
