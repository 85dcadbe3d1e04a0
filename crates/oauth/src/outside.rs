//! Texts of the operator's that no configuration has: in a file that its owner alone may read, or printed by a command.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use platform::open_regular;
use zeroize::Zeroizing;

/// Time that a command may take to print a text and to end.
pub const COMMAND_LIMIT: Duration = Duration::from_secs(30);
/// The time between looks at whether a command that has printed its text has ended.
const END_POLL: Duration = Duration::from_millis(10);

/// Why a text cannot be had. No message has any of the text, nor what the command wrote elsewhere.
#[derive(Debug, thiserror::Error)]
pub enum OutsideError {
    /// The file cannot be read.
    #[error("the file {} cannot be read: {why}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: io::Error,
    },
    /// Others may read the file.
    #[error("others may read the file {}: chmod 600 it", .0.display())]
    Open(PathBuf),
    /// The command failed.
    #[error("the command `{program}` failed: {why}")]
    Command {
        /// The program, without its arguments.
        program: String,
        /// The reason: its exit status, or what the system says.
        why: String,
    },
    /// The text is too long.
    #[error("it has more than {0} bytes")]
    Long(usize),
}

/// Reads a regular file that its owner alone may read, at most so many bytes.
///
/// # Errors
/// [`OutsideError`].
pub fn from_file(path: &Path, bytes_max: usize) -> Result<Zeroizing<Vec<u8>>, OutsideError> {
    let failed = |why| OutsideError::File { path: path.to_owned(), why };
    let file = open_regular(OpenOptions::new().read(true), path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(OutsideError::Open(path.to_owned()));
    }
    bounded(file, bytes_max).map_err(failed)?.ok_or(OutsideError::Long(bytes_max))
}

/// Runs a command, a program and its arguments, without a shell and without input, and takes what it prints, at most so many bytes. What it
/// writes to its stderr is thrown away: it could have the text. Blocks, at most for [`COMMAND_LIMIT`].
///
/// # Errors
/// [`OutsideError`].
pub fn from_command(words: &[String], bytes_max: usize) -> Result<Zeroizing<Vec<u8>>, OutsideError> {
    from_command_within(words, bytes_max, COMMAND_LIMIT)
}

fn from_command_within(
    words: &[String],
    bytes_max: usize,
    limit: Duration,
) -> Result<Zeroizing<Vec<u8>>, OutsideError> {
    let program = words.first().cloned().unwrap_or_default();
    let failed = |why: String| OutsideError::Command { program: program.clone(), why };
    let (name, arguments) = words.split_first().ok_or_else(|| failed("it is empty".to_owned()))?;
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let deadline = Instant::now() + limit;
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let output = child.stdout.take();
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let read = output.map(|output| bounded(output, bytes_max));
        let _ = send.send(read);
    });
    let read = receive.recv_timeout(limit);
    // One that prints too much, or for too long, is not waited for.
    let is_read = matches!(read, Ok(Some(Ok(Some(_)))));
    let status = ended(&mut child, if is_read { deadline } else { Instant::now() });
    let status = status.map_err(|error| failed(error.to_string()))?;
    let late = || failed(format!("it did not end within {} s", limit.as_secs_f32()));
    match (read, status) {
        (Ok(Some(Ok(None))), _) => Err(OutsideError::Long(bytes_max)),
        (Ok(Some(Ok(Some(text)))), Some(status)) if status.success() => Ok(text),
        (Ok(Some(Ok(Some(_)))), Some(status)) => Err(failed(status.to_string())),
        (Ok(Some(Err(error))), _) => Err(failed(error.to_string())),
        (Ok(_) | Err(_), _) => Err(late()),
    }
}

/// The bytes to the end; `None` if there are more than `bytes_max`.
fn bounded(source: impl Read, bytes_max: usize) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    // With room for all: no copy that a growing buffer leaves behind.
    let mut text = Zeroizing::new(Vec::with_capacity(bytes_max + 1));
    let most = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    source.take(most).read_to_end(&mut text)?;
    Ok((text.len() <= bytes_max).then_some(text))
}

/// Waits until a process has ended; one that has not by then is killed, and has no status.
fn ended(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(END_POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(words: &[&str], bytes_max: usize, limit_ms: u64) -> Result<Vec<u8>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let read = from_command_within(&words, bytes_max, Duration::from_millis(limit_ms));
        read.map(|text| text.to_vec()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_command_is_bounded_in_bytes_and_in_time_and_says_nothing_of_its_text() {
        assert_eq!(run(&["printf", "hush"], 4, 30_000), Ok(b"hush".to_vec()));
        assert_eq!(run(&["printf", "hush!"], 4, 30_000), Err("it has more than 4 bytes".to_owned()));
        // Output without end, a wait without end, and a wait after the text.
        assert_eq!(run(&["yes"], 4, 30_000), Err("it has more than 4 bytes".to_owned()));
        for words in [&["sleep", "1000"][..], &["sh", "-c", "printf hush; exec >&-; sleep 1000"]] {
            let error = run(words, 4, 200).unwrap_err();
            assert_eq!(error, format!("the command `{}` failed: it did not end within 0.2 s", words[0]));
        }
        let error = run(&["sh", "-c", "echo hush; echo hush >&2; exit 3"], 64, 30_000).unwrap_err();
        assert_eq!(error, "the command `sh` failed: exit status: 3");
        assert!(run(&["no-such-program"], 4, 30_000).unwrap_err().contains("`no-such-program` failed"));
        assert!(run(&[], 4, 30_000).is_err());
        // No shell expands what is written.
        assert_eq!(run(&["printf", "%s", "$HOME;x"], 64, 30_000), Ok(b"$HOME;x".to_vec()));
    }

    #[test]
    fn a_file_is_bounded_and_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, "hush").unwrap();
        for (mode, bytes_max, expect) in [
            (0o600, 4, "hush".to_owned()),
            (0o400, 4, "hush".to_owned()),
            (0o600, 3, "it has more than 3 bytes".to_owned()),
            (0o640, 4, format!("others may read the file {}: chmod 600 it", path.display())),
            (0o604, 4, format!("others may read the file {}: chmod 600 it", path.display())),
        ] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = from_file(&path, bytes_max).map(|text| String::from_utf8(text.to_vec()).unwrap());
            assert_eq!(read.unwrap_or_else(|error| error.to_string()), expect, "{mode:o}");
        }
        assert!(from_file(&folder.path().join("none"), 4).is_err());
        assert!(from_file(folder.path(), 4).is_err(), "a directory is no file");
    }
}
