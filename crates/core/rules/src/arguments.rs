//! Arguments of a call as leaves: every member with its place, or a reason why they cannot be read
//! in one way only.

use std::borrow::Cow;

use json::{JsonError, Span};

use crate::pointer::{POINTER_DEPTH_MAX, Pointer, PointerError};

/// The longest arguments that rules read, in bytes of their canonical form.
pub const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;
/// The most members of arguments that rules read, those of inner objects counted alone.
pub const ARGUMENTS_LEAVES_MAX: usize = 64;
/// The most elements of an array that rules read.
pub const ARGUMENTS_ELEMENTS_MAX: usize = 256;

/// Why arguments cannot be judged by their members. An approving rule never matches them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// No JSON, or nested beyond what has a canonical form.
    #[error("the arguments are not valid JSON: {0}")]
    Syntax(String),
    /// A member occurs twice in an object.
    #[error("the member {0:?} occurs twice, so that readers may differ")]
    Duplicate(String),
    /// No object.
    #[error("the arguments are no object")]
    NotAnObject,
    /// More than [`ARGUMENTS_BYTES_MAX`].
    #[error("the arguments are longer than {ARGUMENTS_BYTES_MAX} bytes")]
    TooLong,
    /// More than [`ARGUMENTS_LEAVES_MAX`] members.
    #[error("the arguments have more than {ARGUMENTS_LEAVES_MAX} members")]
    TooMany,
    /// An array of more than [`ARGUMENTS_ELEMENTS_MAX`].
    #[error("an array has more than {ARGUMENTS_ELEMENTS_MAX} elements")]
    TooWide,
    /// Nested deeper than [`POINTER_DEPTH_MAX`].
    #[error("the arguments are nested deeper than {POINTER_DEPTH_MAX}")]
    TooDeep,
    /// A name that no pointer can name.
    #[error("the name of a member is not plain: {0}")]
    Name(PointerError),
}

impl From<JsonError> for ArgumentsError {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::Duplicate(name) => Self::Duplicate(json::visible::line(&name)),
            JsonError::NotAnObject => Self::NotAnObject,
            JsonError::NotAnArray | JsonError::Syntax(_) => {
                Self::Syntax(json::visible::line(&error.to_string()))
            }
        }
    }
}

/// The arguments of a call, in canonical form, with the places of their leaves. A leaf is a member
/// that is no object, or an empty one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    text: Box<[u8]>,
    /// In the order of their pointers.
    leaves: Vec<(Pointer, Span)>,
}

/// The value of a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentValue<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as it is spelled.
    Number(&'a str),
    /// A string, unescaped.
    Text(Cow<'a, str>),
    /// An array: its elements in canonical form.
    Array(Vec<&'a [u8]>),
    /// An object, in canonical form; as a leaf only `{}`.
    Object,
}

impl<'a> ArgumentValue<'a> {
    /// The value that this canonical text spells.
    #[must_use]
    pub fn of(raw: &'a [u8]) -> Self {
        match raw.first() {
            Some(b'"') => json::text(raw).map_or(Self::Null, Self::Text),
            Some(b'[') => {
                let spans = json::elements(raw, Span::all(raw)).unwrap_or_default();
                Self::Array(spans.into_iter().map(|span| span.of(raw)).collect())
            }
            Some(b'{') => Self::Object,
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            Some(b'-' | b'0'..=b'9') => Self::Number(std::str::from_utf8(raw).unwrap_or_default()),
            Some(_) | None => Self::Null,
        }
    }

    /// The string, if it is one.
    #[must_use]
    pub fn into_text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Array(_) | Self::Object => None,
        }
    }

    /// The number as it is spelled, if it is one.
    #[must_use]
    pub fn into_number(self) -> Option<&'a str> {
        match self {
            Self::Number(spelled) => Some(spelled),
            Self::Null | Self::Bool(_) | Self::Text(_) | Self::Array(_) | Self::Object => None,
        }
    }

    /// The elements in canonical form, if it is an array.
    #[must_use]
    pub fn into_elements(self) -> Option<Vec<&'a [u8]>> {
        match self {
            Self::Array(elements) => Some(elements),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::Object => None,
        }
    }
}

