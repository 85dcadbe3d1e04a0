//! Sessions of a participant at the console: which there are, and ending them.

use html::Hostile;
use html::parts::hidden;
use maud::{Markup, html};
use std::sync::Arc;
use tokio::task::JoinSet;
use wire::time::rfc3339;

use crate::home::ConsoleSignIn;
use crate::keep::Kept;
use crate::outcome::Outcome;
use crate::session::Session;
use crate::state::{At, Visit};
use crate::times;

/// The sessions of the person. One of a former bearer of its name, whose token is good no more, is none
/// of them.
async fn all(visit: &Visit) -> Vec<Arc<Session>> {
    let (console, own) = (&visit.console, &visit.session.participant);
    let mut looks = JoinSet::new();
    for session in console.sessions.of(own, visit.now_ms()) {
        let console = Arc::clone(console);
        looks.spawn(async move {
            let kept = console.keep(&session).await;
            (kept == Kept::Good).then_some(session)
        });
    }
    let mut good: Vec<_> = looks.join_all().await.into_iter().flatten().collect();
    good.sort_by_key(|session| std::cmp::Reverse(session.since_ms()));
    good
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

fn row(visit: &Visit, one: &Arc<Session>) -> Markup {
    let from = one.from().map(|from| from.to_canonical().to_string());
    html! {
        tr data-testid="session" {
            td { (times::day(&rfc3339(one.since_ms()))) }
            td { (Hostile(from.as_deref().unwrap_or("-"))) }
            td { (times::day(&rfc3339(one.last_ms()))) }
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

/// `POST /console/sessions/end` and `end-others`. This session is ended by signing out.
pub(crate) async fn act(visit: &Visit, act: &str) -> Outcome {
    let label = visit.asked.form().get("session");
    let is_meant = |one: &Session| match act {
        "end-others" => true,
        "end" => one.label == label,
        _ => false,
    };
    let mut others = all(visit).await;
    others.retain(|one| !Arc::ptr_eq(one, &visit.session) && is_meant(one));
    for one in &others {
        visit.console.sessions.end(one);
        visit.console.home.record(&ConsoleSignIn {
            participant: Some(&visit.session.participant),
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
