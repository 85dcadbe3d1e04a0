//! Rules that their authors add by hand: `POST /api/v1/topics/{topic}/rules` and
//! `POST /api/v1/proposals/{id}/like`.

use axum::Json;
use axum::extract::{Path, State};
use gateway::by_rule::by_hand::AskedLike;
use model::{Refusal, RefusalCode};
use rules::{CallRule, parse_conditions};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wire::time::rfc3339;

use crate::error::{ApiResult, Problem};
use crate::proposals::Review;
use crate::rule_offers::no_rule;
use crate::rules::{Rule, parsed, reader_of};
use crate::state::{Api, Body, Caller, Source, blocking};

/// Puts a rule that approves in force, which the caller has written, on the caller's authority. Where
/// the caller has added an earlier version of it, it takes its place.
#[utoipa::path(
    post,
    path = "/api/v1/topics/{topic}/rules",
    params(("topic" = String, Path)),
    request_body = RuleToAdd,
    responses(
        (status = 200, body = Rule),
        (status = "4XX", body = Problem),
        (status = "5XX", body = Problem)
    )
)]
pub(crate) async fn add(
    State(api): State<Api>,
    Caller(caller): Caller,
    source: Source,
    Path(topic): Path<String>,
    Body(RuleToAdd { rule, tool }): Body<RuleToAdd>,
) -> ApiResult<Json<Rule>> {
    let (dispatch, caller) = api.there(&topic, &caller)?;
    let added = blocking(move || {
        let rules = parsed(rule)?;
        let [rule] = <[CallRule; 1]>::try_from(rules).map_err(|rules| {
            let why = format!("it is the text of {} rules, and not of one", rules.len());
            Refusal::new(RefusalCode::Malformed, why).hint("add them one by one")
        })?;
        let name = dispatch.add_rule(reader_of(&caller, source), rule, tool.as_deref())?;
        let all = dispatch.rule_views();
        let view = all.iter().find(|view| view.rule.name == name);
        // Another request may have ended it by now.
        view.map(Rule::of).ok_or_else(no_rule)
    });
    Ok(Json(added.await?))
}

/// Makes the rule that would approve the like of a proposed call: of the same proposer, with the same
/// values but for those with another condition. Nothing is in force by it: it is the text to add.
#[utoipa::path(
    post,
    path = "/api/v1/proposals/{id}/like",
    params(("id" = String, Path)),
    request_body = LikeOfCall,
    responses(
        (status = 200, body = DraftedRule),
        (status = "4XX", body = Problem),
        (status = "5XX", body = Problem)
    )
)]
pub(crate) async fn like(
    Review {
        dispatch,
        caller,
        id,
        address,
    }: Review,
    Body(asked): Body<LikeOfCall>,
) -> ApiResult<Json<DraftedRule>> {
    let drafted = blocking(move || {
        let asked = AskedLike {
            for_ms: asked.for_seconds.saturating_mul(1_000),
            uses: asked.uses,
            tests: parse_conditions(asked.when.as_deref().unwrap_or_default())
                .map_err(|why| Refusal::new(RefusalCode::Malformed, format!("`when`: {why}")))?,
            typed: asked.tool,
        };
        let rule = dispatch.like_of(reader_of(&caller, Source(address)), id, asked)?;
        Ok(DraftedRule::of(&rule, dispatch.name().as_str()))
    });
    Ok(Json(drafted.await?))
}

/// A rule to be put in force.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleToAdd {
    /// Its text, as in a file of rules.
    rule: String,
    /// The tool's own name, typed by the author: needed where the tool may destroy something.
    tool: Option<String>,
}

/// The like of a proposed call.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LikeOfCall {
    /// For how long, in seconds: from 10 minutes to 8 hours.
    for_seconds: u64,
    /// The number of calls: from 1 to 20.
    uses: u32,
    /// Conditions in place of the values that the call has, as TOML under `[rule.when]`, such as
    /// `"/amount" = { integer = [1, 100] }`.
    when: Option<String>,
    /// The tool's own name, typed by the author: needed where the tool may destroy something.
    tool: Option<String>,
}

/// A rule that is not in force.
#[derive(Serialize, ToSchema)]
pub(crate) struct DraftedRule {
    /// Its id and version, such as `like-5e1f0c32.1`.
    rule: String,
    /// The topic to which it is to be added.
    topic: String,
    /// All that it says, in English.
    sentence: String,
    /// Its text, as TOML.
    text: String,
    /// Its end, RFC 3339.
    expires: Option<String>,
}

impl DraftedRule {
    fn of(rule: &CallRule, topic: &str) -> Self {
        Self {
            rule: rule.name.to_string(),
            topic: topic.to_owned(),
            sentence: rule.sentence(),
            text: rule.text(),
            expires: rule.expires_ms.map(rfc3339),
        }
    }
}
