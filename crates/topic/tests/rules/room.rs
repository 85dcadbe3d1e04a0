//! What is said to the room, who hears it, and whose connection counts.

use model::{Capabilities, LinkId, Outcome, RefusalCode};
use topic::{Cause, Ear, Effect, End, Event, RateLimit};

use crate::stage::{ANN, ONE, Stage, caps, delivered, id, op, refused};

const BOB: LinkId = LinkId(2);

#[test]
fn what_is_said_is_judged_by_kind_and_addressees() {
    let mut stage = Stage::new();
    let grants = ["chat", "mcp/request:tools/call:a*", "notes/*"].map(|text| text.parse_capability());
    let narrowed = "mcp/request:*".parse_capability().to(["one", "t*"]).unwrap();
    let capabilities = std::sync::Arc::new(grants.into_iter().chain([narrowed]).collect::<Capabilities>());
    stage.listener(BOB, "bob", &[], Ear::All);
    stage.step(Event::Regrant { participant: &id("bob"), capabilities });
    let mut check = |kind: &str, to: &[&str], expected: Option<Cause>| {
        let effects = stage.say(BOB, kind, to);
        match expected {
            None => assert_eq!(effects.as_slice(), [Effect::Publish { link: BOB }], "{kind} {to:?}"),
            Some(cause) => assert_eq!(refused(&effects), cause, "{kind} {to:?}"),
        }
    };
    check("chat", &[], None);
    check("chat", &["nobody"], None);
    check("mcp/request:tools/call:ab", &[], None);
    check("mcp/request:tools/list", &["one"], None);
    check("mcp/request:tools/list", &["one", "two"], None);
    check("mcp/request:tools/list", &["one", "bare"], Some(Cause::NotAdmitted));
    check("mcp/request:tools/list", &[], Some(Cause::NotAdmitted));
    check("mcp/proposal:tools/call:ab", &[], Some(Cause::NotAdmitted));
    check("notes/x", &[], None);
    check("system/error", &[], Some(Cause::Reserved));
    check("presence", &[], Some(Cause::Reserved));
    check("mcp/request", &[], Some(Cause::Malformed));
    check("mcp/request:tools/call:", &[], Some(Cause::Malformed));
    check("", &[], Some(Cause::Malformed));
    assert!(stage.say(LinkId(99), "chat", &[]).is_empty(), "a link that is not here says nothing");
}

#[test]
fn of_two_connections_the_one_that_was_accepted_later_stays() {
    let mut stage = Stage::new();
    stage.listener(LinkId(9), "bob", &["chat"], Ear::All);
    let capabilities = caps(&["chat"]);
    let late = stage.step(Event::Join {
        link: LinkId(8),
        participant: &id("bob"),
        role: topic::Role::Caller,
        capabilities: capabilities.clone(),
        rate: None,
        ear: Some(Ear::All),
        promotes: false,
    });
    assert_eq!(refused(&late), Cause::Replaced);
    assert!(stage.say(LinkId(8), "chat", &[]).is_empty());
    assert_eq!(stage.say(LinkId(9), "chat", &[]).as_slice(), [Effect::Publish { link: LinkId(9) }]);
    // One that does not listen is nobody's rival.
    let silent = stage.step(Event::Join {
        link: LinkId(7),
        participant: &id("bob"),
        role: topic::Role::Caller,
        capabilities,
        rate: None,
        ear: None,
        promotes: true,
    });
    assert!(silent.is_empty(), "{silent:?}");
}

