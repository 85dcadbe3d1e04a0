//! Owns one simulated topic: draws events, steps, and checks what followed.
//! Must not know the topic's inside.

use std::{collections::BTreeMap, sync::Arc};

use model::{Capabilities, KindRef, LinkId, OperationId, Outcome, ParticipantId, TopicName};
use topic::{
    About, Cause, Effect, Effects, Event, Limits, ListKind, Target, Topic, TopicConfig, UpstreamNames,
    public_name,
};

use crate::{
    books::{Books, Expected},
    prng::Prng,
};

pub(crate) const CALLERS: [&str; 4] = ["ann", "bob", "cid", "dee"];
pub(crate) const UPSTREAMS: [(&str, &str); 4] =
    [("one", "one"), ("two", "two"), ("bare", ""), ("long", "a-long-prefix")];
pub(crate) const GRANTS: [&[&str]; 9] = [
    &["mcp/*"],
    &["mcp/proposal:*", "mcp/response:*", "chat"],
    &["mcp/proposal:tools/*", "mcp/request:tools/call:*a", "notes/*"],
    &["mcp/request:tools/call:*", "mcp/proposal:prompts/*", "chat"],
    &[],
    &["mcp/request:tools/call:one_*", "mcp/request:resources/read:file:///*"],
    &["mcp/request:tools/*", "mcp/request:prompts/get:two_a"],
    &["mcp/request:resources/*", "mcp/request:completion/complete"],
    &["mcp/request:*/call:*a*", "mcp/request:resources/read:portmoot:*"],
];
pub(crate) const NAMES: [&str; 7] = [
    "a",
    "b",
    "deploy",
    "one_a",
    "proxy",
    "very_long_name_that_goes_on_and_on_until_it_is_cut_somewhere_1",
    "",
];
pub(crate) const URIS: [&str; 5] =
    ["file:///a", "file:///b", "demo://x", "demo://y/1", "portmoot:one/file:///a"];
pub(crate) const TEMPLATES: [&str; 5] =
    ["demo://y/{id}", "file:///{+path}", "file:///dir/{name}", "{broken", "x://{a}{b}"];

/// What one link sees of one list: public name, and whose it is.
type Sight = Vec<(String, String)>;

pub(crate) struct World {
    pub(crate) topic: Topic,
    pub(crate) prng: Prng,
    pub(crate) books: Books,
    pub(crate) grants: BTreeMap<ParticipantId, Arc<Capabilities>>,
    pub(crate) configured: Vec<UpstreamNames>,
    pub(crate) next: u64,
    pub(crate) now_ms: u64,
    pub(crate) seed: u64,
    pub(crate) recorded: bool,
    pub(crate) log: Vec<String>,
}

pub(crate) fn id(name: &str) -> ParticipantId {
    ParticipantId::new(name).unwrap()
}

impl World {
    pub(crate) fn new(seed: u64, recorded: bool) -> Self {
        let mut configured = vec![UpstreamNames::gateway()];
        configured.extend(UPSTREAMS.map(|(name, prefix)| UpstreamNames::new(id(name), prefix)));
        let upstreams = configured.iter().map(|upstream| upstream.id.clone()).collect();
        let books = Books { upstreams, ..Books::default() };
        let (grants, log) = <_>::default();
        let prng = Prng(seed);
        Self {
            topic: Self::topic(&configured),
            prng,
            books,
            grants,
            configured,
            next: 0,
            now_ms: 0,
            seed,
            recorded,
            log,
        }
    }

    pub(crate) fn topic(configured: &[UpstreamNames]) -> Topic {
        let mut config = TopicConfig::new(TopicName::new("main").unwrap(), configured.to_vec());
        config.limits = Limits {
            participants_max: 7,
            links_per_participant_max: 3,
            operations_max: 30,
            operations_per_link_max: 6,
            proposals_max: 8,
            proposals_per_participant_max: 4,
            ..Limits::default()
        };
        Topic::new(config)
    }

    /// Some come in, and say what they have.
    pub(crate) fn open(&mut self) {
        for _ in 0..4 {
            self.join();
            self.join();
            self.listed();
        }
    }

    /// Draws one event and lives through it.
    pub(crate) fn step(&mut self) {
        self.now_ms += self.prng.below(400) as u64;
        match self.prng.below(70) {
            40..45 => self.say(),
            45..50 => self.propose(),
            50..55 => self.decide(),
            55..64 => self.journal(),
            64..66 => self.execute(),
            66 if self.prng.one_in(2) => self.release(),
            66 => self.deal(),
            67 => self.outcome(),
            68 if self.prng.one_in(2) => self.tick(),
            68 => self.deal(),
            69 if self.prng.one_in(4) => self.crash(),
            69 => self.tick(),
            0..5 => self.join(),
            5..7 => self.leave(),
            7 if self.prng.one_in(2) => self.regrant(),
            7 => self.request(),
            8..12 => self.listed(),
            12 => self.session(),
            13..26 => self.request(),
            26..31 => self.answer(),
            31..34 => self.ask(),
            34..36 => self.cancel(),
            36..38 => self.expire(),
            38 => self.configure(),
            _ if self.prng.one_in(3) => self.revoke(),
            _ => self.request(),
        }
    }

