//! Rules tried on the past: what they would have decided of the proposals that a participant may
//! see. Nothing is decided by it, and nothing spent.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Capabilities, KindRef, OperationId, ParticipantId, Refusal, RefusalCode};
use rules::{
    CallRule, PastCall, PastVerdict, ReplayStanding, ReplayedCall, RuleDecision, RuleEvidence,
    RuleName, RuleReplay, RuleSet, RuledTool, replay,
};

use crate::dispatch::Dispatch;
use crate::live::Topic;

/// The longest time that rules are tried on the past.
pub const REPLAY_TIME_MAX: Duration = Duration::from_secs(10);

/// The participant for which rules are tried.
#[derive(Debug, Clone, Copy)]
pub struct PastReader<'r> {
    /// Its id.
    pub id: &'r ParticipantId,
    /// Its capabilities in the topic, narrowed to the scope of its access token.
    pub capabilities: &'r Capabilities,
    /// The address from which it asks.
    pub address: Option<IpAddr>,
}

/// Rules, tried on the past.
#[derive(Debug, Clone)]
pub struct TriedRules {
    /// The rules, in the order of their file.
    pub rules: Vec<TriedRule>,
    /// All of them together.
    pub replay: RuleReplay,
    /// Proposals on which they were not tried: a rule names a member whose value is not kept.
    pub left_out: usize,
}

/// One rule, tried on the past beside the others.
#[derive(Debug, Clone)]
pub struct TriedRule {
    /// The rule.
    pub rule: CallRule,
    /// The proposals that it would have decided, in the order of their decisions.
    pub decided: Vec<OperationId>,
    /// Of these, the ones about which was decided otherwise.
    pub contradicted: Vec<OperationId>,
    /// All of these, by what became of them.
    pub tally: TriedTally,
}

/// Proposals that a rule would have decided, by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TriedTally {
    /// The reader approved them by hand.
    pub approved_by_you: usize,
    /// Other participants approved them.
    pub approved_by_others: usize,
    /// Rules approved them.
    pub approved_by_rules: usize,
    /// They were rejected.
    pub rejected: usize,
    /// They expired.
    pub expired: usize,
    /// They were withdrawn.
    pub withdrawn: usize,
}

impl Dispatch {
    /// Tries rules on the decisions that the journal keeps about proposals since a time in Unix
    /// milliseconds, as far as the reader may see these proposals.
    ///
    /// # Errors
    /// The rules are no set, nothing is kept, or it takes longer than [`REPLAY_TIME_MAX`].
    pub fn try_rules(
        &self,
        rules: &[CallRule],
        reader: PastReader<'_>,
        since_ms: u64,
    ) -> Result<TriedRules, Refusal> {
        self.try_within(rules, reader, since_ms, REPLAY_TIME_MAX)
    }

    fn try_within(
        &self,
        rules: &[CallRule],
        reader: PastReader<'_>,
        since_ms: u64,
        limit: Duration,
    ) -> Result<TriedRules, Refusal> {
        // What those in shadow would decide is asked here.
        let set = RuleSet::new(rules.iter().map(CallRule::awake))
            .map_err(|error| Refusal::new(RefusalCode::Malformed, error.to_string()))?;
        let seen = self.past_of(reader, since_ms)?;
        let all: Vec<&RuleEvidence> = seen.iter().map(AsRef::as_ref).collect();
        let mut known = all.clone();
        known.retain(|decision| !names_redacted(&set, decision));
        let begun = Instant::now();
        let mut is_late = false;
        let in_time = known.iter().take_while(|_| {
            is_late = begun.elapsed() >= limit;
            !is_late
        });
        let replay = replay(&set, in_time.map(|decision| PastCall::from(*decision)));
        if is_late {
            return Err(takes_too_long());
        }
        Ok(TriedRules {
            rules: tallied(rules, &replay, &known, reader.id),
            left_out: all.len() - known.len(),
            replay,
        })
    }

