//! Plans: several calls that are decided about as one; each runs at most once, in order, and the plan
//! stops at the first that does not succeed.

use std::sync::Arc;

use model::{Capabilities, Digest, Narrowing, ParticipantId, ProposalState};
use topic::{
    Brake, Cause, Claiming, Decision, EndedProposal, Event, Limits, ListItem, ListScope,
    PLAN_STEPS_MAX, PlanPlace, PlanStep, ProposePlan, Restore, RunStep, ServerLists, Terms,
    Withholding,
};

use crate::{
    envelope::Envelope,
    numbers::{Effects, Numbers},
    proposals::{REJECT, WITHDRAW, stage, stage_with},
    shown::{refused, shown},
    stage::{
        ANN, APPROVE, BOB, EXPIRES_MS, ONE, RULING, SHOWN, Stage, TWO, caps, id, op, pending, terms,
    },
};

const DEE: model::LinkId = model::LinkId(41);

/// A step: a call of `a` at a server.
fn step(number: u128, server: &str, approvals: usize) -> PlanStep<Numbers> {
    PlanStep {
        proposal: op(number),
        terms: Terms {
            approvals,
            ..terms(&id("bob"), &[id(server)], &format!("p{number}"))
        },
        content: number,
        public: None,
    }
}

fn proposes(stage: &mut Stage, steps: Vec<PlanStep<Numbers>>) -> Effects {
    stage.step(Event::ProposePlan(ProposePlan {
        by: &id("bob"),
        outside: None,
        narrowing: None,
        steps,
    }))
}

/// Bob's plan of calls of `a` at `one`, `two` and `one` again.
fn steps(approvals: usize) -> Vec<PlanStep<Numbers>> {
    let at = |number: u128, server| step(number, server, approvals);
    vec![at(1, "one"), at(2, "two"), at(3, "one")]
}

fn planned(approvals: usize) -> Stage {
    let mut stage = stage();
    stage.caller(DEE, "dee", &["mcp/approve:tools/call:*"]);
    proposes(&mut stage, steps(approvals));
    stage.stored(1);
    stage
}

/// The shell answers that the turn of a step has come.
fn runs(stage: &mut Stage, step: u128) -> Vec<String> {
    runs_as(stage, step, Some(SHOWN), Some(RULING))
}

fn runs_as(
    stage: &mut Stage,
    step: u128,
    current: Option<Digest>,
    ruling: Option<u8>,
) -> Vec<String> {
    shown(&stage.step(Event::RunStep(RunStep {
        proposal: op(step),
        current,
        fulfilment: "f",
        ruling,
    })))
}

/// A step is carried out at a server, which answers.
fn fulfilled(stage: &mut Stage, step: u128, link: model::LinkId, server: &str) -> Vec<String> {
    stage.execute(step, step + 10, server);
    stage.answer(link, step + 10, 5);
    shown(&stage.stored(step))
}

/// The plan is approved, and its first step has succeeded.
fn at_second(approvals: usize) -> Stage {
    let mut stage = planned(approvals);
    if approvals > 1 {
        stage.decide(1, "dee", APPROVE);
        stage.stored(1);
    }
    stage.approved(1);
    let lines = fulfilled(&mut stage, 1, ONE, "one");
    assert_eq!(lines, ["concluded p1 completed", "step due p2"]);
    stage
}

fn state(stage: &Stage, step: u128) -> (ProposalState, String) {
    let view = stage.topic.proposal(op(step)).unwrap();
    let reason = view.reason.as_deref().unwrap_or_default().to_owned();
    (view.state, reason)
}

/// Steps end as withdrawn for this reason, each once that is on disk.
#[track_caller]
fn stops(stage: &mut Stage, lines: &[String], steps: &[u128], why: &str) {
    for step in steps {
        let line = format!("store p{step} ended withdrawn: {why}");
        assert!(lines.contains(&line), "{line}: {lines:?}");
        let end = format!("concluded p{step} withdrawn: {why}");
        assert_eq!(shown(&stage.stored(*step)), [end]);
    }
    for step in steps {
        assert_eq!(
            state(stage, *step),
            (ProposalState::Withdrawn, why.to_owned())
        );
    }
    assert_eq!(stage.topic.proposals_len(), 0);
    assert_eq!(stage.topic.next_deadline_ms(), None);
}

