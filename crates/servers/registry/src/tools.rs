//! Modules of servers: their names, and the files of their tools.

use std::collections::HashSet;

use schema::Module;

use crate::commit::{Files, VALIDATE_MODULE};

/// The length of a module's name (`buf.registry.module.v1`: `min_len`, `max_len`).
const NAME_CHARS: std::ops::RangeInclusive<usize> = 2..=100;

/// The name of a server's module: lower-case letters, digits and hyphens, as `buf` has them.
/// `taken` has the names that are given.
#[must_use]
pub fn module_name(server: &str, taken: &mut HashSet<String>) -> String {
    let plain = |one: char| {
        if one.is_ascii_alphanumeric() {
            one.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let name: String = server
        .chars()
        .map(plain)
        .take(*NAME_CHARS.end() - 8)
        .collect();
    let mut name = name.trim_matches('-').to_owned();
    if !name.starts_with(|one: char| one.is_ascii_lowercase()) || name.len() < *NAME_CHARS.start() {
        name = format!("server-{name}").trim_end_matches('-').to_owned();
    }
    let numbered = (2..).map(|count| format!("{name}-{count}"));
    let is_free = |name: &String| name != VALIDATE_MODULE && !taken.contains(name);
    let name = std::iter::once(name.clone())
        .chain(numbered)
        .find(is_free)
        .unwrap_or_default();
    taken.insert(name.clone());
    name
}

/// The files of the tools that `is_seen` says are seen. The others have a part in the names, so
/// that a file is the same for all who see it.
#[must_use]
pub fn files_of(tools: &Module, is_seen: impl Fn(&str) -> bool) -> Files {
    tools
        .sources_of(is_seen)
        .map(|(path, text)| (path.clone(), text.as_str().into()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_buf_allows() {
        let mut taken = HashSet::new();
        let mut name = |server: &str| module_name(server, &mut taken);
        assert_eq!(name("git"), "git");
        assert_eq!(name("My_Server.x"), "my-server-x");
        assert_eq!(name("my-server-x"), "my-server-x-2");
        assert_eq!(name("protovalidate"), "protovalidate-2");
        assert_eq!(name("9"), "server-9");
        assert_eq!(name("x"), "server-x");
        assert_eq!(name("дом"), "server");
        assert!(name(&"long".repeat(60)).len() <= 100);
    }
}
