//! Lists of proposals, in pages: `GET /api/v1/proposals`.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use auth::Participant;
use axum::Json;
use axum::extract::{Query, State};
use gateway::proposals::decide::unknown_proposal;
use gateway::{Dispatch, ProposalView};
use model::{OperationId, Refusal, RefusalCode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{ApiResult, Problem};
use crate::proposals::{ListedProposal, Proposal};
use crate::state::{Api, Caller};

/// Proposals of one page, without a `limit`.
const LISTED_PROPOSALS: usize = 100;
/// Most proposals of one page.
pub(crate) const LISTED_PROPOSALS_MAX: usize = 500;
/// Bytes of proposals that end a page: no other follows on it.
pub(crate) const LIST_BYTES_MAX: usize = 1024 * 1024;
/// The longest part of a proposal that a list has, in bytes, unless the list is shown to a person.
pub(crate) const LISTED_PART_BYTES_MAX: usize = 8 * 1024;

/// The proposals that the caller may see, in pages: its own, and those whose request it could make.
///
/// With `all=true` including those that have ended. With `shown=true` the client shows them to a
/// person in full: rules are learned only from decisions about what was shown for a while. Without
/// it, params, definitions and answers longer than 8 KiB are left out, and `in_full` is false.
///
/// With `latest=true` those of all topics together, the latest first; else by topic, in the order in
/// which they were made. A page has at most `limit` proposals, and ends earlier after a mebibyte. `after` is the `next`
/// of the page before.
#[utoipa::path(
    get,
    path = "/api/v1/proposals",
    params(("topic" = Option<String>, Query), ("all" = Option<bool>, Query),
        ("shown" = Option<bool>, Query), ("latest" = Option<bool>, Query),
        ("limit" = Option<usize>, Query, description = "From 1 to 500; without it 100."),
        ("after" = Option<String>, Query, description = "The id of a proposal: the page begins behind it.")),
    responses((status = 200, body = ProposalList), (status = "4XX", body = Problem))
)]
pub(crate) async fn proposals(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(query): Query<HashMap<String, String>>,
) -> ApiResult<Json<ProposalList>> {
    let wanted = WantedProposals::read(&query)?;
    let mut page = ProposalList::default();
    let mut bytes = 0;
    for seen in wanted.find(&api.registry.topics_of(&caller))? {
        if page.proposals.len() == wanted.limit || bytes >= LIST_BYTES_MAX {
            page.next = page.proposals.last().map(|last| last.id.clone());
            break;
        }
        let Seen {
            dispatch,
            caller,
            view,
        } = &seen;
        let listed = ListedProposal::of(dispatch, caller, view, wanted.part_bytes_max());
        bytes += listed.written_bytes;
        page.proposals.push(listed.proposal);
        if wanted.shown {
            dispatch.note_shown(&caller.id, &caller.capabilities, &[view]);
        }
    }
    Ok(Json(page))
}

/// A proposal of a topic that the caller may see.
struct Seen<'t> {
    dispatch: &'t Dispatch,
    caller: &'t Participant,
    view: ProposalView,
}

/// The proposals that a request asks for.
struct WantedProposals<'q> {
    topic: Option<&'q str>,
    all: bool,
    shown: bool,
    latest: bool,
    limit: usize,
    after: Option<OperationId>,
}

impl<'q> WantedProposals<'q> {
    fn read(query: &'q HashMap<String, String>) -> Result<Self, Refusal> {
        let is_set = |key: &str| query.get(key).is_some_and(|value| value == "true");
        let limit = query.get("limit").map(|limit| limit.parse::<usize>());
        let limit = limit.transpose().ok().filter(|limit| *limit != Some(0));
        let limit = limit.ok_or_else(|| {
            let why = format!("`limit` is a number from 1 to {LISTED_PROPOSALS_MAX}");
            Refusal::new(RefusalCode::Malformed, why)
        })?;
        let after = query.get("after").map(|after| after.parse::<OperationId>());
        Ok(Self {
            topic: query.get("topic").map(String::as_str),
            all: is_set("all"),
            shown: is_set("shown"),
            latest: is_set("latest"),
            limit: limit.unwrap_or(LISTED_PROPOSALS).min(LISTED_PROPOSALS_MAX),
            after: after.transpose().map_err(|_| unknown_proposal())?,
        })
    }

    /// These proposals in their order, from `after` on. A proposal that is over since the page before
    /// is the place where this one begins all the same.
    fn find<'t>(
        &self,
        topics: &'t [(Arc<Dispatch>, Arc<Participant>)],
    ) -> Result<Vec<Seen<'t>>, Refusal> {
        let mut found = Vec::new();
        for (dispatch, caller) in topics {
            if self
                .topic
                .is_none_or(|topic| topic == dispatch.name().as_str())
            {
                let all = self.all || self.after.is_some();
                let views =
                    dispatch.with(|topic| topic.proposals(&caller.id, &caller.capabilities, all));
                found.extend(views.into_iter().map(|view| Seen {
                    dispatch,
                    caller,
                    view,
                }));
            }
        }
        if self.latest {
            found.sort_by_key(|seen| Reverse(seen.view.content.opened.at_ms));
        }
        if let Some(after) = self.after {
            let at = found.iter().position(|seen| seen.view.id == after);
            found.drain(..=at.ok_or_else(unknown_proposal)?);
        }
        found.retain(|seen| self.all || !seen.view.state.is_over());
        Ok(found)
    }

    /// The longest part of a proposal: what a person is shown is shown in full.
    fn part_bytes_max(&self) -> usize {
        if self.shown {
            usize::MAX
        } else {
            LISTED_PART_BYTES_MAX
        }
    }
}

/// A page of proposals.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct ProposalList {
    /// In the order that was asked for.
    pub proposals: Vec<Proposal>,
    /// The `after` of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
