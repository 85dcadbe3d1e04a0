//! Acts on a proposal: approving, rejecting, editing, claiming, more time.

use axum::http::StatusCode;
use maud::{Markup, html};
use review::{ProposalDetails, approval_body};
use serde_json::json;

use crate::api_client::{Problem, encoded};
use crate::call::name_to_type;
use crate::card::{Showing, act, card};
use crate::editing;
use crate::nearest::ApprovedCalls;
use crate::outcome::Outcome;
use crate::page::{Tab, done};
use crate::proof;
use crate::proposal;
use crate::state::{At, Visit, decoded};

/// `POST /console/p/ID/ACT`.
pub(crate) async fn decide(visit: &Visit, id: &str, act: &str) -> Outcome {
    let id = decoded(id);
    match act {
        "approve" | "edit" => match proposal::found(visit, &id).await {
            Ok(found) if act == "edit" => edit(visit, &found),
            Ok(found) => approve(visit, &found).await,
            Err(refused) => Outcome::fail(At::inbox(), refused),
        },
        "reject" => {
            let words = "Rejected: the call does not run.";
            answered(visit, &id, rejected(visit, &id).await, words).await
        }
        "withdraw" => send(visit, &id, act, "{}".to_owned(), "Withdrawn.").await,
        "claim" => {
            let words = "Others see that you look at it.";
            send(visit, &id, act, String::new(), words).await
        }
        "extend" => send(visit, &id, act, String::new(), "Ten minutes more.").await,
        _ => Outcome::no_page(shown(&id)),
    }
}

/// Other arguments in place of the proposed ones, compared with them.
fn edit(visit: &Visit, found: &ProposalDetails) -> Outcome {
    if visit.asked.form().get("again") == "1" {
        return Outcome::Show {
            at: edited(&found.id),
            said: Markup::default(),
        };
    }
    let written = match editing::written(visit.asked.form().get("arguments")) {
        Ok(written) => written,
        Err(refused) => return Outcome::fail(edited(&found.id), refused),
    };
    match editing::comparison(visit, found, written) {
        Ok(compared) => Outcome::page(compared),
        Err(refused) => Outcome::fail(shown(&found.id), refused),
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

/// An approval, as a form has it.
pub(crate) struct Approval<'f> {
    /// The digest of what was shown.
    pub(crate) digest: &'f str,
    /// Arguments in place of the proposed ones.
    pub(crate) arguments: Option<&'f str>,
    /// The name of the tool, as the person has typed it.
    pub(crate) typed: &'f str,
    pub(crate) note: Option<&'f str>,
}

/// An approval: of the digest that was shown, in full, and confirmed.
async fn approve(visit: &Visit, found: &ProposalDetails) -> Outcome {
    let form = visit.asked.form();
    let arguments = match form.some("arguments").map(editing::written).transpose() {
        Ok(arguments) => arguments,
        Err(refused) => return Outcome::fail(edited(&found.id), refused),
    };
    let approval = Approval {
        digest: form.get("digest"),
        arguments,
        typed: form.get("typed"),
        note: form.some("note"),
    };
    if let Err(refused) = may_approve(visit, found, &approval) {
        return refusal(visit, found, arguments, refused);
    }
    // Whatever names the tool, or is compared before, is confirmed; a script presses twice.
    let is_confirmed = name_to_type(found).is_some() || arguments.is_some();
    if !is_confirmed && form.get("confirmed") != "1" {
        let asked = confirmation(visit, found);
        return question(visit, &found.id, asked);
    }
    if name_to_type(found).is_some()
        && let Some(asked) = proof::wanted(visit, Tab::Inbox).await
    {
        return asked;
    }
    match approved(visit, found, &approval).await {
        Ok(decided) => sent(visit, &decided, "Approved.").await,
        Err(refused) => refusal(visit, found, arguments, refused),
    }
}

/// Approves a proposal, if it was shown as it is. Every approval goes this way.
pub(crate) async fn approved(
    visit: &Visit,
    found: &ProposalDetails,
    approval: &Approval<'_>,
) -> Result<ProposalDetails, Problem> {
    may_approve(visit, found, approval)?;
    let body = approval_body(approval.digest, approval.arguments, approval.note);
    let path = format!("/api/v1/proposals/{}/approve", encoded(&found.id));
    visit.api.post(&path, body).await
}

/// Rejects a proposal, with the reason that the form has. Every rejection goes this way.
pub(crate) async fn rejected(visit: &Visit, id: &str) -> Result<ProposalDetails, Problem> {
    let form = visit.asked.form();
    let body = json!({ "code": form.some("code"), "reason": form.some("reason") });
    let path = format!("/api/v1/proposals/{}/reject", encoded(id));
    visit.api.post(&path, body.to_string()).await
}

/// A refused approval. Edited arguments are compared again, under what was wrong, and are not lost.
fn refusal(
    visit: &Visit,
    found: &ProposalDetails,
    arguments: Option<&str>,
    wrong: Problem,
) -> Outcome {
    let again = arguments.and_then(|one| editing::comparison(visit, found, one).ok());
    match again {
        Some(content) => Outcome::Page {
            content,
            wrong: Some(wrong),
        },
        None => Outcome::fail(shown(&found.id), wrong),
    }
}

/// Whether what was decided on is what the session was shown, and what waits now, and is named if it
/// may destroy something.
fn may_approve(
    visit: &Visit,
    found: &ProposalDetails,
    approval: &Approval<'_>,
) -> Result<(), Problem> {
    let digest = approval.digest;
    let refuse = |why: &str| Err(Problem::new(StatusCode::CONFLICT, why));
    if digest != found.digest {
        return refuse("The proposal has changed since you looked at it. Look again.");
    }
    let was_shown = match approval.arguments {
        Some(arguments) => editing::was_compared(visit, found, arguments),
        None => visit.session.was_shown(&found.id, digest),
    };
    if !was_shown {
        return refuse("Not every value was shown in full. Show all of it first.");
    }
    let name = name_to_type(found);
    if name.is_some_and(|name| approval.typed != name.trim()) {
        return refuse("Type the name of the tool to approve: it may destroy something.");
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
    answered(visit, id, visit.api.post(&path, body).await, words).await
}

/// The end of an act that was sent to the API.
async fn answered(
    visit: &Visit,
    id: &str,
    answer: Result<ProposalDetails, Problem>,
    words: &str,
) -> Outcome {
    match answer {
        Ok(decided) => sent(visit, &decided, words).await,
        Err(refused) => Outcome::fail(shown(id), refused),
    }
}

/// An act that the API has carried out.
async fn sent(visit: &Visit, decided: &ProposalDetails, words: &str) -> Outcome {
    if visit.asked.is_part {
        let in_inbox = Showing {
            all: false,
            alone: false,
            acts: true,
        };
        let approved = ApprovedCalls::if_needed(visit, decided.is_pending()).await;
        // Without the calls of before nothing is compared.
        let approved = approved.unwrap_or_default();
        return Outcome::Part(html! { (done(words)) (card(visit, decided, in_inbox, &approved)) });
    }
    Outcome::Led(format!("/p/{}", encoded(&decided.id)))
}
