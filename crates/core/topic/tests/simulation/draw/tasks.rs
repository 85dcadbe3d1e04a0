//! Tasks at servers: calls that become one, requests, questions and notifications about them, and
//! their ends.

use model::{LinkId, Method, Narrowing, OperationId, ParticipantId};
use topic::{
    About, Cause, Interest, Logs, NamedTask, NewTask, PublicTarget, RequestEvent, TaskOrigin,
    TaskRight, Verdict,
};

use crate::{
    books::{
        calls::{Call, Place},
        tasks::{Right, Stage, Task, TaskTurn},
    },
    draw::requests::blank,
    names::{CALLERS, id, parse},
    numbers::{Effect, Event},
    turn::Turn,
    world::World,
};

/// The longest life of a task.
const LIFE_MS: usize = 5_000;

/// Whether an effect is the end of a task.
pub(crate) fn is_task_end(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::CancelTask { .. } | Effect::ForgetTask { .. } | Effect::LoseTask { .. }
    )
}

fn turn(tasks: TaskTurn) -> Turn {
    Turn {
        tasks,
        ..Turn::default()
    }
}

impl Right {
    fn as_ref(&self) -> TaskRight<'_> {
        TaskRight {
            server: &self.server,
            tool: &self.tool,
            held: self.held,
        }
    }
}

impl World {
    pub(crate) fn tasks(&mut self) {
        match self.prng.below(10) {
            0..4 => self.becomes_task(),
            4 => self.names_task(),
            5 => self.writes_task(),
            6 => self.changes_task(),
            7 => self.loses_session(),
            8 => self.asks_of_task(),
            _ => self.asks_about_task(),
        }
    }

    pub(crate) fn any_task(&mut self) -> Option<(OperationId, Task)> {
        let all: Vec<OperationId> = self.books.tasks.keys().copied().collect();
        let id = *self.prng.pick(&all)?;
        Some((id, self.books.tasks[&id].clone()))
    }

    /// A task of a server's, which the topic takes or gives back.
    fn new_task(&mut self, holder: ParticipantId, right: Right, stage: Stage) -> Task {
        let handle = self.number();
        let durable = self.prng.one_in(3);
        Task {
            handle,
            holder,
            right,
            session: self.prng.below(3) as u64,
            public: format!("t{handle}"),
            stage,
            durable,
            over: self.prng.one_in(8),
            lost: false,
            until_ms: self.now_ms + 1 + self.prng.below(LIFE_MS) as u64,
            link: None,
            waiting: Vec::new(),
        }
    }

    /// A task with a token that changes nothing for it.
    fn opens_task(&mut self, id: OperationId, task: &Task, origin: TaskOrigin, turn: Turn) {
        let token = self.token();
        self.opens_task_with(token.as_ref(), id, task, origin, turn);
    }

    fn opens_task_with(
        &mut self,
        token: Option<&Narrowing>,
        id: OperationId,
        task: &Task,
        origin: TaskOrigin,
        turn: Turn,
    ) {
        let new = NewTask {
            task: id,
            origin,
            holder: &task.holder,
            right: task.right.as_ref(),
            narrowing: token,
            session: task.session,
            own: task.public.as_str().into(),
            public: task.public.as_str().into(),
            link: task.link,
            over: task.over,
            until_ms: task.until_ms,
            handle: task.handle,
        };
        let effects = self.live(Event::Task(Box::new(new)), turn);
        assert!(effects.all.iter().all(is_task_end));
    }

    /// A server answers a call with a task, mostly while the call is open.
    pub(crate) fn becomes_task(&mut self) {
        let calls = self.books.calls.iter().filter(|(id, open)| {
            open.method == "tools/call"
                && matches!(open.place, Place::AtServer | Place::Paused)
                && open.server.as_str() != model::GATEWAY
                && !self.books.tasks.contains_key(id)
        });
        let calls: Vec<(OperationId, Call)> = calls.map(|(id, open)| (*id, open.clone())).collect();
        let Some((operation, open)) = self.prng.pick(&calls).cloned() else {
            return self.request();
        };
        if self.prng.one_in(2) {
            let effects = self.live(Event::MayBecomeTask { operation }, Turn::default());
            assert!(effects.all.is_empty() && effects.verdict.is_none());
        }
        let right = Right {
            server: open.server.clone(),
            tool: open.public.clone().unwrap_or_default(),
            held: open.proposal.is_some(),
        };
        let follows = self.prng.one_in(3);
        let mut task = self.new_task(open.by.clone(), right, Stage::Becoming { follows });
        task.link = Some(open.link);
        let origin = TaskOrigin::Call {
            follows,
            durable: task.durable,
        };
        if self.prng.one_in(6) {
            // Its call has ended.
            let late = TaskTurn {
                late: Some((task.handle, task.over)),
                ..TaskTurn::default()
            };
            let id = self.fresh();
            return self.opens_task(id, &task, origin, turn(late));
        }
        task.waiting.extend(follows.then_some(operation));
        self.books.tasks.insert(operation, task.clone());
        self.opens_task(operation, &task, origin, Turn::default());
    }

