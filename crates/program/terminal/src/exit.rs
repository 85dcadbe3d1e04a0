//! Exit codes of the program.

use std::process::ExitCode;

/// Exit code of a command, for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The command succeeded.
    Ok = 0,
    /// The command failed, or a tool returned an error.
    Failed = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// A policy forbids the operation, or consent was not given.
    Refused = 3,
    /// The gateway needs a token, or the given token is not valid.
    Unauthenticated = 4,
    /// The named server, tool, topic or proposal does not exist.
    NotFound = 5,
    /// The call is held as a proposal until a reviewer approves it.
    Held = 6,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
