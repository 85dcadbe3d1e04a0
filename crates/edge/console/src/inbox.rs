//! The inbox: proposals that wait for the person, the one that expires first on top.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::StatusCode;
use html::Hostile;
use maud::{Markup, html};
use review::{PlanDetails, ProposalDetails};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::api_client::{Problem, encoded, too_long};
use crate::arguments::text;
use crate::batch::{self, Groups};
use crate::card::{Showing, address, card_of, state_words};
use crate::nearest::ApprovedCalls;
use crate::page::{Content, Tab};
use crate::proposal;
use crate::state::Visit;
use crate::times;

/// Proposals that the inbox shows as cards. The others are lines with links.
pub const CARDS_MAX: usize = 30;
/// Proposals that a list of lines has.
pub const LINES_MAX: usize = 200;

/// The proposals that have not ended. Those that have can be large by the answers to their calls, and
/// are on a page of their own: so they crowd out nothing that waits.
const OPEN: &str = "/api/v1/proposals?limit=500";
/// The latest proposals, with those that have ended.
const LATEST: &str = "/api/v1/proposals?all=true&latest=true&limit=500";
/// Pages of the API of which a list of the console is made, a little more than a mebibyte each.
pub const LIST_PAGES_MAX: usize = 32;

/// A page of the API.
#[derive(Deserialize)]
struct ProposalPage<'t> {
    #[serde(borrow)]
    proposals: Vec<&'t RawValue>,
    next: Option<String>,
}

impl<'t> ProposalPage<'t> {
    fn read(text: &'t str) -> Result<Self, Problem> {
        serde_json::from_str(text).map_err(|_| unreadable())
    }
}

/// A proposal in a list, without what it asks for.
#[derive(Deserialize)]
struct Listed {
    id: String,
    state: String,
    #[serde(default)]
    failed: bool,
    by: String,
    to: Vec<String>,
    method: String,
    context: Option<String>,
    at: String,
    expires: String,
    decided_by: Option<String>,
    #[serde(default)]
    approved_by: Vec<String>,
    #[serde(default)]
    plan: Option<PlanDetails>,
    #[serde(default)]
    steps: Vec<IgnoredAny>,
}

impl Listed {
    fn is_later_step(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.step > 1)
    }

    fn is_pending(&self) -> bool {
        self.state == "pending" && !self.is_later_step()
    }

    fn waits_for(&self, me: &str) -> bool {
        self.is_pending() && self.by != me && !self.approved_by.iter().any(|one| one == me)
    }
}

/// A proposal of a list, and what the API says of it.
struct Found<'t> {
    listed: Listed,
    raw: &'t RawValue,
}

fn unreadable() -> Problem {
    let why = "the gateway's list of proposals cannot be read";
    Problem::new(StatusCode::BAD_GATEWAY, why)
}

/// The proposals of a list, without later steps of plans: the page of a plan has those.
fn read(list: &[String]) -> Result<Vec<Found<'_>>, Problem> {
    let mut all = Vec::new();
    for page in list {
        for raw in ProposalPage::read(page)?.proposals {
            let listed: Listed = serde_json::from_str(raw.get()).map_err(|_| unreadable())?;
            if !listed.is_later_step() {
                all.push(Found { listed, raw });
            }
        }
    }
    Ok(all)
}

/// The number of proposals that wait for the person.
pub(crate) async fn count(visit: &Visit) -> Result<usize, Problem> {
    let list = answer(visit).await?;
    let me = &visit.session.participant;
    let waiting = read(&list)?.into_iter();
    Ok(waiting.filter(|one| one.listed.waits_for(me)).count())
}

/// The proposals that have not ended, as the API lists them, page after page.
pub(crate) async fn answer(visit: &Visit) -> Result<Vec<String>, Problem> {
    let mut list = Vec::new();
    let mut path = OPEN.to_owned();
    while list.len() < LIST_PAGES_MAX {
        let page = visit.api.text(&path).await?;
        let next = ProposalPage::read(&page)?.next;
        list.push(page);
        let Some(next) = next else {
            return Ok(list);
        };
        path = format!("{OPEN}&after={}", encoded(&next));
    }
    Err(too_long())
}

