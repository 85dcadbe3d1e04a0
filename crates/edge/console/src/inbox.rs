//! The inbox: proposals that wait for the person, the one that expires first on top.

use html::Hostile;
use maud::{Markup, html};
use review::ProposalDetails;
use serde::Deserialize;

use crate::api_client::Problem;
use crate::arguments::text;
use crate::card::{Showing, address, card};
use crate::page::{Content, Tab};
use crate::state::Visit;
use crate::times;

/// Proposals that the inbox shows as cards; the rest wait until these are decided.
const CARDS_MAX: usize = 50;
/// Proposals that have ended, in the list below.
const PAST_MAX: usize = 10;

#[derive(Deserialize)]
struct ProposalList {
    proposals: Vec<ProposalDetails>,
}

/// Proposals of the person's topics; those that have ended too.
async fn all(visit: &Visit, query: &str) -> Result<Vec<ProposalDetails>, Problem> {
    let path = format!("/api/v1/proposals{query}");
    let list: ProposalList = visit.api.get(&path).await?;
    Ok(list.proposals)
}

/// The number of proposals that wait for the person.
pub(crate) async fn count(visit: &Visit) -> usize {
    let found = all(visit, "").await.unwrap_or_default();
    found.iter().filter(|one| waits_for(visit, one)).count()
}

fn waits_for(visit: &Visit, proposal: &ProposalDetails) -> bool {
    let me = &visit.session.participant;
    proposal.is_pending() && proposal.by != *me && !proposal.approved_by.contains(me)
}

/// `GET /console`.
pub(crate) async fn content(visit: &Visit, in_full: &str) -> Result<Content, Problem> {
    let mut found = all(visit, "?all=true&shown=true").await?;
    // The page of a plan has its later steps.
    found.retain(|one| !one.is_later_step());
    found.sort_by(|one, other| one.expires.cmp(&other.expires));
    let (pending, mut over): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| one.is_pending());
    let (waiting, others): (Vec<_>, Vec<_>) =
        pending.into_iter().partition(|one| waits_for(visit, one));
    over.sort_by(|one, other| other.at.cmp(&one.at));
    over.truncate(PAST_MAX);
    let body = html! {
        h1 { "Inbox" }
        div id="empty" data-live {
            @if waiting.is_empty() {
                div class="empty" data-testid="empty" {
                    p { strong { "Nothing waits for you." } }
                    p { "When an agent asks for a call that it may not make alone, it appears here." }
                }
            }
        }
        div id="cards" class="cards" data-list {
            @for proposal in waiting.iter().take(CARDS_MAX) {
                (card(visit, proposal, Showing { all: proposal.id == in_full, alone: false }))
            }
        }
        div id="further" data-live {
            @if waiting.len() > CARDS_MAX { p { (waiting.len() - CARDS_MAX) " more wait behind these." } }
        }
        (list(visit, "Waiting for others", "others", &others))
        (list(visit, "Before", "past", &over))
    };
    Ok(Content {
        tab: Tab::Inbox,
        title: "Inbox".to_owned(),
        body,
        command: "portmoot proposals ls".to_owned(),
    })
}

/// Proposals, one line each.
fn list(visit: &Visit, title: &str, id: &str, proposals: &[ProposalDetails]) -> Markup {
    html! {
        section id=(id) data-live {
            @if !proposals.is_empty() {
                h2 { (title) }
                div class="wide" {
                    table class="rows" {
                        thead { tr { th { "Asked" } th { "By" } th { "What" } th { "At" } th { "State" } th { "By whom" } } }
                        tbody { @for one in proposals { (line(visit, one)) } }
                    }
                }
            }
        }
    }
}

fn line(visit: &Visit, one: &ProposalDetails) -> Markup {
    html! {
        tr {
            td { (times::clock(&one.at)) }
            td { (Hostile(&one.by)) }
            td {
                a href=(address(visit, &one.id)) {
                    @if one.steps.is_empty() { (text(one.what())) } @else { "a plan of " (one.steps.len()) " steps" }
                }
            }
            td { (Hostile(&one.to.join(", "))) }
            td { (Hostile(&one.state)) }
            td { (Hostile(one.decided_by.as_deref().unwrap_or_default())) }
        }
    }
}
