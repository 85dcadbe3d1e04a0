//! Rules in force: which of them decides a call, what they count of it, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use model::{KindRef, ParticipantId, REQUEST};

use crate::call::{CallStage, RuledCall};
use crate::charge::RuleCharge;
use crate::judge::{ExplainedCheck, Judge, kept_value};
use crate::name::RuleName;
use crate::parse::{RULES_MAX, RuleFileError, TOOL_RULES_MAX, parse_rules, reads_back};
use crate::rule::{CallRule, RuleDecision};
use crate::shadow::ShadowLook;
use crate::spent::{AnsweredCall, Spent};

/// The rule that decides a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleAnswer<'a> {
    /// The rule. Its decision is the answer.
    pub rule: &'a CallRule,
}

impl RuleAnswer<'_> {
    /// The decision.
    #[must_use]
    pub fn decision(&self) -> RuleDecision {
        self.rule.decision
    }

    /// The rule and its version, for records.
    #[must_use]
    pub fn name(&self) -> &RuleName {
        &self.rule.name
    }
}

/// Why a rule decides a call, or does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleExplanation<'a> {
    /// The rule.
    pub rule: &'a CallRule,
    /// Whether it decides the call, were it the only one.
    pub acts: bool,
    /// Every check with its result.
    pub checks: Vec<ExplainedCheck>,
}

impl fmt::Display for RuleExplanation<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallRule { name, decision, .. } = self.rule;
        if self.acts && self.rule.shadow {
            let decision = decision.as_str();
            write!(
                out,
                "{name} in shadow decides nothing (it would {decision})"
            )?;
        } else if self.acts {
            write!(out, "{name} decides it")?;
        } else {
            let decision = decision.as_str();
            write!(out, "{name} does not decide it (it would {decision})")?;
        }
        let mut checks = self.checks.iter();
        checks.try_for_each(|check| write!(out, "\n  {check}"))
    }
}

/// Why rules make no [`RuleSet`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleSetError {
    /// More than [`RULES_MAX`].
    #[error("a topic has at most {RULES_MAX} rules: end some that are not used")]
    TooMany,
    /// More than [`TOOL_RULES_MAX`] of one tool.
    #[error("a tool has at most {TOOL_RULES_MAX} rules: merge or end some of {0}")]
    TooManyOfTool(String),
    /// Two rules have one id.
    #[error("two rules have the id {0}")]
    Duplicate(String),
    /// A rule that no file of rules could hold.
    #[error("{0} is no rule: {1}")]
    NoRule(RuleName, String),
}

/// The rules in force in a topic.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    /// In the order in which they decide: reject, ask, then approve, of which the one goes first
    /// that ends first. Those in shadow come last, in that order.
    rules: Vec<CallRule>,
    /// Places of the rules that may be about a target: those that name it, and those of a whole method.
    by_target: BTreeMap<Box<str>, Vec<usize>>,
    /// Places of the rules of a whole method: all that may be about a target that no rule names.
    of_methods: Vec<usize>,
    /// Number of the rules that reject or ask, and are not in shadow.
    tightening: usize,
    /// Number of the rules in shadow that would reject or ask.
    shadow_tightening: usize,
    /// Calls that guards ask for, as method, target and server.
    awaited: BTreeSet<(Box<str>, Box<str>, String)>,
}

impl RuleSet {
    /// The set of these rules.
    ///
    /// # Errors
    /// They are too many, two have one id, or one is none that a file could hold.
    pub fn new(rules: impl IntoIterator<Item = CallRule>) -> Result<Self, RuleSetError> {
        let mut rules: Vec<CallRule> = rules.into_iter().collect();
        if rules.len() > RULES_MAX {
            return Err(RuleSetError::TooMany);
        }
        rules.sort_by(|one, other| order(one).cmp(&order(other)));
        let mut ids = BTreeSet::new();
        let mut tools: BTreeMap<(String, Option<&str>), usize> = BTreeMap::new();
        for rule in &rules {
            reads_back(rule).map_err(|why| RuleSetError::NoRule(rule.name.clone(), why))?;
            if !ids.insert(&rule.name.id) {
                return Err(RuleSetError::Duplicate(rule.name.id.to_string()));
            }
            let to = rule.scope.to.as_ref().map(|to| to.as_str());
            let count = tools.entry((rule.scope.kind(), to)).or_default();
            *count += 1;
            if *count > TOOL_RULES_MAX {
                return Err(RuleSetError::TooManyOfTool(json::visible::line(
                    &rule.scope.kind(),
                )));
            }
        }
        Ok(Self::indexed(rules))
    }

