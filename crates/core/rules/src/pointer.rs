//! JSON Pointers (RFC 6901) to the members of a call's arguments.

use std::fmt;

use json::visible::is_hidden;
use unicode_normalization::is_nfc;

use crate::spelling;

/// The longest pointer, in bytes.
pub const POINTER_BYTES_MAX: usize = 256;
/// The deepest member that a rule sees: members of members.
pub const POINTER_DEPTH_MAX: usize = 6;

/// Why a text is no [`Pointer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// It does not begin with a slash.
    #[error("a pointer to a member begins with `/`, as in `/repo`")]
    NoSlash,
    /// Longer than [`POINTER_BYTES_MAX`].
    #[error("a pointer has at most {POINTER_BYTES_MAX} bytes")]
    TooLong,
    /// More than [`POINTER_DEPTH_MAX`] names.
    #[error("a pointer has at most {POINTER_DEPTH_MAX} names")]
    TooDeep,
    /// A `~` without `0` or `1` behind it.
    #[error("`~` is written `~0` in a pointer, and `/` in a name `~1`")]
    Escape,
    /// A hidden character, or another normal form than NFC.
    #[error("a name in the pointer holds a hidden character, or is not in normal form NFC")]
    Character,
}

/// The place of a member in a call's arguments, such as `/repo` or `/filter/state`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pointer {
    text: Box<str>,
    /// The text as a careless reader takes it, if that is another one.
    likeness: Option<Box<str>>,
}

impl Pointer {
    /// Reads a pointer.
    ///
    /// # Errors
    /// The fault.
    pub fn parse(text: &str) -> Result<Self, PointerError> {
        let Some(names) = text.strip_prefix('/') else {
            return Err(PointerError::NoSlash);
        };
        if text.len() > POINTER_BYTES_MAX {
            return Err(PointerError::TooLong);
        }
        if names.split('/').count() > POINTER_DEPTH_MAX {
            return Err(PointerError::TooDeep);
        }
        let mut escapes = text.split('~').skip(1);
        if !escapes.all(|rest| rest.starts_with(['0', '1'])) {
            return Err(PointerError::Escape);
        }
        if !spelling::is_plain_ascii(text) && (text.chars().any(is_hidden) || !is_nfc(text)) {
            return Err(PointerError::Character);
        }
        let likeness = likeness_of(names);
        Ok(Self {
            text: text.into(),
            likeness: (likeness != text).then(|| likeness.into()),
        })
    }

    /// The pointer to a member of the object at this text of a pointer; `""` is the arguments.
    pub(crate) fn member(object: &str, key: &str) -> String {
        let mut pointer = String::with_capacity(object.len() + 1 + key.len());
        pointer.push_str(object);
        pointer.push('/');
        if key.contains(['~', '/']) {
            pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
        } else {
            pointer.push_str(key);
        }
        pointer
    }

    /// Whether another pointer is this one, or leads to a member inside of it.
    #[must_use]
    pub fn holds(&self, other: &Self) -> bool {
        is_within(&other.text, &self.text)
    }

    /// Whether a careless reader may take one pointer for the other, or for one that leads inside of it.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let (own, other) = (self.likeness(), other.likeness());
        is_within(own, other) || is_within(other, own)
    }

    fn likeness(&self) -> &str {
        self.likeness.as_deref().unwrap_or(&self.text)
    }

    /// The names on the way, without escapes.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        let names = self.text.split('/').skip(1);
        names.map(|name| name.replace("~1", "/").replace("~0", "~"))
    }

    /// The pointer as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The member as a sentence names it: `repo`, or the whole pointer in quotes if that would not
    /// be plain.
    #[must_use]
    pub fn words(&self) -> String {
        let mut names = self.names();
        match (names.next(), names.next()) {
            (Some(name), None) if spelling::is_plain_name(&name) => name,
            _ => spelling::quoted(&self.text),
        }
    }
}

/// A pointer whose names are read as careless readers take them.
fn likeness_of(names: &str) -> String {
    let mut read = String::new();
    for name in names.split('/') {
        read.push('/');
        read.push_str(&spelling::name_likeness(name));
    }
    read
}

/// Whether a pointer, as text, is this outer one, or leads to a member inside of it.
pub(crate) fn is_within(pointer: &str, outer: &str) -> bool {
    let rest = pointer.strip_prefix(outer);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl fmt::Display for Pointer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_have_an_alphabet_and_limits() {
        let check = |text: &str, expect: Result<(), PointerError>| {
            assert_eq!(Pointer::parse(text).map(|_| ()), expect, "{text}");
        };
        check("/repo", Ok(()));
        check("/", Ok(()));
        check("/a~1b/c~0d", Ok(()));
        check("repo", Err(PointerError::NoSlash));
        check("", Err(PointerError::NoSlash));
        check("/a~b", Err(PointerError::Escape));
        check("/a~", Err(PointerError::Escape));
        check("/a\u{200b}", Err(PointerError::Character));
        check("/e\u{301}", Err(PointerError::Character));
        check(&"/a".repeat(POINTER_DEPTH_MAX), Ok(()));
        check(
            &"/a".repeat(POINTER_DEPTH_MAX + 1),
            Err(PointerError::TooDeep),
        );
        let longest = format!("/{}", "a".repeat(POINTER_BYTES_MAX - 1));
        check(&longest, Ok(()));
        check(&format!("{longest}a"), Err(PointerError::TooLong));
    }

    #[test]
    fn a_pointer_holds_itself_and_what_is_inside() {
        let holds = |outer: &str, inner: &str| {
            Pointer::parse(outer)
                .unwrap()
                .holds(&Pointer::parse(inner).unwrap())
        };
        assert!(holds("/a", "/a") && holds("/a", "/a/b"));
        assert!(!holds("/a", "/ab") && !holds("/a/b", "/a"));
    }

    #[test]
    fn pointers_are_alike_name_by_name() {
        let is_like = |one: &str, other: &str| {
            Pointer::parse(one)
                .unwrap()
                .is_like(&Pointer::parse(other).unwrap())
        };
        for (one, other) in [
            ("/user_id", "/userId"),
            ("/amount", "/ amount"),
            ("/amount", "/amount "),
            ("/o/flag", "/o / flag"),
            ("/o/flag", "/O"),
            ("/a~1b", "/A~1b."),
        ] {
            assert!(is_like(one, other) && is_like(other, one), "{one} {other}");
        }
        assert!(!is_like("/amount", "/amounts"));
        assert!(!is_like("/a/b", "/ab"));
    }

    #[test]
    fn names_lose_their_escapes() {
        let text = Pointer::member(&Pointer::member("", "a/b"), "c~d");
        assert_eq!(text, "/a~1b/c~0d");
        let names: Vec<String> = Pointer::parse(&text).unwrap().names().collect();
        assert_eq!(names, ["a/b", "c~d"]);
    }

    #[test]
    fn words_are_plain_or_quoted() {
        let words = |text: &str| Pointer::parse(text).unwrap().words();
        assert_eq!(words("/repo"), "repo");
        assert_eq!(words("/a/b"), "\"/a/b\"");
        assert_eq!(words("/is anything"), "\"/is anything\"");
    }
}
