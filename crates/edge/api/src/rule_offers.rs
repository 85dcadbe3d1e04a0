//! Rules that are learned from decisions: `/api/v1/topics/{topic}/rules/offers` and
//! `/api/v1/topics/{topic}/rules/{rule}/end`.

use auth::Participant;
use axum::Json;
use axum::extract::{Path, State};
use gateway::Dispatch;
use gateway::by_rule::offers::{OfferedRule, RenewedRule, RuleOffers, WithheldOffer};
use gateway::by_rule::shown::RuleView;
use gateway::proposals::decide::digest;
use model::{Refusal, RefusalCode};
use rules::{ChangedTest, DifferingRow, MemberSteps, NearRejection, RuleUse};
use serde::Serialize;
use utoipa::ToSchema;
use wire::time::rfc3339;

use crate::error::{ApiResult, Problem};
use crate::rules::{Rule, RuleTrial, reader_of};
use crate::seen_rules::may_see;
use crate::state::{Api, Caller, Source, blocking};

/// The rules that the gateway has learned from what the caller approved by hand, for the caller to
/// accept, those first that renew a rule of the caller's which is near its end. None of them decides
/// anything.
#[utoipa::path(
    get,
    path = "/api/v1/topics/{topic}/rules/offers",
    params(("topic" = String, Path)),
    responses(
        (status = 200, body = OfferList),
        (status = "4XX", body = Problem),
        (status = "5XX", body = Problem)
    )
)]
pub(crate) async fn offers(
    State(api): State<Api>,
    Caller(caller): Caller,
    source: Source,
    Path(topic): Path<String>,
) -> ApiResult<Json<OfferList>> {
    let (dispatch, caller) = api.there(&topic, &caller)?;
    let place = api.place_to_try(&caller)?;
    let offers = blocking(move || {
        let _place = place;
        let offers = dispatch.rule_offers(reader_of(&caller, source))?;
        Ok(OfferList::of(&offers))
    });
    Ok(Json(offers.await?))
}

/// Accepts an offered rule, by the digest of the text that was shown: it decides from now on, on the
/// caller's authority.
#[utoipa::path(
    post,
    path = "/api/v1/topics/{topic}/rules/offers/{digest}/accept",
    params(("topic" = String, Path), ("digest" = String, Path)),
    responses(
        (status = 200, body = Rule),
        (status = "4XX", body = Problem),
        (status = "5XX", body = Problem)
    )
)]
pub(crate) async fn accept(
    State(api): State<Api>,
    Caller(caller): Caller,
    source: Source,
    Path((topic, shown)): Path<(String, String)>,
) -> ApiResult<Json<Rule>> {
    let (dispatch, caller) = api.there(&topic, &caller)?;
    let shown = digest(&shown)?;
    let place = api.place_to_try(&caller)?;
    let accepted = blocking(move || {
        let _place = place;
        let name = dispatch.accept_offer(reader_of(&caller, source), shown)?;
        let all = dispatch.rule_views();
        let view = all.iter().find(|view| view.rule.name == name);
        // Another request may have ended it by now.
        view.map(Rule::of).ok_or_else(no_rule)
    });
    Ok(Json(accepted.await?))
}

/// Dismisses an offered rule: the approvals that it rests on make no offer any more.
#[utoipa::path(
    post,
    path = "/api/v1/topics/{topic}/rules/offers/{digest}/dismiss",
    params(("topic" = String, Path), ("digest" = String, Path)),
    responses(
        (status = 200, body = OfferList),
        (status = "4XX", body = Problem),
        (status = "5XX", body = Problem)
    )
)]
pub(crate) async fn dismiss(
    State(api): State<Api>,
    Caller(caller): Caller,
    source: Source,
    Path((topic, shown)): Path<(String, String)>,
) -> ApiResult<Json<OfferList>> {
    let (dispatch, caller) = api.there(&topic, &caller)?;
    let shown = digest(&shown)?;
    let place = api.place_to_try(&caller)?;
    let left = blocking(move || {
        let _place = place;
        let reader = reader_of(&caller, source);
        dispatch.dismiss_offer(reader, shown)?;
        Ok(OfferList::of(&dispatch.rule_offers(reader)?))
    });
    Ok(Json(left.await?))
}

/// Ends a learned rule, for ever. Its author may, and each participant that could decide itself
/// all that it decides.
#[utoipa::path(
    post,
    path = "/api/v1/topics/{topic}/rules/{rule}/end",
    params(("topic" = String, Path), ("rule" = String, Path)),
    responses(
        (status = 200, body = Rule),
        (status = "4XX", body = Problem),
        (status = "5XX", body = Problem)
    )
)]
pub(crate) async fn end(
    State(api): State<Api>,
    Caller(caller): Caller,
    Source(address): Source,
    Path((topic, rule)): Path<(String, String)>,
) -> ApiResult<Json<Rule>> {
    let (dispatch, caller) = api.there(&topic, &caller)?;
    let ended = blocking(move || {
        let view = named(&dispatch, &caller, &rule)?;
        dispatch.end_rule(&view.rule.name, &caller.id, address)?;
        Ok(Rule::of(&RuleView {
            state: "ended",
            why: Some(format!("{} ended it", caller.id)),
            since_ms: None,
            ..view
        }))
    });
    Ok(Json(ended.await?))
}

