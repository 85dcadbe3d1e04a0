//! Rules on the arguments of calls: language, matching, learning from decisions, life of a rule.
//!
//! A rule says in a closed language which calls of one tool a person's approval may be taken as
//! given for, which are rejected, and which must be asked about although their sender may make
//! them. This crate is pure: no clock, no chance, no input and output. Times are arguments, what is
//! spent is a value that is folded from events, and spot checks follow from a seed.
//!
//! - [`CallRule`], [`RuleScope`], [`Conditions`], [`ValueTest`], [`RuleGuards`]: the language.
//!   [`parse_rules`] reads it from TOML, [`CallRule::text`] prints it, [`CallRule::sentence`] says it
//!   in English.
//! - [`RuleSet`]: which rule decides a [`RuledCall`], and why. [`Spent`]: what rules have counted.
//! - [`ValueTest::includes`], [`ValueTest::join`], [`steps`]: the lattice of conditions.
//! - [`RuleEvidence`], [`EvidenceLog`], [`Learner`], [`RuleCandidate`]: learning from decisions.
//!   [`offer`]: what a person sees before accepting a rule. [`replay()`]: rules tried on the past.
//! - [`CallRule::shadow`], [`ShadowLook`], [`ShadowTally`]: rules that decide nothing, and what they would
//!   have decided.
//! - [`RulePhase`], [`suspends`], [`leaks_with`], [`is_spot_check`]: the life of a rule.
//!
//! # Contract with the shell
//!
//! The shell is the topic and gateway around this crate. It needs [`RuleSet`], [`RuledCall`],
//! [`CallStage`], [`Spent`] with [`SpentEvent`], [`RulePhase`] with [`LifeEvent`] and
//! [`SuspendCause`], [`Surrounding`], and for learning [`RuleEvidence`], [`EvidenceLog`],
//! [`Learner`] and [`offer`]. The rest are parts of these.
//!
//! For each proposal, in one turn that no other call comes between:
//!
//! 1. Make the [`RuledCall`] from the canonical bytes that the proposal's digest covers, and from
//!    nothing else. `beside` names each member of the params that is neither target nor arguments nor
//!    a key of the protocol; `proposer` is one identity, never a name that several callers share.
//! 2. [`suspends`], for each rule of [`RuleSet::of_kind`] that is about the call's proposer and
//!    addressee: a cause is recorded, [`RulePhase::suspended`] is the rule's next phase, and the rule
//!    leaves the set ([`RuleSet::without`]). A rule that rejects or asks stays in it whatever becomes
//!    of it: what it matches and may not decide waits for people.
//! 3. [`RuleSet::decide`].
//! 4. The topic decides with the author as the participant, the rule and its version beside it, and
//!    judges the author's rights of this moment as it judges a person's.
//! 5. [`RuleSet::charges`] of an approval by rule, in the journal group of that decision, as
//!    [`SpentEvent::Charged`]. A decision that does not count is taken back by
//!    [`SpentEvent::Returned`].
//! 6. [`RuleSet::shadows`] beside step 3, each as [`SpentEvent::Shadowed`], with [`ShadowLook::charge`]
//!    as [`SpentEvent::Charged`]; [`SpentEvent::ShadowEnded`] with the end of the proposal; and
//!    [`RuleSet::shadow_charges`] beside step 5.
//! 7. [`SpentEvent::Ended`] for a use that was answered, and for no other one.
//! 8. A [`RuleEvidence`] for each end of a proposal by a decision, in the journal group of that
//!    decision, and for each expiry and withdrawal. An [`EvidenceLog`] keeps them, for [`replay()`].
//!
//! Times never go back: where a clock was set back, the latest time that the journal has stands in.
//! A journal that drops events begins with [`Spent::carried`]; no id is given to two rules.
//!
//! The gateway does not do yet:
//!
//! - A direct call has no answer, [`RuleDecision::Reject`] or [`RuleDecision::Ask`]
//!   ([`CallStage::Direct`]).
//! - If the answer approves, [`is_spot_check`] with [`Spent::draws`]: true leaves the proposal to a
//!   person, and [`SpentEvent::Checked`] is recorded with that person's decision, not before.
//! - [`RuleSet::charges`] also for a call that a person approved or that needed no approval, for
//!   rules that reject or ask with guards.
//! - After an answer without an error, [`RuleSet::remembers`] with the time of the answer, as
//!   [`SpentEvent::Answered`].
//! - The operator's [`ToolRules::Never`], with which nothing is learned of a tool.
//! - Resumptions, and the end of a shadow as it is: a rule leaves its shadow as its next version. A rule whose author was removed decides nothing, and one with a name that
//!   has another bearer is suspended; neither ends.
//!
//! The gateway keeps no [`Learner`]: it has one take all kept decisions when a person asks for offers.
//! A rejection suspends the learned rules that cover it ([`CallRule::covers`]) at once, and not by
//! [`LearnerNews::Suspends`]; one that says that arguments were not the reason
//! ([`QuarantineCause::of_rejection`]) all learned rules of its tool.

mod acceptance;
mod arguments;
mod bound;
mod call;
mod candidate;
mod characters;
mod charge;
mod conditions;
mod constant;
mod decimal;
mod evidence;
mod evidence_log;
mod fit;
#[cfg(test)]
mod fixture;
mod guards;
mod judge;
mod lattice;
mod learner;
mod licence;
mod life;
mod like;
mod made_up;
mod name;
mod offer;
mod parse;
mod path;
mod pointer;
mod print;
mod range;
mod renewal;
mod replay;
mod rule;
mod rule_set;
mod segments;
mod sentence;
mod shadow;
mod spelling;
mod spent;
mod spot;
mod url;
mod value_test;
mod window;

