//! A proposal as a card: who wants what, its arguments in full, and what a reviewer can do.

use html::Hostile;
use html::parts::hidden;
use maud::{Markup, html};
use review::ProposalDetails;
use sha2::{Digest as _, Sha256};

use crate::arguments::{Missing, Room, counted, table, text};
use crate::call::{ProposedCall, calls, name_to_type};
use crate::nearest::ApprovedCalls;
use crate::state::Visit;
use crate::times;

/// The longest note or reason, in characters: the API takes 4096 bytes.
const WORDS_CHARS_MAX: usize = 1_000;
/// Seconds that one extension gives, in words.
const MORE: &str = "10 minutes more";
/// The most times that the expiry of a proposal is moved.
const EXTENSIONS_MAX: usize = 10;

/// The beginning of the name of a field that chooses a proposal; its id follows, and its digest is the
/// value.
pub(crate) const CHOSEN: &str = "p.";

/// The form in which a card is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Showing {
    /// Whether every value is there in full.
    pub(crate) all: bool,
    /// Whether the card is the page, and not one of the inbox.
    pub(crate) alone: bool,
    /// Whether a reviewer can act on it here.
    pub(crate) acts: bool,
}

/// An id of the gateway as one of the page.
pub(crate) fn page_id(id: &str) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-' || *c == '_';
    format!("p-{}", id.chars().filter(plain).collect::<String>())
}

/// The card of a proposal. What is delivered in full is noted in the session.
pub(crate) fn card(
    visit: &Visit,
    proposal: &ProposalDetails,
    showing: Showing,
    approved: &ApprovedCalls,
) -> Markup {
    card_of(visit, proposal, showing, approved, None)
}

/// The card of a proposal that can be chosen, with others, for this form.
pub(crate) fn card_of(
    visit: &Visit,
    proposal: &ProposalDetails,
    showing: Showing,
    approved: &ApprovedCalls,
    chosen_for: Option<&str>,
) -> Markup {
    let mut room = Room::new(showing.all);
    let calls = calls(proposal, &mut room, approved);
    let missing = calls.iter().find_map(ProposedCall::missing);
    if missing.is_none() {
        visit.session.note_shown(&proposal.id, &proposal.digest);
    }
    let id = page_id(&proposal.id);
    let stamp = stamp(proposal, showing);
    html! {
        article class="card" id=(id) data-card data-digest=(proposal.digest) data-state=(proposal.state)
            data-hash=(stamp) data-testid="card" tabindex="-1" aria-labelledby={ "t-" (id) } {
            (heading(proposal, &calls, visit, showing))
            (facts(proposal, &id, visit))
            @if proposal.steps.is_empty() { @for call in &calls { (call.marks()) (call.asked(visit)) } }
            @else { (steps(visit, proposal, &calls)) }
            @if let Some(missing) = missing { (way_to_all(visit, proposal, missing, showing)) }
            (outcome(visit, proposal, showing, &mut room))
            @if proposal.steps.is_empty() { @for call in &calls { (call.tool()) } }
            @if let Some(missing) = calls.iter().find_map(ProposedCall::missing_of_tool) { (left_out(visit, proposal, missing, showing)) }
            @if proposal.is_pending() && showing.acts {
                (actions(visit, proposal, missing.is_none()))
                (choice(proposal, &id, chosen_for, missing.is_none()))
            }
            div class="answer" data-answer aria-live="polite" {}
        }
    }
}

/// The field at a card that chooses it for a form.
fn choice(proposal: &ProposalDetails, id: &str, form: Option<&str>, is_full: bool) -> Markup {
    let may_approve = is_full && name_to_type(proposal).is_none();
    let name = format!("{CHOSEN}{}", proposal.id);
    html! {
        div class="choose" id={ "c-" (id) } data-live {
            @if let Some(form) = form {
                label {
                    input type="checkbox" name=(name) value=(proposal.digest) form=(form) autocomplete="off" data-choice data-testid="choose";
                    @if may_approve { " Decide with others" } @else { " Reject with others" }
                }
            }
        }
    }
}

