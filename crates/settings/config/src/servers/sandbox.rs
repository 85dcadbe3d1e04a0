//! Keys that confine a server's process: `sandbox`, `sandbox_read`, `sandbox_write`, `limits`.

use std::path::PathBuf;

use upstream::config::{Confinement, FileAccess, ProcessLimits, SandboxSupport, support};

use crate::expand::expand_path;
use crate::node::SourceOrigin;
use crate::reader::{ListedText, Table};
use crate::values::Variables;

/// Values of `sandbox`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sandbox {
    None,
    Files,
}

pub(crate) const SANDBOXES: [(&str, Sandbox); 2] =
    [("none", Sandbox::None), ("files", Sandbox::Files)];

/// Reads what confines the process of a server. `standard` is the default of all servers; a server
/// of a found file has its own, where the system can keep it.
pub(super) fn read(
    table: &Table<'_>,
    variables: &Variables<'_>,
    standard: Sandbox,
    has_process: bool,
) -> Confinement {
    let written = table.choice("sandbox", &SANDBOXES);
    let is_found = table.location().layer.origin == SourceOrigin::Found;
    // The operator consents to a found file, and is shown what of it is not confined. `support`
    // asks the kernel, so only where the answer counts.
    let standard = if is_found && matches!(support(), SandboxSupport::Files(_)) {
        Sandbox::Files
    } else {
        standard
    };
    let sandbox = written.unwrap_or(standard);
    let read = paths(table, "sandbox_read", variables);
    let write = paths(table, "sandbox_write", variables);
    let limits = table.table("limits").map(limits).unwrap_or_default();
    for key in ["sandbox", "sandbox_read", "sandbox_write", "limits"] {
        if !has_process && table.get(key).is_some() {
            let message = format!("{} has no process to confine", table.full(key));
            table.note_value(key, message, "it is for servers with a `command`");
        }
    }
    for key in ["sandbox_read", "sandbox_write"] {
        if has_process && sandbox == Sandbox::None && table.get(key).is_some() {
            let message = format!("{} has no meaning without a sandbox", table.full(key));
            table.note_value(key, message, "add sandbox = \"files\"");
        }
    }
    if !has_process {
        return Confinement::default();
    }
    let files = (sandbox == Sandbox::Files).then_some(FileAccess {
        read,
        write,
        // The gateway's own folders, once the whole configuration says where they are.
        never: Vec::new(),
    });
    Confinement { files, limits }
}

fn paths(table: &Table<'_>, key: &'static str, variables: &Variables<'_>) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for ListedText { text, location } in table.texts(key).unwrap_or_default() {
        let expanded = expand_path(text, variables.env());
        let path = variables.expanded(expanded, text, table.full(key), location, table.problems());
        if path.expose().is_empty() {
            let message = format!("{} lists an empty path", table.full(key));
            table.note_value(key, message, "write a file or a directory");
        }
        paths.push(PathBuf::from(path.expose()));
    }
    paths
}

fn limits(table: Table<'_>) -> ProcessLimits {
    let bytes = table.bytes("memory_bytes_max").map(|bytes| bytes as u64);
    let time = table.duration("cpu_time_max");
    // The kernel counts whole seconds: it could not keep a limit of less than one.
    above_zero(&table, "cpu_time_max", time.map(|time| time.as_secs()));
    let limits = ProcessLimits {
        memory_bytes_max: above_zero(&table, "memory_bytes_max", bytes),
        processes_max: above_zero(&table, "processes_max", table.count("processes_max")),
        open_files_max: above_zero(&table, "open_files_max", table.count("open_files_max")),
        cpu_time_max: time,
    };
    table.finish();
    limits
}

/// Notes a problem if a limit is 0.
fn above_zero(table: &Table<'_>, key: &'static str, value: Option<u64>) -> Option<u64> {
    if value == Some(0) {
        let message = format!("{} must be more than 0", table.full(key));
        table.note_value(key, message, "remove it for no limit");
    }
    value
}
