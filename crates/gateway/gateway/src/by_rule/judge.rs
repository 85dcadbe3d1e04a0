//! Decisions by rules: on the authority of their authors, and judged by the topic as theirs.

use std::sync::Arc;

use model::{Capabilities, OperationId, ParticipantId};
use platform::unix_ms;
use rules::{CallRule, CallStage, RuleDecision, RuledCall, SpentEvent, Surrounding, suspends};
use store::not_written;
use topic::Decision;

use super::desk::DeskState;
use super::facts::CallFacts;
use super::kept::RuleRecord;
use crate::dispatch::{Dispatch, Refused};
use crate::live::{Event, Topic};
use crate::proposals::content::{DecidingRule, Proposed, Ruling};
use crate::proposals::{describe, open};

/// An author of rules, with what it may do if it is not in the topic.
struct RuleAuthor {
    id: ParticipantId,
    outside: Option<Arc<Capabilities>>,
}

/// The rule that decides a proposal.
struct Choice {
    rule: CallRule,
    charges: Vec<RuleRecord>,
}

impl Dispatch {
    /// Has the rules of before decide nothing more, until [`Self::put_rules_in_force`].
    pub fn pause_rules(&self) {
        self.rules.pause();
    }

    /// Puts the rules of the topic's file in force in place of those before, and has them judge what
    /// waits for a decision.
    pub fn put_rules_in_force(self: &Arc<Self>, rules: &[CallRule]) {
        let keeps = self.ledgers.is_some();
        let incarnations = self.context.sealer.incarnations();
        let records = self
            .rules
            .put_in_force(rules, keeps, incarnations, unix_ms());
        write(self, records);
        for (rule, _) in self.rules.lock().all() {
            if rule.decision.tightens() {
                tracing::warn!(
                    target: "portmoot::rules", topic = %self.name(), rule = %rule.name,
                    "looks at proposals alone: a call that its sender may make directly is not judged"
                );
            }
        }
        all(self);
    }
}

/// Writes records down for which nothing waits: those before them, that they follow from, are lost
/// with them.
pub(crate) fn write(dispatch: &Dispatch, records: Vec<RuleRecord>) {
    let Some(ledgers) = dispatch.ledgers.as_ref().filter(|_| !records.is_empty()) else {
        return;
    };
    ledgers.rules.submit(&records, |result| {
        if let Err(error) = result {
            tracing::error!(error = %not_written(&error), "the journal has no record of rules");
        }
    });
}

/// Has rules judge all proposals that wait for a decision.
pub(crate) fn all(dispatch: &Arc<Dispatch>) {
    judge(dispatch, |_| true);
}

/// Has rules judge the proposals for a server that has listed its tools.
pub(crate) fn of_server(dispatch: &Arc<Dispatch>, server: &ParticipantId) {
    judge(dispatch, |content| {
        content.opened.to.iter().any(|to| to == server.as_str())
    });
}

fn judge(dispatch: &Arc<Dispatch>, is_meant: impl Fn(&Proposed) -> bool) {
    if !dispatch.rules.has_rules() {
        return;
    }
    let mut waiting: Vec<OperationId> = dispatch.with(|topic| {
        let undecided = topic.undecided();
        let meant = undecided.filter(|(_, content)| is_meant(content));
        meant.map(|(id, _)| id).collect()
    });
    waiting.sort_unstable();
    for proposal in waiting {
        one(dispatch, proposal);
    }
}

