//! The browser of the person at the terminal.

use std::process::{Command, Stdio};

/// Opens an address of the gateway's in a browser, by a program and never by a shell. False when
/// there is none.
pub(super) fn open(url: &str) -> bool {
    if !(url.starts_with("https://") || url.starts_with("http://"))
        || url.chars().any(char::is_control)
    {
        return false;
    }
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let mut command = Command::new(program);
    command
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().is_ok()
}
