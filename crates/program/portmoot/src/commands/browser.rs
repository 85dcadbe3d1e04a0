//! The browser of the person at the terminal.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::env;

/// The page that leads a browser to a secret address, in a directory of the user.
const PAGE: &str = "open-console.html";

/// Opens an address of the gateway's in a browser, by a program and never by a shell. False when
/// there is none.
pub(super) fn open(url: &str) -> bool {
    is_address(url) && start(url.as_ref())
}

/// Opens an address with a secret in it. The arguments of a program can be read by every user of the
/// machine, so the browser gets the name of a page that its user alone can read, and that leads to the
/// address. False when there is no browser, or no place for the page.
pub(super) fn open_secret(url: &str) -> bool {
    let page = directory().and_then(|directory| write_page(&directory, url));
    page.is_some_and(|page| start(page.as_os_str()))
}

/// A directory of the user for what is needed for a moment.
fn directory() -> Option<PathBuf> {
    let of_session = env("XDG_RUNTIME_DIR").map(PathBuf::from);
    let found = of_session.filter(|path| path.is_absolute() && path.is_dir());
    found.or_else(|| config::state_dir(&env))
}

/// Writes the page that leads to an address, in place of the one of last time.
fn write_page(directory: &Path, url: &str) -> Option<PathBuf> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/#[]@%".contains(&byte);
    if !is_address(url) || !url.bytes().all(is_plain) {
        return None;
    }
    std::fs::create_dir_all(directory).ok()?;
    let page = directory.join(PAGE);
    let text = format!(
        "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0;url={url}\">\n<title>Portmoot</title>\n\
         <p><a href=\"{url}\">Open the console</a></p>\n"
    );
    platform::replace_file(&page, text.as_bytes()).ok()?;
    Some(page)
}

fn is_address(url: &str) -> bool {
    (url.starts_with("https://") || url.starts_with("http://"))
        && !url.chars().any(char::is_control)
}

fn start(address: &OsStr) -> bool {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let mut command = Command::new(program);
    command
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_secret_address_is_in_a_page_of_the_user_alone() {
        let dir = tempfile::tempdir().unwrap();
        let url = "http://pm-0123.localhost:7070/console#c0de";
        let page = write_page(dir.path(), url).unwrap();
        let mode = std::fs::metadata(&page).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains(&format!("content=\"0;url={url}\"")), "{text}");
        assert_eq!(
            write_page(dir.path(), url),
            Some(page),
            "in place of the last one"
        );
        for odd in ["javascript:alert(1)", "http://a/\"><script>", "http://a/\n"] {
            assert_eq!(write_page(dir.path(), odd), None, "{odd:?}");
        }
    }
}
