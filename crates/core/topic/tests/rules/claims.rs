//! Claims: participants that look at a proposal, for others to see.

use std::sync::Arc;

use model::{Capabilities, LinkId};
use topic::{
    Brake, CLAIM_MS, CLAIMS_MAX, CLAIMS_PER_PARTICIPANT_MAX, Cause, Claiming, Event, Verdict,
};

use crate::{
    proposals::{REJECT, stage},
    shown::shown,
    stage::{ANN, APPROVE, Stage, id, op, terms},
};

const DEE: LinkId = LinkId(41);

/// Bob's proposals of calls of `a` at `one`, so many, which expire late; ann and dee may decide.
fn proposed(count: u128) -> Stage {
    let mut stage = stage();
    stage.caller(DEE, "dee", &["mcp/approve:tools/call:one_a"]);
    for number in 1..=count {
        let terms = topic::Terms {
            expires_ms: 100 * CLAIM_MS,
            ..terms(&id("bob"), &[id("one")], &format!("p{number}"))
        };
        stage.restore_with(number, terms);
    }
    stage
}

/// The effects of a claim, or the cause for which it is refused.
fn claims(
    stage: &mut Stage,
    proposal: u128,
    by: &str,
    outside: Option<&Arc<Capabilities>>,
) -> Result<Vec<String>, Cause> {
    let effects = stage.step(Event::Claim(Claiming {
        proposal: op(proposal),
        by: &id(by),
        outside,
        narrowing: None,
        at_ms: stage.now_ms,
    }));
    match effects.verdict {
        Some(Verdict::Refused(cause)) => {
            assert!(effects.refusal.is_some() && effects.all.is_empty());
            Err(cause)
        }
        _ => Ok(shown(&effects)),
    }
}

fn looks(stage: &Stage) -> Vec<(String, u64)> {
    let view = stage.topic.proposal(op(1)).unwrap();
    let all = view.claims.iter();
    all.map(|one| (one.by.to_string(), one.since_ms)).collect()
}

#[test]
fn others_see_who_looks_and_since_when_until_it_ends_by_itself() {
    let mut stage = proposed(1);
    stage.now_ms = 5;
    assert_eq!(
        claims(&mut stage, 1, "ann", None).unwrap(),
        ["looks at p1: ann"]
    );
    stage.now_ms = 7;
    assert_eq!(
        claims(&mut stage, 1, "dee", None).unwrap(),
        ["looks at p1: ann,dee"]
    );
    stage.now_ms = 100;
    assert!(claims(&mut stage, 1, "ann", None).unwrap().is_empty());
    assert_eq!(looks(&stage), [("ann".into(), 5), ("dee".into(), 7)]);
    assert_eq!(stage.topic.next_deadline_ms(), Some(7 + CLAIM_MS));
    assert!(shown(&stage.tick(6 + CLAIM_MS)).is_empty());
    assert_eq!(shown(&stage.tick(7 + CLAIM_MS)), ["looks at p1: ann"]);
    assert_eq!(shown(&stage.tick(100 + CLAIM_MS)), ["looks at p1: none"]);
    assert!(looks(&stage).is_empty());
}

#[test]
fn only_participants_that_may_decide_claim_and_no_claim_stops_another() {
    let mut stage = proposed(1);
    assert_eq!(claims(&mut stage, 1, "bob", None), Err(Cause::Own));
    assert_eq!(claims(&mut stage, 1, "cid", None), Err(Cause::NotAdmitted));
    assert_eq!(claims(&mut stage, 2, "ann", None), Err(Cause::Unknown));
    claims(&mut stage, 1, "ann", None).unwrap();
    assert_eq!(
        shown(&stage.decide(1, "dee", APPROVE)),
        ["store p1 decided running by dee"]
    );
    let effects = shown(&stage.stored(1));
    assert_eq!(effects, ["approved p1 at one", "ruled 9"]);
    assert!(looks(&stage).is_empty());
    assert_eq!(claims(&mut stage, 1, "ann", None), Err(Cause::Decided));
    let mut stage = proposed(1);
    claims(&mut stage, 1, "ann", None).unwrap();
    stage.decide(1, "dee", REJECT);
    stage.stored(1);
    assert!(looks(&stage).is_empty());
    assert_eq!(claims(&mut stage, 1, "dee", None), Err(Cause::Decided));
}

