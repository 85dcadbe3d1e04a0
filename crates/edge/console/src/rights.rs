//! One participant: what it may do, propose and not do; its tokens; changes of its capabilities.

use axum::http::StatusCode;
use html::Hostile;
use html::parts::hidden;
use json::visible::escaped;
use maud::{Markup, html};
use model::{Capability, KindRef};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::{IssuedToken, cells, issued, refused, tokens};
use crate::api_client::{Problem, encoded};
use crate::arguments::text;
use crate::confirm::{self, Question};
use crate::outcome::Outcome;
use crate::page::{Content, Tab, command};
use crate::people::{self, Grant, Participant};
use crate::proof;
use crate::state::{At, Visit, decoded};

/// The most entries of servers that a page has of what a participant may do, and of what it may not.
pub const RIGHTS_SHOWN_MAX: usize = 200;
/// The longest reason, in characters.
const REASON_CHARS_MAX: usize = 1_000;
/// The span without an end.
const NO_END: &str = "never";
/// Times for which the page offers to give a capability, in seconds and in words; none is for ever.
const SPANS: [(&str, &str); 6] = [
    ("900", "15 minutes"),
    ("3600", "an hour"),
    ("28800", "8 hours"),
    ("86400", "a day"),
    ("604800", "7 days"),
    (NO_END, "without an end"),
];
/// The span that is chosen at first.
const FIRST_SPAN: &str = "3600";

/// What a participant may do, as the API shows it.
#[derive(Deserialize)]
pub(crate) struct Rights {
    wires: Vec<String>,
    topics: Vec<TopicRights>,
    pub(crate) entries: Vec<Right>,
}

#[derive(Deserialize)]
struct TopicRights {
    topic: String,
    capabilities: Vec<String>,
    shadow: Option<Shadow>,
}

#[derive(Deserialize)]
struct Shadow {
    words: String,
}

/// The right to one tool, prompt or resource.
#[derive(Deserialize)]
pub(crate) struct Right {
    topic: String,
    pub(crate) server: String,
    pub(crate) method: String,
    pub(crate) name: String,
    pub(crate) own: String,
    pub(crate) rules: Option<String>,
    pub(crate) mcp: Option<Admitted>,
    pub(crate) ws: Option<Admitted>,
}

/// An act that is admitted, and the capability that says so.
#[derive(Deserialize)]
pub(crate) struct Admitted {
    verdict: String,
    capability: String,
}

impl Rights {
    /// Whether its capabilities admit an act of this kind in some topic, wherever it is for.
    pub(crate) fn admits(&self, kind: &str) -> bool {
        let mut held = self.topics.iter().flat_map(|topic| &topic.capabilities);
        KindRef::parse(kind).is_ok_and(|kind| {
            held.any(|text| Capability::parse(text).is_ok_and(|one| one.admits(kind)))
        })
    }
}

impl Right {
    /// Whether it has this verdict on some wire.
    pub(crate) fn is(&self, verdict: &str) -> bool {
        let wires = [&self.mcp, &self.ws];
        wires
            .into_iter()
            .flatten()
            .any(|way| way.verdict == verdict)
    }

    fn is_none(&self) -> bool {
        self.mcp.is_none() && self.ws.is_none()
    }
}

/// What a participant may do, in all topics or in one.
pub(crate) async fn can(visit: &Visit, id: &str, topic: &str) -> Result<Rights, Problem> {
    let query = match topic {
        "" => String::new(),
        topic => format!("?topic={}", encoded(topic)),
    };
    let path = format!("/api/v1/participants/{}/can{query}", encoded(id));
    visit.api.get(&path).await
}

/// `GET /console/access/NAME`. Each part has the API's refusal in its place if the person may not see it.
pub(crate) async fn content(visit: &Visit, name: &str, topic: &str) -> Result<Content, Problem> {
    let can = can(visit, name, topic).await;
    let issued = issued(visit).await;
    let mut entries = people::all(visit, topic).await?;
    entries.retain(|one| one.id == name);
    let body = html! {
        h1 { "Participant " (Hostile(name)) }
        @match &can {
            Ok(rights) => { (topics(visit, name, topic, rights)) (held(rights)) (acts(rights)) }
            Err(why) => { (refused(why)) }
        }
        h2 { "Its issued tokens" }
        @match &issued {
            Ok(issued) => { (tokens_of(visit, name, issued)) }
            Err(why) => { (refused(why)) }
        }
        (changes(visit, name, &entries))
    };
    Ok(Content {
        tab: Tab::Access,
        title: "Participant".to_owned(),
        body,
        command: command("portmoot participants can", name),
    })
}

