//! Members of one object: keys, raw values and their places in the frame.
//!
//! All syntax is checked; the fast scan leaves what it does not take to `serde_json`. Values are
//! not decoded.

use std::borrow::Cow;

use crate::duplicates::{FEW, first_duplicate};
use crate::error::JsonError;
use crate::scan;
use crate::span::{MemberSpan, Span};
use crate::text::{text, trim};

/// One member of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'a> {
    /// The value as it was written.
    pub raw: &'a [u8],
    /// The place of the value in the frame.
    pub span: Span,
    /// The place of key and value together in the frame.
    pub whole: Span,
    /// Whether the value is a string with escapes in it.
    pub(crate) escaped: bool,
}

impl<'a> Member<'a> {
    /// The string that the value spells, unescaped; `None` if it is no string, or holds half a
    /// surrogate pair.
    #[inline]
    #[must_use]
    pub fn text(&self) -> Option<Cow<'a, str>> {
        if self.escaped {
            return text(self.raw);
        }
        let plain = self.raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        std::str::from_utf8(plain).ok().map(Cow::Borrowed)
    }

    #[inline]
    pub(crate) fn at(place: &MemberSpan, frame: &'a [u8]) -> Self {
        let span = place.value();
        Self {
            raw: span.of(frame),
            span,
            whole: place.whole(),
            escaped: place.escaped,
        }
    }
}

/// All members of one object in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members<'a> {
    frame: &'a [u8],
    object: Span,
    /// Spans of another depth belong to other objects.
    depth: u8,
    spans: Cow<'a, [MemberSpan]>,
    /// The keys that were written with escapes, each at the index of its span; empty if there are
    /// none.
    unescaped: Vec<Option<Box<str>>>,
}

impl<'a> Members<'a> {
    /// The members of the object at `object`: those of `spans` that have this depth.
    pub(crate) fn outlined(
        frame: &'a [u8],
        object: Span,
        spans: &'a [MemberSpan],
        depth: u8,
    ) -> Self {
        Self {
            frame,
            object,
            depth,
            spans: Cow::Borrowed(spans),
            unescaped: Vec::new(),
        }
    }

    /// The member of this name.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Member<'a>> {
        let has_key = |(at, span): &(usize, &MemberSpan)| self.key(*at, span) == key.as_bytes();
        let span = if self.unescaped.is_empty() {
            self.spans
                .iter()
                .find(|span| span.depth == self.depth && span.is_named(key, self.frame))
        } else {
            self.all().find(has_key).map(|(_, span)| span)
        };
        span.map(|span| Member::at(span, self.frame))
    }

    /// The members with their keys, unescaped, in the order of the text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Member<'a>)> {
        let text = |key| std::str::from_utf8(key).unwrap_or_default();
        self.all()
            .map(move |(at, span)| (text(self.key(at, span)), Member::at(span, self.frame)))
    }

    /// The place of the object itself, braces included.
    #[must_use]
    pub fn object(&self) -> Span {
        self.object
    }

    /// The number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all().count()
    }

    /// Whether the object is `{}`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// The first key that occurs a second time, unescaped. Only [`members_with_duplicates`] returns
    /// such members.
    #[must_use]
    pub fn first_duplicate(&self) -> Option<String> {
        let keys = || self.all().map(|(at, span)| self.key(at, span));
        let mut rest = &*self.spans;
        if !self.unescaped.is_empty() || rest.len() > FEW {
            let key = first_duplicate(keys())?;
            return Some(String::from_utf8_lossy(key).into_owned());
        }
        while let [span, later @ ..] = rest {
            if span.depth == self.depth
                && later.iter().any(|other| other.has_key_of(span, self.frame))
            {
                return Some(String::from_utf8_lossy(span.key().of(self.frame)).into_owned());
            }
            rest = later;
        }
        None
    }

    /// The members, if no key occurs twice.
    pub(crate) fn without_duplicates(self) -> Result<Self, JsonError> {
        match self.first_duplicate() {
            Some(key) => Err(JsonError::Duplicate(key)),
            None => Ok(self),
        }
    }

    fn all(&self) -> impl Iterator<Item = (usize, &MemberSpan)> + Clone {
        self.spans
            .iter()
            .enumerate()
            .filter(|(_, span)| span.depth == self.depth)
    }

    /// A key, unescaped.
    fn key(&self, at: usize, span: &MemberSpan) -> &[u8] {
        match self.unescaped.get(at) {
            Some(Some(key)) => key.as_bytes(),
            Some(None) | None => span.key().of(self.frame),
        }
    }
}

