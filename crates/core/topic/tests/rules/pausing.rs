//! Calls whose callers are asked by answers for now, and come back with the answers.

use model::LinkId;
use topic::{
    About, Cause, Effect, Event, GATHER_MS, Limits, ListScope, MISSED_BYTES_MAX,
    MISSED_NOTICES_MAX, OperationRef, PAUSE_MS, PublicTarget, Subject,
};

use crate::{
    shown::{refused, shown},
    stage::{ANN, BOB, CID, ONE, Stage, id, op, tools},
};

const ROOTS: &str = "roots/list";

fn with(limits: Limits) -> Stage {
    let mut stage = Stage::with(Limits {
        gather_ms: 0,
        ..limits
    });
    for (link, name) in [(BOB, "bob"), (CID, "cid")] {
        stage.join(link, name, &["mcp/*"], |join| join.joining.pauses = true);
    }
    stage.lists("one", ListScope::Shared, tools(&["a"]));
    stage.call(BOB, 1, "one_a");
    stage
}

/// Bob's call 1 of `one_a` is paused with question 2.
fn paused() -> Stage {
    let mut stage = with(Limits::default());
    assert_eq!(asked(&mut stage, 2), ["pause 1 in round 1 with 2"]);
    stage
}

/// The effects of a question about call 1 when no other is gathered with it.
fn asked(stage: &mut Stage, question: u128) -> Vec<String> {
    assert!(shown(&stage.ask("one", question, About::Call(op(1)), ROOTS)).is_empty());
    shown(&stage.tick(0))
}

#[test]
fn questions_that_come_at_once_are_asked_in_one_round() {
    let mut stage = Stage::with(Limits::default());
    stage.join(BOB, "bob", &["mcp/*"], |join| join.joining.pauses = true);
    stage.lists("one", ListScope::Shared, tools(&["a"]));
    stage.call(BOB, 1, "one_a");
    for (at_ms, question) in [(0, 2), (1, 3), (GATHER_MS - 1, 4)] {
        stage.now_ms = at_ms;
        assert!(shown(&stage.ask("one", question, About::Call(op(1)), ROOTS)).is_empty());
    }
    assert!(shown(&stage.tick(GATHER_MS - 1)).is_empty());
    assert_eq!(
        shown(&stage.tick(GATHER_MS)),
        ["pause 1 in round 1 with 2,3,4"]
    );
}

#[test]
fn a_call_whose_questions_are_withdrawn_is_not_paused() {
    for ends in [true, false] {
        let mut stage = with(Limits::default());
        stage.ask("one", 2, About::Call(op(1)), ROOTS);
        let expected = if ends { "settle 1 with 9" } else { "" };
        let effects = if ends {
            stage.answer(ONE, 1, 9)
        } else {
            stage.cancel(ONE, 2)
        };
        assert_eq!(shown(&effects).last().map_or("", String::as_str), expected);
        assert!(shown(&stage.tick(0)).is_empty());
        assert_eq!(stage.topic.next_deadline_ms(), None);
    }
}

#[test]
fn a_caller_comes_back_with_the_answers() {
    let mut stage = paused();
    let effects = stage.come_back(BOB, (1, 11), 1, &[(2, 5), (77, 6)]);
    assert_eq!(
        shown(&effects),
        ["return to 1 by 11", "settle ask 2 with 5"]
    );
    assert!(
        matches!(effects.verdict, Some(topic::Verdict::Admitted { to: Some(to), .. }) if to.as_str() == "one")
    );
    assert_eq!(stage.topic.next_deadline_ms(), None);
    assert!(stage.topic.is_awaited(BOB) && stage.topic.calls_len() == 1);
    // Once more, and then the end.
    assert_eq!(asked(&mut stage, 3), ["pause 1 in round 2 with 3"]);
    stage.come_back(BOB, (1, 12), 2, &[(3, 5)]);
    assert_eq!(shown(&stage.answer(ONE, 1, 9)), ["settle 1 with 9"]);
    assert_eq!(stage.topic.operations_len(), 0);
}

