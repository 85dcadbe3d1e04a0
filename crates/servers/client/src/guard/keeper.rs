//! Keeper: the parent of one child on Linux, and of all that the child leaves behind.
//!
//! The kernel gives a process whose parent has ended to the next *subreaper* above it, which the
//! keeper is: a daemon that forked twice, left its session and closed its descriptors still stands
//! below the keeper. A keeper leads a process group without other members, so that a signal of the
//! child to its own group does not reach it.
//!
//! There is a keeper for each server, so it has neither a runtime nor threads: what it changes in
//! memory no other process shares. It is forked by the guard process ([`super::forks`]).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fork::{Fork, fork};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, set_child_subreaper, setpgid, wait,
};
use rustix::stdio::{dup2_stderr, dup2_stdout};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::confine::{self, Confined};
use super::order::Order;
use super::processes::{count_below, descendants};
use super::shared::{POLL, TERM_WAIT};
use super::signals::Signals;
use crate::pipes::ChildPipes;

/// Time from SIGTERM to SIGKILL for what an ended child has left behind.
const REST_WAIT: Duration = Duration::from_millis(500);
/// Time that the keeper sends SIGKILL to processes that do not end: another user's, or those that
/// wait for a broken disk.
const KILL_WAIT: Duration = Duration::from_secs(10);
/// Interval of the keeper's looks for its gateway where the kernel has no handles of processes.
const GATEWAY_POLL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};
/// Interval at which the keeper counts the processes of a child that has a limit of them.
const COUNT_POLL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};
/// Time that the keeper stops processes that multiply, before it kills them.
const STOP_WAIT: Duration = Duration::from_secs(2);
/// The variables by which programs find a directory for temporary files.
const TEMP_VARIABLES: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];
/// The exit code of a shell that cannot start a program.
const NOT_STARTED: i32 = 127;

/// The end of its gateway, as a keeper sees it.
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
    let ChildPipes {
        stdin,
        stdout,
        stderr,
    } = pipes;
    let mut errors = File::from(stderr.try_clone()?);
    let mut command = order.command();
    command
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0);
    let mut temp = None;
    let started = match &order.confined {
        None => Confinement::Parent(plain_child(command)),
        Some(confined) => confined_child(command, confined, &mut temp),
    };
    let child = match started {
        Confinement::Parent(Ok(child)) => child,
        Confinement::Parent(Err(error)) => {
            report_not_started(&mut errors, order, &error)?;
            tell(status, Some(NOT_STARTED));
            return Ok(ExitCode::FAILURE);
        }
        // This process was to become the program.
        Confinement::Child(error) => {
            report_not_started(&mut errors, order, &error)?;
            return Ok(ExitCode::from(u8::try_from(NOT_STARTED).unwrap_or(1)));
        }
    };
    let limits = order.confined.as_ref().map(|confined| confined.limits);
    let processes_max = limits.and_then(|limits| limits.processes_max);
    // The pipes belong to the child alone: their ends must show its end.
    let bound = processes_max.map(|max| ProcessBound { max, errors });
    leave_pipes()?;
    let mut kept = Keeper {
        child,
        status: None,
    };
    let patience = kept.wait(&mut watch, bound);
    kept.end(patience);
    if let Some(temp) = temp {
        let _ = std::fs::remove_dir_all(temp);
    }
    tell(status, kept.status.and_then(WaitStatus::exit_status));
    Ok(ExitCode::SUCCESS)
}

/// Writes to the child's stderr that the child has not started.
fn report_not_started(errors: &mut File, order: &Order, error: &io::Error) -> io::Result<()> {
    let program = order.program.display();
    writeln!(errors, "the program `{program}` cannot be started: {error}")
}

/// Gives up its own ends of the child's pipes.
fn leave_pipes() -> io::Result<()> {
    let null = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok(())
}

/// The limit of a child's processes.
struct ProcessBound {
    max: u64,
    /// The child's stderr.
    errors: File,
}

impl ProcessBound {
    fn is_exceeded(&self) -> bool {
        count_below(own_number(), self.max) > self.max
    }

    fn report(&mut self) {
        let max = self.max;
        let _ = writeln!(
            self.errors,
            "the server has more than {max} processes (processes_max): all of them are ended"
        );
    }
}

