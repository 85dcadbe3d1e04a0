//! Calls, as the audit log has them: a table with filters, and of one call all that happened.

use maud::{Markup, html};
use serde::Deserialize;
use wire::time::rfc3339;

use crate::api_client::{Problem, encoded};
use crate::arguments::{Room, shortened, text};
use crate::filters::Filters;
use crate::log_rows::{AuditRow, PAGE_ROWS, call_address, further, refused, shown, verdict};
use crate::page::{Content, Tab, command};
use crate::state::Visit;
use crate::times;

#[derive(Deserialize)]
struct Calls {
    calls: Vec<Call>,
    next: Option<String>,
    cut: bool,
    later_cut: bool,
}

/// A call as the API shows it.
#[derive(Deserialize)]
struct Call {
    operation: Option<String>,
    proposal: Option<String>,
    at: String,
    topic: Option<String>,
    by: String,
    method: String,
    target: String,
    to: Vec<String>,
    why: Option<String>,
    outcome: String,
    decided_by: Option<String>,
    place: String,
}

#[derive(Deserialize)]
struct Timeline {
    entries: Vec<AuditRow>,
    cut: bool,
}

/// `GET /console/calls`.
pub(crate) async fn content(visit: &Visit, filters: &Filters) -> Result<Content, Problem> {
    let rows = PAGE_ROWS.to_string();
    let query = filters.query(&[], &[("limit", &rows)]);
    let path = format!("/api/v1/audit/calls{query}");
    let calls = shown(visit.api.get::<Calls>(&path).await)?;
    let body = html! {
        h1 { "Calls" }
        (form(visit, filters))
        section id="calls" data-live {
            @match &calls {
                Ok(calls) => { (table(visit, filters, calls)) }
                Err(why) => { (refused(why)) }
            }
        }
    };
    let words = filters.command("portmoot audit query 'mcp/*'", &["participant", "topic"]);
    Ok(Content {
        tab: Tab::Calls,
        title: "Calls".to_owned(),
        body,
        command: format!("{words} --last {PAGE_ROWS}"),
    })
}

fn form(visit: &Visit, filters: &Filters) -> Markup {
    let open = !filters.are_unset_but(&["after"]);
    html! {
        form method="get" action={ (visit.base) "/calls" } role="search" class="filters" {
            details open[open] {
                summary { "Filters" }
                div class="fields" {
                    (filters.field("participant", "Asked by", "name"))
                    (filters.field("server", "Server", "name"))
                    (filters.field("tool", "Tool", "read_*"))
                    (filters.choice("outcome", "Outcome", &api::call_outcomes()))
                    (filters.field("topic", "Topic", "main"))
                }
                div class="row" {
                    button type="submit" class="main" data-testid="find" { "Find" }
                    @if open { a class="button" href={ (visit.base) "/calls" } { "All calls" } }
                }
            }
        }
    }
}

fn table(visit: &Visit, filters: &Filters, calls: &Calls) -> Markup {
    let older = calls.next.as_deref().map(|next| {
        let query = filters.query(&["after"], &[("after", next)]);
        format!("{}/calls{query}", visit.base)
    });
    let is_filtered = !filters.are_unset_but(&["after"]);
    html! {
        @if !calls.calls.is_empty() {
            div class="wide" tabindex="0" role="region" aria-label="Calls" {
                table class="rows" {
                    thead { tr { th { "Asked" } th { "By" } th { "What" } th { "Server" } th { "Outcome" } th { "Decided by" } th { "Why" } } }
                    tbody { @for one in &calls.calls { (row(visit, one)) } }
                }
            }
        } @else if calls.next.is_none() {
            div class="empty" data-testid="empty" {
                @if is_filtered {
                    p { strong { "No call matches." } }
                    p { "Leave out a filter." }
                } @else {
                    p { strong { "No call was made yet." } }
                    p { "When a client calls a tool, it appears here. Try one: " a href={ (visit.base) "/tools" } { "Tools" } "." }
                }
            }
        } @else if !calls.cut {
            p class="soft" { "None of the calls that were looked at has this outcome." }
        }
        @if calls.later_cut {
            p class="said" data-testid="later-cut" { "What became of held calls was looked for in the 32 MiB of the log after them, and no further." }
        }
        (further(filters, older.as_deref(), calls.cut, "calls"))
    }
}

