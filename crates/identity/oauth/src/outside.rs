//! Texts of the operator's that no configuration has: in a file that its owner alone may read, or
//! printed by a command.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use platform::open_regular;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
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

/// The variable in which systemd names the folder of a service's credentials.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";
/// The rights of others, and of a group, to a file.
const OTHERS: u32 = 0o077;
/// The right of its group to read a file: credentials of systemd have it, for the service's user
/// alone.
const GROUP_READS: u32 = 0o040;

/// Reads a regular file that its owner alone may read, at most so many bytes. A credential of
/// systemd is its service's alone whatever its mode says.
///
/// # Errors
/// [`OutsideError`].
pub fn from_file(path: &Path, bytes_max: usize) -> Result<Zeroizing<Vec<u8>>, OutsideError> {
    let failed = |why| OutsideError::File {
        path: path.to_owned(),
        why,
    };
    let file = open_regular(OpenOptions::new().read(true), path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    let is_credential =
        std::env::var_os(CREDENTIALS).is_some_and(|folder| is_in(path, Path::new(&folder)));
    let allowed = if is_credential { GROUP_READS } else { 0 };
    if mode & OTHERS & !allowed != 0 {
        return Err(OutsideError::Open(path.to_owned()));
    }
    bounded(file, bytes_max)
        .map_err(failed)?
        .ok_or(OutsideError::Long(bytes_max))
}

/// Whether a path is beneath a folder, without a step out of it.
fn is_in(path: &Path, folder: &Path) -> bool {
    let climbs = path.components().any(|part| part == Component::ParentDir);
    folder.is_absolute() && !climbs && path.starts_with(folder)
}

/// Runs a command, a program and its arguments, without a shell and without input, and takes what
/// it prints, at most so many bytes. What it writes to its stderr is thrown away: it could have the
/// text. Blocks, at most for [`COMMAND_LIMIT`].
///
/// # Errors
/// [`OutsideError`].
pub fn from_command(
    words: &[String],
    bytes_max: usize,
) -> Result<Zeroizing<Vec<u8>>, OutsideError> {
    from_command_within(words, bytes_max, COMMAND_LIMIT)
}

fn from_command_within(
    words: &[String],
    bytes_max: usize,
    limit: Duration,
) -> Result<Zeroizing<Vec<u8>>, OutsideError> {
    let program = words.first().cloned().unwrap_or_default();
    let failed = |why: String| OutsideError::Command {
        program: program.clone(),
        why,
    };
    let (name, arguments) = words
        .split_first()
        .ok_or_else(|| failed("it is empty".to_owned()))?;
    let mut command = Command::new(name);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let deadline = Instant::now() + limit;
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let read = child
        .stdout
        .take()
        .map(|output| printed(output, bytes_max, deadline));
    // One that prints too much, or for too long, is not waited for.
    let is_read = matches!(read, Some(Ok(Printed::Whole(_))));
    let status = ended(&mut child, if is_read { deadline } else { Instant::now() });
    let status = status.map_err(|error| failed(error.to_string()))?;
    let late = || failed(format!("it did not end within {} s", limit.as_secs_f32()));
    match (read, status) {
        (Some(Ok(Printed::TooLong)), _) => Err(OutsideError::Long(bytes_max)),
        (Some(Ok(Printed::Whole(text))), Some(status)) if status.success() => Ok(text),
        (Some(Ok(Printed::Whole(_))), Some(status)) => Err(failed(status.to_string())),
        (Some(Err(error)), _) => Err(failed(error.to_string())),
        (Some(Ok(Printed::Whole(_) | Printed::Late)) | None, _) => Err(late()),
    }
}

/// Output of a command.
enum Printed {
    Whole(Zeroizing<Vec<u8>>),
    TooLong,
    /// Its end has not come in time.
    Late,
}

/// The output of a command to its end. A child of the command may hold the pipe open for ever, so
/// that no read waits longer than until the deadline.
fn printed(mut output: ChildStdout, bytes_max: usize, deadline: Instant) -> io::Result<Printed> {
    // With room for all: no copy that a growing buffer leaves behind.
    let mut text = Zeroizing::new(vec![0; bytes_max + 1]);
    let mut length = 0;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut ready = [PollFd::new(&output, PollFlags::IN)];
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut ready, Some(&left)) {
            Ok(0) => return Ok(Printed::Late),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let room = text.get_mut(length..).unwrap_or_default();
        match output.read(room)? {
            0 if length > bytes_max => return Ok(Printed::TooLong),
            0 => {
                text.truncate(length);
                return Ok(Printed::Whole(text));
            }
            more => length += more,
        }
    }
}

