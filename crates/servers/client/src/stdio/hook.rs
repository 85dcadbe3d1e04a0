//! Hooks: programs that get one text on their stdin, and end.

use std::io;
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::process::{Groups, KILL, TERM};
use super::program::find_program;
use super::started::Started;
use super::{INHERITED, Pipes};
use crate::guard::Guard;
use crate::sandbox::Confinement;
use rustix::io::Errno;
use rustix::process::Signal;
use tokio::net::unix::pipe::{Receiver, Sender};

/// The variables that a hook inherits beside those of servers: a desktop's, so that it can show
/// something there.
const DESKTOP: [&str; 4] = [
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
];
/// Buffer space for one read of output that is thrown away.
const READ_BYTES: usize = 4 << 10;

/// The end of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookEnd {
    /// Its exit code; `None` after a signal.
    pub code: Option<i32>,
    /// The first bytes of its stdout, then of its stderr.
    pub output: Vec<u8>,
}

/// The bounds of a hook.
#[derive(Debug, Clone, Copy)]
pub struct HookLimits {
    /// The time in which it has to end.
    pub time: Duration,
    /// The bytes of its stdout that are kept, and of its stderr; the rest is thrown away.
    pub output_bytes: usize,
}

/// A hook that runs. Its processes end when this is dropped.
struct RunningHook {
    started: Started,
    groups: Groups,
    guard: Option<Guard>,
    is_over: bool,
}

/// Runs a program with its arguments, without a shell and with this text on its stdin, and with
/// nothing of this process's environment but PATH, HOME, the locale and the desktop's variables.
/// Returns `None` if it did not end in time: then it is killed with its group, and with whatever
/// it left behind if it has a keeper.
///
/// # Errors
/// When it cannot be started.
pub async fn run_hook(
    words: &[String],
    input: Bytes,
    limits: HookLimits,
    guard: Option<&Guard>,
) -> io::Result<Option<HookEnd>> {
    let (ours, theirs) = Pipes::new()?;
    let (name, arguments) = words.split_first().ok_or(Errno::INVAL)?;
    let command = command(name, arguments)?;
    let started = Started::start(command, theirs, &Confinement::default(), (name, guard))?;
    let mut hook = RunningHook::new(started, guard)?;
    let bytes_max = limits.output_bytes;
    let talk = async {
        let (output, errors, ()) = tokio::join!(
            kept(ours.stdout, bytes_max),
            kept(ours.stderr, bytes_max),
            write(ours.stdin, input),
        );
        (hook.started.wait().await, [output, errors].concat())
    };
    let Ok((code, output)) = timeout(limits.time, talk).await else {
        hook.stop().await;
        return Ok(None);
    };
    hook.is_over = true;
    Ok(Some(HookEnd { code, output }))
}

fn command(name: &str, arguments: &[String]) -> io::Result<Command> {
    let program = find_program(name, None).ok_or(Errno::NOENT)?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear();
    for name in INHERITED.into_iter().chain(DESKTOP) {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    Ok(command)
}

/// Writes the text and closes the pipe. A hook that does not read it needs it not.
async fn write(mut stdin: Sender, input: Bytes) {
    let _ = stdin.write_all(&input).await;
}

/// The first bytes of a pipe, which is read to its end.
async fn kept(mut pipe: Receiver, bytes_max: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    let read = (&mut pipe).take(limit).read_to_end(&mut kept).await;
    if read.is_ok() {
        drain(&mut pipe).await;
    }
    kept
}

async fn drain(pipe: &mut (impl AsyncRead + Unpin)) {
    let mut rest = [0; READ_BYTES];
    while pipe.read(&mut rest).await.is_ok_and(|bytes| bytes > 0) {}
}

impl RunningHook {
    fn new(started: Started, guard: Option<&Guard>) -> io::Result<Self> {
        let pid = started.id().ok_or(io::ErrorKind::BrokenPipe)?;
        if let Some(guard) = guard {
            guard.watch(pid);
        }
        Ok(Self {
            groups: Groups::new(pid, started.is_kept()),
            started,
            guard: guard.cloned(),
            is_over: false,
        })
    }

    /// Sends SIGTERM, then SIGKILL, and waits after each for its time.
    async fn stop(&mut self) {
        // Its number is known before a keeper that ends takes it along.
        let _ = self.groups.child();
        for (signal, wait) in [(Signal::TERM, TERM), (Signal::KILL, KILL)] {
            self.groups.signal(signal);
            if timeout(wait, self.started.wait()).await.is_ok() {
                break;
            }
        }
        self.is_over = true;
    }
}

impl Drop for RunningHook {
    fn drop(&mut self) {
        if !self.is_over {
            // A keeper ends whatever is below it.
            let signal = if self.started.is_kept() {
                Signal::TERM
            } else {
                Signal::KILL
            };
            self.groups.signal(signal);
        }
        if let Some(guard) = &self.guard {
            guard.release(self.groups.started);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HookLimits = HookLimits {
        time: Duration::from_millis(300),
        output_bytes: 8,
    };

    async fn run(script: &str) -> io::Result<Option<HookEnd>> {
        let words = ["sh", "-c", script].map(str::to_owned);
        run_hook(&words, Bytes::from_static(b"text\n"), LIMITS, None).await
    }

    #[tokio::test]
    async fn a_hook_gets_its_text_and_its_output_is_bounded() {
        let ended = run("read line; echo \"$line\"; yes x | head -n 9000; exit 3");
        let ended = ended.await.unwrap().unwrap();
        assert_eq!(
            (ended.code, &ended.output[..]),
            (Some(3), &b"text\nx\nx"[..])
        );
        let ended = run("echo \"${CARGO_MANIFEST_DIR-none}\" >&2").await;
        let ended = ended.unwrap().unwrap();
        assert_eq!((ended.code, &ended.output[..]), (Some(0), &b"none\n"[..]));
        let words = ["no-such-program".to_owned()];
        assert!(run_hook(&words, Bytes::new(), LIMITS, None).await.is_err());
    }

    #[tokio::test]
    async fn a_hook_that_hangs_is_killed_with_its_group() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = format!(
            "trap '' TERM; sleep 1000 & echo $! > {}; exec sleep 1000",
            file.display()
        );
        assert_eq!(run(&script).await.unwrap(), None);
        let pid = std::fs::read_to_string(&file).unwrap();
        let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
        // Gone, or dead and not collected yet by the process that has it now.
        let is_dead = || {
            let state = std::fs::read_to_string(&path);
            state.map_or(true, |state| {
                state.contains(") Z ") || state.contains(") X ")
            })
        };
        let ended = async {
            while !is_dead() {
                tokio::task::yield_now().await;
            }
        };
        timeout(KILL * 5, ended).await.unwrap();
    }
}
