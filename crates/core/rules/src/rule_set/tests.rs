use model::{Capabilities, Digest, KindRef, OperationId, ParticipantId};

use super::*;
use crate::arguments::{Arguments, ArgumentsError};
use crate::fit::Fit;
use crate::rule::{TERM_MS_MAX, TERM_MS_MIN, TermError};
use crate::spent::SpentEvent;

const DIGEST: Digest = Digest([0xAB; 32]);
/// The 27th of November 2026, 12:00 UTC, a Friday.
const NOON_MS: u64 = 1_795_780_800_000;

/// Rules with a head of their own and defaults for all that is not said.
fn rules(texts: &[&str]) -> RuleSet {
    let mut file = String::new();
    for (at, text) in texts.iter().enumerate() {
        let digest = DIGEST.to_string();
        let has = |key: &str| {
            text.lines()
                .any(|line| line.starts_with(&format!("{key} =")))
        };
        file += &format!("[[rule]]\nid = \"r{at}\"\n");
        let approves = !has("decision");
        let defaults = [
            ("author", "\"ann\"", true),
            ("decision", "\"approve\"", true),
            ("kind", "\"mcp/request:tools/call:pay\"", true),
            ("proposers", "[\"scout\"]", true),
            ("to", "\"bank\"", approves),
            ("definition", &format!("\"{digest}\""), approves),
            ("server", &format!("\"{digest}\""), approves),
            ("expires", "\"2026-12-06T09:00:00Z\"", approves),
            ("uses", "10", approves),
        ];
        for (key, value, is_needed) in defaults {
            if is_needed && !has(key) {
                file += &format!("{key} = {value}\n");
            }
        }
        file += &format!("{text}\n");
    }
    RuleSet::parse(&file).unwrap_or_else(|error| panic!("{error}\n{file}"))
}

/// A call as a test describes it.
struct Given {
    proposer: ParticipantId,
    to: ParticipantId,
    kind: String,
    arguments: Result<Arguments, ArgumentsError>,
    beside: Vec<&'static str>,
    definition: Option<Digest>,
    at_ms: u64,
    operation: u128,
}

fn given(arguments: &str) -> Given {
    Given {
        proposer: ParticipantId::new("scout").unwrap(),
        to: ParticipantId::new("bank").unwrap(),
        kind: "mcp/request:tools/call:pay".to_owned(),
        arguments: Arguments::read(arguments.as_bytes()),
        beside: Vec::new(),
        definition: Some(DIGEST),
        at_ms: NOON_MS,
        operation: 1,
    }
}

impl Given {
    fn call(&self) -> RuledCall<'_> {
        RuledCall {
            operation: OperationId(self.operation),
            proposer: &self.proposer,
            to: &self.to,
            kind: KindRef::parse(&self.kind).unwrap(),
            arguments: self.arguments.as_ref(),
            beside: &self.beside,
            definition: self.definition,
            server: Some(DIGEST),
            at_ms: self.at_ms,
        }
    }
}

fn decision(set: &RuleSet, given: &Given, spent: &Spent, stage: CallStage) -> Option<RuleDecision> {
    let call = given.call();
    let answer = set
        .decide(&call, spent, stage)
        .map(|answer| answer.decision());
    // An explanation never says otherwise.
    for explained in set.explain(&call, spent) {
        let is_approval = !explained.rule.decision.tightens();
        let conditions = explained.checks.iter().filter(|check| !check.is_guard);
        let guards: Vec<Fit> = explained
            .checks
            .iter()
            .filter(|check| check.is_guard)
            .map(|check| check.fit)
            .collect();
        let fit = conditions.map(|check| check.fit).fold(Fit::Held, Fit::and);
        let acts = if is_approval {
            fit == Fit::Held && guards.iter().all(|guard| *guard == Fit::Held)
        } else {
            fit != Fit::Failed
                && (guards.is_empty() || guards.iter().any(|guard| *guard != Fit::Held))
        };
        assert_eq!(explained.acts, acts, "{explained:?}");
    }
    answer
}

#[track_caller]
fn check(set: &RuleSet, arguments: &str, expect: Option<RuleDecision>) {
    let spent = Spent::default();
    let found = decision(set, &given(arguments), &spent, CallStage::Proposed);
    assert_eq!(found, expect, "{arguments}");
}

