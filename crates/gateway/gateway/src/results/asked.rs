//! Request for a kept result, and its entry in the audit log.

use model::{ListKind, Request, Target};
use wire::mcp::large;

/// Target of a request for a kept result in the audit log: neither its id nor what is searched for
/// in it.
const RECORDED: &str = "portmoot://results";

/// The id in a request for a kept result.
pub(crate) fn asked_id(request: &Request) -> Option<&str> {
    let reads = request.method.facts().acts_on == Some(ListKind::Resources);
    match &request.target {
        Some(Target::Uri(uri)) if reads => large::id_of(uri),
        _ => None,
    }
}

/// Context of a request's kind in the audit log.
pub(crate) fn recorded(request: &Request) -> Option<&str> {
    match &request.target {
        Some(Target::Uri(_)) if asked_id(request).is_some() => Some(RECORDED),
        target => target.as_ref().and_then(Target::context),
    }
}
