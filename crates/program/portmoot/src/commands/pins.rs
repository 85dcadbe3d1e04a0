//! Commands `pins ls`, `pins show`, `pins approve` and `pins reset`, with a running gateway.

use json::visible;
use serde_json::{Value, json};

use crate::cli::{PinsCommand, RunningArgs};
use crate::commands::target::running_endpoint;
use crate::commands::view::cell;
use crate::remote::api;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

const COLUMNS: [&str; 5] = ["SERVER", "PART", "NAME", "STATE", "DIGEST"];
/// Digits of a digest that a table shows.
const DIGITS: usize = 12;
/// The place of a change that is of no single member.
const WHOLE: &str = "the whole definition";

pub(crate) async fn run(command: PinsCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        PinsCommand::Ls(gateway) => {
            let endpoint = running_endpoint(&gateway, output)?;
            let answer: Value = api::get(&endpoint, &["pins"], &[]).await?.read()?;
            let none = "nothing is pinned: servers are watched with pins = \"warn\" or \"block\" in their table or in [server]";
            output.listing_or(&answer, "pins", &COLUMNS, none, row);
        }
        PinsCommand::Show { server, gateway } => {
            let answer = pins_of(&server, &gateway, output).await?;
            if output.json {
                output.result_json(&answer);
                return Ok(Exit::Ok);
            }
            let changes: Vec<String> = waiting(&answer).map(shown).collect();
            if changes.is_empty() {
                output.message(&format!("nothing of `{server}` waits for an approval"))
            } else {
                output.result(&changes.join("\n\n"))
            }
        }
        PinsCommand::Approve {
            server,
            names,
            gateway,
        } => approve(&server, &names, &gateway, output).await?,
        PinsCommand::Reset { server, gateway } => {
            let endpoint = running_endpoint(&gateway, output)?;
            let answer: Value = api::delete(&endpoint, &["pins", &server]).await?.read()?;
            if output.json {
                output.result_json(&answer)
            } else {
                output.message(&format!("`{server}` is seen for the first time again"))
            }
        }
    }
    Ok(Exit::Ok)
}

/// Approves changes of a server's definitions: those of these names, or all.
async fn approve(
    server: &str,
    names: &[String],
    gateway: &RunningArgs,
    output: Output,
) -> Result<(), Failure> {
    let seen = pins_of(server, gateway, output).await?;
    let meant: Vec<&Value> = waiting(&seen)
        .filter(|pin| names.is_empty() || names.contains(&cell(pin, "name")))
        .collect();
    for name in names {
        if !meant.iter().any(|pin| cell(pin, "name") == *name) {
            let message = format!("no change of `{}` of `{server}` waits", visible::line(name));
            return Err(Failure::new(Exit::NotFound, "unknown_target", message)
                .hint(format!("see what does: portmoot pins show {server}")));
        }
    }
    if meant.is_empty() {
        output.message(&format!("nothing of `{server}` waits for an approval"));
        return Ok(());
    }
    let digests: Vec<String> = meant.iter().map(|pin| cell(pin, "waiting")).collect();
    // What is approved is what is printed here: the gateway compares the digests.
    if !output.json {
        for pin in meant {
            output.result(&shown(pin));
        }
    }
    let endpoint = running_endpoint(gateway, output)?;
    let body = json!({ "digests": digests }).to_string();
    let answer: Value = api::post(&endpoint, &["pins", server, "approve"], &[], body)
        .await?
        .read()?;
    if output.json {
        output.result_json(&answer)
    } else {
        output.message(&format!(
            "approved: {} of `{server}`",
            cell(&answer, "approved")
        ))
    }
    Ok(())
}

async fn pins_of(server: &str, gateway: &RunningArgs, output: Output) -> Result<Value, Failure> {
    let endpoint = running_endpoint(gateway, output)?;
    api::get(&endpoint, &["pins", server], &[]).await?.read()
}

/// The pins that wait for an approval.
fn waiting(answer: &Value) -> impl Iterator<Item = &Value> {
    answer
        .get("pins")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|pin| pin.get("waiting").is_some())
}

fn row(row: &Value) -> Vec<String> {
    let digest = if row.get("waiting").is_some() {
        cell(row, "waiting")
    } else {
        cell(row, "pinned")
    };
    let digest = digest.chars().take(DIGITS).collect();
    vec![
        cell(row, "server"),
        cell(row, "part"),
        cell(row, "name"),
        cell(row, "state"),
        digest,
    ]
}

/// A definition that waits, with a line for what was there and one for what is there now.
fn shown(pin: &Value) -> String {
    let name = visible::line(&cell(pin, "name"));
    let mut out = format!("{} {name}: {}", cell(pin, "part"), cell(pin, "state"));
    let changes = pin
        .get("changes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    for change in changes {
        let path = cell(change, "path");
        out += &format!(
            "\n  {}",
            if path.is_empty() {
                WHOLE.to_owned()
            } else {
                visible::line(&path)
            }
        );
        for (mark, side) in [('-', "before"), ('+', "after")] {
            if let Some(text) = change.get(side).and_then(Value::as_str) {
                out += &format!("\n    {mark} {}", visible::line(text));
            }
        }
    }
    out + &format!("\n  digest {}", cell(pin, "waiting"))
}
