use std::sync::atomic::AtomicUsize;

use auth::Participant;
use model::{Form, Method, Outcome, Payload};

use super::*;
use crate::link::{NoOutlet, plain_client};

/// Counts ends.
#[derive(Default)]
struct Ends(AtomicUsize);

impl Ends {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Reply for Ends {
    fn settle(&self, _: &Call, _: &Answer, _: &Respell<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn refuse(&self, _: &Call, _: &Refusal) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn abandon(&self, _: &Call) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn call(reply: &Arc<Ends>) -> Arc<Call> {
    let participant = Participant::new(
        ParticipantId::new("scout").unwrap(),
        Arc::default(),
        Vec::new(),
    );
    let (participant, form) = (Arc::new(participant), Form::Legacy);
    let link = Link::new(
        LinkId(1),
        participant,
        form,
        plain_client(),
        Arc::new(NoOutlet),
    );
    let (method, payload) = (Method::Known("tools/call"), Payload::body(form, "{}"));
    let request = Request {
        method,
        target: None,
        progress: None,
        payload,
    };
    let (incoming, reply) = (Incoming::plain(request, None), Arc::<Ends>::clone(reply));
    Call::new(
        OperationId(1),
        link.opener(),
        incoming,
        Names::Public,
        reply,
    )
}

#[test]
fn a_parked_call_answers_its_caller_once() {
    let (reply, answer) = (
        Arc::<Ends>::default(),
        Answer {
            outcome: Outcome::Ok,
            payload: Payload::body(Form::Legacy, "{}"),
        },
    );
    let call = call(&reply);
    call.park().unwrap().settle(&answer, &|_| None);
    assert!(call.park().is_none() && call.is_parked() && !call.is_over());
    call.end();
    call.reply().settle(&answer, &|_| None);
    call.reply().abandon();
    assert_eq!(reply.count(), 1);
}

#[test]
fn a_call_that_ends_while_it_is_parked_answers_its_caller_once() {
    let answer = Answer {
        outcome: Outcome::Ok,
        payload: Payload::body(Form::Legacy, "{}"),
    };
    for _ in 0..2_000 {
        let reply = Arc::<Ends>::default();
        let call = call(&reply);
        let barrier = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                if let Some(reply) = call.park() {
                    reply.settle(&answer, &|_| None);
                }
            });
            barrier.wait();
            call.end();
            call.reply().settle(&answer, &|_| None);
        });
        assert_eq!(reply.count(), 1);
    }
}

#[test]
fn a_call_that_has_ended_is_not_parked() {
    let reply = Arc::<Ends>::default();
    let call = call(&reply);
    call.end();
    call.reply().abandon();
    assert!(call.park().is_none());
    assert_eq!(reply.count(), 1);
}

#[test]
fn a_caller_that_came_back_is_answered_once() {
    let (first, second) = (Arc::<Ends>::default(), Arc::<Ends>::default());
    let (call, by) = (call(&first), call(&second));
    let answer = Answer {
        outcome: Outcome::Ok,
        payload: Payload::body(Form::Legacy, "{}"),
    };
    call.park().unwrap().settle(&answer, &|_| None);
    assert!(call.come_back(by).is_none());
    call.end();
    call.reply().abandon();
    assert!(call.park().is_none(), "it has ended");
    assert_eq!((first.count(), second.count()), (1, 1));
}

#[test]
fn only_the_last_request_of_a_caller_that_comes_back_is_kept() {
    let ends = Arc::<Ends>::default();
    let (first, second) = (call(&ends), call(&ends));
    let kept = call(&ends);
    kept.park().unwrap();
    assert!(kept.come_back(Arc::clone(&first)).is_none());
    kept.park().unwrap();
    assert!(
        kept.come_back(Arc::clone(&second))
            .is_some_and(|before| Arc::ptr_eq(&before, &first))
    );
    assert_eq!(
        (Arc::strong_count(&first), Arc::strong_count(&second)),
        (1, 2)
    );
}
