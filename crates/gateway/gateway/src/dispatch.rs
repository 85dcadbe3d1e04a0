//! Dispatch of one topic: an event, the topic's step, the effects.
//!
//! Every act enters by [`Dispatch::take`]. The room's queue and the mailboxes of the effects'
//! addressees get their parts before the topic's lock is released, so that each has one order; the
//! effects are carried out afterwards by the one interpreter, `run`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use model::{Capabilities, LinkId, OperationId, ParticipantId, Refusal, TopicName};
use platform::{Mutex, MutexGuard, RwLock, millis};
use room::{Close, Newcomer, Room, RoomEvent};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use topic::{
    Cursor, Ended, RequestsFate, RingLimits, RoomEffect, TopicConfig, TopicSettings, Verdict,
};

use crate::brakes::places::BrakingPlaces;
use crate::branch_knowledge::BranchKnowledge;
use crate::by_rule::desk::RuleDesk;
use crate::ledgers::TopicLedgers;
use crate::link::{Link, NoOutlet, plain_client};
use crate::live::{Effect, Event, Live, Topic};
use crate::mailboxes::{Busy, Effects, Mailboxes};
use crate::offer::OwnLists;
use crate::outside::desk::OutsideDesk;
use crate::proposals::showings::Showings;
use crate::results::store::Results;
use crate::shadow_sets::ShadowSets;
use crate::starts::Starts;
use store::recorder::Recorder;

use crate::{context::Context, mirror, violations::Violations};
use lists::{IndexCache, PageCache};
use topic::section::{McpCalls, TopicLimits, TopicSection};
use wire::mcpx::EnvelopePlace;

/// The log's target for every event that is sent and every effect that is carried out.
const PATH: &str = "gateway::path";
/// Effects of other steps that a thread carries out in a row. What follows is left to a task of its
/// own, so that no connection works for others without end.
const CARRIED_IN_A_ROW: usize = 64;
/// Longest sleep of a topic's timer.
const TIMER_MAX: Duration = Duration::from_secs(3600);
/// Longest sleep of the timer while something ends by the wall clock, which goes on while the
/// machine sleeps and the timer does not.
const WALL_LOOK: Duration = Duration::from_secs(5);

/// The settings of one topic, until another configuration comes into force.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its configuration.
    pub topic: TopicSection,
    /// Its limits.
    pub limits: TopicLimits,
    /// Whether another process has its proposals and its room: this one makes plain calls.
    pub is_branch: bool,
}

impl Settings {
    /// The part of them that the topic itself has. Its messages can be read again by the room's tools
    /// alone: `readable` is whether it offers them.
    pub(crate) fn of_topic(&self, readable: bool) -> TopicSettings {
        let limits = topic::Limits {
            participants_max: self.limits.participants_max,
            // A participant may make all its calls on one link.
            operations_per_link_max: self.limits.participant_calls_max,
            operations_per_participant_max: self.limits.participant_calls_max,
            pause_ms: millis(self.limits.pause),
            away_ms: millis(self.limits.away),
            proposal_bytes_max: self.limits.proposal_bytes_max,
            proposal_bytes_per_participant_max: self.limits.participant_proposal_bytes_max,
            ..topic::Limits::default()
        };
        TopicSettings {
            limits,
            mirrors: self.topic.mcp_calls != McpCalls::None,
            kept: RingLimits {
                history: self.topic.history,
                readable,
            },
            is_branch: self.is_branch,
        }
    }
}

/// Capabilities of a participant in the topic now; `None` if it may not be there.
pub type StandingOf = Box<dyn Fn(&ParticipantId) -> Option<Arc<Capabilities>> + Send + Sync>;
/// Carries out one effect.
pub(crate) type Run = fn(&Arc<Dispatch>, Effect);

