//! Servers' tasks: whose each is, who waits for it, and its one end.

mod limits;

use std::sync::LazyLock;

use model::{LinkId, ListenFilter, Narrowing, ParticipantId};
use topic::{
    About, Cause, Event, Interest, Limits, ListScope, NamedTask, NewTask, PARTICIPANT_TASKS_MAX,
    PublicTarget, Subject, TOPIC_TASKS_MAX, TaskOrigin, TaskRight, Verdict,
};

use crate::{
    numbers::{Effects, Numbers},
    shown::{delivered, refused, shown},
    stage::{ANN, BOB, CID, ONE, OWN, Stage, caps, configured, id, op, tools},
};

static ONE_ID: LazyLock<ParticipantId> = LazyLock::new(|| id("one"));
static HOLDERS: LazyLock<Vec<ParticipantId>> = LazyLock::new(|| {
    let guests = (0..PARTICIPANT_TASKS_MAX + 1).map(|number| format!("anonymous-{number}"));
    let many = (0..TOPIC_TASKS_MAX / PARTICIPANT_TASKS_MAX + 2).map(|number| format!("p{number}"));
    let named = ["ann", "bob", "cid"].map(str::to_owned);
    named
        .into_iter()
        .chain(guests)
        .chain(many)
        .map(|name| id(&name))
        .collect()
});

/// The session in which the tasks run.
const SESSION: u64 = 7;
/// Their last moment.
const UNTIL_MS: u64 = 1_000;

/// The right to the tasks of a tool of `one`.
pub(crate) fn right(tool: &'static str) -> TaskRight<'static> {
    TaskRight {
        server: &ONE_ID,
        tool,
        held: false,
    }
}

fn holder(name: &str) -> &'static ParticipantId {
    let known = HOLDERS.iter().find(|id| id.as_str() == name);
    known.expect("a holder of these tests")
}

/// A task of `one_a`, which the gateway calls `t` and its number.
pub(crate) fn task_of(
    task: u128,
    holder: &'static str,
    origin: TaskOrigin,
) -> NewTask<'static, Numbers> {
    NewTask {
        task: op(task),
        origin,
        holder: self::holder(holder),
        right: right("one_a"),
        narrowing: None,
        session: SESSION,
        own: task.to_string().into(),
        public: format!("t{task}").into(),
        link: None,
        over: false,
        until_ms: UNTIL_MS,
        handle: task,
    }
}

const PLAIN: TaskOrigin = TaskOrigin::Call {
    follows: false,
    durable: false,
};
const FOLLOWED: TaskOrigin = TaskOrigin::Call {
    follows: true,
    durable: false,
};
const DURABLE: TaskOrigin = TaskOrigin::Call {
    follows: false,
    durable: true,
};

/// A topic with the gateway's own participant, and bob, who may call `one_a`.
fn stage() -> Stage {
    let mut stage = Stage::with(Limits::default());
    stage.server(OWN, "portmoot");
    stage.lists("one", ListScope::Shared, tools(&["a", "b"]));
    stage.lists("two", ListScope::Shared, tools(&["a"]));
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_*"]);
    stage
}

fn open(stage: &mut Stage, new: NewTask<'_, Numbers>) -> Effects {
    stage.step(Event::Task(Box::new(new)))
}

/// A call of bob's becomes a task, which he has.
fn has(stage: &mut Stage, task: u128) {
    begins(stage, task, PLAIN);
    let settled = shown(&stage.answer(ONE, task, 5));
    assert_eq!(settled, [format!("settle {task} with 5")]);
}

/// A call of bob's becomes a task, of which he has not learned yet.
fn begins(stage: &mut Stage, task: u128, origin: TaskOrigin) {
    assert_eq!(delivered(&stage.call(BOB, task, "one_a")).0, "one");
    let may = stage.step(Event::MayBecomeTask {
        operation: op(task),
    });
    assert_eq!(may.verdict, None);
    assert!(shown(&open(stage, task_of(task, "bob", origin))).is_empty());
}