/// The bytes to the end; `None` if there are more than `bytes_max`.
fn bounded(source: impl Read, bytes_max: usize) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    // With room for all: no copy that a growing buffer leaves behind.
    let mut text = Zeroizing::new(Vec::with_capacity(bytes_max + 1));
    let most = u64::try_from(bytes_max)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
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
        read.map(|text| text.to_vec())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_command_is_bounded_in_bytes_and_in_time_and_says_nothing_of_its_text() {
        assert_eq!(run(&["printf", "hush"], 4, 30_000), Ok(b"hush".to_vec()));
        assert_eq!(
            run(&["printf", "hush!"], 4, 30_000),
            Err("it has more than 4 bytes".to_owned())
        );
        // Output without end, a wait without end, and a wait after the text.
        assert_eq!(
            run(&["yes"], 4, 30_000),
            Err("it has more than 4 bytes".to_owned())
        );
        for words in [
            &["sleep", "1000"][..],
            &["sh", "-c", "printf hush; exec >&-; sleep 1000"],
            // A child of its own holds the pipe open.
            &["sh", "-c", "printf hush; sleep 3 & exit 0"],
        ] {
            let error = run(words, 4, 200).unwrap_err();
            assert_eq!(
                error,
                format!(
                    "the command `{}` failed: it did not end within 0.2 s",
                    words[0]
                )
            );
        }
        let error = run(
            &["sh", "-c", "echo hush; echo hush >&2; exit 3"],
            64,
            30_000,
        )
        .unwrap_err();
        assert_eq!(error, "the command `sh` failed: exit status: 3");
        assert!(
            run(&["no-such-program"], 4, 30_000)
                .unwrap_err()
                .contains("`no-such-program` failed")
        );
        assert!(run(&[], 4, 30_000).is_err());
        // No shell expands what is written.
        assert_eq!(
            run(&["printf", "%s", "$HOME;x"], 64, 30_000),
            Ok(b"$HOME;x".to_vec())
        );
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
            (
                0o640,
                4,
                format!("others may read the file {}: chmod 600 it", path.display()),
            ),
            (
                0o604,
                4,
                format!("others may read the file {}: chmod 600 it", path.display()),
            ),
        ] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read =
                from_file(&path, bytes_max).map(|text| String::from_utf8(text.to_vec()).unwrap());
            assert_eq!(
                read.unwrap_or_else(|error| error.to_string()),
                expect,
                "{mode:o}"
            );
        }
        assert!(from_file(&folder.path().join("none"), 4).is_err());
        assert!(
            from_file(folder.path(), 4).is_err(),
            "a directory is no file"
        );
    }

    #[test]
    fn a_credential_is_beneath_its_folder_and_nowhere_else() {
        let folder = Path::new("/run/credentials/x");
        assert!(is_in(Path::new("/run/credentials/x/key"), folder));
        for (path, folder) in [
            ("/run/credentials/y/key", folder),
            ("/run/credentials/xy", folder),
            ("/run/credentials/x/../y/key", folder),
            ("key", Path::new("")),
        ] {
            assert!(!is_in(Path::new(path), folder), "{path}");
        }
    }
}
