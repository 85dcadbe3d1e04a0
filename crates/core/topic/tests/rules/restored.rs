//! Proposals from before a restart.

use model::{DeliveryMode, Method, ProposalState};
use topic::{ENDED_PROPOSALS_BYTES_MAX, ENDED_PROPOSALS_MAX, EndedProposal, Event, Restore, Terms};

use crate::{
    envelope::Envelope,
    proposals::stage,
    shown::shown,
    stage::{ANN, APPROVE, BOB, EXPIRES_MS, ONE, Stage, id, op},
};

fn restored(held: bool) -> Stage {
    let mut stage = stage();
    assert!(shown(&stage.restore(1, held)).is_empty());
    stage
}

#[test]
fn a_proposal_that_was_pending_is_pending_again() {
    let mut stage = restored(false);
    let view = stage.topic.proposal(op(1)).unwrap();
    assert_eq!(
        (view.state, view.by, view.held),
        (ProposalState::Pending, id("bob"), false)
    );
    assert_eq!(stage.topic.next_deadline_ms(), Some(EXPIRES_MS));
    assert!(shown(&stage.restore(1, true)).is_empty());
    assert!(
        !stage.topic.proposal(op(1)).unwrap().held,
        "an id counts once"
    );
    let fulfilment = Envelope::request(ANN, "f1", &["one"], &[11]).about("p1");
    assert_eq!(
        shown(&stage.send(fulfilment)),
        ["store p1 decided running by ann"]
    );
    assert_eq!(shown(&stage.stored(1))[3], "deliver 11 to one for p1");
}

#[test]
fn the_caller_of_a_held_call_comes_back_for_it() {
    let mut stage = restored(true);
    stage.promoting(model::LinkId(4), "bob", &["mcp/proposal:*"]);
    assert!(shown(&stage.resume(model::LinkId(4), 20, 1)).is_empty());
    stage.decide(1, "ann", APPROVE);
    assert_eq!(
        shown(&stage.stored(1)),
        ["approved p1 at one", "ruled 9"],
        "its call is gone"
    );
    stage.execute(1, 11, "one");
    stage.answer(ONE, 11, 5);
    assert_eq!(
        shown(&stage.stored(1)),
        ["concluded p1 completed", "report to 20: p1 completed"]
    );
}

#[test]
fn a_held_call_of_a_participant_that_serves_is_executed_at_its_server_side() {
    for held in [true, false] {
        let mut stage = Stage::new();
        stage.configure(&crate::serving::serving());
        stage.server(crate::stage::OWN, "portmoot");
        stage.server(model::LinkId(8), "worker");
        stage.caller(model::LinkId(7), "worker", &["mcp/response:*"]);
        let by = id("bob");
        let to = [id("worker")];
        let proposal = op(1);
        let terms = crate::stage::terms(&by, &to, "p1");
        stage.step(Event::Restore(Restore {
            proposal,
            terms,
            content: 1,
            held,
            public: None,
            approved_by: Vec::new(),
            end: None,
        }));
        let servers = if held { "worker" } else { "" };
        assert_eq!(
            shown(&stage.approved(1))[0],
            format!("approved p1 at {servers}")
        );
        assert_eq!(
            stage.topic.next_deadline_ms().is_some(),
            !held,
            "the room is awaited"
        );
    }
}

#[test]
fn an_ended_proposal_that_is_forgotten_hides_no_other_of_its_envelope() {
    let mut stage = stage();
    let by = id("bob");
    let to = [id("one")];
    let ended = |stage: &mut Stage, number: u128, envelope: &str| {
        let end = EndedProposal {
            state: ProposalState::Rejected,
            reason: None,
            decided: None,
            fulfilment: None,
            answer: None,
        };
        let proposal = op(number);
        let terms = crate::stage::terms(&by, &to, envelope);
        stage.step(Event::Restore(Restore {
            proposal,
            terms,
            content: number,
            held: false,
            public: None,
            approved_by: Vec::new(),
            end: Some(end),
        }));
    };
    ended(&mut stage, 100, "p1");
    stage.restore(1, false);
    (0..ENDED_PROPOSALS_MAX as u128)
        .for_each(|number| ended(&mut stage, 200 + number, &format!("e{number}")));
    assert!(stage.topic.proposal(op(100)).is_none());
    let fulfilment = Envelope::request(ANN, "f1", &["one"], &[11]).about("p1");
    assert_eq!(
        shown(&stage.send(fulfilment)),
        ["store p1 decided running by ann"]
    );
}

