//! Paths below a root, compared by segments and by spelling: nothing is normalised.

use std::fmt;

use crate::fit::Fit;
use crate::segments::{Segments, is_hidden};
use crate::spelling;

/// The fewest segments of an absolute root: `/srv` alone would be half of a machine.
pub const ABSOLUTE_ROOT_SEGMENTS_MIN: usize = 2;
/// The most segments of a root.
pub const ROOT_SEGMENTS_MAX: usize = 32;
/// Names that some file system takes for devices, with any ending.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
/// Characters by which shells, globs and file systems mean something else than the character.
const SIGNS: &str = "\\~$%:*?\"'`;|&<>{}[]!#^";

/// Why a text is no [`PathRoot`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A segment that some reader changes or takes for something else.
    #[error(
        "a path is written without `.` and `..`, empty segments, hidden characters and signs of shells"
    )]
    NotPlain,
    /// An absolute root of fewer than [`ABSOLUTE_ROOT_SEGMENTS_MIN`] segments.
    #[error(
        "an absolute root has at least {ABSOLUTE_ROOT_SEGMENTS_MIN} segments, as in `/srv/docs`"
    )]
    TooHigh,
    /// More than [`ROOT_SEGMENTS_MAX`] segments.
    #[error("a root has at most {ROOT_SEGMENTS_MAX} segments")]
    TooDeep,
}

/// A directory: all paths with its segments and at least one more lie under it, but for those with
/// a name below it that begins with a dot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathRoot {
    is_absolute: bool,
    segments: Segments,
}

impl PathRoot {
    /// Reads a root, such as `/srv/docs` or `notes`.
    ///
    /// # Errors
    /// The fault.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let path = PlainPath::read(text).ok_or(PathError::NotPlain)?;
        Self::of(path.is_absolute, Segments::new(&path.segments))
    }

    fn of(is_absolute: bool, segments: Segments) -> Result<Self, PathError> {
        let fewest = if is_absolute {
            ABSOLUTE_ROOT_SEGMENTS_MIN
        } else {
            1
        };
        if segments.len() < fewest {
            return Err(PathError::TooHigh);
        }
        if segments.len() > ROOT_SEGMENTS_MAX {
            return Err(PathError::TooDeep);
        }
        Ok(Self {
            is_absolute,
            segments,
        })
    }

    /// The directory of a plain path, if it can be a root and the file is not hidden.
    #[must_use]
    pub fn of_parent(path: &str) -> Option<Self> {
        let mut path = PlainPath::read(path)?;
        let file = path.segments.pop()?;
        if is_hidden(file) {
            return None;
        }
        Self::of(path.is_absolute, Segments::new(&path.segments)).ok()
    }

    /// The longest root that both lie in, or are.
    #[must_use]
    pub fn common(&self, other: &Self) -> Option<Self> {
        if self.is_absolute != other.is_absolute {
            return None;
        }
        Self::of(self.is_absolute, self.segments.common(&other.segments)?).ok()
    }

    /// The root one segment higher, if there may be one.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        Self::of(self.is_absolute, self.segments.parent()?).ok()
    }

    /// Whether all paths under `other` lie under this root.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        self.is_absolute == other.is_absolute && self.segments.includes(&other.segments)
    }

    /// The name right below this root on the way to a path under it.
    pub(crate) fn child<'p>(&self, path: &'p str) -> Option<&'p str> {
        let path = PlainPath::read(path)?;
        path.segments.get(self.segments.len()).copied()
    }

    /// Fit of a text to the condition to lie under this root. A path that would need
    /// normalising is unclear; so is the root itself, all above it, a hidden name below it, and a
    /// relative path beside an absolute root.
    #[must_use]
    pub fn fit(&self, path: &str) -> Fit {
        let Some(path) = PlainPath::read(path) else {
            return Fit::Unclear;
        };
        if path.is_absolute != self.is_absolute {
            return Fit::Unclear;
        }
        if let Some(fit) = self.segments.fit(&path.segments) {
            return fit;
        }
        let mut pairs = self.segments.iter().zip(&path.segments);
        let reads_alike = pairs.all(|(own, other)| spelling::are_like(own, other));
        if reads_alike {
            Fit::Unclear
        } else {
            Fit::Failed
        }
    }
}

impl fmt::Display for PathRoot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_absolute {
            out.write_str("/")?;
        }
        out.write_str(&self.segments.joined())
    }
}

/// Whether a text looks like a path: it has a separator, and no reader changes it.
pub(crate) fn is_plain_path(text: &str) -> bool {
    text.contains('/') && PlainPath::read(text).is_some()
}

/// A path that every reader reads alike.
struct PlainPath<'p> {
    is_absolute: bool,
    segments: Vec<&'p str>,
}

impl<'p> PlainPath<'p> {
    fn read(path: &'p str) -> Option<Self> {
        let below_root = path.strip_prefix('/');
        let is_absolute = below_root.is_some();
        let rest = below_root.unwrap_or(path);
        if !is_absolute && rest.starts_with(['-', '@']) {
            // It is an option.
            return None;
        }
        let segments: Vec<&str> = rest.split('/').collect();
        if !segments.iter().all(|segment| is_plain_segment(segment)) {
            return None;
        }
        Some(Self {
            is_absolute,
            segments,
        })
    }
}

fn is_plain_segment(segment: &str) -> bool {
    // Readers that split at blanks would take the rest for an option.
    let has_option = segment.contains(" -");
    !segment.ends_with('.')
        && !has_option
        && !segment.is_empty()
        && !segment.starts_with(char::is_whitespace)
        && !segment.ends_with(char::is_whitespace)
        && !segment.contains(|symbol| SIGNS.contains(symbol))
        && segment.chars().all(is_of_names)
        && spelling::oddity(segment).is_none()
        && !spelling::is_compatibility_form(segment)
        && !is_device(segment)
}

