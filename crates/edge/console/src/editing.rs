//! Other arguments in place of the proposed ones: written, compared, then approved.

use html::parts::hidden;
use json::visible;
use maud::{Markup, html};
use review::{ProposalDetails, leaves};

use crate::api_client::Problem;
use crate::arguments::difference;
use crate::card::{act, address, approval, warning};
use crate::state::Visit;
use axum::http::StatusCode;

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
    let text = visible::escaped(&visible::pretty(arguments.get()));
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

/// The difference to what was proposed, with the form that approves it.
pub(crate) fn comparison(visit: &Visit, proposal: &ProposalDetails, arguments: &str) -> Markup {
    let proposed = proposal
        .arguments()
        .map_or_else(Vec::new, |raw| leaves(raw.get()));
    let content = html! {
        (hidden("arguments", arguments))
        (approval(proposal, true))
    };
    html! {
        section class="card" data-testid="comparison" {
            h2 { "Approve with these changes?" }
            (difference(&proposed, &leaves(arguments)))
            div class="actions" { (warning(proposal)) (act(visit, proposal, "approve", "approve", &content)) }
        }
    }
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