/// Has rules judge one proposal. Without a rule that decides it, it stays with people.
pub(crate) fn one(dispatch: &Arc<Dispatch>, proposal: OperationId) {
    if !dispatch.rules.has_rules() {
        return;
    }
    let Some(content) =
        dispatch.with(|topic| topic.proposed(proposal).map(|(it, _)| Arc::clone(it)))
    else {
        return;
    };
    // As before the decision of a person.
    dispatch.refresh_proposer(&content.opened);
    let content = describe::one(dispatch, proposal, &content);
    let Some(facts) = CallFacts::of(dispatch, &content.opened) else {
        return;
    };
    let authors = authors_of(dispatch, &facts, proposal);
    let Ok(shown) = content.opened.digest.parse() else {
        return;
    };
    let current = open::current_digest(dispatch, &content.opened);
    let beside: Vec<&str> = facts.beside.iter().map(String::as_str).collect();
    // From here to the decision no other call comes between.
    let topic = dispatch.lock_for("Decide");
    if !topic.is_undecided(proposal, |now| Arc::ptr_eq(now, &content)) {
        return;
    }
    let mut state = dispatch.rules.lock();
    // Once more: they may be paused by now.
    if !dispatch.rules.has_rules() || state.has_decided(proposal) {
        return;
    }
    let at_ms = state.book.spent.not_before(unix_ms());
    let call = facts.call(proposal, &beside, at_ms);
    let is_known = |rule: &CallRule| authors.iter().any(|author| author.id == rule.author);
    if !facts.is_of_server_in(&topic) || !state.set.of_call(&call).all(is_known) {
        // Another configuration came between, and has all judged again when it is in force.
        return;
    }
    let suspended = suspend(dispatch, &mut state, &topic, &facts, &call, &authors);
    let chosen = choose(dispatch, &state, &topic, &call, &authors);
    let decided = chosen.and_then(|chosen| {
        let author = authors
            .iter()
            .find(|author| author.id == chosen.rule.author)?;
        // Before the decision: one that cannot be recorded does not count.
        let permit = dispatch.audit.reserve_of(&author.id).ok()?;
        Some((chosen, author, permit))
    });
    let Some((Choice { rule, charges }, author, permit)) = decided else {
        drop(state);
        drop(topic);
        return write(dispatch, suspended);
    };
    charges.iter().for_each(|charge| state.book.apply(charge));
    dispatch.rules.decide(&mut state, proposal);
    drop(state);
    let reason = format!("rule {}: {}", rule.name, rule.sentence());
    let fulfilment = dispatch.context.operation().to_string();
    let (decision, fulfilment) = match rule.decision {
        RuleDecision::Approve => (Decision::Approve { shown, current }, Some(&*fulfilment)),
        RuleDecision::Reject | RuleDecision::Ask => {
            let reason = Some(reason.as_str());
            (Decision::Reject { reason }, None)
        }
    };
    tracing::debug!(%proposal, rule = %rule.name, "decided by a rule");
    let ruling = Ruling::new(None, permit).by_rule(DecidingRule {
        name: rule.name,
        charges,
    });
    let event = Event::Decide {
        proposal,
        by: &author.id,
        outside: author.outside.as_ref(),
        narrowing: None,
        decision,
        fulfilment,
        ruling: Arc::new(ruling),
    };
    let step = dispatch.step_locked(topic, event, Refused::ByEffect);
    // Before what follows of the decision.
    write(dispatch, suspended);
    step.carry_out();
}

/// The authors of the rules of a call's kind, with what each may do at this moment.
fn authors_of(
    dispatch: &Arc<Dispatch>,
    facts: &CallFacts<'_>,
    proposal: OperationId,
) -> Vec<RuleAuthor> {
    let mut names: Vec<ParticipantId> = {
        let state = dispatch.rules.lock();
        let rules = state.set.of_call(&facts.call(proposal, &[], 0));
        rules.map(|rule| rule.author.clone()).collect()
    };
    names.sort_unstable();
    names.dedup();
    let author = |id: ParticipantId| {
        // One in the topic is judged by what the topic gives it.
        dispatch.refresh(&id);
        let outside = (dispatch.standing)(&id);
        RuleAuthor { id, outside }
    };
    names.into_iter().map(author).collect()
}

