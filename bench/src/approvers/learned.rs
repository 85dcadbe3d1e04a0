//! Our learner as an approver, with each offer accepted at once and rules that have neither budget,
//! rate nor end: the worst case for false approvals.

use rules::{
    Acceptance, CallRule, CallStage, EvidenceWeight, Learner, LearnerNews, PastVerdict,
    RejectReason, ReplayStanding, RuleCandidate, RuleEvidence, RuleName, RuleSet, RuledCall, Spent,
    SpentEvent, USES_MAX, offer,
};

use super::Approver;
use super::trace::{DAY_MS, TracedCall, operation_of, participant};

/// The author of all rules.
pub const AUTHOR: &str = "ann";
/// The term of rules that have no end: longer than a trace.
const TERM_MS: u64 = 900 * DAY_MS;

/// The learner, and the rules that were accepted.
#[derive(Default)]
pub struct LearnedAtOnce {
    learner: Learner,
    rules: RuleSet,
    spent: Spent,
    accepted: Vec<CallRule>,
}

/// A decision of the trace's approver as evidence.
pub fn evidence_of(call: &TracedCall, at: usize) -> RuleEvidence {
    let verdict = if call.is_approved_by_hand() {
        PastVerdict::Approved
    } else {
        PastVerdict::Rejected(RejectReason::Unsaid)
    };
    RuleEvidence {
        operation: operation_of(at),
        at_ms: call.at_ms,
        tool: call.ruled_tool(),
        definition: Some(call.definition),
        server: Some(call.configuration),
        proposer: participant(&call.agent),
        by: participant(AUTHOR),
        rule: None,
        verdict,
        weight: EvidenceWeight::Deliberate,
        arguments: call.read(),
        redacted: Vec::new(),
        has_more: !call.beside.is_empty(),
    }
}

/// Shows a call to rules.
pub fn with_ruled<T>(call: &TracedCall, at: usize, use_it: impl FnOnce(&RuledCall<'_>) -> T) -> T {
    let (proposer, to) = (participant(&call.agent), participant(&call.server));
    let kind = format!("mcp/request:tools/call:{}", call.tool);
    let beside: Vec<&str> = call.beside.iter().map(String::as_str).collect();
    let arguments = rules::Arguments::read(call.arguments.as_bytes());
    use_it(&RuledCall {
        operation: operation_of(at),
        proposer: &proposer,
        to: &to,
        kind: model::KindRef::parse(&kind).expect("a kind"),
        arguments: arguments.as_ref(),
        beside: &beside,
        definition: Some(call.definition),
        server: Some(call.configuration),
        at_ms: call.at_ms,
    })
}

/// The rule that approves a call.
pub fn approving<'r>(
    rules: &'r RuleSet,
    spent: &Spent,
    call: &TracedCall,
    at: usize,
) -> Option<&'r CallRule> {
    with_ruled(call, at, |call| {
        let answer = rules.decide(call, spent, CallStage::Proposed)?;
        Some(answer.rule)
    })
}

/// Takes one use of the rule that approves a call. Returns its name.
pub fn use_rule(
    rules: &RuleSet,
    spent: &mut Spent,
    call: &TracedCall,
    at: usize,
) -> Option<RuleName> {
    let name = approving(rules, spent, call, at)?.name.clone();
    let charges = with_ruled(call, at, |call| rules.charges(call, spent, Some(&name)));
    for charge in charges {
        spent.apply(SpentEvent::Charged(charge));
    }
    Some(name)
}

impl LearnedAtOnce {
    fn end(&mut self, name: &RuleName) {
        self.rules = self.rules.without(std::slice::from_ref(name));
    }

    fn accept(&mut self, candidate: &RuleCandidate, at_ms: u64) {
        let acceptance = Acceptance {
            name: format!("r{}.1", self.accepted.len())
                .parse()
                .expect("a name"),
            author: participant(AUTHOR),
            at_ms,
            expires_ms: Some(at_ms + TERM_MS),
            destructive: true,
        };
        let offered = offer(candidate, &acceptance, self.learner.evidence());
        let Ok(Some(offered)) = offered else {
            return;
        };
        assert_eq!(offered.replay.count(ReplayStanding::Contradicts), 0);
        let mut rule = offered.rule;
        rule.uses = Some(USES_MAX);
        rule.guards.rate = None;
        if let Some(rules) = with_wider(&self.rules, rule.clone()) {
            self.rules = rules;
            self.accepted.push(rule);
        }
    }
}

/// The rules with one more, in place of those that lie inside of it; `None` if there is no room.
pub fn with_wider(rules: &RuleSet, rule: CallRule) -> Option<RuleSet> {
    let is_inside = |one: &&CallRule| one.scope == rule.scope && rule.when.includes(&one.when);
    let inside = rules.rules().iter().filter(is_inside);
    let inside: Vec<RuleName> = inside.map(|one| one.name.clone()).collect();
    rules.without(&inside).with(rule).ok()
}

impl Approver for LearnedAtOnce {
    fn name(&self) -> String {
        "our rules, no budgets".to_owned()
    }

    fn approves(&self, call: &TracedCall, at: usize) -> bool {
        approving(&self.rules, &self.spent, call, at).is_some()
    }

    fn take(&mut self, call: &TracedCall, at: usize, by_itself: bool) {
        if by_itself {
            use_rule(&self.rules, &mut self.spent, call, at);
            return;
        }
        let evidence = evidence_of(call, at);
        let at_ms = evidence.at_ms;
        for news in self.learner.take(evidence, &self.rules) {
            match news {
                LearnerNews::Ready(candidate) => self.accept(&candidate, at_ms),
                LearnerNews::Suspends(name) => self.end(&name),
                LearnerNews::Quarantined(..) | LearnerNews::Frozen(_) => {}
            }
        }
    }

    fn rules(&self) -> usize {
        self.rules.rules().len()
    }

    fn questions(&self) -> usize {
        self.accepted.len()
    }

    fn accepted(&self) -> &[CallRule] {
        &self.accepted
    }
}
