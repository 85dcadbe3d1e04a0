//! URLs below a root: one origin, a path by segments, an exact set of query members.

use std::fmt;

use crate::fit::Fit;
use crate::segments::{Segments, is_hidden};

/// The most members of a query.
pub const QUERY_MEMBERS_MAX: usize = 16;
/// The longest value of a member of a query, in bytes.
pub const QUERY_VALUE_BYTES_MAX: usize = 64;

/// Why parts make no [`UrlRoot`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// No origin in lower case, as in `https://api.example.com:8443`.
    #[error(
        "an origin is a scheme, a host and perhaps a port in lower-case ASCII, as in `https://api.example.com`"
    )]
    Origin,
    /// A path with more than letters, digits, `.`, `_` and `-` in its segments.
    #[error(
        "a path of a URL begins with `/`, and has letters, digits, `.`, `_` and `-` in its segments"
    )]
    Path,
    /// Names of a query that repeat, are not plain, or are too many.
    #[error(
        "a query has at most {QUERY_MEMBERS_MAX} different names of letters, digits, `.`, `_` and `-`"
    )]
    Query,
}

/// The URLs of one origin whose path has certain segments and at least one more, and whose query has
/// exactly certain members. Values of these members are letters, digits, `_` and `-`, at most
/// [`QUERY_VALUE_BYTES_MAX`]. No segment below the root begins with a dot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UrlRoot {
    origin: Box<str>,
    segments: Segments,
    /// Sorted.
    query: Box<[Box<str>]>,
}

/// A URL that every reader reads alike.
struct PlainUrl<'a> {
    origin: &'a str,
    segments: Vec<&'a str>,
    query: Vec<&'a str>,
}

impl UrlRoot {
    /// Makes a root of its parts. The path is `/`, or segments such as `/v1/reports`.
    ///
    /// # Errors
    /// The part that is wrong.
    pub fn new(origin: &str, path: &str, query: &[&str]) -> Result<Self, UrlError> {
        match PlainUrl::read(origin) {
            Some(read) if read.origin == origin => {}
            Some(_) | None => return Err(UrlError::Origin),
        }
        let segments = path_segments(path).ok_or(UrlError::Path)?;
        let mut query: Vec<&str> = query.to_vec();
        query.sort_unstable();
        let is_repeated = query.windows(2).any(|pair| pair.first() == pair.last());
        if is_repeated || query.len() > QUERY_MEMBERS_MAX || !query.iter().all(|name| is_word(name))
        {
            return Err(UrlError::Query);
        }
        Ok(Self::of(origin, Segments::new(&segments), &query))
    }

    fn of(origin: &str, segments: Segments, query: &[&str]) -> Self {
        Self {
            origin: origin.into(),
            segments,
            query: query.iter().map(|name| Box::from(*name)).collect(),
        }
    }

    /// The narrowest root of a plain URL: its own segments but for the last, which is not hidden.
    #[must_use]
    pub fn of_url(url: &str) -> Option<Self> {
        let mut read = PlainUrl::read(url)?;
        let last = read.segments.pop()?;
        if is_hidden(last) {
            return None;
        }
        let segments = Segments::new(&read.segments);
        Some(Self::of(read.origin, segments, &read.query))
    }

    /// The narrowest root that includes both: of the same origin and query, with the segments that
    /// they share.
    #[must_use]
    pub fn common(&self, other: &Self) -> Option<Self> {
        if self.origin != other.origin || self.query != other.query {
            return None;
        }
        Some(Self {
            segments: self.segments.common(&other.segments)?,
            ..self.clone()
        })
    }

