//! Commands `tools ls`, `tools show` and `tools call`.

mod arguments;
pub(crate) mod content;

use serde_json::Value;

use crate::cli::{GatewayArgs, ToolsCommand};
use crate::commands::target::resolve;
use crate::commands::view::{cell, print};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::remote::{ClientSession, api};
use crate::responder::TerminalResponder;
use crate::terminal::ProcessTerminal;

const COLUMNS: [&str; 3] = ["NAME", "SERVER", "DESCRIPTION"];
const DESCRIPTION_CHARS: usize = 80;

pub(crate) async fn run(command: ToolsCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ToolsCommand::Ls { topic, gateway } => {
            let endpoint = resolve(&gateway, output)?;
            let answer = api::get(&*endpoint, &["tools"], &[("topic", &topic)]).await?.read()?;
            output.listing(&answer, "tools", &COLUMNS, row);
            Ok(Exit::Ok)
        }
        ToolsCommand::Show { name, gateway } => {
            let endpoint = resolve(&gateway, output)?;
            print(&api::get(&*endpoint, &["tools", &name], &[]).await?, output)?;
            Ok(Exit::Ok)
        }
        ToolsCommand::Call { name, arguments, args, topic, gateway } => {
            let arguments = arguments::read(args.as_deref(), &arguments)?;
            call(&name, &arguments, &topic, &gateway, output).await
        }
    }
}

/// A tool as a row, with the first line of its description.
fn row(tool: &Value) -> Vec<String> {
    let description = cell(tool, "description");
    let line = description.lines().next().unwrap_or_default();
    let short: String = line.chars().take(DESCRIPTION_CHARS).collect();
    let dots = if short.len() < line.len() { "..." } else { "" };
    vec![cell(tool, "name"), cell(tool, "server"), format!("{short}{dots}")]
}

/// Calls a tool in an MCP session, so that requests of the server reach this terminal.
async fn call(
    name: &str,
    arguments: &str,
    topic: &str,
    gateway: &GatewayArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let endpoint = resolve(gateway, output)?;
    let mut terminal = ProcessTerminal;
    let responder = TerminalResponder::new(&mut terminal, output);
    let mut session = ClientSession::open(&*endpoint, topic, responder).await?;
    let name = Value::from(name);
    let params = format!(r#"{{"name":{name},"arguments":{arguments},"_meta":{{"progressToken":1}}}}"#);
    let result = session.request("tools/call", &params).await;
    session.close().await;
    let result = result.map_err(|failure| match failure.exit {
        // The tools of a server that has not started are not known.
        Exit::NotFound => failure
            .hint("list the tools with: portmoot tools ls; check the servers with: portmoot servers ls"),
        _ => failure,
    })?;
    let parsed: Value = serde_json::from_str(&result).unwrap_or_default();
    if output.json {
        output.result(&result);
    } else {
        output.result(&content::text(&parsed));
    }
    let failed = parsed.get("isError").and_then(Value::as_bool).unwrap_or(false);
    // A call that needs approval returns a task, or a result that names the proposal.
    let proposal = parsed.get("_meta").is_some_and(|meta| meta.get("portmoot/proposal").is_some());
    let task = parsed.get("task").is_some() || parsed.get("resultType").is_some_and(|kind| kind == "task");
    Ok(match (failed, proposal || task) {
        (_, true) => Exit::Held,
        (true, false) => Exit::Failed,
        (false, false) => Exit::Ok,
    })
}
