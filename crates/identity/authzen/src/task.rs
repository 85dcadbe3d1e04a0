//! Tasks: access requests under way.

use json::Members;
use wire::time::read_rfc3339;

use crate::answer::{APPROVAL, APPROVED_UNTIL};
use crate::fault::AuthzenFault;
use crate::members::{body, object, optional_object, optional_text, text};

/// A task as an answer shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessTask {
    /// Its state.
    pub status: RequestStatus,
    /// The address of its status, which an answer about a finished task may leave out.
    pub status_endpoint: Option<String>,
    /// The address at which it can be cancelled.
    pub cancel: Option<String>,
    /// The end of the task, in Unix milliseconds.
    pub expires_ms: Option<u64>,
}

/// The state of an access request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestStatus {
    /// It is being decided.
    Pending,
    /// It was approved: the evaluation is to be made again, with this approval.
    Approved(AccessApproval),
    /// It was denied.
    Denied,
    /// It ended otherwise, or in a way that is not known: it was not approved.
    Over,
}

/// An approval as it came, for the evaluation that is made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessApproval {
    /// Its id.
    pub id: String,
    /// The end of its use, in Unix milliseconds.
    pub until_ms: u64,
    /// The whole object, byte for byte.
    pub(crate) raw: Vec<u8>,
}

/// Reads an answer about a task: to the request for it, about its status, or to its cancellation.
///
/// # Errors
/// [`AuthzenFault::Malformed`].
pub fn read_task(raw: &[u8]) -> Result<AccessTask, AuthzenFault> {
    let answer = body(raw)?;
    let task = optional_object(&answer, "task", "`task` is no object")?;
    let task = task.ok_or(AuthzenFault::Malformed("there is no `task`"))?;
    text(&task, "id", "`task.id` is no text")?;
    let links = optional_object(&task, "links", "`task.links` is no object")?;
    let cancel = links.map(|links| optional_text(&links, "cancel", "`links.cancel` is no text"));
    let status_endpoint = optional_text(&task, "status_endpoint", "`status_endpoint` is no text")?;
    let expires_at = optional_text(&task, "expires_at", "`expires_at` is no timestamp")?;
    let expires_ms = expires_at
        .map(|at| read_rfc3339(&at).ok_or(AuthzenFault::Malformed("`expires_at` is no timestamp")));
    Ok(AccessTask {
        status: status(&answer, &task)?,
        status_endpoint,
        cancel: cancel.transpose()?.flatten(),
        expires_ms: expires_ms.transpose()?,
    })
}

fn status(answer: &Members<'_>, task: &Members<'_>) -> Result<RequestStatus, AuthzenFault> {
    let said = text(task, "status", "`task.status` is no text")?;
    Ok(match said.as_str() {
        "pending" => RequestStatus::Pending,
        "denied" => RequestStatus::Denied,
        // A task of several items approves each by itself, and none was asked for.
        "approved" if task.get("items").is_none() => approved(answer)?,
        _ => RequestStatus::Over,
    })
}

/// The approval of a task that is approved. Another mode than a new evaluation approves nothing.
fn approved(answer: &Members<'_>) -> Result<RequestStatus, AuthzenFault> {
    let result = optional_object(answer, "result", "`result` is no object")?;
    let result = result.ok_or(AuthzenFault::Malformed("there is no `result`"))?;
    if text(&result, "mode", "`result.mode` is no text")? != "reevaluate" {
        return Ok(RequestStatus::Over);
    }
    let raw = result.get("approval").map_or(&b""[..], |one| one.raw);
    let approval = object(raw, APPROVAL)?;
    let until = text(&approval, "approved_until", APPROVED_UNTIL)?;
    Ok(RequestStatus::Approved(AccessApproval {
        id: text(&approval, "id", "`approval.id` is no text")?,
        until_ms: read_rfc3339(&until).ok_or(AuthzenFault::Malformed(APPROVED_UNTIL))?,
        raw: raw.to_vec(),
    }))
}
