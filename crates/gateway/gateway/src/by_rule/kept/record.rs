//! Records of rules in the journal, and how each is written as JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Digest, OperationId};
use rules::{
    CallRule, Decimal, Pointer, RuleCharge, RuleName, RuleTotals, SpentEvent, SpotTally,
    SpotTotals, SuspendCause, parse_rules,
};
use serde::{Deserialize, Serialize};

use super::answered::AnsweredBefore;
use super::decided::DecidedCall;
use super::shadow::{ShadowEnded, Shadowed, WrittenShadow};
use super::spot::{CheckedSpot, SpotSeed, SpottedCall};
use crate::as_text;

/// A fact about rules that the gateway needs after a restart. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum RuleRecord {
    /// A version of a rule came into force.
    Accepted(AcceptedRule),
    /// It decides nothing from now on.
    Suspended(SuspendedRule),
    /// A learned rule will never decide again.
    Ended(EndedRule),
    /// A participant does not want a rule that it was offered.
    Dismissed(DismissedOffer),
    /// It counts a call: written together with the decision.
    Charged(ChargedRule),
    /// Its decision did not count.
    Returned(ReturnedUse),
    /// A call that it approved is over.
    UseEnded(EndedUse),
    /// Its totals beside its charges, in a journal that dropped older records.
    Carried(CarriedRule),
    /// A call was answered that a rule asks for.
    Answered(AnsweredBefore),
    /// The secret by which spot checks are drawn.
    Seeded(SpotSeed),
    /// It leaves a call to people that it would have approved.
    Spotted(SpottedCall),
    /// Such a call is decided, or over: written together with that.
    Checked(CheckedSpot),
    /// It is in shadow, and has looked at a proposal or a direct call.
    Shadowed(Shadowed),
    /// Such a proposal is decided, or over: written together with that.
    ShadowEnded(ShadowEnded),
    /// A proposal was decided, expired or was withdrawn: written together with that.
    Decided(DecidedCall),
}

/// A version of a rule that came into force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AcceptedRule {
    /// Its topic.
    pub(crate) topic: String,
    /// The rule and its version.
    #[serde(with = "as_text")]
    pub(crate) rule: RuleName,
    /// Digest of its text.
    #[serde(with = "as_text")]
    pub(crate) digest: Digest,
    /// When it came into force.
    pub(crate) at_ms: u64,
    /// Incarnations of the names of its author and its proposers then, of those that had one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) bearers: BTreeMap<String, String>,
    /// The text of a rule that was learned, and that its author has accepted, or that its author has
    /// added by hand. Others are in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) learned: Option<LearnedText>,
    /// Whether its author has added it by hand.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) by_hand: bool,
}

/// A learned rule that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndedRule {
    /// Its topic.
    pub(crate) topic: String,
    /// The rule and its version.
    #[serde(with = "as_text")]
    pub(crate) rule: RuleName,
    /// The participant that ended it.
    pub(crate) by: String,
    /// When.
    pub(crate) at_ms: u64,
}

/// An offer that its author does not want.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DismissedOffer {
    /// Its topic.
    pub(crate) topic: String,
    /// The rule that was offered.
    pub(crate) rule: LearnedText,
    /// When.
    pub(crate) at_ms: u64,
}

/// A learned rule. Written as its text, which is what its author was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct LearnedText(pub(crate) Arc<CallRule>);

impl From<LearnedText> for String {
    fn from(text: LearnedText) -> Self {
        text.0.text()
    }
}

impl TryFrom<String> for LearnedText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let rules = parse_rules(&text).map_err(|error| error.message)?;
        match <[CallRule; 1]>::try_from(rules) {
            Ok([rule]) => Ok(Self(Arc::new(rule))),
            Err(_) => Err("it is not the text of one rule".to_owned()),
        }
    }
}

/// A version of a rule that is suspended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SuspendedRule {
    /// Its topic.
    pub(crate) topic: String,
    /// The rule and its version.
    #[serde(with = "as_text")]
    pub(crate) rule: RuleName,
    /// Why.
    #[serde(with = "as_text")]
    pub(crate) cause: SuspendCause,
    /// When.
    pub(crate) at_ms: u64,
}

