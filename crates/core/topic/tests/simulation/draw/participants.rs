//! Links that join and leave, and capabilities that change.

use std::{collections::BTreeSet, sync::Arc};

use model::{Capabilities, DeliveryMode, LinkId, ParticipantId, RateLimit};
use topic::{Cursor, Ended, Join, Joining, Listener, Verdict};

use crate::{
    books::{limits::LIMITS, participants::Link, tasks::TaskTurn},
    draw::tasks::is_task_end,
    names::{CALLERS, GRANTS, SERVERS, id, parse},
    numbers::{Event, RoomEffect},
    seen::not_joined,
    turn::{Arrival, Turn},
    variants,
    world::World,
};

impl World {
    pub(crate) fn grant(&mut self) -> Arc<Capabilities> {
        let grants = self.prng.any(&GRANTS);
        parse(grants)
    }

    /// A new number; sometimes one that was accepted before others joined.
    fn link(&mut self) -> LinkId {
        if let Some(late) = self.accepted.take_if(|_| self.prng.one_in(3)) {
            self.books.count("late link");
            return late;
        }
        if self.accepted.is_none() && self.prng.one_in(6) {
            self.accepted = Some(LinkId(self.number()));
        }
        LinkId(self.number())
    }

    fn since(&mut self) -> Option<Cursor> {
        let next = self.books.room.published.len();
        let offset = self.prng.below(next + 2) as u64;
        let epoch = if self.prng.one_in(6) { 77 } else { self.life };
        self.prng.one_in(2).then_some(Cursor { epoch, offset })
    }

    pub(crate) fn join(&mut self) {
        // The names of servers that are not configured are free.
        let free = |name: &&str| {
            !self
                .books
                .configured
                .iter()
                .any(|names| names.id.as_str() == *name)
        };
        let free: Vec<&str> = SERVERS.iter().map(|(name, _)| *name).filter(free).collect();
        let free = self
            .prng
            .pick(&free)
            .copied()
            .filter(|_| self.prng.one_in(5));
        let taken = self.prng.one_in(25).then_some("one");
        let any = self.prng.any(&CALLERS);
        self.join_as(&id(free.or(taken).unwrap_or(any)));
    }

    pub(crate) fn join_as(&mut self, participant: &ParticipantId) {
        let link = self.link();
        let capabilities = self.grant();
        let rate = self.prng.one_in(4).then_some(RateLimit {
            burst: 4,
            per_minute: 120,
        });
        let modes = [
            DeliveryMode::All,
            DeliveryMode::All,
            DeliveryMode::Directed,
            DeliveryMode::DirectedAndProposals,
        ];
        let mode = self.prng.any(&modes);
        let echo = self.prng.one_in(3);
        let listener = self.prng.one_in(2).then_some(Listener { mode, echo });
        let promotes = listener.is_none() && !self.prng.one_in(3);
        let notified = !self.prng.one_in(3);
        let pauses = listener.is_none() && self.prng.one_in(2);
        let since = self.since();
        let handle = 10 * link.0 + 7;
        let there = listener.and(self.books.listener_of(participant));
        let may = self.may_join(participant, link, there);
        let mut turn = Turn::default();
        let event = Event::Join(Join {
            link,
            handle,
            participant,
            capabilities: capabilities.clone(),
            rate,
            joining: Joining {
                listener,
                since,
                promotes,
                notified,
                pauses,
            },
        });
        if !may {
            let effects = self.live(event, turn);
            assert!(effects.all.is_empty() && effects.refusal.is_some());
            return match effects.verdict {
                Some(Verdict::Refused(cause)) => self.books.count(not_joined(cause)),
                other => panic!("{other:?}"),
            };
        }
        turn.leaving
            .extend(there.map(|older| (older, Some(Ended::Replaced))));
        turn.joining = Some(Arrival {
            link,
            participant: participant.clone(),
            listener,
            since,
        });
        // A participant whose last link is replaced is absent for a moment.
        let stays = self
            .books
            .links_of(participant)
            .iter()
            .any(|own| Some(*own) != there);
        if !stays {
            self.books.wear(participant);
        }
        self.books.limit(participant, rate, stays);
        let differs = !stays || self.books.granted(participant) != Some(&capabilities);
        self.books
            .standing
            .entry(participant.clone())
            .or_default()
            .granted = Some(capabilities);
        if differs {
            self.books.judge_deals(participant);
        }
        if stays {
            self.books.note_approver(participant);
        }
        turn.regrants = (stays && differs).then(|| participant.clone());
        turn.changes = turn.regrants.iter().cloned().collect();
        let renews = self
            .books
            .listener_of(participant)
            .filter(|own| Some(*own) != there && stays && differs);
        let participant = participant.clone();
        let level = None;
        let attached = BTreeSet::new();
        let subscriptions = Vec::new();
        let own = Link {
            participant,
            handle,
            listener,
            promotes,
            notified,
            pauses,
            level,
            attached,
            subscriptions,
        };
        self.books.links.insert(link, own);
        let effects = self.live(event, turn);
        let renewed = effects
            .room
            .iter()
            .filter(|effect| matches!(effect, RoomEffect::Renew { .. }))
            .count();
        assert_eq!(
            renewed,
            usize::from(renews.is_some()),
            "a listener is welcomed anew"
        );
        let place = |wanted: &dyn Fn(&RoomEffect) -> bool| effects.room.iter().position(wanted);
        let exit = place(&|effect| matches!(effect, RoomEffect::Exit { .. }));
        let enter = place(&|effect| matches!(effect, RoomEffect::Enter { .. }));
        assert!(
            exit <= enter && (listener.is_none() || enter.is_some()),
            "first out, then in"
        );
        let kept = self.books.room.kept;
        let next = self.books.room.published.len();
        let readable = (kept != topic::RingLimits::default())
            .then(|| next.saturating_sub(kept.history) as u64);
        assert_eq!(
            self.topic.readable_since(link).map(|cursor| cursor.offset),
            readable
        );
    }

