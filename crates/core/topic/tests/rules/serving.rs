//! Participants that serve: they join and leave as themselves, and their server side has a seat of
//! its own.

use model::{DeliveryMode, LinkId, ListKind};
use topic::{Cause, Configure, Event, ListScope, Present, Seating, ServerLists, UpstreamNames};

use crate::{
    envelope::Envelope,
    shown::{delivered, refused, shown},
    stage::{ANN, BOB, Stage, configured, id, op, terms, tools},
};

const WORKER: LinkId = LinkId(7);
const SERVED: LinkId = LinkId(8);

pub(crate) fn serving() -> Vec<UpstreamNames> {
    let mut all = configured();
    all.push(UpstreamNames::serving(id("worker"), "worker"));
    all
}

/// The usual stage, with `worker` which serves the tool `w`.
fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.configure(&serving());
    assert!(
        shown(&stage.server(SERVED, "worker")).is_empty(),
        "its server side is hidden"
    );
    let effects = stage.listener(WORKER, "worker", &["mcp/response:*"], DeliveryMode::All);
    assert_eq!(
        shown(&effects),
        [
            "enter 7 worker All among ann,bare,one,two,worker",
            "joined worker"
        ]
    );
    stage.lists("worker", ListScope::Shared, tools(&["w"]));
    stage
}

#[test]
fn a_tool_that_a_participant_serves_is_called_under_its_name() {
    let mut stage = stage();
    assert!(
        stage
            .sees(ANN, ListKind::Tools)
            .contains(&"worker_w".to_owned())
    );
    let worker = |present: &Present| present.person.id == id("worker");
    let present: Vec<Present> = stage
        .topic
        .participants()
        .into_iter()
        .filter(worker)
        .collect();
    assert_eq!(
        present
            .iter()
            .map(|one| (one.serves, one.links))
            .collect::<Vec<_>>(),
        [(false, 1)]
    );
    assert_eq!(
        delivered(&stage.call(ANN, 1, "worker_w")),
        ("worker".into(), Some("w".into()))
    );
    assert!(
        shown(&stage.answer(WORKER, 1, 5)).is_empty(),
        "only the server side answers"
    );
    assert_eq!(shown(&stage.answer(SERVED, 1, 5)), ["settle 1 with 5"]);
}

#[test]
fn its_tools_stay_listed_while_it_is_away() {
    let mut stage = stage();
    assert_eq!(
        shown(&stage.leave(WORKER)),
        ["exit 7", "left worker", "closed 7"]
    );
    assert!(
        stage
            .sees(ANN, ListKind::Tools)
            .contains(&"worker_w".to_owned())
    );
    assert_eq!(delivered(&stage.call(ANN, 1, "worker_w")).0, "worker");
    stage.lists("worker", ListScope::Shared, ServerLists::default());
    assert_eq!(refused(&stage.call(ANN, 2, "worker_w")), Cause::Unknown);
}

#[test]
fn the_seat_of_a_server_side_is_taken_once() {
    let mut stage = stage();
    // A second event names the same server with another handle.
    let capabilities = std::sync::Arc::new(model::Capabilities::upstream());
    let server = &id("worker");
    let handle = "again".to_owned();
    assert!(
        shown(&stage.step(Event::Configure(Configure {
            seats: vec![Seating {
                link: LinkId(9),
                server,
                handle,
                capabilities
            }],
            ..Configure::servers(&serving())
        })))
        .is_empty()
    );
    assert_eq!(delivered(&stage.call(ANN, 1, "worker_w")).0, "again");
    assert_eq!(
        shown(&stage.answer(SERVED, 1, 5)),
        ["settle 1 with 5"],
        "it keeps its link"
    );
    assert_eq!(refused(&stage.caller(LinkId(9), "one", &[])), Cause::Taken);
}

#[test]
fn a_participant_that_serves_no_more_stays_and_its_calls_end() {
    let mut stage = stage();
    stage.call(ANN, 1, "worker_w");
    let effects = stage.configure(&configured());
    let expected = [
        "cancel 1",
        "refuse 1: upstream_down",
        "Tools changed for link 1",
    ];
    assert_eq!(shown(&effects), expected);
    assert_eq!(stage.links("worker"), [WORKER]);
    assert_eq!(
        delivered(&stage.call(ANN, 2, "worker_w")).0,
        "bare",
        "the name is no server's any more"
    );
    stage.configure(&serving());
    assert!(shown(&stage.server(SERVED, "worker")).is_empty());
    stage.lists("worker", ListScope::Shared, tools(&["w"]));
    assert_eq!(delivered(&stage.call(ANN, 3, "worker_w")).0, "worker");
}

