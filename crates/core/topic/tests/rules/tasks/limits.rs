//! Numbers of tasks: those of a participant, of guests, of a topic.

use super::*;

fn may_become(stage: &mut Stage, link: LinkId, call: u128) -> bool {
    stage.call(link, call, "one_a");
    let may = stage.step(Event::MayBecomeTask {
        operation: op(call),
    });
    may.verdict != Some(Verdict::Refused(Cause::Limit))
}

#[test]
fn a_participant_has_a_limited_number_of_tasks_and_calls_that_may_become_one() {
    let mut stage = stage();
    let max = PARTICIPANT_TASKS_MAX as u128;
    (0..max - 1).for_each(|task| has(&mut stage, task));
    assert!(may_become(&mut stage, BOB, max));
    assert!(!may_become(&mut stage, BOB, max + 1));
    assert!(may_become(&mut stage, ANN, max + 2));
    stage.cancel(BOB, max);
    assert!(
        may_become(&mut stage, BOB, max + 3),
        "the call gave its place back"
    );
    for task in [5, 6] {
        stage.step(Event::TaskChanged {
            task: op(task),
            over: true,
            until_ms: UNTIL_MS,
        });
    }
    stage.call(BOB, max + 4, "one_a");
    let may = stage.step(Event::MayBecomeTask {
        operation: op(max + 4),
    });
    assert_eq!(shown(&may), ["forget task 5"], "the oldest that is over");
    assert_eq!(may.verdict, None);
    let again = stage.step(Event::MayBecomeTask {
        operation: op(max + 4),
    });
    assert!(shown(&again).is_empty(), "one place for each call");
}

#[test]
fn tasks_from_before_a_restart_make_way_until_their_holder_asks_about_them() {
    let mut stage = stage();
    let max = PARTICIPANT_TASKS_MAX as u128;
    let mut restore = |task| {
        let restored = task_of(task, "bob", TaskOrigin::Journal);
        shown(&open(&mut stage, restored))
    };
    (0..max).for_each(|task| assert!(restore(task).is_empty()));
    assert_eq!(restore(max), ["forget task 0"], "the newest are kept");
    assert_eq!(restore(max + 1), ["forget task 1"]);
    let theirs = stage.topic.tasks_of(holder("bob"), None);
    assert_eq!(theirs, (2..max + 2).collect::<Vec<_>>());
    let mut calls = 1_000..;
    let mut forgotten = |stage: &mut Stage| {
        let call = calls.next().unwrap();
        stage.call(BOB, call, "one_a");
        let may = stage.step(Event::MayBecomeTask {
            operation: op(call),
        });
        (may.verdict.is_none(), shown(&may))
    };
    // What its holder asks about or listens to stays.
    stage.request(BOB, 900, "tasks/get", named("t2"));
    listen(&mut stage, 901, &["t3"], None);
    assert_eq!(forgotten(&mut stage), (true, vec!["forget task 4".into()]));
    let over = Event::TaskChanged {
        task: op(9),
        over: true,
        until_ms: UNTIL_MS,
    };
    stage.step(over);
    assert_eq!(
        forgotten(&mut stage),
        (true, vec!["forget task 9".into()]),
        "what is over goes first"
    );
    assert_eq!(forgotten(&mut stage), (true, vec!["forget task 5".into()]));
    for _ in 0..max - 5 {
        assert!(forgotten(&mut stage).0);
    }
    assert_eq!(
        forgotten(&mut stage),
        (false, Vec::new()),
        "the two that are left are wanted"
    );
    // Its id alone finds one that made way.
    let again = stage.request(BOB, 902, "tasks/get", named("t5"));
    assert_eq!(delivered(&again).0, "one");
}

#[test]
fn tasks_of_a_server_that_is_taken_out_make_way() {
    let mut stage = stage();
    let max = PARTICIPANT_TASKS_MAX as u128;
    for task in 0..max {
        let of_any_session = NewTask {
            session: 0,
            ..task_of(task, "bob", TaskOrigin::Named)
        };
        assert!(shown(&open(&mut stage, of_any_session)).is_empty());
    }
    stage.regrant("bob", &["mcp/request:tools/call:*"]);
    let becomes = |stage: &mut Stage, call| {
        delivered(&stage.call(BOB, call, "two_a"));
        let may = stage.step(Event::MayBecomeTask {
            operation: op(call),
        });
        (may.verdict.is_none(), shown(&may))
    };
    assert_eq!(becomes(&mut stage, 1_000), (false, Vec::new()));
    let mut without = configured();
    without.retain(|server| server.id != *ONE_ID);
    stage.configure(&without);
    assert_eq!(
        becomes(&mut stage, 1_001),
        (true, vec!["forget task 0".into()])
    );
    // It comes back, and what its holder asks about stays.
    stage.configure(&configured());
    stage.server(ONE, "one");
    let asked = target(NamedTask {
        public: "t1",
        session: 0,
        own: "1",
        right: right("one_a"),
        lost: false,
    });
    assert_eq!(
        delivered(&stage.request(BOB, 1_002, "tasks/get", Some(asked))).0,
        "one"
    );
    assert_eq!(
        becomes(&mut stage, 1_003),
        (true, vec!["forget task 2".into()])
    );
}

#[test]
fn all_guests_share_the_places_of_one_participant() {
    let mut stage = Stage::configured(|config| config.guests = "anonymous");
    for number in 0..PARTICIPANT_TASKS_MAX as u128 {
        let guest = &HOLDERS[3 + number as usize];
        let new = NewTask {
            holder: guest,
            ..task_of(number, "bob", TaskOrigin::Journal)
        };
        assert!(shown(&open(&mut stage, new)).is_empty());
    }
    let late = NewTask {
        holder: &HOLDERS[3 + PARTICIPANT_TASKS_MAX],
        ..task_of(999, "bob", TaskOrigin::Journal)
    };
    let oldest = shown(&open(&mut stage, late));
    assert_eq!(oldest, ["forget task 0"], "another guest's makes way");
    let bobs = open(&mut stage, task_of(1_000, "bob", TaskOrigin::Journal));
    assert!(shown(&bobs).is_empty());
}

#[test]
fn a_topic_has_a_limited_number_of_tasks() {
    let mut stage = stage();
    let many = &HOLDERS[3 + PARTICIPANT_TASKS_MAX + 1..];
    for number in 0..TOPIC_TASKS_MAX {
        let new = NewTask {
            holder: &many[number / PARTICIPANT_TASKS_MAX],
            ..task_of(number as u128, "bob", TaskOrigin::Journal)
        };
        assert!(shown(&open(&mut stage, new)).is_empty());
    }
    let late = task_of(99_999, "bob", TaskOrigin::Journal);
    assert_eq!(shown(&open(&mut stage, late)), ["forget task 99999"]);
    assert!(!may_become(&mut stage, BOB, 99_998));
}

#[test]
fn only_the_caller_of_a_call_at_a_server_keeps_a_place() {
    let mut stage = stage();
    stage.step(Event::MayBecomeTask { operation: op(77) });
    begins(&mut stage, 1, PLAIN);
    stage.answer(ONE, 1, 5);
    let over = stage.step(Event::MayBecomeTask { operation: op(1) });
    assert!(shown(&over).is_empty() && over.verdict.is_none());
}
