//! Command `status`: what runs, and whether it is ready.

use json::visible;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::cli::RunningArgs;
use crate::commands::proposals;
use crate::commands::servers::{memory, why_and_what_to_do};
use crate::commands::target::running;
use crate::commands::view::cell;
use crate::remote::api;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

/// Prints the state of the running gateway. Exit code 1 if it is not ready.
pub(crate) async fn run(gateway: &RunningArgs, output: Output) -> Result<Exit, Failure> {
    let running = running(gateway, output)?;
    let reload_failed = running
        .owner
        .as_ref()
        .and_then(|owner| owner.reload_failed.clone());
    let url = running.url.clone();
    let endpoint = running.endpoint()?;
    let health = api::probe(&endpoint, "/healthz").await?;
    let ready = api::probe(&endpoint, "/readyz").await?;
    let is_ready = ready.get("ready") == Some(&Value::Bool(true));
    let servers = list(api::get(&endpoint, &["servers"], &[]).await, "servers");
    let proposals = proposals::list::pages::<IgnoredAny>(&endpoint, &[])
        .await
        .ok();
    let exit = if is_ready { Exit::Ok } else { Exit::Failed };
    if output.json {
        let status = json!({
            "url": url,
            "version": health.get("version"),
            "ready": is_ready,
            "audit": ready.get("audit"),
            "servers": servers,
            "open_proposals": proposals.as_ref().map(Vec::len),
            "reload_failed": reload_failed,
        });
        output.result_json(&status);
        return Ok(exit);
    }
    let version = visible::line(&cell(&health, "version"));
    let mut lines = vec![
        format!("gateway    {url}, portmoot {version}"),
        format!("ready      {}", readiness(is_ready, servers.as_deref())),
    ];
    if ready.get("audit").is_some_and(|audit| !audit.is_null()) {
        lines.push(
            "audit log  cannot be written: acts that must be recorded are refused".to_owned(),
        );
    }
    match &servers {
        // The number alone is in `/readyz`, which anyone may read.
        None => lines.push(format!(
            "servers    {} not ready (their names need the capability portmoot/servers)",
            cell(&ready, "servers_not_ready")
        )),
        Some(servers) => lines.extend(server_lines(servers)),
    }
    match proposals.map(|proposals| proposals.len()) {
        None => {}
        Some(0) => lines.push("proposals  none open".to_owned()),
        Some(open) => lines.push(format!("proposals  {open} open: portmoot proposals ls")),
    }
    if let Some(failed) = &reload_failed {
        lines.push(
            "reload     failed: the gateway goes on with the configuration before; fix the file:"
                .to_owned(),
        );
        for line in failed.lines() {
            lines.push(format!("           {}", visible::line(line)));
        }
    }
    output.indented(&lines.join("\n"), 11);
    Ok(exit)
}

/// Whether the gateway is ready, in words. It is so without its servers too: they may come later.
fn readiness(is_ready: bool, servers: Option<&[Value]>) -> &'static str {
    let none_up = servers.is_some_and(|all| !all.is_empty() && !all.iter().any(is_up));
    if !is_ready {
        "no"
    } else if none_up {
        "yes, without any of its servers"
    } else {
        "yes"
    }
}

/// How many servers are up, why each of the others is not, and what they all take.
fn server_lines(servers: &[Value]) -> Vec<String> {
    let up = servers.iter().filter(|server| is_up(server)).count();
    let idle = servers.iter().filter(|server| is(server, "idle")).count();
    let idle = if idle == 0 {
        String::new()
    } else {
        format!(", {idle} of them idle until they are used")
    };
    let mut lines = vec![format!("servers    {up} of {} ready{idle}", servers.len())];
    for server in servers.iter().filter(|server| !is_up(server)) {
        let name = cell(server, "name");
        let state = cell(server, "state");
        let why = why_and_what_to_do(server);
        let text = visible::line(&format!("{name} is {state}: {why}"));
        lines.push(format!("           {text}"));
    }
    let processes = sum(servers, "processes");
    let takes = if processes == 0 {
        String::new()
    } else {
        format!(", {}", memory(Some(sum(servers, "memory_bytes"))))
    };
    lines.push(format!(
        "sessions   {} at the servers; {}{takes}",
        counted(sum(servers, "sessions"), "session", "sessions"),
        counted(processes, "process", "processes"),
    ));
    lines
}

/// The sum of a number that each server has.
fn sum(servers: &[Value], member: &str) -> u64 {
    servers
        .iter()
        .filter_map(|server| server.get(member)?.as_u64())
        .sum()
}

fn counted(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    }
}

/// Whether a server has a state.
fn is(server: &Value, state: &str) -> bool {
    server.get("state").is_some_and(|found| found == state)
}

/// Whether a call of a server is served.
fn is_up(server: &Value) -> bool {
    is(server, "ready") || is(server, "idle")
}

/// A list of an answer; `None` if the caller may not see it.
fn list(answer: Result<api::Answer, Failure>, member: &str) -> Option<Vec<Value>> {
    let mut answer: Value = answer.ok()?.read().ok()?;
    match answer.get_mut(member)?.take() {
        Value::Array(items) => Some(items),
        _ => None,
    }
}
