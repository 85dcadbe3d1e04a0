//! Commands that set up: plans of the crate `setup`, shown, asked for and made.

mod arguments;
mod clients;
mod described;
mod own;
mod search;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use setup::{
    ClientServers, DiffRow, FileChange, FileError, NewServer, NewTransport, Os, Surroundings,
    TextFile,
};
use store::{Directory, DirectoryOwner};
use upstream::config::{SandboxSupport, support};

use crate::cli::{ChangeArgs, OwnFileArgs};
use crate::consent::dangers_of;
use crate::process::env;
use config::{ConfigSources, OwnAddress, address_of_text};
use json::visible;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::prompt::{ProcessTerminal, Terminal, confirm};

pub(crate) use clients::{connect, disconnect, import};
pub(crate) use own::{add, edit_tools, init, rm};
pub(crate) use search::search;

/// Calls `then` with what the places of clients' files depend on.
fn surrounded<T>(then: impl FnOnce(&Surroundings<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
    let os = if cfg!(target_os = "macos") {
        Os::MacOs
    } else {
        Os::Linux
    };
    let home = env("HOME")
        .map(PathBuf::from)
        .filter(|home| home.is_absolute())
        .ok_or_else(|| {
            let message =
                "the environment variable HOME is not set, so the files of clients are not known";
            Failure::new(Exit::Usage, "no_home", message)
                .hint("set HOME, or name the client's file with --file")
        })?;
    let project = here()?;
    then(&Surroundings {
        os,
        home: &home,
        project: &project,
        env: &env,
    })
}

/// The current directory.
fn here() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| {
        Failure::new(
            Exit::Failed,
            "no_directory",
            format!("the current directory is not known: {error}"),
        )
    })
}

/// A path that does not depend on the current directory.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    Ok(here()?.join(path))
}

/// The configuration file that a command changes.
fn own_file(args: &OwnFileArgs) -> Result<TextFile, Failure> {
    let sources = ConfigSources {
        config: args.config.clone(),
        ..ConfigSources::default()
    };
    let path = sources.edited_file(&env).ok_or_else(|| {
        let message = "there is no place for a configuration file: HOME is not set";
        Failure::new(Exit::Usage, "no_home", message).hint("name a file with --config")
    })?;
    Ok(TextFile::read(&path)?)
}

/// The gateway that runs with the data directory of this configuration file, or with the default
/// one, and that directory.
fn running(file: &Path) -> Option<DirectoryOwner> {
    let of_file = ConfigSources {
        config: Some(file.to_owned()),
        ..ConfigSources::default()
    };
    let dirs = [
        of_file.data_dir(&env),
        ConfigSources::default().data_dir(&env),
    ];
    dirs.into_iter()
        .flatten()
        .find_map(|dir| Directory::owner(&dir).ok().flatten())
}

/// The addresses of the gateway that a configuration file is for: as the file has it, and of the
/// one that runs.
fn own_addresses(file: &TextFile) -> Vec<OwnAddress> {
    let written = address_of_text(&file.path.display().to_string(), &file.text, &env);
    let standard = || address_of_text("", "", &env);
    let listens = running(&file.path).and_then(|owner| owner.listen?.parse().ok());
    written
        .or_else(standard)
        .into_iter()
        .chain(listens.map(OwnAddress::listening))
        .collect()
}

/// Whether a server is the gateway itself.
fn is_itself(server: &NewServer, own: &[OwnAddress]) -> bool {
    matches!(&server.transport, NewTransport::Url { url, .. } if own.iter().any(|own| own.has(url)))
}

/// Leaves out servers that are the gateway itself, and notes it.
fn leave_out_itself(found: &mut ClientServers, own: &[OwnAddress]) {
    let itself = |server: &mut NewServer| is_itself(server, own);
    for server in found.servers.extract_if(.., itself) {
        found.notes.push(format!(
            "`{}` is this gateway itself: left out",
            server.name
        ));
    }
}

/// Writes a changed configuration file.
fn write(change: &FileChange) -> Result<(), FileError> {
    setup::write(change, config::SCHEMA)
}

/// A path as people write it: `~` for the home directory.
fn shown(path: &Path) -> String {
    let home = env("HOME")
        .map(PathBuf::from)
        .filter(|home| home.parent().is_some());
    let below = home.and_then(|home| {
        path.strip_prefix(home)
            .ok()
            .map(|below| format!("~/{}", below.display()))
    });
    visible::line(&below.unwrap_or_else(|| path.display().to_string()))
}