    fn may_join(&self, participant: &ParticipantId, link: LinkId, there: Option<LinkId>) -> bool {
        let links = self.books.links_of(participant).len();
        let room = match links {
            0 => self.books.room.here.len() + self.books.away.len() < LIMITS.participants_max,
            links => there.is_some() || links < LIMITS.links_per_participant_max,
        };
        // A server's name may be free for a while.
        !self.books.is_server(participant) && there.is_none_or(|there| there < link) && room
    }

    pub(crate) fn leave(&mut self) {
        let link = self.any_link();
        self.leaves(link);
    }

    pub(crate) fn leaves(&mut self, link: LinkId) {
        let own = self
            .books
            .links
            .get(&link)
            .map(|own| own.participant.clone());
        let leaving = own.iter().map(|_| (link, None)).collect();
        let effects = self.live(
            Event::Leave { link },
            Turn {
                leaving,
                ..Turn::default()
            },
        );
        match own {
            Some(own) if self.books.links_of(&own).is_empty() => self.books.wear(&own),
            Some(_) => {}
            None => assert!(effects.all.is_empty() && effects.room.is_empty()),
        }
    }

    pub(crate) fn revoke(&mut self) {
        // It draws nothing, so that it moves no seed: rules/disowned.rs has what it does to a name
        // that was here.
        let absent = id("of-another-topic");
        let event = Event::Disown {
            participant: &absent,
        };
        self.books.count(variants::event(&event));
        let now = topic::Now {
            steady_ms: self.now_ms,
            wall_ms: self.wall_ms(),
        };
        let effects = self.topic.step(now, event);
        assert!(
            effects.all.is_empty() && effects.room.is_empty(),
            "nothing is of that name"
        );
        let any = id(self.prng.any(&CALLERS));
        let waits = self
            .books
            .deals
            .values()
            .filter(|deal| deal.is_pending())
            .map(|deal| deal.by.clone());
        let absent: Vec<ParticipantId> = waits.filter(|by| !self.books.is_here(by)).collect();
        let absent = self
            .prng
            .pick(&absent)
            .cloned()
            .filter(|_| self.prng.one_in(2));
        let revoked = absent.unwrap_or(any);
        self.revokes(&revoked);
        if self.prng.one_in(2) {
            self.disowns(&revoked);
        }
    }

