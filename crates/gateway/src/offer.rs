//! Offer of a topic: the tools of its servers and of the gateway that callers find there.

use std::sync::Arc;

use access::config::{BuiltIn, Sets, ToolsList};
use model::NameFilter;
use upstream::Manifest;

use crate::results::ResultLimits;

/// Part of the tools that a topic offers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offer<'o> {
    /// The built-in tools that are listed.
    pub builtin: &'o [BuiltIn],
    /// Content of lists of tools.
    pub tools_list: ToolsList,
    /// The tools of servers; `None` offers all.
    pub tools: Option<&'o Arc<NameFilter>>,
    /// The sets of tools in which callers may search.
    pub sets: Option<&'o Arc<Sets>>,
    /// How long results of tools may be; `None` limits none.
    pub results: Option<&'o Arc<ResultLimits>>,
}

/// Lists of the gateway's own participant, and the way in which the others' tools are shown.
#[derive(Debug, Default)]
pub(crate) struct OwnLists {
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) tools_list: ToolsList,
    pub(crate) sets: Arc<Sets>,
    pub(crate) results: Arc<ResultLimits>,
}
