//! Callers that are asked in results and come back, with the steps of other tasks in between.

use std::sync::{LazyLock, Weak};

use model::{Capabilities, Form, Method, Outcome, ParticipantId, Payload};
use platform::{Mutex, Shares};
use topic::{
    About, Configure, Interest, Joining, Logs, Parked, PublicTarget, Resume, Seating, Subject,
    UpstreamNames,
};
use upstream::{Asking, CallEvents, Question};
use wire::rpc::Id;

use super::*;
use crate::call::{Delivered, Reply};
use crate::envelopes::tests::Stage;
use crate::incoming::{Incoming, Names};
use crate::link::{NoOutlet, Passed, Respell, plain_client};
use crate::live::Server;
use crate::mailboxes::tests::Hold;

const CALL: OperationId = OperationId(1);
const ASKED: OperationId = OperationId(2);
const PROGRESS: &str = "notifications/progress";

static OLD: LazyLock<ParticipantId> = LazyLock::new(|| ParticipantId::new("old").unwrap());

/// Keeps what a caller gets.
#[derive(Default)]
struct Got(Mutex<Vec<String>>);

impl Reply for Got {
    fn settle(&self, _: &Call, answer: &Answer, _: &Respell<'_>) {
        self.0
            .lock()
            .push(String::from_utf8_lossy(answer.payload.body_bytes()).into_owned());
    }

    fn refuse(&self, _: &Call, refusal: &Refusal) {
        self.0.lock().push(refusal.to_string());
    }

    fn notify(&self, _: &Call, notice: &Passed<'_>) -> Result<(), Undelivered> {
        self.0.lock().push(notice.notice.method.as_str().to_owned());
        Ok(())
    }
}

/// A modern caller whose call the legacy server `old` has.
struct Scene {
    dispatch: Arc<Dispatch>,
    link: Arc<Link>,
    server: LinkId,
}

impl Scene {
    fn new() -> Self {
        let dispatch = Stage::new(&["mcp/*"]).dispatch;
        let id = ParticipantId::new("old").unwrap();
        let capabilities = Arc::new(Capabilities::parse(["mcp/*"]).unwrap());
        let server = dispatch.context.link();
        let handle = Server::Gateway;
        let seat = Seating {
            link: server,
            server: &id,
            handle,
            capabilities: Arc::clone(&capabilities),
        };
        dispatch.take(Event::Configure(Configure {
            seats: vec![seat],
            ..Configure::servers(&[UpstreamNames::new(id.clone(), "")])
        }));
        let participant = auth::Participant::new(
            ParticipantId::new("bob").unwrap(),
            Arc::clone(&capabilities),
            vec![dispatch.name().clone()],
        );
        let form = Form::Modern;
        let outlet = Arc::new(NoOutlet);
        let link = Link::new(
            dispatch.context.link(),
            Arc::new(participant),
            form,
            plain_client(),
            outlet,
        );
        dispatch
            .join(
                &link,
                &capabilities,
                Joining {
                    pauses: true,
                    ..Joining::default()
                },
            )
            .unwrap();
        Self {
            dispatch,
            link,
            server,
        }
    }

    /// The request with which the caller comes back after its first answer for now.
    fn request(&self) -> (Arc<Call>, Arc<Got>) {
        self.request_in(1)
    }

    fn request_in(&self, round: u32) -> (Arc<Call>, Arc<Got>) {
        let method = Method::Known("tools/call");
        let payload = Payload::body(Form::Modern, "{}");
        let request = Request {
            method,
            target: None,
            progress: None,
            payload,
        };
        let got = Arc::<Got>::default();
        let reply = Arc::<Got>::clone(&got);
        let incoming = Incoming {
            round,
            ..Incoming::plain(request, None)
        };
        let by = self.link.opener();
        let call = Call::new(CALL, by, incoming, Names::Public, reply);
        (call, got)
    }

    /// A call about which its caller is asked something.
    fn asked(&self) -> (Arc<Call>, Arc<Got>) {
        let (call, got) = self.request_in(0);
        let link = self.link.id;
        let method = Method::Known("tools/call");
        let target = Some(PublicTarget::Tool("any"));
        let interest = Interest::None;
        let logs = Logs::None;
        let handle = Arc::clone(&call);
        let request = topic::RequestEvent {
            link,
            operation: CALL,
            tag: None,
            method,
            target,
            interest,
            logs,
            returns: true,
            narrowing: None,
            tightening: None,
            call: handle,
        };
        // Nothing is delivered: the test is the server.
        self.dispatch.step(Event::Request(request)).discard();
        let server = ParticipantId::new("old").unwrap();
        let payload = Payload::body(Form::Legacy, "{}");
        let method = Method::Known("roots/list");
        let asked = Request {
            method: method.clone(),
            target: None,
            progress: None,
            payload,
        };
        let session: Weak<dyn Asking> = Weak::<Session>::new();
        let question = Question::new(session, 1, Id::number(1), asked, None);
        let asked = ServerQuestion {
            question,
            session: Weak::new(),
            server: server.clone(),
            task: None,
        };
        let operation = ASKED;
        let about = About::Call(CALL);
        let question = Arc::new(asked);
        self.dispatch.take(Event::Ask(topic::Ask {
            server: &server,
            operation,
            tag: None,
            about,
            method,
            question,
        }));
        (call, got)
    }

    /// A call whose caller was asked something.
    fn paused(&self) -> (Arc<Call>, Arc<Got>) {
        let (call, got) = self.asked();
        self.pause(&got);
        (call, got)
    }

