//! The guard: a small process that ends our children if we cannot.
//!
//! The gateway re-executes its own binary with [`ARG`]; the copy runs [`run`] and reads lines on a pipe: `+PGID` and
//! `-PGID`. When the pipe ends, however the gateway died, it ends the groups that are left. It knows no protocol and no
//! configuration.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use platform::Mutex;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};

/// The hidden argument with which the binary becomes the guard.
pub const ARG: &str = "__guard";

/// How long a group may take after SIGTERM, before SIGKILL.
const TERM_WAIT: Duration = Duration::from_millis(1500);
/// How often the guard looks whether the groups are gone.
const POLL: Duration = Duration::from_millis(20);
/// The least time between two starts of a guard that keeps dying.
const RESTART_WAIT: Duration = Duration::from_millis(250);

/// The running guard process, as the gateway sees it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Guard {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    exe: PathBuf,
    groups: BTreeSet<i32>,
    pipe: Option<File>,
    pid: Option<u32>,
}

impl Guard {
    /// Starts the guard from `exe` (normally this binary) and keeps it running. Must be called inside a runtime.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start(exe: PathBuf) -> io::Result<Self> {
        let shared = Arc::new(Mutex::new(Shared { exe, groups: BTreeSet::new(), pipe: None, pid: None }));
        let child = shared.lock().spawn()?;
        tokio::spawn(keep(Arc::downgrade(&shared), child));
        Ok(Self { shared })
    }

    /// Puts a process group under guard.
    pub fn watch(&self, pgid: u32) {
        let Ok(pgid) = i32::try_from(pgid) else { return };
        let mut shared = self.shared.lock();
        shared.groups.insert(pgid);
        shared.tell('+', pgid);
    }

    /// Takes a process group that has ended out of guard.
    pub fn release(&self, pgid: u32) {
        let Ok(pgid) = i32::try_from(pgid) else { return };
        let mut shared = self.shared.lock();
        shared.groups.remove(&pgid);
        shared.tell('-', pgid);
    }

    /// Process id of the guard, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.shared.lock().pid
    }
}

impl Shared {
    fn spawn(&mut self) -> io::Result<Child> {
        let mut child = Command::new(&self.exe)
            .arg(ARG)
            .env_clear()
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        self.pipe = Some(File::from(stdin.into_owned_fd()?));
        self.pid = child.id();
        for pgid in self.groups.clone() {
            self.tell('+', pgid);
        }
        Ok(child)
    }

    /// A failed write means that the guard is gone; its successor is told everything.
    fn tell(&mut self, sign: char, pgid: i32) {
        if let Some(pipe) = &mut self.pipe
            && pipe.write_all(format!("{sign}{pgid}\n").as_bytes()).is_err()
        {
            self.pipe = None;
        }
    }
}

/// Waits for the guard's end and starts the next one, for as long as anybody holds the [`Guard`].
async fn keep(shared: std::sync::Weak<Mutex<Shared>>, mut child: Child) {
    loop {
        let _ = child.wait().await;
        let next = match shared.upgrade() {
            Some(shared) => {
                let mut shared = shared.lock();
                shared.pipe = None;
                shared.pid = None;
                shared.spawn()
            }
            None => return,
        };
        match next {
            Ok(next) => {
                tracing::warn!("the guard process had ended and was started again");
                child = next;
            }
            Err(error) => tracing::error!(%error, "the guard process cannot be started"),
        }
        tokio::time::sleep(RESTART_WAIT).await;
    }
}

/// The guard's whole life; called by `main` when the first argument is [`ARG`]. Returns when everything has ended.
///
/// # Errors
/// When the signal handlers cannot be installed.
pub fn run() -> io::Result<()> {
    // Handlers that do nothing, so that a signal meant for the gateway does not end its guard. They stay installed
    // after the runtime is gone.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    {
        use tokio::signal::unix::{SignalKind, signal};
        let _entered = runtime.enter();
        for kind in
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()]
        {
            let _ = signal(kind)?;
        }
    }
    let mut groups = BTreeSet::new();
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        follow(&mut groups, &line);
    }
    end(&groups);
    Ok(())
}

/// One line of the pipe; what cannot be read is ignored.
fn follow(groups: &mut BTreeSet<i32>, line: &str) {
    let (sign, number) = line.split_at_checked(1).unwrap_or_default();
    // 0 and 1 would mean "my own group" and "everybody" to kill(2).
    let Some(pgid) = number.parse::<i32>().ok().filter(|n| *n > 1) else { return };
    match sign {
        "+" => drop(groups.insert(pgid)),
        "-" => drop(groups.remove(&pgid)),
        _ => {}
    }
}

fn end(groups: &BTreeSet<i32>) {
    let groups: Vec<Pid> = groups.iter().filter_map(|n| Pid::from_raw(*n)).collect();
    for group in &groups {
        let _ = kill_process_group(*group, Signal::TERM);
    }
    let until = Instant::now() + TERM_WAIT;
    while Instant::now() < until && groups.iter().any(|g| test_kill_process_group(*g).is_ok()) {
        std::thread::sleep(POLL);
    }
    for group in &groups {
        let _ = kill_process_group(*group, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_add_and_remove_groups_and_nothing_else() {
        let mut groups = BTreeSet::new();
        for line in ["+20", "+30", "-20", "+0", "+1", "+-5", "x", "", "é7", "+abc", "-99"] {
            follow(&mut groups, line);
        }
        assert_eq!(groups.into_iter().collect::<Vec<_>>(), [30]);
    }
}