/// Contents of the inbox.
struct Shown {
    cards: Vec<ProposalDetails>,
    /// Proposals that wait for the person behind the cards.
    further: Vec<Listed>,
    others: Vec<Listed>,
}

/// Chooses the cards of a list: proposers take turns, so that none buries the others. A proposal that
/// the person wants to see in full is among them.
fn chosen(list: &[String], me: &str, in_full: &str) -> Result<Shown, Problem> {
    let mut found = read(list)?;
    found.sort_by(|one, other| one.listed.expires.cmp(&other.listed.expires));
    let (waiting, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|one| one.listed.waits_for(me));
    let mut waiting = in_turns(waiting, in_full);
    let further = waiting.split_off(CARDS_MAX.min(waiting.len()));
    waiting.sort_by(|one, other| one.listed.expires.cmp(&other.listed.expires));
    let details = waiting.iter().map(|one| {
        serde_json::from_str::<ProposalDetails>(one.raw.get()).map_err(|_| unreadable())
    });
    let cards: Vec<ProposalDetails> = details.collect::<Result<_, Problem>>()?;
    Ok(Shown {
        cards,
        further: further.into_iter().map(|one| one.listed).collect(),
        others: others.into_iter().map(|one| one.listed).collect(),
    })
}

/// Proposals in the order in which they get a card: the one that is wanted in full, then the first of
/// each proposer, then the second of each, and so on.
fn in_turns<'t>(waiting: Vec<Found<'t>>, in_full: &str) -> Vec<Found<'t>> {
    let mut turns: HashMap<String, usize> = HashMap::new();
    let mut placed = Vec::with_capacity(waiting.len());
    for one in waiting {
        let turn = turns.entry(one.listed.by.clone()).or_default();
        *turn += 1;
        placed.push(((one.listed.id != in_full, *turn), one));
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, one)| one).collect()
}

/// `GET /console`, of a list of the API.
pub(crate) async fn content(
    visit: &Arc<Visit>,
    list: Vec<String>,
    in_full: &str,
) -> Result<Content, Problem> {
    let (me, wanted) = (visit.session.participant.clone(), in_full.to_owned());
    let mut shown = visit
        .console
        .write(move || chosen(&list, &me, &wanted))
        .await?;
    for card in &mut shown.cards {
        // A list leaves out what is long.
        if !card.in_full {
            *card = proposal::found(visit, &card.id).await?;
        }
    }
    let approved = ApprovedCalls::if_needed(visit, !shown.cards.is_empty()).await?;
    let (writing, wanted) = (Arc::clone(visit), in_full.to_owned());
    let body = visit
        .console
        .write(move || Ok(written(&writing, &shown, &wanted, &approved)))
        .await?;
    proposal::note_shown(visit).await;
    Ok(Content {
        tab: Tab::Inbox,
        title: "Inbox".to_owned(),
        body,
        command: "portmoot proposals ls".to_owned(),
    })
}

fn written(visit: &Visit, shown: &Shown, in_full: &str, approved: &ApprovedCalls) -> Markup {
    let showing = |proposal: &ProposalDetails| Showing {
        all: proposal.id == in_full,
        alone: false,
        acts: true,
    };
    let groups = Groups::of(&shown.cards);
    html! {
        h1 { "Inbox" }
        div id="empty" data-live {
            @if shown.cards.is_empty() {
                div class="empty" data-testid="empty" {
                    p { strong { "Nothing waits for you." } }
                    p { "When an agent asks for a call that it may not make alone, it appears here." }
                }
            }
        }
        div id="cards" class="cards" data-list {
            @for proposal in &shown.cards {
                (card_of(visit, proposal, showing(proposal), approved, groups.form_of(proposal)))
            }
        }
        section id="batch" class="cards" data-live { (batch::forms(visit, &groups)) }
        (list(visit, "More that wait for you", "further", &shown.further))
        (list(visit, "Waiting for others, or running", "others", &shown.others))
        p { a href={ (visit.base) "/past" } { "What was decided before" } }
    }
}

