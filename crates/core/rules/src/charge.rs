//! Parts of what one rule has spent: calls that it counts, its looks in shadow, and its totals.

use model::OperationId;

use crate::call::CallStage;
use crate::decimal::Decimal;
use crate::name::RuleName;
use crate::pointer::Pointer;
use crate::rule::RuleDecision;
use crate::shadow::ShadowTotals;
use crate::spot::SpotTotals;

/// The most calls that are kept for one rule. One that has as many in its windows counts as full:
/// its guards are broken.
pub const RULE_CHARGES_MAX: usize = 10_000;
/// The last uses that are looked at for failures.
pub const OUTCOMES_KEPT: usize = 10;

/// A call that a rule counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleCharge {
    /// The rule that counts it.
    pub rule: RuleName,
    /// The call.
    pub operation: OperationId,
    /// When it was decided, in milliseconds since 1970.
    pub at_ms: u64,
    /// Whether the rule decided it, which takes one use of its budget.
    pub is_use: bool,
    /// The members that the rule sums, each with its value.
    pub amounts: Vec<(Pointer, Decimal)>,
    /// The members by which the rule counts, each with its value as a careless reader takes it:
    /// another case or spelling is no other value.
    pub values: Vec<(Pointer, Box<str>)>,
    /// The time that it must be kept, in milliseconds.
    pub keep_ms: u64,
}

/// A look of a rule in shadow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowedCall {
    /// The rule.
    pub rule: RuleName,
    /// The proposal or call.
    pub operation: OperationId,
    /// Whether it is a proposal, or a call that ran without an approval.
    pub stage: CallStage,
    /// The decision that the rule would have made, if it would have made one.
    pub decision: Option<RuleDecision>,
}

/// The totals of one rule that its kept charges do not show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleTotals {
    /// The rule, and its latest version.
    pub rule: RuleName,
    /// The uses of that version.
    pub uses: u32,
    /// As [`Spent::draws`](crate::Spent::draws).
    pub draws: u32,
    /// When it was last used, in milliseconds since 1970.
    pub last_use_ms: Option<u64>,
    /// The last uses that are over, the latest last, each with whether it failed.
    pub outcomes: Vec<(OperationId, bool)>,
    /// Its spot checks.
    pub checks: SpotTotals,
    /// Its looks in shadow.
    pub shadow: ShadowTotals,
    /// As [`Spent::is_full`](crate::Spent::is_full): the end of that, in milliseconds since 1970.
    pub full_until_ms: u64,
    /// The latest time that was seen, in milliseconds since 1970.
    pub latest_ms: u64,
}
