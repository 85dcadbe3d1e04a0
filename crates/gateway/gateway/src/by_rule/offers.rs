//! Offers: rules that are learned from what a participant has approved by hand, for it to accept.
//!
//! Nothing of them is kept: they are made of the kept decisions when the participant asks. Only its
//! own approvals make them, and rejections by anybody keep them narrow. Those that renew a rule go
//! first.

mod renewals;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Digest, OperationId, ParticipantId, Refusal, RefusalCode};
use platform::unix_ms;
use rules::{
    Acceptance, CallRule, EVIDENCE_MS, EvidenceWeight, GroupKey, LEARNED_ID_PREFIX, Learner,
    LearnerNews, OPEN_OFFERS_MAX, QuarantineCause, RenewalChanges, RuleCandidate, RuleEvidence,
    RuleId, RuleName, RuleOffer, RuleSet, RuledTool, SpotTally, TERM_DAYS, ToolRules, ToolTraits,
    is_hurried, leaks_with, offer,
};
use sha2::{Digest as _, Sha256};

use super::desk::learned::{AcceptedOffer, SeenRejections};
use super::kept::UsedUp;
use super::recorded::RuleAct;
use super::tool_facts::{
    definition_digest, is_harmless_tool, is_open_world_tool, reads_private, rules_of,
    server_digest, upstream_of,
};
use super::tried::{PastReader, TriedRule, tallied};
use crate::dispatch::Dispatch;
use crate::judges;
use crate::ledgers::TopicLedgers;
use crate::proposals::open::definition;
use crate::record::Record;

/// The longest time in which offers are made.
pub const OFFERS_TIME_MAX: Duration = Duration::from_secs(10);

const DAY_MS: u64 = 24 * 3_600_000;
/// Hexadecimal digits of the ids of learned rules.
const ID_DIGITS: usize = 8;
/// Why no rule is offered for a tool that may do harm.
const DESTRUCTIVE: &str =
    "it may destroy data, as far as its server says: rules for it are written by hand";
/// Why no rule is offered for a tool of which the operator says so.
const FORBIDDEN: &str = "the operator wants a person for each call";
/// Why no rule is accepted that leaks together with another one, which its author may not see.
pub(super) const LEAKS: &str = "together with another rule in force it would let its proposer read private data and send it elsewhere";
/// The name of a rule while its offer is made: its own is made of what the offer rests on.
const DRAFT: &str = "draft";

/// The offers of a participant now.
#[derive(Debug, Default)]
pub struct RuleOffers {
    /// The rules that it may accept, those that rest on most approvals first; at most
    /// [`OPEN_OFFERS_MAX`].
    pub offers: Vec<OfferedRule>,
    /// Tools about which it decides and for which there is no offer, with the reasons.
    pub withheld: Vec<WithheldOffer>,
}

/// A rule that is offered, and what it would have decided of the past.
#[derive(Debug)]
pub struct OfferedRule {
    /// The offer.
    pub offer: RuleOffer,
    /// The rule, without its limits, tried on the kept decisions.
    pub tried: TriedRule,
    /// The present version and its differences, if the offer is the next version of a learned rule.
    pub renews: Option<RenewedRule>,
}

/// The present version of a rule whose next one is offered, and what differs.
#[derive(Debug, Clone)]
pub struct RenewedRule {
    /// The present version.
    pub name: RuleName,
    /// Why it decides nothing, in words, if it is suspended.
    pub why: Option<String>,
    /// Its uses so far.
    pub used: u32,
    /// Uses that are left of its budget.
    pub left: Option<u32>,
    /// Its end, in Unix milliseconds.
    pub expires_ms: Option<u64>,
    /// Its spot checks that were decided.
    pub spots: SpotTally,
    /// The differences, and what it did.
    pub changes: RenewalChanges,
}

/// A tool for which no rule is offered, although its calls are approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithheldOffer {
    /// The tool; none where the reason is the participant's own.
    pub tool: Option<RuledTool>,
    /// The reason, in words.
    pub why: String,
}

/// The decisions of a topic as they teach one participant.
struct Lessons<'r> {
    reader: PastReader<'r>,
    /// In their order. What teaches others teaches nothing here.
    decisions: Vec<RuleEvidence>,
    known: RuleSet,
    now_ms: u64,
    deadline: Instant,
}

/// The knowledge of a learner after all lessons.
struct Learned {
    ready: Vec<RuleCandidate>,
    quarantined: Vec<WithheldOffer>,
}