    fn pause(&self, got: &Got) {
        while got.0.lock().is_empty() {
            self.dispatch.take(Event::Tick);
        }
        assert!(got.0.lock()[0].contains("input_required"));
    }

    /// Progress of the call.
    fn noticed(&self) -> Event<'static> {
        let payload = Payload::body(Form::Legacy, "{}");
        let notice = Notice {
            method: Method::Known("notifications/progress"),
            latest: None,
            payload,
        };
        Event::Notice {
            server: &OLD,
            subject: Subject::Call(CALL),
            level: None,
            notice: Arc::new(notice),
        }
    }

    fn answer(body: &str) -> Answer {
        Answer {
            outcome: Outcome::Ok,
            payload: Payload::body(Form::Modern, body.to_owned()),
        }
    }

    fn back(&self, by: &Arc<Call>) -> Event<'static> {
        let parked = Parked::Questions {
            round: 1,
            answers: vec![(ASKED, Self::answer("{}"))],
        };
        let link = self.link.id;
        let call = Arc::clone(by);
        Event::Resume(Resume {
            link,
            operation: CALL,
            tag: None,
            parked,
            narrowing: None,
            call,
        })
    }

    fn ended(&self) -> Event<'static> {
        let end = End::Answered {
            outcome: Outcome::Ok,
            answer: Self::answer("the answer"),
        };
        Event::Answer {
            link: self.server,
            operation: CALL,
            end,
        }
    }
}

#[tokio::test]
async fn an_answer_that_comes_as_its_caller_comes_back_reaches_it() {
    let scene = Scene::new();
    let (_call, first) = scene.paused();
    let (by, second) = scene.request();
    let returning = scene.dispatch.step(scene.back(&by));
    // Another task takes the server's answer before the effects of the return are carried out.
    scene.dispatch.take(scene.ended());
    assert!(second.0.lock().is_empty());
    returning.carry_out();
    assert_eq!(*second.0.lock(), ["the answer"]);
    assert_eq!(first.0.lock().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_comes_as_its_caller_is_answered_for_now_waits_on_its_account() {
    const BYTES: usize = 10_000;
    let scene = Scene::new();
    let pool = Shares::new(BYTES * 2, BYTES * 2);
    let share = pool.of("bob");
    assert!(scene.link.held.set(Arc::clone(&share)).is_ok());
    let (call, got) = scene.asked();
    let topic: Weak<Dispatch> = Arc::downgrade(&scene.dispatch);
    let delivered = Delivered {
        topic,
        link: scene.server,
        server: OLD.clone(),
        logs: None,
        proposal: None,
        proposer: None,
        awaited: None,
    };
    assert!(call.delivered.set(delivered).is_ok());
    let (hold, is_held, release) = Hold::before("event", "Answer");
    let end = || call.done(Ok(Scene::answer(&"x".repeat(BYTES))));
    std::thread::scope(|scope| {
        scope.spawn(|| tracing::subscriber::with_default(hold, end));
        // The answer has come, and the topic does not have it yet.
        is_held.recv().unwrap();
        scene.pause(&got);
        release.send(()).unwrap();
    });
    assert!(share.taken() >= BYTES, "{}", share.taken());
}

#[tokio::test]
async fn what_its_server_notifies_reaches_the_caller_that_comes_back() {
    let scene = Scene::new();
    let (_call, first) = scene.paused();
    scene.dispatch.take(scene.noticed());
    let (by, second) = scene.request();
    scene.dispatch.take(scene.back(&by));
    assert_eq!(*second.0.lock(), [PROGRESS]);
    scene.dispatch.take(scene.ended());
    assert_eq!(*second.0.lock(), [PROGRESS, "the answer"]);
    assert_eq!(first.0.lock().len(), 1);
}

#[tokio::test]
async fn a_notification_that_meets_its_callers_return_is_not_lost() {
    let scene = Scene::new();
    let (_call, first) = scene.asked();
    // One task has stepped the notification, and carries it out last of all.
    let early = scene.dispatch.step(scene.noticed());
    // Others answer the caller for now, and take it when it comes back.
    while !scene.dispatch.with(|topic| topic.is_paused(CALL)) {
        scene.dispatch.take(Event::Tick);
    }
    let (by, second) = scene.request();
    scene.dispatch.take(scene.back(&by));
    scene.dispatch.take(scene.ended());
    assert!(first.0.lock().is_empty() && second.0.lock().is_empty());
    early.carry_out();
    let got = first.0.lock();
    assert_eq!(got.first().map(String::as_str), Some(PROGRESS), "{got:?}");
    assert!(got.len() == 2 && got[1].contains("input_required"));
    assert_eq!(*second.0.lock(), ["the answer"]);
}

#[tokio::test]
async fn the_end_of_an_answered_request_does_not_cancel_the_one_that_came_back() {
    let scene = Scene::new();
    let (call, _first) = scene.paused();
    let (by, second) = scene.request();
    scene.dispatch.take(scene.back(&by));
    scene.dispatch.abandon(&call);
    scene.dispatch.take(scene.ended());
    assert_eq!(*second.0.lock(), ["the answer"]);
    let (call, _) = scene.paused();
    let (by, second) = scene.request();
    scene.dispatch.take(scene.back(&by));
    // It is cancelled by the request that waits.
    scene.dispatch.end_overrun(&call, Err(Undelivered::Overrun));
    scene.dispatch.take(scene.ended());
    assert!(second.0.lock().is_empty());
    assert!(!scene.dispatch.with(|topic| topic.is_open(call.id)));
}