/// The choice of one topic.
fn topics(visit: &Visit, name: &str, chosen: &str, rights: &Rights) -> Markup {
    let at = |topic: &str| {
        let at = At::Rights {
            name: name.to_owned(),
            topic: topic.to_owned(),
        };
        format!("{}{}", visit.base, at.address())
    };
    html! {
        @if !chosen.is_empty() || rights.topics.len() > 1 {
            nav class="choice" aria-label="Topics" {
                a href=(at("")) aria-current=[chosen.is_empty().then_some("true")] { "All topics" }
                @for one in &rights.topics {
                    a href=(at(&one.topic)) aria-current=[(one.topic == chosen).then_some("true")] { (Hostile(&one.topic)) }
                }
            }
        }
    }
}

/// Its wires, and its capabilities in each topic.
fn held(rights: &Rights) -> Markup {
    let wires = rights.wires.join(", ");
    html! {
        dl class="pairs" {
            dt { "Comes in over" } dd { @if wires.is_empty() { "nothing" } @else { (Hostile(&wires)) } }
            @for one in &rights.topics {
                dt { "In " (Hostile(&one.topic)) }
                dd data-testid="held" {
                    @if one.capabilities.is_empty() { "no capability" }
                    ul class="plain" { @for capability in &one.capabilities { li { code { (Hostile(capability)) } } } }
                    @if let Some(shadow) = &one.shadow { p class="soft" { "In shadow, which decides nothing: " (Hostile(&shadow.words)) } }
                }
            }
        }
    }
}

/// What it may do with what servers list, and what it may not.
fn acts(rights: &Rights) -> Markup {
    let (not, may): (Vec<&Right>, Vec<&Right>) =
        rights.entries.iter().partition(|one| one.is_none());
    html! {
        h2 { "What it may do" }
        @if may.is_empty() { p { "Nothing of what servers list now." } }
        @else { (entries("What it may do", &may)) }
        @if !not.is_empty() {
            details {
                summary data-testid="not" { "What it may not do: " (not.len()) }
                (entries("What it may not do", &not))
            }
        }
    }
}

fn entries(label: &str, rights: &[&Right]) -> Markup {
    let more = rights.len().saturating_sub(RIGHTS_SHOWN_MAX);
    html! {
        div class="wide" tabindex="0" role="region" aria-label=(label) {
            table class="rows" {
                thead { tr { th { "Topic" } th { "Name" } th { "Over MCP, approving" } th { "In rooms as" } th { "In rooms" } } }
                tbody {
                    @for one in rights.iter().take(RIGHTS_SHOWN_MAX) {
                        tr data-testid="right" {
                            td { (Hostile(&one.topic)) }
                            td { (text(&one.name)) }
                            td { (admitted(one.mcp.as_ref())) }
                            td { (text(&one.own)) " of " (Hostile(&one.server)) }
                            td { (admitted(one.ws.as_ref())) }
                        }
                    }
                }
            }
        }
        @if more > 0 { p class="soft" { (more) " more are not listed here." } }
    }
}

fn admitted(way: Option<&Admitted>) -> Markup {
    html! {
        @if let Some(way) = way { strong { (Hostile(&way.verdict)) } ": " code { (Hostile(&way.capability)) } }
        @else { "may not" }
    }
}

fn tokens_of(visit: &Visit, name: &str, issued: &[IssuedToken]) -> Markup {
    let own: Vec<&IssuedToken> = issued.iter().filter(|one| one.name == name).collect();
    let button = html! { button type="submit" class="danger" data-arm data-testid="revoke-tokens" { "Revoke its tokens" } };
    html! {
        (tokens(visit, &own))
        @if !own.is_empty() {
            p { "What was opened with them ends at once." }
            (form(visit, name, "revoke-tokens", &button))
        }
        p class="soft" { "At a terminal: " code { (command("portmoot token revoke", name)) } }
    }
}

