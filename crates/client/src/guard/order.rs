//! Order: what a gateway asks its guard process to start, and how it travels between the two.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::process::Command;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use crate::pipes::ChildPipes;

/// Descriptors that travel with an order.
const FDS: usize = 4;

/// A program to start.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    /// All variables of its environment.
    pub(super) env: Vec<(OsString, OsString)>,
    /// Its working directory; empty for that of the guard.
    pub(super) cwd: OsString,
}

impl Order {
    /// The order for a command whose environment was cleared first.
    pub(super) fn of(command: &Command) -> Self {
        let variables = command.get_envs();
        Self {
            program: command.get_program().to_owned(),
            args: command.get_args().map(OsStr::to_owned).collect(),
            env: variables.filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect(),
            cwd: command.get_current_dir().map(|cwd| cwd.as_os_str().to_owned()).unwrap_or_default(),
        }
    }

    /// The command for an order.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear();
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if !self.cwd.is_empty() {
            command.current_dir(&self.cwd);
        }
        command
    }

    /// Receives one; `None` at the end.
    ///
    /// # Errors
    /// What arrives is no order.
    pub(super) fn receive(mut socket: &UnixStream) -> io::Result<Option<(Self, ChildPipes, OwnedFd)>> {
        let mut length = [0; 4];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
        let read = recvmsg(socket, &mut [IoSliceMut::new(&mut length)], &mut control, flags)?;
        if read.bytes == 0 {
            return Ok(None);
        }
        let fds = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        let mut fds = fds.flatten();
        let (Some(stdin), Some(stdout), Some(stderr), Some(status)) =
            (fds.next(), fds.next(), fds.next(), fds.next())
        else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let mut texts = vec![0; u32::from_be_bytes(length) as usize];
        socket.read_exact(&mut texts)?;
        let order = Self::read(&texts).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Some((order, ChildPipes { stdin, stdout, stderr }, status)))
    }

    /// All texts, each with a NUL behind it, and the number of arguments before them.
    ///
    /// # Errors
    /// A text has a NUL itself.
    pub(super) fn texts(&self) -> io::Result<Vec<u8>> {
        let mut texts = Vec::new();
        let count = OsString::from(self.args.len().to_string());
        let variables = self.env.iter().flat_map(|(name, value)| [name, value]);
        for text in [&count, &self.cwd, &self.program].into_iter().chain(&self.args).chain(variables) {
            if text.as_bytes().contains(&0) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "a NUL in a command"));
            }
            texts.extend_from_slice(text.as_bytes());
            texts.push(0);
        }
        Ok(texts)
    }

    fn read(texts: &[u8]) -> Option<Self> {
        let mut all = texts.strip_suffix(&[0])?.split(|byte| *byte == 0);
        let mut next = || all.next().map(|text| OsString::from_vec(text.to_vec()));
        let count: usize = next()?.to_str()?.parse().ok()?;
        let (cwd, program) = (next()?, next()?);
        let args = (0..count).map_while(|_| next()).collect::<Vec<_>>();
        let env = std::iter::from_fn(|| Some((next()?, next()?))).collect();
        (args.len() == count).then_some(Self { program, args, env, cwd })
    }
}

/// Sends the texts of an order with the pipes of the program and the one where its keeper writes how it has ended.
///
/// # Errors
/// The guard has not received the whole order: it has ended, or it does not read.
pub(super) fn send(
    mut socket: &UnixStream,
    texts: &[u8],
    (pipes, status): &(ChildPipes, OwnedFd),
) -> io::Result<()> {
    let length = u32::try_from(texts.len()).map_err(|_| io::ErrorKind::InvalidInput)?.to_be_bytes();
    let fds = [&pipes.stdin, &pipes.stdout, &pipes.stderr, status].map(AsFd::as_fd);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    // So few bytes are sent at once.
    sendmsg(socket, &[IoSlice::new(&length)], &mut control, SendFlags::NOSIGNAL)?;
    socket.write_all(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_arrives_with_its_descriptors() {
        let mut command = Command::new("/bin/x");
        command.args(["", "a b"]).env_clear().env("A", "").env("B", "\u{1f600}").current_dir("/tmp");
        let order = Order::of(&command);
        assert_eq!(Order::of(&order.command()), order);
        for sent in [order, Order { program: "y".into(), ..Order::default() }] {
            let (near, far) = UnixStream::pair().unwrap();
            let (ours, theirs): (Vec<_>, Vec<_>) = (0..4).map(|_| UnixStream::pair().unwrap()).unzip();
            let mut theirs = theirs.into_iter().map(OwnedFd::from);
            let mut next = || theirs.next().unwrap();
            let fds = (ChildPipes { stdin: next(), stdout: next(), stderr: next() }, next());
            send(&near, &sent.texts().unwrap(), &fds).unwrap();
            drop((near, fds));
            let (received, pipes, status) = Order::receive(&far).unwrap().unwrap();
            assert_eq!(received, sent);
            let places = [pipes.stdin, pipes.stdout, pipes.stderr, status];
            for (mut one, theirs) in ours.into_iter().zip(places) {
                UnixStream::from(theirs).write_all(b"x").unwrap();
                one.read_exact(&mut [0]).unwrap();
            }
            assert!(Order::receive(&far).unwrap().is_none());
        }
    }

    #[test]
    fn what_is_no_order_is_refused() {
        let nul = Order { program: "a\0b".into(), ..Order::default() };
        assert_eq!(nul.texts().unwrap_err().kind(), io::ErrorKind::InvalidInput);
        for bad in [&b""[..], b"1\0\0x\0", b"x\0\0y\0", b"0\0\0y"] {
            assert_eq!(Order::read(bad), None, "{bad:?}");
        }
        let (near, far) = UnixStream::pair().unwrap();
        (&near).write_all(&[0; 8]).unwrap();
        assert_eq!(Order::receive(&far).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
