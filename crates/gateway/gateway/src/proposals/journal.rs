//! Journal of proposals: a record of each change, and their return after a restart.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use model::{Answer, MethodFacts, OperationId, Outcome, ParticipantId, ProposalState, RULES};
use platform::unix_ms;
use rules::{RejectReason, RuleName, SpotEnd};
use store::{Entry, Ledger, StoreError};
use topic::{ProposalChange, Restore};
use wire::mcpx::payload;

use super::approvals;
use super::content::{Proposed, Ruling};
use super::describe;
use super::kept::{
    AmendmentRecord, ApprovalRecord, CLOSED_PROPOSALS_KEPT_MS, DecidedProposal, DecisionRecord,
    EndRecord, ExtensionRecord, KeptProposal, KeptProposals, OpenedPlan, OpenedProposal,
    ProposalRecord, closed_digest,
};
use super::open::Opening;
use super::plans;
use super::waiting;
use crate::by_rule::decided_by::rule_of;
use crate::by_rule::evidence;
use crate::by_rule::judge;
use crate::by_rule::kept::{EndedUse, KeptRules, RuleRecord};
use crate::by_rule::shadow;
use crate::by_rule::tighten::counted;
use crate::dispatch::Dispatch;
use crate::ledgers::TopicLedgers;
use crate::live::{Event, Live};
use crate::record;

/// The reason of an approved proposal whose run a restart interrupted.
const OUTCOME_UNKNOWN: &str = "outcome_unknown: the gateway was restarted while it ran; it may have been carried out, and is not run again";

/// Writes a change down, then reports to the topic whether it is durable. Without a journal it
/// counts as written at once, so that the report is a step from inside the effect.
pub(crate) fn store(
    dispatch: &Arc<Dispatch>,
    proposal: OperationId,
    content: Arc<Proposed>,
    change: ProposalChange<Live>,
) {
    let at_ms = unix_ms();
    let opened = &content.opened;
    let counts = counted::of_approval(dispatch, proposal, opened, &change, at_ms);
    let Some(TopicLedgers { proposals, .. }) = &dispatch.ledgers else {
        dispatch.take(Event::Written {
            proposal,
            stored: true,
        });
        return;
    };
    let record = match change {
        ProposalChange::Opened if opened.plan.is_some() => ProposalRecord::PlanOpened(OpenedPlan {
            steps: content.steps().cloned().collect(),
        }),
        _ => record_of(proposal, opened, &change, at_ms),
    };
    // On the proposer's account until it is durable: see [`waiting::has_room`].
    let waits = matches!(change, ProposalChange::Opened)
        .then(|| waiting::take(proposals.journal(), &content))
        .flatten();
    let mut of_rules = of_rules(dispatch, proposal, &change);
    let ruled_ms = dispatch.rules.not_before(at_ms);
    let decided = evidence::of_change(dispatch, proposal, opened, &change, ruled_ms);
    let is_warning = decided.as_ref().is_some_and(|one| one.decision.warns());
    if let Some(decided) = decided {
        if is_warning {
            of_rules.extend(judge::contradicted(dispatch, &decided.decision, ruled_ms));
        }
        of_rules.push(RuleRecord::Decided(decided));
    }
    let check =
        spot_end(opened, &change).and_then(|end| dispatch.rules.end_of_check(proposal, end));
    let shadow =
        shadow::end_of(&change).and_then(|end| dispatch.rules.end_of_shadow(proposal, end));
    let returned = (opened.needs_several() && voids_approvals(&change))
        .then(|| dispatch.rules.return_of(proposal))
        .flatten();
    let of_end: Vec<RuleRecord> = check.into_iter().chain(shadow).chain(returned).collect();
    of_rules.extend(of_end.iter().cloned());
    let counted = counted::operations_of(&counts);
    of_rules.extend(counts);
    let topic = Arc::downgrade(dispatch);
    submit(proposals, record, &of_rules, move |durable| {
        drop(waits);
        if let Some(dispatch) = topic.upgrade() {
            if !durable {
                counted::give_back(&dispatch, counted);
            }
            if is_warning {
                dispatch.rules.rejection_written();
            }
            if durable {
                of_end.iter().for_each(|end| dispatch.rules.apply(end));
            }
            written(&dispatch, proposal, durable);
        }
    });
}

