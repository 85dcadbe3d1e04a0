//! Rules of topics: `/api/v1/topics/{topic}/rules`, `/api/v1/topics/{topic}/rules/replay` and
//! `/api/v1/proposals/{id}/rules`.

use auth::Participant;
use axum::Json;
use axum::extract::{Path, State};
use gateway::by_rule::shown::{RuleReason, RuleView};
use gateway::by_rule::tried::{PastReader, TriedRule, TriedRules};
use gateway::proposals::decide::unknown_proposal;
use model::{OperationId, Refusal, RefusalCode};
use rules::{CallRule, ReplayStanding, RuleDecision, ShadowTally};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wire::time::{read_rfc3339, rfc3339};

use crate::error::{ApiResult, Problem};
use crate::proposals::Review;
use crate::seen_rules::may_see;
use crate::state::{Api, Body, Caller, Source, blocking};

/// The name by which faults of rules that came over the API name their place.
const FILE: &str = "rules.toml";

/// The rules of a topic that the caller may see: its own, and those that decide only what it could
/// decide itself.
#[utoipa::path(
    get,
    path = "/api/v1/topics/{topic}/rules",
    params(("topic" = String, Path)),
    responses((status = 200, body = RuleList), (status = "4XX", body = Problem))
)]
pub(crate) async fn rules(
    State(api): State<Api>,
    Caller(caller): Caller,
    Path(topic): Path<String>,
) -> ApiResult<Json<RuleList>> {
    let (dispatch, caller) = api.there(&topic, &caller)?;
    let all = dispatch.rule_views();
    let seen = all.iter().filter(|view| may_see(&caller, &view.rule));
    Ok(Json(RuleList {
        rules: seen.map(Rule::of).collect(),
    }))
}

/// Tries rules on the past: on the decisions about proposals that the caller may see and the gateway
/// keeps. It decides nothing, and spends nothing.
#[utoipa::path(
    post,
    path = "/api/v1/topics/{topic}/rules/replay",
    params(("topic" = String, Path)),
    request_body = RulesToTry,
    responses(
        (status = 200, body = Trial),
        (status = "4XX", body = Problem),
        (status = "5XX", body = Problem)
    )
)]
pub(crate) async fn replay(
    State(api): State<Api>,
    Caller(caller): Caller,
    source: Source,
    Path(topic): Path<String>,
    Body(RulesToTry { rules, since }): Body<RulesToTry>,
) -> ApiResult<Json<Trial>> {
    let (dispatch, caller) = api.there(&topic, &caller)?;
    let since_ms = since.as_deref().map_or(Ok(0), time)?;
    let place = api.place_to_try(&caller)?;
    let trial = blocking(move || {
        let _place = place;
        let rules = parsed(rules)?;
        let tried = dispatch.try_rules(&rules, reader_of(&caller, source), since_ms)?;
        Ok(Trial::of(&tried))
    });
    Ok(Json(trial.await?))
}

/// A caller, as one that reads the past of a topic.
pub(crate) fn reader_of(caller: &Participant, Source(address): Source) -> PastReader<'_> {
    PastReader {
        id: &caller.id,
        capabilities: &caller.capabilities,
        address,
    }
}

/// Reads the text of rules.
pub(crate) fn parsed(text: String) -> Result<Vec<CallRule>, Refusal> {
    config::rules_in(FILE, text).map_err(|faults| refusal_of(&faults))
}

fn time(text: &str) -> Result<u64, Refusal> {
    read_rfc3339(text).ok_or_else(|| {
        let why = "`since` is no time, such as \"2026-07-28T12:30:00Z\"";
        Refusal::new(RefusalCode::Malformed, why)
    })
}

/// The refusal of rules with these faults, of which it names the first.
fn refusal_of(faults: &[config::Problem]) -> Refusal {
    let Some(first) = faults.first() else {
        return Refusal::new(RefusalCode::Malformed, "the rules are not valid");
    };
    let place = first.location.as_ref();
    let place = place.map_or_else(|| FILE.to_owned(), ToString::to_string);
    let refusal = Refusal::new(
        RefusalCode::Malformed,
        format!("{place}: {}", first.message),
    );
    match &first.hint {
        Some(hint) => refusal.hint(hint.clone()),
        None => refusal,
    }
}

/// Why the rules that the caller may see decide a proposal, or do not.
#[utoipa::path(
    get,
    path = "/api/v1/proposals/{id}/rules",
    params(("id" = String, Path)),
    responses((status = 200, body = Explanation), (status = "4XX", body = Problem))
)]
pub(crate) async fn explain(
    Review {
        dispatch,
        caller,
        id,
        address: _,
    }: Review,
) -> ApiResult<Json<Explanation>> {
    let is_visible =
        dispatch.with(|topic| topic.may_see_proposal(id, &caller.id, &caller.capabilities));
    if !is_visible {
        return Err(unknown_proposal().into());
    }
    let explained = dispatch.explain_rules(id);
    let seen = explained.iter().flat_map(|explained| &explained.rules);
    let seen = seen.filter(|one| may_see(&caller, &one.rule));
    let of_call = explained.as_ref();
    Ok(Json(Explanation {
        proposal: id.to_string(),
        judged: explained.is_some(),
        definition: of_call.and_then(|one| Some(one.definition?.to_string())),
        server: of_call.and_then(|one| Some(one.server?.to_string())),
        rules: seen.map(Reason::of).collect(),
    }))
}

