//! The path of one topic: decode is behind us, ADMIT, ROUTE, hand over; and back again.
//!
//! Owns the topic under its lock and the links of its callers and upstreams. It never holds the lock across an await,
//! and never decides: the topic does. Must not know sockets, HTTP or configuration files.

mod admit;
mod asked;
mod claim;
mod decide;
mod follow;
mod held;
mod members;
mod patience;
mod propose;
mod record;
mod repeats;
mod review;
mod run;
mod say;
mod send;
mod servers;
mod serving;
mod show;
mod task_list;
mod tasks;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use json::Splice;
use model::{LinkId, OperationId, Outcome, ParticipantId, Refusal, RefusalCode, TopicName};
use platform::{Mutex, MutexGuard, RwLock};
use room::{Room, RoomConfig};
use store::Writer;
use tokio::sync::{Notify, watch};
use topic::{About, Effect, Effects, Event, Target, Topic};
use upstream::dial_in::{DialIn, RecentRequests};
use wire::mcp::method::TargetKind;
use wire::mcp::{self, ListKind, Params};
use wire::rpc::Message;

use crate::audit::Recorder;
use crate::bounds::Bounds;
use crate::caller::Caller;
use crate::config::McpCalls;
use crate::desk::Desk;
use crate::ground::Ground;

use crate::operation::{Names, Operation, Road};
use crate::spell;
use crate::tasks::{Relayed, Tasks};
use asked::Asked;
pub(crate) use claim::Claim;
pub use decide::{Choice, digest};
use repeats::Repeats;
pub use say::Hearing;
pub(crate) use tasks::Watched;
use upstream::{Answer, Manifest, Session, Upstream};

/// One upstream in this topic.
#[derive(Clone)]
pub struct Seat {
    /// As a participant.
    pub id: ParticipantId,
    /// Its link in the topic.
    pub link: LinkId,
    /// The server.
    pub upstream: Arc<Upstream>,
    /// The participant that it is, if it is one that comes and goes by itself.
    pub(crate) served: Option<Arc<DialIn>>,
}

/// One topic, and those who are linked to it.
pub struct Pump {
    ground: Arc<Ground>,
    name: TopicName,
    list_wait: Duration,
    /// How long what somebody served stays listed after it has left.
    away: Duration,
    topic: Mutex<Topic>,
    /// Those who hear what is said.
    room: Arc<Room>,
    /// The gateway's own participant, `portmoot`: it answers what needs no upstream.
    own: (ParticipantId, LinkId),
    seats: RwLock<Arc<[Seat]>>,
    callers: Mutex<HashMap<LinkId, Weak<Caller>>>,
    admitted: AtomicU64,
    refused: AtomicU64,
    /// What the gateway's own participant lists.
    built_in: RwLock<Arc<Manifest>>,
    /// How much of what was said before it came a newcomer may have.
    history: u64,
    /// What hosted participants have acted on lately.
    repeats: Repeats,
    /// Who was asked lately.
    asked: Asked,
    /// Held while a proposal is said and taken up: nobody who hears it looks for it before it is there.
    opening: Mutex<()>,
    /// What those who serve or have served here were asked; it outlives their seats.
    late: Mutex<HashMap<ParticipantId, Arc<RecentRequests>>>,
    /// What was proposed here, in full.
    desk: Desk,
    audit: Recorder,
    proposal_ttl: Duration,
    /// How long a call is held before its caller is answered for now.
    hold: Duration,
    /// Whether the gateway is about to stop.
    stopping: watch::Sender<bool>,
    mcp_calls: McpCalls,
    /// There may be a proposal that expires earlier.
    expiry: Arc<Notify>,
    /// In whose name approved proposals are carried out when no caller waits: the gateway's own.
    runner: Arc<Caller>,
    /// Tasks of servers.
    tasks: Arc<Tasks>,
    this: Weak<Pump>,
}