fn named(public: &'static str) -> Option<PublicTarget<'static>> {
    Some(target(NamedTask {
        public,
        session: SESSION,
        own: public.trim_start_matches('t'),
        right: right("one_a"),
        lost: false,
    }))
}

/// A task as the target of a request. It lives as long as the test.
fn target(named: NamedTask<'static>) -> PublicTarget<'static> {
    PublicTarget::Task(Box::leak(Box::new(named)))
}

/// A token that is good for this alone.
fn token(to: &[&str]) -> Narrowing {
    Narrowing {
        to: caps(to),
        step_up: None,
    }
}

fn listen(stage: &mut Stage, operation: u128, tasks: &[&str], token: Option<&Narrowing>) {
    let filter = ListenFilter {
        tasks: tasks.iter().map(|task| (*task).into()).collect(),
        ..ListenFilter::default()
    };
    let listens = stage.request_with(BOB, operation, "subscriptions/listen", None, |request| {
        request.interest = Interest::Listen(Box::new(filter));
        request.narrowing = token;
    });
    assert_eq!(delivered(&listens).0, "portmoot");
}

/// The effects of a change of state that the server of a task reports.
fn reported(stage: &mut Stage, task: u128) -> Vec<String> {
    shown(&stage.step(Event::Notice {
        server: &ONE_ID,
        subject: Subject::Task(op(task)),
        level: None,
        notice: 3,
    }))
}

fn tick(stage: &mut Stage, now_ms: u64) -> Vec<String> {
    shown(&stage.tick(now_ms))
}

#[test]
fn a_call_that_becomes_a_task_passes_it_to_its_caller_with_the_answer() {
    let mut stage = stage();
    begins(&mut stage, 1, PLAIN);
    assert!(stage.topic.tasks_of(holder("bob"), None).is_empty());
    assert_eq!(stage.topic.task_of(holder("bob"), None, "t1"), None);
    stage.answer(ONE, 1, 5);
    assert_eq!(stage.topic.tasks_of(holder("bob"), None), [1]);
    assert_eq!(stage.topic.task_of(holder("bob"), None, "t1"), Some(1));
    assert_eq!(stage.topic.task_at(&ONE_ID, SESSION, "1"), Some(1));
    assert_eq!(stage.topic.task_at(&ONE_ID, SESSION + 1, "1"), None);
    assert_eq!(stage.topic.task_of(holder("ann"), None, "t1"), None);
}

#[test]
fn a_task_serves_its_holder_and_no_other_participant() {
    let mut stage = stage();
    has(&mut stage, 1);
    assert_eq!(
        delivered(&stage.request(BOB, 2, "tasks/get", named("t1"))).0,
        "one"
    );
    let anns = stage.request(ANN, 3, "tasks/get", named("t1"));
    assert_eq!(refused(&anns), Cause::Unknown);
    stage.caller(CID, "bob", &["mcp/request:tools/call:one_*"]);
    assert_eq!(
        delivered(&stage.request(CID, 4, "tasks/get", named("t1"))).0,
        "one"
    );
}

#[test]
fn a_task_without_its_right_is_unknown_until_the_right_is_back() {
    let mut stage = stage();
    has(&mut stage, 1);
    stage.request(BOB, 2, "tasks/result", named("t1"));
    stage.request(BOB, 3, "tasks/get", named("t1"));
    stage.answer(ONE, 3, 5);
    assert_eq!(
        shown(&stage.regrant("bob", &["mcp/request:tools/call:one_b"])),
        [
            "changed bob",
            "cancel 2",
            "refuse 2: withdrawn",
            "Tools changed for link 2"
        ],
        "what waits for it ends, and it runs on"
    );
    assert!(shown(&stage.answer(ONE, 2, 5)).is_empty());
    let asked = stage.request(BOB, 4, "tasks/get", named("t1"));
    assert_eq!(refused(&asked), Cause::Unknown);
    assert!(stage.topic.tasks_of(holder("bob"), None).is_empty());
    let about = About::Task {
        task: op(1),
        session: Some(BOB),
    };
    let question = shown(&stage.ask("one", 5, about, "roots/list"));
    assert_eq!(question, ["refuse ask 5: moot"]);
    stage.regrant("bob", &["mcp/request:tools/call:one_a"]);
    assert_eq!(
        delivered(&stage.request(BOB, 6, "tasks/get", named("t1"))).0,
        "one"
    );
}

#[test]
fn a_task_is_unknown_to_a_request_whose_token_is_not_good_for_its_tool() {
    let mut stage = stage();
    has(&mut stage, 1);
    let small = token(&["mcp/request:tools/call:one_b"]);
    let good = token(&["mcp/request:tools/call:one_a"]);
    let empty = token(&[]);
    let methods = ["tasks/get", "tasks/result", "tasks/cancel", "tasks/update"];
    for (number, method) in (0..).zip(methods) {
        let mut ask = |operation, narrowing| {
            stage.request_with(BOB, operation, method, named("t1"), |request| {
                request.narrowing = narrowing;
            })
        };
        let operation = 10 * (number + 1);
        assert_eq!(refused(&ask(operation, Some(&small))), Cause::Unknown);
        let with_none = ask(operation + 1, Some(&empty));
        assert_eq!(refused(&with_none), Cause::Unknown);
        assert_eq!(delivered(&ask(operation + 2, Some(&good))).0, "one");
        assert_eq!(delivered(&ask(operation + 3, None)).0, "one");
    }
    let topic = &stage.topic;
    let bob = holder("bob");
    assert!(topic.tasks_of(bob, Some(&small)).is_empty());
    assert_eq!(topic.task_of(bob, Some(&small), "t1"), None);
    assert_eq!(topic.tasks_of(bob, Some(&good)), [1]);
    assert_eq!(topic.task_of(bob, Some(&good), "t1"), Some(1));
}

#[test]
fn a_token_does_not_give_a_task_that_its_participant_may_not_have() {
    let mut stage = stage();
    has(&mut stage, 1);
    stage.regrant("bob", &["mcp/request:tools/call:one_b"]);
    let all = token(&["mcp/*"]);
    let asked = stage.request_with(BOB, 2, "tasks/get", named("t1"), |request| {
        request.narrowing = Some(&all);
    });
    assert_eq!(refused(&asked), Cause::Unknown);
    assert!(stage.topic.tasks_of(holder("bob"), Some(&all)).is_empty());
}

#[test]
fn a_listen_request_gets_notifications_about_tasks_that_its_token_is_good_for() {
    let mut stage = stage();
    let silent = LinkId(9);
    stage.join(silent, "bob", &["mcp/request:tools/call:one_*"], |join| {
        join.joining.notified = false;
    });
    has(&mut stage, 1);
    let small = token(&["mcp/request:tools/call:one_b"]);
    // The link that would be notified without a listen request is left out of this.
    stage.request(silent, 2, "tasks/get", named("t1"));
    listen(&mut stage, 3, &["t1"], Some(&small));
    assert!(reported(&mut stage, 1).is_empty());
    listen(&mut stage, 4, &["t1"], None);
    assert_eq!(
        reported(&mut stage, 1),
        ["notify call 4 of 3 about t1", "notify link 2 of 3 about t1"],
        "the request without the scope gets nothing"
    );
}

#[test]
fn a_task_of_a_held_call_needs_the_right_to_propose_it() {
    let mut stage = stage();
    let new = NewTask {
        right: TaskRight {
            held: true,
            ..right("one_a")
        },
        ..task_of(1, "bob", TaskOrigin::Journal)
    };
    open(&mut stage, new);
    stage.regrant("bob", &["mcp/proposal:tools/call:one_a"]);
    assert_eq!(stage.topic.tasks_of(holder("bob"), None), [1]);
    stage.regrant("bob", &["mcp/proposal:tools/call:one_b"]);
    assert!(stage.topic.tasks_of(holder("bob"), None).is_empty());
}

#[test]
fn a_revoked_participants_tasks_are_cancelled_once() {
    let mut stage = stage();
    (1..=3).for_each(|task| has(&mut stage, task));
    begins(&mut stage, 4, FOLLOWED);
    begins(&mut stage, 5, PLAIN);
    let over = stage.step(Event::TaskChanged {
        task: op(2),
        over: true,
        until_ms: UNTIL_MS,
    });
    assert!(shown(&over).is_empty());
    assert_eq!(
        shown(&stage.revoke("bob")),
        [
            "left bob",
            "cancel task 4",
            "cancel 4",
            "drop 4",
            "cancel task 5",
            "cancel 5",
            "drop 5",
            "closed 2: revoked",
            "cancel task 1",
            "forget task 2",
            "cancel task 3",
        ]
    );
    assert_eq!(stage.topic.tasks_len(), 0);
    assert!(shown(&stage.revoke("bob")).is_empty());
}

#[test]
fn tasks_of_a_name_are_not_its_next_bearers() {
    let mut stage = stage();
    has(&mut stage, 1);
    stage.leave(BOB);
    assert_eq!(
        stage.topic.tasks_len(),
        1,
        "a task outlives its caller's links"
    );
    let disowned = shown(&stage.step(Event::Disown {
        participant: &id("bob"),
    }));
    assert_eq!(disowned, ["cancel task 1"]);
}

#[test]
fn tasks_of_a_guest_end_when_it_leaves() {
    let mut stage = Stage::configured(|config| config.guests = "anonymous-");
    stage.lists("one", ListScope::Shared, tools(&["a"]));
    let grants = ["mcp/request:tools/call:one_a"];
    let others = LinkId(9);
    stage.caller(BOB, "anonymous-0", &grants);
    stage.caller(CID, "anonymous-0", &grants);
    stage.caller(others, "anonymous-1", &grants);
    for (task, holder) in [(1, "anonymous-0"), (2, "anonymous-0"), (3, "anonymous-1")] {
        assert!(shown(&open(&mut stage, task_of(task, holder, TaskOrigin::Named))).is_empty());
    }
    stage.step(Event::TaskChanged {
        task: op(2),
        over: true,
        until_ms: UNTIL_MS,
    });
    assert_eq!(stage.topic.passing_tasks(), [1, 3]);
    assert_eq!(
        shown(&stage.leave(BOB)),
        ["closed 2"],
        "it is still there on another link"
    );
    assert_eq!(
        shown(&stage.leave(CID)),
        [
            "left anonymous-0",
            "closed 3",
            "cancel task 1",
            "forget task 2"
        ]
    );
    assert_eq!(stage.topic.tasks_len(), 1);
    assert_eq!(stage.topic.tasks_of(holder("anonymous-1"), None), [3]);
}

#[test]
fn a_call_that_ends_without_its_answer_cancels_its_task() {
    for origin in [PLAIN, FOLLOWED, DURABLE] {
        let mut stage = stage();
        begins(&mut stage, 1, origin);
        let cancelled = shown(&stage.cancel(BOB, 1));
        assert_eq!(cancelled, ["cancel task 1", "cancel 1", "drop 1"]);
        begins(&mut stage, 2, origin);
        let failed = shown(&stage.fail(ONE, 2));
        assert_eq!(failed, ["cancel task 2", "refuse 2: failed"]);
        begins(&mut stage, 3, origin);
        let left = shown(&stage.leave(BOB));
        assert_eq!(
            left,
            [
                "left bob",
                "cancel task 3",
                "cancel 3",
                "drop 3",
                "closed 2"
            ]
        );
        assert_eq!(stage.topic.tasks_len(), 0);
    }
}

#[test]
fn a_task_of_a_call_that_is_over_is_cancelled_at_once() {
    let mut stage = stage();
    stage.call(BOB, 1, "one_a");
    stage.cancel(BOB, 1);
    let late = shown(&open(&mut stage, task_of(1, "bob", PLAIN)));
    assert_eq!(late, ["cancel task 1"]);
    let ended = NewTask {
        over: true,
        ..task_of(1, "bob", PLAIN)
    };
    assert_eq!(shown(&open(&mut stage, ended)), ["forget task 1"]);
    stage.call(ANN, 2, "two_a");
    let others = shown(&open(&mut stage, task_of(2, "ann", PLAIN)));
    assert_eq!(others, ["cancel task 2"], "another server has the call");
}

#[test]
fn a_followed_task_is_its_calls_alone() {
    let mut stage = stage();
    begins(&mut stage, 1, FOLLOWED);
    assert_eq!(stage.topic.passing_tasks(), [1]);
    assert_eq!(stage.topic.request_awaiting_task(op(1)), Some(op(1)));
    let notice = shown(&stage.step(Event::Notice {
        server: &ONE_ID,
        subject: Subject::Task(op(1)),
        level: None,
        notice: 3,
    }));
    assert!(notice.is_empty());
    let about = About::Task {
        task: op(1),
        session: None,
    };
    let question = shown(&stage.ask("one", 2, about, "roots/list"));
    assert_eq!(question, ["ask 2 of 2 at call 1"]);
    let ended = shown(&stage.answer(ONE, 1, 5));
    assert_eq!(
        ended,
        [
            "cancel ask 2 at call 1",
            "refuse ask 2: moot",
            "forget task 1",
            "settle 1 with 5"
        ]
    );
}

#[test]
fn the_last_request_that_waits_is_asked_and_notified() {
    let mut stage = stage();
    has(&mut stage, 1);
    let asks = |stage: &mut Stage, question| {
        let about = About::Task {
            task: op(1),
            session: Some(BOB),
        };
        shown(&stage.ask("one", question, about, "roots/list"))
    };
    let progress = |stage: &mut Stage| {
        shown(&stage.step(Event::Notice {
            server: &ONE_ID,
            subject: Subject::TaskCall(op(1)),
            level: None,
            notice: 3,
        }))
    };
    assert_eq!(asks(&mut stage, 20), ["refuse ask 20: moot"]);
    stage.step(Event::Attach {
        link: BOB,
        server: &ONE_ID,
    });
    assert_eq!(asks(&mut stage, 21), ["ask 21 of 2 at link 2"]);
    stage.request(BOB, 2, "tasks/result", named("t1"));
    stage.request(BOB, 3, "tasks/result", named("t1"));
    stage.request(BOB, 4, "tasks/get", named("t1"));
    assert_eq!(stage.topic.request_awaiting_task(op(1)), Some(op(3)));
    assert_eq!(asks(&mut stage, 22), ["ask 22 of 2 at call 3"]);
    assert_eq!(progress(&mut stage), ["notify call 3 of 3"]);
    stage.cancel(BOB, 3);
    assert_eq!(asks(&mut stage, 23), ["ask 23 of 2 at call 2"]);
    stage.answer(ONE, 2, 5);
    assert_eq!(stage.topic.request_awaiting_task(op(1)), None);
    assert_eq!(progress(&mut stage), ["notify link 2 of 3 about t1"]);
}

#[test]
fn a_task_is_not_another_servers() {
    let mut stage = stage();
    has(&mut stage, 1);
    stage.request(BOB, 2, "tasks/result", named("t1"));
    let about = About::Task {
        task: op(1),
        session: None,
    };
    let question = shown(&stage.ask("two", 20, about, "roots/list"));
    assert_eq!(question, ["refuse ask 20: moot"]);
    let notices = [Subject::Task(op(1)), Subject::TaskCall(op(1))];
    for subject in notices {
        let notice = shown(&stage.step(Event::Notice {
            server: &id("two"),
            subject,
            level: None,
            notice: 3,
        }));
        assert!(notice.is_empty(), "{notice:?}");
    }
}

#[test]
fn a_task_that_must_be_on_disk_is_its_holders_once_it_is() {
    let mut stage = stage();
    for (task, stored) in [(1, true), (2, false)] {
        begins(&mut stage, task, DURABLE);
        stage.answer(ONE, task, 5);
        assert!(!stage.topic.tasks_of(holder("bob"), None).contains(&task));
        let written = shown(&stage.step(Event::TaskWritten {
            task: op(task),
            stored,
        }));
        let cancelled: &[&str] = if stored { &[] } else { &["cancel task 2"] };
        assert_eq!(written, cancelled);
    }
    assert_eq!(stage.topic.tasks_of(holder("bob"), None), [1]);
    let again = shown(&stage.step(Event::TaskWritten {
        task: op(1),
        stored: false,
    }));
    assert!(again.is_empty(), "it is written once");
}

#[test]
fn notifications_about_a_task_begin_once_its_holder_knows_it() {
    let mut stage = stage();
    // Bob's link, which made the call, is the one that would be notified.
    delivered(&stage.call(BOB, 1, "one_a"));
    let made = NewTask {
        link: Some(BOB),
        ..task_of(1, "bob", DURABLE)
    };
    open(&mut stage, made);
    listen(&mut stage, 2, &["t1"], None);
    assert!(reported(&mut stage, 1).is_empty(), "its call is open");
    stage.answer(ONE, 1, 5);
    listen(&mut stage, 3, &["t1"], None);
    assert!(reported(&mut stage, 1).is_empty(), "it is not on disk");
    stage.step(Event::TaskWritten {
        task: op(1),
        stored: true,
    });
    assert_eq!(
        reported(&mut stage, 1),
        [
            "notify call 2 of 3 about t1",
            "notify call 3 of 3 about t1",
            "notify link 2 of 3 about t1"
        ]
    );
}

#[test]
fn a_task_expires_and_one_of_an_open_call_does_not() {
    let mut stage = stage();
    has(&mut stage, 1);
    has(&mut stage, 2);
    begins(&mut stage, 3, FOLLOWED);
    stage.step(Event::TaskChanged {
        task: op(2),
        over: false,
        until_ms: UNTIL_MS + 500,
    });
    assert_eq!(stage.topic.next_deadline_ms(), Some(UNTIL_MS));
    assert!(tick(&mut stage, UNTIL_MS - 1).is_empty());
    assert_eq!(tick(&mut stage, UNTIL_MS), ["forget task 1"]);
    assert_eq!(tick(&mut stage, UNTIL_MS + 500), ["forget task 2"]);
    let changed = |until_ms| Event::TaskChanged {
        task: op(4),
        over: true,
        until_ms,
    };
    has(&mut stage, 4);
    let at_once = shown(&stage.step(changed(0)));
    assert_eq!(
        at_once,
        ["forget task 4"],
        "its server does not know it any more"
    );
    assert_eq!(stage.topic.next_deadline_ms(), None);
    let asked = stage.request(BOB, 9, "tasks/get", named("t1"));
    assert_eq!(
        delivered(&asked).0,
        "one",
        "the id is good for longer than the topic has the task"
    );
}

#[test]
fn tasks_end_with_the_session_in_which_they_run() {
    let mut stage = stage();
    has(&mut stage, 1);
    has(&mut stage, 2);
    let elsewhere = NewTask {
        session: SESSION + 1,
        ..task_of(3, "bob", TaskOrigin::Journal)
    };
    open(&mut stage, elsewhere);
    let lost = |stage: &mut Stage, server, session| {
        shown(&stage.step(Event::SessionLost {
            server: &id(server),
            session,
        }))
    };
    assert!(lost(&mut stage, "two", SESSION).is_empty());
    assert!(lost(&mut stage, "one", 0).is_empty());
    assert_eq!(
        lost(&mut stage, "one", SESSION),
        ["lose task 1", "lose task 2"]
    );
    assert!(lost(&mut stage, "one", SESSION).is_empty(), "once");
    let asked = stage.request(BOB, 9, "tasks/result", named("t1"));
    assert_eq!(
        delivered(&asked).0,
        "portmoot",
        "its server cannot be asked"
    );
    assert_eq!(stage.topic.request_awaiting_task(op(1)), None);
    assert_eq!(
        shown(&stage.revoke("bob"))[4..],
        ["forget task 1", "forget task 2", "cancel task 3"]
    );
}

#[test]
fn a_task_that_a_request_names_is_taken_up_if_its_holder_may_have_it() {
    let mut stage = stage();
    let named_task = |task| task_of(task, "bob", TaskOrigin::Named);
    assert!(shown(&open(&mut stage, named_task(1))).is_empty());
    assert_eq!(stage.topic.tasks_of(holder("bob"), None), [1]);
    let same_own = NewTask {
        own: "1".into(),
        ..named_task(2)
    };
    assert_eq!(shown(&open(&mut stage, same_own)), ["forget task 2"]);
    let hidden = NewTask {
        right: TaskRight {
            server: &ONE_ID,
            tool: "two_a",
            held: false,
        },
        ..named_task(3)
    };
    assert_eq!(shown(&open(&mut stage, hidden)), ["forget task 3"]);
    let lost = |tool| {
        Some(target(NamedTask {
            public: "t9",
            session: SESSION,
            own: "9",
            right: right(tool),
            lost: true,
        }))
    };
    assert_eq!(
        delivered(&stage.request(BOB, 11, "tasks/get", lost("one_a"))).0,
        "portmoot"
    );
    assert_eq!(
        refused(&stage.request(BOB, 12, "tasks/get", lost("two_a"))),
        Cause::Unknown
    );
}

#[test]
fn a_task_is_taken_up_by_no_request_whose_token_is_not_good_for_its_tool() {
    let mut stage = stage();
    let small = token(&["mcp/request:tools/call:one_b"]);
    let good = token(&["mcp/request:tools/call:one_a"]);
    let named_with = |task, token| NewTask {
        narrowing: Some(token),
        ..task_of(task, "bob", TaskOrigin::Named)
    };
    let given_back = shown(&open(&mut stage, named_with(1, &small)));
    assert_eq!(given_back, ["forget task 1"]);
    assert_eq!(stage.topic.tasks_len(), 0);
    assert!(shown(&open(&mut stage, named_with(2, &good))).is_empty());
    assert_eq!(stage.topic.tasks_of(holder("bob"), None), [2]);
}

#[test]
fn the_link_of_a_task_is_asked_once_its_holder_knows_the_task() {
    let mut stage = stage();
    stage.call(BOB, 1, "one_a");
    let made = NewTask {
        link: Some(BOB),
        ..task_of(1, "bob", DURABLE)
    };
    open(&mut stage, made);
    let asks = |stage: &Stage| stage.topic.link_asking_about_task(op(1));
    assert_eq!(asks(&stage), None, "its call is open");
    stage.answer(ONE, 1, 5);
    assert_eq!(asks(&stage), None, "it is not on disk");
    stage.step(Event::TaskWritten {
        task: op(1),
        stored: true,
    });
    assert_eq!(asks(&stage), Some(BOB.0));
    stage.regrant("bob", &["chat"]);
    assert_eq!(asks(&stage), None);
}

#[test]
fn a_servers_id_that_it_gives_again_names_the_new_task() {
    let mut stage = stage();
    has(&mut stage, 1);
    stage.call(BOB, 2, "one_a");
    let again = NewTask {
        own: "1".into(),
        ..task_of(2, "bob", PLAIN)
    };
    assert_eq!(shown(&open(&mut stage, again)), ["forget task 1"]);
    assert_eq!(stage.topic.task_at(&ONE_ID, SESSION, "1"), Some(2));
    stage.answer(ONE, 2, 5);
    assert_eq!(stage.topic.tasks_of(holder("bob"), None), [2]);
}
