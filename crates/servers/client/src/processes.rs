//! Processes of local servers: how many a server has, their memory and processor time.

use std::collections::HashMap;
use std::time::Duration;

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// Root of the processes of one child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Root {
    /// The process that the gateway started: the child, or its keeper. Its lines in the log of
    /// stderr have this number.
    pub started: u32,
    /// Whether it is a keeper, which does not count as one of the child's processes.
    pub is_keeper: bool,
}

/// Use of the machine by the processes of one child at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// The child, its children, and so on.
    pub processes: usize,
    /// Their resident memory, in bytes. Memory that several of them share counts for each.
    pub memory_bytes: u64,
    /// The processor time that they have used.
    pub processor_time: Duration,
}

/// Use of the machine by the processes below each root. Reads the table of all processes once,
/// which takes milliseconds.
#[must_use]
pub fn usage(roots: &[Root]) -> Vec<Usage> {
    if roots.is_empty() {
        return Vec::new();
    }
    let mut system = System::new();
    let what = ProcessRefreshKind::nothing()
        .with_memory()
        .with_cpu()
        .without_tasks();
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, what);
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for (pid, process) in system.processes() {
        if let Some(parent) = process.parent() {
            children.entry(parent).or_default().push(*pid);
        }
    }
    roots
        .iter()
        .map(|root| below(*root, &system, &children))
        .collect()
}

fn below(root: Root, system: &System, children: &HashMap<Pid, Vec<Pid>>) -> Usage {
    let started = Pid::from_u32(root.started);
    let mut open: Vec<Pid> = Vec::new();
    if root.is_keeper {
        // The keeper itself is the gateway's.
        open.extend(children.get(&started).into_iter().flatten());
    } else {
        open.push(started);
    }
    let mut usage = Usage::default();
    while let Some(pid) = open.pop() {
        let Some(process) = system.process(pid) else {
            continue;
        };
        usage.processes += 1;
        usage.memory_bytes += process.memory();
        usage.processor_time += Duration::from_millis(process.accumulated_cpu_time());
        open.extend(children.get(&pid).into_iter().flatten());
    }
    usage
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_counts_with_what_it_started() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 300 & wait $!"])
            .spawn()
            .unwrap();
        let started = child.id();
        let root = |is_keeper| Root { started, is_keeper };
        let mut usages = usage(&[root(false), root(true)]);
        while usages.first().is_none_or(|usage| usage.processes < 2) {
            std::thread::yield_now();
            usages = usage(&[root(false), root(true)]);
        }
        assert_eq!((usages[0].processes, usages[1].processes), (2, 1));
        assert!(usages[0].memory_bytes > usages[1].memory_bytes && usages[1].memory_bytes > 0);
        let _ = Command::new("pkill")
            .args(["-P", &started.to_string()])
            .status();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(usage(&[root(false)]), [Usage::default()]);
    }
}
