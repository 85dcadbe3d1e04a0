//! Stdio transport: a child process, its environment and its three pipes. One line, or one frame,
//! is one message.

mod hook;
mod process;
mod program;
mod read;
mod started;
mod stderr;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{io, process::Command};

use bytes::Bytes;
use platform::SHARE_OF_POOL;
use rustix::io::Errno;
use tokio::sync::watch;

use crate::queue::{self, Framing, SendQueue};
use crate::sandbox::Confinement;
use crate::transport::{Closing, LinkInbox, LinkTransport, SendMeta};
use crate::{error::SendError, framed::read_frames, guard::Guard, processes::Root};

use crate::pipes::Pipes;
pub use hook::{HookEnd, HookLimits, run_hook};
use process::{Groups, Running};
pub use program::find_program;
use started::Started;
pub use stderr::{STDERR_BYTES_MAX, STDERR_LINES_MAX, StderrLine, StderrLog};

/// Bytes that may wait until the child reads them.
pub const CHILD_QUEUE_BYTES_MAX: usize = 16 << 20;
/// The share of one participant. A participant of which nothing waits may add one message of any
/// size.
pub const PARTICIPANT_CHILD_QUEUE_BYTES_MAX: usize = CHILD_QUEUE_BYTES_MAX / SHARE_OF_POOL;
/// The variables that a child inherits; every other one must be configured.
const INHERITED: [&str; 11] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_ADDRESS",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NUMERIC",
    "LC_TIME",
];

/// The configuration of a child process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StdioSpec {
    /// The server's name, for the log.
    pub name: Arc<str>,
    /// The program, looked up in the PATH of this process, whatever the child's environment says.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables, besides PATH, HOME and the locale, which are inherited.
    pub env: Vec<(String, String)>,
    /// Its working directory; `None` is that of this process.
    pub cwd: Option<PathBuf>,
    /// Confinement of the process.
    pub confinement: Confinement,
    /// Framing of messages on its pipes.
    pub framing: Framing,
    /// Longest message of its stdout, in bytes.
    pub line_bytes_max: usize,
    /// Messages that may wait until the child reads them.
    pub queue_len_max: usize,
}

/// A link to a child process. Dropping it ends the child.
#[derive(Debug)]
pub(crate) struct StdioLink {
    groups: Groups,
    queue: Arc<SendQueue>,
    close: watch::Sender<bool>,
    ended: watch::Receiver<bool>,
}

/// The command of the child.
fn command(spec: &StdioSpec) -> io::Result<Command> {
    let mut command = Command::new(program(spec)?);
    command.args(&spec.args).env_clear();
    for name in INHERITED {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.envs(spec.env.iter().map(|(name, value)| (name, value)));
    if let Some(cwd) = &spec.cwd {
        command.current_dir(cwd);
    }
    Ok(command)
}

/// The program to start. A name is never looked up in the PATH that the child is given.
fn program(spec: &StdioSpec) -> io::Result<PathBuf> {
    find_program(&spec.command, spec.cwd.as_deref()).ok_or_else(|| {
        let file = spec
            .cwd
            .as_deref()
            .unwrap_or(Path::new(""))
            .join(&spec.command);
        let is_there = spec.command.contains('/') && file.exists();
        if is_there {
            Errno::ACCESS.into()
        } else {
            Errno::NOENT.into()
        }
    })
}

impl StdioLink {
    pub(crate) fn new(
        spec: &StdioSpec,
        inbox: Arc<dyn LinkInbox>,
        guard: Option<Guard>,
        log: Arc<StderrLog>,
    ) -> io::Result<Self> {
        let (
            Pipes {
                stdin,
                stdout,
                stderr,
            },
            theirs,
        ) = Pipes::new()?;
        let started = Started::start(
            command(spec)?,
            theirs,
            &spec.confinement,
            (&spec.command, guard.as_ref()),
        )?;
        let pid = started.id().ok_or(io::ErrorKind::BrokenPipe)?;
        if let Some(guard) = &guard {
            guard.watch(pid);
        }
        let queue = Arc::new(SendQueue::new(
            spec.framing,
            CHILD_QUEUE_BYTES_MAX,
            spec.queue_len_max,
        ));
        tokio::spawn(queue::write(Arc::clone(&queue), stdin));
        let stderr = tokio::spawn(read::stderr(spec.name.clone(), stderr, (pid, log)));
        let name = spec.name.clone();
        let bytes_max = spec.line_bytes_max;
        let into = Arc::clone(&inbox);
        let reader = match spec.framing {
            Framing::Lines => tokio::spawn(read::stdout(name, bytes_max, stdout, into)),
            Framing::Frames => tokio::spawn(read_frames(stdout, bytes_max, into)),
        };
        let (close, closing) = watch::channel(false);
        let (done, ended) = watch::channel(false);
        let groups = Groups::new(pid, started.is_kept());
        let queued = Arc::clone(&queue);
        let kept_groups = groups.clone();
        let running = Running {
            started,
            groups: kept_groups,
            queue: queued,
            reader,
            stderr,
            inbox,
            guard,
        };
        tokio::spawn(async move {
            running.run(closing).await;
            let _ = done.send(true);
        });
        Ok(Self {
            groups,
            queue,
            close,
            ended,
        })
    }
}

impl LinkTransport for StdioLink {
    fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), SendError> {
        self.queue.push(frame, meta.unsent.as_ref())
    }
    fn pid(&self) -> Option<u32> {
        self.groups.child()
    }
    fn process(&self) -> Option<Root> {
        Some(self.groups.root())
    }
    fn close(&self) -> Closing<'_> {
        let _ = self.close.send(true);
        let mut ended = self.ended.clone();
        Box::pin(async move {
            let _ = ended.wait_for(|ended| *ended).await;
        })
    }
}
