//! Proposals: two steps for everything, who may decide, and one end.

use model::{Capabilities, Digest, LinkId, OperationId, Outcome, ProposalState};
use topic::{Cause, Decision, Ear, Effect, Effects, Event, Limits, Record, Terms};

use crate::stage::{ANN, APPROVE, ONE, SHOWN, Stage, caps, delivered, id, op, refused};

const BOB: LinkId = LinkId(2);
const REJECT: Decision<'static> = Decision::Reject { reason: Some("too broad") };
const WITHDRAW: Decision<'static> = Decision::Withdraw { reason: None };

/// Bob may only propose. Ann may all, cid nothing.
fn stage() -> Stage {
    stage_with(Limits::default())
}

fn stage_with(limits: Limits) -> Stage {
    let mut stage = Stage::with(limits);
    stage.listener(BOB, "bob", &["mcp/proposal:*"], Ear::All);
    stage.caller(LinkId(3), "cid", &["chat"]);
    stage
}

fn pending() -> Stage {
    let mut stage = stage();
    stage.propose(1, "bob", None);
    stage.stored(1);
    stage
}

fn store(what: Record) -> Effect {
    Effect::Store { proposal: op(1), what }
}

fn decided(by: &str, state: ProposalState, reason: Option<&str>) -> Effect {
    store(Record::Decided { by: id(by), state, reason: reason.map(Into::into) })
}

fn ended(state: ProposalState, reason: Option<&str>) -> Effect {
    store(Record::Ended { state, reason: reason.map(Into::into) })
}

fn told(state: ProposalState, reason: Option<&str>) -> Effect {
    Effect::Told { proposal: op(1), by: id("bob"), state, reason: reason.map(Into::into) }
}

fn execute(stage: &mut Stage, operation: u128, upstream: &str, context: &str) -> Effects {
    let (link, operation, upstream, method) = (ANN, op(operation), &id(upstream), "tools/call");
    let (context, proposal) = (Some(context), Some(op(1)));
    stage.step(Event::Execute { link, operation, upstream, method, context, proposal })
}

#[test]
fn nobody_is_told_before_it_is_written_down() {
    let mut stage = stage();
    assert_eq!(stage.propose(1, "bob", None).as_slice(), [store(Record::Opened)]);
    assert!(stage.propose(1, "bob", None).is_empty(), "an id counts once");
    assert!(stage.topic.proposal(op(1)).is_none());
    assert_eq!(refused(&stage.decide(1, "ann", APPROVE)), Cause::Unknown);
    assert_eq!(stage.stored(1).as_slice(), [Effect::Proposed { proposal: op(1) }]);
    assert!(stage.stored(1).is_empty());
    let running = ProposalState::Running;
    assert_eq!(stage.decide(1, "ann", APPROVE).as_slice(), [decided("ann", running, None)]);
    assert_eq!(stage.topic.proposal(op(1)).map(|one| one.state), Some(ProposalState::Pending));
    assert_eq!(refused(&stage.decide(1, "ann", APPROVE)), Cause::Decided);
    assert_eq!(stage.stored(1).as_slice(), [Effect::Approved { proposal: op(1), by: id("ann") }]);
    assert_eq!(stage.topic.proposal(op(1)).map(|one| one.state), Some(running));
    assert_eq!(refused(&stage.decide(1, "ann", APPROVE)), Cause::Decided);
    let outcome = |state| Event::Outcome { proposal: op(1), state, reason: Some("it broke") };
    assert!(stage.step(outcome(ProposalState::Expired)).is_empty());
    let (failed, why) = (ProposalState::Failed, Some("it broke"));
    assert_eq!(stage.step(outcome(failed)).as_slice(), [ended(failed, why)]);
    assert!(stage.step(outcome(ProposalState::Completed)).is_empty(), "the first end counts");
    assert_eq!(stage.stored(1).as_slice(), [told(failed, why)]);
    assert!(stage.stored(1).is_empty());
    assert_eq!(refused(&stage.decide(1, "ann", APPROVE)), Cause::Unknown);
    assert_eq!(stage.topic.proposals_len(), 0);
}

#[test]
fn what_cannot_be_written_down_is_not_done() {
    let mut stage = stage();
    stage.propose(1, "bob", None);
    assert_eq!(refused(&stage.not_stored(1)), Cause::LogUnavailable);
    assert_eq!(stage.topic.proposals_len(), 0);
    let mut stage = pending();
    stage.decide(1, "ann", APPROVE);
    assert_eq!(refused(&stage.not_stored(1)), Cause::LogUnavailable);
    assert_eq!(stage.decide(1, "ann", REJECT).len(), 1, "it can be decided again");
    stage.stored(1);
    let mut stage = pending();
    stage.topic.step(1_000, Event::Tick);
    assert_eq!(stage.not_stored(1).as_slice(), [told(ProposalState::Expired, None)], "an end holds");
}

