//! Reading of small files: regular ones only, of a limited length.

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