impl Dispatch {
    /// The rules that a participant may accept now.
    ///
    /// # Errors
    /// Nothing is kept, or it takes longer than [`OFFERS_TIME_MAX`].
    pub fn rule_offers(&self, reader: PastReader<'_>) -> Result<RuleOffers, Refusal> {
        self.offers_within(reader, OFFERS_TIME_MAX)
    }

    fn offers_within(
        &self,
        reader: PastReader<'_>,
        limit: Duration,
    ) -> Result<RuleOffers, Refusal> {
        let deadline = Instant::now() + limit;
        let now_ms = self.rules.lock().book.spent.not_before(unix_ms());
        let past = self.past_of(reader, now_ms.saturating_sub(EVIDENCE_MS))?;
        if reader.id.is_guest() {
            return Ok(RuleOffers::default());
        }
        if is_hurried(&self.showings.last_ms(reader.id)) {
            return Ok(RuleOffers {
                offers: Vec::new(),
                withheld: vec![WithheldOffer {
                    tool: None,
                    why: "your last decisions all took less than 2 seconds".to_owned(),
                }],
            });
        }
        let renewals = self.renewals_of(reader, &past, now_ms, deadline)?;
        let lessons = Lessons {
            reader,
            decisions: self.own_lessons(reader, &past, None, deadline)?,
            known: self.rules.known(),
            now_ms,
            deadline,
        };
        let learned = lessons.learn()?;
        self.offers_of(&lessons, learned, renewals)
    }

    /// The offers of the next versions of a participant's rules. Each has lessons of its own: what that
    /// rule has used up teaches again.
    fn renewals_of(
        &self,
        reader: PastReader<'_>,
        past: &[Arc<RuleEvidence>],
        now_ms: u64,
        deadline: Instant,
    ) -> Result<RuleOffers, Refusal> {
        let mut all = RuleOffers::default();
        for ending in self.ending_rules(reader, now_ms) {
            if all.offers.len() >= OPEN_OFFERS_MAX {
                break;
            }
            let name = &ending.rule.name;
            let lessons = Lessons {
                reader,
                decisions: self.own_lessons(reader, past, Some(&name.id), deadline)?,
                known: self.rules.known().without(std::slice::from_ref(name)),
                now_ms,
                deadline,
            };
            let learned = lessons.learn()?;
            match self.renewal_of(&lessons, &learned, &ending)? {
                Ok(offered) => all.offers.extend(offered),
                Err(withheld) => all.withheld.push(withheld),
            }
        }
        Ok(all)
    }

    /// The decisions as they teach one participant: its own approvals alone, of the present bearers
    /// of the names, and each for one rule only: for this one, if it is to be renewed.
    fn own_lessons(
        &self,
        reader: PastReader<'_>,
        past: &[Arc<RuleEvidence>],
        renewed: Option<&RuleId>,
        deadline: Instant,
    ) -> Result<Vec<RuleEvidence>, Refusal> {
        let incarnations = self.context.sealer.incarnations();
        let mut since_ms: BTreeMap<&str, u64> = BTreeMap::new();
        let mut since = |name| {
            *since_ms
                .entry(name)
                .or_insert_with(|| incarnations.since_ms(name).unwrap_or_default())
        };
        let mut used_up = self.rules.used_up();
        used_up
            .retain(|used| used.rule.author == *reader.id && Some(&used.rule.name.id) != renewed);
        let mut decisions = Vec::with_capacity(past.len());
        for decision in past {
            in_time(deadline)?;
            let begun_ms = since(decision.proposer.as_str()).max(since(reader.id.as_str()));
            let is_own = decision.by == *reader.id
                && decision.at_ms >= begun_ms
                && !decision.proposer.is_guest()
                && !used_up.iter().any(|used| used.has(decision));
            let mut decision = RuleEvidence::clone(decision);
            if decision.teaches() && !is_own {
                decision.weight = EvidenceWeight::None;
            }
            decisions.push(decision);
        }
        Ok(decisions)
    }