/// What a topic is made with.
pub struct Plan {
    /// Its name.
    pub name: TopicName,
    /// How long a first list waits for a server that is starting.
    pub list_wait: Duration,
    /// How long the tools of a participant that serves stay listed after it has left.
    pub away: Duration,
    /// Its bounds.
    pub limits: topic::Limits,
    /// Its room.
    pub room: RoomConfig,
    /// How long a proposal waits for a decision.
    pub proposal_ttl: Duration,
    /// How long a call is held before its caller is answered for now.
    pub hold: Duration,
    /// What others see of MCP clients' calls.
    pub mcp_calls: McpCalls,
    /// Where proposals are written down, if anywhere.
    pub journal: Option<Writer>,
    /// Where verdicts are recorded, if anywhere.
    pub audit: Recorder,
    /// The bounds of streams.
    pub bounds: Arc<Bounds>,
}

/// Who has to answer an admitted request.
pub enum Routed {
    /// The gateway itself.
    Gateway,
    /// An upstream, under its own name or URI if that differs.
    Upstream(Seat, Option<Arc<str>>),
    /// Nobody for now: it is held as a proposal.
    Held(Seat, Option<Arc<str>>),
}

impl Pump {
    /// A topic without participants.
    pub fn new(ground: Arc<Ground>, plan: Plan) -> Arc<Self> {
        let Plan {
            name,
            list_wait,
            away,
            limits,
            room,
            proposal_ttl,
            hold,
            mcp_calls,
            journal,
            audit,
            bounds,
        } = plan;
        let mut config = topic::TopicConfig::new(name.clone(), Vec::new());
        config.limits = limits;
        let own = (ParticipantId::gateway(), ground.link());
        let history = room.history as u64;
        let room = room::open(room, Arc::<Ground>::clone(&ground));
        let runner = Arc::new(Caller::own(own.1, &name, &bounds));
        let pump = Arc::new_cyclic(|this| Self {
            room,
            ground,
            name,
            list_wait,
            away,
            desk: Desk::new(journal),
            audit,
            proposal_ttl,
            hold,
            stopping: watch::Sender::new(false),
            mcp_calls,
            expiry: Arc::default(),
            runner,
            topic: Mutex::new(Topic::new(config)),
            own,
            seats: RwLock::new(Arc::from([])),
            callers: Mutex::default(),
            admitted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            built_in: RwLock::default(),
            history,
            repeats: Repeats::default(),
            asked: Asked::default(),
            opening: Mutex::default(),
            late: Mutex::default(),
            tasks: Arc::default(),
            this: this.clone(),
        });
        pump.callers().insert(pump.runner.link(), Arc::downgrade(&pump.runner));
        pump.watch_expiry();
        pump
    }

    /// Its name.
    pub fn name(&self) -> &TopicName {
        &self.name
    }

    /// Its upstreams, in the order of the configuration.
    pub fn seats(&self) -> Arc<[Seat]> {
        Arc::clone(&self.seats.read())
    }

    /// Looks at the topic.
    pub fn with<T>(&self, look: impl FnOnce(&Topic) -> T) -> T {
        look(&self.topic())
    }

