//! The tool that a call means, where its caller does not name it as the topic does.
//!
//! Such a call becomes the call of the tool's public name before anything judges, holds or records
//! it, so that it is nothing else from there on. Three kinds of callers name tools otherwise: clients
//! that refuse characters and were listed narrow names, callers of the tool `proxy`, and apps (MCP
//! Apps), whose pages have their servers' own names, which no prefix can reach.

use std::sync::Arc;

use lists::AcceptedNames;
use model::Target;
use topic::may_be_narrow;
use wire::mcp::relay;

use crate::call::Reply;
use crate::link::{Link, Requester};
use crate::{builtin, dispatch::Dispatch, incoming::Incoming};

/// Gives a call the public name of the tool that it means, and returns the reply for its answer.
pub(crate) fn name_publicly(
    dispatch: &Dispatch,
    by: Requester<'_>,
    incoming: &mut Incoming,
    mut reply: Arc<dyn Reply>,
) -> Arc<dyn Reply> {
    if let Some(Target::Tool(name)) = &incoming.request.target
        && may_be_narrow(name)
    {
        widen(dispatch, by.link, incoming);
    }
    if builtin::is_proxy(&incoming.request) {
        reply = builtin::unwrap(dispatch, by.link, incoming, reply);
    }
    // Also if it was called by `proxy`.
    let client = incoming.client.as_ref().unwrap_or(&by.link.client);
    if incoming.request.calls_tool() && client.shows_apps() {
        name_for_app(dispatch, by, incoming);
    }
    reply
}

/// Gives a call by a narrow name the public name of the tool, if the caller's client is one that
/// was listed narrow names.
fn widen(dispatch: &Dispatch, link: &Link, incoming: &mut Incoming) {
    let client = incoming.client.as_ref().unwrap_or(&link.client);
    if AcceptedNames::of(client.client_info.as_deref()) == AcceptedNames::All {
        return;
    }
    let Some(Target::Tool(name)) = &incoming.request.target else {
        return;
    };
    let snapshot = dispatch.with(|topic| topic.list_snapshot(link.id, None));
    let public = snapshot.and_then(|snapshot| snapshot.tool_of_narrow(name));
    if let Some(named) = public.and_then(|public| relay::with_tool(&incoming.request, &public)) {
        incoming.request = named;
    }
}

/// Gives a call of an app by a server's own name the public name of the tool, if the topic knows
/// which tool is meant.
fn name_for_app(dispatch: &Dispatch, by: Requester<'_>, incoming: &mut Incoming) {
    let Some(Target::Tool(name)) = &incoming.request.target else {
        return;
    };
    let link = by.link.id;
    let narrowing = by.narrowing();
    let public = dispatch.with(|topic| topic.named_by_app(link, narrowing, name));
    if let Some(named) = public.and_then(|public| relay::with_tool(&incoming.request, &public)) {
        incoming.request = named;
    }
}
