//! Command `proposals`: review what waits, and `ls`, `show`, `approve`, `reject`, `withdraw`, with
//! a running gateway.

mod decide;
pub(crate) mod list;
mod outcome;
mod review;

use ::review::{ProposalDetails, approval_body};
use model::OperationId;
use serde_json::{Value, json};

use self::review::shown;
use crate::cli::{ProposalsArgs, ProposalsCommand, RunningArgs};
use crate::commands::target::running_endpoint;
use crate::remote::{Remote, api};
use decide::{approve, arguments_given};
use outcome::decided;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::prompt::{ProcessTerminal, Terminal, confirm};

pub(crate) async fn run(args: ProposalsArgs, output: Output) -> Result<Exit, Failure> {
    let Some(command) = args.command else {
        let remote = running_endpoint(&args.gateway, output)?;
        if output.json || !ProcessTerminal.is_interactive() {
            return list::once(&remote, args.topic.as_deref(), false, output).await;
        }
        return review::all(&remote, args.topic.as_deref(), output).await;
    };
    match command {
        ProposalsCommand::Ls {
            all,
            topic,
            watch,
            gateway,
        } => {
            let remote = running_endpoint(&gateway, output)?;
            if watch {
                list::watch(&remote, topic.as_deref(), all, output).await
            } else {
                list::once(&remote, topic.as_deref(), all, output).await
            }
        }
        ProposalsCommand::Show { id, gateway } => {
            let remote = running_endpoint(&gateway, output)?;
            let id = whole_id(&remote, &id).await?;
            let answer = api::get(&remote, &["proposals", &id], &[]).await?;
            if output.json {
                output.result_json_text(&answer.text);
            } else {
                output.result(&shown(&answer.read::<ProposalDetails>()?));
            }
            Ok(Exit::Ok)
        }
        ProposalsCommand::Approve {
            id,
            arguments,
            note,
            edit,
            digest,
            yes,
            full,
            no_wait,
            gateway,
        } => {
            let remote = running_endpoint(&gateway, output)?;
            let id = whole_id(&remote, &id).await?;
            let arguments = arguments.as_deref().map(arguments_given).transpose()?;
            let (digest, arguments) = match digest {
                Some(digest) => (digest, arguments),
                None if yes => (digest_of(&remote, &id).await?, arguments),
                None => {
                    let look = Look { edit, full };
                    looked_at(&remote, &id, arguments, look, output).await?
                }
            };
            let body = approval_body(&digest, arguments.as_deref(), note.as_deref());
            approve(&remote, &id, body, !no_wait, output).await
        }
        ProposalsCommand::Reject {
            id,
            code,
            reason,
            gateway,
        } => reject(&id, code.as_deref(), reason, &gateway, output).await,
        ProposalsCommand::Claim { id, gateway } => {
            let remote = running_endpoint(&gateway, output)?;
            let id = whole_id(&remote, &id).await?;
            end(&remote, &id, "claim", &json!({}), output).await
        }
        ProposalsCommand::Extend { id, gateway } => {
            let remote = running_endpoint(&gateway, output)?;
            let id = whole_id(&remote, &id).await?;
            end(&remote, &id, "extend", &json!({}), output).await
        }
        ProposalsCommand::Amend {
            id,
            arguments,
            gateway,
        } => amend(&id, &arguments, &gateway, output).await,
        ProposalsCommand::Withdraw {
            id,
            reason,
            gateway,
        } => {
            let remote = running_endpoint(&gateway, output)?;
            let id = whole_id(&remote, &id).await?;
            let body = json!({ "reason": reason.filter(|reason| !reason.is_empty()) });
            end(&remote, &id, "withdraw", &body, output).await
        }
    }
}

