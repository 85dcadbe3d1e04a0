//! Callers' requests: admitted, held or refused, exactly as the books expect.

use model::{
    GATEWAY, KindRef, LinkId, ListKind, ListenFilter, LogLevel, Method, MethodFacts, Narrowing,
    OperationId, ParticipantId,
};
use topic::{
    BuiltinTool, Cause, HeldFor, Interest, Logs, PublicTarget, RequestEvent, Tightening,
    UpstreamNames, Verdict, public_name,
};

use crate::{
    books::{
        Books,
        calls::{Call, Place},
        interests::{Listen, Subscription},
    },
    names::{BUILT_IN, NAMES, SERVERS, URIS},
    numbers::{Effect, Event},
    turn::Turn,
    world::World,
};

/// The expected effects of a request.
#[derive(Debug, Clone, PartialEq)]
enum Must {
    Nothing,
    Deliver,
    Hold,
    Refuse(Cause),
}

/// A method that is not of the protocol.
const UNKNOWN: &str = "vendor/extra";

/// A request as it is drawn.
struct Drawn {
    method: &'static str,
    aim: Aim,
    interest: Interest,
}

enum Aim {
    None,
    Tool(String),
    Prompt(String),
    Uri(String),
    Server(&'static str),
}

impl Aim {
    fn target(&self) -> Option<PublicTarget<'_>> {
        match self {
            Aim::None => None,
            Aim::Tool(name) => Some(PublicTarget::Tool(name)),
            Aim::Prompt(name) => Some(PublicTarget::Prompt(name)),
            Aim::Uri(uri) => Some(PublicTarget::Uri(uri)),
            Aim::Server(name) => Some(PublicTarget::Upstream(name)),
        }
    }
}

impl Books {
    /// Whether a request to a server is admitted.
    pub(crate) fn admits(
        &self,
        by: &ParticipantId,
        token: Option<&Narrowing>,
        method: &str,
        context: Option<&str>,
        at: &str,
    ) -> bool {
        let Some(granted) = self.granted_with(by, token) else {
            return false;
        };
        if let (GATEWAY, "tools/call", Some(tool)) = (at, method, context.and_then(BuiltinTool::of))
        {
            return tool.is_for(&granted);
        }
        let free = matches!(method, "ping" | "tools/list" | "subscriptions/listen")
            || method.starts_with("tasks/");
        let may = |method| {
            KindRef::request(method, context).is_ok_and(|kind| granted.admits(kind, &[at]))
        };
        free && context.is_none()
            || may(method)
            || method == "resources/unsubscribe" && may("resources/subscribe")
    }

    /// Whether a call is held as a proposal if it is not admitted.
    pub(crate) fn proposes(
        &self,
        by: &ParticipantId,
        token: Option<&Narrowing>,
        method: &str,
        context: Option<&str>,
        at: &str,
    ) -> bool {
        let granted = self.granted_with(by, token);
        let kind = KindRef::proposal(method, context);
        at != GATEWAY
            && matches!(method, "tools/call" | "prompts/get" | "resources/read")
            && kind.is_ok_and(|kind| granted.is_some_and(|granted| granted.admits(kind, &[at])))
    }

    /// Every open call at a server, and every held call whose caller waits, is still admitted.
    pub(crate) fn check_admitted(&self) {
        for (operation, open) in self
            .calls
            .iter()
            .filter(|(_, open)| open.place != Place::Parked)
        {
            let context = open.public.as_deref();
            let at = open.server.as_str();
            // A request in the room is judged by its kind alone.
            let by_envelope = || {
                let kind = KindRef::request(open.method, open.own.as_deref());
                kind.is_ok_and(|kind| {
                    self.granted(&open.by)
                        .is_some_and(|own| own.admits(kind, &[at]))
                        || self.is_about_own(&open.by, None, &kind.to_string(), &[at])
                })
            };
            let admitted = || {
                if open.in_room {
                    by_envelope()
                } else {
                    self.admits(&open.by, None, open.method, context, at)
                }
            };
            let fine = match open.place {
                Place::AtServer | Place::Paused | Place::Kept { .. } => {
                    open.proposal.is_some() || admitted()
                }
                Place::Held => {
                    admitted() || self.proposes(&open.by, None, open.method, context, at)
                }
                Place::Waiting { .. } | Place::Parked => true,
            };
            assert!(fine, "{operation} goes on without leave: {open:?}");
        }
    }
}

