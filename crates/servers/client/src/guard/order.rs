//! Order: what a gateway asks its guard process to start, and how it travels between the two.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::confine::{Confined, Files};
use crate::pipes::ChildPipes;
use crate::sandbox::ProcessLimits;

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
    /// Confinement of the child, if there is any.
    pub(super) confined: Option<Confined>,
}

impl Order {
    /// The order for a command whose environment was cleared first.
    pub(super) fn of(command: &Command) -> Self {
        let variables = command.get_envs();
        Self {
            program: command.get_program().to_owned(),
            args: command.get_args().map(OsStr::to_owned).collect(),
            env: variables
                .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
                .collect(),
            cwd: command
                .get_current_dir()
                .map(|cwd| cwd.as_os_str().to_owned())
                .unwrap_or_default(),
            confined: None,
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
    pub(super) fn receive(
        mut socket: &UnixStream,
    ) -> io::Result<Option<(Self, ChildPipes, OwnedFd)>> {
        let mut length = [0; 4];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
        let read = recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut length)],
            &mut control,
            flags,
        )?;
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
        Ok(Some((
            order,
            ChildPipes {
                stdin,
                stdout,
                stderr,
            },
            status,
        )))
    }

    /// All texts, each with a NUL behind it, and their numbers before them.
    ///
    /// # Errors
    /// A text has a NUL itself.
    pub(super) fn texts(&self) -> io::Result<Vec<u8>> {
        let mut texts = Vec::new();
        let head = OsString::from(Head::of(self).write());
        let no_files = Files::default();
        let files = self
            .confined
            .as_ref()
            .and_then(|confined| confined.files.as_ref())
            .unwrap_or(&no_files);
        // The order in which `read` takes them. Variables are last: their number is not in the head.
        let mut all = vec![&head, &files.temp];
        all.extend(&files.read);
        all.extend(&files.write);
        all.extend([&self.cwd, &self.program]);
        all.extend(&self.args);
        for (name, value) in &self.env {
            all.extend([name, value]);
        }
        for text in all {
            if text.as_bytes().contains(&0) {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "a NUL in a command",
                ));
            }
            texts.extend_from_slice(text.as_bytes());
            texts.push(0);
        }
        Ok(texts)
    }

    fn read(texts: &[u8]) -> Option<Self> {
        let mut texts = texts
            .strip_suffix(&[0])?
            .split(|byte| *byte == 0)
            .map(|text| OsString::from_vec(text.to_vec()));
        let head = Head::read(texts.next()?.to_str()?)?;
        let temp = texts.next()?;
        let read = take(&mut texts, head.reads)?;
        let write = take(&mut texts, head.writes)?;
        let cwd = texts.next()?;
        let program = texts.next()?;
        let args = take(&mut texts, head.args)?;
        let mut env = Vec::new();
        while let Some(name) = texts.next() {
            let Some(value) = texts.next() else {
                break;
            };
            env.push((name, value));
        }
        let files = head.has_files.then_some(Files { read, write, temp });
        Some(Self {
            program,
            args,
            env,
            cwd,
            confined: head.limits.map(|limits| Confined { files, limits }),
        })
    }
}

/// So many of the texts; `None` if there are fewer.
fn take(texts: &mut impl Iterator<Item = OsString>, count: usize) -> Option<Vec<OsString>> {
    let taken: Vec<OsString> = texts.take(count).collect();
    (taken.len() == count).then_some(taken)
}

/// The numbers before the texts of an order.
struct Head {
    args: usize,
    reads: usize,
    writes: usize,
    has_files: bool,
    limits: Option<ProcessLimits>,
}

impl Head {
    fn of(order: &Order) -> Self {
        let files = order
            .confined
            .as_ref()
            .and_then(|confined| confined.files.as_ref());
        Self {
            args: order.args.len(),
            reads: files.map_or(0, |files| files.read.len()),
            writes: files.map_or(0, |files| files.write.len()),
            has_files: files.is_some(),
            limits: order.confined.as_ref().map(|confined| confined.limits),
        }
    }

    fn write(&self) -> String {
        let mut head = format!(
            "{} {} {} {}",
            self.args,
            self.reads,
            self.writes,
            u8::from(self.has_files)
        );
        if let Some(limits) = &self.limits {
            let seconds = limits.cpu_time_max.map(|time| time.as_secs());
            for limit in [
                limits.memory_bytes_max,
                limits.processes_max,
                limits.open_files_max,
                seconds,
            ] {
                head += &limit.map_or_else(|| " -".to_owned(), |limit| format!(" {limit}"));
            }
        }
        head
    }

