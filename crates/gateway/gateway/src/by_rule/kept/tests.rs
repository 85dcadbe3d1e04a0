use model::{OperationId, ParticipantId};
use rules::{
    Arguments, CallStage, Decimal, EVIDENCE_MAX, EVIDENCE_MS, EvidenceWeight, PastVerdict, Pointer,
    RejectReason, RuleCharge, RuleDecision, RuleTotals, RuledTool, ShadowEnd, ShadowMark,
    ShadowTally, ShadowTotals, ShadowedCall, SpotEnd, SpotTally, SpotTotals,
};

use super::record::{CarriedRule, ChargedRule};
use super::shadow::Shadowed;
use super::*;

fn accepted(rule: &str, digest: u8) -> RuleRecord {
    RuleRecord::Accepted(AcceptedRule {
        topic: "main".into(),
        rule: rule.parse().unwrap(),
        digest: Digest([digest; 32]),
        at_ms: 5,
        bearers: [("scout".to_owned(), format!("i{digest}"))].into(),
        learned: None,
        by_hand: false,
    })
}

fn suspended(rule: &str, cause: SuspendCause, at_ms: u64) -> RuleRecord {
    RuleRecord::Suspended(SuspendedRule {
        topic: "main".into(),
        rule: rule.parse().unwrap(),
        cause,
        at_ms,
    })
}

/// The rule of ann's that was learned under this id.
fn learned(id: &str) -> LearnedText {
    let digest = "ab".repeat(32);
    let text = format!(
        "[[rule]]\nid = \"{id}\"\nversion = 1\nauthor = \"ann\"\ndecision = \"approve\"\n\
         kind = \"mcp/request:tools/call:pay\"\nto = \"bank\"\nproposers = [\"scout\"]\n\
         definition = \"{digest}\"\nserver = \"{digest}\"\nexpires = \"2026-12-06T00:00:00Z\"\nuses = 5\n"
    );
    LearnedText::try_from(text).unwrap()
}

fn accepted_learned(id: &str, at_ms: u64) -> RuleRecord {
    let rule = learned(id);
    RuleRecord::Accepted(AcceptedRule {
        topic: "main".into(),
        rule: rule.0.name.clone(),
        digest: rule.0.digest(),
        at_ms,
        bearers: BTreeMap::new(),
        learned: Some(rule),
        by_hand: false,
    })
}

fn ended(rule: &str, at_ms: u64) -> RuleRecord {
    RuleRecord::Ended(EndedRule {
        topic: "main".into(),
        rule: rule.parse().unwrap(),
        by: "ann".into(),
        at_ms,
    })
}

fn dismissed(id: &str, at_ms: u64) -> RuleRecord {
    RuleRecord::Dismissed(DismissedOffer {
        topic: "main".into(),
        rule: learned(id),
        at_ms,
    })
}

fn charged(rule: &str, operation: u128) -> RuleRecord {
    RuleRecord::Charged(ChargedRule {
        topic: "main".into(),
        charge: RuleCharge {
            rule: rule.parse().unwrap(),
            operation: OperationId(operation),
            at_ms: 7,
            is_use: true,
            amounts: vec![(
                Pointer::parse("/amount").unwrap(),
                Decimal::parse("2.5").unwrap(),
            )],
            values: vec![(Pointer::parse("/repo").unwrap(), "\"a\"".into())],
            keep_ms: 8,
        },
    })
}

fn carried() -> RuleRecord {
    RuleRecord::Carried(CarriedRule {
        topic: "main".into(),
        totals: RuleTotals {
            rule: "r1.2".parse().unwrap(),
            uses: 3,
            draws: 4,
            last_use_ms: Some(7),
            outcomes: vec![(OperationId(9), true)],
            checks: SpotTotals {
                open: vec![(OperationId(9), 2)],
                owed: 1,
                tally: SpotTally {
                    decided: 2,
                    agreed: 1,
                },
                ended: vec![OperationId(9)],
            },
            shadow: ShadowTotals::default(),
            full_until_ms: 8,
            latest_ms: 9,
        },
    })
}