/// One running topic.
pub struct Dispatch {
    /// Clock, ids and seal.
    pub context: Arc<Context>,
    name: TopicName,
    settings: RwLock<Arc<Settings>>,
    pub(crate) audit: Recorder,
    /// The parts of the topics in the journal, if there is one.
    pub(crate) ledgers: Option<TopicLedgers>,
    /// The rules by which proposals are decided.
    pub(crate) rules: RuleDesk,
    /// Of a branch: what it knows of the topic.
    pub(crate) branch_knowledge: BranchKnowledge,
    /// The approver outside, if the topic has one.
    pub(crate) outside: OutsideDesk,
    /// Showings of proposals to those who can decide about them.
    pub(crate) showings: Showings,
    pub(crate) standing: StandingOf,
    /// Capabilities in shadow.
    pub(crate) shadow_sets: ShadowSets,
    /// The latest resumption of each participant while the journal writes it, unless a pause came
    /// since. Locked while a participant is paused or resumed, and never for the disk, so that journal
    /// and topic have one order.
    pub(crate) resuming: Mutex<BTreeMap<ParticipantId, OperationId>>,
    /// Pauses and resumptions that wait for the journal.
    pub(crate) braking_places: BrakingPlaces,
    topic: Mutex<Topic>,
    mailboxes: Mailboxes,
    /// Its room.
    pub room: Arc<Room>,
    /// The link of the gateway's own participant.
    pub(crate) gateway_link: Arc<Link>,
    /// Lists of the gateway's own participant. Locked for writing while the topic takes the
    /// configuration that it belongs to.
    pub(crate) own_lists: RwLock<OwnLists>,
    /// Locked while a server's lists are read and the topic takes them, so that no older lists
    /// replace newer ones. The topic's own lock cannot do that: reading takes locks of the server's
    /// sessions, which may be held where these report to the topic.
    pub(crate) listing: Mutex<()>,
    /// Results that were too large for their callers.
    pub(crate) results: Arc<Results>,
    pub(crate) pages: PageCache,
    pub(crate) indexes: IndexCache,
    /// Whether the first start of every server has ended.
    pub(crate) starts: Starts,
    /// Whether the gateway is about to stop.
    pub(crate) stopping: watch::Sender<bool>,
    admitted: AtomicU64,
    refused: AtomicU64,
    left_out_bytes: AtomicU64,
    pub(crate) violations: Violations,
    /// Time at which the timer wakes, in milliseconds on the context's clock.
    armed_ms: AtomicU64,
    timer: Arc<Notify>,
    /// Runs what a thread leaves to others.
    runtime: Handle,
    run: Run,
}

impl Dispatch {
    /// A topic without participants. Must be called inside a runtime.
    pub(crate) fn new(
        settings: Settings,
        context: Arc<Context>,
        audit: Recorder,
        ledgers: Option<TopicLedgers>,
        standing: StandingOf,
        run: Run,
    ) -> Arc<Self> {
        let name = settings.topic.name.clone();
        let is_branch = settings.is_branch;
        let config = TopicConfig {
            settings: settings.of_topic(false),
            // Numbers of JSON are exact up to 53 bits.
            epoch: u64::from_le_bytes(platform::random()) >> 12,
            direct: context.direct,
            guests: model::ANONYMOUS_PREFIX,
            ..TopicConfig::new(name.clone(), Vec::new())
        };
        let room = room::open(
            millis(settings.limits.keep_alive),
            Arc::<Context>::clone(&context),
        );
        let gateway_link = gateway_link(&context, &name);
        let timer = Arc::<Notify>::default();
        let rules = RuleDesk::open(name.as_str(), ledgers.as_ref());
        let dispatch = Arc::new(Self {
            context,
            name,
            settings: RwLock::new(Arc::new(settings)),
            audit,
            ledgers,
            rules,
            branch_knowledge: BranchKnowledge::of(is_branch),
            outside: OutsideDesk::default(),
            showings: Showings::default(),
            standing,
            shadow_sets: ShadowSets::default(),
            resuming: Mutex::default(),
            braking_places: BrakingPlaces::new(),
            topic: Mutex::new(Topic::new(config)),
            mailboxes: Mailboxes::default(),
            room,
            gateway_link,
            own_lists: RwLock::default(),
            listing: Mutex::default(),
            results: Arc::default(),
            pages: PageCache::default(),
            indexes: IndexCache::default(),
            starts: Starts::default(),
            stopping: watch::Sender::new(false),
            admitted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            left_out_bytes: AtomicU64::new(0),
            violations: Violations::default(),
            armed_ms: AtomicU64::new(u64::MAX),
            timer,
            runtime: Handle::current(),
            run,
        });
        tokio::spawn(tick(Arc::downgrade(&dispatch), Arc::clone(&dispatch.timer)));
        dispatch
    }

