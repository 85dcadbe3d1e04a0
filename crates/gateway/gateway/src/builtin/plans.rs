//! Built-in tool `propose_plan`: several calls that are decided about as one.

use std::sync::Arc;

use model::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::arguments;
use crate::live::ProposalView;
use crate::proposals::plans::PlannedCall;
use crate::{call::Call, dispatch::Dispatch};

const PROPOSED: &str = "The plan waits for one decision about all its steps. Once it is approved, they run one after the other, each once, and it stops at the first that fails. Wait for its last step with wait_for_proposal; its first step stands for the plan.";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanArguments {
    steps: Vec<StepArguments>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepArguments {
    name: String,
    arguments: Option<Box<RawValue>>,
}

/// A plan as its proposer gets it.
#[derive(Serialize)]
pub(super) struct ShownPlan {
    id: String,
    digest: String,
    steps: Vec<ShownStep>,
    expires: String,
    #[serde(rename = "said")]
    message: &'static str,
}

#[derive(Serialize)]
struct ShownStep {
    id: String,
    step: usize,
    name: String,
    digest: String,
    state: &'static str,
}

/// Proposes a plan of the caller's.
pub(super) async fn propose(
    dispatch: Arc<Dispatch>,
    call: Arc<Call>,
) -> Result<ShownPlan, Refusal> {
    let PlanArguments { steps } = arguments::read(&call.request)?;
    let calls: Vec<PlannedCall> = steps.into_iter().map(PlannedCall::from).collect();
    let views = dispatch.propose_plan(call.requester(), &calls).await?;
    let first = views.first();
    let digest = first.map(|first| first.content.opened.digest.clone());
    let expires = first.map(|first| wire::time::rfc3339(first.expires_wall_ms));
    let steps = views.iter().zip(&calls).enumerate();
    Ok(ShownPlan {
        id: first.map_or_else(String::new, |first| first.id.to_string()),
        digest: digest.unwrap_or_default(),
        steps: steps
            .map(|(at, (view, call))| shown(at, view, call))
            .collect(),
        expires: expires.unwrap_or_default(),
        message: PROPOSED,
    })
}

impl From<StepArguments> for PlannedCall {
    fn from(StepArguments { name, arguments }: StepArguments) -> Self {
        let arguments = arguments.as_deref().map_or("{}", RawValue::get).to_owned();
        Self { name, arguments }
    }
}

fn shown(at: usize, view: &ProposalView, call: &PlannedCall) -> ShownStep {
    ShownStep {
        id: view.id.to_string(),
        step: at + 1,
        name: call.name.clone(),
        digest: view.content.opened.digest.clone(),
        state: view.state.as_str(),
    }
}