/// Records a call that a set has admitted; returns the decision.
fn run(set: &RuleSet, spent: &mut Spent, given: &Given, stage: CallStage) -> Option<RuleDecision> {
    let found = decision(set, given, spent, stage);
    let call = given.call();
    let answer = set.decide(&call, spent, stage);
    let approved_by = answer
        .filter(|answer| answer.decision() == RuleDecision::Approve)
        .map(|answer| answer.name().clone());
    let runs = stage == CallStage::Direct && found.is_none();
    if approved_by.is_some() || runs {
        for charge in set.charges(&call, spent, approved_by.as_ref()) {
            spent.apply(SpentEvent::Charged(charge));
        }
        if let Some(answered) = set.remembers(&call) {
            spent.apply(SpentEvent::Answered(answered));
        }
    }
    found
}

const APPROVE: Option<RuleDecision> = Some(RuleDecision::Approve);
const ASK: Option<RuleDecision> = Some(RuleDecision::Ask);
const REJECT: Option<RuleDecision> = Some(RuleDecision::Reject);

#[test]
fn an_approving_rule_matches_what_it_describes_alone() {
    let set = rules(&[
        "[rule.when]\n\"/to\" = { equals = \"acme\" }\n\"/amount\" = { integer = [1, 100] }",
    ]);
    check(&set, r#"{"to":"acme","amount":100}"#, APPROVE);
    check(&set, r#"{"amount":1,"to":"\u0061cme"}"#, APPROVE);
    for hostile in [
        r#"{"to":"acme","amount":101}"#,
        r#"{"to":"acme"}"#,
        r#"{"to":"acme","amount":5,"note":""}"#,
        r#"{"to":"acme","amount":5,"Amount":5000}"#,
        r#"{"to":"acme","amount":5,"amount":5000}"#,
        r#"{"to":"acme","amount":1e1}"#,
        r#"{"to":"acme","amount":10.0}"#,
        r#"{"to":"acme","amount":"10"}"#,
        r#"{"to":"acme","amount":[10]}"#,
        r#"{"to":"acme","amount":null}"#,
        r#"{"to":"acme","amount":-0}"#,
        r#"{"to":"acme","amount":10000000000000000000000000000010}"#,
        r#"{"to":"Acme","amount":5}"#,
        r#"{"to":"acme\u200b","amount":5}"#,
        r#"{"to":"аcme","amount":5}"#,
        r#"{"to":"ａcme","amount":5}"#,
        r#"{"to":["acme"],"amount":5}"#,
        r#"{"arguments":{"to":"acme","amount":5}}"#,
        r#"["acme",5]"#,
        "",
        "null",
    ] {
        check(&set, hostile, None);
    }
}

#[test]
fn a_rule_is_bound_to_all_that_it_names() {
    let set = rules(&["[rule.when]\n\"/a\" = { equals = 1 }"]);
    let spent = Spent::default();
    let check = |change: &dyn Fn(&mut Given), expect| {
        let mut given = given(r#"{"a":1}"#);
        change(&mut given);
        assert_eq!(decision(&set, &given, &spent, CallStage::Proposed), expect);
    };
    let name = |text: &str| ParticipantId::new(text).unwrap();
    check(&|_| {}, APPROVE);
    check(&|given| given.proposer = name("scout2"), None);
    check(&|given| given.proposer = name("ann"), None);
    check(&|given| given.to = name("bank2"), None);
    check(&|given| given.definition = Some(Digest([1; 32])), None);
    check(&|given| given.definition = None, None);
    check(&|given| given.beside = vec!["_meta"], None);
    check(
        &|given| given.kind = "mcp/request:tools/call:pay2".to_owned(),
        None,
    );
    check(
        &|given| given.kind = "mcp/proposal:tools/call:pay".to_owned(),
        None,
    );
    check(&|given| given.at_ms += 9 * 24 * 3_600_000, None);
}

#[test]
fn a_rule_that_rejects_matches_what_is_ambiguous() {
    let set = rules(&[
        "decision = \"reject\"\nproposers = [\"*\"]\n[rule.when]\n\"/file\" = { under = \"/etc/ssh\" }",
    ]);
    for covered in [
        r#"{"file":"/etc/ssh/key"}"#,
        r#"{"file":"/etc/ssh/key","note":"x"}"#,
        r#"{"file":"/etc/ssh"}"#,
        r#"{"file":"/etc"}"#,
        r#"{"file":"/srv/../etc/ssh/key"}"#,
        r#"{"file":"/etc//ssh/key"}"#,
        r#"{"file":"/ETC/ssh/key"}"#,
        r#"{"file":"ssh/key"}"#,
        r#"{"File":"/etc/ssh/key"}"#,
        r#"{"file":["/etc/ssh/key"]}"#,
        r#"{"file":"/etc/ssh/x","file":"/tmp/x"}"#,
        "[]",
        "{",
        r#"{"file":"file:///etc/ssh/key"}"#,
        r#"{"file":"/etc/ssh./key"}"#,
    ] {
        check(&set, covered, REJECT);
    }
    for other in [
        r#"{"file":"/srv/docs/a"}"#,
        "{}",
        r#"{"path":"/etc/ssh/key"}"#,
    ] {
        check(&set, other, None);
    }
}

#[test]
fn reject_goes_before_ask_and_ask_before_approve() {
    let when = "[rule.when]\n\"/a\" = { integer = [1, 9] }";
    let approve = when.to_owned();
    let ask = format!("decision = \"ask\"\n{}", when.replace("1, 9", "5, 9"));
    let reject = format!("decision = \"reject\"\n{}", when.replace("1, 9", "8, 9"));
    let set = rules(&[&approve, &ask, &reject]);
    check(&set, r#"{"a":1}"#, APPROVE);
    check(&set, r#"{"a":5}"#, ASK);
    check(&set, r#"{"a":8}"#, REJECT);
    check(&set, r#"{"a":10}"#, None);
    let direct = |arguments| {
        decision(
            &set,
            &given(arguments),
            &Spent::default(),
            CallStage::Direct,
        )
    };
    assert_eq!(direct(r#"{"a":1}"#), None);
    assert_eq!(direct(r#"{"a":5}"#), ASK);
    assert_eq!(direct(r#"{"a":8}"#), REJECT);
    assert!(set.tightens() && !rules(&[&approve]).tightens());
}

#[test]
fn of_two_rules_that_approve_the_one_that_ends_first_decides() {
    let when = "[rule.when]\n\"/a\" = { equals = 1 }";
    let earlier = format!("expires = \"2026-12-01T00:00:00Z\"\n{when}");
    let set = rules(&[when, &earlier]);
    let given = given(r#"{"a":1}"#);
    let spent = Spent::default();
    let answer = set
        .decide(&given.call(), &spent, CallStage::Proposed)
        .unwrap();
    assert_eq!(answer.name().to_string(), "r1.1");
}

#[test]
fn a_budget_and_a_rate_count_calls_in_flight() {
    let set = rules(&["uses = 3\nrate = \"2/h\"\n[rule.when]\n\"/a\" = { equals = 1 }"]);
    let mut spent = Spent::default();
    let mut at = |operation: u128, minutes: u64| {
        let mut given = given(r#"{"a":1}"#);
        (given.operation, given.at_ms) = (operation, NOON_MS + minutes * 60_000);
        run(&set, &mut spent, &given, CallStage::Proposed)
    };
    // None of them ends.
    assert_eq!(at(1, 0), APPROVE);
    assert_eq!(
        at(1, 0),
        APPROVE,
        "the same operation again is the same use"
    );
    assert_eq!(at(2, 1), APPROVE);
    assert_eq!(at(3, 2), None, "two an hour");
    assert_eq!(at(4, 60), APPROVE);
    assert_eq!(at(5, 600), None, "three in all");
}

#[test]
fn a_sum_bounds_what_a_rule_approves() {
    let set = rules(&[
        "sum = [{ of = \"/amount\", max = 100, within = \"1d\" }]\n[rule.when]\n\"/amount\" = { integer = [1, 100] }",
    ]);
    let mut spent = Spent::default();
    let mut pay = |operation: u128, amount: u32, hours: u64| {
        let mut given = given(&format!(r#"{{"amount":{amount}}}"#));
        (given.operation, given.at_ms) = (operation, NOON_MS + hours * 3_600_000);
        run(&set, &mut spent, &given, CallStage::Proposed)
    };
    assert_eq!(pay(1, 60, 0), APPROVE);
    assert_eq!(pay(2, 41, 1), None);
    assert_eq!(pay(3, 40, 2), APPROVE);
    assert_eq!(pay(4, 1, 3), None);
    assert_eq!(pay(5, 60, 24), APPROVE);
    assert_eq!(pay(6, 1, 24), None);
}

#[test]
fn a_sum_asks_once_it_is_exceeded_by_any_call() {
    let set =
        rules(&["decision = \"ask\"\nsum = [{ of = \"/amount\", max = 500, within = \"1d\" }]"]);
    let mut spent = Spent::default();
    let mut pay = |operation: u128, amount: &str| {
        let mut given = given(&format!(r#"{{"amount":{amount},"note":"n{operation}"}}"#));
        given.operation = operation;
        run(&set, &mut spent, &given, CallStage::Direct)
    };
    assert_eq!(pay(1, "300"), None);
    assert_eq!(pay(2, "201"), ASK);
    assert_eq!(pay(3, "199.99"), None);
    assert_eq!(pay(4, "0.02"), ASK);
    assert_eq!(pay(5, "0.01"), None);
    for odd in ["-100", "1e9", "\"1\"", "null"] {
        assert_eq!(pay(6, odd), ASK, "{odd} cannot be summed");
    }
}

#[test]
fn up_to_a_hundred_directly_and_above_as_a_proposal() {
    let set = rules(&[
        "decision = \"ask\"\n[rule.when]\n\"/amount\" = { integer = [101, 999999999999999] }",
    ]);
    let direct = |arguments| {
        decision(
            &set,
            &given(arguments),
            &Spent::default(),
            CallStage::Direct,
        )
    };
    assert_eq!(direct(r#"{"amount":100}"#), None);
    assert_eq!(direct(r#"{"amount":100,"amounts":101}"#), None);
    for above in [
        r#"{"amount":101}"#,
        r#"{"amount":101,"x":1}"#,
        r#"{"amount":1e9}"#,
        r#"{"amount":"101"}"#,
        r#"{"amount":1000000000000000000}"#,
        r#"{"Amount":101}"#,
        r#"{"amount":1,"Amount":101}"#,
        r#"{"amount":1,"amount ":101}"#,
        r#"{"amount":1,"AMOUNT":{"value":101}}"#,
        r#"{"amount":101.0}"#,
    ] {
        assert_eq!(direct(above), ASK, "{above}");
    }
}

#[test]
fn a_count_is_for_each_value_of_its_member() {
    let set = rules(&[
        "count = [{ same = \"/to\", max = 1, within = \"1d\" }]\n[rule.when]\n\"/to\" = { one_of = [\"a\", \"b\"] }",
    ]);
    let mut spent = Spent::default();
    let mut to = |operation: u128, to: &str| {
        let mut given = given(&format!(r#"{{"to":"{to}"}}"#));
        given.operation = operation;
        run(&set, &mut spent, &given, CallStage::Proposed)
    };
    assert_eq!(to(1, "a"), APPROVE);
    assert_eq!(to(2, "a"), None);
    assert_eq!(to(3, "b"), APPROVE);
}

#[test]
fn another_spelling_is_counted_as_the_same_value() {
    let set = rules(&[
        "count = [{ same = \"/to\", max = 1, within = \"1d\" }]\n[rule.when]\n\"/to\" = { chars = \"A-Za-z0-9\", length = [1, 9] }",
    ]);
    let mut spent = Spent::default();
    let mut to = |operation: u128, to: &str| {
        let mut given = given(&format!(r#"{{"to":"{to}"}}"#));
        given.operation = operation;
        run(&set, &mut spent, &given, CallStage::Proposed)
    };
    assert_eq!(to(1, "bob1"), APPROVE);
    assert_eq!(to(2, "BOB1"), None);
    assert_eq!(to(3, "bob2"), APPROVE);
}

#[test]
fn a_number_in_a_text_is_counted_as_the_number() {
    let count = "count = [{ same = \"/id\", max = 1, within = \"1d\" }]";
    let set = rules(&[&format!("decision = \"ask\"\n{count}")]);
    let mut spent = Spent::default();
    let mut with = |operation: u128, id: &str| {
        let mut given = given(&format!(r#"{{"id":{id}}}"#));
        given.operation = operation;
        run(&set, &mut spent, &given, CallStage::Direct)
    };
    assert_eq!(with(1, "7"), None);
    for again in ["7", "7.0", "\"7\"", "\" 7\""] {
        assert_eq!(with(2, again), ASK, "{again}");
    }
    assert_eq!(with(3, "8"), None);
}

#[test]
fn a_member_that_looks_like_the_counted_one_is_asked_about() {
    for (guard, own) in [
        ("sum = [{ of = \"/n\", max = 9, within = \"1d\" }]", "1"),
        (
            "count = [{ same = \"/n\", max = 9, within = \"1d\" }]",
            "\"a\"",
        ),
        (
            "after = [{ kind = \"mcp/request:tools/call:get\", to = \"bank\", same = { \"/n\" = \"/n\" }, within = \"1h\" }]",
            "1",
        ),
    ] {
        let set = rules(&[&format!("decision = \"ask\"\n{guard}")]);
        let mut spent = Spent::default();
        let mut get = given(&format!("{{\"n\":{own}}}"));
        get.kind = "mcp/request:tools/call:get".to_owned();
        if let Some(answered) = set.remembers(&get.call()) {
            spent.apply(SpentEvent::Answered(answered));
        }
        let direct = |arguments: &str| decision(&set, &given(arguments), &spent, CallStage::Direct);
        assert_eq!(direct(&format!("{{\"n\":{own}}}")), None, "{guard}");
        assert_eq!(direct(&format!("{{\"n\":{own},\"N\":5}}")), ASK, "{guard}");
    }
}

#[test]
fn two_sums_of_one_member_count_a_call_once() {
    let set = rules(&[
        "sum = [{ of = \"/amount\", max = 100, within = \"1h\" }, { of = \"/amount\", max = 150, within = \"1d\" }]\n[rule.when]\n\"/amount\" = { integer = [1, 100] }",
    ]);
    let mut spent = Spent::default();
    let mut pay = |operation: u128, amount: u32, hours: u64| {
        let mut given = given(&format!(r#"{{"amount":{amount}}}"#));
        (given.operation, given.at_ms) = (operation, NOON_MS + hours * 3_600_000);
        run(&set, &mut spent, &given, CallStage::Proposed)
    };
    assert_eq!(pay(1, 60, 0), APPROVE);
    assert_eq!(pay(2, 40, 0), APPROVE);
    assert_eq!(pay(3, 1, 0), None);
    assert_eq!(pay(4, 50, 1), APPROVE);
    assert_eq!(pay(5, 1, 2), None);
}

#[test]
fn a_clock_that_was_set_back_opens_no_window_and_no_end() {
    let set = rules(&[
        "uses = 9\nrate = \"1/h\"\nduring = \"Fri 00:00-13:00 UTC\"\n[rule.when]\n\"/a\" = { equals = 1 }",
        "kind = \"mcp/request:tools/call:get\"\n[rule.when]\n\"/a\" = { equals = 1 }",
    ]);
    let mut spent = Spent::default();
    let day_ms = 24 * 3_600_000;
    let mut get = given(r#"{"a":1}"#);
    get.kind = "mcp/request:tools/call:get".to_owned();
    get.at_ms = NOON_MS + 8 * day_ms;
    assert_eq!(run(&set, &mut spent, &get, CallStage::Proposed), APPROVE);
    // The clock is set back by eight days, to hours in which the other rule is in force.
    let mut pay = given(r#"{"a":1}"#);
    pay.operation = 2;
    assert_eq!(run(&set, &mut spent, &pay, CallStage::Proposed), None);
    let end_ms = set.rules()[0].expires_ms.unwrap();
    spent.apply(SpentEvent::Charged(crate::RuleCharge {
        rule: set.rules()[1].name.clone(),
        operation: OperationId(3),
        at_ms: end_ms,
        is_use: false,
        amounts: Vec::new(),
        values: Vec::new(),
        keep_ms: 0,
    }));
    get.operation = 4;
    assert_eq!(run(&set, &mut spent, &get, CallStage::Proposed), None);
}

#[test]
fn a_set_takes_no_rule_that_a_file_could_not_hold() {
    let fine = || rules(&["[rule.when]\n\"/a\" = { equals = 1 }"]).rules()[0].clone();
    assert!(RuleSet::new([fine()]).is_ok());
    let changes: [fn(&mut CallRule); 9] = [
        |rule| rule.expires_ms = None,
        |rule| rule.uses = None,
        |rule| rule.uses = Some(crate::guards::USES_MAX + 1),
        |rule| rule.scope.target = None,
        |rule| rule.scope.to = None,
        |rule| rule.scope.proposers = vec![model::NamePattern::parse("*").unwrap()],
        |rule| rule.author = ParticipantId::new("scout").unwrap(),
        |rule| rule.scope.definition = None,
        |rule| {
            let any = crate::value_test::ValueTest::Type(crate::constant::ValueType::Text);
            let member = crate::pointer::Pointer::parse("/a").unwrap();
            rule.when = crate::conditions::Conditions::new([(member, any)]).unwrap();
        },
    ];
    for change in changes {
        let mut rule = fine();
        change(&mut rule);
        let error = RuleSet::new([rule.clone()]).err();
        assert!(matches!(error, Some(RuleSetError::NoRule(..))), "{rule:?}");
    }
}

#[test]
fn a_suspended_rule_leaves_the_set() {
    let set = rules(&[
        "[rule.when]\n\"/a\" = { equals = 1 }",
        "decision = \"ask\"\nproposers = [\"bo\"]",
    ]);
    let asked = given(r#"{"a":1}"#);
    let names: Vec<String> = set
        .of_kind(asked.call().kind)
        .map(|rule| rule.name.to_string())
        .collect();
    assert_eq!(names, ["r1.1", "r0.1"]);
    let without = set.without(&["r0.1".parse().unwrap()]);
    assert_eq!(without.rules().len(), 1);
    assert!(without.tightens());
    check(&without, r#"{"a":1}"#, None);
}

#[test]
fn a_call_must_come_after_its_earlier_call() {
    let after = "after = [{ kind = \"mcp/request:tools/call:get_invoice\", to = \"bank\", same = { \"/invoice\" = \"/id\" }, within = \"1h\" }]";
    let approve = format!("{after}\n[rule.when]\n\"/invoice\" = {{ integer = [1, 999] }}");
    let ask = format!("decision = \"ask\"\n{after}");
    let mut spent = Spent::default();
    let both = [rules(&[&approve]), rules(&[&ask])];
    let pay = |set: &RuleSet, spent: &Spent, invoice: u32, minutes: u64, proposer: &str| {
        let mut given = given(&format!(r#"{{"invoice":{invoice}}}"#));
        given.at_ms += minutes * 60_000;
        given.proposer = ParticipantId::new(proposer).unwrap();
        decision(set, &given, spent, CallStage::Proposed)
    };
    let [approving, asking] = &both;
    assert_eq!(pay(approving, &spent, 7, 0, "scout"), None);
    assert_eq!(pay(asking, &spent, 7, 0, "scout"), ASK);
    let mut get = given(r#"{"id":7}"#);
    get.kind = "mcp/request:tools/call:get_invoice".to_owned();
    spent.apply(SpentEvent::Answered(
        approving.remembers(&get.call()).unwrap(),
    ));
    assert_eq!(pay(approving, &spent, 7, 59, "scout"), APPROVE);
    assert_eq!(pay(asking, &spent, 7, 59, "scout"), None);
    assert_eq!(pay(approving, &spent, 8, 59, "scout"), None);
    assert_eq!(pay(asking, &spent, 8, 59, "scout"), ASK);
    assert_eq!(pay(approving, &spent, 7, 60, "scout"), None);
    assert!(approving.remembers(&given("{}").call()).is_none());
    let mut either = given(r#"{"id":9,"ID":10}"#);
    either.kind = get.kind;
    let answered = approving.remembers(&either.call()).unwrap();
    spent.apply(SpentEvent::Answered(answered));
    assert_eq!(pay(approving, &spent, 9, 0, "scout"), None);
}

#[test]
fn hours_of_the_week_narrow_a_rule() {
    let set =
        rules(&["during = \"Mon-Fri 06:00-12:01 UTC\"\n[rule.when]\n\"/a\" = { equals = 1 }"]);
    let at = |minutes: u64| {
        let mut given = given(r#"{"a":1}"#);
        given.at_ms += minutes * 60_000;
        decision(&set, &given, &Spent::default(), CallStage::Proposed)
    };
    assert_eq!(at(0), APPROVE);
    assert_eq!(at(1), None);
}

#[test]
fn a_rule_of_a_whole_method_sees_every_tool_and_server() {
    let set = rules(&[
        "decision = \"ask\"\nkind = \"mcp/request:tools/call\"\nproposers = [\"guest-*\"]",
    ]);
    let mut given = given("{}");
    assert_eq!(
        decision(&set, &given, &Spent::default(), CallStage::Direct),
        None
    );
    given.proposer = ParticipantId::new("guest-7").unwrap();
    given.to = ParticipantId::new("elsewhere").unwrap();
    assert_eq!(
        decision(&set, &given, &Spent::default(), CallStage::Direct),
        ASK
    );
}

#[test]
fn a_rule_needs_its_authors_right() {
    let set = rules(&["", "decision = \"ask\"\nkind = \"mcp/request:tools/call\""]);
    let [asking, approving] = set.rules() else {
        panic!("{set:?}")
    };
    let may = |texts: &[&str], rule: &CallRule| {
        rule.is_within(&Capabilities::parse(texts.iter().copied()).unwrap())
    };
    assert!(may(&["mcp/request:tools/call:pay"], approving));
    assert!(may(&["mcp/request:tools/*"], approving));
    assert!(!may(&["mcp/request:tools/call:get"], approving));
    assert!(may(&["mcp/approve:tools/call:pay"], approving));
    assert!(!may(&["mcp/approve:tools/call:get"], approving));
    assert!(!may(&["mcp/proposal:*"], approving));
    assert!(!may(&["mcp/request:tools/call:pay"], asking));
    assert!(may(&["mcp/*"], asking));
}

#[test]
fn a_term_is_refused_and_never_clamped() {
    let set = rules(&[""]);
    let rule = &set.rules()[0];
    let end = rule.expires_ms.unwrap();
    assert_eq!(rule.check_term(end - TERM_MS_MIN), Ok(()));
    assert_eq!(
        rule.check_term(end - TERM_MS_MIN + 1),
        Err(TermError::TooShort)
    );
    assert_eq!(rule.check_term(end - TERM_MS_MAX), Ok(()));
    assert_eq!(
        rule.check_term(end - TERM_MS_MAX - 1),
        Err(TermError::TooLong)
    );
    assert!(rule.is_over(end) && !rule.is_over(end - 1));
}

#[test]
fn a_set_prints_as_a_file_that_reads_as_the_set() {
    let set = rules(&[
        "",
        "decision = \"reject\"\n[rule.when]\n\"/a\" = { absent = true }",
    ]);
    assert_eq!(RuleSet::parse(&set.text()).unwrap().rules(), set.rules());
}

#[test]
fn a_set_refuses_too_many_rules() {
    let set = &rules(&[""]);
    let named = |count: usize, tools: usize| {
        (0..count).map(move |at| {
            let mut rule = set.rules()[0].clone();
            rule.name = format!("n{at}.1").parse().unwrap();
            rule.scope.target = Some(format!("t{}", at % tools).into());
            rule
        })
    };
    assert!(RuleSet::new(named(RULES_MAX, 8)).is_ok());
    assert_eq!(
        RuleSet::new(named(RULES_MAX + 1, 9)).err(),
        Some(RuleSetError::TooMany)
    );
    assert!(RuleSet::new(named(TOOL_RULES_MAX, 1)).is_ok());
    let error = RuleSet::new(named(TOOL_RULES_MAX + 1, 1)).err().unwrap();
    assert!(matches!(error, RuleSetError::TooManyOfTool(_)));
    let twice = named(1, 1)
        .chain(rules(&[""]).rules().to_vec())
        .chain(rules(&[""]).rules().to_vec());
    assert_eq!(
        RuleSet::new(twice).err(),
        Some(RuleSetError::Duplicate("r0".to_owned()))
    );
}

#[test]
fn a_set_takes_one_more_rule_as_if_it_had_been_there() {
    let one_by_one = |all: &[CallRule]| {
        let first = Ok(RuleSet::default());
        all.iter().fold(first, |set, rule| {
            set.and_then(|set| set.with(rule.clone()))
        })
    };
    let named = |count: usize, tools: usize| -> Vec<CallRule> {
        let rule = |at: usize| {
            let mut rule = rules(&[""]).rules()[0].clone();
            rule.name.id = crate::name::RuleId::new(&format!("r{at}")).unwrap();
            rule.scope.target = Some(format!("t{}", at % tools).into());
            rule
        };
        (0..count).map(rule).collect()
    };
    let texts = |set: Result<RuleSet, RuleSetError>| set.map(|set| set.text());
    let mut twice = named(2, 1);
    twice[1].name.id = twice[0].name.id.clone();
    for all in [
        named(9, 3),
        named(TOOL_RULES_MAX, 1),
        named(TOOL_RULES_MAX + 1, 1),
        named(RULES_MAX, 8),
        named(RULES_MAX + 1, 9),
        twice,
    ] {
        let whole = texts(RuleSet::new(all.clone()));
        assert_eq!(texts(one_by_one(&all)), whole);
    }
}
