//! Review of other participants' proposals.

use model::GATEWAY;
use serde_json::json;
use serde_json::value::RawValue;

use super::error::CallError;
use super::event::IncomingProposal;
use super::handle::Participant;

impl Participant {
    /// Fulfils a proposal (MCPx v0.1, 3.2.1): makes the call with the proposed params, or with these instead, and waits
    /// for the answer.
    ///
    /// # Errors
    /// As [`Participant::request`]; [`CallError::Invalid`] if the proposal addresses no participant.
    pub async fn fulfil(
        &self,
        proposal: &IncomingProposal,
        params: Option<&RawValue>,
    ) -> Result<Box<RawValue>, CallError> {
        let proposed =
            proposal.call.params().and_then(|params| serde_json::from_slice::<Box<RawValue>>(params).ok());
        let params = params.or(proposed.as_deref());
        self.send_request(&proposal.to(), proposal.call.method(), params, Some(proposal.id())).await
    }

    /// Rejects a proposal, so that its proposer does not wait for it. MCPx has no kind for this: it is a tool of the
    /// gateway.
    ///
    /// # Errors
    /// As [`Participant::request`].
    pub async fn reject(&self, proposal: &str, reason: &str) -> Result<Box<RawValue>, CallError> {
        let arguments = json!({ "proposal": proposal, "reason": reason });
        let params = json!({ "name": "reject_proposal", "arguments": arguments });
        self.request(GATEWAY, "tools/call", &params).await
    }
}
