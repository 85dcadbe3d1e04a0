//! Values that several tables share: expanded texts, names, capabilities, rates.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use model::{Capabilities, Capability, IdError, ParticipantId, RateLimit, TopicName};
use topic::APPROVALS_MAX;
use topic::section::Sets;
use upstream::config::SecretText;
use wire::mcp::large::LIMIT_BYTES_MIN;

pub use crate::expand::Env;
pub(crate) use crate::expand::FULL_PATH;
use crate::expand::{ExpandError, expand, expand_home, expand_path};
use crate::hidden::{CALLER, PREFIX};
use crate::node::{Location, Node, Value};
use crate::problem::Problem;
use crate::reader::{Problems, Table};
use crate::secrets::{FORMS, NamedValue, NoSecret, Outside};
use crate::sets;
use crate::show::inline_in_full;

/// The tables of a server whose values may be each caller's own key.
const KEYED: [&str; 2] = ["env", "headers"];

/// The environment and the secrets for the texts of one server. A variable that is not set, or a
/// secret that cannot be read, concerns this server alone.
pub(crate) struct Variables<'a> {
    env: Env<'a>,
    /// `None` for a disabled server, which needs no secret.
    outside: Option<&'a Outside<'a>>,
    unset: RefCell<Vec<Unset>>,
    unread: RefCell<Vec<Unread>>,
    /// Label of the key that each caller enters for the server, if it wants one.
    key_label: RefCell<Option<String>>,
}

/// The longest name of a caller's key, in characters.
pub const KEY_LABEL_CHARS_MAX: usize = 100;

/// A variable that a text needs and that is not set.
#[derive(Debug, Clone)]
pub(crate) struct Unset {
    /// Its name.
    pub(crate) variable: String,
    /// The full name of the key whose text needs it.
    pub(crate) key: String,
    /// The location of the text.
    pub(crate) location: Location,
}

/// A secret that a server needs and that cannot be read.
#[derive(Debug, Clone)]
pub(crate) struct Unread {
    /// The full name of its key.
    pub(crate) key: String,
    /// Why it has no value.
    pub(crate) no_secret: NoSecret,
    /// The location of the table that names it.
    pub(crate) location: Location,
}

