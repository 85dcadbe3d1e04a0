//! Commands `servers ls` and `servers show`.

use std::time::Duration;

use serde_json::Value;

use crate::cli::ServersCommand;
use crate::commands::target::resolve;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::remote::ApiClient;
use json::visible;

/// How long the commands wait for servers to start. After it, a server is shown as starting.
const START_WAIT: Duration = Duration::from_secs(30);
const COLUMNS: [&str; 6] = ["NAME", "STATE", "TRANSPORT", "ERA", "TOOLS", "REASON"];

pub(crate) async fn run(command: ServersCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ServersCommand::Ls { gateway } => {
            let endpoint = resolve(&gateway, START_WAIT, output).await?;
            let answer = ApiClient::new(endpoint.as_ref()).get(&["servers"], &[]).await?;
            let rows = answer.get("servers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let cells =
                |row: &Value| COLUMNS.iter().map(|column| cell(row, &column.to_lowercase())).collect();
            output.listing(&answer, &COLUMNS, &rows.iter().map(cells).collect::<Vec<Vec<String>>>());
        }
        ServersCommand::Show { name, gateway } => {
            let endpoint = resolve(&gateway, START_WAIT, output).await?;
            let answer = ApiClient::new(endpoint.as_ref()).get(&["servers", &name], &[]).await?;
            if output.json { output.result_json(&answer) } else { output.result(&details(&answer)) }
        }
    }
    Ok(Exit::Ok)
}

/// A member of an object as a cell: the length of a list, a dash for a missing member.
pub(crate) fn cell(row: &Value, name: &str) -> String {
    match row.get(name) {
        None | Some(Value::Null) => "-".into(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.len().to_string(),
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Object(_))) => other.to_string(),
    }
}

/// An object as lines of `name: value`, with hidden characters made visible.
pub(crate) fn details(object: &Value) -> String {
    let lines = object.as_object().into_iter().flatten().map(|(name, value)| match value {
        Value::String(text) => format!("{name}: {}", visible::line(text)),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            format!("{name}: {}", visible::line(&items.join(", ")))
        }
        Value::Array(_) | Value::Object(_) => {
            let text = serde_json::to_string_pretty(value).unwrap_or_default();
            format!("{name}:\n{}", visible::lines(&text))
        }
        Value::Null => format!("{name}: -"),
        Value::Bool(_) | Value::Number(_) => format!("{name}: {value}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}
