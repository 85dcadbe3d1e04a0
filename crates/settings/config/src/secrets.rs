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
use crate::node::{Node, Value};
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

/// Sources of a configuration besides its files: the environment, and the secrets that it names.
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
        // Without the lock: commands take their time, and a running gateway goes on.
        let readings = read_all(wanted, kept);
        let mut known = self.0.lock();
        let before = std::mem::replace(&mut *known, readings);
        let mut notes = Vec::new();
        for (source, former) in before {
            let Some(Err(no_secret)) = known.get(&source) else {
                continue;
            };
            // An operator who removes a kept secret means it. What else cannot be read, may be
            // readable again in a moment.
            if former.is_err() || no_secret.is_unset {
                continue;
            }
            let keys: Vec<String> = wanted
                .iter()
                .filter(|one| one.source == source)
                .map(|one| format!("`{}`", one.key))
                .collect();
            notes.push(format!(
                "{} stays as it was: {}",
                keys.join(", "),
                no_secret.why
            ));
            known.insert(source, former);
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

/// Reads the secrets, each source once, several at a time.
fn read_all(wanted: &[NamedSecret], kept: &KeptSecrets) -> HashMap<SecretSource, Reading> {
    let mut sources: Vec<&SecretSource> = Vec::new();
    for one in wanted {
        if !sources.contains(&&one.source) {
            sources.push(&one.source);
        }
    }
    let left = Mutex::new(sources.iter());
    let readings = Mutex::new(HashMap::new());
    let key = kept.sealing_key();
    thread::scope(|scope| {
        for _ in 0..sources.len().min(READERS_MAX) {
            scope.spawn(|| {
                loop {
                    // A statement of its own: the lock is not held while a secret is read.
                    let Some(source) = left.lock().next().copied() else {
                        return;
                    };
                    let reading = source.read(kept, &key);
                    readings.lock().insert(source.clone(), reading);
                }
            });
        }
    });
    readings.into_inner()
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
        let text = self.secrets.map(|secrets| {
            secrets
                .get(&source)
                .map(|secret| Secret::new([prefix, secret.expose()].concat()))
        });
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

/// Where the secret of this table comes from; `None` if it does not say, which is noted.
fn source(node: &Node, key: &str, env: Env<'_>, problems: &Problems) -> Option<SecretSource> {
    if let Some(caller) = node.get(CALLER) {
        let message = format!("`{key}`: `caller` is for values of `env` and `headers` of a server");
        problems.note_value(&caller.location, message, FORMS);
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
    if let Some(prefix) = node.get(PREFIX)
        && prefix.text().is_none()
    {
        let message = format!("`{key}.prefix` must be a text");
        problems.note_value(&prefix.location, message, "for example \"Bearer \"");
        return None;
    }
    match (node.get(COMMAND), node.get(FILE), node.get(SECRET)) {
        (Some(command), None, None) => command_source(command, key, env, problems),
        (None, Some(file), None) => file_source(file, key, env, problems),
        (None, None, Some(secret)) => kept_source(secret, key, problems),
        (None, None, None) => {
            let message = format!("`{key}` names no secret");
            problems.note_value(&node.location, message, FORMS);
            None
        }
        _ => {
            let mut both = SOURCES
                .into_iter()
                .filter(|source| node.get(source).is_some());
            let first = both.next().unwrap_or_default();
            let second = both.next().unwrap_or_default();
            let message = format!("`{key}` has both `{first}` and `{second}`");
            let problem = Problem::new("config_twice", message).at(&node.location);
            problems.note(problem.hint("keep one of them"));
            None
        }
    }
}

/// A secret that a program prints.
fn command_source(
    command: &Node,
    key: &str,
    env: Env<'_>,
    problems: &Problems,
) -> Option<SecretSource> {
    let words = words(command, env);
    if words.is_none() {
        let message = format!("`{key}.command` must be a list of a program and its arguments");
        problems.note_value(&command.location, message, FORMS);
    }
    words.map(SecretSource::Command)
}

/// A secret in a file.
fn file_source(file: &Node, key: &str, env: Env<'_>, problems: &Problems) -> Option<SecretSource> {
    let path = file.text().unwrap_or_default();
    if path.is_empty() {
        let message = format!("`{key}.file` must be a path");
        problems.note_value(&file.location, message, FORMS);
        return None;
    }
    match expand_home(path, env) {
        Ok(full) => Some(SecretSource::File(full.into())),
        Err(error) => {
            let message = format!("`{key}.file`: {error}");
            problems.note_value(&file.location, message, FULL_PATH);
            None
        }
    }
}

/// A secret that the gateway keeps.
fn kept_source(secret: &Node, key: &str, problems: &Problems) -> Option<SecretSource> {
    match secret.text().map_or(Err(SecretNameError), SecretName::new) {
        Ok(name) => Some(SecretSource::Kept(name)),
        Err(error) => {
            let message = format!("`{key}.secret`: {error}");
            problems.note_value(&secret.location, message, FORMS);
            None
        }
    }
}

/// A program, with `~` expanded, and its arguments as they are written. `None` if the value is no
/// list of texts, or names no program.
fn words(command: &Node, env: Env<'_>) -> Option<Vec<String>> {
    let Value::List(items) = &command.value else {
        return None;
    };
    let mut words = Vec::with_capacity(items.len());
    for item in items {
        words.push(item.text()?.to_owned());
    }
    let program = words.first_mut()?;
    if program.is_empty() {
        return None;
    }
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