impl<'a> Variables<'a> {
    /// Variables of an enabled server.
    pub(crate) fn of(outside: &'a Outside<'a>) -> Variables<'a> {
        Variables {
            outside: Some(outside),
            ..Variables::of_disabled(outside.env)
        }
    }

    /// Variables of a disabled server: no secret is read for it.
    pub(crate) fn of_disabled(env: Env<'a>) -> Variables<'a> {
        Variables {
            env,
            outside: None,
            unset: RefCell::default(),
            unread: RefCell::default(),
            key_label: RefCell::default(),
        }
    }

    pub(crate) fn env(&self) -> Env<'a> {
        self.env
    }

    /// The variables that the texts so far need and that are not set.
    pub(crate) fn unset(&self) -> Vec<Unset> {
        self.unset.borrow().clone()
    }

    /// The secrets that are needed so far and cannot be read.
    pub(crate) fn unread(&self) -> Vec<Unread> {
        self.unread.borrow().clone()
    }

    /// Label of the key that each caller enters for the server; `None` if it wants none.
    pub(crate) fn key_label(&self) -> Option<String> {
        self.key_label.borrow().clone()
    }

    /// The place of each caller's own key: `{ caller = "LABEL" }`.
    fn of_caller(
        &self,
        label: &Node,
        node: &Node,
        key: &str,
        problems: &Problems,
    ) -> Option<SecretText> {
        const EXAMPLE: &str =
            "for example { caller = \"API key of the CRM\", prefix = \"Bearer \" }";
        for entry in node.entries() {
            if ![CALLER, PREFIX].contains(&entry.key.as_str()) {
                let message = format!("`{key}` has both `caller` and `{}`", entry.key);
                problems.note_value(&entry.location, message, EXAMPLE);
                return None;
            }
        }
        let text = label.text().unwrap_or_default();
        if !is_key_label(text) {
            let message = format!(
                "`{key}.caller` must say in at most {KEY_LABEL_CHARS_MAX} characters what the key is called"
            );
            problems.note_value(&label.location, message, EXAMPLE);
            return None;
        }
        let prefix = match node.get(PREFIX) {
            None => "",
            Some(prefix) => match prefix.text() {
                Some(text) => text,
                None => {
                    let message = format!("`{key}.prefix` must be a text");
                    problems.note_value(&prefix.location, message, EXAMPLE);
                    return None;
                }
            },
        };
        let mut known = self.key_label.borrow_mut();
        if known.as_ref().is_some_and(|known| known != text) {
            let message = format!("`{key}.caller`: the server has another key of each caller");
            let hint = "each caller enters one key for a server: give all its places the same text";
            problems.note_value(&label.location, message, hint);
            return None;
        }
        *known = Some(text.to_owned());
        Some(SecretText::of_caller(prefix, inline_in_full(node)))
    }

    /// The secret that a table names, and the table as it is written. Until secrets are read, for a
    /// disabled server, and for one that cannot be read, the text is empty.
    pub(crate) fn named(&self, node: &Node, key: &str, problems: &Problems) -> Option<SecretText> {
        let Some(outside) = self.outside else {
            return Some(SecretText::new(""));
        };
        let NamedValue { written, text } = outside.secret(node, key, problems)?;
        match text {
            None => Some(SecretText::expanded("", written)),
            Some(Ok(secret)) => Some(SecretText::expanded(secret.expose(), written)),
            Some(Err(no_secret)) => {
                self.unread.borrow_mut().push(Unread {
                    key: key.to_owned(),
                    no_secret,
                    location: node.location.clone(),
                });
                Some(SecretText::expanded("", written))
            }
        }
    }

    /// Expands a text; it stays unexpanded if a variable is not set, or after a problem.
    pub(crate) fn secret(
        &self,
        text: &str,
        key: String,
        location: &Location,
        problems: &Problems,
    ) -> SecretText {
        self.expanded(expand(text, self.env), text, key, location, problems)
    }

    /// The expanded text under a key.
    pub(crate) fn secret_at(&self, table: &Table<'_>, key: &'static str) -> Option<SecretText> {
        let text = table.text(key)?;
        Some(self.secret(text, table.full(key), table.place(key), table.problems()))
    }

    /// The expanded path under a key: `~` and variables.
    pub(crate) fn path_at(&self, table: &Table<'_>, key: &'static str) -> Option<SecretText> {
        let text = table.text(key)?;
        let expanded = expand_path(text, self.env);
        Some(self.expanded(
            expanded,
            text,
            table.full(key),
            table.place(key),
            table.problems(),
        ))
    }

    /// The expanded texts of a table of texts: `env`, `headers`. Numbers and flags count as their
    /// spelling; a table names a secret.
    pub(crate) fn secrets_at(
        &self,
        table: &Table<'_>,
        key: &'static str,
    ) -> Vec<(String, SecretText)> {
        let mut secrets = Vec::new();
        for entry in table.entries(key) {
            let full = format!("{}.{}", table.full(key), entry.key);
            let text = match &entry.node.value {
                Value::Text(text) => text.clone(),
                Value::Integer(number) => number.to_string(),
                Value::Decimal(number) => number.to_string(),
                Value::Flag(flag) => flag.to_string(),
                Value::Table(_) => {
                    let named = match entry.node.get(CALLER) {
                        Some(label) if KEYED.contains(&key) => {
                            self.of_caller(label, &entry.node, &full, table.problems())
                        }
                        _ => self.named(&entry.node, &full, table.problems()),
                    };
                    secrets.extend(named.map(|secret| (entry.key.clone(), secret)));
                    continue;
                }
                Value::List(_) => {
                    let message = format!("`{full}` must be a text, or name a secret");
                    table.problems().note_value(&entry.location, message, FORMS);
                    continue;
                }
            };
            let secret = self.secret(&text, full, &entry.node.location, table.problems());
            secrets.push((entry.key.clone(), secret));
        }
        secrets
    }

    /// A text after its expansion; as it is written if that failed, which is noted.
    pub(crate) fn expanded(
        &self,
        result: Result<String, ExpandError>,
        text: &str,
        key: String,
        location: &Location,
        problems: &Problems,
    ) -> SecretText {
        match result {
            Ok(expanded) => return SecretText::expanded(expanded, text),
            Err(ExpandError::Unset(variable)) => {
                self.unset.borrow_mut().push(Unset {
                    variable,
                    key,
                    location: location.clone(),
                });
            }
            Err(error) => note_expansion(&error, &key, location, problems),
        }
        SecretText::new(text)
    }
}

/// Whether people can be asked for a key by this text.
fn is_key_label(text: &str) -> bool {
    !text.trim().is_empty()
        && text.chars().count() <= KEY_LABEL_CHARS_MAX
        && !text.chars().any(json::visible::is_hidden)
}