/// The learned rule of this id, with or without its version, that the caller may see.
fn named(dispatch: &Dispatch, caller: &Participant, text: &str) -> Result<RuleView, Refusal> {
    let is_it = |view: &RuleView| {
        let name = &view.rule.name;
        name.id.as_str() == text || name.to_string() == text
    };
    let all = dispatch.rule_views();
    let mut seen = all.into_iter().filter(|view| may_see(caller, &view.rule));
    let view = seen.find(is_it).ok_or_else(no_rule)?;
    if view.accepted_ms.is_none() {
        let why = format!("{} is a rule of the topic's file", view.rule.name);
        return Err(Refusal::new(RefusalCode::Conflict, why).hint("remove it from the file"));
    }
    Ok(view)
}

pub(crate) fn no_rule() -> Refusal {
    Refusal::new(RefusalCode::UnknownTarget, "there is no such rule")
        .hint("`portmoot rules ls` shows those that you may see")
}

/// Rules that are offered to the caller.
#[derive(Serialize, ToSchema)]
pub(crate) struct OfferList {
    /// The offers: renewals, then those that rest on most approvals.
    offers: Vec<Offer>,
    /// Tools for which no rule is offered, although the caller approves their calls.
    withheld: Vec<Withheld>,
}

/// A tool for which no rule is offered.
#[derive(Serialize, ToSchema)]
pub(crate) struct Withheld {
    /// The tool; none where the reason is the caller's own.
    tool: Option<String>,
    /// The participant that runs it.
    to: Option<String>,
    /// The reason.
    why: String,
}

/// A rule that is offered, with what it rests on.
#[derive(Serialize, ToSchema)]
pub(crate) struct Offer {
    /// The digest of its text. Accepting names it.
    digest: String,
    /// The id and version that it would have.
    rule: String,
    /// All that it says, in English.
    sentence: String,
    /// Its text, as TOML.
    text: String,
    /// Calls that it may approve before its author looks again.
    uses: Option<u32>,
    /// Its end, RFC 3339.
    expires: Option<String>,
    /// The proposals on whose approval it rests.
    approvals: Vec<String>,
    /// The members of the arguments in which these differ.
    differing: Vec<String>,
    /// Their values, those with extremes first; at most 20.
    rows: Vec<OfferRow>,
    /// The number of different rows.
    different: usize,
    /// The rejections that are nearest.
    nearest: Vec<NearestRejection>,
    /// The decisions that it would have made in 90 days, had it had no limits.
    replay: RuleTrial,
    /// Arguments inside of the rule that were never seen, as JSON.
    made_up: Vec<String>,
    /// The steps around each condition.
    steps: Vec<OfferSteps>,
    /// The share of calls inside of the rule that would be approved, in thousandths: a bound, of 95 %
    /// at any time, by the approvals after the rule took its form.
    approved_share_permille: u16,
    /// Decisions that it would have saved a day, in tenths.
    saved_a_day_tenths: u32,
    /// The present version, and what differs, if this is the next version of a rule that is near its
    /// end.
    renews: Option<Renewal>,
}

/// The present version of a rule whose next one is offered, and what differs.
#[derive(Serialize, ToSchema)]
pub(crate) struct Renewal {
    /// The id and version of the present one.
    rule: String,
    /// Why it decides nothing, if it is suspended.
    why: Option<String>,
    /// Calls that it has approved.
    used: u32,
    /// Calls that it may approve yet.
    left: Option<u32>,
    /// Its end, RFC 3339.
    expires: Option<String>,
    /// Calls that it has left to people as spot checks, and that they have decided.
    spot_checks: u32,
    /// The spot checks that were approved as they were proposed.
    spot_checks_agreed: u32,
    /// Calls of the tool that were rejected since it came into force. It covers none of them.
    rejected: u32,
    /// Whether the next version covers the `same`, is `wider`, or `narrower`.
    breadth: String,
    /// The conditions that differ.
    conditions: Vec<RenewedCondition>,
    /// Its uses that are kept, 20 at most; calls that are least like the approvals come first.
    uses: Vec<RenewedUse>,
    /// The number of different calls.
    different: usize,
}

/// A condition of a rule, and of its next version.
#[derive(Serialize, ToSchema)]
pub(crate) struct RenewedCondition {
    /// The member, in words.
    member: String,
    /// The present condition.
    before: String,
    /// The condition of the next version.
    after: String,
}