    /// These renewals, and the offers of the candidates that rest on most approvals.
    fn offers_of(
        &self,
        lessons: &Lessons<'_>,
        learned: Learned,
        renewals: RuleOffers,
    ) -> Result<RuleOffers, Refusal> {
        let Learned {
            mut ready,
            quarantined: mut withheld,
        } = learned;
        ready.sort_by_key(|candidate| Reverse(candidate.approvals()));
        let mut tools: BTreeMap<(&RuledTool, &ParticipantId), ListedTool> = BTreeMap::new();
        let mut offers = renewals.offers;
        withheld.extend(renewals.withheld);
        for candidate in &ready {
            in_time(lessons.deadline)?;
            if offers.len() >= OPEN_OFFERS_MAX {
                break;
            }
            let group = &candidate.group;
            let listed = tools
                .entry((&group.tool, &group.proposer))
                .or_insert_with(|| self.listed(lessons.reader, &group.tool, &group.proposer));
            if !listed.is_that_of(group) {
                continue;
            }
            let withhold = |why| WithheldOffer {
                tool: Some(group.tool.clone()),
                why,
            };
            if let Some(why) = listed.why_withheld() {
                withheld.push(withhold(why.to_owned()));
                continue;
            }
            let Some(offered) = lessons.offer(candidate) else {
                continue;
            };
            if self.leaks(lessons.reader, &offered.offer.rule) {
                withheld.push(withhold(LEAKS.to_owned()));
            } else {
                offers.push(offered);
            }
        }
        withheld.sort_unstable_by(|one, other| one.tool.cmp(&other.tool));
        withheld.dedup();
        Ok(RuleOffers { offers, withheld })
    }

    /// A tool as its server lists it to a proposer now.
    pub(super) fn listed(
        &self,
        reader: PastReader<'_>,
        tool: &RuledTool,
        proposer: &ParticipantId,
    ) -> ListedTool {
        let to = std::slice::from_ref(&tool.to);
        let listed = definition(self, proposer, to, &tool.method, Some(&tool.target));
        let (is_covered, upstream) =
            self.with(|topic| (reader.covers(topic, tool), upstream_of(topic, &tool.to)));
        ListedTool {
            definition: listed.as_deref().and_then(definition_digest),
            server: upstream.as_deref().and_then(server_digest),
            traits: ToolTraits {
                harmless: listed.as_deref().is_some_and(is_harmless_tool),
                rules: rules_of(upstream.as_deref(), Some(&tool.target)),
                reads_private: reads_private(upstream.as_deref(), &tool.target),
                open_world: listed.as_deref().is_none_or(is_open_world_tool),
            },
            is_covered,
        }
    }

    /// Whether a rule would let its proposer read private data and send it elsewhere, together with
    /// one that is in force.
    pub(super) fn leaks(&self, reader: PastReader<'_>, rule: &CallRule) -> bool {
        self.leaks_with(reader, rule).is_some()
    }

    fn leaks_with(&self, reader: PastReader<'_>, rule: &CallRule) -> Option<RuleName> {
        let known = self.rules.known();
        let proposer = rule.scope.proposers.first()?;
        let proposer = ParticipantId::new(proposer.as_str()).ok()?;
        let traits = |rule: &CallRule| {
            let tool = tool_of(rule)?;
            Some(self.listed(reader, &tool, &proposer).traits)
        };
        let own = traits(rule)?;
        if !own.reads_private && !own.open_world {
            return None;
        }
        let approving = known.rules().iter().filter(|other| !other.shadow);
        let others = approving.filter_map(|other| Some((other, traits(other)?)));
        leaks_with(rule, own, others).cloned()
    }

    /// Accepts the rule of the offer with this digest, for the participant that it is made to, and has
    /// it judge what waits. Blocks until the acceptance is on disk. Returns the rule's name.
    ///
    /// # Errors
    /// The participant is paused; there is no such offer now, or the rule cannot come into force.
    pub fn accept_offer(
        self: &Arc<Self>,
        reader: PastReader<'_>,
        digest: Digest,
    ) -> Result<RuleName, Refusal> {
        let act = RuleAct::accepts(digest);
        let permit = self
            .audit
            .reserve_of(reader.id)?
            .from_address(reader.address);
        let accepted = self.accepted(reader, digest);
        Record(self).rule_act(permit, reader.id, &act, accepted.as_ref());
        let rule = accepted?;
        tracing::info!(target: "portmoot::rules", topic = %self.name(), rule = %rule.name, "accepted");
        judges::all(self);
        Ok(rule.name)
    }

    fn accepted(&self, reader: PastReader<'_>, digest: Digest) -> Result<CallRule, Refusal> {
        self.refuse_paused(reader.id)?;
        let seen = self.seen_rejections()?;
        let offered = self.offered(reader, digest)?;
        // Making the offers takes its time. A pause that comes later still keeps the rule from deciding.
        self.refuse_paused(reader.id)?;
        let rule = offered.offer.rule;
        let accepted = AcceptedOffer {
            rule: rule.clone(),
            renews: offered.renews.map(|renews| renews.name),
            seen,
            by_hand: false,
            incarnations: self.context.sealer.incarnations(),
            at_ms: self.rules.not_before(unix_ms()),
        };
        self.rules.accept(self.kept()?, accepted)?;
        Ok(rule)
    }

