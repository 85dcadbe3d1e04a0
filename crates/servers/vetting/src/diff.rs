//! Difference of two definitions, member by member, for people.

use std::collections::BTreeMap;

use json::visible;

use crate::pointer;

/// One difference. Hidden characters are visible in all its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Place of the change, as a JSON Pointer such as `/inputSchema/properties/path/description`;
    /// empty for the whole.
    pub path: String,
    /// Text that was there; `None` if there was none.
    pub before: Option<String>,
    /// Text that is there now.
    pub after: Option<String>,
}

/// The differences of two canonical texts, in the order of their paths. Texts that differ have one
/// at least: if no member does, as in texts without a canonical form, the whole of both.
#[must_use]
pub fn diff(before: &str, after: &str) -> Vec<Difference> {
    let old = leaves(before);
    let new = leaves(after);
    let mut pointers: Vec<&String> = old.keys().chain(new.keys()).collect();
    pointers.sort();
    pointers.dedup();
    let mut changes = Vec::new();
    for pointer in pointers {
        let before = old.get(pointer).map(Vec::as_slice).unwrap_or_default();
        let after = new.get(pointer).map(Vec::as_slice).unwrap_or_default();
        for place in 0..before.len().max(after.len()) {
            let before = before.get(place).copied();
            let after = after.get(place).copied();
            if before != after {
                changes.push(change(pointer, before, after));
            }
        }
    }
    if changes.is_empty() && before != after {
        changes.push(change("", Some(before), Some(after)));
    }
    changes
}

fn change(pointer: &str, before: Option<&str>, after: Option<&str>) -> Difference {
    Difference {
        path: visible::line(pointer),
        before: before.map(visible::value),
        after: after.map(visible::value),
    }
}

/// Single values by their pointers; those of a member that occurs twice in the order of the text.
type Leaves<'a> = BTreeMap<String, Vec<&'a str>>;

/// Every single value; an empty object or array is one too.
fn leaves(text: &str) -> Leaves<'_> {
    let mut found = Leaves::new();
    for place in pointer::walk(text)
        .into_iter()
        .filter(|place| place.is_leaf)
    {
        found.entry(place.pointer).or_default().push(place.raw);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_found_where_they_are_and_hidden_characters_are_shown() {
        let before = r#"{"a":{"b":"one","c":[1,2]},"d":{}}"#;
        let after = "{\"a\":{\"b\":\"one\u{200b}\",\"c\":[1,3,{\"x\":true}]}}";
        let lines: Vec<String> = diff(before, after)
            .into_iter()
            .map(|change| format!("{} {:?} {:?}", change.path, change.before, change.after))
            .collect();
        assert_eq!(
            lines,
            [
                r#"/a/b Some("\"one\"") Some("\"one\\\\u{200b}\"")"#,
                r#"/a/c/1 Some("2") Some("3")"#,
                r#"/a/c/2/x None Some("true")"#,
                r#"/d Some("{}") None"#,
            ]
        );
        assert_eq!(diff(before, before), []);
    }
    #[test]
    fn a_change_is_shown_whatever_members_are_named() {
        let shown = |before: &str, after: &str| -> Vec<String> {
            let changes = diff(before, after).into_iter();
            changes
                .map(|change| format!("{} {:?} {:?}", change.path, change.before, change.after))
                .collect()
        };
        let before = r#"{"p":{"a":{"d":"first"}},"enum":["first"]}"#;
        for (name, after) in [
            (
                "/p~1a~1d",
                r#"{"p":{"a":{"d":"EVIL"}},"enum":["first"],"p/a/d":"first"}"#,
            ),
            (
                "/p.a.d",
                r#"{"p":{"a":{"d":"EVIL"}},"enum":["first"],"p.a.d":"first"}"#,
            ),
            (
                "/enum[0]",
                r#"{"p":{"a":{"d":"first"}},"enum":["EVIL"],"enum[0]":"first"}"#,
            ),
        ] {
            let shown = shown(before, after);
            assert!(
                shown
                    .iter()
                    .any(|line| line.contains(r#"Some("\"EVIL\"")"#)),
                "{shown:?}"
            );
            assert!(
                shown.contains(&format!(r#"{name} None Some("\"first\"")"#)),
                "{shown:?}"
            );
        }
        // Members that occur twice.
        assert_eq!(
            shown(r#"{"d":"first"}"#, r#"{"d":"first","d":"EVIL"}"#),
            [r#"/d None Some("\"EVIL\"")"#]
        );
        assert_eq!(shown(r#"{"d":1, "e":2}"#, r#"{"e":2,"d":1}"#).len(), 1);
    }
}