    fn indexed(rules: Vec<CallRule>) -> Self {
        let tightening = |shadow: bool| {
            let is_one = |rule: &&CallRule| rule.decision.tightens() && rule.shadow == shadow;
            rules.iter().filter(is_one).count()
        };
        let mut set = Self {
            tightening: tightening(false),
            shadow_tightening: tightening(true),
            ..Self::default()
        };
        let targets = rules.iter().filter_map(|rule| rule.scope.target.clone());
        set.by_target = targets.map(|target| (target, Vec::new())).collect();
        for (at, rule) in rules.iter().enumerate() {
            match &rule.scope.target {
                Some(target) => set.by_target.entry(target.clone()).or_default().push(at),
                None => {
                    set.of_methods.push(at);
                    set.by_target
                        .values_mut()
                        .for_each(|places| places.push(at));
                }
            }
            for after in &rule.guards.after {
                let to = after.to.as_str().to_owned();
                set.awaited
                    .insert((after.method.clone(), after.target.clone(), to));
            }
        }
        set.rules = rules;
        set
    }

    /// Reads a file of rules.
    ///
    /// # Errors
    /// The first fault, with its place and what to write instead.
    pub fn parse(text: &str) -> Result<Self, RuleFileError> {
        parse_rules(text).map(Self::of_checked)
    }

    /// The set of rules whose number, ids and texts were checked.
    fn of_checked(mut rules: Vec<CallRule>) -> Self {
        rules.sort_by(|one, other| order(one).cmp(&order(other)));
        Self::indexed(rules)
    }

    /// All rules, in the order in which they decide.
    #[must_use]
    pub fn rules(&self) -> &[CallRule] {
        &self.rules
    }

