//! Evaluation on a synthetic trace: prompts saved, false approvals, attack variants that pass.
//!
//! Five agents use seven tools; a hidden policy on arguments approves or rejects. Every offer is
//! accepted at once, and rules have neither budgets nor ends, but where a test says so: the worst
//! case for false approvals.
//! A button per tool and exact repetition are given the trace, too.

use std::collections::{BTreeMap, BTreeSet};

use model::{OperationId, ParticipantId};
use rules::{
    Acceptance, Arguments, CallRule, CallStage, EvidenceWeight, Learner, LearnerNews, PastVerdict,
    RejectReason, RuleEvidence, RuleName, RuleSet, RuledTool, Spent, SpentEvent, offer,
};
use serde_json::{Value, json};

use crate::support::{DIGEST, NOON_MS, OwnedCall, participant};

const CALLS: u64 = 4_000;
const CALLS_A_DAY: u64 = 60;
const DAY_MS: u64 = 24 * 3_600_000;

/// A small generator of numbers (xorshift), so that a seed makes a trace.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// One of these, the first ones more often (as by Zipf).
    fn often<'t>(&mut self, values: &[&'t str]) -> &'t str {
        let mut at = 0;
        while at + 1 < values.len() && self.below(5) < 2 {
            at += 1;
        }
        values[at]
    }
}

/// A call of the trace, and what the hidden policy says.
struct Traced {
    agent: &'static str,
    tool: &'static str,
    arguments: Value,
    is_approved: bool,
}

fn traced(draw: &mut Draw) -> Traced {
    let agents = ["scout", "builder", "mailer", "buyer", "clerk"];
    let agent = agents[usize::try_from(draw.below(5)).unwrap()];
    let (tool, arguments, is_approved) = match draw.below(7) {
        0 => {
            let repo = draw.often(&["acme/site", "acme/docs", "acme/api", "acme/secrets"]);
            let title = draw.often(&["Nightly report", "Weekly report", "Broken build"]);
            let arguments = json!({ "repo": repo, "title": title, "labels": ["bot"] });
            ("create_issue", arguments, repo != "acme/secrets")
        }
        1 => {
            let amount = 1 + draw.below(20) * (1 + draw.below(12));
            let account = format!("AC-{}", 100 + draw.below(900));
            (
                "pay",
                json!({ "account": account, "amount": amount }),
                amount <= 150,
            )
        }
        2 => {
            let folder = draw.often(&["/srv/docs/a", "/srv/docs/b", "/srv/docs/c", "/etc/ssh"]);
            let path = format!("{folder}/f{}.md", draw.below(400));
            ("read_file", json!({ "path": path }), folder != "/etc/ssh")
        }
        3 => {
            let user = format!(
                "{}_{}_{}",
                draw.often(&["mia", "li", "omar"]),
                "k",
                1000 + draw.below(9000)
            );
            ("get_user", json!({ "user_id": user }), true)
        }
        4 => {
            let to = draw.often(&["team@acme.com", "ops@acme.com", "all@evil.com"]);
            let subject = format!("news of day {}", draw.below(2_000));
            (
                "send_mail",
                json!({ "to": to, "subject": subject }),
                to != "all@evil.com",
            )
        }
        5 => {
            let command = draw.often(&["make test", "make lint", "git status", "rm -rf build"]);
            (
                "run",
                json!({ "command": command }),
                !command.starts_with("rm"),
            )
        }
        _ => {
            let cabin = draw.often(&["economy", "business"]);
            let flight = format!("HAT{}", 100 + draw.below(200));
            let arguments = json!({ "cabin": cabin, "flight": flight, "seats": 1 + draw.below(3) });
            ("book", arguments, cabin == "economy")
        }
    };
    Traced {
        agent,
        tool,
        arguments,
        is_approved,
    }
}

fn tool(name: &str) -> RuledTool {
    RuledTool {
        to: participant("server"),
        method: "tools/call".into(),
        target: name.into(),
    }
}

fn owned(call: &Traced, at: u64) -> OwnedCall {
    let mut owned = OwnedCall::new(&call.arguments.to_string());
    owned.operation = u128::from(at) + 1;
    owned.proposer = participant(call.agent);
    owned.to = participant("server");
    owned.kind = format!("mcp/request:tools/call:{}", call.tool);
    owned.at_ms = NOON_MS + at * DAY_MS / CALLS_A_DAY;
    owned
}

