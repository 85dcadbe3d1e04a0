//! The exit codes, all of them. Must not know what led to one.

use std::process::ExitCode;

/// How a command ended, for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Ok = 0,
    /// Tried and failed; also a tool that answered with an error.
    Failed = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// A policy forbids it, or consent was not given.
    Refused = 3,
    /// A token is needed, or the one given is not valid.
    Unauthenticated = 4,
    /// What was named does not exist.
    NotFound = 5,
    /// Held as a proposal: somebody has to approve it.
    Held = 6,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
