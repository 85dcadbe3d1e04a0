//! Lifetime of a child process: its end, expected or not, within time limits and with its whole
//! process group.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::{
    sync::watch,
    task::{JoinError, JoinHandle},
    time::timeout,
};

use super::started::Started;
use crate::{
    error::LinkError,
    guard::{self, Guard},
    processes::Root,
    queue::SendQueue,
    transport::LinkInbox,
};

/// Time that a child that is closed may live: after the end of its stdin, after SIGTERM, after
/// SIGKILL.
const EOF: Duration = Duration::from_secs(2);
pub(super) const TERM: Duration = Duration::from_secs(3);
pub(super) const KILL: Duration = Duration::from_secs(1);
/// Time to wait for the last lines of a child that has ended; a grandchild may hold the pipe open.
const DRAIN: Duration = Duration::from_millis(200);
/// Time that a child may live after it closed its stdout. A keeper meanwhile ends what the child
/// has left behind.
const CLOSED: Duration = Duration::from_millis(1500);
/// Time that a group may live after SIGTERM.
const GRACE: Duration = Duration::from_millis(500);
/// Interval of the checks whether the rest of a group is gone.
const POLL: Duration = Duration::from_millis(20);

/// The process groups of a child: its own, and its keeper's if it has one.
#[derive(Debug, Clone)]
pub(super) struct Groups {
    /// The process that this one has started: the child, or its keeper.
    pub(super) started: u32,
    is_kept: bool,
    child: Arc<OnceLock<u32>>,
}

impl Groups {
    pub(super) fn new(started: u32, kept: bool) -> Self {
        let child = if kept {
            OnceLock::new()
        } else {
            OnceLock::from(started)
        };
        Self {
            started,
            is_kept: kept,
            child: Arc::new(child),
        }
    }

    /// Root of the processes of the child.
    pub(super) fn root(&self) -> Root {
        Root {
            started: self.started,
            is_keeper: self.is_kept,
        }
    }

    /// The process id of the child, once its keeper has started it.
    pub(super) fn child(&self) -> Option<u32> {
        if self.child.get().is_none()
            && let Some(pid) = guard::child_of(self.started)
        {
            let _ = self.child.set(pid);
        }
        self.child.get().copied()
    }

    /// Finds the child while its keeper runs, for the case that the keeper is killed. Never ends.
    async fn find_child(&self) {
        let mut wait = POLL;
        while self.child().is_none() {
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(EOF);
        }
        std::future::pending().await
    }

    fn all(&self) -> impl Iterator<Item = Pid> {
        let child = self
            .child
            .get()
            .copied()
            .filter(|child| *child != self.started);
        [Some(self.started), child]
            .into_iter()
            .flatten()
            .filter_map(|pid| i32::try_from(pid).ok().and_then(Pid::from_raw))
    }

    pub(super) fn signal(&self, signal: Signal) {
        for group in self.all() {
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Everything that ends with the child.
pub(super) struct Running {
    pub(super) started: Started,
    pub(super) groups: Groups,
    pub(super) queue: Arc<SendQueue>,
    pub(super) reader: JoinHandle<std::io::Result<()>>,
    pub(super) stderr: JoinHandle<std::io::Result<()>>,
    pub(super) inbox: Arc<dyn LinkInbox>,
    pub(super) guard: Option<Guard>,
}

impl Running {
    /// Waits until the child's group is gone, because it has ended or `closing` says so.
    pub(super) async fn run(mut self, mut closing: watch::Receiver<bool>) {
        let groups = self.groups.clone();
        let why = tokio::select! {
            code = self.started.wait() => LinkError::Exited { code },
            // An error means that the link was dropped.
            () = async { drop(closing.wait_for(|closing| *closing).await) } => {
                stop(&mut self).await;
                LinkError::Closed
            }
            read = &mut self.reader => match unreadable(read) {
                Some(why) => {
                    stop(&mut self).await;
                    why
                }
                None => match timeout(CLOSED, self.started.wait()).await {
                    Ok(code) => LinkError::Exited { code },
                    Err(_) => {
                        stop(&mut self).await;
                        LinkError::Broken("stdout was closed".to_owned())
                    }
                },
            },
            () = groups.find_child() => LinkError::Closed,
        };
        self.queue.close();
        for group in groups.all() {
            end_rest(group).await;
        }
        if !self.reader.is_finished() && timeout(DRAIN, &mut self.reader).await.is_err() {
            self.reader.abort();
        }
        // The last lines often say why it has ended.
        let _ = timeout(DRAIN, &mut self.stderr).await;
        if let Some(guard) = &self.guard {
            guard.release(groups.started);
        }
        self.inbox.closed(why);
    }
}

/// Fault of the child's text that ends its link, if that is why it is read no further.
fn unreadable(read: Result<std::io::Result<()>, JoinError>) -> Option<LinkError> {
    let why = read
        .ok()?
        .err()
        .filter(|why| why.kind() == std::io::ErrorKind::InvalidData)?;
    Some(LinkError::Malformed(why.to_string()))
}

/// Closes stdin, sends SIGTERM, sends SIGKILL, and waits after each step for its time.
async fn stop(running: &mut Running) {
    running.queue.close();
    if timeout(EOF, running.started.wait()).await.is_ok() {
        return;
    }
    for (signal, wait) in [(Signal::TERM, TERM), (Signal::KILL, KILL)] {
        running.groups.signal(signal);
        if timeout(wait, running.started.wait()).await.is_ok() {
            return;
        }
    }
    tracing::error!(pid = running.groups.started, "a child process does not end");
}

/// Ends the processes that the group's leader left behind. While one of them lives, the kernel does
/// not reuse the group's number.
async fn end_rest(group: Pid) {
    if kill_process_group(group, Signal::TERM).is_err() {
        return;
    }
    let wait = async {
        while test_kill_process_group(group).is_ok() {
            tokio::time::sleep(POLL).await;
        }
    };
    if timeout(GRACE, wait).await.is_err() {
        let _ = kill_process_group(group, Signal::KILL);
    }
}
