//! Outcomes of decisions: the proposal after it, and the answer of what ran.

use std::time::Duration;

use ::chat::{amendments, approvals, claims, content, span, step_heads};
use json::visible;
use platform::unix_ms;
use review::ProposalDetails;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::remote::api::Answer;
use crate::remote::{Remote, api};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

/// Time that an approval waits for the outcome.
const OUTCOME_TIMEOUT: Duration = Duration::from_secs(60);
/// The first and the longest time between two looks.
const LOOKS: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];

/// Prints a proposal after a decision: its state, and a sentence.
pub(super) fn decided(answer: &Answer, output: Output) -> Result<Exit, Failure> {
    if output.json {
        output.result_json_text(&answer.text);
    } else {
        let proposal: ProposalDetails = answer.read()?;
        output.result(&visible::line(&proposal.state));
        output.message(&sentence(&proposal));
    }
    Ok(Exit::Ok)
}

/// Waits until an approved proposal is over, and prints the answer. Exit code 1 if it has failed.
pub(super) async fn ended(
    remote: &Remote,
    id: &str,
    mut answer: Answer,
    output: Output,
) -> Result<Exit, Failure> {
    let (end, [mut wait, longest]) = (Instant::now() + OUTCOME_TIMEOUT, LOOKS);
    let mut proposal: ProposalDetails = answer.read()?;
    while !has_ended(&proposal) {
        if proposal.is_pending() && proposal.approvals > 1 {
            return decided(&answer, output);
        }
        if Instant::now() >= end {
            let text = format!(
                "it still runs; to see the answer later: portmoot proposals show {}",
                proposal.id
            );
            output.message(&text);
            return decided(&answer, output);
        }
        sleep(wait).await;
        wait = (wait * 2).min(longest);
        answer = api::get(remote, &["proposals", id], &[]).await?;
        proposal = answer.read()?;
    }
    let exit = if has_failed(&proposal) {
        Exit::Failed
    } else {
        Exit::Ok
    };
    if output.json {
        output.result_json_text(&answer.text);
        return Ok(exit);
    }
    match words(&proposal) {
        Some(words) => output.result(&words),
        None => output.result(&visible::line(&proposal.state)),
    }
    output.message(&sentence(&proposal));
    Ok(exit)
}

/// Whether nothing more happens to a proposal, and of a plan to any of its steps.
fn has_ended(proposal: &ProposalDetails) -> bool {
    let is_open = |state: &str| matches!(state, "pending" | "running");
    let states = proposal
        .steps
        .iter()
        .filter_map(|step| step.state.as_deref());
    proposal.is_over() && !states.into_iter().any(is_open)
}

/// Whether a proposal has failed, or a plan has stopped.
fn has_failed(proposal: &ProposalDetails) -> bool {
    let states = proposal
        .steps
        .iter()
        .filter_map(|step| step.state.as_deref());
    proposal.state == "failed"
        || proposal.steps.iter().any(|step| step.failed)
        || states.into_iter().any(|state| state != "completed")
}

/// The answer in words: the content of a tool's result, the message of an error, any other result
/// as JSON.
pub(super) fn words(proposal: &ProposalDetails) -> Option<String> {
    let steps = step_heads(proposal);
    if !steps.is_empty() && proposal.is_over() {
        return Some(steps.join("\n"));
    }
    let answer: Value = serde_json::from_str(proposal.answer.as_ref()?.get()).ok()?;
    if let Some(message) = answer.pointer("/error/message").and_then(Value::as_str) {
        return Some(visible::lines(message));
    }
    let result = answer.get("result")?;
    match proposal.method.as_str() {
        "tools/call" => Some(content::text(result)),
        _ => Some(visible::lines(&serde_json::to_string_pretty(result).ok()?)),
    }
}

/// The state of a proposal, as a sentence.
pub(super) fn sentence(proposal: &ProposalDetails) -> String {
    let act = match &proposal.context {
        Some(context) => format!("{}:{context}", proposal.method),
        None => proposal.method.clone(),
    };
    let by = visible::line(&proposal.by);
    let act = if proposal.steps.is_empty() {
        format!("`{}` proposed by {by}", visible::line(&act))
    } else {
        return sentence_of_plan(proposal, &by);
    };
    let reason = proposal
        .reason
        .as_deref()
        .map(|reason| format!(": {}", visible::line(reason)));
    match proposal.state.as_str() {
        "pending" => {
            let left = span(proposal.expires_ms().saturating_sub(unix_ms()));
            let left = Some(format!("{left} left"));
            let facts = [
                approvals(proposal),
                amendments(proposal),
                claims(proposal),
                left,
            ];
            let facts: Vec<String> = facts.into_iter().flatten().collect();
            format!("{act} is pending: {}", facts.join("; "))
        }
        "running" => format!("{act} is approved and running"),
        "completed" => format!("{act} was approved and has completed"),
        "failed" => {
            let how = match proposal.shown_state() {
                "failed" => "has failed",
                _ => "its outcome is not known",
            };
            format!("{act} was approved and {how}{}", reason.unwrap_or_default())
        }
        state => format!("{act} is {}", visible::line(state)),
    }
}

/// The state of a plan, as a sentence.
fn sentence_of_plan(proposal: &ProposalDetails, by: &str) -> String {
    let of = proposal.steps.len();
    let act = format!("the plan of {of} steps proposed by {by}");
    let done = proposal.steps.iter();
    let done = done
        .filter(|step| step.state.as_deref() == Some("completed") && !step.failed)
        .count();
    let failed = proposal.steps.iter().position(|step| step.failed);
    match proposal.state.as_str() {
        "pending" => {
            let left = span(proposal.expires_ms().saturating_sub(unix_ms()));
            let facts = [
                approvals(proposal),
                claims(proposal),
                Some(format!("{left} left")),
            ];
            let facts: Vec<String> = facts.into_iter().flatten().collect();
            format!("{act} is pending: {}", facts.join("; "))
        }
        "running" | "completed" | "failed" if !has_ended(proposal) => {
            format!("{act} is approved and running: {done} of {of} steps are done")
        }
        "completed" | "failed" if done == of => format!("{act} was approved and has completed"),
        "completed" | "failed" => {
            let failed = failed.map_or(String::new(), |at| format!(", step {} has failed", at + 1));
            format!("{act} was approved and has stopped: {done} of {of} steps are done{failed}")
        }
        state => format!("{act} is {}", visible::line(state)),
    }
}