#[test]
fn what_has_no_caller_that_comes_back_is_asked_at_once() {
    let mut stage = with(Limits::default());
    stage.request_with(
        BOB,
        20,
        "tools/call",
        Some(PublicTarget::Tool("one_a")),
        |request| request.returns = false,
    );
    assert_eq!(
        shown(&stage.ask("one", 21, About::Call(op(20)), ROOTS)),
        ["ask 21 of 2 at call 20"]
    );
    assert_eq!(shown(&stage.fail(BOB, 21)), ["refuse ask 21: failed"]);
    assert_eq!(shown(&stage.cancel(BOB, 20)), ["cancel 20", "drop 20"]);
}

#[test]
fn a_round_is_good_for_one_return_of_its_participant() {
    let mut stage = paused();
    for (link, operation, round) in [
        (CID, 1, 1),
        (ANN, 1, 1),
        (BOB, 1, 0),
        (BOB, 1, 2),
        (BOB, 2, 1),
        (BOB, 7, 1),
    ] {
        let effects = stage.come_back(link, (operation, 11), round, &[(2, 5)]);
        assert_eq!(
            refused(&effects),
            Cause::Unknown,
            "{link} {operation} {round}"
        );
    }
    stage.come_back(BOB, (1, 11), 1, &[(2, 5)]);
    assert_eq!(
        refused(&stage.come_back(BOB, (1, 12), 1, &[(2, 5)])),
        Cause::Unknown,
        "it was used"
    );
    stage.ask("one", 3, About::Call(op(1)), ROOTS);
    assert_eq!(
        refused(&stage.come_back(BOB, (1, 12), 1, &[(3, 5)])),
        Cause::Unknown,
        "an older round"
    );
    assert_eq!(
        refused(&stage.come_back(LinkId(77), (1, 12), 2, &[])),
        Cause::Moot
    );
}

#[test]
fn what_is_not_answered_is_asked_again() {
    let mut stage = paused();
    // Further questions wait for the caller.
    assert!(shown(&stage.ask("one", 3, About::Call(op(1)), ROOTS)).is_empty());
    let expected = [
        "return to 1 by 11",
        "settle ask 2 with 5",
        "pause 1 in round 2 with 3",
    ];
    assert_eq!(
        shown(&stage.come_back(BOB, (1, 11), 1, &[(2, 5)])),
        expected
    );
    let expected = ["return to 1 by 12", "pause 1 in round 3 with 3"];
    assert_eq!(
        shown(&stage.come_back(BOB, (1, 12), 2, &[(2, 5)])),
        expected
    );
    // A question that its server withdraws needs no answer.
    assert!(shown(&stage.cancel(ONE, 3)).is_empty());
    assert_eq!(
        shown(&stage.come_back(BOB, (1, 13), 3, &[(3, 5)])),
        ["return to 1 by 13"]
    );
    assert_eq!(shown(&stage.answer(ONE, 1, 9)), ["settle 1 with 9"]);
}

#[test]
fn an_end_waits_for_the_caller() {
    let mut stage = paused();
    assert_eq!(shown(&stage.answer(ONE, 1, 9)), ["refuse ask 2: moot"]);
    assert!(
        shown(&stage.answer(ONE, 1, 8)).is_empty(),
        "a second answer is ignored"
    );
    assert_eq!(stage.topic.operations_len(), 1);
    let effects = stage.come_back(BOB, (1, 11), 1, &[(2, 5)]);
    assert_eq!(shown(&effects), ["return to 1 by 11", "settle 1 with 9"]);
    assert_eq!(stage.topic.operations_len(), 0);
    let mut stage = paused();
    stage.fail(ONE, 1);
    let effects = stage.come_back(BOB, (1, 11), 1, &[(2, 5)]);
    assert_eq!(shown(&effects), ["return to 1 by 11", "refuse 1: failed"]);
}

