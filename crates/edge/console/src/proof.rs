//! A further proof of who a person is, before the acts that matter most: the one before may be hours old,
//! and the browser in other hands.

use axum::http::StatusCode;
use html::parts::hidden;
use maud::{Markup, html};

use crate::api_client::Problem;
use crate::entrances::again;
use crate::home::ConsoleSignIn;
use crate::outcome::Outcome;
use crate::page::{Content, Tab, problem};
use crate::sign_in::{WRONG, capital, count_wrong, shown};
use crate::state::Visit;

/// The field of a form with a code or token.
pub(crate) const FIELD: &str = "proof";

/// The page that has a person prove who it is before an act goes on as it was asked for; `None` lets it go
/// on. Where callers need no token, the local user has none to show.
pub(crate) async fn wanted(visit: &Visit, tab: Tab) -> Option<Outcome> {
    let now_ms = visit.now_ms();
    let (home, session) = (&visit.console.home, &visit.session);
    let needs_none = home.participant(None).as_deref() == Some(&*session.participant);
    if needs_none || session.unproved_ms(now_ms) < home.settings().proof_ms {
        return None;
    }
    let Some(typed) = visit.asked.form().some(FIELD) else {
        return Some(ask(visit, tab, None));
    };
    match prove(visit, typed, now_ms).await {
        Ok(()) => None,
        Err(wrong) => Some(ask(visit, tab, Some(wrong))),
    }
}

/// Takes a code or token as a proof of the session's own participant.
async fn prove(visit: &Visit, typed: &str, now_ms: u64) -> Result<(), Problem> {
    let session = &visit.session;
    let proof_ms = visit.console.home.settings().proof_ms;
    let person = shown(&visit.console, &visit.asked, typed, now_ms).await;
    // The code of a sign-in elsewhere proves what that has proved.
    let own = person.filter(|person| {
        person.participant == session.participant
            && now_ms.saturating_sub(person.proved_ms) < proof_ms
    });
    if let Some(person) = own {
        if person.account.is_some() {
            // The tokens of the sign-in before may not outlive those of this one.
            session.take(person);
        } else {
            session.note_proof(person.proved_ms);
        }
        record(visit, false, "proved again who it is at the console");
        return Ok(());
    }
    count_wrong(&visit.console, &visit.asked, now_ms)?;
    record(visit, true, "a wrong proof of who it is at the console");
    Err(Problem::new(StatusCode::FORBIDDEN, &capital(WRONG)))
}

fn record(visit: &Visit, is_refused: bool, why: &str) {
    visit.console.home.record(&ConsoleSignIn {
        participant: Some(&visit.session.participant),
        from: visit.asked.browser.from,
        is_refused,
        why,
    });
}

/// The page that asks, under what was wrong before; to the script, which stays at its card, the form alone.
fn ask(visit: &Visit, tab: Tab, wrong: Option<Problem>) -> Outcome {
    if visit.asked.is_part {
        let said = html! { @if let Some(wrong) = &wrong { (problem(wrong)) } (form(visit)) };
        return Outcome::Part(said);
    }
    let content = Content {
        tab,
        title: "Who are you?".to_owned(),
        body: html! { section class="card" { h1 { "Is it still you?" } (form(visit)) } },
        command: "portmoot console".to_owned(),
    };
    Outcome::Page { content, wrong }
}

/// The form that was sent, with a field for a code or token.
fn form(visit: &Visit) -> Markup {
    let fields = visit.asked.form().pairs();
    let sent = fields
        .iter()
        .filter(|(name, _)| !matches!(*name, "token" | FIELD));
    html! {
        form method="post" action={ (visit.base) (visit.asked.below) } data-testid="prove" {
            (visit.token())
            @for (name, value) in sent { (hidden(name, value)) }
            p { "You signed in a while ago. Show once more that it is you: what you asked for goes on then." }
            label { "Code or token"
                input type="password" name=(FIELD) autocomplete="current-password" autocapitalize="off" spellcheck="false" data-testid="proof";
            }
            @if let Some(account) = visit.session.account() {
                (again(visit, &account.place))
            }
            p class="soft" {
                "A fresh code is what " code { "portmoot console --no-browser" } " prints. Or sign in again in this browser, as " code { "portmoot console" } " does, and leave this empty."
            }
            div class="row" { button type="submit" class="main" data-testid="prove-it" { "Go on" } }
        }
    }
}