    /// The decisions about proposals that a participant may see, in their order.
    pub(super) fn past_of(
        &self,
        reader: PastReader<'_>,
        since_ms: u64,
    ) -> Result<Vec<Arc<RuleEvidence>>, Refusal> {
        let Some(ledgers) = &self.ledgers else {
            let why = "there is no past: the gateway keeps no journal";
            return Err(Refusal::new(RefusalCode::UnknownTarget, why)
                .hint("a gateway with a data directory keeps one"));
        };
        let topic = self.name().as_str();
        let mut past = ledgers.rules.state(|kept| kept.decisions_of(topic));
        past.retain(|decision| decision.at_ms >= since_ms);
        // The topic answers for each tool and for each of the reader's own proposals, and no longer: no
        // call steps meanwhile.
        let mut tools: BTreeSet<&RuledTool> = past.iter().map(|one| &one.tool).collect();
        self.with(|topic| tools.retain(|tool| reader.covers(topic, tool)));
        let may_be_own =
            |one: &&Arc<RuleEvidence>| one.proposer == *reader.id && !tools.contains(&one.tool);
        let own = past.iter().filter(may_be_own).map(|one| one.operation);
        let mut own: BTreeSet<OperationId> = own.collect();
        self.with(|topic| own.retain(|proposal| reader.sees_own(topic, *proposal)));
        let is_seen =
            |one: &&Arc<RuleEvidence>| tools.contains(&one.tool) || own.contains(&one.operation);
        Ok(past.iter().filter(is_seen).cloned().collect())
    }
}

/// Whether one of the rules for a call names a member of it whose value is not kept.
fn names_redacted(rules: &RuleSet, decision: &RuleEvidence) -> bool {
    let tool = &decision.tool;
    let Ok(kind) = KindRef::request(&tool.method, Some(&tool.target)) else {
        return false;
    };
    let is_whole = decision.redacted.is_empty();
    !is_whole
        && rules
            .of_kind(kind)
            .any(|rule| rule.names_redacted(decision))
}

/// The rules, each with what it would have decided of the past.
pub(super) fn tallied(
    rules: &[CallRule],
    replay: &RuleReplay,
    past: &[&RuleEvidence],
    reader: &ParticipantId,
) -> Vec<TriedRule> {
    let past: BTreeMap<OperationId, &RuleEvidence> =
        past.iter().map(|one| (one.operation, *one)).collect();
    let mut tried: Vec<TriedRule> = rules.iter().map(TriedRule::new).collect();
    let places: BTreeMap<&RuleName, usize> = rules
        .iter()
        .enumerate()
        .map(|(at, rule)| (&rule.name, at))
        .collect();
    for decided in &replay.decided {
        let rule = places.get(&decided.rule).and_then(|at| tried.get_mut(*at));
        if let (Some(rule), Some(past)) = (rule, past.get(&decided.operation)) {
            rule.take(decided, past, reader);
        }
    }
    tried
}

fn takes_too_long() -> Refusal {
    let seconds = REPLAY_TIME_MAX.as_secs();
    let why = format!("these rules take longer than {seconds} s on so many decisions");
    Refusal::new(RefusalCode::Overloaded, why)
        .hint("try fewer rules, or a shorter time: --since 7d")
}

impl PastReader<'_> {
    /// Whether it could make the calls of a tool, and so sees the proposals of them.
    pub(super) fn covers(self, topic: &Topic, tool: &RuledTool) -> bool {
        topic.covers_request(self.capabilities, &tool.method, &tool.target, &tool.to)
    }

    /// Whether the topic still shows it a proposal by a participant of its name. The name alone does
    /// not say that it is its own: it may have had another bearer.
    fn sees_own(self, topic: &Topic, proposal: OperationId) -> bool {
        topic.may_see_proposal(proposal, self.id, self.capabilities)
    }
}

impl TriedRule {
    fn new(rule: &CallRule) -> Self {
        Self {
            rule: rule.clone(),
            decided: Vec::new(),
            contradicted: Vec::new(),
            tally: TriedTally::default(),
        }
    }

