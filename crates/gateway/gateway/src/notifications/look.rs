//! Looks at the topics for proposals that concern a route.

use std::sync::Arc;

use model::{MethodFacts, OperationId, ParticipantId};
use notify::WaitingProposal;
use notify::config::NotifyRoute;

use crate::dispatch::Dispatch;
use crate::live::{ProposalView, Topic};

/// The topics of a gateway, now.
pub type AllTopics = Box<dyn Fn() -> Vec<Arc<Dispatch>> + Send + Sync>;

/// What waits in one topic.
pub(super) struct TopicLook {
    dispatch: Arc<Dispatch>,
    waiting: Vec<WaitingProposal>,
}

impl TopicLook {
    /// The undecided proposals of a topic, the oldest first.
    pub(super) fn at(dispatch: Arc<Dispatch>) -> Self {
        let views = dispatch.with(Topic::undecided_views);
        let waiting = views.iter().map(|view| waiting(&dispatch, view)).collect();
        Self { dispatch, waiting }
    }

    /// Those of them that concern a route.
    pub(super) fn concerning(&self, route: &NotifyRoute) -> Vec<WaitingProposal> {
        if self.waiting.is_empty() || !route.has_topic(self.dispatch.name()) {
            return Vec::new();
        }
        if route.reviewers.is_empty() {
            return self.waiting.clone();
        }
        let mut concerning = vec![false; self.waiting.len()];
        for reviewer in &route.reviewers {
            self.mark(reviewer, &mut concerning);
        }
        let marked = self.waiting.iter().zip(concerning);
        marked
            .filter(|(_, concerns)| *concerns)
            .map(|(one, _)| one.clone())
            .collect()
    }

    /// Marks the proposals that a participant may decide now.
    fn mark(&self, reviewer: &ParticipantId, concerning: &mut [bool]) {
        self.dispatch.refresh(reviewer);
        let Some(standing) = (self.dispatch.standing)(reviewer) else {
            return;
        };
        self.dispatch.with(|topic| {
            if topic.is_braked(reviewer) {
                return;
            }
            let granted = topic.granted_to(reviewer, Some(&standing), None);
            for (one, concerns) in self.waiting.iter().zip(concerning) {
                *concerns = *concerns
                    || topic.could_decide(one.id, reviewer, &granted)
                        && !topic.has_approved(one.id, reviewer);
            }
        });
    }
}

/// Whether one of these proposals waits still.
pub(super) fn waits_still(topics: &[Arc<Dispatch>], about: &[OperationId]) -> bool {
    topics.iter().any(|dispatch| {
        dispatch.with(|topic| about.iter().any(|id| topic.is_undecided(*id, |_| true)))
    })
}

fn waiting(dispatch: &Dispatch, view: &ProposalView) -> WaitingProposal {
    let opened = &view.content.opened;
    let tool = match &opened.context {
        Some(name) if MethodFacts::of(&opened.method).calls_tool() => name.clone(),
        Some(_) | None => opened.method.clone(),
    };
    let server = match opened.to.as_slice() {
        [to] => Some(to.clone()),
        _ => None,
    };
    WaitingProposal {
        id: view.id,
        topic: dispatch.name().clone(),
        by: view.by.clone(),
        tool,
        server,
        opened_ms: opened.at_ms,
        expires_ms: view.expires_wall_ms,
        is_claimed: !view.claims.is_empty(),
    }
}
