//! What a reviewer does with others' proposals.

use model::GATEWAY;
use serde_json::json;
use serde_json::value::RawValue;

use super::error::CallError;
use super::event::Proposed;
use super::handle::Participant;

impl Participant {
    /// Fulfils a proposal (MCPx v0.1, 3.2.1): makes the call as it was proposed, or with these params instead, and waits for
    /// the answer.
    ///
    /// # Errors
    /// As [`Participant::request`]; [`CallError::Unspeakable`] if the proposal names nobody whom to ask.
    pub async fn fulfil(
        &self,
        proposed: &Proposed,
        params: Option<&RawValue>,
    ) -> Result<Box<RawValue>, CallError> {
        let own =
            proposed.call.params().and_then(|params| serde_json::from_slice::<Box<RawValue>>(params).ok());
        let params = params.or(own.as_deref());
        self.send(&proposed.to(), proposed.call.method(), params, Some(proposed.id())).await
    }

    /// Says no to a proposal, so that its proposer need not wait. MCPx has no word for it: the gateway's own participant has a
    /// tool.
    ///
    /// # Errors
    /// As [`Participant::request`].
    pub async fn reject(&self, proposal: &str, reason: &str) -> Result<Box<RawValue>, CallError> {
        let arguments = json!({ "proposal": proposal, "reason": reason });
        let params = json!({ "name": "reject_proposal", "arguments": arguments });
        self.request(GATEWAY, "tools/call", &params).await
    }
}
