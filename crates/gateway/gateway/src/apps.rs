//! Calls that apps make (MCP Apps): their pages have their servers' own names of tools, which no
//! prefix can reach.
//!
//! A call by such a name becomes the call of the tool's public name before anything judges, holds
//! or records it, so that it is nothing else from there on.

use model::Target;
use wire::mcp::relay;

use crate::{dispatch::Dispatch, incoming::Incoming, link::Requester};

/// Gives a call by a server's own name the public name of the tool, if the caller's client shows
/// apps and the topic knows which tool is meant.
pub(crate) fn name_publicly(dispatch: &Dispatch, by: Requester<'_>, incoming: &mut Incoming) {
    let client = incoming.client.as_ref().unwrap_or(&by.link.client);
    let Some(Target::Tool(name)) = &incoming.request.target else {
        return;
    };
    if !incoming.request.calls_tool() || !client.shows_apps() {
        return;
    }
    let link = by.link.id;
    let narrowing = by.narrowing();
    let public = dispatch.with(|topic| topic.named_by_app(link, narrowing, name));
    if let Some(named) = public.and_then(|public| relay::with_tool(&incoming.request, &public)) {
        incoming.request = named;
    }
}
