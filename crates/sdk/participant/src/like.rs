//! The like of a proposal: a rule that approves it and what is like it, for some hours.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::api::post;
use crate::error::CallError;
use crate::handle::Participant;
use crate::review::WaitingProposal;

/// The terms on which the like of a proposal is approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LikeTerms {
    /// For how long: from 10 minutes to 8 hours, in whole seconds.
    pub time: Duration,
    /// The number of calls, the proposed one included: from 1 to 20.
    pub uses: u32,
    /// Conditions in place of values of the call, as TOML: `"/amount" = { integer = [1, 100] }`.
    /// Without any, only the same arguments are like them.
    pub when: String,
    /// The tool's own name, as the author of the rule typed it: needed where the tool does not say that
    /// it destroys nothing.
    pub tool: Option<String>,
}

impl Default for LikeTerms {
    /// The same arguments, for an hour and 20 calls.
    fn default() -> Self {
        Self {
            time: Duration::from_secs(3600),
            uses: 20,
            when: String::new(),
            tool: None,
        }
    }
}

/// A rule that approves the like of a proposal. It is not in force before it is added.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LikeRule {
    /// Its id and version, such as `like-5e1f0c32.1`.
    pub rule: String,
    /// The topic of the proposal.
    pub topic: String,
    /// All that it says, in English: what a person is asked to agree to.
    pub sentence: String,
    /// Its text, as TOML.
    pub text: String,
    /// The tool's name, as it was typed.
    #[serde(skip)]
    tool: Option<String>,
}

/// A rule in force, as far as it is read.
#[derive(Deserialize)]
struct AddedRule {
    rule: String,
}

impl Participant {
    /// Makes the rule that would approve the like of a proposal that waits, on this participant's
    /// authority. Nothing is decided by it: show its sentence to the person, then
    /// [`Participant::add_rule`] puts it in force.
    ///
    /// It goes to the gateway's REST API: no envelope and no tool makes a rule.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the gateway makes none, such as for a condition that the call does
    /// not meet; [`CallError::NotConnected`], [`CallError::Lost`], [`CallError::Timeout`].
    pub async fn like(
        &self,
        proposal: &WaitingProposal,
        terms: &LikeTerms,
    ) -> Result<LikeRule, CallError> {
        let body = json!({
            "for_seconds": terms.time.as_secs(),
            "uses": terms.uses,
            "when": terms.when,
            "tool": terms.tool,
        });
        let drafted: LikeRule =
            post(self.spec(), &["proposals", &proposal.id, "like"], &body).await?;
        Ok(LikeRule {
            tool: terms.tool.clone(),
            ..drafted
        })
    }

    /// Puts the rule in force that approves the like of a proposal. The proposal is the first call that
    /// it approves. Returns the rule's id and version.
    ///
    /// # Errors
    /// As [`Participant::like`].
    pub async fn add_rule(&self, rule: &LikeRule) -> Result<String, CallError> {
        let body = json!({ "rule": rule.text, "tool": rule.tool });
        let path = ["topics", &rule.topic, "rules"];
        let AddedRule { rule } = post(self.spec(), &path, &body).await?;
        Ok(rule)
    }
}