/// Whether a character stands for itself in a name: printable ASCII, or a letter or digit.
fn is_of_names(symbol: char) -> bool {
    (symbol.is_ascii() && !symbol.is_ascii_control()) || symbol.is_alphanumeric()
}

fn is_device(segment: &str) -> bool {
    let stem = segment.split('.').next().unwrap_or_default().trim_end();
    let stem = stem.to_ascii_lowercase();
    let is_port = |name: &str| {
        stem.strip_prefix(name)
            .is_some_and(|digit| digit.len() == 1 && digit.bytes().all(|one| one.is_ascii_digit()))
    };
    DEVICES.contains(&stem.as_str()) || is_port("com") || is_port("lpt")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(text: &str) -> PathRoot {
        PathRoot::parse(text).unwrap()
    }

    #[test]
    fn paths_lie_under_a_root_by_segments() {
        let docs = root("/srv/docs");
        assert_eq!(docs.fit("/srv/docs/a.md"), Fit::Held);
        assert_eq!(docs.fit("/srv/docs/b/a b.md"), Fit::Held);
        for outside in ["/srv/docs2/a", "/srv/doc", "/etc/passwd", "/srv/docsa/b"] {
            assert_eq!(docs.fit(outside), Fit::Failed, "{outside}");
        }
        for unclear in ["/srv/docs", "/srv", "docs/a", "/SRV/docs/a", "/srv/Docs/a"] {
            assert_eq!(docs.fit(unclear), Fit::Unclear, "{unclear}");
        }
        assert_eq!(root("notes").fit("notes/a"), Fit::Held);
        assert_eq!(root("notes").fit("other/a"), Fit::Failed);
    }

    #[test]
    fn a_path_that_would_need_normalising_is_unclear() {
        let docs = root("/srv/docs");
        for hostile in [
            "/srv/docs/../x",
            "/srv/docs/./x",
            "/srv/docs//x",
            "//srv/docs/x",
            "/srv/docs/",
            "/srv/docs/%2e%2e/x",
            "/srv/docs\\x",
            "/srv/docs/..\\x",
            "/srv/docs/x.",
            "/srv/docs/x ",
            "/srv/docs/ x",
            "/srv/docs/~",
            "/srv/docs/$HOME",
            "/srv/docs/x\0",
            "/srv/docs/x\u{200b}",
            "/srv/docs/e\u{301}",
            "/srv/docs/pаypal",
            "C:/srv/docs/x",
            "/srv/docs/x:stream",
            "/srv/docs/NUL",
            "/srv/docs/nul.txt",
            "/srv/docs/com1",
            "/srv/docs/．．/x",
            "/srv/docs/a∕b",
            "/srv/docs/*",
            "/srv/docs/a;rm",
            "/srv/docs/a`b`",
            "/srv/docs/a|b",
            "",
            "/srv/docs/a\nb",
            "file:///srv/docs/x",
            "~/x",
            "@/srv/docs/x",
            "/srv/docs/.git/hooks/pre-commit",
            "/srv/docs/a/.env",
            "/srv/docs/a -oProxyCommand=x",
        ] {
            assert_eq!(docs.fit(hostile), Fit::Unclear, "{hostile:?}");
        }
        assert_eq!(root("notes").fit("--output=x/y"), Fit::Unclear);
    }

    #[test]
    fn roots_have_a_height_and_a_depth() {
        let check = |text: &str, expect| assert_eq!(PathRoot::parse(text).map(|_| ()), expect);
        check("/srv", Err(PathError::TooHigh));
        check("/", Err(PathError::NotPlain));
        check("", Err(PathError::NotPlain));
        check("notes", Ok(()));
        check("/srv/docs/..", Err(PathError::NotPlain));
        check(&"/a".repeat(ROOT_SEGMENTS_MAX), Ok(()));
        check(&"/a".repeat(ROOT_SEGMENTS_MAX + 1), Err(PathError::TooDeep));
    }

    #[test]
    fn roots_have_a_common_root_and_parents() {
        let common =
            |one: &str, other: &str| root(one).common(&root(other)).map(|it| it.to_string());
        assert_eq!(
            common("/srv/docs/a", "/srv/docs/b").as_deref(),
            Some("/srv/docs")
        );
        assert_eq!(common("/srv/docs", "/srv/data"), None);
        assert_eq!(common("a/b", "a/c").as_deref(), Some("a"));
        assert_eq!(common("a", "b"), None);
        assert_eq!(common("/a/b", "a/b"), None);
        assert_eq!(
            PathRoot::of_parent("/srv/docs/a/x").unwrap().to_string(),
            "/srv/docs/a"
        );
        assert_eq!(PathRoot::of_parent("/srv/x"), None);
        assert_eq!(root("/a/b/c").parent().unwrap().to_string(), "/a/b");
        assert_eq!(root("/a/b").parent(), None);
        assert!(root("/a/b").includes(&root("/a/b/c")) && !root("/a/b/c").includes(&root("/a/b")));
    }

    #[test]
    fn a_root_covers_no_hidden_names_below_it() {
        let hidden = root("/srv/docs/.git");
        assert_eq!(hidden.fit("/srv/docs/.git/config"), Fit::Held);
        assert_eq!(hidden.parent(), None);
        assert_eq!(hidden.common(&root("/srv/docs/a")), None);
        assert!(!root("/srv/docs").includes(&hidden));
        assert_eq!(PathRoot::of_parent("/srv/docs/.env"), None);
    }
}
