//! Processes of Linux: their parents, and signals that reach no other process of the same number.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// One process. Its number may be that of another process later; its start time tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    started: u64,
}

/// A process with its parent's number.
fn read(pid: i32) -> Option<(Process, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in parentheses, and may have some itself.
    let fields = stat.rsplit_once(") ")?.1;
    let mut fields = fields.split(' ').skip(1);
    let parent = fields.next()?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some((Process { pid, started }, parent))
}

/// All processes below one: its children, their children, and so on.
pub(super) fn descendants(root: i32) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some((process, parent)) = pid.and_then(read) {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut found = children.remove(&root).unwrap_or_default();
    let mut at = 0;
    while let Some(next) = found.get(at).copied() {
        found.extend(children.remove(&next.pid).unwrap_or_default());
        at += 1;
    }
    found
}

/// The number of processes below one, counted up to a bound. Looks at these processes alone.
pub(super) fn count_below(root: i32, bound: u64) -> u64 {
    let mut open = vec![root];
    let mut count = 0;
    while count <= bound
        && let Some(pid) = open.pop()
    {
        let threads = fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten();
        for thread in threads {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children: Vec<i32> = children
                .split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect();
            count += children.len() as u64;
            open.extend(children);
        }
    }
    count
}

/// The oldest child of a process.
pub(super) fn first_child(pid: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

impl Process {
    /// Sends it a signal, if it still runs.
    pub(super) fn signal(self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return;
        };
        let handle = pidfd_open(pid, PidfdFlags::empty());
        // The handle is that of the listed process only if the number was not given to another one
        // before.
        if read(self.pid).is_none_or(|(now, _)| now != self) {
            return;
        }
        let _ = match handle {
            Ok(handle) => pidfd_send_signal(handle, signal),
            Err(_) => kill_process(pid, signal),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn descendants_are_found_and_signalled() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 300 & wait $!"])
            .spawn()
            .unwrap();
        let below = || descendants(i32::try_from(child.id()).unwrap());
        while below().is_empty() {
            std::thread::yield_now();
        }
        let [sleeper] = below()[..] else {
            panic!("{:?}", below())
        };
        assert_eq!(first_child(child.id()), u32::try_from(sleeper.pid).ok());
        assert_eq!(count_below(i32::try_from(child.id()).unwrap(), 9), 1);
        let own = descendants(i32::try_from(std::process::id()).unwrap());
        assert!(
            own.iter().any(|process| process.pid == sleeper.pid),
            "{own:?}"
        );
        // Its shell sees by which signal it ended: of two, the first.
        Process {
            started: sleeper.started + 1,
            ..sleeper
        }
        .signal(Signal::KILL);
        sleeper.signal(Signal::TERM);
        let status = child.wait().unwrap();
        assert_eq!(
            status.code(),
            Some(128 + 15),
            "another process of this number is not signalled"
        );
    }
}
