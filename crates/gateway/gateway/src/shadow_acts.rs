//! Acts of participants before their capabilities in shadow: after the verdict, which stays as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Capabilities, Narrowing, ParticipantId};
use topic::{Cause, HeldFor, PublicTarget, RequestWay, Verdict, admits_envelope};
use wire::mcpx::Envelope;

use crate::by_rule::decided_by::rule_of;
use crate::call::Call;
use crate::dispatch::Dispatch;
use crate::live::ProposalView;
use crate::record::Record;
use crate::shadow_sets::{ShadowSetOf, WouldCounts};

impl Dispatch {
    /// Has capabilities in shadow be asked for here, once.
    pub fn ask_shadow_sets(&self, now: ShadowSetOf) {
        self.shadow_sets.ask(now);
    }

    /// Takes over the configured capabilities in shadow. What was counted of one that has changed
    /// begins anew.
    pub fn put_shadow_sets(&self, written: BTreeMap<ParticipantId, Arc<Capabilities>>) {
        self.shadow_sets.put(written);
    }

    /// What the capabilities in shadow of a participant would have decided otherwise here; `None` if it
    /// has none.
    pub fn would_counts(&self, participant: &ParticipantId) -> Option<WouldCounts> {
        self.shadow_sets.counts_of(participant)
    }

    /// The capabilities in shadow of a participant here, with what is granted to it.
    pub fn shadow_set_of(&self, participant: &ParticipantId) -> Option<Arc<Capabilities>> {
        self.shadow_sets.of(participant, None)
    }
}

/// The way that an act would have gone, in the words of records.
pub(crate) fn would_have(way: RequestWay) -> &'static str {
    match way {
        RequestWay::Made => "would have been allowed",
        RequestWay::Held => "would have become a proposal",
        RequestWay::Refused => "would have been refused",
    }
}

/// The way that the capabilities of its sender gave an act; `None` if something else decided it.
fn way_by_capabilities(verdict: &Verdict) -> Option<RequestWay> {
    match verdict {
        Verdict::Admitted { .. } => Some(RequestWay::Made),
        Verdict::Held { .. } => Some(RequestWay::Held),
        Verdict::Refused(Cause::NotAdmitted) => Some(RequestWay::Refused),
        Verdict::Refused(_) => None,
    }
}

/// Looks at a client's request for a target, after its verdict.
pub(crate) fn request(
    dispatch: &Dispatch,
    call: &Call,
    target: Option<PublicTarget<'_>>,
    narrowing: Option<&Narrowing>,
    verdict: &Verdict,
) {
    let sets = &dispatch.shadow_sets;
    let by = &call.link.participant.id;
    let (Some(was), Some(set)) = (way_by_capabilities(verdict), sets.of(by, narrowing)) else {
        return;
    };
    let method = &call.request.method;
    let destination = dispatch.with(|topic| topic.destination(call.link.id, method, target));
    let Some(destination) = destination else {
        return;
    };
    let Some(way) = destination.way(&set, method.as_str()) else {
        return;
    };
    // What a rule or a pause holds its sender could make, and would be held all the same.
    let is_held_anyway = way == RequestWay::Made
        && matches!(verdict, Verdict::Held { why, .. } if *why != HeldFor::Capability);
    let would = (way != was && !is_held_anyway).then_some(way);
    sets.count(by, would);
    if let Some(way) = would {
        Record(dispatch).request_in_shadow(call, &destination.to, was, would_have(way));
    }
}

/// Looks at an envelope, after its verdict.
pub(crate) fn envelope(
    dispatch: &Dispatch,
    by: &ParticipantId,
    narrowing: Option<&Narrowing>,
    envelope: &Envelope,
    to: &[&str],
    verdict: &Verdict,
) {
    let sets = &dispatch.shadow_sets;
    let (Some(was), Some(set)) = (way_by_capabilities(verdict), sets.of(by, narrowing)) else {
        return;
    };
    let way = if admits_envelope(&set, envelope.kind(), to) {
        RequestWay::Made
    } else {
        RequestWay::Refused
    };
    // Nothing holds an envelope.
    let would = (way != was && was != RequestWay::Held).then_some(way);
    sets.count(by, would);
    if let Some(way) = would {
        Record(dispatch).envelope_in_shadow(envelope, to, was, would_have(way));
    }
}

/// Looks at the decision that a proposal has, unless a rule has made it.
pub(crate) fn decided(dispatch: &Dispatch, proposal: &ProposalView) {
    if let Some(by) = &proposal.decided_by
        && rule_of(proposal).is_none()
    {
        decision(dispatch, proposal, by);
    }
}

/// Looks at a decision of a participant about another one's proposal, which counts.
pub(crate) fn decision(dispatch: &Dispatch, proposal: &ProposalView, by: &ParticipantId) {
    if !dispatch.shadow_sets.is_any() {
        return;
    }
    let sets = &dispatch.shadow_sets;
    let opened = &proposal.content.opened;
    let (Some(set), Some(target)) = (sets.of(by, None), &opened.context) else {
        return;
    };
    let to = opened.to.iter();
    let to: Vec<ParticipantId> = to.filter_map(|to| ParticipantId::new(to).ok()).collect();
    let may = if to.is_empty() {
        set.admits_deciding(&opened.method, Some(target), &[])
    } else {
        dispatch.with(|topic| {
            let mut all = to.iter();
            all.all(|to| topic.covers_request(&set, &opened.method, target, to))
        })
    };
    sets.count(by, (!may).then_some(RequestWay::Refused));
    if !may {
        let why = would_have(RequestWay::Refused);
        Record(dispatch).decision_in_shadow(proposal.id, opened, by, why);
    }
}
