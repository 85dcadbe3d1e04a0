//! A topic: who is here, with what rights; saying something, pausing a participant.

use axum::http::StatusCode;
use html::Hostile;
use html::parts::hidden;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api_client::{Problem, encoded};
use crate::outcome::{Outcome, no_page};
use crate::page::{Content, Tab, command};
use crate::state::{At, Visit};
use crate::times;

/// The topic that is shown if the address names none.
pub(crate) const MAIN_TOPIC: &str = "main";
/// The gateway itself as a participant, which is not paused.
pub(crate) const GATEWAY: &str = "portmoot";
/// The longest message and reason, in characters.
const WORDS_CHARS_MAX: usize = 1_000;

#[derive(Deserialize)]
struct ParticipantList {
    participants: Vec<Participant>,
}

/// A participant as the API shows it.
#[derive(Deserialize, Clone)]
pub(crate) struct Participant {
    pub(crate) id: String,
    pub(crate) topic: String,
    pub(crate) role: String,
    pub(crate) links: usize,
    #[serde(default)]
    pub(crate) clients: Vec<String>,
    paused: Option<Pause>,
    #[serde(default)]
    pub(crate) capabilities: Vec<String>,
    /// Changes of its configured capabilities.
    #[serde(default)]
    pub(crate) grants: Vec<Grant>,
}

/// A capability that was given to a participant, or taken from it.
#[derive(Deserialize, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Grant {
    pub(crate) capability: String,
    pub(crate) given: bool,
    pub(crate) topic: Option<String>,
    pub(crate) by: String,
    pub(crate) reason: Option<String>,
    pub(crate) at: String,
    pub(crate) expires: Option<String>,
}

impl Participant {
    /// Whether it is paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }
}

/// The participants that the person may know of: of all topics, or of one.
pub(crate) async fn all(visit: &Visit, topic: &str) -> Result<Vec<Participant>, Problem> {
    let query = match topic {
        "" => String::new(),
        topic => format!("?topic={}", encoded(topic)),
    };
    let path = format!("/api/v1/participants{query}");
    let list: ParticipantList = visit.api.get(&path).await?;
    Ok(list.participants)
}

#[derive(Deserialize, Clone)]
struct Pause {
    by: String,
    reason: Option<String>,
    since: String,
}

/// The topic that is shown where none is named: the main one, or the first of those that the person
/// may know.
pub(crate) fn chosen_topic(all: &[Participant]) -> &str {
    let is_main = all.iter().any(|one| one.topic == MAIN_TOPIC);
    let first = all.first().filter(|_| !is_main);
    first.map_or(MAIN_TOPIC, |one| one.topic.as_str())
}

/// `GET /console/topic`.
pub(crate) async fn content(visit: &Visit, topic: &str) -> Result<Content, Problem> {
    let all = all(visit, "").await?;
    let mut topics: Vec<&str> = Vec::new();
    for one in &all {
        if !topics.contains(&one.topic.as_str()) {
            topics.push(&one.topic);
        }
    }
    let topic = match topic {
        "" => chosen_topic(&all),
        named if topics.contains(&named) => named,
        _ => {
            return Err(Problem::new(
                StatusCode::NOT_FOUND,
                "There is no such topic.",
            ));
        }
    };
    let here: Vec<&Participant> = all.iter().filter(|one| one.topic == topic).collect();
    let body = html! {
        h1 { "Topic " (Hostile(topic)) }
        @if topics.len() > 1 { (choice(visit, &topics, topic)) }
        div id="here" data-live class="wide" tabindex="0" role="region" aria-label="Participants" { (table(visit, topic, &here)) }
        (message(visit, topic))
    };
    Ok(Content {
        tab: Tab::People,
        title: "Topic".to_owned(),
        body,
        command: command("portmoot participants ls --topic", topic),
    })
}

fn choice(visit: &Visit, topics: &[&str], chosen: &str) -> Markup {
    html! {
        nav class="choice" aria-label="Topics" {
            @for one in topics {
                a href={ (visit.base) "/topic?topic=" (encoded(one)) } aria-current=[(*one == chosen).then_some("true")] { (Hostile(one)) }
            }
        }
    }
}

