//! Answers to evaluations.

use json::{Members, integer};
use serde::{Deserialize, Serialize};
use wire::time::read_rfc3339;

use crate::fault::AuthzenFault;
use crate::members::{body, optional_object, optional_text, text};

/// An answer to an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessAnswer {
    /// `decision: true`. Not enforced after this time, in Unix milliseconds, if there is one.
    Permitted(Option<u64>),
    /// `decision: false`.
    Denied(PolicyDenial),
}

/// A denial. It stays one, whatever may be requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyDenial {
    /// The reason code, which is nothing for people to trust.
    pub reason: Option<String>,
    /// The id of the evaluation.
    pub evaluation_id: Option<String>,
    /// What is left to do.
    pub next: NextStep,
}

/// The step that a denial leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// None: it is denied for good.
    None,
    /// An access request.
    Request(RequestableDenial),
    /// An access request that needs more than this client can tell: a filled form.
    Form,
    /// The same evaluation again, after so many seconds, if it says how many.
    Retry(Option<u64>),
}

/// The material that binds an access request to a denial, as it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestableDenial {
    /// The address for the request, if it is not the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The end of the offer to request, as it was written.
    pub expires_at: String,
    /// `evaluation_id` of the denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation_id: Option<String>,
    /// `evaluated_at` of the denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluated_at: Option<String>,
    /// `reason` of the denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The opaque token that binds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_token: Option<String>,
    /// The opaque name of a workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
}

/// Reads the answer to an evaluation.
///
/// # Errors
/// [`AuthzenFault::Malformed`].
pub fn read_evaluation(raw: &[u8]) -> Result<AccessAnswer, AuthzenFault> {
    let answer = body(raw)?;
    let context = optional_object(&answer, "context", "`context` is no object")?;
    match answer.get("decision").map(|decision| decision.raw) {
        Some(b"true") => Ok(AccessAnswer::Permitted(permitted_until(context.as_ref())?)),
        Some(b"false") => Ok(AccessAnswer::Denied(denial(context.as_ref())?)),
        Some(_) | None => Err(AuthzenFault::Malformed("`decision` is no boolean")),
    }
}

/// The end of a permission that its answer names.
fn permitted_until(context: Option<&Members<'_>>) -> Result<Option<u64>, AuthzenFault> {
    let approval = context.map(|context| optional_object(context, "approval", APPROVAL));
    let Some(approval) = approval.transpose()?.flatten() else {
        return Ok(None);
    };
    let until = optional_text(&approval, "approved_until", APPROVED_UNTIL)?;
    let read =
        until.map(|until| read_rfc3339(&until).ok_or(AuthzenFault::Malformed(APPROVED_UNTIL)));
    read.transpose()
}

pub(crate) const APPROVAL: &str = "`approval` is no object";
pub(crate) const APPROVED_UNTIL: &str = "`approved_until` is no timestamp";

fn denial(context: Option<&Members<'_>>) -> Result<PolicyDenial, AuthzenFault> {
    let Some(context) = context else {
        return Ok(PolicyDenial {
            reason: None,
            evaluation_id: None,
            next: NextStep::None,
        });
    };
    let reason = optional_text(context, "reason", "`reason` is no text")?;
    let evaluation_id = optional_text(context, "evaluation_id", "`evaluation_id` is no text")?;
    let requestable = requestable(context, reason.as_deref(), evaluation_id.as_deref())?;
    let next = next_step(context, reason.as_deref(), requestable)?;
    Ok(PolicyDenial {
        reason,
        evaluation_id,
        next,
    })
}

/// The step by `next_action`; else the one that a known reason has; else the one that is offered.
fn next_step(
    context: &Members<'_>,
    reason: Option<&str>,
    requestable: NextStep,
) -> Result<NextStep, AuthzenFault> {
    let said = optional_text(context, "next_action", "`next_action` is no text")?;
    let known = match said.as_deref() {
        Some(said @ ("request" | "retry" | "none")) => Some(said),
        Some(_) | None => match reason {
            Some("approval_expired" | "out_of_scope") => Some("request"),
            Some("grant_pending") => Some("retry"),
            Some("policy_denied" | "approval_unverifiable") => Some("none"),
            Some(_) | None => None,
        },
    };
    Ok(match known {
        Some("retry") => NextStep::Retry(retry_after(context)?),
        Some("none") => NextStep::None,
        Some(_) | None => requestable,
    })
}

fn retry_after(context: &Members<'_>) -> Result<Option<u64>, AuthzenFault> {
    let Some(member) = context.get("retry_after") else {
        return Ok(None);
    };
    let seconds = integer(member.raw).and_then(|seconds| u64::try_from(seconds).ok());
    let wrong = AuthzenFault::Malformed("`retry_after` is no number of seconds");
    seconds.map(Some).ok_or(wrong)
}

/// The offer to request access, if there is one.
fn requestable(
    context: &Members<'_>,
    reason: Option<&str>,
    evaluation_id: Option<&str>,
) -> Result<NextStep, AuthzenFault> {
    let Some(offer) = optional_object(context, "access_request", "`access_request` is no object")?
    else {
        return Ok(NextStep::None);
    };
    let expires_at = text(&offer, "expires_at", "`expires_at` is no timestamp")?;
    if read_rfc3339(&expires_at).is_none() {
        return Err(AuthzenFault::Malformed("`expires_at` is no timestamp"));
    }
    let binding_token = optional_text(&offer, "binding_token", "`binding_token` is no text")?;
    if binding_token.is_none() && evaluation_id.is_none() {
        return Err(AuthzenFault::Malformed(
            "nothing binds a request to the denial",
        ));
    }
    // A person must fill in what these describe.
    if offer.get("request_schema_url").is_some() || offer.get("request_catalogs_url").is_some() {
        return Ok(NextStep::Form);
    }
    Ok(NextStep::Request(RequestableDenial {
        endpoint: optional_text(&offer, "endpoint", "`endpoint` is no text")?,
        expires_at,
        evaluation_id: evaluation_id.map(str::to_owned),
        evaluated_at: optional_text(context, "evaluated_at", "`evaluated_at` is no text")?,
        reason: reason.map(str::to_owned),
        binding_token,
        template: optional_text(&offer, "template", "`template` is no text")?,
    }))
}