#[test]
fn each_step_runs_once_the_one_before_has_succeeded_and_that_is_on_disk() {
    let mut stage = stage();
    let opened = shown(&proposes(&mut stage, steps(1)));
    assert_eq!(opened, ["store p1 opened"], "one record opens all");
    assert!(stage.topic.proposal(op(2)).is_none(), "not before");
    let opened = shown(&stage.stored(1));
    assert_eq!(opened, ["proposed p1", "proposed p2", "proposed p3"]);
    let view = stage.topic.proposal(op(2)).unwrap();
    let place = view.plan.unwrap();
    assert_eq!((place.plan, place.number(), place.of()), (op(1), 2, 3));
    assert_eq!(view.state, ProposalState::Pending);
    assert_eq!(stage.topic.undecided().count(), 1, "one is decided about");
    assert!(runs(&mut stage, 2).is_empty(), "its turn has not come");
    let approved = stage.approved(1);
    assert_eq!(shown(&approved), ["approved p1 at one", "ruled 9"]);
    assert!(runs(&mut stage, 2).is_empty(), "its turn has not come");
    stage.execute(1, 11, "one");
    let answered = shown(&stage.answer(ONE, 11, 5));
    assert_eq!(
        answered,
        ["store p1 ended completed with 5", "settle 11 with 5 for p1"]
    );
    let ended = shown(&stage.stored(1));
    assert_eq!(ended, ["concluded p1 completed", "step due p2"]);
    assert_eq!(runs(&mut stage, 2), ["store p2 decided running by ann"]);
    assert!(runs(&mut stage, 2).is_empty(), "its turn comes once");
    assert_eq!(
        shown(&stage.execute(2, 9, "two")),
        ["refuse 9: moot"],
        "its approval is not on disk"
    );
    assert_eq!(shown(&stage.stored(2)), ["approved p2 at two", "ruled 9"]);
    let ended = fulfilled(&mut stage, 2, TWO, "two");
    assert_eq!(ended, ["concluded p2 completed", "step due p3"]);
    assert!(runs(&mut stage, 2).is_empty(), "it is over");
    runs(&mut stage, 3);
    stage.stored(3);
    let ended = fulfilled(&mut stage, 3, ONE, "one");
    assert_eq!(ended, ["concluded p3 completed"]);
    assert_eq!(stage.topic.proposals_len(), 0);
}

#[test]
fn a_plan_stops_at_the_first_step_that_does_not_succeed() {
    type EndStep = fn(&mut Stage);
    let ends: [EndStep; 5] = [
        |stage| drop(stage.error(TWO, 12, 5)),
        // A result that says of an error.
        |stage| drop(stage.answer(TWO, 12, 99)),
        |stage| drop(stage.fail(TWO, 12)),
        |stage| drop(stage.configure(&[])),
        |stage| drop(stage.cancel(crate::stage::OWN, 12)),
    ];
    for end in ends {
        let mut stage = at_second(1);
        runs(&mut stage, 2);
        stage.stored(2);
        stage.execute(2, 12, "two");
        end(&mut stage);
        let lines = shown(&stage.stored(2));
        stops(&mut stage, &lines, &[3], "step 2 of the plan failed");
    }
    // A step whose end is not on disk has an unknown outcome after a restart.
    let mut stage = planned(1);
    stage.approved(1);
    stage.execute(1, 11, "one");
    stage.answer(ONE, 11, 5);
    let lines = shown(&stage.not_stored(1));
    let why = "the end of step 1 of the plan could not be written down";
    stops(&mut stage, &lines, &[2, 3], why);
}

#[test]
fn a_token_is_good_for_a_plan_if_it_is_good_for_each_step() {
    let stage = planned(1);
    let covers = |may: &[&str], step: u128| {
        let narrowing = Narrowing {
            to: caps(may),
            step_up: None,
        };
        stage.topic.covers_proposal(Some(&narrowing), op(step))
    };
    let one = "mcp/request:tools/call:one_a";
    let two = "mcp/request:tools/call:two_a";
    assert!(covers(&[one, two], 1));
    assert!(!covers(&[one], 1), "all steps are shown under its id");
    assert!(covers(&[two], 2) && !covers(&[one], 2));
}