/// A call that a rule counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenCharge", into = "WrittenCharge")]
pub(crate) struct ChargedRule {
    /// Its topic.
    pub(crate) topic: String,
    /// The charge.
    pub(crate) charge: RuleCharge,
}

/// A decision by rule that did not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReturnedUse {
    /// Its topic.
    pub(crate) topic: String,
    /// The proposal.
    #[serde(with = "as_text")]
    pub(crate) operation: OperationId,
}

/// The end of a call that a rule approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndedUse {
    /// Its topic.
    pub(crate) topic: String,
    /// The proposal.
    #[serde(with = "as_text")]
    pub(crate) operation: OperationId,
    /// Whether it failed.
    pub(crate) failed: bool,
}

/// The totals of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenTotals", into = "WrittenTotals")]
pub(crate) struct CarriedRule {
    /// Its topic.
    pub(crate) topic: String,
    /// The totals.
    pub(crate) totals: RuleTotals,
}

#[derive(Serialize, Deserialize)]
struct WrittenCharge {
    topic: String,
    #[serde(with = "as_text")]
    rule: RuleName,
    #[serde(with = "as_text")]
    operation: OperationId,
    at_ms: u64,
    is_use: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    amounts: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    values: Vec<(String, String)>,
    keep_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct WrittenTotals {
    topic: String,
    #[serde(with = "as_text")]
    rule: RuleName,
    uses: u32,
    draws: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_use_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    outcomes: Vec<(String, bool)>,
    /// Spot checks that are over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checks: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    open: Vec<(String, u32)>,
    #[serde(default, skip_serializing_if = "is_zero")]
    owed: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    checked: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    agreed: u32,
    #[serde(default, skip_serializing_if = "WrittenShadow::is_empty")]
    shadow: WrittenShadow,
    full_until_ms: u64,
    latest_ms: u64,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl RuleRecord {
    /// The topic that it is about.
    pub(crate) fn topic(&self) -> &str {
        match self {
            Self::Accepted(accepted) => &accepted.topic,
            Self::Suspended(suspended) => &suspended.topic,
            Self::Ended(ended) => &ended.topic,
            Self::Dismissed(dismissed) => &dismissed.topic,
            Self::Charged(charged) => &charged.topic,
            Self::Returned(returned) => &returned.topic,
            Self::UseEnded(ended) => &ended.topic,
            Self::Carried(carried) => &carried.topic,
            Self::Answered(answered) => &answered.topic,
            Self::Seeded(seeded) => &seeded.topic,
            Self::Spotted(spotted) => &spotted.topic,
            Self::Checked(checked) => &checked.topic,
            Self::Shadowed(shadowed) => &shadowed.topic,
            Self::ShadowEnded(ended) => &ended.topic,
            Self::Decided(decided) => &decided.topic,
        }
    }

    /// Whether it changes the life of a rule, or what it leaves to people, and not only its spending.
    pub(crate) fn is_of_life(&self) -> bool {
        match self {
            Self::Accepted(_)
            | Self::Suspended(_)
            | Self::Ended(_)
            | Self::Dismissed(_)
            | Self::Seeded(_)
            | Self::Spotted(_)
            | Self::Checked(_) => true,
            Self::Charged(_)
            | Self::Returned(_)
            | Self::UseEnded(_)
            | Self::Carried(_)
            | Self::Answered(_)
            | Self::Shadowed(_)
            | Self::ShadowEnded(_)
            | Self::Decided(_) => false,
        }
    }

    /// The record of an event.
    pub(crate) fn of_spent(topic: &str, event: SpentEvent) -> Self {
        let topic = topic.to_owned();
        match event {
            SpentEvent::Charged(charge) => Self::Charged(ChargedRule { topic, charge }),
            SpentEvent::Returned(operation) => Self::Returned(ReturnedUse { topic, operation }),
            SpentEvent::Ended { operation, failed } => Self::UseEnded(EndedUse {
                topic,
                operation,
                failed,
            }),
            SpentEvent::Carried(totals) => Self::Carried(CarriedRule { topic, totals }),
            SpentEvent::Answered(call) => Self::Answered(AnsweredBefore { topic, call }),
            SpentEvent::Spotted { rule, operation } => Self::Spotted(SpottedCall {
                topic,
                rule,
                operation,
            }),
            SpentEvent::Shadowed(call) => Self::Shadowed(Shadowed { topic, call }),
            SpentEvent::ShadowEnded { operation, end } => Self::ShadowEnded(ShadowEnded {
                topic,
                operation,
                end,
            }),
            SpentEvent::Checked { operation, end } => Self::Checked(CheckedSpot {
                topic,
                operation,
                end,
            }),
        }
    }
}

impl From<ChargedRule> for WrittenCharge {
    fn from(ChargedRule { topic, charge }: ChargedRule) -> Self {
        let amounts = charge.amounts.iter();
        let values = charge.values.iter();
        Self {
            topic,
            rule: charge.rule,
            operation: charge.operation,
            at_ms: charge.at_ms,
            is_use: charge.is_use,
            amounts: amounts
                .map(|(pointer, amount)| (pointer.as_str().to_owned(), amount.to_string()))
                .collect(),
            values: values
                .map(|(pointer, value)| (pointer.as_str().to_owned(), value.to_string()))
                .collect(),
            keep_ms: charge.keep_ms,
        }
    }
}

impl TryFrom<WrittenCharge> for ChargedRule {
    type Error = String;

    fn try_from(written: WrittenCharge) -> Result<Self, String> {
        let mut amounts = Vec::new();
        for (pointer, amount) in written.amounts {
            let amount = Decimal::parse(&amount).ok_or("an amount is no number")?;
            amounts.push((pointer_of(&pointer)?, amount));
        }
        let mut values = Vec::new();
        for (pointer, value) in written.values {
            values.push((pointer_of(&pointer)?, value.into()));
        }
        Ok(Self {
            topic: written.topic,
            charge: RuleCharge {
                rule: written.rule,
                operation: written.operation,
                at_ms: written.at_ms,
                is_use: written.is_use,
                amounts,
                values,
                keep_ms: written.keep_ms,
            },
        })
    }
}

impl From<CarriedRule> for WrittenTotals {
    fn from(CarriedRule { topic, totals }: CarriedRule) -> Self {
        let outcomes = totals.outcomes.iter();
        let spots = totals.checks;
        let open = spots.open.iter();
        Self {
            topic,
            rule: totals.rule,
            uses: totals.uses,
            draws: totals.draws,
            last_use_ms: totals.last_use_ms,
            outcomes: outcomes
                .map(|(operation, failed)| (operation.to_string(), *failed))
                .collect(),
            checks: spots.ended.iter().map(OperationId::to_string).collect(),
            open: open
                .map(|(operation, version)| (operation.to_string(), *version))
                .collect(),
            owed: spots.owed,
            checked: spots.tally.decided,
            agreed: spots.tally.agreed,
            shadow: totals.shadow.into(),
            full_until_ms: totals.full_until_ms,
            latest_ms: totals.latest_ms,
        }
    }
}

impl TryFrom<WrittenTotals> for CarriedRule {
    type Error = String;

    fn try_from(written: WrittenTotals) -> Result<Self, String> {
        let operation = |text: &str| text.parse().map_err(|_| "an operation is misspelled");
        let mut outcomes = Vec::new();
        for (text, failed) in &written.outcomes {
            outcomes.push((operation(text)?, *failed));
        }
        let mut spots = SpotTotals {
            owed: written.owed,
            tally: SpotTally {
                decided: written.checked,
                agreed: written.agreed,
            },
            ..SpotTotals::default()
        };
        for text in &written.checks {
            spots.ended.push(operation(text)?);
        }
        for (text, version) in &written.open {
            spots.open.push((operation(text)?, *version));
        }
        Ok(Self {
            topic: written.topic,
            totals: RuleTotals {
                rule: written.rule,
                uses: written.uses,
                draws: written.draws,
                last_use_ms: written.last_use_ms,
                outcomes,
                checks: spots,
                shadow: written.shadow.try_into()?,
                full_until_ms: written.full_until_ms,
                latest_ms: written.latest_ms,
            },
        })
    }
}

fn pointer_of(text: &str) -> Result<Pointer, String> {
    Pointer::parse(text).map_err(|error| error.to_string())
}