impl World {
    fn draw_name(&mut self, link: LinkId, list: ListKind) -> String {
        let prefix = self.prng.any(&SERVERS).1;
        // Mostly an entry that this caller sees.
        let snapshot = self.topic.list_snapshot(link, None);
        let seen = snapshot
            .as_ref()
            .map(|snapshot| snapshot.list(list))
            .unwrap_or_default();
        let seen: Vec<String> = seen.iter().map(|one| one.public.to_string()).collect();
        match self.prng.pick(&seen) {
            Some(seen) if !self.prng.one_in(4) => seen.clone(),
            _ => public_name(prefix, self.prng.any(&NAMES)),
        }
    }

    fn draw_uri(&mut self) -> String {
        let head = self.prng.any(&["", "portmoot:two/"]);
        let uri = self.prng.any(&URIS);
        format!("{head}{uri}")
    }

    fn draw_filter(&mut self) -> ListenFilter {
        let lists = ListKind::ALL
            .into_iter()
            .filter(|_| self.prng.one_in(2))
            .collect();
        let resources = (0..self.prng.below(3))
            .map(|_| self.draw_uri().into())
            .collect();
        let known = self.books.tasks.values().map(|task| task.public.clone());
        let known: Vec<String> = known.chain(["none".to_owned()]).collect();
        let tasks = (0..self.prng.below(3))
            .map(|_| self.prng.any(&known).into())
            .collect();
        ListenFilter {
            lists,
            resources,
            tasks,
        }
    }

    fn draw_request(&mut self, link: LinkId) -> Drawn {
        let drawn = |method, aim| Drawn {
            method,
            aim,
            interest: Interest::None,
        };
        match self.prng.below(16) {
            0..7 => drawn(
                "tools/call",
                Aim::Tool(self.draw_name(link, ListKind::Tools)),
            ),
            7 => drawn("tools/call", Aim::Tool(self.prng.any(&BUILT_IN).to_owned())),
            8 => drawn(
                "prompts/get",
                Aim::Prompt(self.draw_name(link, ListKind::Prompts)),
            ),
            9 => drawn("resources/read", Aim::Uri(self.draw_uri())),
            10 => drawn(
                "tasks/get",
                Aim::Server(self.prng.any(&["two", "one", "none"])),
            ),
            11 => drawn(
                self.prng
                    .any(&["ping", "tools/call:x", "tools/list", UNKNOWN]),
                Aim::None,
            ),
            12 => {
                let level = self
                    .prng
                    .any(&[LogLevel::Debug, LogLevel::Warning, LogLevel::Alert]);
                let interest = Interest::Level(level);
                Drawn {
                    method: "logging/setLevel",
                    aim: Aim::Server("one"),
                    interest,
                }
            }
            13 => {
                let interest = Interest::Subscribe;
                let aim = Aim::Uri(self.draw_uri());
                Drawn {
                    method: "resources/subscribe",
                    aim,
                    interest,
                }
            }
            14 if self.prng.one_in(2) => {
                let interest = Interest::Unsubscribe;
                let aim = Aim::Uri(self.draw_uri());
                Drawn {
                    method: "resources/unsubscribe",
                    aim,
                    interest,
                }
            }
            _ => {
                let interest = Interest::Listen(Box::new(self.draw_filter()));
                Drawn {
                    method: "subscriptions/listen",
                    aim: Aim::None,
                    interest,
                }
            }
        }
    }

    /// The route of a target: the server and its own name.
    pub(crate) fn route(
        &self,
        link: LinkId,
        target: Option<PublicTarget<'_>>,
    ) -> Option<(ParticipantId, String)> {
        let Some(target) = target else {
            return Some((ParticipantId::gateway(), String::new()));
        };
        let route = self.topic.lookup(link, target)?;
        Some((route.upstream.clone(), route.own.into_owned()))
    }

    /// The route of a method that is not of the protocol: the server without a prefix.
    fn route_of_unknown(&mut self) -> Option<(ParticipantId, String)> {
        let bare = |names: &&UpstreamNames| names.prefix.is_empty() && !names.builtin;
        let bare = self
            .books
            .configured
            .iter()
            .find(bare)
            .map(|names| names.id.clone());
        self.books.count(if bare.is_some() {
            "unknown method"
        } else {
            "unknown method without a bare server"
        });
        Some((bare.unwrap_or_else(ParticipantId::gateway), String::new()))
    }

    pub(crate) fn request(&mut self) {
        let link = self.any_link();
        self.request_at(link);
    }

