//! Process environment: variables, program name, small files.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Largest file that [`read_file`] reads, bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The text of a regular file. A pipe or a device, which could keep the program waiting or give text without end, is refused.
///
/// # Errors
/// When the file cannot be opened or read, is not regular, or is too long.
pub(crate) fn read_file(path: impl AsRef<Path>) -> io::Result<String> {
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    match file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)? as u64 {
        0..=FILE_BYTES_MAX => Ok(text),
        _ => Err(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes"))),
    }
}

/// An environment variable.
pub(crate) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The program name to use in printed commands: the path as typed, such as `target/release/portmoot`, else `portmoot`.
pub(crate) fn program_name() -> String {
    let name = std::env::args_os().next().and_then(|name| name.into_string().ok());
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+~".contains(c);
    name.filter(|name| name.contains('/') && name.chars().all(plain)).unwrap_or_else(|| "portmoot".to_owned())
}
