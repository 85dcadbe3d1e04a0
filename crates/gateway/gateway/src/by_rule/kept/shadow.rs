//! Looks of rules in shadow in the journal.

use model::OperationId;
use rules::{
    CallStage, RuleDecision, RuleName, ShadowEnd, ShadowMark, ShadowTally, ShadowTotals,
    ShadowedCall,
};
use serde::{Deserialize, Serialize};

use crate::as_text;

/// A look of a rule in shadow at a proposal, or at a call that ran without an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenLook", into = "WrittenLook")]
pub(crate) struct Shadowed {
    /// Its topic.
    pub(crate) topic: String,
    /// The look.
    pub(crate) call: ShadowedCall,
}

/// The end of a proposal at which rules in shadow have looked: written together with its decision, its
/// expiry or its withdrawal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShadowEnded {
    /// Its topic.
    pub(crate) topic: String,
    /// The proposal.
    #[serde(with = "as_text")]
    pub(crate) operation: OperationId,
    /// Its end.
    #[serde(with = "as_text")]
    pub(crate) end: ShadowEnd,
}

#[derive(Serialize, Deserialize)]
struct WrittenLook {
    topic: String,
    #[serde(with = "as_text")]
    rule: RuleName,
    #[serde(with = "as_text")]
    operation: OperationId,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    direct: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<String>,
}

/// The looks of a rule, as its totals carry them.
#[derive(Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WrittenShadow {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    open: Vec<(String, u32, Option<String>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ended: Vec<(String, u32, Option<String>)>,
    /// The counts of [`ShadowTally`] but that of waiting ones, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    counts: Vec<u32>,
}

impl WrittenShadow {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl From<Shadowed> for WrittenLook {
    fn from(Shadowed { topic, call }: Shadowed) -> Self {
        Self {
            topic,
            rule: call.rule,
            operation: call.operation,
            direct: call.stage == CallStage::Direct,
            decision: call.decision.map(|decision| decision.as_str().to_owned()),
        }
    }
}

impl TryFrom<WrittenLook> for Shadowed {
    type Error = String;

    fn try_from(written: WrittenLook) -> Result<Self, String> {
        let stage = if written.direct {
            CallStage::Direct
        } else {
            CallStage::Proposed
        };
        Ok(Self {
            topic: written.topic,
            call: ShadowedCall {
                rule: written.rule,
                operation: written.operation,
                stage,
                decision: decision_of(written.decision)?,
            },
        })
    }
}

fn decision_of(written: Option<String>) -> Result<Option<RuleDecision>, String> {
    let read = |text: String| RuleDecision::parse(&text).ok_or("a decision is misspelled");
    Ok(written.map(read).transpose()?)
}

impl From<ShadowTotals> for WrittenShadow {
    fn from(totals: ShadowTotals) -> Self {
        let written = |(operation, mark): &(OperationId, ShadowMark)| {
            let decision = mark.decision.map(|decision| decision.as_str().to_owned());
            (operation.to_string(), mark.version, decision)
        };
        let tally = totals.tally;
        let mut counts = vec![
            tally.proposals,
            tally.approved,
            tally.edited,
            tally.rejected,
            tally.by_rules,
            tally.undecided,
            tally.left,
            tally.left_by_rules,
            tally.held,
            tally.refused,
        ];
        if tally == ShadowTally::default() {
            counts.clear();
        }
        Self {
            open: totals.open.iter().map(written).collect(),
            ended: totals.ended.iter().map(written).collect(),
            counts,
        }
    }
}

impl TryFrom<WrittenShadow> for ShadowTotals {
    type Error = String;

    fn try_from(written: WrittenShadow) -> Result<Self, String> {
        let read = |(operation, version, decision): (String, u32, Option<String>)| {
            let operation = operation.parse();
            let mark = ShadowMark {
                version,
                decision: decision_of(decision)?,
            };
            let operation = operation.map_err(|_| "an operation is misspelled")?;
            Ok::<(OperationId, ShadowMark), String>((operation, mark))
        };
        let count = |at: usize| written.counts.get(at).copied().unwrap_or_default();
        let tally = ShadowTally {
            proposals: count(0),
            waiting: 0,
            approved: count(1),
            edited: count(2),
            rejected: count(3),
            by_rules: count(4),
            undecided: count(5),
            left: count(6),
            left_by_rules: count(7),
            held: count(8),
            refused: count(9),
        };
        Ok(Self {
            tally,
            open: written
                .open
                .into_iter()
                .map(read)
                .collect::<Result<_, _>>()?,
            ended: written
                .ended
                .into_iter()
                .map(read)
                .collect::<Result<_, _>>()?,
        })
    }
}
