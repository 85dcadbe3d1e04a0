//! Acceptances, rejections and ends of learned rules, at the desk alone.

use model::OperationId;
use rules::{Arguments, EvidenceWeight, PastVerdict, RejectReason, RuledTool, parse_rules};
use store::JournalWriter;
use tempfile::{TempDir, tempdir};

use super::*;
use crate::by_rule::desk::RuleStanding;
use crate::by_rule::kept::{KeptRules, RuleBook};

const NOW_MS: u64 = 1_795_780_800_000;

struct Stage {
    desk: RuleDesk,
    ledgers: TopicLedgers,
    folder: TempDir,
}

impl Stage {
    fn new() -> Self {
        let folder = tempdir().unwrap();
        let journal = JournalWriter::open(folder.path()).unwrap();
        let ledgers = TopicLedgers::open(&journal).unwrap();
        let desk = RuleDesk::open("main", Some(&ledgers));
        Self {
            desk,
            ledgers,
            folder,
        }
    }

    fn accept(&self, rule: &CallRule) -> Result<(), Refusal> {
        self.accept_beside(rule, self.desk.seen_rejections().unwrap())
    }

    fn accept_beside(&self, rule: &CallRule, seen: SeenRejections) -> Result<(), Refusal> {
        self.desk.accept(&self.ledgers, accepted(rule, None, seen))
    }

    /// Accepts the next version of a rule.
    fn renew(&self, next: &CallRule, before: &RuleName) -> Result<(), Refusal> {
        let seen = self.desk.seen_rejections().unwrap();
        self.desk
            .accept(&self.ledgers, accepted(next, Some(before.clone()), seen))
    }

    /// Takes all places in the journal's queue, also those that writes of before give back.
    fn full_queue(&self) -> Vec<store::JournalPermit<KeptRules>> {
        let mut permits = Vec::new();
        while permits.len() < store::WRITER_PERMITS_MAX {
            match self.ledgers.rules.reserve() {
                Ok(permit) => permits.push(permit),
                Err(_) => std::thread::yield_now(),
            }
        }
        permits
    }

    /// The ids of the rules that match calls.
    fn matching(&self) -> Vec<String> {
        let state = self.desk.lock();
        let rules = state.set.rules().iter();
        rules.map(|rule| rule.name.id.to_string()).collect()
    }

    /// The rules as the journal has them.
    fn journaled(&self) -> RuleBook {
        self.ledgers.rules.append(&[]).unwrap();
        self.ledgers.rules.state(|kept| kept.of_topic("main"))
    }
}

fn accepted<'o>(
    rule: &CallRule,
    renews: Option<RuleName>,
    seen: SeenRejections,
) -> AcceptedOffer<'o> {
    static NONE: std::sync::LazyLock<Incarnations> =
        std::sync::LazyLock::new(Incarnations::default);
    AcceptedOffer {
        by_hand: false,
        rule: rule.clone(),
        renews,
        seen,
        incarnations: &NONE,
        at_ms: NOW_MS,
    }
}

/// The next version of a rule.
fn next_of(rule: &CallRule) -> CallRule {
    let mut next = rule.clone();
    next.name.version += 1;
    next.uses = Some(9);
    next
}

/// A rule that approves payments up to 100 by scout.
fn rule(id: &str, author: &str) -> CallRule {
    let digest = "ab".repeat(32);
    let text = format!(
        "[[rule]]\nid = \"{id}\"\nauthor = \"{author}\"\ndecision = \"approve\"\n\
         kind = \"mcp/request:tools/call:{id}\"\nto = \"bank\"\nproposers = [\"scout\"]\n\
         definition = \"{digest}\"\nserver = \"{digest}\"\nexpires = \"2026-12-06T00:00:00Z\"\nuses = 5\n\
         [rule.when]\n\"/amount\" = {{ integer = [1, 100] }}\n"
    );
    parse_rules(&text).unwrap().remove(0)
}

/// A rejection of a payment, by a tool of this name.
fn rejection(tool: &str, amount: u64) -> RuleEvidence {
    let participant = |name: &str| ParticipantId::new(name).unwrap();
    RuleEvidence {
        operation: OperationId(7),
        at_ms: NOW_MS,
        tool: RuledTool {
            to: participant("bank"),
            method: "tools/call".into(),
            target: tool.into(),
        },
        definition: None,
        server: None,
        proposer: participant("dave"),
        by: participant("boss"),
        rule: None,
        verdict: PastVerdict::Rejected(RejectReason::Unsaid),
        weight: EvidenceWeight::Hasty,
        arguments: Arguments::read(format!("{{\"amount\":{amount}}}").as_bytes()).unwrap(),
        redacted: Vec::new(),
        has_more: false,
    }
}