/// A file as people write it, and where it is if its path leads elsewhere: a link may come from
/// another person.
fn place(file: &TextFile) -> String {
    match file.linked_to() {
        Some(real) => format!("{} -> {}", shown(&file.path), shown(&real)),
        None => shown(&file.path),
    }
}

/// Shows what is dangerous about servers that another person may have written.
fn warn_of(servers: &[NewServer], output: Output) {
    for server in servers {
        let NewTransport::Command {
            command, args, env, ..
        } = &server.transport
        else {
            continue;
        };
        let words: Vec<&str> = std::iter::once(command)
            .chain(args)
            .map(String::as_str)
            .collect();
        for danger in dangers_of(&words, env.iter().map(|(name, _)| name.as_str())) {
            output.message(&format!(
                "DANGER: server `{}` {danger}",
                visible::line(&server.name)
            ));
        }
    }
}

/// Confines the servers of a file of a project, which may come from another person, as those of a
/// configuration file that was found.
fn confine(found: &mut ClientServers, at: &Surroundings<'_>) {
    let is_of_project = at.project != at.home && found.file.path.starts_with(at.project);
    let confines = is_of_project && matches!(support(), SandboxSupport::Files(_));
    for server in &mut found.servers {
        server.is_confined = confines && matches!(server.transport, NewTransport::Command { .. });
    }
}

/// Checks that a changed configuration file has no problem that it had not before.
fn checked(change: &FileChange) -> Result<(), Failure> {
    let new = setup::new_problems(change, &env);
    if new.is_empty() {
        Ok(())
    } else {
        Err(Failure::configuration(&new).hint("nothing was changed"))
    }
}

/// Shows changes, asks for consent if `asks`, and makes them with `make`. Returns whether they were
/// made.
fn carry_out(
    changes: &[&FileChange],
    args: ChangeArgs,
    asks: Option<&str>,
    output: Output,
    make: impl FnOnce() -> Result<(), FileError>,
) -> Result<bool, Failure> {
    let open: Vec<&&FileChange> = changes.iter().filter(|change| !change.is_none()).collect();
    if open.is_empty() {
        if !args.dry_run {
            make()?;
        }
        return Ok(false);
    }
    for change in &open {
        if args.dry_run && !output.json {
            output.result(&difference(change, |text, code| {
                output.painted_result(text, code)
            }));
        } else {
            output.message(&difference(change, |text, code| output.painted(text, code)));
        }
    }
    if args.dry_run {
        return Ok(false);
    }
    if let Some(question) = asks.filter(|_| !args.yes) {
        let mut terminal = ProcessTerminal;
        if !terminal.is_interactive() {
            let failure = Failure::new(
                Exit::Refused,
                "consent_needed",
                "nothing was changed: the change needs your consent",
            );
            return Err(failure.hint("consent with --yes, or see it with --dry-run"));
        }
        if !confirm(&mut terminal, question) {
            return Err(Failure::new(
                Exit::Refused,
                "consent_refused",
                "nothing was changed",
            ));
        }
    }
    make()?;
    Ok(true)
}

/// A change as `diff -u` shows it, in the colours of `paint`.
fn difference(change: &FileChange, paint: impl Fn(&str, &str) -> String) -> String {
    let what = match (change.file.exists(), change.after.is_some()) {
        (false, _) => " (new)",
        (true, false) => " (removed)",
        (true, true) => "",
    };
    let mut lines = vec![paint(&format!("{}{what}", place(&change.file)), "1")];
    // The comments of a first file are for those who read it later.
    let is_shown =
        |row: &DiffRow| change.file.exists() || !(row.text.is_empty() || row.text.starts_with('#'));
    for DiffRow { sign, text } in change.rows().into_iter().filter(is_shown) {
        let text = visible::line(&text.replace('\t', "    "));
        lines.push(match sign {
            '+' => paint(&format!("  + {text}"), "32"),
            '-' => paint(&format!("  - {text}"), "31"),
            '@' => paint(&format!("  @ {text}"), "36"),
            _ => format!("    {text}").trim_end().to_owned(),
        });
    }
    lines.join("\n")
}

/// The result as JSON.
fn report(file: &Path, changed: bool, more: &Value) -> Value {
    let mut report = json!({ "file": file.display().to_string(), "changed": changed });
    if let (Some(report), Some(more)) = (report.as_object_mut(), more.as_object()) {
        report.extend(more.clone());
    }
    report
}