/// A rule of a topic.
#[derive(Serialize, ToSchema)]
pub(crate) struct Rule {
    /// Its id and version, such as `r1.2`.
    rule: String,
    /// The participant on whose authority it decides.
    author: String,
    /// `approve`, `reject` or `ask`.
    decision: String,
    /// The method of the calls that it looks at, such as `tools/call`.
    method: String,
    /// The tool, prompt or resource of these calls, as its server names it; absent is all of them.
    target: Option<String>,
    /// The server that runs them; absent is all of them.
    to: Option<String>,
    /// Who makes these calls: names, or patterns of names with `*`.
    proposers: Vec<String>,
    /// All that it says, in English.
    sentence: String,
    /// Its text, as TOML.
    text: String,
    /// `in force`, `in shadow`, `suspended`, `over`, `spent`, or `refused`.
    state: String,
    /// Why it decides nothing.
    why: Option<String>,
    /// When it was suspended, RFC 3339.
    suspended: Option<String>,
    /// Calls that it has approved, or would have, in shadow.
    used: u32,
    /// Calls that it may approve yet.
    left: Option<u32>,
    /// Its end, RFC 3339.
    expires: Option<String>,
    /// `file`, `learned`, or `added` by its author.
    origin: String,
    /// When its author accepted or added it, RFC 3339, if it is not of the topic's file.
    accepted: Option<String>,
    /// Calls that this version has left to people as spot checks, and that they have decided.
    spot_checks: u32,
    /// The spot checks that were approved as they were proposed.
    spot_checks_agreed: u32,
    /// The decisions that this version would have made, of a rule in shadow, which makes none.
    shadow: Option<ShadowCounts>,
}

/// The decisions that a rule in shadow would have made, by what became of the calls.
#[derive(Serialize, ToSchema)]
pub(crate) struct ShadowCounts {
    /// Proposals that it looked at: those of its tool, its server and its proposers.
    proposals: u32,
    /// Proposals that it would have approved or rejected.
    answered: u32,
    /// Of these, the ones about which people decided otherwise, or with other arguments.
    otherwise: u32,
    /// Of those that it would have answered, the ones that wait.
    waiting: u32,
    /// Of those that it would have answered, the ones that people approved as they were proposed.
    approved: u32,
    /// Of those that it would have answered, the ones that people approved with other arguments.
    edited: u32,
    /// Of those that it would have answered, the ones that people rejected.
    rejected: u32,
    /// Of those that it would have answered, the ones that rules decided.
    by_rules: u32,
    /// Of those that it would have answered, the ones that expired or were withdrawn.
    undecided: u32,
    /// Proposals that it would have left to people.
    left: u32,
    /// Calls that ran without an approval, and that it would have made proposals.
    held: u32,
    /// Calls that ran without an approval, and that it would have refused.
    refused: u32,
    /// All of it, in English.
    words: String,
}

/// Rules.
#[derive(Serialize, ToSchema)]
pub(crate) struct RuleList {
    /// In the order of the topic's file, then those that were learned.
    rules: Vec<Rule>,
}

/// Rules to be tried on the past.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RulesToTry {
    /// The text of a file of rules.
    rules: String,
    /// Only decisions at or after this time, RFC 3339.
    since: Option<String>,
}

/// Rules, tried on the past.
#[derive(Serialize, ToSchema)]
pub(crate) struct Trial {
    /// The proposals on which they were tried.
    proposals: u32,
    /// Proposals that they would have approved or rejected.
    answered: usize,
    /// Of these, the ones about which was decided otherwise.
    contradicted: usize,
    /// Of these, the ones that expired or were withdrawn.
    undecided: usize,
    /// Proposals on which they were not tried: a rule names a member whose value is not kept, such as
    /// a password.
    left_out: usize,
    /// The result, in English.
    words: String,
    /// In the order of the file.
    rules: Vec<RuleTrial>,
}

/// One rule, tried on the past beside the others.
#[derive(Serialize, ToSchema)]
pub(crate) struct RuleTrial {
    /// Its id and version.
    rule: String,
    /// Its decision.
    decision: String,
    /// Proposals that it would have decided, and that the caller approved by hand.
    approved_by_you: usize,
    /// Proposals that it would have decided, and that other participants approved.
    approved_by_others: usize,
    /// Proposals that it would have decided, and that rules approved.
    approved_by_rules: usize,
    /// Proposals that it would have decided, and that were rejected.
    rejected: usize,
    /// Proposals that it would have decided, and that expired.
    expired: usize,
    /// Proposals that it would have decided, and that were withdrawn.
    withdrawn: usize,
    /// The result, in English.
    words: String,
    /// The ids of all of these, in the order of their decisions.
    decided: Vec<String>,
    /// The ids of those about which was decided otherwise.
    contradicted: Vec<String>,
}

