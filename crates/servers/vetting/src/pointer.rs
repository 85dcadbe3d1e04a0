//! Walk through the values of a definition, each with its place as a JSON Pointer (RFC 6901), which
//! no two of them share.

/// A value in a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    /// The JSON Pointer that leads to it; empty for the whole. A member that occurs twice has one
    /// pointer.
    pub(crate) pointer: String,
    /// The name of the member that it is, unescaped.
    pub(crate) member: Option<String>,
    /// The JSON.
    pub(crate) raw: &'a str,
    /// Whether there are values in it. An empty object or array has none.
    pub(crate) is_leaf: bool,
}

/// All values, each before those in it.
pub(crate) fn walk(text: &str) -> Vec<Place<'_>> {
    let mut found = Vec::new();
    if !text.is_empty() {
        enter(text, String::new(), None, &mut found);
    }
    found
}

fn enter<'a>(text: &'a str, pointer: String, member: Option<String>, found: &mut Vec<Place<'a>>) {
    let raw = text.as_bytes();
    let mut inner = Vec::new();
    if json::is_object(raw) {
        let _ = json::each_member(raw, |key, value| {
            let key = String::from_utf8_lossy(&key).into_owned();
            inner.push((
                format!("{pointer}/{}", escaped(&key)),
                Some(key),
                of(text, value),
            ));
        });
    } else if raw.first() == Some(&b'[') {
        let mut at = 0;
        let _ = json::each_element(raw, json::Span::all(raw), |value| {
            inner.push((format!("{pointer}/{at}"), None, of(text, value)));
            at += 1;
        });
    }
    found.push(Place {
        pointer,
        member,
        raw: text,
        is_leaf: inner.is_empty(),
    });
    for (pointer, member, value) in inner {
        enter(value, pointer, member, found);
    }
}

fn of(text: &str, span: json::Span) -> &str {
    text.get(span.start..span.end).unwrap_or_default()
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_a_member_makes_the_place_of_another_value() {
        let text = r#"{"a":{"b":[1]},"a/b/0":2,"a.b[0]":3,"a~1b":4,"":{"":5}}"#;
        let leaves = walk(text).into_iter().filter(|place| place.is_leaf);
        let leaves: Vec<_> = leaves.map(|place| (place.pointer, place.raw)).collect();
        let expected = [
            ("/a/b/0", "1"),
            ("/a~1b~10", "2"),
            ("/a.b[0]", "3"),
            ("/a~01b", "4"),
            ("//", "5"),
        ];
        assert_eq!(
            leaves,
            expected.map(|(pointer, raw)| (pointer.to_owned(), raw))
        );
        assert_eq!(walk(""), []);
    }
}
