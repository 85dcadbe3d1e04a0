//! The three pipes of a child.

use std::io;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe::{Receiver, Sender};

/// Our ends.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: Sender,
    pub(crate) stdout: Receiver,
    pub(crate) stderr: Receiver,
}

/// The child's ends.
#[derive(Debug)]
pub(crate) struct ChildPipes {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

impl Pipes {
    /// Both ends of new ones.
    pub(crate) fn new() -> io::Result<(Self, ChildPipes)> {
        let (stdin, to_child) = io::pipe()?;
        let (from_child, stdout) = io::pipe()?;
        let (errors, stderr) = io::pipe()?;
        let ours = Self {
            stdin: Sender::from_owned_fd(to_child.into())?,
            stdout: Receiver::from_owned_fd(from_child.into())?,
            stderr: Receiver::from_owned_fd(errors.into())?,
        };
        Ok((
            ours,
            ChildPipes {
                stdin: stdin.into(),
                stdout: stdout.into(),
                stderr: stderr.into(),
            },
        ))
    }
}
