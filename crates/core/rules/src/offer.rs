//! Offers: a rule with all that a person needs to see before accepting it.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use model::{Digest, OperationId};

use crate::arguments::Arguments;
use crate::bound::approved_share_permille;
use crate::candidate::{Acceptance, RuleCandidate};
use crate::conditions::Conditions;
use crate::constant::Constant;
use crate::decimal::Decimal;
use crate::evidence::{RuleEvidence, is_hurried};
use crate::fit::Fit;
use crate::guards::USES_MAX;
use crate::judge::{kept_value, shown};
use crate::lattice::{next_tighter, next_wider};
use crate::licence::may_be_wider;
use crate::made_up::{Extreme, made_up};
use crate::pointer::Pointer;
use crate::replay::{PastCall, RuleReplay, replay};
use crate::rule::CallRule;
use crate::rule_set::{RuleSet, RuleSetError};
use crate::value_test::ValueTest;
use crate::window::DAY_MS;

/// The most open offers of one person.
pub const OPEN_OFFERS_MAX: usize = 3;
/// The most rejections that an offer shows.
pub const NEAREST_MAX: usize = 3;
/// The most rows of the table of differing fields.
pub const TABLE_ROWS_MAX: usize = 20;

/// The table of the fields in which the approvals of an offer differ.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DifferingFields {
    /// The members.
    pub members: Vec<Pointer>,
    /// The calls with different values, those with extremes first, at most [`TABLE_ROWS_MAX`].
    pub rows: Vec<DifferingRow>,
    /// The number of different rows.
    pub different: usize,
}

/// One row: an approved call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DifferingRow {
    /// One of the calls with these values.
    pub operation: OperationId,
    /// The number of calls with these values.
    pub times: u32,
    /// The values, in the order of the members, as canonical JSON.
    pub values: Vec<String>,
}

/// A rejection near a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearRejection {
    /// The rejected call.
    pub operation: OperationId,
    /// The conditions that keep it outside of the rule, in words: `amount is 250, and not: is a whole
    /// number from 1 to 200`. Without any it lies inside: then it is one that does not count, as no
    /// person made it.
    pub excluded_by: Vec<String>,
}

/// The steps around the test of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberSteps {
    /// The member.
    pub member: Pointer,
    /// The next tighter step.
    pub tighter: Option<ValueTest>,
    /// The test of the rule.
    pub chosen: ValueTest,
    /// The next wider step, if there is one that no rejection lies in.
    pub wider: Option<ValueTest>,
}

/// A rule that is offered to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleOffer {
    /// The rule as the person would accept it.
    pub rule: CallRule,
    /// Digest of the rule's text. Accepting names it.
    pub digest: Digest,
    /// The approvals that it rests on.
    pub approvals: Vec<OperationId>,
    /// The fields in which they differ.
    pub differing: DifferingFields,
    /// The rejections that are nearest.
    pub nearest: Vec<NearRejection>,
    /// Its decisions, had it been there.
    pub replay: RuleReplay,
    /// Calls inside of the rule that were never seen, as JSON.
    pub made_up: Vec<String>,
    /// The steps around each test.
    pub steps: Vec<MemberSteps>,
    /// The share of calls inside of the rule that would be approved, in thousandths: 95 %, at any
    /// time, by the approvals after it took its form.
    pub approved_share_permille: u16,
    /// The prompts that it would have saved a day, in tenths, over the days of its approvals.
    pub saved_a_day_tenths: u32,
}