/// Reads the members of the object at `within` in `frame`. All spans that come back are places in
/// `frame`. White space may lie around the object.
///
/// # Errors
/// [`JsonError`] when the bytes are not one valid JSON object, or when a key occurs twice in it
/// after unescaping. Values are checked for syntax, but members of objects inside them are not
/// read.
pub fn members(frame: &[u8], within: Span) -> Result<Members<'_>, JsonError> {
    members_with_duplicates(frame, within)?.without_duplicates()
}

/// The value at the end of this path of members in the object that fills `object`; `None` if there
/// is none, or if an object on the way has a member twice.
#[must_use]
pub fn at<'a>(object: &'a [u8], path: &[&str]) -> Option<&'a [u8]> {
    path.iter().try_fold(object, |object, key| {
        Some(members(object, Span::all(object)).ok()?.get(key)?.raw)
    })
}

/// As [`members`], but accepts an object in which a key occurs twice; see
/// [`Members::first_duplicate`].
///
/// # Errors
/// [`JsonError`] when the bytes are not one valid JSON object.
pub fn members_with_duplicates(frame: &[u8], within: Span) -> Result<Members<'_>, JsonError> {
    let mut spans = Vec::with_capacity(4);
    let (object, _) = object(frame, within, |span| spans.push(span))?;
    let unescaped = match spans.iter().any(|span| span.key_escaped) {
        true => spans
            .iter()
            .map(|span| unescaped_key(span, frame))
            .collect::<Result<_, _>>()?,
        false => Vec::new(),
    };
    Ok(Members {
        frame,
        object,
        depth: 0,
        spans: Cow::Owned(spans),
        unescaped,
    })
}

fn unescaped_key(span: &MemberSpan, frame: &[u8]) -> Result<Option<Box<str>>, JsonError> {
    if !span.key_escaped {
        return Ok(None);
    }
    let quoted = Span {
        start: span.key().start - 1,
        end: span.key().end + 1,
    };
    text(quoted.of(frame))
        .map(|key| Some(key.into()))
        .ok_or_else(JsonError::half_a_pair)
}

/// Reads the object at `within`, and returns its place without the white space around it, and
/// whether values are nested deep.
fn object(
    frame: &[u8],
    within: Span,
    give: impl FnMut(MemberSpan),
) -> Result<(Span, bool), JsonError> {
    let object = trim(frame, within);
    let read = scan::object(frame, object, &[], give);
    read.map(|is_deep| (object, is_deep))
        .ok_or_else(|| JsonError::of(frame, within, JsonError::NotAnObject))
}

/// Gives key and value of each member of the object that fills `frame`, without keeping any. White
/// space may lie around the object. All syntax is checked; duplicates are the caller's affair. A
/// key is given unescaped. True if values are nested so deep that [`nesting`](crate::nesting) is
/// worth its pass over the frame: deeper than 32.
///
/// # Errors
/// As [`members_with_duplicates`]; members that were given by then do not count.
pub fn each_member<'a>(
    frame: &'a [u8],
    mut give: impl FnMut(Cow<'a, [u8]>, Span),
) -> Result<bool, JsonError> {
    let mut half = Ok(());
    let (_, is_deep) = object(frame, Span::all(frame), |span| {
        match unescaped_key(&span, frame) {
            Ok(None) => give(Cow::Borrowed(span.key().of(frame)), span.value()),
            Ok(Some(key)) => give(Cow::Owned(String::from(key).into_bytes()), span.value()),
            Err(error) => half = Err(error),
        }
    })?;
    half.map(|()| is_deep)
}
