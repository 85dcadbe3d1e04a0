//! Operator key of a data directory: a file that only its owner can read, written anew at each
//! start of a gateway.

use std::fs::{remove_file, rename};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use crate::disk::{prepared, private, readable};
use crate::error::StoreError;

const FILE: &str = "operator.key";
/// Longest key, bytes.
const KEY_BYTES_MAX: u64 = 256;

/// Writes the key in place of the one before. The caller has locked the directory.
///
/// # Errors
/// [`StoreError::Io`] when the file cannot be written.
pub fn write_operator_key(dir: &Path, key: &str) -> Result<(), StoreError> {
    let new = dir.join(prepared(FILE));
    let path = dir.join(FILE);
    let failed = |cause| StoreError::io("write", &path, cause);
    // A file that is there already may have other permissions.
    remove_operator_file(&new)?;
    let mut file = private().create_new(true).open(&new).map_err(failed)?;
    file.write_all(key.as_bytes())
        .and_then(|()| rename(&new, &path))
        .map_err(failed)
}

/// Removes the key.
///
/// # Errors
/// [`StoreError::Io`] when there is one that cannot be removed.
pub fn remove_operator_key(dir: &Path) -> Result<(), StoreError> {
    remove_operator_file(&dir.join(FILE))
}

/// The key of the gateway that runs with a directory; `None` if there is none, or this user cannot
/// read it.
#[must_use]
pub fn operator_key(dir: &Path) -> Option<String> {
    let file = readable(&dir.join(FILE)).ok()?;
    let mut key = String::new();
    file.take(KEY_BYTES_MAX).read_to_string(&mut key).ok()?;
    Some(key.trim().to_owned()).filter(|key| !key.is_empty())
}

fn remove_operator_file(path: &Path) -> Result<(), StoreError> {
    match remove_file(path) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => {
            Err(StoreError::io("remove", path, cause))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_the_owner_can_read_the_key_and_a_new_one_replaces_it() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(operator_key(dir.path()), None);
        std::fs::write(dir.path().join("operator.key.new"), "left behind").unwrap();
        for key in ["pm_one", "pm_two"] {
            write_operator_key(dir.path(), key).unwrap();
            assert_eq!(operator_key(dir.path()).as_deref(), Some(key));
        }
        let mode = std::fs::metadata(dir.path().join("operator.key"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        remove_operator_key(dir.path()).unwrap();
        remove_operator_key(dir.path()).unwrap();
        assert_eq!(operator_key(dir.path()), None);
    }
}
