//! Commands `participants ls`, `can`, `grant`, `allow`, `pause`, `resume` and `revoke`, with a
//! running gateway.

use std::time::Duration;

use json::visible;
use platform::unix_ms;
use serde_json::{Value, json};

use crate::cli::ParticipantsCommand;
use crate::commands::config::note_unmatched;
use crate::commands::rights::{self, past};
use crate::commands::target::running_endpoint;
use crate::commands::view::{cell, texts};
use crate::remote::{Remote, api};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::timestamp::{duration_of, minute};

const COLUMNS: [&str; 6] = [
    "TOPIC",
    "PARTICIPANT",
    "ROLE",
    "CONNECTIONS",
    "CAPABILITIES",
    "GRANTS",
];

pub(crate) async fn run(command: ParticipantsCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ParticipantsCommand::Ls { topic, gateway, .. } => {
            let remote = running_endpoint(&gateway, output)?;
            let query = topic_query(topic.as_deref());
            let answer = api::get(&remote, &["participants"], &query).await?.read()?;
            output.listing(&answer, "participants", &COLUMNS, row);
        }
        ParticipantsCommand::Can {
            id,
            act,
            topic,
            with,
            grant,
            revoke,
            since,
            gateway,
        } => {
            if with.is_some() || !grant.is_empty() || !revoke.is_empty() {
                note_unmatched(&grant, output);
                let trial = past::Trial {
                    id: &id,
                    file: with,
                    added: &grant,
                    removed: &revoke,
                    topic,
                    since: since.as_deref(),
                };
                return past::run(&trial, &gateway.config, output);
            }
            return rights::run(&id, act.as_deref(), topic.as_deref(), &gateway, output).await;
        }
        ParticipantsCommand::Grant {
            id,
            capabilities,
            topic,
            time,
            reason,
            gateway,
        } => {
            note_unmatched(&capabilities, output);
            let time = GrantTime::read(time.as_deref())?;
            let seconds = time.seconds();
            let body =
                json!({ "add": capabilities, "expires_in_seconds": seconds, "reason": reason });
            let remote = running_endpoint(&gateway, output)?;
            change(&remote, &id, &body, topic.as_deref(), output).await?;
            time.say_end(output);
        }
        ParticipantsCommand::Allow {
            id,
            tools,
            topic,
            time,
            propose,
            gateway,
        } => {
            let time = GrantTime::read(time.as_deref())?;
            let head = if propose {
                "mcp/proposal"
            } else {
                "mcp/request"
            };
            let remote = running_endpoint(&gateway, output)?;
            let capabilities = needed(&remote, &id, &tools, topic.as_deref(), head, output).await?;
            let body = json!({ "add": capabilities, "expires_in_seconds": time.seconds() });
            change(&remote, &id, &body, topic.as_deref(), output).await?;
            time.say_end(output);
        }
        ParticipantsCommand::Pause {
            id,
            topic,
            reason,
            gateway,
        } => {
            let remote = running_endpoint(&gateway, output)?;
            brake(&remote, &topic, &id, "pause", reason.as_deref(), output).await?;
        }
        ParticipantsCommand::Resume {
            id,
            topic,
            reason,
            gateway,
        } => {
            let remote = running_endpoint(&gateway, output)?;
            brake(&remote, &topic, &id, "resume", reason.as_deref(), output).await?;
        }
        ParticipantsCommand::Revoke {
            id,
            capabilities,
            topic,
            reason,
            gateway,
        } => {
            let body = json!({ "remove": capabilities, "reason": reason });
            let remote = running_endpoint(&gateway, output)?;
            change(&remote, &id, &body, topic.as_deref(), output).await?;
        }
    }
    Ok(Exit::Ok)
}

/// How long a grant is for (`--for`); `None` has no end.
struct GrantTime(Option<Duration>);

impl GrantTime {
    /// # Errors
    /// When it is not a duration.
    fn read(text: Option<&str>) -> Result<Self, Failure> {
        let time = text.map(|text| duration_of("--for", text)).transpose()?;
        Ok(Self(time))
    }

    /// At least one, if there are any.
    fn seconds(&self) -> Option<u64> {
        self.0.map(|time| time.as_secs().max(1))
    }

    /// Says until when the grant is.
    fn say_end(&self, output: Output) {
        if let Some(time) = self.0 {
            output.message(&format!(
                "until {}",
                minute(unix_ms().saturating_add(platform::millis(time)))
            ));
        }
    }
}

