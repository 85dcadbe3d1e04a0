//! Order of effects, with threads that are held between a step and its effects.

use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use model::{
    Answer, Capabilities, Form, LinkId, Method, Notice, OperationId, Outcome, ParticipantId,
    Payload, Refusal, RefusalCode, Request,
};
use platform::Mutex;
use topic::{
    About, Ask, Configure, End, Interest, Joining, Logs, OperationRef, PublicTarget, Seating,
    Subject, UpstreamNames,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id as SpanId, Record};
use tracing::{Event as Traced, Metadata, Subscriber};
use upstream::{Asking, Question, Session};
use wire::mcpx::Envelope;
use wire::rpc::Id;

use super::*;
use crate::call::Reply;
use crate::dispatch::{Dispatch, Run, Step};
use crate::envelopes::tests::Stage;
use crate::incoming::{Incoming, Names, Tag};
use crate::link::{Outlet, Passed, Questioned, Respell, Undelivered, plain_client};
use crate::live::{Event, Server, ServerQuestion};

const ASKED: OperationId = OperationId(2);

/// A topic with the server `old`, whose part the test plays.
pub(crate) struct Scene {
    pub(crate) dispatch: Arc<Dispatch>,
    old: ParticipantId,
    /// The server's link.
    server: LinkId,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::running(crate::run::run)
    }

    /// A scene with another interpreter of effects.
    fn running(run: Run) -> Self {
        let dispatch = Stage::running(&["mcp/*"], run).dispatch;
        let old = ParticipantId::new("old").unwrap();
        let server = dispatch.context.link();
        let seat = Seating {
            link: server,
            server: &old,
            handle: Server::Gateway,
            capabilities: all(),
        };
        dispatch.take(Event::Configure(Configure {
            seats: vec![seat],
            ..Configure::servers(&[UpstreamNames::new(old.clone(), "")])
        }));
        Self {
            dispatch,
            old,
            server,
        }
    }

    pub(crate) fn join(&self, outlet: Arc<dyn Outlet>) -> Arc<Link> {
        let participant = auth::Participant::new(
            ParticipantId::new("bob").unwrap(),
            all(),
            vec![self.dispatch.name().clone()],
        );
        let link = Link::new(
            self.dispatch.context.link(),
            Arc::new(participant),
            Form::Legacy,
            plain_client(),
            outlet,
        );
        self.dispatch
            .join(&link, &all(), Joining::default())
            .unwrap();
        link
    }

    /// Asks the owner of a session.
    fn ask(&self, link: &Link) {
        self.asking(link).carry_out();
    }

    /// The step by which the owner of a session is asked.
    fn asking(&self, link: &Link) -> Step<'_> {
        let method = Method::Known("roots/list");
        let request = Request {
            method: method.clone(),
            target: None,
            progress: None,
            payload: Payload::body(Form::Legacy, "{}"),
        };
        let session: Weak<dyn Asking> = Weak::<Session>::new();
        let question = Question::new(session, 1, Id::number(1), request, None);
        self.dispatch.step(Event::Ask(Ask {
            server: &self.old,
            operation: ASKED,
            tag: Some(tag()),
            about: About::Session(link.id),
            method,
            question: Arc::new(ServerQuestion {
                question,
                session: Weak::new(),
                server: self.old.clone(),
                task: None,
            }),
        }))
    }

    /// Withdraws that question, as its server does.
    fn withdraw(&self) {
        self.dispatch.take(Event::Cancel {
            link: self.server,
            which: OperationRef::Tag(tag()),
        });
    }

    /// A call that the server has.
    pub(crate) fn call(&self, link: &Arc<Link>, reply: Arc<dyn Reply>) -> Arc<Call> {
        let method = Method::Known("tools/call");
        let request = Request {
            method: method.clone(),
            target: None,
            progress: None,
            payload: Payload::body(Form::Legacy, "{}"),
        };
        let operation = self.dispatch.context.operation();
        let incoming = Incoming::plain(request, None);
        let call = Call::new(operation, link.opener(), incoming, Names::Public, reply);
        let step = self.dispatch.step(Event::Request(topic::RequestEvent {
            link: link.id,
            operation,
            tag: None,
            method,
            target: Some(PublicTarget::Tool("any")),
            interest: Interest::None,
            logs: Logs::None,
            returns: false,
            narrowing: None,
            tightening: None,
            call: Arc::clone(&call),
        }));
        step.discard();
        call
    }

    fn notify(&self, operation: OperationId) {
        self.notifying(operation).carry_out();
    }

    /// The step by which the server notifies about a call.
    fn notifying(&self, operation: OperationId) -> Step<'_> {
        self.dispatch.step(Event::Notice {
            server: &self.old,
            subject: Subject::Call(operation),
            level: None,
            notice: Arc::new(Notice {
                method: Method::Known("notifications/progress"),
                latest: None,
                payload: Payload::body(Form::Legacy, "{}"),
            }),
        })
    }

    pub(crate) fn answer(&self, operation: OperationId) {
        let answer = Answer {
            outcome: Outcome::Ok,
            payload: Payload::body(Form::Legacy, "{}"),
        };
        self.dispatch.take(Event::Answer {
            link: self.server,
            operation,
            end: End::Answered {
                outcome: answer.outcome,
                answer,
            },
        });
    }
}

