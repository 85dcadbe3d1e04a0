//! Proposals: two steps for each change, one end, and limits.

use model::{DeliveryMode, LinkId, ProposalState};
use topic::{Cause, Decision, Limits};

use crate::{
    envelope::Envelope,
    shown::{delivered, refused, shown},
    stage::{ANN, APPROVE, BOB, CID, EXPIRES_MS, ONE, OWN, Stage, configured, id, op},
};

pub(crate) const REJECT: Decision<'static> = Decision::Reject {
    reason: Some("too broad"),
};
pub(crate) const WITHDRAW: Decision<'static> = Decision::Withdraw { reason: None };

/// Bob may only propose, ann may use all of MCP, cid has no capabilities.
pub(crate) fn stage() -> Stage {
    stage_with(Limits::default())
}

pub(crate) fn stage_with(limits: Limits) -> Stage {
    let mut stage = Stage::with(limits);
    stage.server(OWN, "portmoot");
    stage.listener(BOB, "bob", &["mcp/proposal:*"], DeliveryMode::All);
    stage.caller(CID, "cid", &["chat"]);
    stage
}

/// Bob's proposal 1 of a call of `a` at `one` is pending.
pub(crate) fn pending() -> Stage {
    let mut stage = stage();
    stage.proposes(BOB, "bob", 1);
    stage.stored(1);
    stage
}

#[test]
fn no_participant_learns_of_a_change_before_it_is_on_disk() {
    let mut stage = stage();
    assert_eq!(shown(&stage.proposes(BOB, "bob", 1)), ["store p1 opened"]);
    assert!(
        shown(&stage.proposes(BOB, "bob", 1)).is_empty(),
        "an id counts once"
    );
    assert!(stage.topic.proposal(op(1)).is_none());
    assert_eq!(shown(&stage.stored(1)), ["publish p1", "proposed p1"]);
    assert!(shown(&stage.stored(1)).is_empty());
    assert_eq!(
        shown(&stage.decide(1, "ann", APPROVE)),
        ["store p1 decided running by ann"]
    );
    let state = |stage: &Stage| stage.topic.proposal(op(1)).map(|one| one.state);
    assert_eq!(state(&stage), Some(ProposalState::Pending));
    assert_eq!(refused(&stage.decide(1, "ann", APPROVE)), Cause::Decided);
    assert_eq!(shown(&stage.stored(1)), ["approved p1 at one", "ruled 9"]);
    assert_eq!(state(&stage), Some(ProposalState::Running));
    assert_eq!(refused(&stage.decide(1, "ann", APPROVE)), Cause::Decided);
    assert_eq!(
        shown(&stage.execute(1, 5, "one")),
        ["deliver 5 to one for p1"]
    );
    let failed = "the server answered with an error";
    let expected = [
        format!("store p1 ended failed with 6: {failed}"),
        "settle 5 with 6 for p1".into(),
    ];
    assert_eq!(shown(&stage.error(ONE, 5, 6)), expected);
    assert_eq!(state(&stage), Some(ProposalState::Running));
    assert!(
        shown(&stage.error(ONE, 5, 6)).is_empty(),
        "the first end counts"
    );
    assert_eq!(
        shown(&stage.stored(1)),
        [format!("concluded p1 failed: {failed}")]
    );
    assert!(shown(&stage.stored(1)).is_empty());
    assert_eq!(refused(&stage.decide(1, "ann", APPROVE)), Cause::Decided);
    assert_eq!(
        (state(&stage), stage.topic.proposals_len()),
        (Some(ProposalState::Failed), 0)
    );
}

#[test]
fn a_view_of_a_proposal_has_the_shells_handles() {
    let mut stage = pending();
    let view = stage.topic.proposal(op(1)).unwrap();
    assert_eq!(
        (view.id, view.by, &*view.envelope, view.content),
        (op(1), id("bob"), "p1", 1)
    );
    assert_eq!(
        (view.held, view.deciders, view.updated_ms),
        (false, vec![id("ann")], 0)
    );
    stage.now_ms = 7;
    stage.approved(1);
    stage.execute(1, 5, "one");
    stage.answer(ONE, 5, 6);
    stage.stored(1);
    let view = stage.topic.proposal(op(1)).unwrap();
    assert_eq!(
        (view.state, view.decided_by, view.ruling),
        (ProposalState::Completed, Some(id("ann")), Some(9))
    );
    assert_eq!(
        (view.answer, view.reason, view.updated_ms),
        (Some(6), None, 7)
    );
    assert!(view.deciders.is_empty());
}