    /// The root with one segment less, if there is one.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        Some(Self {
            segments: self.segments.parent()?,
            ..self.clone()
        })
    }

    /// Whether all URLs of `other` are of this root.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        self.origin == other.origin
            && self.query == other.query
            && self.segments.includes(&other.segments)
    }

    /// Whether it is a whole host.
    pub(crate) fn is_whole_host(&self) -> bool {
        self.segments.len() == 0
    }

    /// The segment right below this root on the way to a URL under it.
    pub(crate) fn child<'u>(&self, url: &'u str) -> Option<&'u str> {
        let read = PlainUrl::read(url)?;
        read.segments.get(self.segments.len()).copied()
    }

    /// Fit of a text to the condition to be a URL of this root. A URL with user information,
    /// fragment, escapes, upper case in its host or a path to be normalised is unclear; so is one of
    /// the root with another query, the root itself, all above it, and a hidden name below it.
    #[must_use]
    pub fn fit(&self, url: &str) -> Fit {
        let Some(read) = PlainUrl::read(url) else {
            return Fit::Unclear;
        };
        if read.origin != &*self.origin {
            let is_same = spelled_out(read.origin) == spelled_out(&self.origin);
            return if is_same { Fit::Unclear } else { Fit::Failed };
        }
        let Some(below) = self.segments.fit(&read.segments) else {
            return Fit::Failed;
        };
        let names = self.query.iter().map(|name| &**name);
        if names.eq(read.query.iter().copied()) {
            below
        } else {
            Fit::Unclear
        }
    }

    /// Scheme, host and port.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The path, which begins with a slash.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/{}", self.segments.joined())
    }

    /// The names of the query's members, sorted.
    pub fn query(&self) -> impl Iterator<Item = &str> {
        self.query.iter().map(|name| &**name)
    }
}

impl fmt::Display for UrlRoot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", self.origin, self.path())
    }
}

impl<'a> PlainUrl<'a> {
    fn read(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        if !is_scheme(scheme) {
            return None;
        }
        let (before, query) = match rest.split_once('?') {
            Some((before, query)) => (before, Some(query)),
            None => (rest, None),
        };
        let at = before.find('/').unwrap_or(before.len());
        let (authority, path) = before.split_at_checked(at)?;
        if !is_authority(authority) {
            return None;
        }
        let segments = match path {
            "" => Vec::new(),
            path => path_segments(path)?,
        };
        let mut names = Vec::new();
        for member in query.into_iter().flat_map(|query| query.split('&')) {
            let (name, value) = member.split_once('=')?;
            if !is_word(name) || !is_query_value(value) {
                return None;
            }
            names.push(name);
        }
        names.sort_unstable();
        if names.windows(2).any(|pair| pair.first() == pair.last()) {
            return None;
        }
        Some(Self {
            origin: url.get(..scheme.len() + 3 + authority.len())?,
            segments,
            query: names,
        })
    }
}