#[test]
fn a_rule_is_in_force_once_the_journal_has_its_acceptance() {
    let stage = Stage::new();
    let one = rule("learned-1", "ann");
    let permits = stage.full_queue();
    let refused = stage.accept(&one).unwrap_err();
    assert_eq!(refused.code, RefusalCode::LogUnavailable);
    assert_eq!(stage.matching(), [""; 0]);
    assert!(!stage.desk.judges());
    drop(permits);
    stage.accept(&one).unwrap();
    assert_eq!(stage.matching(), ["learned-1"]);
    assert!(stage.desk.judges());
    assert_eq!(stage.journaled(), stage.desk.lock().book);
    // Once, and also not in the name of another.
    for again in [&one, &rule("learned-1", "bo")] {
        let refused = stage.accept(again).unwrap_err();
        assert_eq!(refused.code, RefusalCode::Conflict);
    }
    drop(stage.desk);
    let reopened = RuleDesk::open("main", Some(&stage.ledgers));
    assert!(!reopened.judges(), "until the configuration is there");
    reopened.put_in_force(&[], true, &Incarnations::default(), NOW_MS);
    assert!(reopened.judges());
    assert_eq!(reopened.lock().set.rules(), [one]);
    reopened.put_in_force(&[], false, &Incarnations::default(), NOW_MS);
    assert!(!reopened.judges(), "in a topic that is over");
    assert!(stage.folder.path().exists());
}

#[test]
fn a_rejection_suspends_the_learned_rules_that_cover_it_and_no_other() {
    let stage = Stage::new();
    let mut of_file = rule("r1", "ann");
    of_file.scope.target = Some("learned-1".into());
    stage
        .desk
        .put_in_force(&[of_file], true, &Incarnations::default(), NOW_MS);
    for id in ["learned-1", "learned-2"] {
        stage.accept(&rule(id, "ann")).unwrap();
    }
    for (tool, amount) in [("learned-1", 101), ("learned-3", 5)] {
        assert_eq!(
            stage
                .desk
                .contradict(&rejection(tool, amount), &BTreeSet::new(), NOW_MS),
            []
        );
        stage.desk.rejection_written();
    }
    assert_eq!(stage.matching().len(), 3);
    let records = stage
        .desk
        .contradict(&rejection("learned-1", 5), &BTreeSet::new(), NOW_MS);
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!(stage.matching(), ["learned-2", "r1"]);
    let suspended = rule("learned-1", "ann");
    assert!(matches!(
        stage.desk.lock().standing(&suspended),
        RuleStanding::Suspended {
            cause: SuspendCause::Contradicted(OperationId(7)),
            ..
        }
    ));
    // Once is enough.
    assert_eq!(
        stage
            .desk
            .contradict(&rejection("learned-1", 6), &BTreeSet::new(), NOW_MS),
        []
    );
}

/// The causes for which a rule of ann's about payments up to 100 is suspended by a rejection of 101.
fn suspended_beside(
    reason: RejectReason,
    approved_by: &[&str],
    by_hand: bool,
) -> Vec<SuspendCause> {
    let stage = Stage::new();
    let seen = stage.desk.seen_rejections().unwrap();
    let one = rule("learned-1", "ann");
    let offer = AcceptedOffer {
        by_hand,
        ..accepted(&one, None, seen)
    };
    stage.desk.accept(&stage.ledgers, offer).unwrap();
    assert_eq!(
        stage.desk.has_taught(&rejection("learned-1", 101).tool),
        !by_hand
    );
    let rejected = RuleEvidence {
        verdict: PastVerdict::Rejected(reason),
        ..rejection("learned-1", 101)
    };
    let approved_by = approved_by
        .iter()
        .map(|name| ParticipantId::new(name).unwrap());
    let records = stage
        .desk
        .contradict(&rejected, &approved_by.collect(), NOW_MS);
    let causes = records.into_iter().map(|record| match record {
        RuleRecord::Suspended(suspended) => suspended.cause,
        other => panic!("{other:?}"),
    });
    let causes: Vec<SuspendCause> = causes.collect();
    assert_eq!(stage.matching().is_empty(), !causes.is_empty());
    causes
}

