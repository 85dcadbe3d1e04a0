//! Acts of participants on rules that were learned or added by hand, as the audit log has them.

use model::{Digest, ParticipantId, Refusal};
use rules::{CallRule, RuleName};
use store::audit::{AuditEntry, RecordedVerdict as Word};
use store::recorder::RecordPermit;

use crate::record::Record;

/// The kind of an entry about an acceptance, first or of a next version.
const ACCEPT: &str = "portmoot/rule-accept";
/// The kind of an entry about a rule that was added by hand.
const ADD: &str = "portmoot/rule-add";
/// The kind of an entry about a dismissal.
const DISMISS: &str = "portmoot/rule-dismiss";
/// The kind of an entry about an end.
const END: &str = "portmoot/rule-end";

/// An act on a rule, as it was asked for.
#[derive(Debug)]
pub(crate) struct RuleAct {
    kind: &'static str,
    /// The rule, or the digest of its text.
    named: String,
}

impl RuleAct {
    /// An acceptance of the offer with this digest.
    pub(crate) fn accepts(digest: Digest) -> Self {
        Self {
            kind: ACCEPT,
            named: digest.to_string(),
        }
    }

    /// The addition of a rule by hand.
    pub(crate) fn adds(rule: &RuleName) -> Self {
        Self {
            kind: ADD,
            named: rule.to_string(),
        }
    }

    /// A dismissal of the offer with this digest.
    pub(crate) fn dismisses(digest: Digest) -> Self {
        Self {
            kind: DISMISS,
            named: digest.to_string(),
        }
    }

    /// The end of a rule.
    pub(crate) fn ends(rule: &RuleName) -> Self {
        Self {
            kind: END,
            named: rule.to_string(),
        }
    }
}

impl Record<'_> {
    /// A participant has accepted, dismissed or ended this rule, or could not.
    pub(crate) fn rule_act(
        self,
        permit: RecordPermit,
        by: &ParticipantId,
        act: &RuleAct,
        done: Result<&CallRule, &Refusal>,
    ) {
        let digest = done.ok().map(|rule| rule.digest().to_string());
        let (word, why) = match done {
            Ok(rule) => {
                let version = rule.name.version;
                let renewed = version > 1 && act.kind != END && act.kind != DISMISS;
                let before = if renewed {
                    ", in place of the version before"
                } else {
                    ""
                };
                let why = format!("rule {} of {}{before}", rule.name, rule.author);
                (Word::Admitted, why)
            }
            Err(refusal) => {
                let code = refusal.code.as_str();
                (Word::Refused, format!("{code}: {}", act.named))
            }
        };
        self.write(
            permit,
            &AuditEntry {
                why: Some(&why),
                digest: digest.as_deref(),
                ..self.entry(by.as_str(), act.kind, word)
            },
        );
    }
}
