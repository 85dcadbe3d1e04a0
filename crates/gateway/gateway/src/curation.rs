//! Curation of calls and proposals: a hidden tool is unknown, presets are added once, and what is
//! hidden cannot be passed.
//!
//! What is hidden and preset says [`upstream::curation`]. Here it is applied to what a caller
//! wrote, and to what a reviewer edited.

use std::sync::Arc;

use model::{MethodFacts, ParticipantId, Refusal, RefusalCode, Request};
use topic::{Cause, PublicTarget};
use upstream::Manifest;
use upstream::curation::{Author, Curation};
use wire::mcp::relay;

use crate::call::Call;
use crate::dispatch::Dispatch;
use crate::live::{ConfiguredServer, Server};
use crate::proposals::kept::OpenedProposal;

/// A call as its server gets it, with the presets of its tool; `None` if it stays as it is. `own`
/// is the server's own name of the tool if the caller spells it otherwise; `manifest` has what the
/// server lists.
///
/// # Errors
/// A hidden tool is unknown; arguments that the author may not pass are a
/// [`RefusalCode::SchemaViolation`].
pub(crate) fn completed(
    curation: &Curation,
    manifest: &Manifest,
    request: &Request,
    own: Option<&str>,
    by: Author,
) -> Result<Option<Request>, Refusal> {
    let Some(model::Target::Tool(named)) = &request.target else {
        return Ok(None);
    };
    if !request.calls_tool() {
        return Ok(None);
    }
    let own = own.unwrap_or(named);
    if hides(curation, manifest, own) {
        return Err(unknown(named));
    }
    let arguments = arguments_of(request.payload.body_bytes());
    let Some(whole) = curation.complete(own, arguments, by)? else {
        return Ok(None);
    };
    let unreadable = || {
        Refusal::new(
            RefusalCode::Malformed,
            "the params of the call cannot be read",
        )
    };
    relay::replace_arguments(request, &whole)
        .map(Some)
        .ok_or_else(unreadable)
}

/// Whether callers cannot see the tool of this own name: the configuration hides it, or gives its
/// name to another one.
fn hides(curation: &Curation, manifest: &Manifest, own: &str) -> bool {
    !curation.shows(own) || manifest.hidden.iter().any(|hidden| hidden == own)
}

/// Whether a call of this tool is rewritten before its server gets it, so that it must be JSON.
pub(crate) fn rewrites(curation: &Curation, call: &Call, own: Option<&str>) -> bool {
    let named = call.request.target.as_ref().map(model::Target::as_str);
    call.request.calls_tool() && own.or(named).is_some_and(|own| curation.cuts(own))
}

/// Whether a topic does not offer the tool of a call at a server that lists to each caller what is
/// its own: the topic has admitted the call by a name of which it may not have known whose it is.
pub(crate) fn is_hidden(
    dispatch: &Dispatch,
    server: &ConfiguredServer,
    call: &Call,
    own: Option<&str>,
) -> bool {
    if server.callers.is_none() {
        return false;
    }
    let named = || call.request.target.as_ref().map(model::Target::as_str);
    let Some(own) = own.or_else(named) else {
        return false;
    };
    !dispatch.with(|topic| topic.offers(&server.id, call.request.method.as_str(), own))
}

/// The params of a proposed call with the presets of its tool; `None` if they stay as they are.
///
/// # Errors
/// As [`completed`]. Servers with other presets cannot be addressed together: what a reviewer is
/// shown would be true of one of them.
pub(crate) fn completed_params(
    dispatch: &Dispatch,
    to: &[ParticipantId],
    (method, tool): (&str, Option<&str>),
    params: Option<&str>,
    by: Author,
) -> Result<Option<String>, Refusal> {
    let Some(tool) = tool.filter(|_| MethodFacts::of(method).calls_tool()) else {
        return Ok(None);
    };
    if !to
        .iter()
        .all(|to| dispatch.with(|topic| topic.offers(to, method, tool)))
    {
        return Err(unknown(tool));
    }
    let params = params.unwrap_or("{}");
    let mut whole = Vec::new();
    for (curation, manifest) in to.iter().filter_map(|to| curation_of(dispatch, to)) {
        if hides(&curation, &manifest, tool) {
            return Err(unknown(tool));
        }
        whole.push(curation.complete(tool, arguments_of(params.as_bytes()), by)?);
    }
    let Some(first) = whole.first().cloned() else {
        return Ok(None);
    };
    if whole.iter().any(|other| *other != first) {
        let message = "the addressees have different presets for this tool";
        return Err(
            Refusal::new(RefusalCode::Malformed, message).hint("propose the call to each alone")
        );
    }
    let text = first.and_then(|whole| String::from_utf8(whole).ok());
    Ok(text.and_then(|arguments| relay::set_arguments(params, &arguments)))
}

/// Whether a proposal would still run as its reviewer is shown it: with all presets that its tool
/// has now, and nothing that is hidden.
pub(crate) fn is_as_shown(dispatch: &Dispatch, opened: &OpenedProposal) -> bool {
    let to: Vec<ParticipantId> = opened
        .to
        .iter()
        .filter_map(|to| ParticipantId::new(to).ok())
        .collect();
    let act = (opened.method.as_str(), opened.context.as_deref());
    let whole = completed_params(
        dispatch,
        &to,
        act,
        opened.params.as_deref(),
        Author::Reviewer,
    );
    matches!(whole, Ok(None))
}

/// The params with which a reviewed call runs, if these are not those that its caller wrote: edited
/// ones, else what the reviewer was shown, which has the presets of that time.
pub(crate) fn reviewed<'p>(
    opened: &'p OpenedProposal,
    edited: Option<&'p str>,
    written: &Request,
) -> Option<&'p str> {
    let shown = opened.params.as_deref().filter(|params| {
        let shown = arguments_of(params.as_bytes());
        shown.is_some() && shown != arguments_of(written.payload.body_bytes())
    });
    edited.or(shown)
}

fn arguments_of(params: &[u8]) -> Option<&[u8]> {
    json::at(params, &["arguments"])
}

/// The curation of a server's tools, if it has one, and what the server lists.
fn curation_of(dispatch: &Dispatch, to: &ParticipantId) -> Option<(Arc<Curation>, Arc<Manifest>)> {
    match dispatch.with(|topic| topic.server(to))?.handle {
        Server::Gateway => None,
        Server::Upstream(server) => {
            let curation = server.upstream.spec().config.curation.clone()?;
            Some((curation, server.upstream.manifest()))
        }
    }
}

/// The refusal of a tool that does not exist, as far as callers can see.
fn unknown(tool: &str) -> Refusal {
    *topic::request_refusal(Cause::Unknown, Some(PublicTarget::Tool(tool)))
}