/// Records of rules about a change: they are durable together with the change, or not at all.
fn of_rules(
    dispatch: &Dispatch,
    proposal: OperationId,
    change: &ProposalChange<Live>,
) -> Vec<RuleRecord> {
    match change {
        ProposalChange::Opened
        | ProposalChange::Extended { .. }
        | ProposalChange::Amended { .. } => Vec::new(),
        ProposalChange::Counted { ruling, .. } => {
            let rule = ruling.rule.as_ref();
            rule.map_or_else(Vec::new, |rule| rule.charges.clone())
        }
        ProposalChange::Decided { ruling, .. } => {
            let rule = ruling.as_ref().and_then(|ruling| ruling.rule.as_ref());
            rule.map_or_else(Vec::new, |rule| rule.charges.clone())
        }
        ProposalChange::Ended { answer, .. } => {
            if !dispatch.rules.has_ever_decided() {
                return Vec::new();
            }
            let view = dispatch.with(|topic| topic.proposal(proposal));
            let by_rule = view.as_ref().and_then(rule_of);
            let Some(answer) = by_rule.and(answer.as_ref()) else {
                // The end of a call that was cancelled or lost says nothing of its rule.
                return Vec::new();
            };
            let ended = RuleRecord::UseEnded(EndedUse {
                topic: dispatch.name().to_string(),
                operation: proposal,
                failed: answer.outcome == Outcome::Error,
            });
            dispatch.rules.apply(&ended);
            vec![ended]
        }
    }
}

/// Whether the approvals that a proposal has so far run nothing, after a change.
fn voids_approvals(change: &ProposalChange<Live>) -> bool {
    match change {
        ProposalChange::Opened
        | ProposalChange::Counted { .. }
        | ProposalChange::Extended { .. } => false,
        ProposalChange::Amended { .. } => true,
        ProposalChange::Decided { state, .. } => *state != ProposalState::Running,
        ProposalChange::Ended { state, .. } => {
            matches!(state, ProposalState::Expired | ProposalState::Withdrawn)
        }
    }
}

/// The end of a spot check with a change; `None` of a change that leaves the proposal pending. An
/// amendment is none: with it a proposer could have a rule draw once more.
fn spot_end(opened: &OpenedProposal, change: &ProposalChange<Live>) -> Option<SpotEnd> {
    match change {
        ProposalChange::Opened
        | ProposalChange::Counted { .. }
        | ProposalChange::Extended { .. }
        | ProposalChange::Amended { .. } => None,
        // It may be about other arguments than those that the rule left to people.
        ProposalChange::Decided { .. } if opened.amendments > 0 => Some(SpotEnd::Undecided),
        ProposalChange::Decided { state, ruling, .. } => Some(match state {
            ProposalState::Running => {
                let edited = ruling.as_ref().and_then(|ruling| ruling.params.as_ref());
                edited.map_or(SpotEnd::Agreed, |_| SpotEnd::Disagreed)
            }
            ProposalState::Rejected => SpotEnd::Disagreed,
            // The topic decides nothing else.
            ProposalState::Withdrawn
            | ProposalState::Pending
            | ProposalState::Completed
            | ProposalState::Failed
            | ProposalState::Expired => SpotEnd::Undecided,
        }),
        // The end of one that was decided is no end of a check any more.
        ProposalChange::Ended { .. } => Some(SpotEnd::Undecided),
    }
}

/// Reports that a record is durable, or cannot be. The topic learns of it on the journal's thread,
/// so in the journal's order; what follows is carried out elsewhere, so that the journal goes on.
fn written(dispatch: &Arc<Dispatch>, proposal: OperationId, stored: bool) {
    // Whatever goes wrong with one proposal, the journal's thread must go on.
    let stepped = catch_unwind(AssertUnwindSafe(|| {
        dispatch.step(Event::Written { proposal, stored })
    }));
    match stepped {
        Ok(step) => drop(step),
        Err(_) => {
            tracing::error!(%proposal, "a durable record was not taken: the gateway has a fault");
        }
    }
}

