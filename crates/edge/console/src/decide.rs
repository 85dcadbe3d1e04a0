//! Acts on a proposal: approving, rejecting, editing, claiming, more time.

use axum::http::StatusCode;
use maud::{Markup, html};
use review::{ProposalDetails, approval_body};
use serde_json::json;

use crate::api_client::{Problem, encoded};
use crate::call::name_to_type;
use crate::card::{Showing, act, card};
use crate::editing;
use crate::outcome::Outcome;
use crate::page::done;
use crate::proposal;
use crate::state::{At, Visit};

/// `POST /console/p/ID/ACT`.
pub(crate) async fn decide(visit: &Visit, id: &str, act: &str) -> Outcome {
    let id = percent_encoding::percent_decode_str(id)
        .decode_utf8_lossy()
        .into_owned();
    let found = match proposal::found(visit, &id).await {
        Ok(found) => found,
        Err(refused) => return Outcome::fail(At::inbox(), refused),
    };
    let form = visit.asked.form();
    match act {
        "approve" => approve(visit, &found).await,
        "edit" => match editing::written(form.get("arguments")) {
            Ok(written) => {
                let said = editing::comparison(visit, &found, written);
                question(visit, &found.id, said)
            }
            Err(refused) => Outcome::fail(edited(&id), refused),
        },
        "reject" => {
            let body = json!({ "code": form.some("code"), "reason": form.some("reason") });
            let words = "Rejected: the call does not run.";
            send(visit, &id, "reject", body.to_string(), words).await
        }
        "withdraw" => send(visit, &id, act, "{}".to_owned(), "Withdrawn.").await,
        "claim" => {
            send(
                visit,
                &id,
                act,
                String::new(),
                "Others see that you look at it.",
            )
            .await
        }
        "extend" => send(visit, &id, act, String::new(), "Ten minutes more.").await,
        _ => Outcome::no_page(shown(&id)),
    }
}

fn shown(id: &str) -> At {
    At::Proposal {
        id: id.to_owned(),
        all: false,
        edit: false,
    }
}

fn edited(id: &str) -> At {
    At::Proposal {
        id: id.to_owned(),
        all: false,
        edit: true,
    }
}

/// An approval: of the digest that was shown, in full, and confirmed.
async fn approve(visit: &Visit, found: &ProposalDetails) -> Outcome {
    let form = visit.asked.form();
    let digest = form.get("digest");
    let at = shown(&found.id);
    if let Err(refused) = may_approve(visit, found) {
        return Outcome::fail(at, refused);
    }
    let arguments = match form.some("arguments").map(editing::written).transpose() {
        Ok(arguments) => arguments,
        Err(refused) => return Outcome::fail(edited(&found.id), refused),
    };
    let name = name_to_type(found);
    if name
        .as_deref()
        .is_some_and(|name| form.get("typed") != name.trim())
    {
        let why = "Type the name of the tool to approve: it may destroy something.";
        return Outcome::fail(at, Problem::new(StatusCode::CONFLICT, why));
    }
    // Whatever names the tool, or is compared before, is confirmed; a script presses twice.
    if name.is_none() && arguments.is_none() && form.get("confirmed") != "1" {
        let asked = confirmation(visit, found);
        return question(visit, &found.id, asked);
    }
    let body = approval_body(digest, arguments, form.some("note"));
    send(visit, &found.id, "approve", body, "Approved.").await
}

/// Whether what was decided on is what the session was shown, and what waits now.
fn may_approve(visit: &Visit, found: &ProposalDetails) -> Result<(), Problem> {
    let digest = visit.asked.form().get("digest");
    if digest != found.digest {
        let why = "The proposal has changed since you looked at it. Look again.";
        return Err(Problem::new(StatusCode::CONFLICT, why));
    }
    if !visit.session.was_shown(&found.id, digest) {
        let why = "Not every value was shown in full. Show all of it first.";
        return Err(Problem::new(StatusCode::CONFLICT, why));
    }
    Ok(())
}

/// The question before an approval without a script.
fn confirmation(visit: &Visit, found: &ProposalDetails) -> Markup {
    let note = visit.asked.form().get("note").to_owned();
    let content = html! {
        input type="hidden" name="confirmed" value="1";
        (html::parts::hidden("note", &note))
        button type="submit" class="main" data-testid="confirm" { "Yes, approve" }
        a class="button" href=(visit.base) { "Not now" }
    };
    html! {
        section class="card" data-testid="confirmation" {
            @if found.steps.is_empty() {
                h2 { "Approve this call?" }
                p { "It runs once, on your authority." }
            } @else {
                h2 { "Approve this plan?" }
                p { "Its " (found.steps.len()) " steps run once each, in their order, on your authority." }
            }
            (act(visit, found, "approve", "row", &content))
        }
    }
}

/// A question above the page of a proposal.
fn question(visit: &Visit, id: &str, said: Markup) -> Outcome {
    if visit.asked.is_part {
        return Outcome::Part(said);
    }
    Outcome::Show {
        at: shown(id),
        said,
    }
}

/// Sends an act to the API. The script gets the card as it is then, any other browser the page.
async fn send(visit: &Visit, id: &str, verb: &str, body: String, words: &str) -> Outcome {
    let path = format!("/api/v1/proposals/{}/{verb}", encoded(id));
    let decided: ProposalDetails = match visit.api.post(&path, body).await {
        Ok(decided) => decided,
        Err(refused) => return Outcome::fail(shown(id), refused),
    };
    if visit.asked.is_part {
        let in_inbox = Showing {
            all: false,
            alone: false,
        };
        return Outcome::Part(html! { (done(words)) (card(visit, &decided, in_inbox)) });
    }
    Outcome::Led(format!("/p/{}", encoded(id)))
}
