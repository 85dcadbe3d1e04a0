//! Schemas of proposals and decisions.

use gateway::ProposalView;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use wire::mcpx::payload;
use wire::time::rfc3339;

/// A proposal.
#[derive(Serialize, ToSchema)]
pub(crate) struct Proposal {
    /// Its id.
    id: String,
    /// Its topic.
    topic: String,
    /// `pending`, `running`, `completed`, `failed`, `rejected`, `withdrawn` or `expired`.
    state: String,
    /// The proposer.
    by: String,
    /// The participants that are to carry it out; empty means every one.
    to: Vec<String>,
    /// The proposed method.
    method: String,
    /// The target of the method, such as the name of a tool at its server.
    context: Option<String>,
    /// The id of the envelope that proposed it. A request that fulfils the proposal has it as its `correlation_id`.
    envelope: String,
    /// The params, as the proposer wrote them.
    #[schema(value_type = Option<Object>)]
    params: Option<Box<RawValue>>,
    /// The tool's definition, as its server lists it.
    #[schema(value_type = Option<Object>)]
    tool: Option<Box<RawValue>>,
    /// The digest of what is shown here. An approval names it.
    digest: String,
    /// Whether it is a call that the gateway holds until the decision.
    held: bool,
    /// When it was made, RFC 3339.
    at: String,
    /// When it expires without a decision, RFC 3339.
    expires: String,
    /// The participant that decided.
    decided_by: Option<String>,
    /// The params that ran, if the reviewer edited them.
    #[schema(value_type = Option<Object>)]
    edited: Option<Box<RawValue>>,
    /// The reason for its state, in words.
    reason: Option<String>,
    /// The JSON-RPC answer to the request that ran.
    #[schema(value_type = Option<Object>)]
    answer: Option<Box<RawValue>>,
}

/// Proposals.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProposalList {
    /// By topic, then in the order in which they were made.
    pub proposals: Vec<Proposal>,
}

/// An approval.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Approval {
    /// The digest of the proposal that the reviewer was shown.
    pub digest: String,
    /// Arguments for the tool in place of the proposed ones.
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Box<RawValue>>,
}

/// A rejection or withdrawal.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rejection {
    /// The reason, in words for the proposer.
    pub reason: Option<String>,
}

impl Proposal {
    /// A proposal as the API shows it.
    pub(crate) fn of(view: &ProposalView) -> Self {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).ok();
        let opened = &view.content.opened;
        let edited = view.ruling.as_ref().and_then(|ruling| ruling.params.as_deref());
        let answer = view.answer.as_ref().map(|answer| payload::answer(answer, &opened.method, None));
        Self {
            id: view.id.to_string(),
            topic: opened.topic.clone(),
            state: view.state.as_str().to_owned(),
            by: opened.by.clone(),
            to: opened.to.clone(),
            method: opened.method.clone(),
            context: opened.context.clone(),
            envelope: opened.envelope.clone(),
            params: opened.params.as_deref().and_then(raw),
            tool: opened.tool.as_deref().and_then(raw),
            digest: opened.digest.clone(),
            held: opened.held,
            at: rfc3339(opened.at_ms),
            expires: rfc3339(opened.expires_ms),
            decided_by: view.decided_by.as_ref().map(ToString::to_string),
            edited: edited.and_then(raw),
            reason: view.reason.as_deref().map(str::to_owned),
            answer: answer.and_then(|answer| raw(std::str::from_utf8(&answer).ok()?)),
        }
    }
}