fn row(visit: &Visit, one: &Call) -> Markup {
    let what = if one.target.is_empty() {
        &one.method
    } else {
        &one.target
    };
    html! {
        tr data-testid="call" {
            td { (times::day(&one.at)) @if let Some(topic) = one.topic.as_deref().filter(|topic| *topic != "main") { " in " (text(topic)) } }
            td { span class="who" { (text(&one.by)) } }
            td {
                @if let Some(id) = one.operation.as_deref() {
                    a href=(call_address(visit, id, &one.place)) { (shortened(what)) }
                } @else { (shortened(what)) }
            }
            td { (shortened(&one.to.join(", "))) }
            td { (verdict(&one.outcome)) }
            td { @if let Some(by) = &one.decided_by { (text(by)) } }
            td {
                @if let Some(why) = &one.why { (shortened(why)) }
                @if let Some(id) = &one.proposal { " " a href={ (visit.base) "/p/" (encoded(id)) } { "the proposal" } }
            }
        }
    }
}

/// `GET /console/calls/ID`.
pub(crate) async fn one(visit: &Visit, id: &str, place: &str) -> Result<Content, Problem> {
    let query = match place {
        "" => String::new(),
        place => format!("?place={}", encoded(place)),
    };
    let path = format!("/api/v1/audit/calls/{}{query}", encoded(id));
    let found = shown(visit.api.get::<Timeline>(&path).await)?;
    let body = html! {
        h1 { "A call" }
        section id="call" data-live {
            @match &found {
                Ok(found) => { (timeline(visit, found)) }
                Err(why) => { (refused(why)) }
            }
        }
        p { a href={ (visit.base) "/calls" } { "All calls" } }
    };
    Ok(Content {
        tab: Tab::Calls,
        title: "A call".to_owned(),
        body,
        command: command("portmoot audit query --operation", id),
    })
}

fn timeline(visit: &Visit, found: &Timeline) -> Markup {
    let mut room = Room::new(true);
    let begin = found.entries.first().map_or(0, |one| one.at_ms);
    let trace = found.entries.iter().find_map(|one| one.trace.as_deref());
    let is_direct = found.entries.iter().all(|one| !is_of_proposal(one));
    html! {
        ol class="steps" data-testid="timeline" {
            @for one in &found.entries { (step(visit, one, begin, &mut room)) }
        }
        @if is_direct {
            p class="soft" { "The log has no answers of servers to calls that needed no decision." }
        }
        @if let Some(trace) = trace {
            p data-testid="trace" { "Its trace: " code { (text(trace)) } }
        }
        @if found.cut {
            p class="said" data-testid="cut" { "There may be more entries than these: 32 MiB of the log were looked through. At a terminal all are looked at." }
        }
    }
}

fn step(visit: &Visit, one: &AuditRow, begin_ms: u64, room: &mut Room) -> Markup {
    let at = rfc3339(one.at_ms);
    let to = one.to.join(", ");
    html! {
        li data-testid="step" {
            h2 { (verdict(&one.verdict)) ": " (happened(one)) " " span class="who" { (text(&one.from)) } }
            div class="facts" {
                p { @if one.at_ms > begin_ms { (times::clock(&at)) ", after " (after(one.at_ms - begin_ms)) } @else { (times::day(&at)) } ", entry " (one.seq) }
                p { code { (room.words(&one.kind)) } @if !to.is_empty() { " at " (room.words(&to)) } }
                @if let Some(why) = &one.why { p { (room.words(why)) } }
                @if let Some(id) = one.operation.as_deref().filter(|_| is_of_proposal(one)) {
                    p { a href={ (visit.base) "/p/" (encoded(id)) } { "The proposal" } @if let Some(digest) = &one.digest { ", digest " code { (text(digest)) } } }
                }
            }
        }
    }
}

fn is_of_proposal(one: &AuditRow) -> bool {
    one.kind.starts_with("mcp/proposal")
}

/// What an entry says happened, in words before the name of its sender.
fn happened(one: &AuditRow) -> &'static str {
    match (one.verdict.as_str(), is_of_proposal(one)) {
        ("admitted", false) => "the call of",
        ("refused", false) => "the call was refused to",
        ("held", false) => "the call waits for a decision; asked by",
        ("held", true) => "the proposal of",
        ("approved", _) => "by",
        ("rejected" | "withdrawn" | "extended" | "amended", _) => "by",
        ("refused", true) => "a decision that does not count, by",
        ("completed" | "failed" | "expired", _) => "the proposal of",
        _ => "by",
    }
}

/// A length of time in words.
fn after(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        _ => times::span(ms),
    }
}
