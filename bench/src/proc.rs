//! Figures that the kernel keeps of a process.

use std::fs;

/// CPU time of all threads, in nanoseconds, as the scheduler counts it.
pub fn cpu_ns(pids: &[u32]) -> u64 {
    pids.iter().map(|pid| threads(*pid)).sum()
}

fn threads(pid: u32) -> u64 {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return 0;
    };
    let stat = |task: fs::DirEntry| fs::read_to_string(task.path().join("schedstat")).ok();
    let first = |text: String| {
        text.split(' ')
            .next()
            .and_then(|word| word.parse::<u64>().ok())
    };
    tasks.flatten().filter_map(stat).filter_map(first).sum()
}

/// Resident memory in KiB; pages that some of them share count for each.
pub fn rss_kib(pids: &[u32]) -> u64 {
    pids.iter().map(|pid| field(*pid, "VmRSS:")).sum()
}

/// Resident memory in KiB; a page that processes share counts once among them.
pub fn pss_kib(pids: &[u32]) -> u64 {
    pids.iter()
        .map(|pid| line(&format!("/proc/{pid}/smaps_rollup"), "Pss:"))
        .sum()
}

fn field(pid: u32, name: &str) -> u64 {
    line(&format!("/proc/{pid}/status"), name)
}

fn line(file: &str, name: &str) -> u64 {
    let status = fs::read_to_string(file).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap_or_default();
    line.split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0)
}

/// Processes whose parent is this one.
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(list) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = list
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|child| field(*child, "PPid:") == u64::from(pid))
        .collect()
}

/// The servers that a gateway runs: its children, or those of their keepers, which a guard process
/// has forked.
pub fn servers(gateway: u32) -> Vec<u32> {
    children(gateway)
        .into_iter()
        .flat_map(|pid| {
            if is_keeper(pid) {
                servers(pid)
            } else {
                vec![pid]
            }
        })
        .collect()
}

/// The guard process of a gateway and its keepers.
pub fn guards(gateway: u32) -> Vec<u32> {
    let guards: Vec<u32> = children(gateway)
        .into_iter()
        .filter(|pid| is_keeper(*pid))
        .collect();
    let below: Vec<u32> = guards.iter().flat_map(|pid| self::guards(*pid)).collect();
    [guards, below].concat()
}

/// Whether a process is the keeper of a server, or has forked some.
pub fn is_keeper(pid: u32) -> bool {
    command(pid).starts_with("keeper ")
}

/// The command line of a process, its words joined by spaces.
pub fn command(pid: u32) -> String {
    let raw = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&raw).replace('\0', " ")
}

/// The most that was ever resident, in KiB.
pub fn rss_max_kib(pids: &[u32]) -> u64 {
    pids.iter().map(|pid| field(*pid, "VmHWM:")).sum()
}
