//! Commands `config check`, `config schema` and `config show`, and configuration loading for all
//! commands.

use std::path::PathBuf;

use identity::AccessState;
use identity::identities::tokens_configured;
use json::visible;
use serde_json::json;

use crate::cli::{ConfigArgs, ConfigCommand};
use crate::process::env;
use config::{
    ConfigSources, Loaded, Problem, Secrets, mismatch, room_notes, to_json, to_toml, without_guests,
};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

/// Words of a notice about a server that stays down.
const CANNOT_START: &str = " cannot start";

/// The configuration sources that these flags name.
pub(crate) fn sources(args: &ConfigArgs) -> ConfigSources {
    ConfigSources {
        config: args.config.clone(),
        mcp_config: args.mcp_config.clone(),
        data_dir: args.data_dir.clone(),
        ..ConfigSources::default()
    }
}

/// Loads and checks the configuration, and prints notes about ignored settings.
pub(crate) fn load(sources: &ConfigSources, output: Output) -> Result<Loaded, Failure> {
    let loaded = sources
        .load(&env)
        .map_err(|problems| Failure::configuration(&problems))?;
    for notice in &loaded.notices {
        // What keeps a server down is no aside.
        if notice.contains(CANNOT_START) {
            output.warn(&visible::lines(notice))
        } else {
            note(notice, output)
        }
    }
    Ok(loaded)
}

/// Reads the secrets that a configuration names, once the operator has agreed to it, and prints
/// notes about those that could not be read.
///
/// # Errors
/// When a token of a participant or a secret of an issuer cannot be read.
pub(crate) fn read_secrets(
    loaded: &mut Loaded,
    secrets: &Secrets,
    output: Output,
) -> Result<(), Failure> {
    let notices = loaded
        .read_secrets(&env, secrets)
        .map_err(|problems| Failure::configuration(&problems))?;
    notices.iter().for_each(|notice| note(notice, output));
    Ok(())
}

/// Prints notes about capabilities that can match nothing.
pub(crate) fn note_unmatched(capabilities: &[String], output: Output) {
    capabilities
        .iter()
        .filter_map(|text| mismatch(text))
        .for_each(|text| note(&text, output));
}

fn note(text: &str, output: Output) {
    output.message(&format!("note: {}", visible::lines(text)));
}

/// The data directory of a configuration. Without one, `then` says what follows.
pub(crate) fn data_dir(loaded: &Loaded, then: &str) -> Result<PathBuf, Failure> {
    loaded.config.data_dir.clone().ok_or_else(|| {
        let message = format!("no data directory is configured, so {then}");
        Failure::new(Exit::Usage, "no_data_dir", message)
            .hint("choose one: --data-dir DIR, or `data_dir` in [server]")
    })
}

/// Refuses what a command would do with the data directory where that has none of the cluster's
/// state.
///
/// # Errors
/// When the configuration has a cluster.
pub(crate) fn alone(loaded: &Loaded, why: &str) -> Result<(), Failure> {
    if loaded.config.cluster.is_none() {
        return Ok(());
    }
    let message = format!("{why}, and none runs with this data directory");
    Err(Failure::new(Exit::Failed, "in_cluster", message)
        .hint("start it: portmoot serve; or name one that runs: --url URL, with --token"))
}

pub(crate) fn run(command: ConfigCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Check(args) => check(
            &ConfigSources {
                listen: args.listen,
                strict: true,
                ..sources(&args.config)
            },
            output,
        ),
        ConfigCommand::Schema => {
            output.result(config::SCHEMA);
            Ok(Exit::Ok)
        }
        ConfigCommand::Show { origin, config } => show(&sources(&config), origin, output),
    }
}

