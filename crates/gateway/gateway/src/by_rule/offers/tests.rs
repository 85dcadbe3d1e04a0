//! Lessons of a participant, in a topic without servers: nothing can be offered there.

use std::collections::HashMap;
use std::sync::LazyLock;

use model::Capabilities;
use rules::{Arguments, PastVerdict, RejectReason};

use super::*;
use crate::by_rule::kept::{DecidedCall, RuleRecord};
use crate::by_rule::tests::Stage;

static YESTERDAY_MS: LazyLock<u64> = LazyLock::new(|| unix_ms() - DAY_MS);

const DIGEST: Digest = Digest([0xAB; 32]);

fn participant(name: &str) -> ParticipantId {
    ParticipantId::new(name).unwrap()
}

/// An approval of ann's, of a payment of scout's, a day ago.
fn approval(number: u64) -> RuleEvidence {
    RuleEvidence {
        operation: OperationId(number.into()),
        at_ms: *YESTERDAY_MS + number,
        tool: RuledTool {
            to: participant("bank"),
            method: "tools/call".into(),
            target: "pay".into(),
        },
        definition: Some(DIGEST),
        server: Some(DIGEST),
        proposer: participant("scout"),
        by: participant("ann"),
        rule: None,
        verdict: PastVerdict::Approved,
        weight: EvidenceWeight::Deliberate,
        arguments: Arguments::read(br#"{"amount":5}"#).unwrap(),
        redacted: Vec::new(),
        has_more: false,
    }
}

fn stage(decisions: impl IntoIterator<Item = RuleEvidence>) -> Stage {
    let record = |decision: RuleEvidence| {
        RuleRecord::Decided(DecidedCall {
            topic: "main".into(),
            decision: decision.into(),
        })
    };
    let records: Vec<RuleRecord> = decisions.into_iter().map(record).collect();
    Stage::restarted(&[], &records)
}

/// Calls with the reader that a participant is who may pay.
fn with_reader<T>(who: &str, ask: impl FnOnce(PastReader<'_>) -> T) -> T {
    let id = participant(who);
    let capabilities = Capabilities::parse(["mcp/request:tools/call:pay"]).unwrap();
    ask(PastReader {
        id: &id,
        capabilities: &capabilities,
        address: None,
    })
}

/// The decisions that teach a participant, and those that warn it.
fn lessons(stage: &Stage, who: &str) -> (Vec<OperationId>, usize) {
    with_reader(who, |reader| {
        let past = stage.dispatch.past_of(reader, 0).unwrap();
        let deadline = Instant::now() + OFFERS_TIME_MAX;
        let lessons = stage
            .dispatch
            .own_lessons(reader, &past, None, deadline)
            .unwrap();
        let teaching = lessons.iter().filter(|one| one.teaches());
        let teaching = teaching.map(|one| one.operation).collect();
        (teaching, lessons.iter().filter(|one| one.warns()).count())
    })
}

#[tokio::test]
async fn only_own_approvals_of_the_present_bearers_teach() {
    let rejected = RuleEvidence {
        verdict: PastVerdict::Rejected(RejectReason::Unsaid),
        weight: EvidenceWeight::Hasty,
        by: participant("bo"),
        ..approval(4)
    };
    let of_bo = RuleEvidence {
        by: participant("bo"),
        ..approval(3)
    };
    let stage = stage([approval(1), approval(2), of_bo, rejected]);
    let [one, two, three] = [1, 2, 3].map(OperationId);
    assert_eq!(lessons(&stage, "ann"), (vec![one, two], 1));
    assert_eq!(lessons(&stage, "bo"), (vec![three], 1));
    let bears = |name: &str, since_ms: u64| {
        let all = HashMap::from([(name.to_owned(), format!("a.{since_ms}"))]);
        stage.dispatch.context.sealer.incarnations().set(all);
    };
    for name in ["ann", "scout"] {
        bears(name, approval(2).at_ms);
        assert_eq!(lessons(&stage, "ann"), (vec![two], 1), "{name}");
        bears(name, unix_ms());
        assert_eq!(lessons(&stage, "ann"), (vec![], 1), "{name}");
    }
}

#[tokio::test]
async fn an_approval_makes_one_rule() {
    let stage = stage([approval(1), approval(2)]);
    with_reader("ann", |reader| {
        let decisions: Vec<RuleEvidence> = (1..=3).map(approval).collect();
        let lessons = Lessons {
            reader,
            decisions,
            known: RuleSet::default(),
            now_ms: unix_ms(),
            deadline: Instant::now() + OFFERS_TIME_MAX,
        };
        let learned = lessons.learn().unwrap();
        let [candidate] = learned.ready.try_into().unwrap();
        let offered = lessons.offer(&candidate).unwrap();
        let rule = offered.offer.rule;
        assert!(rule.name.id.is_learned(), "{rule:?}");
        assert_eq!(offered.offer.digest, rule.digest());
        assert_eq!(rule.uses, Some(3));
        let again = lessons.offer(&candidate).unwrap().offer;
        assert_eq!(again.digest, rule.digest(), "the same on one day");
        let ledgers = stage.dispatch.kept().unwrap();
        stage
            .dispatch
            .rules
            .dismiss(ledgers, &rule, None, approval(1).at_ms)
            .unwrap();
    });
    assert_eq!(lessons(&stage, "ann").0, [OperationId(2)]);
}

#[tokio::test]
async fn offers_are_not_made_for_ever() {
    let stage = stage((1..4).map(approval));
    with_reader("ann", |reader| {
        let refused = stage.dispatch.offers_within(reader, Duration::ZERO);
        assert_eq!(refused.unwrap_err().code, RefusalCode::Overloaded);
        // No server lists the tool.
        let offers = stage.dispatch.rule_offers(reader).unwrap();
        assert!(offers.offers.is_empty());
        assert!(
            stage
                .dispatch
                .rule_offers(reader)
                .unwrap()
                .withheld
                .is_empty()
        );
    });
}

#[tokio::test]
async fn a_reviewer_in_a_hurry_is_offered_nothing() {
    let stage = stage((1..4).map(approval));
    let showings = &stage.dispatch.showings;
    let ann = participant("ann");
    let decided = crate::proposals::showings::ShownText {
        proposal: OperationId(9),
        digest: DIGEST,
    };
    for now_ms in 0..20 {
        showings.measure(&ann, decided, now_ms);
    }
    with_reader("ann", |reader| {
        let withheld = stage.dispatch.rule_offers(reader).unwrap().withheld;
        let why = "your last decisions all took less than 2 seconds";
        assert_eq!(withheld.len(), 1);
        assert_eq!(withheld[0].why, why);
    });
    with_reader("bo", |reader| {
        assert!(
            stage
                .dispatch
                .rule_offers(reader)
                .unwrap()
                .withheld
                .is_empty()
        );
    });
}
