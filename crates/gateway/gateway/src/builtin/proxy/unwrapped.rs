//! Calls by the tool as the requests that they stand for: the topic admits, holds, records and
//! mirrors these under their own kinds, and only their answers are turned into results of the tool.

use std::sync::Arc;

use model::{Method, Payload, Request, Target};
use topic::BuiltinTool;
use wire::mcp::proxy::{NAME, ProxyCall as Called, ProxyRequest, ProxySubject, params_of};
use wire::mcp::task::TaskWish;

use super::reply::Wrapped;
use crate::incoming::{Incoming, Parks};
use crate::{call::Reply, dispatch::Dispatch, link::Link};

/// Depth to which calls of the tool may be nested in calls of the tool.
pub(super) const PROXY_DEPTH_MAX: usize = 4;

/// Puts the request that a call of the tool stands for in its place, and returns the reply for its
/// answer: the same request unless it calls something, and its caller may use the tool here.
pub(crate) fn unwrap(
    dispatch: &Dispatch,
    link: &Link,
    incoming: &mut Incoming,
    mut reply: Arc<dyn Reply>,
) -> Arc<dyn Reply> {
    for depth in 0..PROXY_DEPTH_MAX {
        if !is_proxy(&incoming.request) || (depth == 0 && !is_offered(dispatch, link)) {
            break;
        }
        let Ok(ProxyRequest::Call(called)) = asked(&incoming.request) else {
            break;
        };
        let Some(request) = request_of(&called, &incoming.request) else {
            break;
        };
        incoming.request = request;
        as_asked(incoming, called.subject);
        reply = Arc::new(Wrapped::new(reply, called.subject, called.path));
    }
    reply
}

/// Whether a request calls a tool of this name.
pub(crate) fn is_proxy(request: &Request) -> bool {
    matches!(&request.target, Some(Target::Tool(name)) if name == NAME) && request.calls_tool()
}

/// Whether the topic has the tool, and the link's participant may use it.
fn is_offered(dispatch: &Dispatch, link: &Link) -> bool {
    let manifest = dispatch.own_manifest();
    manifest.tools.items.iter().any(|item| item.key == NAME)
        && BuiltinTool::Proxy.is_for(&dispatch.capabilities_of(&link.participant.id))
}

/// The request that a call of the tool asks for.
pub(super) fn asked(request: &Request) -> Result<ProxyRequest, String> {
    let arguments = json::at(request.payload.body_bytes(), &["arguments"]);
    ProxyRequest::read(arguments.filter(|raw| *raw != b"null").unwrap_or(b"{}"))
}

/// The request that a call stands for. Its params are those of the caller but for the target and
/// the arguments.
fn request_of(called: &Called, request: &Request) -> Option<Request> {
    let params = params_of(called, request.payload.body_bytes()).ok()?;
    Some(request_with(
        called,
        Payload::body(request.payload.form, params),
        request,
    ))
}

/// A request for what is called, made by the caller of this one.
pub(super) fn request_with(called: &Called, payload: Payload, request: &Request) -> Request {
    let path = called.path.as_str();
    let target = match called.subject {
        ProxySubject::Tool => Target::Tool(path.into()),
        ProxySubject::Resource => Target::Uri(path.into()),
        ProxySubject::Prompt => Target::Prompt(path.into()),
    };
    let method = Method::Known(called.subject.method());
    Request {
        method,
        target: Some(target),
        progress: request.progress.clone(),
        payload,
    }
}

/// Only a tool's call becomes a task.
fn as_asked(incoming: &mut Incoming, subject: ProxySubject) {
    if subject != ProxySubject::Tool {
        let comes_back = incoming.request.payload.form.is_stateless();
        incoming.parks = if comes_back {
            Parks::Retry
        } else {
            Parks::Words
        };
        incoming.wish = TaskWish::None;
    }
}
