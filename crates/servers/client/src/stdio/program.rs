//! Look-up of a program by its name, in the PATH of this process.

use std::{
    env::{split_paths, var_os},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf, absolute},
};

/// The directories of a process without PATH.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// The program of a command: a path, from `cwd` if it is relative, or a name that is looked up in
/// the PATH of this process. The environment of a child has no part in it.
pub fn find_program(command: &str, cwd: Option<&Path>) -> Option<PathBuf> {
    if command.contains('/') {
        return found(&cwd.unwrap_or(Path::new("")).join(command));
    }
    let path = var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    split_paths(&path).find_map(|dir| found(&dir.join(command)))
}

/// The absolute path of a file that can be run: the child's working directory may be another one.
fn found(file: &Path) -> Option<PathBuf> {
    let file = absolute(file).ok()?;
    let data = file.metadata().ok()?;
    let can_run = data.is_file() && data.permissions().mode() & 0o111 != 0;
    can_run.then_some(file)
}
