//! A started child, with or without a keeper.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use tokio::process::Child;

#[cfg(target_os = "linux")]
use crate::guard::confine::{Confined, Files};
#[cfg(target_os = "linux")]
use crate::guard::keepers::Keeper;
use crate::guard::{self, Guard};
use crate::pipes::ChildPipes;
use crate::sandbox::Confinement;
#[cfg(target_os = "linux")]
use crate::sandbox::{self, Of, SandboxSupport};

const UNGUARDED: &str = "only the guard process of a gateway on Linux can confine a server: remove `sandbox` and `limits`, or run \
                         the server elsewhere";

/// The confinement of a command with its places found.
#[cfg(target_os = "linux")]
fn confined(command: &Command, confinement: &Confinement) -> io::Result<Option<Confined>> {
    use std::path::{Path, PathBuf};
    if confinement.is_none() {
        return Ok(None);
    }
    let files = match &confinement.files {
        None => None,
        Some(files) => {
            if let SandboxSupport::None(why) = guard::support() {
                return Err(io::Error::other(format!(
                    "it is to run in a sandbox, and {why}"
                )));
            }
            let cwd = match command.get_current_dir() {
                Some(cwd) => std::path::absolute(cwd)?,
                None => std::env::current_dir()?,
            };
            let home = std::env::var_os("HOME").map(PathBuf::from);
            let of = Of {
                program: Path::new(command.get_program()),
                cwd: &cwd,
                home: home.as_deref(),
            };
            let lists = sandbox::resolve(files, of).map_err(io::Error::other)?;
            let texts =
                |paths: Vec<PathBuf>| paths.into_iter().map(PathBuf::into_os_string).collect();
            let temp = std::env::temp_dir().into_os_string();
            Some(Files {
                read: texts(lists.read),
                write: texts(lists.write),
                temp,
            })
        }
    };
    Ok(Some(Confined {
        files,
        limits: confinement.limits,
    }))
}

/// Process that this process, or its guard process, has started.
#[derive(Debug)]
pub(super) enum Started {
    /// The child itself.
    Child(Child),
    /// Its keeper.
    #[cfg(target_os = "linux")]
    Kept(Keeper),
}

impl Started {
    /// Starts a command, whose environment was cleared first, and whose program is an absolute
    /// path: under a keeper if the guard has keepers, else under this name and as the leader of a
    /// process group.
    pub(super) fn start(
        mut command: Command,
        pipes: ChildPipes,
        confinement: &Confinement,
        (name, guard): (&str, Option<&Guard>),
    ) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(keepers) = guard.and_then(Guard::keepers) {
            return keepers
                .start(&command, confined(&command, confinement)?, pipes)
                .map(Self::Kept);
        }
        if !confinement.is_none() {
            return Err(io::Error::other(UNGUARDED));
        }
        #[cfg(not(target_os = "linux"))]
        let _ = guard;
        let ChildPipes {
            stdin,
            stdout,
            stderr,
        } = pipes;
        command
            .arg0(name)
            .process_group(0)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr);
        tokio::process::Command::from(command)
            .spawn()
            .map(Self::Child)
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

    /// Waits until the child has ended. Returns its exit code; `None` after a signal. May be
    /// dropped and called again.
    pub(super) async fn wait(&mut self) -> Option<i32> {
        match self {
            Self::Child(child) => child.wait().await.ok()?.code(),
            #[cfg(target_os = "linux")]
            Self::Kept(kept) => kept.wait().await,
        }
    }
}
