//! Paths of a description: their texts and variables.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode, utf8_percent_encode};

use crate::error::PARAMETERS_MAX;
use crate::refs::Unusable;

/// Times that a path is decoded to see where it leads: proxies and servers in a row may each do it
/// once.
const DECODINGS_MAX: usize = 3;

/// Characters that are encoded in a path as the description writes it; not `%`, which begins one
/// that is encoded already.
const NO_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'`')
    .add(b'\\')
    .add(b'^')
    .add(b'|');

/// A part of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// This text, encoded.
    Text(String),
    /// The parameter at this place in the list.
    Parameter(usize),
}

/// The names of the variables in a path of the description, which has at most [`PARAMETERS_MAX`] of
/// them, repeated ones included.
pub(crate) fn variables(path: &str) -> Result<Vec<String>, Unusable> {
    let mut names: Vec<String> = Vec::new();
    let mut count = 0;
    for piece in pieces(path)? {
        let Piece::Variable(name) = piece else {
            continue;
        };
        // Repeated ones too: the path of a request has the value as often.
        count += 1;
        if count > PARAMETERS_MAX {
            return Err(Unusable::Because(format!(
                "its path has more than {PARAMETERS_MAX} variables"
            )));
        }
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// The parts of a path: that of the base, then that of the description.
pub(crate) fn template(
    base: &str,
    path: &str,
    parameters: &BTreeMap<&str, usize>,
) -> Result<Vec<Part>, Unusable> {
    let mut parts = vec![Part::Text(base.trim_end_matches('/').to_owned())];
    for piece in pieces(path)? {
        parts.push(match piece {
            Piece::Text(text) => Part::Text(utf8_percent_encode(text, NO_PATH).to_string()),
            Piece::Variable(name) => match parameters.get(name) {
                Some(at) => Part::Parameter(*at),
                None => return Err(unreadable()),
            },
        });
    }
    // They would end the path: what comes after them is a query or a fragment.
    if path.contains(['?', '#']) {
        return Err(unreadable());
    }
    if has_steps(path) {
        return Err(Unusable::because("its path leads to another one"));
    }
    Ok(parts)
}

/// A piece of a path of the description.
enum Piece<'p> {
    Text(&'p str),
    /// The name in `{name}`.
    Variable(&'p str),
}

/// The pieces of a path, in their order.
fn pieces(path: &str) -> Result<Vec<Piece<'_>>, Unusable> {
    let mut pieces = Vec::new();
    let mut rest = path;
    while let Some((text, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or_else(unreadable)?;
        pieces.push(Piece::Text(text));
        pieces.push(Piece::Variable(name));
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

fn unreadable() -> Unusable {
    Unusable::because("its path cannot be read")
}

/// Whether a path has a step `.` or `..`, in any spelling: some servers and proxies decode a path
/// before they resolve these, take `\` for `/`, or leave out what follows a `;`.
pub(crate) fn has_steps(path: &str) -> bool {
    let mut path = path.as_bytes().to_vec();
    for _ in 0..DECODINGS_MAX {
        let decoded: Vec<u8> = percent_decode(&path).collect();
        let mut steps = decoded.split(|byte| b"/\\;".contains(byte));
        if steps.any(|step| matches!(step, b"." | b"..")) {
            return true;
        }
        if decoded == path {
            break;
        }
        path = decoded;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_found_in_every_spelling() {
        for path in [
            "/a/../b",
            "/a/.",
            "/a/%2e%2E/b",
            "/a/..%2Fadmin",
            "/a/x%2F..%2Fadmin",
            "/a/..%5Cadmin",
            "/a/..\\admin",
            "/a/..%3Bx",
            "/a/..;x/b",
            "/a/x;..",
            "/a/.%252e%252fadmin",
            "/a/%25252e%25252e",
        ] {
            assert!(has_steps(path), "{path}");
        }
        for path in [
            "/a/b",
            "/a%2Fb",
            "/a..b/...",
            "/v1.2/.well-known/x",
            "/a;v=1/b",
            "/%2E%2E%2E",
            "/100%",
            "/",
        ] {
            assert!(!has_steps(path), "{path}");
        }
    }

    #[test]
    fn variables_are_read_up_to_their_most_and_not_beyond() {
        let path = |count: usize| {
            (0..count)
                .map(|number| format!("/{{v{number}}}"))
                .collect::<String>()
        };
        assert_eq!(
            variables(&path(PARAMETERS_MAX)).unwrap().len(),
            PARAMETERS_MAX
        );
        let refused = variables(&path(PARAMETERS_MAX + 1)).unwrap_err().why();
        assert_eq!(refused, "its path has more than 256 variables");
        // A path of 16 MB ends there too, and so does one that repeats a variable.
        assert!(variables(&path(1_600_000)).is_err());
        assert!(variables(&"/{a}".repeat(PARAMETERS_MAX + 1)).is_err());
        assert_eq!(variables(&"/{a}".repeat(PARAMETERS_MAX)).unwrap(), ["a"]);
    }
}
