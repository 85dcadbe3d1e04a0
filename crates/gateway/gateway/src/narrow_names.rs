//! Calls by narrow names: a client that refuses characters was listed other names of tools than the
//! topic's.
//!
//! Such a call becomes the call of the tool's public name before anything judges, holds or records
//! it, so that it is nothing else from there on.

use lists::AcceptedNames;
use model::Target;
use topic::may_be_narrow;
use wire::mcp::relay;

use crate::{dispatch::Dispatch, incoming::Incoming, link::Link};

/// Gives a call by a narrow name the public name of the tool, if the caller's client is one that
/// was listed narrow names.
pub(crate) fn name_publicly(dispatch: &Dispatch, link: &Link, incoming: &mut Incoming) {
    let client = incoming.client.as_ref().unwrap_or(&link.client);
    let Some(Target::Tool(name)) = &incoming.request.target else {
        return;
    };
    // First what costs each call least.
    if !may_be_narrow(name)
        || AcceptedNames::of(client.client_info.as_deref()) == AcceptedNames::All
    {
        return;
    }
    let snapshot = dispatch.with(|topic| topic.list_snapshot(link.id, None));
    let public = snapshot.and_then(|snapshot| snapshot.tool_of_narrow(name));
    if let Some(named) = public.and_then(|public| relay::with_tool(&incoming.request, &public)) {
        incoming.request = named;
    }
}