/// Notes that a text cannot be expanded.
fn note_expansion(error: &ExpandError, key: &str, location: &Location, problems: &Problems) {
    let hint = match error {
        ExpandError::Unset(name) => format!("set {name}"),
        ExpandError::Open => "write ${NAME}, or $${ for a literal ${".into(),
        ExpandError::Name(name) if name.starts_with("input:") => {
            "the gateway does not support inputs: put the value in an environment variable and write ${NAME}"
                .into()
        }
        ExpandError::User(_) => FULL_PATH.into(),
        ExpandError::Name(_) => "write ${NAME}, ${NAME:-default} or ${env:NAME}".into(),
    };
    problems.note(
        Problem::new("config_variable", format!("`{key}`: {error}"))
            .at(location)
            .hint(hint),
    );
}

/// The path under a key, in which only `~` is expanded.
pub(crate) fn plain_path_at(table: &Table<'_>, key: &'static str, env: Env<'_>) -> Option<PathBuf> {
    let text = table.text(key)?;
    match expand_home(text, env) {
        Ok(path) => Some(PathBuf::from(path)),
        Err(error) => {
            note_expansion(&error, &table.full(key), table.place(key), table.problems());
            None
        }
    }
}

/// The text under a key, in which variables are expanded.
pub(crate) fn plain_text_at(table: &Table<'_>, key: &'static str, env: Env<'_>) -> Option<String> {
    let text = table.text(key)?;
    match expand(text, env) {
        Ok(text) => Some(text),
        Err(error) => {
            note_expansion(&error, &table.full(key), table.place(key), table.problems());
            None
        }
    }
}

/// Parses the name of a participant; notes a problem if it is not valid.
pub(crate) fn participant_id(
    name: &str,
    location: &Location,
    problems: &Problems,
) -> Option<ParticipantId> {
    noted(ParticipantId::new(name), name, location, problems)
}

/// Parses the name of a topic; notes a problem if it is not valid.
pub(crate) fn topic_name(
    name: &str,
    location: &Location,
    problems: &Problems,
) -> Option<TopicName> {
    noted(TopicName::new(name), name, location, problems)
}

/// The capabilities under `capabilities`: texts, or `{ kind = "...", to = [...] }`. One that names
/// a set of tools is one for each pattern of the set.
pub(crate) fn capabilities(table: &Table<'_>, sets: &Sets) -> Option<Arc<Capabilities>> {
    capabilities_under(table, "capabilities", sets)
}

/// The capabilities that a list under this key has.
pub(crate) fn capabilities_under(
    table: &Table<'_>,
    key: &'static str,
    sets: &Sets,
) -> Option<Arc<Capabilities>> {
    let items = table.list(key)?;
    let list = CapabilityList { table, key };
    Some(Arc::new(
        items
            .iter()
            .flat_map(|item| list.capability(item, sets))
            .collect(),
    ))
}

/// The limit of results of tools, `result_bytes_max`; 0 is no limit. One below the least that
/// leaves room for a page is a problem.
pub(crate) fn result_bytes_max(table: &Table<'_>) -> Option<usize> {
    let key = "result_bytes_max";
    let limit = table.bytes(key)?;
    if limit == 0 {
        return Some(0);
    }
    if limit < LIMIT_BYTES_MIN {
        let kib = LIMIT_BYTES_MIN >> 10;
        let message = format!("`{}` is less than {kib} KiB", table.full(key));
        table.note_value(
            key,
            message,
            "write a larger one, such as \"64KiB\", or 0 for no limit",
        );
    }
    Some(limit.max(LIMIT_BYTES_MIN))
}

/// A rate: `"100/s"`, `"600/min"`, or `{ limit = "100/s", burst = 200 }`.
pub(crate) fn rate(table: &Table<'_>, key: &'static str) -> Option<RateLimit> {
    let node = table.get(key)?;
    let rate = match &node.value {
        Value::Text(limit) => parse_rate(limit, None),
        Value::Table(_) => {
            let inner = table.table(key)?;
            let limit = inner.text("limit");
            let burst = inner.count("burst");
            inner.finish();
            limit.and_then(|limit| parse_rate(limit, burst))
        }
        Value::Integer(_) | Value::Decimal(_) | Value::Flag(_) | Value::List(_) => None,
    };
    if rate.is_none() {
        let message = format!("`{}` is not a rate", table.full(key));
        let hint = "write \"100/s\", \"600/min\", or { limit = \"100/s\", burst = 200 }";
        table.note_value(key, message, hint);
    }
    rate
}