    pub(crate) fn request_at(&mut self, link: LinkId) {
        let Drawn {
            method,
            aim,
            interest,
        } = self.draw_request(link);
        let operation = self.operation();
        let call = self.number();
        let target = aim.target();
        let tag = self.prng.one_in(2).then(|| self.prng.below(3) as u8);
        // Tools for the caller's own proposals are judged like requests about their tasks.
        let (judged, aimed) = if self.serves_own(link, method, target) {
            ("tasks/result", None)
        } else {
            (method, target)
        };
        let route = match judged {
            UNKNOWN => self.route_of_unknown(),
            _ => self.route(link, aimed),
        };
        // What a token's scope means for the tasks of a listen request is proved by the rules.
        let names_tasks = matches!(&interest, Interest::Listen(filter) if !filter.tasks.is_empty());
        let token = self.token().filter(|_| !names_tasks);
        let must = self.must(
            link,
            token.as_ref(),
            operation,
            (judged, aimed),
            route.as_ref(),
        );
        let tightening = self.tightening();
        let must = match &tightening {
            Some(tightening) if must == Must::Deliver => {
                self.tightened(link, judged, tightening, route.as_ref())
            }
            _ => must,
        };
        let must = match must {
            Must::Deliver => self.braked(link, judged, aimed, route.as_ref()),
            must => must,
        };
        let levels = [
            Logs::OfLink,
            Logs::OfLink,
            Logs::None,
            Logs::From(LogLevel::Warning),
        ];
        let logs = self.prng.any(&levels);
        let returns = !self.prng.one_in(8);
        let open = route.clone().map(|(server, own)| {
            let public = aimed.and_then(PublicTarget::context).map(str::to_owned);
            let own = if own.is_empty() { None } else { Some(own) };
            let by = self
                .books
                .owner(link)
                .unwrap_or_else(ParticipantId::gateway);
            let pausable = ["tools/call", "prompts/get", "resources/read"].contains(&judged);
            let pauses =
                returns && pausable && self.books.links.get(&link).is_some_and(|own| own.pauses);
            Call {
                tag,
                pauses,
                logs,
                tightened: tightening.is_some(),
                public: public.filter(|_| own.is_some()),
                own,
                ..blank(call, link, by, server, judged)
            }
        });
        let open = open.unwrap_or_else(|| {
            blank(
                call,
                link,
                ParticipantId::gateway(),
                ParticipantId::gateway(),
                judged,
            )
        });
        let mut turn = Turn::default();
        turn.calls.insert(call, (operation, open));
        let listen = self.judged(link, token.as_ref(), &interest, operation);
        if let (Interest::Level(level), Must::Deliver) = (&interest, &must) {
            self.books.links.get_mut(&link).unwrap().level = Some(*level);
        }
        let request = RequestEvent {
            link,
            operation,
            tag,
            method: if method == UNKNOWN {
                Method::Other(method.into())
            } else {
                Method::Known(method)
            },
            target,
            interest: interest.clone(),
            logs,
            returns,
            narrowing: token.as_ref(),
            tightening,
            call,
        };
        let effects = self.live(Event::Request(request), turn);
        let got = match effects.all.as_slice() {
            [] => Must::Nothing,
            [Effect::Deliver { .. }] => Must::Deliver,
            [Effect::Hold { .. }] => Must::Hold,
            [Effect::Refuse { cause, .. }] => Must::Refuse(*cause),
            other => panic!("more than one effect: {other:?}"),
        };
        assert_eq!(got, must, "{method} {target:?}");
        let verdict = match effects.verdict {
            None => Must::Nothing,
            Some(Verdict::Admitted { .. }) => Must::Deliver,
            Some(Verdict::Held { why, .. }) => {
                match why {
                    HeldFor::Rule => self.books.count("held for a rule"),
                    HeldFor::Pause => self.books.count("held for a pause"),
                    HeldFor::Capability => {}
                }
                Must::Hold
            }
            Some(Verdict::Refused(cause)) => Must::Refuse(cause),
        };
        assert_eq!(verdict, must);
        if matches!(must, Must::Deliver | Must::Hold) {
            self.take_interest(link, operation, &interest, listen, route);
        }
    }

