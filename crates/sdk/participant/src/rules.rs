//! Rules on the arguments of calls, as the gateway reads them: parsing, deciding and explaining in a
//! program of one's own.
//!
//! ```no_run
//! # use portmoot_participant::{IncomingProposal, Participant};
//! # use portmoot_participant::rules::{CallStage, RuleSet, participant_digest};
//! # fn decide(rules: &mut RuleSet, proposal: &IncomingProposal, now_ms: u64) -> Option<()> {
//! let mut call = rules.call(proposal, now_ms)?;
//! call.server = Some(participant_digest(&call.to));
//! let answer = rules.decide(&call, CallStage::Proposed)?;
//! let (decision, name) = (answer.decision(), answer.name().clone());
//! rules.charge(&call, Some(&name)); // before the call runs
//! # Some(())
//! # }
//! ```

use std::collections::VecDeque;

use ::rules::{Arguments, RuleCharge, Spent, SpentEvent};
use json::canonical;
use model::{KindRef, OperationId, ParticipantId};
use sha2::{Digest as _, Sha256};
use wire::digest::CallParts;

use crate::event::IncomingProposal;

pub use ::rules::{
    CallRule, CallStage, ExplainedCheck, Fit, RuleAnswer, RuleDecision, RuleExplanation,
    RuleFileError, RuleName, RuleSetError,
};
pub use model::Digest;

/// The rules that an orchestrator decides by in one topic, and what they have counted there: a
/// program in two topics has two sets. Names of participants and servers, and all that is counted,
/// mean something in their topic alone.
///
/// What cannot be read in one way only is unclear, and no rule approves it. What rules have counted
/// is in memory alone; suspensions are the gateway's.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: ::rules::RuleSet,
    spent: Spent,
    /// Calls that rules in shadow would have rejected, the last ones.
    would_reject: VecDeque<(u128, RuleName)>,
    /// The number of proposals that it was asked about.
    asked: u128,
}

/// The most calls that a set remembers as those that rules in shadow would have rejected.
const WOULD_REJECT_KEPT: usize = 1_024;

/// A decision that a rule in shadow would have made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowDecision {
    /// The rule.
    pub rule: RuleName,
    /// The decision.
    pub decision: RuleDecision,
}

impl RuleSet {
    /// The set of these rules.
    ///
    /// # Errors
    /// They are too many, two have one id, or one is none that a file could hold.
    pub fn new(rules: impl IntoIterator<Item = CallRule>) -> Result<Self, RuleSetError> {
        ::rules::RuleSet::new(rules).map(Self::of)
    }

    /// Reads a file of rules.
    ///
    /// # Errors
    /// The first fault, with its place and what to write instead.
    pub fn parse(text: &str) -> Result<Self, RuleFileError> {
        ::rules::RuleSet::parse(text).map(Self::of)
    }

    fn of(rules: ::rules::RuleSet) -> Self {
        Self {
            rules,
            ..Self::default()
        }
    }

    /// All rules, in the order in which they decide.
    #[must_use]
    pub fn rules(&self) -> &[CallRule] {
        self.rules.rules()
    }

    /// The proposed call, which this set counts as one of its own; `None` if it names no addressee,
    /// or several, or is none that a kind can name: then people decide.
    ///
    /// Rules that approve ask for its `definition` and `server` too.
    pub fn call(&mut self, proposal: &IncomingProposal, at_ms: u64) -> Option<RuledCall> {
        let [to] = proposal.to()[..] else {
            return None;
        };
        let call = &proposal.call;
        let params = call.params().unwrap_or(b"{}");
        let parts = CallParts::of(call.method(), params).unwrap_or_else(|_| CallParts {
            // These cannot be judged, either.
            arguments: params.to_vec(),
            beside: Vec::new(),
        });
        let kind = proposal.request_kind().ok()?;
        self.asked += 1;
        Some(RuledCall {
            operation: self.asked,
            proposer: proposal.from().to_owned(),
            to: to.to_owned(),
            kind,
            at_ms,
            arguments: String::from_utf8_lossy(&parts.arguments).into_owned(),
            beside: parts.beside,
            definition: None,
            server: None,
        })
    }