    /// Takes that a participant does not want the offer with this digest: the approvals that it
    /// rests on make no offer any more. Blocks until that is on disk.
    ///
    /// # Errors
    /// There is no such offer now, or that cannot be written.
    pub fn dismiss_offer(&self, reader: PastReader<'_>, digest: Digest) -> Result<(), Refusal> {
        let permit = self
            .audit
            .reserve_of(reader.id)?
            .from_address(reader.address);
        let dismissed = self.dismissed(reader, digest);
        let act = RuleAct::dismisses(digest);
        Record(self).rule_act(permit, reader.id, &act, dismissed.as_ref());
        dismissed.map(drop)
    }

    fn dismissed(&self, reader: PastReader<'_>, digest: Digest) -> Result<CallRule, Refusal> {
        let offered = self.offered(reader, digest)?;
        let rule = offered.offer.rule;
        let renews = offered.renews.map(|renews| renews.name);
        let at_ms = self.rules.not_before(unix_ms());
        self.rules
            .dismiss(self.kept()?, &rule, renews.as_ref(), at_ms)?;
        Ok(rule)
    }

    /// Ends a learned rule, as a participant asks from this address. Blocks until that is on disk; the
    /// rule decides nothing from the beginning on.
    ///
    /// # Errors
    /// There is no such learned rule, or its end cannot be written.
    pub fn end_rule(
        &self,
        rule: &RuleName,
        by: &ParticipantId,
        address: Option<IpAddr>,
    ) -> Result<(), Refusal> {
        // It ends whether or not the log has room.
        let permit = self.audit.reserve_or_count().from_address(address);
        let at_ms = self.rules.not_before(unix_ms());
        let ended = self
            .kept()
            .and_then(|kept| self.rules.end(kept, rule, by, at_ms));
        Record(self).rule_act(permit, by, &RuleAct::ends(rule), ended.as_deref());
        ended?;
        tracing::info!(target: "portmoot::rules", topic = %self.name(), rule = %rule, %by, "ended");
        Ok(())
    }

    fn offered(&self, reader: PastReader<'_>, digest: Digest) -> Result<OfferedRule, Refusal> {
        let offers = self.rule_offers(reader)?.offers;
        let mut offers = offers.into_iter();
        offers
            .find(|one| one.offer.digest == digest)
            .ok_or_else(|| {
                let why = "no rule of this digest is offered to you now";
                Refusal::new(RefusalCode::UnknownTarget, why)
                    .hint("offers change with what is decided: portmoot rules offers")
            })
    }

    pub(super) fn seen_rejections(&self) -> Result<SeenRejections, Refusal> {
        self.rules.seen_rejections().ok_or_else(|| {
            let why = "a rejection is being written, which may change the offer";
            Refusal::new(RefusalCode::Overloaded, why).hint("try again")
        })
    }

    pub(super) fn kept(&self) -> Result<&TopicLedgers, Refusal> {
        self.ledgers.as_ref().ok_or_else(|| {
            let why = "no rule is learned: the gateway keeps no journal";
            Refusal::new(RefusalCode::UnknownTarget, why)
        })
    }
}

/// The tool of a rule that names one.
pub(super) fn tool_of(rule: &CallRule) -> Option<RuledTool> {
    let scope = &rule.scope;
    Some(RuledTool {
        to: scope.to.clone()?,
        method: scope.method.clone(),
        target: scope.target.clone()?,
    })
}

/// A tool of a candidate, as it is now.
pub(super) struct ListedTool {
    pub(super) definition: Option<Digest>,
    pub(super) server: Option<Digest>,
    /// Its own claims, and the operator's setting of rules about it.
    pub(super) traits: ToolTraits,
    /// Whether the participant could decide about its calls.
    pub(super) is_covered: bool,
}

impl ListedTool {
    /// The reason for which no rule about it is offered, if there is one.
    fn why_withheld(&self) -> Option<&'static str> {
        if self.traits.rules == ToolRules::Never {
            return Some(FORBIDDEN);
        }
        self.traits.is_destructive().then_some(DESTRUCTIVE)
    }

    /// Whether it is the tool of a group of decisions, and the participant may
    /// decide about it.
    fn is_that_of(&self, group: &GroupKey) -> bool {
        self.is_covered
            && self.definition == Some(group.definition)
            && self.server == Some(group.server)
    }
}