#[test]
fn a_participant_may_have_the_name_that_a_server_had() {
    let mut stage = Stage::new();
    let mut upstreams = configured();
    upstreams.retain(|upstream| upstream.id != id("one"));
    upstreams.push(UpstreamNames::serving(id("one"), "one"));
    stage.configure(&upstreams);
    assert!(!stage.topic.has_participant(&id("one")));
    assert!(shown(&stage.server(SERVED, "one")).is_empty());
    let effects = stage.listener(WORKER, "one", &[], DeliveryMode::All);
    assert_eq!(shown(&effects)[1], "joined one");
}

#[test]
fn a_server_that_takes_a_participants_name_ends_its_links() {
    let mut stage = stage();
    stage.call(ANN, 1, "worker_w");
    let mut upstreams = configured();
    upstreams.push(UpstreamNames::new(id("worker"), "worker"));
    stage.configure(&upstreams);
    assert_eq!(stage.links("worker"), [WORKER]);
    let effects = stage.server(SERVED, "worker");
    let expected = [
        "exit 7: revoked",
        "left worker",
        "joined worker",
        "closed 7: revoked",
    ];
    assert_eq!(shown(&effects), expected);
    stage.lists("worker", ListScope::Shared, tools(&["w"]));
    assert_eq!(delivered(&stage.call(ANN, 2, "worker_w")).0, "worker");
    assert_eq!(
        stage.topic.server(&id("worker")).map(|server| server.link),
        Some(SERVED)
    );
    // It leaves once, as one server.
    let effects = stage.configure(&configured());
    assert_eq!(shown(&effects)[0], "left worker");
    assert!(!stage.topic.has_participant(&id("worker")));
    assert_eq!(
        shown(&stage.caller(WORKER, "worker", &[])),
        ["joined worker"]
    );
}

#[test]
fn a_participant_that_serves_leaves_as_its_name_becomes_a_servers() {
    let mut stage = stage();
    let mut upstreams = configured();
    upstreams.push(UpstreamNames::new(id("worker"), "worker"));
    let worker = id("worker");
    let seat = Seating {
        link: LinkId(9),
        server: &worker,
        handle: "new".to_owned(),
        capabilities: std::sync::Arc::new(model::Capabilities::upstream()),
    };
    let effects = stage.step(Event::Configure(Configure {
        seats: vec![seat],
        ..Configure::servers(&upstreams)
    }));
    let expected = [
        "exit 7: revoked",
        "left worker",
        "joined worker",
        "closed 7: revoked",
        "Tools changed for link 1",
    ];
    assert_eq!(shown(&effects), expected);
    let server = stage.topic.server(&worker).map(|server| server.link);
    assert_eq!(server, Some(LinkId(9)));
}

#[test]
fn a_held_call_is_answered_by_the_server_side_alone() {
    let mut stage = stage();
    stage.promoting(BOB, "bob", &["mcp/proposal:*"]);
    stage.call(BOB, 11, "worker_w");
    let by = id("bob");
    let to = [id("worker")];
    let terms = terms(&by, &to, "p1");
    let held = op(11);
    stage.step(Event::Propose {
        proposal: op(1),
        terms: Box::new(terms),
        content: 1,
        held,
        park_ms: 50,
    });
    stage.stored(1);
    stage.send(Envelope::request(ANN, "f1", &["worker"], &[21]).about("p1"));
    let answer = |id| Envelope::answer(WORKER, id, &["ann", "bob"], "f1");
    assert_eq!(shown(&stage.send(answer("a1"))), ["publish a1"]);
    let expected = [
        "approved p1 at ",
        "ruled 9",
        "drop 21",
        "deliver 11 to worker as w for p1",
    ];
    let effects = shown(&stage.stored(1));
    assert_eq!(effects[0], "publish f1 except for worker");
    assert_eq!(effects[1..], expected);
    assert_eq!(shown(&stage.send(answer("a2"))), ["publish a2"]);
    assert_eq!(
        shown(&stage.answer(SERVED, 11, 6))[0],
        "store p1 ended completed with 6"
    );
}
