//! The binary on a pseudo-terminal, with scripted input.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::home::{Home, Ran};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs with stdin and stderr on a terminal. For each step it waits until the terminal shows the
/// first text, then types the second and a line feed. `stderr` of the result is the text on the
/// terminal.
pub(crate) fn run_at_terminal(home: &Home, args: &[&str], steps: &[(&str, &str)]) -> Ran {
    run_steps(home, args, steps, Options::default(), || {})
}

/// The same for one step; calls `between` after the first text is shown and before the second is
/// typed.
pub(crate) fn run_at_terminal_with(
    home: &Home,
    args: &[&str],
    step: (&str, &str),
    between: impl FnMut(),
) -> Ran {
    run_steps(home, args, &[step], Options::default(), between)
}

/// The same as a session leader, so that interrupt keys work.
pub(crate) fn run_as_session_leader(home: &Home, args: &[&str], steps: &[(&str, &str)]) -> Ran {
    run_steps(
        home,
        args,
        steps,
        Options {
            leads: true,
            ..Options::default()
        },
        || {},
    )
}

/// The same with stdout on the terminal too.
pub(crate) fn run_with_stdout_at_terminal(
    home: &Home,
    args: &[&str],
    steps: &[(&str, &str)],
) -> Ran {
    run_steps(
        home,
        args,
        steps,
        Options {
            all: true,
            ..Options::default()
        },
        || {},
    )
}

/// The same on a terminal of so many columns.
pub(crate) fn run_at_terminal_of(
    columns: u16,
    home: &Home,
    args: &[&str],
    steps: &[(&str, &str)],
) -> Ran {
    run_steps(
        home,
        args,
        steps,
        Options {
            all: true,
            columns: Some(columns),
            ..Options::default()
        },
        || {},
    )
}

/// How a program is connected to the terminal.
#[derive(Default, Clone, Copy)]
struct Options {
    /// The width of the terminal, if it has one.
    columns: Option<u16>,
    /// With stdout too.
    all: bool,
    /// As the session leader of the terminal.
    leads: bool,
}

fn run_steps(
    home: &Home,
    args: &[&str],
    steps: &[(&str, &str)],
    options: Options,
    mut between: impl FnMut(),
) -> Ran {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    if let Some(ws_col) = options.columns {
        tcsetwinsize(
            &ours,
            Winsize {
                ws_col,
                ws_row: 24,
                ws_xpixel: 0,
                ws_ypixel: 0,
            },
        )
        .unwrap();
    }
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = || open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let mut command = home.command(args);
    if options.leads {
        command = in_own_session(&command);
    }
    command
        .stdin(Stdio::from(theirs()))
        .stderr(Stdio::from(theirs()))
        .stdout(Stdio::piped());
    if options.all {
        command.stdout(Stdio::from(theirs()));
    }
    let child = command.spawn().unwrap();
    // The command holds the other end too; dropping it lets the terminal end with the child.
    drop(command);
    let shown = reader(ours.try_clone().unwrap());
    let mut keys = File::from(ours);
    let mut seen = String::new();
    let mut from = 0;
    for (wanted, typed) in steps {
        let end = Instant::now() + TIMEOUT;
        while !seen[from..].contains(wanted) {
            match shown.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(text) => seen.push_str(&text),
                Err(_) => panic!("the terminal never showed {wanted:?}, but:\n{seen}"),
            }
        }
        from += seen[from..].find(wanted).unwrap() + wanted.len();
        between();
        keys.write_all(format!("{typed}\n").as_bytes()).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    seen.extend(shown.iter());
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: seen.replace("\r\n", "\n"),
    }
}

/// The same command in its own session, whose terminal is its standard input.
fn in_own_session(command: &Command) -> Command {
    let mut in_own_session = Command::new("setsid");
    in_own_session
        .args(["--ctty", "--wait"])
        .arg(command.get_program())
        .args(command.get_args());
    in_own_session
        .current_dir(command.get_current_dir().unwrap())
        .env_clear();
    in_own_session.envs(
        command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    in_own_session
}

/// Reads the text on the terminal until all its holders have closed it.
fn reader(terminal: OwnedFd) -> Receiver<String> {
    let (send, shown) = channel();
    std::thread::spawn(move || {
        let mut terminal = File::from(terminal);
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = terminal.read(&mut buffer) {
            let _ = send.send(String::from_utf8_lossy(&buffer[..read]).into_owned());
        }
    });
    shown
}
