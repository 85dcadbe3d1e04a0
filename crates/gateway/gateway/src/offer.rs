//! Offer of a topic: the tools of its servers and of the gateway that callers find there.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{GATEWAY, NameFilter, ParticipantId};
use topic::section::{BuiltIn, Sets, ToolsList};
use upstream::Manifest;

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
    /// Limits of tools' results; `None` limits none.
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

/// Limits of the results of tools that callers get at once, in bytes of JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultLimits {
    /// Of participants with a limit of their own; 0 is no limit.
    pub own: BTreeMap<ParticipantId, usize>,
    /// Of all others; `None` is no limit.
    pub others: Option<usize>,
}

impl ResultLimits {
    /// That of a participant. The gateway's own, which carries out proposals for others, has none.
    pub(crate) fn of(&self, participant: &ParticipantId) -> Option<usize> {
        if participant.as_str() == GATEWAY {
            return None;
        }
        match self.own.get(participant) {
            Some(own) => Some(*own).filter(|own| *own > 0),
            None => self.others,
        }
    }
}
