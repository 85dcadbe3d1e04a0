//! Other arguments in place of the proposed ones: written, compared, then approved.

use axum::http::StatusCode;
use data_encoding::HEXLOWER;
use html::parts::hidden;
use json::visible;
use maud::{Markup, html};
use review::ProposalDetails;
use sha2::{Digest as _, Sha256};

use crate::api_client::Problem;
use crate::arguments::{Room, difference, table};
use crate::call::Beside;
use crate::card::{act, address, approval, warning};
use crate::page::{Content, Tab};
use crate::state::Visit;

/// The longest arguments that a page edits, in bytes: a form is not longer than that, escaped.
pub(crate) const EDITED_BYTES_MAX: usize = 16 * 1024;

/// The form with the arguments as JSON, in which every hidden character is an escape.
pub(crate) fn form(visit: &Visit, proposal: &ProposalDetails) -> Markup {
    let Some(arguments) = proposal.arguments() else {
        let why = if proposal.steps.is_empty() {
            "It has no arguments to edit."
        } else {
            "A plan is approved as it is, or not at all."
        };
        return html! { p class="said wrong" { (why) } };
    };
    if arguments.get().len() > EDITED_BYTES_MAX {
        return html! {
            p class="said wrong" { "These arguments are too long to edit here. Use: " code { "portmoot proposals approve " (proposal.id) " --edit" } }
        };
    }
    // What was written before is not lost.
    let text = match visit.asked.form().some("arguments") {
        Some(written) if json::check(written.as_bytes()).is_ok() => visible::escaped(written),
        Some(written) => written.to_owned(),
        None => visible::escaped(&visible::pretty(arguments.get())),
    };
    let rows = text.lines().count().clamp(4, 24);
    let content = html! {
        label for="arguments" { "Arguments in place of the proposed ones, as JSON" }
        textarea id="arguments" name="arguments" rows=(rows) spellcheck="false" autocapitalize="off" data-testid="arguments" { (text) }
        div class="row" {
            button type="submit" class="main" data-testid="compare" { "Compare" }
            a class="button" href=(address(visit, &proposal.id)) { "Leave as proposed" }
        }
    };
    html! { section class="card" { h2 { "Edit" } (act(visit, proposal, "edit", "edit", &content)) } }
}

/// Arguments as a reviewer has written them, if they can be sent.
pub(crate) fn written(text: &str) -> Result<&str, Problem> {
    let wrong = |why: &str| Problem::new(StatusCode::BAD_REQUEST, why);
    if json::check(text.as_bytes()).is_err() || !json::is_object(text.as_bytes()) {
        return Err(wrong("The arguments are no JSON object."));
    }
    if json::refuse_duplicates(text.as_bytes()).is_err() {
        return Err(wrong("A member occurs twice in the arguments."));
    }
    Ok(text)
}

/// A mark of a text of others as it is approved in place of the proposed one.
fn mark_of(digest: &str, arguments: &str) -> String {
    let hash = Sha256::digest(arguments.as_bytes());
    format!("{digest} {}", HEXLOWER.encode(&hash))
}

/// Whether the session was shown these arguments in place of the proposed ones.
pub(crate) fn was_compared(visit: &Visit, proposal: &ProposalDetails, arguments: &str) -> bool {
    let mark = mark_of(&proposal.digest, arguments);
    visit.session.was_compared(&mark)
}

/// The page that compares other arguments with the proposed ones: all that would run, what differs, and
/// the form that approves it. Nothing else of the page approves.
///
/// # Errors
/// If the proposal does not wait, or its arguments cannot be edited here.
pub(crate) fn comparison(
    visit: &Visit,
    proposal: &ProposalDetails,
    arguments: &str,
) -> Result<Content, Problem> {
    let refuse = |why: &str| Err(Problem::new(StatusCode::CONFLICT, why));
    if !proposal.is_pending() {
        return refuse("It waits for no decision any more.");
    }
    let Some(proposed) = proposal.arguments() else {
        return refuse("It has no arguments to edit.");
    };
    if proposed.get().len().max(arguments.len()) > EDITED_BYTES_MAX {
        return refuse("These arguments are too long to edit here.");
    }
    let mut room = Room::new(true);
    let rest = proposal.split_params().1;
    let edited = table(arguments, &mut room);
    let beside = Beside::new(rest.as_deref(), &mut room);
    let is_full = edited.missing.is_none() && beside.missing().is_none();
    let differs = difference(proposed.get(), arguments);
    let (Some(differs), true) = (differs, is_full) else {
        return refuse("These arguments have too many values to compare here.");
    };
    visit
        .session
        .note_compared(mark_of(&proposal.digest, arguments));
    let content = html! { (hidden("arguments", arguments)) (approval(proposal, true)) };
    let again = html! {
        (hidden("arguments", arguments))
        (hidden("again", "1"))
        button type="submit" data-testid="edit-again" { "Edit again" }
    };
    let body = html! {
        section class="card" data-testid="comparison" {
            h1 { "Approve with these changes?" }
            (differs)
            h2 { "All that it runs with" }
            (edited.markup)
            (beside.markup(true))
            div class="actions" { (warning(proposal)) (act(visit, proposal, "approve", "approve", &content)) }
            div class="row" {
                (act(visit, proposal, "edit", "", &again))
                a class="button" href=(address(visit, &proposal.id)) { "Leave as proposed" }
            }
        }
    };
    Ok(Content {
        tab: Tab::Inbox,
        title: "Edit".to_owned(),
        body,
        command: format!("portmoot proposals approve {} --edit", proposal.id),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_object_without_twice_named_members_is_sent() {
        for (text, is_good) in [
            ("{}", true),
            (" {\"a\": 1}\n", true),
            ("[]", false),
            ("{\"a\": 1", false),
            ("{\"a\":1,\"a\":2}", false),
            ("{} {}", false),
            ("", false),
        ] {
            assert_eq!(written(text).is_ok(), is_good, "{text}");
        }
    }
}
