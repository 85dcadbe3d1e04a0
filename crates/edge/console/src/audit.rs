//! The audit log: its entries with filters, in pages, and the check of its chain.

use html::Hostile;
use maud::{Markup, html};
use serde::Deserialize;
use wire::time::rfc3339;

use crate::access;
use crate::api_client::Problem;
use crate::arguments::{shortened, text, thousands};
use crate::filters::Filters;
use crate::log_rows::{AuditRow, PAGE_ROWS, call_address, further, refused, shown, verdict};
use crate::page::{Content, Tab, command};
use crate::state::Visit;
use crate::times;

/// Filters that are options of the command.
const OPTIONS: [&str; 6] = [
    "participant",
    "topic",
    "verdict",
    "operation",
    "since",
    "until",
];
/// Addressees of an entry that a row names.
const RECEIVERS_MAX: usize = 6;

#[derive(Deserialize)]
struct AuditPage {
    entries: Vec<AuditRow>,
    next: Option<String>,
    cut: bool,
    #[serde(default)]
    left_out: usize,
}

#[derive(Deserialize)]
struct Report {
    intact: bool,
    entries: u64,
    head: String,
    unfinished_bytes: u64,
    findings: Vec<String>,
    findings_count: u64,
    removed: Option<Removed>,
}

/// The oldest entries, which retention has removed.
#[derive(Deserialize)]
struct Removed {
    entries: u64,
    from: String,
    until: String,
    at: String,
}

/// `GET /console/audit`.
pub(crate) async fn content(visit: &Visit, filters: &Filters) -> Result<Content, Problem> {
    let rows = PAGE_ROWS.to_string();
    let query = filters.query(&["verify"], &[("limit", &rows)]);
    let path = format!("/api/v1/audit{query}");
    let page = shown(visit.api.get::<AuditPage>(&path).await)?;
    let check = match filters.get("verify") {
        "" => None,
        _ => Some(shown(
            visit.api.get::<Report>("/api/v1/audit/verify").await,
        )?),
    };
    let body = html! {
        h1 { "Audit log" }
        (form(visit, filters))
        @if page.is_ok() { section id="check" { (checked(visit, filters, check.as_ref())) } }
        section id="entries" data-live {
            @match &page {
                Ok(page) => { (entries(visit, filters, page)) }
                Err(why) => { (refused(why)) }
            }
        }
    };
    let words = match filters.get("kinds") {
        "" => "portmoot audit query".to_owned(),
        kinds => command("portmoot audit query", kinds),
    };
    let words = filters.command(&words, &OPTIONS);
    Ok(Content {
        tab: Tab::Audit,
        title: "Audit log".to_owned(),
        body,
        command: format!("{words} --last {PAGE_ROWS}"),
    })
}

fn form(visit: &Visit, filters: &Filters) -> Markup {
    let open = !filters.are_unset_but(&["after", "verify"]);
    html! {
        form method="get" action={ (visit.base) "/audit" } role="search" class="filters" {
            details open[open] {
                summary { "Filters" }
                div class="fields" {
                    (filters.field("kinds", "Kind", "mcp/request:tools/call:*"))
                    (filters.field("participant", "From or to", "name"))
                    (filters.field("topic", "Topic", "main"))
                    (filters.choice("verdict", "Verdict", api::audit_verdicts()))
                    (filters.field("operation", "Operation", "id, or its beginning"))
                    (filters.field("since", "Since", "2h, or 2026-07-28"))
                    (filters.field("until", "Until", "1h, or 2026-07-28"))
                }
                div class="row" {
                    button type="submit" class="main" data-testid="find" { "Find" }
                    @if open { a class="button" href={ (visit.base) "/audit" } { "All entries" } }
                }
            }
        }
    }
}

