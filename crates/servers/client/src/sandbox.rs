//! Sandbox of a child process: the files that it may use, and limits of what it may take of the
//! machine.
//!
//! Files are confined by Landlock (Linux 5.13 and later): a list of what is allowed, inherited by
//! all that the process starts and never given up. Nothing of it needs privileges. Other systems
//! have no such means without a helper that runs as root, so there a child with
//! [`Confinement::files`] is not started.

#[cfg(target_os = "linux")]
mod places;

use std::path::PathBuf;
use std::time::Duration;

#[cfg(target_os = "linux")]
pub(crate) use places::{Of, resolve};

/// Confinement of a child process. The default is nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Confinement {
    /// The files that it may use; `None` leaves it all files of its user.
    pub files: Option<FileAccess>,
    /// Its limits.
    pub limits: ProcessLimits,
}

/// The files that a confined child may use beside the system's programs and libraries, its own
/// program, its working directory, which it reads, and a directory for temporary files that ends
/// with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileAccess {
    /// Files and directories that it may read and run, with all that is below them.
    pub read: Vec<PathBuf>,
    /// Files and directories that it may read, write, make and remove, with all that is below them.
    pub write: Vec<PathBuf>,
    /// Files and directories that it never gets, whatever the lists say: the gateway's own.
    pub never: Vec<PathBuf>,
}

/// Limits of a child process. `None` is that of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessLimits {
    /// Private writable memory of each of its processes, in bytes (`RLIMIT_DATA`): an allocation
    /// beyond it fails.
    pub memory_bytes_max: Option<u64>,
    /// Its processes at once, itself included. All of them end when there are more; the keeper
    /// counts four times a second.
    pub processes_max: Option<u64>,
    /// Open files of each of its processes (`RLIMIT_NOFILE`).
    pub open_files_max: Option<u64>,
    /// Processor time of each of its processes, in whole seconds (`RLIMIT_CPU`): then it is killed.
    pub cpu_time_max: Option<Duration>,
}

impl Confinement {
    /// Whether it confines nothing.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Confinement that the kernel supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxSupport {
    /// No files; why.
    None(&'static str),
    /// Files; what it cannot keep a child from, which later kernels can.
    Files(Vec<&'static str>),
}