/// A step after which a participant holds its claim no more.
type EndOfClaim = fn(&mut Stage) -> Vec<String>;

#[test]
fn a_claim_ends_when_its_holder_leaves_or_may_not_decide_any_more() {
    let full = Arc::new(Capabilities::full());
    let ends: [(&str, EndOfClaim); 5] = [
        ("leaves", |stage| shown(&stage.leave(ANN))),
        ("is revoked", |stage| shown(&stage.revoke("ann"))),
        ("has other rights", |stage| {
            shown(&stage.regrant("ann", &["mcp/request:tools/call:one_b"]))
        }),
        ("is paused", |stage| {
            shown(&stage.step(Event::Brake {
                participant: &id("ann"),
                brake: Some(Brake {
                    by: id("dee"),
                    reason: None,
                    since_ms: 0,
                }),
            }))
        }),
        ("has another bearer", |stage| {
            shown(&stage.step(Event::Disown {
                participant: &id("ann"),
            }))
        }),
    ];
    for (how, end) in ends {
        let mut stage = proposed(1);
        claims(&mut stage, 1, "ann", None).unwrap();
        claims(&mut stage, 1, "dee", None).unwrap();
        let effects = end(&mut stage);
        let last = effects.last().map(String::as_str);
        assert_eq!(last, Some("looks at p1: dee"), "{how}: {effects:?}");
    }
    // One that claims from outside is in no topic to leave; its rights count all the same.
    let mut stage = proposed(1);
    claims(&mut stage, 1, "eve", Some(&full)).unwrap();
    stage.caller(LinkId(50), "eve", &["mcp/*"]);
    assert!(
        shown(&stage.leave(LinkId(50)))
            .iter()
            .all(|one| !one.contains("looks"))
    );
    assert_eq!(looks(&stage).len(), 1);
    assert_eq!(
        shown(&stage.regrant("eve", &["chat"])),
        ["looks at p1: none"]
    );
}

#[test]
fn a_participant_has_so_many_claims_and_leaves_room_for_others() {
    let count = CLAIMS_PER_PARTICIPANT_MAX as u128 + 1;
    let mut stage = proposed(count);
    for number in 1..count {
        claims(&mut stage, number, "ann", None).unwrap();
    }
    assert_eq!(claims(&mut stage, count, "ann", None), Err(Cause::Limit));
    assert!(claims(&mut stage, 1, "ann", None).is_ok(), "it goes on");
    assert!(claims(&mut stage, count, "dee", None).is_ok());
    stage.decide(1, "dee", REJECT);
    stage.stored(1);
    assert!(claims(&mut stage, count, "ann", None).is_ok());
    // Of all together as many as the topic has.
    let full = Arc::new(Capabilities::full());
    let mut stage = proposed(1);
    for number in 0..CLAIMS_MAX {
        claims(&mut stage, 1, &format!("one-{number}"), Some(&full)).unwrap();
    }
    let one_more = claims(&mut stage, 1, "ann", None);
    assert_eq!(one_more, Err(Cause::Limit));
}

#[test]
fn all_guests_have_the_claims_of_one() {
    let full = Arc::new(Capabilities::full());
    let mut stage = Stage::configured(|config| config.guests = "anonymous-");
    let terms = terms(&id("bob"), &[id("one")], "p1");
    stage.restore_with(1, terms);
    for number in 0..CLAIMS_PER_PARTICIPANT_MAX {
        claims(&mut stage, 1, &format!("anonymous-{number}"), Some(&full)).unwrap();
    }
    let one_more = claims(&mut stage, 1, "anonymous-x", Some(&full));
    assert_eq!(one_more, Err(Cause::Limit));
    assert!(claims(&mut stage, 1, "ann", None).is_ok());
}
