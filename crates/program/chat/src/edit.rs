//! A text in the person's editor.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use platform::random;

/// Longest text that is read back, in bytes.
pub const EDITED_BYTES_MAX: u64 = 4 << 20;
/// The editor if the environment names none.
const EDITOR: &str = "vi";

/// Has a text edited in `$VISUAL`, else `$EDITOR`, else `vi`. The file is the person's alone, and
/// is removed afterwards.
///
/// # Errors
/// Why there is no other text: the editor cannot be started or failed, or left the text as it was,
/// or empty.
pub fn edit_text(text: &str) -> Result<String, String> {
    let named = ["VISUAL", "EDITOR"]
        .into_iter()
        .filter_map(std::env::var_os);
    let editor = named
        .into_iter()
        .find(|value| !value.is_empty())
        .unwrap_or_else(|| EDITOR.into());
    let file = Scratch::new(text)
        .map_err(|error| format!("no file for the editor can be written: {error}"))?;
    // As git does: the variable may have arguments of its own.
    let script = format!("{} \"$@\"", editor.to_string_lossy());
    let status = Command::new("sh")
        .args(["-c", &script, "editor"])
        .arg(&file.0)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("the editor ended with {status}")),
        Err(error) => return Err(format!("the editor cannot be started: {error}")),
    }
    let edited =
        read(&file.0).map_err(|error| format!("the edited file cannot be read: {error}"))?;
    match edited.as_str() {
        same if same == text => Err("the text was left as it was".to_owned()),
        empty if empty.trim().is_empty() => Err("the text was emptied".to_owned()),
        _ => Ok(edited),
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = fs::File::open(path)?
        .take(EDITED_BYTES_MAX + 1)
        .read_to_string(&mut text)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > EDITED_BYTES_MAX {
        return Err(io::Error::other(format!(
            "it is longer than {EDITED_BYTES_MAX} bytes"
        )));
    }
    Ok(text)
}

/// A file that is removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(text: &str) -> io::Result<Self> {
        let name = format!("portmoot-{:016x}.json", u64::from_le_bytes(random()));
        let path = std::env::temp_dir().join(name);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let scratch = Self(path);
        file.write_all(text.as_bytes())?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // An editor may have moved it away.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_for_the_editor_is_private_and_is_removed() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = Scratch::new("{}").unwrap();
        let path = scratch.0.clone();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(read(&path).unwrap(), "{}");
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn what_an_editor_leaves_has_a_limit() {
        let most = usize::try_from(EDITED_BYTES_MAX).unwrap();
        let whole = Scratch::new(&"x".repeat(most)).unwrap();
        assert_eq!(read(&whole.0).unwrap().len(), most);
        let long = Scratch::new(&"x".repeat(most + 1)).unwrap();
        assert!(
            read(&long.0)
                .unwrap_err()
                .to_string()
                .contains("longer than")
        );
    }
}