impl Arguments {
    /// Reads the arguments of a call; a call without arguments has `{}`.
    ///
    /// # Errors
    /// Why readers could differ on them, or which limit they exceed.
    pub fn read(raw: &[u8]) -> Result<Self, ArgumentsError> {
        if !json::is_object(raw) {
            json::check(raw)?;
            return Err(ArgumentsError::NotAnObject);
        }
        Self::of_canonical(&json::canonical(raw)?)
    }

    /// The arguments of this canonical text, such as a part of what a digest covers.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn of_canonical(text: &[u8]) -> Result<Self, ArgumentsError> {
        if !json::is_object(text) {
            return Err(ArgumentsError::NotAnObject);
        }
        if text.len() > ARGUMENTS_BYTES_MAX {
            return Err(ArgumentsError::TooLong);
        }
        let mut leaves = Vec::new();
        collect(text, Span::all(text), "", 0, &mut leaves)?;
        leaves.sort();
        Ok(Self {
            text: text.into(),
            leaves,
        })
    }

    /// The canonical text.
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    /// The value of a leaf, as canonical text.
    #[must_use]
    pub fn get(&self, pointer: &Pointer) -> Option<&[u8]> {
        let at = self
            .leaves
            .binary_search_by(|(known, _)| known.cmp(pointer))
            .ok()?;
        self.leaves.get(at).map(|(_, span)| span.of(&self.text))
    }

    /// Whether another member is there that some reader may take for the one at a pointer: under a
    /// name that looks like its own, inside of it, or around it.
    #[must_use]
    pub fn has_another_like(&self, pointer: &Pointer) -> bool {
        let mut leaves = self.leaves.iter().map(|(leaf, _)| leaf);
        leaves.any(|leaf| leaf != pointer && leaf.is_like(pointer))
    }

    /// All leaves in the order of their pointers, each with its value as canonical text.
    pub fn leaves(&self) -> impl Iterator<Item = (&Pointer, &[u8])> {
        self.leaves
            .iter()
            .map(|(pointer, span)| (pointer, span.of(&self.text)))
    }

    /// The number of leaves.
    #[must_use]
    pub fn len(&self) -> usize {
        self.leaves.len()
    }

    /// Whether there are no arguments.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }
}

fn collect(
    text: &[u8],
    object: Span,
    place: &str,
    depth: usize,
    leaves: &mut Vec<(Pointer, Span)>,
) -> Result<(), ArgumentsError> {
    for (key, member) in json::members(text, object)?.iter() {
        let inner = Pointer::member(place, key);
        let first = member.raw.first();
        if first == Some(&b'{') && member.raw != b"{}" {
            if depth + 1 == POINTER_DEPTH_MAX {
                return Err(ArgumentsError::TooDeep);
            }
            collect(text, member.span, &inner, depth + 1, leaves)?;
            continue;
        }
        if first == Some(&b'[') {
            check_array(member.raw, depth)?;
        }
        if leaves.len() == ARGUMENTS_LEAVES_MAX {
            return Err(ArgumentsError::TooMany);
        }
        let pointer = Pointer::parse(&inner).map_err(ArgumentsError::Name)?;
        leaves.push((pointer, member.span));
    }
    Ok(())
}

