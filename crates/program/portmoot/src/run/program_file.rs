//! File of this program, for the processes that it starts of itself.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The file of this program. On Linux a name that stays right when an update replaces the file:
/// that of its open descriptor, or of the running file if it has been replaced already. (A program
/// that runs this one, as valgrind does, has the latter.)
pub(super) fn this_program() -> Option<PathBuf> {
    static OPENED: OnceLock<Option<File>> = OnceLock::new();
    let path = std::env::current_exe().ok();
    if !Path::new("/proc/self/exe").exists() {
        return path;
    }
    let name = match OPENED.get_or_init(|| File::open(path?).ok()) {
        Some(file) => format!("/proc/self/fd/{}", file.as_raw_fd()),
        None => "/proc/self/exe".to_owned(),
    };
    Some(name.into())
}
