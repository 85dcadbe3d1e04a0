//! Commands `config check` and `config show`, and configuration loading for all commands.

use std::path::PathBuf;

use serde_json::json;

use crate::cli::{ConfigArgs, ConfigCommand};
use crate::config::{Loaded, Problem, Sources, to_json, to_toml};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::process::env;

/// The configuration sources that these flags name.
pub(crate) fn sources(args: &ConfigArgs) -> Sources {
    Sources {
        config: args.config.clone(),
        mcp_config: args.mcp_config.clone(),
        data_dir: args.data_dir.clone(),
        ..Sources::default()
    }
}

/// Loads and checks the configuration, and prints notes about ignored settings.
pub(crate) fn load(sources: &Sources, output: Output) -> Result<Loaded, Failure> {
    let loaded = sources.load(&env).map_err(|problems| Failure::configuration(&problems))?;
    loaded.notices.iter().for_each(|notice| output.message(&format!("note: {notice}")));
    Ok(loaded)
}

/// The data directory of a configuration. Without one, `then` says what follows.
pub(crate) fn data_dir(loaded: &Loaded, then: &str) -> Result<PathBuf, Failure> {
    loaded.config.data_dir.clone().ok_or_else(|| {
        let message = format!("no data directory is configured, so {then}");
        Failure::new(Exit::Usage, "no_data_dir", message)
            .hint("choose one: --data-dir DIR, or `data_dir` in [server]")
    })
}

pub(crate) fn run(command: ConfigCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Check(config) => check(&sources(&config), output),
        ConfigCommand::Show { origin, config } => show(&sources(&config), origin, output),
    }
}

fn check(sources: &Sources, output: Output) -> Result<Exit, Failure> {
    if output.json {
        let (problems, notes) = match sources.load(&env) {
            Ok(loaded) => (Vec::new(), loaded.notices),
            Err(problems) => (problems, Vec::new()),
        };
        let rows: Vec<_> = problems.iter().map(row).collect();
        output.result_json(&json!({ "ok": problems.is_empty(), "problems": rows, "notes": notes }));
        return Ok(if problems.is_empty() { Exit::Ok } else { Exit::Usage });
    }
    let loaded = load(sources, output)?;
    let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let parts = [
        count(loaded.config.servers.len(), "server"),
        count(loaded.config.participants.len(), "participant"),
        count(loaded.config.topics.len(), "topic"),
    ];
    let files: Vec<String> = loaded.files.iter().map(|path| path.display().to_string()).collect();
    let files = if files.is_empty() { "defaults only".to_owned() } else { files.join(", ") };
    output.result(&format!("the configuration is valid: {} (from {files})", parts.join(", ")));
    Ok(Exit::Ok)
}

fn row(problem: &Problem) -> serde_json::Value {
    json!({
        "code": problem.code,
        "message": problem.message,
        "file": problem.location.as_ref().map(|location| location.layer.name.clone()),
        "line": problem.location.as_ref().and_then(|location| location.line),
        "hint": problem.hint,
    })
}

fn show(sources: &Sources, origin: bool, output: Output) -> Result<Exit, Failure> {
    let tree = sources.tree(&env).map_err(|problem| Failure::configuration(&[problem]))?;
    if output.json {
        output.result_json(&to_json(&tree))
    } else {
        output.result(&to_toml(&tree, origin))
    }
    Ok(Exit::Ok)
}
