//! Servers: their states and causes, tools, processes, changed definitions, logs; restart.

use html::Hostile;
use html::parts::hidden;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use crate::api_client::{Problem, encoded};
use crate::arguments::{text, thousands};
use crate::confirm::{self, Question};
use crate::outcome::Outcome;
pub(crate) use crate::page::state;
use crate::page::{Content, Tab, command};
use crate::server_accounts;
use crate::state::{At, Visit, decoded};
use crate::times;

/// Lines of a server's log that its page shows.
const LOG_LINES: usize = 40;

#[derive(Deserialize)]
struct ServerList {
    servers: Vec<Server>,
}

/// A server as the API shows it.
#[derive(Deserialize)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) state: String,
    transport: String,
    era: Option<String>,
    version: Option<String>,
    reason: Option<String>,
    cause: Option<String>,
    hint: Option<String>,
    tools: usize,
    resources: usize,
    prompts: usize,
    sessions: usize,
    pub(crate) processes: usize,
    pub(crate) memory_bytes: u64,
    #[serde(default)]
    users: Vec<String>,
    pub(crate) calls: usize,
    restarts: u64,
    sandbox: Option<String>,
    pins: String,
    #[serde(default)]
    changed: Vec<String>,
    #[serde(default)]
    findings: Vec<Finding>,
    #[serde(default)]
    unlisted_tools: Vec<Unusable>,
    #[serde(default)]
    notes: Vec<String>,
}

#[derive(Deserialize)]
struct Finding {
    part: String,
    name: String,
    path: String,
    flag: String,
    excerpt: String,
}

#[derive(Deserialize)]
struct Unusable {
    name: String,
    reason: String,
}

#[derive(Deserialize)]
struct Log {
    lines: Vec<LogLine>,
}

#[derive(Deserialize)]
struct LogLine {
    at: String,
    text: String,
}

/// All servers.
pub(crate) async fn all(visit: &Visit) -> Result<Vec<Server>, Problem> {
    let list: ServerList = visit.api.get("/api/v1/servers").await?;
    Ok(list.servers)
}

/// `GET /console/servers`.
pub(crate) async fn content(visit: &Visit) -> Result<Content, Problem> {
    let servers = all(visit).await?;
    let body = html! {
        h1 { "Servers" }
        div id="servers" data-live class="wide" tabindex="0" role="region" aria-label="Servers" {
            table class="rows" {
                thead { tr { th { "Server" } th { "State" } th class="number" { "Tools" } th class="number" { "Open calls" } th class="number" { "Processes" } th class="number" { "Memory" } th class="number" { "Restarts" } th { "Notes" } } }
                tbody {
                    @for one in &servers {
                        tr data-testid="server" {
                            td { a href={ (visit.base) "/servers/" (encoded(&one.name)) } { (Hostile(&one.name)) } }
                            td { (state(&one.state)) }
                            td class="number" { (one.tools) }
                            td class="number" { (one.calls) }
                            td class="number" { (one.processes) }
                            td class="number" { (memory(one.memory_bytes)) }
                            td class="number" { (one.restarts) }
                            td { (remarks(one)) }
                        }
                    }
                }
            }
            @if servers.is_empty() { p class="empty" { "No server is configured." } }
        }
    };
    Ok(Content {
        tab: Tab::Servers,
        title: "Servers".to_owned(),
        body,
        command: "portmoot servers ls".to_owned(),
    })
}

/// Bytes in words.
pub(crate) fn memory(bytes: u64) -> String {
    match bytes {
        0 => "-".to_owned(),
        bytes => format!("{} MiB", bytes.div_ceil(1 << 20)),
    }
}

/// Remarks about a server in the list.
fn remarks(server: &Server) -> Markup {
    html! {
        @if let Some(reason) = &server.reason { (Hostile(reason)) " " }
        @if !server.changed.is_empty() { span class="mark care" { (server.changed.len()) " changed definitions" } " " }
        @if !server.findings.is_empty() { span class="mark care" { (server.findings.len()) " flagged texts" } " " }
        @if !server.unlisted_tools.is_empty() { span class="mark care" { (server.unlisted_tools.len()) " unusable tools" } }
    }
}

/// `GET /console/servers/NAME`.
pub(crate) async fn one(visit: &Visit, name: &str) -> Result<Content, Problem> {
    let path = format!("/api/v1/servers/{}", encoded(name));
    let server: Server = visit.api.get(&path).await?;
    let log: Option<Log> = visit.api.get(&format!("{path}/logs")).await.ok();
    let lines = log.map(|log| log.lines).unwrap_or_default();
    let last = lines
        .get(lines.len().saturating_sub(LOG_LINES)..)
        .unwrap_or_default();
    let accounts = server_accounts::section(visit, &server.name).await;
    let body = html! {
        h1 { (Hostile(&server.name)) }
        div id="server" data-live { (about(&server)) }
        (buttons(visit, &server))
        (accounts)
        section id="findings" data-live { (findings(visit, &server)) }
        section id="log" data-live {
            @if !last.is_empty() {
                h2 { "Last lines of its log" }
                div class="log" { @for line in last { p { (times::clock(&line.at)) " " (text(&line.text)) } } }
            }
        }
    };
    Ok(Content {
        tab: Tab::Servers,
        title: "Server".to_owned(),
        body,
        command: command("portmoot servers show", &server.name),
    })
}

