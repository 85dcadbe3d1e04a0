//! Paused calls: those whose callers were answered for now with the questions about them, and come
//! back with the answers.
//!
//! A paused call stays open at its link, and its server goes on with it. What the server asks and
//! notifies meanwhile reaches the caller when it comes back, and an answer of the server waits for
//! the caller.

use std::collections::VecDeque;

use model::{LinkId, Method, Narrowing, OperationId, Outcome};

use crate::{
    Handles, Topic,
    admission::judge,
    effect::{Cause, Effect, Receiver, Rule, Verdict},
    event::End,
    members::Seat,
    operations::{Operation, State},
    refusals,
};

/// Notifications about a paused call that are kept for its caller. Of more, the oldest are dropped.
pub const MISSED_NOTICES_MAX: usize = 64;
/// Bytes of these notifications.
pub const MISSED_BYTES_MAX: usize = 16 << 10;

/// Keeps a notification about a paused call until its caller comes back.
pub(crate) fn miss<H: Handles>(paused: &mut Operation<H>, notice: H::Notice) {
    let missed = &mut paused.rare.get_or_insert_default().missed;
    missed.push_back(notice);
    let bytes = |missed: &VecDeque<H::Notice>| missed.iter().map(H::notice_bytes).sum::<usize>();
    while missed.len() > MISSED_NOTICES_MAX || bytes(missed) > MISSED_BYTES_MAX {
        missed.pop_front();
    }
}

impl<H: Handles> Topic<H> {
    /// Whether the caller of this method on this link is asked by answers for now.
    pub(crate) fn is_asked_by_answers(&self, link: LinkId, method: &Method) -> bool {
        self.members.link(link).is_some_and(|own| own.pauses) && method.facts().is_pausable
    }

    /// Whether the caller of an open call is asked by answers for now.
    pub(crate) fn pauses(&self, call: OperationId) -> bool {
        self.operations.get(call).is_some_and(|open| open.pauses)
    }

    /// Waits a little for further questions about a call before its caller is answered for now.
    pub(crate) fn gather(&mut self, id: OperationId) {
        let Some(open) = self.operations.get(id) else {
            return;
        };
        if matches!(open.state, State::Delivered { .. }) && open.until_ms.is_none() {
            self.park_at(id, self.now_ms.saturating_add(self.limits.gather_ms));
        }
    }

    /// Answers the caller of a call for now with all questions about it, unless it was and has not
    /// come back.
    pub(crate) fn pause(&mut self, id: OperationId) {
        let Some(open) = self.operations.get_mut(id) else {
            return;
        };
        let State::Delivered { proposal } = open.state else {
            return;
        };
        if open.asks == 0 {
            return;
        }
        open.rounds = open.rounds.saturating_add(1);
        let round = open.rounds;
        let call = open.handle.call().cloned();
        self.operations.turn(id, State::Paused { proposal });
        self.park_at(id, self.now_ms.saturating_add(self.limits.pause_ms));
        let questions = self
            .questions_about(id)
            .into_iter()
            .map(|(ask, _, question)| (ask, question))
            .collect();
        if let Some(call) = call {
            self.effects.push(Effect::Pause {
                call,
                round,
                questions,
            });
        }
    }

    /// The open questions about a call with the link that each is asked at, in the order of
    /// opening.
    pub fn questions_about(&self, call: OperationId) -> Vec<(OperationId, LinkId, H::Question)> {
        let question = |ask: OperationId| {
            let open = self.operations.get(ask)?;
            Some((ask, open.link, open.handle.question()?.clone()))
        };
        self.asks_about(call)
            .into_iter()
            .filter_map(question)
            .collect()
    }

    fn asks_about(&self, call: OperationId) -> Vec<OperationId> {
        let Some(asker) = self
            .operations
            .get(call)
            .and_then(|open| self.server_link(open.server))
        else {
            return Vec::new();
        };
        let about = State::Asked { about: Some(call) };
        let mut asks = self.open_of(asker);
        asks.retain(|ask| {
            self.operations
                .get(*ask)
                .is_some_and(|open| open.state == about)
        });
        asks
    }

