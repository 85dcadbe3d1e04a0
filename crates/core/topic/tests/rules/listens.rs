//! Listen requests: judged filters, and the end of the last one.

use model::{LinkId, ListKind, ListenFilter};
use topic::{
    Event, Interest, LISTENS_MAX, ListScope, NamedTask, NewTask, PublicTarget, ServerLists,
    Subject, TaskOrigin, TaskRight,
};

use crate::{
    shown::{delivered, refused, shown},
    stage::{ANN, BOB, OWN, Stage, configured, id, items, op},
    tasks::{right, task_of},
};

const URI: &str = "demo://a";

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.server(OWN, "portmoot");
    stage.lists(
        "one",
        ListScope::Shared,
        ServerLists {
            resources: items(&[URI, "demo://b"]),
            ..ServerLists::default()
        },
    );
    stage.join(BOB, "bob", &["mcp/request:resources/*:demo://a"], |join| {
        join.joining.notified = false
    });
    stage
}

fn listen(stage: &mut Stage, link: LinkId, operation: u128, resources: &[&str], tasks: &[&str]) {
    let filter = ListenFilter {
        lists: vec![ListKind::Tools],
        resources: resources.iter().map(|uri| (*uri).into()).collect(),
        tasks: tasks.iter().map(|task| (*task).into()).collect(),
    };
    let effects = stage.request_with(link, operation, "subscriptions/listen", None, |request| {
        request.interest = Interest::Listen(Box::new(filter));
    });
    assert_eq!(delivered(&effects).0, "portmoot");
}

fn updated(stage: &mut Stage) -> Vec<String> {
    let subject = Subject::Resource {
        own: URI,
        session: None,
    };
    shown(&stage.step(Event::Notice {
        server: &id("one"),
        subject,
        level: None,
        notice: 3,
    }))
}

#[test]
fn a_filter_is_judged_and_hides_the_rest() {
    let mut stage = stage();
    listen(
        &mut stage,
        BOB,
        1,
        &[URI, "demo://b", "demo://none"],
        &["t"],
    );
    let filter = stage.topic.listening(op(1)).unwrap();
    assert_eq!(
        (&filter.resources[..], &filter.tasks[..]),
        (&[URI.into()][..], &["t".into()][..])
    );
    assert_eq!(filter.lists, [ListKind::Tools]);
    assert!(stage.topic.listening(op(2)).is_none());
    assert!(
        stage.topic.follows(BOB, &id("one"), URI)
            && !stage.topic.follows(BOB, &id("one"), "demo://b")
    );
    assert!(
        stage.topic.watches(BOB, "t")
            && !stage.topic.watches(ANN, "t")
            && !stage.topic.watches(BOB, "u")
    );
    assert_eq!(updated(&mut stage), ["notify call 1 of 3 about demo://a"]);
}

#[test]
fn the_end_of_the_last_listen_request_ends_it_at_the_server() {
    let mut stage = stage();
    listen(&mut stage, BOB, 1, &[URI, URI], &["t", "u"]);
    listen(&mut stage, BOB, 2, &[URI], &["t"]);
    listen(&mut stage, ANN, 3, &[URI], &["t"]);
    let expected = [
        "notify call 1 of 3",
        "notify call 2 of 3",
        "notify call 3 of 3",
    ];
    assert_eq!(
        updated(&mut stage),
        expected.map(|text| format!("{text} about demo://a"))
    );
    assert_eq!(
        shown(&stage.cancel(BOB, 1)),
        ["unwatch 2 u", "cancel 1", "drop 1"]
    );
    let expected = [
        "unsubscribe 2 from demo://a at one",
        "unwatch 2 t",
        "settle 2 with 5",
    ];
    assert_eq!(shown(&stage.answer(OWN, 2, 5)), expected);
    assert_eq!(updated(&mut stage), ["notify call 3 of 3 about demo://a"]);
    assert!(!stage.topic.follows(BOB, &id("one"), URI) && !stage.topic.watches(BOB, "t"));
    // The server is not notified about a link that is gone.
    assert_eq!(
        shown(&stage.leave(ANN)),
        ["left ann", "cancel 3", "drop 3", "closed 1"]
    );
    assert!(updated(&mut stage).is_empty());
}

#[test]
fn a_server_that_is_gone_gets_no_notification() {
    let mut stage = stage();
    listen(&mut stage, ANN, 1, &[URI], &[]);
    let mut without = configured();
    without.retain(|server| server.id != id("one"));
    stage.configure(&without);
    assert!(updated(&mut stage).is_empty());
    assert_eq!(shown(&stage.cancel(ANN, 1)), ["cancel 1", "drop 1"]);
}

#[test]
fn a_task_notifies_listen_requests_and_the_link_that_asked_last() {
    let mut stage = stage();
    let grants = [
        "mcp/request:tools/call:one_a",
        "mcp/proposal:tools/call:one_b",
    ];
    stage.regrant("bob", &grants);
    for (task, tool, held) in [
        (11, "one_a", false),
        (12, "one_b", false),
        (13, "one_b", true),
    ] {
        let restored = NewTask {
            right: TaskRight {
                held,
                ..right(tool)
            },
            ..task_of(task, "bob", TaskOrigin::Journal)
        };
        stage.step(Event::Task(Box::new(restored)));
    }
    let named = ["t11", "t12", "t13"];
    listen(&mut stage, BOB, 1, &[], &named);
    listen(&mut stage, ANN, 2, &[], &named);
    let state = |stage: &mut Stage, task| {
        shown(&stage.step(Event::Notice {
            server: &id("one"),
            subject: Subject::Task(op(task)),
            level: None,
            notice: 3,
        }))
    };
    let call = |task: u128| vec![format!("notify call 1 of 3 about t{task}")];
    assert_eq!(
        state(&mut stage, 11),
        call(11),
        "bob's link takes no such notifications"
    );
    stage.caller(LinkId(4), "bob", &grants);
    let asked = NamedTask {
        public: "t11",
        session: 7,
        own: "11",
        right: right("one_a"),
        lost: false,
    };
    stage.request(LinkId(4), 3, "tasks/get", Some(PublicTarget::Task(&asked)));
    assert_eq!(
        state(&mut stage, 11),
        [
            "notify call 1 of 3 about t11",
            "notify link 4 of 3 about t11"
        ]
    );
    assert!(
        state(&mut stage, 12).is_empty(),
        "the tool may only be proposed"
    );
    assert_eq!(state(&mut stage, 13), call(13));
    stage.cancel(BOB, 1);
    stage.leave(BOB);
    stage.leave(LinkId(4));
    assert!(state(&mut stage, 11).is_empty());
}

#[test]
fn listen_requests_are_limited() {
    let mut stage = stage();
    for number in 0..LISTENS_MAX as u128 {
        listen(&mut stage, ANN, number, &[], &[]);
    }
    let effects = stage.request_with(ANN, 999, "subscriptions/listen", None, |request| {
        request.interest = Interest::Listen(Box::default());
    });
    assert_eq!(refused(&effects), topic::Cause::Limit);
    stage.cancel(ANN, 0);
    listen(&mut stage, ANN, 999, &[], &[]);
}
