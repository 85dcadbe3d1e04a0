//! The rule that approves the like of a call: made of one call that waits, for a short time.

use model::{Digest, NamePattern, ParticipantId};

use crate::arguments::Arguments;
use crate::conditions::Conditions;
use crate::evidence::RuledTool;
use crate::fit::Fit;
use crate::guards::RuleGuards;
use crate::name::RuleName;
use crate::parse::reads_back;
use crate::pointer::Pointer;
use crate::rule::{CallRule, RuleDecision, RuleScope};

/// The longest time for which the like of a call is approved: 8 hours, in milliseconds.
pub const LIKE_MS_MAX: u64 = 8 * 60 * 60_000;
/// The most calls that are approved so.
pub const LIKE_USES_MAX: u32 = 20;

/// A call of which the like is to be approved.
#[derive(Debug, Clone)]
pub struct LikeCall<'c> {
    /// Its tool.
    pub tool: RuledTool,
    /// Digest of the tool's definition.
    pub definition: Digest,
    /// Digest of the server's configured command or URL.
    pub server: Digest,
    /// Its proposer.
    pub proposer: &'c ParticipantId,
    /// Its arguments.
    pub arguments: &'c Arguments,
}

/// The terms on which the like of a call is to be approved.
#[derive(Debug, Clone)]
pub struct LikeTerms {
    /// Id and version of the rule.
    pub name: RuleName,
    /// The participant on whose authority it decides.
    pub author: ParticipantId,
    /// The end, in milliseconds since 1970.
    pub expires_ms: u64,
    /// The budget.
    pub uses: u32,
    /// Whether it approves calls of a tool that may destroy something.
    pub destructive: bool,
    /// Tests in place of the values that the call has. All other members stay as they are.
    pub tests: Conditions,
}

/// Why there is no rule for the like of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LikeError {
    /// A value is too long for a rule, or has characters that none may hold.
    #[error("a value is too long for a rule, or has characters that no rule holds")]
    NoConstant,
    /// A test is about a member that the call does not have.
    #[error("the call has no {0}")]
    NotOfCall(Pointer),
    /// The call itself would not be among its like.
    #[error("the call itself does not fit the condition on {0}")]
    DoesNotFit(Pointer),
    /// No text says what the rule would.
    #[error("no rule can say that: {0}")]
    NoRule(String),
}

/// The rule that approves the like of a call: with the same members, and the same values but for
/// those that the terms test otherwise.
///
/// # Errors
/// [`LikeError`].
pub fn like(call: &LikeCall<'_>, terms: &LikeTerms) -> Result<CallRule, LikeError> {
    let rule = CallRule {
        name: terms.name.clone(),
        author: terms.author.clone(),
        decision: RuleDecision::Approve,
        scope: RuleScope {
            method: call.tool.method.clone(),
            target: Some(call.tool.target.clone()),
            to: Some(call.tool.to.clone()),
            proposers: vec![proposer(call.proposer)?],
            definition: Some(call.definition),
            server: Some(call.server),
        },
        when: conditions(call.arguments, &terms.tests)?,
        guards: RuleGuards::default(),
        during: None,
        expires_ms: Some(terms.expires_ms.next_multiple_of(1_000)),
        uses: Some(terms.uses),
        destructive: terms.destructive,
        shadow: false,
    };
    reads_back(&rule).map_err(LikeError::NoRule)?;
    Ok(rule)
}

fn proposer(name: &ParticipantId) -> Result<NamePattern, LikeError> {
    NamePattern::parse(name.as_str()).map_err(|error| LikeError::NoRule(error.to_string()))
}

/// Conditions that the arguments satisfy: each of its members has the value of the call, or a test.
fn conditions(arguments: &Arguments, tests: &Conditions) -> Result<Conditions, LikeError> {
    let exactly = Conditions::exactly(arguments).ok_or(LikeError::NoConstant)?;
    for (pointer, test) in tests.iter() {
        if exactly.get(pointer).is_none() {
            return Err(LikeError::NotOfCall(pointer.clone()));
        }
        if Conditions::fit_of(pointer, test, arguments) != Fit::Held {
            return Err(LikeError::DoesNotFit(pointer.clone()));
        }
    }
    let all = exactly.iter().map(|(pointer, value)| {
        let test = tests.get(pointer).unwrap_or(value);
        (pointer.clone(), test.clone())
    });
    // A member that is tested as a whole stands for itself: the exact ones are leaves.
    Conditions::new(all).ok_or(LikeError::NoConstant)
}

#[cfg(test)]
mod tests {
    use model::ParticipantId;

    use super::*;
    use crate::name::RuleId;
    use crate::parse::parse_conditions;

    fn made(arguments: &str, tests: &str) -> Result<CallRule, LikeError> {
        let id = |name| ParticipantId::new(name).unwrap();
        let arguments = Arguments::read(arguments.as_bytes()).unwrap();
        let call = LikeCall {
            tool: RuledTool {
                to: id("bank"),
                method: "tools/call".into(),
                target: "pay".into(),
            },
            definition: Digest([1; 32]),
            server: Digest([2; 32]),
            proposer: &id("scout"),
            arguments: &arguments,
        };
        let terms = LikeTerms {
            name: RuleName {
                id: RuleId::new("like-1").unwrap(),
                version: 1,
            },
            author: id("ann"),
            expires_ms: 1_700_000_000_001,
            uses: 3,
            destructive: false,
            tests: parse_conditions(tests).unwrap(),
        };
        like(&call, &terms)
    }

    #[test]
    fn it_covers_the_call_and_what_the_tests_admit() {
        let rule = made(
            r#"{"amount":40,"to":{"iban":"DE1"}}"#,
            r#""/amount" = { integer = [1, 100] }"#,
        )
        .unwrap();
        assert_eq!(rule.expires_ms, Some(1_700_000_001_000));
        assert_eq!(rule.uses, Some(3));
        for (arguments, fit) in [
            (r#"{"amount":40,"to":{"iban":"DE1"}}"#, Fit::Held),
            (r#"{"amount":100,"to":{"iban":"DE1"}}"#, Fit::Held),
            (r#"{"amount":101,"to":{"iban":"DE1"}}"#, Fit::Failed),
            (r#"{"amount":40,"to":{"iban":"DE2"}}"#, Fit::Failed),
            (r#"{"amount":40}"#, Fit::Failed),
            (r#"{"amount":40,"to":{"iban":"DE1"},"more":1}"#, Fit::Failed),
        ] {
            let arguments_read = Arguments::read(arguments.as_bytes()).unwrap();
            assert_eq!(rule.when.fit_closed(&arguments_read), fit, "{arguments}");
        }
    }

    #[test]
    fn a_test_that_the_call_does_not_satisfy_makes_no_rule() {
        let of = |text: &str| Pointer::parse(text).unwrap();
        for (tests, expected) in [
            (
                r#""/amount" = { integer = [41, 100] }"#,
                LikeError::DoesNotFit(of("/amount")),
            ),
            (
                r#""/more" = { integer = [41, 100] }"#,
                LikeError::NotOfCall(of("/more")),
            ),
        ] {
            assert_eq!(made(r#"{"amount":40}"#, tests).unwrap_err(), expected);
        }
        let long = format!("{{\"text\":\"{}\"}}", "x".repeat(10_000));
        assert_eq!(made(&long, "").unwrap_err(), LikeError::NoConstant);
        assert!(
            made("{}", "").is_ok(),
            "a call without arguments has its like"
        );
    }
}