#[test]
fn the_whole_plan_ends_with_a_decision_against_it_or_its_time() {
    for (by, decision, why) in [
        ("ann", REJECT, "the plan was rejected"),
        ("bob", WITHDRAW, "the plan was withdrawn"),
    ] {
        let mut stage = planned(1);
        stage.decide(1, by, decision);
        let lines = shown(&stage.stored(1));
        stops(&mut stage, &lines, &[2, 3], why);
    }
    let mut stage = planned(1);
    assert_eq!(stage.topic.next_deadline_ms(), Some(EXPIRES_MS));
    let lines = shown(&stage.tick(EXPIRES_MS));
    assert_eq!(
        lines,
        ["store p1 ended expired"],
        "the end of a plan is one"
    );
    let lines = shown(&stage.stored(1));
    stops(&mut stage, &lines, &[2, 3], "the plan expired");
}

#[test]
fn a_later_step_is_not_decided_about() {
    let mut stage = planned(1);
    for (by, decision) in [
        ("ann", APPROVE),
        ("ann", REJECT),
        ("ann", Decision::Extend),
        ("bob", WITHDRAW),
        ("bob", Decision::Amend),
    ] {
        let effects = stage.decide(2, by, decision);
        assert_eq!(refused(&effects), Cause::LaterStep, "{decision:?}");
    }
    let effects = stage.decide(2, "ann", APPROVE);
    let hint = effects.all.iter().find_map(|effect| match effect {
        topic::Effect::RefuseDecision(refused) => refused.refusal.hint.clone(),
        _ => None,
    });
    let plan = op(1).to_string();
    assert!(hint.is_some_and(|hint| hint.contains(&plan)));
    // Who may not see it learns nothing.
    assert_eq!(
        refused(&stage.decide(2, "cid", APPROVE)),
        Cause::NotAdmitted
    );
    let full = Capabilities::full();
    let topic = &stage.topic;
    assert!(topic.could_decide(op(1), &id("ann"), &full));
    assert!(!topic.could_decide(op(2), &id("ann"), &full));
    let effects = stage.step(Event::Claim(Claiming {
        proposal: op(2),
        by: &id("ann"),
        outside: None,
        narrowing: None,
        at_ms: 1,
    }));
    assert!(effects.refusal.is_some());
    // More time is that of the plan.
    stage.decide(1, "ann", Decision::Extend);
    stage.stored(1);
    let expires = |step| stage.topic.proposal(op(step)).unwrap().expires_wall_ms;
    assert_eq!(expires(1), expires(3));
}

#[test]
fn a_plan_runs_as_it_was_proposed_and_no_envelope_fulfils_it() {
    let mut stage = planned(1);
    assert_eq!(
        refused(&stage.decide(1, "bob", Decision::Amend)),
        Cause::WholePlan
    );
    let fulfilment = Envelope::request(ANN, "f1", &["one"], &[21]).about("p1");
    let lines = shown(&stage.send(fulfilment));
    assert_eq!(
        lines,
        [
            "refuse 21: whole_plan",
            "refuse decision 9 of ann on p1 and its calls: whole_plan"
        ]
    );
    let fulfilment = Envelope::request(ANN, "f2", &["two"], &[22]).about("p2");
    let lines = shown(&stage.send(fulfilment));
    assert_eq!(
        lines,
        [
            "refuse 22: later_step",
            "refuse decision 9 of ann on p2 and its calls: later_step"
        ]
    );
    // Its proposer makes no step of it itself, either.
    stage.regrant("bob", &["mcp/*"]);
    let own = Envelope::request(BOB, "f3", &["two"], &[23]).about("p2");
    assert_eq!(shown(&stage.send(own)), ["refuse 23: whole_plan"]);
    let other = Decision::Approve {
        shown: Digest([8; 32]),
        current: Some(SHOWN),
    };
    assert_eq!(refused(&stage.decide(1, "ann", other)), Cause::Differs);
    stage.approved(1);
}

#[test]
fn who_decides_may_decide_about_every_step() {
    let mut stage = planned(1);
    stage.regrant("dee", &["mcp/approve:tools/call:one_a"]);
    assert_eq!(
        refused(&stage.decide(1, "dee", APPROVE)),
        Cause::NotAdmitted
    );
    assert_eq!(refused(&stage.decide(1, "dee", REJECT)), Cause::NotAdmitted);
    let seen = |stage: &Stage| {
        let granted = stage.topic.granted_to(&id("dee"), None, None);
        [1, 2].map(|step| stage.topic.may_see_proposal(op(step), &id("dee"), &granted))
    };
    assert_eq!(seen(&stage), [false, false]);
    stage.regrant(
        "dee",
        &[
            "mcp/approve:tools/call:one_a",
            "mcp/approve:tools/call:two_a",
        ],
    );
    assert_eq!(seen(&stage), [true, true]);
    assert_eq!(refused(&stage.decide(1, "bob", APPROVE)), Cause::Own);
    stage.decide(1, "dee", APPROVE);
    assert_eq!(shown(&stage.stored(1)), ["approved p1 at one", "ruled 9"]);
}

