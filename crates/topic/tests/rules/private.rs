//! Private envelopes between a participant and the gateway.

use model::{LinkId, OperationId};
use topic::{DeliveryMode, Event};

use crate::{
    envelope::Envelope,
    serving::serving,
    shown::shown,
    stage::{BOB, DIRECT, Stage},
};

const WORKER: LinkId = LinkId(7);

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.step(Event::Configure { upstreams: &serving() });
    stage.server(LinkId(8), "worker");
    let grants = ["mcp/response:*", "mcp/request:notifications/*", "chat"];
    stage.listener(WORKER, "worker", &grants, DeliveryMode::All);
    stage.listener(BOB, "bob", &grants, DeliveryMode::All);
    stage
}

fn direct(low: u64) -> String {
    OperationId((u128::from(DIRECT) << 64) + u128::from(low)).to_string()
}

#[test]
fn an_answer_to_the_gateways_own_request_is_not_published() {
    let mut stage = stage();
    let about = direct(5);
    let answer = |link, id| Envelope::answer(link, id, &["portmoot"], &about);
    assert_eq!(shown(&stage.send(answer(WORKER, "a1"))), ["receive a1 from 7 for worker"]);
    assert_eq!(shown(&stage.send(answer(BOB, "a2"))), ["receive a2 from 2"], "bob serves nothing");
    let astray = Envelope::answer(WORKER, "a3", &["bob"], &about);
    assert_eq!(shown(&stage.send(astray)), ["receive a3 from 7 for worker"], "whatever it names");
    let notice = Envelope::new(WORKER, "n1", "mcp/request:notifications/progress", &[]).about(&about);
    assert_eq!(shown(&stage.send(notice)), ["receive n1 from 7 for worker"]);
}

#[test]
fn all_other_envelopes_are_published() {
    let mut stage = stage();
    let (about, other) = (direct(5), OperationId((u128::from(DIRECT + 1) << 64) + 5).to_string());
    let chat = Envelope::new(WORKER, "m1", "chat", &[]).about(&about);
    assert_eq!(shown(&stage.send(chat)), ["publish m1"], "it is no answer");
    assert_eq!(shown(&stage.send(Envelope::answer(WORKER, "a1", &[], &other))), ["publish a1"]);
    assert_eq!(shown(&stage.send(Envelope::answer(WORKER, "a2", &[], "r1"))), ["publish a2"]);
    // The gateway's sessions with a participant that serves get its notifications as well.
    let notice = |link, id| Envelope::new(link, id, "mcp/request:notifications/tools/list_changed", &[]);
    assert_eq!(shown(&stage.send(notice(WORKER, "n1"))), ["publish n1", "receive n1 from 7 for worker"]);
    assert_eq!(shown(&stage.send(notice(BOB, "n2"))), ["publish n2"]);
}

#[test]
fn a_private_answer_is_admitted_like_any_envelope() {
    let mut stage = stage();
    stage.regrant("worker", &["chat"]);
    let about = direct(5);
    let effects = stage.send(Envelope::answer(WORKER, "a1", &[], &about));
    assert_eq!(shown(&effects), ["withhold from 7: capability_violation"]);
}
