//! Looks at the topics for proposals that concern a route.

use std::sync::Arc;

use model::{MethodFacts, OperationId, ParticipantId, ProposalState};
use notify::WaitingProposal;
use notify::config::NotifyRoute;

use crate::dispatch::Dispatch;
use crate::live::ProposalView;

/// The topics of a gateway, now.
pub type AllTopics = Box<dyn Fn() -> Vec<Arc<Dispatch>> + Send + Sync>;

/// The time in which rules and the approver outside may decide a proposal before reviewers are
/// notified of it, in milliseconds.
pub(super) const NOTIFY_SETTLE_MS: u64 = 1_000;

/// The proposals that wait in one topic.
pub(super) struct TopicLook {
    dispatch: Arc<Dispatch>,
    waiting: Vec<WaitingProposal>,
    /// When the next proposal has waited long enough, in Unix milliseconds.
    pub(super) settles_ms: Option<u64>,
}

impl TopicLook {
    /// The undecided proposals of a topic, the oldest first.
    pub(super) fn at(dispatch: Arc<Dispatch>, now_ms: u64) -> Self {
        let views = dispatch.with(|topic| topic.waiting_views());
        let mut look = Self {
            waiting: Vec::with_capacity(views.len()),
            settles_ms: None,
            dispatch,
        };
        for view in &views {
            let one = waiting(&look.dispatch, view);
            let settles_ms = one.opened_ms.saturating_add(NOTIFY_SETTLE_MS);
            // One of a clock that was set back has waited.
            if (one.opened_ms..settles_ms).contains(&now_ms) {
                look.settles_ms = Some(look.settles_ms.unwrap_or(settles_ms).min(settles_ms));
            } else {
                look.waiting.push(one);
            }
        }
        look
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

/// The number of these proposals that wait still.
pub(super) fn waiting_still(topics: &[Arc<Dispatch>], about: &[OperationId]) -> usize {
    let in_topic = |dispatch: &Arc<Dispatch>| {
        dispatch.with(|topic| {
            let waits = |id: &&OperationId| {
                topic
                    .proposal(**id)
                    .is_some_and(|view| view.state == ProposalState::Pending)
            };
            about.iter().filter(waits).count()
        })
    };
    topics.iter().map(in_topic).sum()
}

fn waiting(dispatch: &Dispatch, view: &ProposalView) -> WaitingProposal {
    let content = &view.content;
    let opened = &content.opened;
    let tool = match &opened.context {
        _ if !content.is_single() => format!("a plan of {} calls", content.later.len() + 1),
        Some(name) if MethodFacts::of(&opened.method).calls_tool() => name.clone(),
        Some(_) | None => opened.method.clone(),
    };
    let server = match opened.to.as_slice() {
        [to] if content.is_single() => Some(to.clone()),
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
