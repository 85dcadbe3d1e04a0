//! Lists of a topic: pages of the merged lists for one caller (MCP, "Pagination"), and the mirrored arguments of a tool.
//!
//! The topic says what is on a list, the server wrote each item. A list is judged and rendered outside of the topic's lock, once
//! for as long as nothing changes; pages are slices of it.

mod announcements;
mod cache;
mod manifests;
mod merged;
mod page;
#[cfg(test)]
mod tests;

use std::{sync::Arc, sync::atomic::Ordering};

use model::{Form, ListKind, Refusal, RefusalCode};
use topic::Target;
use wire::mcp::{header::HeaderParam, relay, task};

use crate::{call::Call, delivery, dispatch::Dispatch, link::Link};

pub(crate) use announcements::{Announcement, Announcements};
pub(crate) use cache::PageCache;
pub use cache::{LIST_BYTES_MAX, LISTS_MAX};
use merged::Manifests;
use page::Asked;
pub use page::{CURSOR_MS, PAGE_ITEMS_MAX};

/// Answers a list request with one page. If servers are starting, or sessions of the caller's own must be opened to know what they
/// list, the page is rendered after a bounded wait.
pub(crate) fn answer(dispatch: &Arc<Dispatch>, call: &Arc<Call>, list: ListKind) {
    if dispatch.settled.load(Ordering::Acquire)
        && let Some(manifests) = manifests::known(dispatch, call)
    {
        return delivery::finish(dispatch, call, page(dispatch, call, list, &manifests));
    }
    let (dispatch, call) = (Arc::clone(dispatch), Arc::clone(call));
    tokio::spawn(async move {
        dispatch.wait_for_servers().await;
        let manifests = manifests::opened(&dispatch, &call).await;
        if !call.is_over() {
            delivery::finish(&dispatch, &call, page(&dispatch, &call, list, &manifests));
        }
    });
}

/// One page, as a result's body.
fn page(dispatch: &Dispatch, call: &Call, list: ListKind, manifests: &Manifests) -> Result<Vec<u8>, Refusal> {
    let Some(snapshot) = dispatch.with(|topic| topic.list_snapshot(call.link.id)) else {
        return Err(Refusal::new(RefusalCode::UnknownTarget, "the session has ended"));
    };
    let asked = Asked {
        participant: &call.link.participant.id,
        list,
        form: call.request.payload.form,
        offers_tasks: list == ListKind::Tools && task::is_offered(call.client().version),
        cursor: relay::param_text(&call.request, "cursor"),
    };
    asked.page(&dispatch.context.sealer, &dispatch.pages, snapshot, manifests)
}

/// The arguments that a modern call of a tool mirrors in HTTP headers, by the tool's schema (2026-07-28, "x-mcp-header"). `tool`
/// is the public name.
pub fn mirrored_params(dispatch: &Dispatch, link: &Link, tool: &str) -> Vec<HeaderParam> {
    let Some((server, own)) = dispatch.route(link.id, Target::Tool(tool)) else { return Vec::new() };
    server.upstream.manifest_in(Form::Modern).annotations.get(&own).cloned().unwrap_or_default()
}
