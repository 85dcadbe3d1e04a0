//! Owns a topic with three upstreams and one caller, as the stories begin.

use std::sync::Arc;

use model::{Capabilities, Digest, LinkId, OperationId, ParticipantId, TopicName};
use topic::{
    Cause, Decision, Ear, Effect, Effects, Event, Item, Limits, ListKind, Manifest, RateLimit, Role, Target,
    Terms, Topic, TopicConfig, UpstreamNames, View,
};

pub(crate) const ANN: LinkId = LinkId(1);
pub(crate) const ONE: LinkId = LinkId(101);
pub(crate) const TWO: LinkId = LinkId(102);
pub(crate) const BARE: LinkId = LinkId(103);

/// The digest of what reviewers are shown.
pub(crate) const SHOWN: Digest = Digest([7; 32]);
pub(crate) const APPROVE: Decision<'static> = Decision::Approve { digest: SHOWN };

pub(crate) fn id(name: &str) -> ParticipantId {
    ParticipantId::new(name).unwrap()
}

pub(crate) fn op(number: u128) -> OperationId {
    OperationId(number)
}

pub(crate) fn caps(texts: &[&str]) -> Arc<Capabilities> {
    Arc::new(Capabilities::parse(texts.iter().copied()).unwrap())
}

pub(crate) fn items(all: &[&str]) -> Vec<Item> {
    all.iter().copied().map(Item::from).collect()
}

pub(crate) fn tools(all: &[&str]) -> Manifest {
    Manifest { tools: items(all), ..Manifest::default() }
}

pub(crate) fn configured() -> Vec<UpstreamNames> {
    let mut all = vec![UpstreamNames::gateway()];
    all.extend(
        [("one", "one"), ("two", "two"), ("bare", "")]
            .map(|(name, prefix)| UpstreamNames::new(id(name), prefix)),
    );
    all
}

pub(crate) struct Stage {
    pub(crate) topic: Topic,
}

impl Stage {
    /// Upstreams `one`, `two`, `bare`, and `ann`, who may do all of MCP.
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        let mut config = TopicConfig::new(TopicName::new("main").unwrap(), configured());
        config.limits = limits;
        let mut stage = Self { topic: Topic::new(config) };
        for (link, name) in [(ONE, "one"), (TWO, "two"), (BARE, "bare")] {
            stage.upstream(link, name);
        }
        stage.caller(ANN, "ann", &["mcp/*"]);
        stage
    }

    pub(crate) fn step(&mut self, event: Event<'_>) -> Effects {
        self.topic.step(0, event)
    }

    pub(crate) fn upstream(&mut self, link: LinkId, name: &str) -> Effects {
        let capabilities = Arc::new(Capabilities::upstream());
        self.step(Event::Join {
            link,
            participant: &id(name),
            role: Role::Upstream,
            capabilities,
            rate: None,
            ear: None,
            promotes: false,
        })
    }

    pub(crate) fn caller(&mut self, link: LinkId, name: &str, grants: &[&str]) -> Effects {
        self.limited(link, name, grants, None)
    }

    pub(crate) fn limited(
        &mut self,
        link: LinkId,
        name: &str,
        grants: &[&str],
        rate: Option<RateLimit>,
    ) -> Effects {
        let capabilities = caps(grants);
        let (participant, role, ear, promotes) = (&id(name), Role::Caller, None, false);
        self.step(Event::Join { link, participant, role, capabilities, rate, ear, promotes })
    }

    /// A link that listens to the room.
    pub(crate) fn listener(&mut self, link: LinkId, name: &str, grants: &[&str], ear: Ear) -> Effects {
        let capabilities = caps(grants);
        let (participant, role, rate, ear) = (&id(name), Role::Caller, None, Some(ear));
        self.step(Event::Join { link, participant, role, capabilities, rate, ear, promotes: false })
    }

    /// A link whose wire cannot say a proposal.
    pub(crate) fn promoting(&mut self, link: LinkId, name: &str, grants: &[&str]) -> Effects {
        let capabilities = caps(grants);
        let (participant, role, rate, ear) = (&id(name), Role::Caller, None, None);
        self.step(Event::Join { link, participant, role, capabilities, rate, ear, promotes: true })
    }

    /// Proposes a call of `a` at `one`, which expires at 1000.
    pub(crate) fn propose(&mut self, proposal: u128, by: &str, held: Option<u128>) -> Effects {
        let (by, to) = (&id(by), &[id("one")]);
        let (method, context, digest, expires_ms) = ("tools/call", Some("a"), SHOWN, 1_000);
        let terms = Terms { by, method, context, to, digest, expires_ms };
        self.step(Event::Propose { proposal: op(proposal), terms, held: held.map(op) })
    }

    pub(crate) fn stored(&mut self, proposal: u128) -> Effects {
        self.step(Event::Stored { proposal: op(proposal) })
    }

    pub(crate) fn not_stored(&mut self, proposal: u128) -> Effects {
        self.step(Event::NotStored { proposal: op(proposal) })
    }

    pub(crate) fn decide(&mut self, proposal: u128, by: &str, decision: Decision<'_>) -> Effects {
        self.step(Event::Decide { proposal: op(proposal), by: &id(by), outside: None, decision })
    }

    pub(crate) fn say(&mut self, link: LinkId, kind: &str, to: &[&str]) -> Effects {
        self.step(Event::Say { link, kind, to })
    }

    pub(crate) fn lists(&mut self, name: &str, view: View, manifest: Manifest) -> Effects {
        self.step(Event::Listed { upstream: &id(name), view, manifest, told: &[] })
    }

    pub(crate) fn call(&mut self, link: LinkId, operation: u128, tool: &str) -> Effects {
        self.ask_for(link, operation, "tools/call", Some(Target::Tool(tool)))
    }

    pub(crate) fn ask_for(
        &mut self,
        link: LinkId,
        operation: u128,
        method: &str,
        target: Option<Target<'_>>,
    ) -> Effects {
        self.step(Event::Request { link, operation: op(operation), method, target })
    }

    pub(crate) fn sees(&self, link: LinkId, list: ListKind) -> Vec<String> {
        self.topic.list(link, list).iter().map(|one| one.public.to_string()).collect()
    }
}

/// Where the only effect delivers to, and under which own name.
pub(crate) fn delivered(effects: &Effects) -> (String, Option<String>) {
    match effects.as_slice() {
        [Effect::Deliver { to, own, .. }] => (to.to_string(), own.as_deref().map(str::to_owned)),
        other => panic!("not one delivery: {other:?}"),
    }
}

/// Why the only effect refuses.
pub(crate) fn refused(effects: &Effects) -> Cause {
    match effects.as_slice() {
        [
            Effect::Refuse { cause, .. }
            | Effect::RefuseAsk { cause, .. }
            | Effect::Withhold { cause, .. }
            | Effect::NotProposed { cause, .. }
            | Effect::RefuseDecision { cause, .. }
            | Effect::NotJoined { cause, .. },
        ] => *cause,
        other => panic!("not one refusal: {other:?}"),
    }
}

/// The links that are told of a changed list.
pub(crate) fn told(effects: &Effects, wanted: ListKind) -> Vec<LinkId> {
    let lists = effects.iter().filter_map(|effect| match effect {
        Effect::ListChanged { list, links } if *list == wanted => Some(links.clone()),
        _ => None,
    });
    lists.flatten().collect()
}
