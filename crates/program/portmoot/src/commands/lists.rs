//! Commands `resources ls`, `resources read`, `prompts ls` and `prompts get`: in an MCP session.

use std::io::{IsTerminal, stdout};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json::visible;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::cli::{GatewayArgs, PromptsCommand, ResourcesCommand};
use crate::commands::servers::say_what_is_down;
use crate::commands::target::resolve;
use crate::commands::view::{cell, is_named, short};
use crate::remote::{ClientSession, Endpoint};
use crate::responder::TerminalResponder;
use ::chat::content;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::prompt::Unattended;

const RESOURCES: [&str; 4] = ["URI", "NAME", "TYPE", "DESCRIPTION"];
const PROMPTS: [&str; 3] = ["NAME", "ARGUMENTS", "DESCRIPTION"];
/// Pages of one list, so that a server whose list has no end does not keep the command running.
const PAGES_MAX: usize = 1000;

pub(crate) async fn resources(command: ResourcesCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ResourcesCommand::Ls {
            pattern,
            topic,
            gateway,
            ..
        } => {
            let listed = list((&topic, &gateway), "resources", pattern.as_deref(), output).await?;
            let row = |one: &Value| {
                vec![
                    cell(one, "uri"),
                    cell(one, "name"),
                    cell(one, "mimeType"),
                    short(&cell(one, "description")),
                ]
            };
            output.listing(&listed, "resources", &RESOURCES, row);
        }
        ResourcesCommand::Read {
            uri,
            topic,
            gateway,
        } => {
            let params = json!({ "uri": uri }).to_string();
            let result = request((&topic, &gateway), "resources/read", &params, output).await?;
            if output.json {
                output.result_json_text(&result);
            } else {
                contents(&serde_json::from_str(&result).unwrap_or_default(), output)?;
            }
        }
    }
    Ok(Exit::Ok)
}

pub(crate) async fn prompts(command: PromptsCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        PromptsCommand::Ls {
            pattern,
            topic,
            gateway,
            ..
        } => {
            let listed = list((&topic, &gateway), "prompts", pattern.as_deref(), output).await?;
            output.listing(&listed, "prompts", &PROMPTS, |one| {
                vec![
                    cell(one, "name"),
                    arguments(one),
                    short(&cell(one, "description")),
                ]
            });
        }
        PromptsCommand::Get {
            name,
            arguments,
            topic,
            gateway,
        } => {
            let params = json!({ "name": name, "arguments": given(&arguments)? }).to_string();
            let result = request((&topic, &gateway), "prompts/get", &params, output).await?;
            if output.json {
                output.result_json_text(&result);
            } else {
                let result: Value = serde_json::from_str(&result).unwrap_or_default();
                let messages = result
                    .get("messages")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten();
                messages.for_each(|message| output.result(&said(message)));
            }
        }
    }
    Ok(Exit::Ok)
}

/// The topic and the gateway of a command.
type CallOptions<'a> = (&'a str, &'a GatewayArgs);

/// One request in a session that declares nothing.
async fn request(
    (topic, gateway): CallOptions<'_>,
    method: &str,
    params: &str,
    output: Output,
) -> Result<String, Failure> {
    let endpoint = resolve(gateway, output)?;
    let mut unattended = Unattended;
    let responder = TerminalResponder::new(&mut unattended, output);
    let mut session = ClientSession::open(&*endpoint, topic, responder).await?;
    let result = session.request(method, params).await;
    session.close().await;
    result
}

/// All pages of a list, in one object; with a pattern, only entries whose name or URI matches.
async fn list(
    (topic, gateway): CallOptions<'_>,
    member: &str,
    pattern: Option<&str>,
    output: Output,
) -> Result<Value, Failure> {
    let endpoint = resolve(gateway, output)?;
    let mut all = all(&*endpoint, topic, member, output).await?;
    say_what_is_down(&*endpoint, output).await;
    if let Some(pattern) = pattern {
        all.retain(|one| {
            ["name", "uri"]
                .iter()
                .any(|key| is_named(&cell(one, key), pattern))
        });
    }
    Ok(json!({ member: all }))
}

/// All entries of a list, as they are in MCP.
async fn all(
    endpoint: &dyn Endpoint,
    topic: &str,
    member: &str,
    output: Output,
) -> Result<Vec<Value>, Failure> {
    let written = written(endpoint, topic, member, output).await?;
    Ok(written
        .iter()
        .filter_map(|entry| serde_json::from_str(entry.get()).ok())
        .collect())
}

/// All entries of a list, as their servers wrote them.
pub(super) async fn written(
    endpoint: &dyn Endpoint,
    topic: &str,
    member: &str,
    output: Output,
) -> Result<Vec<Box<RawValue>>, Failure> {
    let mut unattended = Unattended;
    let responder = TerminalResponder::new(&mut unattended, output);
    let mut session = ClientSession::open(endpoint, topic, responder).await?;
    let mut all = Vec::new();
    let mut params = json!({});
    for _ in 0..PAGES_MAX {
        let page = session
            .request(&format!("{member}/list"), &params.to_string())
            .await?;
        let items = json::at(page.as_bytes(), &[member]);
        let items =
            items.and_then(|items| serde_json::from_slice::<Vec<Box<RawValue>>>(items).ok());
        all.extend(items.into_iter().flatten());
        match json::at(page.as_bytes(), &["nextCursor"]).and_then(json::text) {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    session.close().await;
    Ok(all)
}

/// Prints what a resource holds: texts with control characters made visible, bytes as they are, but
/// not to a terminal.
fn contents(result: &Value, output: Output) -> Result<(), Failure> {
    for content in result
        .get("contents")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        match (
            content.get("text").and_then(Value::as_str),
            content.get("blob").and_then(Value::as_str),
        ) {
            (Some(text), _) if stdout().is_terminal() => output.result(&visible::lines(text)),
            (Some(text), _) => output.bytes(text.as_bytes()),
            (None, Some(_)) if stdout().is_terminal() => {
                let failure =
                    Failure::new(Exit::Failed, "binary", "this resource has bytes, not text");
                return Err(failure.hint("write it to a file: portmoot resources read URI > FILE"));
            }
            (None, blob) => {
                let bytes = STANDARD.decode(blob.unwrap_or_default());
                let wrong =
                    |_| Failure::new(Exit::Failed, "malformed", "the resource is not base64");
                output.bytes(&bytes.map_err(wrong)?);
            }
        }
    }
    Ok(())
}

/// The arguments of a prompt: each is a text.
fn given(arguments: &[String]) -> Result<Map<String, Value>, Failure> {
    let one = |argument: &String| {
        let (key, value) = argument
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| {
                Failure::bad_argument(format!("`{argument}` is not KEY=VALUE"))
                    .hint("write key=text")
            })?;
        Ok((key.to_owned(), Value::from(value)))
    };
    arguments.iter().map(one).collect()
}

/// The names of a prompt's arguments; optional ones in brackets.
fn arguments(prompt: &Value) -> String {
    let all = prompt
        .get("arguments")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let names = all.map(|one| match one.get("required") {
        Some(Value::Bool(true)) => cell(one, "name"),
        _ => format!("[{}]", cell(one, "name")),
    });
    names.collect::<Vec<_>>().join(" ")
}

/// A message of a prompt as text.
fn said(message: &Value) -> String {
    let content = json!({ "content": [message.get("content").cloned().unwrap_or_default()] });
    format!(
        "{}: {}",
        visible::line(&cell(message, "role")),
        content::text(&content)
    )
}