fn parse_rate(limit: &str, burst: Option<u64>) -> Option<RateLimit> {
    let (number, unit) = limit.split_once('/')?;
    let number: u32 = number.trim().parse().ok()?;
    let per_minute = match unit.trim() {
        "s" => number.checked_mul(60)?,
        "m" | "min" => number,
        _ => return None,
    };
    let burst = match burst {
        Some(burst) => u32::try_from(burst).ok()?,
        None => number,
    };
    // A rate or a burst of 0 would admit no call at all.
    (number > 0 && burst > 0).then_some(RateLimit { per_minute, burst })
}

/// A capability as it is written: a text, or a table with addressees.
struct WrittenCapability<'a> {
    kind: &'a str,
    to: Option<&'a Node>,
}

/// A list of capabilities in a table.
#[derive(Clone, Copy)]
struct CapabilityList<'t> {
    table: &'t Table<'t>,
    key: &'static str,
}

/// The parts of a capability that a value is.
///
/// # Errors
/// The message, if it has another form.
fn written_capability(item: &Node) -> Result<WrittenCapability<'_>, String> {
    match &item.value {
        Value::Text(kind) => Ok(WrittenCapability { kind, to: None }),
        Value::Table(entries) => {
            let unknown = entries
                .iter()
                .find(|entry| entry.key != "kind" && entry.key != "to");
            if let Some(entry) = unknown {
                return Err(format!(
                    "unknown key `{}` in a capability: it has `kind` and `to`",
                    entry.key
                ));
            }
            match item.get("kind").and_then(Node::text) {
                Some(kind) => Ok(WrittenCapability {
                    kind,
                    to: item.get("to"),
                }),
                None => Err("a capability table needs a `kind`".to_owned()),
            }
        }
        other => Err(format!(
            "a capability is a text or {{ kind, to }}, not {}",
            other.what()
        )),
    }
}

impl CapabilityList<'_> {
    /// The capabilities that a value is: one, or those of a set.
    fn capability(self, item: &Node, sets: &Sets) -> Vec<Capability> {
        let written = match written_capability(item) {
            Ok(written) => written,
            Err(message) => {
                self.note(item, &message);
                return Vec::new();
            }
        };
        let Some((act, name)) = sets::named(written.kind) else {
            return self
                .parse(item, written.kind, written.to)
                .into_iter()
                .collect();
        };
        sets::of(sets, name, self.table, self.key, &item.location)
            .iter()
            .filter_map(|pattern| self.parse(item, &format!("{act}{pattern}"), written.to))
            .collect()
    }

    /// The capability of this kind, for these addressees; notes a problem if there is none.
    fn parse(self, item: &Node, kind: &str, to: Option<&Node>) -> Option<Capability> {
        let parsed = match to {
            None => Capability::parse(kind),
            Some(to) => {
                Capability::parse(kind).and_then(|capability| capability.to(addressees(to)))
            }
        };
        match parsed {
            Ok(capability) => Some(capability),
            Err(error) => {
                let message = format!("`{kind}` is not a capability: {error}");
                self.note(item, &message);
                None
            }
        }
    }

    fn note(self, item: &Node, message: &str) {
        let message = format!("`{}`: {message}", self.table.full(self.key));
        let problem = Problem::new("config_capability", message).at(&item.location);
        self.table
            .problems()
            .note(problem.hint("for example \"mcp/request:tools/call:read_*\" or \"chat\""));
    }
}

/// The addressees. A value that is not a text or a list of texts gives an empty list, which is not
/// valid.
fn addressees(node: &Node) -> Vec<&str> {
    match &node.value {
        Value::List(items) => items
            .iter()
            .map(Node::text)
            .collect::<Option<_>>()
            .unwrap_or_default(),
        _ => node.text().into_iter().collect(),
    }
}

/// The parsed name; notes a problem if it is not valid.
fn noted<T>(
    parsed: Result<T, IdError>,
    name: &str,
    location: &Location,
    problems: &Problems,
) -> Option<T> {
    match parsed {
        Ok(parsed) => Some(parsed),
        Err(error) => {
            let message = format!("`{}` is not a valid name: {error}", name.escape_debug());
            problems.note(Problem::new("config_name", message).at(location));
            None
        }
    }
}

/// A number of participants that must approve.
pub(crate) fn approvals(table: &Table<'_>, key: &'static str) -> Option<usize> {
    let count = usize::try_from(table.count(key)?).unwrap_or(usize::MAX);
    if !(1..=APPROVALS_MAX).contains(&count) {
        let message = format!("`{}` is not from 1 to {APPROVALS_MAX}", table.full(key));
        table.note_value(key, message, "so many different participants must approve");
        return None;
    }
    Some(count)
}