fn all() -> Arc<Capabilities> {
    Arc::new(Capabilities::parse(["mcp/*"]).unwrap())
}

fn tag() -> Tag {
    Tag::of_server(1, Id::number(1))
}

/// Keeps what a client is asked on its link.
#[derive(Default)]
struct Asked(Mutex<Vec<&'static str>>);

impl Outlet for Asked {
    fn ask(&self, _: &Questioned<'_>) -> Result<(), Undelivered> {
        self.0.lock().push("asked");
        Ok(())
    }

    fn withdraw_question(&self, _: u64) {
        self.0.lock().push("withdrawn");
    }
}

/// Holds its thread before an event of this name is a step, or an effect of it is carried out, until
/// it is released.
pub(crate) struct Hold {
    /// `event` or `effect`.
    field: &'static str,
    name: &'static str,
    held: Mutex<Sender<()>>,
    release: Mutex<Receiver<()>>,
}

impl Hold {
    /// With the hold: what says that a thread is held, and what releases it.
    pub(crate) fn before(
        field: &'static str,
        name: &'static str,
    ) -> (Self, Receiver<()>, Sender<()>) {
        let (held, is_held) = channel();
        let (release, released) = channel();
        let hold = Self {
            field,
            name,
            held: Mutex::new(held),
            release: Mutex::new(released),
        };
        (hold, is_held, release)
    }
}

impl Subscriber for Hold {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "gateway::path"
    }

    fn new_span(&self, _: &Attributes<'_>) -> SpanId {
        SpanId::from_u64(1)
    }

    fn record(&self, _: &SpanId, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &SpanId, _: &SpanId) {}

    fn event(&self, event: &Traced<'_>) {
        let mut finds = Finds {
            field: self.field,
            name: self.name,
            has: false,
        };
        event.record(&mut finds);
        if finds.has {
            self.held.lock().send(()).unwrap();
            self.release.lock().recv().unwrap();
        }
    }

    fn enter(&self, _: &SpanId) {}

    fn exit(&self, _: &SpanId) {}
}

/// Looks for an event or effect of this name in an entry of the log.
struct Finds {
    field: &'static str,
    name: &'static str,
    has: bool,
}

impl Visit for Finds {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.has |= field.name() == self.field && value == self.name;
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawal_does_not_overtake_its_question() {
    let scene = Scene::new();
    let asked = Arc::<Asked>::default();
    let link = scene.join(Arc::<Asked>::clone(&asked));
    scene.dispatch.take(Event::Attach {
        link: link.id,
        server: &scene.old,
    });
    let (hold, is_held, release) = Hold::before("effect", "Ask");
    std::thread::scope(|scope| {
        scope.spawn(|| tracing::subscriber::with_default(hold, || scene.ask(&link)));
        // The question is in the topic, and its client has not been asked yet.
        is_held.recv().unwrap();
        scene.withdraw();
        release.send(()).unwrap();
    });
    assert_eq!(*asked.0.lock(), ["asked", "withdrawn"]);
}

/// Fails if two threads serve it at once, or if something follows its end.
#[derive(Default)]
struct OneAtATime {
    is_busy: AtomicBool,
    is_over: AtomicBool,
    notices: AtomicUsize,
}

impl OneAtATime {
    fn serve(&self, ends: bool) {
        let was_busy = self.is_busy.swap(true, Ordering::SeqCst);
        let was_over = self.is_over.swap(ends, Ordering::SeqCst);
        std::thread::yield_now();
        self.is_busy.store(false, Ordering::SeqCst);
        assert!(!was_busy && !was_over);
    }
}

impl Reply for OneAtATime {
    fn settle(&self, _: &Call, _: &Answer, _: &Respell<'_>) {
        self.serve(true);
    }

    fn refuse(&self, _: &Call, _: &Refusal) {
        self.serve(true);
    }

    fn notify(&self, _: &Call, _: &Passed<'_>) -> Result<(), Undelivered> {
        self.serve(false);
        self.notices.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_of_a_call_are_carried_out_one_at_a_time_and_nothing_follows_its_end() {
    let scene = Scene::new();
    let link = scene.join(Arc::new(crate::link::NoOutlet));
    for _ in 0..500 {
        let reply = Arc::<OneAtATime>::default();
        let operation = scene.call(&link, Arc::<OneAtATime>::clone(&reply)).id;
        let barrier = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    barrier.wait();
                    (0..8).for_each(|_| scene.notify(operation));
                });
            }
            barrier.wait();
            // In the topic's order this one comes before the end, so that it is not lost.
            scene.notify(operation);
            scene.answer(operation);
        });
        assert!(reply.is_over.load(Ordering::SeqCst));
        assert_ne!(reply.notices.load(Ordering::SeqCst), 0);
    }
}

/// A reply that panics at the first notification.
#[derive(Default)]
struct Fault(AtomicUsize);

