//! The path of one topic: decode is behind us, ADMIT, ROUTE, hand over; and back again.
//!
//! Owns the topic under its lock and the links of its callers and upstreams. It never holds the lock across an await,
//! and never decides: the topic does. Must not know sockets, HTTP or configuration files.

mod follow;
mod members;
mod patience;
mod repeats;
mod say;
mod send;
mod servers;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use model::{LinkId, OperationId, Outcome, ParticipantId, Refusal, RefusalCode, TopicName};
use topic::{About, Effect, Effects, Event, Target, Topic};
use wire::json::Splice;
use wire::mcp::method::TargetKind;
use wire::mcp::{self, ListKind, Params, method};
use wire::rpc::Message;

use crate::caller::Caller;
use crate::ground::Ground;

use crate::operation::{Names, Operation, Road};
use crate::room::{self, Room, RoomConfig};
use crate::spell;
use crate::stream::Stream;
use crate::upstream::{Answer, CallSink, Hello, Upstream};
use repeats::Repeats;
pub use say::Hearing;
use send::{read, translate, untranslated};

/// One upstream in this topic.
#[derive(Clone)]
pub struct Seat {
    /// As a participant.
    pub id: ParticipantId,
    /// Its link in the topic.
    pub link: LinkId,
    /// The server.
    pub upstream: Arc<Upstream>,
}

/// One topic, and those who are linked to it.
pub struct Pump {
    ground: Arc<Ground>,
    name: TopicName,
    list_wait: Duration,
    topic: Mutex<Topic>,
    /// Those who hear what is said.
    room: Arc<Room>,
    /// The gateway's own participant, `portmoot`: it answers what needs no upstream.
    own: (ParticipantId, LinkId),
    seats: RwLock<Arc<[Seat]>>,
    callers: Mutex<HashMap<LinkId, Weak<Caller>>>,
    admitted: AtomicU64,
    refused: AtomicU64,
    /// What hosted participants have acted on lately.
    repeats: Repeats,
    this: Weak<Pump>,
}

/// A request on its way in, as the doors hand it over.
pub struct Incoming {
    /// The request.
    pub message: Message,
    /// What the caller says of itself with this request.
    pub hello: Hello,
    /// The stream that takes the answer.
    pub out: Arc<Stream>,
}

/// Who has to answer an admitted request.
pub enum Routed {
    /// The gateway itself.
    Gateway,
    /// An upstream, under its own name or URI if that differs.
    Upstream(Seat, Option<Arc<str>>),
}

impl Pump {
    /// A topic without participants.
    pub fn new(
        ground: Arc<Ground>,
        name: TopicName,
        list_wait: Duration,
        limits: topic::Limits,
        room: RoomConfig,
    ) -> Arc<Self> {
        let mut config = topic::TopicConfig::new(name.clone(), Vec::new());
        config.limits = limits;
        let own = (ParticipantId::gateway(), ground.link());
        let room = room::open(room, Arc::clone(&ground));
        Arc::new_cyclic(|this| Self {
            room,
            ground,
            name,
            list_wait,
            topic: Mutex::new(Topic::new(config)),
            own,
            seats: RwLock::new(Arc::from([])),
            callers: Mutex::default(),
            admitted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            repeats: Repeats::default(),
            this: this.clone(),
        })
    }

    /// Its name.
    pub fn name(&self) -> &TopicName {
        &self.name
    }

