//! Recall of proposals: participants that may no longer propose have none pending, present or
//! absent.

use crate::{
    numbers::Effects,
    proposals::{WITHDRAW, pending, stage},
    shown::shown,
    stage::{APPROVE, BOB, CID, Stage},
};
use model::DeliveryMode;

const UNENTITLED: &str = "its proposer may not propose it any more";
const REVOKED: &str = "its proposer may not be here any more";

fn withdrawn(why: &str) -> String {
    format!("store p1 decided withdrawn by bob unasked: {why}")
}

/// The records and refusals of an effect.
fn stores(effects: &Effects) -> Vec<String> {
    let of_proposals =
        |line: &String| line.starts_with("store") || line.starts_with("refuse decision");
    shown(effects).into_iter().filter(of_proposals).collect()
}

fn absent() -> Stage {
    let mut stage = pending();
    stage.leave(BOB);
    stage
}

#[test]
fn proposals_that_a_participant_could_not_make_any_more_are_withdrawn() {
    for mut stage in [pending(), absent()] {
        for grants in [
            "mcp/proposal:tools/call:a",
            "mcp/proposal:tools/call:one_a",
            "mcp/request:tools/call:a",
        ] {
            assert!(
                stores(&stage.regrant("bob", &[grants])).is_empty(),
                "{grants}"
            );
        }
        assert_eq!(
            stores(&stage.regrant("bob", &["chat"])),
            [withdrawn(UNENTITLED)]
        );
        let concluded = format!("concluded p1 withdrawn: {UNENTITLED}");
        assert_eq!(
            shown(&stage.not_stored(1)),
            [concluded],
            "written down or not"
        );
        assert_eq!(stage.topic.proposals_len(), 0);
    }
}

#[test]
fn proposals_of_a_revoked_participant_are_withdrawn() {
    let mut stage = pending();
    let expected = [
        "exit 2: revoked".into(),
        "left bob".into(),
        "closed 2: revoked".into(),
        withdrawn(REVOKED),
    ];
    assert_eq!(shown(&stage.revoke("bob")), expected);
    assert_eq!(
        shown(&stage.stored(1)),
        [format!("concluded p1 withdrawn: {REVOKED}")]
    );
    let mut stage = absent();
    assert_eq!(shown(&stage.revoke("bob")), [withdrawn(REVOKED)]);
    assert!(shown(&stage.revoke("bob")).is_empty(), "once");
    assert_eq!(
        shown(&stage.stored(1)),
        [format!("concluded p1 withdrawn: {REVOKED}")]
    );
    assert!(shown(&stage.revoke("bob")).is_empty());
}

#[test]
fn a_participant_that_comes_back_with_less_is_judged_again() {
    let mut stage = absent();
    let effects = stage.caller(BOB, "bob", &["mcp/proposal:tools/call:a"]);
    assert_eq!(shown(&effects), ["joined bob"]);
    let mut stage = absent();
    let effects = stage.listener(BOB, "bob", &["chat"], DeliveryMode::All);
    let expected = [
        "enter 2 bob All among ann,bare,bob,cid,one,portmoot,two".into(),
        "joined bob".into(),
        withdrawn(UNENTITLED),
    ];
    assert_eq!(shown(&effects), expected);
    let mut stage = pending();
    assert_eq!(
        stores(&stage.caller(CID, "bob", &[])),
        Vec::<String>::new(),
        "the link is cid's"
    );
    assert_eq!(
        stores(&stage.caller(model::LinkId(4), "bob", &[])),
        [withdrawn(UNENTITLED)]
    );
}

#[test]
fn a_proposal_is_withdrawn_as_soon_as_its_opening_is_on_disk() {
    for revoked in [true, false] {
        let mut stage = stage();
        stage.proposes(BOB, "bob", 1);
        let why = if revoked { REVOKED } else { UNENTITLED };
        let effects = if revoked {
            stage.revoke("bob")
        } else {
            stage.regrant("bob", &["chat"])
        };
        assert!(stores(&effects).is_empty());
        assert_eq!(
            shown(&stage.stored(1)),
            [withdrawn(why)],
            "no participant learns of it"
        );
        assert_eq!(
            shown(&stage.stored(1)),
            [format!("concluded p1 withdrawn: {why}")]
        );
    }
    // The decision that waited for it does not count.
    let mut stage = stage();
    stage.proposes(BOB, "bob", 1);
    stage.decide(1, "ann", APPROVE);
    stage.revoke("bob");
    assert_eq!(
        shown(&stage.stored(1)),
        [
            withdrawn(REVOKED),
            "refuse decision 9 of ann on p1: decided".into()
        ]
    );
    let mut stage = self::stage();
    stage.proposes(BOB, "bob", 1);
    stage.revoke("bob");
    assert_eq!(
        shown(&stage.not_stored(1)),
        ["not proposed p1 of bob: log_unavailable"]
    );
}

#[test]
fn an_approval_depends_on_the_proposers_standing() {
    for revoked in [true, false] {
        let mut stage = pending();
        stage.decide(1, "ann", APPROVE);
        let why = if revoked { REVOKED } else { UNENTITLED };
        let effects = if revoked {
            stage.revoke("bob")
        } else {
            stage.regrant("bob", &["chat"])
        };
        assert!(stores(&effects).is_empty());
        let expected = [
            "refuse decision 9 of ann on p1: moot".to_owned(),
            format!("store p1 ended withdrawn: {why}"),
        ];
        assert_eq!(shown(&stage.stored(1)), expected);
        assert_eq!(
            shown(&stage.stored(1)),
            [format!("concluded p1 withdrawn: {why}")]
        );
    }
    // A proposal whose end could not be written is pending again, and withdrawn.
    let mut stage = pending();
    stage.decide(1, "ann", APPROVE);
    stage.revoke("bob");
    let expected = [
        "refuse decision 9 of ann on p1: log_unavailable".into(),
        withdrawn(REVOKED),
    ];
    assert_eq!(shown(&stage.not_stored(1)), expected);
    let mut stage = pending();
    stage.decide(1, "bob", WITHDRAW);
    stage.revoke("bob");
    let expected = [
        "refuse decision 9 of bob on p1: log_unavailable".into(),
        withdrawn(REVOKED),
    ];
    assert_eq!(shown(&stage.not_stored(1)), expected);
}

#[test]
fn an_approved_proposal_goes_on() {
    let mut stage = pending();
    stage.approved(1);
    assert!(stores(&stage.regrant("bob", &["chat"])).is_empty());
    assert_eq!(
        shown(&stage.execute(1, 5, "one")),
        ["deliver 5 to one for p1"]
    );
    assert!(stores(&stage.revoke("bob")).is_empty());
    assert_eq!(stage.topic.operations_len(), 1);
}
