//! One simulated topic: its steps, and the invariants after each.

use std::sync::Arc;

use model::{Capabilities, LinkId, ListKind, Narrowing, OperationId, ParticipantId, TopicName};
use topic::{Listing, Now, PublicTarget, Tightening, TopicConfig, UpstreamNames};

use crate::{
    books::{Books, envelopes::DIRECT, interests::same, limits::LIMITS},
    names::{CALLERS, configured, id},
    numbers::{Effect, Effects, Event, Topic},
    prng::Prng,
    shell::Shell,
    turn::Turn,
    variants,
};

/// One entry of a link's list: public name, whether it is held, server, and own name.
type Entries = Vec<(String, bool, ParticipantId, Arc<str>)>;

/// Capabilities of the scopes of access tokens.
const TOKENS: [&[&str]; 4] = [
    &[],
    &["mcp/proposal:*", "mcp/response:*", "chat"],
    &["mcp/request:tools/*", "mcp/request:resources/read:*"],
    &["mcp/*"],
];

const HOUR_MS: usize = 3_600_000;
/// The wall clock when the steady one begins.
const WALL_MS: u64 = 1_700_000_000_000;

pub(crate) struct World {
    pub(crate) topic: Topic,
    pub(crate) prng: Prng,
    /// Draws tokens, and what comes with another configuration.
    pub(crate) beside: Prng,
    pub(crate) books: Books,
    /// The mailboxes between the topic and its addressees.
    pub(crate) shell: Shell,
    /// Draws the order in which mailboxes are emptied.
    interleaving: Prng,
    pub(crate) next: u64,
    pub(crate) now_ms: u64,
    /// The time by which the wall clock is ahead of the steady one.
    ahead_ms: u64,
    /// The life of the topic's last step, and its time.
    given: Option<(u64, u64)>,
    /// The number of the topic's life: each crash begins another.
    pub(crate) life: u64,
    /// The number of a link that was accepted and has not joined yet.
    pub(crate) accepted: Option<LinkId>,
    pub(crate) seed: u64,
    pub(crate) recorded: bool,
    pub(crate) log: Vec<String>,
}

impl World {
    pub(crate) fn new(seed: u64, recorded: bool) -> Self {
        let configured = configured();
        let topic = Self::topic(&configured, 0);
        let books = Books {
            configured,
            ..Books::default()
        };
        let prng = Prng(seed);
        let beside = Prng(!seed);
        let interleaving = Prng(seed.rotate_left(32));
        let shell = Shell::default();
        let (next, now_ms, given, life, accepted, log) = <_>::default();
        let ahead_ms = WALL_MS;
        Self {
            topic,
            prng,
            beside,
            books,
            shell,
            interleaving,
            next,
            now_ms,
            ahead_ms,
            given,
            life,
            accepted,
            seed,
            recorded,
            log,
        }
    }

    pub(crate) fn topic(configured: &[UpstreamNames], epoch: u64) -> Topic {
        let mut config = TopicConfig::new(TopicName::new("main").unwrap(), configured.to_vec());
        config.settings.limits = LIMITS;
        config.direct = DIRECT;
        config.epoch = epoch;
        Topic::new(config)
    }

    /// Lets some callers join, and servers send their lists.
    pub(crate) fn open(&mut self) {
        for server in self.books.configured.clone() {
            if server.builtin || !self.prng.one_in(5) {
                self.serve(&server.id);
                self.list(&server.id);
            }
        }
        self.keep();
        (0..4).for_each(|_| self.join());
    }

    /// Draws the access token of a request: most are good for all that their participant may do.
    pub(crate) fn token(&mut self) -> Option<Narrowing> {
        self.token_in(8)
    }

    /// Draws the access token of a caller that comes back. Few do, so that more of theirs are too
    /// small.
    pub(crate) fn token_of_return(&mut self) -> Option<Narrowing> {
        self.token_in(2)
    }

    fn token_in(&mut self, tokens: usize) -> Option<Narrowing> {
        let few = self.beside.one_in(tokens);
        let scopes = self.beside.any(&TOKENS);
        few.then(|| Narrowing {
            to: Arc::new(Capabilities::parse(scopes.iter().copied()).unwrap()),
            step_up: None,
        })
    }

    /// Draws what a rule takes of a request, if its sender may make that.
    pub(crate) fn tightening(&mut self) -> Option<Tightening> {
        match self.beside.below(48) {
            0 => Some(Tightening::Ask),
            1 => Some(Tightening::Reject { by: "r1.1".into() }),
            _ => None,
        }
    }

