//! A request's life: admitted, delivered, ended once.

use model::{LinkId, Outcome, RefusalCode};
use topic::{Cause, Effect, Event, ListKind, RateLimit, Target, View};

use crate::stage::{ANN, BARE, ONE, Stage, caps, delivered, id, op, refused, tools};

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.lists("one", View::Shared, tools(&["a", "b"]));
    stage
}

#[test]
fn a_request_settles_once() {
    let mut stage = stage();
    stage.call(ANN, 1, "one_a");
    assert!(stage.call(ANN, 1, "one_b").is_empty(), "an id that is open is ignored");
    let answer = |link| Event::Answer { link, operation: op(1), outcome: Outcome::Ok };
    assert!(stage.step(answer(BARE)).is_empty(), "somebody else's answer");
    assert!(stage.step(answer(ANN)).is_empty(), "the caller's own answer");
    let effects = stage.step(answer(ONE));
    assert_eq!(effects.as_slice(), [Effect::Settle { operation: op(1), to: ANN, outcome: Outcome::Ok }]);
    assert!(stage.step(answer(ONE)).is_empty(), "a second answer");
    assert!(stage.step(Event::Expire { operation: op(1) }).is_empty());
    assert_eq!(stage.topic.operations_len(), 0);
}

#[test]
fn what_is_refused_reads_like_what_is_absent() {
    let mut stage = stage();
    stage.caller(LinkId(2), "bob", &["mcp/request:tools/call:one_a"]);
    let hidden = stage.call(LinkId(2), 1, "one_b");
    let absent = stage.call(LinkId(2), 2, "one_none");
    let refusal = |effects: &topic::Effects| match &effects[0] {
        Effect::Refuse { refusal, .. } => refusal.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(refusal(&hidden), refusal(&absent));
    assert_eq!(refusal(&hidden).code, RefusalCode::UnknownTarget);
    assert_eq!((refused(&hidden), refused(&absent)), (Cause::NotAdmitted, Cause::Unknown));
    assert_eq!(stage.sees(LinkId(2), ListKind::Tools), ["one_a"]);
    assert!(stage.topic.visible(LinkId(2), ListKind::Tools, "one_a"));
    assert!(!stage.topic.visible(LinkId(2), ListKind::Tools, "one_b"));
    assert_eq!(refused(&stage.ask_for(LinkId(2), 3, "tools/call:one_a", None)), Cause::Malformed);
    assert_eq!(refused(&stage.call(LinkId(2), 4, "")), Cause::Malformed);
}

#[test]
fn a_capability_can_be_narrowed_to_an_upstream() {
    let mut stage = stage();
    let narrowed = model::Capability::parse("mcp/request:tools/call").unwrap().to(["one"]).unwrap();
    let capabilities = std::sync::Arc::new([narrowed].into_iter().collect());
    stage.step(Event::Regrant { participant: &id("ann"), capabilities });
    assert_eq!(delivered(&stage.call(ANN, 1, "one_a")).0, "one");
    assert_eq!(refused(&stage.call(ANN, 2, "hidden")), Cause::NotAdmitted);
}

#[test]
fn methods_without_a_name() {
    let mut stage = stage();
    stage.upstream(LinkId(100), "portmoot");
    stage.caller(LinkId(2), "bob", &[]);
    assert_eq!(delivered(&stage.ask_for(LinkId(2), 1, "tools/list", None)).0, "portmoot");
    let tasks = Some(Target::Upstream("one"));
    assert_eq!(delivered(&stage.ask_for(LinkId(2), 2, "tasks/get", tasks)).0, "one");
    assert_eq!(refused(&stage.ask_for(LinkId(2), 3, "logging/setLevel", tasks)), Cause::NotAdmitted);
    assert_eq!(delivered(&stage.ask_for(ANN, 4, "logging/setLevel", tasks)).0, "one");
}

#[test]
fn cancelling_and_expiring_stop_the_upstream() {
    let mut stage = stage();
    stage.caller(LinkId(2), "bob", &["mcp/*"]);
    stage.call(ANN, 1, "one_a");
    assert!(stage.step(Event::Cancel { link: LinkId(2), operation: op(1) }).is_empty());
    let stop = |operation| Effect::CancelAt { operation: op(operation), upstream: id("one") };
    let effects = stage.step(Event::Cancel { link: ANN, operation: op(1) });
    let settle = Effect::Settle { operation: op(1), to: ANN, outcome: Outcome::Cancelled };
    assert_eq!(effects.as_slice(), [stop(1), settle]);
    stage.call(ANN, 2, "one_a");
    let effects = stage.step(Event::Expire { operation: op(2) });
    assert_eq!(effects[0], stop(2));
    assert!(matches!(&effects[1], Effect::Refuse { cause: Cause::Expired, to: ANN, .. }));
}

#[test]
fn losing_an_upstream_or_a_capability_ends_what_is_open() {
    let mut stage = stage();
    stage.call(ANN, 1, "one_a");
    stage.call(ANN, 2, "one_b");
    stage.call(ANN, 3, "hidden");
    let effects = stage.step(Event::Regrant {
        participant: &id("ann"),
        capabilities: caps(&["mcp/request:tools/call:one_a", "mcp/request:tools/call:hidden"]),
    });
    assert!(
        matches!(&effects[1], Effect::Refuse { operation, cause: Cause::Withdrawn, .. } if *operation == op(2))
    );
    let effects = stage.step(Event::Leave { link: ONE });
    assert!(
        matches!(&effects[0], Effect::Refuse { operation, cause: Cause::UpstreamDown, .. } if *operation == op(1))
    );
    assert!(matches!(&effects[1], Effect::ListChanged { list: ListKind::Tools, .. }));
    assert_eq!(effects[2], Effect::Left { participant: id("one") });
    assert_eq!(stage.topic.operations_len(), 1);
    assert_eq!(refused(&stage.call(ANN, 4, "one_a")), Cause::Unknown);
}

#[test]
fn the_rate_is_the_participants() {
    let mut stage = stage();
    let rate = Some(RateLimit { burst: 2, per_minute: 60 });
    stage.limited(LinkId(2), "bob", &["mcp/*"], rate);
    stage.limited(LinkId(3), "bob", &["mcp/*"], rate);
    delivered(&stage.call(LinkId(2), 1, "one_a"));
    delivered(&stage.call(LinkId(3), 2, "one_a"));
    let effects = stage.call(LinkId(2), 3, "one_a");
    match &effects[0] {
        Effect::Refuse { refusal, cause: Cause::RateLimited, .. } => {
            assert_eq!(refusal.retry_after_ms, Some(1_000))
        }
        other => panic!("{other:?}"),
    }
}
