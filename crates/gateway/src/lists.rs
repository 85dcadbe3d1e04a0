//! Merged lists of a topic, page by page.

use std::sync::Arc;

use model::ListKind;
use wire::mcp::header::HeaderParam;

use crate::call::Call;
use crate::dispatch::Dispatch;
use crate::link::Link;

/// Rendered lists that may be read again.
#[derive(Debug, Default)]
pub(crate) struct PageCache {}

/// Answers a list request with one page.
pub(crate) fn answer(_dispatch: &Arc<Dispatch>, _call: &Arc<Call>, _list: ListKind) {
    todo!()
}

/// The headers that a call of this tool must mirror, by its schema (2026-07-28, "x-mcp-header").
pub fn mirrored_params(_dispatch: &Dispatch, _link: &Link, _tool: &str) -> Vec<HeaderParam> {
    todo!()
}