/// The totals of a rule in shadow: of each count another number.
fn carried_shadow() -> RuleRecord {
    let mark = |decision| ShadowMark {
        version: 2,
        decision,
    };
    let RuleRecord::Carried(mut carried) = carried() else {
        panic!("another record");
    };
    carried.totals.checks = SpotTotals::default();
    carried.totals.shadow = ShadowTotals {
        open: vec![(OperationId(9), mark(None))],
        ended: vec![(OperationId(9), mark(Some(RuleDecision::Ask)))],
        tally: ShadowTally {
            proposals: 1,
            waiting: 0,
            approved: 2,
            edited: 3,
            rejected: 4,
            by_rules: 5,
            undecided: 6,
            left: 7,
            left_by_rules: 8,
            held: 9,
            refused: 10,
        },
    };
    RuleRecord::Carried(carried)
}

fn shadowed(stage: CallStage, decision: Option<RuleDecision>) -> RuleRecord {
    RuleRecord::Shadowed(Shadowed {
        topic: "main".into(),
        call: ShadowedCall {
            rule: "r1.2".parse().unwrap(),
            operation: OperationId(9),
            stage,
            decision,
        },
    })
}

fn seeded(byte: u8) -> RuleRecord {
    RuleRecord::Seeded(SpotSeed {
        topic: "main".into(),
        seed: Digest([byte; 32]),
    })
}

fn spotted(rule: &str, operation: u128) -> RuleRecord {
    RuleRecord::Spotted(SpottedCall {
        topic: "main".into(),
        rule: rule.parse().unwrap(),
        operation: OperationId(operation),
    })
}

fn participant(name: &str) -> ParticipantId {
    ParticipantId::new(name).unwrap()
}

