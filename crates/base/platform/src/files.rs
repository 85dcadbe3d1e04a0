//! Files: opened only if they are regular ones, and replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file with these options. A pipe or a device, which could keep the program
/// waiting or give text without end, is refused.
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

/// Replaces a file, which its owner alone may read, or makes it. A crash leaves the old or the new
/// one: the new one is written beside it, with `.new` at the end of its name, and moved there. When
/// this returns, the new one survives a crash.
///
/// # Errors
/// When it cannot be written or moved: the old one stays. When its folder cannot be written to the
/// disk: a crash may bring the old one back.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".{:016x}.new", u64::from_ne_bytes(crate::random())));
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&new, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written?;
    // The new name survives too.
    File::open(folder_of(path))?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_or_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        for content in [&b"one"[..], b"two"] {
            replace_file(&path, content).unwrap();
            assert_eq!(fs::read(&path).unwrap(), content);
        }
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        // A directory cannot be replaced by a file.
        let taken = dir.path().join("taken");
        fs::create_dir(&taken).unwrap();
        replace_file(&taken, b"three").unwrap_err();
        let mut left: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|one| one.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["a.json", "taken"]);
    }

    #[test]
    fn a_file_without_a_folder_is_in_the_current_one() {
        for (path, folder) in [("a", "."), ("a/b", "a"), ("/a", "/"), ("./a", ".")] {
            assert_eq!(folder_of(Path::new(path)), Path::new(folder));
        }
    }
}
