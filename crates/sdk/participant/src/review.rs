//! Waiting proposals: the gateway's list of them, and decisions by its tools.

use model::{GATEWAY, ProposalState};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error::{CallError, RpcError};
use crate::event::{Claim, Note};
use crate::handle::Participant;

/// Proposals of one page of the gateway's list.
const PAGE: usize = 100;

/// A proposal that waits for a decision, as the gateway lists it: one's own, or one that this
/// participant could decide. In texts of others, the gateway has written hidden characters as
/// `\u{...}`.
#[derive(Debug, Clone, Deserialize)]
pub struct WaitingProposal {
    /// Its id for the gateway, the API and the command line.
    pub id: String,
    /// The id of the envelope that proposed, which the request that fulfils it has as
    /// `correlation_id`.
    pub envelope: String,
    /// Its state.
    #[serde(deserialize_with = "state")]
    pub state: ProposalState,
    /// The proposer.
    #[serde(rename = "by")]
    pub proposer: String,
    /// The participants that the call is for.
    pub to: Vec<String>,
    /// The method of the call.
    pub method: String,
    /// The tool, prompt or resource of the call.
    pub target: Option<String>,
    /// Whether this participant has made it.
    pub own: bool,
    /// Whether this participant may decide about it.
    pub may_decide: bool,
    /// The params; `None` if they are too long for a list. [`Participant::show`] returns them.
    pub params: Option<Box<RawValue>>,
    /// The tool as its server describes it.
    pub tool: Option<Box<RawValue>>,
    /// Digest of the proposal that a decision must name, so that it decides this very proposal;
    /// `None` if the proposal is too long for a list.
    pub digest: Option<String>,
    /// When it was made, as RFC 3339.
    pub at: Option<String>,
    /// When it expires, as RFC 3339.
    pub expires: Option<String>,
    /// The participants that look at it.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Notes that came with approvals.
    #[serde(default)]
    pub notes: Vec<Note>,
    /// Its place in a plan, if it is a step of one. A later step is not decided about.
    #[serde(default)]
    pub plan: Option<PlanPosition>,
    /// Of the first step of a plan, all its steps in their order: a decision is about all of them, and
    /// `target`, `params` and `tool` are here alone.
    #[serde(default)]
    pub steps: Vec<WaitingStep>,
}

/// The place of a proposal in a plan.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PlanPosition {
    /// The plan: the id of its first step.
    pub id: String,
    /// The number of the step; the first is 1.
    pub step: usize,
    /// The number of steps.
    pub of: usize,
}

/// One step of a plan.
#[derive(Debug, Clone, Deserialize)]
pub struct WaitingStep {
    /// The id of its proposal.
    pub id: String,
    /// The server that the call is for.
    pub to: Vec<String>,
    /// The tool.
    pub target: Option<String>,
    /// The params; `None` if the plan is too long for a list.
    pub params: Option<Box<RawValue>>,
    /// The tool as its server describes it.
    pub tool: Option<Box<RawValue>>,
}

fn state<'de, D: Deserializer<'de>>(text: D) -> Result<ProposalState, D::Error> {
    String::deserialize(text)?
        .parse()
        .map_err(serde::de::Error::custom)
}

#[derive(Deserialize)]
struct Page {
    proposals: Vec<WaitingProposal>,
    more: bool,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Decided {
    #[serde(deserialize_with = "state")]
    state: ProposalState,
}

/// The result of a tool.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<T> {
    #[serde(default)]
    content: Vec<Block>,
    structured_content: Option<T>,
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    text: String,
}

