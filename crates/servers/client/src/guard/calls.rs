//! System calls that a confined process may make about itself alone: limits and priorities of
//! processes, for which Landlock has no hooks.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule, TargetArch, apply_filter,
};

/// `which` of `setpriority`: all processes of a user.
const PRIO_USER: u64 = 2;
/// `which` of `ioprio_set`: all processes of a user.
const IOPRIO_WHO_USER: u64 = 3;

/// Has this process, which has one thread, and its children refuse these calls about others with
/// `EPERM`.
///
/// # Errors
/// The kernel takes no filter.
pub(super) fn apply() -> io::Result<()> {
    // Another architecture has no filter here; Landlock confines there all the same.
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Ok(());
    };
    let program = program(arch).map_err(io::Error::other)?;
    apply_filter(&program).map_err(io::Error::other)
}

fn program(arch: TargetArch) -> Result<BpfProgram, BackendError> {
    let refusal = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    SeccompFilter::new(rules()?, SeccompAction::Allow, refusal, arch)?.try_into()
}

/// Refused calls: each with alternatives, each of which is a list of conditions.
fn rules() -> Result<BTreeMap<i64, Vec<Rule>>, BackendError> {
    Ok(BTreeMap::from([
        (libc::SYS_prlimit64, any(vec![vec![others(0)?, given(2)?]])?),
        (
            libc::SYS_setpriority,
            any(vec![vec![is(0, PRIO_USER)?], vec![others(1)?]])?,
        ),
        (
            libc::SYS_ioprio_set,
            any(vec![vec![is(0, IOPRIO_WHO_USER)?], vec![others(1)?]])?,
        ),
        (libc::SYS_sched_setscheduler, any(vec![vec![others(0)?]])?),
        (libc::SYS_sched_setparam, any(vec![vec![others(0)?]])?),
        (libc::SYS_sched_setattr, any(vec![vec![others(0)?]])?),
    ]))
}

/// Rules of which one is enough.
fn any(alternatives: Vec<Vec<Condition>>) -> Result<Vec<Rule>, BackendError> {
    alternatives.into_iter().map(Rule::new).collect()
}

/// The argument at this place has this value.
fn is(argument: u8, value: u64) -> Result<Condition, BackendError> {
    Condition::new(argument, Length::Dword, Compare::Eq, value)
}

/// The argument at this place names another process than the caller, whose name is 0.
fn others(argument: u8) -> Result<Condition, BackendError> {
    Condition::new(argument, Length::Dword, Compare::Ne, 0)
}

/// The argument at this place is a pointer to something.
fn given(argument: u8) -> Result<Condition, BackendError> {
    Condition::new(argument, Length::Qword, Compare::Ne, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_filter_for_each_architecture() {
        for arch in [TargetArch::x86_64, TargetArch::aarch64] {
            assert!(!program(arch).unwrap().is_empty());
        }
    }
}
