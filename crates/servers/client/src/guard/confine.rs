//! Confinement of the process that calls it, for good: what a keeper's child does to itself before
//! it becomes a server's program.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::calls;
use crate::sandbox::{ProcessLimits, SandboxSupport};

/// The oldest Landlock that confines at all, and the newest that is known here.
const OLDEST: ABI = ABI::V1;
const NEWEST: ABI = ABI::V9;
/// Acts that kernels before these cannot keep a child from.
const GAPS: [(ABI, &str); 3] = [
    (
        ABI::V3,
        "shortening files elsewhere to nothing (Linux 6.2 can)",
    ),
    (
        ABI::V6,
        "sending signals to other processes of the user (Linux 6.12 can)",
    ),
    (
        ABI::V9,
        "connecting to sockets of other programs by their paths (Linux 7.1 can)",
    ),
];
/// The capabilities of root that a confined child keeps: they act on files, which Landlock
/// confines, and on its own processes.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Threads for which the kernel leaves room in each allowed process.
const PROCESS_TASKS: u64 = 64;

/// A confinement with its places found, as it travels to a keeper.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Confined {
    pub(crate) files: Option<Files>,
    pub(crate) limits: ProcessLimits,
}

/// The files of a confined child.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Files {
    pub(crate) read: Vec<OsString>,
    pub(crate) write: Vec<OsString>,
    /// Directory in which the keeper makes one for temporary files.
    pub(crate) temp: OsString,
}

/// Confinement that this kernel supports.
pub(crate) fn support() -> SandboxSupport {
    if ruleset(OLDEST).is_err() {
        return SandboxSupport::None(
            "this kernel has no Landlock (Linux 5.13, switched on at boot)",
        );
    }
    let mut gaps = Vec::new();
    for (abi, what) in GAPS {
        if ruleset(abi).is_err() {
            gaps.push(what);
        }
    }
    SandboxSupport::Files(gaps)
}

/// An empty list of what is allowed, which holds all that this version of Landlock can hold.
fn ruleset(abi: ABI) -> Result<RulesetCreated, landlock::RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let ruleset = ruleset.handle_access(AccessFs::from_all(abi))?;
    if abi < ABI::V6 {
        ruleset.create()
    } else {
        ruleset.scope(Scope::from_all(abi))?.create()
    }
}

/// Confines this process, which has one thread. `temp` is its own directory for temporary files.
pub(super) fn apply(confined: &Confined, temp: Option<&Path>) -> io::Result<()> {
    limit(&confined.limits)?;
    let Some(files) = &confined.files else {
        return Ok(());
    };
    // No memory of it ends in a file.
    setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    )?;
    let present = capabilities(None)?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: present.effective & KEPT,
            permitted: present.permitted & KEPT,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    restrict(files, temp).map_err(io::Error::other)?;
    calls::apply()
}

fn limit(limits: &ProcessLimits) -> io::Result<()> {
    let seconds = limits.cpu_time_max.map(|time| time.as_secs().max(1));
    for (resource, limit) in [
        (Resource::Data, limits.memory_bytes_max),
        (Resource::Nofile, limits.open_files_max),
        (Resource::Cpu, seconds),
    ] {
        if limit.is_some() {
            setrlimit(
                resource,
                Rlimit {
                    current: limit,
                    maximum: limit,
                },
            )?;
        }
    }
    if let Some(processes) = limits.processes_max {
        // The kernel counts threads, and all of the user: what counts exactly is the keeper. This
        // ends what multiplies faster than the keeper can look; the kernel exempts root.
        let most = tasks_of_user().saturating_add(processes.saturating_mul(PROCESS_TASKS));
        let most = getrlimit(Resource::Nproc)
            .maximum
            .map_or(most, |hard| hard.min(most));
        setrlimit(
            Resource::Nproc,
            Rlimit {
                current: Some(most),
                maximum: Some(most),
            },
        )?;
    }
    Ok(())
}

/// Processes and threads of this process's user.
fn tasks_of_user() -> u64 {
    let user = getuid().as_raw();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| tasks_of(&entry, user)).sum()
}

/// Threads of a process of a user; `None` for an entry that is none of them, or has just gone.
fn tasks_of(entry: &std::fs::DirEntry, user: u32) -> Option<u64> {
    let _: u32 = entry.file_name().to_str()?.parse().ok()?;
    if entry.metadata().ok()?.uid() != user {
        return None;
    }
    let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
    let threads = status
        .lines()
        .find_map(|line| line.strip_prefix("Threads:"))?;
    threads.trim().parse().ok()
}

fn restrict(files: &Files, temp: Option<&Path>) -> Result<(), String> {
    let mut ruleset = strongest_ruleset().map_err(said)?;
    let read = AccessFs::from_read(NEWEST);
    // No device of its own making leads around the lists.
    let write = AccessFs::from_all(NEWEST)
        & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    for path in &files.read {
        ruleset = allow(ruleset, Path::new(path), read)?;
    }
    ruleset = allow(ruleset, Path::new("/proc/self"), read)?;
    for path in &files.write {
        ruleset = allow(ruleset, Path::new(path), write)?;
    }
    if let Some(temp) = temp {
        ruleset = allow(ruleset, temp, write)?;
    }
    let status = ruleset.restrict_self().map_err(said)?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err("Landlock: not in force".to_owned()),
        _ if !status.no_new_privs => Err("no_new_privs: not in force".to_owned()),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// An empty list of what is allowed. It holds what the oldest Landlock can hold, and of the rest
/// what this kernel can.
fn strongest_ruleset() -> Result<RulesetCreated, landlock::RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(OLDEST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()
}

/// Allows access to a place; one that has gone since it was found is left out.
fn allow(
    ruleset: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, String> {
    let Ok(place) = PathFd::new(path) else {
        return Ok(ruleset);
    };
    let access = if path.is_dir() {
        access
    } else {
        access & AccessFs::from_file(NEWEST)
    };
    let rule = PathBeneath::new(place, access);
    ruleset.add_rule(rule).map_err(said)
}

fn said(why: landlock::RulesetError) -> String {
    format!("Landlock: {why}")
}

/// Makes the directory for temporary files of one child.
pub(super) fn make_temp(below: &Path) -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    let path = below.join(format!(
        "portmoot-{:016x}",
        u64::from_ne_bytes(platform::random())
    ));
    std::fs::DirBuilder::new().mode(0o700).create(&path)?;
    path.canonicalize()
}
