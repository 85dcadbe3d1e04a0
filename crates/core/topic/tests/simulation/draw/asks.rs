//! Questions of servers.

use model::{KindRef, LinkId, Method, OperationId, ParticipantId};
use topic::{About, Ask, Cause};

use crate::{
    books::{
        Books,
        calls::{Call, Place},
        limits::LIMITS,
        questions::Question,
    },
    numbers::{Effect, Event},
    seen::cause_of_ask,
    turn::Turn,
    world::World,
};

impl Books {
    /// Whether the configured capabilities of a server admit a question to a caller.
    fn may_ask(&self, server: &ParticipantId, method: &str, caller: &ParticipantId) -> bool {
        let kind = KindRef::request(method, None);
        kind.is_ok_and(|kind| self.asking[server].admits(kind, &[caller.as_str()]))
    }

    fn must_ask(
        &self,
        server: &ParticipantId,
        about: About,
        method: &str,
    ) -> Result<LinkId, Cause> {
        if !self.servers.contains_key(server) {
            return Err(Cause::Moot);
        }
        let link = match self.reached_about(server, about).ok_or(Cause::Moot)? {
            About::Task { .. } => None,
            About::Call(call) => {
                let open = self.calls.get(&call);
                let at = |place| matches!(place, Place::AtServer | Place::Paused);
                let open = open.filter(|open| at(open.place) && open.server == *server);
                open.filter(|open| !open.answered).map(|open| open.link)
            }
            About::Session(link) => {
                let own = self
                    .links
                    .get(&link)
                    .filter(|own| own.attached.contains(server));
                own.map(|_| link)
            }
        };
        // The gateway's own calls have no caller to answer questions.
        let link = link
            .filter(|link| self.links.contains_key(link))
            .ok_or(Cause::Moot)?;
        let caller = self.owner(link).ok_or(Cause::Moot)?;
        KindRef::request(method, None).map_err(|_| Cause::Malformed)?;
        if !self.may_ask(server, method, &caller) {
            return Err(Cause::NotAdmitted);
        }
        let own_calls = self
            .calls
            .values()
            .filter(|open| open.by == *server && !self.serves(server))
            .count();
        let full = self.open_of(link) >= LIMITS.operations_per_link_max
            || self.open_len() >= LIMITS.operations_max
            || self.asks_by(server) + own_calls >= LIMITS.asks_per_server_max
            || self.asks_of(link) >= LIMITS.asks_per_link_max
            || self.asks_between(server, &caller) >= LIMITS.asks_per_server_and_participant_max
            || self
                .asked_call(server, about)
                .is_some_and(|open| open.rounds >= LIMITS.rounds_max);
        if full { Err(Cause::Limit) } else { Ok(link) }
    }

    /// The call or session that a question is about: about a task, the request that waits for its
    /// result, else the session of its holder's own.
    fn reached_about(&self, server: &ParticipantId, about: About) -> Option<About> {
        let About::Task { task, session } = about else {
            return Some(about);
        };
        let task = self.tasks.get(&task)?;
        let fits = task.right.server == *server && self.may_have(&task.holder, &task.right);
        let waiting = task.waiting.last().map(|call| About::Call(*call));
        let own = session.filter(|link| self.owner(*link).as_ref() == Some(&task.holder));
        waiting.or(own.map(About::Session)).filter(|_| fits)
    }

    /// The call that a question is about.
    fn asked_call(&self, server: &ParticipantId, about: About) -> Option<&Call> {
        match self.reached_about(server, about)? {
            About::Task { .. } => None,
            About::Call(call) => self.calls.get(&call),
            About::Session(_) => None,
        }
    }

    /// Every open question is still admitted.
    pub(crate) fn check_asks(&self) {
        for (operation, open) in &self.questions {
            let caller = &self.links[&open.link].participant;
            assert!(
                self.may_ask(&open.server, open.method, caller),
                "{operation} is asked without leave"
            );
        }
    }
}

impl World {
    pub(crate) fn ask(&mut self) {
        let operation = self.operation();
        let about = if self.prng.one_in(4) {
            About::Session(self.any_link())
        } else {
            About::Call(self.any_open())
        };
        let mut server = self.any_server();
        if let About::Call(call) = about
            && let Some(open) = self.books.calls.get(&call)
            && !self.prng.one_in(5)
        {
            server = open.server.clone();
        }
        let methods = [
            "sampling/createMessage",
            "elicitation/create",
            "roots/list",
            "tools/call",
            "a:b",
        ];
        let method = if self.prng.one_in(6) {
            self.prng.any(&methods)
        } else {
            methods[self.prng.below(3)]
        };
        self.asks(operation, &server, about, method);
    }

    pub(crate) fn asks(
        &mut self,
        operation: OperationId,
        server: &ParticipantId,
        about: About,
        method: &'static str,
    ) {
        let question = self.number();
        let tag = self.prng.one_in(2).then(|| self.prng.below(3) as u8);
        let ignored = self.books.calls.contains_key(&operation)
            || self.books.questions.contains_key(&operation);
        let must = self.books.must_ask(server, about, method);
        let of_call = match self.books.reached_about(server, about) {
            Some(About::Call(call)) => Some(call),
            Some(About::Session(_) | About::Task { .. }) | None => None,
        };
        if let (About::Task { .. }, Ok(_)) = (about, must) {
            self.books.count("asked about a task");
        }
        let link = must.unwrap_or(LinkId(0));
        let server_id = server.clone();
        let order = 0;
        let cancelled = false;
        let fresh = Question {
            question,
            link,
            server: server_id,
            about: of_call,
            method,
            tag,
            order,
            cancelled,
        };
        let about_call = self
            .books
            .asked_call(server, about)
            .filter(|open| open.pauses && must.is_ok() && !ignored);
        let pauses = about_call.is_some();
        if pauses {
            self.books.enter_question(operation, fresh.clone());
        }
        let turn = Turn {
            question: Some((operation, fresh)),
            ..Turn::default()
        };
        let event = Event::Ask(Ask {
            server,
            operation,
            tag,
            about,
            method: Method::Known(method),
            question,
        });
        let effects = self.live(event, turn);
        match (effects.all.as_slice(), must) {
            ([], _) => assert!(ignored || pauses),
            ([Effect::Ask { link: asked, .. }], Ok(link)) => assert_eq!(*asked, link),
            ([Effect::RefuseAsk { refusal, .. }], Err(must)) => {
                assert_eq!(cause_of_ask(refusal), must)
            }
            other => panic!("{other:?}"),
        }
    }
}
