//! Names of tools and arguments: what MCP and model providers allow, each name once.

use std::collections::{HashMap, HashSet};

/// The longest name of a tool and of an argument, in characters: that of the strictest model
/// providers.
pub const TOOL_NAME_CHARS_MAX: usize = 64;

/// Characters of a wanted name that are looked at.
const WANTED_CHARS_MAX: usize = 1024;

/// A name of ASCII letters, digits, `_`, `-` and `.`. Other characters become one `_` for each run
/// of them.
fn fitting(wanted: &str) -> String {
    let mut name = String::new();
    for c in wanted.chars().take(WANTED_CHARS_MAX) {
        if c.is_ascii_alphanumeric() || "_-.".contains(c) {
            name.push(c);
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    let name = name.trim_matches('_');
    // All are ASCII.
    name.chars().take(TOOL_NAME_CHARS_MAX).collect()
}

/// The names that are given already.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    names: HashSet<String>,
    /// The number to try next for a name that is wanted again.
    next: HashMap<String, usize>,
}

impl Taken {
    /// The first name of these that is free: the wanted one, or the same with a number.
    fn free(&mut self, wanted: &str) -> String {
        if self.names.insert(wanted.to_owned()) {
            return wanted.to_owned();
        }
        let next = self.next.entry(wanted.to_owned()).or_insert(2);
        loop {
            let end = format!("_{next}");
            *next += 1;
            let name: String = wanted
                .chars()
                .take(TOOL_NAME_CHARS_MAX - end.len())
                .chain(end.chars())
                .collect();
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// The name of an operation: its id, else its method and path.
pub(crate) fn of_tool(id: Option<&str>, method: &str, path: &str, taken: &mut Taken) -> String {
    let by_id = fitting(id.unwrap_or_default());
    if by_id.is_empty() {
        return taken.free(&fitting(&format!("{method}_{path}")));
    }
    taken.free(&by_id)
}

/// The name of an argument: its parameter's, or with the place before it where two parameters have
/// one name.
pub(crate) fn of_argument(name: &str, place: &str, taken: &mut Taken) -> String {
    let mut argument = fitting(name);
    if argument.is_empty() {
        argument = place.to_owned();
    }
    if taken.names.contains(&argument) {
        argument = fitting(&format!("{place}_{argument}"));
    }
    taken.free(&argument)
}

/// The name of a definition in `$defs`.
pub(crate) fn of_definition(pointer: &str, taken: &mut Taken) -> String {
    let last = pointer.rsplit('/').next().unwrap_or_default();
    let name = fitting(last);
    taken.free(if name.is_empty() { "schema" } else { &name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_differ() {
        let mut taken = Taken::default();
        let long = "x".repeat(80);
        for (id, expected) in [
            (Some("listPets"), "listPets"),
            (Some("listPets"), "listPets_2"),
            (Some("pets/list all"), "pets_list_all"),
            (Some("Größe"), "Gr_e"),
            (Some("repos.get-one"), "repos.get-one"),
            (Some("名前"), "get_pets_id"),
            (Some(""), "get_pets_id_2"),
            (None, "get_pets_id_3"),
            (Some(&long), &long[..64]),
        ] {
            assert_eq!(
                of_tool(id, "get", "/pets/{id}", &mut taken),
                expected,
                "{id:?}"
            );
        }
        // What is beyond the characters that are looked at is no part of a name.
        let blank = |count: usize| format!("{}end", " ".repeat(count));
        assert_eq!(
            of_tool(Some(&blank(WANTED_CHARS_MAX - 3)), "get", "/", &mut taken),
            "end"
        );
        assert_eq!(
            of_tool(Some(&blank(WANTED_CHARS_MAX)), "put", "/other", &mut taken),
            "put_other"
        );
        let last = of_tool(Some(&long), "get", "/", &mut taken);
        assert_eq!(
            (last.len(), last.ends_with("x_2")),
            (TOOL_NAME_CHARS_MAX, true)
        );
    }

    #[test]
    fn arguments_of_one_name_have_their_place_before_it() {
        let mut taken = Taken::default();
        let mut of = |name: &str, place: &str| of_argument(name, place, &mut taken);
        assert_eq!(of("id", "path"), "id");
        assert_eq!(of("id", "query"), "query_id");
        assert_eq!(of("filter[name]", "query"), "filter_name");
        assert_eq!(of("$top", "query"), "top");
        assert_eq!(of("[]", "query"), "query");
    }
}
