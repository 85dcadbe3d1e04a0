//! Commands `tools ls`, `tools show` and `tools call`.

mod arguments;
pub(crate) mod content;

use model::{RefusalCode, overlap};
use serde_json::Value;

use arguments::Arguments;

use crate::cli::{GatewayArgs, ToolsCommand};
use crate::commands::target::resolve;
use crate::commands::view::{cell, print};
use crate::config::suggestion;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::remote::{ClientSession, Endpoint, api};
use crate::responder::TerminalResponder;
use crate::terminal::ProcessTerminal;

const COLUMNS: [&str; 3] = ["NAME", "SERVER", "DESCRIPTION"];
const DESCRIPTION_CHARS: usize = 80;

pub(crate) async fn run(command: ToolsCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ToolsCommand::Ls { pattern, topic, gateway } => {
            let endpoint = resolve(&gateway, output)?;
            let mut answer: Value = api::get(&*endpoint, &["tools"], &[("topic", &topic)]).await?.read()?;
            if let (Some(pattern), Some(Value::Array(tools))) = (pattern, answer.get_mut("tools")) {
                tools.retain(|tool| is_named(tool, &pattern));
            }
            output.listing(&answer, "tools", &COLUMNS, row);
            Ok(Exit::Ok)
        }
        ToolsCommand::Show { name, gateway } => {
            let endpoint = resolve(&gateway, output)?;
            let found = api::get(&*endpoint, &["tools", &name], &[]).await;
            print(&or_similar(found, &name, crate::config::MAIN_TOPIC, &*endpoint).await?, output)?;
            Ok(Exit::Ok)
        }
        ToolsCommand::Call { name, arguments, args, topic, gateway } => {
            let arguments = Arguments::read(args.as_deref(), &arguments)?;
            call(&name, &arguments, &topic, &gateway, output).await
        }
    }
}

/// Whether the name of a tool matches a pattern with stars, or contains one without.
fn is_named(tool: &Value, pattern: &str) -> bool {
    let name = cell(tool, "name");
    if !pattern.contains('*') {
        return name.contains(pattern);
    }
    let pattern: Vec<Option<char>> = pattern.chars().map(|c| Some(c).filter(|c| *c != '*')).collect();
    overlap(&pattern, &name.chars().map(Some).collect::<Vec<_>>())
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
    arguments: &Arguments,
    topic: &str,
    gateway: &GatewayArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let endpoint = resolve(gateway, output)?;
    let schema = if arguments.need_schema() { schema(&*endpoint, name, topic).await } else { Value::Null };
    let arguments = arguments.object(&schema);
    let mut terminal = ProcessTerminal;
    let responder = TerminalResponder::new(&mut terminal, output);
    let mut session = ClientSession::open(&*endpoint, topic, responder).await?;
    let quoted = Value::from(name);
    let params = format!(r#"{{"name":{quoted},"arguments":{arguments},"_meta":{{"progressToken":1}}}}"#);
    let result = session.request("tools/call", &params).await;
    session.close().await;
    let result = or_similar(result, name, topic, &*endpoint).await?;
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

/// The input schema of a tool; null if it is not known.
async fn schema(endpoint: &dyn Endpoint, name: &str, topic: &str) -> Value {
    let found = api::get(endpoint, &["tools", name], &[("topic", topic)]).await;
    let tool: Value = found.and_then(|answer| answer.read()).unwrap_or_default();
    tool.get("inputSchema").cloned().unwrap_or_default()
}

/// If there is no tool of this name, the failure with the name, and a similar one as a hint.
async fn or_similar<T>(
    result: Result<T, Failure>,
    name: &str,
    topic: &str,
    endpoint: &dyn Endpoint,
) -> Result<T, Failure> {
    let Err(failure) = result else { return result };
    if failure.exit != Exit::NotFound || failure.code != RefusalCode::UnknownTarget.as_str() {
        return Err(failure);
    }
    let listed = api::get(endpoint, &["tools"], &[("topic", topic)]).await;
    let listed: Value = listed.and_then(|answer| answer.read()).unwrap_or_default();
    let tools = listed.get("tools").and_then(Value::as_array).into_iter().flatten();
    let names = tools.filter_map(|tool| tool.get("name")?.as_str());
    // The tools of a server that has not started are not known.
    let otherwise = "list the tools with: portmoot tools ls; check the servers with: portmoot servers ls";
    let hint = suggestion(name, names).unwrap_or_else(|| otherwise.to_owned());
    Err(Failure { message: format!("there is no tool `{name}`"), ..failure }.hint(hint))
}
