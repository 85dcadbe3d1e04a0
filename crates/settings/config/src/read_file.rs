//! Reading of small files: regular ones only, of a limited length.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::path::Path;

use platform::open_regular;

/// Largest file that [`read_file`] reads, bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The text of a regular file. A pipe or a device, which could keep the program waiting or give
/// text without end, is refused.
///
/// # Errors
/// When the file cannot be opened or read, is not regular, or is too long.
pub(crate) fn read_file(path: impl AsRef<Path>) -> io::Result<String> {
    let file = open_regular(OpenOptions::new().read(true), path)?;
    let mut text = String::new();
    match file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)? as u64 {
        0..=FILE_BYTES_MAX => Ok(text),
        _ => Err(io::Error::other(format!(
            "it has more than {FILE_BYTES_MAX} bytes"
        ))),
    }
}
