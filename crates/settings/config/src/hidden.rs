//! Secrets among the texts of a tree, which are hidden where it is shown.

use crate::node::{Node, TreeEntry, Value};

/// Tables whose texts are secrets unless they have a variable.
pub(crate) const SECRET_TABLES: [&str; 3] = ["env", "headers", "query"];
/// Keys whose texts are secrets, which are refused.
pub(crate) const SECRET_KEYS: [&str; 2] = ["token", "client_secret"];
/// Text that is shown instead of a secret.
pub(crate) const HIDDEN: &str = "(hidden)";

/// The keys of a table that names a secret: a command that prints it, a file that has it, the name
/// of a kept one, a text before it.
pub(crate) const COMMAND: &str = "command";
pub(crate) const FILE: &str = "file";
pub(crate) const SECRET: &str = "secret";
/// The key of a table that stands for each caller's own key; its text is what the key is called.
pub(crate) const CALLER: &str = "caller";
pub(crate) const PREFIX: &str = "prefix";
/// Keys of which a table that names a secret has one.
pub(crate) const SOURCES: [&str; 3] = [COMMAND, FILE, SECRET];

/// Whether a value is a table that names a secret, or stands for callers' keys, so that its texts
/// are none.
pub(crate) fn names_secret(node: &Node) -> bool {
    let names_one = SOURCES
        .iter()
        .chain([&CALLER])
        .any(|source| node.get(source).is_some());
    // With any other key it is not such a table, and a text in it may be the secret itself.
    names_one
        && node.entries().iter().all(|entry| match entry.key.as_str() {
            COMMAND => matches!(entry.node.value, Value::List(_)),
            FILE | SECRET | CALLER | PREFIX => entry.node.text().is_some(),
            _ => false,
        })
}

/// Whether the texts of an entry are secrets: it is a table of secrets, in one, or a key whose text
/// is one, and names none.
pub(crate) fn is_hidden(entry: &TreeEntry, in_secrets: bool) -> bool {
    let key = entry.key.as_str();
    let is_value = in_secrets || SECRET_KEYS.contains(&key);
    if is_value {
        !names_secret(&entry.node)
    } else {
        SECRET_TABLES.contains(&key)
    }
}