pub use acceptance::{RuleRenewal, ToolRules, ToolTraits, leaks_with};
pub use arguments::{
    ARGUMENTS_BYTES_MAX, ARGUMENTS_ELEMENTS_MAX, ARGUMENTS_LEAVES_MAX, ArgumentValue, Arguments,
    ArgumentsError,
};
pub use bound::{RATE_MIN, USES_MIN, approved_share_permille, rate_of, uses_after};
pub use call::{CallStage, RuledCall};
pub use candidate::{Acceptance, CandidateSort, GroupKey, RuleCandidate, SHADOW_DAY_MS, TERM_DAYS};
pub use characters::{CharSet, CharsError, IDENTIFIER_CHARS_MAX, Shape};
pub use charge::{OUTCOMES_KEPT, RULE_CHARGES_MAX, RuleCharge, RuleTotals, ShadowedCall};
pub use conditions::{CONDITIONS_MAX, Conditions};
pub use constant::{CONSTANT_BYTES_MAX, Constant, ConstantError, ValueType};
pub use decimal::{Decimal, NUMBER_DIGITS_MAX, SpelledNumber};
pub use evidence::{
    DELIBERATE_MS_MIN, Deliberation, EvidenceWeight, HURRIED_DECISIONS, HURRIED_MS,
    NoEvidenceWeight, NoPastVerdict, PastVerdict, RejectReason, RuleEvidence, RuledTool,
    is_hurried,
};
pub use evidence_log::{EVIDENCE_BYTES_MAX, EVIDENCE_MAX, EVIDENCE_MS, EvidenceLog};
pub use fit::Fit;
pub use guards::{
    AfterGuard, CountGuard, GUARDS_MAX, NoRate, RuleGuards, RuleRate, SAME_MEMBERS_MAX, SumGuard,
    USES_MAX,
};
pub use judge::{ExplainedCheck, SHOWN_VALUE_CHARS_MAX};
pub use lattice::{next_tighter, next_wider, steps};
pub use learner::{
    APPROVALS_MIN, GROUP_CANDIDATES_MAX, GROUPS_MAX, Learner, LearnerNews, LearnerThresholds,
    PROVEN_REPEATS_MIN, QUARANTINE_MS, QuarantineCause, REPEATS_MIN, SHADOW_DAYS_MIN, SHADOW_MIN,
};
pub use licence::{DISTINCT_MIN, ELEMENTS_MIN, FILES_MIN, SHAPE_SEEN_MIN, TRUTHS_MIN, licensed};
pub use life::{
    DORMANT_MS, FAILURES_MAX, LifeError, LifeEvent, NoSuspendCause, RuleEnd, RulePhase,
    Surrounding, SuspendCause, suspends,
};
pub use like::{LIKE_MS_MAX, LIKE_USES_MAX, LikeCall, LikeError, LikeTerms, like};
pub use made_up::{Extreme, made_up};
pub use name::{LEARNED_ID_PREFIX, NoRuleId, RULE_ID_BYTES_MAX, RuleId, RuleName};
pub use offer::{
    DifferingFields, DifferingRow, MemberSteps, NEAREST_MAX, NearRejection, OPEN_OFFERS_MAX,
    RuleOffer, TABLE_ROWS_MAX, may_be_offered, offer, unlike_first,
};
pub use parse::{
    RULES_FILE_BYTES_MAX, RULES_MAX, RuleFileError, TOOL_RULES_MAX, WrittenRule, parse_conditions,
    parse_rules, parse_written_rules,
};
pub use path::{ABSOLUTE_ROOT_SEGMENTS_MIN, PathError, PathRoot, ROOT_SEGMENTS_MAX};
pub use pointer::{POINTER_BYTES_MAX, POINTER_DEPTH_MAX, Pointer, PointerError};
pub use range::CountRange;
pub use renewal::{
    ChangedTest, RENEWAL_DAYS, RENEWAL_PART, RenewalBreadth, RenewalChanges, RenewalOffer,
    RenewalTimes, RuleUse, candidate_of, renewal,
};
pub use replay::{PastCall, ReplayStanding, ReplayedCall, RuleReplay, replay};
pub use rule::{
    CallRule, PROPOSERS_MAX, RuleDecision, RuleScope, TERM_MS_MAX, TERM_MS_MIN, TermError,
};
pub use rule_set::{RuleAnswer, RuleExplanation, RuleSet, RuleSetError};
pub use shadow::{
    NoShadowEnd, SHADOWS_KEPT, ShadowDecision, ShadowEnd, ShadowLook, ShadowMark, ShadowTally,
    ShadowTotals,
};
pub use spelling::name_likeness;
pub use spent::{ANSWERED_CALLS_MAX, AnsweredCall, Spent, SpentEvent};
pub use spot::{
    CHECKS_KEPT, NoSpotEnd, OFTEN_ONE_IN, OFTEN_UNTIL_USES, SELDOM_ONE_IN, SpotEnd, SpotTally,
    SpotTotals, is_spot_check,
};
pub use url::{QUERY_MEMBERS_MAX, QUERY_VALUE_BYTES_MAX, UrlError, UrlRoot};
pub use value_test::{CONSTANTS_MAX, SHAPES_MAX, ValueTest};
pub use window::{RuleWindow, WINDOW_MS_MAX, WeekHours, WindowError};
