//! Shared guard: one process that ends the process groups of all children of a gateway that was
//! killed.
//!
//! The guard reads lines from a pipe: `+PGID` adds a process group, `-PGID` removes one. When the
//! pipe ends, however the gateway ended, the guard ends the remaining groups.

use std::io::{self, BufRead, Write};
use std::time::{Duration, Instant};
use std::{collections::BTreeSet, fs::File, path::PathBuf, process::Stdio, sync::Arc};

use platform::Mutex;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};

/// The hidden argument that makes the binary a guard.
pub const ARG: &str = "__guard";

/// Time from SIGTERM to SIGKILL.
pub(super) const TERM_WAIT: Duration = Duration::from_millis(1500);
/// Interval at which a guard checks whether the processes are gone.
pub(super) const POLL: Duration = Duration::from_millis(20);
/// The shortest time between two starts of a guard that keeps ending.
const RESTART_WAIT: Duration = Duration::from_millis(250);

/// A running guard process. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    state: Arc<Mutex<GuardState>>,
}

#[derive(Debug)]
struct GuardState {
    exe: PathBuf,
    groups: BTreeSet<i32>,
    pipe: Option<File>,
    pid: Option<u32>,
}

impl Shared {
    /// Starts the guard and keeps it running.
    pub(super) fn start(exe: PathBuf) -> io::Result<Self> {
        let state = Arc::new(Mutex::new(GuardState {
            exe,
            groups: BTreeSet::new(),
            pipe: None,
            pid: None,
        }));
        let child = state.lock().spawn()?;
        tokio::spawn(restart(Arc::downgrade(&state), child));
        Ok(Self { state })
    }

    /// Adds a process group.
    pub(super) fn watch(&self, pgid: u32) {
        self.state.lock().change(&format!("+{pgid}"));
    }

    /// Removes a process group that has ended.
    pub(super) fn release(&self, pgid: u32) {
        self.state.lock().change(&format!("-{pgid}"));
    }

    /// Process id of the guard, while it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        self.state.lock().pid
    }
}

impl GuardState {
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
            self.change(&format!("+{pgid}"));
        }
        Ok(child)
    }

    /// Applies a line here and in the guard. A failed write means that the guard has ended. Its
    /// successor gets all groups when it starts.
    fn change(&mut self, line: &str) {
        apply(&mut self.groups, line);
        if let Some(pipe) = &mut self.pipe
            && pipe.write_all(format!("{line}\n").as_bytes()).is_err()
        {
            self.pipe = None;
        }
    }
}

/// Starts the guard again when it ends, for as long as there is a [`Shared`].
async fn restart(state: std::sync::Weak<Mutex<GuardState>>, mut child: Child) {
    loop {
        let _ = child.wait().await;
        let next = match state.upgrade() {
            Some(state) => {
                let mut state = state.lock();
                state.pipe = None;
                state.pid = None;
                state.spawn()
            }
            None => return,
        };
        match next {
            Ok(next) => {
                tracing::warn!("the guard process ended and was started again");
                child = next;
            }
            Err(error) => tracing::error!(%error, "the guard process cannot be started"),
        }
        tokio::time::sleep(RESTART_WAIT).await;
    }
}

/// The guard itself. Returns when all groups have ended.
pub(super) fn run() -> io::Result<()> {
    // These handlers do nothing, so that a signal meant for the gateway does not end its guard.
    // They stay installed after the runtime has ended.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    {
        use tokio::signal::unix::{SignalKind, signal};
        let _entered = runtime.enter();
        for kind in [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::quit(),
        ] {
            let _ = signal(kind)?;
        }
    }
    let mut groups = BTreeSet::new();
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        apply(&mut groups, &line);
    }
    end(&groups);
    Ok(())
}

/// Applies one line of the pipe; an invalid one is ignored.
fn apply(groups: &mut BTreeSet<i32>, line: &str) {
    let (sign, number) = line.split_at_checked(1).unwrap_or_default();
    // To kill(2), 0 is the own group and 1 is every process.
    let Some(pgid) = number.parse::<i32>().ok().filter(|n| *n > 1) else {
        return;
    };
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
    fn lines_add_and_remove_groups() {
        let mut groups = BTreeSet::new();
        for line in [
            "+20", "+30", "-20", "+0", "+1", "+-5", "x", "", "é7", "+abc", "-99",
        ] {
            apply(&mut groups, line);
        }
        assert_eq!(groups.into_iter().collect::<Vec<_>>(), [30]);
    }
}
