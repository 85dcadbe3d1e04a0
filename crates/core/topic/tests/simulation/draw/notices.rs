//! Notifications of servers.

use model::{LinkId, LogLevel, OperationId, ParticipantId};
use topic::Subject;

use crate::{
    books::{calls::Place, interests::same},
    names::URIS,
    numbers::{Effect, Event, Receiver},
    turn::Turn,
    world::World,
};

impl World {
    pub(crate) fn notice(&mut self) {
        let levels = [LogLevel::Debug, LogLevel::Warning, LogLevel::Alert];
        let level = self.prng.one_in(3).then(|| self.prng.any(&levels));
        match self.prng.below(5) {
            0 => self.notice_of_session(level),
            1 => self.notice_of_task(),
            2 | 3 => self.notice_of_resource(),
            _ => self.notice_of_call(level),
        }
    }

    /// Sends a notification, and compares its receivers.
    fn notifies(
        &mut self,
        server: &ParticipantId,
        subject: Subject<'_>,
        level: Option<LogLevel>,
        must: &[Receiver],
    ) -> u64 {
        let notice = self.number();
        let effects = self.live(
            Event::Notice {
                server,
                subject,
                level,
                notice,
            },
            Turn::default(),
        );
        let to: Vec<&Receiver> = effects
            .all
            .iter()
            .map(|effect| match effect {
                Effect::Notify {
                    to, notice: own, ..
                } if *own == notice => to,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(to.len(), must.len(), "{subject:?}: {to:?} {must:?}");
        let mut left: Vec<&Receiver> = must.iter().collect();
        for one in to {
            let at = left
                .iter()
                .position(|other| same(one, other))
                .expect("notified where it must not be");
            left.swap_remove(at);
        }
        notice
    }

    fn wants(&self, link: LinkId, level: Option<LogLevel>) -> bool {
        let from = self.books.links.get(&link).and_then(|own| own.level);
        level.is_none() || from.is_none() || level >= from
    }

    fn notice_of_call(&mut self, level: Option<LogLevel>) {
        let call = self.any_open();
        self.notice_about(call, level);
    }

    pub(crate) fn notice_about(&mut self, call: OperationId, level: Option<LogLevel>) {
        let mut server = self.any_server();
        let open = self.books.calls.get(&call).cloned();
        if let Some(open) = open.as_ref().filter(|_| !self.prng.one_in(5)) {
            server = open.server.clone();
        }
        let open = open.filter(|open| open.server == server && self.books.wants_log(open, level));
        let waits = open
            .as_ref()
            .is_some_and(|open| open.place == Place::Paused);
        let open = open.filter(|open| open.place == Place::AtServer && !open.answered);
        let must: Vec<Receiver> = open
            .into_iter()
            .map(|open| Receiver::Call(open.call))
            .collect();
        let notice = self.notifies(&server, Subject::Call(call), level, &must);
        if let Some(open) = self.books.calls.get_mut(&call).filter(|_| waits) {
            open.missed.push(notice);
            self.books.count("notified while paused");
        }
    }

    fn notice_of_session(&mut self, level: Option<LogLevel>) {
        let link = self.any_link();
        let any = self.any_server();
        let own = self.books.links.get(&link).cloned();
        let attached = own.as_ref().and_then(|own| own.attached.first().cloned());
        let server = attached.filter(|_| !self.prng.one_in(4)).unwrap_or(any);
        let own = own.filter(|own| own.notified && own.attached.contains(&server));
        let own =
            own.filter(|_| self.wants(link, level) && self.books.servers.contains_key(&server));
        let must: Vec<Receiver> = own
            .into_iter()
            .map(|own| Receiver::Link(own.handle))
            .collect();
        self.notifies(&server, Subject::Session(link), level, &must);
    }

    /// Whether a subscriber may still subscribe under the spelling that it used.
    fn still_may(&self, link: LinkId, public: &str, server: &ParticipantId) -> bool {
        let Some(by) = self.books.owner(link) else {
            return false;
        };
        self.books.admits(
            &by,
            None,
            "resources/subscribe",
            Some(public),
            server.as_str(),
        )
    }

    fn notice_of_resource(&mut self) {
        let own = self
            .books
            .links
            .values()
            .find_map(|link| link.subscriptions.first().cloned());
        let listened = self
            .books
            .calls
            .values()
            .find_map(|open| open.listen.as_ref()?.resources.first().cloned());
        let known = if self.prng.one_in(2) {
            own.or(listened)
        } else {
            listened
        };
        let (server, uri) = match known.filter(|_| !self.prng.one_in(5)) {
            Some(one) => (one.server, one.own),
            None => (self.any_server(), self.prng.any(&URIS).to_owned()),
        };
        let session = self.prng.one_in(4).then(|| self.any_link());
        let fits = |link: LinkId, public: &str| {
            session.is_none_or(|session| session == link) && self.still_may(link, public, &server)
        };
        let mut must = Vec::new();
        for (link, own) in &self.books.links {
            let subscribed = own
                .subscriptions
                .iter()
                .filter(|one| one.server == server && one.own == uri);
            let subscribed = subscribed.filter(|one| fits(*link, &one.public));
            must.extend(subscribed.map(|_| Receiver::Link(own.handle)));
        }
        for open in self.books.calls.values() {
            let resources = open.listen.iter().flat_map(|listen| &listen.resources);
            let resources = resources.filter(|one| one.server == server && one.own == uri);
            must.extend(
                resources
                    .filter(|one| fits(open.link, &one.public))
                    .map(|_| Receiver::Call(open.call)),
            );
        }
        let must = if self.books.servers.contains_key(&server) {
            must
        } else {
            Vec::new()
        };
        self.notifies(
            &server,
            Subject::Resource { own: &uri, session },
            None,
            &must,
        );
    }

    fn notice_of_task(&mut self) {
        let Some((id, task)) = self.any_task() else {
            return self.tasks();
        };
        let any = self.any_server();
        let server = if self.prng.one_in(6) {
            any
        } else {
            task.right.server.clone()
        };
        let of_call = self.prng.one_in(3);
        if of_call && let Some(waiting) = task.waiting.last().copied() {
            return self.notice_of_waiting(&server, id, waiting);
        }
        let seated = self.books.servers.contains_key(&server);
        let fits = server == task.right.server;
        let mut must = Vec::new();
        if seated && fits && self.books.has_task(&task.holder, &task) {
            for own in self.books.links_of(&task.holder) {
                let listens = self.books.watching(own, &task.public);
                must.extend(listens.into_iter().map(Receiver::Call));
            }
            let last = task.link.and_then(|link| self.books.links.get(&link));
            let last = last.filter(|own| own.participant == task.holder && own.notified);
            must.extend(last.map(|own| Receiver::Link(own.handle)));
        }
        if !must.is_empty() {
            self.books.count("notified of a task");
        }
        let subject = if of_call {
            Subject::TaskCall(id)
        } else {
            Subject::Task(id)
        };
        self.notifies(&server, subject, None, &must);
    }

    /// A notification about the call that became a task, whose result a request waits for.
    fn notice_of_waiting(
        &mut self,
        server: &ParticipantId,
        task: OperationId,
        waiting: OperationId,
    ) {
        let open = self.books.calls[&waiting].clone();
        let fits = open.server == *server && self.books.wants_log(&open, None);
        let waits = fits && open.place == Place::Paused;
        let is_reached = fits && open.place == Place::AtServer && !open.answered;
        let must: Vec<Receiver> = is_reached
            .then_some(Receiver::Call(open.call))
            .into_iter()
            .collect();
        if is_reached {
            self.books.count("notified of a call that became a task");
        }
        let notice = self.notifies(server, Subject::TaskCall(task), None, &must);
        if let Some(open) = self.books.calls.get_mut(&waiting).filter(|_| waits) {
            open.missed.push(notice);
        }
    }
}