#[test]
fn a_change_that_cannot_be_written_is_not_made() {
    let mut stage = stage();
    stage.proposes(BOB, "bob", 1);
    assert_eq!(
        shown(&stage.not_stored(1)),
        ["not proposed p1 of bob: log_unavailable"]
    );
    assert_eq!(stage.topic.proposals_len(), 0);
    assert_eq!(
        shown(&stage.proposes(BOB, "bob", 1)),
        ["rejected p1 of bob: conflict"],
        "it was rejected"
    );
    assert_eq!(
        shown(&stage.proposes(BOB, "bob", 2)),
        ["store p2 opened"],
        "it can be proposed again"
    );
    for decision in [APPROVE, REJECT] {
        let mut stage = pending();
        stage.decide(1, "ann", decision);
        assert_eq!(
            shown(&stage.not_stored(1)),
            ["refuse decision 9 of ann on p1: log_unavailable"]
        );
        assert_eq!(
            stage.decide(1, "ann", REJECT).all.len(),
            1,
            "it can be decided again"
        );
        assert_eq!(
            shown(&stage.stored(1)),
            ["concluded p1 rejected: too broad", "ruled 9"]
        );
    }
    let mut stage = pending();
    stage.tick(EXPIRES_MS);
    assert_eq!(
        shown(&stage.not_stored(1)),
        ["concluded p1 expired"],
        "an end holds"
    );
}

#[test]
fn the_ways_to_end() {
    let mut stage = pending();
    let expected = ["store p1 decided rejected by ann: too broad"];
    assert_eq!(shown(&stage.decide(1, "ann", REJECT)), expected);
    assert_eq!(
        shown(&stage.stored(1)),
        ["concluded p1 rejected: too broad", "ruled 9"]
    );
    let mut stage = pending();
    assert_eq!(
        shown(&stage.decide(1, "bob", WITHDRAW)),
        ["store p1 decided withdrawn by bob"]
    );
    assert_eq!(
        shown(&stage.stored(1)),
        ["concluded p1 withdrawn", "ruled 9"]
    );
    let mut stage = pending();
    assert_eq!(stage.topic.next_deadline_ms(), Some(EXPIRES_MS));
    assert!(shown(&stage.tick(EXPIRES_MS - 1)).is_empty());
    stage.now_ms = EXPIRES_MS;
    assert_eq!(
        refused(&stage.decide(1, "ann", APPROVE)),
        Cause::Expired,
        "before its tick, too"
    );
    assert_eq!(shown(&stage.tick(EXPIRES_MS)), ["store p1 ended expired"]);
    assert_eq!(stage.topic.next_deadline_ms(), None);
    assert_eq!(shown(&stage.stored(1)), ["concluded p1 expired"]);
}

#[test]
fn an_approval_in_time_is_enough() {
    let mut stage = pending();
    stage.decide(1, "ann", APPROVE);
    assert!(shown(&stage.tick(5_000)).is_empty());
    assert_eq!(stage.stored(1).all.len(), 2);
    assert!(shown(&stage.tick(9_000)).is_empty());
    assert_eq!(delivered(&stage.execute(1, 5, "one")).0, "one");
}

#[test]
fn an_approval_is_carried_out_once_and_only_as_proposed() {
    let mut stage = pending();
    assert_eq!(
        refused(&stage.execute(1, 5, "one")),
        Cause::Moot,
        "not approved"
    );
    stage.approved(1);
    assert_eq!(refused(&stage.execute(1, 5, "two")), Cause::Moot);
    assert_eq!(
        refused(&stage.execute(2, 5, "one")),
        Cause::Moot,
        "no such proposal"
    );
    delivered(&stage.execute(1, 5, "one"));
    assert_eq!(
        refused(&stage.execute(1, 6, "one")),
        Cause::Moot,
        "single use"
    );
    let expected = ["store p1 ended completed with 5", "settle 5 with 5 for p1"];
    assert_eq!(shown(&stage.answer(ONE, 5, 5)), expected);
    assert_eq!(refused(&stage.execute(1, 7, "one")), Cause::Moot);
    assert_eq!(shown(&stage.stored(1)), ["concluded p1 completed"]);
    assert_eq!(refused(&stage.execute(1, 8, "one")), Cause::Moot);
}

#[test]
fn an_approval_that_cannot_be_carried_out_has_failed() {
    let down = "the server behind this is not running";
    let mut stage = pending();
    stage.approved(1);
    let mut without = configured();
    without.retain(|server| server.id != id("one"));
    stage.configure(&without);
    stage.configure(&configured());
    let expected = [
        "refuse 5: upstream_down".to_owned(),
        format!("store p1 ended failed: {down}"),
    ];
    assert_eq!(shown(&stage.execute(1, 5, "one")), expected);
    // A server gives no answer.
    let mut stage = pending();
    stage.approved(1);
    stage.execute(1, 5, "one");
    let expected = [
        "store p1 ended failed: the server is lost",
        "refuse 5: failed",
    ];
    assert_eq!(shown(&stage.fail(ONE, 5)), expected);
}

