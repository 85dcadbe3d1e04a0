//! Difference of two definitions, member by member, for people.

use std::collections::BTreeMap;

use json::visible;

/// One difference. Hidden characters are visible in both texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path of the member, such as `inputSchema.properties.path.description`.
    pub path: String,
    /// What was there; `None` if nothing was.
    pub before: Option<String>,
    /// What is there now.
    pub after: Option<String>,
}

/// The differences of two canonical texts, in the order of their paths.
#[must_use]
pub fn diff(before: &str, after: &str) -> Vec<Change> {
    let (old, new) = (leaves(before), leaves(after));
    let mut paths: Vec<&String> = old.keys().chain(new.keys()).collect();
    paths.sort();
    paths.dedup();
    let changed = paths.into_iter().filter(|path| old.get(*path) != new.get(*path));
    let change = |path: &String| Change {
        path: path.clone(),
        before: old.get(path).cloned(),
        after: new.get(path).cloned(),
    };
    changed.map(change).collect()
}

/// Every single value by its path; an empty object or array is one too.
fn leaves(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    if text.is_empty() {
        return found;
    }
    walk(text.as_bytes(), String::new(), &mut found);
    found
}

fn walk(raw: &[u8], path: String, found: &mut BTreeMap<String, String>) {
    let mut inner = Vec::new();
    let join = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let span = json::Span::all(raw);
    if json::is_object(raw) {
        let _ = json::each_member(raw, |key, value| {
            inner.push((join(&visible::line(&String::from_utf8_lossy(&key))), value.of(raw)));
        });
    } else if raw.first() == Some(&b'[') {
        let mut at = 0;
        let _ = json::each_element(raw, span, |value| {
            inner.push((format!("{path}[{at}]"), value.of(raw)));
            at += 1;
        });
    }
    if inner.is_empty() {
        found.insert(path, visible::value(&String::from_utf8_lossy(raw)));
    }
    for (path, value) in inner {
        walk(value, path, found);
    }
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
                r#"a.b Some("\"one\"") Some("\"one\\\\u{200b}\"")"#,
                r#"a.c[1] Some("2") Some("3")"#,
                r#"a.c[2].x None Some("true")"#,
                r#"d Some("{}") None"#,
            ]
        );
        assert_eq!(diff(before, before), []);
    }
}
