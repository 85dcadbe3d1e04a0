//! Command `logs`: what servers' processes wrote to stderr, and why a server does not run, with a
//! running gateway.

use json::visible;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::RunningArgs;
use crate::commands::servers::why_and_what_to_do;
use crate::commands::target::running_endpoint;
use crate::commands::view::cell;
use crate::remote::{Remote, api};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

/// How long one request waits for the next line, seconds.
const WAIT_SECONDS: &str = "25";

/// The answer of the API.
#[derive(Deserialize)]
struct ServerLog {
    has_process: bool,
    lines: Vec<LogLine>,
    newest: u64,
}

#[derive(Deserialize, Serialize)]
struct LogLine {
    number: u64,
    at: String,
    pid: u32,
    text: String,
    /// Where the lines are of several servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<String>,
}

/// Prints the last `lines_max` lines of a server, or of all, and with `follow` every further one
/// until the gateway stops.
pub(crate) async fn run(
    server: Option<&str>,
    follow: bool,
    lines_max: usize,
    gateway: &RunningArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let endpoint = running_endpoint(gateway, output)?;
    let Some(server) = server else {
        return all(&endpoint, lines_max, output).await;
    };
    let path = ["servers", server, "logs"];
    let mut log: ServerLog = api::get(&endpoint, &path, &[]).await?.read()?;
    keep_last(&mut log.lines, lines_max);
    let waits = follow && log.has_process;
    if log.lines.is_empty() && !waits {
        let state: Value = api::get(&endpoint, &["servers", server], &[])
            .await?
            .read()?;
        output.message(&silent(&state, log.has_process));
    }
    loop {
        log.lines.iter().for_each(|line| print(line, output));
        if !waits {
            return Ok(Exit::Ok);
        }
        let after = log.newest.to_string();
        let query = [("after", after.as_str()), ("wait_seconds", WAIT_SECONDS)];
        log = api::get(&endpoint, &path, &query).await?.read()?;
    }
}

/// The lines of all servers, in the order of their times.
async fn all(endpoint: &Remote, lines_max: usize, output: Output) -> Result<Exit, Failure> {
    let answer: Value = api::get(endpoint, &["servers"], &[]).await?.read()?;
    let servers = answer
        .get("servers")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let mut lines = Vec::new();
    for server in servers {
        let name = cell(server, "name");
        // One that was removed meanwhile has no log any more.
        let Ok(log) = api::get(endpoint, &["servers", &name, "logs"], &[]).await else {
            continue;
        };
        let log: ServerLog = log.read()?;
        lines.extend(log.lines.into_iter().map(|line| LogLine {
            server: Some(name.clone()),
            ..line
        }));
    }
    lines.sort_by(|one, other| one.at.cmp(&other.at));
    keep_last(&mut lines, lines_max);
    if lines.is_empty() {
        output.message("no server has written anything to stderr");
    }
    lines.iter().for_each(|line| print(line, output));
    Ok(Exit::Ok)
}

fn keep_last(lines: &mut Vec<LogLine>, lines_max: usize) {
    let skipped = lines.len().saturating_sub(lines_max);
    lines.drain(..skipped);
}

/// Why there are no lines, and how the server is.
fn silent(server: &Value, has_process: bool) -> String {
    let name = cell(server, "name");
    let state = cell(server, "state");
    let what = if has_process {
        "has written nothing to stderr"
    } else {
        "has no process here, so that there are no lines of it"
    };
    let why = why_and_what_to_do(server);
    let why = if why == "-" {
        String::new()
    } else {
        format!(": {why}")
    };
    visible::line(&format!("`{name}` {what}; it is {state}{why}"))
}

fn print(line: &LogLine, output: Output) {
    if output.json {
        return output.result_json_text(&serde_json::to_string(line).unwrap_or_default());
    }
    let time = line.at.split('.').next().unwrap_or_default();
    let server = line
        .server
        .as_deref()
        .map(|server| format!("{server} "))
        .unwrap_or_default();
    output.result(&format!(
        "{time}Z {}[{}] {}",
        visible::line(&server),
        line.pid,
        visible::line(&line.text)
    ));
}