    /// Takes one event: steps the topic, then carries out the effects. Effects for a mailbox that
    /// another thread has are carried out by that thread.
    pub(crate) fn take(self: &Arc<Self>, event: Event<'_>) -> Option<Verdict> {
        self.step(event).carry_out()
    }

    /// Steps the topic. The caller carries out the effects with [`Step::carry_out`].
    pub(crate) fn step(self: &Arc<Self>, event: Event<'_>) -> Step<'_> {
        let topic = self.lock_for((&event).into());
        self.step_locked(topic, event, Refused::ByEffect)
    }

    /// Logs an event, and locks the topic for its step.
    pub(crate) fn lock_for(&self, event: &'static str) -> MutexGuard<'_, Topic> {
        tracing::trace!(target: PATH, event);
        self.lock_again()
    }

    /// Locks the topic once more for the step of an event that is logged.
    pub(crate) fn lock_again(&self) -> MutexGuard<'_, Topic> {
        self.topic.lock()
    }

    /// Steps the topic, which the caller has locked, and releases it.
    pub(crate) fn step_locked(
        self: &Arc<Self>,
        mut topic: MutexGuard<'_, Topic>,
        event: Event<'_>,
        refused: Refused,
    ) -> Step<'_> {
        self.branch_knowledge.note_event(&event);
        let at = Instant::now();
        let now = self.context.time_of_step(at, topic.next_wall_deadline_ms());
        let mut effects = topic.step(now, event);
        let refusal = match refused {
            Refused::ByEffect => effects.refusal.take(),
            // Before the mailboxes have the effect that would say it once more.
            Refused::InStep => effects.take_refusal(),
        };
        if !effects.room.is_empty() {
            let events = effects.room.into_iter();
            self.room
                .push(events.filter_map(|effect| self.room_event(effect)));
        }
        let busy = self.mailboxes.deliver(&mut effects.all);
        let deadline_ms = topic.next_deadline_ms();
        drop(topic);
        if let Some(deadline_ms) = deadline_ms
            && deadline_ms < self.armed_ms.load(Ordering::Relaxed)
        {
            self.armed_ms.store(deadline_ms, Ordering::Relaxed);
            self.timer.notify_one();
        }
        Step {
            dispatch: self,
            at,
            verdict: effects.verdict,
            refusal,
            requests: effects.requests,
            rest: effects.all.into_iter(),
            busy,
        }
    }

    /// Time until the next tick is due. A step that makes it earlier wakes the timer from now on.
    fn arm(&self) -> Duration {
        let topic = self.topic.lock();
        let steady_ms = topic.next_deadline_ms();
        let wall_ms = topic.next_wall_deadline_ms();
        // Under the lock: a step before it is seen here, and a step after it sees this.
        self.armed_ms
            .store(steady_ms.unwrap_or(u64::MAX), Ordering::Relaxed);
        drop(topic);
        let now = self.context.time_of_step(Instant::now(), wall_ms);
        let mut wait = TIMER_MAX;
        if let Some(at_ms) = steady_ms {
            wait = wait.min(until(at_ms, now.steady_ms));
        }
        if let Some(at_ms) = wall_ms {
            wait = wait.min(until(at_ms, now.wall_ms)).min(WALL_LOOK);
        }
        wait
    }

    /// Carries out one effect.
    pub(crate) fn run(self: &Arc<Self>, effect: Effect) {
        tracing::trace!(target: PATH, effect = <&str>::from(&effect));
        (self.run)(self, effect);
    }