#[test]
fn who_may_decide() {
    let check = |by: &str, decision, expected: Option<Cause>| {
        let effects = pending().decide(1, by, decision);
        match expected {
            None => assert!(matches!(effects[0], Effect::Store { .. }), "{by} {decision:?}"),
            Some(cause) => assert_eq!(refused(&effects), cause, "{by} {decision:?}"),
        }
    };
    let other = Decision::Approve { digest: Digest([8; 32]) };
    check("ann", APPROVE, None);
    check("ann", REJECT, None);
    check("ann", other, Some(Cause::Differs));
    check("ann", WITHDRAW, Some(Cause::NotAdmitted));
    check("bob", APPROVE, Some(Cause::Own));
    check("bob", REJECT, Some(Cause::Own));
    check("bob", WITHDRAW, None);
    check("cid", APPROVE, Some(Cause::NotAdmitted));
    check("cid", REJECT, Some(Cause::NotAdmitted));
    check("nobody", APPROVE, Some(Cause::NotAdmitted));
    check("nobody", WITHDRAW, Some(Cause::NotAdmitted));
}

#[test]
fn whoever_could_make_the_call_by_any_wire_may_decide() {
    let stage = pending();
    let could =
        |grant: &str| stage.topic.could_decide(op(1), &id("dee"), &Capabilities::parse([grant]).unwrap());
    assert!(could("mcp/request:tools/call:a") && could("mcp/request:tools/call:one_a") && could("mcp/*"));
    assert!(
        !could("mcp/request:tools/call:two_a") && !could("mcp/proposal:*") && !could("mcp/request:prompts/*")
    );
    assert!(!stage.topic.could_decide(op(1), &id("bob"), &Capabilities::full()), "not the proposer");
    assert_eq!(stage.topic.deciders(op(1)).collect::<Vec<_>>(), [&id("ann")]);
}

#[test]
fn somebody_outside_decides_with_what_they_bring() {
    let full = Capabilities::full();
    let decide = |by: &str, outside| {
        let (by, decision) = (&id(by), APPROVE);
        pending().step(Event::Decide { proposal: op(1), by, outside, decision })
    };
    assert_eq!(decide("operator", Some(&full)).len(), 1);
    assert_eq!(refused(&decide("operator", None)), Cause::NotAdmitted);
    assert_eq!(
        refused(&decide("cid", Some(&full))),
        Cause::NotAdmitted,
        "who is here has what is granted here"
    );
    assert_eq!(refused(&decide("bob", Some(&full))), Cause::Own);
}

#[test]
fn the_ways_to_end() {
    let rejected = (ProposalState::Rejected, Some("too broad"));
    let mut stage = pending();
    assert_eq!(stage.decide(1, "ann", REJECT).as_slice(), [decided("ann", rejected.0, rejected.1)]);
    assert_eq!(stage.stored(1).as_slice(), [told(rejected.0, rejected.1)]);
    let mut stage = pending();
    assert_eq!(stage.decide(1, "bob", WITHDRAW).as_slice(), [decided("bob", ProposalState::Withdrawn, None)]);
    assert_eq!(stage.stored(1).as_slice(), [told(ProposalState::Withdrawn, None)]);
    let mut stage = pending();
    assert_eq!(stage.topic.next_expiry_ms(), Some(1_000));
    assert!(stage.topic.step(999, Event::Tick).is_empty());
    let late = Event::Decide { proposal: op(1), by: &id("ann"), outside: None, decision: APPROVE };
    assert_eq!(refused(&stage.topic.step(1_000, late)), Cause::Expired);
    assert_eq!(stage.topic.step(1_000, Event::Tick).as_slice(), [ended(ProposalState::Expired, None)]);
    assert_eq!(stage.topic.next_expiry_ms(), None);
    assert_eq!(stage.stored(1).as_slice(), [told(ProposalState::Expired, None)]);
}

#[test]
fn an_approval_in_time_is_enough() {
    let mut stage = pending();
    stage.decide(1, "ann", APPROVE);
    assert!(stage.topic.step(5_000, Event::Tick).is_empty());
    assert_eq!(stage.stored(1).len(), 1);
    assert!(stage.topic.step(9_000, Event::Tick).is_empty());
    assert_eq!(delivered(&execute(&mut stage, 5, "one", "a")).0, "one");
}

#[test]
fn an_approval_is_carried_out_once_and_only_as_proposed() {
    let mut stage = pending();
    assert_eq!(refused(&execute(&mut stage, 5, "one", "a")), Cause::Moot, "not approved");
    stage.decide(1, "ann", APPROVE);
    stage.stored(1);
    assert_eq!(refused(&execute(&mut stage, 5, "two", "a")), Cause::Moot);
    assert_eq!(refused(&execute(&mut stage, 5, "one", "b")), Cause::Moot);
    delivered(&execute(&mut stage, 5, "one", "a"));
    assert_eq!(refused(&execute(&mut stage, 6, "one", "a")), Cause::Moot, "single use");
    let effects = stage.step(Event::Answer { link: ONE, operation: op(5), outcome: Outcome::Ok });
    let settle = Effect::Settle { operation: op(5), to: ANN, outcome: Outcome::Ok };
    assert_eq!(effects.as_slice(), [ended(ProposalState::Completed, None), settle]);
    assert_eq!(refused(&execute(&mut stage, 7, "one", "a")), Cause::Moot);
    assert_eq!(stage.stored(1).as_slice(), [told(ProposalState::Completed, None)]);
    assert_eq!(refused(&execute(&mut stage, 8, "one", "a")), Cause::Moot);
}

