//! Stage of the rule tests: a topic with three servers, the gateway's own participant, and one
//! caller.

use std::sync::Arc;

use model::{
    Capabilities, DeliveryMode, Digest, LinkId, ListKind, Method, Narrowing, OperationId, Outcome,
    ParticipantId, RateLimit, Refusal, RefusalCode, TopicName,
};
use topic::{
    About, Ask, Configure, Decision, End, Interest, Join, Joining, Limits, ListItem, ListScope,
    Listener, Now, OperationRef, Parked, PublicTarget, RequestEvent, Restore, Resume, RingLimits,
    Seating, ServerLists, Terms, TopicConfig, TopicSettings, UpstreamNames,
};

use crate::numbers::{Effects, Event, Numbers, Topic};

pub(crate) const ANN: LinkId = LinkId(1);
pub(crate) const BOB: LinkId = LinkId(2);
pub(crate) const CID: LinkId = LinkId(3);
pub(crate) const OWN: LinkId = LinkId(100);
pub(crate) const ONE: LinkId = LinkId(101);
pub(crate) const TWO: LinkId = LinkId(102);
pub(crate) const BARE: LinkId = LinkId(103);

/// The digest of a proposed request as reviewers see it.
pub(crate) const SHOWN: Digest = Digest([7; 32]);
pub(crate) const APPROVE: Decision<'static> = Decision::Approve {
    shown: SHOWN,
    current: Some(SHOWN),
};
/// The shell's part of every decision.
pub(crate) const RULING: u8 = 9;
/// The time at which proposals expire.
pub(crate) const EXPIRES_MS: u64 = 1_000;
/// The time at which proposals expire on the wall clock.
pub(crate) const WALL_EXPIRES_MS: u64 = 1_700_000_000_000;
/// The upper half of the ids of envelopes to one participant alone.
pub(crate) const DIRECT: u64 = 0xd1;

pub(crate) fn id(name: &str) -> ParticipantId {
    ParticipantId::new(name).unwrap()
}

pub(crate) fn op(number: u128) -> OperationId {
    OperationId(number)
}

pub(crate) fn caps(texts: &[&str]) -> Arc<Capabilities> {
    Arc::new(Capabilities::parse(texts.iter().copied()).unwrap())
}

pub(crate) fn items(all: &[&str]) -> Vec<ListItem> {
    all.iter().copied().map(ListItem::from).collect()
}

pub(crate) fn tools(all: &[&str]) -> ServerLists {
    ServerLists {
        tools: items(all),
        ..ServerLists::default()
    }
}

pub(crate) fn configured() -> Vec<UpstreamNames> {
    let mut all = vec![UpstreamNames::gateway()];
    all.extend(
        [("one", "one"), ("two", "two"), ("bare", "")]
            .map(|(name, prefix)| UpstreamNames::new(id(name), prefix)),
    );
    all
}

pub(crate) fn refusal() -> Box<Refusal> {
    Box::new(Refusal::new(
        RefusalCode::UpstreamFailed,
        "the server is lost",
    ))
}

/// The terms of bob's proposals: a call of `a` at `one`.
pub(crate) fn terms(by: &ParticipantId, to: &[ParticipantId], envelope: &str) -> Terms {
    let method = Method::Other("tools/call".into());
    let context = Some("a".into());
    let by = by.clone();
    let to = to.into();
    let envelope = envelope.into();
    Terms {
        by,
        method,
        context,
        to,
        envelope,
        digest: SHOWN,
        expires_ms: EXPIRES_MS,
        expires_wall_ms: WALL_EXPIRES_MS,
        bytes: 10,
        approvals: 1,
        extensions: 0,
        amendments: 0,
        plan: None,
    }
}

/// A proposal that was pending before a restart, by an envelope.
pub(crate) fn pending(proposal: u128, terms: Terms) -> Restore<'static, Numbers> {
    Restore {
        proposal: op(proposal),
        terms,
        content: proposal,
        held: false,
        public: None,
        approved_by: Vec::new(),
        end: None,
    }
}

pub(crate) struct Stage {
    pub(crate) topic: Topic,
    /// The servers that are configured.
    names: Vec<UpstreamNames>,
    pub(crate) now_ms: u64,
    pub(crate) wall_ms: u64,
}

