//! A started child, with or without a keeper.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use tokio::process::Child;

use crate::guard::Guard;
#[cfg(target_os = "linux")]
use crate::guard::keepers::Kept;
use crate::pipes::ChildPipes;

/// What this process, or its guard process, has started.
#[derive(Debug)]
pub(super) enum Started {
    /// The child itself.
    Child(Child),
    /// Its keeper.
    #[cfg(target_os = "linux")]
    Kept(Kept),
}

impl Started {
    /// Starts a command, whose environment was cleared first: under a keeper if the guard has keepers, else under this name and as
    /// the leader of a process group.
    pub(super) fn start(
        mut command: Command,
        pipes: ChildPipes,
        (name, guard): (&str, Option<&Guard>),
    ) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(keepers) = guard.and_then(Guard::keepers) {
            return keepers.start(&command, pipes).map(Self::Kept);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = guard;
        let ChildPipes { stdin, stdout, stderr } = pipes;
        command.arg0(name).process_group(0).stdin(stdin).stdout(stdout).stderr(stderr);
        tokio::process::Command::from(command).spawn().map(Self::Child)
    }

    /// The process id of what was started; `None` if it has ended.
    pub(super) fn id(&self) -> Option<u32> {
        match self {
            Self::Child(child) => child.id(),
            #[cfg(target_os = "linux")]
            Self::Kept(kept) => Some(kept.keeper),
        }
    }

    /// Whether it is the keeper of the child.
    pub(super) fn is_kept(&self) -> bool {
        !matches!(self, Self::Child(_))
    }

    /// Waits until the child has ended. Returns its exit code; `None` after a signal. May be dropped and called again.
    pub(super) async fn wait(&mut self) -> Option<i32> {
        match self {
            Self::Child(child) => child.wait().await.ok()?.code(),
            #[cfg(target_os = "linux")]
            Self::Kept(kept) => kept.wait().await,
        }
    }
}