#[test]
fn a_participant_that_leaves_may_come_back_for_its_proposals() {
    let mut stage = pending();
    assert_eq!(shown(&stage.leave(BOB)), ["exit 2", "left bob", "closed 2"]);
    assert_eq!(stage.topic.proposals_len(), 1);
    assert_eq!(stage.topic.proposers().collect::<Vec<_>>(), [&id("bob")]);
    stage.listener(BOB, "bob", &["mcp/proposal:*"], DeliveryMode::All);
    assert_eq!(
        stage
            .topic
            .own_proposal(op(1), &id("bob"), None)
            .map(|own| own.id),
        Some(op(1))
    );
    assert!(stage.topic.own_proposal(op(1), &id("ann"), None).is_none());
}

#[test]
fn all_guests_have_the_proposals_of_one_participant() {
    let mut stage = Stage::configured(|config| {
        config.settings.limits = Limits {
            proposals_per_participant_max: 2,
            ..Limits::default()
        };
        config.guests = "guest-";
    });
    let [one, two] = [LinkId(11), LinkId(12)];
    stage.caller(one, "guest-1", &["mcp/*"]);
    stage.caller(two, "guest-2", &["mcp/*"]);
    stage.proposes(one, "guest-1", 1);
    stage.leave(one);
    stage.proposes(two, "guest-2", 2);
    let refused = shown(&stage.proposes(two, "guest-2", 3));
    assert!(
        refused.contains(&"not proposed p3 of guest-2: limit".to_owned()),
        "{refused:?}"
    );
    assert_eq!(shown(&stage.proposes(ANN, "ann", 4)), ["store p4 opened"]);
}

#[test]
fn open_proposals_are_limited() {
    let limits = Limits {
        proposals_max: 3,
        proposals_per_participant_max: 2,
        ..Limits::default()
    };
    let mut stage = stage_with(limits);
    stage.proposes(BOB, "bob", 1);
    stage.proposes(BOB, "bob", 2);
    let full = |proposal, by: &str| [format!("not proposed p{proposal} of {by}: limit")];
    assert_eq!(shown(&stage.proposes(BOB, "bob", 3)), full("3", "bob"));
    stage.proposes(ANN, "ann", 4);
    assert_eq!(shown(&stage.proposes(ANN, "ann", 5)), full("5", "ann"));
    stage.not_stored(2);
    assert_eq!(shown(&stage.proposes(BOB, "bob", 6)), ["store p6 opened"]);
    assert_eq!(stage.topic.proposals_len(), 3);
}

#[test]
fn the_bytes_of_open_proposals_are_limited() {
    // Each has ten.
    let limits = Limits {
        proposal_bytes_max: 35,
        proposal_bytes_per_participant_max: 20,
        ..Limits::default()
    };
    let mut stage = stage_with(limits);
    stage.proposes(BOB, "bob", 1);
    stage.proposes(BOB, "bob", 2);
    let refused = |stage: &mut Stage, link, by: &str, number| {
        let seen = shown(&stage.proposes(link, by, number));
        assert_eq!(seen, [format!("not proposed p{number} of {by}: limit")]);
    };
    refused(&mut stage, BOB, "bob", 3);
    assert_eq!(shown(&stage.proposes(ANN, "ann", 4)), ["store p4 opened"]);
    refused(&mut stage, ANN, "ann", 5);
    for number in [1, 2, 4] {
        stage.stored(number);
    }
    // What is over, or was never opened, counts no more.
    stage.decide(1, "ann", REJECT);
    stage.stored(1);
    assert_eq!(shown(&stage.proposes(ANN, "ann", 6)), ["store p6 opened"]);
    stage.not_stored(6);
    assert_eq!(shown(&stage.proposes(BOB, "bob", 7)), ["store p7 opened"]);
    refused(&mut stage, BOB, "bob", 8);
}

#[test]
fn a_proposal_to_the_room_waits_for_its_answer_and_no_longer() {
    let mut stage = stage();
    stage.proposes_to(BOB, "bob", 1, &["cid"]);
    stage.stored(1);
    stage.decide(1, "ann", APPROVE);
    stage.now_ms = 500;
    assert_eq!(shown(&stage.stored(1)), ["approved p1 at ", "ruled 9"]);
    let until_ms = 500 + topic::ROOM_ANSWER_MS_MAX;
    assert_eq!(stage.topic.next_deadline_ms(), Some(until_ms));
    assert!(shown(&stage.tick(until_ms - 1)).is_empty());
    assert_eq!(
        shown(&stage.tick(until_ms)),
        ["store p1 ended failed: there was no answer"]
    );
    assert_eq!(
        shown(&stage.stored(1)),
        ["concluded p1 failed: there was no answer"]
    );
}

