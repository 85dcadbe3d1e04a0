//! Secrets that a configuration names and does not have: `{ command = [...] }`, `{ file = "..." }`,
//! `{ secret = "NAME" }`. They are read once the operator has agreed to the files, and kept until
//! the files are read again.

mod kept;
mod keyring;
mod name;
mod value;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::thread;

use oauth::Secret;
use oauth::outside::{from_command, from_file};
use platform::Mutex;

use crate::expand::{Env, FULL_PATH, expand_home};
use crate::hidden::{CALLER, COMMAND, FILE, PREFIX, SECRET, SOURCES};
use crate::node::{Location, Node, Value};
use crate::problem::{Problem, suggestion};
use crate::reader::{Problems, Table};
use crate::show::inline_in_full;
use kept::SealingKey;
pub use kept::{KeepError, KeptIn, KeptSecret, KeptSecrets, Removed, SECRETS_MAX};
pub use keyring::{KEYRING_LIMIT, KEYRING_PROMPT_LIMIT, KeyringError};
pub use name::{SECRET_NAME_CHARS_MAX, SecretName, SecretNameError};
use value::text_of;
pub use value::{NoSecret, SECRET_BYTES_MAX};

/// Secrets that are read at a time.
const READERS_MAX: usize = 8;

/// Code of the problem that a secret cannot be read.
pub const UNREAD: &str = "config_secret";

/// Naming of a secret in the configuration.
pub(crate) const FORMS: &str = "write { command = [\"op\", \"read\", \"op://...\"] }, { file = \"/path\" } or { secret = \"NAME\" }";

/// Where a secret comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SecretSource {
    /// Printed by a program with these arguments, run without a shell.
    Command(Vec<String>),
    /// In a file that its owner alone may read.
    File(PathBuf),
    /// Kept by the gateway under this name.
    Kept(SecretName),
}

/// A secret that a configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSecret {
    /// The full name of the key whose value it is, such as `servers.crm.env.API_KEY`.
    pub key: String,
    /// Where it comes from.
    pub source: SecretSource,
}

/// A secret as it was read, or why it was not.
type Reading = Result<Secret, NoSecret>;

/// Secrets as they were read last.
#[derive(Default)]
pub struct Secrets(Mutex<HashMap<SecretSource, Reading>>);

/// What is read besides the files of a configuration.
pub(crate) struct Outside<'a> {
    /// Environment variables.
    pub(crate) env: Env<'a>,
    /// Secrets; `None` as long as the operator may not have agreed to the files, which could name
    /// any command.
    secrets: Option<&'a Secrets>,
    /// The secrets that were named.
    named: RefCell<Vec<NamedSecret>>,
}

/// The value that a table names.
pub(crate) struct NamedValue {
    /// The table as it is written.
    pub(crate) written: String,
    /// The value with its prefix; `None` if secrets are not read yet.
    pub(crate) text: Option<Reading>,
}

impl Secrets {
    /// Reads these secrets anew, several at a time, and forgets all others. Blocks, for as long as
    /// the slowest commands take. Returns notes about those that could not be read and stay as they
    /// were.
    pub(crate) fn renew(&self, wanted: &[NamedSecret], kept: &KeptSecrets) -> Vec<String> {
        let mut sources: Vec<&SecretSource> = Vec::new();
        for one in wanted {
            if !sources.contains(&&one.source) {
                sources.push(&one.source);
            }
        }
        let left = Mutex::new(sources.iter());
        let read = Mutex::new(HashMap::new());
        let key = kept.sealing_key();
        let reader = || {
            loop {
                let Some(source) = left.lock().next().copied() else {
                    return;
                };
                let reading = source.read(kept, &key);
                read.lock().insert(source.clone(), reading);
            }
        };
        thread::scope(|scope| {
            for _ in 0..sources.len().min(READERS_MAX) {
                scope.spawn(reader);
            }
        });
        let mut known = self.0.lock();
        let before = std::mem::replace(&mut *known, read.into_inner());
        let mut notes = Vec::new();
        for (source, former) in before.into_iter().filter(|(_, former)| former.is_ok()) {
            let Some(reading) = known.get_mut(&source) else {
                continue;
            };
            let why = match reading {
                Err(no_secret) if !no_secret.is_unset => no_secret.why.clone(),
                Ok(_) | Err(_) => continue,
            };
            *reading = former;
            let keys = wanted
                .iter()
                .filter(|one| one.source == source)
                .map(|one| format!("`{}`", one.key));
            notes.push(format!(
                "{} stays as it was: {why}",
                keys.collect::<Vec<_>>().join(", ")
            ));
        }
        notes
    }

    /// Why a secret has no value; `None` if it has one, or was not asked for.
    pub fn trouble(&self, source: &SecretSource) -> Option<NoSecret> {
        self.0.lock().get(source)?.as_ref().err().cloned()
    }

    fn get(&self, source: &SecretSource) -> Reading {
        self.0
            .lock()
            .get(source)
            .cloned()
            .unwrap_or_else(|| Err(NoSecret::unread("it was not read".to_owned())))
    }
}

