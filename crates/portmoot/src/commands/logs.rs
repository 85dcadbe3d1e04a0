//! Command `logs`: what a server's processes wrote to stderr, with a running gateway.

use json::visible;
use serde::{Deserialize, Serialize};

use crate::cli::RunningArgs;
use crate::commands::target::running_endpoint;
use crate::remote::api;
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
}

/// Prints the last `lines_max` lines, and with `follow` every further one until the gateway stops.
pub(crate) async fn run(
    server: &str,
    follow: bool,
    lines_max: usize,
    gateway: &RunningArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let endpoint = running_endpoint(gateway, output)?;
    let path = ["servers", server, "logs"];
    let mut log: ServerLog = api::get(&endpoint, &path, &[]).await?.read()?;
    let skipped = log.lines.len().saturating_sub(lines_max);
    log.lines.drain(..skipped);
    if !log.has_process {
        output.message(&format!("`{server}` is not a process of the gateway: only processes have a log"));
        return Ok(Exit::Ok);
    }
    if log.lines.is_empty() && !follow {
        output.message(&format!("`{server}` has written nothing to stderr"));
    }
    loop {
        log.lines.iter().for_each(|line| print(line, output));
        if !follow {
            return Ok(Exit::Ok);
        }
        let after = log.newest.to_string();
        let query = [("after", after.as_str()), ("wait_seconds", WAIT_SECONDS)];
        log = api::get(&endpoint, &path, &query).await?.read()?;
    }
}

fn print(line: &LogLine, output: Output) {
    if output.json {
        return output.result_json_text(&serde_json::to_string(line).unwrap_or_default());
    }
    let time = line.at.split('.').next().unwrap_or_default();
    output.result(&format!("{time}Z [{}] {}", line.pid, visible::line(&line.text)));
}
