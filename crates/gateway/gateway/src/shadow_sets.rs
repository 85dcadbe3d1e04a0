//! Capabilities in shadow: sets that decide nothing. Each act whose verdict under one would differ is
//! recorded.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use model::{Capabilities, Narrowing, OperationId, ParticipantId};
use platform::Mutex;
use topic::{Cause, HeldFor, PublicTarget, RequestWay, Verdict, admits_envelope};
use wire::mcpx::Envelope;

use crate::call::Call;
use crate::dispatch::{Dispatch, StandingOf};
use crate::live::ProposalView;
use crate::record::Record;

/// The capabilities in shadow of the participants of a topic.
#[derive(Default)]
pub(crate) struct ShadowSets {
    /// Whether there are any: without, no act is looked at.
    is_any: AtomicBool,
    /// Those of a participant in the topic now, with what is granted to it.
    now: OnceLock<StandingOf>,
    state: Mutex<ShadowState>,
}

#[derive(Default)]
struct ShadowState {
    /// As the configuration has them.
    written: BTreeMap<ParticipantId, Arc<Capabilities>>,
    counts: BTreeMap<ParticipantId, WouldCounts>,
}

/// What capabilities in shadow would have decided otherwise, since the gateway runs and has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WouldCounts {
    /// The acts that were looked at.
    pub acts: u64,
    /// Acts that would have been refused.
    pub refused: u64,
    /// Acts that would have become proposals.
    pub held: u64,
    /// Acts that would have been allowed.
    pub allowed: u64,
}

impl WouldCounts {
    /// It in words.
    #[must_use]
    pub fn words(&self) -> String {
        let Self {
            acts,
            refused,
            held,
            allowed,
        } = self;
        format!(
            "of {acts} acts {refused} would have been refused, {held} would have become proposals, {allowed} would have been allowed"
        )
    }

    fn take(&mut self, would: Option<RequestWay>) {
        self.acts = self.acts.saturating_add(1);
        let count = match would {
            Some(RequestWay::Made) => &mut self.allowed,
            Some(RequestWay::Held) => &mut self.held,
            Some(RequestWay::Refused) => &mut self.refused,
            None => return,
        };
        *count = count.saturating_add(1);
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

impl ShadowSets {
    /// Whether there are any.
    pub(crate) fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Relaxed)
    }

    /// Those of a participant now, as far as an access token with this narrowing is good for them.
    fn of(
        &self,
        participant: &ParticipantId,
        narrowing: Option<&Narrowing>,
    ) -> Option<Arc<Capabilities>> {
        let set = self.now.get()?(participant)?;
        Some(match narrowing {
            Some(narrowing) => Arc::new(set.within(&narrowing.to)),
            None => set,
        })
    }

    fn count(&self, participant: &ParticipantId, would: Option<RequestWay>) {
        let mut state = self.state.lock();
        let counts = state.counts.entry(participant.clone()).or_default();
        counts.take(would);
    }
}

impl Dispatch {
    /// Has capabilities in shadow be asked for here, once.
    pub fn ask_shadow_sets(&self, now: StandingOf) {
        let _ = self.shadow_sets.now.set(now);
    }

    /// Takes over the configured capabilities in shadow. What was counted of one that has changed
    /// begins anew.
    pub fn put_shadow_sets(&self, written: BTreeMap<ParticipantId, Arc<Capabilities>>) {
        let sets = &self.shadow_sets;
        let mut state = sets.state.lock();
        let ShadowState {
            written: before,
            counts,
        } = &mut *state;
        counts.retain(|id, _| before.get(id) == written.get(id));
        sets.is_any.store(!written.is_empty(), Ordering::Relaxed);
        *before = written;
    }

    /// What the capabilities in shadow of a participant would have decided otherwise here; `None` if it
    /// has none.
    pub fn would_counts(&self, participant: &ParticipantId) -> Option<WouldCounts> {
        let state = self.shadow_sets.state.lock();
        let counts = || state.counts.get(participant).copied().unwrap_or_default();
        state.written.contains_key(participant).then(counts)
    }

    /// The capabilities in shadow of a participant here, with what is granted to it.
    pub fn shadow_set_of(&self, participant: &ParticipantId) -> Option<Arc<Capabilities>> {
        self.shadow_sets.of(participant, None)
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

/// Looks at a decision of a participant about another one's proposal, which counts.
pub(crate) fn decision(dispatch: &Dispatch, proposal: &ProposalView, by: &ParticipantId) {
    let sets = &dispatch.shadow_sets;
    let opened = &proposal.content.opened;
    let (Some(set), Some(target)) = (sets.of(by, None), &opened.context) else {
        return;
    };
    let to = opened.to.iter();
    let to: Vec<ParticipantId> = to.filter_map(|to| ParticipantId::new(to).ok()).collect();
    let may = dispatch.with(|topic| {
        let mut all = to.iter();
        all.all(|to| topic.covers_request(&set, &opened.method, target, to))
    });
    sets.count(by, (!may).then_some(RequestWay::Refused));
    if !may {
        let operation: OperationId = proposal.id;
        let why = would_have(RequestWay::Refused);
        Record(dispatch).decision_in_shadow(operation, opened, by, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_are_counted_by_the_way_that_they_would_have_gone() {
        let mut counts = WouldCounts::default();
        let ways = [
            None,
            Some(RequestWay::Made),
            Some(RequestWay::Held),
            Some(RequestWay::Held),
            Some(RequestWay::Refused),
        ];
        ways.into_iter().for_each(|way| counts.take(way));
        assert_eq!(
            counts.words(),
            "of 5 acts 1 would have been refused, 2 would have become proposals, 1 would have been allowed"
        );
    }
}
