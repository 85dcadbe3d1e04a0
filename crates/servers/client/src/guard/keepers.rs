//! Keepers of a gateway's children, seen from the gateway: it orders them from a guard process,
//! which forks them.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use platform::Mutex;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use super::ARG;
use super::confine::Confined;
use super::order::{Order, send};
use crate::pipes::ChildPipes;

/// Time in which a guard process takes an order, and in which it answers one.
const ANSWER: Duration = Duration::from_secs(5);

/// Starts children under keepers.
#[derive(Debug)]
pub(crate) struct Keepers {
    exe: PathBuf,
    /// Started with the first child, and again when it has ended.
    guard: Mutex<Option<GuardProcess>>,
}

/// A running guard process. Dropping it ends it; its keepers stay.
#[derive(Debug)]
struct GuardProcess {
    process: Child,
    orders: UnixStream,
}

/// The keeper of a child. It ends with the child.
#[derive(Debug)]
pub(crate) struct Keeper {
    /// Its process id.
    pub(crate) keeper: u32,
    /// Pipe to which it writes the child's exit code.
    status: pipe::Receiver,
    code: Vec<u8>,
}

impl Keepers {
    pub(super) fn new(exe: PathBuf) -> Self {
        Self {
            exe,
            guard: Mutex::new(None),
        }
    }

    /// Starts a command under a keeper. Its environment must have been cleared first. That the
    /// program cannot be started is said on its stderr and by its status.
    ///
    /// # Errors
    /// There is no guard process and none can be started, or the system has no more descriptors.
    pub(crate) fn start(
        &self,
        command: &Command,
        confined: Option<Confined>,
        pipes: ChildPipes,
    ) -> io::Result<Keeper> {
        let (ended, status) = io::pipe()?;
        let order = Order {
            confined,
            ..Order::of(command)
        };
        let keeper = self.order(&order, &(pipes, status.into()))?;
        let status = pipe::Receiver::from_owned_fd(ended.into())?;
        Ok(Keeper {
            keeper,
            status,
            code: Vec::with_capacity(size_of::<i32>()),
        })
    }

    /// Has an order carried out, if need be by a new guard process, and returns the process id of
    /// the keeper. An order that a guard process has received is not given to another: it may have
    /// started the child.
    fn order(&self, order: &Order, fds: &(ChildPipes, OwnedFd)) -> io::Result<u32> {
        let texts = order.texts()?;
        let mut guard = self.guard.lock();
        let running = match guard.take() {
            Some(running) => match send(&running.orders, &texts, fds) {
                Ok(()) => running,
                Err(why) => {
                    tracing::warn!(%why, "the guard process takes no orders: another is started");
                    GuardProcess::receiving(&self.exe, &texts, fds)?
                }
            },
            None => GuardProcess::receiving(&self.exe, &texts, fds)?,
        };
        // One that does not answer is ended.
        let answer = running.answer()?;
        *guard = Some(running);
        answer.ok_or_else(|| io::Error::other("the system has no room for another process"))
    }
}

impl GuardProcess {
    fn start(exe: &PathBuf) -> io::Result<Self> {
        let (orders, theirs) = UnixStream::pair()?;
        orders.set_read_timeout(Some(ANSWER))?;
        orders.set_write_timeout(Some(ANSWER))?;
        let process = Command::new(exe)
            .arg0("keeper")
            .arg(ARG)
            .arg(std::process::id().to_string())
            .env_clear()
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { process, orders })
    }

    /// A new one that has received this order.
    fn receiving(exe: &PathBuf, texts: &[u8], fds: &(ChildPipes, OwnedFd)) -> io::Result<Self> {
        let started = Self::start(exe)?;
        send(&started.orders, texts, fds)?;
        Ok(started)
    }

    /// The process id of the keeper that an order has started; `None` if it could not be forked.
    fn answer(&self) -> io::Result<Option<u32>> {
        let mut keeper = [0; size_of::<u32>()];
        (&self.orders).read_exact(&mut keeper).map_err(|why| {
            io::Error::new(
                why.kind(),
                format!("the guard process does not answer: {why}"),
            )
        })?;
        Ok(Some(u32::from_be_bytes(keeper)).filter(|keeper| *keeper > 0))
    }
}

impl Drop for GuardProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Keeper {
    /// Waits until the child and all that it left behind have ended. Returns the child's exit code;
    /// `None` after a signal, or if the keeper was killed. May be dropped and called again.
    pub(crate) async fn wait(&mut self) -> Option<i32> {
        // An error is an end too.
        while self
            .status
            .read_buf(&mut self.code)
            .await
            .is_ok_and(|bytes| bytes > 0)
        {}
        self.code.as_slice().try_into().ok().map(i32::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A guard process that is this script, and the number of times that it was started.
    fn guard(script: &str) -> (tempfile::TempDir, Keepers, impl Fn() -> usize) {
        let dir = tempfile::tempdir().unwrap();
        let exe = dir.path().join("guard");
        let starts = dir.path().join("starts");
        fs::write(
            &exe,
            format!("#!/bin/sh\nprintf x >> {}\n{script}\n", starts.display()),
        )
        .unwrap();
        fs::set_permissions(&exe, fs::Permissions::from_mode(0o700)).unwrap();
        let keepers = Keepers::new(exe);
        (dir, keepers, move || {
            fs::read(&starts).map_or(0, |starts| starts.len())
        })
    }

    fn start(keepers: &Keepers) -> io::Error {
        let (_pipes, of_child) = crate::pipes::Pipes::new().unwrap();
        keepers
            .start(Command::new("true").env_clear(), None, of_child)
            .unwrap_err()
    }

    #[tokio::test]
    async fn an_order_that_was_received_is_given_to_no_other_guard_process() {
        let (_dir, keepers, starts) = guard("head -c 4 > /dev/null");
        for number in 1..=2 {
            let error = start(&keepers).to_string();
            assert!(
                error.starts_with("the guard process does not answer: "),
                "{error}"
            );
            assert_eq!(starts(), number);
        }
    }

    #[tokio::test]
    async fn a_guard_process_that_cannot_fork_goes_on() {
        let (_dir, keepers, starts) =
            guard("printf '\\0\\0\\0\\0\\0\\0\\0\\0' >&0; cat > /dev/null");
        for _ in 0..2 {
            assert_eq!(
                start(&keepers).to_string(),
                "the system has no room for another process"
            );
        }
        assert_eq!(starts(), 1);
    }
}
