//! The key that seals what is kept: 32 bytes from a file of the operator's, or printed by a
//! command.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use crate::outside::{OutsideError, from_command, from_file};

/// The longest text of a key, bytes.
const KEY_TEXT_BYTES_MAX: usize = 1024;

/// Source of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// `key_file`: only its owner may read it.
    File(PathBuf),
    /// `key_command`: a program and its arguments, run without a shell.
    Command(Vec<String>),
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text cannot be had.
    #[error("the key cannot be read: {0}")]
    Outside(#[from] OutsideError),
    /// The text is no key.
    #[error(
        "the key from {0} is not 32 bytes, in hexadecimal, in base64, or as they are: openssl rand -hex 32"
    )]
    Form(String),
}

/// Reads the key. Blocks, at most for half a minute.
///
/// # Errors
/// [`KeyError`]; no message has the text that was read.
pub fn read(source: &KeySource) -> Result<Zeroizing<[u8; 32]>, KeyError> {
    let (text, name) = match source {
        KeySource::File(path) => (
            from_file(path, KEY_TEXT_BYTES_MAX)?,
            path.display().to_string(),
        ),
        KeySource::Command(words) => (
            from_command(words, KEY_TEXT_BYTES_MAX)?,
            words.first().cloned().unwrap_or_default(),
        ),
    };
    key_of(&text).ok_or(KeyError::Form(name))
}

/// 32 bytes as they are, 64 hexadecimal digits, or base64.
fn key_of(text: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    if let Ok(key) = <[u8; 32]>::try_from(text) {
        return Some(Zeroizing::new(key));
    }
    let text = std::str::from_utf8(text).ok()?.trim();
    let hex = data_encoding::HEXLOWER_PERMISSIVE
        .decode(text.as_bytes())
        .ok()
        .map(Zeroizing::new);
    let base64 = || STANDARD.decode(text).ok().map(Zeroizing::new);
    let bytes = hex.filter(|bytes| bytes.len() == 32).or_else(base64)?;
    <[u8; 32]>::try_from(bytes.as_slice())
        .ok()
        .map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_read_from_a_private_file_or_a_command() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let hex = "00".repeat(31) + "07";
        let base64 = STANDARD.encode([7; 32]);
        for (text, mode, expect) in [
            (hex.as_str(), 0o600, Some(7)),
            (&format!("{hex}\n"), 0o400, Some(7)),
            (&base64, 0o600, Some(7)),
            ("abcdefghijklmnopqrstuvwxyz012345", 0o600, Some(b'5')),
            (&hex, 0o640, None),
            (&hex, 0o604, None),
            ("short", 0o600, None),
            ("", 0o600, None),
            (&(hex.clone() + "00"), 0o600, None),
        ] {
            let _ = std::fs::remove_file(&path);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = read(&KeySource::File(path.clone()));
            assert_eq!(read.ok().map(|key| key[31]), expect, "{text} {mode:o}");
        }
        assert!(read(&KeySource::File(folder.path().join("none"))).is_err());
        for (words, expect) in [
            (vec!["printf", &*hex], Some(7)),
            (vec!["false"], None),
            (vec!["no-such-program"], None),
            (vec!["printf", "short"], None),
            (vec![], None),
        ] {
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            assert_eq!(
                read(&KeySource::Command(words.clone()))
                    .ok()
                    .map(|key| key[31]),
                expect,
                "{words:?}"
            );
        }
    }
}
