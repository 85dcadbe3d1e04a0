//! Envelopes in the room: admission and rate limits.

use model::{
    Capabilities, Capability, DeliveryMode, KindRef, LinkId, Method, RateLimit, RefusalCode,
};
use topic::{Audience, Cause, Ended, Event, PublicTarget, Reach, Requested, RoomEffect, Verdict};

use crate::{
    envelope::Envelope,
    numbers::{Effect, Intent},
    shown::{delivered, refused, shown},
    stage::{ANN, BOB, CID, ONE, Stage, id, op},
};

#[test]
fn an_envelope_is_judged_by_kind_and_addressees() {
    let mut stage = Stage::new();
    let parse = |text: &str| Capability::parse(text).unwrap();
    let grants = ["chat", "mcp/request:tools/call:a*", "notes/*"].map(parse);
    let narrowed = parse("mcp/request:*").to(["one", "t*"]).unwrap();
    let capabilities = std::sync::Arc::new(
        grants
            .into_iter()
            .chain([narrowed])
            .collect::<Capabilities>(),
    );
    stage.listener(BOB, "bob", &[], DeliveryMode::All);
    stage.step(Event::Regrant {
        participant: &id("bob"),
        capabilities,
    });
    let mut check = |kind: &str, to: &[&str], expected: Result<usize, Cause>| {
        let effects = stage.say(BOB, kind, to);
        match (expected, &effects.verdict) {
            (
                Ok(at),
                Some(Verdict::Admitted {
                    to: None,
                    own: None,
                    by,
                }),
            ) => {
                assert_eq!(by.at, Some(at), "{kind} {to:?}");
                assert_eq!(shown(&effects), ["publish m"], "{kind} {to:?}");
            }
            (Err(cause), Some(Verdict::Refused(why))) => {
                assert_eq!((refused(&effects), *why), (cause, cause), "{kind} {to:?}");
                assert!(effects.room.is_empty());
            }
            other => panic!("{kind} {to:?}: {other:?}"),
        }
    };
    check("chat", &[], Ok(0));
    check("chat", &["unknown"], Ok(0));
    check("mcp/request:tools/call:ab", &[], Ok(1));
    check("mcp/request:tools/list", &["one"], Ok(3));
    check("mcp/request:tools/list", &["one", "two"], Ok(3));
    check(
        "mcp/request:tools/list",
        &["one", "bare"],
        Err(Cause::NotAdmitted),
    );
    check("mcp/request:tools/list", &[], Err(Cause::NotAdmitted));
    check("mcp/proposal:tools/call:ab", &[], Err(Cause::NotAdmitted));
    check("notes/x", &[], Ok(2));
    check("system/error", &[], Err(Cause::Reserved));
    check("presence", &[], Err(Cause::Reserved));
    check("mcp/request", &[], Err(Cause::Malformed));
    check("mcp/request:tools/call:", &[], Err(Cause::Malformed));
    check("", &[], Err(Cause::Malformed));
    assert!(
        shown(&stage.say(LinkId(99), "chat", &[])).is_empty(),
        "a link that is not here sends nothing"
    );
}

#[test]
fn a_request_in_the_room_is_judged_by_its_kind_alone() {
    let mut stage = Stage::new();
    stage.caller(
        BOB,
        "bob",
        &["mcp/request:tools/list", "mcp/request:completion/complete"],
    );
    let asks = |stage: &mut Stage, method, context: Option<&str>, operation: u128| {
        let calls = vec![(op(operation), operation)];
        let method = Method::Known(method);
        let kind = KindRef::request(method.as_str(), context)
            .unwrap()
            .to_string();
        let intent = Intent::Request(Requested {
            method,
            context: context.map(Into::into),
            tag: None,
            calls,
            ruling: None,
        });
        let id = operation.to_string();
        shown(&stage.send(Envelope {
            intent,
            ..Envelope::new(BOB, &id, &kind, &["one"])
        }))
    };
    assert_eq!(
        asks(&mut stage, "tools/list", None, 1),
        ["publish 1", "deliver 1 to one"]
    );
    // Over MCP, a completion needs the right to use the prompt as well, and a list needs none.
    assert_eq!(
        asks(&mut stage, "completion/complete", Some("plan"), 2),
        ["publish 2", "deliver 2 to one"]
    );
    stage.request(BOB, 3, "tools/list", Some(PublicTarget::Upstream("one")));
    let effects = stage.regrant("bob", &["chat", "mcp/request:completion/complete"]);
    assert_eq!(
        shown(&effects),
        ["changed bob", "cancel 1", "refuse 1: withdrawn"]
    );
    let expected = ["changed bob", "cancel 2", "refuse 2: withdrawn"];
    assert_eq!(shown(&stage.regrant("bob", &["chat"])), expected);
    assert_eq!(shown(&stage.answer(ONE, 3, 5)), ["settle 3 with 5"]);
}

#[test]
fn a_flood_is_withheld_with_a_time() {
    let mut stage = Stage::new();
    stage.limited(
        BOB,
        "bob",
        &["chat"],
        Some(RateLimit {
            burst: 1,
            per_minute: 60,
        }),
    );
    assert_eq!(shown(&stage.say(BOB, "chat", &[])), ["publish m"]);
    match stage.say(BOB, "chat", &[]).all.as_slice() {
        [
            Effect::Withhold {
                handle: 2,
                message: _,
                refusal,
            },
        ] => {
            assert_eq!(
                (refusal.code, refusal.retry_after_ms),
                (RefusalCode::RateLimited, Some(1_000))
            );
        }
        other => panic!("{other:?}"),
    }
    stage.now_ms = 1_000;
    assert_eq!(shown(&stage.say(BOB, "chat", &[])), ["publish m"]);
}