    /// How many requests were admitted and refused.
    pub fn verdicts(&self) -> [(&'static str, u64); 2] {
        [
            ("admitted", self.admitted.load(Ordering::Relaxed)),
            ("refused", self.refused.load(Ordering::Relaxed)),
        ]
    }

    /// Whether a server's tool is listed to this link under exactly this public name.
    fn lists_tool(&self, link: LinkId, name: Option<&str>) -> bool {
        let Some(name) = name else { return false };
        self.with(|topic| {
            let route = topic.lookup(link, Target::Tool(name));
            route.is_some_and(|route| route.is_listed() && *route.upstream != self.own.0)
        })
    }

    /// How long a first list waits for a server that is starting.
    pub fn list_wait(&self) -> Duration {
        self.list_wait
    }

    /// Whether the room is shown MCP clients' calls at all.
    fn shows_calls(&self) -> bool {
        self.mcp_calls != McpCalls::None
    }

    /// The ground that this topic stands on.
    pub fn ground(&self) -> &Arc<Ground> {
        &self.ground
    }

    fn step(&self, event: Event<'_>) -> Vec<Effect> {
        let effects = {
            let mut topic = self.topic();
            let effects = topic.step(self.ground.now_ms(), event);
            self.note(&topic, &effects);
            effects
        };
        self.carry_all(effects)
    }

    /// Carries out what a step gave; what concerns the one who asked for the step comes back.
    fn carry_all(&self, effects: Effects) -> Vec<Effect> {
        let (mut kept, mut changed) = (Vec::new(), Vec::new());
        for effect in effects {
            match effect {
                Effect::NotJoined { .. } => kept.push(effect),
                // Resources and templates are two lists with one notification.
                Effect::ListChanged { list, links } => {
                    let list = spell::told_list(list);
                    changed.extend(links.into_iter().map(|link| (link, list)));
                }
                other => self.carry(other),
            }
        }
        changed.sort_unstable_by_key(|(link, list)| (*link, list.changed()));
        changed.dedup();
        for (link, list) in changed {
            if let Some(caller) = self.caller(link) {
                caller.tell_changed(list);
            }
        }
        kept
    }

    /// Carries out an effect that is not the answer to the step's own event.
    fn carry(&self, effect: Effect) {
        match effect {
            Effect::Refuse { operation, to, refusal, cause } => {
                let Some(caller) = self.caller(to) else { return };
                if let Some(open) = caller.operation(operation) {
                    self.record_ended(&caller, operation, &*open, cause);
                    open.refuse(&refusal);
                }
            }
            Effect::ListChanged { list, links } => {
                let kind = spell::told_list(list);
                links
                    .into_iter()
                    .filter_map(|link| self.caller(link))
                    .for_each(|caller| caller.tell_changed(kind));
            }
            Effect::Ended { link, .. } => {
                self.gone(link);
                // The table is let go first: what the caller cancels comes back here.
                let gone = self.callers().remove(&link);
                if let Some(caller) = gone.and_then(|caller| caller.upgrade()) {
                    caller.leave();
                }
            }
            Effect::CancelAt { .. } | Effect::CancelAsk { .. } => {
                // Whoever cancels holds the operation and tells the upstream itself (`Operation::take_back`).
            }
            Effect::Joined { .. } | Effect::Left { .. } | Effect::NotJoined { .. } => {}
            // A call that was held.
            Effect::Deliver { operation, own, .. } => self.let_go(operation, own),
            Effect::DeliverAsk { .. } | Effect::Hold { .. } => {}
            // The room has it already.
            Effect::Publish { .. } | Effect::Withhold { .. } | Effect::Regranted { .. } => {}
            Effect::Store { .. } | Effect::Proposed { .. } | Effect::NotProposed { .. } => {
                self.carry_proposal(effect);
            }
            Effect::Approved { .. } | Effect::Told { .. } | Effect::RefuseDecision { .. } => {
                self.carry_proposal(effect);
            }
            Effect::Settle { .. } | Effect::SettleAsk { .. } | Effect::RefuseAsk { .. } => {}
        }
    }

    /// Answers an admitted request from here: the topic settles it, and its caller gets this.
    pub fn answer_here(&self, operation: &Arc<Operation>, end: Result<Bytes, Refusal>) {
        let outcome = if end.is_ok() { Outcome::Ok } else { Outcome::Refused };
        if self.settles(operation, outcome, None) {
            match end {
                Ok(frame) => operation.answer(frame, None),
                Err(refusal) => operation.refuse(&refusal),
            }
        }
    }

    /// How a URI of the server that has this operation is spelled towards its caller, if otherwise.
    fn respelled(&self, operation: &Operation, own: &str) -> Option<String> {
        let (upstream, _) = operation.upstream.get().filter(|_| operation.names == Names::Public)?;
        self.with(|topic| topic.respelled_uri(operation.caller.link(), upstream, own))
    }

    fn caller(&self, link: LinkId) -> Option<Arc<Caller>> {
        self.callers().get(&link).and_then(Weak::upgrade)
    }

    fn topic(&self) -> MutexGuard<'_, Topic> {
        self.topic.lock()
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<LinkId, Weak<Caller>>> {
        self.callers.lock()
    }
}

impl Road for Pump {
    fn settles(&self, operation: &Operation, outcome: Outcome, answer: Option<&Answer>) -> bool {
        let Some((_, link)) = operation.upstream.get() else { return true };
        let event = Event::Answer { link: *link, operation: operation.id, outcome };
        let effects = {
            let mut topic = self.topic();
            let effects = topic.step(self.ground.now_ms(), event);
            self.show_answer(&topic, &effects, operation, answer);
            effects
        };
        let mut settled = false;
        for effect in effects {
            match effect {
                Effect::Settle { operation: id, .. } if id == operation.id => settled = true,
                other => self.carry(other),
            }
        }
        settled
    }