#[test]
fn a_paused_call_ends_when_its_caller_does_not_come_back() {
    let mut stage = paused();
    assert!(stage.topic.is_busy(BOB), "its link stays");
    assert!(
        !stage.topic.is_awaited(BOB) && stage.topic.calls_len() == 0,
        "no caller waits for the answer"
    );
    assert!(shown(&stage.tick(PAUSE_MS - 1)).is_empty());
    let expected = ["refuse ask 2: moot", "cancel 1", "drop 1"];
    assert_eq!(shown(&stage.tick(PAUSE_MS)), expected);
    assert_eq!(
        refused(&stage.come_back(BOB, (1, 11), 1, &[(2, 5)])),
        Cause::Unknown
    );
    let mut stage = paused();
    stage.answer(ONE, 1, 9);
    assert_eq!(shown(&stage.tick(PAUSE_MS)), ["drop 1"]);
    assert_eq!(
        (stage.topic.operations_len(), stage.topic.next_deadline_ms()),
        (0, None)
    );
}

#[test]
fn a_paused_call_ends_with_its_link_and_with_its_permission() {
    let mut stage = paused();
    let expected = [
        "left bob",
        "refuse ask 2: moot",
        "cancel 1",
        "drop 1",
        "closed 2",
    ];
    assert_eq!(shown(&stage.leave(BOB)), expected);
    let mut stage = paused();
    let effects = stage.regrant("bob", &["mcp/request:tools/call:one_b"]);
    let expected = [
        "changed bob",
        "refuse ask 2: moot",
        "cancel 1",
        "refuse 1: withdrawn",
        "Tools changed for link 2",
    ];
    assert_eq!(shown(&effects), expected);
    // Its first request has its answer, so nothing is left to cancel by.
    let mut stage = paused();
    assert!(shown(&stage.cancel(BOB, 1)).is_empty());
}

#[test]
fn only_the_request_that_waits_cancels_its_call() {
    let mut stage = paused();
    stage.come_back(BOB, (1, 11), 1, &[(2, 5)]);
    // The connection of the first request ends late.
    assert!(shown(&stage.cancel(BOB, 1)).is_empty());
    let which = |round| OperationRef::Request {
        operation: op(1),
        round,
    };
    let mut cancel = |round| {
        shown(&stage.step(Event::Cancel {
            link: BOB,
            which: which(round),
        }))
    };
    assert!(cancel(2).is_empty());
    assert_eq!(cancel(1), ["cancel 1", "drop 1"]);
}

#[test]
fn another_link_of_the_participant_takes_the_call() {
    let mut stage = paused();
    let other = LinkId(4);
    stage.join(other, "bob", &["mcp/*"], |join| join.joining.pauses = true);
    stage.ask("one", 3, About::Call(op(1)), ROOTS);
    let expected = [
        "return to 1 by 11",
        "settle ask 2 with 5",
        "pause 1 in round 2 with 3",
    ];
    assert_eq!(
        shown(&stage.come_back(other, (1, 11), 1, &[(2, 5)])),
        expected
    );
    assert!(!stage.topic.is_busy(BOB));
    assert_eq!(stage.topic.questions(other), [3]);
    assert!(
        shown(&stage.leave(BOB))
            .iter()
            .all(|effect| !effect.contains("cancel"))
    );
}

#[test]
fn rounds_are_limited() {
    let mut stage = with(Limits {
        rounds_max: 2,
        ..Limits::default()
    });
    for round in 1..=2 {
        asked(&mut stage, 2);
        stage.come_back(BOB, (1, 11), round, &[(2, 5)]);
    }
    assert_eq!(
        refused(&stage.ask("one", 2, About::Call(op(1)), ROOTS)),
        Cause::Limit
    );
    assert_eq!(
        shown(&stage.answer(ONE, 1, 9)),
        ["settle 1 with 9"],
        "the call goes on"
    );
}