    /// Its upstreams, in the order of the configuration.
    pub fn seats(&self) -> Arc<[Seat]> {
        Arc::clone(&self.seats.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks at the topic.
    pub fn with<T>(&self, look: impl FnOnce(&Topic) -> T) -> T {
        look(&self.topic())
    }

    /// Takes a request: admits it and hands it to its upstream, or answers with a refusal.
    pub fn request(&self, caller: &Arc<Caller>, incoming: Incoming) -> Option<Arc<Operation>> {
        let Incoming { message, hello, out } = incoming;
        let params = read(&message, &out)?;
        match self.admit_read(caller, &params, &out)? {
            (operation, Routed::Upstream(seat, own)) => {
                self.hand_over(&operation, &seat, own, &params, hello);
                Some(operation)
            }
            (operation, Routed::Gateway) => {
                self.answer_here(&operation, Err(unknown_method(message.method())));
                None
            }
        }
    }

    /// Admits a request and says who has to answer it; a refusal is answered here.
    pub fn admit(
        &self,
        caller: &Arc<Caller>,
        message: &Message,
        out: &Arc<Stream>,
    ) -> Option<(Arc<Operation>, Routed)> {
        self.admit_read(caller, &read(message, out)?, out)
    }

    fn admit_read(
        &self,
        caller: &Arc<Caller>,
        params: &Params<'_>,
        out: &Arc<Stream>,
    ) -> Option<(Arc<Operation>, Routed)> {
        let (message, seats) = (params.message(), self.seats());
        let known = method::lookup(message.method());
        let target = match known {
            Some(known) if known.list.is_some() || known.target == TargetKind::None => None,
            Some(known) => target_of(known.target, message.method(), params),
            // A method that we do not know belongs to the one upstream that is shown as it is, if there is one.
            None => {
                let plain = seats.iter().find(|seat| seat.upstream.spec().config.prefix.is_empty());
                plain.map(|seat| Target::Upstream(seat.id.as_str()))
            }
        };
        let text = target.and_then(Target::context);
        let operation = self.open(caller, message, text, out, Names::Public)?;
        let (link, id) = (caller.link(), operation.id);
        let event = Event::Request { link, operation: id, method: message.method(), target };
        let effects = self.topic().step(self.ground.now_ms(), event);
        let routed = self.routed(&operation, &seats, effects);
        match routed {
            // Set once: an operation is routed once.
            Some(Routed::Gateway) => {
                let _ = operation.upstream.set(self.own.clone());
            }
            Some(Routed::Upstream(ref seat, _)) => {
                let _ = operation.upstream.set((seat.id.clone(), seat.link));
            }
            None => operation.refuse(&unknown_method(message.method())),
        }
        Some((operation, routed?))
    }

    /// Has an upstream carry out what a link said to the room: it was admitted there, and names are the upstream's own.
    pub fn execute(&self, caller: &Arc<Caller>, seat: &Seat, message: &Message, out: &Arc<Stream>) {
        let Some(params) = read(message, out) else { return };
        let text = params.target().map(mcp::Target::text);
        let Some(operation) = self.open(caller, message, text, out, Names::Own) else { return };
        let event = Event::Execute {
            link: caller.link(),
            operation: operation.id,
            upstream: &seat.id,
            method: message.method(),
            context: text,
            proposal: None,
        };
        let effects = self.topic().step(self.ground.now_ms(), event);
        if let Some(Routed::Upstream(seat, own)) = self.routed(&operation, &self.seats(), effects) {
            let _ = operation.upstream.set((seat.id.clone(), seat.link));
            self.hand_over(&operation, &seat, own, &params, caller.hello().clone());
        }
    }

    fn open(
        &self,
        caller: &Arc<Caller>,
        message: &Message,
        target: Option<&str>,
        out: &Arc<Stream>,
        names: Names,
    ) -> Option<Arc<Operation>> {
        let (road, id) = (self.this.upgrade()?, self.ground.operation());
        let operation =
            Operation::new(id, road, Arc::clone(caller), message, target, Arc::clone(out), names)?;
        let open: Arc<Operation> = Arc::clone(&operation);
        caller.begin(id, operation.request.clone(), open);
        Some(operation)
    }

    fn routed(&self, operation: &Arc<Operation>, seats: &[Seat], effects: Effects) -> Option<Routed> {
        let mut routed = None;
        for effect in effects {
            match effect {
                Effect::Deliver { operation: id, to, .. } if id == operation.id && to == self.own.0 => {
                    routed = Some(Routed::Gateway);
                }
                Effect::Deliver { operation: id, to, own, .. } if id == operation.id => {
                    let seat = seats.iter().find(|seat| seat.id == to).cloned();
                    routed = seat.map(|seat| Routed::Upstream(seat, own));
                }
                Effect::Refuse { operation: id, refusal, .. } if id == operation.id => {
                    operation.refuse(&refusal)
                }
                other => self.carry(other),
            }
        }
        let count = if routed.is_some() { &self.admitted } else { &self.refused };
        count.fetch_add(1, Ordering::Relaxed);
        routed
    }

    /// Gives the request to the session that this caller uses, opening it on the side if it is not open.
    fn hand_over(
        &self,
        operation: &Arc<Operation>,
        seat: &Seat,
        own: Option<Arc<str>>,
        params: &Params<'_>,
        hello: Hello,
    ) {
        let (key, era) = (spell::session_key(&operation.caller, &hello), operation.caller.era());
        if let Some(session) = seat.upstream.open_session(&key, &hello, era) {
            return translate(operation, &session, own.as_deref(), params, &hello);
        }
        let (operation, upstream, message) =
            (Arc::clone(operation), Arc::clone(&seat.upstream), params.message().clone());
        tokio::spawn(async move {
            match upstream.session(&key, &hello, era).await {
                Ok(session) if operation.is_over() => drop(session),
                Ok(session) => match Params::read(&message) {
                    Ok(params) => translate(&operation, &session, own.as_deref(), &params, &hello),
                    Err(_) => operation.refuse(&untranslated()),
                },
                Err(refusal) => operation.done(Err(refusal)),
            }
        });
    }

    /// How many requests were admitted and refused.
    pub fn verdicts(&self) -> [(&'static str, u64); 2] {
        [
            ("admitted", self.admitted.load(Ordering::Relaxed)),
            ("refused", self.refused.load(Ordering::Relaxed)),
        ]
    }

    /// How long a first list waits for a server that is starting.
    pub fn list_wait(&self) -> Duration {
        self.list_wait
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
            Effect::Refuse { operation, to, refusal, .. } => {
                if let Some(open) = self.caller(to).and_then(|caller| caller.operation(operation)) {
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
            Effect::Deliver { .. } | Effect::DeliverAsk { .. } => {}
            // Nobody says anything to the room yet, nothing is held and nothing proposed.
            Effect::Publish { .. } | Effect::Withhold { .. } | Effect::Regranted { .. } => {}
            Effect::Hold { .. } | Effect::Store { .. } | Effect::Proposed { .. } => {}
            Effect::NotProposed { .. } | Effect::Approved { .. } | Effect::Told { .. } => {}
            Effect::RefuseDecision { .. } => {}
            Effect::Settle { .. } | Effect::SettleAsk { .. } | Effect::RefuseAsk { .. } => {}
        }
    }

    /// Answers an admitted request from here: the topic settles it, and its caller gets this.
    pub fn answer_here(&self, operation: &Arc<Operation>, end: Result<Bytes, Refusal>) {
        let outcome = if end.is_ok() { Outcome::Ok } else { Outcome::Refused };
        if self.settles(operation, outcome) {
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
        self.topic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<LinkId, Weak<Caller>>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Road for Pump {
    fn settles(&self, operation: &Operation, outcome: Outcome) -> bool {
        let Some((_, link)) = operation.upstream.get() else { return true };
        let event = Event::Answer { link: *link, operation: operation.id, outcome };
        let effects = self.topic().step(self.ground.now_ms(), event);
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

    fn cancelled(&self, operation: &Operation) {
        let (link, id) = (operation.caller.link(), operation.id);
        self.step(Event::Cancel { link, operation: id });
        operation.take_back("the client cancelled the request");
    }

    fn spell(&self, operation: &Operation, answer: &Answer) -> (Bytes, Option<i64>) {
        spell::answer(operation, answer, &|own| self.respelled(operation, own))
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