impl Reply for Fault {
    fn settle(&self, _: &Call, _: &Answer, _: &Respell<'_>) {
        self.0.fetch_add(100, Ordering::SeqCst);
    }

    fn refuse(&self, _: &Call, _: &Refusal) {}

    fn notify(&self, _: &Call, _: &Passed<'_>) -> Result<(), Undelivered> {
        assert_ne!(self.0.fetch_add(1, Ordering::SeqCst), 0, "a fault");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_is_not_busy_for_ever_after_a_fault() {
    let scene = Scene::new();
    let link = scene.join(Arc::new(crate::link::NoOutlet));
    let reply = Arc::<Fault>::default();
    let operation = scene.call(&link, Arc::<Fault>::clone(&reply)).id;
    let notify = || scene.notify(operation);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(notify)).is_err());
    scene.answer(operation);
    while reply.0.load(Ordering::SeqCst) < 100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn steps_from_inside_an_effect_wait_for_the_mailbox_that_is_being_emptied() {
    /// Steps again whenever it is notified, a thousand times in all.
    struct Again {
        scene: Weak<Scene>,
        operation: Mutex<Option<OperationId>>,
        depth: AtomicUsize,
        count: AtomicUsize,
    }

    impl Reply for Again {
        fn settle(&self, _: &Call, _: &Answer, _: &Respell<'_>) {}

        fn refuse(&self, _: &Call, _: &Refusal) {}

        fn notify(&self, _: &Call, _: &Passed<'_>) -> Result<(), Undelivered> {
            assert_eq!(self.depth.fetch_add(1, Ordering::SeqCst), 0, "re-entrant");
            let operation = *self.operation.lock();
            if self.count.fetch_add(1, Ordering::SeqCst) < 1_000
                && let (Some(scene), Some(operation)) = (self.scene.upgrade(), operation)
            {
                scene.notify(operation);
            }
            self.depth.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    }

    let scene = Arc::new(Scene::new());
    let link = scene.join(Arc::new(crate::link::NoOutlet));
    let again = Arc::new(Again {
        scene: Arc::downgrade(&scene),
        operation: Mutex::default(),
        depth: AtomicUsize::new(0),
        count: AtomicUsize::new(0),
    });
    let operation = scene.call(&link, Arc::<Again>::clone(&again)).id;
    *again.operation.lock() = Some(operation);
    scene.notify(operation);
    // After some of them another task goes on.
    while again.count.load(Ordering::SeqCst) < 1_001 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn another_task_carries_out_a_step_that_is_dropped() {
    let scene = Scene::new();
    let link = scene.join(Arc::new(crate::link::NoOutlet));
    let reply = Arc::<OneAtATime>::default();
    let operation = scene.call(&link, Arc::<OneAtATime>::clone(&reply)).id;
    drop(scene.notifying(operation));
    scene.answer(operation);
    while !reply.is_over.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
    assert_eq!(reply.notices.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_sender_that_waits_for_its_refusal_learns_of_it_once() {
    static WITHHELD: AtomicUsize = AtomicUsize::new(0);

    fn count(dispatch: &Arc<Dispatch>, effect: Effect) {
        if matches!(effect, Effect::Withhold { .. }) {
            WITHHELD.fetch_add(1, Ordering::SeqCst);
        }
        crate::run::run(dispatch, effect);
    }

    let scene = Scene::running(count);
    let link = scene.join(Arc::<Asked>::default());
    scene.dispatch.take(Event::Attach {
        link: link.id,
        server: &scene.old,
    });
    // Another thread has the mailbox of the link.
    let asking = scene.asking(&link);
    let news = r#"{"protocol":"mcpx/v0.1","id":"a","from":"bob","kind":"news","payload":{}}"#;
    let envelope = Envelope::read(news.into()).unwrap();
    let refusal = scene.dispatch.speak(link.opener(), envelope).unwrap_err();
    assert_eq!(refusal.code, RefusalCode::CapabilityViolation);
    asking.carry_out();
    assert_eq!(WITHHELD.load(Ordering::SeqCst), 0);
}

/// Notes whether the topic is locked when this is dropped.
struct Dropped {
    dispatch: Arc<Dispatch>,
    is_free: Arc<AtomicBool>,
}

impl Drop for Dropped {
    fn drop(&mut self) {
        let dispatch = Arc::clone(&self.dispatch);
        let (looked, has_looked) = channel();
        std::thread::spawn(move || {
            dispatch.with(|_| ());
            looked.send(()).unwrap();
        });
        let has_looked = has_looked.recv_timeout(Duration::from_secs(10));
        self.is_free.store(has_looked.is_ok(), Ordering::SeqCst);
    }
}

#[tokio::test]
async fn work_for_a_call_that_is_over_is_dropped_once_the_topic_is_free() {
    let scene = Scene::new();
    let is_free = Arc::<AtomicBool>::default();
    let dropped = Dropped {
        dispatch: Arc::clone(&scene.dispatch),
        is_free: Arc::clone(&is_free),
    };
    scene
        .dispatch
        .proceed(OperationId(99), move |_, _| drop(dropped));
    assert!(is_free.load(Ordering::SeqCst));
}