/// Writes a record together with those of rules, then says whether all are durable.
fn submit(
    proposals: &Ledger<KeptProposals>,
    record: ProposalRecord,
    of_rules: &[RuleRecord],
    report: impl FnOnce(bool) + Send + 'static,
) {
    let report = move |result: Result<(), StoreError>| {
        // The gateway ends with its time as the home. The record is stored or not: its callers
        // learn from the next home which, and from this one nothing that may be false.
        if matches!(result, Err(StoreError::Elsewhere)) {
            return tracing::info!("a record of a proposal was under way as the home moved");
        }
        if let Err(error) = &result {
            tracing::error!(%error, "the journal cannot be written");
        }
        report(result.is_ok());
    };
    let entries = of_rules.iter().map(Entry::of::<KeptRules>);
    match entries.collect() {
        Ok(entries) => proposals.submit_with(&[record], entries, report),
        Err(error) => report(Err(error)),
    }
}

fn record_of(
    proposal: OperationId,
    opened: &OpenedProposal,
    change: &ProposalChange<Live>,
    at_ms: u64,
) -> ProposalRecord {
    let id = proposal.to_string();
    match change {
        ProposalChange::Opened => ProposalRecord::ProposalOpened(opened.clone()),
        ProposalChange::Counted {
            by,
            amended,
            ruling,
        } => ProposalRecord::ProposalApproved(ApprovalRecord {
            id,
            by: by.to_string(),
            rule: rule_in(Some(ruling.as_ref())).cloned(),
            digest: opened.digest.clone(),
            params: opened.params.clone().filter(|_| *amended),
            note: ruling.note.clone(),
            at_ms,
        }),
        ProposalChange::Extended {
            by,
            expires_wall_ms,
            ..
        } => ProposalRecord::ProposalExtended(ExtensionRecord {
            id,
            by: by.to_string(),
            expires_ms: *expires_wall_ms,
            at_ms,
        }),
        ProposalChange::Amended { .. } => ProposalRecord::ProposalAmended(AmendmentRecord {
            id,
            params: opened.params.clone(),
            digest: opened.digest.clone(),
            at_ms,
        }),
        ProposalChange::Decided {
            by,
            state,
            reason,
            fulfilment,
            ruling,
        } => ProposalRecord::ProposalDecided(DecidedProposal {
            id,
            by: match rule_in(ruling.as_deref()) {
                Some(_) => RULES.to_owned(),
                None => by.to_string(),
            },
            rule: rule_in(ruling.as_deref()).cloned(),
            author: rule_in(ruling.as_deref()).map(|_| by.to_string()),
            decision: decision_of(*state),
            reason: reason.as_deref().map(str::to_owned),
            note: ruling.as_ref().and_then(|ruling| ruling.note.clone()),
            code: code_in(ruling.as_deref()).map(str::to_owned),
            digest: Some(opened.digest.clone()),
            params: ruling.as_ref().and_then(|ruling| ruling.params.clone()),
            envelope: fulfilment.as_deref().map(str::to_owned),
            at_ms,
        }),
        ProposalChange::Ended {
            state,
            reason,
            answer,
        } => ProposalRecord::ProposalEnded(EndRecord {
            id,
            state: state.as_str().to_owned(),
            reason: reason.as_deref().map(str::to_owned),
            answer: answer
                .as_ref()
                .map(|answer| answer_text(answer, &opened.method)),
            at_ms,
        }),
    }
}

fn rule_in(ruling: Option<&Ruling>) -> Option<&RuleName> {
    Some(&ruling?.rule.as_ref()?.name)
}

fn code_in(ruling: Option<&Ruling>) -> Option<&'static str> {
    ruling?.code.code()
}

fn decision_of(state: ProposalState) -> DecisionRecord {
    match state {
        ProposalState::Running => DecisionRecord::Approved,
        ProposalState::Rejected => DecisionRecord::Rejected,
        // The topic decides nothing else.
        ProposalState::Withdrawn
        | ProposalState::Pending
        | ProposalState::Completed
        | ProposalState::Failed
        | ProposalState::Expired => DecisionRecord::Withdrawn,
    }
}