    /// Carries out some effects of earlier steps, then draws one event and takes its step.
    pub(crate) fn step(&mut self) {
        self.shell.carry_out_some(&mut self.interleaving);
        self.pass_time();
        match self.beside.below(80) {
            0 => self.brakes(),
            1 => self.rejects(),
            2..5 => self.claim(),
            _ => {}
        }
        match self.prng.below(100) {
            0..7 => self.join(),
            7..9 => self.leave(),
            9..12 => self.regrant(),
            12 => self.revoke(),
            13..16 => self.listed(),
            16 => self.session(),
            98 if self.prng.one_in(2) => self.available(),
            17 => self.configure(),
            18 => self.reserve(),
            19..30 => self.request(),
            30..33 => self.tasks(),
            33..38 => self.answer(),
            38..42 => self.ask(),
            42 if self.prng.one_in(4) => self.go_on(),
            42..44 => self.cancel(),
            44..50 => self.propose_held(),
            50..56 => self.say(),
            56..60 => self.propose(),
            60..66 => self.fulfil(),
            66..69 => self.answer_in_room(),
            69..73 => self.decide(),
            73 => self.describe(),
            74..83 => self.journal(),
            83..86 => self.execute(),
            86 => self.resume(),
            87 => self.come_back(),
            88 => self.wait(),
            89..92 => self.notice(),
            92 => self.announce(),
            93..95 => self.tick(),
            95..97 => self.story(),
            97 => self.keep(),
            98 if self.prng.one_in(4) => self.stop(),
            98 => self.read(),
            _ if self.prng.one_in(3) => self.crash(),
            _ => self.tick(),
        }
    }

    /// Mostly a moment passes. Now and then the clock stands, or jumps forward by hours, as on a
    /// machine that slept.
    fn pass_time(&mut self) {
        let passed_ms = match self.prng.below(100) {
            0 => {
                (
                    HOUR_MS + self.prng.below(11 * HOUR_MS),
                    self.books.count("the clock jumped"),
                )
                    .0
            }
            1..6 => (0, self.books.count("the clock stood")).0,
            _ => self.prng.below(400),
        };
        self.now_ms += passed_ms as u64;
        let step_ms = self.prng.below(HOUR_MS) as u64;
        match self.prng.below(200) {
            0 => {
                self.ahead_ms = (
                    self.ahead_ms + step_ms,
                    self.books.count("the wall clock jumped"),
                )
                    .0
            }
            1 => {
                self.ahead_ms = (
                    self.ahead_ms - step_ms,
                    self.books.count("the wall clock was set back"),
                )
                    .0
            }
            _ => {}
        }
        (self.books.now_ms, self.books.wall_ms) = (self.now_ms, self.wall_ms());
    }

    /// The wall clock, as on a machine that may have slept, or whose clock was set.
    pub(crate) fn wall_ms(&self) -> u64 {
        self.ahead_ms + self.now_ms
    }

    /// The time that the topic is given: of two steps in one moment the second may have an earlier
    /// one, which counts as that.
    fn given_ms(&mut self) -> u64 {
        let stands = self.given == Some((self.life, self.now_ms));
        self.given = Some((self.life, self.now_ms));
        if !stands || !self.prng.one_in(4) {
            return self.now_ms;
        }
        self.books.count("the clock went back");
        let back_ms = self.prng.any(&[1, 500, HOUR_MS, 100 * HOUR_MS]);
        self.now_ms.saturating_sub(back_ms as u64)
    }

    /// Takes a step, and checks the invariants of every event.
    pub(crate) fn live(&mut self, event: Event<'_>, turn: Turn) -> Effects {
        if self.recorded {
            self.log.push(format!("{} {event:?}", self.now_ms));
        }
        self.books.count(variants::event(&event));
        let given_ms = self.given_ms();
        let before = if touches_lists(&event) {
            self.seen()
        } else {
            Vec::new()
        };
        self.books.wall_ms = self.wall_ms();
        let effects = self.topic.step(
            Now {
                steady_ms: given_ms,
                wall_ms: self.wall_ms(),
            },
            event,
        );
        if self.recorded {
            self.log
                .extend(effects.room.iter().map(|effect| format!("    {effect:?}")));
            self.log
                .extend(effects.all.iter().map(|effect| format!("    {effect:?}")));
        }
        self.books.enter(&effects, &turn, self.now_ms);
        self.shell.deliver(&effects.all);
        self.check();
        if !before.is_empty() {
            self.check_changes(&effects, &before);
            self.check_lists();
        }
        effects
    }

