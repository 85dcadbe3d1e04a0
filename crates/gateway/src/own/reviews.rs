//! What a reviewing model does: it looks at proposals, lets them run, or says no. The same rules as everywhere
//! (`pump::decide`). Must not know how a result is written.

use std::sync::Arc;

use auth::Participant;
use model::{OperationId, ProposalState, Refusal, RefusalCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wire::mcp::Params;
use wire::time::rfc3339;

use super::{arguments, shown};
use crate::caller::Caller;
use crate::desk::{Case, unknown_proposal};
use crate::pump::{Choice, Pump, digest};

/// Proposals of one page, if not said otherwise.
const LISTED: usize = 20;
/// Proposals of one page.
pub const LISTED_MAX: usize = 100;
/// Bytes of a proposal's params and tool up to which a list shows it in full.
pub const LISTED_BYTES_MAX: usize = 8 * 1024;
/// Bytes of an answer up to which it is shown in full.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    all: bool,
    after: Option<String>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Show {
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Approve {
    id: String,
    digest: String,
    arguments: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reject {
    /// The room knows it as `proposal`.
    #[serde(alias = "proposal")]
    id: String,
    reason: Option<String>,
}

/// A page of proposals.
#[derive(Serialize)]
pub(super) struct Page {
    proposals: Vec<Sheet>,
    more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// One proposal as a model sees it.
#[derive(Serialize)]
pub(super) struct Sheet {
    id: String,
    state: &'static str,
    by: String,
    to: Vec<String>,
    method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    own: bool,
    may_decide: bool,
    /// Whether everything is here that a decision is bound to.
    in_full: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    at: String,
    expires: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edited: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer_begins: Option<String>,
}

/// What became of a decision.
#[derive(Serialize)]
pub(super) struct Decided {
    id: String,
    state: &'static str,
    said: &'static str,
}

/// What waits, and if wished what is over.
pub(super) fn list(pump: &Pump, caller: &Caller, params: &Params<'_>) -> Result<Page, Refusal> {
    let asked: List = arguments::read(params)?;
    let who = now(pump, caller);
    let ids = pump.proposals(&who, asked.all, |id, _| id);
    let begin = match &asked.after {
        None => 0,
        Some(after) => {
            let last = find(pump, &who, after)?;
            // One that is over since is not among them any more: what came after it is.
            ids.iter().position(|id| *id == last).map_or_else(|| younger(pump, &ids, last), |at| at + 1)
        }
    };
    let limit = asked.limit.unwrap_or(LISTED).clamp(1, LISTED_MAX);
    let shown = ids.iter().skip(begin).take(limit);
    let proposals: Vec<Sheet> = shown.filter_map(|id| sheet(pump, &who, *id, false)).collect();
    let more = ids.len() > begin.saturating_add(limit);
    let next =
        ids.get(begin.saturating_add(limit).saturating_sub(1)).filter(|_| more).map(ToString::to_string);
    Ok(Page { proposals, more, next })
}

/// Where in this order the proposals begin that were made after this one.
fn younger(pump: &Pump, ids: &[OperationId], last: OperationId) -> usize {
    let made = |id: OperationId| pump.case(id, |case| (case.opened.at_ms, id));
    let last = made(last);
    ids.iter().position(|id| made(*id) > last).unwrap_or(ids.len())
}

/// One of them, in full.
pub(super) fn show(pump: &Pump, caller: &Caller, params: &Params<'_>) -> Result<Sheet, Refusal> {
    let asked: Show = arguments::read(params)?;
    let who = now(pump, caller);
    let id = find(pump, &who, &asked.id)?;
    sheet(pump, &who, id, true).ok_or_else(unknown_proposal)
}

/// Lets another's proposal run.
pub(super) async fn approve(
    pump: &Arc<Pump>,
    caller: &Caller,
    params: &Params<'_>,
) -> Result<Decided, Refusal> {
    let asked: Approve = arguments::read(params)?;
    let arguments = asked.arguments.map(|raw| raw.get().to_owned());
    let choice = Choice::Approve { digest: digest(&asked.digest)?, arguments };
    let said = "It is approved and runs once, on your authority; its proposer gets the answer, and show_proposal shows it.";
    decide(pump, caller, &asked.id, choice, said).await
}

/// Says no to it.
pub(super) async fn reject(
    pump: &Arc<Pump>,
    caller: &Caller,
    params: &Params<'_>,
) -> Result<Decided, Refusal> {
    let asked: Reject = arguments::read(params)?;
    let choice = Choice::Reject { reason: asked.reason.filter(|reason| !reason.is_empty()) };
    decide(pump, caller, &asked.id, choice, "The proposal is rejected, and its proposer is told.").await
}

async fn decide(
    pump: &Arc<Pump>,
    caller: &Caller,
    id: &str,
    choice: Choice,
    said: &'static str,
) -> Result<Decided, Refusal> {
    let who = now(pump, caller);
    let id = named(pump, id).ok_or_else(unknown)?;
    // Whether it may be seen is found out there: once it is on disk, and with a record.
    let decided = pump.decide(&who, id, choice).await;
    decided.map_err(|no| if no.code == RefusalCode::UnknownTarget { unknown() } else { no })?;
    let state = pump.case(id, |case| case.state).unwrap_or(ProposalState::Pending);
    Ok(Decided { id: id.to_string(), state: state.as_str(), said })
}

/// The caller with what it may do at this moment.
fn now(pump: &Pump, caller: &Caller) -> Participant {
    let who = caller.participant();
    Participant { capabilities: pump.capabilities_of(&who.id), ..Participant::clone(who) }
}

/// The proposal of this id that somebody may see.
fn find(pump: &Pump, who: &Participant, text: &str) -> Result<OperationId, Refusal> {
    named(pump, text).filter(|id| pump.shows(*id, who)).ok_or_else(unknown)
}

/// The proposal of this id. An envelope's id is looked up only where it is no proposal's: its sender chose it.
fn named(pump: &Pump, text: &str) -> Option<OperationId> {
    let own = text.parse::<OperationId>().ok().filter(|id| pump.case(*id, |_| ()).is_some());
    own.or_else(|| pump.proposal_of(text))
}

fn unknown() -> Refusal {
    unknown_proposal().hint("list_proposals shows those that you may see")
}

fn sheet(pump: &Pump, who: &Participant, id: OperationId, whole: bool) -> Option<Sheet> {
    let could = pump.with(|topic| topic.could_decide(id, &who.id, &who.capabilities));
    let text = |text: &String| shown::text(text);
    pump.case(id, |case: &Case| {
        let opened = &case.opened;
        let len = |part: &Option<String>| part.as_ref().map_or(0, String::len);
        let in_full = whole || len(&opened.params) + len(&opened.tool) <= LISTED_BYTES_MAX;
        let raw = |part: Option<&str>| part.filter(|_| in_full).and_then(shown::raw);
        let decided = case.decided.as_ref();
        let answer =
            case.answer.as_ref().and_then(|answer| std::str::from_utf8(answer).ok()).filter(|_| whole);
        let (short, long) =
            (|text: &&str| text.len() <= ANSWER_BYTES_MAX, |text: &&str| text.len() > ANSWER_BYTES_MAX);
        Sheet {
            id: id.to_string(),
            state: case.state.as_str(),
            by: text(&opened.by),
            to: opened.to.iter().map(text).collect(),
            method: text(&opened.method),
            target: opened.context.as_ref().map(text),
            own: opened.by == who.id.as_str(),
            may_decide: could && case.state == ProposalState::Pending,
            in_full,
            params: raw(opened.params.as_deref()),
            tool: raw(opened.tool.as_deref()),
            digest: in_full.then(|| opened.digest.clone()),
            at: rfc3339(opened.at_ms),
            expires: rfc3339(opened.expires_ms),
            decided_by: decided.map(|decided| text(&decided.by)),
            edited: decided.and_then(|decided| raw(decided.params.as_deref())),
            reason: case.reason.as_ref().map(text),
            answer: answer.filter(short).and_then(shown::raw),
            answer_begins: answer.filter(long).map(|long| shown::beginning(long, ANSWER_BYTES_MAX)),
        }
    })
}