    /// Whether a call is for a built-in tool about the caller's own proposals: listed or not,
    /// unless a server lists the name.
    fn serves_own(&mut self, link: LinkId, method: &str, target: Option<PublicTarget<'_>>) -> bool {
        let (Some(aim @ PublicTarget::Tool(name)), "tools/call") = (target, method) else {
            return false;
        };
        let listed = self
            .topic
            .lookup(link, aim)
            .filter(|route| route.is_listed());
        let by = listed.map(|route| route.upstream.as_str() == GATEWAY);
        let serves = matches!(
            name,
            "amend_proposal" | "propose_plan" | "wait_for_proposal" | "withdraw_proposal"
        ) && by != Some(false);
        if serves && by.is_none() && self.books.owner(link).is_some() {
            self.books.count("own proposal unlisted");
        }
        serves
    }

    fn must(
        &mut self,
        link: LinkId,
        token: Option<&Narrowing>,
        operation: OperationId,
        (method, target): (&str, Option<PublicTarget<'_>>),
        route: Option<&(ParticipantId, String)>,
    ) -> Must {
        let books = &mut self.books;
        let now_ms = self.now_ms;
        if books.calls.contains_key(&operation) || books.questions.contains_key(&operation) {
            return Must::Nothing;
        }
        let Some(by) = books.owner(link) else {
            return Must::Refuse(Cause::Moot);
        };
        let caller = books.links.contains_key(&link);
        if caller && !books.take_token(&by, now_ms) {
            return Must::Refuse(Cause::RateLimited);
        }
        if books.is_full(link, &by) {
            return Must::Refuse(Cause::Limit);
        }
        if !caller {
            return Must::Refuse(Cause::NotAdmitted);
        }
        let Some((server, _)) = route else {
            return Must::Refuse(Cause::Unknown);
        };
        let context = target.and_then(PublicTarget::context);
        if KindRef::request(method, context).is_err() {
            return Must::Refuse(Cause::Malformed);
        }
        let promotes = books.links[&link].promotes;
        let must = match books.admits(&by, token, method, context, server.as_str()) {
            true => Must::Deliver,
            false if promotes && books.proposes(&by, token, method, context, server.as_str()) => {
                Must::Hold
            }
            false => {
                if books.admits(&by, None, method, context, server.as_str()) {
                    books.count("refused for its token");
                }
                return Must::Refuse(Cause::NotAdmitted);
            }
        };
        if must == Must::Hold && books.admits(&by, None, method, context, server.as_str()) {
            books.count("held for its token");
        }
        if books.servers.contains_key(server) {
            must
        } else {
            Must::Refuse(Cause::UpstreamDown)
        }
    }

    /// The verdict about a request that its caller may make, if that is paused.
    fn braked(
        &self,
        link: LinkId,
        method: &str,
        target: Option<PublicTarget<'_>>,
        route: Option<&(ParticipantId, String)>,
    ) -> Must {
        let at_gateway = route.is_none_or(|(server, _)| server.as_str() == GATEWAY);
        let is_named = target.and_then(PublicTarget::context).is_some();
        let is_free = MethodFacts::of(method).is_free && !is_named;
        let by = self.books.owner(link);
        let is_braked = by.is_some_and(|by| self.books.braked.contains(&by));
        let is_ending = method == "resources/unsubscribe";
        if !is_braked || is_free || is_ending || at_gateway && method == "tools/call" && is_named {
            return Must::Deliver;
        }
        let is_held = matches!(method, "tools/call" | "prompts/get" | "resources/read")
            && !at_gateway
            && self.books.links[&link].promotes;
        if is_held {
            Must::Hold
        } else {
            Must::Refuse(Cause::Paused)
        }
    }

    /// What becomes of a request that its caller may make, and of which rules take something.
    fn tightened(
        &self,
        link: LinkId,
        method: &str,
        tightening: &Tightening,
        route: Option<&(ParticipantId, String)>,
    ) -> Must {
        let at_server = route.is_some_and(|(server, _)| server.as_str() != GATEWAY);
        let is_held = matches!(method, "tools/call" | "prompts/get" | "resources/read")
            && at_server
            && self.books.links[&link].promotes;
        match tightening {
            Tightening::Ask if is_held => Must::Hold,
            Tightening::Ask => Must::Refuse(Cause::RuleAsks),
            Tightening::Reject { .. } => Must::Refuse(Cause::RuleRejects),
        }
    }

    /// The admitted part of a listen request's filter.
    fn judged(
        &self,
        link: LinkId,
        token: Option<&Narrowing>,
        interest: &Interest,
        operation: OperationId,
    ) -> Option<Listen> {
        let Interest::Listen(filter) = interest else {
            return None;
        };
        let by = self.books.owner(link)?;
        let judged = filter.resources.iter().filter_map(|uri| {
            let (server, own) = self.route(link, Some(PublicTarget::Uri(uri)))?;
            let method = "resources/subscribe";
            let at = server.as_str();
            let may = self.books.admits(&by, token, method, Some(uri), at);
            let waits = self.books.braked.contains(&by);
            (may && !waits).then(|| Subscription {
                server,
                own,
                public: uri.to_string(),
                by: operation,
            })
        });
        let mut resources: Vec<Subscription> = Vec::new();
        judged.for_each(|one| resources.extend((!resources.contains(&one)).then_some(one)));
        let tasks = filter.tasks.iter().map(|task| task.to_string()).collect();
        Some(Listen {
            lists: filter.lists.clone(),
            resources,
            tasks,
        })
    }

    fn take_interest(
        &mut self,
        link: LinkId,
        operation: OperationId,
        interest: &Interest,
        listen: Option<Listen>,
        route: Option<(ParticipantId, String)>,
    ) {
        let open = self.books.calls.get_mut(&operation).unwrap();
        let public = open.public.clone().unwrap_or_default();
        open.listen = listen;
        let own = self.books.links.get_mut(&link).unwrap();
        let aimed = route.filter(|(_, own)| !own.is_empty());
        match (interest, aimed) {
            (Interest::Subscribe, Some((server, uri))) => {
                if !own
                    .subscriptions
                    .iter()
                    .any(|one| one.server == server && one.own == uri)
                {
                    own.subscriptions.push(Subscription {
                        server,
                        own: uri,
                        public,
                        by: operation,
                    });
                    self.books.count("subscribed");
                }
            }
            (Interest::Unsubscribe, Some((server, uri))) => {
                own.subscriptions
                    .retain(|one| one.server != server || one.own != uri);
            }
            (Interest::Listen(_), _) => {
                self.books.count("listened");
                self.listens_to_tasks(link, operation);
                let open = &self.books.calls[&operation];
                let judged = self.topic.listening(operation).unwrap();
                let public: Vec<&str> = judged.resources.iter().map(|uri| &**uri).collect();
                let listen = open.listen.as_ref().unwrap();
                assert!(
                    public
                        .iter()
                        .all(|uri| listen.resources.iter().any(|one| one.public == **uri))
                );
                assert!(
                    listen
                        .resources
                        .iter()
                        .all(|one| public.contains(&&*one.public))
                );
            }
            (
                Interest::None | Interest::Level(_) | Interest::Subscribe | Interest::Unsubscribe,
                _,
            ) => {}
        }
        self.check_interest(link);
    }

    /// The link that listens to a task of its participant asked about it last.
    fn listens_to_tasks(&mut self, link: LinkId, operation: OperationId) {
        let listen = self.books.calls[&operation].listen.clone().unwrap();
        let Some(by) = self.books.owner(link) else {
            return;
        };
        let theirs = self.books.tasks.iter().filter(|(_, task)| {
            listen.tasks.contains(&task.public) && self.books.has_task(&by, task)
        });
        let theirs: Vec<OperationId> = theirs.map(|(id, _)| *id).collect();
        for id in theirs {
            self.books.tasks.get_mut(&id).unwrap().link = Some(link);
        }
    }

    fn check_interest(&self, link: LinkId) {
        let own = &self.books.links[&link];
        assert!(own.subscriptions.iter().all(|one| self.topic.follows(
            link,
            &one.server,
            &one.own
        )));
        let known = self.books.tasks.values().map(|task| task.public.as_str());
        for task in known.chain(["none"]) {
            assert_eq!(
                self.topic.watches(link, task),
                !self.books.watching(link, task).is_empty()
            );
        }
    }
}

pub(crate) fn blank(
    call: u64,
    link: LinkId,
    by: ParticipantId,
    server: ParticipantId,
    method: &'static str,
) -> Call {
    let (tag, proposal, public, own, listen, logs) = <_>::default();
    let place = Place::AtServer;
    let answered = false;
    let in_room = false;
    let mirrored = false;
    let tightened = false;
    let order = 0;
    let pauses = false;
    let rounds = 0;
    let about = None;
    Call {
        call,
        link,
        by,
        server,
        place,
        answered,
        pauses,
        rounds,
        tag,
        proposal,
        method,
        public,
        own,
        in_room,
        mirrored,
        tightened,
        order,
        listen,
        about,
        logs,
        missed: Vec::new(),
    }
}