    /// At the end everything expires, and nothing is left open.
    pub(crate) fn finish(&mut self) {
        let open: Vec<OperationId> = self.books.open.keys().copied().collect();
        for operation in open {
            self.live(Event::Expire { operation }, Expected::default());
        }
        assert!(self.books.open.is_empty());
        assert_eq!(self.topic.operations_len(), 0);
        self.settle_deals();
        let links: Vec<LinkId> = self.books.links.keys().copied().collect();
        for link in links {
            self.live(Event::Leave { link }, Expected { leaving: vec![link], ..Expected::default() });
        }
        assert_eq!((self.topic.participants_len(), self.topic.links_len()), (0, 0));
    }

    /// Steps, and checks everything that must hold whatever the event was.
    pub(crate) fn live(&mut self, event: Event<'_>, expected: Expected) -> Effects {
        if self.recorded {
            self.log.push(format!("{event:?}"));
        }
        let seen = if touches_lists(&event) { self.seen() } else { Vec::new() };
        let effects = self.topic.step(self.now_ms, event);
        if self.recorded {
            self.log.push(format!("  {effects:?}"));
        }
        self.books.enter(&effects, &expected, self.now_ms);
        self.check_room();
        assert_eq!(self.topic.proposals_len(), self.books.deals.open_len());
        self.books.deals.check_calls(|call| self.books.open.contains_key(&call));
        assert_eq!(self.topic.operations_len(), self.books.open.len());
        assert_eq!(self.topic.links_len(), self.books.links.len());
        for operation in self.books.open.keys() {
            assert!(self.topic.operation(*operation).is_some());
        }
        for ((link, list), before) in &seen {
            let now = self.sight(*link, *list);
            let told = effects.iter().any(
                |effect| matches!(effect, Effect::ListChanged { list: of, links } if of == list && links.contains(link)),
            );
            assert!(
                told || now == *before || !self.books.links.contains_key(link),
                "{link} was not told of {list:?}: {before:?} {now:?}"
            );
        }
        if !seen.is_empty() {
            self.check_lists();
        }
        effects
    }

    fn seen(&self) -> Vec<((LinkId, ListKind), Sight)> {
        let here = self.books.links.keys().filter(|link| self.topic.participant(**link).is_some());
        let each = here.flat_map(|link| ListKind::ALL.map(|list| (*link, list)));
        each.map(|(link, list)| ((link, list), self.sight(link, list))).collect()
    }

    fn sight(&self, link: LinkId, list: ListKind) -> Sight {
        let seen = self.topic.list(link, list).into_iter();
        seen.map(|one| (one.public.to_string(), format!("{} {}", one.upstream, one.own))).collect()
    }