fn answer_text(answer: &Answer, method: &str) -> String {
    String::from_utf8_lossy(&payload::answer(answer, method, None)).into_owned()
}

/// Reports to the topic that the proposals of these envelopes are over, so that no request carries
/// one out again, even once the topic no longer keeps it. The journal keeps the same digests for as
/// long.
pub(crate) fn close<'e>(dispatch: &Arc<Dispatch>, envelopes: impl IntoIterator<Item = &'e str>) {
    let until_ms = dispatch
        .context
        .now_ms()
        .saturating_add(CLOSED_PROPOSALS_KEPT_MS);
    let topic = dispatch.name().as_str();
    let digests = envelopes
        .into_iter()
        .map(|envelope| (until_ms, closed_digest(topic, envelope)));
    // Also a step from inside an effect: the topic, which hashes nothing, asks for it by that effect.
    dispatch.take(Event::Closed {
        closed: digests.collect(),
    });
}

/// Brings back the proposals that the journal has. Those that were pending are pending again,
/// unless their proposers may not make them any more; one that was approved and has no outcome
/// failed, and never runs again. The topic's servers must be configured before, and its rules are put
/// in force after.
pub(crate) fn restore(dispatch: &Arc<Dispatch>) {
    let Some(ledgers) = &dispatch.ledgers else {
        return;
    };
    let now_ms = unix_ms();
    let topic = dispatch.name().as_str();
    let (proposals, closed) = ledgers.proposals.state(|kept| {
        let all = kept.ended().chain(kept.open());
        let own = all
            .filter(|proposal| proposal.opened.topic == topic)
            .cloned();
        (
            own.collect::<Vec<_>>(),
            kept.closed_in(topic, now_ms).collect::<Vec<_>>(),
        )
    });
    let on_own_clock = |at_ms: u64| {
        dispatch
            .context
            .now_ms()
            .saturating_add(at_ms.saturating_sub(now_ms))
    };
    let closed = closed
        .into_iter()
        .map(|(until_ms, digest)| (on_own_clock(until_ms), digest))
        .collect();
    dispatch.take(Event::Closed { closed });
    let ended = proposals.iter().filter(|proposal| proposal.has_ended());
    close(dispatch, ended.map(|proposal| &*proposal.opened.envelope));
    let mut proposers = Vec::new();
    let mut approved = Vec::new();
    let mut bearers = FormerBearers::default();
    for proposal in &proposals {
        bearers.pass(dispatch, &proposal.opened);
        let expires_ms = on_own_clock(proposal.opened.expires_ms);
        let is_pending = proposal.decided.is_none() && !proposal.has_ended();
        // It comes back even if the log has no room: then the loss is counted.
        let ending = is_pending.then(|| dispatch.audit.reserve_or_count());
        let Some(mut opening) = Opening::restored(&proposal.opened, ending, expires_ms) else {
            tracing::error!(
                id = proposal.opened.id,
                "the journal has a proposal that cannot be read"
            );
            continue;
        };
        opening.terms.extensions = proposal.extensions.len();
        if let Some(why) = plans::stopped_by_restart(proposal, &proposals) {
            end_unfinished(dispatch, opening, proposal, (ProposalState::Withdrawn, why));
            continue;
        }
        opening.content = with_later(&opening.content, &proposals);
        if !proposal.has_ended() && proposal.decided.is_some() {
            let lost = (ProposalState::Failed, OUTCOME_UNKNOWN);
            end_unfinished(dispatch, opening, proposal, lost);
            continue;
        }
        if is_pending {
            proposers.push(opening.terms.by.clone());
            if proposal.opened.needs_several() {
                approved.push(opening.id);
            }
        }
        restore_one(dispatch, opening, proposal);
    }
    bearers.end(dispatch);
    // Once for each, and after all are back: a refresh ends those that may not be made any more.
    proposers.sort_unstable();
    proposers.dedup();
    proposers
        .iter()
        .for_each(|proposer| dispatch.refresh(proposer));
    approved
        .into_iter()
        .for_each(|proposal| approvals::refresh(dispatch, proposal));
    dispatch
        .servers()
        .iter()
        .for_each(|server| describe::of_server(dispatch, &server.id));
}