/// Makes the offer of a candidate to a person out of the decisions that are kept; `None` if the
/// candidate makes no rule.
///
/// # Errors
/// The rule cannot stand in a set.
pub fn offer<'e>(
    candidate: &RuleCandidate,
    acceptance: &Acceptance,
    evidence: impl IntoIterator<Item = &'e RuleEvidence>,
) -> Result<Option<RuleOffer>, RuleSetError> {
    let group = &candidate.group;
    let of_tool: Vec<&RuleEvidence> = evidence
        .into_iter()
        .filter(|one| one.tool == group.tool)
        .collect();
    let is_approval = |one: &&&RuleEvidence| {
        one.teaches()
            && one.proposer == group.proposer
            && one.definition == Some(group.definition)
            && one.server == Some(group.server)
            && candidate.when.fit_closed(&one.arguments) == Fit::Held
    };
    let approved: Vec<&RuleEvidence> = of_tool.iter().filter(is_approval).copied().collect();
    let times_ms: Vec<u64> = approved.iter().map(|one| one.at_ms).collect();
    let Some(rule) = candidate.rule(acceptance, &times_ms) else {
        return Ok(None);
    };
    let approvals = u32::try_from(approved.len()).unwrap_or(u32::MAX);
    let past: Vec<PastCall> = of_tool.iter().map(|one| PastCall::from(*one)).collect();
    let replay = replay(&RuleSet::new([without_limits(&rule)])?, &past);
    Ok(Some(RuleOffer {
        digest: rule.digest(),
        differing: differing(&approved),
        nearest: nearest(&rule.when, &of_tool),
        replay,
        made_up: unseen(&rule.when, &of_tool),
        steps: steps_of(&rule.when, &approved, &of_tool),
        approved_share_permille: approved_share_permille(candidate.shadow.min(approvals)),
        saved_a_day_tenths: saved_a_day_tenths(&times_ms),
        approvals: approved.iter().map(|one| one.operation).collect(),
        rule,
    }))
}

/// The rule with neither budget nor rate: what its conditions cover.
fn without_limits(rule: &CallRule) -> CallRule {
    let mut rule = rule.clone();
    rule.uses = Some(USES_MAX);
    rule.guards.rate = None;
    rule
}

fn differing(approved: &[&RuleEvidence]) -> DifferingFields {
    let Some(first) = approved.first() else {
        return DifferingFields::default();
    };
    let differs = |member: &Pointer| {
        let value = first.arguments.get(member);
        approved
            .iter()
            .any(|one| one.arguments.get(member) != value)
    };
    let members: Vec<Pointer> = first.members().into_iter().filter(differs).collect();
    let values = |one: &RuleEvidence| -> Vec<String> {
        let value = |member: &Pointer| {
            let raw = one.arguments.get(member).unwrap_or_default();
            String::from_utf8_lossy(raw).into_owned()
        };
        members.iter().map(value).collect()
    };
    let mut rows: Vec<DifferingRow> = Vec::new();
    for one in approved {
        let values = values(one);
        match rows.iter_mut().find(|row| row.values == values) {
            Some(row) => row.times = row.times.saturating_add(1),
            None => rows.push(DifferingRow {
                operation: one.operation,
                times: 1,
                values,
            }),
        }
    }
    let extremes = extreme_rows(&rows, members.len());
    let different = rows.len();
    let (mut first, rest): (Vec<_>, Vec<_>) = rows
        .into_iter()
        .enumerate()
        .partition(|(at, _)| extremes.contains(at));
    first.extend(rest);
    let rows = first.into_iter().map(|(_, row)| row).take(TABLE_ROWS_MAX);
    DifferingFields {
        members,
        rows: rows.collect(),
        different,
    }
}

/// The rows that hold the least or the greatest value of a member.
fn extreme_rows(rows: &[DifferingRow], members: usize) -> BTreeSet<usize> {
    let mut extremes = BTreeSet::new();
    for member in 0..members {
        let value = |at: &usize| rows.get(*at).and_then(|row| row.values.get(member));
        let order = |one: &usize, other: &usize| match (value(one), value(other)) {
            (Some(one), Some(other)) => by_size(one, other),
            (None, _) | (_, None) => Ordering::Equal,
        };
        extremes.extend((0..rows.len()).min_by(order));
        extremes.extend((0..rows.len()).max_by(order));
    }
    extremes
}