    /// The rule that decides a call, if one does. [`RuleDecision::Ask`] means for a proposal that it
    /// stays with people.
    ///
    /// It counts nothing: [`Self::charge`] does, with the decision.
    #[must_use]
    pub fn decide(&self, call: &RuledCall, stage: CallStage) -> Option<RuleAnswer<'_>> {
        call.with(|call| self.rules.decide(call, &self.spent, stage))?
    }

    /// The decisions that rules in shadow would have made about a call, each as if it alone were in
    /// force beside the rules that are. They count it as if they had decided: ask once for each call,
    /// before [`Self::charge`].
    pub fn would_decide(&mut self, call: &RuledCall, stage: CallStage) -> Vec<ShadowDecision> {
        let looked = call.with(|call| {
            let looks = self.rules.shadows(call, &self.spent, stage);
            let deciding = looks.into_iter().filter(|look| look.decides);
            let noted = deciding.map(|look| {
                let would = ShadowDecision {
                    rule: look.rule.name.clone(),
                    decision: look.rule.decision,
                };
                (would, look.charge(call, &self.spent))
            });
            noted.collect::<Vec<(ShadowDecision, Option<RuleCharge>)>>()
        });
        let mut all = Vec::new();
        for (would, charge) in looked.into_iter().flatten() {
            if let Some(charge) = charge {
                self.spent.apply(SpentEvent::Charged(charge));
            }
            if would.decision == RuleDecision::Reject {
                self.would_reject
                    .push_back((call.operation, would.rule.clone()));
            }
            all.push(would);
        }
        let too_many = self.would_reject.len().saturating_sub(WOULD_REJECT_KEPT);
        self.would_reject.drain(..too_many);
        all
    }

    /// Why each rule of a call's kind decides it, or does not.
    #[must_use]
    pub fn explain(&self, call: &RuledCall) -> Vec<RuleExplanation<'_>> {
        call.with(|call| self.rules.explain(call, &self.spent))
            .unwrap_or_default()
    }

    /// Counts a call that will run: before it runs, with the rule that approved it if one did.
    pub fn charge(&mut self, call: &RuledCall, approved_by: Option<&RuleName>) {
        let charges = call.with(|call| {
            let mut charges = self.rules.charges(call, &self.spent, approved_by);
            // One in shadow counts nothing of a call that it would have rejected.
            let mut shadows = self.rules.shadow_charges(call, &self.spent);
            let operation = call.operation.0;
            shadows.retain(|charge| {
                let rejected = (operation, charge.rule.clone());
                !self.would_reject.contains(&rejected)
            });
            charges.append(&mut shadows);
            charges
        });
        for charge in charges.into_iter().flatten() {
            self.spent.apply(SpentEvent::Charged(charge));
        }
        self.spent.drop_old(call.at_ms);
    }

    /// A decision did not count, because the call was no longer pending: what it was charged is given
    /// back.
    pub fn returned(&mut self, call: &RuledCall) {
        let operation = OperationId(call.operation);
        self.spent.apply(SpentEvent::Returned(operation));
    }

    /// A call was answered without an error, at the time that it names: rules with `after` may ask for
    /// it.
    pub fn answered(&mut self, call: &RuledCall) {
        if let Some(answered) = call.with(|call| self.rules.remembers(call)).flatten() {
            self.spent.apply(SpentEvent::Answered(answered));
        }
    }
}

/// A call or proposal, with all that rules may ask about it. Its arguments must be those that run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuledCall {
    /// Its number. One that comes twice is counted once, so that it must be none that a proposer can
    /// choose.
    pub operation: u128,
    /// The participant that makes the call or proposes it.
    pub proposer: String,
    /// The participant that is to run it.
    pub to: String,
    /// The kind of its request, such as `mcp/request:tools/call:create_issue`.
    pub kind: String,
    /// The time, in milliseconds since 1970.
    pub at_ms: u64,
    /// The arguments as JSON, as they were written: a value that was read and written again may hide
    /// what readers read differently.
    pub arguments: String,
    /// Names of members that the params have beside target and arguments. An approving rule matches no
    /// call with such a member.
    pub beside: Vec<String>,
    /// Digest of the target's definition as its server lists it now: [`definition_digest`].
    pub definition: Option<Digest>,
    /// Digest of the server's configured command or URL; of a participant that serves by itself,
    /// [`participant_digest`].
    pub server: Option<Digest>,
}

impl RuledCall {
    /// Lends the call in the form of the rules; `None` if it has a name that no participant has, or
    /// no kind of a request: then no rule is about it.
    fn with<T>(&self, use_it: impl FnOnce(&::rules::RuledCall<'_>) -> T) -> Option<T> {
        let arguments = Arguments::read(self.arguments.as_bytes());
        let beside: Vec<&str> = self.beside.iter().map(String::as_str).collect();
        Some(use_it(&::rules::RuledCall {
            operation: OperationId(self.operation),
            proposer: &ParticipantId::new(&self.proposer).ok()?,
            to: &ParticipantId::new(&self.to).ok()?,
            kind: KindRef::parse(&self.kind).ok()?,
            arguments: arguments.as_ref(),
            beside: &beside,
            definition: self.definition,
            server: self.server,
            at_ms: self.at_ms,
        }))
    }
}

/// Whether a result is the one of the call itself and says of no error, as [`RuleSet::answered`] asks
/// for: not that a task has begun, or that the caller is asked something.
#[must_use]
pub fn succeeded(result: &str) -> bool {
    let frame = result.as_bytes();
    let Ok(members) = json::members(frame, json::Span::all(frame)) else {
        return false;
    };
    let is = |key: &str, expect: &[u8]| members.get(key).is_none_or(|member| member.raw == expect);
    is("isError", b"false") && is("resultType", b"\"complete\"") && members.get("task").is_none()
}

/// The digest of a tool's definition as its server lists it, as rules name it; `None` if the
/// definition cannot be read in one way only.
#[must_use]
pub fn definition_digest(definition: &str) -> Option<Digest> {
    let canonical = canonical(definition.as_bytes()).ok()?;
    Some(Digest(Sha256::digest(canonical).into()))
}

/// Stands in for the digest of a server's configuration, of a participant that serves by itself: it
/// has no command and no URL, and the gateway vouches for its name alone.
#[must_use]
pub fn participant_digest(name: &str) -> Digest {
    let mut digest = Sha256::new_with_prefix(b"portmoot/participant/1\0");
    digest.update(name.as_bytes());
    Digest(digest.finalize().into())
}
