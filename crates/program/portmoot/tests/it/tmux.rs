//! The binary in a real terminal: a pane of a private tmux server. Nothing waits for a time: the
//! pane is looked at until it shows what is expected.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::home::Home;
use crate::http::TIMEOUT;

/// Time between two looks at a pane, as between those of `support::until`.
const PAUSE: Duration = Duration::from_millis(10);

/// A program in a terminal of its own. Dropping it ends both.
pub(crate) struct Pane {
    socket: PathBuf,
    /// The folder of the socket, for as long as the server runs.
    _folder: tempfile::TempDir,
}

/// Runs tmux.
///
/// # Panics
/// If it is not installed.
fn tmux(socket: &PathBuf, args: &[&str]) -> Output {
    let run = Command::new("tmux")
        .arg("-u")
        .arg("-S")
        .arg(socket)
        .args(["-f", "/dev/null"])
        .args(args)
        .output();
    run.unwrap_or_else(|error| {
        panic!("these tests need tmux, which cannot be started ({error}): apt-get install -y tmux")
    })
}

impl Pane {
    /// Starts the binary with these arguments in a terminal of this size, in the environment of the
    /// home.
    pub(crate) fn start(home: &Home, (columns, rows): (u16, u16), args: &[&str]) -> Pane {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("tmux");
        let command = home.command(args);
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
        let text = |text: &std::ffi::OsStr| quoted(&text.to_string_lossy());
        let mut line = String::from("env -i TERM=screen-256color TZ=UTC LANG=C.UTF-8");
        for (name, value) in command.get_envs() {
            line += &format!(
                " {}={}",
                name.to_string_lossy(),
                text(value.unwrap_or_default())
            );
        }
        line += &format!(" {}", text(command.get_program()));
        command
            .get_args()
            .for_each(|arg| line += &format!(" {}", text(arg)));
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let size = ["-x", &columns, "-y", &rows];
        let new = [
            "set",
            "-g",
            "status",
            "off",
            ";",
            "new-session",
            "-d",
            "-s",
            "it",
        ];
        // The shell says how the program ended, and keeps the terminal open.
        let line = format!("{line}; echo \"[exit $?]\"; exec cat");
        let args = [&new[..], &size[..], &[line.as_str()]].concat();
        let run = tmux(&socket, &args);
        assert!(
            run.status.success(),
            "{}",
            String::from_utf8_lossy(&run.stderr)
        );
        Pane {
            socket,
            _folder: folder,
        }
    }

    fn run(&self, args: &[&str]) -> String {
        let run = tmux(&self.socket, args);
        assert!(
            run.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&run.stderr)
        );
        String::from_utf8_lossy(&run.stdout).into_owned()
    }

    /// The rows on the screen.
    pub(crate) fn screen(&self) -> String {
        self.run(&["capture-pane", "-p", "-t", "it"])
    }

    /// The same with the escape sequences of colours.
    pub(crate) fn styled(&self) -> String {
        self.run(&["capture-pane", "-p", "-e", "-t", "it"])
    }

    /// Presses keys, by tmux's names.
    pub(crate) fn press(&self, keys: &[&str]) {
        self.run(&[&["send-keys", "-t", "it"], keys].concat());
    }

    /// Types a text.
    pub(crate) fn type_text(&self, text: &str) {
        self.run(&["send-keys", "-t", "it", "-l", text]);
    }

    /// Gives the terminal another size.
    pub(crate) fn resize(&self, (columns, rows): (u16, u16)) {
        self.run(&[
            "resize-window",
            "-t",
            "it",
            "-x",
            &columns.to_string(),
            "-y",
            &rows.to_string(),
        ]);
    }

    /// Whether the bell rang since the window was looked at.
    pub(crate) fn rang(&self) -> bool {
        self.run(&["display-message", "-p", "-t", "it", "#{window_bell_flag}"])
            .trim()
            == "1"
    }

    /// Waits until the screen is such, and returns it.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, is_such: impl Fn(&str) -> bool) -> String {
        let mut seen = Vec::new();
        let end = Instant::now() + TIMEOUT;
        loop {
            let screen = self.screen();
            if is_such(&screen) {
                return screen;
            }
            std::thread::sleep(PAUSE);
            if !seen.contains(&screen) {
                seen.push(screen.clone());
            }
            let shown = || seen.join("\n----\n");
            assert!(
                Instant::now() < end,
                "never: {what}, but one after the other:\n{}",
                shown()
            );
        }
    }

    /// Waits until the screen shows a text, and returns it.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) -> String {
        self.wait_until(&format!("{text:?}"), |screen| screen.contains(text))
    }

    /// Waits until the program has ended, and returns its exit code.
    #[track_caller]
    pub(crate) fn wait_for_exit(&self) -> i32 {
        let screen = self.wait_for("[exit ");
        screen
            .split("[exit ")
            .last()
            .unwrap()
            .split(']')
            .next()
            .unwrap()
            .parse()
            .unwrap()
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!(
                "--- the terminal shows\n{}",
                String::from_utf8_lossy(
                    &tmux(&self.socket, &["capture-pane", "-p", "-t", "it"]).stdout
                )
            );
        }
        tmux(&self.socket, &["kill-server"]);
    }
}