/// Proposers whose proposals are brought back, in the order in which they were opened, and whether
/// their names had other bearers then.
#[derive(Default)]
struct FormerBearers(BTreeMap<String, bool>);

impl FormerBearers {
    /// Takes the next proposal. The first of a present bearer ends what is its of those before.
    fn pass(&mut self, dispatch: &Arc<Dispatch>, opened: &OpenedProposal) {
        let since_ms = dispatch.context.sealer.incarnations().since_ms(&opened.by);
        let is_former = since_ms.is_some_and(|since_ms| opened.at_ms < since_ms);
        let before = self.0.insert(opened.by.clone(), is_former);
        if before == Some(true) && !is_former {
            disown(dispatch, &opened.by);
        }
    }

    fn end(self, dispatch: &Arc<Dispatch>) {
        self.0
            .iter()
            .filter(|(_, is_former)| **is_former)
            .for_each(|(by, _)| disown(dispatch, by));
    }
}

fn disown(dispatch: &Arc<Dispatch>, name: &str) {
    if let Ok(participant) = ParticipantId::new(name) {
        dispatch.take(Event::Disown {
            participant: &participant,
        });
    }
}

/// The public name under which a held call was judged, if its server gives it another name.
fn public_name(dispatch: &Dispatch, opened: &OpenedProposal) -> Option<String> {
    let own = opened
        .context
        .as_deref()
        .filter(|_| MethodFacts::of(&opened.method).names_in().is_some())?;
    let server = dispatch.server_named(opened.to.first()?)?;
    let prefix = &*server.upstream.spec().config.prefix;
    (!prefix.is_empty()).then(|| topic::public_name(prefix, own))
}

fn restore_one(dispatch: &Arc<Dispatch>, opening: Opening, proposal: &KeptProposal) {
    let Opening { id, content, terms } = opening;
    let content = if proposal.is_amended() {
        content.amended(proposal.opened.clone())
    } else {
        content
    };
    let held = proposal.opened.held;
    let public = public_name(dispatch, &proposal.opened);
    dispatch.take(Event::Restore(Restore {
        proposal: id,
        terms,
        content,
        held,
        public: public.as_deref(),
        approved_by: approvals::restored(dispatch, proposal),
        end: end_of(proposal),
    }));
}

/// The first step of a plan with those after it, which reviewers are shown with it.
fn with_later(content: &Arc<Proposed>, all: &[KeptProposal]) -> Arc<Proposed> {
    let plan = content.opened.plan.as_ref().filter(|plan| plan.step == 1);
    let Some(plan) = plan else {
        return Arc::clone(content);
    };
    let later = plan.steps.iter().skip(1).filter_map(|id| {
        let step = all.iter().find(|one| one.opened.id == *id)?;
        Some(Proposed::new(step.opened.clone(), None, 0, [None, None]))
    });
    // No caller waits for an opening of before a restart.
    content.with_later(later.collect()).0
}

/// Ends what was under way when the gateway stopped. An approved proposal fails, and is not run again;
/// a step whose turn had not come is withdrawn.
fn end_unfinished(
    dispatch: &Arc<Dispatch>,
    opening: Opening,
    proposal: &KeptProposal,
    (state, why): (ProposalState, &str),
) {
    let id = opening.id;
    let ended = EndRecord {
        id: proposal.opened.id.clone(),
        state: state.as_str().to_owned(),
        reason: Some(why.to_owned()),
        answer: None,
        at_ms: unix_ms(),
    };
    let lost = KeptProposal {
        ended: Some(ended.clone()),
        ..proposal.clone()
    };
    restore_one(dispatch, opening, &lost);
    close(dispatch, [&*proposal.opened.envelope]);
    if let Some(view) = dispatch.with(|topic| topic.proposal(id)) {
        record::Record(dispatch).concluded(&view, None);
    }
    if let Some(ledgers) = &dispatch.ledgers {
        // If this is lost, the next start comes to the same end.
        submit(
            &ledgers.proposals,
            ProposalRecord::ProposalEnded(ended),
            &[],
            |_| {},
        );
    }
}

