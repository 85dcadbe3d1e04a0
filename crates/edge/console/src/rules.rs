//! Rules: offered ones with what they rest on, those that decide, and those that are over.

use html::Hostile;
use html::parts::hidden;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use crate::api_client::{Problem, encoded};
use crate::arguments::{counted, text};
use crate::confirm::{self, Question};
use crate::outcome::Outcome;
use crate::page::{Content, Tab, command, state};
use crate::people::MAIN_TOPIC;
use crate::proof;
use crate::state::{At, Visit};
use crate::times;

#[derive(Deserialize)]
struct RuleList {
    rules: Vec<Rule>,
}

/// A rule as the API shows it.
#[derive(Deserialize)]
pub(crate) struct Rule {
    pub(crate) rule: String,
    author: String,
    /// `approve`, `reject` or `ask`.
    pub(crate) decision: String,
    pub(crate) method: String,
    /// The tool, as its server names it; without one, all of them.
    pub(crate) target: Option<String>,
    /// The server; without one, all of them.
    pub(crate) to: Option<String>,
    /// Names, or patterns of names.
    pub(crate) proposers: Vec<String>,
    sentence: String,
    pub(crate) state: String,
    why: Option<String>,
    used: u32,
    left: Option<u32>,
    expires: Option<String>,
    origin: String,
    shadow: Option<Shadow>,
}

#[derive(Deserialize)]
struct Shadow {
    words: String,
}

#[derive(Deserialize)]
struct OfferList {
    offers: Vec<Offer>,
    withheld: Vec<Withheld>,
}

#[derive(Deserialize)]
struct Withheld {
    tool: Option<String>,
    to: Option<String>,
    why: String,
}

#[derive(Deserialize)]
struct Offer {
    digest: String,
    sentence: String,
    approvals: Vec<String>,
    differing: Vec<String>,
    rows: Vec<OfferRow>,
    replay: Replay,
    made_up: Vec<String>,
    saved_a_day_tenths: u32,
}

#[derive(Deserialize)]
struct Replay {
    words: String,
}

#[derive(Deserialize)]
struct OfferRow {
    times: u32,
    values: Vec<String>,
}

fn path_of(topic: &str) -> String {
    format!("/api/v1/topics/{}/rules", encoded(topic))
}

/// The rules of a topic that the person may see.
pub(crate) async fn all(visit: &Visit, topic: &str) -> Result<Vec<Rule>, Problem> {
    let list: RuleList = visit.api.get(&path_of(topic)).await?;
    Ok(list.rules)
}

/// `GET /console/rules`.
pub(crate) async fn content(visit: &Visit, topic: &str) -> Result<Content, Problem> {
    let topic = if topic.is_empty() { MAIN_TOPIC } else { topic };
    let path = path_of(topic);
    let rules = all(visit, topic).await?;
    let coverage = At::Coverage {
        topic: topic.to_owned(),
    };
    // A person to whom nothing is offered sees the rules all the same.
    let offers: Result<OfferList, Problem> = visit.api.get(&format!("{path}/offers")).await;
    let body = html! {
        h1 { "Rules of topic " (Hostile(topic)) }
        @match &offers {
            Ok(offers) => { (offered(visit, topic, offers)) }
            Err(why) => { p class="soft" { (Hostile(&why.message)) } }
        }
        @if offers.as_ref().is_ok_and(|offers| !offers.offers.is_empty()) { h2 { "In force, and over" } }
        @if rules.is_empty() { p class="empty" { "No rule decides here: people do." } }
        div class="cards" { @for one in &rules { (rule(visit, topic, one)) } }
        p { a href={ (visit.base) (coverage.address()) } { "Which tools no rule and no approval covers" } }
    };
    Ok(Content {
        tab: Tab::Rules,
        title: "Rules".to_owned(),
        body,
        command: command("portmoot rules ls --topic", topic),
    })
}

fn rule(visit: &Visit, topic: &str, one: &Rule) -> Markup {
    html! {
        article class="card" data-testid="rule" {
            p class="sentence" { (Hostile(&one.sentence)) }
            p {
                (state(&one.state)) " · " code { (Hostile(&one.rule)) } " of " span class="who" { (Hostile(&one.author)) } ", " (Hostile(&one.origin))
                " · used " (counted(usize::try_from(one.used).unwrap_or(usize::MAX), "time", "times"))
                @if let Some(left) = one.left { ", " (left) " left" }
                @if let Some(expires) = &one.expires { " · until " (times::day(expires)) }
            }
            @if let Some(why) = &one.why { p { (Hostile(why)) } }
            @if let Some(shadow) = &one.shadow { p { (Hostile(&shadow.words)) } }
            @if one.origin != "file" { (form(visit, topic, "end", (&one.rule, &one.sentence), html! { button type="submit" class="danger" data-arm { "End it" } })) }
        }
    }
}

