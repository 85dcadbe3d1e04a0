use std::sync::atomic::{AtomicUsize, Ordering};

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
    let participant = Arc::new(participant);
    let form = Form::Legacy;
    let link = Link::new(
        LinkId(1),
        participant,
        form,
        plain_client(),
        Arc::new(NoOutlet),
    );
    let method = Method::Known("tools/call");
    let payload = Payload::body(form, "{}");
    let request = Request {
        method,
        target: None,
        progress: None,
        payload,
    };
    let incoming = Incoming::plain(request, None);
    let reply = Arc::<Ends>::clone(reply);
    Call::new(
        OperationId(1),
        link.opener(),
        incoming,
        Names::Public,
        reply,
    )
}

fn answer() -> Answer {
    Answer {
        outcome: Outcome::Ok,
        payload: Payload::body(Form::Legacy, "{}"),
    }
}

#[test]
fn an_answer_after_an_answer_for_now_reaches_no_caller() {
    let reply = Arc::<Ends>::default();
    let call = call(&reply);
    call.answer_for_now().settle(&answer(), &|_| None);
    assert!(call.waiter.is_away());
    call.reply().settle(&answer(), &|_| None);
    call.reply().abandon();
    assert_eq!(reply.count(), 1);
}

#[test]
fn a_caller_that_came_back_is_answered_on_its_last_request() {
    let first = Arc::<Ends>::default();
    let second = Arc::<Ends>::default();
    let (call, by) = (call(&first), call(&second));
    call.answer_for_now().settle(&answer(), &|_| None);
    call.come_back(by);
    assert!(!call.waiter.is_away());
    call.reply().settle(&answer(), &|_| None);
    assert_eq!((first.count(), second.count()), (1, 1));
}

#[test]
fn only_the_last_request_of_a_caller_that_comes_back_is_kept() {
    let ends = Arc::<Ends>::default();
    let first = call(&ends);
    let second = call(&ends);
    let kept = call(&ends);
    kept.answer_for_now();
    kept.come_back(Arc::clone(&first));
    kept.answer_for_now();
    kept.come_back(Arc::clone(&second));
    assert_eq!(
        (Arc::strong_count(&first), Arc::strong_count(&second)),
        (1, 2)
    );
}
