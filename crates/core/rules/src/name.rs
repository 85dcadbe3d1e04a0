//! Ids of rules, and names of their versions.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The longest id of a rule, in bytes.
pub const RULE_ID_BYTES_MAX: usize = 64;
/// The beginning of the ids of learned rules, which no file of rules may give.
pub const LEARNED_ID_PREFIX: &str = "learned-";

/// Why a text is no [`RuleId`] or [`RuleName`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a rule has 1 to {RULE_ID_BYTES_MAX} letters, digits, `_` and `-`, as in `r12`")]
pub struct NoRuleId;

/// The id of a rule, which all of its versions have. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(Arc<str>);

impl RuleId {
    /// Reads an id, such as `r12`.
    ///
    /// # Errors
    /// [`NoRuleId`].
    pub fn new(text: &str) -> Result<Self, NoRuleId> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let is_id = (1..=RULE_ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain);
        if is_id {
            Ok(Self(text.into()))
        } else {
            Err(NoRuleId)
        }
    }

    /// Whether it is one that only learned rules have.
    #[must_use]
    pub fn is_learned(&self) -> bool {
        self.0.starts_with(LEARNED_ID_PREFIX)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// One version of a rule. Prints as `r12.3`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleName {
    /// The id.
    pub id: RuleId,
    /// The version, from 1 on. Every change of the rule's text makes a new one.
    pub version: u32,
}

impl fmt::Display for RuleName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.id, self.version)
    }
}

impl FromStr for RuleName {
    type Err = NoRuleId;

    fn from_str(text: &str) -> Result<Self, NoRuleId> {
        let (id, version) = text.rsplit_once('.').ok_or(NoRuleId)?;
        let version: u32 = version.parse().map_err(|_| NoRuleId)?;
        let name = Self {
            id: RuleId::new(id)?,
            version,
        };
        if version > 0 && name.to_string() == text {
            Ok(name)
        } else {
            Err(NoRuleId)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_an_alphabet_and_a_limit() {
        assert!(RuleId::new("r12").is_ok());
        assert!(RuleId::new(&"r".repeat(RULE_ID_BYTES_MAX)).is_ok());
        for text in ["", "r.1", "r 1", "é", &"r".repeat(RULE_ID_BYTES_MAX + 1)] {
            assert_eq!(RuleId::new(text), Err(NoRuleId), "{text}");
        }
    }

    #[test]
    fn ids_of_learned_rules_have_their_beginning() {
        let is_learned = |text: &str| RuleId::new(text).unwrap().is_learned();
        assert!(is_learned("learned-1f"));
        assert!(!is_learned("learned") && !is_learned("r-learned-1f"));
    }

    #[test]
    fn names_round_trip() {
        let name: RuleName = "r12.3".parse().unwrap();
        assert_eq!((name.id.as_str(), name.version), ("r12", 3));
        assert_eq!(name.to_string(), "r12.3");
        for text in ["r12", "r12.", "r12.0", "r12.03", "r12.+3", ".3"] {
            assert_eq!(text.parse::<RuleName>(), Err(NoRuleId), "{text}");
        }
    }
}