#[test]
fn a_rejection_for_no_argument_suspends_what_was_learned_of_its_tool() {
    let quarantined = [SuspendCause::ToolQuarantined];
    let (context, arguments) = (RejectReason::Context, RejectReason::Arguments);
    assert_eq!(suspended_beside(context, &[], false), quarantined);
    assert_eq!(suspended_beside(arguments, &["ann"], false), quarantined);
    // Approvals of others taught it nothing, and what was written by hand rests on none.
    assert_eq!(suspended_beside(arguments, &["bo"], false), []);
    assert_eq!(suspended_beside(arguments, &[], false), []);
    assert_eq!(suspended_beside(context, &["ann"], true), []);
}

#[test]
fn a_rejection_during_an_acceptance_is_not_overlooked() {
    let stage = Stage::new();
    let one = rule("learned-1", "ann");
    let seen = stage.desk.seen_rejections().unwrap();
    stage
        .desk
        .contradict(&rejection("learned-1", 5), &BTreeSet::new(), NOW_MS);
    // It is being written: the offer may be another one then.
    assert_eq!(stage.desk.seen_rejections(), None);
    let refused = stage.accept_beside(&one, seen).unwrap_err();
    assert_eq!(refused.code, RefusalCode::Conflict);
    stage.desk.rejection_written();
    let refused = stage.accept_beside(&one, seen).unwrap_err();
    assert_eq!(refused.code, RefusalCode::Conflict);
    assert!(stage.desk.lock().accepting.is_empty());
    // One that comes while the acceptance is being written.
    stage.desk.lock().accepting.push(AcceptingRule {
        rule: Arc::new(one.clone()),
        is_taught: true,
        contradicted: None,
    });
    let records = stage
        .desk
        .contradict(&rejection("learned-1", 5), &BTreeSet::new(), NOW_MS);
    assert_eq!(records.len(), 1, "{records:?}");
    let accepting = stage.desk.lock().accepted(&one.name).unwrap();
    assert!(accepting.contradicted.is_some());
}

#[test]
fn no_more_rules_are_learned_than_the_limit_and_of_one_author_than_its_share() {
    let stage = Stage::new();
    let share = default_share(LEARNED_RULES_MAX);
    let dismiss = |author: &str, count: usize| {
        let records: Vec<RuleRecord> = (0..count)
            .map(|_| {
                RuleRecord::Dismissed(DismissedOffer {
                    topic: "main".into(),
                    rule: LearnedText(Arc::new(rule("learned-1", author))),
                    at_ms: NOW_MS,
                })
            })
            .collect();
        records.iter().for_each(|record| stage.desk.apply(record));
    };
    let is_full = |author: &str| {
        let dismissed =
            stage
                .desk
                .dismiss(&stage.ledgers, &rule("learned-2", author), None, NOW_MS);
        dismissed.is_err_and(|refusal| refusal.code == RefusalCode::Overloaded)
    };
    dismiss("ann", share - 1);
    assert!(!is_full("ann"));
    assert!(is_full("ann"));
    assert!(!is_full("bo"));
    for author in ["cid", "dee"] {
        dismiss(author, share);
    }
    dismiss("eve", share - 2);
    assert!(!is_full("bo"));
    assert!(is_full("bo"), "{LEARNED_RULES_MAX} in all");
    let refused = stage.accept(&rule("learned-2", "bo")).unwrap_err();
    assert_eq!(refused.code, RefusalCode::Overloaded);
}

#[test]
fn a_rule_that_does_not_fit_beside_those_of_a_file_is_refused() {
    let stage = Stage::new();
    stage.accept(&rule("learned-1", "ann")).unwrap();
    let crowd: Vec<CallRule> = (0..rules::TOOL_RULES_MAX)
        .map(|at| {
            let mut one = rule(&format!("r{at}"), "ann");
            one.scope.target = Some("learned-1".into());
            one
        })
        .collect();
    let incarnations = Incarnations::default();
    stage.desk.put_in_force(&crowd, true, &incarnations, NOW_MS);
    assert_eq!(stage.matching().len(), rules::TOOL_RULES_MAX);
    let standing = stage.desk.lock().standing(&rule("learned-1", "ann"));
    assert!(matches!(standing, RuleStanding::Refused(_)), "{standing:?}");
    stage
        .desk
        .put_in_force(&crowd[1..], true, &incarnations, NOW_MS);
    let standing = stage.desk.lock().standing(&rule("learned-1", "ann"));
    assert_eq!(standing, RuleStanding::InForce);
}

