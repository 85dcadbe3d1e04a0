//! The guard process of a gateway on Linux: it forks a keeper for each child. Forked keepers share
//! its memory; had each its own program, it would relocate three quarters of a megabyte for itself.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use fork::{Fork, fork};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, WaitOptions, getpid, getppid, pidfd_open, setpgid, wait};
use rustix::stdio::dup2_stdin;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT};

use super::keeper::{self, Gateway};
use super::order::Order;
use super::signals::Signals;

/// Forks keepers until the gateway has ended. Returns in the keepers too, when their children have
/// ended.
pub(super) fn run(gateway: &OsStr) -> io::Result<ExitCode> {
    let gateway = gateway
        .to_str()
        .and_then(|pid| Pid::from_raw(pid.parse().ok()?));
    let gateway = gateway.ok_or(io::ErrorKind::InvalidInput)?;
    let handle = pidfd_open(gateway, PidfdFlags::empty()).ok();
    // A gateway that ended before is not the parent any more, and its number may be another
    // process's.
    if getppid() != Some(gateway) {
        return Err(io::ErrorKind::NotFound.into());
    }
    // Another name than the gateway's: an operator who kills all processes of that name means the
    // gateways.
    let _ = rustix::thread::set_name(c"keeper");
    let orders = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let null = std::fs::File::open("/dev/null")?;
    dup2_stdin(&null)?;
    // A terminal's signals are meant for the gateway, whose end is the end of its orders.
    let signals = Signals::catch(&[SIGCHLD, SIGINT, SIGHUP, SIGQUIT])?;
    let gateway = Gateway {
        handle,
        guard: getpid(),
    };
    loop {
        let mut watched = [
            PollFd::new(&orders, PollFlags::IN),
            PollFd::new(&signals, PollFlags::IN),
        ];
        // When a signal interrupts it nothing is ready.
        let _ = poll(&mut watched, None);
        let has_order = !watched.map(|watched| watched.revents().is_empty())[0];
        signals.clear();
        while wait(WaitOptions::NOHANG).is_ok_and(|ended| ended.is_some()) {}
        if !has_order {
            continue;
        }
        let Some((order, pipes, status)) = Order::receive(&orders)? else {
            return Ok(ExitCode::SUCCESS);
        };
        let started = match fork() {
            Ok(Fork::Child) => {
                drop((orders, signals));
                return keeper::run(gateway, &order, (pipes, status));
            }
            Ok(Fork::Parent(keeper)) => Pid::from_raw(keeper),
            Err(_) => None,
        };
        // Whichever of the two is first: the group is there when the gateway knows of it.
        let _ = started.map(|keeper| setpgid(Some(keeper), Some(keeper)));
        let number = started.map_or(0, |keeper| keeper.as_raw_nonzero().get().unsigned_abs());
        (&orders).write_all(&number.to_be_bytes())?;
    }
}
