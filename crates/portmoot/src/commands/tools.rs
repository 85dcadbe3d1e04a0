//! `tools ls`, `tools show` and `tools call`.

mod arguments;
pub(crate) mod content;

use std::time::Duration;

use serde_json::Value;

use crate::cli::{GatewayArgs, ToolsCommand};
use crate::commands::reach::reach;
use crate::commands::servers::{cell, sheet};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate::{Api, Session};
use crate::interview::Interview;
use crate::output::Output;
use crate::terminal::Console;

const COLUMNS: [&str; 3] = ["NAME", "SERVER", "DESCRIPTION"];
const DESCRIPTION_CHARS: usize = 80;

pub(crate) async fn run(command: ToolsCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ToolsCommand::Ls { topic, gateway } => {
            let source = reach(&gateway, Duration::ZERO, output).await?;
            let answer = Api::new(source.as_ref()).get(&["tools"], &[("topic", &topic)]).await?;
            let rows = answer.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            output.listing(&answer, &COLUMNS, &rows.iter().map(row).collect::<Vec<_>>());
            Ok(Exit::Ok)
        }
        ToolsCommand::Show { name, gateway } => {
            let source = reach(&gateway, Duration::ZERO, output).await?;
            let answer = Api::new(source.as_ref()).get(&["tools", &name], &[]).await?;
            if output.json {
                output.result_json(&answer)
            } else {
                output.result(&sheet(&answer))
            }
            Ok(Exit::Ok)
        }
        ToolsCommand::Call { name, arguments, args, topic, gateway } => {
            let arguments = arguments::read(args.as_deref(), &arguments)?;
            call(&name, &arguments, &topic, &gateway, output).await
        }
    }
}

/// The first line of the description is enough to choose.
fn row(tool: &Value) -> Vec<String> {
    let description = cell(tool, "description");
    let line = description.lines().next().unwrap_or_default();
    let short: String = line.chars().take(DESCRIPTION_CHARS).collect();
    let dots = if short.len() < line.len() { "..." } else { "" };
    vec![cell(tool, "name"), cell(tool, "server"), format!("{short}{dots}")]
}

/// Calls through MCP itself, so that the server's questions reach this terminal.
async fn call(
    name: &str,
    arguments: &str,
    topic: &str,
    gateway: &GatewayArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let source = reach(gateway, Duration::ZERO, output).await?;
    let mut console = Console;
    let mut interview = Interview::new(&mut console, output);
    let capabilities = interview.capabilities();
    let mut session = Session::open(source.as_ref(), topic, &capabilities, &mut interview).await?;
    let name = Value::from(name);
    let params = format!(r#"{{"name":{name},"arguments":{arguments},"_meta":{{"progressToken":1}}}}"#);
    let result = session.request("tools/call", &params, &mut interview).await;
    session.close().await;
    let result = result.map_err(|failure| match failure.exit {
        // A server that never came up has told no names yet.
        Exit::NotFound => failure
            .hint("list what there is: portmoot tools ls; whether all servers are up: portmoot servers ls"),
        _ => failure,
    })?;
    let parsed: Value = serde_json::from_str(&result).unwrap_or_default();
    if output.json {
        output.result(&result);
    } else {
        output.result(&content::text(&parsed));
    }
    let failed = parsed.get("isError").and_then(Value::as_bool).unwrap_or(false);
    // Somebody has to approve the call first: there is a task in place of a result, or words that say so.
    let told = parsed.get("_meta").is_some_and(|meta| meta.get("portmoot/proposal").is_some());
    let task = parsed.get("task").is_some() || parsed.get("resultType").is_some_and(|kind| kind == "task");
    Ok(match (failed, told || task) {
        (_, true) => Exit::Held,
        (true, false) => Exit::Failed,
        (false, false) => Exit::Ok,
    })
}