/// Checks how deep and how wide an array is.
fn check_array(raw: &[u8], depth: usize) -> Result<(), ArgumentsError> {
    if depth + json::nesting(raw) > POINTER_DEPTH_MAX {
        return Err(ArgumentsError::TooDeep);
    }
    let elements = ArgumentValue::of(raw).into_elements();
    if elements.is_some_and(|elements| elements.len() > ARGUMENTS_ELEMENTS_MAX) {
        return Err(ArgumentsError::TooWide);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(raw: &str) -> Result<Vec<String>, ArgumentsError> {
        Arguments::read(raw.as_bytes()).map(|read| {
            read.leaves()
                .map(|(pointer, value)| format!("{pointer}={}", String::from_utf8_lossy(value)))
                .collect()
        })
    }

    #[test]
    fn leaves_have_places_and_canonical_values() {
        assert_eq!(
            names(r#"{ "b": {"y": [1 , "\u0061"], "x":{}}, "a/c" : "\u00e9" }"#).unwrap(),
            ["/a~1c=\"é\"", "/b/x={}", "/b/y=[1,\"a\"]"]
        );
        assert_eq!(names("{}").unwrap(), [""; 0]);
    }

    #[test]
    fn what_readers_read_differently_is_refused() {
        for (raw, expect) in [
            (r#"{"a":1,"\u0061":2}"#, "twice"),
            (r#"{"a":{"b":1,"b":2}}"#, "twice"),
            (r#"{"a":[{"b":1,"b":2}]}"#, "twice"),
            ("[1]", "no object"),
            ("\"{}\"", "no object"),
            ("{", "not valid JSON"),
            ("{\"a\u{200b}\":1}", "not plain"),
            ("{\"e\u{301}\":1}", "not plain"),
            (r#"{"a":"\ud800"}"#, "not valid JSON"),
        ] {
            let error = names(raw).unwrap_err().to_string();
            assert!(error.contains(expect), "{raw}: {error}");
        }
    }

    #[test]
    fn canonical_text_is_read_as_it_is() {
        for raw in [r#"{ "b": {"y": [1]}, "a" : "\u00e9" }"#, "{}"] {
            let read = Arguments::read(raw.as_bytes()).unwrap();
            assert_eq!(Arguments::of_canonical(read.text().as_bytes()), Ok(read));
        }
        let list = Arguments::of_canonical(b"[1]");
        assert_eq!(list, Err(ArgumentsError::NotAnObject));
    }

    #[test]
    fn every_limit_is_reached_and_passed() {
        let members = |count: usize| {
            let members: Vec<String> = (0..count).map(|at| format!("\"m{at}\":1")).collect();
            format!("{{{}}}", members.join(","))
        };
        assert_eq!(names(&members(ARGUMENTS_LEAVES_MAX)).unwrap().len(), 64);
        assert_eq!(
            names(&members(ARGUMENTS_LEAVES_MAX + 1)),
            Err(ArgumentsError::TooMany)
        );
        let array = |count: usize| format!("{{\"a\":[{}]}}", vec!["1"; count].join(","));
        assert!(names(&array(ARGUMENTS_ELEMENTS_MAX)).is_ok());
        assert_eq!(
            names(&array(ARGUMENTS_ELEMENTS_MAX + 1)),
            Err(ArgumentsError::TooWide)
        );
        let deep = |count: usize| format!("{}1{}", "{\"a\":".repeat(count), "}".repeat(count));
        assert!(names(&deep(POINTER_DEPTH_MAX)).is_ok());
        assert_eq!(
            names(&deep(POINTER_DEPTH_MAX + 1)),
            Err(ArgumentsError::TooDeep)
        );
        assert!(names(&deep(100_000)).is_err());
        let list = |count: usize| format!("{{\"a\":{}{}}}", "[".repeat(count), "]".repeat(count));
        assert!(names(&list(POINTER_DEPTH_MAX)).is_ok());
        assert_eq!(
            names(&list(POINTER_DEPTH_MAX + 1)),
            Err(ArgumentsError::TooDeep)
        );
        let long = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        assert!(names(&long(ARGUMENTS_BYTES_MAX)).is_ok());
        assert_eq!(
            names(&long(ARGUMENTS_BYTES_MAX + 1)),
            Err(ArgumentsError::TooLong)
        );
    }
}
