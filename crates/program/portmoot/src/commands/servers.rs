//! Commands `servers ls`, `servers show`, `servers restart` and so on; those about accounts are in
//! `accounts`.

use serde_json::Value;

use crate::cli::{RunningArgs, ServersCommand};
use crate::commands::accounts;
use crate::commands::target::running_endpoint;
use crate::commands::view::{cell, print, texts};
use crate::remote::{Endpoint, api};
use json::visible;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

const COLUMNS: [&str; 10] = [
    "NAME",
    "STATE",
    "TRANSPORT",
    "PROTOCOL",
    "TOOLS",
    "SESSIONS",
    "PROCESSES",
    "MEMORY",
    "USED BY",
    "REASON",
];

pub(crate) async fn run(command: ServersCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ServersCommand::Ls { gateway, .. } => {
            let endpoint = running_endpoint(&gateway, output)?;
            let answer: Value = api::get(&endpoint, &["servers"], &[]).await?.read()?;
            let mut columns = COLUMNS.to_vec();
            let mut all = answer
                .get("servers")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            if all.any(|server| server.get("topic").is_some()) {
                // A participant that serves is listed once for each of its topics.
                columns.insert(1, "TOPIC");
            }
            // The revision in use; without a session, which revisions the server is known to speak.
            let protocol = |row: &Value| match row.get("version") {
                Some(Value::String(_)) => "version",
                _ => "era",
            };
            let member = |row: &Value, column: &str| match column {
                "PROTOCOL" => cell(row, protocol(row)),
                "REASON" => why_and_what_to_do(row),
                "MEMORY" => memory(row.get("memory_bytes").and_then(Value::as_u64)),
                "USED BY" => used_by(row),
                _ => cell(row, &column.to_lowercase()),
            };
            let row = |row: &Value| columns.iter().map(|column| member(row, column)).collect();
            output.listing(&answer, "servers", &columns, row);
        }
        ServersCommand::Restart { name, gateway } => {
            switch(&name, ("restart", "restarted"), &gateway, output).await?;
        }
        ServersCommand::Disable { name, gateway } => {
            switch(
                &name,
                (
                    "disable",
                    "disabled, until it is enabled or the gateway starts again",
                ),
                &gateway,
                output,
            )
            .await?;
        }
        ServersCommand::Enable { name, gateway } => {
            switch(&name, ("enable", "enabled"), &gateway, output).await?;
        }
        ServersCommand::Login { name, args } => return accounts::login(&name, &args, output).await,
        ServersCommand::Logout {
            name,
            participant,
            gateway,
        } => {
            return accounts::logout(&name, participant.as_deref(), &gateway, output).await;
        }
        ServersCommand::ConnectCode(gateway) => {
            return accounts::connect_code(&gateway, output).await;
        }
        ServersCommand::Auth { name, gateway } => {
            return accounts::auth(name.as_deref(), &gateway, output).await;
        }
        ServersCommand::Show { name, gateway } => {
            let endpoint = running_endpoint(&gateway, output)?;
            print(
                &api::get(&endpoint, &["servers", &name], &[]).await?,
                output,
            )?;
        }
    }
    Ok(Exit::Ok)
}

/// Memory for people; a dash if there is none.
pub(crate) fn memory(bytes: Option<u64>) -> String {
    const MIB: u64 = 1 << 20;
    match bytes.unwrap_or_default() {
        0 => "-".to_owned(),
        bytes if bytes < 10 << 30 => format!("{} MiB", bytes.div_ceil(MIB)),
        bytes => format!("{} GiB", bytes >> 30),
    }
}

/// The participants whose clients use a server; a dash if there is none.
fn used_by(server: &Value) -> String {
    let users = texts(server, "users");
    if users.is_empty() {
        "-".to_owned()
    } else {
        users.join(", ")
    }
}

/// Restarts, disables or enables a server; `done` is what it is then.
async fn switch(
    name: &str,
    (verb, done): (&str, &str),
    gateway: &RunningArgs,
    output: Output,
) -> Result<(), Failure> {
    let endpoint = running_endpoint(gateway, output)?;
    let answer: Value = api::post(&endpoint, &["servers", name, verb], &[], "{}".to_owned())
        .await?
        .read()?;
    if output.json {
        output.result_json(&answer)
    } else {
        output.message(&format!("the server `{name}` is {done}"))
    }
    Ok(())
}

/// Lines of a server's stderr that a command shows.
const STDERR_LINES_MAX: usize = 10;

/// Says which servers of a gateway in this process do not run, and what they wrote last: no other
/// command can ask that gateway.
pub(crate) async fn say_what_is_down(endpoint: &dyn Endpoint, output: Output) {
    if !endpoint.is_own() {
        return;
    }
    let answer = api::get(endpoint, &["servers"], &[]).await;
    let answer: Value = answer.and_then(|answer| answer.read()).unwrap_or_default();
    let servers = answer.get("servers").and_then(Value::as_array);
    let fails = |server: &&Value| {
        server.get("cause").is_some_and(Value::is_string)
            || ["down", "degraded"].contains(&&*cell(server, "state"))
    };
    for server in servers.into_iter().flatten().filter(fails) {
        let name = cell(server, "name");
        let state = cell(server, "state");
        let why = why_and_what_to_do(server);
        output.message(&visible::lines(&format!(
            "server `{name}` is {state}: {why}"
        )));
        let lines = texts(server, "stderr");
        let last = lines.len().saturating_sub(STDERR_LINES_MAX);
        for line in lines.iter().skip(last).filter(|_| lines.len() > 1) {
            output.message(&format!("  {}", visible::line(line)));
        }
    }
}

/// How lines of a log begin that a process printed to stdout.
const ON_STDOUT: &str = "on stdout, no message: ";

/// Why a server is not ready, and what to do about it if that is known.
pub(crate) fn why_and_what_to_do(server: &Value) -> String {
    match server.get("hint").and_then(Value::as_str) {
        Some(hint) => format!("{}; {hint}", why(server)),
        None => why(server),
    }
}

/// Why a server is not ready: the reason, the cause of the last failure, the line on stderr that
/// names an error, or the last one; a dash if it is ready.
pub(crate) fn why(server: &Value) -> String {
    let reason = cell(server, "reason");
    let cause = server
        .get("cause")
        .and_then(Value::as_str)
        .map(|cause| format!(": {cause}"));
    // What is no message on stdout is a cause of its own.
    let mut lines = texts(server, "stderr");
    lines.retain(|line| !line.starts_with(ON_STDOUT));
    let shown = upstream::telling(&lines)
        .or_else(|| lines.len().checked_sub(1))
        .and_then(|at| lines.get(at));
    let last = shown.map(|line| format!(", stderr: {}", line.trim()));
    format!(
        "{reason}{}{}",
        cause.unwrap_or_default(),
        last.unwrap_or_default()
    )
}
