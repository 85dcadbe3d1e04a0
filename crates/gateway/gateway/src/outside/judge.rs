//! Proposals that the approver outside is asked about.

use std::sync::Arc;

use authzen::config::OutsideApprover;
use model::{NamePattern, OperationId, ParticipantId};
use topic::public_name;

use super::desk::{ApproverChange, ApproverInForce, OutsideDesk};
use super::errand::Errand;
use super::keeper;
use super::later;
use super::question::question;
use crate::by_rule::tool_facts::upstream_of;
use crate::dispatch::Dispatch;
use crate::judges::{self, Judge};
use crate::proposals::content::Proposed;
use crate::proposals::describe;
use crate::proposals::kept::OpenedProposal;
use crate::record::Record;

impl Dispatch {
    /// Puts the topic's approver outside in force, or none, and has it asked about what waits.
    pub fn put_approver_in_force(self: &Arc<Self>, approver: Option<&OutsideApprover>) {
        match self.outside.put_in_force(approver) {
            ApproverChange::First => self.outside.offer(keeper::resumable(self)),
            ApproverChange::Same => {}
            // The requests of before are cancelled as they end: the new one asks anew.
            ApproverChange::Replaced => keeper::forget_all(self),
        }
        judges::all(self);
    }
}

impl Judge for OutsideDesk {
    fn is_active(&self) -> bool {
        self.approver().is_some()
    }

    /// Has the approver asked, without waiting for it.
    fn judge(&self, dispatch: &Arc<Dispatch>, proposal: OperationId) {
        let Some(approver) = self.approver() else {
            return;
        };
        let content = dispatch.with(|topic| {
            let (content, _) = topic.proposed(proposal)?;
            // A rule may have decided it.
            let waits = topic.is_undecided(proposal, |_| true);
            waits.then(|| Arc::clone(content))
        });
        let Some(content) = content else {
            return;
        };
        let content = describe::one(dispatch, proposal, &content);
        if may_ask(dispatch, &approver, proposal, &content) {
            ask(dispatch, self, approver, proposal, &content);
        }
    }

    fn approved(&self, proposal: OperationId) {
        self.forget(proposal);
    }

    fn conclude(&self, proposal: OperationId) {
        self.forget(proposal);
    }
}

/// Whether the approver is to be asked about a proposal: it is about a tool of its list, and its
/// participant could decide it now.
fn may_ask(
    dispatch: &Arc<Dispatch>,
    approver: &ApproverInForce,
    proposal: OperationId,
    content: &Proposed,
) -> bool {
    if !is_listed(dispatch, &approver.config.tools, &content.opened) {
        return false;
    }
    let by = &approver.config.acts_as;
    dispatch.refresh(by);
    let Some(standing) = (dispatch.standing)(by) else {
        return false;
    };
    dispatch.with(|topic| {
        let granted = topic.granted_to(by, Some(&standing), None);
        !topic.is_braked(by)
            && topic.could_decide(proposal, by, &granted)
            // One of several approvals.
            && !topic.has_approved(proposal, by)
    })
}

/// Whether a proposed call is one of a tool with a name of these: its own name behind its server's
/// prefix.
fn is_listed(dispatch: &Dispatch, tools: &[NamePattern], opened: &OpenedProposal) -> bool {
    let ([to], Some(own)) = (opened.to.as_slice(), &opened.context) else {
        return false;
    };
    let Ok(to) = ParticipantId::new(to) else {
        return false;
    };
    let upstream = dispatch.with(|topic| upstream_of(topic, &to));
    let Some(upstream) = upstream else {
        return false;
    };
    let name = public_name(&upstream.spec().config.prefix, own);
    tools.iter().any(|pattern| pattern.matches(&name))
}

/// Asks the approver about a proposal, unless it was asked about this content, or the question cannot
/// be recorded: then people decide. While its service fails or its places are taken it is asked later.
fn ask(
    dispatch: &Arc<Dispatch>,
    desk: &OutsideDesk,
    approver: Arc<ApproverInForce>,
    proposal: OperationId,
    content: &Proposed,
) {
    let opened = &content.opened;
    if desk.was_asked(proposal, &opened.digest) {
        return;
    }
    let arguments = &approver.config.arguments;
    let Some(question) = question(dispatch.name().as_str(), opened, arguments) else {
        return;
    };
    let later = |why| later::skip(dispatch, &approver, (proposal, &opened.by), why);
    if !approver.breaker.is_closed() {
        return later("its service fails");
    }
    let Ok(place) = approver.requests.of(&opened.by).take(1) else {
        return later("its places are taken");
    };
    let Ok(permit) = dispatch.audit.reserve_of(&approver.config.acts_as) else {
        return;
    };
    let Some(over) = desk.ask(&approver, proposal, &opened.digest) else {
        return;
    };
    Record(dispatch).approver_asked(permit, &approver, proposal, opened);
    let kept = desk.resume(proposal);
    let looking = (Arc::downgrade(dispatch), Arc::clone(&approver));
    let errand = Errand::new(dispatch, approver, question, (proposal, opened)).resuming(kept);
    dispatch.spawn(async move {
        errand.run(over).await;
        drop(place);
        let (dispatch, approver) = looking;
        if let Some(dispatch) = dispatch.upgrade() {
            later::look(&dispatch, &approver);
        }
    });
}
