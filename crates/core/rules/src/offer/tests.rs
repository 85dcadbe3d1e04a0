use super::*;
use crate::evidence::{PastVerdict, RejectReason};
use crate::fixture::{NOON_MS, approval, participant};
use crate::learner::Learner;

fn decision(operation: u64, arguments: &str, verdict: PastVerdict) -> RuleEvidence {
    RuleEvidence {
        verdict,
        ..approval(operation, arguments)
    }
}

/// Twenty approvals, two rejections and a proposal that ended undecided.
fn history() -> Vec<RuleEvidence> {
    let rejected = PastVerdict::Rejected(RejectReason::Arguments);
    let mut all = vec![
        decision(1, r#"{"amount":250,"to":"acme"}"#, rejected),
        decision(2, r#"{"amount":900,"note":"x","to":"evil"}"#, rejected),
        decision(3, r#"{"amount":15,"to":"acme"}"#, PastVerdict::Expired),
    ];
    all.extend((0..20).map(|at| {
        let amount = (at * 7) % 10 * 10 + 10;
        approval(at + 4, &format!(r#"{{"amount":{amount},"to":"acme"}}"#))
    }));
    all
}

fn offered() -> (RuleOffer, Learner) {
    let mut learner = Learner::default();
    for one in history() {
        learner.take(one, &RuleSet::default());
    }
    let acceptance = Acceptance {
        name: "r7.1".parse().unwrap(),
        author: participant("ann"),
        at_ms: NOON_MS + 3 * DAY_MS,
        expires_ms: None,
        destructive: false,
    };
    let candidate = learner.ready().next().unwrap().clone();
    let offer = offer(&candidate, &acceptance, learner.evidence())
        .unwrap()
        .unwrap();
    (offer, learner)
}

#[test]
fn an_offer_says_what_the_rule_is() {
    let (offer, _) = offered();
    assert_eq!(offer.digest, offer.rule.digest());
    assert_eq!(
        offer.rule.sentence(),
        "scout may call pay of bank when amount is a whole number from 10 to 100, to is \"acme\", as written, \
         and nothing else is given; only while at most 5 calls an hour; at most 6 times, \
         until Monday 14 December 2026 12:00:00 UTC; on ann's authority."
    );
    assert_eq!(offer.approvals.len(), 20);
    // Ten after it took its form.
    assert_eq!(offer.approved_share_permille, 583);
    assert_eq!(offer.saved_a_day_tenths, 66);
}

#[test]
fn an_offer_shows_the_fields_that_differ_extremes_first() {
    let (offer, _) = offered();
    let differing = &offer.differing;
    assert_eq!(differing.members, [Pointer::parse("/amount").unwrap()]);
    assert_eq!(differing.different, 10);
    let mut extremes: Vec<&str> = differing.rows[..2]
        .iter()
        .map(|row| row.values[0].as_str())
        .collect();
    extremes.sort_unstable();
    assert_eq!(extremes, ["10", "100"]);
    assert!(differing.rows.iter().all(|row| row.times == 2));
}

#[test]
fn an_offer_shows_the_nearest_rejections_and_what_excludes_them() {
    let (offer, _) = offered();
    assert_eq!(
        offer.nearest[0].excluded_by,
        ["amount is 250, and not: is a whole number from 10 to 100"]
    );
    assert_eq!(offer.nearest[1].excluded_by.len(), 3);
    assert_eq!(offer.nearest[1].excluded_by[2], "note is given");
}

#[test]
fn an_offer_shows_its_replay_made_up_calls_and_steps() {
    let (offer, _) = offered();
    assert_eq!(
        offer.replay.words(),
        "would have answered 21 of 23 proposals, would have contradicted 0, would have decided 1 that were left undecided"
    );
    // The smallest and the largest were seen.
    assert_eq!(offer.made_up, [""; 0]);
    let [amount, to] = offer.steps.as_slice() else {
        panic!("{:?}", offer.steps)
    };
    assert_eq!((&amount.tighter, &amount.wider), (&None, &None));
    assert_eq!(to.chosen.words(), "is \"acme\"");
    // Other words of four letters are no wider step of a word.
    assert!(to.wider.is_none() && to.tighter.is_none());
}

#[test]
fn a_wider_step_covers_no_rejection_and_nothing_that_is_executed() {
    let wider = |member: &str, value: &str, rejected: &str| {
        let json = |value: &str| format!("{{\"{member}\":\"{value}\"}}");
        let mut all = vec![decision(
            1,
            &json(rejected),
            PastVerdict::Rejected(RejectReason::Arguments),
        )];
        let mut learner = Learner::default();
        all.extend((2..5).map(|at| approval(at, &json(value))));
        for one in &all {
            learner.take(one.clone(), &RuleSet::default());
        }
        let acceptance = Acceptance {
            name: "r1.1".parse().unwrap(),
            author: participant("ann"),
            at_ms: NOON_MS,
            expires_ms: None,
            destructive: false,
        };
        let candidate = learner.ready().next().unwrap().clone();
        let offer = offer(&candidate, &acceptance, &all).unwrap().unwrap();
        offer.steps[0].wider.as_ref().map(ValueTest::words)
    };
    let file = "/srv/docs/a.md";
    let under = Some("is a path under \"/srv/docs\"".to_owned());
    assert_eq!(wider("file", file, "/etc/passwd"), under);
    assert_eq!(wider("file", file, "/srv/docs/b.md"), None);
    assert_eq!(wider("script", file, "/etc/passwd"), None);
    assert_eq!(wider("file", "/home/ann/a.md", "/etc/passwd"), None);
    assert_eq!(wider("url", "https://a.com/x", "https://b.com/x"), None);
    let shape = Some("is 4 characters of the shape \"A-9\"".to_owned());
    assert_eq!(wider("id", "AB-1", "ABC-12"), shape);
    assert_eq!(wider("id", "AB-1", "AC-2"), None);
}

#[test]
fn a_renewal_shows_unlike_uses_first() {
    let read = |raw: &str| Arguments::read(raw.as_bytes()).unwrap();
    let approved = [read(r#"{"a":1,"b":2}"#)];
    let uses = [r#"{"a":1,"b":2}"#, r#"{"a":5,"b":2}"#, r#"{"a":6,"b":7}"#].map(read);
    let shown: Vec<&str> = unlike_first(&uses, &approved)
        .iter()
        .map(|one| one.text())
        .collect();
    assert_eq!(
        shown,
        [r#"{"a":6,"b":7}"#, r#"{"a":5,"b":2}"#, r#"{"a":1,"b":2}"#]
    );
    let many: Vec<Arguments> = (0..30).map(|at| read(&format!("{{\"a\":{at}}}"))).collect();
    assert_eq!(unlike_first(&many, &approved).len(), TABLE_ROWS_MAX);
}

#[test]
fn a_person_has_few_offers_and_none_in_a_hurry() {
    assert!(may_be_offered(OPEN_OFFERS_MAX - 1, &[]));
    assert!(!may_be_offered(OPEN_OFFERS_MAX, &[]));
    assert!(!may_be_offered(0, &[500; 20]));
}

#[test]
fn an_offer_shows_so_many_rejections_and_rows() {
    let rejected = PastVerdict::Rejected(RejectReason::Arguments);
    let far = (0..30).map(|at| {
        let arguments = format!(r#"{{"amount":{},"to":"acme"}}"#, 5_000 + at);
        decision(at, &arguments, rejected)
    });
    let far: Vec<RuleEvidence> = far.collect();
    let far: Vec<&RuleEvidence> = far.iter().collect();
    let (offer, _) = offered();
    assert_eq!(nearest(&offer.rule.when, &far).len(), NEAREST_MAX);
    let shown = differing(&far);
    assert_eq!((shown.rows.len(), shown.different), (TABLE_ROWS_MAX, 30));
}
