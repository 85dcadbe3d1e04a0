//! Secrets that the gateway keeps itself: `{ secret = "NAME" }`, set by `portmoot secret set`.
//!
//! Each has a file in `DATA_DIR/secrets`. The value is in the keyring of the system under an id
//! that the file has, or in the file itself, sealed with the key that is outside of the directory
//! (`key_file`, `key_command`). A change of either is a change of the file, which a running gateway
//! watches. The directory alone gives away no value.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use auth::Sealer;
use oauth::Secret;
use oauth::key::{self, KeySource};
use oauth::outside::{OutsideError, from_file};
use platform::{random, replace_file, unix_ms};
use serde::{Deserialize, Serialize};

use super::keyring::{Keyring, KeyringError, SystemKeyring};
use super::name::SecretName;
use super::value::{NoSecret, text_of};

/// The secrets that are kept in one data directory.
pub const SECRETS_MAX: usize = 1_000;
/// The longest record of a secret: the largest value, sealed, and what is around it.
const RECORD_BYTES_MAX: usize = 24 << 10;
/// The folder in the data directory.
const FOLDER: &str = "secrets";
/// Purpose under which values are sealed.
const PURPOSE: &str = "named_secret";
const FORMAT: u8 = 1;

/// Where a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptIn {
    /// In the keyring of the system.
    Keyring,
    /// In its file, sealed.
    File,
}

/// A kept secret without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSecret {
    /// Its name.
    pub name: SecretName,
    /// Where its value is; `None` if its file cannot be read.
    pub kept_in: Option<KeptIn>,
    /// When it was set, Unix milliseconds; 0 if its file cannot be read.
    pub at_ms: u64,
}

/// A secret that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Why its value is still in the keyring, if it is. Nothing leads to it any more.
    pub left: Option<KeyringError>,
}

/// Why a secret is not kept, or not removed.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// There is no data directory.
    #[error("there is no data directory to keep secrets in")]
    NoDirectory,
    /// The file would not be sealed.
    #[error("there is no key to seal the secret with, and no keyring of the system: {0}")]
    NoKey(KeyringError),
    /// The key cannot be had.
    #[error("{0}")]
    Key(String),
    /// The keyring does not take it.
    #[error("{0}")]
    Keyring(#[from] KeyringError),
    /// The value is none.
    #[error("the value is none: {0}")]
    Value(String),
    /// There are too many.
    #[error("{SECRETS_MAX} secrets are kept already")]
    TooMany,
    /// The file system refused.
    #[error("{}: {why}", .path.display())]
    Files {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        why: io::Error,
    },
}

impl KeepError {
    /// Advice to the operator about the error.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoDirectory => "choose one: --data-dir DIR, or `data_dir` in [server]",
            Self::NoKey(_) => {
                "give the gateway a key: openssl rand -hex 32 > FILE; chmod 600 FILE; then key_file = \"FILE\" (or key_command) in [server]. \
                 Keep FILE outside of the data directory"
            }
            Self::Key(_) => {
                "the same key as before has to be there: correct `key_file` or `key_command` in [server]"
            }
            Self::Keyring(KeyringError::Locked) => {
                "unlock it and try again, or keep the secret in a sealed file: --in file"
            }
            Self::Keyring(_) => "keep the secret in a sealed file instead: --in file",
            Self::Value(_) => "pipe the value in, or use --from-file FILE",
            Self::TooMany => {
                "remove one that is not used: portmoot secret list; portmoot secret remove NAME"
            }
            Self::Files { .. } => "choose a directory that you may write: --data-dir DIR",
        }
    }
}

/// The record of a secret.
#[derive(Serialize, Deserialize)]
struct SecretRecord {
    format: u8,
    at_ms: u64,
    #[serde(flatten)]
    place: Place,
}

/// Where a value is, and how it is got there.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Place {
    /// Sealed, here.
    Sealed(String),
    /// The id in the keyring.
    Keyring(String),
}

/// Why there is no record.
enum NoRecord {
    Unset,
    Unreadable(String),
}

/// The secrets that are kept for one data directory.
#[derive(Debug, Clone)]
pub struct KeptSecrets {
    folder: Option<PathBuf>,
    key: Option<KeySource>,
    keyring: &'static dyn Keyring,
}

/// The key of sealed files, read when the first one is.
pub(crate) struct SealingKey<'a> {
    source: Option<&'a KeySource>,
    sealer: OnceLock<Result<Sealer, String>>,
}

impl SealingKey<'_> {
    /// The key, if one is configured.
    fn sealer(&self) -> Option<Result<&Sealer, String>> {
        let source = self.source?;
        let sealer = self.sealer.get_or_init(|| match key::read(source) {
            Ok(key) => Ok(Sealer::new(&key, None)),
            Err(error) => Err(error.to_string()),
        });
        Some(sealer.as_ref().map_err(Clone::clone))
    }
}

impl KeptSecrets {
    /// Secrets of a data directory. `key` seals what is in files.
    #[must_use]
    pub fn of(data_dir: Option<&Path>, key: Option<KeySource>) -> Self {
        Self {
            folder: data_dir.map(|dir| dir.join(FOLDER)),
            key,
            keyring: &SystemKeyring,
        }
    }

