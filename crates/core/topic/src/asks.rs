//! Questions of servers: one current caller, and exactly one end.

use model::{KindRef, LinkId, Method, OperationId, ParticipantId};

use crate::{
    Handles, Limits, Topic,
    admission::admits_kind,
    effect::{Cause, Effect, Receiver},
    event::{About, Ask, End},
    members::{Link, Seat},
    operations::{Handle, Operation, State},
    refusals::{self, Refused},
};

/// The way to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    /// The caller's link.
    pub(crate) link: LinkId,
    /// The open request through which the caller is reached; `None` outside of its requests.
    pub(crate) call: Option<OperationId>,
}

impl Way {
    fn of_call(call: OperationId, link: LinkId) -> Self {
        Self {
            link,
            call: Some(call),
        }
    }
}

/// A question that may be asked.
struct AdmittedAsk<H: Handles> {
    /// The asking server.
    asker: Seat,
    way: Way,
    /// The receiver at the end of this way.
    to: Receiver<H>,
}

impl<H: Handles> Topic<H> {
    /// Asks the caller that a server's question is for, or refuses the question.
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
        let AdmittedAsk { asker, way, to } = match self.admit_ask(server, about, &method) {
            Ok(admitted) => admitted,
            Err(refused) => {
                let refusal = refused.or_else(refusals::plain);
                return self.effects.push(Effect::RefuseAsk { question, refusal });
            }
        };
        if let Some(call) = way.call.and_then(|call| self.operations.get_mut(call)) {
            call.asks += 1;
        }
        let state = State::Asked { about: way.call };
        let handle = Handle::Question(question.clone());
        self.open(
            operation,
            Operation {
                tag,
                ..Operation::new(state, way.link, asker, method, handle)
            },
        );
        // It is open on both sides: the caller answers it, and its server may withdraw it.
        if let Some(link) = self.server_link(asker) {
            self.members.begin(link, operation);
        }
        match way.call {
            // The caller's wire has no questions: it gets this one when its call pauses.
            Some(call) if self.pauses(call) => self.gather(call),
            Some(_) | None => self.effects.push(Effect::Ask {
                operation,
                question,
                link: way.link,
                to,
            }),
        }
    }

    /// The receiver of a question or notification: the caller's open call, or its link.
    pub(crate) fn receiver(&self, way: Way) -> Option<Receiver<H>> {
        let Some(call) = way.call else {
            return self.handle(way.link).map(Receiver::Link);
        };
        let open = self.operations.get(call)?;
        open.handle.call().cloned().map(Receiver::Call)
    }

    /// The way to the caller that a server reaches about a call or session.
    pub(crate) fn reached(&self, server: Seat, about: About) -> Option<Way> {
        match about {
            About::Call(call) => {
                let open = self.operations.get(call)?;
                if !open.is_with(server) {
                    return None;
                }
                Some(Way::of_call(call, open.link))
            }
            About::Session(link) => {
                let index = self.catalog.index(&self.members.get(server)?.id)?;
                if !self.members.link(link)?.is_attached(index) {
                    return None;
                }
                Some(Way { link, call: None })
            }
            About::Task { task, session } => {
                let asked = self.asked_about_task(server, task, session)?;
                self.reached(server, asked)
            }
        }
    }

    /// The way to the caller that a question or notification concerns: the one that the server
    /// reaches, or that of a paused call at the server, whose caller gets further questions and
    /// notifications when it comes back.
    pub(crate) fn concerned_by(&self, server: Seat, about: About) -> Option<Way> {
        if let About::Task { task, session } = about {
            let asked = self.asked_about_task(server, task, session)?;
            return self.concerned_by(server, asked);
        }
        if let About::Call(call) = about
            && let Some(open) = self.operations.get(call)
            && open.server == server
            && matches!(open.state, State::Paused { .. })
        {
            return Some(Way::of_call(call, open.link));
        }
        self.reached(server, about)
    }

    /// Admits a question to the caller that it concerns; takes a token. The topic never guesses the
    /// caller.
    fn admit_ask(
        &mut self,
        server: &ParticipantId,
        about: About,
        method: &Method,
    ) -> Result<AdmittedAsk<H>, Refused> {
        let asker = self.members.server(server).ok_or(Cause::Moot)?;
        // Refused questions count against the server's rate as well.
        self.members
            .get_mut(asker)
            .ok_or(Cause::Moot)?
            .take_token(self.now_ms)?;
        let way = self.concerned_by(asker, about).ok_or(Cause::Moot)?;
        self.may_ask(asker, way, method)?;
        let to = self.receiver(way).ok_or(Cause::Moot)?;
        Ok(AdmittedAsk { asker, way, to })
    }

    /// Whether capabilities and limits admit one more question of a server to this caller.
    fn may_ask(&self, asker: Seat, way: Way, method: &Method) -> Result<(), Refused> {
        let server = self.members.get(asker).ok_or(Cause::Moot)?;
        let (link, caller) = self.members.linked(way.link).ok_or(Cause::Moot)?;
        // The gateway has no user to answer questions about calls in its own name.
        if link.handle.is_none() {
            return Err(Cause::Moot.into());
        }
        let kind = KindRef::request(method.as_str(), None).map_err(|_| Cause::Malformed)?;
        if !server.capabilities.admits(kind, &[caller.id.as_str()]) {
            return Err(Cause::NotAdmitted.into());
        }
        let Limits {
            operations_max,
            operations_per_link_max,
            asks_per_server_max,
            asks_per_link_max,
            asks_per_server_and_participant_max,
            rounds_max,
            ..
        } = self.limits;
        if link.open.len() >= operations_per_link_max
            || self.operations.len() >= operations_max
            || server.open >= asks_per_server_max
            || self.asks_at(link) >= asks_per_link_max
            || self.asked_by(asker, link.seat) >= asks_per_server_and_participant_max
        {
            return Err(Cause::Limit.into());
        }
        let rounds = way
            .call
            .and_then(|call| self.operations.get(call))
            .map_or(0, |open| open.rounds);
        if rounds >= rounds_max {
            return Err(Refused {
                cause: Cause::Limit,
                refusal: Some(refusals::of_rounds(rounds_max)),
            });
        }
        Ok(())
    }

    /// The number of questions that wait for the answer of a link.
    pub(crate) fn asks_at(&self, link: &Link<H>) -> usize {
        let open = link.open.iter().filter_map(|id| self.operations.get(*id));
        open.filter(|open| open.state.is_ask()).count()
    }

    /// The number of a server's questions that wait for a participant, on all its links together.
    fn asked_by(&self, server: Seat, participant: Seat) -> usize {
        let Some(asker) = self.server_link(server) else {
            return 0;
        };
        let Some(asker) = self.members.link(asker) else {
            return 0;
        };
        let asks = asker.open.iter().filter_map(|id| self.operations.get(*id));
        asks.filter_map(|ask| self.members.link(ask.link))
            .filter(|link| link.seat == participant)
            .count()
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
        let way = Way {
            link: open.link,
            call: about,
        };
        if let Some(to) = self.receiver(way) {
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
        let Some(open) = self.operations.get(call) else {
            return;
        };
        // Nearly all calls have none: their ends do not search the questions of their server.
        if open.asks == 0 {
            return;
        }
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
            !topic.is_ask_admitted(seat, ask)
        });
    }

    fn is_ask_admitted(&self, asker: Seat, ask: &Operation<H>) -> bool {
        let Some(asker) = self.members.get(asker) else {
            return false;
        };
        let Some(caller) = self.members.of_link(ask.link) else {
            return false;
        };
        let method = ask.method.as_str();
        admits_kind(&asker.capabilities, method, None, caller.id.as_str())
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

    /// The link of a server, at which its questions are open. Its seat has no other one.
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