/// A form that posts an act about a participant.
fn form(visit: &Visit, name: &str, act: &str, content: &Markup) -> Markup {
    html! {
        form method="post" action={ (visit.base) "/access/" (encoded(name)) "/" (act) } {
            (visit.token()) (hidden("confirmed", "")) (content)
        }
    }
}

/// Changes of its capabilities, with forms for further ones.
fn changes(visit: &Visit, name: &str, entries: &[Participant]) -> Markup {
    let mut grants: Vec<&Grant> = Vec::new();
    for grant in entries.iter().flat_map(|one| &one.grants) {
        // One for all topics is in the entry of each.
        if !grants.contains(&grant) {
            grants.push(grant);
        }
    }
    let undo = html! { button type="submit" data-arm data-testid="undo" { "Undo all changes" } };
    html! {
        h2 { "Changes of its capabilities" }
        @if grants.is_empty() { p { "None that you may know of: it has what it is configured or issued with." } }
        @else {
            (table(&grants))
            (form(visit, name, "undo", &undo))
        }
        div class="cards" { (giving(visit, name, entries)) (taking(visit, name, entries)) }
        p class="soft" { "At a terminal: " code { (command("portmoot participants grant", name)) } }
    }
}

fn table(grants: &[&Grant]) -> Markup {
    html! {
        div class="wide" tabindex="0" role="region" aria-label="Changes of its capabilities" {
            table class="rows" {
                thead { tr { th { "Capability" } th { "Was" } th { "In" } th { "By" } th { "Since" } th { "Until" } th { "Why" } } }
                tbody {
                    @for one in grants {
                        tr data-testid="grant" { (cells(one)) }
                    }
                }
            }
        }
    }
}

/// The topic in which a change counts, and the reason for it.
fn change_fields(entries: &[Participant]) -> Markup {
    html! {
        label class="line" { "Where"
            select name="in" {
                option value="" { "In all topics" }
                @for one in entries { option value=(one.topic) { (escaped(&one.topic)) } }
            }
        }
        label class="line" { "Why" input type="text" name="reason" maxlength=(REASON_CHARS_MAX) autocomplete="off"; }
    }
}

fn giving(visit: &Visit, name: &str, entries: &[Participant]) -> Markup {
    let content = html! {
        label class="line" { "Capability"
            input type="text" name="capability" required autocomplete="off" autocapitalize="off" spellcheck="false" data-testid="capability";
        }
        label class="line" { "For"
            select name="for" data-testid="for" {
                @for (seconds, words) in SPANS { option value=(seconds) selected[seconds == FIRST_SPAN] { (words) } }
            }
        }
        (change_fields(entries))
        div class="row" { button type="submit" class="main" data-arm data-testid="give" { "Give" } }
    };
    html! {
        section class="card" {
            h2 { "Give a capability" }
            p class="soft" { "You can give what you have, and for no longer than you have it." }
            (form(visit, name, "give", &content))
        }
    }
}

fn taking(visit: &Visit, name: &str, entries: &[Participant]) -> Markup {
    let mut held: Vec<&str> = Vec::new();
    for capability in entries.iter().flat_map(|one| &one.capabilities) {
        if !held.contains(&capability.as_str()) {
            held.push(capability);
        }
    }
    let content = html! {
        label class="line" { "Capability"
            select name="capability" required data-testid="taken" {
                option value="" { "(choose)" }
                @for one in &held { option value=(one) { (escaped(one)) } }
            }
        }
        (change_fields(entries))
        div class="row" { button type="submit" class="danger" data-arm data-testid="take" { "Take away" } }
    };
    html! {
        @if !held.is_empty() {
            section class="card" { h2 { "Take a capability away" } (form(visit, name, "take", &content)) }
        }
    }
}

/// An act about a participant that the person confirms.
struct Change {
    title: &'static str,
    /// What it changes.
    about: Markup,
    yes: &'static str,
    done: &'static str,
}

