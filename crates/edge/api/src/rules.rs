//! Rules of topics: `/api/v1/topics/{topic}/rules` and `/api/v1/proposals/{id}/rules`.

use auth::Participant;
use axum::Json;
use axum::extract::{Path, State};
use gateway::by_rule::shown::{RuleReason, RuleView};
use gateway::proposals::decide::unknown_proposal;
use rules::CallRule;
use serde::Serialize;
use utoipa::ToSchema;
use wire::time::rfc3339;

use crate::error::{ApiResult, Problem};
use crate::proposals::Review;
use crate::state::{Api, Caller};

/// The rules of a topic's file that the caller may see: its own, and those that decide only what it
/// could decide itself.
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
    let dispatch = api.registry.enter(&topic, &caller)?;
    let caller = api.registry.there(&caller, dispatch.name());
    let all = dispatch.rule_views();
    let seen = all.iter().filter(|view| may_see(&caller, &view.rule));
    Ok(Json(RuleList {
        rules: seen.map(Rule::of).collect(),
    }))
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

/// Whether a caller, with its capabilities in the topic, may see a rule. Its own rule it may see
/// whatever it may do itself by now, as far as its token is good for what the rule decides.
fn may_see(caller: &Participant, rule: &CallRule) -> bool {
    if rule.author != caller.id {
        return rule.is_within(&caller.capabilities);
    }
    let narrowing = caller.narrowing();
    narrowing.is_none_or(|narrowing| rule.is_within(&narrowing.to))
}

/// A rule of a topic's file.
#[derive(Serialize, ToSchema)]
pub(crate) struct Rule {
    /// Its id and version, such as `r1.2`.
    rule: String,
    /// The participant on whose authority it decides.
    author: String,
    /// `approve`, `reject` or `ask`.
    decision: String,
    /// All that it says, in English.
    sentence: String,
    /// Its text, as TOML.
    text: String,
    /// `in force`, `suspended`, `over`, `spent`, or `refused`.
    state: String,
    /// Why it decides nothing.
    why: Option<String>,
    /// When it was suspended, RFC 3339.
    suspended: Option<String>,
    /// Calls that it has approved.
    used: u32,
    /// Calls that it may approve yet.
    left: Option<u32>,
    /// Its end, RFC 3339.
    expires: Option<String>,
}

/// Rules.
#[derive(Serialize, ToSchema)]
pub(crate) struct RuleList {
    /// In the order of the topic's file.
    rules: Vec<Rule>,
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
    /// Whether it would decide the proposal, were it the only one.
    decides: bool,
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
    fn of(view: &RuleView) -> Self {
        let rule = &view.rule;
        Self {
            rule: rule.name.to_string(),
            author: rule.author.to_string(),
            decision: rule.decision.as_str().to_owned(),
            sentence: rule.sentence(),
            text: rule.text(),
            state: view.state.to_owned(),
            why: view.why.clone(),
            suspended: view.since_ms.map(rfc3339),
            used: view.used,
            left: view.left,
            expires: rule.expires_ms.map(rfc3339),
        }
    }
}

impl Reason {
    fn of(reason: &RuleReason) -> Self {
        let checks = reason.checks.iter();
        Self {
            rule: reason.rule.name.to_string(),
            decision: reason.rule.decision.as_str().to_owned(),
            decides: reason.acts,
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
