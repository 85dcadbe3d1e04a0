//! Sessions of a participant at the console: which there are, and ending them.

use html::Hostile;
use html::parts::hidden;
use maud::{Markup, html};
use std::sync::Arc;
use tokio::task::JoinSet;
use wire::time::rfc3339;

use crate::home::ConsoleSignIn;
use crate::kept::Kept;
use crate::outcome::Outcome;
use crate::session::Session;
use crate::state::{At, Visit};
use crate::times;

/// A session of the person, which has not ended.
struct Listed {
    session: Arc<Session>,
    /// Whether that could be checked.
    is_sure: bool,
}

/// The sessions of the person, the newest first. One of a former bearer of its name, whose token is good no
/// more, is none of them, and is ended.
async fn all(visit: &Visit) -> Vec<Listed> {
    let (console, own) = (&visit.console, &visit.session.participant);
    let mut looks = JoinSet::new();
    for session in console.sessions.of(own, visit.now_ms()) {
        let console = Arc::clone(console);
        looks.spawn(async move {
            let kept = console.keep(&session).await;
            (kept != Kept::Over).then_some(Listed {
                session,
                is_sure: kept == Kept::Good,
            })
        });
    }
    let mut all: Vec<_> = looks.join_all().await.into_iter().flatten().collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.session.since_ms()));
    all
}

/// The part of the access page with the sessions of the person.
pub(crate) async fn section(visit: &Visit) -> Markup {
    let own = all(visit).await;
    html! {
        section {
            h2 { "Your sessions of this console" }
            div class="wide" tabindex="0" role="region" aria-label="Your sessions" {
                table class="rows" {
                    thead { tr { th { "Signed in" } th { "From" } th { "Last request" } th { "End" } } }
                    tbody { @for one in &own { (row(visit, one)) } }
                }
            }
            @if own.len() > 1 {
                form method="post" action={ (visit.base) "/sessions/end-others" } {
                    (visit.token())
                    div class="row" { button type="submit" class="danger" data-testid="end-others" { "End all others" } }
                }
            }
        }
    }
}

fn row(visit: &Visit, listed: &Listed) -> Markup {
    let one = &listed.session;
    let from = one.from().map(|from| from.to_canonical().to_string());
    html! {
        tr data-testid="session" {
            td { (times::day(&rfc3339(one.since_ms()))) }
            td { (Hostile(from.as_deref().unwrap_or("-"))) }
            td {
                (times::day(&rfc3339(one.last_ms())))
                @if !listed.is_sure { " " span class="mark care" { "cannot be checked now" } }
            }
            td {
                @if Arc::ptr_eq(one, &visit.session) { "this one" }
                @else {
                    form method="post" action={ (visit.base) "/sessions/end" } {
                        (visit.token()) (hidden("session", &one.label))
                        button type="submit" class="danger" data-testid="end-session" { "End" }
                    }
                }
            }
        }
    }
}

/// `POST /console/sessions/end` and `end-others`. This session is ended by signing out. No issuer is asked
/// about the others: they end also while one does not answer.
pub(crate) fn act(visit: &Visit, act: &str) -> Outcome {
    let label = visit.asked.form().get("session");
    let is_meant = |one: &Session| match act {
        "end-others" => true,
        "end" => one.label == label,
        _ => false,
    };
    let (sessions, own) = (&visit.console.sessions, &visit.session.participant);
    let mut others = sessions.of(own, visit.now_ms());
    others.retain(|one| !Arc::ptr_eq(one, &visit.session) && is_meant(one));
    for one in &others {
        sessions.end(one);
        visit.console.home.record(&ConsoleSignIn {
            participant: Some(own),
            from: visit.asked.browser.from,
            is_refused: false,
            why: "ended another session of its own at the console",
        });
    }
    let words = match others.len() {
        0 => "No such session is open.",
        1 => "That session has ended, with its pages.",
        _ => "Those sessions have ended, with their pages.",
    };
    Outcome::did(At::Access, words)
}
