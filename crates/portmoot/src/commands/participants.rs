//! Commands `participants ls`, `participants can`, `participants grant` and `participants revoke`, with a running gateway.

use serde_json::{Value, json};

use crate::cli::{ParticipantsCommand, RunningArgs};
use crate::commands::config::note_unmatched;
use crate::commands::rights;
use crate::commands::target::running_endpoint;
use crate::commands::view::{cell, texts};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::remote::api;
use crate::timestamp::duration_of;

const COLUMNS: [&str; 6] = ["TOPIC", "PARTICIPANT", "ROLE", "CONNECTIONS", "CAPABILITIES", "GRANTS"];

pub(crate) async fn run(command: ParticipantsCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ParticipantsCommand::Ls { topic, gateway, .. } => {
            let remote = running_endpoint(&gateway, output)?;
            let query = topic_query(topic.as_deref());
            let answer = api::get(&remote, &["participants"], &query).await?.read()?;
            output.listing(&answer, "participants", &COLUMNS, row);
        }
        ParticipantsCommand::Can { id, act, topic, gateway } => {
            return rights::run(&id, act.as_deref(), topic.as_deref(), &gateway, output).await;
        }
        ParticipantsCommand::Grant { id, capabilities, topic, time, reason, gateway } => {
            note_unmatched(&capabilities, output);
            let time = time.as_deref().map(|text| duration_of("--for", text)).transpose()?;
            let seconds = time.map(|time| time.as_secs().max(1));
            let body = json!({ "add": capabilities, "expires_in_seconds": seconds, "reason": reason });
            change(&id, &body, topic.as_deref(), &gateway, output).await?;
        }
        ParticipantsCommand::Revoke { id, capabilities, topic, reason, gateway } => {
            let body = json!({ "remove": capabilities, "reason": reason });
            change(&id, &body, topic.as_deref(), &gateway, output).await?;
        }
    }
    Ok(Exit::Ok)
}

async fn change(
    id: &str,
    body: &Value,
    topic: Option<&str>,
    gateway: &RunningArgs,
    output: Output,
) -> Result<(), Failure> {
    let remote = running_endpoint(gateway, output)?;
    let path = ["participants", id, "grants"];
    let answer = api::post(&remote, &path, &topic_query(topic), body.to_string()).await?.read()?;
    if output.json {
        output.result_json(&answer);
    } else {
        output.message(&format!("`{id}` now has these capabilities:"));
        output.result(&texts(&answer, "newCapabilities").join("\n"));
    }
    Ok(())
}

fn topic_query(topic: Option<&str>) -> Vec<(&str, &str)> {
    topic.map(|topic| ("topic", topic)).into_iter().collect()
}

fn row(row: &Value) -> Vec<String> {
    let grants = row.get("grants").and_then(Value::as_array).into_iter().flatten();
    let grants: Vec<String> = grants.map(grant).collect();
    let grants = if grants.is_empty() { "-".to_owned() } else { grants.join(", ") };
    let capabilities = texts(row, "capabilities").join(", ");
    vec![cell(row, "topic"), cell(row, "id"), cell(row, "role"), cell(row, "links"), capabilities, grants]
}

/// A grant as a cell: `+chat by admin until 2026-07-28T12:30:00.000Z`.
fn grant(grant: &Value) -> String {
    let sign = if grant.get("given") == Some(&Value::Bool(true)) { '+' } else { '-' };
    let end = grant.get("expires").and_then(Value::as_str).map(|end| format!(" until {end}"));
    format!("{sign}{} by {}{}", cell(grant, "capability"), cell(grant, "by"), end.unwrap_or_default())
}
