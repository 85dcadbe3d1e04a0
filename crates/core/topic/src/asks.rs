//! Questions of servers: one current caller, and exactly one end.

use model::{KindRef, LinkId, Method, OperationId, ParticipantId};

use crate::{
    Handles, Topic,
    admission::admits_kind,
    effect::{Cause, Effect, Receiver},
    event::{About, Ask, End},
    members::Seat,
    operations::{Handle, Operation, State},
    refusals::{self, Refused},
};

impl<H: Handles> Topic<H> {
    pub(crate) fn ask(&mut self, ask: Ask<'_, H>) {
        let Ask {
            server,
            operation,
            tag,
            about,
            method,
            question,
        } = ask;
        if self.operations.contains(operation) {
            return;
        }
        let (seat, link, call, to) = match self.admit_ask(server, about, &method) {
            Ok(admitted) => admitted,
            Err(refused) => {
                let refusal = refused.or_else(refusals::plain);
                return self.effects.push(Effect::RefuseAsk { question, refusal });
            }
        };
        if let Some(call) = call.and_then(|call| self.operations.get_mut(call)) {
            call.asks += 1;
        }
        let state = State::Asked { about: call };
        let handle = Handle::Question(question.clone());
        self.open(
            operation,
            Operation {
                tag,
                ..Operation::new(state, link, seat, method, handle)
            },
        );
        if let Some(asker) = self.server_link(seat) {
            self.members.begin(asker, operation);
        }
        match call.filter(|call| self.pauses(*call)) {
            Some(call) => self.gather(call),
            None => self.effects.push(Effect::Ask {
                operation,
                question,
                link,
                to,
            }),
        }
    }

    /// The receiver of a question or notification: the caller's open call, or its link.
    pub(crate) fn receiver(&self, link: LinkId, call: Option<OperationId>) -> Option<Receiver<H>> {
        match call {
            Some(call) => self
                .operations
                .get(call)?
                .handle
                .call()
                .cloned()
                .map(Receiver::Call),
            None => self.handle(link).map(Receiver::Link),
        }
    }

    /// The link of the caller that a server reaches about a call or session, and the call.
    pub(crate) fn reached(
        &self,
        server: Seat,
        about: About,
    ) -> Option<(LinkId, Option<OperationId>)> {
        match about {
            About::Call(call) => {
                let open = self
                    .operations
                    .get(call)
                    .filter(|open| open.is_with(server))?;
                Some((open.link, Some(call)))
            }
            About::Session(link) => {
                let index = self.catalog.index(&self.members.get(server)?.id)?;
                self.members
                    .link(link)
                    .filter(|own| own.is_attached(index))
                    .map(|_| (link, None))
            }
            About::Task { task, session } => {
                let asked = self.asked_about_task(server, task, session)?;
                self.reached(server, asked)
            }
        }
    }

    /// Link and call that a notification concerns: those that the server reaches, or a paused call
    /// of its, whose caller hears of further questions and of notifications when it comes back.
    pub(crate) fn concerned_by(
        &self,
        server: Seat,
        about: About,
    ) -> Option<(LinkId, Option<OperationId>)> {
        if let About::Task { task, session } = about {
            let asked = self.asked_about_task(server, task, session)?;
            return self.concerned_by(server, asked);
        }
        if let About::Call(call) = about
            && let Some(open) = self.operations.get(call)
            && open.server == server
            && matches!(open.state, State::Paused { .. })
        {
            return Some((open.link, Some(call)));
        }
        self.reached(server, about)
    }

    /// The asking server, the link that a question goes to, the call that it is about, and the way
    /// to the caller; takes a token. The topic never guesses the caller.
    fn admit_ask(
        &mut self,
        server: &ParticipantId,
        about: About,
        method: &Method,
    ) -> Result<(Seat, LinkId, Option<OperationId>, Receiver<H>), Refused> {
        let seat = self.members.server(server).ok_or(Cause::Moot)?;
        self.members
            .get_mut(seat)
            .ok_or(Cause::Moot)?
            .take_token(self.now_ms)?;
        let member = self.members.get(seat).ok_or(Cause::Moot)?;
        let (link, call) = self.concerned_by(seat, about).ok_or(Cause::Moot)?;
        // The gateway has no user to answer questions about calls in its own name.
        let linked = self
            .members
            .linked(link)
            .filter(|(own, _)| own.handle.is_some());
        let (own, caller) = linked.ok_or(Cause::Moot)?;
        let kind = KindRef::request(method.as_str(), None).map_err(|_| Cause::Malformed)?;
        if !member.capabilities.admits(kind, &[caller.id.as_str()]) {
            return Err(Cause::NotAdmitted.into());
        }
        let asked = || {
            let open = own.open.iter().filter_map(|id| self.operations.get(*id));
            open.filter(|open| open.state.is_ask()).count()
        };
        let full = own.open.len() >= self.limits.operations_per_link_max
            || self.operations.len() >= self.limits.operations_max
            || member.open >= self.limits.asks_per_server_max
            || asked() >= self.limits.asks_per_link_max
            || self.asked_by(seat, own.seat) >= self.limits.asks_per_server_and_participant_max;
        let rounds = call
            .and_then(|call| self.operations.get(call))
            .map_or(0, |open| open.rounds);
        if full {
            return Err(Cause::Limit.into());
        }
        if rounds >= self.limits.rounds_max {
            let refusal = Some(refusals::of_rounds(self.limits.rounds_max));
            return Err(Refused {
                cause: Cause::Limit,
                refusal,
            });
        }
        Ok((
            seat,
            link,
            call,
            self.receiver(link, call).ok_or(Cause::Moot)?,
        ))
    }