impl UsedUp {
    /// Whether an approval is one of those.
    fn has(&self, decision: &RuleEvidence) -> bool {
        decision.at_ms <= self.at_ms
            && self.rule.scope.has_proposer(&decision.proposer)
            && self.rule.covers(decision)
    }
}

impl Lessons<'_> {
    /// Has a learner take all decisions.
    fn learn(&self) -> Result<Learned, Refusal> {
        let mut learner = Learner::default();
        let mut causes: BTreeMap<RuledTool, QuarantineCause> = BTreeMap::new();
        for decision in &self.decisions {
            in_time(self.deadline)?;
            for news in learner.take(decision.clone(), &self.known) {
                if let LearnerNews::Quarantined(tool, cause) = news {
                    causes.insert(tool, cause);
                }
            }
        }
        let now = causes
            .into_iter()
            .filter(|(tool, _)| learner.is_quarantined(tool, self.now_ms));
        let quarantined = now.map(|(tool, cause)| WithheldOffer {
            tool: Some(tool),
            why: words_of(cause).to_owned(),
        });
        let ready: Vec<&RuleCandidate> = learner.ready().collect();
        let is_inside_another = |one: &&&RuleCandidate| {
            ready.iter().any(|other| {
                other.group == one.group && other.when != one.when && other.when.includes(&one.when)
            })
        };
        let widest = ready.iter().filter(|one| !is_inside_another(one));
        Ok(Learned {
            ready: widest.map(|one| (*one).clone()).collect(),
            quarantined: quarantined.collect(),
        })
    }

    /// The offer of a candidate, if it makes one.
    fn offer(&self, candidate: &RuleCandidate) -> Option<OfferedRule> {
        let acceptance = Acceptance {
            name: RuleName {
                id: RuleId::new(DRAFT).ok()?,
                version: 1,
            },
            author: self.reader.id.clone(),
            at_ms: self.now_ms,
            expires_ms: Some(end_of_term(self.now_ms)),
            destructive: false,
        };
        let mut offer = offer(candidate, &acceptance, &self.decisions).ok()??;
        let past: Vec<&RuleEvidence> = self.decisions.iter().collect();
        let rules = std::slice::from_ref(&offer.rule);
        let [mut tried] =
            <[TriedRule; 1]>::try_from(tallied(rules, &offer.replay, &past, self.reader.id))
                .ok()?;
        offer.rule.name.id = id_of(&offer.rule, offer.approvals.last()?)?;
        offer.digest = offer.rule.digest();
        tried.rule = offer.rule.clone();
        Some(OfferedRule {
            offer,
            tried,
            renews: None,
        })
    }
}

/// The end of a rule that is accepted now. It is the same for all of a day, so that the text that was
/// shown is the one that is accepted.
fn end_of_term(now_ms: u64) -> u64 {
    (now_ms / DAY_MS + TERM_DAYS + 1) * DAY_MS
}

/// The id of a rule that rests on approvals up to this one: no other rule has ever had it, as an
/// approval makes one rule at most.
fn id_of(rule: &CallRule, latest: &OperationId) -> Option<RuleId> {
    let hash = Sha256::new()
        .chain_update(rule.text())
        .chain_update(latest.to_string())
        .finalize();
    let mut digits = Digest(hash.into()).to_string();
    digits.truncate(ID_DIGITS);
    RuleId::new(&format!("{LEARNED_ID_PREFIX}{digits}")).ok()
}

fn words_of(cause: QuarantineCause) -> &'static str {
    match cause {
        QuarantineCause::DecidedBothWays => {
            "the same call was approved and rejected: the reason is not in the arguments"
        }
        QuarantineCause::Context => "a call was rejected for a reason that is not in its arguments",
        QuarantineCause::CandidateRefuted => {
            "a call was rejected that is like those which were approved"
        }
    }
}

fn in_time(deadline: Instant) -> Result<(), Refusal> {
    if Instant::now() < deadline {
        return Ok(());
    }
    let seconds = OFFERS_TIME_MAX.as_secs();
    let why = format!("to learn from so many decisions takes longer than {seconds} s");
    Err(Refusal::new(RefusalCode::Overloaded, why).hint("try again later"))
}

#[cfg(test)]
mod tests;