/// A mark of what a card asks: it changes when a reviewer must look again.
fn stamp(proposal: &ProposalDetails, showing: Showing) -> String {
    let steps = proposal.steps.iter().map(|step| step.state.as_deref());
    let text = format!(
        "{} {} {} {:?} {showing:?}",
        proposal.digest,
        proposal.state,
        proposal.amendments,
        steps.collect::<Vec<_>>()
    );
    let hash = Sha256::digest(text.as_bytes());
    data_encoding::HEXLOWER.encode(hash.get(..8).unwrap_or_default())
}

/// Who asks for what.
fn heading(
    proposal: &ProposalDetails,
    calls: &[ProposedCall],
    visit: &Visit,
    showing: Showing,
) -> Markup {
    let verb = match proposal.method.as_str() {
        "tools/call" => "wants to call".to_owned(),
        "resources/read" => "wants to read".to_owned(),
        other => format!("asks for {other} of"),
    };
    html! {
        header {
            h2 id={ "t-" (page_id(&proposal.id)) } {
                span class="who" { (Hostile(&proposal.by)) } " "
                @if proposal.steps.is_empty() {
                    (Hostile(&verb)) " " @for call in calls { (call.target()) }
                } @else { "wants to carry out " strong { "a plan of " (proposal.steps.len()) " steps" } }
            }
            @if !showing.alone {
                a class="more" href=(address(visit, &proposal.id)) { "Open" }
            }
        }
    }
}

/// The address of a proposal's own page.
pub(crate) fn address(visit: &Visit, id: &str) -> String {
    format!("{}/p/{}", visit.base, crate::api_client::encoded(id))
}

/// The steps of a plan, each in full.
fn steps(visit: &Visit, plan: &ProposalDetails, calls: &[ProposedCall]) -> Markup {
    html! {
        ol class="steps" {
            @for (step, call) in plan.steps.iter().zip(calls) {
                li data-testid="step" {
                    h3 {
                        (call.target())
                        @if let Some(state) = step.state.as_deref().filter(|_| !plan.is_pending()) { " · " (state_words(state, step.failed && state == "completed")) }
                        @if step.id != plan.id && !plan.is_pending() { " · " a href=(address(visit, &step.id)) { "its own page" } }
                    }
                    (call.marks())
                    (call.asked(visit))
                    (call.tool())
                }
            }
        }
    }
}

/// The place of a proposal in a plan: a decision is about all steps.
fn plan(visit: &Visit, proposal: &ProposalDetails) -> Option<Markup> {
    let plan = proposal.plan.as_ref()?;
    Some(html! {
        p data-testid="plan" {
            @if plan.step > 1 {
                "Step " (plan.step) " of " (plan.of) " of " a href=(address(visit, &plan.id)) { "a plan" } ", which is decided about as a whole."
            } @else { "Decided about as one: the steps run in this order, each once, and stop at the first that fails." }
        }
    })
}

/// Facts that change while a card is shown, and are not asked for: times, claims, approvals.
fn facts(proposal: &ProposalDetails, id: &str, visit: &Visit) -> Markup {
    html! {
        div class="facts" id={ "f-" (id) } data-live {
            p {
                @if proposal.is_pending() {
                    span class="left" data-until=(times::ms(&proposal.expires)) { "expires " (times::clock(&proposal.expires)) }
                } @else { strong data-testid="state" { (state(proposal)) } }
                " · asked " (times::clock(&proposal.at))
                @if proposal.is_pending() && proposal.held { " · " (if proposal.waited_for { "the caller waits" } else { "its caller may have gone on" }) }
                " · topic " (Hostile(&proposal.topic))
            }
            @if let Some(words) = plan(visit, proposal) { (words) }
            @if let Some(words) = approvals(proposal) { p data-testid="approvals" { (words) } }
            @if proposal.amendments > 0 { p { "Its proposer has replaced the arguments " (counted(proposal.amendments, "time", "times")) "." } }
            @if proposal.amended { p { "A reviewer has changed the arguments." } }
            @let others: Vec<_> = proposal.claims.iter().filter(|one| one.by != visit.session.participant).collect();
            @if !others.is_empty() {
                p data-testid="claims" {
                    "Looking at it now: "
                    @for one in others { span class="who" { (Hostile(&one.by)) } " since " (times::clock(&one.since)) " " }
                }
            }
            @if proposal.claims.iter().any(|one| one.by == visit.session.participant) { p { "Others see that you look at it." } }
            @for would in &proposal.would { p { "A rule in shadow: " (Hostile(&would.words)) } }
        }
    }
}

