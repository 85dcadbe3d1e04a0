//! Review at the terminal: one proposal after the other, a letter and Enter each.

use ::chat::card::{Around, before_question, brief, lines, text};
use ::chat::rows::columns;
use ::chat::{Zone, edit_text};
use json::visible;
use platform::unix_ms;
use review::{ProposalDetails, ToolEffects, approval_body};

use super::decide::{approve, arguments_given};
use super::list::pages;
use super::outcome;
use crate::remote::{Remote, api};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::prompt::{ProcessTerminal, Terminal, confirm};

const QUESTION: &str = "[a]pprove, approve with a [n]ote, [r]eject, [e]dit, [s]kip, [q]uit?";

/// A proposal as a reviewer reads it: what matters first, the definition of the tool last.
pub(super) fn shown(proposal: &ProposalDetails) -> String {
    let around = Around {
        now_ms: unix_ms(),
        zone: Zone::local(),
        is_here: &|_| true,
    };
    let (lines, _) = lines("proposal", proposal, around);
    text(&lines, columns())
}

/// A proposal before a question: who asks for what stands beside it, and the definition of the tool
/// is there only in full, so that it does not scroll away what is asked.
pub(super) fn asked(proposal: &ProposalDetails, full: bool) -> String {
    let around = Around {
        now_ms: unix_ms(),
        zone: Zone::local(),
        is_here: &|_| true,
    };
    let (mut lines, must_see) = lines("proposal", proposal, around);
    if !full {
        let id = visible::line(&proposal.id);
        lines = brief(
            lines,
            &format!("its definition: portmoot proposals show {id}"),
        );
    }
    text(&before_question(lines, must_see), columns())
}

/// Replacement arguments as they will run.
pub(super) fn replacement(arguments: &str) -> String {
    format!("replacement arguments:\n{}", visible::pretty(arguments))
}

/// The proposed arguments after the person has edited them.
///
/// # Errors
/// When there is nothing to edit, or no other arguments come of it.
pub(super) fn edited(proposal: &ProposalDetails) -> Result<String, Failure> {
    if !proposal.steps.is_empty() {
        let why = "a plan of several calls is approved as it is, or not at all";
        return Err(Failure::bad_argument(why));
    }
    if proposal.method != "tools/call" {
        return Err(Failure::bad_argument(
            "only the arguments of a tool's call can be edited",
        ));
    }
    let proposed = proposal
        .arguments()
        .map_or_else(|| "{}".to_owned(), |raw| raw.get().to_owned());
    let lines: Vec<String> = visible::pretty(&visible::escaped(&proposed))
        .lines()
        .map(|line| line.strip_prefix("  ").unwrap_or(line).to_owned())
        .collect();
    let edited = edit_text(&(lines.join("\n") + "\n"));
    let edited = edited.map_err(|why| {
        Failure::new(
            Exit::Refused,
            "consent_refused",
            format!("the proposal was not decided: {why}"),
        )
    })?;
    arguments_given(edited.trim())
}

/// Asks for the reason of a rejection; empty for none.
///
/// # Errors
/// At the end of the input: nothing was decided.
pub(super) fn reason(terminal: &mut dyn Terminal) -> Result<String, Failure> {
    asked_words(terminal, "Reason for the proposer (Enter for none):")
}

/// Asks for the words that go with a decision; empty for none.
fn asked_words(terminal: &mut dyn Terminal, question: &str) -> Result<String, Failure> {
    let words = terminal.ask(question);
    words.map(|words| words.trim().to_owned()).ok_or_else(|| {
        Failure::new(
            Exit::Refused,
            "consent_refused",
            "the input ended, and the proposal was not decided",
        )
    })
}

/// Reviews what waits, oldest first.
pub(super) async fn all(
    remote: &Remote,
    topic: Option<&str>,
    output: Output,
) -> Result<Exit, Failure> {
    let mut query: Vec<(&str, &str)> = topic.map(|topic| ("topic", topic)).into_iter().collect();
    query.push(("shown", "true"));
    let mut pending: Vec<ProposalDetails> = pages(remote, &query).await?;
    pending.retain(ProposalDetails::is_pending);
    if pending.is_empty() {
        output.message(
            "no proposal waits for a decision; to see them come: portmoot proposals ls --watch",
        );
        return Ok(Exit::Ok);
    }
    let mut terminal = ProcessTerminal;
    let count = pending.len();
    for (at, listed) in (1..).zip(pending) {
        terminal.show(&format!("\n{at} of {count}"));
        terminal.show(&asked(&listed, false));
        terminal.discard_input();
        let typed = terminal.ask(QUESTION).unwrap_or_else(|| "q".to_owned());
        let done = match typed.trim() {
            "a" => approve_one(remote, &listed, None, None, &mut terminal, output).await,
            "n" => match asked_words(&mut terminal, "Note for the proposer (Enter for none):") {
                Ok(note) => {
                    approve_one(remote, &listed, None, Some(note), &mut terminal, output).await
                }
                Err(failure) => Err(failure),
            },
            "e" => match edited(&listed) {
                Ok(arguments) => {
                    terminal.show(&replacement(&arguments));
                    let arguments = Some(arguments);
                    approve_one(remote, &listed, arguments, None, &mut terminal, output).await
                }
                Err(failure) => Err(failure),
            },
            "r" => reject_one(remote, &listed, &mut terminal, output).await,
            "q" => return Ok(Exit::Ok),
            "s" | "" => Ok(()),
            _ => {
                terminal.show("it was skipped: type a, n, r, e, s or q");
                Ok(())
            }
        };
        // The next one can be decided all the same.
        if let Err(failure) = done {
            output.failure(&failure);
        }
    }
    Ok(Exit::Ok)
}

async fn approve_one(
    remote: &Remote,
    proposal: &ProposalDetails,
    arguments: Option<String>,
    note: Option<String>,
    terminal: &mut ProcessTerminal,
    output: Output,
) -> Result<(), Failure> {
    let effects = ToolEffects::of(proposal);
    let asks = arguments.is_some() || effects.needs_second_key();
    if asks && !confirm(terminal, &format!("Approve it? {}:", effects.words())) {
        output.message("the proposal was not decided");
        return Ok(());
    }
    let body = approval_body(&proposal.digest, arguments.as_deref(), note.as_deref());
    approve(remote, &proposal.id, body, true, output)
        .await
        .map(drop)
}

async fn reject_one(
    remote: &Remote,
    proposal: &ProposalDetails,
    terminal: &mut ProcessTerminal,
    output: Output,
) -> Result<(), Failure> {
    let reason = Some(reason(terminal)?).filter(|reason| !reason.is_empty());
    let body = serde_json::json!({ "reason": reason }).to_string();
    let answer = api::post(remote, &["proposals", &proposal.id, "reject"], &[], body).await?;
    outcome::decided(&answer, output).map(drop)
}