/// Why rules decide a proposal, or do not.
#[derive(Serialize, ToSchema)]
pub(crate) struct Explanation {
    /// The proposal.
    proposal: String,
    /// Whether rules judge it: it is for one server. One for several, or for none in particular, is
    /// decided by people.
    judged: bool,
    /// The digest of the tool's definition as its server lists it now, which a rule that approves
    /// names.
    definition: Option<String>,
    /// The digest of the server's configured command or URL, which a rule that approves names.
    server: Option<String>,
    /// The rules in force for calls of this tool, in the order in which they decide.
    rules: Vec<Reason>,
}

/// Why one rule decides a proposal, or does not.
#[derive(Serialize, ToSchema)]
pub(crate) struct Reason {
    /// Its id and version.
    rule: String,
    /// Its decision.
    decision: String,
    /// Whether it would decide the proposal, were it the only one. A rule in shadow decides none.
    decides: bool,
    /// Whether it is in shadow.
    shadow: bool,
    /// Whether it would decide the proposal, were it the only one, and not in shadow.
    would_decide: bool,
    /// When its author accepted it, RFC 3339, if it was learned and is not of the topic's file.
    accepted: Option<String>,
    /// Its demands on the call, with their results.
    checks: Vec<Check>,
}

/// One thing that a rule asks of a call.
#[derive(Serialize, ToSchema)]
pub(crate) struct Check {
    /// The demand.
    asked: String,
    /// The finding.
    found: String,
    /// `held`, `failed`, or `unclear`, which a rule that approves takes as failed.
    holds: String,
}

impl Rule {
    /// A rule as the API shows it.
    pub(crate) fn of(view: &RuleView) -> Self {
        let rule = &view.rule;
        let scope = &rule.scope;
        Self {
            rule: rule.name.to_string(),
            author: rule.author.to_string(),
            decision: rule.decision.as_str().to_owned(),
            method: scope.method.to_string(),
            target: scope.target.as_deref().map(str::to_owned),
            to: scope.to.as_ref().map(ToString::to_string),
            proposers: scope.proposers.iter().map(ToString::to_string).collect(),
            sentence: rule.sentence(),
            text: rule.text(),
            state: view.state.to_owned(),
            why: view.why.clone(),
            suspended: view.since_ms.map(rfc3339),
            used: view.used,
            left: view.left,
            expires: rule.expires_ms.map(rfc3339),
            origin: <&str>::from(view.origin).to_owned(),
            accepted: view.accepted_ms.map(rfc3339),
            spot_checks: view.spots.decided,
            spot_checks_agreed: view.spots.agreed,
            shadow: view
                .shadow
                .map(|tally| ShadowCounts::of(tally, rule.decision)),
        }
    }
}

impl ShadowCounts {
    fn of(tally: ShadowTally, decision: RuleDecision) -> Self {
        Self {
            proposals: tally.proposals,
            answered: tally.answered(),
            otherwise: tally.otherwise(decision),
            waiting: tally.waiting,
            approved: tally.approved,
            edited: tally.edited,
            rejected: tally.rejected,
            by_rules: tally.by_rules,
            undecided: tally.undecided,
            left: tally.left,
            held: tally.held,
            refused: tally.refused,
            words: tally.words(decision),
        }
    }
}

impl Trial {
    fn of(tried: &TriedRules) -> Self {
        let replay = &tried.replay;
        let contradicted = replay.count(ReplayStanding::Contradicts);
        let undecided = replay.count(ReplayStanding::Undecided);
        Self {
            proposals: replay.proposals,
            answered: replay.count(ReplayStanding::Agrees) + contradicted + undecided,
            contradicted,
            undecided,
            left_out: tried.left_out,
            words: replay.words(),
            rules: tried.rules.iter().map(RuleTrial::of).collect(),
        }
    }
}

impl RuleTrial {
    /// A tried rule as the API shows it.
    pub(crate) fn of(tried: &TriedRule) -> Self {
        let tally = tried.tally;
        let ids = |all: &[OperationId]| all.iter().map(ToString::to_string).collect();
        Self {
            rule: tried.rule.name.to_string(),
            decision: tried.rule.decision.as_str().to_owned(),
            approved_by_you: tally.approved_by_you,
            approved_by_others: tally.approved_by_others,
            approved_by_rules: tally.approved_by_rules,
            rejected: tally.rejected,
            expired: tally.expired,
            withdrawn: tally.withdrawn,
            words: tried.words(),
            decided: ids(&tried.decided),
            contradicted: ids(&tried.contradicted),
        }
    }
}

impl Reason {
    fn of(reason: &RuleReason) -> Self {
        let checks = reason.checks.iter();
        Self {
            rule: reason.rule.name.to_string(),
            decision: reason.rule.decision.as_str().to_owned(),
            decides: reason.acts && !reason.rule.shadow,
            shadow: reason.rule.shadow,
            would_decide: reason.acts,
            accepted: reason.accepted_ms.map(rfc3339),
            checks: checks
                .map(|check| Check {
                    asked: check.asked.clone(),
                    found: check.found.clone(),
                    holds: check.fit.as_str().to_owned(),
                })
                .collect(),
        }
    }
}