    /// What is listed is visible, unique, and leads to where it came from.
    fn check_lists(&mut self) {
        let links: Vec<LinkId> = self.books.links.keys().copied().collect();
        let Some(link) = self.prng.pick(&links).copied() else { return };
        for list in ListKind::ALL {
            let all = self.topic.list(link, list);
            let names: std::collections::BTreeSet<&str> = all.iter().map(|one| &*one.public).collect();
            assert_eq!(names.len(), all.len(), "public names are unique");
            assert!(all.is_sorted_by_key(|one| one.index), "configuration order");
            for one in &all {
                assert!(self.topic.visible(link, list, &one.public));
                let target = match list {
                    ListKind::Tools => Target::Tool(&one.public),
                    ListKind::Prompts => Target::Prompt(&one.public),
                    ListKind::Resources => Target::Uri(&one.public),
                    ListKind::Templates => continue,
                };
                let route = self.topic.lookup(link, target).unwrap();
                assert_eq!((route.upstream, route.own), (one.upstream, &**one.own));
            }
        }
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(crate) fn operation(&mut self) -> OperationId {
        // Now and then one that was used before: open or over, it must not do harm.
        let known: Vec<OperationId> = self.books.open.keys().copied().collect();
        match self.prng.pick(&known) {
            Some(known) if self.prng.one_in(20) => *known,
            _ => OperationId(u128::from(self.number())),
        }
    }

    pub(crate) fn any_link(&mut self) -> LinkId {
        let links: Vec<LinkId> = self.books.links.keys().copied().collect();
        self.prng.pick(&links).copied().filter(|_| !self.prng.one_in(30)).unwrap_or(LinkId(9_999_999))
    }

    pub(crate) fn any_open(&mut self) -> OperationId {
        let open: Vec<OperationId> = self.books.open.keys().copied().collect();
        let over: Vec<OperationId> = self.books.settled.iter().copied().collect();
        let late = self.prng.one_in(4);
        self.prng.pick(if late { &over } else { &open }).copied().unwrap_or(OperationId(0))
    }

    pub(crate) fn any_upstream(&mut self) -> ParticipantId {
        self.prng.pick(&self.configured).unwrap().id.clone()
    }

    pub(crate) fn request(&mut self) {
        let (mut link, operation) = (self.any_link(), self.operation());
        // Mostly a caller: whatever an upstream asks for in this way is refused.
        if self.books.links.get(&link).is_some_and(|own| self.books.upstreams.contains(own)) {
            link = self.any_link();
        }
        let prefix = self.prng.pick(&UPSTREAMS).unwrap().1;
        // Mostly something that this caller sees.
        let seen = self.topic.list(link, ListKind::Tools);
        let seen: Vec<String> = seen.iter().map(|one| one.public.to_string()).collect();
        let name = match self.prng.pick(&seen) {
            Some(seen) if !self.prng.one_in(4) => seen.clone(),
            _ => public_name(prefix, self.prng.pick(&NAMES).unwrap()),
        };
        let uri = format!("{}{}", ["", "portmoot:two/"][self.prng.below(2)], self.prng.pick(&URIS).unwrap());
        let (method, target) = match self.prng.below(8) {
            0..4 => ("tools/call", Some(Target::Tool(&name))),
            4 => ("prompts/get", Some(Target::Prompt(&name))),
            5 => ("resources/read", Some(Target::Uri(&uri))),
            6 => ("tasks/get", Some(Target::Upstream("two"))),
            _ => (["ping", "tools/call:x", "logging/setLevel"][self.prng.below(3)], None),
        };
        let expected = match self.books.open.contains_key(&operation) || !self.books.links.contains_key(&link)
        {
            true => Expected::default(),
            false => Expected { request: Some((operation, link)), ..Expected::default() },
        };
        let fresh = expected.request.is_some();
        let visible = target.and_then(|target| self.topic.lookup(link, target));
        let route = visible.map(|route| (route.upstream.clone(), route.own.to_owned()));
        let effects = self.live(Event::Request { link, operation, method, target }, expected);
        if let (Some(open), true) = (self.books.open.get_mut(&operation), fresh) {
            open.method = ["tools/call", "prompts/get", "resources/read"]
                .into_iter()
                .find(|held| *held == method)
                .unwrap_or_default();
            open.public = target.and_then(Target::context).unwrap_or_default().to_owned();
            open.own = route.as_ref().map(|(_, own)| own.clone()).unwrap_or_default();
        }
        assert_eq!(effects.len(), usize::from(fresh), "one effect for a new request, none otherwise");
        self.check_request(link, method, target, route, &effects);
    }

    /// Nobody receives what was not admitted, and what was admitted is not refused for want of it.
    fn check_request(
        &self,
        link: LinkId,
        method: &str,
        target: Option<Target<'_>>,
        route: Option<(ParticipantId, String)>,
        effects: &Effects,
    ) {
        let context = target.and_then(Target::context);
        let free = context.is_none() && (method == "ping" || method.starts_with("tasks/"));
        let admitted = |upstream: &str| {
            let caller = &self.books.links[&link];
            let kind = KindRef::request(method, context);
            !self.books.upstreams.contains(caller)
                && kind.is_ok_and(|kind| free || self.grants[caller].admits(kind, &[upstream]))
        };
        let proposed = |upstream: &str| {
            let kind = KindRef::proposal(method, context);
            self.topic.promotes(link)
                && upstream != "portmoot"
                && kind.is_ok_and(|kind| self.grants[&self.books.links[&link]].admits(kind, &[upstream]))
        };
        match effects.first() {
            Some(Effect::Hold { to, .. }) => {
                assert!(!admitted(to.as_str()) && proposed(to.as_str()), "held without need or leave");
            }
            Some(Effect::Deliver { to, own, .. }) => {
                assert!(admitted(to.as_str()), "delivered without leave");
                if let Some((upstream, name)) = route {
                    assert_eq!(*to, upstream);
                    let spelled = own.as_deref().or(context).unwrap_or_default();
                    assert_eq!(spelled, name, "its own name");
                }
            }
            Some(Effect::Refuse { cause: Cause::NotAdmitted, .. }) => {
                let at = route.as_ref().map(|(upstream, _)| upstream.as_str());
                assert!(!at.is_some_and(admitted), "refused with leave");
                let waits = matches!(method, "tools/call" | "prompts/get" | "resources/read");
                assert!(!waits || !at.is_some_and(proposed), "refused, and it could be proposed");
            }
            Some(Effect::Refuse { cause: Cause::Unknown, .. }) => assert!(route.is_none()),
            _ => {}
        }
    }

    fn ask(&mut self) {
        let operation = self.operation();
        let about = match self.prng.one_in(4) {
            true => About::Session(self.any_link()),
            false => About::Call(self.any_open()),
        };
        let mut upstream = self.any_upstream();
        if let About::Call(call) = about
            && let Some(open) = self.books.open.get(&call)
            && !self.prng.one_in(5)
        {
            upstream = open.upstream.clone();
        }
        let method =
            ["sampling/createMessage", "elicitation/create", "roots/list", "tools/call"][self.prng.below(4)];
        let here = self.topic.has_participant(&upstream) && !self.books.open.contains_key(&operation);
        let expected = Expected { ask: here.then(|| (operation, upstream.clone())), ..Expected::default() };
        let effects = self.live(Event::Ask { upstream: &upstream, operation, about, method }, expected);
        if let Some(Effect::DeliverAsk { .. }) = effects.first() {
            assert_ne!(method, "tools/call", "not granted to any upstream");
            assert!(self.grants[&upstream].len() == 5, "an upstream without leave asked");
        }
    }

    fn answer(&mut self) {
        let operation = self.any_open();
        let outcome = [Outcome::Ok, Outcome::Error, Outcome::Refused][self.prng.below(3)];
        let mut link = self.any_link();
        let mut rightful = None;
        if let Some(open) = self.books.open.get(&operation).cloned() {
            let owed = |own: &LinkId, who: &ParticipantId| match open.ask {
                true => *own == open.link,
                false => !open.held && *who == open.upstream,
            };
            rightful = self.books.links.iter().find(|(own, who)| owed(own, who)).map(|(own, _)| *own);
            link = rightful.filter(|_| !self.prng.one_in(6)).unwrap_or(link);
            if self.books.links.get(&link).is_none_or(|who| !owed(&link, who)) {
                rightful = None;
            }
        }
        let expected = Expected { ending: rightful.map(|_| (operation, outcome)), ..Expected::default() };
        let effects = self.live(Event::Answer { link, operation, outcome }, expected);
        assert_eq!(effects.is_empty(), rightful.is_none(), "late answers and others' are ignored");
        let again = self.live(Event::Answer { link, operation, outcome }, Expected::default());
        assert!(again.is_empty(), "a second answer is ignored");
    }

    fn cancel(&mut self) {
        let (operation, mut link) = (self.any_open(), self.any_link());
        let mut mine = false;
        if let Some(open) = self.books.open.get(&operation) {
            if !open.ask && !self.prng.one_in(4) {
                link = open.link;
            }
            let who = self.books.links.get(&link);
            mine = if open.ask { who == Some(&open.upstream) } else { link == open.link };
        }
        let ending = mine.then_some((operation, Outcome::Cancelled));
        let effects =
            self.live(Event::Cancel { link, operation }, Expected { ending, ..Expected::default() });
        assert_eq!(effects.is_empty(), !mine, "only whoever opened it takes it back");
    }

    fn expire(&mut self) {
        let operation = self.any_open();
        let open = self.books.open.contains_key(&operation);
        let effects = self.live(Event::Expire { operation }, Expected::default());
        assert_eq!(effects.is_empty(), !open);
    }
}

/// Whether what somebody sees may change with this event.
fn touches_lists(event: &Event<'_>) -> bool {
    match event {
        Event::Join { .. } | Event::Leave { .. } | Event::Revoke { .. } | Event::Regrant { .. } => true,
        Event::Configure { .. } | Event::Attach { .. } | Event::Detach { .. } | Event::Listed { .. } => true,
        Event::Request { .. } | Event::Ask { .. } | Event::Answer { .. } => false,
        Event::Cancel { .. } | Event::Expire { .. } | Event::Say { .. } | Event::Execute { .. } => false,
        Event::Release { .. } | Event::Propose { .. } | Event::Restore { .. } => false,
        Event::Decide { .. } | Event::Stored { .. } | Event::NotStored { .. } => false,
        Event::Outcome { .. } | Event::Tick => false,
    }
}

/// Prints the last events of a run that fails.
impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let last = self.log.len().saturating_sub(12);
            eprintln!("seed {}:\n{}", self.seed, self.log[last..].join("\n"));
        }
    }
}
