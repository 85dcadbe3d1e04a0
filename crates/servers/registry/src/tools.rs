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
    let mut plain = String::new();
    // Room is left for `server-`, or for a number.
    for one in server.chars().take(*NAME_CHARS.end() - 8) {
        plain.push(if one.is_ascii_alphanumeric() {
            one.to_ascii_lowercase()
        } else {
            '-'
        });
    }
    let mut stem = plain.trim_matches('-').to_owned();
    if !stem.starts_with(|one: char| one.is_ascii_lowercase()) || stem.len() < *NAME_CHARS.start() {
        stem = format!("server-{stem}").trim_end_matches('-').to_owned();
    }
    let mut name = stem.clone();
    let mut count = 1;
    while name == VALIDATE_MODULE || taken.contains(&name) {
        count += 1;
        name = format!("{stem}-{count}");
    }
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
