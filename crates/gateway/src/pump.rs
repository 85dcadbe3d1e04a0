//! The path of one topic: decode is behind us, ADMIT, ROUTE, hand over; and back again.
//!
//! Owns the topic under its lock and the links of its callers and upstreams. It never holds the lock across an await,
//! and never decides: the topic does. Must not know sockets, HTTP or configuration files.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use model::{Capabilities, LinkId, OperationId, Outcome, ParticipantId, Refusal, RefusalCode, TopicName};
use topic::{About, Effect, Effects, Event, Role, Target, Topic, UpstreamNames, View};
use wire::json::Splice;
use wire::mcp::method::TargetKind;
use wire::mcp::{self, ListKind, Params, method};
use wire::rpc::{Message, Shape};

use crate::caller::{Caller, Question};
use crate::ground::Ground;
use crate::operation::{Operation, Road};
use crate::spell;
use crate::stream::Stream;
use crate::upstream::{Answer, CallSink, Hello, Outgoing, QuestionId, Session, Upstream};

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
    /// The gateway's own participant, `portmoot`: it answers what needs no upstream.
    own: (ParticipantId, LinkId),
    seats: RwLock<Arc<[Seat]>>,
    callers: Mutex<HashMap<LinkId, Weak<Caller>>>,
    admitted: AtomicU64,
    refused: AtomicU64,
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
    ) -> Arc<Self> {
        let mut config = topic::TopicConfig::new(name.clone(), Vec::new());
        config.limits = limits;
        let own = (ParticipantId::gateway(), ground.link());
        Arc::new_cyclic(|this| Self {
            ground,
            name,
            list_wait,
            topic: Mutex::new(Topic::new(config)),
            own,
            seats: RwLock::new(Arc::from([])),
            callers: Mutex::default(),
            admitted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
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

    /// Gives the topic these upstreams, in this order: new ones join, missing ones are cut off, the others stay as they are.
    pub fn configure(&self, upstreams: &[Arc<Upstream>]) {
        let old = self.seats();
        let mut names = vec![UpstreamNames::gateway()];
        let mut seats = Vec::new();
        for upstream in upstreams {
            let Ok(id) = ParticipantId::new(upstream.spec().name()) else { continue };
            let kept = old.iter().find(|seat| seat.id == id).map(|seat| seat.link);
            names.push(UpstreamNames::new(id.clone(), &*upstream.spec().config.prefix));
            let link = kept.unwrap_or_else(|| self.ground.link());
            seats.push(Seat { id, link, upstream: Arc::clone(upstream) });
        }
        *self.seats.write().unwrap_or_else(PoisonError::into_inner) = seats.clone().into();
        self.step(Event::Configure { upstreams: &names });
        self.seat(&self.own.0, self.own.1);
        for seat in seats {
            if !old.iter().any(|other| other.link == seat.link) {
                self.seat(&seat.id, seat.link);
            }
            self.listed(&seat.id, View::Shared, &seat.upstream.manifest(), &[]);
        }
    }

    fn seat(&self, participant: &ParticipantId, link: LinkId) {
        if self.topic().participant(link).is_none() {
            let capabilities = Arc::new(Capabilities::upstream());
            self.step(Event::Join { link, participant, role: Role::Upstream, capabilities, rate: None });
        }
    }

    /// Lets a caller in.
    ///
    /// # Errors
    /// What the topic answers: it is full, or the name is an upstream's.
    pub fn join(&self, caller: &Arc<Caller>) -> Result<(), Refusal> {
        let participant = caller.participant();
        self.callers().insert(caller.link(), Arc::downgrade(caller));
        let effects = self.step(Event::Join {
            link: caller.link(),
            participant: &participant.id,
            role: Role::Caller,
            capabilities: Arc::clone(&participant.capabilities),
            rate: participant
                .rate
                .map(|rate| topic::RateLimit { per_minute: rate.per_minute, burst: rate.burst }),
        });
        for effect in effects {
            if let Effect::NotJoined { refusal, .. } = effect {
                self.callers().remove(&caller.link());
                return Err(*refusal);
            }
        }
        Ok(())
    }

    /// A caller goes; what it opened is cancelled, and its own sessions are closed.
    pub fn leave(&self, caller: &Caller) {
        caller.leave();
        self.step(Event::Leave { link: caller.link() });
        self.callers().remove(&caller.link());
        for seat in self.seats().iter() {
            seat.upstream.leave(caller.key());
        }
    }

    /// Gives a participant other capabilities, at once and for what is open as well.
    pub fn regrant(&self, participant: &ParticipantId, capabilities: &Arc<Capabilities>) {
        self.step(Event::Regrant { participant, capabilities: Arc::clone(capabilities) });
    }

    /// Takes a request: admits it and hands it to its upstream, or answers with a refusal.
    pub fn request(&self, caller: &Arc<Caller>, incoming: Incoming) -> Option<Arc<Operation>> {
        let Incoming { message, hello, out } = incoming;
        match self.admit(caller, &message, &out)? {
            (operation, Routed::Upstream(seat, own)) => {
                self.hand_over(&operation, &seat, own, &message, hello);
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
        let params = match Params::read(message) {
            Ok(params) => params,
            Err(malformed) => {
                out.answer(malformed.answer());
                return None;
            }
        };
        let seats = self.seats();
        let known = method::lookup(message.method());
        let target = match known {
            Some(known) if known.list.is_some() || known.target == TargetKind::None => None,
            Some(known) => target_of(known.target, message.method(), &params),
            // A method that we do not know belongs to the one upstream that is shown as it is, if there is one.
            None => {
                let plain = seats.iter().find(|seat| seat.upstream.spec().config.prefix.is_empty());
                plain.map(|seat| Target::Upstream(seat.id.as_str()))
            }
        };
        let text = target.and_then(Target::context);
        let road = self.this.upgrade()?;
        let id = self.ground.operation();
        let operation = Operation::new(id, road, Arc::clone(caller), message, text, Arc::clone(out))?;
        let open: Arc<Operation> = Arc::clone(&operation);
        caller.begin(id, operation.request.clone(), open);
        let event = Event::Request { link: caller.link(), operation: id, method: message.method(), target };
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
        message: &Message,
        hello: Hello,
    ) {
        let (key, era) = (spell::session_key(&operation.caller, &hello), operation.caller.era());
        if let Some(session) = seat.upstream.open_session(&key, &hello, era) {
            return send(operation, &session, own.as_deref(), message, &hello);
        }
        let (operation, upstream, message) =
            (Arc::clone(operation), Arc::clone(&seat.upstream), message.clone());
        tokio::spawn(async move {
            match upstream.session(&key, &hello, era).await {
                Ok(session) if operation.is_over() => drop(session),
                Ok(session) => send(&operation, &session, own.as_deref(), &message, &hello),
                Err(refusal) => operation.done(Err(refusal)),
            }
        });
    }

    /// Tells the topic what an upstream has now.
    pub fn listed(
        &self,
        upstream: &ParticipantId,
        view: View,
        manifest: &crate::upstream::Manifest,
        told: &[ListKind],
    ) {
        let manifest = spell::manifest(manifest);
        let told: Vec<_> = told.iter().map(|list| spell::topic_list(*list)).collect();
        self.step(Event::Listed { upstream, view, manifest, told: &told });
    }

    /// A session's lists have changed, or its server says that these have.
    pub fn changed(&self, session: &Session, told: &[ListKind]) {
        let seats = self.seats();
        let Some(seat) = seats.iter().find(|seat| seat.id.as_str() == session.upstream()) else { return };
        match self.owner(session) {
            Some(caller) => self.listed(&seat.id, View::Link(caller.link()), &session.manifest(), told),
            None if spell::is_own(session.key()) => {}
            None => self.listed(&seat.id, View::Shared, &session.manifest(), told),
        }
    }

    /// A session has ended: its owner sees the shared lists again.
    pub fn ended(&self, session: &Session) {
        let seats = self.seats();
        let seat = seats.iter().find(|seat| seat.id.as_str() == session.upstream());
        if let (Some(caller), Some(seat)) = (self.owner(session), seat) {
            self.step(Event::Detach { link: caller.link(), upstream: &seat.id });
        }
    }

    /// The legacy caller to whom a session belongs, if it is in this topic.
    pub fn owner(&self, session: &Session) -> Option<Arc<Caller>> {
        let link = spell::owner(session.key())?;
        self.callers().get(&link).and_then(Weak::upgrade)
    }

    /// A question to a session's owner that belongs to no call; `false` if it cannot be asked.
    pub fn ask_owner(&self, session: &Arc<Session>, question: QuestionId, message: &Message) -> bool {
        let Some(caller) = self.owner(session) else { return false };
        let seats = self.seats();
        let Some(seat) = seats.iter().find(|seat| seat.id.as_str() == session.upstream()) else {
            return false;
        };
        let about = About::Session(caller.link());
        if caller.era() != session.era() {
            return false;
        }
        let Some(ask) = self.lets(&seat.id, about, message.method()) else { return false };
        let question = Question { session: Arc::clone(session), id: question, about: None, ask };
        let Some(id) = caller.ask(question) else {
            self.expire(ask);
            return false;
        };
        let mut splice = Splice::default();
        message.set_id(&mut splice, &id);
        caller.tell_home(message.edited(&splice));
        true
    }

    /// A server takes back a question that belonged to no call.
    pub fn unask_owner(&self, session: &Arc<Session>, question: QuestionId) {
        let Some(caller) = self.owner(session) else { return };
        if let Some((id, ask)) = caller.unask(session, question) {
            self.expire(ask);
            let params = [b"{\"requestId\":", id.raw(), b"}"].concat();
            caller.tell_home(wire::rpc::notification("notifications/cancelled", Some(&params)));
        }
    }

    /// Something about no call: to the session's owner, or to every caller that follows this resource.
    pub fn tell(&self, session: &Arc<Session>, method: &str, frame: &Bytes) {
        if method == "notifications/resources/updated" {
            return self.updated(session, frame);
        }
        match self.owner(session) {
            Some(caller) if method != "notifications/message" || wants(&caller, frame) => {
                caller.tell_home(frame.clone());
            }
            Some(_) => {}
            None => tracing::debug!(upstream = session.upstream(), method, "a notification that is nobody's"),
        }
    }

    fn updated(&self, session: &Arc<Session>, frame: &Bytes) {
        let Ok(message) = Message::read(frame.clone()) else { return };
        let Ok(params) = Params::read(&message) else { return };
        let Some(mcp::Target::Uri(own)) = params.target() else { return };
        let Ok(id) = ParticipantId::new(session.upstream()) else { return };
        let owner = spell::owner(session.key());
        for caller in self.everyone() {
            if owner.is_some_and(|owner| owner != caller.link()) {
                continue;
            }
            let public = self.with(|topic| topic.respelled_uri(caller.link(), &id, own));
            let mut splice = Splice::default();
            if let Some(public) = &public {
                params.edit().set_target(public).finish(&mut splice);
            }
            let uri = public.as_deref().unwrap_or(own);
            if caller.follows(uri) {
                let respelled = Message::read(message.edited(&splice));
                let raw = respelled.as_ref().ok().and_then(Message::params).unwrap_or(b"{}");
                caller.tell_updated(uri, raw);
            }
        }
    }

    /// Everybody who is linked now.
    pub fn everyone(&self) -> Vec<Arc<Caller>> {
        self.callers().values().filter_map(Weak::upgrade).collect()
    }

    /// Waits until servers that are still starting for the first time have started, or the topic's bound is over.
    pub async fn wait_for_servers(&self) {
        let waited_ms = self.ground.now_ms();
        let left = self.list_wait.saturating_sub(Duration::from_millis(waited_ms));
        let seats = self.seats();
        let all = async {
            for seat in seats.iter() {
                seat.upstream.settled().await;
            }
        };
        // Whoever is not there by then is listed later, with list_changed.
        let _ = tokio::time::timeout(left, all).await;
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
        let effects = self.topic().step(self.ground.now_ms(), event);
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
            Effect::Ended { link } => {
                if let Some(caller) = self.callers().remove(&link).and_then(|caller| caller.upgrade()) {
                    caller.leave();
                }
            }
            Effect::CancelAt { .. } | Effect::CancelAsk { .. } => {
                // Whoever cancels holds the operation and tells the upstream itself (`Operation::take_back`).
            }
            Effect::Joined { .. } | Effect::Left { .. } | Effect::NotJoined { .. } => {}
            Effect::Deliver { .. } | Effect::DeliverAsk { .. } => {}
            Effect::Settle { .. } | Effect::SettleAsk { .. } | Effect::RefuseAsk { .. } => {}
        }
    }

    /// Asks the topic whether an upstream may ask this; gives the question's id there.
    fn lets(&self, upstream: &ParticipantId, about: About, method: &str) -> Option<OperationId> {
        let id = self.ground.operation();
        let effects =
            self.topic().step(self.ground.now_ms(), Event::Ask { upstream, operation: id, about, method });
        let mut ask = None;
        for effect in effects {
            match effect {
                Effect::DeliverAsk { operation, .. } if operation == id => ask = Some(id),
                Effect::RefuseAsk { operation, .. } if operation == id => {}
                other => self.carry(other),
            }
        }
        ask
    }

    /// A caller has answered a question; whether the topic still counts it.
    pub fn answered(&self, link: LinkId, ask: OperationId, shape: Shape) -> bool {
        let outcome = if shape == Shape::Result { Outcome::Ok } else { Outcome::Error };
        let effects =
            self.topic().step(self.ground.now_ms(), Event::Answer { link, operation: ask, outcome });
        let mut counts = false;
        for effect in effects {
            match effect {
                Effect::SettleAsk { operation, .. } if operation == ask => counts = true,
                other => self.carry(other),
            }
        }
        counts
    }

    /// A question was taken back by its server, or could not be put.
    pub fn expire(&self, ask: OperationId) {
        self.step(Event::Expire { operation: ask });
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

    /// Passes a legacy caller's log level on to the servers that it uses; none of them can make this fail.
    pub async fn set_level(&self, caller: &Arc<Caller>, level: &str) {
        for seat in self.seats().iter() {
            let Some(session) = seat.upstream.open_session(caller.key(), caller.hello(), caller.era()) else {
                continue;
            };
            if let Err(refusal) = session.set_level(level).await {
                tracing::debug!(upstream = session.upstream(), %refusal, "log level not taken");
            }
        }
    }

    /// The sessions of a caller's own that are open now.
    pub fn own_sessions(&self, caller: &Caller) -> Vec<Arc<Session>> {
        if !spell::is_own(caller.key()) {
            return Vec::new();
        }
        let seats = self.seats();
        let open = |seat: &Seat| seat.upstream.open_session(caller.key(), caller.hello(), caller.era());
        seats.iter().filter_map(open).filter(|session| spell::is_own(session.key())).collect()
    }

    /// Whether this caller may follow a resource.
    pub fn may_follow(&self, caller: &Caller, uri: &str) -> bool {
        self.with(|topic| topic.admits(caller.link(), "resources/subscribe", Some(Target::Uri(uri))))
    }

    /// Has updates of a resource sent for a modern caller that listens to it.
    ///
    /// # Errors
    /// What the upstream answers.
    pub async fn follow(&self, caller: &Arc<Caller>, hello: &Hello, uri: &str) -> Result<Message, Refusal> {
        let Some((seat, own)) = self.find(caller, uri) else {
            return Err(Refusal::new(RefusalCode::UnknownTarget, "resource not found"));
        };
        self.session(caller, &seat, hello).await?.subscribe(caller.link(), &own).await
    }

    /// Ends that.
    pub fn unfollow(&self, caller: &Caller, uri: &str) {
        if let Some((seat, own)) = self.find(caller, uri) {
            self.unsubscribe(caller, &seat, &own);
        }
    }

    /// Ends a subscription at the upstream, unless another link has it too.
    pub fn unsubscribe(&self, caller: &Caller, seat: &Seat, own: &str) {
        if let Some(session) = seat.upstream.open_session(caller.key(), caller.hello(), caller.era()) {
            session.unsubscribe(caller.link(), own);
        }
    }

    fn find(&self, caller: &Caller, uri: &str) -> Option<(Seat, String)> {
        let (upstream, own) = self.with(|topic| {
            let route = topic.lookup(caller.link(), Target::Uri(uri))?;
            Some((route.upstream.clone(), route.own.to_owned()))
        })?;
        let seat = self.seats().iter().find(|seat| seat.id == upstream).cloned()?;
        Some((seat, own))
    }

    /// Subscribes a caller to a resource.
    ///
    /// # Errors
    /// What the upstream, or the bound of subscriptions, answers.
    pub async fn subscribe(
        &self,
        caller: &Arc<Caller>,
        seat: &Seat,
        own: &str,
        public: &str,
        hello: &Hello,
    ) -> Result<Message, Refusal> {
        if !caller.subscribe(public) {
            return Err(Refusal::new(RefusalCode::Overloaded, "too many subscriptions")
                .hint("unsubscribe from resources that are no longer needed"));
        }
        let session = self.session(caller, seat, hello).await;
        let done = match session {
            Ok(session) => session.subscribe(caller.link(), own).await,
            Err(refusal) => Err(refusal),
        };
        if !done.as_ref().is_ok_and(|answer| answer.shape() == Shape::Result) {
            caller.unsubscribe(public);
        }
        done
    }

    /// The session that a caller uses at an upstream, opened if need be.
    ///
    /// # Errors
    /// Why the upstream cannot be used now.
    pub async fn session(
        &self,
        caller: &Arc<Caller>,
        seat: &Seat,
        hello: &Hello,
    ) -> Result<Arc<Session>, Refusal> {
        seat.upstream.session(&spell::session_key(caller, hello), hello, caller.era()).await
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
        let link = operation.caller.link();
        let respell = |own: &str| {
            let (upstream, _) = operation.upstream.get()?;
            self.with(|topic| topic.respelled_uri(link, upstream, own))
        };
        spell::answer(operation, answer, &respell)
    }

    fn spell_notice(&self, operation: &Operation, frame: Bytes) -> Bytes {
        let _ = operation;
        frame
    }

    fn spell_refusal(&self, operation: &Operation, refusal: &Refusal) -> (Bytes, i64) {
        spell::refusal(operation, refusal)
    }
}

fn send(
    operation: &Arc<Operation>,
    session: &Arc<Session>,
    own: Option<&str>,
    message: &Message,
    hello: &Hello,
) {
    let translated = spell::for_session(message, operation.caller.era(), session.era(), hello);
    let message = translated.as_ref().unwrap_or(message);
    let Ok(params) = Params::read(message) else {
        return operation.refuse(&Refusal::new(RefusalCode::Internal, "the request could not be translated"));
    };
    let mut edit = params.edit();
    if let Some(own) = own {
        edit.set_target(own);
    }
    let target = own.or_else(|| params.target().map(mcp::Target::text));
    operation.goes_to(session);
    let sink: Arc<dyn CallSink> = Arc::<Operation>::clone(operation);
    match session.call(Outgoing { params: &params, edit, target }, sink) {
        Ok(ticket) => operation.is_sent(ticket),
        Err(refusal) => operation.done(Err(refusal)),
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

fn wants(caller: &Caller, frame: &Bytes) -> bool {
    let Ok(message) = Message::read(frame.clone()) else { return false };
    let Ok(params) = Params::read(&message) else { return false };
    params.level().is_none_or(|level| caller.wants_log(&level))
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