fn entries(visit: &Visit, filters: &Filters, page: &AuditPage) -> Markup {
    let older = page.next.as_deref().map(|next| {
        let query = filters.query(&["after", "verify"], &[("after", next)]);
        format!("{}/audit{query}", visit.base)
    });
    html! {
        @if !page.entries.is_empty() {
            div class="wide" tabindex="0" role="region" aria-label="Entries" {
                table class="rows" {
                    thead { tr { th class="number" { "Entry" } th { "Time" } th { "Topic" } th { "From" } th { "Kind" } th { "To" } th { "Verdict" } th { "Why" } } }
                    tbody { @for one in &page.entries { (row(visit, one)) } }
                }
            }
        } @else if !page.cut {
            div class="empty" data-testid="empty" {
                p { strong { "No entry matches." } }
                p { "Leave out a filter, or look at an earlier time." }
            }
        }
        @if page.left_out > 0 { p class="soft" { (page.left_out) " entries are too long for a page; the command line prints them." } }
        (further(filters, older.as_deref(), page.cut, "entries"))
    }
}

fn row(visit: &Visit, one: &AuditRow) -> Markup {
    html! {
        tr data-testid="entry" {
            td class="number" { (one.seq) }
            td { (times::day(&rfc3339(one.at_ms))) }
            td { @if let Some(topic) = &one.topic { (text(topic)) } @else { "-" } }
            td { (text(&one.from)) }
            td {
                @if let Some(operation) = &one.operation {
                    a href=(call_address(visit, operation, "")) { (shortened(&one.kind)) }
                } @else { (shortened(&one.kind)) }
                @if let Some(own) = &one.own { " (" (shortened(own)) ")" }
            }
            td { @for (at, name) in one.to.iter().take(RECEIVERS_MAX).enumerate() { @if at > 0 { ", " } (shortened(name)) } @if one.to.len() > RECEIVERS_MAX { " and " (one.to.len() - RECEIVERS_MAX) " more" } }
            td { (verdict(&one.verdict)) }
            td { @if let Some(why) = &one.why { (shortened(why)) } }
        }
    }
}

fn checked(visit: &Visit, filters: &Filters, check: Option<&Result<Report, Problem>>) -> Markup {
    // Without a fragment: a browser would not ask again for the page that it shows.
    let query = filters.query(&["verify"], &[("verify", "1")]);
    let address = format!("{}/audit{query}", visit.base);
    html! {
        @match check {
            None => {}
            Some(Ok(report)) => { (result(report)) }
            Some(Err(why)) => { (access::refused(why)) }
        }
        p class="soft" {
            a class="button" href=(address) data-testid="verify" { @if check.is_some() { "Check again" } @else { "Check the chain" } }
            " Finds what was changed, removed, moved or cut off. At a terminal: " code { "portmoot audit verify" }
        }
    }
}

fn result(report: &Report) -> Markup {
    let listed = report.findings.len() as u64;
    let entries = thousands(usize::try_from(report.entries).unwrap_or(usize::MAX));
    html! {
        div class=(if report.intact { "said" } else { "said wrong" }) role=(if report.intact { "status" } else { "alert" }) data-testid="report" {
            @if report.intact {
                p { strong { "The chain is intact: " (entries) " entries." } }
            } @else {
                p { strong { "The chain is NOT intact." } }
                ul { @for one in &report.findings { li { (text(one)) } } }
                @if report.findings_count > listed { p { "and " (report.findings_count - listed) " more" } }
            }
        }
        @if let Some(removed) = &report.removed {
            p data-testid="removed" { (removed.entries) " older entries were removed by retention " (times::day(&removed.at)) ": they were of " (times::day(&removed.from)) " to " (times::day(&removed.until)) "." }
        }
        p { "Its head, to be kept in another place: " code { (Hostile(&report.head)) } }
        @if report.unfinished_bytes > 0 {
            p class="soft" { "The log ends with " (report.unfinished_bytes) " bytes of an unfinished entry; its operation was never confirmed to the caller." }
        }
    }
}