/// A form that posts an act on a rule or an offer, which its sentence says in words.
fn form(
    visit: &Visit,
    topic: &str,
    act: &str,
    (named, sentence): (&str, &str),
    content: Markup,
) -> Markup {
    html! {
        form method="post" action={ (visit.base) "/rules/" (act) } {
            (visit.token()) (hidden("topic", topic)) (hidden("named", named)) (hidden("sentence", sentence)) (hidden("confirmed", "")) (content)
        }
    }
}

fn offered(visit: &Visit, topic: &str, offers: &OfferList) -> Markup {
    html! {
        @if !offers.offers.is_empty() { h2 { "Offered to you" } }
        div class="cards" { @for one in &offers.offers { (offer(visit, topic, one)) } }
        @if !offers.withheld.is_empty() {
            details {
                summary { "Why no rule is offered for other tools" }
                ul { @for one in &offers.withheld { li { (Hostile(one.tool.as_deref().unwrap_or("any"))) @if let Some(to) = &one.to { " at " (Hostile(to)) } ": " (Hostile(&one.why)) } } }
            }
        }
    }
}

fn offer(visit: &Visit, topic: &str, one: &Offer) -> Markup {
    html! {
        article class="card" data-testid="offer" {
            p class="sentence" { (Hostile(&one.sentence)) }
            p { "It rests on " (counted(one.approvals.len(), "approval", "approvals")) " of yours, and would save about " (one.saved_a_day_tenths / 10) "." (one.saved_a_day_tenths % 10) " decisions a day." }
            p { (Hostile(&one.replay.words)) }
            @if !one.differing.is_empty() {
                div class="wide" tabindex="0" role="region" aria-label="What differed" {
                    table class="rows" {
                        thead { tr { @for name in &one.differing { th { (text(name)) } } th class="number" { "Times" } } }
                        tbody { @for row in &one.rows { tr { @for value in &row.values { td { (text(value)) } } td class="number" { (row.times) } } } }
                    }
                }
            }
            @if !one.made_up.is_empty() {
                details { summary { "Calls that it would approve, and that were never seen" } @for made_up in &one.made_up { p { (text(made_up)) } } }
            }
            div class="row" {
                (form(visit, topic, "accept", (&one.digest, &one.sentence), html! { button type="submit" class="main" data-arm { "Accept this rule" } }))
                (form(visit, topic, "dismiss", (&one.digest, &one.sentence), html! { button type="submit" { "Dismiss" } }))
            }
        }
    }
}

/// `POST /console/rules/ACT`.
pub(crate) async fn act(visit: &Visit, act: &str) -> Outcome {
    let form = visit.asked.form();
    let (topic, named) = (form.get("topic"), form.get("named"));
    let at = At::Rules {
        topic: topic.to_owned(),
    };
    let rules = path_of(topic);
    let (path, asked) = match act {
        "accept" => (
            format!("{rules}/offers/{}/accept", encoded(named)),
            Some(("Accept this rule?", "Yes, accept it")),
        ),
        "dismiss" => (format!("{rules}/offers/{}/dismiss", encoded(named)), None),
        "end" => (
            format!("{rules}/{}/end", encoded(named)),
            Some(("End this rule?", "Yes, end it")),
        ),
        _ => return Outcome::no_page(at),
    };
    if let Some((title, yes)) = asked.filter(|_| !confirm::is_confirmed(visit)) {
        let question = Question {
            tab: Tab::Rules,
            title: html! { (title) },
            about: html! { p class="sentence" { (Hostile(form.get("sentence"))) } },
            yes,
            back: at.address(),
        };
        return confirm::ask(visit, question);
    }
    if act == "accept"
        && let Some(asked) = proof::wanted(visit, Tab::Rules).await
    {
        return asked;
    }
    let sent: Result<Value, Problem> = visit.api.post(&path, "{}".to_owned()).await;
    let words = match act {
        "accept" => "The rule is accepted:",
        "dismiss" => "The offer is dismissed:",
        _ => "The rule has ended:",
    };
    match sent {
        Ok(_) => Outcome::Show {
            at,
            said: said_of_rule(words, form.get("sentence"), &Markup::default()),
        },
        Err(refused) => Outcome::fail(at, refused),
    }
}

/// Words about an act on a rule, with its sentence.
pub(crate) fn said_of_rule(words: &str, sentence: &str, more: &Markup) -> Markup {
    html! {
        div class="said" role="status" data-testid="done" {
            p { strong { (words) } }
            p { (Hostile(sentence)) }
            (more)
        }
    }
}
