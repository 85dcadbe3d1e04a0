//! Rows of the audit log, and what the pages about it share.

use html::Hostile;
use maud::{Markup, html};
use serde::Deserialize;

use crate::api_client::Problem;
use crate::filters::Filters;
use crate::state::{At, Visit};

/// Entries of one page.
pub(crate) const PAGE_ROWS: usize = 50;

/// A line of the log.
#[derive(Deserialize)]
pub(crate) struct AuditRow {
    pub(crate) seq: u64,
    pub(crate) at_ms: u64,
    pub(crate) topic: Option<String>,
    pub(crate) from: String,
    pub(crate) kind: String,
    pub(crate) own: Option<String>,
    #[serde(default)]
    pub(crate) to: Vec<String>,
    pub(crate) verdict: String,
    pub(crate) why: Option<String>,
    pub(crate) operation: Option<String>,
    pub(crate) trace: Option<String>,
    pub(crate) digest: Option<String>,
}

/// An answer, or a refusal that the page has in its place. Others fail the page.
pub(crate) fn shown<T>(answer: Result<T, Problem>) -> Result<Result<T, Problem>, Problem> {
    match answer {
        Err(why) if why.ends_session() || !why.status.is_client_error() => Err(why),
        answer => Ok(answer),
    }
}

/// A refusal in place of a table, with what to do.
pub(crate) fn refused(why: &Problem) -> Markup {
    html! {
        div class="empty" data-testid="refused" {
            p { strong { (Hostile(&why.message)) } }
            @if let Some(hint) = &why.hint { p { (Hostile(hint)) } }
        }
    }
}

/// The way to older rows, and what was not looked at.
pub(crate) fn further(filters: &Filters, older: Option<&str>, is_cut: bool, what: &str) -> Markup {
    html! {
        @if is_cut {
            p class="said" data-testid="cut" { "32 MiB of the log were looked through. Older " (what) " were not looked at yet." }
        }
        @if let Some(older) = older {
            p { a class="button" rel="next" href=(older) data-testid="older" { @if is_cut { "Look further back" } @else { "Older" } } }
        } @else if !filters.get("after").is_empty() {
            p class="soft" { "These are the oldest." }
        }
    }
}

/// A verdict as a word with a mark.
pub(crate) fn verdict(word: &str) -> Markup {
    let class = match word {
        "admitted" | "approved" | "completed" => "state good",
        "refused" | "rejected" | "failed" | "broken" => "state bad",
        "held" | "expired" => "state care",
        _ => "state",
    };
    html! { span class=(class) { (Hostile(word)) } }
}

/// The address of what happened to one call, at the place of its first entry if that is known.
pub(crate) fn call_address(visit: &Visit, id: &str, place: &str) -> String {
    let at = At::Call {
        id: id.to_owned(),
        place: place.to_owned(),
    };
    format!("{}{}", visit.base, at.address())
}