fn table(visit: &Visit, topic: &str, here: &[&Participant]) -> Markup {
    html! {
        table class="rows" {
            thead { tr { th { "Participant" } th { "Role" } th class="number" { "Links" } th { "Programs" } th { "May" } th { span class="vh" { "Acts" } } } }
            tbody {
                @for one in here {
                    tr data-testid="participant" {
                        td { span class="who" { (Hostile(&one.id)) } }
                        td { (Hostile(&one.role)) }
                        td class="number" { (one.links) }
                        td { (Hostile(&one.clients.join(", "))) }
                        td { (rights(&one.capabilities)) }
                        td { (brake(visit, topic, one)) }
                    }
                }
            }
        }
    }
}

/// Capabilities; many of them on demand.
pub(crate) fn rights(capabilities: &[String]) -> Markup {
    html! {
        @if capabilities.len() > 2 {
            details { summary { (capabilities.len()) " capabilities" } ul { @for one in capabilities { li { code { (Hostile(one)) } } } } }
        } @else {
            @for one in capabilities { code { (Hostile(one)) } " " }
        }
    }
}

/// The emergency brake of a participant.
fn brake(visit: &Visit, topic: &str, one: &Participant) -> Markup {
    let form = |act: &str, content: Markup| {
        html! {
            form method="post" action={ (visit.base) "/topic/" (act) } {
                (visit.token()) (hidden("topic", topic)) (hidden("participant", &one.id)) (content)
            }
        }
    };
    html! {
        @if let Some(pause) = &one.paused {
            p { span class="mark care" { "paused" } " by " (Hostile(&pause.by)) " since " (times::clock(&pause.since))
                @if let Some(reason) = &pause.reason { ": " (Hostile(reason)) } }
            (form("resume", html! { button type="submit" data-testid="resume" { "Let it go on" } }))
        } @else if one.id != visit.session.participant && one.id != GATEWAY {
            details {
                summary { "Pause…" }
                (form("pause", html! {
                    label class="line" { "Why" input type="text" name="reason" maxlength=(WORDS_CHARS_MAX) autocomplete="off"; }
                    button type="submit" class="danger" data-testid="pause" { "Pause" }
                }))
            }
        }
    }
}

fn message(visit: &Visit, topic: &str) -> Markup {
    html! {
        section class="card" {
            h2 { "Say something" }
            form method="post" action={ (visit.base) "/topic/say" } {
                (visit.token()) (hidden("topic", topic))
                label for="text" { "To everyone in the topic" }
                input type="text" id="text" name="text" required maxlength=(WORDS_CHARS_MAX) autocomplete="off" data-testid="text";
                div class="row" { button type="submit" class="main" data-testid="say" { "Say it" } }
            }
        }
    }
}

/// `POST /console/topic/ACT`.
pub(crate) async fn act(visit: &Visit, act: &str) -> Outcome {
    let form = visit.asked.form();
    let topic = form.get("topic");
    let at = At::People {
        topic: topic.to_owned(),
    };
    let sent: Result<Value, Problem> = match act {
        "say" => {
            let path = format!("/api/v1/topics/{}/messages", encoded(topic));
            visit
                .api
                .post(&path, json!({ "text": form.get("text") }).to_string())
                .await
        }
        "pause" | "resume" => {
            let id = encoded(form.get("participant"));
            let path = format!("/api/v1/topics/{}/participants/{id}/{act}", encoded(topic));
            visit
                .api
                .post(&path, json!({ "reason": form.some("reason") }).to_string())
                .await
        }
        _ => Err(no_page()),
    };
    let words = match act {
        "say" => "Said.",
        "pause" => "Paused: it can do nothing here until it is let go on.",
        _ => "It goes on.",
    };
    match sent {
        Ok(_) => Outcome::did(at, words),
        Err(refused) => Outcome::fail(at, refused),
    }
}