    /// A name gets another bearer.
    fn disowns(&mut self, participant: &ParticipantId) {
        let next = self.books.room.published.len();
        self.books.room.disowned.insert(participant.clone(), next);
        for deal in self.books.deals.values_mut() {
            deal.disown(participant);
        }
        let tasks = TaskTurn {
            revoked: [participant.clone()].into(),
            ..TaskTurn::default()
        };
        let turn = Turn {
            tasks,
            ..Turn::default()
        };
        let effects = self.live(Event::Disown { participant }, turn);
        assert!(effects.all.iter().all(is_task_end) && effects.room.is_empty());
    }

    pub(crate) fn revokes(&mut self, participant: &ParticipantId) {
        let leaving: Vec<_> = self
            .books
            .links_of(participant)
            .into_iter()
            .map(|link| (link, Some(Ended::Revoked)))
            .collect();
        if leaving.is_empty()
            && self
                .books
                .deals
                .values()
                .any(|deal| deal.by == *participant && deal.is_pending())
        {
            self.books.count("revoked while absent");
        }
        let gone =
            self.books.is_server(participant) && self.books.servers.contains_key(participant);
        if let Some(standing) = self.books.standing.get_mut(participant).filter(|_| !gone) {
            standing.granted = None;
        }
        self.books.judge_deals(participant);
        self.books.note_approver(participant);
        self.live(
            Event::Revoke { participant },
            Turn {
                leaving,
                tasks: TaskTurn {
                    revoked: [participant.clone()].into(),
                    ..TaskTurn::default()
                },
                ..Turn::default()
            },
        );
        // It may not come back, so nothing waits for it.
        self.books.left_ms.remove(participant);
        self.books.wear(participant);
    }

    pub(crate) fn regrant(&mut self) {
        let server = self.prng.one_in(5);
        let participant = if server {
            self.any_server()
        } else {
            id(self.prng.any(&CALLERS))
        };
        // Mostly a participant with open operations.
        let open = self
            .books
            .calls
            .values()
            .map(|open| open.by.clone())
            .find(|by| !self.books.is_server(by));
        let participant = open
            .filter(|_| !server && self.prng.one_in(2))
            .unwrap_or(participant);
        let capabilities = if server {
            self.server_grant()
        } else {
            self.grant()
        };
        self.regrants(&participant, capabilities);
    }

    pub(crate) fn regrants(
        &mut self,
        participant: &ParticipantId,
        capabilities: Arc<Capabilities>,
    ) {
        let here = self.books.is_here(participant);
        // An absent server has no standing; a participant that serves counts as a caller here.
        if !here && self.books.is_server(participant) {
            return;
        }
        let differs = self.books.granted(participant) != Some(&capabilities);
        if !here
            && self
                .books
                .deals
                .values()
                .any(|deal| deal.by == *participant && deal.is_pending())
        {
            self.books.count("regranted while absent");
        }
        if self.books.is_server(participant) && self.books.links_of(participant).is_empty() {
            self.books
                .asking
                .insert(participant.clone(), capabilities.clone());
        }
        let standing = self.books.standing.entry(participant.clone()).or_default();
        standing.granted = Some(capabilities.clone());
        if differs || !here {
            self.books.judge_deals(participant);
        }
        self.books.note_approver(participant);
        let regrants = (here && differs).then(|| participant.clone());
        let changes = regrants.iter().filter(|own| self.books.is_seen(own));
        let changes = changes.cloned().collect();
        let approved = |books: &crate::books::Books| {
            let runs = books
                .calls
                .iter()
                .filter(|(_, open)| open.proposal.is_some() && open.own.is_some());
            let runs = runs.filter(|(_, open)| open.place == crate::books::calls::Place::AtServer);
            runs.map(|(operation, _)| *operation).collect::<Vec<_>>()
        };
        let runs = approved(&self.books);
        let renews = self
            .books
            .listener_of(participant)
            .filter(|_| regrants.is_some());
        let effects = self.live(
            Event::Regrant {
                participant,
                capabilities,
            },
            Turn {
                regrants,
                changes,
                ..Turn::default()
            },
        );
        assert_eq!(
            approved(&self.books),
            runs,
            "what was approved does not depend on the caller's grants"
        );
        let renewed = effects
            .room
            .iter()
            .any(|effect| matches!(effect, RoomEffect::Renew { .. }));
        assert_eq!(renewed, renews.is_some());
    }
}
