use std::collections::HashMap;

use rules::parse_rules;
use store::{JournalWriter, StoreError};
use tempfile::tempdir;

use super::super::kept::KeptRules;
use super::*;

/// Names with their incarnations.
fn bearers(all: &[(&str, &str)]) -> HashMap<String, String> {
    let owned = |(name, incarnation): &(&str, &str)| ((*name).into(), (*incarnation).into());
    all.iter().map(owned).collect()
}

fn rejecting(version: u32, proposers: &str) -> CallRule {
    let text = format!(
        "[[rule]]\nid = \"r1\"\nversion = {version}\nauthor = \"ann\"\ndecision = \"reject\"\n\
         kind = \"mcp/request:tools/call:pay\"\nproposers = [{proposers}]\n"
    );
    parse_rules(&text).unwrap().remove(0)
}

#[test]
fn a_name_with_another_bearer_or_none_is_noticed_whatever_the_clock_says() {
    let desk = RuleDesk::open("main", None);
    let incarnations = Incarnations::default();
    let rule = rejecting(1, "\"scout\", \"dave\"");
    incarnations.set(bearers(&[("ann", "a.900"), ("scout", "b.900")]));
    desk.put_in_force(std::slice::from_ref(&rule), true, &incarnations, 1000);
    let replaced = || desk.lock().replaced(&rule, &incarnations);
    assert_eq!(replaced(), None);
    for (now, name) in [
        // The clock was set back meanwhile.
        (&[("ann", "c.100"), ("scout", "b.900")][..], "ann"),
        (&[("ann", "a.900"), ("scout", "d.100")][..], "scout"),
        (&[("ann", "a.900")][..], "scout"),
        (
            &[("ann", "a.900"), ("scout", "b.900"), ("dave", "e.950")][..],
            "dave",
        ),
    ] {
        incarnations.set(bearers(now));
        assert_eq!(replaced().as_deref(), Some(name), "{now:?}");
    }
    // Names that the rule does not have are nothing to it; the next version has those of its time.
    incarnations.set(bearers(&[
        ("ann", "a.900"),
        ("scout", "b.900"),
        ("eve", "f.1"),
    ]));
    assert_eq!(replaced(), None);
    incarnations.set(bearers(&[("ann", "c.100")]));
    let next = rejecting(2, "\"scout\"");
    desk.put_in_force(std::slice::from_ref(&next), true, &incarnations, 1001);
    assert_eq!(desk.lock().replaced(&next, &incarnations), None);
}

#[test]
fn a_rule_that_rejects_stays_among_those_that_match_when_it_is_not_in_force() {
    let desk = RuleDesk::open("main", None);
    let incarnations = Incarnations::default();
    let put = |rule: &CallRule, keeps| {
        desk.put_in_force(std::slice::from_ref(rule), keeps, &incarnations, 1000);
        let state = desk.lock();
        (
            state.set.rules().len(),
            state.standing(rule) == RuleStanding::InForce,
        )
    };
    assert_eq!(put(&rejecting(1, "\"*\""), true), (1, true));
    assert_eq!(put(&rejecting(1, "\"scout\""), true), (1, false));
    assert_eq!(put(&rejecting(2, "\"scout\""), false), (1, false));
    desk.pause(&[]);
    assert!(!desk.judges());
    put(&rejecting(3, "\"scout\""), true);
    assert!(desk.judges());
}

#[test]
fn proposals_are_known_as_decided_until_they_are_over() {
    let desk = RuleDesk::open("main", None);
    let [rejected, returned] = [OperationId(1), OperationId(2)];
    for proposal in [rejected, returned] {
        desk.decide(&mut desk.lock(), proposal, &[]);
        assert!(desk.lock().is_decided(proposal));
    }
    desk.conclude(rejected);
    desk.give_back(returned);
    assert!(desk.lock().decided.is_empty());
}

/// The rules of the topic as a journal in this folder has them.
fn kept_in(folder: &std::path::Path) -> RuleBook {
    let journal = JournalWriter::open(folder).unwrap();
    let ledgers = TopicLedgers::open(&journal).unwrap();
    ledgers
        .rules
        .state(|kept: &KeptRules| kept.of_topic("main"))
}

#[test]
fn lives_that_found_the_queue_full_follow_with_the_next_records() {
    let folder = tempdir().unwrap();
    let rule = rejecting(1, "\"scout\"");
    {
        let journal = JournalWriter::open(folder.path()).unwrap();
        let ledgers = TopicLedgers::open(&journal).unwrap();
        let desk = RuleDesk::open("main", Some(&ledgers));
        let incarnations = Incarnations::default();
        let accepted = desk.put_in_force(std::slice::from_ref(&rule), true, &incarnations, 1000);
        let causes = vec![(rule.name.clone(), SuspendCause::Expired)];
        let suspended = desk.suspend(&mut desk.lock(), causes, 1001);
        let mut permits = Vec::new();
        let full = loop {
            match ledgers.rules.reserve() {
                Ok(permit) => permits.push(permit),
                Err(error) => break error,
            }
        };
        assert!(matches!(full, StoreError::Busy), "{full:?}");
        desk.write(&ledgers, accepted);
        desk.write(&ledgers, suspended);
        desk.write(&ledgers, vec![desk.give_back(OperationId(1))]);
        assert_eq!(desk.unwritten.lock().len(), 2);
        drop(permits);
        desk.write(&ledgers, Vec::new());
        assert!(desk.unwritten.lock().is_empty());
        // What is written after them is durable after them.
        ledgers.rules.append(&[]).unwrap();
    }
    let book = kept_in(folder.path());
    let life = book.life(&rule.name.id).unwrap();
    let suspension = life.suspension().unwrap();
    assert_eq!(
        (&life.name, suspension.cause, suspension.at_ms),
        (&rule.name, &SuspendCause::Expired, 1001)
    );
}
