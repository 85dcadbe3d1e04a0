//! Task members of callers' requests and capabilities.

use json::Span;

use super::EXTENSION;
use crate::mcp::{Params, Version};
use crate::rpc::Malformed;

/// Checks the request of a call to become a task: `params.task` (2025-11-25). The member has no
/// meaning in a modern request: call this for legacy ones only.
///
/// # Errors
/// [`Malformed`] (-32602) when `task` is no object, or `ttl` neither a whole number from 0 nor
/// null.
pub fn check_params(params: &Params<'_>) -> Result<(), Malformed> {
    let Some(member) = params.get("task") else {
        return Ok(());
    };
    check_task(member.raw).map_err(|why| Malformed::params(why, params.message().id().cloned()))
}

/// Checks the value of `params.task`; returns what is wrong with it.
pub(super) fn check_task(task: &[u8]) -> Result<(), String> {
    let members =
        json::members(task, Span::all(task)).map_err(|error| format!("`params.task`: {error}"))?;
    let ttl = members.get("ttl").filter(|ttl| ttl.raw != b"null");
    if ttl.is_some_and(|ttl| json::integer(ttl.raw).is_none_or(|ms| ms < 0)) {
        return Err("`params.task.ttl` must be a number of milliseconds".to_owned());
    }
    Ok(())
}

/// Time that a caller of 2025-11-25 wants its task to be kept, in milliseconds.
#[must_use]
pub fn asked_ttl(request: &model::Request) -> Option<u64> {
    let ttl = json::at(request.payload.body_bytes(), &["task", "ttl"])?;
    json::integer(ttl).and_then(|ms| u64::try_from(ms).ok())
}

/// Whether a client of this revision is offered tasks with each tool (2025-11-25, "Tool-Level
/// Negotiation").
#[must_use]
pub fn is_offered(version: Version) -> bool {
    version == Version::NEWEST_LEGACY
}

/// Statements of a client's lists about tools as tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskListing {
    /// Statements of which calls may become tasks (2025-11-25).
    Offered,
    /// What the servers wrote: the client knows nothing of it.
    AsWritten,
    /// Nothing (2026-07-28).
    Hidden,
}

/// Statements of the lists of a client of this revision about tools as tasks.
#[must_use]
pub fn shown(version: Version) -> TaskListing {
    match version {
        version if is_offered(version) => TaskListing::Offered,
        version if version.era().is_stateless() => TaskListing::Hidden,
        _ => TaskListing::AsWritten,
    }
}

/// Whether a client's or a server's capabilities (raw, modern) name the tasks extension.
#[must_use]
pub fn declares(client_capabilities: &[u8]) -> bool {
    within(client_capabilities, &["extensions", EXTENSION])
}

/// Whether an object lies at the end of this path.
pub(super) fn within(object: &[u8], path: &[&str]) -> bool {
    json::at(object, path).is_some_and(|end| json::members(end, Span::all(end)).is_ok())
}