#[test]
fn returns_without_answers_are_limited() {
    let mut stage = with(Limits {
        rounds_max: 2,
        ..Limits::default()
    });
    for question in [2, 3] {
        asked(&mut stage, question);
    }
    let expected = [
        "return to 1 by 11",
        "settle ask 2 with 5",
        "pause 1 in round 2 with 3",
    ];
    assert_eq!(
        shown(&stage.come_back(BOB, (1, 11), 1, &[(2, 5)])),
        expected
    );
    let expected = [
        "return to 1 by 12",
        "refuse ask 3: moot",
        "cancel 1",
        "refuse 1: limit",
    ];
    let effects = stage.come_back(BOB, (1, 12), 2, &[]);
    assert_eq!(shown(&effects), expected);
    // The words name the limit, and what to do.
    let words = effects.all.iter().find_map(|effect| match effect {
        Effect::Refuse { refusal, .. } => Some(refusal.to_string()),
        _ => None,
    });
    let words = words.unwrap();
    assert!(
        words.contains("2 rounds of questions") && words.contains("make the call again"),
        "{words}"
    );
    assert_eq!(
        (stage.topic.operations_len(), stage.topic.next_deadline_ms()),
        (0, None)
    );
}

#[test]
fn only_three_methods_pause() {
    let mut stage = with(Limits::default());
    stage.request(
        BOB,
        5,
        "completion/complete",
        Some(PublicTarget::Tool("one_a")),
    );
    assert_eq!(
        shown(&stage.ask("one", 6, About::Call(op(5)), ROOTS)),
        ["ask 6 of 2 at call 5"]
    );
    stage.call(ANN, 7, "one_a");
    assert_eq!(
        shown(&stage.ask("one", 8, About::Call(op(7)), ROOTS)),
        ["ask 8 of 1 at call 7"]
    );
}

/// A notification about call 1.
fn notified(stage: &mut Stage, notice: u8) -> Vec<String> {
    let server = &id("one");
    let subject = Subject::Call(op(1));
    shown(&stage.step(Event::Notice {
        server,
        subject,
        level: None,
        notice,
    }))
}

#[test]
fn what_is_notified_while_the_caller_is_away_reaches_it_when_it_comes_back() {
    let mut stage = paused();
    assert!(notified(&mut stage, 3).is_empty() && notified(&mut stage, 4).is_empty());
    let expected = [
        "return to 1 by 11",
        "notify call 1 of 3",
        "notify call 1 of 4",
        "settle ask 2 with 5",
    ];
    assert_eq!(
        shown(&stage.come_back(BOB, (1, 11), 1, &[(2, 5)])),
        expected
    );
    assert_eq!(notified(&mut stage, 5), ["notify call 1 of 5"]);
    // Before the answer that waited, too, and once.
    asked(&mut stage, 3);
    notified(&mut stage, 6);
    stage.answer(ONE, 1, 9);
    assert!(
        notified(&mut stage, 7).is_empty(),
        "the call is over at its server"
    );
    let expected = ["return to 1 by 12", "notify call 1 of 6", "settle 1 with 9"];
    assert_eq!(shown(&stage.come_back(BOB, (1, 12), 2, &[])), expected);
}

#[test]
fn of_too_many_missed_notifications_the_latest_are_kept() {
    let kept = |notices: &[u8]| {
        let mut stage = paused();
        notices
            .iter()
            .for_each(|notice| drop(notified(&mut stage, *notice)));
        let all = shown(&stage.come_back(BOB, (1, 11), 1, &[(2, 5)]));
        all.into_iter()
            .filter(|effect| effect.starts_with("notify"))
            .collect::<Vec<_>>()
    };
    let small = [0; MISSED_NOTICES_MAX];
    assert_eq!(kept(&small).len(), MISSED_NOTICES_MAX);
    assert_eq!(
        kept(&[&[1][..], &small].concat()),
        vec!["notify call 1 of 0"; MISSED_NOTICES_MAX]
    );
    // The rest of the bytes, in KiB.
    let most = (MISSED_BYTES_MAX >> 10) as u8;
    assert_eq!(kept(&[1, most - 1]).len(), 2);
    assert_eq!(kept(&[1, most]), [format!("notify call 1 of {most}")]);
    assert!(kept(&[1, most + 1]).is_empty());
}
