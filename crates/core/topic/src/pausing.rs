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
    effect::{AdmittedBy, Cause, Effect, Receiver, Verdict},
    event::End,
    members::Seat,
    operations::{Operation, State},
    parking::Returning,
    refusals,
    requests::Closing,
};

/// Notifications about a paused call that are kept for its caller. Of more, the oldest are dropped.
pub const MISSED_NOTICES_MAX: usize = 64;
/// Bytes of these notifications.
pub const MISSED_BYTES_MAX: usize = 16 << 10;

/// Keeps a notification about a paused call until its caller comes back.
pub(crate) fn miss<H: Handles>(paused: &mut Operation<H>, notice: H::Notice) {
    let missed = &mut paused.rare.get_or_insert_default().missed;
    missed.push_back(notice);
    while missed.len() > MISSED_NOTICES_MAX || bytes_of::<H>(missed) > MISSED_BYTES_MAX {
        missed.pop_front();
    }
}

fn bytes_of<H: Handles>(notices: &VecDeque<H::Notice>) -> usize {
    notices.iter().map(H::notice_bytes).sum()
}

impl<H: Handles> Topic<H> {
    /// Whether the caller of this method on this link is asked by answers for now.
    pub(crate) fn is_asked_by_answers(&self, link: LinkId, method: &Method) -> bool {
        self.members.link(link).is_some_and(|link| link.pauses) && method.facts().is_pausable
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
        // The first question sets the time: later ones do not put it off.
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
        // The server may have withdrawn its questions while more of them were gathered.
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
        let mut questions = Vec::new();
        for ask in self.asks_about(call) {
            if let Some(open) = self.operations.get(ask)
                && let Some(question) = open.handle.question()
            {
                questions.push((ask, open.link, question.clone()));
            }
        }
        questions
    }

    /// The open questions about a call, in the order of opening.
    fn asks_about(&self, call: OperationId) -> Vec<OperationId> {
        let Some(open) = self.operations.get(call) else {
            return Vec::new();
        };
        let Some(asker) = self.server_link(open.server) else {
            return Vec::new();
        };
        let mut asks = self.open_of(asker);
        asks.retain(|ask| self.is_ask_about(*ask, call));
        asks
    }

    /// Whether an operation is an open question about this call.
    fn is_ask_about(&self, ask: OperationId, call: OperationId) -> bool {
        let about = State::Asked { about: Some(call) };
        self.operations
            .get(ask)
            .is_some_and(|open| open.state == about)
    }

    /// Goes on with a paused call whose caller is back with answers. What the caller does not answer
    /// is asked again, as often as the limit admits.
    pub(crate) fn resume_paused(
        &mut self,
        back: Returning<'_, H>,
        round: u32,
        answers: Vec<(OperationId, H::Answer)>,
    ) {
        let Returning {
            link,
            operation: id,
            tag,
            narrowing,
            call: by,
        } = back;
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
        open.tag = tag;
        open.answered = false;
        let state = open.state;
        let mut kept = None;
        let mut missed = VecDeque::new();
        if let Some(rare) = &mut open.rare {
            kept = rare.kept.take();
            missed = std::mem::take(&mut rare.missed);
        }
        let Some(call) = open.handle.call().cloned() else {
            return;
        };
        // First: what follows goes to the request with which the caller came back.
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
        self.settle_asks(id, answers);
        if let State::Paused { proposal } = state {
            self.operations.turn(id, State::Delivered { proposal });
        }
        self.ask_again(id);
    }

    /// Gives a server the answers to its questions about a call. Answers to other questions, and to
    /// those that are over, are ignored.
    fn settle_asks(&mut self, call: OperationId, answers: Vec<(OperationId, H::Answer)>) {
        for (ask, answer) in answers {
            if !self.is_ask_about(ask, call) {
                continue;
            }
            if let Some(question) = self.close_ask(ask) {
                self.effects.push(Effect::SettleAsk { question, answer });
            }
        }
    }

    /// Pauses a call once more if its caller has left questions about it open.
    fn ask_again(&mut self, id: OperationId) {
        let Some(open) = self.operations.get(id) else {
            return;
        };
        if open.asks == 0 {
            return;
        }
        let rounds_max = self.limits.rounds_max;
        if open.rounds < rounds_max {
            return self.pause(id);
        }
        // A caller that answers nothing does not keep its call open by coming back.
        if let Some(call) = self.stop_call(id, Outcome::Refused) {
            self.refuse(call, refusals::of_rounds(rounds_max), Cause::Limit);
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
        let seat = self.seat_of(link).ok_or(Cause::Moot)?;
        self.members
            .get_mut(seat)
            .ok_or(Cause::Moot)?
            .take_token(self.now_ms)?;
        let open = self.operations.get(id).ok_or(Cause::Unknown)?;
        let is_awaited = open.state.is_paused() && open.rounds == round;
        // The call may have another link of the same participant.
        if !is_awaited || self.seat_of(open.link) != Some(seat) {
            return Err(Cause::Unknown.into());
        }
        let member = self.members.get(seat).ok_or(Cause::Unknown)?;
        let server = self.members.get(open.server).ok_or(Cause::Unknown)?;
        let granted = self
            .members
            .link(link)
            .ok_or(Cause::Moot)?
            .granted(member, narrowing);
        let judged = judge(
            &granted,
            open.method.as_str(),
            open.context.as_deref(),
            server.id.as_str(),
        );
        let at = match judged {
            Ok(at) => at,
            // A call of an approved proposal runs on the approver's authority.
            Err(_) if matches!(open.state, State::Paused { proposal: Some(_) }) => None,
            Err(cause) => return Err(cause.into()),
        };
        // On its own link it has its place already.
        if open.link != link && !self.has_room_for_return(link, id) {
            return Err(Cause::Limit.into());
        }
        let by = AdmittedBy {
            capabilities: granted,
            at,
        };
        Ok(Verdict::Admitted {
            to: Some(server.id.clone()),
            own: open.own_name.clone(),
            by,
        })
    }

    fn seat_of(&self, link: LinkId) -> Option<Seat> {
        Some(self.members.link(link)?.seat)
    }

    /// Whether the limits of a link admit a call that comes to it, with the questions about it.
    fn has_room_for_return(&self, link: LinkId, id: OperationId) -> bool {
        let Some(link) = self.members.link(link) else {
            return false;
        };
        let asks = self.asks_at(link);
        let asks_about = self.asks_about(id).len();
        // The call itself comes as well, so one place more than for the questions is needed.
        link.open.len() + asks_about < self.limits.operations_per_link_max
            && asks + asks_about <= self.limits.asks_per_link_max
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
        self.mirror_end(id, end.outcome(), end.answer());
        self.end_asks_about(id);
        self.operations.turn(id, State::Kept);
        if let Some(open) = self.operations.get_mut(id) {
            // Watchers have seen the end, and see none when the caller gets it.
            open.mirrored = false;
            open.rare.get_or_insert_default().kept = Some(end);
        }
    }

    /// Gives a caller that is back the end that was kept for it.
    fn deliver_kept(&mut self, id: OperationId, end: End<H::Answer>) {
        if let Some(closed) = self.close_call(id, Closing::with(&end)) {
            self.finish(closed.call, end, None);
        }
    }
}
