//! A child process as a link: one line is one message.
//!
//! Owns the start of the child, its environment and its three pipes. What ends it is in `life`. It must not know what
//! a line means.

mod life;
mod limits;
mod lines;
mod queue;
mod read;

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use bytes::Bytes;
use tokio::process::Command;

use crate::contract::{Bounds, Inbox, Unsent};
use crate::guard::Guard;
use life::Life;
pub use limits::StdioLimits;
use queue::Queue;

/// The variables of our own environment that a child gets; everything else it must be given.
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

/// How to start a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StdioSpec {
    /// The server's name, for the log.
    pub name: Arc<str>,
    /// The program, looked up in PATH.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that it gets besides PATH, HOME and the locale.
    pub env: Vec<(String, String)>,
    /// Its working directory; ours if none.
    pub cwd: Option<PathBuf>,
    /// Bounds on what it may cost.
    pub limits: StdioLimits,
}

/// The two ends that the gateway holds of a running child.
#[derive(Debug)]
pub(crate) struct StdioLink {
    queue: Arc<Queue>,
    life: Life,
}

fn command(spec: &StdioSpec) -> Command {
    let mut command = Command::new(&spec.command);
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
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl StdioLink {
    pub(crate) fn new(spec: &StdioSpec, inbox: Arc<dyn Inbox>, guard: Option<Guard>) -> io::Result<Self> {
        let mut child = command(spec).spawn()?;
        let pid = child.id().ok_or(io::ErrorKind::BrokenPipe)?;
        if let Some(guard) = &guard {
            guard.watch(pid);
        }
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let queue = Arc::new(Queue::new(spec.limits.queue_bytes_max, spec.limits.queue_len_max));
        tokio::spawn(queue::write(Arc::clone(&queue), stdin));
        tokio::spawn(read::stderr(spec.name.clone(), spec.limits, stderr));
        let reader = tokio::spawn(read::stdout(spec.name.clone(), spec.limits, stdout, Arc::clone(&inbox)));
        let life = Life::start(life::Watched { child, pid, queue: Arc::clone(&queue), reader, inbox, guard });
        Ok(Self { queue, life })
    }

    pub(crate) fn send(&self, frame: Bytes) -> Result<(), Unsent> {
        self.queue.push(frame)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.life.pid()
    }

    pub(crate) async fn close(&self, bounds: Bounds) {
        self.life.close(bounds).await;
    }
}
