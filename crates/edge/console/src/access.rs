//! Access: who may come in, who is here, what was changed, which tokens were issued, and the person's own
//! sessions.

use std::collections::HashSet;

use html::Hostile;
use maud::{Markup, html};
use serde::Deserialize;
use wire::time::rfc3339;

use crate::api_client::{Problem, encoded};
use crate::inbox::LINES_MAX;
use crate::own_sessions;
use crate::page::{Content, Tab};
use crate::people::{self, Grant, Participant};
use crate::state::Visit;
use crate::times;

#[derive(Deserialize)]
struct TokenList {
    tokens: Vec<IssuedToken>,
}

/// An issued token as the API shows it: without its secret.
#[derive(Deserialize)]
pub(crate) struct IssuedToken {
    /// The participant as which its bearer connects.
    pub(crate) name: String,
    capabilities: Option<Vec<String>>,
    topics: Option<Vec<String>>,
    configured: bool,
    created_ms: u64,
    expires_ms: Option<u64>,
}

/// The issued tokens.
pub(crate) async fn issued(visit: &Visit) -> Result<Vec<IssuedToken>, Problem> {
    let list: TokenList = visit.api.get("/api/v1/tokens").await?;
    Ok(list.tokens)
}

/// `GET /console/access`.
pub(crate) async fn content(visit: &Visit) -> Result<Content, Problem> {
    let all = people::all(visit, "").await?;
    let issued = issued(visit).await;
    let own_sessions = own_sessions::section(visit).await;
    let body = html! {
        h1 { "Access" }
        div id="participants" data-live class="wide" tabindex="0" role="region" aria-label="Participants" { (table(visit, &all)) }
        (left_out(all.len()))
        section id="changes" data-live { (changes(visit, &all)) }
        (own_sessions)
        section id="tokens" data-live {
            h2 { "Issued tokens" }
            @match &issued {
                Ok(issued) => { (tokens(visit, &issued.iter().collect::<Vec<_>>())) }
                Err(why) => { (refused(why)) }
            }
            p class="soft" { "At a terminal: " code { "portmoot token ls" } }
        }
    };
    Ok(Content {
        tab: Tab::Access,
        title: "Access".to_owned(),
        body,
        command: "portmoot participants ls".to_owned(),
    })
}

/// A refusal of the API in a part of a page whose other parts are shown.
pub(crate) fn refused(why: &Problem) -> Markup {
    html! {
        p class="soft" data-testid="refused" { (Hostile(&why.message)) @if let Some(hint) = &why.hint { ": " (Hostile(hint)) } }
    }
}

/// Changes of capabilities, of all participants.
fn changes(visit: &Visit, all: &[Participant]) -> Markup {
    let mut seen = HashSet::new();
    let mut changes: Vec<(&str, &Grant)> = all.iter().flat_map(grants_of).collect();
    // One for all topics is in the entry of each.
    changes.retain(|change| seen.insert(*change));
    html! {
        h2 { "Changes of capabilities" }
        @if changes.is_empty() { p { "None that you may know of: each has what it is configured or issued with." } }
        @else {
            div class="wide" tabindex="0" role="region" aria-label="Changes of capabilities" {
                table class="rows" {
                    thead { tr { th { "Of" } th { "Capability" } th { "Was" } th { "In" } th { "By" } th { "Since" } th { "Until" } th { "Why" } } }
                    tbody { @for (who, grant) in changes.iter().take(LINES_MAX) { (change(visit, who, grant)) } }
                }
            }
            (left_out(changes.len()))
        }
    }
}

/// The changes of one participant, each with its name.
fn grants_of(one: &Participant) -> impl Iterator<Item = (&str, &Grant)> {
    one.grants.iter().map(|grant| (&*one.id, grant))
}

fn change(visit: &Visit, who: &str, grant: &Grant) -> Markup {
    html! {
        tr data-testid="grant" {
            td { (link(visit, who)) }
            (cells(grant))
        }
    }
}

/// The cells of a change of a capability: what, where, by whom, since when, until when, and why.
pub(crate) fn cells(grant: &Grant) -> Markup {
    html! {
        td { code { (Hostile(&grant.capability)) } }
        td { (if grant.given { "given" } else { "taken" }) }
        td { @if let Some(topic) = &grant.topic { (Hostile(topic)) } @else { "all topics" } }
        td { (Hostile(&grant.by)) }
        td { (times::day(&grant.at)) }
        td { @if let Some(end) = &grant.expires { (times::day(end)) } @else { "without an end" } }
        td { (Hostile(grant.reason.as_deref().unwrap_or_default())) }
    }
}

fn left_out(count: usize) -> Markup {
    html! {
        @if count > LINES_MAX { p class="soft" { (count - LINES_MAX) " more are not listed here." } }
    }
}

fn table(visit: &Visit, all: &[Participant]) -> Markup {
    html! {
        table class="rows" {
            thead { tr { th { "Participant" } th { "Kind" } th { "Topic" } th { "Here" } th { "Programs" } th { "May" } th { "Changed" } } }
            tbody {
                @for one in all.iter().take(LINES_MAX) {
                    tr data-testid="participant" {
                        td { (link(visit, &one.id)) }
                        td { (Hostile(&one.role)) }
                        td { (Hostile(&one.topic)) }
                        td { (here(one)) }
                        td { (Hostile(&one.clients.join(", "))) }
                        td { (people::rights(&one.capabilities)) }
                        td { @if !one.grants.is_empty() { (one.grants.len()) " capabilities" } }
                    }
                }
            }
        }
    }
}

/// The way to the page of a participant.
pub(crate) fn link(visit: &Visit, id: &str) -> Markup {
    html! { a class="who" href={ (visit.base) "/access/" (encoded(id)) } { (Hostile(id)) } }
}

/// Whether a participant is here, and with how many connections.
fn here(one: &Participant) -> Markup {
    html! {
        @match one.links {
            0 => { "no" }
            1 => { "yes" }
            links => { "yes, " (links) " connections" }
        }
        @if one.is_paused() { " " span class="mark care" { "paused" } }
    }
}

/// Issued tokens, one line each.
pub(crate) fn tokens(visit: &Visit, issued: &[&IssuedToken]) -> Markup {
    html! {
        @if issued.is_empty() { p { "No token is issued." } }
        @else {
            div class="wide" tabindex="0" role="region" aria-label="Issued tokens" {
                table class="rows" {
                    thead { tr { th { "Of" } th { "Issued" } th { "Ends" } th { "Issued for" } th { "Topics" } } }
                    tbody {
                        @for one in issued.iter().take(LINES_MAX) {
                            tr data-testid="token" {
                                td { (link(visit, &one.name)) }
                                td { (times::day(&rfc3339(one.created_ms))) }
                                td { @if let Some(end) = one.expires_ms { (times::day(&rfc3339(end))) } @else { "never" } }
                                td { (issued_for(one)) }
                                td { (Hostile(&one.topics.as_deref().unwrap_or_default().join(", "))) }
                            }
                        }
                    }
                }
            }
            (left_out(issued.len()))
        }
    }
}

/// The capabilities with which a token was issued, or what counts in their place.
fn issued_for(one: &IssuedToken) -> Markup {
    html! {
        @match &one.capabilities {
            Some(capabilities) => { (people::rights(capabilities)) }
            None if one.configured => { "what the configuration says" }
            None => { "the defaults" }
        }
    }
}