/// Numbers by value, all else by length.
fn by_size(one: &str, other: &str) -> Ordering {
    match (Decimal::parse(one), Decimal::parse(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (None, _) | (_, None) => one.len().cmp(&other.len()).then_with(|| one.cmp(other)),
    }
}

/// The rejections that the fewest conditions keep outside.
fn nearest(when: &Conditions, of_tool: &[&RuleEvidence]) -> Vec<NearRejection> {
    let rejected = of_tool.iter().filter(|one| one.verdict.is_rejection());
    let mut near: Vec<NearRejection> = rejected
        .map(|one| NearRejection {
            operation: one.operation,
            excluded_by: excluded_by(when, one),
        })
        .collect();
    near.sort_by_key(|one| one.excluded_by.len());
    near.dedup_by(|one, other| one.excluded_by == other.excluded_by);
    near.truncate(NEAREST_MAX);
    near
}

fn excluded_by(when: &Conditions, rejected: &RuleEvidence) -> Vec<String> {
    let arguments = &rejected.arguments;
    // The value of a redacted member is not known, and so excludes nothing.
    let is_known = |member: &Pointer| !rejected.redacted.iter().any(|one| one.holds(member));
    let failed = when
        .iter()
        .filter(|(member, test)| {
            is_known(member) && Conditions::fit_of(member, test, arguments) != Fit::Held
        })
        .map(|(member, test)| match arguments.get(member) {
            Some(raw) => format!(
                "{} is {}, and not: {}",
                member.words(),
                shown(raw),
                test.words()
            ),
            None => format!("{} is absent", member.words()),
        });
    let unnamed = arguments
        .leaves()
        .filter(|(member, _)| when.get(member).is_none() && is_known(member))
        .map(|(member, _)| format!("{} is given", member.words()));
    failed.chain(unnamed).collect()
}

/// Made-up calls that no decision was about.
fn unseen(when: &Conditions, of_tool: &[&RuleEvidence]) -> Vec<String> {
    let mut made: Vec<String> = Vec::new();
    for extreme in Extreme::ALL {
        let Some(json) = made_up(when, extreme) else {
            continue;
        };
        let Ok(arguments) = Arguments::read(json.as_bytes()) else {
            continue;
        };
        let is_seen = of_tool.iter().any(|one| one.arguments == arguments);
        if !is_seen && !made.iter().any(|one| one == arguments.text()) {
            made.push(arguments.text().to_owned());
        }
    }
    made
}

fn steps_of(
    when: &Conditions,
    approved: &[&RuleEvidence],
    of_tool: &[&RuleEvidence],
) -> Vec<MemberSteps> {
    // A wider step that covers a rejection is never offered.
    let excludes_rejections = |member: &Pointer, test: &ValueTest| {
        let tests = when.iter().map(|(own, chosen)| {
            let test = if own == member { test } else { chosen };
            (own.clone(), test.clone())
        });
        let wider = Conditions::new(tests);
        let mut rejected = of_tool.iter().filter(|one| one.verdict.is_rejection());
        wider.is_some_and(|wider| rejected.all(|one| !one.may_lie_in(&wider)))
    };
    let values = |member: &Pointer| -> Vec<Constant> {
        let values = approved.iter();
        values
            .filter_map(|one| kept_value(&one.arguments, member))
            .collect()
    };
    when.iter()
        .map(|(member, test)| {
            let values = values(member);
            MemberSteps {
                member: member.clone(),
                tighter: next_tighter(test, &values),
                chosen: test.clone(),
                wider: next_wider(test, &values).filter(|wider| {
                    may_be_wider(member, wider) && excludes_rejections(member, wider)
                }),
            }
        })
        .collect()
}

/// Calls a day, in tenths, over the days from the first to the last.
fn saved_a_day_tenths(times_ms: &[u64]) -> u32 {
    let (Some(first), Some(last)) = (times_ms.iter().min(), times_ms.iter().max()) else {
        return 0;
    };
    let days = (last / DAY_MS - first / DAY_MS) + 1;
    let calls = u64::try_from(times_ms.len()).unwrap_or(u64::MAX);
    u32::try_from(calls.saturating_mul(10) / days).unwrap_or(u32::MAX)
}

/// Whether a person may be offered one more rule: with fewer than [`OPEN_OFFERS_MAX`] open ones, and
/// not in a hurry. `last_ms` says how long the person's last decisions took, in milliseconds.
#[must_use]
pub fn may_be_offered(open: usize, last_ms: &[u32]) -> bool {
    open < OPEN_OFFERS_MAX && !is_hurried(last_ms)
}

/// The decisions among these that a renewal shows: uses of a rule, those that are least like the
/// approvals first.
#[must_use]
pub fn unlike_first<'u>(
    uses: &'u [Arguments],
    approved: impl IntoIterator<Item = &'u Arguments>,
) -> Vec<&'u Arguments> {
    let approved: Vec<&Arguments> = approved.into_iter().collect();
    let new_values = |one: &Arguments| {
        let is_new = |(member, raw): &(&Pointer, &[u8])| {
            !approved.iter().any(|known| known.get(member) == Some(*raw))
        };
        one.leaves().filter(is_new).count()
    };
    let mut sorted: Vec<&Arguments> = uses.iter().collect();
    sorted.sort_by_key(|one| std::cmp::Reverse(new_values(one)));
    sorted.truncate(TABLE_ROWS_MAX);
    sorted
}

#[cfg(test)]
mod tests;
