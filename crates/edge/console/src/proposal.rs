//! One proposal: its permanent, printable page.

use std::sync::Arc;

use axum::http::StatusCode;
use maud::html;
use review::ProposalDetails;
use serde::Deserialize;

use crate::api_client::{Problem, encoded};
use crate::card::{Showing, card};
use crate::editing;
use crate::log_rows::call_address;
use crate::nearest::ApprovedCalls;
use crate::page::{Content, Tab};
use crate::state::Visit;

fn path(id: &str) -> String {
    format!("/api/v1/proposals/{}", encoded(id))
}

/// One proposal, as the API returns it. A page that shows it in full says so by [`note_shown`].
pub(crate) async fn answer(visit: &Visit, id: &str) -> Result<String, Problem> {
    visit.api.text(&(path(id) + "?shown=false")).await
}

fn read(answer: &str) -> Result<ProposalDetails, Problem> {
    serde_json::from_str(answer).map_err(|_| {
        let why = "the gateway's answer cannot be read";
        Problem::new(StatusCode::BAD_GATEWAY, why)
    })
}

/// Whether a proposal waits for a decision, as the API returned it.
fn is_pending(answer: &str) -> bool {
    #[derive(Deserialize)]
    struct Standing {
        state: String,
    }
    serde_json::from_str::<Standing>(answer).is_ok_and(|one| one.state == "pending")
}

/// One proposal of the API.
pub(crate) async fn found(visit: &Visit, id: &str) -> Result<ProposalDetails, Problem> {
    read(&answer(visit, id).await?)
}

/// Lets the API know which proposals the person was shown in full: rules are learned from decisions
/// about those alone.
pub(crate) async fn note_shown(visit: &Visit) {
    for id in visit.session.newly_shown() {
        let _ = visit.api.text(&path(&id)).await;
    }
}

/// `GET /console/p/ID`, of an answer of the API; with every value in full, or with a form for other
/// arguments in place of a decision.
pub(crate) async fn content(
    visit: &Arc<Visit>,
    answer: String,
    all: bool,
    edit: bool,
) -> Result<Content, Problem> {
    let approved = ApprovedCalls::if_needed(visit, is_pending(&answer)).await?;
    let writing = Arc::clone(visit);
    let showing = Showing {
        all,
        alone: true,
        acts: true,
    };
    let write = move || Ok(page_of(&writing, &read(&answer)?, showing, edit, &approved));
    let content = visit.console.write(write).await?;
    note_shown(visit).await;
    Ok(content)
}

/// The page of a proposal.
fn page_of(
    visit: &Visit,
    proposal: &ProposalDetails,
    showing: Showing,
    edit: bool,
    approved: &ApprovedCalls,
) -> Content {
    let is_edited = edit && proposal.is_pending();
    let showing = Showing {
        acts: !is_edited,
        ..showing
    };
    let body = html! {
        h1 { "Proposal" }
        div class="cards" {
            @if is_edited { (editing::form(visit, proposal)) }
            (card(visit, proposal, showing, approved))
        }
        p class="soft" { "Id " code { (proposal.id) } " · digest " code { (proposal.digest) } " · " a href=(call_address(visit, &proposal.id, "")) { "all that happened" } }
    };
    Content {
        tab: Tab::Inbox,
        title: "Proposal".to_owned(),
        body,
        command: format!("portmoot proposals show {}", proposal.id),
    }
}
