//! Keepers of a gateway's children, seen from the gateway: it orders them from a guard process, which forks them.

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
use super::order::Order;
use crate::pipes::ChildPipes;

/// Time in which a guard process answers an order.
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
pub(crate) struct Kept {
    /// Its process id.
    pub(crate) keeper: u32,
    /// Where it writes the child's exit code.
    status: pipe::Receiver,
    code: Vec<u8>,
}

impl Keepers {
    pub(super) fn new(exe: PathBuf) -> Self {
        Self { exe, guard: Mutex::new(None) }
    }

    /// Starts a command under a keeper. Its environment must have been cleared first. That the program cannot be started is said
    /// on its stderr and by its status.
    ///
    /// # Errors
    /// There is no guard process and none can be started, or the system has no more descriptors.
    pub(crate) fn start(&self, command: &Command, pipes: ChildPipes) -> io::Result<Kept> {
        let (ended, status) = io::pipe()?;
        let keeper = self.order(&Order::of(command), &(pipes, status.into()))?;
        let status = pipe::Receiver::from_owned_fd(ended.into())?;
        Ok(Kept { keeper, status, code: Vec::with_capacity(size_of::<i32>()) })
    }

    /// Has an order carried out, if need be by a new guard process, and returns the process id of the keeper.
    fn order(&self, order: &Order, fds: &(ChildPipes, OwnedFd)) -> io::Result<u32> {
        let mut guard = self.guard.lock();
        if let Some(running) = &*guard {
            match running.order(order, fds) {
                Err(why) if why.kind() != io::ErrorKind::InvalidInput => {
                    tracing::warn!(%why, "the guard process has ended and is started again");
                    *guard = None;
                }
                answer => return answer,
            }
        }
        guard.insert(GuardProcess::start(&self.exe)?).order(order, fds)
    }
}

impl GuardProcess {
    fn start(exe: &PathBuf) -> io::Result<Self> {
        let (orders, theirs) = UnixStream::pair()?;
        orders.set_read_timeout(Some(ANSWER))?;
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

    fn order(&self, order: &Order, fds: &(ChildPipes, OwnedFd)) -> io::Result<u32> {
        order.send(&self.orders, fds)?;
        let mut keeper = [0; size_of::<u32>()];
        (&self.orders).read_exact(&mut keeper)?;
        match u32::from_be_bytes(keeper) {
            0 => Err(io::Error::other("the guard process cannot start another")),
            keeper => Ok(keeper),
        }
    }
}

impl Drop for GuardProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Kept {
    /// Waits until the child and all that it left behind have ended. Returns the child's exit code; `None` after a signal, or if the
    /// keeper was killed. May be dropped and called again.
    pub(crate) async fn wait(&mut self) -> Option<i32> {
        // An error is an end too.
        while self.status.read_buf(&mut self.code).await.is_ok_and(|bytes| bytes > 0) {}
        self.code.as_slice().try_into().ok().map(i32::from_be_bytes)
    }
}
