//! The gateway's own tools, and the callers that may use each: its effects decide, not its name.

use model::{Capabilities, PROPOSAL, REQUEST};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// A tool of the gateway's own participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum BuiltinTool {
    /// Lists the proposals that wait for a decision.
    ListProposals,
    /// Shows one proposal in full.
    ShowProposal,
    /// Approves another participant's proposal.
    ApproveProposal,
    /// Rejects another participant's proposal.
    RejectProposal,
    /// Withdraws a proposal of the caller's own.
    WithdrawProposal,
    /// Waits for a proposal of the caller's own.
    WaitForProposal,
    /// Sends a message to the room.
    Say,
    /// Reads the messages of the room.
    ReadMessages,
    /// Lists the participants in the topic.
    ListParticipants,
}

impl BuiltinTool {
    /// All of them, in the order in which they are listed.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The tool of this name.
    pub fn of(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// Whether the tool is of use to a caller with these capabilities. Each decision, message or request by the tool is judged
    /// again.
    ///
    /// - Deciding: callers that may make some request, because a participant may propose it.
    /// - Looking: callers that may decide, or propose.
    /// - Waiting and withdrawing: callers that may propose.
    /// - Sending: callers that may send some envelope other than requests, which are calls.
    /// - Reading, and listing participants: all callers, because every participant may listen to the room.
    pub fn is_for(self, capabilities: &Capabilities) -> bool {
        let some = |head: &str| capabilities.iter().any(|one| one.admits_head(head));
        match self {
            Self::ListProposals | Self::ShowProposal => some(REQUEST) || some(PROPOSAL),
            Self::ApproveProposal | Self::RejectProposal => some(REQUEST),
            Self::WithdrawProposal | Self::WaitForProposal => some(PROPOSAL),
            Self::Say => capabilities.iter().any(|one| one.as_str().split(':').next() != Some(REQUEST)),
            Self::ReadMessages | Self::ListParticipants => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for tool in BuiltinTool::ALL {
            assert_eq!(BuiltinTool::of(tool.name()), Some(*tool));
        }
        assert_eq!(BuiltinTool::of("proxy"), None);
    }

    #[test]
    fn callers_that_may_use_each() {
        let check = |texts: &[&str], expected: &[&str]| {
            let granted = Capabilities::parse(texts.iter().copied()).unwrap();
            let mine: Vec<_> = BuiltinTool::ALL.iter().filter(|tool| tool.is_for(&granted)).collect();
            assert_eq!(mine.iter().map(|tool| tool.name()).collect::<Vec<_>>(), expected, "{texts:?}");
        };
        let (look, decide) = (["list_proposals", "show_proposal"], ["approve_proposal", "reject_proposal"]);
        let (own, read) =
            (["withdraw_proposal", "wait_for_proposal"], ["read_messages", "list_participants"]);
        check(&[], &read);
        check(&["chat"], &[&["say"][..], &read].concat());
        check(&["mcp/request:tools/call:a*"], &[look, decide, read].concat());
        check(&["mcp/proposal:tools/call:a*"], &[&look[..], &own, &["say"], &read].concat());
        check(&["mcp/re*:tools/call"], &[&look[..], &decide, &["say"], &read].concat());
        check(&["mcp/*"], &BuiltinTool::ALL.iter().map(|tool| tool.name()).collect::<Vec<_>>());
    }
}
