//! Attacks on rules and on their learner, one test for each.

use model::ParticipantId;
use rules::{
    Arguments, CallStage, EvidenceWeight, Learner, PastVerdict, RejectReason, RuleDecision,
    RuleEvidence, RuleSet, Spent,
};

use crate::support::{OwnedCall, approval, approving, participant};

fn decides(set: &RuleSet, call: &OwnedCall) -> Option<RuleDecision> {
    let spent = Spent::default();
    call.with(|call| {
        let answer = set.decide(call, &spent, CallStage::Proposed);
        answer.map(|answer| answer.decision())
    })
}

/// Asserts that a rule approves the first arguments, and none of the others.
#[track_caller]
fn check(when: &str, plain: &str, hostile: &[&str]) {
    let set = approving(when);
    assert_eq!(
        decides(&set, &OwnedCall::new(plain)),
        Some(RuleDecision::Approve),
        "{plain}"
    );
    for arguments in hostile {
        assert_eq!(
            decides(&set, &OwnedCall::new(arguments)),
            None,
            "{arguments}"
        );
    }
}

#[test]
fn a_smuggled_member_matches_nothing() {
    check(
        "\"/repo\" = { equals = \"acme/site\" }",
        r#"{"repo":"acme/site"}"#,
        &[
            r#"{"repo":"acme/site","x":null}"#,
            r#"{"repo":"acme/site","Repo":"acme/secrets"}"#,
            r#"{"repo":"acme/site","repo":"acme/secrets"}"#,
            r#"{"repo":"acme/site","\u0072epo":"acme/secrets"}"#,
            r#"{"repo":"acme/site","repo\u200b":"acme/secrets"}"#,
            r#"{"repo":{"repo":"acme/site"}}"#,
            r#"{"repo":"acme/site","o":{}}"#,
            r#"{"repo":"acme/site","l":[]}"#,
        ],
    );
    let mut meta = OwnedCall::new(r#"{"repo":"acme/site"}"#);
    meta.beside = vec!["_meta".to_owned()];
    let set = approving("\"/repo\" = { equals = \"acme/site\" }");
    assert_eq!(decides(&set, &meta), None);
}

#[test]
fn stringified_and_nested_arguments_match_nothing() {
    check(
        "\"/filter/state\" = { equals = \"open\" }",
        r#"{"filter":{"state":"open"}}"#,
        &[
            r#"{"filter":"{\"state\":\"open\"}"}"#,
            r#"{"filter":[{"state":"open"}]}"#,
            r#"{"filter":{"state":["open"]}}"#,
            r#"{"filter.state":"open"}"#,
            r#"{"filter/state":"open"}"#,
            r#""{\"filter\":{\"state\":\"open\"}}""#,
        ],
    );
}

#[test]
fn unicode_twins_match_nothing() {
    check(
        "\"/to\" = { one_of = [\"paypal\", \"Straße\", \"café\"] }",
        "{\"to\":\"caf\u{e9}\"}",
        &[
            "{\"to\":\"p\u{430}ypal\"}",
            "{\"to\":\"paypal\u{200b}\"}",
            "{\"to\":\"\u{202e}paypal\"}",
            "{\"to\":\"ｐaypal\"}",
            "{\"to\":\"paypal\u{e0041}\"}",
            "{\"to\":\"cafe\u{301}\"}",
            "{\"to\":\"Strasse\"}",
            "{\"to\":\"PAYPAL\"}",
            "{\"to\":\" paypal\"}",
        ],
    );
}

#[test]
fn paths_that_lead_elsewhere_match_nothing() {
    check(
        "\"/file\" = { under = \"/srv/docs\" }",
        r#"{"file":"/srv/docs/a/b.md"}"#,
        &[
            r#"{"file":"/srv/docs/../../etc/passwd"}"#,
            r#"{"file":"/srv/docs//etc/passwd"}"#,
            r#"{"file":"/srv/docs/%2e%2e/x"}"#,
            r#"{"file":"/srv/docs/..%2fx"}"#,
            r#"{"file":"/srv/docs\\..\\x"}"#,
            r#"{"file":"/srv/docs/~/x"}"#,
            r#"{"file":"/srv/docs/$HOME/x"}"#,
            r#"{"file":"/srv/docs/${HOME}"}"#,
            r#"{"file":"C:/srv/docs/x"}"#,
            r#"{"file":"/srv/docs/x."}"#,
            r#"{"file":"/srv/docs/x "}"#,
            r#"{"file":"/srv/docs/NUL"}"#,
            r#"{"file":"/srv/docs/com1.txt"}"#,
            r#"{"file":"/srv/docs/x::$DATA"}"#,
            r#"{"file":"/srv/docs/x\u0000.md"}"#,
            r#"{"file":"file:///srv/docs/x"}"#,
            r#"{"file":"/srv/docs/\u2025/x"}"#,
            r#"{"file":"/srv/docs"}"#,
            r#"{"file":"/srv/docs/*"}"#,
            r#"{"file":"//srv/docs/x"}"#,
        ],
    );
}

#[test]
fn options_and_shell_signs_match_no_set_of_characters() {
    check(
        "\"/name\" = { chars = \"A-Za-z0-9@_-\", length = [1, 64] }",
        r#"{"name":"report-7"}"#,
        &[
            r#"{"name":"-oX"}"#,
            r#"{"name":"--output=x"}"#,
            r#"{"name":"@file"}"#,
            r#"{"name":"a;b"}"#,
            r#"{"name":"a b"}"#,
            r#"{"name":"$(a)"}"#,
            r#"{"name":"`a`"}"#,
            r#"{"name":"a\nb"}"#,
            r#"{"name":"a|b"}"#,
            r#"{"name":"../a"}"#,
            r#"{"name":"file://a"}"#,
            r#"{"name":""}"#,
        ],
    );
}

#[test]
fn numbers_that_readers_read_differently_match_nothing() {
    check(
        "\"/amount\" = { integer = [0, 100] }",
        r#"{"amount":100}"#,
        &[
            r#"{"amount":1e2}"#,
            r#"{"amount":100.0}"#,
            r#"{"amount":"100"}"#,
            r#"{"amount":-0}"#,
            r#"{"amount":0.0000000000000000000000000001}"#,
            r#"{"amount":99999999999999999999999999999999}"#,
            r#"{"amount":true}"#,
            r#"{"amount":null}"#,
            r#"{"amount":0x10}"#,
            r#"{"amount":NaN}"#,
            r#"{"amount":1_0}"#,
            r#"{"amount":+5}"#,
            r#"{"amount":05}"#,
        ],
    );
}

#[test]
fn a_tool_that_was_swapped_matches_nothing() {
    let set = approving("\"/a\" = { equals = 1 }");
    let plain = OwnedCall::new(r#"{"a":1}"#);
    let changes: [fn(&mut OwnedCall); 6] = [
        |call| call.definition = Some(model::Digest([1; 32])),
        |call| call.definition = None,
        |call| call.server = Some(model::Digest([1; 32])),
        |call| call.to = participant("gitlab"),
        |call| call.kind = "mcp/request:tools/call:Create_issue".to_owned(),
        |call| call.kind = "mcp/request:prompts/get:create_issue".to_owned(),
    ];
    assert_eq!(decides(&set, &plain), Some(RuleDecision::Approve));
    for change in changes {
        let mut call = plain.clone();
        change(&mut call);
        assert_eq!(decides(&set, &call), None, "{call:?}");
    }
}

#[test]
fn huge_and_deep_arguments_match_nothing_and_take_no_time() {
    let set = approving("\"/a\" = { equals = 1 }");
    let deep = format!("{}1{}", "{\"a\":".repeat(50_000), "}".repeat(50_000));
    let lists = format!("{{\"a\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
    let members: Vec<String> = (0..20_000).map(|at| format!("\"a{at}\":1")).collect();
    let many = format!("{{{}}}", members.join(","));
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(1_000_000));
    for arguments in [deep, lists, many, long] {
        assert_eq!(decides(&set, &OwnedCall::new(&arguments)), None);
    }
}

/// A learner that an agent feeds.
struct Fed {
    learner: Learner,
    count: u64,
}

impl Fed {
    fn new() -> Self {
        Self {
            learner: Learner::default(),
            count: 0,
        }
    }

    fn take(
        &mut self,
        arguments: &str,
        verdict: PastVerdict,
        change: impl FnOnce(&mut RuleEvidence),
    ) {
        self.count += 1;
        let mut evidence = approval(self.count, arguments);
        evidence.verdict = verdict;
        change(&mut evidence);
        self.learner.take(evidence, &RuleSet::default());
    }

    fn approve(&mut self, arguments: &str) {
        self.take(arguments, PastVerdict::Approved, |_| {});
    }

    /// Whether a candidate would approve these arguments.
    fn admits(&self, arguments: &str) -> bool {
        let arguments = Arguments::read(arguments.as_bytes()).unwrap();
        let mut candidates = self.learner.candidates();
        candidates.any(|one| one.when.fit_closed(&arguments) == rules::Fit::Held)
    }
}

#[test]
fn extremes_that_were_fed_make_no_span() {
    let mut fed = Fed::new();
    for at in 0..30 {
        fed.approve(&format!(
            "{{\"amount\":{}}}",
            if at % 2 == 0 { 1 } else { 500 }
        ));
    }
    assert!(fed.admits(r#"{"amount":1}"#) && fed.admits(r#"{"amount":500}"#));
    assert!(!fed.admits(r#"{"amount":250}"#));
    for at in 0..8 {
        fed.approve(&format!("{{\"amount\":{}}}", 2 + at));
    }
    assert!(!fed.admits(r#"{"amount":250}"#));
}

#[test]
fn benign_calls_that_were_fed_widen_to_their_like_alone() {
    let mut fed = Fed::new();
    for at in 0..40 {
        fed.approve(&format!(
            "{{\"id\":\"AB-{at}\",\"dir\":\"/srv/docs/x/{at}.md\"}}"
        ));
    }
    assert!(fed.admits(r#"{"id":"ZZ-9","dir":"/srv/docs/x/new.md"}"#));
    for outside in [
        r#"{"id":"ZZ-9999999999","dir":"/srv/docs/x/new.md"}"#,
        r#"{"id":"zz-9","dir":"/srv/docs/x/new.md"}"#,
        r#"{"id":"ZZ-9","dir":"/srv/docs/y/new.md"}"#,
        r#"{"id":"ZZ-9","dir":"/srv/docs/x/../y"}"#,
        r#"{"id":"ZZ-9","dir":"/srv/docs/x/new.md","force":true}"#,
    ] {
        assert!(!fed.admits(outside), "{outside}");
    }
}

#[test]
fn free_text_and_commands_are_learned_as_repetitions_alone() {
    let mut fed = Fed::new();
    for at in 0..40 {
        fed.approve(&format!(
            "{{\"note\":\"see ticket {at}\",\"command\":\"ls\"}}"
        ));
    }
    assert_eq!(fed.learner.candidates().count(), 0);
    let mut fed = Fed::new();
    for at in 0..40 {
        fed.approve(&format!("{{\"command\":\"ls{at}\"}}"));
    }
    assert_eq!(fed.learner.candidates().count(), 0);
    for _ in 0..3 {
        fed.approve(r#"{"command":"make test; make lint"}"#);
    }
    assert!(fed.admits(r#"{"command":"make test; make lint"}"#));
    assert!(!fed.admits(r#"{"command":"make test; make lint; rm -rf /"}"#));
}

#[test]
fn neither_a_rule_nor_a_program_nor_the_proposer_teaches() {
    let changes: [fn(&mut RuleEvidence); 3] = [
        |one| one.weight = EvidenceWeight::None,
        |one| one.by = ParticipantId::new("scout").unwrap(),
        |one| one.weight = EvidenceWeight::Hasty,
    ];
    for change in changes {
        let mut fed = Fed::new();
        for _ in 0..60 {
            fed.take(r#"{"a":1}"#, PastVerdict::Approved, change);
        }
        assert_eq!(fed.learner.candidates().count(), 0);
    }
}

#[test]
fn a_coin_in_the_reviewers_mind_ends_the_learning() {
    let mut fed = Fed::new();
    for at in 0..60_u64 {
        let arguments = format!("{{\"amount\":{}}}", at % 10);
        let verdict = if at % 7 == 3 {
            PastVerdict::Rejected(RejectReason::Unsaid)
        } else {
            PastVerdict::Approved
        };
        fed.take(&arguments, verdict, |_| {});
    }
    assert_eq!(fed.learner.candidates().count(), 0);
}

#[test]
fn redacted_members_never_become_constants() {
    let mut fed = Fed::new();
    for _ in 0..20 {
        fed.take(r#"{"token":"[redacted]"}"#, PastVerdict::Approved, |one| {
            one.redacted = one.members()
        });
    }
    assert_eq!(fed.learner.candidates().count(), 0);
}