/// The capabilities that calls of these tools need: over MCP under their public names, in rooms
/// under the servers' own, unless another server there has a tool of that name too.
async fn needed(
    remote: &Remote,
    id: &str,
    tools: &[String],
    topic: Option<&str>,
    head: &str,
    output: Output,
) -> Result<Vec<String>, Failure> {
    let answer: Value = api::get(remote, &["participants", id, "can"], &topic_query(topic))
        .await?
        .read()?;
    let all = answer
        .get("entries")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let listed: Vec<&Value> = all
        .iter()
        .filter(|one| cell(one, "method") == "tools/call")
        .collect();
    let enters_rooms = texts(&answer, "wires").contains(&"ws");
    let mut capabilities = Vec::new();
    for tool in tools {
        let Some(found) = listed.iter().find(|one| cell(one, "name") == *tool) else {
            let message = format!("`{id}` has no tool `{}` in its topics", visible::line(tool));
            return Err(Failure::new(Exit::NotFound, "unknown_target", message).hint(
                "list the tools with: portmoot tools ls; patterns are for: portmoot participants grant",
            ));
        };
        capabilities.push(format!("{head}:tools/call:{tool}"));
        let own = cell(found, "own");
        let server = cell(found, "server");
        let is_of_others = listed
            .iter()
            .any(|one| cell(one, "own") == own && cell(one, "server") != server);
        if is_of_others && enters_rooms {
            output.message(&format!(
                "note: over MCP only: in rooms `{tool}` is `{own}`, as is a tool of another server; to allow it there too, write \
                 {{ kind = \"{head}:tools/call:{own}\", to = [\"{server}\"] }} in the configuration"
            ));
        } else if own != *tool {
            capabilities.push(format!("{head}:tools/call:{own}"));
        }
    }
    Ok(capabilities)
}

async fn change(
    remote: &Remote,
    id: &str,
    body: &Value,
    topic: Option<&str>,
    output: Output,
) -> Result<(), Failure> {
    let path = ["participants", id, "grants"];
    let answer = api::post(remote, &path, &topic_query(topic), body.to_string())
        .await?
        .read()?;
    if output.json {
        output.result_json(&answer);
    } else {
        output.message(&format!("`{id}` now has these capabilities:"));
        output.result(&texts(&answer, "newCapabilities").join("\n"));
    }
    Ok(())
}

/// Pauses or resumes a participant (`verb`).
async fn brake(
    remote: &Remote,
    topic: &str,
    id: &str,
    verb: &str,
    reason: Option<&str>,
    output: Output,
) -> Result<(), Failure> {
    let path = ["topics", topic, "participants", id, verb];
    let body = json!({ "reason": reason }).to_string();
    let answer = api::post(remote, &path, &[], body).await?;
    if output.json {
        output.result_json_text(&answer.text);
    } else if verb == "pause" {
        let there = if topic == config::MAIN_TOPIC {
            String::new()
        } else {
            format!(" --topic {topic}")
        };
        output.message(&format!(
            "`{id}` is paused in `{topic}`: its calls wait for decisions, until: portmoot participants resume {id}{there}"
        ));
    } else {
        output.message(&format!("`{id}` is resumed in `{topic}`"));
    }
    Ok(())
}

fn topic_query(topic: Option<&str>) -> Vec<(&str, &str)> {
    topic.map(|topic| ("topic", topic)).into_iter().collect()
}

fn row(row: &Value) -> Vec<String> {
    let grants = row
        .get("grants")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let grants: Vec<String> = grants.map(grant).collect();
    let grants = if grants.is_empty() {
        "-".to_owned()
    } else {
        grants.join(", ")
    };
    let capabilities = texts(row, "capabilities").join(", ");
    let clients = texts(row, "clients").join(", ");
    let links = cell(row, "links");
    let links = if clients.is_empty() {
        links
    } else {
        format!("{links} ({clients})")
    };
    let mut role = cell(row, "role");
    if let Some(paused) = row.get("paused") {
        role = format!("{role}, paused by {}", cell(paused, "by"));
    }
    vec![
        cell(row, "topic"),
        cell(row, "id"),
        role,
        links,
        capabilities,
        grants,
    ]
}

/// A grant as a cell: `+chat by admin until 2026-07-28T12:30:00.000Z`.
fn grant(grant: &Value) -> String {
    let sign = if grant.get("given") == Some(&Value::Bool(true)) {
        '+'
    } else {
        '-'
    };
    let end = grant
        .get("expires")
        .and_then(Value::as_str)
        .map(|end| format!(" until {end}"));
    format!(
        "{sign}{} by {}{}",
        cell(grant, "capability"),
        cell(grant, "by"),
        end.unwrap_or_default()
    )
}