/// `POST /console/access/NAME/ACT`.
pub(crate) async fn act(visit: &Visit, name: &str, act: &str) -> Outcome {
    let name = decoded(name);
    let at = At::Rights {
        name: name.clone(),
        topic: String::new(),
    };
    let Some(change) = change(visit, act) else {
        return Outcome::no_page(at);
    };
    if !confirm::is_confirmed(visit) {
        let question = Question {
            tab: Tab::Access,
            title: html! { (change.title) (Hostile(&name)) "?" },
            about: change.about,
            yes: change.yes,
            back: at.address(),
        };
        return confirm::ask(visit, question);
    }
    if let Some(asked) = proof::wanted(visit, Tab::Access).await {
        return asked;
    }
    match send(visit, &name, act).await {
        Ok(()) => Outcome::did(at, change.done),
        Err(refused) => Outcome::fail(at, refused),
    }
}

/// The act of this name, in words.
fn change(visit: &Visit, act: &str) -> Option<Change> {
    let form = visit.asked.form();
    let place = form.some("in").map_or_else(
        || html! { "in all topics" },
        |topic| html! { "in " (Hostile(topic)) },
    );
    let capability = html! { code { (Hostile(form.get("capability"))) } ", " (place) };
    let span = SPANS.iter().find(|(value, _)| *value == form.get("for"));
    Some(match act {
        "revoke-tokens" => Change {
            title: "Revoke all tokens of ",
            about: html! { p { "Sessions, streams and sockets that were opened with them end at once. Unless it is configured, changes of its capabilities end too." } },
            yes: "Yes, revoke them",
            done: "Its tokens are revoked.",
        },
        "undo" => Change {
            title: "Undo all changes of the capabilities of ",
            about: html! { p { "What it is configured with, or was issued with, counts again." } },
            yes: "Yes, undo them",
            done: "The changes are undone.",
        },
        "give" => Change {
            title: "Give a capability to ",
            about: html! { p { (capability) ", for " (span.map_or("?", |(_, words)| words)) "." } },
            yes: "Yes, give it",
            done: "Given.",
        },
        "take" => Change {
            title: "Take a capability from ",
            about: html! { p { (capability) "." } },
            yes: "Yes, take it away",
            done: "Taken away.",
        },
        _ => return None,
    })
}

/// Sends a confirmed act to the API.
async fn send(visit: &Visit, name: &str, act: &str) -> Result<(), Problem> {
    let form = visit.asked.form();
    let id = encoded(name);
    let topic = form.some("in");
    let query = topic.map_or_else(String::new, |topic| format!("?topic={}", encoded(topic)));
    let grants = format!("/api/v1/participants/{id}/grants{query}");
    let capability = [form.get("capability")];
    let body = match act {
        "revoke-tokens" => {
            let path = format!("/api/v1/tokens/{id}");
            return visit.api.delete(&path).await.map(drop);
        }
        "undo" => return visit.api.delete(&grants).await.map(drop),
        "give" => {
            let seconds = seconds(form.get("for"))?;
            json!({ "add": capability, "expires_in_seconds": seconds, "reason": form.some("reason") })
        }
        _ => json!({ "remove": capability, "reason": form.some("reason") }),
    };
    let _: Value = visit.api.post(&grants, body.to_string()).await?;
    Ok(())
}

/// The length of a span that a form names; `None` has no end.
fn seconds(text: &str) -> Result<Option<u64>, Problem> {
    let wrong = || {
        let why = "This is no length of time that a capability is given for.";
        Problem::new(StatusCode::BAD_REQUEST, why)
    };
    if !SPANS.iter().any(|(value, _)| *value == text) {
        return Err(wrong());
    }
    match text {
        NO_END => Ok(None),
        text => text.parse().map(Some).map_err(|_| wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_is_given_for_a_span_of_the_page_alone() {
        for (value, _) in SPANS {
            assert_eq!(
                seconds(value).unwrap().is_none(),
                value == NO_END,
                "{value}"
            );
        }
        for other in ["", "1", "x", "-900", "900 "] {
            assert!(seconds(other).is_err(), "{other}");
        }
        assert!(SPANS.iter().any(|(value, _)| *value == FIRST_SPAN));
    }
}
