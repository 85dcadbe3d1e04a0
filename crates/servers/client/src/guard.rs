//! Guard of child processes: none outlives its gateway, however the gateway ends.
//!
//! The gateway starts its own binary with [`ARG`], and that process calls [`run`]. On Linux it
//! forks a *keeper* for each child, which starts the child, is the parent of every process that the
//! child leaves behind, also of daemons, and ends them all when the child or the gateway has ended.
//! Elsewhere it ends the process groups of all children when the gateway has ended; a process that
//! has left its group outlives them.

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
pub(crate) mod confine;
#[cfg(target_os = "linux")]
mod forks;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
pub(crate) mod keepers;
#[cfg(target_os = "linux")]
mod order;
#[cfg(target_os = "linux")]
mod processes;
mod shared;
#[cfg(target_os = "linux")]
mod signals;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

pub use shared::ARG;
use shared::Shared;

use crate::sandbox::SandboxSupport;

/// The guard of a gateway's children. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Guard(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// Each child is started by a keeper.
    #[cfg(target_os = "linux")]
    Keepers(std::sync::Arc<keepers::Keepers>),
    Shared(Shared),
}

impl Guard {
    /// The best guard of this platform. `exe` is normally this binary. Must be called within a
    /// tokio runtime.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start(exe: PathBuf) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        return Ok(Self(Kind::Keepers(std::sync::Arc::new(
            keepers::Keepers::new(exe),
        ))));
        #[cfg(not(target_os = "linux"))]
        Self::shared(exe)
    }

    /// Starts one process for all children. It ends their process groups, on every platform.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn shared(exe: PathBuf) -> io::Result<Self> {
        Shared::start(exe).map(|shared| Self(Kind::Shared(shared)))
    }

    /// Starter of children under keepers, if children have keepers.
    #[cfg(target_os = "linux")]
    pub(crate) fn keepers(&self) -> Option<&keepers::Keepers> {
        match &self.0 {
            Kind::Keepers(keepers) => Some(keepers),
            Kind::Shared(_) => None,
        }
    }

    /// Adds the process group of a child.
    pub(crate) fn watch(&self, pgid: u32) {
        if let Some(shared) = self.as_shared() {
            shared.watch(pgid);
        }
    }

    /// Removes a process group that has ended.
    pub(crate) fn release(&self, pgid: u32) {
        if let Some(shared) = self.as_shared() {
            shared.release(pgid);
        }
    }

    /// Process id of the shared guard, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.as_shared()?.pid()
    }

    fn as_shared(&self) -> Option<&Shared> {
        match &self.0 {
            #[cfg(target_os = "linux")]
            Kind::Keepers(_) => None,
            Kind::Shared(shared) => Some(shared),
        }
    }
}

/// The guard process itself. `main` calls it when the first argument is [`ARG`]. Returns when the
/// guarded processes have ended.
///
/// # Errors
/// When the process cannot watch the gateway or its signals.
pub fn run() -> io::Result<ExitCode> {
    #[cfg(target_os = "linux")]
    if let Some(gateway) = std::env::args_os().nth(2) {
        return forks::run(&gateway);
    }
    shared::run().map(|()| ExitCode::SUCCESS)
}

/// Confinement of a child that this system supports.
#[must_use]
pub fn support() -> SandboxSupport {
    #[cfg(target_os = "linux")]
    return confine::support();
    #[cfg(not(target_os = "linux"))]
    SandboxSupport::None("only Linux can confine the files of a process without privileges")
}

/// The child of a keeper; `None` while the keeper has not started it.
pub(crate) fn child_of(keeper: u32) -> Option<u32> {
    #[cfg(target_os = "linux")]
    return processes::first_child(keeper);
    #[cfg(not(target_os = "linux"))]
    Some(keeper)
}
