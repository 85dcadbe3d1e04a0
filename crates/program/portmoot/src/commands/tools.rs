//! Commands `tools ls`, `show` and `call`, and `disable`, `enable` and `rename`, which edit the
//! configuration file.

mod arguments;
mod call;
mod unknown;

use serde_json::Value;
use setup::ToolEdit;

use arguments::Arguments;
use call::CallOptions;
use unknown::or_similar;

use crate::cli::ToolsCommand;
use crate::commands::servers::say_what_is_down;
use crate::commands::setup::edit_tools;
use crate::commands::target::resolve;
use crate::commands::tokens::signature;
use crate::commands::view::{cell, is_named, short};
use crate::process::program_name;
use crate::remote::api;
use json::visible;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::timestamp::duration_of;

const COLUMNS: [&str; 3] = ["NAME", "SERVER", "DESCRIPTION"];

pub(crate) async fn run(command: ToolsCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ToolsCommand::Ls {
            pattern,
            topic,
            gateway,
            ..
        } => {
            let endpoint = resolve(&gateway, output)?;
            let mut answer: Value = api::get(&*endpoint, &["tools"], &[("topic", &topic)])
                .await?
                .read()?;
            if let (Some(pattern), Some(Value::Array(tools))) = (pattern, answer.get_mut("tools")) {
                tools.retain(|tool| is_named(&cell(tool, "name"), &pattern));
            }
            let none = if endpoint.is_own() {
                "no tool is listed"
            } else {
                "no tool is listed; to see why: portmoot servers ls"
            };
            say_what_is_down(&*endpoint, output).await;
            output.listing_or(&answer, "tools", &COLUMNS, none, row);
            Ok(Exit::Ok)
        }
        ToolsCommand::Show { name, gateway } => {
            let endpoint = resolve(&gateway, output)?;
            let found = api::get(&*endpoint, &["tools", &name], &[]).await;
            let answer = or_similar(found, &name, config::MAIN_TOPIC, &*endpoint, output).await?;
            if output.json {
                output.result_json(&answer.read()?)
            } else {
                output.result(&described(&answer)?)
            }
            Ok(Exit::Ok)
        }
        ToolsCommand::Call {
            name,
            arguments,
            args,
            no_input,
            file,
            wait,
            topic,
            gateway,
        } => {
            let wait = duration_of("--wait", &wait)?;
            let arguments = Arguments::read(args.as_deref(), &arguments)?;
            let place = CallOptions {
                topic: &topic,
                gateway: &gateway,
                no_input,
                wait,
                file: file.as_deref(),
            };
            call::call(&name, &arguments, place, output).await
        }
        ToolsCommand::Disable(args) => edit_tools(
            &args.file,
            &args.server,
            ToolEdit::Disable(&args.tools),
            args.dry_run,
            output,
        ),
        ToolsCommand::Enable(args) => edit_tools(
            &args.file,
            &args.server,
            ToolEdit::Enable(&args.tools),
            args.dry_run,
            output,
        ),
        ToolsCommand::Rename {
            server,
            tool,
            name,
            dry_run,
            file,
        } => edit_tools(
            &file,
            &server,
            ToolEdit::Rename(&tool, &name),
            dry_run,
            output,
        ),
    }
}

/// A tool for people: how it is called, what it does, its arguments, and a call to copy.
fn described(answer: &api::Answer) -> Result<String, Failure> {
    let tool: Value = answer.read()?;
    let name = cell(&tool, "name");
    let mut lines = vec![
        visible::line(&signature(answer.text.as_bytes())),
        format!("of server {}", cell(&tool, "server")),
    ];
    if let Some(description) = tool.get("description").and_then(Value::as_str) {
        lines.push(String::new());
        lines.extend(visible::lines(description).lines().map(str::to_owned));
    }
    let schema = tool.get("inputSchema");
    let properties = schema
        .and_then(|schema| schema.get("properties"))
        .and_then(Value::as_object);
    let required = schema
        .and_then(|schema| schema.get("required"))
        .and_then(Value::as_array);
    let is_required =
        |key: &str| required.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(key)));
    let explained = properties
        .into_iter()
        .flatten()
        .filter_map(|(key, schema)| {
            let text = schema.get("description")?.as_str()?.lines().next()?;
            Some(format!("  {}: {}", visible::line(key), visible::line(text)))
        });
    let explained: Vec<String> = explained.collect();
    if !explained.is_empty() {
        lines.push(String::new());
        lines.extend(explained);
    }
    let needed = properties
        .into_iter()
        .flatten()
        .filter(|(key, _)| is_required(key));
    let arguments: String = needed
        .map(|(key, schema)| format!(" {}", sample(key, schema)))
        .collect();
    let program = program_name();
    lines.push(String::new());
    lines.push(format!(
        "call it: {program} tools call {}{arguments}",
        visible::line(&name)
    ));
    lines.push(format!(
        "all about it: {program} tools show {} --json",
        visible::line(&name)
    ));
    Ok(lines.join("\n"))
}

/// An argument with a value of its type, as `tools call` takes it.
fn sample(key: &str, schema: &Value) -> String {
    let key = visible::line(key);
    let first = schema
        .get("enum")
        .and_then(Value::as_array)
        .and_then(|all| all.first()?.as_str());
    match (schema.get("type").and_then(Value::as_str), first) {
        (_, Some(word)) => format!("{key}={}", visible::line(word)),
        (Some("integer" | "number"), _) => format!("{key}=1"),
        (Some("boolean"), _) => format!("{key}=true"),
        (Some("array"), _) => format!("{key}:='[]'"),
        (Some("object"), _) => format!("{key}:='{{}}'"),
        (Some(_) | None, _) => format!("{key}=TEXT"),
    }
}

/// A tool as a row, with its name for clients that accept fewer characters, and the first line of
/// its description.
fn row(tool: &Value) -> Vec<String> {
    let name = match tool.get("narrow_name").and_then(Value::as_str) {
        Some(narrow) => format!("{} ({narrow})", cell(tool, "name")),
        None => cell(tool, "name"),
    };
    vec![
        name,
        cell(tool, "server"),
        short(&cell(tool, "description")),
    ]
}