/// Bob's proposal 1 is for these participants, and ann approves it.
fn approved_for(stage: &mut Stage, to: &[&str]) -> Vec<String> {
    stage.proposes_to(BOB, "bob", 1, to);
    stage.stored(1);
    stage.decide(1, "ann", APPROVE);
    shown(&stage.stored(1))
}

#[test]
fn a_proposal_for_participants_that_are_not_there_fails_at_once() {
    let why = "dan is not in the topic: it was not carried out";
    let mut stage = stage();
    let expected = [
        "approved p1 at ".into(),
        "ruled 9".into(),
        format!("store p1 ended failed: {why}"),
    ];
    assert_eq!(approved_for(&mut stage, &["dan"]), expected);
    assert_eq!(
        shown(&stage.stored(1)),
        [format!("concluded p1 failed: {why}")]
    );
    let view = stage.topic.proposal(op(1)).unwrap();
    assert!(view.in_room && view.absent.is_empty(), "{view:?}");
    // One of those that it names is enough.
    let mut stage = self::stage();
    assert_eq!(
        approved_for(&mut stage, &["dan", "cid"]),
        ["approved p1 at ", "ruled 9"]
    );
    // While it is pending, its proposer learns who is missing; a server is there while it has its
    // seat.
    let mut stage = self::stage();
    stage.proposes_to(BOB, "bob", 1, &["dan", "cid", "one"]);
    stage.stored(1);
    assert_eq!(stage.topic.proposal(op(1)).unwrap().absent, [id("dan")]);
}

#[test]
fn a_proposal_fails_when_the_last_participant_that_may_answer_leaves() {
    let gone = |names: &str| {
        let why = "not in the topic any more and has not answered: it may have carried it out";
        format!("store p1 ended failed: {names} is {why}")
    };
    let mut stage = stage();
    stage.caller(LinkId(4), "dan", &["chat"]);
    approved_for(&mut stage, &["dan", "cid"]);
    assert_eq!(shown(&stage.leave(LinkId(4))), ["left dan", "closed 4"]);
    let expected = [
        "left cid".into(),
        "closed 3".into(),
        gone("none of dan, cid"),
    ];
    assert_eq!(shown(&stage.leave(CID)), expected);
    // One of several links is no leave, nor is a listener that another one replaces.
    let mut stage = self::stage();
    stage.listener(LinkId(4), "cid", &["chat"], DeliveryMode::All);
    approved_for(&mut stage, &["cid"]);
    assert_eq!(shown(&stage.leave(CID)), ["closed 3"]);
    let replaced = stage.listener(LinkId(5), "cid", &["chat"], DeliveryMode::All);
    assert!(
        !shown(&replaced).iter().any(|line| line.contains("p1")),
        "{:?}",
        shown(&replaced)
    );
    let revoked = shown(&stage.revoke("cid"));
    assert_eq!(revoked.last(), Some(&gone("cid")), "{revoked:?}");
    // One that left before the approval was on disk has not got the request.
    let mut stage = self::stage();
    stage.proposes_to(BOB, "bob", 1, &["cid"]);
    stage.stored(1);
    stage.send(Envelope::request(ANN, "f1", &["cid"], &[]).about("p1"));
    stage.leave(CID);
    let effects = shown(&stage.stored(1));
    assert_eq!(
        effects.last().unwrap(),
        "store p1 ended failed: cid is not in the topic: it was not carried out"
    );
}

#[test]
fn an_open_proposal_depends_on_the_participants_that_its_fulfilment_names() {
    let mut stage = stage();
    stage.proposes_to(BOB, "bob", 1, &[]);
    stage.stored(1);
    // The proposer is named so that it gets the request; it does not carry it out.
    stage.send(Envelope::request(ANN, "f1", &["cid", "bob"], &[]).about("p1"));
    assert_eq!(
        shown(&stage.stored(1)),
        ["publish f1", "approved p1 at ", "ruled 9"]
    );
    let left = shown(&stage.leave(CID));
    assert!(
        left.last()
            .unwrap()
            .starts_with("store p1 ended failed: cid is not in the topic any more")
    );
    // A decision without an envelope names none: any participant may answer.
    let mut stage = self::stage();
    assert_eq!(
        approved_for(&mut stage, &[]),
        ["approved p1 at ", "ruled 9"]
    );
    assert_eq!(shown(&stage.leave(CID)), ["left cid", "closed 3"]);
}