    /// A request names a task that the topic does not have, or the journal had one.
    fn names_task(&mut self) {
        let holder = id(self.prng.any(&CALLERS));
        let server = self.any_server();
        let right = Right {
            tool: format!("{server}_a"),
            server,
            held: self.prng.one_in(3),
        };
        let origin = self.prng.any(&[TaskOrigin::Named, TaskOrigin::Journal]);
        let task = self.new_task(holder, right, Stage::Known);
        let operation = self.fresh();
        let token = self.token();
        let may = self
            .books
            .may_have_with(&task.holder, token.as_ref(), &task.right);
        if origin == TaskOrigin::Named && !may {
            let back = TaskTurn {
                given_back: Some(task.handle),
                ..TaskTurn::default()
            };
            return self.opens_task_with(token.as_ref(), operation, &task, origin, turn(back));
        }
        self.books.count("task named");
        self.books.tasks.insert(operation, task.clone());
        self.opens_task_with(token.as_ref(), operation, &task, origin, Turn::default());
    }

    /// After a restart the journal has the tasks that it must have.
    pub(crate) fn restores_tasks(&mut self, tasks: Vec<Task>) {
        for task in tasks {
            let operation = self.fresh();
            let handle = self.number();
            let task = Task {
                handle,
                lost: false,
                link: None,
                waiting: Vec::new(),
                ..task
            };
            self.books.count("task restored");
            self.books.tasks.insert(operation, task.clone());
            self.opens_task(operation, &task, TaskOrigin::Journal, Turn::default());
        }
    }

    pub(crate) fn writes_task(&mut self) {
        let writing = self
            .books
            .tasks
            .iter()
            .find(|(_, task)| task.stage == Stage::Writing)
            .map(|(id, _)| *id);
        let any = self.any_task().map(|(id, _)| id);
        let Some(task) = writing.or(any) else {
            return self.becomes_task();
        };
        let stored = !self.prng.one_in(3);
        let mut tasks = TaskTurn::default();
        if writing.is_some() && stored {
            self.books.tasks.get_mut(&task).unwrap().stage = Stage::Known;
            self.books.count("task written");
        } else if writing.is_some() {
            tasks.unwritten = Some(task);
        }
        self.live(Event::TaskWritten { task, stored }, turn(tasks));
    }

    fn changes_task(&mut self) {
        let Some((task, _)) = self.any_task() else {
            return self.becomes_task();
        };
        let over = self.prng.one_in(3);
        let until_ms = if self.prng.one_in(5) {
            0
        } else {
            self.now_ms + self.prng.below(LIFE_MS) as u64
        };
        let known = self.books.tasks.get_mut(&task).unwrap();
        known.over |= over;
        known.until_ms = until_ms;
        let expires = !matches!(known.stage, Stage::Becoming { .. });
        let tasks = TaskTurn {
            expires,
            ..TaskTurn::default()
        };
        let event = Event::TaskChanged {
            task,
            over,
            until_ms,
        };
        self.live(event, turn(tasks));
    }

    pub(crate) fn loses_session(&mut self) {
        let known = self.any_task().map(|(_, task)| task);
        let server = known
            .as_ref()
            .map_or_else(|| self.any_server(), |task| task.right.server.clone());
        let session = known
            .map(|task| task.session)
            .filter(|session| *session != 0)
            .unwrap_or(1);
        let tasks = TaskTurn {
            lost: Some((server.clone(), session)),
            ..TaskTurn::default()
        };
        let event = Event::SessionLost {
            server: &server,
            session,
        };
        self.live(event, turn(tasks));
    }

    /// A server asks about a task.
    pub(crate) fn asks_of_task(&mut self) {
        let Some((task, known)) = self.any_task() else {
            return self.becomes_task();
        };
        let any = self.any_server();
        let server = if self.prng.one_in(6) {
            any
        } else {
            known.right.server.clone()
        };
        let own = self.books.links_of(&known.holder);
        let own = self.prng.pick(&own).copied();
        let session = own
            .filter(|_| self.prng.one_in(2))
            .unwrap_or(self.any_link());
        let about = About::Task {
            task,
            session: self.prng.one_in(2).then_some(session),
        };
        let operation = self.fresh();
        self.asks(operation, &server, about, "roots/list");
    }