impl Participant {
    /// The proposals that wait for a decision, oldest first: one's own, and those that this
    /// participant could decide. With `all` those that are over too, as far as the gateway keeps
    /// them.
    ///
    /// Needs a capability for the gateway's tool (`mcp/request:tools/call:list_proposals`).
    ///
    /// # Errors
    /// [`CallError::ToolFailed`]; else as [`Participant::request`].
    pub async fn waiting(&self, all: bool) -> Result<Vec<WaitingProposal>, CallError> {
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let mut arguments = json!({ "all": all, "limit": PAGE });
            if let (Some(after), Some(arguments)) = (after, arguments.as_object_mut()) {
                arguments.insert("after".to_owned(), Value::String(after));
            }
            let page: Page = self.gateway_tool("list_proposals", &arguments).await?;
            found.extend(page.proposals);
            if !page.more || page.next.is_none() {
                return Ok(found);
            }
            after = page.next;
        }
    }

    /// One proposal in full, by its id or that of its envelope.
    ///
    /// # Errors
    /// As [`Participant::waiting`].
    pub async fn show(&self, proposal: &str) -> Result<WaitingProposal, CallError> {
        self.gateway_tool("show_proposal", &json!({ "id": proposal }))
            .await
    }

    /// Approves a proposal as it was listed, perhaps with other arguments, which is recorded: the
    /// gateway makes the call on this participant's authority, and the proposer gets the answer.
    /// [`Participant::fulfil`] makes the call and gets the answer too.
    ///
    /// # Errors
    /// [`CallError::Invalid`] if the list has it without its params: [`Participant::show`] returns
    /// them. [`CallError::ToolFailed`] when it has changed or is decided, or this participant may
    /// not decide; else as [`Participant::request`].
    pub async fn approve(
        &self,
        proposal: &WaitingProposal,
        arguments: Option<&RawValue>,
    ) -> Result<ProposalState, CallError> {
        self.approve_with_note(proposal, arguments, "").await
    }

    /// [`Self::approve`], with a note for the proposer, who gets it as the reason of a rejection; none
    /// if it is empty.
    ///
    /// # Errors
    /// As [`Self::approve`].
    pub async fn approve_with_note(
        &self,
        proposal: &WaitingProposal,
        arguments: Option<&RawValue>,
        note: &str,
    ) -> Result<ProposalState, CallError> {
        let Some(digest) = &proposal.digest else {
            return Err(CallError::Invalid("it was not shown in full".to_owned()));
        };
        let mut decision = json!({ "id": proposal.id, "digest": digest });
        if let (Some(raw), Some(decision)) = (arguments, decision.as_object_mut()) {
            let arguments: Value = serde_json::from_str(raw.get())
                .map_err(|error| CallError::Invalid(error.to_string()))?;
            decision.insert("arguments".to_owned(), arguments);
        }
        if let (false, Some(decision)) = (note.is_empty(), decision.as_object_mut()) {
            decision.insert("note".to_owned(), note.into());
        }
        let decided: Decided = self.gateway_tool("approve_proposal", &decision).await?;
        Ok(decided.state)
    }

    /// Shows others who may decide about a proposal that this participant looks at it, by its id or
    /// that of its envelope. It ends after five minutes, unless it is claimed again, and stops no
    /// participant from deciding.
    ///
    /// # Errors
    /// [`CallError::ToolFailed`] when it is decided already, or this participant may not decide; else
    /// as [`Participant::request`].
    pub async fn claim(&self, proposal: &str) -> Result<(), CallError> {
        let arguments = json!({ "id": proposal });
        self.change_proposal("claim_proposal", &arguments).await
    }

    /// Gives ten minutes more to decide about another participant's proposal, by its id or that of
    /// its envelope; ten times at most.
    ///
    /// # Errors
    /// [`CallError::ToolFailed`] when it is decided already, has had all of its time, or this
    /// participant may not decide; else as [`Participant::request`].
    pub async fn extend(&self, proposal: &str) -> Result<(), CallError> {
        let arguments = json!({ "id": proposal });
        self.change_proposal("extend_proposal", &arguments).await
    }

    /// Replaces the arguments of one's own proposal of a tool call, by its id or that of its
    /// envelope, until it is decided; 32 times at most. Approvals of the former arguments are void.
    ///
    /// # Errors
    /// [`CallError::Invalid`] if the arguments cannot be read. [`CallError::ToolFailed`] when it is
    /// decided already, was amended as often as it may be, or is another participant's; else as
    /// [`Participant::request`].
    pub async fn amend(&self, proposal: &str, arguments: &RawValue) -> Result<(), CallError> {
        let arguments: Value = serde_json::from_str(arguments.get())
            .map_err(|error| CallError::Invalid(error.to_string()))?;
        let amendment = json!({ "id": proposal, "arguments": arguments });
        self.change_proposal("amend_proposal", &amendment).await
    }

    /// Calls a tool of the gateway that changes a proposal and leaves it open.
    async fn change_proposal(&self, tool: &str, arguments: &Value) -> Result<(), CallError> {
        let Decided { state: _ } = self.gateway_tool(tool, arguments).await?;
        Ok(())
    }

    /// Withdraws one's own proposal, by its id or that of its envelope, while it is pending. Needs
    /// no capability of its own.
    ///
    /// # Errors
    /// [`CallError::ToolFailed`] when it is decided already, or another participant's; else as
    /// [`Participant::request`].
    pub async fn withdraw(&self, proposal: &str, reason: &str) -> Result<(), CallError> {
        let arguments = json!({ "proposal": proposal, "reason": reason });
        let result = self
            .call_gateway::<Value>("withdraw_proposal", &arguments)
            .await?;
        match failure(&result) {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }

    /// Calls a tool of the gateway, and returns its structured result.
    async fn gateway_tool<T: DeserializeOwned>(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> Result<T, CallError> {
        let result = self.call_gateway(tool, arguments).await?;
        match failure(&result) {
            Some(why) => Err(why),
            None => result.structured_content.ok_or_else(unreadable),
        }
    }

    /// Calls a tool of the gateway, and returns its result, which may say that it failed.
    async fn call_gateway<T: DeserializeOwned>(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> Result<ToolResult<T>, CallError> {
        let params = json!({ "name": tool, "arguments": arguments });
        match self.request(GATEWAY, "tools/call", &params).await {
            Ok(answer) => serde_json::from_str(answer.get()).map_err(|_| unreadable()),
            // To the caller it is the same whether the tool ran and failed, or did not run.
            Err(CallError::Answered(error)) => Err(CallError::ToolFailed(error.message)),
            Err(other) => Err(other),
        }
    }
}

/// The error of a result that says that its tool failed, in the tool's words.
fn failure<T>(result: &ToolResult<T>) -> Option<CallError> {
    if !result.is_error {
        return None;
    }
    let words = match result.content.first() {
        Some(block) => block.text.clone(),
        None => String::new(),
    };
    Some(CallError::ToolFailed(words))
}

fn unreadable() -> CallError {
    CallError::Answered(RpcError::new(-32603, "the answer cannot be read"))
}
