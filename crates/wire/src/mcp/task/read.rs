//! Task members of callers' requests and capabilities.

use json::Span;

use super::EXTENSION;
use crate::mcp::{Params, Version};
use crate::rpc::Malformed;

/// A request of 2025-11-25 to make the call a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskParams {
    /// The time for which the caller wants the task kept, in milliseconds from its creation.
    pub ttl_ms: Option<u64>,
}

/// Whether a request asks to become a task: `params.task` (2025-11-25). The member has no meaning in a modern
/// request: call this for legacy ones only.
///
/// # Errors
/// [`Malformed`] (-32602) when `task` is no object, or `ttl` neither a whole number from 0 nor null.
pub fn task_params(params: &Params<'_>) -> Result<Option<TaskParams>, Malformed> {
    let Some(member) = params.get("task") else { return Ok(None) };
    let wrong = |why: &str| Malformed::params(why, params.message().id().cloned());
    let members = json::members(params.message().frame(), member.span)
        .map_err(|error| wrong(&format!("`params.task`: {error}")))?;
    let ttl_ms = match members.get("ttl").filter(|ttl| ttl.raw != b"null") {
        Some(ttl) => Some(
            json::integer(ttl.raw)
                .and_then(|ms| u64::try_from(ms).ok())
                .ok_or_else(|| wrong("`params.task.ttl` must be a number of milliseconds"))?,
        ),
        None => None,
    };
    Ok(Some(TaskParams { ttl_ms }))
}

/// Whether a client of this revision is offered tasks with each tool (2025-11-25, "Tool-Level Negotiation").
#[must_use]
pub fn is_offered(version: Version) -> bool {
    version == Version::NEWEST_LEGACY
}

/// Whether a client's capabilities (raw, of a modern request) name the tasks extension.
#[must_use]
pub fn declares(client_capabilities: &[u8]) -> bool {
    within(client_capabilities, &["extensions", EXTENSION])
}

/// Whether an object lies at the end of this path.
pub(super) fn within(object: &[u8], path: &[&str]) -> bool {
    json::at(object, path).is_some_and(|end| json::members(end, Span::all(end)).is_ok())
}