    /// The folder of their files.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The file of a secret, which may not be there.
    #[must_use]
    pub fn file(&self, name: &SecretName) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(name.as_str()))
    }

    /// Whether a secret of this name is kept.
    #[must_use]
    pub fn has(&self, name: &SecretName) -> bool {
        self.file(name)
            .is_some_and(|path| path.symlink_metadata().is_ok())
    }

    /// The key for the files that are opened together.
    pub(crate) fn sealing_key(&self) -> SealingKey<'_> {
        SealingKey {
            source: self.key.as_ref(),
            sealer: OnceLock::new(),
        }
    }

    /// The value of a secret. Blocks.
    pub(crate) fn get(&self, name: &SecretName, key: &SealingKey<'_>) -> Result<Secret, NoSecret> {
        let record = match self.record(name) {
            Ok(record) => record,
            Err(NoRecord::Unset) => return Err(NoSecret::unset(name)),
            Err(NoRecord::Unreadable(why)) => return Err(NoSecret::unread(why)),
        };
        match record.place {
            Place::Keyring(id) => self
                .keyring
                .get(&id)
                .map_err(|error| not_in_keyring(name, &error)),
            Place::Sealed(sealed) => opened(name, &sealed, key),
        }
    }

    /// Keeps a value in place of the one before: where it is wished, else in the keyring if there
    /// is one, else in a sealed file. Returns where. Blocks, also for a person who unlocks the
    /// keyring.
    ///
    /// # Errors
    /// [`KeepError`]; then the one before is kept.
    pub fn set(
        &self,
        name: &SecretName,
        value: &[u8],
        wish: Option<KeptIn>,
    ) -> Result<KeptIn, KeepError> {
        let value = text_of(value).map_err(KeepError::Value)?;
        let folder = self.prepared()?;
        if !self.has(name) && names(folder).map_err(|why| failed(folder, why))?.len() >= SECRETS_MAX
        {
            return Err(KeepError::TooMany);
        }
        let before = self.record(name).ok();
        let place = match wish {
            Some(KeptIn::File) => self.sealed(
                name,
                &value,
                &KeyringError::Absent("it was not asked".to_owned()),
            )?,
            Some(KeptIn::Keyring) => self.in_keyring(name, &value)?,
            None => match self.in_keyring(name, &value) {
                Err(absent @ KeyringError::Absent(_)) => self.sealed(name, &value, &absent)?,
                kept => kept?,
            },
        };
        let kept_in = place.kept_in();
        let record = SecretRecord {
            format: FORMAT,
            at_ms: unix_ms(),
            place,
        };
        let path = folder.join(name.as_str());
        let written = serde_json::to_vec(&record).map_err(io::Error::other);
        let written = written.and_then(|bytes| replace_file(&path, &bytes));
        if let Err(why) = written {
            // Nothing names what the keyring has now.
            self.forget(&record.place);
            return Err(failed(&path, why));
        }
        // Last: until the new record is on disk, the one before leads to this value.
        if let Some(before) = before {
            self.forget(&before.place);
        }
        Ok(kept_in)
    }

    /// Removes a secret; `None` if none of this name is kept.
    ///
    /// # Errors
    /// [`KeepError`]; then it is kept.
    pub fn remove(&self, name: &SecretName) -> Result<Option<Removed>, KeepError> {
        let path = self.file(name).ok_or(KeepError::NoDirectory)?;
        let record = self.record(name);
        match fs::remove_file(&path) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            removed => removed.map_err(|why| failed(&path, why))?,
        }
        let left = match record {
            Ok(SecretRecord {
                place: Place::Keyring(id),
                ..
            }) => self.keyring.remove(&id).err(),
            Ok(SecretRecord {
                place: Place::Sealed(_),
                ..
            })
            | Err(_) => None,
        };
        Ok(Some(Removed { left }))
    }

    /// The kept secrets by name.
    ///
    /// # Errors
    /// [`KeepError`].
    pub fn list(&self) -> Result<Vec<KeptSecret>, KeepError> {
        let folder = self.folder.as_deref().ok_or(KeepError::NoDirectory)?;
        let mut names = names(folder).map_err(|why| failed(folder, why))?;
        names.sort();
        let mut kept = Vec::with_capacity(names.len());
        for name in names {
            let record = self.record(&name).ok();
            kept.push(KeptSecret {
                name,
                kept_in: record.as_ref().map(|record| record.place.kept_in()),
                at_ms: record.map_or(0, |record| record.at_ms),
            });
        }
        Ok(kept)
    }

    fn record(&self, name: &SecretName) -> Result<SecretRecord, NoRecord> {
        let Some(path) = self.file(name) else {
            return Err(NoRecord::Unset);
        };
        // A link could lead to a file of another person's choice. The folder counts too.
        for part in path.parent().into_iter().chain([path.as_path()]) {
            match part.symlink_metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(NoRecord::Unset);
                }
                Ok(found) if found.is_symlink() => {
                    return Err(NoRecord::Unreadable(format!(
                        "{} is a link, which is not followed",
                        part.display()
                    )));
                }
                Ok(_) | Err(_) => {}
            }
        }
        let bytes = match from_file(&path, RECORD_BYTES_MAX) {
            Err(OutsideError::File { why, .. }) if why.kind() == io::ErrorKind::NotFound => {
                return Err(NoRecord::Unset);
            }
            read => read.map_err(|error| NoRecord::Unreadable(error.to_string()))?,
        };
        match serde_json::from_slice::<SecretRecord>(&bytes) {
            Ok(record) if record.format == FORMAT => Ok(record),
            _ => Err(NoRecord::Unreadable(format!(
                "{} is no record of a secret",
                path.display()
            ))),
        }
    }

    /// The folder, made if it is not there, which its owner alone may enter.
    fn prepared(&self) -> Result<&Path, KeepError> {
        let folder = self.folder.as_deref().ok_or(KeepError::NoDirectory)?;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        let is_own = made.and_then(|()| {
            let found = folder.symlink_metadata()?;
            if !found.is_dir() {
                return Err(io::Error::other("it is a link, which is not followed"));
            }
            if found.permissions().mode() & 0o077 != 0 {
                fs::set_permissions(folder, Permissions::from_mode(0o700))?;
            }
            Ok(())
        });
        is_own.map_err(|why| failed(folder, why))?;
        Ok(folder)
    }

    fn sealed(
        &self,
        name: &SecretName,
        value: &Secret,
        no_keyring: &KeyringError,
    ) -> Result<Place, KeepError> {
        let key = self.sealing_key();
        let sealer = key
            .sealer()
            .ok_or_else(|| KeepError::NoKey(no_keyring.clone()))?
            .map_err(KeepError::Key)?;
        Ok(Place::Sealed(sealer.seal(
            PURPOSE,
            name.as_str(),
            u64::MAX,
            random(),
            value.expose().as_bytes(),
        )))
    }

    fn in_keyring(&self, name: &SecretName, value: &Secret) -> Result<Place, KeyringError> {
        let id = data_encoding::HEXLOWER.encode(&random::<16>());
        self.keyring.add(&id, &format!("Portmoot: {name}"), value)?;
        Ok(Place::Keyring(id))
    }

    /// Has the keyring forget a value that nothing names any more. What it cannot remove now stays
    /// in it.
    fn forget(&self, place: &Place) {
        if let Place::Keyring(id) = place {
            let _ = self.keyring.remove(id);
        }
    }
}