/// The state of a proposal in words.
fn state(proposal: &ProposalDetails) -> Markup {
    state_words(proposal.shown_state(), proposal.is_tool_error())
}

/// A state in words: a call may have run to its end and failed at its tool all the same.
pub(crate) fn state_words(state: &str, is_tool_error: bool) -> Markup {
    html! {
        (Hostile(&state.replace('_', " ")))
        @if is_tool_error { ": " span class="bad" { "the tool reported an error" } }
    }
}

/// Approvals so far, of a proposal that needs several.
fn approvals(proposal: &ProposalDetails) -> Option<Markup> {
    (proposal.approvals > 1).then(|| {
        html! {
            (proposal.approved_by.len()) " of " (proposal.approvals) " approvals"
            @for (at, by) in proposal.approved_by.iter().enumerate() {
                (if at == 0 { ": " } else { ", " }) span class="who" { (Hostile(by)) }
            }
        }
    })
}

/// The address at which every value of a proposal is shown.
fn address_of_all(visit: &Visit, proposal: &ProposalDetails, showing: Showing) -> String {
    let id = crate::api_client::encoded(&proposal.id);
    if showing.alone {
        format!("{}/p/{id}?all=1", visit.base)
    } else {
        format!("{}?all={id}#{}", visit.base, page_id(&proposal.id))
    }
}

/// The way to see what a reviewer must have seen before an approval.
fn way_to_all(
    visit: &Visit,
    proposal: &ProposalDetails,
    missing: &Missing,
    showing: Showing,
) -> Markup {
    html! {
        p class="missing" data-why="Show all of it first." {
            @if missing.is_too_large {
                "Too large for the console: " (missing.words) " are more than a page holds. Decide at a terminal: "
                code { "portmoot proposals approve " (proposal.id) }
            } @else {
                a href=(address_of_all(visit, proposal, showing)) data-testid="show-all" { "Show all " (missing.words) } " before you approve."
            }
        }
    }
}

/// A note that a table beside the arguments leaves something out.
fn left_out(
    visit: &Visit,
    proposal: &ProposalDetails,
    missing: &Missing,
    showing: Showing,
) -> Markup {
    html! {
        p class="soft" data-testid="left-out" {
            "Not all is shown here: " (missing.words) ". "
            @if missing.is_too_large { "At a terminal: " code { "portmoot proposals show " (proposal.id) } }
            @else { a href=(address_of_all(visit, proposal, showing)) { "Show all" } }
        }
    }
}

/// The end of a proposal: decision, notes, answer.
fn outcome(visit: &Visit, proposal: &ProposalDetails, showing: Showing, room: &mut Room) -> Markup {
    let answer = if proposal.is_tool_error() {
        "Its answer: an error that the tool reports"
    } else {
        "Its answer"
    };
    let texts = [
        ("As it ran, edited by the reviewer", &proposal.edited),
        (answer, &proposal.answer),
    ];
    let shown = texts.map(|(title, raw)| raw.as_ref().map(|raw| (title, table(raw.get(), room))));
    html! {
        @if let Some(by) = &proposal.decided_by {
            p class="verdict" data-testid="verdict" {
                strong { (state(proposal)) } ", decided by " span class="who" { (Hostile(by)) }
                @if let Some(rule) = &proposal.rule {
                    " with rule " (Hostile(rule))
                    @if let Some(author) = &proposal.rule_author { " of " (Hostile(author)) }
                }
                @if let Some(reason) = &proposal.reason { ": " (Hostile(reason)) }
            }
        } @else if let Some(reason) = &proposal.reason {
            p class="verdict" { strong { (state(proposal)) } ": " (Hostile(reason)) }
        }
        @for note in &proposal.notes { p class="verdict" { "Note of " span class="who" { (Hostile(&note.by)) } ": " (Hostile(&note.note)) } }
        @for (title, rows) in shown.iter().flatten() {
            h3 { (title) }
            (rows.markup)
            @if let Some(missing) = &rows.missing { (left_out(visit, proposal, missing, showing)) }
        }
    }
}