fn check(sources: &ConfigSources, output: Output) -> Result<Exit, Failure> {
    let (problems, notes, summary) = match sources.load(&env) {
        Ok(mut loaded) => {
            let mut notes = std::mem::take(&mut loaded.notices);
            notes.extend(room_notes(&loaded.tree, &loaded.config));
            notes.extend(consent_note(&loaded));
            if !loaded.keeps_by_found_file() {
                notes.extend(loaded.unset_secrets());
            }
            let problems = listen_problem(&loaded)
                .into_iter()
                .chain(guest_problem(&loaded))
                .collect();
            (problems, notes, summary(&loaded))
        }
        Err(problems) => (problems, Vec::new(), String::new()),
    };
    if output.json {
        let rows: Vec<_> = problems.iter().map(row).collect();
        output.result_json(&json!({ "ok": problems.is_empty(), "problems": rows, "notes": notes }));
        return Ok(if problems.is_empty() {
            Exit::Ok
        } else {
            Exit::Usage
        });
    }
    notes.iter().for_each(|text| note(text, output));
    if !problems.is_empty() {
        return Err(Failure::configuration(&problems));
    }
    output.result(&summary);
    Ok(Exit::Ok)
}

/// The contents of a valid configuration, and its files.
fn summary(loaded: &Loaded) -> String {
    let count =
        |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let parts = [
        count(loaded.config.servers.len(), "server"),
        count(loaded.config.identity.participants.len(), "participant"),
        count(loaded.config.identity.topics.len(), "topic"),
    ];
    let files: Vec<String> = loaded
        .files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let files = if files.is_empty() {
        "defaults only".to_owned()
    } else {
        files.join(", ")
    };
    format!(
        "the configuration is valid: {} (from {files})",
        parts.join(", ")
    )
}

/// Problem for which `serve` would refuse a valid configuration: to listen for everybody while
/// callers need no token. The nodes of a cluster alone know which tokens were issued.
fn listen_problem(loaded: &Loaded) -> Option<Problem> {
    if loaded.config.cluster.is_some() {
        return None;
    }
    let names_data_dir = loaded
        .found
        .as_ref()
        .is_some_and(|found| found.names_data_dir);
    // Issued tokens are in the journal. One that cannot be read may have some.
    let dir = loaded
        .config
        .data_dir
        .as_deref()
        .filter(|_| !names_data_dir);
    let state = dir
        .map(AccessState::peek)
        .transpose()
        .ok()?
        .unwrap_or_default();
    let refusal = auth::check_listen_address(
        loaded.config.doors.listen,
        tokens_configured(&loaded.config.identity, &state),
    )
    .err()?;
    let problem =
        Problem::new("config_listen", refusal.message).at(loaded.tree.place(&["server", "listen"]));
    Some(problem.hint(refusal.hint.unwrap_or_default()))
}

/// Problem for which `serve` refuses a valid configuration: guests of a topic are limited by
/// `anonymous`, and nothing makes callers guests. Of a cluster it is not known here.
pub(crate) fn guest_problem(loaded: &Loaded) -> Option<Problem> {
    if loaded.config.cluster.is_some() {
        return None;
    }
    let names_data_dir = loaded
        .found
        .as_ref()
        .is_some_and(|found| found.names_data_dir);
    let dir = loaded
        .config
        .data_dir
        .as_deref()
        .filter(|_| !names_data_dir);
    // A journal that cannot be read is another problem.
    let state = dir
        .map(AccessState::peek)
        .transpose()
        .ok()?
        .unwrap_or_default();
    let is_closed = tokens_configured(&loaded.config.identity, &state);
    if is_closed {
        None
    } else {
        without_guests(loaded)
    }
}

/// A message about a found file, which is only used after consent.
fn consent_note(loaded: &Loaded) -> Option<String> {
    let name = &loaded.found.as_ref()?.name;
    Some(format!(
        "{name}: this file was found, not named: commands that use it ask for your consent, unless you name it with --config"
    ))
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

fn show(sources: &ConfigSources, origin: bool, output: Output) -> Result<Exit, Failure> {
    let tree = sources
        .tree(&env)
        .map_err(|problem| Failure::configuration(&[problem]))?;
    if output.json {
        output.result_json(&to_json(&tree))
    } else {
        output.result(&to_toml(&tree, origin))
    }
    Ok(Exit::Ok)
}
