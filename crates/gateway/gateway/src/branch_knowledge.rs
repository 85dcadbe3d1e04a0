//! Knowledge of a branch about its topic.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use model::{Form, LinkId};
use platform::Mutex;

use crate::live::{ConfiguredServer, Event};

/// The most tools of one link whose servers are known.
const LINK_TOOLS_MAX: usize = 16;

/// The tools that a link may call without a decision, with their servers.
type PlainTools = Vec<(Box<str>, Weak<ConfiguredServer>)>;

/// Whether a rule of the topic could take something of a call, who may call what without a decision,
/// and about which servers the branch is finding something out.
#[derive(Debug, Default)]
pub(crate) struct BranchKnowledge {
    /// Whether there is a branch at all: all else is its own.
    is_branch: bool,
    tighten: AtomicBool,
    /// By name, and whether it is for legacy callers.
    asked: Mutex<BTreeSet<(String, bool)>>,
    /// Of each link, as far as it has called them since its topic changed.
    plain: Mutex<HashMap<LinkId, PlainTools>>,
}

impl BranchKnowledge {
    /// The knowledge of a topic, which is that of a branch or not.
    pub(crate) fn of(is_branch: bool) -> Self {
        Self {
            is_branch,
            ..Self::default()
        }
    }

    /// Notes an event that the topic takes. The caller has the topic's lock.
    pub(crate) fn note_event(&self, event: &Event<'_>) {
        if self.is_branch && may_change_rights(event) {
            self.plain.lock().clear();
        }
    }

    /// The server of a tool that a link may call without a decision, if that is known.
    pub(crate) fn plain_server(&self, link: LinkId, tool: &str) -> Option<Arc<ConfiguredServer>> {
        let plain = self.plain.lock();
        let mut tools = plain.get(&link)?.iter();
        let (_, server) = tools.find(|(name, _)| **name == *tool)?;
        server.upgrade()
    }

    /// Notes the server of a tool that a link may call without a decision. The caller has the topic's
    /// lock, so that nothing has changed since the topic said so.
    pub(crate) fn note_plain(&self, link: LinkId, tool: &str, server: &Arc<ConfiguredServer>) {
        let mut plain = self.plain.lock();
        let tools = plain.entry(link).or_default();
        if tools.len() >= LINK_TOOLS_MAX {
            tools.clear();
        }
        tools.push((tool.into(), Arc::downgrade(server)));
    }

    /// Whether a rule could.
    pub(crate) fn tighten(&self) -> bool {
        self.tighten.load(Ordering::Acquire)
    }

    /// Notes whether a rule could.
    pub(crate) fn note(&self, tighten: bool) {
        self.tighten.store(tighten, Ordering::Release);
    }

    /// Whether the caller of this is to find out whether a server keeps something for callers of this
    /// form: no other one does.
    pub(crate) fn begins_to_find_out(&self, server: &str, form: Form) -> bool {
        let of = (server.to_owned(), form == Form::Legacy);
        self.asked.lock().insert(of)
    }

    /// Notes that it is found out, or may be tried again.
    pub(crate) fn has_found_out(&self, server: &str, form: Form) {
        let of = (server.to_owned(), form == Form::Legacy);
        self.asked.lock().remove(&of);
    }
}

/// Whether an event may change who may call what without a decision. Those do not that come with
/// calls.
fn may_change_rights(event: &Event<'_>) -> bool {
    !matches!(
        event,
        Event::Request(_)
            | Event::Proceed { .. }
            | Event::Answer { .. }
            | Event::Ask(_)
            | Event::Notice { .. }
            | Event::Cancel { .. }
    )
}