/// The score of a run.
#[derive(Debug, Default)]
struct Score {
    saved: u64,
    wrong: u64,
    offers: usize,
}

/// The learner over a trace, each offer accepted at once.
struct Run {
    learner: Learner,
    rules: RuleSet,
    spent: Spent,
    score: Score,
    has_budgets: bool,
}

impl Run {
    fn new(has_budgets: bool) -> Self {
        Self {
            has_budgets,
            learner: Learner::default(),
            rules: RuleSet::default(),
            spent: Spent::default(),
            score: Score::default(),
        }
    }

    fn take(&mut self, call: &Traced, at: u64) {
        let owned = owned(call, at);
        if let Some(rule) = self.decided_by(&owned) {
            self.score.saved += 1;
            self.score.wrong += u64::from(!call.is_approved);
            let is_over = |one: &CallRule| {
                one.uses
                    .is_some_and(|most| self.spent.uses(&one.name) >= most)
            };
            if self.has_budgets && is_over(&rule) {
                self.end(&rule.name);
            }
            return;
        }
        let verdict = if call.is_approved {
            PastVerdict::Approved
        } else {
            PastVerdict::Rejected(RejectReason::Unsaid)
        };
        let evidence = RuleEvidence {
            operation: OperationId(owned.operation),
            at_ms: owned.at_ms,
            tool: tool(call.tool),
            definition: Some(DIGEST),
            server: Some(DIGEST),
            proposer: owned.proposer.clone(),
            by: participant("ann"),
            rule: None,
            verdict,
            weight: EvidenceWeight::Deliberate,
            arguments: Arguments::read(owned.arguments.as_bytes()).unwrap(),
            redacted: Vec::new(),
            has_more: false,
        };
        for news in self.learner.take(evidence, &self.rules) {
            match news {
                LearnerNews::Ready(candidate) => self.accept(&candidate, owned.at_ms),
                LearnerNews::Suspends(name) => self.end(&name),
                LearnerNews::Quarantined(..) | LearnerNews::Frozen(_) => {}
            }
        }
    }

    /// The rule that approves a call, which takes one use.
    fn decided_by(&mut self, owned: &OwnedCall) -> Option<CallRule> {
        let (rules, spent) = (&self.rules, &mut self.spent);
        owned.with(|call| {
            let answer = rules.decide(call, spent, CallStage::Proposed)?;
            for charge in rules.charges(call, spent, Some(answer.name())) {
                spent.apply(SpentEvent::Charged(charge));
            }
            Some(answer.rule.clone())
        })
    }

    fn end(&mut self, name: &RuleName) {
        let others = self.rules.rules().iter().filter(|rule| rule.name != *name);
        self.rules = RuleSet::new(others.cloned()).unwrap();
    }

    fn accept(&mut self, candidate: &rules::RuleCandidate, at_ms: u64) {
        let acceptance = Acceptance {
            name: format!("r{}.1", self.score.offers).parse().unwrap(),
            author: ParticipantId::new("ann").unwrap(),
            at_ms,
            expires_ms: Some(at_ms + 900 * DAY_MS),
            destructive: true,
        };
        let offered = offer(candidate, &acceptance, self.learner.evidence())
            .unwrap()
            .unwrap();
        assert_eq!(offered.replay.count(rules::ReplayStanding::Contradicts), 0);
        let mut rule = offered.rule;
        if !self.has_budgets {
            rule.uses = Some(rules::USES_MAX);
            rule.guards.rate = None;
        }
        let mut all = self.rules.rules().to_vec();
        // A wider rule takes the place of those inside of it.
        all.retain(|one| one.scope != rule.scope || !rule.when.includes(&one.when));
        let of_tool = all
            .iter()
            .filter(|one| one.scope.target == rule.scope.target);
        if of_tool.count() < rules::TOOL_RULES_MAX {
            all.push(rule);
            self.rules = RuleSet::new(all).unwrap();
            self.learner.accept(candidate);
            self.score.offers += 1;
        }
    }
}