    /// The rules as a file, which reads as the same set.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<String> = self.rules.iter().map(CallRule::text).collect();
        texts.join("\n")
    }

    /// The set with one more rule.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with(&self, rule: CallRule) -> Result<Self, RuleSetError> {
        if self.rules.len() >= RULES_MAX {
            return Err(RuleSetError::TooMany);
        }
        reads_back(&rule).map_err(|why| RuleSetError::NoRule(rule.name.clone(), why))?;
        let mut others = self.rules.iter();
        if others.any(|one| one.name.id == rule.name.id) {
            return Err(RuleSetError::Duplicate(rule.name.id.to_string()));
        }
        let scope = &rule.scope;
        let is_of_tool = |one: &&CallRule| {
            let of = &one.scope;
            (&of.method, &of.target, &of.to) == (&scope.method, &scope.target, &scope.to)
        };
        if self.rules.iter().filter(is_of_tool).count() >= TOOL_RULES_MAX {
            let kind = json::visible::line(&scope.kind());
            return Err(RuleSetError::TooManyOfTool(kind));
        }
        let mut rules = self.rules.clone();
        rules.push(rule);
        Ok(Self::of_checked(rules))
    }

    /// The set without some rules, such as those that are suspended.
    #[must_use]
    pub fn without(&self, gone: &[RuleName]) -> Self {
        let others = self.rules.iter().filter(|one| !gone.contains(&one.name));
        Self::indexed(others.cloned().collect())
    }

    /// Whether some rule rejects or asks: without one, nothing is taken of a call that needs no
    /// approval.
    #[must_use]
    pub fn tightens(&self) -> bool {
        self.tightening > 0
    }

    /// Whether some rule rejects or asks, in shadow or not: without one, a call that needs no approval
    /// need not be judged.
    #[must_use]
    pub fn looks_at_direct(&self) -> bool {
        self.tightens() || self.shadow_tightening > 0
    }

    /// Whether some rule is in shadow.
    #[must_use]
    pub fn has_shadows(&self) -> bool {
        self.rules.last().is_some_and(|rule| rule.shadow)
    }

    /// Whether some rule asks for an earlier call.
    #[must_use]
    pub fn awaits_answers(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Whether some rule asks for earlier calls of this kind that this participant answered.
    #[must_use]
    pub fn awaits(&self, kind: KindRef<'_>, to: &ParticipantId) -> bool {
        let (REQUEST, Some(method), Some(target)) = (kind.head(), kind.method(), kind.context())
        else {
            return false;
        };
        let key = (Box::from(method), Box::from(target), to.as_str().to_owned());
        self.awaited.contains(&key)
    }

    /// Whether some rule that rejects or asks may be about calls of a kind, whatever their arguments.
    /// A kind that names no target may be of any.
    #[must_use]
    pub fn tightens_kind(&self, kind: KindRef<'_>) -> bool {
        if !self.tightens() {
            return false;
        }
        if kind.context().is_some() {
            return self.tightening_of_kind(kind).next().is_some();
        }
        let mut tightening = self.rules.iter().take(self.tightening);
        tightening.any(|rule| kind.method() == Some(&rule.scope.method))
    }

    /// Whether some rule in shadow that would reject or ask may be about calls of a kind, whatever
    /// their arguments.
    #[must_use]
    pub fn shadows_direct(&self, kind: KindRef<'_>) -> bool {
        let is_one = |rule: &CallRule| rule.shadow && rule.decision.tightens();
        self.shadow_tightening > 0 && self.of_kind(kind).any(is_one)
    }

    /// The rules in shadow that are about a call, and whether each would decide it: as if it alone
    /// were in force beside the rules that are.
    #[must_use]
    pub fn shadows(
        &self,
        call: &RuledCall<'_>,
        spent: &Spent,
        stage: CallStage,
    ) -> Vec<ShadowLook<'_>> {
        let is_meant = |rule: &&CallRule| {
            let is_asked = stage == CallStage::Proposed || rule.decision.tightens();
            rule.shadow && is_asked && rule.is_between(call.proposer, call.to)
        };
        let mut meant = self.of_kind(call.kind).filter(is_meant).peekable();
        if meant.peek().is_none() {
            return Vec::new();
        }
        let first = self.decide(call, spent, stage).map(|answer| answer.rule);
        let look = |rule: &CallRule| {
            let acts = Judge { rule, call, spent }.acts();
            acts && first.is_none_or(|first| precedence(rule) < precedence(first))
        };
        let looks = meant.map(|rule| ShadowLook {
            rule,
            decides: look(rule),
        });
        looks.collect()
    }

    /// The rule that decides a call, if one does. A rule that rejects goes before one that asks,
    /// and that before one that approves; of several that approve, the one that ends first.
    ///
    /// [`RuleDecision::Ask`] means for a proposal that it stays with people. A rule in shadow decides
    /// nothing.
    #[must_use]
    pub fn decide(
        &self,
        call: &RuledCall<'_>,
        spent: &Spent,
        stage: CallStage,
    ) -> Option<RuleAnswer<'_>> {
        let acts = |rule: &&CallRule| Judge { rule, call, spent }.acts();
        let rule = match stage {
            CallStage::Direct => self.tightening_of_kind(call.kind).find(acts),
            CallStage::Proposed => self.deciding_of_kind(call.kind).find(acts),
        };
        rule.map(|rule| RuleAnswer { rule })
    }

    /// The rules of a kind that are not in shadow. In the order of decisions they are the first ones.
    fn deciding_of_kind<'s, 'k>(
        &'s self,
        kind: KindRef<'k>,
    ) -> impl Iterator<Item = &'s CallRule> + use<'s, 'k> {
        self.of_kind(kind).take_while(|rule| !rule.shadow)
    }

    /// The rules of a kind that reject or ask. In the order of decisions they are the first ones.
    fn tightening_of_kind<'s, 'k>(
        &'s self,
        kind: KindRef<'k>,
    ) -> impl Iterator<Item = &'s CallRule> + use<'s, 'k> {
        self.deciding_of_kind(kind)
            .take_while(|rule| rule.decision.tightens())
    }

    /// Charges of a call that will run: of the rule that approved it, if one did, and of those that
    /// reject or ask with guards. To be recorded with the decision.
    #[must_use]
    pub fn charges(
        &self,
        call: &RuledCall<'_>,
        spent: &Spent,
        approved_by: Option<&RuleName>,
    ) -> Vec<RuleCharge> {
        let mut charges = Vec::new();
        for rule in self.deciding_of_kind(call.kind) {
            let judge = Judge { rule, call, spent };
            let is_use = approved_by == Some(&rule.name);
            let is_counted = rule.decision.tightens() && !rule.guards.is_empty() && judge.watches();
            if is_use || is_counted {
                charges.push(judge.charge(is_use));
            }
        }
        charges
    }

    /// Charges of a call that will run, of the rules in shadow that would reject or ask with guards.
    /// One that would have rejected it counts nothing of it: its owner leaves that out.
    #[must_use]
    pub fn shadow_charges(&self, call: &RuledCall<'_>, spent: &Spent) -> Vec<RuleCharge> {
        let is_one = |rule: &&CallRule| rule.shadow && rule.decision.tightens();
        let shadows = self.of_kind(call.kind).filter(is_one);
        let judges = shadows.map(|rule| Judge { rule, call, spent });
        let counting = judges.filter(|judge| !judge.rule.guards.is_empty() && judge.watches());
        counting.map(|judge| judge.charge(false)).collect()
    }

    /// The part of a call that guards of rules keep, once it was answered without an error; `None` if
    /// none asks for it. Its time is that of the answer.
    #[must_use]
    pub fn remembers(&self, call: &RuledCall<'_>) -> Option<AnsweredCall> {
        if !self.awaits(call.kind, call.to) {
            return None;
        }
        let (method, target) = (call.kind.method()?, call.kind.context()?);
        let arguments = call.arguments.ok()?;
        let guards = self.rules.iter().flat_map(|rule| &rule.guards.after);
        let asking = guards.filter(|guard| {
            &*guard.method == method && &*guard.target == target && guard.to == *call.to
        });
        let members: BTreeSet<_> = asking
            .flat_map(|guard| guard.same.iter().map(|(_, there)| there))
            .collect();
        let values = members
            .into_iter()
            .filter(|member| !arguments.has_another_like(member))
            .filter_map(|member| Some((member.clone(), kept_value(arguments, member)?)));
        Some(AnsweredCall {
            operation: call.operation,
            proposer: call.proposer.clone(),
            to: call.to.clone(),
            method: method.into(),
            target: target.into(),
            values: values.collect(),
            at_ms: call.at_ms,
        })
    }

    /// Why each rule of a call's kind decides it, or does not.
    #[must_use]
    pub fn explain<'a>(&'a self, call: &RuledCall<'_>, spent: &Spent) -> Vec<RuleExplanation<'a>> {
        self.of_kind(call.kind)
            .map(|rule| {
                let judge = Judge { rule, call, spent };
                RuleExplanation {
                    rule,
                    acts: judge.acts(),
                    checks: judge.explained(),
                }
            })
            .collect()
    }

    /// The rules of a kind of call, in the order in which they decide: those of which the owner of the
    /// set asks [`suspends`](crate::suspends) before it asks [`Self::decide`].
    pub fn of_kind<'s, 'k>(
        &'s self,
        kind: KindRef<'k>,
    ) -> impl Iterator<Item = &'s CallRule> + use<'s, 'k> {
        let named = kind.context().and_then(|target| self.by_target.get(target));
        let places = named.unwrap_or(&self.of_methods);
        let rules = places.iter().filter_map(|at| self.rules.get(*at));
        rules.filter(move |rule| rule.is_of_kind(kind))
    }
}

impl ShadowLook<'_> {
    /// The use that the rule spends of its budget, if it would approve the call: as if it did.
    #[must_use]
    pub fn charge(&self, call: &RuledCall<'_>, spent: &Spent) -> Option<RuleCharge> {
        let rule = self.rule;
        let approves = self.decides && rule.decision == RuleDecision::Approve;
        approves.then(|| Judge { rule, call, spent }.charge(true))
    }
}

/// The order in which rules stand in a set: those in shadow last.
fn order(rule: &CallRule) -> (bool, (RuleDecision, u64, &RuleName)) {
    (rule.shadow, precedence(rule))
}

/// The order in which rules decide.
fn precedence(rule: &CallRule) -> (RuleDecision, u64, &RuleName) {
    (
        rule.decision,
        rule.expires_ms.unwrap_or(u64::MAX),
        &rule.name,
    )
}

#[cfg(test)]
mod tests;