/// Suspends the approving rules about a call's kind and proposer that something keeps from deciding.
/// Returns what the journal must have of it. A rule that rejects or asks is never suspended: without
/// it, another one would approve what it is there to keep back.
fn suspend(
    dispatch: &Dispatch,
    state: &mut DeskState,
    topic: &Topic,
    facts: &CallFacts<'_>,
    call: &RuledCall<'_>,
    authors: &[RuleAuthor],
) -> Vec<RuleRecord> {
    let rules: Vec<CallRule> = state.set.of_call(call).cloned().collect();
    let mut records = Vec::new();
    for rule in rules {
        // What is said here of tool and author is said of this call alone, and a participant that
        // the rule is not about has no say in it.
        let is_other = rule.scope.to.as_ref().is_some_and(|to| *to != facts.to)
            || !rule.scope.has_proposer(&facts.proposer);
        if is_other || rule.decision.tightens() || rule.author == facts.proposer {
            continue;
        }
        let may = capabilities_of(topic, authors, &rule.author);
        let around = Surrounding {
            now_ms: call.at_ms,
            since_ms: state.since_ms(&rule),
            definition: facts.definition,
            server: facts.server,
            // By what the rule says, or under the public name. An author that is not known now may
            // be known again: its rule only does not decide.
            author_may: may.is_none_or(|may| {
                rule.is_within(may) || topic.could_decide(call.operation, &rule.author, may)
            }),
            is_quarantined: false,
            can_record: dispatch.ledgers.is_some(),
            traits: facts.traits,
        };
        let cause = replaced(dispatch, state, &rule)
            .or_else(|| Some(suspends(&rule, &state.book.spent, &around)?.words()));
        if let Some(cause) = cause {
            tracing::warn!(
                target: "portmoot::rules", topic = %dispatch.name(), rule = %rule.name, cause, "suspended"
            );
            let record = dispatch.rules.suspend(state, &rule.name, cause, call.at_ms);
            records.push(record);
        }
    }
    records
}

/// The capabilities of an author of rules at this moment, if it is known.
fn capabilities_of<'a>(
    topic: &'a Topic,
    authors: &'a [RuleAuthor],
    author: &ParticipantId,
) -> Option<&'a Arc<Capabilities>> {
    let outside = || {
        authors
            .iter()
            .find(|one| one.id == *author)?
            .outside
            .as_ref()
    };
    topic.capabilities(author).or_else(outside)
}

/// What is said of a rule whose author or proposer has another bearer of its name than when the rule
/// came into force.
fn replaced(dispatch: &Dispatch, state: &DeskState, rule: &CallRule) -> Option<String> {
    let name = state.replaced(rule, dispatch.context.sealer.incarnations())?;
    Some(format!(
        "`{name}` is not the name of the same participant any more"
    ))
}

/// The rule that approves or rejects a call, with what it counts of it. The first one that matches
/// is the only one that may: where it cannot decide, people do, and no rule behind it.
fn choose(
    dispatch: &Dispatch,
    state: &DeskState,
    topic: &Topic,
    call: &RuledCall<'_>,
    authors: &[RuleAuthor],
) -> Option<Choice> {
    let spent = &state.book.spent;
    let answer = state.set.decide(call, spent, CallStage::Proposed)?;
    let rule = answer.rule;
    let may = capabilities_of(topic, authors, &rule.author)?;
    if !state.is_in_force(rule)
        || !topic.could_decide(call.operation, &rule.author, may)
        || replaced(dispatch, state, rule).is_some()
    {
        return None;
    }
    let charges = match answer.decision() {
        RuleDecision::Ask => return None,
        RuleDecision::Reject => Vec::new(),
        RuleDecision::Approve => state.set.charges(call, spent, Some(answer.name())),
    };
    let topic = dispatch.name().as_str();
    let charged = charges.into_iter().map(SpentEvent::Charged);
    Some(Choice {
        rule: rule.clone(),
        charges: charged
            .filter_map(|charge| RuleRecord::of_spent(topic, charge))
            .collect(),
    })
}