/// Variants of an approved call that no rule may pass, whatever its tool.
fn variants(call: &Value) -> Vec<String> {
    let mut all = Vec::new();
    let object = call.as_object().unwrap();
    let mut add = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
        let mut object = object.clone();
        change(&mut object);
        all.push(Value::Object(object).to_string());
    };
    add(&|object| drop(object.insert("force".to_owned(), json!(true))));
    add(&|object| drop(object.insert("Path".to_owned(), json!("/etc/passwd"))));
    for (name, value) in object {
        let mut change =
            |value: Value| add(&|object| drop(object.insert(name.clone(), value.clone())));
        change(Value::Null);
        change(json!([value]));
        change(json!({ "x": value }));
        change(json!(value.to_string()));
        if let Some(text) = value.as_str() {
            for hostile in [
                "; rm -rf /",
                "/../../etc/passwd",
                "\u{200b}",
                " ",
                "$(id)",
                "\n",
                "а",
                ".",
                "`id`",
            ] {
                change(json!(format!("{text}{hostile}")));
                change(json!(format!("{hostile}{text}")));
            }
            change(json!(format!("--output={text}")));
            change(json!(text.to_uppercase() + "!"));
        }
        if let Some(number) = value.as_u64() {
            change(json!(number + 100_000));
            change(json!(-1 - i64::try_from(number).unwrap()));
            change(json!(number as f64 + 0.5));
            change(json!(number.to_string()));
        }
    }
    all
}

#[test]
fn rules_save_prompts_and_approve_nothing_false() {
    evaluate(7);
}

#[test]
fn rules_save_prompts_and_approve_nothing_false_on_another_trace() {
    evaluate(2026);
}

/// Learns on the trace of a seed, and compares with the baselines.
fn evaluate(seed: u64) {
    let mut draw = Draw(seed);
    let trace: Vec<Traced> = (0..CALLS).map(|_| traced(&mut draw)).collect();
    let mut run = Run::new(false);
    for (at, call) in (0..).zip(&trace) {
        run.take(call, at);
    }
    let score = &run.score;
    assert_eq!(score.wrong, 0, "seed {seed}: {score:?}");
    assert!(score.saved * 100 >= CALLS * 50, "seed {seed}: {score:?}");
    assert!(score.offers < 160, "seed {seed}: {score:?}");
    // A button per tool approves what the policy rejects.
    let mut pressed = BTreeSet::new();
    let false_by_button = trace.iter().filter(|call| {
        let is_pressed = pressed.contains(&(call.agent, call.tool));
        if call.is_approved {
            pressed.insert((call.agent, call.tool));
        }
        is_pressed && !call.is_approved
    });
    assert!(false_by_button.count() > 100);
    // Exact repetition after three approvals saves less.
    let mut repeated: BTreeMap<(&str, &str, String), u64> = BTreeMap::new();
    let saved_by_repetition = trace.iter().filter(|call| {
        let count = repeated
            .entry((call.agent, call.tool, call.arguments.to_string()))
            .or_default();
        *count += u64::from(call.is_approved);
        *count > 3
    });
    let saved_by_repetition = u64::try_from(saved_by_repetition.count()).unwrap();
    assert!(
        saved_by_repetition < score.saved,
        "{saved_by_repetition} {score:?}"
    );
    let passed = attack_variants_passed(&run, &trace);
    assert!(passed.is_empty(), "seed {seed}: {passed:?}");
}

/// Variants of the last calls of the trace that a rule would approve.
fn attack_variants_passed(run: &Run, trace: &[Traced]) -> Vec<String> {
    let mut passed = Vec::new();
    let mut tried = 0;
    for call in trace.iter().rev().filter(|call| call.is_approved).take(150) {
        for arguments in variants(&call.arguments) {
            tried += 1;
            let mut owned = owned(call, CALLS);
            owned.arguments = arguments;
            let spent = Spent::default();
            let decided = owned.with(|call| {
                let answer = run.rules.decide(call, &spent, CallStage::Proposed);
                answer.map(|answer| answer.rule.sentence())
            });
            if let Some(sentence) = decided {
                passed.push(format!("{} {}: {sentence}", call.tool, owned.arguments));
            }
        }
    }
    assert!(tried > 1_000, "{tried}");
    passed
}

#[test]
fn a_coin_beside_the_arguments_is_bounded_by_quarantine_and_budgets() {
    let mut draw = Draw(99);
    let mut run = Run::new(true);
    for at in 0..CALLS {
        let mut call = traced(&mut draw);
        call.is_approved &= draw.below(100) >= 5;
        run.take(&call, at);
    }
    // Five of a hundred calls are rejected for no reason that arguments show.
    let score = run.score;
    assert!(
        score.wrong * 100 < CALLS && score.wrong * 10 < score.saved,
        "{score:?}"
    );
}
