//! Requests that rules count which reject or ask.

use model::{KindRef, OperationId, ParticipantId, ProposalState};
use rules::{CallRule, CallStage, RuleCharge, RuleDecision, RuleName, RuledCall, SpentEvent};
use topic::ProposalChange;

use crate::by_rule::desk::DeskState;
use crate::by_rule::facts::parts_of;
use crate::by_rule::judge;
use crate::by_rule::kept::RuleRecord;
use crate::by_rule::shadow::{self, WouldHave};
use crate::dispatch::Dispatch;
use crate::live::Live;
use crate::proposals::kept::OpenedProposal;

/// The counts of a request that its sender makes without an approval.
#[derive(Default)]
pub(super) struct CountedRequest {
    operations: Vec<OperationId>,
    records: Vec<RuleRecord>,
    rules: Vec<RuleName>,
    /// What rules in shadow would have taken of it, for the journal and in words.
    looks: Vec<RuleRecord>,
    words: Vec<String>,
}

impl CountedRequest {
    /// Adds the charges of the request for one more destination. Returns a rule that would count it
    /// twice: of the second it would not know the first, so people decide.
    pub(super) fn add<'s>(
        &mut self,
        dispatch: &Dispatch,
        charges: Vec<RuleCharge>,
        state: &'s DeskState,
    ) -> Option<&'s CallRule> {
        let twice = charges.iter().find(|one| self.rules.contains(&one.rule));
        if let Some(twice) = twice {
            let mut rules = state.set.rules().iter();
            return rules.find(|rule| rule.name == twice.rule);
        }
        for charge in charges {
            self.rules.push(charge.rule.clone());
            self.operations.push(charge.operation);
            self.records.extend(record_of(dispatch, charge));
        }
        None
    }

    /// Adds what rules in shadow would have taken of the request for one more destination, and what
    /// they count of it.
    pub(super) fn add_shadows(
        &mut self,
        dispatch: &Dispatch,
        mut looks: Vec<WouldHave>,
        call: &RuledCall<'_>,
        state: &DeskState,
    ) {
        for charge in state.set.shadow_charges(call, &state.book.spent) {
            let mut found = looks.iter().filter(|look| look.rule.name == charge.rule);
            match found.next().map(|look| look.decision) {
                Some(RuleDecision::Reject) => {}
                // Of the second it would not know the first, so that people would decide.
                None if self.rules.contains(&charge.rule) => {
                    let mut rules = state.set.rules().iter();
                    let twice = rules.find(|rule| rule.name == charge.rule);
                    looks.extend(twice.map(|rule| WouldHave {
                        rule: rule.clone(),
                        decision: RuleDecision::Ask,
                    }));
                }
                Some(_) | None => {
                    self.rules.push(charge.rule.clone());
                    self.operations.push(charge.operation);
                    self.records.extend(record_of(dispatch, charge));
                }
            }
        }
        let topic = dispatch.name().as_str();
        for look in looks {
            let decision = Some(look.decision);
            let event = shadow::looked(&look.rule, call, CallStage::Direct, decision);
            self.looks.push(RuleRecord::of_spent(topic, event));
            self.words.push(look.words_of_call());
        }
    }

    /// Counts it, before the topic admits it. The caller holds the topic's lock.
    pub(super) fn begin(&self, dispatch: &Dispatch) {
        if !self.records.is_empty() {
            dispatch.rules.count(&self.records);
        }
    }

    /// Writes the counts down, or takes them back if the topic has begun nothing of it. Returns what
    /// rules in shadow would have taken of one that has begun, in words.
    pub(super) fn end(mut self, dispatch: &Dispatch, is_begun: bool) -> Option<String> {
        if !is_begun {
            give_back(dispatch, self.operations);
            return None;
        }
        dispatch.rules.count(&self.looks);
        self.records.append(&mut self.looks);
        if !self.records.is_empty() {
            judge::write(dispatch, self.records);
        }
        (!self.words.is_empty()).then(|| self.words.join(", "))
    }
}

/// Takes back the counts of operations that have not begun and of which the journal has nothing.
pub(crate) fn give_back(dispatch: &Dispatch, operations: Vec<OperationId>) {
    for operation in operations {
        dispatch.rules.give_back(operation);
    }
}

/// The operations that these records count.
pub(crate) fn operations_of(records: &[RuleRecord]) -> Vec<OperationId> {
    let operations = records.iter().filter_map(|record| match record {
        RuleRecord::Charged(charged) => Some(charged.charge.operation),
        _ => None,
    });
    operations.collect()
}

/// The charges of a proposal that a person has approved, at the time of the approval in Unix
/// milliseconds. What a rule approves has its charges with the rule's own.
pub(crate) fn of_approval(
    dispatch: &Dispatch,
    proposal: OperationId,
    opened: &OpenedProposal,
    change: &ProposalChange<Live>,
    at_ms: u64,
) -> Vec<RuleRecord> {
    let ProposalChange::Decided {
        state: ProposalState::Running,
        ruling,
        ..
    } = change
    else {
        return Vec::new();
    };
    let is_by_rule = ruling.as_ref().is_some_and(|ruling| ruling.rule.is_some());
    if is_by_rule || !dispatch.rules.looks_at_direct() {
        return Vec::new();
    }
    let edited = ruling.as_ref().and_then(|ruling| ruling.params.as_deref());
    let params = edited.or(opened.params.as_deref());
    let records = approved(dispatch, proposal, opened, params, at_ms);
    dispatch.rules.count(&records);
    records
}

/// The charges of a proposal that runs with these params. One for several participants is a call at
/// each. They have operations of their own: under that of the proposal a rule that approved it with
/// other arguments, as one of several, may have counted those.
fn approved(
    dispatch: &Dispatch,
    proposal: OperationId,
    opened: &OpenedProposal,
    params: Option<&str>,
    at_ms: u64,
) -> Vec<RuleRecord> {
    let context = opened.context.as_deref();
    let (Ok(kind), Ok(proposer)) = (
        KindRef::request(&opened.method, context),
        ParticipantId::new(&opened.by),
    ) else {
        return Vec::new();
    };
    let (arguments, beside) = parts_of(&opened.method, params);
    let beside: Vec<&str> = beside.iter().map(String::as_str).collect();
    let to = opened.to.iter();
    let addressees = to.filter_map(|to| ParticipantId::new(to).ok());
    let state = dispatch.rules.lock();
    let spent = &state.book.spent;
    let mut records = Vec::new();
    for to in addressees {
        let call = RuledCall {
            operation: dispatch.context.operation(),
            proposer: &proposer,
            to: &to,
            kind,
            arguments: arguments.as_ref(),
            beside: &beside,
            definition: None,
            server: None,
            at_ms: spent.not_before(at_ms),
        };
        let charges = state.set.charges(&call, spent, None);
        let shadows = shadow::charges_of_run(&state.set, &call, spent, proposal);
        let of_one = charges.into_iter().chain(shadows);
        records.extend(of_one.filter_map(|charge| record_of(dispatch, charge)));
    }
    records
}

fn record_of(dispatch: &Dispatch, charge: RuleCharge) -> Option<RuleRecord> {
    let charged = SpentEvent::Charged(charge);
    Some(RuleRecord::of_spent(dispatch.name().as_str(), charged))
}