#[test]
fn a_room_is_watched_while_somebody_hears_everything() {
    let mut stage = Stage::new();
    assert!(!stage.topic.is_watched());
    stage.listener(LinkId(7), "eve", &["chat"], Ear::DirectedAndProposals);
    assert!(!stage.topic.is_watched());
    stage.listener(BOB, "bob", &["chat"], Ear::All);
    stage.listener(LinkId(8), "dan", &["chat"], Ear::All);
    stage.step(Event::Leave { link: LinkId(8) });
    assert!(stage.topic.is_watched());
    // Another connection of the same one, that hears less, takes its place.
    stage.listener(LinkId(9), "bob", &["chat"], Ear::Directed);
    assert!(!stage.topic.is_watched());
    stage.listener(LinkId(10), "bob", &["chat"], Ear::All);
    stage.step(Event::Leave { link: LinkId(10) });
    assert!(!stage.topic.is_watched());
}

trait ParseCapability {
    fn parse_capability(&self) -> model::Capability;
}

impl ParseCapability for str {
    fn parse_capability(&self) -> model::Capability {
        model::Capability::parse(self).unwrap()
    }
}

#[test]
fn a_flood_is_withheld_with_a_time() {
    let mut stage = Stage::new();
    stage.limited(BOB, "bob", &["chat"], Some(RateLimit { burst: 1, per_minute: 60 }));
    assert_eq!(stage.say(BOB, "chat", &[]).as_slice(), [Effect::Publish { link: BOB }]);
    match stage.say(BOB, "chat", &[]).as_slice() {
        [Effect::Withhold { link: BOB, refusal, cause: Cause::RateLimited }] => {
            assert_eq!((refusal.code, refusal.retry_after_ms), (RefusalCode::RateLimited, Some(1_000)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn coming_back_is_no_way_around_a_limit() {
    let mut stage = Stage::new();
    let rate = Some(RateLimit { burst: 1, per_minute: 60 });
    stage.limited(BOB, "bob", &["chat"], rate);
    assert_eq!(stage.say(BOB, "chat", &[]).as_slice(), [Effect::Publish { link: BOB }]);
    stage.step(Event::Leave { link: BOB });
    stage.limited(LinkId(3), "bob", &["chat"], rate);
    assert_eq!(refused(&stage.say(LinkId(3), "chat", &[])), Cause::RateLimited);
    stage.step(Event::Leave { link: LinkId(3) });
    // Another limit begins anew.
    stage.limited(LinkId(4), "bob", &["chat"], Some(RateLimit { burst: 2, per_minute: 60 }));
    assert_eq!(stage.say(LinkId(4), "chat", &[]).as_slice(), [Effect::Publish { link: LinkId(4) }]);
}

#[test]
fn who_hears() {
    let mut stage = Stage::new();
    stage.listener(BOB, "bob", &[], Ear::Directed);
    stage.listener(LinkId(3), "cid", &[], Ear::DirectedAndProposals);
    let hears = |link, to: &[&str], kind| stage.topic.hears(link, to, kind);
    assert!(hears(BOB, &[], "chat") && hears(BOB, &["bob"], "chat") && !hears(BOB, &["cid"], "chat"));
    assert!(hears(LinkId(3), &["one"], "mcp/proposal:tools/call:x") && !hears(LinkId(3), &["one"], "chat"));
    assert!(!hears(ANN, &["ann"], "chat"), "a link without an ear hears nothing of the room");
    assert!(!hears(LinkId(9), &[], "chat"));
}

#[test]
fn a_second_listener_replaces_the_first() {
    let mut stage = Stage::new();
    stage.listener(BOB, "bob", &["mcp/*"], Ear::All);
    stage.call(BOB, 1, "hidden");
    let effects = stage.listener(LinkId(3), "bob", &["mcp/*"], Ear::Directed);
    assert_eq!(effects[0], Effect::Ended { link: BOB, why: End::Replaced });
    assert!(matches!(&effects[1], Effect::CancelAt { .. }));
    assert_eq!(
        effects[2..],
        [Effect::Left { participant: id("bob") }, Effect::Joined { participant: id("bob") }]
    );
    assert!(stage.step(Event::Leave { link: BOB }).is_empty(), "the older one's close changes nothing");
    assert_eq!(stage.topic.links(&id("bob")), [LinkId(3)]);
    // Links without an ear are not concerned, and the participant stays.
    stage.caller(LinkId(4), "bob", &["mcp/*"]);
    let effects = stage.listener(LinkId(5), "bob", &["mcp/*"], Ear::All);
    assert_eq!(effects.as_slice(), [Effect::Ended { link: LinkId(3), why: End::Replaced }]);
    assert_eq!(stage.topic.links(&id("bob")), [LinkId(4), LinkId(5)]);
}

#[test]
fn a_listener_is_replaced_at_the_limit_and_not_for_nothing() {
    let limits = topic::Limits { links_per_participant_max: 1, participants_max: 5, ..<_>::default() };
    let mut stage = Stage::with(limits);
    stage.listener(BOB, "bob", &[], Ear::All);
    assert_eq!(refused(&stage.caller(LinkId(3), "bob", &[])), Cause::Limit);
    let effects = stage.listener(LinkId(4), "bob", &[], Ear::All);
    assert_eq!(effects[0], Effect::Ended { link: BOB, why: End::Replaced });
    assert_eq!(stage.topic.links(&id("bob")), [LinkId(4)]);
    assert_eq!(refused(&stage.listener(LinkId(5), "cid", &[], Ear::All)), Cause::Limit);
}

#[test]
fn whoever_listens_is_welcomed_again_with_other_capabilities() {
    let mut stage = Stage::new();
    stage.listener(BOB, "bob", &["chat"], Ear::All);
    let mut regrant = |grants: &[&str]| {
        stage.step(Event::Regrant { participant: &id("bob"), capabilities: caps(grants) }).to_vec()
    };
    assert_eq!(regrant(&["chat", "notes/*"]), [Effect::Regranted { link: BOB }]);
    assert_eq!(regrant(&["chat", "notes/*"]), []);
    let effects = stage.caller(LinkId(3), "bob", &["chat"]);
    assert_eq!(effects.as_slice(), [Effect::Regranted { link: BOB }], "another link brings other ones");
    assert_eq!(stage.say(BOB, "notes/x", &[]).len(), 1);
    assert_eq!(refused(&stage.say(BOB, "notes/x", &[])), Cause::NotAdmitted);
    assert_eq!(stage.topic.capabilities(&id("bob")).map(|own| own.len()), Some(1));
}

#[test]
fn what_was_said_is_executed_as_the_speakers_operation() {
    let mut stage = Stage::new();
    stage.listener(BOB, "bob", &["mcp/request:tools/call:a"], Ear::All);
    let execute = |stage: &mut Stage, operation, upstream: &str| {
        let (upstream, method, context) = (&id(upstream), "tools/call", Some("a"));
        let (link, operation) = (BOB, op(operation));
        stage.step(Event::Execute { link, operation, upstream, method, context, proposal: None })
    };
    assert_eq!(delivered(&execute(&mut stage, 1, "one")), ("one".into(), None));
    assert!(execute(&mut stage, 1, "one").is_empty(), "an id counts once");
    let answer = Event::Answer { link: ONE, operation: op(1), outcome: Outcome::Ok };
    let settle = Effect::Settle { operation: op(1), to: BOB, outcome: Outcome::Ok };
    assert_eq!(stage.step(answer).as_slice(), [settle]);
    assert_eq!(refused(&execute(&mut stage, 2, "ann")), Cause::Unknown);
    assert_eq!(refused(&execute(&mut stage, 2, "portmoot")), Cause::UpstreamDown);
    delivered(&execute(&mut stage, 3, "two"));
    let effects = stage.step(Event::Regrant { participant: &id("bob"), capabilities: caps(&[]) });
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Refuse { cause: Cause::Withdrawn, .. })));
    delivered(&execute(&mut stage, 4, "two"));
    let effects = stage.step(Event::Leave { link: BOB });
    assert_eq!(effects[0], Effect::CancelAt { operation: op(4), upstream: id("two") });
}
