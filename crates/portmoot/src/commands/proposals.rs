//! `proposals ls`, `show`, `approve`, `reject` and `withdraw`: with a gateway that runs, for only it knows what waits.

mod sheet;

use serde_json::{Value, json};

use crate::cli::ProposalsCommand;
use crate::commands::reach::reach_running;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate::{Api, Remote};
use crate::output::Output;
use crate::terminal::{Console, Terminal, confirm};
use sheet::{All, One};

const COLUMNS: [&str; 6] = ["ID", "STATE", "BY", "ACT", "TO", "EXPIRES"];

pub(crate) async fn run(command: ProposalsCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ProposalsCommand::Ls { all, topic, gateway } => {
            let mut query: Vec<(&str, &str)> = topic.iter().map(|topic| ("topic", topic.as_str())).collect();
            query.extend(all.then_some(("all", "true")));
            list(&Api::new(&reach_running(&gateway, output)?).get_text(&["proposals"], &query).await?, output)
        }
        ProposalsCommand::Show { id, gateway } => {
            let remote = reach_running(&gateway, output)?;
            show(&Api::new(&remote).get_text(&["proposals", &id], &[]).await?, output)
        }
        ProposalsCommand::Approve { id, arguments, digest, yes, gateway } => {
            let remote = reach_running(&gateway, output)?;
            let arguments = arguments.as_deref().map(arguments_given).transpose()?;
            let digest = match digest {
                Some(digest) => digest,
                None => seen(&remote, &id, arguments, yes, output).await?,
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
            decide(&reach_running(&gateway, output)?, &id, "reject", body, output).await
        }
        ProposalsCommand::Withdraw { id, reason, gateway } => {
            let body = json!({ "reason": reason }).to_string();
            decide(&reach_running(&gateway, output)?, &id, "withdraw", body, output).await
        }
    }
}

fn list(answer: &str, output: Output) -> Result<Exit, Failure> {
    if output.json {
        // As the gateway wrote it: numbers keep their spelling.
        output.result(answer);
        return Ok(Exit::Ok);
    }
    let all = All::read(answer)?;
    output.listing(&Value::Null, &COLUMNS, &all.rows());
    Ok(Exit::Ok)
}

fn show(answer: &str, output: Output) -> Result<Exit, Failure> {
    if output.json {
        output.result(answer);
    } else {
        output.result(&One::read(answer)?.sheet());
    }
    Ok(Exit::Ok)
}

/// The digest of what is shown here and now: to the person at the terminal, or to nobody with `--yes`.
async fn seen(
    remote: &Remote,
    id: &str,
    arguments: Option<&str>,
    yes: bool,
    output: Output,
) -> Result<String, Failure> {
    let answer = Api::new(remote).get_text(&["proposals", id], &[]).await?;
    let proposal = One::read(&answer)?;
    if yes {
        return Ok(proposal.digest.clone());
    }
    let mut console = Console;
    if !console.is_attended() {
        let message = "an approval is bound to what was shown, and nobody is here to be shown it";
        let hint = format!(
            "look at it: portmoot proposals show {id}; then give its digest: --digest HEX, or agree with --yes"
        );
        return Err(Failure::new(Exit::Refused, "consent_needed", message).hint(hint));
    }
    console.show(&proposal.sheet());
    if let Some(arguments) = arguments {
        console.show(&format!("it would run with these arguments instead:\n{}", sheet::laid_out(arguments)));
    }
    if confirm(&mut console, "Approve it?") {
        return Ok(proposal.digest.clone());
    }
    output.talk("nothing was decided");
    Err(Failure::new(Exit::Refused, "consent_refused", "it was not approved"))
}

async fn decide(
    remote: &Remote,
    id: &str,
    verb: &str,
    body: String,
    output: Output,
) -> Result<Exit, Failure> {
    let answer = Api::new(remote).post_text(&["proposals", id, verb], body).await?;
    if output.json {
        output.result(&answer);
    } else {
        let proposal = One::read(&answer)?;
        output.result(&proposal.state);
        output.talk(&proposal.stands());
    }
    Ok(Exit::Ok)
}

fn arguments_given(text: &str) -> Result<&str, Failure> {
    let object = serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok()
        && json::refuse_duplicates(text.as_bytes()).is_ok();
    if object {
        return Ok(text);
    }
    let failure = Failure::new(Exit::Usage, "bad_argument", "--arguments must be a JSON object");
    Err(failure.hint(r#"such as --arguments '{"path":"/tmp/report"}'"#))
}
