//! Rules that a participant adds by hand while the gateway runs: its own text, or one that the gateway
//! makes of a call that waits ("approve the like for an hour").

use std::sync::Arc;

use model::{OperationId, ParticipantId, Refusal, RefusalCode};
use platform::unix_ms;
use rules::{
    CallRule, Conditions, Fit, LIKE_MS_MAX, LIKE_USES_MAX, LikeCall, LikeTerms, RuleId, RuleName,
    RuleSet, RuledTool, Spent, TERM_MS_MIN, ToolRules, like,
};

use super::desk::learned::AcceptedOffer;
use super::facts::CallFacts;
use super::offers::{LEAKS, tool_of};
use super::recorded::RuleAct;
use super::tried::PastReader;
use crate::dispatch::Dispatch;
use crate::judges;
use crate::proposals::{decide::unknown_proposal, plans};
use crate::record::Record;

/// The beginning of the ids of rules that are made of a call.
const LIKE_ID_PREFIX: &str = "like-";
/// Hexadecimal digits of such an id.
const ID_DIGITS: usize = 8;

/// The like of a proposed call, as a participant asks for its approval.
#[derive(Debug, Clone)]
pub struct AskedLike {
    /// For how long, in milliseconds.
    pub for_ms: u64,
    /// The number of calls.
    pub uses: u32,
    /// Tests in place of the values that the call has.
    pub tests: Conditions,
    /// The tool's own name, if the participant has typed it: a tool that may destroy something needs
    /// it.
    pub typed: Option<String>,
}

impl Dispatch {
    /// The rule that would approve the like of a proposed call. Nothing is in force by it.
    ///
    /// # Errors
    /// The participant may not see the proposal; no rule covers such a call; the time or the budget is
    /// out of bounds.
    pub fn like_of(
        self: &Arc<Self>,
        reader: PastReader<'_>,
        proposal: OperationId,
        asked: AskedLike,
    ) -> Result<CallRule, Refusal> {
        check_terms(&asked)?;
        let content = self.with(|topic| {
            let is_visible = topic.may_see_proposal(proposal, reader.id, reader.capabilities);
            let found = topic.proposed(proposal).filter(|_| is_visible);
            found.map(|(content, _)| Arc::clone(content))
        });
        let content = content.ok_or_else(unknown_proposal)?;
        plans::check_single(
            &content.opened,
            "is decided once, and no rule approves its like",
        )?;
        let facts = CallFacts::of(self, &content.opened).ok_or_else(|| {
            malformed("it is for several participants, or for none in particular: people decide it")
        })?;
        let now_ms = self.rules.not_before(unix_ms());
        let terms = LikeTerms {
            name: RuleName {
                id: like_id(proposal)?,
                version: 1,
            },
            author: reader.id.clone(),
            expires_ms: now_ms.saturating_add(asked.for_ms),
            uses: asked.uses,
            destructive: facts.traits.is_destructive(),
            tests: asked.tests,
        };
        let rule = like(&like_call(&facts)?, &terms).map_err(|why| malformed(why.to_string()))?;
        self.refuse_unfit(&rule, asked.typed.as_deref(), reader)?;
        covers_itself(&rule, &facts, proposal, now_ms)?;
        Ok(rule)
    }

    /// Puts a rule in force that its author has written, and has it judge what waits. Blocks until
    /// that is on disk. `typed` is the tool's own name, which a rule for a tool that may destroy
    /// something needs. Returns the rule's name.
    ///
    /// # Errors
    /// The participant is paused, is not the author, or may not decide what the rule does; the tool is
    /// another one now, or no rule may approve it; the rule has no place, or cannot be written down.
    pub fn add_rule(
        self: &Arc<Self>,
        reader: PastReader<'_>,
        rule: CallRule,
        typed: Option<&str>,
    ) -> Result<RuleName, Refusal> {
        let name = rule.name.clone();
        let act = RuleAct::adds(&name);
        let permit = self
            .audit
            .reserve_of(reader.id)?
            .from_address(reader.address);
        let added = self.added(reader, rule, typed);
        Record(self).rule_act(permit, reader.id, &act, added.as_ref());
        added?;
        tracing::info!(target: "portmoot::rules", topic = %self.name(), rule = %name, "added");
        judges::all(self);
        Ok(name)
    }

    fn added(
        &self,
        reader: PastReader<'_>,
        rule: CallRule,
        typed: Option<&str>,
    ) -> Result<CallRule, Refusal> {
        self.refuse_paused(reader.id)?;
        if rule.author != *reader.id {
            let why = format!(
                "its author is {}: a rule is added by its author",
                rule.author
            );
            return Err(Refusal::new(RefusalCode::Forbidden, why));
        }
        if rule.decision.tightens() {
            let refusal = malformed("a rule that rejects or asks is not added here");
            return Err(refusal.hint("the operator writes it into the topic's file"));
        }
        let seen = self.seen_rejections()?;
        self.refuse_unfit(&rule, typed, reader)?;
        let added = AcceptedOffer {
            renews: self.rules.version_before(&rule),
            rule: rule.clone(),
            seen,
            by_hand: true,
            incarnations: self.context.sealer.incarnations(),
            at_ms: self.rules.not_before(unix_ms()),
        };
        self.rules.accept(self.kept()?, added)?;
        Ok(rule)
    }