    /// Event of the room's queue for an effect.
    fn room_event(&self, effect: RoomEffect<Live>) -> Option<RoomEvent> {
        tracing::trace!(target: PATH, room = <&str>::from(&effect));
        Some(match effect {
            RoomEffect::Enter {
                link,
                handle,
                person,
                listener,
                roster,
                replay,
            } => {
                let socket = Arc::clone(handle.outlet.socket()?);
                self.context.home_news.notify_one();
                RoomEvent::Enter(Box::new(Newcomer {
                    link,
                    person,
                    listener,
                    socket,
                    roster,
                    replay,
                }))
            }
            RoomEffect::Renew {
                link,
                person,
                roster,
            } => RoomEvent::Renew {
                link,
                person,
                roster,
            },
            RoomEffect::Joined(person) => RoomEvent::Joined(person),
            RoomEffect::Changed(person) => RoomEvent::Changed(person),
            RoomEffect::Left(id) => RoomEvent::Left(id),
            RoomEffect::Publish {
                message,
                audience,
                place: Cursor { epoch, offset },
                received_ms,
            } => RoomEvent::Publish {
                envelope: message,
                audience,
                place: EnvelopePlace {
                    epoch,
                    offset,
                    received_ms,
                },
            },
            RoomEffect::Mirror { mirrored, audience } => {
                let (bytes, encode) =
                    mirror::encoder(*mirrored, self.settings().topic.mcp_calls, &self.context);
                RoomEvent::Mirror {
                    bytes,
                    encode,
                    audience,
                }
            }
            RoomEffect::Exit { link, why } => {
                self.context.home_news.notify_one();
                RoomEvent::Exit {
                    link,
                    close: why.map(close_of),
                }
            }
        })
    }

    /// Looks at the topic.
    pub fn with<T>(&self, look: impl FnOnce(&Topic) -> T) -> T {
        look(&self.topic.lock())
    }

    /// Its name.
    pub fn name(&self) -> &TopicName {
        &self.name
    }

