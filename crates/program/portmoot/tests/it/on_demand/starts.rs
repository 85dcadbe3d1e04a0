//! Fixture servers that write down each of their starts.

use std::path::PathBuf;

use crate::home::Home;
use crate::support::{is_alive, until};

/// One start of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) pid: u64,
    pub(super) at_ms: u64,
}

/// The table of a server that writes down its starts, with this command line of a shell.
pub(super) fn marked(home: &Home, name: &str, command: &str) -> String {
    std::fs::create_dir_all(folder(home)).unwrap();
    let line = format!(
        "echo $$ $(date +%s%3N) >> {}; exec {command}",
        folder(home).join(name).display()
    );
    format!("[servers.{name}]\ncommand = \"sh\"\nargs = [\"-c\", {line:?}]\n")
}

/// The same for the fixture with these arguments.
pub(super) fn fixture(home: &Home, name: &str, arguments: &str) -> String {
    marked(
        home,
        name,
        &format!(
            "{} --stdio {arguments}",
            harness::fixture_binary().display()
        ),
    )
}

fn folder(home: &Home) -> PathBuf {
    home.path().join("starts")
}

/// All starts of a server, oldest first.
pub(super) fn starts(home: &Home, name: &str) -> Vec<Start> {
    let text = std::fs::read_to_string(folder(home).join(name)).unwrap_or_default();
    let start = |line: &str| {
        let (pid, at_ms) = line.split_once(' ')?;
        Some(Start {
            pid: pid.parse().ok()?,
            at_ms: at_ms.parse().ok()?,
        })
    };
    text.lines().filter_map(start).collect()
}

/// The starts of all servers, oldest first.
pub(super) fn all_starts(home: &Home) -> Vec<Start> {
    let files = std::fs::read_dir(folder(home)).unwrap().flatten();
    let names = files.map(|file| file.file_name().to_str().unwrap().to_owned());
    let mut all: Vec<Start> = names.flat_map(|name| starts(home, &name)).collect();
    all.sort_by_key(|start| start.at_ms);
    all
}

/// The processes of a server that run.
pub(super) fn running(home: &Home, name: &str) -> Vec<u64> {
    starts(home, name)
        .iter()
        .map(|start| start.pid)
        .filter(|pid| is_alive(*pid))
        .collect()
}

/// The number of processes that run, of all servers.
pub(super) fn all_running(home: &Home) -> usize {
    all_starts(home)
        .iter()
        .filter(|start| is_alive(start.pid))
        .count()
}

/// Waits until no process of any server runs.
#[track_caller]
pub(super) fn all_ended(home: &Home) {
    until("no server runs", || (all_running(home) == 0).then_some(()));
}

/// Waits until no process of this server runs.
#[track_caller]
pub(super) fn ended(home: &Home, name: &str) {
    until(&format!("{name} has ended"), || {
        running(home, name).is_empty().then_some(())
    });
}
