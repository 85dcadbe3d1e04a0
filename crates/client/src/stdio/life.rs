//! The end of a child, wanted or not: every step is bounded and the whole process group goes.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Child;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::queue::Queue;
use crate::contract::{Bounds, Inbox, LinkFailure};
use crate::guard::Guard;

/// How long the last lines of a child that has ended are waited for; a grandchild may hold the pipe open.
const DRAIN: Duration = Duration::from_millis(200);
/// How long a child that has closed its stdout may go on living.
const MUTE: Duration = Duration::from_millis(500);
/// How often it is looked whether the rest of a group is gone.
const POLL: Duration = Duration::from_millis(20);

/// Everything that ends with the child.
pub(super) struct Watched {
    pub(super) child: Child,
    pub(super) pid: u32,
    pub(super) queue: Arc<Queue>,
    pub(super) reader: JoinHandle<std::io::Result<()>>,
    pub(super) inbox: Arc<dyn Inbox>,
    pub(super) guard: Option<Guard>,
}

/// The handle on a child's life. Dropping it ends the child.
#[derive(Debug)]
pub(super) struct Life {
    pid: u32,
    end: watch::Sender<Option<Bounds>>,
    ended: watch::Receiver<bool>,
}

impl Life {
    pub(super) fn start(watched: Watched) -> Self {
        let (end, wanted) = watch::channel(None);
        let (done, ended) = watch::channel(false);
        let pid = watched.pid;
        tokio::spawn(async move {
            live(watched, wanted).await;
            let _ = done.send(true);
        });
        Self { pid, end, ended }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) async fn close(&self, bounds: Bounds) {
        let _ = self.end.send(Some(bounds));
        let mut ended = self.ended.clone();
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

/// From the start of a child until its group is gone.
async fn live(mut watched: Watched, mut wanted: watch::Receiver<Option<Bounds>>) {
    let group = i32::try_from(watched.pid).ok().and_then(Pid::from_raw);
    let why = tokio::select! {
        status = watched.child.wait() => exited(status.ok()),
        // An error means that the link was dropped.
        bounds = async { wanted.wait_for(Option::is_some).await.ok().and_then(|bounds| *bounds) } => {
            stop(&mut watched, group, bounds.unwrap_or_default()).await;
            LinkFailure::Closed
        }
        _ = &mut watched.reader => match timeout(MUTE, watched.child.wait()).await {
            Ok(status) => exited(status.ok()),
            Err(_) => {
                stop(&mut watched, group, Bounds::default()).await;
                LinkFailure::Broken("stdout was closed".to_owned())
            }
        },
    };
    watched.queue.close();
    if let Some(group) = group {
        end_rest(group).await;
    }
    if !watched.reader.is_finished() && timeout(DRAIN, &mut watched.reader).await.is_err() {
        watched.reader.abort();
    }
    if let Some(guard) = &watched.guard {
        guard.release(watched.pid);
    }
    watched.inbox.closed(why);
}

fn exited(status: Option<ExitStatus>) -> LinkFailure {
    LinkFailure::Exited { code: status.and_then(|status| status.code()) }
}

/// Close stdin, SIGTERM, SIGKILL; each waits for its time.
async fn stop(watched: &mut Watched, group: Option<Pid>, bounds: Bounds) {
    watched.queue.close();
    if timeout(bounds.eof, watched.child.wait()).await.is_ok() {
        return;
    }
    for (signal, wait) in [(Signal::TERM, bounds.term), (Signal::KILL, bounds.kill)] {
        if let Some(group) = group {
            let _ = kill_process_group(group, signal);
        }
        if timeout(wait, watched.child.wait()).await.is_ok() {
            return;
        }
    }
    tracing::error!(pid = watched.pid, "a child cannot be ended");
}

/// Ends what the leader left behind. While a member lives, the kernel does not give the group's number to others.
async fn end_rest(group: Pid) {
    if kill_process_group(group, Signal::TERM).is_err() {
        return;
    }
    let wait = async {
        while test_kill_process_group(group).is_ok() {
            tokio::time::sleep(POLL).await;
        }
    };
    if timeout(MUTE, wait).await.is_err() {
        let _ = kill_process_group(group, Signal::KILL);
    }
}