#[test]
fn an_approval_that_cannot_be_carried_out_has_failed() {
    let mut stage = pending();
    stage.decide(1, "ann", APPROVE);
    stage.stored(1);
    stage.step(Event::Leave { link: ONE });
    let effects = execute(&mut stage, 5, "one", "a");
    assert!(matches!(&effects[0], Effect::Refuse { cause: Cause::UpstreamDown, .. }));
    assert_eq!(effects[1], ended(ProposalState::Failed, Some("the server behind this is not running")));
}

#[test]
fn what_a_participant_may_no_longer_propose_is_taken_back() {
    let gone = Some("its proposer may no longer propose it");
    let regrant = |stage: &mut Stage, grants: &[&str]| {
        let effects = stage.step(Event::Regrant { participant: &id("bob"), capabilities: caps(grants) });
        effects.into_iter().filter(|effect| matches!(effect, Effect::Store { .. })).collect::<Vec<_>>()
    };
    let mut stage = pending();
    assert_eq!(regrant(&mut stage, &["mcp/proposal:tools/call:a"]), []);
    assert_eq!(regrant(&mut stage, &["mcp/request:tools/call:a"]), []);
    assert_eq!(regrant(&mut stage, &["chat"]), [decided("bob", ProposalState::Withdrawn, gone)]);
    assert_eq!(stage.not_stored(1).as_slice(), [told(ProposalState::Withdrawn, gone)], "written down or not");
    // While its opening is written down, and while an approval is: nothing runs.
    let mut early = self::stage();
    early.propose(1, "bob", None);
    assert_eq!(regrant(&mut early, &["chat"]), []);
    assert_eq!(early.stored(1).as_slice(), [decided("bob", ProposalState::Withdrawn, gone)]);
    let mut stage = pending();
    stage.decide(1, "ann", APPROVE);
    assert_eq!(regrant(&mut stage, &["chat"]), []);
    let effects = stage.stored(1);
    assert!(matches!(&effects[0], Effect::RefuseDecision { cause: Cause::Moot, .. }));
    assert_eq!(effects[1], ended(ProposalState::Withdrawn, gone));
    // Once approved it goes on.
    let mut stage = pending();
    stage.decide(1, "ann", APPROVE);
    stage.stored(1);
    assert_eq!(regrant(&mut stage, &["chat"]), []);
    delivered(&execute(&mut stage, 5, "one", "a"));
    let effects = stage.step(Event::Revoke { participant: &id("bob") });
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Store { .. })));
}

#[test]
fn a_participant_that_is_cut_off_proposes_nothing() {
    let mut stage = pending();
    let why = Some("its proposer was cut off");
    let effects = stage.step(Event::Revoke { participant: &id("bob") });
    assert_eq!(effects.last(), Some(&decided("bob", ProposalState::Withdrawn, why)));
    let mut stage = pending();
    assert_eq!(stage.step(Event::Leave { link: BOB }).as_slice(), [Effect::Left { participant: id("bob") }]);
    assert_eq!(stage.topic.proposals_len(), 1, "whoever leaves may come back for it");
}

#[test]
fn how_many() {
    let limits = Limits { proposals_max: 3, proposals_per_participant_max: 2, ..Limits::default() };
    let mut stage = stage_with(limits);
    for (proposal, by) in [(1, "bob"), (2, "bob"), (4, "dee")] {
        assert_eq!(stage.propose(proposal, by, None).len(), 1);
        let cause = match by {
            "bob" if proposal == 1 => continue,
            "bob" => refused(&stage.propose(3, "bob", None)),
            _ => refused(&stage.propose(5, "eve", None)),
        };
        assert_eq!(cause, Cause::Limit);
    }
    stage.not_stored(2);
    assert_eq!(stage.propose(6, "bob", None).len(), 1);
}

#[test]
fn what_was_open_before_a_restart_is_open_again() {
    let mut stage = stage();
    let (by, to) = (&id("bob"), &[]);
    let terms =
        Terms { by, method: "resources/read", context: Some("demo://a"), to, digest: SHOWN, expires_ms: 50 };
    assert!(stage.step(Event::Restore { proposal: op(1), terms }).is_empty());
    let all: Vec<OperationId> = stage.topic.proposals().map(|one| one.id).collect();
    assert_eq!((all, stage.topic.next_expiry_ms()), (vec![op(1)], Some(50)));
    assert_eq!(stage.decide(1, "ann", APPROVE).len(), 1);
}