fn decision(operation: u128, verdict: PastVerdict) -> RuleEvidence {
    RuleEvidence {
        operation: OperationId(operation),
        at_ms: 7,
        tool: RuledTool {
            to: participant("bank"),
            method: "tools/call".into(),
            target: "pay".into(),
        },
        definition: Some(Digest([1; 32])),
        server: None,
        proposer: participant("scout"),
        by: participant("ann"),
        rule: None,
        verdict,
        weight: EvidenceWeight::Hasty,
        arguments: Arguments::read(br#"{"amount":5}"#).unwrap(),
        redacted: Vec::new(),
        has_more: false,
    }
}

fn decided(decision: RuleEvidence) -> RuleRecord {
    RuleRecord::Decided(DecidedCall {
        topic: "main".into(),
        decision: decision.into(),
    })
}

fn folded(records: &[RuleRecord]) -> KeptRules {
    let mut kept = KeptRules::default();
    records.iter().for_each(|record| kept.apply(record));
    kept
}

#[test]
fn records_have_their_golden_lines() {
    let id = format!("{:032x}", 9);
    let digest = "01".repeat(32);
    for (record, line) in [
        (
            accepted("r1.2", 1),
            format!(
                r#"{{"record":"accepted","topic":"main","rule":"r1.2","digest":"{digest}","at_ms":5,"bearers":{{"scout":"i1"}}}}"#
            ),
        ),
        (
            accepted_learned("learned-1", 5),
            format!(
                r#"{{"record":"accepted","topic":"main","rule":"learned-1.1","digest":"{}","at_ms":5,"learned":{}}}"#,
                learned("learned-1").0.digest(),
                serde_json::to_string(&learned("learned-1").0.text()).unwrap()
            ),
        ),
        (
            ended("learned-1.1", 6),
            r#"{"record":"ended","topic":"main","rule":"learned-1.1","by":"ann","at_ms":6}"#
                .to_owned(),
        ),
        (
            dismissed("learned-2", 6),
            format!(
                r#"{{"record":"dismissed","topic":"main","rule":{},"at_ms":6}}"#,
                serde_json::to_string(&learned("learned-2").0.text()).unwrap()
            ),
        ),
        (
            suspended("r1.2", SuspendCause::BearerReplaced("scout".into()), 6),
            r#"{"record":"suspended","topic":"main","rule":"r1.2","cause":"bearer_replaced:scout","at_ms":6}"#
                .to_owned(),
        ),
        (
            carried(),
            format!(
                r#"{{"record":"carried","topic":"main","rule":"r1.2","uses":3,"draws":4,"last_use_ms":7,"outcomes":[["{id}",true]],"checks":["{id}"],"open":[["{id}",2]],"owed":1,"checked":2,"agreed":1,"full_until_ms":8,"latest_ms":9}}"#
            ),
        ),
        (
            carried_shadow(),
            format!(
                r#"{{"record":"carried","topic":"main","rule":"r1.2","uses":3,"draws":4,"last_use_ms":7,"outcomes":[["{id}",true]],"shadow":{{"open":[["{id}",2,null]],"ended":[["{id}",2,"ask"]],"counts":[1,2,3,4,5,6,7,8,9,10]}},"full_until_ms":8,"latest_ms":9}}"#
            ),
        ),
        (
            shadowed(CallStage::Proposed, None),
            format!(
                r#"{{"record":"shadowed","topic":"main","rule":"r1.2","operation":"{id}"}}"#
            ),
        ),
        (
            shadowed(CallStage::Direct, Some(RuleDecision::Reject)),
            format!(
                r#"{{"record":"shadowed","topic":"main","rule":"r1.2","operation":"{id}","direct":true,"decision":"reject"}}"#
            ),
        ),
        (
            RuleRecord::ShadowEnded(ShadowEnded {
                topic: "main".into(),
                operation: OperationId(9),
                end: ShadowEnd::ByRule,
            }),
            format!(
                r#"{{"record":"shadow_ended","topic":"main","operation":"{id}","end":"by_rule"}}"#
            ),
        ),
        (
            seeded(1),
            format!(r#"{{"record":"seeded","topic":"main","seed":"{digest}"}}"#),
        ),
        (
            spotted("r1.2", 9),
            format!(
                r#"{{"record":"spotted","topic":"main","rule":"r1.2","operation":"{id}"}}"#
            ),
        ),
        (
            RuleRecord::Checked(CheckedSpot {
                topic: "main".into(),
                operation: OperationId(9),
                end: SpotEnd::Agreed,
            }),
            format!(
                r#"{{"record":"checked","topic":"main","operation":"{id}","end":"agreed"}}"#
            ),
        ),
        (
            charged("r1.2", 9),
            format!(
                r#"{{"record":"charged","topic":"main","rule":"r1.2","operation":"{id}","at_ms":7,"is_use":true,"amounts":[["/amount","2.5"]],"values":[["/repo","\"a\""]],"keep_ms":8}}"#
            ),
        ),
        (
            RuleRecord::Returned(ReturnedUse {
                topic: "main".into(),
                operation: OperationId(9),
            }),
            format!(r#"{{"record":"returned","topic":"main","operation":"{id}"}}"#),
        ),
        (
            RuleRecord::UseEnded(EndedUse {
                topic: "main".into(),
                operation: OperationId(9),
                failed: true,
            }),
            format!(r#"{{"record":"use_ended","topic":"main","operation":"{id}","failed":true}}"#),
        ),
        (
            decided(decision(9, PastVerdict::Approved)),
            format!(
                r#"{{"record":"decided","topic":"main","operation":"{id}","at_ms":7,"to":"bank","method":"tools/call","target":"pay","definition":"{digest}","proposer":"scout","by":"ann","verdict":"approved","weight":"hasty","arguments":"{{\"amount\":5}}"}}"#
            ),
        ),
        (
            decided(RuleEvidence {
                definition: None,
                server: Some(Digest([1; 32])),
                rule: Some("r1.2".parse().unwrap()),
                weight: EvidenceWeight::None,
                arguments: Arguments::read(br#"{"token":"[redacted]"}"#).unwrap(),
                redacted: vec![Pointer::parse("/token").unwrap()],
                has_more: true,
                ..decision(9, PastVerdict::Rejected(RejectReason::Unsaid))
            }),
            format!(
                r#"{{"record":"decided","topic":"main","operation":"{id}","at_ms":7,"to":"bank","method":"tools/call","target":"pay","server":"{digest}","proposer":"scout","by":"ann","rule":"r1.2","verdict":"rejected","weight":"none","arguments":"{{\"token\":\"[redacted]\"}}","redacted":["/token"],"has_more":true}}"#
            ),
        ),
    ] {
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
        assert_eq!(serde_json::from_str::<RuleRecord>(&line).unwrap(), record);
    }
}

#[test]
fn a_compacted_journal_folds_to_the_same_rules() {
    let use_ended = RuleRecord::UseEnded(EndedUse {
        topic: "main".into(),
        operation: OperationId(9),
        failed: true,
    });
    let mut kept = folded(&[
        accepted("r1.1", 1),
        charged("r1.1", 9),
        use_ended,
        suspended("r1.1", SuspendCause::Failing, 6),
        suspended("r1.1", SuspendCause::Expired, 7),
        suspended("r1.1", SuspendCause::Dormant, 8),
        accepted("r2.1", 2),
        charged("r2.1", 10),
        accepted_learned("learned-1", 5),
        accepted_learned("learned-2", 6),
        ended("learned-2.1", 7),
        dismissed("learned-3", 8),
        accepted_learned("learned-4", 9),
        suspended("learned-4.1", SuspendCause::Expired, 10),
        seeded(1),
        spotted("learned-4.1", 11),
        // The first one counts.
        seeded(2),
    ]);
    let records = kept.records(0);
    assert_eq!(records.len(), kept.live());
    let texts: Vec<String> = records
        .iter()
        .map(|record| serde_json::to_string(record).unwrap())
        .collect();
    let read: Vec<RuleRecord> = texts
        .iter()
        .map(|text| serde_json::from_str(text).unwrap())
        .collect();
    assert_eq!(folded(&read), kept);
    let book = kept.of_topic("main");
    let life = book.life(&RuleId::new("r1").unwrap()).unwrap();
    // As the life of a rule is: the first of the gravest causes.
    let expect = Suspension {
        cause: &SuspendCause::Expired,
        at_ms: 7,
    };
    assert_eq!(life.suspension(), Some(expect));
    assert_eq!(book.spent.uses(&"r1.1".parse().unwrap()), 1);
    assert_eq!(book.spent.failures(&"r1.1".parse().unwrap()), 1);
}

/// The ids of the learned rules that have not ended.
fn learned_ids(book: &RuleBook) -> Vec<String> {
    let learned = book.learned();
    learned
        .iter()
        .map(|rule| rule.name.id.to_string())
        .collect()
}

#[test]
fn a_learned_rule_is_there_from_its_acceptance_to_its_end() {
    let mut kept = folded(&[
        dismissed("learned-3", 4),
        suspended("learned-1.1", SuspendCause::Expired, 4),
    ]);
    let book = |kept: &KeptRules| kept.of_topic("main");
    assert_eq!(learned_ids(&book(&kept)), [""; 0]);
    kept.apply(&accepted_learned("learned-2", 6));
    kept.apply(&accepted_learned("learned-1", 5));
    assert_eq!(learned_ids(&book(&kept)), ["learned-1", "learned-2"]);
    kept.apply(&suspended("learned-1.1", SuspendCause::Dormant, 7));
    kept.apply(&ended("learned-1.2", 8));
    assert_eq!(learned_ids(&book(&kept)), ["learned-1", "learned-2"]);
    kept.apply(&ended("learned-1.1", 8));
    // An end is final, and what comes late changes nothing.
    kept.apply(&accepted_learned("learned-1", 9));
    kept.apply(&suspended("learned-1.1", SuspendCause::Dormant, 9));
    assert_eq!(learned_ids(&book(&kept)), ["learned-2"]);
    let life = book(&kept);
    let life = life.life(&RuleId::new("learned-1").unwrap()).unwrap();
    assert!(life.has_ended() && life.suspension().is_none());
    let mut used: Vec<_> = book(&kept).used_up().iter().map(|one| one.at_ms).collect();
    used.sort_unstable();
    assert_eq!(used, [4, 5, 6]);
}

#[test]
fn ended_rules_and_dismissed_offers_are_forgotten_with_their_decisions() {
    let mut kept = folded(&[
        accepted_learned("learned-1", 5),
        ended("learned-1.1", 7),
        accepted_learned("learned-2", 5),
        dismissed("learned-3", 7),
    ]);
    let used = |kept: &KeptRules| kept.of_topic("main").used_up().len();
    let _ = kept.records(7 + EVIDENCE_MS);
    assert_eq!(used(&kept), 3);
    let records = kept.records(8 + EVIDENCE_MS);
    assert_eq!((used(&kept), records.len(), kept.live()), (1, 1, 1));
    assert_eq!(folded(&records), kept);
}

#[test]
fn a_suspension_ends_with_the_next_version_alone() {
    let mut kept = folded(&[
        accepted("r1.1", 1),
        suspended("r1.1", SuspendCause::Dormant, 6),
    ]);
    kept.apply(&accepted("r1.1", 1));
    let life = |kept: &KeptRules| {
        let book = kept.of_topic("main");
        book.life(&RuleId::new("r1").unwrap()).unwrap().clone()
    };
    assert!(life(&kept).suspension().is_some());
    kept.apply(&accepted("r1.2", 3));
    assert!(life(&kept).suspension().is_none());
    // One of the version before comes too late.
    kept.apply(&suspended("r1.1", SuspendCause::Expired, 9));
    assert!(life(&kept).suspension().is_none());
    kept.apply(&accepted("r1.1", 1));
    assert_eq!(life(&kept).digest, Digest([3; 32]));
}

#[test]
fn a_compaction_drops_charges_that_no_guard_needs() {
    let day_ms = 24 * 3_600_000;
    let mut kept = folded(&[accepted("r1.1", 1), charged("r1.1", 9)]);
    let is_charge = |record: &RuleRecord| matches!(record, RuleRecord::Charged(_));
    assert!(kept.records(7 + day_ms).iter().any(is_charge));
    let records = kept.records(8 + day_ms);
    assert!(!records.iter().any(is_charge), "{records:?}");
    assert_eq!(records.len(), kept.live());
    assert_eq!(folded(&records), kept);
    let uses = kept.of_topic("main").spent.uses(&"r1.1".parse().unwrap());
    assert_eq!(uses, 1);
}

#[test]
fn a_cause_in_words_is_no_record() {
    let line =
        r#"{"record":"suspended","topic":"main","rule":"r1.2","cause":"its end came","at_ms":6}"#;
    assert!(serde_json::from_str::<RuleRecord>(line).is_err());
}

#[test]
fn decisions_are_kept_in_their_order_to_their_limit_and_their_end() {
    let mut kept = KeptRules::default();
    for operation in 0..=u128::try_from(EVIDENCE_MAX).unwrap() {
        let verdict = match operation {
            0 => PastVerdict::Rejected(RejectReason::Unsaid),
            1 => PastVerdict::Approved,
            _ => PastVerdict::Expired,
        };
        kept.apply(&decided(decision(operation, verdict)));
    }
    let operations = |kept: &KeptRules| -> Vec<u128> {
        let decisions = kept.decisions_of("main");
        decisions.iter().map(|one| one.operation.0).collect()
    };
    // The rejection stays, and the oldest of the others has made way.
    assert_eq!(operations(&kept)[..3], [0, 2, 3]);
    assert_eq!(kept.decisions_of("other").len(), 0);
    let records = kept.records(7);
    assert_eq!((records.len(), kept.live()), (EVIDENCE_MAX, EVIDENCE_MAX));
    assert_eq!(folded(&records), kept);
    // A topic that decides nothing more forgets what it has.
    assert_eq!(kept.records(8 + EVIDENCE_MS).len(), 0);
    assert_eq!(kept, KeptRules::default());
}

#[test]
fn decisions_change_no_rule() {
    let of_rules = [accepted("r1.1", 1), charged("r1.1", 9)];
    let mut kept = folded(&of_rules);
    let book = kept.of_topic("main");
    kept.apply(&decided(decision(9, PastVerdict::Approved)));
    assert_eq!(kept.of_topic("main"), book);
    assert_eq!(kept.live(), folded(&of_rules).live() + 1);
}

#[test]
fn a_decision_whose_arguments_cannot_be_read_is_no_record() {
    let line = serde_json::to_string(&decided(decision(9, PastVerdict::Approved))).unwrap();
    for (whole, wrong) in [
        (r#"{\"amount\":5}"#, "[]"),
        (r#""approved""#, r#""agreed""#),
        (r#""hasty""#, r#""heavy""#),
        (r#""scout""#, r#""system""#),
    ] {
        let changed = line.replace(whole, wrong);
        assert_ne!(changed, line);
        assert!(
            serde_json::from_str::<RuleRecord>(&changed).is_err(),
            "{changed}"
        );
    }
}

#[test]
fn a_rule_that_was_added_by_hand_is_forgotten_once_it_is_over() {
    let end_ms = 1_796_515_200_000;
    let RuleRecord::Accepted(learned) = accepted_learned("like-1", end_ms - 1_000) else {
        panic!("another record");
    };
    let added = RuleRecord::Accepted(AcceptedRule {
        by_hand: true,
        ..learned
    });
    let mut book = RuleBook::default();
    book.apply(&added);
    assert_eq!(book.learned().len(), 1);
    assert_eq!(book.records("main"), [added]);
    assert!(book.used_up().is_empty(), "no decision taught it");
    book.drop_old(end_ms - 1);
    assert_eq!(book.authors_by_hand().count(), 1);
    book.drop_old(end_ms);
    assert_eq!(book.authors_by_hand().count(), 0);
    assert!(book.learned().is_empty() && book.life(&RuleId::new("like-1").unwrap()).is_none());
}