/// End of a proposal in the journal, if it has ended.
fn end_of(proposal: &KeptProposal) -> Option<topic::EndedProposal<Live>> {
    let decided = proposal.decided.as_ref();
    let (state, reason) = match (&proposal.ended, decided) {
        (Some(end), _) => (
            end.state.parse().unwrap_or(ProposalState::Failed),
            end.reason.as_deref(),
        ),
        (None, Some(decided)) => {
            let state = match decided.decision {
                DecisionRecord::Approved => ProposalState::Failed,
                DecisionRecord::Rejected => ProposalState::Rejected,
                DecisionRecord::Withdrawn => ProposalState::Withdrawn,
            };
            (state, decided.reason.as_deref())
        }
        (None, None) => return None,
    };
    let ruling = |decided: &DecidedProposal| {
        // The topic knows the author of a rule as the one that decided.
        let by = decided.author.as_ref().unwrap_or(&decided.by);
        let by = ParticipantId::new(by).ok()?;
        let code = decided.code.as_deref().and_then(RejectReason::of_code);
        let ruling = Ruling::restored(
            decided.params.clone(),
            decided.rule.clone(),
            code.unwrap_or_default(),
        );
        Some((by, Arc::new(ruling.noted(decided.note.clone()))))
    };
    let answer = proposal.ended.as_ref().and_then(|end| end.answer.clone());
    Some(topic::EndedProposal {
        state,
        reason: reason.map(Arc::from),
        decided: decided.and_then(ruling),
        fulfilment: decided
            .and_then(|decided| decided.envelope.as_deref())
            .map(Arc::from),
        answer: answer.and_then(|answer| payload::read_answer(answer.into())),
    })
}

#[cfg(test)]
mod tests {
    use rules::{RuleCharge, SpentEvent};
    use store::Fold;

    use super::*;
    use crate::by_rule::tests::Stage;
    use crate::fixture::{OPENED, opened};

    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    const ERROR: &str = r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#;

    /// The proposal that the journal has after these changes.
    fn journaled(changes: &[ProposalChange<Live>]) -> KeptProposal {
        let mut state = KeptProposals::default();
        for change in changes {
            state.apply(&record_of(OPENED, &opened(), change, 5));
        }
        state.get(&OPENED.to_string()).unwrap().clone()
    }

    fn decided(state: ProposalState, reason: Option<&str>) -> ProposalChange<Live> {
        let by = ParticipantId::new("boss").unwrap();
        let ruling = Some(Arc::new(Ruling::restored(
            Some("{}".into()),
            None,
            RejectReason::Context,
        )));
        let fulfilment = Some("f1".into());
        ProposalChange::Decided {
            by,
            state,
            reason: reason.map(Arc::from),
            fulfilment,
            ruling,
        }
    }

    #[test]
    fn a_proposal_comes_back_as_it_was_written() {
        let answer = payload::read_answer(ANSWER.into());
        let done = ProposalChange::Ended {
            state: ProposalState::Completed,
            reason: None,
            answer,
        };
        let completed = end_of(&journaled(&[
            ProposalChange::Opened,
            decided(ProposalState::Running, None),
            done,
        ]))
        .unwrap();
        assert_eq!(completed.state, ProposalState::Completed);
        assert_eq!(completed.answer.unwrap().payload.bytes, ANSWER);
        let (by, ruling) = completed.decided.unwrap();
        assert_eq!(
            (by.as_str(), ruling.params.as_deref()),
            ("boss", Some("{}"))
        );
        assert_eq!(completed.fulfilment.as_deref(), Some("f1"));
    }

