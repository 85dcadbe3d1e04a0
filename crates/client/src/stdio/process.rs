//! Lifetime of a child process: its end, expected or not, within time limits and with its whole process group.

use std::{process::ExitStatus, sync::Arc, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::{process::Child, sync::watch, task::JoinHandle, time::timeout};

use super::queue::StdinQueue;
use crate::{error::LinkError, guard::Guard, transport::Inbox};

/// How long a child that is closed may live: after the end of its stdin, after SIGTERM, after SIGKILL.
const EOF: Duration = Duration::from_secs(2);
const TERM: Duration = Duration::from_secs(2);
const KILL: Duration = Duration::from_secs(1);
/// How long to wait for the last lines of a child that has ended; a grandchild may hold the pipe open.
const DRAIN: Duration = Duration::from_millis(200);
/// How long a child may live after it closed its stdout, and a group after SIGTERM.
const GRACE: Duration = Duration::from_millis(500);
/// How often to check whether the rest of a group is gone.
const POLL: Duration = Duration::from_millis(20);

/// Everything that ends with the child.
pub(super) struct Running {
    pub(super) child: Child,
    pub(super) pid: u32,
    pub(super) queue: Arc<StdinQueue>,
    pub(super) reader: JoinHandle<std::io::Result<()>>,
    pub(super) inbox: Arc<dyn Inbox>,
    pub(super) guard: Option<Guard>,
}

impl Running {
    /// Waits until the child's group is gone, because it has ended or `closing` says so.
    pub(super) async fn run(mut self, mut closing: watch::Receiver<bool>) {
        let group = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let why = tokio::select! {
            status = self.child.wait() => exited(status.ok()),
            // An error means that the link was dropped.
            () = async { drop(closing.wait_for(|closing| *closing).await) } => {
                stop(&mut self, group).await;
                LinkError::Closed
            }
            _ = &mut self.reader => match timeout(GRACE, self.child.wait()).await {
                Ok(status) => exited(status.ok()),
                Err(_) => {
                    stop(&mut self, group).await;
                    LinkError::Broken("stdout was closed".to_owned())
                }
            },
        };
        self.queue.close();
        if let Some(group) = group {
            end_rest(group).await;
        }
        if !self.reader.is_finished() && timeout(DRAIN, &mut self.reader).await.is_err() {
            self.reader.abort();
        }
        if let Some(guard) = &self.guard {
            guard.release(self.pid);
        }
        self.inbox.closed(why);
    }
}

fn exited(status: Option<ExitStatus>) -> LinkError {
    LinkError::Exited { code: status.and_then(|status| status.code()) }
}

/// Closes stdin, sends SIGTERM, sends SIGKILL, and waits after each step for its time.
async fn stop(running: &mut Running, group: Option<Pid>) {
    running.queue.close();
    if timeout(EOF, running.child.wait()).await.is_ok() {
        return;
    }
    for (signal, wait) in [(Signal::TERM, TERM), (Signal::KILL, KILL)] {
        if let Some(group) = group {
            let _ = kill_process_group(group, signal);
        }
        if timeout(wait, running.child.wait()).await.is_ok() {
            return;
        }
    }
    tracing::error!(pid = running.pid, "a child process does not end");
}

/// Ends the processes that the group's leader left behind. While one of them lives, the kernel does not reuse the
/// group's number.
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
