//! Delivery modes of listeners.

/// The messages of its topic's room that a link wants. Source: MCPx v0.1, section 6; the third mode
/// is Portmoot's, for reviewers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DeliveryMode {
    /// Every message.
    #[default]
    All,
    /// Messages without addressees, and those that name the participant.
    Directed,
    /// Messages without addressees, those that name the participant, and every proposal.
    DirectedAndProposals,
}
