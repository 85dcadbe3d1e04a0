//! Private envelopes between a participant and the gateway.

use model::{DeliveryMode, LinkId, OperationId};

use crate::{
    envelope::Envelope,
    numbers::Intent,
    proposals::pending,
    serving::serving,
    shown::shown,
    stage::{BOB, CID, DIRECT, OWN, Stage},
};

const WORKER: LinkId = LinkId(7);

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.configure(&serving());
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
    assert_eq!(
        shown(&stage.send(answer(WORKER, "a1"))),
        ["receive a1 from 7 for worker"]
    );
    assert_eq!(
        shown(&stage.send(answer(BOB, "a2"))),
        ["receive a2 from 2"],
        "bob serves nothing"
    );
    let astray = Envelope::answer(WORKER, "a3", &["bob"], &about);
    assert_eq!(
        shown(&stage.send(astray)),
        ["receive a3 from 7 for worker"],
        "whatever it names"
    );
    let notice =
        Envelope::new(WORKER, "n1", "mcp/request:notifications/progress", &[]).about(&about);
    assert_eq!(shown(&stage.send(notice)), ["receive n1 from 7 for worker"]);
}

#[test]
fn all_other_envelopes_are_published() {
    let mut stage = stage();
    let about = direct(5);
    let other = OperationId((u128::from(DIRECT + 1) << 64) + 5).to_string();
    let chat = Envelope::new(WORKER, "m1", "chat", &[]).about(&about);
    assert_eq!(shown(&stage.send(chat)), ["publish m1"], "it is no answer");
    assert_eq!(
        shown(&stage.send(Envelope::answer(WORKER, "a1", &[], &other))),
        ["publish a1"]
    );
    assert_eq!(
        shown(&stage.send(Envelope::answer(WORKER, "a2", &[], "r1"))),
        ["publish a2"]
    );
    // The gateway's sessions with a participant that serves get its notifications as well.
    let notice = |link, id| {
        Envelope::new(
            link,
            id,
            "mcp/request:notifications/tools/list_changed",
            &[],
        )
    };
    assert_eq!(
        shown(&stage.send(notice(WORKER, "n1"))),
        ["publish n1", "receive n1 from 7 for worker"]
    );
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

/// A request to call a tool of these participants.
fn calls<'a>(link: LinkId, kind: &'a str, to: &'a [&'a str], operation: u128) -> Envelope<'a> {
    let mut drawn = Envelope::request(link, kind, to, &[operation]);
    if let Intent::Request(requested) = &mut drawn.intent {
        requested.context = kind.rsplit(':').next().map(Into::into);
    }
    Envelope { kind, ..drawn }
}

#[test]
fn requests_about_own_proposals_need_no_capability_and_reach_the_gateway_alone() {
    let withdraw = "mcp/request:tools/call:withdraw_proposal";
    let wait = "mcp/request:tools/call:wait_for_proposal";
    let mut stage = pending();
    for (kind, operation) in [(withdraw, 11), (wait, 12)] {
        let expected = [format!("deliver {operation} to portmoot")];
        assert_eq!(
            shown(&stage.send(calls(BOB, kind, &["portmoot"], operation))),
            expected
        );
    }
    // New capabilities end neither, as long as the participant may propose something.
    assert_eq!(
        shown(&stage.regrant("bob", &["mcp/proposal:tools/call:a"])),
        [
            "renew 2 bob among ann,bare,bob,cid,one,portmoot,two",
            "changed bob"
        ]
    );
    assert_eq!(shown(&stage.answer(OWN, 11, 5)), ["settle 11 with 5"]);
    let no = ["withhold from 2: capability_violation"];
    for (kind, to) in [
        (withdraw, &["one"][..]),
        (withdraw, &["portmoot", "one"]),
        (withdraw, &[]),
        ("mcp/request:tools/call:approve_proposal", &["portmoot"]),
        ("mcp/request:tools/call", &["portmoot"]),
    ] {
        assert_eq!(
            shown(&stage.send(calls(BOB, kind, to, 13))),
            no,
            "{kind} {to:?}"
        );
    }
    let effects = stage.send(calls(CID, withdraw, &["portmoot"], 14));
    assert_eq!(
        shown(&effects),
        ["withhold from 3: capability_violation"],
        "cid may not propose"
    );
    // With a capability it is an envelope like any other.
    stage.regrant("bob", &["mcp/*"]);
    let again = Envelope {
        id: "again",
        ..calls(BOB, withdraw, &["portmoot"], 15)
    };
    assert_eq!(
        shown(&stage.send(again)),
        ["publish again", "deliver 15 to portmoot"]
    );
}