    /// Its settings in force.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read())
    }

    /// Takes over other settings. The topic itself has its part with the next configuration
    /// ([`Self::configure`]).
    pub fn take_settings(&self, settings: Settings) {
        self.room.ping_every(millis(settings.limits.keep_alive));
        *self.settings.write() = Arc::new(settings);
    }

    /// Counts a verdict about a request.
    pub(crate) fn count(&self, verdict: &Verdict) {
        let count = match verdict {
            Verdict::Admitted { .. } | Verdict::Held { .. } => &self.admitted,
            Verdict::Refused(_) => &self.refused,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a list has left out so many bytes of definitions.
    pub(crate) fn note_left_out(&self, bytes: usize) {
        if bytes > 0 {
            self.left_out_bytes
                .fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Bytes of definitions of tools, as models read them, that lists have left to `search_tools` and
    /// `proxy`.
    pub fn list_bytes_left_out(&self) -> u64 {
        self.left_out_bytes.load(Ordering::Relaxed)
    }

    /// Numbers of admitted and of refused requests.
    pub fn verdicts(&self) -> [(&'static str, u64); 2] {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("admitted", count(&self.admitted)),
            ("refused", count(&self.refused)),
        ]
    }

    /// Numbers of envelopes that have broken the protocol or gone beyond their sender's
    /// capabilities, by what they broke.
    pub fn violations(&self) -> [(&'static str, u64); 4] {
        self.violations.all()
    }

    /// Capabilities of a participant in this topic now.
    pub(crate) fn capabilities_of(&self, id: &ParticipantId) -> Arc<Capabilities> {
        self.with(|topic| topic.capabilities(id).cloned())
            .unwrap_or_default()
    }

    /// The public spelling of a server's URI to a link, if it differs.
    pub(crate) fn respelled(
        &self,
        link: LinkId,
        server: &ParticipantId,
        own: &str,
    ) -> Option<String> {
        self.with(|topic| topic.respelled_uri(link, server, own))
    }

    /// Runs a task beside the effects.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    /// Whether the gateway is about to stop.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Waits until the gateway stops.
    pub async fn stopped(&self) {
        let _ = self
            .stopping
            .subscribe()
            .wait_for(|stopping| *stopping)
            .await;
    }

    /// Closes a link's socket after everything that its room sent before.
    pub fn cut(&self, link: LinkId, close: Close) {
        self.room.push([RoomEvent::Exit {
            link,
            close: Some(close),
        }]);
    }

    /// A new, unguessable id.
    pub(crate) fn secret_id() -> OperationId {
        OperationId(u128::from_le_bytes(platform::random()))
    }
}

/// Time from one moment to another one on the same clock, both in milliseconds; none if it is past.
fn until(at_ms: u64, now_ms: u64) -> Duration {
    Duration::from_millis(at_ms.saturating_sub(now_ms))
}

/// The way in which the sender of an event learns that the topic refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// By an effect.
    ByEffect,
    /// It waits for the step, which has the refusal, and no effect says it once more.
    InStep,
}

/// A step that was taken: its verdict, and what its thread carries out, once, with
/// [`Step::carry_out`]. Where it is dropped, a task of its own does that.
#[must_use = "its mailboxes are busy until its effects are carried out"]
pub(crate) struct Step<'d> {
    dispatch: &'d Arc<Dispatch>,
    /// When it was taken.
    pub(crate) at: Instant,
    /// The verdict about the event.
    pub(crate) verdict: Option<Verdict>,
    /// The refusal of an envelope or of a link that may not join.
    pub(crate) refusal: Option<Box<Refusal>>,
    /// The fate of the requests of an envelope that was admitted.
    pub(crate) requests: RequestsFate,
    /// Effects that are still to be carried out. They are kept here so that a fault in one of them
    /// costs none of the others.
    rest: <Effects as IntoIterator>::IntoIter,
    /// The mailboxes that this thread has.
    busy: Busy,
}

impl Step<'_> {
    /// Carries out the effects that the step left to its thread, in order, and then those that other
    /// steps have left in its mailboxes meanwhile, until none waits or it is another task's turn.
    pub(crate) fn carry_out(mut self) -> Option<Verdict> {
        let mailboxes = &self.dispatch.mailboxes;
        let mut carried = 0;
        loop {
            for effect in self.rest.by_ref() {
                self.dispatch.run(effect);
            }
            let Some(recipient) = self.busy.last() else {
                break;
            };
            if carried >= CARRIED_IN_A_ROW {
                break;
            }
            match mailboxes.waiting.next(recipient.mailbox(mailboxes)) {
                None => _ = self.busy.pop(),
                Some(waiting) => {
                    carried += waiting.len();
                    self.rest = waiting.into_iter();
                }
            }
        }
        self.verdict.take()
    }

    /// Carries out nothing of the step: the test plays the addressees.
    #[cfg(test)]
    pub(crate) fn discard(mut self) {
        self.rest = Effects::new().into_iter();
        self.carry_out();
    }
}

impl Drop for Step<'_> {
    /// No mailbox stays busy and no effect is lost: another task goes on, also if an effect has
    /// panicked, or none was carried out.
    fn drop(&mut self) {
        if self.busy.is_empty() && self.rest.len() == 0 {
            return;
        }
        let dispatch = Arc::clone(self.dispatch);
        let at = self.at;
        let busy = std::mem::take(&mut self.busy);
        let rest = std::mem::replace(&mut self.rest, Effects::new().into_iter());
        self.dispatch.runtime.spawn(async move {
            let step = Step {
                requests: RequestsFate::default(),
                dispatch: &dispatch,
                at,
                verdict: None,
                refusal: None,
                rest,
                busy,
            };
            step.carry_out();
        });
    }
}

fn gateway_link(context: &Context, topic: &TopicName) -> Arc<Link> {
    let participant = auth::Participant::new(
        ParticipantId::gateway(),
        Arc::default(),
        vec![topic.clone()],
    );
    let form = model::Form::ENVELOPE;
    let client = plain_client();
    Link::new(
        context.link(),
        Arc::new(participant),
        form,
        client,
        Arc::new(NoOutlet),
    )
}

fn close_of(why: Ended) -> Close {
    match why {
        Ended::Revoked => Close::Revoked,
        Ended::Replaced => Close::Replaced,
    }
}

/// Sends a tick whenever something in the topic is due.
async fn tick(dispatch: Weak<Dispatch>, timer: Arc<Notify>) {
    loop {
        let wait = {
            let Some(dispatch) = dispatch.upgrade() else {
                return;
            };
            let wait = dispatch.arm();
            if wait.is_zero() {
                dispatch.take(Event::Tick);
                dispatch.arm()
            } else {
                wait
            }
        };
        tokio::select! {
            () = timer.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}
