//! Sign on the terminal that the program waits. It vanishes before anything else is written there.

use std::io::{self, Write};
use std::time::Duration;

use platform::Mutex;
use tokio::task::JoinHandle;

/// Time that a wait has no sign: most are shorter.
const BEFORE: Duration = Duration::from_millis(400);
const FRAME: Duration = Duration::from_millis(100);
const FRAMES: [char; 4] = ['|', '/', '-', '\\'];

/// State of the sign on the terminal.
static SHOWN: Mutex<Shown> = Mutex::new(Shown {
    line: false,
    questions: 0,
});

struct Shown {
    /// Whether the sign is on the last line.
    line: bool,
    /// Questions that wait for an answer of a person: while there are some, there is no sign.
    questions: usize,
}

/// A sign, until it is dropped.
pub struct Spinner(Option<JoinHandle<()>>);

impl Spinner {
    /// Shows a sign after a short while, if it is to be shown.
    pub fn start(what: &str, is_shown: bool) -> Spinner {
        let what = what.to_owned();
        let turn = async move {
            tokio::time::sleep(BEFORE).await;
            for frame in FRAMES.iter().cycle() {
                draw(&format!("{frame} {what}"));
                tokio::time::sleep(FRAME).await;
            }
        };
        Spinner(is_shown.then(|| tokio::spawn(turn)))
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some(turn) = self.0.take() {
            turn.abort();
            clear();
        }
    }
}

fn draw(text: &str) {
    let mut shown = SHOWN.lock();
    if shown.questions == 0 {
        shown.line = write!(io::stderr().lock(), "\r\u{1b}[2K{text}").is_ok();
        let _ = io::stderr().flush();
    }
}

/// Takes the sign off the terminal; it comes back with the next frame.
pub fn clear() {
    let mut shown = SHOWN.lock();
    if std::mem::take(&mut shown.line) {
        let _ = write!(io::stderr().lock(), "\r\u{1b}[2K");
    }
}

/// No sign while a person is asked.
pub struct QuietSpinner(());

impl QuietSpinner {
    /// Removes the signs until it is dropped.
    pub fn open() -> QuietSpinner {
        clear();
        SHOWN.lock().questions += 1;
        QuietSpinner(())
    }
}

impl Drop for QuietSpinner {
    fn drop(&mut self) {
        let mut shown = SHOWN.lock();
        shown.questions = shown.questions.saturating_sub(1);
    }
}