    /// The topic's queries agree with the books.
    fn check(&self) {
        let topic = &self.topic;
        let books = &self.books;
        assert_eq!(topic.operations_len(), books.open_len());
        assert_eq!(topic.parked_len(), books.parked_len());
        assert_eq!(topic.proposals_len(), books.deals_open());
        assert_eq!(topic.links_len(), books.links.len() + books.servers.len());
        assert_eq!(
            topic.participants_len(),
            books.room.here.len() + books.away.len()
        );
        let seen: Vec<_> = topic
            .participants()
            .into_iter()
            .map(|present| present.person.id)
            .collect();
        assert_eq!(seen.len(), books.room.here.len());
        assert!(seen.iter().all(|id| books.room.here.contains(id)));
        assert!(
            books
                .calls
                .keys()
                .chain(books.questions.keys())
                .all(|id| topic.is_open(*id))
        );
        for (link, own) in &books.links {
            assert_eq!(topic.is_busy(*link), books.open_of(*link) > 0);
            assert_eq!(
                (topic.level(*link), topic.handle(*link)),
                (own.level, Some(own.handle))
            );
            let mut asked = topic.questions(*link);
            asked.sort_unstable();
            let own = books
                .questions
                .values()
                .filter(|open| open.link == *link)
                .map(|open| open.question);
            assert_eq!(asked, own.collect::<Vec<_>>());
        }
        for id in books.deals.keys() {
            let shown = topic.proposal(*id).map(|view| view.claims);
            let by = shown.into_iter().flatten().map(|one| one.by);
            assert_eq!(by.collect::<Vec<_>>(), books.claimants(*id), "{id}");
        }
        self.check_tasks();
        assert_eq!(
            topic.next_message().offset,
            books.room.published.len() as u64
        );
        let waits = books.deals.values().any(|deal| deal.is_pending());
        assert!(!waits || topic.next_deadline_ms().is_some());
    }

    /// No task serves another participant than its holder, or a holder without the right to it.
    fn check_tasks(&self) {
        let topic = &self.topic;
        let books = &self.books;
        assert_eq!(topic.tasks_len(), books.tasks.len());
        for by in CALLERS.map(id) {
            let mut theirs = topic.tasks_of(&by, None);
            theirs.sort_unstable();
            let had = books
                .tasks
                .values()
                .filter(|task| books.has_task(&by, task));
            let mut had: Vec<u64> = had.map(|task| task.handle).collect();
            had.sort_unstable();
            assert_eq!(theirs, had, "the tasks of {by}");
            for task in books.tasks.values() {
                let has = books.has_task(&by, task).then_some(task.handle);
                assert_eq!(topic.task_of(&by, None, &task.public), has);
            }
        }
        for (id, task) in &books.tasks {
            assert_eq!(
                topic.request_awaiting_task(*id),
                task.waiting.last().copied()
            );
        }
    }

    fn seen(&self) -> Vec<((LinkId, ListKind), Entries)> {
        let here = self
            .books
            .links
            .keys()
            .filter(|link| self.topic.participant(**link).is_some());
        let each = here.flat_map(|link| ListKind::ALL.map(|list| (*link, list)));
        each.map(|(link, list)| ((link, list), self.entries(link, list)))
            .collect()
    }