    fn read(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(' ').collect();
        let [args, reads, writes, has_files, limits @ ..] = parts.as_slice() else {
            return None;
        };
        let limits = match limits {
            [] => None,
            [memory_bytes, processes, open_files, seconds] => Some(ProcessLimits {
                memory_bytes_max: read_limit(memory_bytes)?,
                processes_max: read_limit(processes)?,
                open_files_max: read_limit(open_files)?,
                cpu_time_max: read_limit(seconds)?.map(Duration::from_secs),
            }),
            _ => return None,
        };
        Some(Self {
            args: args.parse().ok()?,
            reads: reads.parse().ok()?,
            writes: writes.parse().ok()?,
            has_files: has_files.parse::<usize>().ok()? == 1,
            limits,
        })
    }
}

/// A limit as a head has it: a number, or `-` for none. `None` if it is neither.
fn read_limit(text: &str) -> Option<Option<u64>> {
    if text == "-" {
        return Some(None);
    }
    text.parse().ok().map(Some)
}

/// Sends the texts of an order with the pipes of the program and the one where its keeper writes
/// how it has ended.
///
/// # Errors
/// The guard has not received the whole order: it has ended, or it does not read.
pub(super) fn send(
    mut socket: &UnixStream,
    texts: &[u8],
    (pipes, status): &(ChildPipes, OwnedFd),
) -> io::Result<()> {
    let length = u32::try_from(texts.len())
        .map_err(|_| io::ErrorKind::InvalidInput)?
        .to_be_bytes();
    let fds = [&pipes.stdin, &pipes.stdout, &pipes.stderr, status].map(AsFd::as_fd);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    // So few bytes are sent at once.
    sendmsg(
        socket,
        &[IoSlice::new(&length)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    socket.write_all(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_arrives_with_its_descriptors() {
        let mut command = Command::new("/bin/x");
        command
            .args(["", "a b"])
            .env_clear()
            .env("A", "")
            .env("B", "\u{1f600}")
            .current_dir("/tmp");
        let order = Order::of(&command);
        assert_eq!(Order::of(&order.command()), order);
        let limits = ProcessLimits {
            processes_max: Some(3),
            cpu_time_max: Some(Duration::from_secs(9)),
            ..ProcessLimits::default()
        };
        let files = Files {
            read: vec!["/a b".into()],
            write: vec![],
            temp: "/t".into(),
        };
        let some = Some(Confined {
            files: Some(files),
            limits,
        });
        let confined = Order {
            program: "z".into(),
            confined: some,
            args: vec!["1".into()],
            ..Order::default()
        };
        let limited = Some(Confined {
            files: None,
            limits,
        });
        let limited = Order {
            program: "z".into(),
            confined: limited,
            ..Order::default()
        };
        for sent in [
            order,
            confined,
            limited,
            Order {
                program: "y".into(),
                ..Order::default()
            },
        ] {
            let (near, far) = UnixStream::pair().unwrap();
            let (ours, theirs): (Vec<_>, Vec<_>) =
                (0..4).map(|_| UnixStream::pair().unwrap()).unzip();
            let mut theirs = theirs.into_iter().map(OwnedFd::from);
            let mut next = || theirs.next().unwrap();
            let fds = (
                ChildPipes {
                    stdin: next(),
                    stdout: next(),
                    stderr: next(),
                },
                next(),
            );
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
        let nul = Order {
            program: "a\0b".into(),
            ..Order::default()
        };
        assert_eq!(nul.texts().unwrap_err().kind(), io::ErrorKind::InvalidInput);
        for bad in [
            &b""[..],
            b"1 0 0 0\0\0\0x\0",
            b"x\0\0\0y\0",
            b"0 0 0 0\0\0\0y",
            b"0 0 0 0 1\0\0\0y\0",
            b"0 1 0 1\0\0\0y\0",
        ] {
            assert_eq!(Order::read(bad), None, "{bad:?}");
        }
        let (near, far) = UnixStream::pair().unwrap();
        (&near).write_all(&[0; 8]).unwrap();
        assert_eq!(
            Order::receive(&far).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }
}