    fn take(&mut self, decided: &ReplayedCall, past: &RuleEvidence, reader: &ParticipantId) {
        let tally = &mut self.tally;
        let count = match past.verdict {
            PastVerdict::Approved if past.rule.is_some() => &mut tally.approved_by_rules,
            PastVerdict::Approved if past.by == *reader => &mut tally.approved_by_you,
            PastVerdict::Approved => &mut tally.approved_by_others,
            PastVerdict::Rejected(_) => &mut tally.rejected,
            PastVerdict::Expired => &mut tally.expired,
            PastVerdict::Withdrawn => &mut tally.withdrawn,
            // None is kept of a call that needed no approval.
            PastVerdict::Direct => return,
        };
        *count += 1;
        self.decided.push(decided.operation);
        if decided.standing() == ReplayStanding::Contradicts {
            self.contradicted.push(decided.operation);
        }
    }

    /// The result in words: `would have approved 41 proposals that you approved by hand, 0 that were
    /// rejected, 3 that expired`.
    #[must_use]
    pub fn words(&self) -> String {
        let tally = &self.tally;
        match self.rule.decision {
            RuleDecision::Approve => {
                let approved = tally.approved();
                let rejected = TallyRow::were(tally.rejected, "rejected").always();
                let rows = approved.into_iter().chain([rejected]);
                sentence("approved", rows.chain(tally.undecided()))
            }
            RuleDecision::Reject => {
                let rejected = TallyRow::were(tally.rejected, "rejected").always();
                let rows = [rejected].into_iter().chain(tally.approved());
                sentence("rejected", rows.chain(tally.undecided()))
            }
            RuleDecision::Ask => {
                let all = tally.total();
                format!("would have left {all} {} to people", proposals(all))
            }
        }
    }
}

impl TriedTally {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> usize {
        let approved = self.approved_by_you + self.approved_by_others + self.approved_by_rules;
        approved + self.rejected + self.expired + self.withdrawn
    }

    fn approved(&self) -> [TallyRow; 3] {
        [
            TallyRow::that(self.approved_by_you, "you approved by hand").always(),
            TallyRow::that(self.approved_by_others, "others approved"),
            TallyRow::that(self.approved_by_rules, "rules approved"),
        ]
    }

    fn undecided(&self) -> [TallyRow; 2] {
        [
            TallyRow::that(self.expired, "expired"),
            TallyRow::were(self.withdrawn, "withdrawn"),
        ]
    }
}

/// A number of proposals in a sentence.
struct TallyRow {
    count: usize,
    what: String,
    /// Whether it is named if there are none.
    is_always: bool,
}

impl TallyRow {
    /// Proposals `that expired`.
    fn that(count: usize, what: &str) -> Self {
        Self {
            count,
            what: format!("that {what}"),
            is_always: false,
        }
    }

    /// Proposals `that were rejected`.
    fn were(count: usize, participle: &str) -> Self {
        let verb = if count == 1 { "was" } else { "were" };
        Self::that(count, &format!("{verb} {participle}"))
    }

    fn always(self) -> Self {
        Self {
            is_always: true,
            ..self
        }
    }
}

/// `would have approved 41 proposals that you approved by hand, 0 that were rejected`
fn sentence(verb: &str, rows: impl Iterator<Item = TallyRow>) -> String {
    let named = rows.filter(|row| row.is_always || row.count > 0);
    let parts: Vec<String> = named
        .enumerate()
        .map(|(at, row)| match at {
            0 => format!("{} {} {}", row.count, proposals(row.count), row.what),
            _ => format!("{} {}", row.count, row.what),
        })
        .collect();
    format!("would have {verb} {}", parts.join(", "))
}

fn proposals(count: usize) -> &'static str {
    if count == 1 { "proposal" } else { "proposals" }
}

#[cfg(test)]
mod tests;
