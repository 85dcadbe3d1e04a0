//! Spot checks in the journal, and the secret by which they are drawn.

use std::fmt;

use model::{Digest, OperationId};
use rules::{RuleName, SpotEnd};
use serde::{Deserialize, Serialize};

use crate::as_text;

/// The secret of a topic by which the spot checks of its rules are drawn. The first one counts.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SpotSeed {
    /// Its topic.
    pub(crate) topic: String,
    /// 32 random bytes, as 64 hexadecimal digits.
    #[serde(with = "as_text")]
    pub(crate) seed: Digest,
}

impl SpotSeed {
    /// A new one.
    pub(crate) fn random(topic: &str) -> Self {
        Self {
            topic: topic.to_owned(),
            seed: Digest(platform::random()),
        }
    }
}

impl fmt::Debug for SpotSeed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SpotSeed")
            .field("topic", &self.topic)
            .finish_non_exhaustive()
    }
}

/// A proposal that a rule leaves to people, and would have approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SpottedCall {
    /// Its topic.
    pub(crate) topic: String,
    /// The rule and its version.
    #[serde(with = "as_text")]
    pub(crate) rule: RuleName,
    /// The proposal.
    #[serde(with = "as_text")]
    pub(crate) operation: OperationId,
}

/// The end of such a proposal: written together with its decision, its expiry or its withdrawal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CheckedSpot {
    /// Its topic.
    pub(crate) topic: String,
    /// The proposal.
    #[serde(with = "as_text")]
    pub(crate) operation: OperationId,
    /// Its end.
    #[serde(with = "as_text")]
    pub(crate) end: SpotEnd,
}
