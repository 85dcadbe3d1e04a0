//! Decider of a proposal, as it is shown: a participant, or a rule on its author's authority.

use std::fmt;

use json::Object;
use model::{ParticipantId, RULES};
use rules::RuleName;

use crate::live::ProposalView;

/// A rule that decided, and the author on whose authority it did. Prints as `rule r1.2 of ann`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthoredRule<'p> {
    /// The rule and its version.
    pub rule: &'p RuleName,
    /// Its author.
    pub author: &'p ParticipantId,
}

impl AuthoredRule<'_> {
    /// Writes the members by which programs learn of it.
    pub(crate) fn write_members(self, object: &mut Object<'_>) {
        object
            .text("rule", &self.rule.to_string())
            .text("rule_author", self.author.as_str());
    }
}

impl fmt::Display for AuthoredRule<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "rule {} of {}", self.rule, self.author)
    }
}

/// Words of records about rules before a request.
pub(crate) enum RuleWords {
    /// Of the rule that takes something of it.
    Takes(String),
    /// Of those in shadow that would have taken something of one that runs.
    Would(String),
}

/// The participant or the name under which rules decide that has decided a proposal.
pub fn decider(proposal: &ProposalView) -> Option<&str> {
    if rule_of(proposal).is_some() {
        return Some(RULES);
    }
    proposal.decided_by.as_ref().map(ParticipantId::as_str)
}

/// The rule that has decided a proposal, with its author.
pub fn rule_of(proposal: &ProposalView) -> Option<AuthoredRule<'_>> {
    let rule = proposal.ruling.as_ref()?.rule.as_ref()?;
    Some(AuthoredRule {
        rule: &rule.name,
        author: proposal.decided_by.as_ref()?,
    })
}

/// The code of the reason that a reviewer chose from the list to reject a proposal.
pub fn code_of(proposal: &ProposalView) -> Option<&'static str> {
    proposal.ruling.as_ref()?.code.code()
}

/// A note that a reviewer has given with an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalNote<'p> {
    /// The reviewer.
    pub by: &'p ParticipantId,
    /// Its words for the proposer.
    pub note: &'p str,
}

/// The notes with the approvals of a proposal, in their order.
pub fn notes_of(proposal: &ProposalView) -> Vec<ApprovalNote<'_>> {
    let before = proposal.notes.iter().map(|one| ApprovalNote {
        by: &one.by,
        note: &one.note,
    });
    let last = || {
        let note = proposal.ruling.as_ref()?.note.as_deref()?;
        let by = proposal.decided_by.as_ref()?;
        Some(ApprovalNote { by, note })
    };
    before.chain(last()).collect()
}

/// Writes the member by which programs learn of notes, if there are any.
pub(crate) fn write_notes(notes: &[ApprovalNote<'_>], object: &mut Object<'_>) {
    if notes.is_empty() {
        return;
    }
    object.array("notes", |all| {
        for ApprovalNote { by, note } in notes {
            all.object(|one| {
                one.text("by", by.as_str()).text("note", note);
            });
        }
    });
}

/// The approvals of a proposal so far, in words: "approved by ann, 1 of 2".
pub(crate) fn words_of_approvals(proposal: &ProposalView) -> String {
    let approved = proposal.approved_by.iter();
    let names: Vec<&str> = approved.map(ParticipantId::as_str).collect();
    let count = format!("{} of {}", names.len(), proposal.approvals);
    if names.is_empty() {
        return format!("approved by no participant yet, {count}");
    }
    format!("approved by {}, {count}", names.join(", "))
}
