//! Stdio transport: a child process, its environment and its three pipes. One line is one message.

mod process;
mod queue;
mod read;

use std::{io, path::PathBuf, process::Stdio, sync::Arc};

use bytes::Bytes;
use tokio::{process::Command, sync::watch};

use crate::transport::{Closing, Inbox, LinkTransport, SendMeta};
use crate::{error::SendError, guard::Guard};
use process::Running;
use queue::StdinQueue;

/// Bytes that may wait until the child reads them.
const QUEUE_BYTES_MAX: usize = 16 << 20;
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
    /// The program, looked up in PATH.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables, besides PATH, HOME and the locale, which are inherited.
    pub env: Vec<(String, String)>,
    /// Its working directory; `None` is that of this process.
    pub cwd: Option<PathBuf>,
    /// Longest line of its stdout, in bytes.
    pub line_bytes_max: usize,
    /// Messages that may wait until the child reads them.
    pub queue_len_max: usize,
}

/// A link to a child process. Dropping it ends the child.
#[derive(Debug)]
pub(crate) struct StdioLink {
    pid: u32,
    queue: Arc<StdinQueue>,
    close: watch::Sender<bool>,
    ended: watch::Receiver<bool>,
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
        let queue = Arc::new(StdinQueue::new(QUEUE_BYTES_MAX, spec.queue_len_max));
        tokio::spawn(queue::write(Arc::clone(&queue), stdin));
        tokio::spawn(read::stderr(spec.name.clone(), stderr));
        let lines = read::stdout(spec.name.clone(), spec.line_bytes_max, stdout, Arc::clone(&inbox));
        let reader = tokio::spawn(lines);
        let (close, closing) = watch::channel(false);
        let (done, ended) = watch::channel(false);
        let running = Running { child, pid, queue: Arc::clone(&queue), reader, inbox, guard };
        tokio::spawn(async move {
            running.run(closing).await;
            let _ = done.send(true);
        });
        Ok(Self { pid, queue, close, ended })
    }
}

impl LinkTransport for StdioLink {
    fn send(&self, frame: Bytes, _: SendMeta) -> Result<(), SendError> {
        self.queue.push(frame)
    }
    fn pid(&self) -> Option<u32> {
        Some(self.pid)
    }
    fn close(&self) -> Closing<'_> {
        let _ = self.close.send(true);
        let mut ended = self.ended.clone();
        Box::pin(async move {
            let _ = ended.wait_for(|ended| *ended).await;
        })
    }
}