#[test]
fn who_proposes_may_propose_or_make_every_step() {
    let mut stage = stage();
    stage.regrant("bob", &["mcp/proposal:*:a", "mcp/request:tools/call:one_a"]);
    stage.regrant("bob", &["mcp/request:tools/call:one_a"]);
    let lines = shown(&proposes(&mut stage, steps(1)));
    assert_eq!(lines, ["not proposed p1 of bob: not_admitted"]);
    assert_eq!(stage.topic.proposals_len(), 0);
    stage.regrant("bob", &["mcp/request:tools/call:*"]);
    assert_eq!(shown(&proposes(&mut stage, steps(1))), ["store p1 opened"]);
}

#[test]
fn a_plan_of_a_paused_proposer_stops_before_its_next_step() {
    let mut stage = at_second(1);
    let brake = Some(Brake {
        by: id("dee"),
        reason: None,
        since_ms: 1,
    });
    let participant = &id("bob");
    stage.step(Event::Brake { participant, brake });
    let why = "its proposer is paused";
    assert_eq!(
        runs(&mut stage, 2),
        [format!("store p2 ended withdrawn: {why}")]
    );
    let lines = shown(&stage.stored(2));
    assert_eq!(lines[0], format!("concluded p2 withdrawn: {why}"));
    stops(&mut stage, &lines, &[3], "step 2 of the plan was withdrawn");
}

#[test]
fn an_approval_counts_for_a_later_step_while_its_author_may_decide() {
    let stopped = "the approval of the plan does not count any more: who gave it may not decide about this now";
    type Loses = fn(&mut Stage);
    let loses: [Loses; 4] = [
        |stage| drop(stage.regrant("ann", &["mcp/request:tools/call:one_a"])),
        |stage| drop(stage.revoke("ann")),
        |stage| {
            let brake = Some(Brake {
                by: id("dee"),
                reason: None,
                since_ms: 1,
            });
            let participant = &id("ann");
            stage.step(Event::Brake { participant, brake });
        },
        |stage| {
            let participant = &id("ann");
            stage.step(Event::Disown { participant });
        },
    ];
    for lose in loses {
        for approvals in [1, 2] {
            let mut stage = at_second(approvals);
            lose(&mut stage);
            let mut lines = runs(&mut stage, 2);
            assert_eq!(lines, [format!("store p2 ended withdrawn: {stopped}")]);
            lines = shown(&stage.stored(2));
            assert_eq!(lines[0], format!("concluded p2 withdrawn: {stopped}"));
            let why = "step 2 of the plan was withdrawn";
            stops(&mut stage, &lines, &[3], why);
        }
    }
    // A right to another step is enough for none, and one to this step is.
    let mut stage = at_second(1);
    stage.regrant("ann", &["mcp/request:tools/call:two_a"]);
    assert_eq!(runs(&mut stage, 2), ["store p2 decided running by ann"]);
    let mut stage = at_second(2);
    stage.regrant("dee", &["mcp/approve:tools/call:two_a"]);
    assert_eq!(runs(&mut stage, 2), ["store p2 decided running by ann"]);
    // Who approved from outside is judged by what it may do now, as far as the topic knows.
    let full = Arc::new(Capabilities::full());
    let mut stage = planned(1);
    stage.decide_as(1, "eve", Some(&full), APPROVE);
    stage.stored(1);
    fulfilled(&mut stage, 1, ONE, "one");
    assert!(stage.topic.approvers().any(|by| by.as_str() == "eve"));
    assert_eq!(runs(&mut stage, 2), ["store p2 decided running by eve"]);
}