    /// Refuses a rule that may not come into force for its tool as that is now.
    fn refuse_unfit(
        &self,
        rule: &CallRule,
        typed: Option<&str>,
        reader: PastReader<'_>,
    ) -> Result<(), Refusal> {
        if reader.id.is_guest() {
            let why = "a guest's name stands for many: its rules would be those of all";
            return Err(Refusal::new(RefusalCode::Forbidden, why));
        }
        let scope = &rule.scope;
        let Some(tool) = tool_of(rule) else {
            return Err(malformed("an approving rule names one tool of one server"));
        };
        for proposer in &scope.proposers {
            let proposer = ParticipantId::new(proposer.as_str())
                .map_err(|error| malformed(error.to_string()))?;
            let listed = self.listed(reader, &tool, &proposer);
            if proposer.is_guest() {
                return Err(malformed("a guest's name stands for many proposers"));
            }
            if !listed.is_covered {
                let why = "you may not decide what the rule would decide";
                return Err(Refusal::new(RefusalCode::Forbidden, why));
            }
            if listed.definition != scope.definition || listed.server != scope.server {
                let why =
                    "its tool has another definition now, or its server another configuration";
                return Err(Refusal::new(RefusalCode::Conflict, why).hint(
                    "`portmoot rules explain ID` shows both digests for a proposal that waits",
                ));
            }
            if listed.traits.rules == ToolRules::Never {
                let why = "the operator wants a person for each call of this tool";
                return Err(Refusal::new(RefusalCode::Forbidden, why));
            }
            if listed.traits.is_destructive() {
                refuse_harm(rule, &tool.target, typed, self.rules.not_before(unix_ms()))?;
            }
        }
        if !rule.shadow && self.leaks(reader, rule) {
            let refusal = Refusal::new(RefusalCode::Forbidden, LEAKS);
            return Err(refusal.hint("the operator may write both into the topic's file"));
        }
        Ok(())
    }
}

/// Refuses a rule for a tool that may destroy something, unless its author has typed the tool's name,
/// and it is as short as one that is made of a call.
fn refuse_harm(
    rule: &CallRule,
    target: &str,
    typed: Option<&str>,
    now_ms: u64,
) -> Result<(), Refusal> {
    if typed != Some(target) {
        let why = "the tool may destroy something, as far as its server says";
        let hint = format!("type the tool's own name to say that you mean it: `{target}`");
        return Err(Refusal::new(RefusalCode::Forbidden, why).hint(hint));
    }
    let is_long = rule
        .expires_ms
        // Its end is a whole second.
        .is_none_or(|end| end > now_ms.saturating_add(LIKE_MS_MAX + 1_000));
    let is_large = rule.uses.is_none_or(|uses| uses > LIKE_USES_MAX);
    if !rule.destructive || is_long || is_large {
        let why = "for a tool that may destroy something a rule says `destructive = true`, ends within 8 hours and has 20 uses at most";
        return Err(
            malformed(why).hint("the operator may write a longer one into the topic's file")
        );
    }
    Ok(())
}

fn check_terms(asked: &AskedLike) -> Result<(), Refusal> {
    if !(TERM_MS_MIN..=LIKE_MS_MAX).contains(&asked.for_ms) {
        return Err(malformed(
            "it is for 10 minutes at least and 8 hours at most",
        ));
    }
    if !(1..=LIKE_USES_MAX).contains(&asked.uses) {
        return Err(malformed(format!(
            "it is for 1 call at least and {LIKE_USES_MAX} at most"
        )));
    }
    Ok(())
}

/// The id of a rule that is made of a proposal.
fn like_id(proposal: OperationId) -> Result<RuleId, Refusal> {
    let mut digits = proposal.to_string();
    digits.truncate(ID_DIGITS);
    RuleId::new(&format!("{LIKE_ID_PREFIX}{digits}")).map_err(|why| malformed(why.to_string()))
}

fn like_call<'f>(facts: &'f CallFacts<'_>) -> Result<LikeCall<'f>, Refusal> {
    let arguments = facts.arguments.as_ref();
    let arguments = arguments.map_err(|why| malformed(why.to_string()))?;
    let unknown = || malformed("the definition of its tool, or its server, is not known now");
    let target = facts.kind.context().ok_or_else(unknown)?;
    Ok(LikeCall {
        tool: RuledTool {
            to: facts.to.clone(),
            method: facts.kind.method().unwrap_or_default().into(),
            target: target.into(),
        },
        definition: facts.definition.ok_or_else(unknown)?,
        server: facts.server.ok_or_else(unknown)?,
        proposer: &facts.proposer,
        arguments,
    })
}

/// Refuses a rule that would not approve the call that it was made of.
fn covers_itself(
    rule: &CallRule,
    facts: &CallFacts<'_>,
    proposal: OperationId,
    now_ms: u64,
) -> Result<(), Refusal> {
    let rules = RuleSet::new([rule.clone()]).map_err(|why| malformed(why.to_string()))?;
    let beside = facts.beside_names();
    let explained = rules.explain(&facts.call(proposal, &beside, now_ms), &Spent::default());
    let mut checks = explained.iter().flat_map(|one| &one.checks);
    match checks.find(|check| check.fit != Fit::Held) {
        None => Ok(()),
        Some(check) => Err(malformed(format!(
            "no rule approves such a call: {}: {}",
            check.asked, check.found
        ))),
    }
}

fn malformed(why: impl Into<String>) -> Refusal {
    Refusal::new(RefusalCode::Malformed, why.into())
}