/// An origin without the port that its scheme has anyway.
fn spelled_out(origin: &str) -> &str {
    let port = match origin.split_once("://") {
        Some(("https" | "wss", _)) => ":443",
        Some(("http" | "ws", _)) => ":80",
        _ => return origin,
    };
    origin.strip_suffix(port).unwrap_or(origin)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// Whether a host, perhaps with a port, is plain.
fn is_authority(authority: &str) -> bool {
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    host.split('.').all(is_label) && port.is_none_or(is_port)
}

fn is_port(text: &str) -> bool {
    (1..=5).contains(&text.len())
        && !text.starts_with('0')
        && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text is a label of a host's name.
fn is_label(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// The segments of a path; none of `/`.
fn path_segments(path: &str) -> Option<Vec<&str>> {
    let rest = path.strip_prefix('/')?;
    if rest.is_empty() {
        return Some(Vec::new());
    }
    let segments: Vec<&str> = rest.split('/').collect();
    let are_plain = segments
        .iter()
        .all(|segment| is_word(segment) && !segment.ends_with('.'));
    are_plain.then_some(segments)
}

/// Whether a text has letters, digits, `.`, `_` and `-` only, and is more than a dot.
fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn is_query_value(value: &str) -> bool {
    (1..=QUERY_VALUE_BYTES_MAX).contains(&value.len())
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(origin: &str, path: &str, query: &[&str]) -> UrlRoot {
        UrlRoot::new(origin, path, query).unwrap()
    }

    #[test]
    fn urls_are_compared_by_parts() {
        let reports = root("https://api.example.com", "/v1/reports", &["id"]);
        assert_eq!(
            reports.fit("https://api.example.com/v1/reports/a?id=7"),
            Fit::Held
        );
        assert_eq!(
            reports.fit("https://api.example.com/v1/reports/a/b?id=7"),
            Fit::Held
        );
        for outside in [
            "https://api.example.com.evil.com/v1/reports?id=7",
            "http://api.example.com/v1/reports?id=7",
            "https://api.example.com:8443/v1/reports?id=7",
            "https://api.example.com/v1/reportsx/a?id=7",
        ] {
            assert_eq!(reports.fit(outside), Fit::Failed, "{outside}");
        }
        for unclear in [
            "https://api.example.com/v1/reports?id=7",
            "https://api.example.com/v1?id=7",
            "https://api.example.com/v1/reports/a",
            "https://api.example.com/v1/reports/a?id=7&x=1",
            "https://API.example.com/v1/reports/a?id=7",
            "https://user@api.example.com/v1/reports?id=7",
            "https://api.example.com/v1/reports/../x?id=7",
            "https://api.example.com/v1/reports/%2e?id=7",
            "https://api.example.com/v1/reports?id=7#x",
            "https://api.example.com./v1/reports?id=7",
            "https://api.example.com:443/v1/reports?id=7",
            "https://api.example.com/v1/reports/?id=7",
            "https://bücher.example/v1",
            "javascript:alert(1)",
            "https://api.example.com/v1/reports?id=7&id=8",
            "https://api.example.com\\v1",
            "",
            "https://api.example.com/v1/reports?id=a%20b",
            "https://[::1]/v1/reports?id=7",
            "https://api.example.com/v1/reports/.git?id=7",
        ] {
            assert_eq!(reports.fit(unclear), Fit::Unclear, "{unclear}");
        }
    }

    #[test]
    fn roots_refuse_what_is_not_plain() {
        for origin in [
            "https://",
            "https://A.com",
            "https://a.com/",
            "a.com",
            "https://u@a.com",
            "https://a..b",
        ] {
            assert_eq!(
                UrlRoot::new(origin, "/", &[]),
                Err(UrlError::Origin),
                "{origin}"
            );
        }
        assert_eq!(
            UrlRoot::new("https://a.com", "v1", &[]),
            Err(UrlError::Path)
        );
        assert_eq!(
            UrlRoot::new("https://a.com", "/v1/", &[]),
            Err(UrlError::Path)
        );
        assert_eq!(
            UrlRoot::new("https://a.com", "/", &["a", "a"]),
            Err(UrlError::Query)
        );
        let names: Vec<String> = (0..=QUERY_MEMBERS_MAX).map(|at| format!("n{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(UrlRoot::new("https://a.com", "/", &names[1..]).is_ok());
        assert_eq!(
            UrlRoot::new("https://a.com", "/", &names),
            Err(UrlError::Query)
        );
    }

    #[test]
    fn the_longest_value_of_a_query_has_its_limit() {
        let any = root("https://a.com", "/", &["q"]);
        let url = |bytes: usize| format!("https://a.com/x?q={}", "a".repeat(bytes));
        assert_eq!(any.fit(&url(QUERY_VALUE_BYTES_MAX)), Fit::Held);
        assert_eq!(any.fit(&url(QUERY_VALUE_BYTES_MAX + 1)), Fit::Unclear);
    }

    #[test]
    fn roots_join_at_their_shared_segments() {
        let (one, other) = (
            root("https://a.com", "/v1/x", &[]),
            root("https://a.com", "/v1/y", &[]),
        );
        let both = one.common(&other).unwrap();
        assert_eq!(both.to_string(), "https://a.com/v1");
        assert!(both.includes(&one) && both.includes(&other) && !one.includes(&both));
        assert_eq!(one.common(&root("https://b.com", "/v1/x", &[])), None);
        assert_eq!(both.parent().unwrap().path(), "/");
    }
}