#[test]
fn a_step_runs_as_it_was_shown() {
    let other = Digest([8; 32]);
    let redefined = "its server describes the tool otherwise now than was shown";
    let unwritten = "its approval could not be written down, so it was not run";
    for (current, ruling, why) in [
        (Some(other), Some(RULING), redefined),
        (None, Some(RULING), redefined),
        (Some(SHOWN), None, unwritten),
    ] {
        let mut stage = at_second(1);
        let lines = runs_as(&mut stage, 2, current, ruling);
        assert_eq!(lines, [format!("store p2 ended withdrawn: {why}")]);
        let lines = shown(&stage.stored(2));
        stops(&mut stage, &lines, &[3], "step 2 of the plan was withdrawn");
    }
    let mut stage = at_second(1);
    runs(&mut stage, 2);
    let why = "this cannot be written down now, so it was not done";
    let lines = shown(&stage.not_stored(2));
    assert!(lines.contains(&format!("store p2 ended withdrawn: {why}")));
    let lines = shown(&stage.stored(2));
    stops(&mut stage, &lines, &[3], "step 2 of the plan was withdrawn");
}

#[test]
fn what_is_withheld_of_one_step_is_approved_for_none() {
    let withholds = |stage: &mut Stage, server, withheld| {
        let item = ListItem {
            withheld,
            ..ListItem::from("a")
        };
        let manifest = ServerLists {
            tools: vec![item],
            ..ServerLists::default()
        };
        stage.lists(server, ListScope::Shared, manifest);
    };
    let mut stage = planned(1);
    withholds(&mut stage, "two", Withholding::Listed);
    let refusal = refused(&stage.decide(1, "ann", APPROVE));
    assert_eq!(refusal, Cause::ToolChanged);
    withholds(&mut stage, "two", Withholding::None);
    stage.approved(1);
    withholds(&mut stage, "two", Withholding::Listed);
    fulfilled(&mut stage, 1, ONE, "one");
    let lines = runs(&mut stage, 2);
    let why = "its server has changed this since it was approved, so it is not called";
    assert_eq!(lines, [format!("store p2 ended withdrawn: {why}")]);
}

#[test]
fn a_plan_needs_as_many_approvals_as_its_strictest_step() {
    let mut stage = planned(2);
    stage.decide(1, "ann", APPROVE);
    let counted = ["counted p1 by ann, of ann: 1 of 2", "ruled 9"];
    assert_eq!(shown(&stage.stored(1)), counted);
    stage.decide(1, "dee", APPROVE);
    assert_eq!(shown(&stage.stored(1)), ["approved p1 at one", "ruled 9"]);
    fulfilled(&mut stage, 1, ONE, "one");
    assert_eq!(runs(&mut stage, 2), ["store p2 decided running by dee"]);
    stage.stored(2);
    let view = stage.topic.proposal(op(2)).unwrap();
    assert_eq!(view.approved_by, [id("ann")]);
    assert_eq!(view.decided_by, Some(id("dee")));
}

#[test]
fn its_proposer_withdraws_the_rest_of_a_plan_that_runs() {
    let mut stage = planned(1);
    stage.approved(1);
    stage.execute(1, 11, "one");
    let withdrawn = shown(&stage.decide(1, "bob", WITHDRAW));
    assert_eq!(withdrawn, ["store p2 decided withdrawn by bob"]);
    let mut lines = shown(&stage.stored(2));
    assert_eq!(lines.remove(0), "concluded p2 withdrawn");
    assert_eq!(lines.pop().as_deref(), Some("ruled 9"));
    stage.answer(ONE, 11, 5);
    assert_eq!(shown(&stage.stored(1)), ["concluded p1 completed"]);
    stops(&mut stage, &lines, &[3], "step 2 of the plan was withdrawn");
    let again = refused(&stage.decide(1, "bob", WITHDRAW));
    assert_eq!(again, Cause::Decided);
    // In the moment in which its turn has come, too.
    let mut stage = at_second(1);
    stage.decide(1, "bob", WITHDRAW);
    assert!(runs(&mut stage, 2).is_empty());
    assert_eq!(shown(&stage.stored(2))[0], "concluded p2 withdrawn");
}

