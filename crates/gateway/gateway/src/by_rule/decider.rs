//! Decider of a proposal, as it is shown: a participant, or rules.

use model::{ParticipantId, RULES};
use rules::RuleName;

use crate::live::ProposalView;

/// The participant or the name under which rules decide that has decided a proposal.
pub fn decider(proposal: &ProposalView) -> Option<&str> {
    if rule_of(proposal).is_some() {
        return Some(RULES);
    }
    proposal.decided_by.as_ref().map(ParticipantId::as_str)
}

/// The rule that has decided a proposal, and its author.
pub fn rule_of(proposal: &ProposalView) -> Option<(&RuleName, &ParticipantId)> {
    let rule = proposal.ruling.as_ref()?.rule.as_ref()?;
    Some((&rule.name, proposal.decided_by.as_ref()?))
}
