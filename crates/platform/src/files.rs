//! Files: opened only if they are regular ones.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file with these options. A pipe or a device, which could keep the program waiting or give text without end,
/// is refused.
///
/// # Errors
/// When the file cannot be opened, or is not regular.
pub fn open_regular(options: &mut OpenOptions, path: impl AsRef<Path>) -> io::Result<File> {
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default();
    let file = options.custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}