#[test]
fn a_proposer_that_may_not_propose_a_step_any_more_has_no_plan() {
    let one = ["mcp/request:tools/call:one_a"];
    let why = "its proposer may not propose it any more";
    let mut stage = planned(1);
    let lines = shown(&stage.regrant("bob", &one));
    let recalled = format!("store p1 decided withdrawn by bob unasked: {why}");
    assert!(lines.contains(&recalled), "{lines:?}");
    let lines = shown(&stage.stored(1));
    stops(&mut stage, &lines, &[2, 3], "the plan was withdrawn");
    // While it is opened.
    let mut stage = crate::proposals::stage();
    proposes(&mut stage, steps(1));
    stage.regrant("bob", &one);
    assert_eq!(shown(&stage.stored(1)), [recalled]);
    // While it runs: what has begun goes on, and no more.
    let mut stage = planned(1);
    stage.approved(1);
    let lines = shown(&stage.regrant("bob", &one));
    assert!(lines.contains(&format!("store p2 ended withdrawn: {why}")));
    let lines = shown(&stage.stored(2));
    let third = "store p3 ended withdrawn: step 2 of the plan was withdrawn";
    assert!(lines.contains(&third.to_owned()), "{lines:?}");
    assert_eq!(
        fulfilled(&mut stage, 1, ONE, "one"),
        ["concluded p1 completed"]
    );
    let mut stage = planned(1);
    let lines = shown(&stage.revoke("bob"));
    let gone = "store p1 decided withdrawn by bob unasked: its proposer may not be here any more";
    assert!(lines.contains(&gone.to_owned()), "{lines:?}");
    let lines = shown(&stage.stored(1));
    stops(&mut stage, &lines, &[2, 3], "the plan was withdrawn");
}

#[test]
fn all_of_a_plan_is_opened_or_nothing() {
    let mut stage = stage();
    proposes(&mut stage, steps(1));
    assert_eq!(stage.topic.proposals_len(), 3);
    let lines = shown(&stage.not_stored(1));
    assert_eq!(lines, ["not proposed p1 of bob: log_unavailable"]);
    assert_eq!(stage.topic.proposals_len(), 0);
    assert!(
        [1, 2, 3]
            .iter()
            .all(|one| stage.topic.proposed(op(*one)).is_none())
    );
    // The ids are those of a plan once.
    assert_eq!(shown(&proposes(&mut stage, steps(1))), ["store p1 opened"]);
    assert!(shown(&proposes(&mut stage, steps(1))).is_empty());
}

#[test]
fn every_step_counts_for_the_limits() {
    let of = |count: usize| (1..=count).map(|at| step(at as u128, "one", 1));
    let limited = |count, bytes| Limits {
        proposals_per_participant_max: count,
        proposal_bytes_per_participant_max: bytes,
        ..Limits::default()
    };
    for (limits, fits) in [
        (limited(3, 30), true),
        (limited(2, 30), false),
        (limited(3, 29), false),
    ] {
        let mut stage = stage_with(limits);
        let lines = shown(&proposes(&mut stage, of(3).collect()));
        assert_eq!(lines == ["store p1 opened"], fits, "{lines:?}");
    }
    for (count, fits) in [
        (1, false),
        (PLAN_STEPS_MAX, true),
        (PLAN_STEPS_MAX + 1, false),
    ] {
        let lines = shown(&proposes(&mut stage(), of(count).collect()));
        assert_eq!(lines == ["store p1 opened"], fits, "{count}: {lines:?}");
    }
}

fn place(at: usize) -> PlanPlace {
    PlanPlace {
        plan: op(1),
        steps: [op(1), op(2)].into(),
        at,
    }
}

fn restores(stage: &mut Stage, at: usize, end: Option<EndedProposal<Numbers>>) {
    let number = at as u128 + 1;
    let by: ParticipantId = id("bob");
    let terms = Terms {
        plan: Some(place(at)),
        ..terms(&by, &[id("one")], &format!("p{number}"))
    };
    stage.step(Event::Restore(Restore {
        held: true,
        end,
        ..pending(number, terms)
    }));
}

#[test]
fn a_plan_that_was_pending_is_pending_again() {
    let mut stage = stage();
    restores(&mut stage, 0, None);
    restores(&mut stage, 1, None);
    assert_eq!(stage.topic.undecided().count(), 1);
    assert_eq!(refused(&stage.decide(2, "ann", APPROVE)), Cause::LaterStep);
    stage.approved(1);
    fulfilled(&mut stage, 1, ONE, "one");
    assert_eq!(runs(&mut stage, 2), ["store p2 decided running by ann"]);
}

#[test]
fn a_call_that_is_like_a_step_repeats_no_plan() {
    let mut stage = planned(1);
    let like = terms(&id("bob"), &[id("one")], "p9");
    assert!(stage.topic.repeated_by(&like, None).is_none());
    stage.approved(1);
    assert!(stage.topic.repeated_by(&like, None).is_none());
}