    /// A link asks about a task: mostly its holder's, and mostly one that the topic has.
    pub(crate) fn asks_about_task(&mut self) {
        let Some((_, mut task)) = self.any_task() else {
            return self.becomes_task();
        };
        let is_known = !self.prng.one_in(8);
        if !is_known {
            task.public = "none".to_owned();
            task.lost = self.prng.one_in(2);
        }
        let own = self.books.links_of(&task.holder);
        let all: Vec<LinkId> = self.books.links.keys().copied().collect();
        let own = self.prng.pick(&own).copied();
        let any = self.prng.pick(&all).copied();
        let Some(link) = own.filter(|_| !self.prng.one_in(4)).or(any) else {
            return self.join();
        };
        let method = self
            .prng
            .any(&["tasks/get", "tasks/result", "tasks/result"]);
        let operation = self.fresh();
        let call = self.number();
        let token = self.token();
        let must = self.must_serve(link, token.as_ref(), &task, is_known);
        let server = match must {
            Ok(true) => task.right.server.clone(),
            Ok(false) | Err(_) => ParticipantId::gateway(),
        };
        let by = self.books.owner(link).unwrap();
        let open = Call {
            about: Some(task.right.clone()),
            ..blank(call, link, by, server, method)
        };
        let mut turn = Turn::default();
        turn.calls.insert(call, (operation, open));
        let named = NamedTask {
            public: &task.public,
            session: task.session,
            own: &task.public,
            right: task.right.as_ref(),
            lost: task.lost,
        };
        let request = RequestEvent {
            link,
            operation,
            tag: None,
            method: Method::Known(method),
            target: Some(PublicTarget::Task(&named)),
            interest: Interest::None,
            logs: Logs::OfLink,
            returns: true,
            narrowing: token.as_ref(),
            tightening: None,
            call,
        };
        if let Ok(at_server) = must {
            let waits = at_server && method == "tasks/result";
            self.begins_about(&task, link, waits.then_some(operation));
        }
        let effects = self.live(Event::Request(request), turn);
        match (must, effects.all.as_slice(), &effects.verdict) {
            (Ok(_), [Effect::Deliver { .. }], Some(Verdict::Admitted { .. })) => {}
            (Err(must), [Effect::Refuse { cause, .. }], Some(Verdict::Refused(_))) => {
                self.books.count("request about a task refused");
                return assert_eq!(*cause, must);
            }
            other => panic!("{other:?}"),
        }
        self.books.count("request about a task");
    }

    /// A request about a task is served, and may wait for its result.
    fn begins_about(&mut self, task: &Task, link: LinkId, waits: Option<OperationId>) {
        let mut tasks = self.books.tasks.values_mut();
        if let Some(known) = tasks.find(|known| known.public == task.public) {
            known.link = Some(link);
            known.waiting.extend(waits);
        }
    }

    /// Whether a request about a task goes to its server (true) or to the gateway.
    fn must_serve(
        &mut self,
        link: LinkId,
        token: Option<&Narrowing>,
        task: &Task,
        is_known: bool,
    ) -> Result<bool, Cause> {
        let now_ms = self.now_ms;
        let by = self.books.owner(link).unwrap();
        if !self.books.take_token(&by, now_ms) {
            return Err(Cause::RateLimited);
        }
        if self.books.is_full(link, &by) {
            return Err(Cause::Limit);
        }
        let is_theirs = !is_known || self.books.has_task(&by, task);
        let is_served = is_theirs && self.books.may_have_with(&by, token, &task.right);
        // Under another id the task's own one would be another participant's.
        if !is_served || !self.books.servers.contains_key(&task.right.server) {
            return Err(Cause::Unknown);
        }
        let gateway = ParticipantId::gateway();
        match task.lost {
            true if !self.books.servers.contains_key(&gateway) => Err(Cause::UpstreamDown),
            true => Ok(false),
            false => Ok(true),
        }
    }

    /// A call becomes a task, whose holder asks about it, and it ends in some way.
    pub(crate) fn story_of_tasks(&mut self) {
        let links: Vec<LinkId> = self.books.links.keys().copied().collect();
        let Some(link) = self.prng.pick(&links).copied() else {
            return self.join();
        };
        let by = self.books.owner(link).unwrap();
        self.regrants(&by, parse(&["mcp/*", "chat"]));
        for _ in 0..4 {
            self.request_at(link);
            self.becomes_task();
        }
        let becoming = self.books.tasks.iter();
        let becoming = becoming.filter(|(_, task)| matches!(task.stage, Stage::Becoming { .. }));
        for operation in becoming.map(|(id, _)| *id).collect::<Vec<_>>() {
            match self.prng.below(6) {
                0 => self.asks_of_task(),
                1 => self.cancel(),
                _ => self.answers(operation),
            }
        }
        for _ in 0..2 {
            self.writes_task();
            self.asks_about_task();
            self.asks_of_task();
            self.notice();
        }
        match self.prng.below(6) {
            0 => self.revokes(&by),
            1 => self.regrants(&by, parse(&["mcp/proposal:*", "chat"])),
            2 => self.loses_session(),
            3 => {
                self.now_ms += LIFE_MS as u64;
                self.tick();
            }
            4 => self.leaves(link),
            _ => {}
        }
        self.asks_about_task();
        self.answer();
    }
}