#[test]
fn rejoining_does_not_reset_a_limit() {
    let mut stage = Stage::new();
    let rate = Some(RateLimit {
        burst: 1,
        per_minute: 60,
    });
    stage.limited(BOB, "bob", &["chat"], rate);
    assert_eq!(shown(&stage.say(BOB, "chat", &[])), ["publish m"]);
    stage.leave(BOB);
    stage.limited(CID, "bob", &["chat"], rate);
    assert_eq!(refused(&stage.say(CID, "chat", &[])), Cause::RateLimited);
    stage.leave(CID);
    // Another limit starts with a full bucket.
    stage.limited(
        LinkId(4),
        "bob",
        &["chat"],
        Some(RateLimit {
            burst: 2,
            per_minute: 60,
        }),
    );
    assert_eq!(shown(&stage.say(LinkId(4), "chat", &[])), ["publish m"]);
}

#[test]
fn buckets_of_absent_participants_are_kept_until_they_are_full() {
    let mut stage = Stage::new();
    let rate = Some(RateLimit {
        burst: 1,
        per_minute: 60,
    });
    let visit = |stage: &mut Stage, number: u64| {
        stage.limited(
            LinkId(1_000 + number),
            &format!("p{number}"),
            &["chat"],
            rate,
        );
        let effects = shown(&stage.say(LinkId(1_000 + number), "chat", &[]));
        stage.leave(LinkId(1_000 + number));
        effects == ["publish m"]
    };
    assert!((0..1_000).all(|number| visit(&mut stage, number)));
    assert!((0..1_000).all(|number| !visit(&mut stage, number)));
    stage.now_ms = 1_000;
    assert!((0..1_000).all(|number| visit(&mut stage, number)));
}

#[test]
fn a_request_to_a_server_is_the_senders_operation() {
    let mut stage = Stage::new();
    stage.listener(BOB, "bob", &["mcp/request:tools/call:a"], DeliveryMode::All);
    assert_eq!(
        shown(&stage.send(Envelope::request(BOB, "r1", &["one"], &[1]))),
        ["publish r1", "deliver 1 to one"]
    );
    // Each addressee that is a server gets one call.
    let effects = stage.send(Envelope::request(
        BOB,
        "r2",
        &["two", "ann", "bare"],
        &[2, 3, 4],
    ));
    assert_eq!(
        shown(&effects),
        ["publish r2", "deliver 2 to two", "deliver 4 to bare"]
    );
    assert_eq!(shown(&stage.answer(ONE, 1, 5)), ["settle 1 with 5"]);
    let effects = stage.send(Envelope::request(BOB, "r3", &["portmoot"], &[5]));
    assert_eq!(shown(&effects), ["publish r3", "refuse 5: upstream_down"]);
    // The gateway delivers no request to a participant that it does not play; the participant gets
    // the message.
    assert_eq!(
        shown(&stage.send(Envelope::request(BOB, "r4", &["ann"], &[6]))),
        ["publish r4"]
    );
    assert_eq!(
        shown(&stage.send(Envelope::request(BOB, "r5", &[], &[]))),
        ["publish r5"]
    );
    let effects = stage.regrant("bob", &[]);
    let expected = [
        "changed bob",
        "cancel 2",
        "refuse 2: withdrawn",
        "cancel 4",
        "refuse 4: withdrawn",
    ];
    assert_eq!(shown(&effects)[1..], expected);
    stage.regrant("bob", &["mcp/request:*"]);
    stage.send(Envelope::request(BOB, "r6", &["two"], &[7]));
    assert_eq!(
        shown(&stage.leave(BOB)),
        ["exit 2", "left bob", "cancel 7", "drop 7", "closed 2"]
    );
}

#[test]
fn the_gateway_announces_in_a_participants_name() {
    let mut stage = Stage::new();
    let audience = Audience::new(
        None,
        &["ann"],
        "mcp/request:tools/call:a",
        Reach::Except(id("bob")),
    );
    let event = Event::Announce {
        message: "x".to_owned(),
        bytes: 1,
        audience: audience.clone(),
    };
    let effects = stage.step(event);
    assert_eq!(shown(&effects), ["publish x except for bob"]);
    assert!(
        matches!(&effects.room[0], RoomEffect::Publish { audience: own, .. } if *own == audience)
    );
    assert_eq!(effects.verdict, None);
}

#[test]
fn a_listener_that_is_revoked_or_replaced_gets_the_reason() {
    let mut stage = Stage::new();
    stage.listener(BOB, "bob", &["chat"], DeliveryMode::All);
    let effects = stage.revoke("bob");
    let room = &effects.room[0];
    let closed = &effects.all[0];
    assert!(
        matches!(
            room,
            RoomEffect::Exit {
                link: BOB,
                why: Some(Ended::Revoked)
            }
        ),
        "{room:?}"
    );
    assert!(
        matches!(
            closed,
            Effect::Closed {
                handle: 2,
                why: Some(Ended::Revoked)
            }
        ),
        "{closed:?}"
    );
    stage.listener(CID, "bob", &["mcp/*"], DeliveryMode::All);
    assert_eq!(delivered(&stage.call(CID, 1, "x")).0, "bare");
    assert_eq!(stage.links("ann"), [ANN]);
}