impl NamedSecret {
    /// The file that has it, if it is in one.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match &self.source {
            SecretSource::File(path) => Some(path.clone()),
            SecretSource::Command(_) | SecretSource::Kept(_) => None,
        }
    }

    /// Its name, if the gateway keeps it.
    #[must_use]
    pub fn kept(&self) -> Option<&SecretName> {
        match &self.source {
            SecretSource::Kept(name) => Some(name),
            SecretSource::Command(_) | SecretSource::File(_) => None,
        }
    }
}

impl fmt::Display for SecretSource {
    /// The program without its arguments, the path, or the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretSource::Command(words) => {
                write!(
                    f,
                    "the command `{}`",
                    words.first().map_or("", String::as_str)
                )
            }
            SecretSource::File(path) => write!(f, "the file {}", path.display()),
            SecretSource::Kept(name) => write!(f, "the kept secret `{name}`"),
        }
    }
}

impl SecretSource {
    /// Reads the secret. Blocks.
    fn read(&self, kept: &KeptSecrets, key: &SealingKey<'_>) -> Reading {
        let bytes = match self {
            SecretSource::Command(words) => from_command(words, SECRET_BYTES_MAX),
            SecretSource::File(path) => from_file(path, SECRET_BYTES_MAX),
            SecretSource::Kept(name) => return kept.get(name, key),
        };
        let bytes = bytes.map_err(|error| NoSecret::unread(error.to_string()))?;
        text_of(&bytes).map_err(NoSecret::unread)
    }
}

impl<'a> Outside<'a> {
    /// The environment alone: secrets are named and not read.
    pub(crate) fn unread(env: Env<'a>) -> Outside<'a> {
        Outside {
            env,
            secrets: None,
            named: RefCell::default(),
        }
    }

    /// The environment and the secrets that were read.
    pub(crate) fn with(env: Env<'a>, secrets: &'a Secrets) -> Outside<'a> {
        Outside {
            secrets: Some(secrets),
            ..Outside::unread(env)
        }
    }

    /// The secrets that the configuration names, in its order.
    pub(crate) fn into_named(self) -> Vec<NamedSecret> {
        self.named.into_inner()
    }

    /// The value that a table under this key names. `None` if the table names none, which is noted.
    pub(crate) fn secret(&self, node: &Node, key: &str, problems: &Problems) -> Option<NamedValue> {
        let source = source(node, key, self.env, problems)?;
        let prefix = node.get(PREFIX).and_then(Node::text).unwrap_or_default();
        let with_prefix = |secret: Secret| match prefix {
            "" => secret,
            prefix => Secret::new([prefix, secret.expose()].concat()),
        };
        let text = self
            .secrets
            .map(|secrets| secrets.get(&source).map(with_prefix));
        self.named.borrow_mut().push(NamedSecret {
            key: key.to_owned(),
            source,
        });
        Some(NamedValue {
            written: inline_in_full(node),
            text,
        })
    }
}

/// Notes that the secret under a key cannot be read.
pub(crate) fn note_unread(table: &Table<'_>, key: &str, no_secret: &NoSecret) {
    let message = format!(
        "the secret `{}` cannot be read: {}",
        table.full(key),
        no_secret.why
    );
    table.note_at(key, UNREAD, message, no_secret.fix.as_str());
}

/// Where the secret of this table comes from.
fn source(node: &Node, key: &str, env: Env<'_>, problems: &Problems) -> Option<SecretSource> {
    let wrong = |location: &Location, message: String, hint: String| {
        problems.note(
            Problem::new("config_value", message)
                .at(location)
                .hint(hint),
        );
    };
    if let Some(caller) = node.get(CALLER) {
        let message = format!("`{key}`: `caller` is for values of `env` and `headers` of a server");
        wrong(&caller.location, message, FORMS.to_owned());
        return None;
    }
    for entry in node.entries() {
        if entry.key != PREFIX && !SOURCES.contains(&entry.key.as_str()) {
            let message = format!("unknown key `{}` in `{key}`", entry.key);
            let hint = suggestion(&entry.key, SOURCES.into_iter().chain([PREFIX]));
            let problem = Problem::new("config_unknown_key", message).at(&entry.location);
            problems.note(problem.hint(hint.unwrap_or_else(|| FORMS.to_owned())));
            return None;
        }
    }
    if let Some(prefix) = node.get(PREFIX).filter(|prefix| prefix.text().is_none()) {
        let message = format!("`{key}.prefix` must be a text");
        wrong(
            &prefix.location,
            message,
            "for example \"Bearer \"".to_owned(),
        );
        return None;
    }
    match (node.get(COMMAND), node.get(FILE), node.get(SECRET)) {
        (Some(command), None, None) => {
            let words = words(command, env);
            if words.is_none() {
                let message =
                    format!("`{key}.command` must be a list of a program and its arguments");
                wrong(&command.location, message, FORMS.to_owned());
            }
            words.map(SecretSource::Command)
        }
        (None, Some(file), None) => {
            let path = file.text().filter(|path| !path.is_empty());
            let Some(path) = path else {
                wrong(
                    &file.location,
                    format!("`{key}.file` must be a path"),
                    FORMS.to_owned(),
                );
                return None;
            };
            let full = expand_home(path, env);
            let hint = || FULL_PATH.to_owned();
            full.map(|path| SecretSource::File(path.into()))
                .map_err(|error| wrong(&file.location, format!("`{key}.file`: {error}"), hint()))
                .ok()
        }
        (None, None, Some(secret)) => {
            let name = secret.text().map_or(Err(SecretNameError), SecretName::new);
            name.map(SecretSource::Kept)
                .map_err(|error| {
                    wrong(
                        &secret.location,
                        format!("`{key}.secret`: {error}"),
                        FORMS.to_owned(),
                    )
                })
                .ok()
        }
        (None, None, None) => {
            wrong(
                &node.location,
                format!("`{key}` names no secret"),
                FORMS.to_owned(),
            );
            None
        }
        (command, file, _) => {
            let first = if command.is_some() { COMMAND } else { FILE };
            let second = if command.is_some() && file.is_some() {
                FILE
            } else {
                SECRET
            };
            let message = format!("`{key}` has both `{first}` and `{second}`");
            problems.note(
                Problem::new("config_twice", message)
                    .at(&node.location)
                    .hint("keep one of them".to_owned()),
            );
            None
        }
    }
}