    #[test]
    fn a_decision_by_a_rule_comes_back_as_that() {
        let author = ParticipantId::new("boss").unwrap();
        let rule: RuleName = "r1.2".parse().unwrap();
        let ruling = Ruling::restored(None, Some(rule.clone()), RejectReason::Unsaid);
        let rejected = ProposalChange::Decided {
            by: author.clone(),
            state: ProposalState::Rejected,
            reason: Some("why".into()),
            fulfilment: None,
            ruling: Some(Arc::new(ruling)),
        };
        let kept = journaled(&[ProposalChange::Opened, rejected]);
        let written = kept.decided.as_ref().unwrap();
        assert_eq!(
            (written.by.as_str(), written.rule.as_ref()),
            (RULES, Some(&rule))
        );
        let (by, ruling) = end_of(&kept).unwrap().decided.unwrap();
        assert_eq!((by, &ruling.rule.as_ref().unwrap().name), (author, &rule));
    }

    #[tokio::test]
    async fn only_an_answer_that_is_an_error_is_a_failed_use() {
        let rule: RuleName = "r1.2".parse().unwrap();
        let approved = ProposalRecord::ProposalDecided(DecidedProposal {
            id: OPENED.to_string(),
            by: RULES.to_owned(),
            rule: Some(rule.clone()),
            author: Some("ann".into()),
            decision: DecisionRecord::Approved,
            reason: None,
            note: None,
            code: None,
            digest: None,
            params: None,
            envelope: None,
            at_ms: 2,
        });
        let charge = RuleCharge {
            rule: rule.clone(),
            operation: OPENED,
            at_ms: 2,
            is_use: true,
            amounts: Vec::new(),
            values: Vec::new(),
            keep_ms: 0,
        };
        let charged = RuleRecord::of_spent("main", SpentEvent::Charged(charge));
        // The gateway ended while it ran.
        let Stage { dispatch, .. } = &Stage::restarted(&[approved], &[charged]);
        let lost = dispatch.with(|topic| topic.proposal(OPENED)).unwrap();
        assert_eq!(lost.state, ProposalState::Failed);
        let failures = || dispatch.rules.lock().book.spent.failures(&rule);
        assert_eq!(failures(), 0);
        dispatch
            .rules
            .decide(&mut dispatch.rules.lock(), OPENED, &[]);
        let end = |state, answer: Option<&'static str>| {
            let ended = ProposalChange::Ended {
                state,
                reason: None,
                answer: answer.and_then(|answer| payload::read_answer(answer.into())),
            };
            of_rules(dispatch, OPENED, &ended).len()
        };
        // As it was cancelled, or its server is gone.
        assert_eq!((end(ProposalState::Failed, None), failures()), (0, 0));
        assert_eq!(
            (end(ProposalState::Failed, Some(ERROR)), failures()),
            (1, 1)
        );
    }

    #[test]
    fn a_decision_against_it_is_its_end() {
        for state in [ProposalState::Rejected, ProposalState::Withdrawn] {
            let journaled = journaled(&[ProposalChange::Opened, decided(state, Some("why"))]);
            assert!(journaled.has_ended());
            let end = end_of(&journaled).unwrap();
            assert_eq!((end.state, end.reason.as_deref()), (state, Some("why")));
            let (_, ruling) = end.decided.unwrap();
            assert_eq!(ruling.code, RejectReason::Context);
        }
        let expired = ProposalChange::Ended {
            state: ProposalState::Expired,
            reason: None,
            answer: None,
        };
        assert_eq!(
            end_of(&journaled(&[ProposalChange::Opened, expired]))
                .unwrap()
                .state,
            ProposalState::Expired
        );
        assert!(!journaled(&[ProposalChange::Opened]).has_ended());
        assert!(
            !journaled(&[
                ProposalChange::Opened,
                decided(ProposalState::Running, None)
            ])
            .has_ended()
        );
    }

    #[test]
    fn names_of_the_journal_are_read_or_the_proposal_is_left_out() {
        let restored = Opening::restored(&opened(), None, 9).unwrap();
        assert_eq!((restored.id, restored.terms.by.as_str()), (OPENED, "scout"));
        assert_eq!(
            (&*restored.terms.envelope, restored.terms.expires_ms),
            ("p1", 9)
        );
        assert!(
            Opening::restored(
                &OpenedProposal {
                    digest: "x".into(),
                    ..opened()
                },
                None,
                9
            )
            .is_none()
        );
    }
}
