//! Keeper: the parent of one child on Linux, and of all that the child leaves behind.
//!
//! The kernel gives a process whose parent has ended to the next *subreaper* above it, which the keeper is: a daemon that forked
//! twice, left its session and closed its descriptors still stands below the keeper. A keeper leads a process group without other
//! members, so that a signal of the child to its own group does not reach it.
//!
//! There is a keeper for each server, so it has neither a runtime nor threads: what it changes in memory no other process shares.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, pidfd_open,
    set_child_subreaper, wait,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level::pipe;

use super::processes::descendants;
use super::shared::{POLL, TERM_WAIT};

/// Time from SIGTERM to SIGKILL for what an ended child has left behind.
const REST_WAIT: Duration = Duration::from_millis(500);
/// How long the keeper sends SIGKILL to processes that do not end: another user's, or those that wait for a broken disk.
const KILL_WAIT: Duration = Duration::from_secs(10);
/// How often the keeper looks for its gateway once the gateway is about to end, or where the kernel has no handles of processes.
const GATEWAY_POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// The exit code of a shell that cannot start a program.
const NOT_STARTED: u8 = 127;

/// Starts a program and keeps its processes until they and the program have ended.
pub(super) fn run(
    gateway: &OsStr,
    program: &OsStr,
    args: impl Iterator<Item = OsString>,
) -> io::Result<ExitCode> {
    // Another name than the gateway's: an operator who kills all processes of that name means the gateways.
    let _ = rustix::thread::set_name(c"keeper");
    set_child_subreaper(Some(getpid()))?;
    let gateway = gateway.to_str().and_then(|pid| Pid::from_raw(pid.parse().ok()?));
    let mut watch = Watch::new(gateway.ok_or(io::ErrorKind::InvalidInput)?)?;
    let child = match Command::new(program).args(args).process_group(0).spawn() {
        Ok(child) => i32::try_from(child.id()).ok().and_then(Pid::from_raw),
        Err(error) => {
            let program = program.display();
            writeln!(io::stderr(), "the program `{program}` cannot be started: {error}")?;
            return Ok(ExitCode::from(NOT_STARTED));
        }
    };
    // The pipes belong to the child alone: their ends must show its end.
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
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
    Ok(kept.exit())
}

/// What a keeper waits for.
struct Watch {
    /// Readable after a signal that says nothing but to look again.
    changed: UnixStream,
    /// Readable after SIGTERM.
    asked: UnixStream,
    gateway: Pid,
    /// Readable when the gateway is about to end; `None` from then on, and where the kernel has no handles of processes.
    handle: Option<OwnedFd>,
}

impl Watch {
    fn new(gateway: Pid) -> io::Result<Self> {
        // A terminal's signals are meant for the gateway, and the gateway's end is seen here.
        let changed = caught(&[SIGCHLD, SIGINT, SIGHUP, SIGQUIT])?;
        changed.set_nonblocking(true)?;
        let handle = pidfd_open(gateway, PidfdFlags::empty()).ok();
        // A gateway that ended before is not the parent any more, and its number may be another process's.
        if getppid() != Some(gateway) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self { changed, asked: caught(&[SIGTERM])?, gateway, handle })
    }

    /// Waits until a process below may have ended, or the keeper has to end all of them. Returns whether it has to.
    fn is_over(&mut self) -> bool {
        let mut watched =
            vec![PollFd::new(&self.asked, PollFlags::IN), PollFd::new(&self.changed, PollFlags::IN)];
        watched.extend(self.handle.as_ref().map(|handle| PollFd::new(handle, PollFlags::IN)));
        let pause = self.handle.is_none().then_some(&GATEWAY_POLL);
        // When a signal interrupts it nothing is ready, and the caller looks and waits again.
        let _ = poll(&mut watched, pause);
        let mut ready = watched.iter().map(|watched| !watched.revents().is_empty());
        let asked = ready.next() == Some(true);
        let ends = ready.nth(1) == Some(true);
        if ends {
            self.handle = None;
        }
        while self.changed.read(&mut [0; 64]).is_ok_and(|bytes| bytes > 0) {}
        asked || (self.handle.is_none() && getppid() != Some(self.gateway))
    }
}

/// Catches these signals. What it returns is readable after each of them.
fn caught(signals: &[i32]) -> io::Result<UnixStream> {
    let (readable, written) = UnixStream::pair()?;
    for signal in signals {
        pipe::register(*signal, written.try_clone()?)?;
    }
    Ok(readable)
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

    /// Ends as the child did.
    fn exit(&self) -> ExitCode {
        match self.status.and_then(WaitStatus::exit_status).map(u8::try_from) {
            Some(Ok(code)) => ExitCode::from(code),
            Some(Err(_)) | None => {
                let _ = kill_process(getpid(), Signal::KILL);
                ExitCode::FAILURE
            }
        }
    }
}

fn signal_all(signal: Signal) {
    descendants(getpid().as_raw_nonzero().get()).into_iter().for_each(|process| process.signal(signal));
}