/// A program, with `~` expanded, and its arguments as they are written.
fn words(command: &Node, env: Env<'_>) -> Option<Vec<String>> {
    let Value::List(items) = &command.value else {
        return None;
    };
    let mut words: Vec<String> = items
        .iter()
        .map(|item| item.text().map(str::to_owned))
        .collect::<Option<_>>()?;
    let program = words.first_mut().filter(|program| !program.is_empty())?;
    if let Ok(full) = expand_home(program, env) {
        *program = full;
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    fn private(path: &Path, content: &[u8]) -> SecretSource {
        std::fs::write(path, content).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
        SecretSource::File(path.to_owned())
    }

    #[test]
    fn a_secret_is_a_text_without_its_line_end_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let longest = "x".repeat(SECRET_BYTES_MAX);
        let kept = KeptSecrets::default();
        for (content, expect) in [
            ("hush\n", Ok("hush")),
            ("hush\r\n\n", Ok("hush")),
            (" two words ", Ok(" two words ")),
            (longest.as_str(), Ok(longest.as_str())),
            (
                &(longest.clone() + "x"),
                Err("it has more than 16384 bytes"),
            ),
            ("\n", Err("it is empty")),
            ("a\0b", Err("it has a NUL")),
        ] {
            let read = private(&path, content.as_bytes()).read(&kept, &kept.sealing_key());
            let read = read
                .as_ref()
                .map(Secret::expose)
                .map_err(|none| none.why.as_str());
            assert_eq!(read, expect, "{} bytes", content.len());
        }
        let read = private(&path, b"\xff").read(&kept, &kept.sealing_key());
        assert_eq!(
            read.err().map(|none| none.why).as_deref(),
            Some("it is not UTF-8")
        );
    }

    #[test]
    fn what_cannot_be_read_again_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let named = |key: &str, source: &SecretSource| NamedSecret {
            key: key.into(),
            source: source.clone(),
        };
        // More than are read at a time.
        let sources: Vec<SecretSource> = (0..READERS_MAX + 2)
            .map(|number| {
                private(
                    &folder.path().join(number.to_string()),
                    number.to_string().as_bytes(),
                )
            })
            .collect();
        let wanted: Vec<NamedSecret> = sources
            .iter()
            .enumerate()
            .map(|(number, source)| named(&format!("k{number}"), source))
            .collect();
        let secrets = Secrets::default();
        let kept = KeptSecrets::default();
        let value = |number: usize| {
            secrets
                .get(&sources[number])
                .map(|secret| secret.expose().to_owned())
                .map_err(|none| none.why)
        };
        assert!(secrets.renew(&wanted, &kept).is_empty());
        for number in 0..sources.len() {
            assert_eq!(value(number), Ok(number.to_string()));
        }
        std::fs::remove_file(folder.path().join("0")).unwrap();
        private(&folder.path().join("1"), b"changed");
        let notes = secrets.renew(&wanted[..2], &kept);
        assert_eq!(
            (value(0), value(1)),
            (Ok("0".to_owned()), Ok("changed".to_owned()))
        );
        assert!(
            notes.len() == 1 && notes[0].starts_with("`k0` stays as it was: the file "),
            "{notes:?}"
        );
        assert_eq!(secrets.trouble(&sources[0]), None);
        // What is not wanted any more is forgotten, and what was never read has no value.
        assert!(value(2).is_err());
        let fresh = Secrets::default();
        assert!(fresh.renew(&wanted[..1], &kept).is_empty());
        assert!(
            fresh
                .trouble(&sources[0])
                .is_some_and(|none| none.why.contains("cannot be read"))
        );
    }
}