/// Result of the fork of a child that confines itself.
enum Confinement {
    /// The keeper still.
    Parent(io::Result<Option<Pid>>),
    /// The child, and why it did not become the program.
    Child(io::Error),
}

/// Starts a program that is not confined. The ends of its pipes that the command has go with it.
fn plain_child(mut command: Command) -> io::Result<Option<Pid>> {
    let child = command.spawn()?;
    Ok(i32::try_from(child.id()).ok().and_then(Pid::from_raw))
}

/// Starts a program that is confined. The keeper itself is not, so that the child can neither
/// signal nor trace it where the kernel prevents that.
fn confined_child(
    mut command: Command,
    confined: &Confined,
    temp: &mut Option<PathBuf>,
) -> Confinement {
    if let Some(files) = &confined.files {
        match confine::make_temp(Path::new(&files.temp)) {
            Ok(made) => {
                let is_set = |name: &str| command.get_envs().any(|(set, _)| set == name);
                for name in TEMP_VARIABLES
                    .into_iter()
                    .filter(|name| !is_set(name))
                    .collect::<Vec<_>>()
                {
                    command.env(name, &made);
                }
                *temp = Some(made);
            }
            Err(error) => return Confinement::Parent(Err(error)),
        }
    }
    match fork() {
        Ok(Fork::Parent(child)) => {
            // Whichever of the two is first.
            let child = Pid::from_raw(child);
            let _ = setpgid(child, child);
            Confinement::Parent(Ok(child))
        }
        Ok(Fork::Child) => match confine::apply(confined, temp.as_deref()) {
            Ok(()) => Confinement::Child(command.exec()),
            Err(error) => Confinement::Child(error),
        },
        Err(_) => Confinement::Parent(Err(io::Error::other(
            "the system has no room for another process",
        ))),
    }
}

fn own_number() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// Writes the exit code of the child where the gateway reads it; nothing after a signal.
fn tell(status: OwnedFd, code: Option<i32>) {
    if let Some(code) = code {
        // A gateway that has ended does not read it.
        let _ = File::from(status).write_all(&code.to_be_bytes());
    }
}

/// Events that a keeper waits for.
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
        Ok(Self {
            changed,
            asked: Signals::catch(&[SIGTERM])?,
            gateway,
        })
    }

    /// Waits until a process below may have ended, or the keeper has to end all of them; with
    /// `counts` at most until they are to be counted again. Returns whether it has to end them.
    fn is_over(&mut self, counts: bool) -> bool {
        let mut watched = vec![
            PollFd::new(&self.asked, PollFlags::IN),
            PollFd::new(&self.changed, PollFlags::IN),
        ];
        watched.extend(
            self.gateway
                .handle
                .as_ref()
                .map(|handle| PollFd::new(handle, PollFlags::IN)),
        );
        let pause = match self.gateway.handle {
            None => Some(&GATEWAY_POLL),
            Some(_) => counts.then_some(&COUNT_POLL),
        };
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
struct Keeper {
    child: Option<Pid>,
    /// The child's status, once it has ended.
    status: Option<WaitStatus>,
}

impl Keeper {
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

    /// Waits until the child has ended, or has to end. Returns the time that its processes get to
    /// end by themselves.
    fn wait(&mut self, watch: &mut Watch, mut bound: Option<ProcessBound>) -> Duration {
        loop {
            if !self.reap() || self.status.is_some() {
                return REST_WAIT;
            }
            if watch.is_over(bound.is_some()) {
                return TERM_WAIT;
            }
            if let Some(bound) = &mut bound
                && bound.is_exceeded()
            {
                bound.report();
                self.stop();
                return Duration::ZERO;
            }
        }
    }

    /// Stops all processes, so that they cannot multiply while they are killed.
    fn stop(&mut self) {
        let until = Instant::now() + STOP_WAIT;
        let mut known = 0;
        while self.reap() && Instant::now() < until {
            signal_all(Signal::STOP);
            let count = count_below(own_number(), u64::MAX);
            if count == known {
                break;
            }
            known = count;
        }
        signal_all(Signal::KILL);
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
            // A process that forks meanwhile is found in the next round, below its parent or below
            // the keeper.
            signal_all(Signal::KILL);
            sleep(POLL);
        }
    }
}

fn signal_all(signal: Signal) {
    descendants(own_number())
        .into_iter()
        .for_each(|process| process.signal(signal));
}