    fn entries(&self, link: LinkId, list: ListKind) -> Entries {
        let Some(snapshot) = self.topic.list_snapshot(link, None) else {
            return Vec::new();
        };
        let seen = snapshot.list(list).into_iter();
        let entry = |one: Listing<'_>| {
            (
                one.public.into_owned(),
                one.held,
                one.upstream.clone(),
                one.own.clone(),
            )
        };
        seen.map(entry).collect()
    }

    /// A caller whose list has changed is notified at each of its receivers.
    fn check_changes(&self, effects: &Effects, before: &[((LinkId, ListKind), Entries)]) {
        for ((link, list), before) in before {
            if !self.books.links.contains_key(link) || self.entries(*link, *list) == *before {
                continue;
            }
            for receiver in self.books.receivers(*link, list.notified()) {
                let notified = effects.all.iter().filter(|effect| {
                    matches!(effect, Effect::ListChanged { list: of, to }
                        if *of == list.notified() && same(to, &receiver))
                });
                assert_eq!(
                    notified.count(),
                    1,
                    "{link} was not notified of {list:?} once at {receiver:?}"
                );
            }
        }
    }

    /// Listed entries are unique, may be used or proposed, and lead back to their server.
    fn check_lists(&mut self) {
        let links: Vec<LinkId> = self.books.links.keys().copied().collect();
        let Some(link) = self.prng.pick(&links).copied() else {
            return;
        };
        let snapshot = self.topic.list_snapshot(link, None).unwrap();
        for list in ListKind::ALL {
            let all = snapshot.list(list);
            let names: std::collections::BTreeSet<&str> =
                all.iter().map(|one| &*one.public).collect();
            assert_eq!(names.len(), all.len(), "public names are unique");
            for one in &all {
                let (method, target) = match list {
                    ListKind::Tools => ("tools/call", PublicTarget::Tool(&one.public)),
                    ListKind::Prompts => ("prompts/get", PublicTarget::Prompt(&one.public)),
                    ListKind::Resources => ("resources/read", PublicTarget::Uri(&one.public)),
                    ListKind::Skills => ("skills/get", PublicTarget::Uri(&one.public)),
                    ListKind::Templates => continue,
                };
                let route = self.topic.lookup(link, target).unwrap();
                assert_eq!((route.upstream, &*route.own), (one.upstream, &**one.own));
                assert_eq!(
                    self.topic.admits(link, None, method, Some(target)),
                    !one.held
                );
            }
        }
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A new id; now and then a used one, open or over, which must do no harm.
    pub(crate) fn operation(&mut self) -> OperationId {
        let known: Vec<OperationId> = self.books.calls.keys().copied().collect();
        match self.prng.pick(&known) {
            Some(known) if self.prng.one_in(30) => *known,
            _ => OperationId(u128::from(self.number())),
        }
    }

    pub(crate) fn fresh(&mut self) -> OperationId {
        OperationId(u128::from(self.number()))
    }

    /// Mostly a caller's link; sometimes a server's, or one that is not in the topic.
    pub(crate) fn any_link(&mut self) -> LinkId {
        let mut links: Vec<LinkId> = self.books.links.keys().copied().collect();
        if self.prng.one_in(15) {
            links = self
                .books
                .servers
                .values()
                .map(|served| served.link)
                .collect();
        }
        self.prng
            .pick(&links)
            .copied()
            .filter(|_| !self.prng.one_in(40))
            .unwrap_or(LinkId(9_999_999))
    }

    /// Mostly an open call or question, sometimes one that is over.
    pub(crate) fn any_open(&mut self) -> OperationId {
        let calls = self.books.calls.keys();
        let open: Vec<OperationId> = calls.chain(self.books.questions.keys()).copied().collect();
        let over = OperationId(u128::from(self.next / 2));
        self.prng
            .pick(&open)
            .copied()
            .filter(|_| !self.prng.one_in(8))
            .unwrap_or(over)
    }

    pub(crate) fn any_server(&mut self) -> ParticipantId {
        let configured = self.books.configured.clone();
        self.prng.any(&configured).id
    }
}

/// Whether this event may change callers' lists.
fn touches_lists(event: &Event<'_>) -> bool {
    match event {
        Event::Join(_) | Event::Leave { .. } | Event::Revoke { .. } | Event::Regrant { .. } => true,
        Event::Disown { .. } => false,
        Event::Configure(_) | Event::Attach { .. } | Event::Detach { .. } => true,
        Event::Listed { .. } => true,
        Event::Available { .. } => false,
        Event::Request(_) | Event::Resume(_) | Event::Wait { .. } | Event::Ask(_) => false,
        Event::Answer { .. } | Event::Cancel { .. } | Event::Proceed { .. } => false,
        Event::Say(_) | Event::Announce { .. } => false,
        Event::Execute { .. } | Event::Propose { .. } | Event::Unproposable { .. } => false,
        Event::ProposePlan(_) | Event::RunStep(_) => false,
        Event::Restore(_) | Event::Closed { .. } => false,
        Event::Decide { .. } | Event::Describe { .. } | Event::Written { .. } => false,
        Event::Claim(_) => false,
        Event::MayBecomeTask { .. } | Event::Task(_) | Event::TaskWritten { .. } => false,
        Event::TaskChanged { .. } | Event::SessionLost { .. } => false,
        Event::Tick | Event::Stop | Event::Notice { .. } | Event::Brake { .. } => false,
    }
}

/// Prints the last events of a run that fails.
impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() && self.recorded {
            let last = self.log.len().saturating_sub(60);
            eprintln!("seed {}:\n{}", self.seed, self.log[last..].join("\n"));
        }
    }
}