impl Stage {
    /// Servers `one`, `two`, `bare`, and `ann`, which may use all of MCP.
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        Self::configured(|config| config.settings.limits = limits)
    }

    pub(crate) fn configured(change: impl FnOnce(&mut TopicConfig)) -> Self {
        let mut config = TopicConfig::new(TopicName::new("main").unwrap(), configured());
        config.direct = DIRECT;
        change(&mut config);
        let mut stage = Self {
            names: config.upstreams.clone(),
            topic: Topic::new(config),
            now_ms: 0,
            wall_ms: 0,
        };
        for (link, name) in [(ONE, "one"), (TWO, "two"), (BARE, "bare")] {
            stage.server(link, name);
        }
        stage.caller(ANN, "ann", &["mcp/*"]);
        stage
    }

    pub(crate) fn step(&mut self, event: Event<'_>) -> Effects {
        if let Event::Configure(configure) = &event {
            self.names = configure.upstreams.to_vec();
        }
        self.topic.step(
            Now {
                steady_ms: self.now_ms,
                wall_ms: self.wall_ms,
            },
            event,
        )
    }

    /// Sets the clock, and ticks.
    pub(crate) fn tick(&mut self, now_ms: u64) -> Effects {
        self.now_ms = now_ms;
        self.step(Event::Tick)
    }

    /// A server with the usual capabilities.
    pub(crate) fn server(&mut self, link: LinkId, name: &str) -> Effects {
        self.server_with(link, name, Arc::new(Capabilities::upstream()))
    }

    pub(crate) fn server_with(
        &mut self,
        link: LinkId,
        name: &str,
        capabilities: Arc<Capabilities>,
    ) -> Effects {
        let seat = Seating {
            link,
            server: &id(name),
            handle: name.to_owned(),
            capabilities,
        };
        let names = self.names.clone();
        self.step(Event::Configure(Configure {
            seats: vec![seat],
            ..Configure::servers(&names)
        }))
    }

    /// These servers, with seats and lists as before.
    pub(crate) fn configure(&mut self, upstreams: &[UpstreamNames]) -> Effects {
        self.step(Event::Configure(Configure::servers(upstreams)))
    }

    /// The room keeps these messages from now on.
    pub(crate) fn keep(&mut self, kept: RingLimits) -> Effects {
        self.set(TopicSettings {
            kept,
            ..TopicSettings::default()
        })
    }

    /// The topic has these settings from now on.
    pub(crate) fn set(&mut self, settings: TopicSettings) -> Effects {
        let names = self.names.clone();
        self.step(Event::Configure(Configure {
            settings: Some(Box::new(settings)),
            ..Configure::servers(&names)
        }))
    }

    pub(crate) fn join(
        &mut self,
        link: LinkId,
        name: &str,
        grants: &[&str],
        change: impl FnOnce(&mut Join<'_, Numbers>),
    ) -> Effects {
        let participant = &id(name);
        let capabilities = caps(grants);
        let joining = Joining {
            notified: true,
            ..Joining::default()
        };
        let mut join = Join {
            link,
            handle: link.0,
            participant,
            capabilities,
            rate: None,
            joining,
        };
        change(&mut join);
        self.step(Event::Join(join))
    }

    pub(crate) fn caller(&mut self, link: LinkId, name: &str, grants: &[&str]) -> Effects {
        self.join(link, name, grants, |_| {})
    }

    pub(crate) fn limited(
        &mut self,
        link: LinkId,
        name: &str,
        grants: &[&str],
        rate: Option<RateLimit>,
    ) -> Effects {
        self.join(link, name, grants, |join| join.rate = rate)
    }

    /// A link that listens to the room, without its own messages.
    pub(crate) fn listener(
        &mut self,
        link: LinkId,
        name: &str,
        grants: &[&str],
        mode: DeliveryMode,
    ) -> Effects {
        self.join(link, name, grants, |join| {
            join.joining.listener = Some(Listener { mode, echo: false })
        })
    }

    /// A link whose wire has no proposals.
    pub(crate) fn promoting(&mut self, link: LinkId, name: &str, grants: &[&str]) -> Effects {
        self.join(link, name, grants, |join| join.joining.promotes = true)
    }

    pub(crate) fn regrant(&mut self, name: &str, grants: &[&str]) -> Effects {
        self.step(Event::Regrant {
            participant: &id(name),
            capabilities: caps(grants),
        })
    }

    pub(crate) fn revoke(&mut self, name: &str) -> Effects {
        self.step(Event::Revoke {
            participant: &id(name),
        })
    }

    pub(crate) fn leave(&mut self, link: LinkId) -> Effects {
        self.step(Event::Leave { link })
    }

    /// Proposes the held call, which is parked after 50 ms.
    pub(crate) fn propose(&mut self, proposal: u128, by: &str, held: u128) -> Effects {
        let by = &id(by);
        let to = &[id("one")];
        let envelope = format!("p{proposal}");
        let content = proposal;
        let held = op(held);
        let park_ms = self.now_ms + 50;
        let terms = terms(by, to, &envelope);
        self.step(Event::Propose {
            proposal: op(proposal),
            terms: Box::new(terms),
            content,
            held,
            park_ms,
        })
    }

    /// A proposal of bob's that was pending before a restart.
    pub(crate) fn restore(&mut self, proposal: u128, held: bool) -> Effects {
        let terms = terms(&id("bob"), &[id("one")], &format!("p{proposal}"));
        self.step(Event::Restore(Restore {
            held,
            ..pending(proposal, terms)
        }))
    }

    /// Brings back a pending proposal with these terms, which no participant has approved.
    pub(crate) fn restore_with(&mut self, proposal: u128, terms: Terms) -> Effects {
        self.step(Event::Restore(pending(proposal, terms)))
    }

    pub(crate) fn stored(&mut self, proposal: u128) -> Effects {
        self.step(Event::Written {
            proposal: op(proposal),
            stored: true,
        })
    }

    pub(crate) fn not_stored(&mut self, proposal: u128) -> Effects {
        self.step(Event::Written {
            proposal: op(proposal),
            stored: false,
        })
    }

    pub(crate) fn decide(&mut self, proposal: u128, by: &str, decision: Decision<'_>) -> Effects {
        self.decide_as(proposal, by, None, decision)
    }

    pub(crate) fn decide_as(
        &mut self,
        proposal: u128,
        by: &str,
        outside: Option<&Arc<Capabilities>>,
        decision: Decision<'_>,
    ) -> Effects {
        self.decide_by(proposal, &id(by), outside, None, decision)
    }

    /// Decides with an access token.
    pub(crate) fn decide_with(
        &mut self,
        proposal: u128,
        by: &str,
        token: &Narrowing,
        decision: Decision<'_>,
    ) -> Effects {
        self.decide_by(proposal, &id(by), None, Some(token), decision)
    }

    fn decide_by(
        &mut self,
        proposal: u128,
        by: &ParticipantId,
        outside: Option<&Arc<Capabilities>>,
        narrowing: Option<&Narrowing>,
        decision: Decision<'_>,
    ) -> Effects {
        self.step(Event::Decide {
            proposal: op(proposal),
            by,
            outside,
            narrowing,
            decision,
            fulfilment: None,
            amended: None,
            ruling: RULING,
        })
    }

    /// Approves, and the journal writes it.
    pub(crate) fn approved(&mut self, proposal: u128) -> Effects {
        self.decide(proposal, "ann", APPROVE);
        self.stored(proposal)
    }

    pub(crate) fn execute(&mut self, proposal: u128, operation: u128, server: &str) -> Effects {
        let proposal = op(proposal);
        let call = operation;
        self.step(Event::Execute {
            proposal,
            operation: op(operation),
            server: &id(server),
            call,
        })
    }

    pub(crate) fn lists(&mut self, name: &str, scope: ListScope, manifest: ServerLists) -> Effects {
        self.step(Event::Listed {
            server: &id(name),
            scope,
            manifest,
            changed: &[],
        })
    }

    pub(crate) fn call(&mut self, link: LinkId, operation: u128, tool: &str) -> Effects {
        self.request(
            link,
            operation,
            "tools/call",
            Some(PublicTarget::Tool(tool)),
        )
    }

    pub(crate) fn request(
        &mut self,
        link: LinkId,
        operation: u128,
        method: &'static str,
        target: Option<PublicTarget<'_>>,
    ) -> Effects {
        self.request_with(link, operation, method, target, |_| {})
    }

    /// A call that comes with an access token.
    pub(crate) fn call_with(
        &mut self,
        link: LinkId,
        operation: u128,
        tool: &str,
        token: &Narrowing,
    ) -> Effects {
        let target = Some(PublicTarget::Tool(tool));
        self.request_with(link, operation, "tools/call", target, |request| {
            request.narrowing = Some(token);
        })
    }

    pub(crate) fn request_with<'a>(
        &mut self,
        link: LinkId,
        operation: u128,
        method: &'static str,
        target: Option<PublicTarget<'a>>,
        change: impl FnOnce(&mut RequestEvent<'a, Numbers>),
    ) -> Effects {
        let call = operation;
        let tag = None;
        let interest = Interest::None;
        let method = Method::Known(method);
        let logs = topic::Logs::OfLink;
        let mut request = RequestEvent {
            link,
            operation: op(operation),
            tag,
            method,
            target,
            interest,
            logs,
            returns: true,
            narrowing: None,
            tightening: None,
            call,
        };
        change(&mut request);
        self.step(Event::Request(request))
    }

    /// Resumes a parked call, until 2,000 ms.
    pub(crate) fn resume(&mut self, link: LinkId, operation: u128, parked: u128) -> Effects {
        let parked = Parked::Proposal {
            proposal: op(parked),
            until_ms: 2_000,
        };
        let call = operation;
        let operation = op(operation);
        self.step(Event::Resume(Resume {
            link,
            operation,
            tag: None,
            parked,
            narrowing: None,
            call,
        }))
    }

    /// Comes back to a paused call with a request of this number, and with answers to these
    /// questions.
    pub(crate) fn come_back(
        &mut self,
        link: LinkId,
        (operation, call): (u128, u128),
        round: u32,
        answers: &[(u128, u8)],
    ) -> Effects {
        let answers = answers
            .iter()
            .map(|(ask, answer)| (op(*ask), *answer))
            .collect();
        let parked = Parked::Questions { round, answers };
        self.step(Event::Resume(Resume {
            link,
            operation: op(operation),
            tag: None,
            parked,
            narrowing: None,
            call,
        }))
    }

    pub(crate) fn wait(
        &mut self,
        operation: u128,
        proposal: u128,
        until_ms: Option<u64>,
    ) -> Effects {
        self.step(Event::Wait {
            operation: op(operation),
            proposal: op(proposal),
            until_ms,
        })
    }

    pub(crate) fn answer(&mut self, link: LinkId, operation: u128, answer: u8) -> Effects {
        let end = End::Answered {
            outcome: Outcome::Ok,
            answer,
        };
        self.step(Event::Answer {
            link,
            operation: op(operation),
            end,
        })
    }

    pub(crate) fn error(&mut self, link: LinkId, operation: u128, answer: u8) -> Effects {
        let end = End::Answered {
            outcome: Outcome::Error,
            answer,
        };
        self.step(Event::Answer {
            link,
            operation: op(operation),
            end,
        })
    }

    pub(crate) fn fail(&mut self, link: LinkId, operation: u128) -> Effects {
        self.step(Event::Answer {
            link,
            operation: op(operation),
            end: End::Failed(refusal()),
        })
    }

    pub(crate) fn cancel(&mut self, link: LinkId, operation: u128) -> Effects {
        self.step(Event::Cancel {
            link,
            which: OperationRef::Request {
                operation: op(operation),
                round: 0,
            },
        })
    }

    pub(crate) fn ask(
        &mut self,
        server: &str,
        operation: u128,
        about: About,
        method: &'static str,
    ) -> Effects {
        let question = operation;
        let method = Method::Known(method);
        let server = &id(server);
        let operation = op(operation);
        let tag = None;
        self.step(Event::Ask(Ask {
            server,
            operation,
            tag,
            about,
            method,
            question,
        }))
    }

    pub(crate) fn sees(&self, link: LinkId, list: ListKind) -> Vec<String> {
        self.sees_with(link, None, list)
    }

    /// The names in a list of this link that comes with a token of this scope.
    pub(crate) fn sees_with(
        &self,
        link: LinkId,
        token: Option<&Narrowing>,
        list: ListKind,
    ) -> Vec<String> {
        let snapshot = self.topic.list_snapshot(link, token).unwrap();
        snapshot
            .list(list)
            .iter()
            .map(|one| one.public.to_string())
            .collect()
    }

    pub(crate) fn links(&self, name: &str) -> Vec<LinkId> {
        let mut all = self.topic.links();
        all.retain(|(_, _, participant)| participant.as_str() == name);
        all.sort_unstable_by_key(|(link, ..)| *link);
        all.into_iter().map(|(link, ..)| link).collect()
    }
}