/// The whole id that a text begins. A whole one is taken as it is, so that one that is unknown is
/// refused by the gateway.
///
/// # Errors
/// When no proposal's id begins so, or several do.
pub(super) async fn whole_id(remote: &Remote, text: &str) -> Result<String, Failure> {
    if text.parse::<OperationId>().is_ok() {
        return Ok(text.to_owned());
    }
    let all: Vec<ProposalDetails> = list::pages(remote, &[("all", "true")]).await?;
    let mut found = all
        .iter()
        .filter(|one| !text.is_empty() && one.id.starts_with(&text.to_lowercase()));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one.id.clone()),
        (Some(_), Some(_)) => Err(Failure::bad_argument(format!(
            "the ids of several proposals begin with `{text}`"
        ))
        .hint("write more of the id; list them: portmoot proposals ls --all")),
        (None, _) => {
            let message =
                format!("there is no proposal that you may see whose id begins with `{text}`");
            Err(Failure::new(Exit::NotFound, "unknown_target", message)
                .hint("list them: portmoot proposals ls --all"))
        }
    }
}

/// The digest of the present version of a proposal, without a look at it.
async fn digest_of(remote: &Remote, id: &str) -> Result<String, Failure> {
    let answer = api::get(remote, &["proposals", id], &[]).await?;
    Ok(answer.read::<ProposalDetails>()?.digest)
}

/// Wishes of a person who looks at a proposal before approving it.
#[derive(Clone, Copy)]
struct Look {
    /// To edit the arguments.
    edit: bool,
    /// To see the definition of the tool.
    full: bool,
}

/// Fetches the proposal and returns its digest and the arguments to approve it with, after the user
/// has confirmed them at the terminal.
async fn looked_at(
    remote: &Remote,
    id: &str,
    arguments: Option<String>,
    look: Look,
    output: Output,
) -> Result<(String, Option<String>), Failure> {
    let proposal: ProposalDetails = api::get(remote, &["proposals", id], &[]).await?.read()?;
    let mut terminal = ProcessTerminal;
    if !terminal.is_interactive() {
        let message = "an approval needs the digest of the proposal as you saw it, and the terminal is not interactive";
        let hint = format!(
            "run portmoot proposals show {id} and pass its digest with --digest HEX, or approve without looking with --yes"
        );
        return Err(Failure::new(Exit::Refused, "consent_needed", message).hint(hint));
    }
    terminal.show(&review::asked(&proposal, look.full));
    let arguments = if look.edit {
        Some(review::edited(&proposal)?)
    } else {
        arguments
    };
    if let Some(arguments) = &arguments {
        terminal.show(&review::replacement(arguments));
    }
    if confirm(&mut terminal, "Approve this proposal?") {
        return Ok((proposal.digest, arguments));
    }
    output.message("the proposal was not decided");
    Err(Failure::new(
        Exit::Refused,
        "consent_refused",
        "you did not approve the proposal",
    ))
}

/// Rejects. At a terminal the reason is asked for, unless one is given.
async fn reject(
    id: &str,
    code: Option<&str>,
    reason: Option<String>,
    gateway: &RunningArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let remote = running_endpoint(gateway, output)?;
    let id = whole_id(&remote, id).await?;
    let mut terminal = ProcessTerminal;
    let reason = match reason {
        None if terminal.is_interactive() && !output.json => Some(review::reason(&mut terminal)?),
        reason => reason,
    };
    let reason = reason.filter(|reason| !reason.is_empty());
    let body = json!({ "code": code, "reason": reason });
    end(&remote, &id, "reject", &body, output).await
}

/// Replaces the arguments of a proposal.
async fn amend(
    id: &str,
    arguments: &str,
    gateway: &RunningArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let arguments = arguments_given(arguments)?;
    let remote = running_endpoint(gateway, output)?;
    let id = whole_id(&remote, id).await?;
    let body = format!("{{\"arguments\":{arguments}}}");
    let answer = api::post(&remote, &["proposals", &id, "amend"], &[], body).await?;
    decided(&answer, output)
}

/// Rejects, withdraws, claims or extends (`verb`).
async fn end(
    remote: &Remote,
    id: &str,
    verb: &str,
    body: &Value,
    output: Output,
) -> Result<Exit, Failure> {
    let answer = api::post(remote, &["proposals", id, verb], &[], body.to_string()).await?;
    decided(&answer, output)
}
