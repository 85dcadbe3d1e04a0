//! Keeper: the parent of one child on Linux, and of all that the child leaves behind.
//!
//! The kernel gives a process whose parent has ended to the next *subreaper* above it, which the keeper is: a daemon that forked
//! twice, left its session and closed its descriptors still stands below the keeper. A keeper leads a process group without other
//! members, so that a signal of the child to its own group does not reach it.
//!
//! There is a keeper for each server, so it has neither a runtime nor threads: what it changes in memory no other process shares. It is forked
//! by the guard process ([`super::forks`]).

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, set_child_subreaper, setpgid, wait,
};
use rustix::stdio::{dup2_stderr, dup2_stdout};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::order::Order;
use super::processes::descendants;
use super::shared::{POLL, TERM_WAIT};
use super::signals::Signals;
use crate::pipes::ChildPipes;

/// Time from SIGTERM to SIGKILL for what an ended child has left behind.
const REST_WAIT: Duration = Duration::from_millis(500);
/// How long the keeper sends SIGKILL to processes that do not end: another user's, or those that wait for a broken disk.
const KILL_WAIT: Duration = Duration::from_secs(10);
/// How often the keeper looks for its gateway where the kernel has no handles of processes.
const GATEWAY_POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// The exit code of a shell that cannot start a program.
const NOT_STARTED: i32 = 127;

/// How a keeper sees that its gateway has ended.
pub(super) struct Gateway {
    /// Readable when the gateway has ended; `None` where the kernel has no handles of processes.
    pub(super) handle: Option<OwnedFd>,
    /// The guard process, which ends with its gateway.
    pub(super) guard: Pid,
}

/// Starts a program and keeps its processes until they and the program have ended.
pub(super) fn run(
    gateway: Gateway,
    order: &Order,
    (pipes, status): (ChildPipes, OwnedFd),
) -> io::Result<ExitCode> {
    let _ = setpgid(None, None);
    set_child_subreaper(Some(getpid()))?;
    let mut watch = Watch::new(gateway)?;
    let ChildPipes { stdin, stdout, stderr } = pipes;
    let mut errors = std::fs::File::from(stderr.try_clone()?);
    let mut command = order.command();
    command.stdin(stdin).stdout(stdout).stderr(stderr).process_group(0);
    let child = match command.spawn() {
        Ok(child) => i32::try_from(child.id()).ok().and_then(Pid::from_raw),
        Err(error) => {
            let program = order.program.display();
            writeln!(errors, "the program `{program}` cannot be started: {error}")?;
            tell(status, Some(NOT_STARTED));
            return Ok(ExitCode::FAILURE);
        }
    };
    // The pipes belong to the child alone: their ends must show its end.
    drop((command, errors));
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    let mut kept = Kept { child, status: None };
    let patience = loop {
        if !kept.reap() || kept.status.is_some() {
            break REST_WAIT;
        }
        if watch.is_over() {
            break TERM_WAIT;
        }
    };
    kept.end(patience);
    tell(status, kept.status.and_then(WaitStatus::exit_status));
    Ok(ExitCode::SUCCESS)
}

/// Writes the exit code of the child where the gateway reads it; nothing after a signal.
fn tell(status: OwnedFd, code: Option<i32>) {
    if let Some(code) = code {
        // A gateway that has ended does not read it.
        let _ = std::fs::File::from(status).write_all(&code.to_be_bytes());
    }
}

/// What a keeper waits for.
struct Watch {
    /// Signals that say nothing but to look again.
    changed: Signals,
    /// SIGTERM.
    asked: Signals,
    gateway: Gateway,
}

impl Watch {
    fn new(gateway: Gateway) -> io::Result<Self> {
        // A terminal's signals are meant for the gateway, and the gateway's end is seen here.
        let changed = Signals::catch(&[SIGCHLD, SIGINT, SIGHUP, SIGQUIT])?;
        Ok(Self { changed, asked: Signals::catch(&[SIGTERM])?, gateway })
    }

    /// Waits until a process below may have ended, or the keeper has to end all of them. Returns whether it has to.
    fn is_over(&mut self) -> bool {
        let mut watched =
            vec![PollFd::new(&self.asked, PollFlags::IN), PollFd::new(&self.changed, PollFlags::IN)];
        watched.extend(self.gateway.handle.as_ref().map(|handle| PollFd::new(handle, PollFlags::IN)));
        let pause = self.gateway.handle.is_none().then_some(&GATEWAY_POLL);
        // When a signal interrupts it nothing is ready, and the caller looks and waits again.
        let _ = poll(&mut watched, pause);
        let mut ready = watched.iter().map(|watched| !watched.revents().is_empty());
        let asked = ready.next() == Some(true);
        let ends = ready.nth(1) == Some(true);
        self.changed.clear();
        asked || ends || (self.gateway.handle.is_none() && getppid() != Some(self.gateway.guard))
    }
}

/// The child and all that it left behind.
struct Kept {
    child: Option<Pid>,
    /// The child's status, once it has ended.
    status: Option<WaitStatus>,
}

impl Kept {
    /// Collects processes that have ended. Returns whether there are others.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if Some(pid) == self.child => self.status = Some(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Ends all processes.
    fn end(&mut self, patience: Duration) {
        if !self.reap() {
            return;
        }
        signal_all(Signal::TERM);
        let until = Instant::now() + patience;
        while self.reap() && Instant::now() < until {
            sleep(POLL);
        }
        let until = Instant::now() + KILL_WAIT;
        while self.reap() && Instant::now() < until {
            // A process that forks meanwhile is found in the next round, below its parent or below the keeper.
            signal_all(Signal::KILL);
            sleep(POLL);
        }
    }
}

fn signal_all(signal: Signal) {
    descendants(getpid().as_raw_nonzero().get()).into_iter().for_each(|process| process.signal(signal));
}
