//! One proposal: its permanent, printable page.

use maud::html;
use review::ProposalDetails;

use crate::api_client::{Problem, encoded};
use crate::card::{Showing, card};
use crate::editing;
use crate::page::{Content, Tab};
use crate::state::Visit;

/// One proposal of the API.
pub(crate) async fn found(visit: &Visit, id: &str) -> Result<ProposalDetails, Problem> {
    visit
        .api
        .get(&format!("/api/v1/proposals/{}", encoded(id)))
        .await
}

/// `GET /console/p/ID`; with every value in full, or with a form for other arguments.
pub(crate) async fn content(
    visit: &Visit,
    id: &str,
    all: bool,
    edit: bool,
) -> Result<Content, Problem> {
    let proposal = found(visit, id).await?;
    Ok(page_of(
        visit,
        &proposal,
        Showing { all, alone: true },
        edit,
    ))
}

/// The page of a proposal.
pub(crate) fn page_of(
    visit: &Visit,
    proposal: &ProposalDetails,
    showing: Showing,
    edit: bool,
) -> Content {
    let body = html! {
        h1 { "Proposal" }
        div class="cards" {
            @if edit && proposal.is_pending() { (editing::form(visit, proposal)) }
            (card(visit, proposal, showing))
        }
        p class="soft" { "Id " code { (proposal.id) } " · digest " code { (proposal.digest) } }
    };
    Content {
        tab: Tab::Inbox,
        title: "Proposal".to_owned(),
        body,
        command: format!("portmoot proposals show {}", proposal.id),
    }
}