/// `GET /console/past`: proposals that have ended, the latest first.
pub(crate) async fn past(visit: &Arc<Visit>) -> Result<Content, Problem> {
    let list = [visit.api.text(LATEST).await?];
    let writing = Arc::clone(visit);
    let write = move || {
        let found = read(&list)?.into_iter().map(|one| one.listed);
        let mut over: Vec<Listed> = found
            .filter(|one| !matches!(one.state.as_str(), "pending" | "running"))
            .collect();
        over.sort_by(|one, other| other.at.cmp(&one.at));
        Ok(html! {
            h1 { "Before" }
            (list_of(&writing, "Proposals that have ended", "past", &over))
            @if over.is_empty() { p class="empty" { "No proposal has ended yet." } }
        })
    };
    Ok(Content {
        tab: Tab::Inbox,
        title: "Before".to_owned(),
        body: visit.console.write(write).await?,
        command: "portmoot proposals ls --all".to_owned(),
    })
}

/// Proposals, one line each, in a section that follows the stream.
fn list(visit: &Visit, title: &str, id: &str, proposals: &[Listed]) -> Markup {
    html! { section id=(id) data-live { (list_of(visit, title, id, proposals)) } }
}

fn list_of(visit: &Visit, title: &str, id: &str, proposals: &[Listed]) -> Markup {
    let more = proposals.len().saturating_sub(LINES_MAX);
    html! {
        @if !proposals.is_empty() {
            h2 id={ "h-" (id) } { (title) }
            div class="wide" tabindex="0" role="region" aria-labelledby={ "h-" (id) } {
                table class="rows" {
                    thead { tr { th { "Asked" } th { "By" } th { "What" } th { "Server" } th { "State" } th { "By whom" } } }
                    tbody { @for one in proposals.iter().take(LINES_MAX) { (line(visit, one)) } }
                }
            }
            @if more > 0 { p { (more) " more are not listed here." } }
        }
    }
}

fn line(visit: &Visit, one: &Listed) -> Markup {
    let what = one.context.as_deref().unwrap_or(&one.method);
    html! {
        tr {
            td { (times::clock(&one.at)) }
            td { (Hostile(&one.by)) }
            td {
                a href=(address(visit, &one.id)) {
                    @if one.steps.is_empty() { (text(what)) } @else { "a plan of " (one.steps.len()) " steps" }
                }
            }
            td { (Hostile(&one.to.join(", "))) }
            td { (state_words(&one.state, one.failed && one.state == "completed")) }
            td { (Hostile(one.decided_by.as_deref().unwrap_or_default())) }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::routes::tests_support::proposal;

    fn shown(proposals: &[Value], in_full: &str) -> (Vec<String>, usize) {
        let list = json!({ "proposals": proposals }).to_string();
        let shown = chosen(&[list], "ann", in_full).unwrap();
        let cards = shown.cards.into_iter().map(|one| one.id).collect();
        (cards, shown.further.len())
    }

    #[test]
    fn proposers_take_turns_and_the_rest_are_lines() {
        let of = |id: String, by: &str, second: usize| {
            let expires = format!("2099-01-01T00:00:{second:02}.000Z");
            proposal(&id, &json!({ "by": by, "expires": expires }))
        };
        let flood = (0..50).map(|at| of(format!("f{at:02}"), "scout", at));
        let mut all: Vec<Value> = flood.collect();
        all.push(of("late".to_owned(), "worker", 59));
        let (cards, further) = shown(&all, "");
        assert_eq!((cards.len(), further), (CARDS_MAX, 21));
        assert_eq!(cards.first().unwrap(), "f00", "the one that expires first");
        assert_eq!(cards.last().unwrap(), "late", "none is buried");
        let (cards, _) = shown(&all, "f49");
        assert!(cards.contains(&"f49".to_owned()), "it is wanted in full");
    }

    #[test]
    fn a_list_that_cannot_be_read_is_no_empty_one() {
        let is_read = |list: &str| chosen(&[list.to_owned()], "ann", "").is_ok();
        assert!(!is_read("{"));
        assert!(!is_read(r#"{"proposals":[{}]}"#));
        assert!(is_read(r#"{"proposals":[]}"#));
    }
}
