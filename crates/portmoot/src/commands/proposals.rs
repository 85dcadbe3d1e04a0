//! Commands `proposals ls`, `show`, `approve`, `reject` and `withdraw`, with a running gateway.

mod details;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::cli::ProposalsCommand;
use crate::commands::target::running_endpoint;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::remote::api::Answer;
use crate::remote::{Remote, api};
use crate::terminal::{ProcessTerminal, Terminal, confirm};
use details::{ProposalDetails, ProposalList};

const COLUMNS: [&str; 6] = ["ID", "STATE", "BY", "REQUEST", "TO", "EXPIRES"];

pub(crate) async fn run(command: ProposalsCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ProposalsCommand::Ls { all, topic, gateway, .. } => {
            let mut query: Vec<(&str, &str)> = topic.iter().map(|topic| ("topic", topic.as_str())).collect();
            query.extend(all.then_some(("all", "true")));
            let answer = api::get(&running_endpoint(&gateway, output)?, &["proposals"], &query).await?;
            print(&answer, |list: ProposalList| output.table(&COLUMNS, list.rows()), output)
        }
        ProposalsCommand::Show { id, gateway } => {
            let answer = api::get(&running_endpoint(&gateway, output)?, &["proposals", &id], &[]).await?;
            print(&answer, |proposal: ProposalDetails| output.result(&proposal.to_text()), output)
        }
        ProposalsCommand::Approve { id, arguments, digest, yes, gateway } => {
            let remote = running_endpoint(&gateway, output)?;
            let arguments = arguments.as_deref().map(arguments_given).transpose()?;
            let digest = match digest {
                Some(digest) => digest,
                None => digest_shown(&remote, &id, arguments, yes, output).await?,
            };
            let mut body = format!("{{\"digest\":{}", json!(digest));
            if let Some(arguments) = arguments {
                body += &format!(",\"arguments\":{arguments}");
            }
            body.push('}');
            decide(&remote, &id, "approve", body, output).await
        }
        ProposalsCommand::Reject { id, reason, gateway } => {
            let body = json!({ "reason": reason }).to_string();
            decide(&running_endpoint(&gateway, output)?, &id, "reject", body, output).await
        }
        ProposalsCommand::Withdraw { id, reason, gateway } => {
            let body = json!({ "reason": reason }).to_string();
            decide(&running_endpoint(&gateway, output)?, &id, "withdraw", body, output).await
        }
    }
}

/// Prints an answer: the text of the gateway, unchanged, with `--json`; numbers keep their spelling.
fn print<T: DeserializeOwned>(
    answer: &Answer,
    show: impl FnOnce(T),
    output: Output,
) -> Result<Exit, Failure> {
    if output.json {
        output.result(&answer.text)
    } else {
        show(answer.read()?)
    }
    Ok(Exit::Ok)
}

/// Fetches the proposal and returns its digest, after the user has confirmed it at the terminal; with `--yes`, without
/// showing it.
async fn digest_shown(
    remote: &Remote,
    id: &str,
    arguments: Option<&str>,
    yes: bool,
    output: Output,
) -> Result<String, Failure> {
    let proposal: ProposalDetails = api::get(remote, &["proposals", id], &[]).await?.read()?;
    if yes {
        return Ok(proposal.digest);
    }
    let mut terminal = ProcessTerminal;
    if !terminal.is_interactive() {
        let message =
            "an approval needs the digest of the proposal as you saw it, and the terminal is not interactive";
        let hint = format!(
            "run portmoot proposals show {id} and pass its digest with --digest HEX, or approve without looking with --yes"
        );
        return Err(Failure::new(Exit::Refused, "consent_needed", message).hint(hint));
    }
    terminal.show(&proposal.to_text());
    if let Some(arguments) = arguments {
        terminal.show(&format!("replacement arguments:\n{}", details::pretty_json(arguments)));
    }
    if confirm(&mut terminal, "Approve this proposal?") {
        return Ok(proposal.digest);
    }
    output.message("the proposal was not decided");
    Err(Failure::new(Exit::Refused, "consent_refused", "you did not approve the proposal"))
}

async fn decide(
    remote: &Remote,
    id: &str,
    verb: &str,
    body: String,
    output: Output,
) -> Result<Exit, Failure> {
    let answer = api::post(remote, &["proposals", id, verb], &[], body).await?;
    let show = |proposal: ProposalDetails| {
        output.result(&proposal.state);
        output.message(&proposal.outcome());
    };
    print(&answer, show, output)
}

fn arguments_given(text: &str) -> Result<&str, Failure> {
    let object = serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok()
        && json::refuse_duplicates(text.as_bytes()).is_ok();
    if object {
        return Ok(text);
    }
    let failure = Failure::bad_argument("--arguments must be a JSON object");
    Err(failure.hint(r#"for example --arguments '{"path":"/tmp/report"}'"#))
}
