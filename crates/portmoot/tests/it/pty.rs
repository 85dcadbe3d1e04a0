//! A person at a terminal: the binary on a real pseudo-terminal, typed to when it asks.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::runner::{Home, Ran};

const PATIENCE: Duration = Duration::from_secs(60);

/// Runs with stdin and stderr on a terminal. For each step it waits until the terminal shows the first text, then types
/// the second and a line feed. What the terminal showed is in `stderr`.
pub(crate) fn talk(home: &Home, args: &[&str], steps: &[(&str, &str)]) -> Ran {
    act(home, args, steps, Shape::default(), || {})
}

/// The same for one step; between what is shown and what is typed something else happens.
pub(crate) fn talk_after(home: &Home, args: &[&str], step: (&str, &str), between: impl FnMut()) -> Ran {
    act(home, args, &[step], Shape::default(), between)
}

/// The same as a session's leader, so that the keys that interrupt a program do.
pub(crate) fn lead(home: &Home, args: &[&str], steps: &[(&str, &str)]) -> Ran {
    act(home, args, steps, Shape { leads: true, ..Shape::default() }, || {})
}

/// The same with stdout on the terminal too.
pub(crate) fn talk_there(home: &Home, args: &[&str], steps: &[(&str, &str)]) -> Ran {
    act(home, args, steps, Shape { all: true, ..Shape::default() }, || {})
}

/// How a program is on the terminal.
#[derive(Default, Clone, Copy)]
struct Shape {
    /// With stdout too.
    all: bool,
    /// It is the one that the terminal belongs to.
    leads: bool,
}

fn act(home: &Home, args: &[&str], steps: &[(&str, &str)], shape: Shape, mut between: impl FnMut()) -> Ran {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = || open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let mut command = home.command(args);
    if shape.leads {
        command = led(&command);
    }
    command.stdin(Stdio::from(theirs())).stderr(Stdio::from(theirs())).stdout(Stdio::piped());
    if shape.all {
        command.stdout(Stdio::from(theirs()));
    }
    let child = command.spawn().unwrap();
    // The command holds the other end too, and the terminal must end with the child.
    drop(command);
    let shown = reader(ours.try_clone().unwrap());
    let mut keys = File::from(ours);
    let mut seen = String::new();
    let mut from = 0;
    for (wanted, typed) in steps {
        let end = Instant::now() + PATIENCE;
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

/// The same command in a session of its own, whose terminal is its standard input.
fn led(command: &Command) -> Command {
    let mut led = Command::new("setsid");
    led.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args());
    led.current_dir(command.get_current_dir().unwrap()).env_clear();
    led.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    led
}

/// What the terminal shows, until the last that holds it is gone.
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
