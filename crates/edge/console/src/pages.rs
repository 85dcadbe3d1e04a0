//! The content of each page, by its address.

use crate::api_client::Problem;
use crate::outcome::no_page;
use crate::page::Content;
use crate::state::{At, Visit};
use crate::{inbox, overview, people, proposal, rules, servers, tools};

/// The content of a page.
pub(crate) async fn content(visit: &Visit, at: &At) -> Result<Content, Problem> {
    match at {
        At::Inbox { all } => inbox::content(visit, all).await,
        At::Proposal { id, all, edit } => proposal::content(visit, id, *all, *edit).await,
        At::Overview => overview::content(visit).await,
        At::People { topic } => people::content(visit, topic).await,
        At::Servers => servers::content(visit).await,
        At::Server { name } => servers::one(visit, name).await,
        At::Tools { query } => tools::content(visit, query).await,
        At::Tool { name } => tools::one(visit, name, None).await,
        At::Rules { topic } => rules::content(visit, topic).await,
        At::Unknown => Err(no_page()),
    }
}