/// Calls with the same arguments that a rule has approved.
#[derive(Serialize, ToSchema)]
pub(crate) struct RenewedUse {
    /// The latest proposal with these arguments.
    proposal: String,
    /// Their number.
    times: u32,
    /// The arguments, as JSON.
    arguments: String,
}

/// An approved call.
#[derive(Serialize, ToSchema)]
pub(crate) struct OfferRow {
    /// One of the proposals with these values.
    proposal: String,
    /// The number of proposals with these values.
    times: u32,
    /// The values, in the order of the members, as JSON.
    values: Vec<String>,
}

/// A rejected call near a rule.
#[derive(Serialize, ToSchema)]
pub(crate) struct NearestRejection {
    /// The proposal.
    proposal: String,
    /// The conditions that keep it outside of the rule. Without any it lies inside: a rule or an agent
    /// rejected it, which does not count.
    excluded_by: Vec<String>,
}

/// The steps around a condition.
#[derive(Serialize, ToSchema)]
pub(crate) struct OfferSteps {
    /// The member, in words.
    member: String,
    /// The next tighter step.
    tighter: Option<String>,
    /// The condition of the rule.
    chosen: String,
    /// The next wider step, if no rejection lies in it.
    wider: Option<String>,
}

impl OfferList {
    fn of(offers: &RuleOffers) -> Self {
        Self {
            offers: offers.offers.iter().map(Offer::of).collect(),
            withheld: offers.withheld.iter().map(Withheld::of).collect(),
        }
    }
}

impl Withheld {
    fn of(withheld: &WithheldOffer) -> Self {
        let tool = withheld.tool.as_ref();
        Self {
            tool: tool.map(|tool| tool.target.to_string()),
            to: tool.map(|tool| tool.to.to_string()),
            why: withheld.why.clone(),
        }
    }
}

impl Offer {
    fn of(offered: &OfferedRule) -> Self {
        let offer = &offered.offer;
        let rule = &offer.rule;
        let differing = &offer.differing;
        Self {
            digest: offer.digest.to_string(),
            rule: rule.name.to_string(),
            sentence: rule.sentence(),
            text: rule.text(),
            uses: rule.uses,
            expires: rule.expires_ms.map(rfc3339),
            approvals: offer.approvals.iter().map(ToString::to_string).collect(),
            differing: differing.members.iter().map(|one| one.words()).collect(),
            rows: differing.rows.iter().map(OfferRow::of).collect(),
            different: differing.different,
            nearest: offer.nearest.iter().map(NearestRejection::of).collect(),
            replay: RuleTrial::of(&offered.tried),
            made_up: offer.made_up.clone(),
            steps: offer.steps.iter().map(OfferSteps::of).collect(),
            approved_share_permille: offer.approved_share_permille,
            saved_a_day_tenths: offer.saved_a_day_tenths,
            renews: offered.renews.as_ref().map(Renewal::of),
        }
    }
}

impl Renewal {
    fn of(renewed: &RenewedRule) -> Self {
        let changes = &renewed.changes;
        Self {
            rule: renewed.name.to_string(),
            why: renewed.why.clone(),
            used: renewed.used,
            left: renewed.left,
            expires: renewed.expires_ms.map(rfc3339),
            spot_checks: renewed.spots.decided,
            spot_checks_agreed: renewed.spots.agreed,
            rejected: changes.rejections,
            breadth: changes.breadth.as_str().to_owned(),
            conditions: changes.tests.iter().map(RenewedCondition::of).collect(),
            uses: changes.uses.iter().map(RenewedUse::of).collect(),
            different: changes.different,
        }
    }
}

impl RenewedCondition {
    fn of(changed: &ChangedTest) -> Self {
        Self {
            member: changed.member.words(),
            before: changed.before.words(),
            after: changed.after.words(),
        }
    }
}

impl RenewedUse {
    fn of(one: &RuleUse) -> Self {
        Self {
            proposal: one.operation.to_string(),
            times: one.times,
            arguments: one.arguments.text().to_owned(),
        }
    }
}

impl OfferRow {
    fn of(row: &DifferingRow) -> Self {
        Self {
            proposal: row.operation.to_string(),
            times: row.times,
            values: row.values.clone(),
        }
    }
}

impl NearestRejection {
    fn of(near: &NearRejection) -> Self {
        Self {
            proposal: near.operation.to_string(),
            excluded_by: near.excluded_by.clone(),
        }
    }
}

impl OfferSteps {
    fn of(steps: &MemberSteps) -> Self {
        Self {
            member: steps.member.words(),
            tighter: steps.tighter.as_ref().map(|test| test.words()),
            chosen: steps.chosen.words(),
            wider: steps.wider.as_ref().map(|test| test.words()),
        }
    }
}
