//! Keeper: the parent of one child on Linux, and of all that the child leaves behind.
//!
//! The kernel gives a process whose parent has ended to the next *subreaper* above it, which the keeper is: a daemon that forked
//! twice, left its session and closed its descriptors still stands below the keeper. A keeper leads a process group without other
//! members, so that a signal of the child to its own group does not reach it.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, pidfd_open,
    set_child_subreaper, wait,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::processes::descendants;
use super::shared::{POLL, TERM_WAIT};

/// Time from SIGTERM to SIGKILL for what an ended child has left behind.
const REST_WAIT: Duration = Duration::from_millis(500);
/// How long the keeper sends SIGKILL to processes that do not end: another user's, or those that wait for a broken disk.
const KILL_WAIT: Duration = Duration::from_secs(10);
/// How often the keeper looks for its gateway once the gateway is about to end, or where the kernel has no handles of processes.
const GATEWAY_POLL: Duration = Duration::from_millis(20);
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
    let gateway = gateway.ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(args).process_group(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(keep(gateway, command))
}

async fn keep(gateway: Pid, mut command: Command) -> io::Result<ExitCode> {
    let (mut changed, mut asked) = (signal(SignalKind::child())?, signal(SignalKind::terminate())?);
    // Handlers that do nothing: a terminal's signals are meant for the gateway, and the gateway's end is seen here.
    let _others = [SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()].map(signal);
    let gone = watch(gateway)?;
    let child = match command.spawn() {
        Ok(child) => i32::try_from(child.id()).ok().and_then(Pid::from_raw),
        Err(error) => {
            let program = command.get_program().display();
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
    let wait = tokio::select! {
        () = async { while kept.reap() && kept.status.is_none() { changed.recv().await; } } => REST_WAIT,
        _ = asked.recv() => TERM_WAIT,
        _ = gone => TERM_WAIT,
    };
    kept.end(wait).await;
    Ok(kept.exit())
}

/// Watches the gateway that started this keeper. What it returns is ready when the gateway has ended.
fn watch(gateway: Pid) -> io::Result<oneshot::Receiver<()>> {
    let handle = pidfd_open(gateway, PidfdFlags::empty());
    // A gateway that ended before is not the parent any more, and its number may be another process's.
    if getppid() != Some(gateway) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let (ended, gone) = oneshot::channel();
    std::thread::Builder::new().spawn(move || {
        if let Ok(handle) = handle {
            let mut watched = [PollFd::new(&handle, PollFlags::IN)];
            while poll(&mut watched, None) == Err(Errno::INTR) {}
        }
        while getppid() == Some(gateway) {
            std::thread::sleep(GATEWAY_POLL);
        }
        let _ = ended.send(());
    })?;
    Ok(gone)
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
    async fn end(&mut self, patience: Duration) {
        if !self.reap() {
            return;
        }
        signal_all(Signal::TERM);
        let until = Instant::now() + patience;
        while self.reap() && Instant::now() < until {
            sleep(POLL).await;
        }
        let until = Instant::now() + KILL_WAIT;
        while self.reap() && Instant::now() < until {
            // A process that forks meanwhile is found in the next round, below its parent or below the keeper.
            signal_all(Signal::KILL);
            sleep(POLL).await;
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