    /// Number of a server's questions that wait for a participant, on all its links together.
    fn asked_by(&self, server: Seat, participant: Seat) -> usize {
        let link = self
            .server_link(server)
            .and_then(|link| self.members.link(link));
        let open = link.map_or(&[][..], |link| &link.open);
        let to = |id: &&OperationId| {
            let link = self
                .operations
                .get(**id)
                .and_then(|open| self.members.link(open.link));
            link.is_some_and(|link| link.seat == participant)
        };
        open.iter().filter(to).count()
    }

    /// Ends a question that a caller has answered, or that could not reach it.
    pub(crate) fn answer_ask(&mut self, id: OperationId, end: End<H::Answer>) {
        let Some(question) = self.close_ask(id) else {
            return;
        };
        self.effects.push(match end {
            End::Answered { answer, .. } => Effect::SettleAsk { question, answer },
            End::Failed(refusal) => Effect::RefuseAsk { question, refusal },
        });
    }

    /// Cancels a question that its server withdraws.
    pub(crate) fn withdraw_ask(&mut self, id: OperationId) {
        self.cancel_at_caller(id);
        self.close_ask(id);
    }

    /// Ends a question from the gateway's side: the topic cancels it at its caller and refuses its
    /// server.
    pub(crate) fn refuse_ask(&mut self, id: OperationId, cause: Cause) {
        self.cancel_at_caller(id);
        if let Some(question) = self.close_ask(id) {
            self.effects.push(Effect::RefuseAsk {
                question,
                refusal: refusals::plain(cause),
            });
        }
    }

    fn cancel_at_caller(&mut self, id: OperationId) {
        let Some(open) = self.operations.get(id) else {
            return;
        };
        let State::Asked { about } = open.state else {
            return;
        };
        // A caller that is asked by answers comes back anyway.
        if about.is_some_and(|call| self.pauses(call)) {
            return;
        }
        if let Some(to) = self.receiver(open.link, about) {
            self.effects.push(Effect::CancelAsk { operation: id, to });
        }
    }

    /// Ends the questions of a session that is over.
    pub(crate) fn end_session_asks(&mut self, link: LinkId, server: &ParticipantId) {
        let Some(seat) = self.members.server(server) else {
            return;
        };
        self.refuse_asks(link, Cause::Moot, |_, ask| {
            ask.server == seat && ask.state == (State::Asked { about: None })
        });
    }

    /// Ends the questions about a call.
    pub(crate) fn end_asks_about(&mut self, call: OperationId) {
        let Some(open) = self.operations.get(call).filter(|open| open.asks > 0) else {
            return;
        };
        if let Some(asker) = self.server_link(open.server) {
            let about = State::Asked { about: Some(call) };
            self.refuse_asks(asker, Cause::Moot, |_, ask| ask.state == about);
        }
    }

    /// Ends the questions of a server that are no longer admitted.
    pub(crate) fn withdraw_asks(&mut self, seat: Seat) {
        let Some(asker) = self.server_link(seat) else {
            return;
        };
        self.refuse_asks(asker, Cause::Withdrawn, |topic, ask| {
            let asker = topic.members.get(seat);
            let caller = topic.members.of_link(ask.link);
            !asker.zip(caller).is_some_and(|(asker, caller)| {
                admits_kind(
                    &asker.capabilities,
                    ask.method.as_str(),
                    None,
                    caller.id.as_str(),
                )
            })
        });
    }

    /// Ends the questions that are open at a link and for which `ends` holds, in the order of
    /// opening.
    fn refuse_asks(
        &mut self,
        link: LinkId,
        cause: Cause,
        ends: impl Fn(&Self, &Operation<H>) -> bool,
    ) {
        for id in self.open_of(link) {
            if self
                .operations
                .get(id)
                .is_some_and(|open| open.state.is_ask() && ends(self, open))
            {
                self.refuse_ask(id, cause);
            }
        }
    }

    /// The link of a server, at which its questions are open.
    pub(crate) fn server_link(&self, seat: Seat) -> Option<LinkId> {
        self.members.get(seat)?.links.first().copied()
    }

    /// Removes a question. The caller of this function settles it.
    pub(crate) fn close_ask(&mut self, id: OperationId) -> Option<H::Question> {
        let closed = self.operations.remove(id)?;
        self.members.finish(closed.link, id);
        if let Some(asker) = self.server_link(closed.server) {
            self.members.finish(asker, id);
        }
        if let State::Asked { about: Some(call) } = closed.state
            && let Some(call) = self.operations.get_mut(call)
        {
            call.asks = call.asks.saturating_sub(1);
        }
        closed.handle.question().cloned()
    }
}