/// A form that posts an act on a proposal.
pub(crate) fn act(
    visit: &Visit,
    proposal: &ProposalDetails,
    act: &str,
    class: &str,
    content: &Markup,
) -> Markup {
    let address = format!("{}/{act}", address(visit, &proposal.id));
    html! {
        form method="post" action=(address) class=(class) data-act=(act) {
            (visit.token())
            (hidden("digest", &proposal.digest))
            (content)
        }
    }
}

/// Whether a rule can be made of a proposal.
pub(crate) fn may_have_rule(visit: &Visit, proposal: &ProposalDetails) -> bool {
    proposal.is_pending()
        && proposal.by != visit.session.participant
        && proposal.steps.is_empty()
        && proposal.arguments().is_some()
}

/// Forms of a reviewer's acts.
fn actions(visit: &Visit, proposal: &ProposalDetails, is_full: bool) -> Markup {
    if proposal.by == visit.session.participant {
        let content = html! { button type="submit" { "Withdraw" } };
        return html! {
            div class="actions" {
                p class="soft" { "It is yours: another participant decides about it." }
                (act(visit, proposal, "withdraw", "", &content))
            }
        };
    }
    let more = html! { button type="submit" data-testid="more" { (MORE) } };
    let claim = html! { button type="submit" data-testid="claim" { "I look at it" } };
    html! {
        div class="actions" {
            (warning(proposal))
            (act(visit, proposal, "approve", "approve", &approval(proposal, is_full)))
            (act(visit, proposal, "reject", "reject", &rejection("Reject")))
            div class="small" {
                @if proposal.steps.is_empty() && proposal.arguments().is_some() {
                    a class="button" data-edit href={ (address(visit, &proposal.id)) "?edit=1" } { "Edit" }
                }
                @if may_have_rule(visit, proposal) {
                    a class="button" data-like href={ (address(visit, &proposal.id)) "/like" } { "Approve calls like it" }
                }
                (act(visit, proposal, "claim", "", &claim))
                @if proposal.extensions < EXTENSIONS_MAX { (act(visit, proposal, "extend", "", &more)) }
            }
        }
    }
}

/// The words above the field in which a tool that its server calls destructive is named by hand.
pub(crate) fn warning(proposal: &ProposalDetails) -> Markup {
    let id = page_id(&proposal.id);
    html! {
        @if let Some(name) = name_to_type(proposal) {
            label class="warning" for={ "n-" (id) } { "It may destroy something. To approve, type " (text(&name)) }
        }
    }
}

/// Fields and button of an approval, below its [`warning`].
pub(crate) fn approval(proposal: &ProposalDetails, is_full: bool) -> Markup {
    let is_typed = name_to_type(proposal).is_some();
    let id = page_id(&proposal.id);
    html! {
        (hidden("confirmed", ""))
        @if is_typed {
            input type="text" id={ "n-" (id) } name="typed" autocomplete="off" autocapitalize="off"
                spellcheck="false" data-typed data-testid="typed" required;
        }
        button type="submit" class="main" data-arm[!is_typed] data-testid="approve" disabled[!is_full] { "Approve" }
        details class="note" {
            summary { "With a note" }
            label for={ "m-" (id) } { "Note to the proposer" }
            input type="text" id={ "m-" (id) } name="note" maxlength=(WORDS_CHARS_MAX) autocomplete="off";
        }
    }
}

/// Fields and button of a rejection.
pub(crate) fn rejection(button: &str) -> Markup {
    html! {
        details {
            summary data-testid="reject-open" { "Reject…" }
            fieldset {
                legend { "Why" }
                @for (value, words) in REASONS {
                    label { input type="radio" name="code" value=(value); " " (words) }
                }
            }
            label class="line" { "A line for the agent" input type="text" name="reason" maxlength=(WORDS_CHARS_MAX) autocomplete="off" data-testid="reason"; }
            button type="submit" class="danger" data-testid="reject" { (button) }
        }
    }
}

/// Reasons of the API, in words.
const REASONS: [(&str, &str); 2] = [
    ("arguments", "the call itself, as its arguments show it"),
    ("context", "not now, or not here"),
];