/// None, without a data directory.
impl Default for KeptSecrets {
    fn default() -> Self {
        Self::of(None, None)
    }
}

impl Place {
    fn kept_in(&self) -> KeptIn {
        match self {
            Self::Sealed(_) => KeptIn::File,
            Self::Keyring(_) => KeptIn::Keyring,
        }
    }
}

/// Why a value that is in the keyring cannot be had from it.
fn not_in_keyring(name: &SecretName, error: &KeyringError) -> NoSecret {
    let fix = match error {
        KeyringError::Locked => {
            "unlock the keyring; SIGHUP has the gateway read it again".to_owned()
        }
        KeyringError::Unknown => format!("set it again: portmoot secret set {name}"),
        KeyringError::Absent(_) | KeyringError::Late(_) | KeyringError::Refused(_) => format!(
            "a gateway that does not run in your session needs it in a sealed file: portmoot secret set {name} --in file"
        ),
    };
    NoSecret::unread(error.to_string()).fix(fix)
}

/// The value of a sealed file.
fn opened(name: &SecretName, sealed: &str, key: &SealingKey<'_>) -> Result<Secret, NoSecret> {
    let sealer = match key.sealer() {
        Some(Ok(sealer)) => sealer,
        Some(Err(why)) => return Err(NoSecret::unread(why)),
        None => {
            let why = "it is sealed, and the gateway has no key".to_owned();
            return Err(NoSecret::unread(why).fix(
                "set `key_file` or `key_command` in [server], with the key of before".to_owned(),
            ));
        }
    };
    let text = match sealer.open(PURPOSE, name.as_str(), unix_ms(), sealed) {
        // Zeroizing: the bytes are the value.
        Ok(bytes) => text_of(&zeroize::Zeroizing::new(bytes)),
        Err(_) => Err("it was sealed with another key, or changed".to_owned()),
    };
    text.map_err(|why| {
        NoSecret::unread(why).fix(format!("set it again: portmoot secret set {name}"))
    })
}

/// The names of the files in the folder that are names of secrets; none if it is not there.
fn names(folder: &Path) -> io::Result<Vec<SecretName>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => Ok(read?
            .flatten()
            .filter_map(|file| SecretName::new(file.file_name().to_str()?).ok())
            .collect()),
    }
}

fn failed(path: &Path, why: io::Error) -> KeepError {
    KeepError::Files {
        path: path.to_owned(),
        why,
    }
}

#[cfg(test)]
mod tests;