fn about(server: &Server) -> Markup {
    let counts = format!(
        "{} tools, {} resources, {} prompts",
        server.tools, server.resources, server.prompts
    );
    let sessions = format!("{} sessions, {} open calls", server.sessions, server.calls);
    let processes = format!(
        "{} processes, {}, {} restarts",
        server.processes,
        memory(server.memory_bytes),
        thousands(usize::try_from(server.restarts).unwrap_or(usize::MAX))
    );
    html! {
        dl class="pairs" {
            dt { "State" } dd { (state(&server.state)) @if let Some(reason) = &server.reason { " " (Hostile(reason)) } }
            @if let Some(cause) = &server.cause { dt { "Cause" } dd { (Hostile(cause)) } }
            @if let Some(hint) = &server.hint { dt { "Next" } dd { (Hostile(hint)) } }
            dt { "Speaks" } dd { (Hostile(&server.transport)) @if let Some(era) = &server.era { ", " (Hostile(era)) } @if let Some(version) = &server.version { ", version " (Hostile(version)) } }
            dt { "Lists" } dd { (counts) }
            dt { "Now" } dd { (sessions) }
            dt { "Runs" } dd { (processes) @if let Some(sandbox) = &server.sandbox { ", sandbox: " (Hostile(sandbox)) } }
            @if !server.users.is_empty() { dt { "Used by" } dd { (Hostile(&server.users.join(", "))) } }
            dt { "Definitions" } dd { "pins: " (Hostile(&server.pins)) }
            @for note in &server.notes { dt { "Note" } dd { (Hostile(note)) } }
        }
    }
}

/// Changed and flagged definitions, in the words of a stranger.
fn findings(visit: &Visit, server: &Server) -> Markup {
    html! {
        @if !server.changed.is_empty() {
            h2 { "Changed since they were pinned" }
            ul { @for one in &server.changed { li { (text(one)) } } }
            p { a href={ (visit.base) "/servers/" (encoded(&server.name)) "/definitions" } data-testid="compare" { "Compare them with what is pinned" } }
            p class="soft" { "At a terminal: " code { (Hostile(&command("portmoot pins show", &server.name))) } }
        }
        @if !server.findings.is_empty() {
            h2 { "Flagged texts" }
            ul {
                @for one in &server.findings {
                    li { strong { (Hostile(&one.flag)) } " in " (Hostile(&one.part)) " " (text(&one.name)) " at " (text(&one.path)) ": " (text(&one.excerpt)) }
                }
            }
        }
        @if !server.unlisted_tools.is_empty() {
            h2 { "Tools that cannot be used" }
            ul { @for one in &server.unlisted_tools { li { (text(&one.name)) ": " (Hostile(&one.reason)) } } }
        }
    }
}

fn buttons(visit: &Visit, server: &Server) -> Markup {
    let button = |act: &str, words: &str, class: &str| {
        let address = format!("{}/servers/{}/{act}", visit.base, encoded(&server.name));
        html! {
            form method="post" action=(address) { (visit.token()) (hidden("confirmed", "")) button type="submit" class=(class) data-arm { (words) } }
        }
    };
    html! {
        div class="row" {
            (button("restart", "Restart", ""))
            @if server.state == "disabled" { (button("enable", "Enable", "")) } @else { (button("disable", "Disable", "danger")) }
        }
    }
}

/// `POST /console/servers/NAME/ACT`.
pub(crate) async fn act(visit: &Visit, name: &str, act: &str) -> Outcome {
    let name = decoded(name);
    let at = At::Server { name: name.clone() };
    let (title, yes) = match act {
        "restart" => ("Restart ", "Yes, restart it"),
        "disable" => ("Disable ", "Yes, disable it"),
        "enable" => ("Enable ", "Yes, enable it"),
        _ => return Outcome::no_page(at),
    };
    if !confirm::is_confirmed(visit) {
        let question = Question {
            tab: Tab::Servers,
            title: html! { (title) (text(&name)) "?" },
            about: html! { p { "It is for every participant of this gateway." } },
            yes,
            back: at.address(),
        };
        return confirm::ask(visit, question);
    }
    let path = format!("/api/v1/servers/{}/{act}", encoded(&name));
    let sent: Result<Value, Problem> = visit.api.post(&path, "{}".to_owned()).await;
    match sent {
        Ok(_) => Outcome::Led(at.address()),
        Err(refused) => Outcome::fail(at, refused),
    }
}
