//! Built-in tool `proxy`: lists, describes and calls what its caller may use (MCP Proxy Extension
//! v0.1, docs/proxy.md).

mod batch;
mod look;
mod reply;
mod unwrapped;

use std::sync::Arc;

use wire::mcp::proxy::ProxyRequest;
use wire::mcp::result::words;

use crate::{call::Call, delivery, dispatch::Dispatch};
use unwrapped::{PROXY_DEPTH_MAX, asked};
pub(crate) use unwrapped::{is_proxy, unwrap};

/// Serves what is no call of something else.
pub(super) fn serve(dispatch: &Arc<Dispatch>, call: &Arc<Call>) {
    let form = call.request.payload.form;
    let failed = |why: &str| delivery::answer_body(dispatch, call, words(why, true, form));
    match asked(&call.request) {
        Err(why) => failed(&why),
        Ok(ProxyRequest::Call(_)) => {
            failed(&format!(
                "Error calling tool 'proxy': it may be nested {PROXY_DEPTH_MAX} deep at most"
            ));
        }
        Ok(ProxyRequest::Batch(operations)) => {
            delivery::spawn(dispatch, call, |dispatch, call| {
                batch::run(dispatch, call, operations)
            });
        }
        Ok(ProxyRequest::Look(of)) => {
            delivery::spawn(dispatch, call, |dispatch, call| {
                look::up(dispatch, call, of)
            });
        }
    }
}
