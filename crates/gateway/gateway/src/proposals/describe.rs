//! Definitions of tools for proposals that were made before their servers had listed anything: the
//! first one that comes is what reviewers are shown, and decide about.

use std::sync::Arc;

use model::{OperationId, ParticipantId};

use super::content::{self, Proposed};
use super::open::described;
use crate::dispatch::Dispatch;
use crate::live::Event;

/// Completes the pending proposals for a server that has listed its tools.
pub(crate) fn of_server(dispatch: &Arc<Dispatch>, server: &ParticipantId) {
    let all = dispatch.with(|topic| {
        let is_for = |content: &Proposed| {
            content.opened.tool.is_none()
                && content.opened.to.iter().any(|to| to == server.as_str())
        };
        let pending = topic.undecided().filter(|(_, content)| is_for(content));
        pending
            .map(|(id, content)| (id, Arc::clone(content)))
            .collect::<Vec<_>>()
    });
    for (id, content) in all {
        one(dispatch, id, &content);
    }
}

/// Completes one proposal, if its server lists the tool by now; returns it as it is decided about.
pub(crate) fn one(
    dispatch: &Arc<Dispatch>,
    proposal: OperationId,
    content: &Arc<Proposed>,
) -> Arc<Proposed> {
    if let Some((digest, content)) = described(dispatch, content) {
        let bytes = content::bytes_of(&content.opened);
        dispatch.take(Event::Describe {
            proposal,
            digest,
            content,
            bytes,
        });
    }
    let now = dispatch.with(|topic| {
        topic
            .proposed(proposal)
            .map(|(content, _)| Arc::clone(content))
    });
    now.unwrap_or_else(|| Arc::clone(content))
}
