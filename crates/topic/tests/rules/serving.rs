//! Participants that serve: they come and go as themselves, and what they serve has a place of its own.

use model::{LinkId, Outcome};
use topic::{Cause, Ear, Effect, Event, ListKind, Manifest, UpstreamNames, View};

use crate::stage::{ANN, Stage, configured, delivered, id, op, refused, tools};

const WORKER: LinkId = LinkId(7);
const SERVED: LinkId = LinkId(8);

fn serving() -> Vec<UpstreamNames> {
    let mut all = configured();
    all.push(UpstreamNames::serving(id("worker"), "worker"));
    all
}

/// The usual stage, with `worker` who serves the tool `w`.
fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.step(Event::Configure { upstreams: &serving() });
    assert!(stage.upstream(SERVED, "worker").is_empty(), "nobody sees what is served come in");
    let effects = stage.listener(WORKER, "worker", &["mcp/response:*"], Ear::All);
    assert_eq!(effects.as_slice(), [Effect::Joined { participant: id("worker") }]);
    stage.lists("worker", View::Shared, tools(&["w"]));
    stage
}

#[test]
fn what_a_participant_serves_is_called_under_its_name() {
    let mut stage = stage();
    assert!(stage.sees(ANN, ListKind::Tools).contains(&"worker_w".to_owned()));
    let present = stage.topic.participants().filter(|one| *one.id == id("worker"));
    assert_eq!(present.map(|one| one.links.to_vec()).collect::<Vec<_>>(), [vec![WORKER]]);
    assert_eq!(delivered(&stage.call(ANN, 1, "worker_w")), ("worker".into(), Some("w".into())));
    let operation = op(1);
    let stolen = Event::Answer { link: WORKER, operation, outcome: Outcome::Ok };
    assert!(stage.step(stolen).is_empty(), "only what serves answers");
    let effects = stage.step(Event::Answer { link: SERVED, operation, outcome: Outcome::Ok });
    assert_eq!(effects.as_slice(), [Effect::Settle { operation, to: ANN, outcome: Outcome::Ok }]);
}

#[test]
fn it_comes_and_goes_and_what_it_serves_stays_listed() {
    let mut stage = stage();
    let effects = stage.step(Event::Leave { link: WORKER });
    assert_eq!(effects.as_slice(), [Effect::Left { participant: id("worker") }]);
    assert!(stage.sees(ANN, ListKind::Tools).contains(&"worker_w".to_owned()));
    assert_eq!(delivered(&stage.call(ANN, 1, "worker_w")).0, "worker");
    stage.lists("worker", View::Shared, Manifest::default());
    assert_eq!(refused(&stage.call(ANN, 2, "worker_w")), Cause::Unknown);
}

#[test]
fn the_place_of_what_is_served_is_taken_once() {
    let mut stage = stage();
    assert_eq!(refused(&stage.upstream(LinkId(9), "worker")), Cause::Taken);
    assert_eq!(refused(&stage.caller(LinkId(9), "one", &[])), Cause::Taken);
}

#[test]
fn one_that_serves_no_more_stays_and_its_calls_end() {
    let mut stage = stage();
    stage.call(ANN, 1, "worker_w");
    let effects = stage.step(Event::Configure { upstreams: &configured() });
    let ended = |effect: &Effect| matches!(effect, Effect::Refuse { cause: Cause::UpstreamDown, .. });
    assert!(effects.iter().any(ended), "{effects:?}");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Left { .. } | Effect::Ended { .. })));
    assert_eq!(stage.topic.links(&id("worker")), [WORKER]);
    assert_eq!(delivered(&stage.call(ANN, 2, "worker_w")).0, "bare", "the name is nobody's any more");
    stage.step(Event::Configure { upstreams: &serving() });
    assert!(stage.upstream(SERVED, "worker").is_empty());
    stage.lists("worker", View::Shared, tools(&["w"]));
    assert_eq!(delivered(&stage.call(ANN, 3, "worker_w")).0, "worker");
}

#[test]
fn a_participant_may_have_the_name_that_a_server_had() {
    let mut stage = Stage::new();
    let mut upstreams = configured();
    upstreams.retain(|upstream| upstream.id != id("one"));
    upstreams.push(UpstreamNames::serving(id("one"), "one"));
    stage.step(Event::Configure { upstreams: &upstreams });
    assert!(!stage.topic.has_participant(&id("one")));
    assert!(stage.upstream(SERVED, "one").is_empty());
    let effects = stage.listener(WORKER, "one", &[], Ear::All);
    assert_eq!(effects.as_slice(), [Effect::Joined { participant: id("one") }]);
}