    /// Takes a caller that comes back with answers. What it does not answer is asked again, as
    /// often as the limit admits.
    pub(crate) fn resume_paused(
        &mut self,
        (link, id, tag): (LinkId, OperationId, Option<H::Tag>),
        (round, answers): (u32, Vec<(OperationId, H::Answer)>),
        narrowing: Option<&Narrowing>,
        by: H::Call,
    ) {
        let verdict = match self.admit_return(link, id, round, narrowing) {
            Ok(verdict) => verdict,
            Err(refused) => {
                let cause = refused.cause;
                return self.refuse_request(by, refused.or_else(refusals::of_return), cause);
            }
        };
        self.effects.verdict = Some(verdict);
        self.move_to(link, id);
        self.forget_deadline(id);
        let Some(open) = self.operations.get_mut(id) else {
            return;
        };
        (open.tag, open.answered) = (tag, false);
        let state = open.state;
        let waits = open
            .rare
            .as_mut()
            .map(|rare| (rare.kept.take(), std::mem::take(&mut rare.missed)));
        let (kept, missed) = waits.unwrap_or_default();
        let Some(call) = open.handle.call().cloned() else {
            return;
        };
        self.effects.push(Effect::Return {
            call: call.clone(),
            by,
        });
        for notice in missed {
            self.effects.push(Effect::Notify {
                to: Receiver::Call(call.clone()),
                notice,
                public: None,
                about: None,
            });
        }
        if let Some(end) = kept {
            return self.deliver_kept(id, end);
        }
        for (ask, answer) in answers {
            let about = State::Asked { about: Some(id) };
            if self
                .operations
                .get(ask)
                .is_some_and(|open| open.state == about)
                && let Some(question) = self.close_ask(ask)
            {
                self.effects.push(Effect::SettleAsk { question, answer });
            }
        }
        if let State::Paused { proposal } = state {
            self.operations.turn(id, State::Delivered { proposal });
        }
        match self.operations.get(id) {
            Some(open) if open.asks == 0 => {}
            // A caller that answers nothing does not keep its call open by coming back.
            Some(open) if open.rounds >= self.limits.rounds_max => {
                if let Some(call) = self.stop_call(id, Outcome::Refused) {
                    self.refuse(
                        call,
                        refusals::of_rounds(self.limits.rounds_max),
                        Cause::Limit,
                    );
                }
            }
            Some(_) => self.pause(id),
            None => {}
        }
    }

    /// Judges a caller that comes back: it must have the round that was given out last, and still
    /// be granted the call.
    fn admit_return(
        &mut self,
        link: LinkId,
        id: OperationId,
        round: u32,
        narrowing: Option<&Narrowing>,
    ) -> Result<Verdict, refusals::Refused> {
        let seat = self
            .members
            .link(link)
            .map(|own| own.seat)
            .ok_or(Cause::Moot)?;
        self.members
            .get_mut(seat)
            .ok_or(Cause::Moot)?
            .take_token(self.now_ms)?;
        let paused = self
            .operations
            .get(id)
            .filter(|open| open.state.is_paused() && open.rounds == round);
        let open = paused
            .filter(|open| self.seat_of(open.link) == Some(seat))
            .ok_or(Cause::Unknown)?;
        let member = self.members.get(seat);
        let server = self.members.get(open.server);
        let (member, server) = member.zip(server).ok_or(Cause::Unknown)?;
        let own = self.members.link(link).ok_or(Cause::Moot)?;
        let granted = own.granted(member, narrowing);
        let judged = judge(
            &granted,
            open.method.as_str(),
            open.context.as_deref(),
            server.id.as_str(),
        );
        let at = match (judged, open.state) {
            (Ok(at), _) => at,
            // A call of an approved proposal runs on the approver's authority.
            (Err(_), State::Paused { proposal: Some(_) }) => None,
            (Err(cause), _) => return Err(cause.into()),
        };
        if open.link != link && !self.has_room_for_return(link, id) {
            return Err(Cause::Limit.into());
        }
        let rule = Rule {
            capabilities: granted,
            at,
        };
        Ok(Verdict::Admitted {
            to: Some(server.id.clone()),
            own: open.own.clone(),
            rule,
        })
    }

    fn seat_of(&self, link: LinkId) -> Option<Seat> {
        self.members.link(link).map(|own| own.seat)
    }

    /// Whether the limits of a link admit a call that comes to it, with the questions about it.
    fn has_room_for_return(&self, link: LinkId, id: OperationId) -> bool {
        let Some(own) = self.members.link(link) else {
            return false;
        };
        let asks = |id: &&OperationId| {
            self.operations
                .get(**id)
                .is_some_and(|open| open.state.is_ask())
        };
        let asked = own.open.iter().filter(asks).count();
        let about = self.asks_about(id).len();
        own.open.len() + about < self.limits.operations_per_link_max
            && asked + about <= self.limits.asks_per_link_max
    }

    /// Moves a call, and the questions about it, to the link on which its caller came back.
    fn move_to(&mut self, link: LinkId, id: OperationId) {
        for id in self.asks_about(id).into_iter().chain([id]) {
            let Some(open) = self.operations.get_mut(id) else {
                continue;
            };
            let from = std::mem::replace(&mut open.link, link);
            if from != link {
                self.members.finish(from, id);
                self.members.begin(link, id);
            }
        }
    }

    /// Keeps the end of a paused call until its caller comes back.
    pub(crate) fn keep_end(&mut self, id: OperationId, end: End<H::Answer>) {
        let (outcome, answer) = end.parts();
        self.mirror_end(id, outcome, answer);
        self.end_asks_about(id);
        self.operations.turn(id, State::Kept);
        if let Some(open) = self.operations.get_mut(id) {
            open.mirrored = false;
            open.rare.get_or_insert_default().kept = Some(end);
        }
    }

    fn deliver_kept(&mut self, id: OperationId, end: End<H::Answer>) {
        let (outcome, answer) = end.parts();
        if let Some((call, _)) = self.close_call(id, outcome, answer) {
            self.finish(call, end, None);
        }
    }
}