    fn lets_ask(&self, operation: &Operation, method: &str) -> Option<OperationId> {
        let (upstream, _) = operation.upstream.get()?;
        self.lets(upstream, About::Call(operation.id), method)
    }

    fn unasked(&self, ask: OperationId) {
        self.expire(ask);
    }

    fn noted(&self, operation: &Operation, answer: &Answer) {
        Pump::noted(self, operation, answer);
    }

    fn refused(&self, operation: &Operation) {
        self.show_unanswered(operation, Outcome::Refused);
    }

    fn cancelled(&self, operation: &Operation) {
        let (link, id) = (operation.caller.link(), operation.id);
        self.step(Event::Cancel { link, operation: id });
        self.show_unanswered(operation, Outcome::Cancelled);
        operation.take_back("the client cancelled the request");
    }

    fn spell(&self, operation: &Operation, answer: &Answer) -> (Bytes, Option<i64>) {
        let mut splice = Splice::default();
        let tasks = operation.tasked.get().is_some()
            || operation.session().is_some_and(|session| session.tasks() > 0);
        if tasks && let Err(refusal) = self.spell_tasks(operation, &answer.message, &mut splice) {
            let (frame, code) = spell::refusal(operation, &refusal);
            return (frame, Some(code));
        }
        spell::answer(operation, answer, &|own| self.respelled(operation, own), splice)
    }

    fn spell_notice(&self, session: &Session, frame: Bytes) -> Bytes {
        self.spelled_notice(session, frame)
    }

    fn task(&self, caller: &Caller, public: &str) -> Option<Arc<Relayed>> {
        self.task_of(caller, public)
    }

    fn spell_question(&self, operation: &Operation, question: &Message, splice: &mut Splice) {
        spell::respell(question, question.method(), &|own| self.respelled(operation, own), splice);
    }

    fn spell_refusal(&self, operation: &Operation, refusal: &Refusal) -> (Bytes, i64) {
        spell::refusal(operation, refusal)
    }
}

fn target_of<'p>(kind: TargetKind, method: &str, params: &'p Params<'_>) -> Option<Target<'p>> {
    match (kind, params.target()?) {
        (_, mcp::Target::Uri(uri)) => Some(Target::Uri(uri)),
        (TargetKind::Ref, mcp::Target::Name(name)) => Some(Target::Prompt(name)),
        (_, mcp::Target::Name(name)) if method.starts_with("prompts/") => Some(Target::Prompt(name)),
        (_, mcp::Target::Name(name)) => Some(Target::Tool(name)),
        (_, mcp::Target::Task(_)) => None,
    }
}

/// The refusal of a method that nobody here has.
pub fn unknown_method(method: &str) -> Refusal {
    Refusal::new(RefusalCode::Unsupported, format!("method not found: {method}"))
}

/// Which list kinds a modern listen filter names.
pub const LISTS: [(&str, ListKind); 3] = [
    ("toolsListChanged", ListKind::Tools),
    ("promptsListChanged", ListKind::Prompts),
    ("resourcesListChanged", ListKind::Resources),
];