#[test]
fn ended_proposals_of_one_participant_push_out_no_others() {
    let mut stage = stage();
    let to = [id("one")];
    let ended = |stage: &mut Stage, number: u128, by: &str, bytes: usize| {
        let end = EndedProposal {
            state: ProposalState::Rejected,
            reason: None,
            decided: None,
            fulfilment: None,
            answer: Some(9),
        };
        let terms = Terms {
            bytes,
            ..crate::stage::terms(&id(by), &to, &format!("e{number}"))
        };
        let proposal = op(number);
        let content = number;
        let restore = Restore {
            proposal,
            terms,
            content,
            held: false,
            public: None,
            approved_by: Vec::new(),
            end: Some(end),
        };
        stage.step(Event::Restore(restore));
    };
    let most = ENDED_PROPOSALS_MAX as u128;
    ended(&mut stage, 1, "bob", 10);
    (2..3 * most).for_each(|number| ended(&mut stage, number, "greedy", 10));
    let knows = |stage: &Stage, number| stage.topic.proposal(op(number)).is_some();
    assert!(knows(&stage, 1) && knows(&stage, 2 * most + 1) && !knows(&stage, 2 * most));
    // Nor do their bytes, answers included.
    for number in 3 * most..3 * most + 10 {
        ended(
            &mut stage,
            number,
            "greedy",
            ENDED_PROPOSALS_BYTES_MAX / 2 - 19,
        );
    }
    assert!(knows(&stage, 1) && knows(&stage, 3 * most + 8) && !knows(&stage, 3 * most + 7));
    ended(
        &mut stage,
        4 * most,
        "greedy",
        2 * ENDED_PROPOSALS_BYTES_MAX,
    );
    assert!(knows(&stage, 1) && knows(&stage, 4 * most) && !knows(&stage, 3 * most + 9));
}

#[test]
fn a_revoked_or_unentitled_proposer_is_recalled_again() {
    let mut stage = restored(false);
    stage.leave(BOB);
    assert!(shown(&stage.regrant("bob", &["mcp/proposal:*"])).is_empty());
    let why = "its proposer may not be here any more";
    assert_eq!(
        shown(&stage.revoke("bob")),
        [format!("store p1 decided withdrawn by bob unasked: {why}")]
    );
    let mut stage = restored(false);
    stage.leave(BOB);
    assert!(shown(&stage.regrant("bob", &["chat"]))[0].starts_with("store p1 decided withdrawn"));
    let mut stage = restored(false);
    stage.tick(EXPIRES_MS);
    assert_eq!(shown(&stage.stored(1)), ["concluded p1 expired"]);
    stage.listener(BOB, "bob", &["mcp/proposal:*"], DeliveryMode::All);
}

#[test]
fn a_held_call_is_judged_under_its_public_name_as_before() {
    let pending = |public| {
        let mut stage = stage();
        let by = id("bob");
        let to = [id("one")];
        let terms = crate::stage::terms(&by, &to, "p1");
        let terms = Terms {
            method: Method::Other("resources/read".into()),
            context: Some("file:///a".into()),
            ..terms
        };
        stage.step(Event::Restore(Restore {
            proposal: op(1),
            terms,
            content: 1,
            held: true,
            public,
            approved_by: Vec::new(),
            end: None,
        }));
        shown(&stage.regrant("bob", &["mcp/proposal:resources/read:portmoot:*"]))
    };
    let store = |line: &String| line.starts_with("store p1");
    assert!(!pending(Some("portmoot:one/file:///a")).iter().any(store));
    assert!(pending(None).iter().any(store));
}

#[test]
fn a_participant_that_serves_is_not_asked_again_for_a_proposal_that_is_over() {
    for held in [true, false] {
        let mut stage = stage();
        stage.configure(&crate::serving::serving());
        stage.listener(
            model::LinkId(4),
            "worker",
            &["mcp/response:*"],
            DeliveryMode::All,
        );
        let by = id("bob");
        let to = [id("worker")];
        let terms = crate::stage::terms(&by, &to, "p1");
        let state = ProposalState::Completed;
        let answer = Some(5);
        let end = EndedProposal {
            state,
            reason: None,
            decided: None,
            fulfilment: None,
            answer,
        };
        stage.step(Event::Restore(Restore {
            proposal: op(1),
            terms,
            content: 1,
            held,
            public: None,
            approved_by: Vec::new(),
            end: Some(end),
        }));
        assert_eq!(
            stage.topic.proposal(op(1)).map(|view| view.held),
            Some(held)
        );
        let late = Envelope::request(ANN, "f1", &["worker"], &[11]).about("p1");
        let effects = shown(&stage.send(late));
        assert!(
            !effects.iter().any(|line| line.starts_with("publish")),
            "{effects:?}"
        );
        assert!(
            effects
                .iter()
                .any(|line| line.contains("refuse decision 9 of ann on p1")),
            "{effects:?}"
        );
    }
}
