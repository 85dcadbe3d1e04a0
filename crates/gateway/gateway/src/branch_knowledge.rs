//! Knowledge of a branch about its topic.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use model::{Form, LinkId};
use platform::Mutex;

use crate::live::{ConfiguredServer, Event};

/// The most tools of one link whose servers are known.
const LINK_TOOLS_MAX: usize = 64;

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

#[cfg(test)]
mod tests {
    use model::{OperationId, ParticipantId};
    use topic::OperationRef;

    use super::*;
    use crate::membership::tests::demo;

    const LINK: LinkId = LinkId(1);

    async fn server() -> Arc<ConfiguredServer> {
        Arc::new(ConfiguredServer {
            id: ParticipantId::new("one").unwrap(),
            upstream: demo("one").await,
            dial_in: None,
            callers: None,
        })
    }

    #[tokio::test]
    async fn so_many_tools_of_a_link_are_known_and_those_of_no_other() {
        let knowledge = BranchKnowledge::of(true);
        let server = server().await;
        for number in 0..LINK_TOOLS_MAX {
            knowledge.note_plain(LINK, &number.to_string(), &server);
        }
        let is_known = |tool: &str| knowledge.plain_server(LINK, tool).is_some();
        assert!(is_known("0") && is_known(&(LINK_TOOLS_MAX - 1).to_string()));
        assert!(knowledge.plain_server(LinkId(2), "0").is_none());
        knowledge.note_plain(LINK, "one more", &server);
        assert!(is_known("one more") && !is_known("0"));
    }

    #[tokio::test]
    async fn what_is_known_of_tools_ends_with_a_change_and_with_their_server() {
        let knowledge = BranchKnowledge::of(true);
        let server = server().await;
        let is_known = || knowledge.plain_server(LINK, "echo").is_some();
        knowledge.note_plain(LINK, "echo", &server);
        // What comes with calls changes nothing.
        let which = OperationRef::Request {
            operation: OperationId(1),
            round: 0,
        };
        knowledge.note_event(&Event::Cancel { link: LINK, which });
        assert!(is_known());
        knowledge.note_event(&Event::Leave { link: LinkId(2) });
        assert!(!is_known());
        knowledge.note_plain(LINK, "echo", &server);
        drop(server);
        assert!(!is_known());
    }
}