#[test]
fn an_ended_rule_decides_nothing_any_more() {
    let stage = Stage::new();
    let (one, two) = (rule("learned-1", "ann"), rule("learned-2", "ann"));
    let boss = ParticipantId::new("boss").unwrap();
    let end = |rule: &CallRule| stage.desk.end(&stage.ledgers, &rule.name, &boss, NOW_MS);
    for rule in [&one, &two] {
        stage.accept(rule).unwrap();
    }
    end(&one).unwrap();
    assert_eq!(stage.matching(), ["learned-2"]);
    let refused = end(&one).unwrap_err();
    assert_eq!(refused.code, RefusalCode::UnknownTarget);
    assert_eq!(stage.journaled(), stage.desk.lock().book);
    // No offer has its id again.
    let refused = stage.accept(&one).unwrap_err();
    assert_eq!(refused.code, RefusalCode::Conflict);
    end(&two).unwrap();
    assert!(!stage.desk.judges());
    stage
        .desk
        .put_in_force(&[], true, &Incarnations::default(), NOW_MS);
    assert_eq!(stage.matching(), [""; 0]);
}

#[test]
fn a_next_version_takes_the_place_of_the_present_one() {
    let stage = Stage::new();
    let one = rule("learned-1", "ann");
    let next = next_of(&one);
    let refused = stage.renew(&next, &one.name).unwrap_err();
    assert_eq!(refused.code, RefusalCode::Conflict);
    stage.accept(&one).unwrap();
    let permits = stage.full_queue();
    let refused = stage.renew(&next, &one.name).unwrap_err();
    assert_eq!(refused.code, RefusalCode::LogUnavailable);
    // The present one goes on.
    assert_eq!(stage.desk.lock().set.rules(), std::slice::from_ref(&one));
    drop(permits);
    let cause = vec![(one.name.clone(), SuspendCause::BudgetSpent)];
    let suspended = stage.desk.suspend(&mut stage.desk.lock(), cause, NOW_MS);
    stage.desk.write(&stage.ledgers, suspended);
    stage.renew(&next, &one.name).unwrap();
    {
        let state = stage.desk.lock();
        assert_eq!(state.set.rules(), std::slice::from_ref(&next));
        assert_eq!(state.whole.rules(), std::slice::from_ref(&next));
        assert_eq!(state.standing(&next), RuleStanding::InForce);
        assert_eq!(state.all().count(), 1);
    }
    assert_eq!(stage.journaled(), stage.desk.lock().book);
    // Once, and the version before does not come back.
    for (again, before) in [(&next, &one.name), (&one, &next.name)] {
        let refused = stage.renew(again, before).unwrap_err();
        assert_eq!(refused.code, RefusalCode::Conflict);
    }
    stage
        .desk
        .put_in_force(&[], true, &Incarnations::default(), NOW_MS);
    assert_eq!(stage.desk.lock().set.rules(), [next]);
}

#[test]
fn a_rule_is_not_ended_while_its_next_version_is_being_accepted() {
    let stage = Stage::new();
    let one = rule("learned-1", "ann");
    stage.accept(&one).unwrap();
    stage.desk.lock().accepting.push(AcceptingRule {
        rule: Arc::new(next_of(&one)),
        is_taught: true,
        contradicted: None,
    });
    let boss = ParticipantId::new("boss").unwrap();
    let ended = stage.desk.end(&stage.ledgers, &one.name, &boss, NOW_MS);
    assert_eq!(ended.unwrap_err().code, RefusalCode::Conflict);
    // A rejection suspends both versions.
    let records = stage
        .desk
        .contradict(&rejection("learned-1", 5), &BTreeSet::new(), NOW_MS);
    assert_eq!(records.len(), 2, "{records:?}");
}

#[test]
fn an_end_is_written_also_when_the_queue_is_full() {
    let stage = Stage::new();
    let one = rule("learned-1", "ann");
    stage.accept(&one).unwrap();
    let permits = stage.full_queue();
    let boss = ParticipantId::new("boss").unwrap();
    let ended = stage
        .desk
        .end(&stage.ledgers, &one.name, &boss, NOW_MS)
        .unwrap();
    assert_eq!(ended.name, one.name);
    assert_eq!(stage.matching(), [""; 0]);
    assert_eq!(stage.desk.lock().all().count(), 0);
    drop(permits);
    let journaled = stage.journaled();
    let ended = journaled.life(&one.name.id).map(|life| life.has_ended());
    assert_eq!(ended, Some(true));
}

#[test]
fn a_home_that_moved_does_not_say_what_the_next_one_may_have() {
    let unknown = not_recorded(&StoreError::Elsewhere, "the rule is not in force");
    assert!(
        unknown.message.contains("was made, or it was not"),
        "{unknown:?}"
    );
    let known = not_recorded(&StoreError::Stopped, "the rule is not in force");
    assert!(
        known.message.ends_with("the rule is not in force"),
        "{known:?}"
    );
}
