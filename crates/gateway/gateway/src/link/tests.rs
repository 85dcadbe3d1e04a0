//! Requests of several access tokens on one link.

use std::sync::Barrier;
use std::thread;

use auth::TokenAudience;
use model::{Answer, Capabilities, Method, Payload, Refusal, RefusalCode, Scope, Target};
use topic::Joining;

use super::*;
use crate::call::{Call, Reply};
use crate::envelopes::tests::Stage;
use crate::incoming::Incoming;
use crate::membership::tests::demo;
use crate::offer::Offer;

/// Calls of one participant at once.
const CALLS: usize = 16;

fn bearer(byte: u8, to: &[&str], step_up: bool) -> Arc<Bearer> {
    let parse = |kinds: &[&str]| {
        Arc::new(Capabilities::parse(kinds.iter().copied()).expect("capabilities"))
    };
    let wide = Scope {
        name: "wide".into(),
        capabilities: parse(&["mcp/*"]),
    };
    let narrowing = Narrowing {
        to: parse(to),
        step_up: step_up.then(|| Arc::new([wide].into_iter().collect())),
    };
    Arc::new(Bearer {
        token: Some(Digest([byte; 32])),
        narrowing: Some(narrowing),
        ends_ms: u64::MAX,
        checked_until_ms: u64::MAX,
        audience: TokenAudience::Every,
    })
}

/// A reply that takes its refusal only once all calls have theirs.
struct Together {
    all: Arc<Barrier>,
    why: Mutex<Option<RefusalCode>>,
}

impl Reply for Together {
    fn settle(&self, _: &Call, _: &Answer, _: &Respell<'_>) {}

    fn refuse(&self, _: &Call, refusal: &Refusal) {
        self.all.wait();
        *self.why.lock() = Some(refusal.code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_with_several_tokens_on_one_link_are_taken_side_by_side_each_by_its_own() {
    let stage = Stage::new(&["mcp/*"]);
    let dispatch = &stage.dispatch;
    let server = demo("one").await;
    dispatch.configure(&[server], &[], Offer::default());
    let client = plain_client();
    let outlet = Arc::new(NoOutlet);
    let participant = Arc::clone(&stage.ann.participant);
    let link = Link::new(
        dispatch.context.link(),
        participant,
        Form::Legacy,
        client,
        outlet,
    );
    let capabilities = &stage.ann.participant.capabilities;
    dispatch
        .join(&link, capabilities, Joining::default())
        .expect("it may join");
    // Only with the first could its client come back with a better one.
    let tokens = [bearer(1, &[], true), bearer(2, &["chat"], false)];
    let all = Arc::new(Barrier::new(CALLS));
    let runtime = tokio::runtime::Handle::current();
    let refused = |at: usize| {
        let _runtime = runtime.enter();
        let reply = Arc::new(Together {
            all: Arc::clone(&all),
            why: Mutex::default(),
        });
        let request = Request {
            method: Method::Known("tools/call"),
            target: Some(Target::Tool("one_echo".into())),
            progress: None,
            payload: Payload::body(Form::Legacy, r#"{"name":"one_echo"}"#),
        };
        let by = Requester {
            link: &link,
            bearer: tokens.get(at % tokens.len()),
            address: None,
        };
        let incoming = Incoming::plain(request, None);
        dispatch.request(by, incoming, Arc::<Together>::clone(&reply));
        reply.why.lock().take()
    };
    let refused = &refused;
    let codes: Vec<_> = thread::scope(|scope| {
        let calls: Vec<_> = (0..CALLS)
            .map(|at| scope.spawn(move || refused(at)))
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    for (at, code) in codes.iter().enumerate() {
        let missing = *code == Some(RefusalCode::InsufficientScope);
        assert_eq!(missing, at % 2 == 0, "call {at}: {code:?}");
        assert!(code.is_some(), "call {at}");
    }
}

#[test]
fn the_latest_token_of_an_issuer_is_known_between_requests() {
    let one = bearer(1, &["mcp/*"], false);
    let other = bearer(2, &[], false);
    let own = Arc::new(Bearer {
        token: None,
        ..Bearer::clone(&one)
    });
    let latest = LatestToken::default();
    assert_eq!(latest.get(), None);
    latest.note(Some(&own));
    assert_eq!(latest.get(), None, "no server exchanges the gateway's own");
    for token in [Some(&one), Some(&other), Some(&other), None, Some(&one)] {
        latest.note(token);
        assert_eq!(latest.get().as_ref(), token);
    }
}
