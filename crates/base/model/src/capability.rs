//! Capability: grammar, compiled form, matching of kinds.

use std::fmt;

use crate::{
    context::is_unambiguous,
    kind::{KindRef, REQUEST, reserved},
    pattern::Pattern,
};

/// The longest capability, in bytes.
pub(crate) const CAPABILITY_BYTES_MAX: usize = 2048;

/// Why a text is no capability. The messages address the author of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapabilityError {
    /// Empty, or nothing before the first colon.
    #[error("a capability needs a first part, such as `chat` or `mcp/request`")]
    NoHead,
    /// A part between or after colons is empty.
    #[error("a part of the capability is empty: leave the colon out to match anything")]
    EmptyPart,
    /// A wildcard that would reach over several namespaces.
    #[error("`*` cannot span namespaces: write `mcp/*`, `name/*`, or the exact word")]
    WideWildcard,
    /// Two stars side by side.
    #[error("write one `*`: it matches any run of characters, `/` included")]
    DoubledStar,
    /// `system` or `presence`, or something below them.
    #[error("`system` and `presence` belong to the gateway and cannot be granted")]
    Reserved,
    /// A `..` segment in the context.
    #[error("a capability cannot hold a `..` path segment: write the path it leads to")]
    ParentSegment,
    /// A context with a wildcard that no request could match: [`Capability`] says what such a
    /// wildcard matches.
    #[error(
        "no request matches this context: beside a `*`, no `.` segment, encoded dot or slash, or invisible character is allowed"
    )]
    Ambiguous,
    /// Longer than `CAPABILITY_BYTES_MAX`.
    #[error("a capability has at most {CAPABILITY_BYTES_MAX} bytes")]
    TooLong,
    /// An empty list of addressees.
    #[error("`to` is empty: leave it out to admit every addressee")]
    NoAddressee,
}

/// A permission for acts, perhaps only towards some addressees. Compiled once, matched without
/// allocation.
///
/// The same shape as a kind, with wildcards. Part is compared with part; a part that is left out
/// matches anything; `*` stays inside its part. Source: MCPx v0.1 section 4, Decision 002.
///
/// A `*` beside other characters of the context matches only what every parser of URLs reads alike:
/// no control or invisible characters, no blank at an end, no `.` or `..` segment, no stray `%`,
/// and none of these (nor any dot or slash) percent-encoded,
/// [`PERCENT_LAYERS_MAX`](crate::PERCENT_LAYERS_MAX) times over. `*` alone matches every context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    text: Box<str>,
    head: Pattern,
    method: Option<Pattern>,
    context: Option<Pattern>,
    to: Option<Box<[Addressee]>>,
}

/// An addressee that a capability is narrowed to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Addressee {
    text: Box<str>,
    pattern: Pattern,
}

impl Capability {
    /// Reads and compiles a capability that admits every addressee.
    ///
    /// # Errors
    /// The fault, in words for the configuration's author.
    pub fn parse(text: &str) -> Result<Self, CapabilityError> {
        if text.len() > CAPABILITY_BYTES_MAX {
            return Err(CapabilityError::TooLong);
        }
        if text.contains("**") {
            return Err(CapabilityError::DoubledStar);
        }
        if text.is_empty() || text.starts_with(':') {
            return Err(CapabilityError::NoHead);
        }
        if text.starts_with("mcp/") {
            Self::promised(text)
        } else {
            Self::plain(text)
        }
    }

    /// Narrows to these addressees (patterns with `*`): an act is admitted only if it names at
    /// least one addressee and each one that it names is among them.
    ///
    /// # Errors
    /// The list is empty, or holds an empty or oversized name or doubled stars.
    pub fn to<'a>(
        mut self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, CapabilityError> {
        let mut to = Vec::new();
        for name in names {
            if name.is_empty() {
                return Err(CapabilityError::EmptyPart);
            }
            if name.len() > CAPABILITY_BYTES_MAX {
                return Err(CapabilityError::TooLong);
            }
            if name.contains("**") {
                return Err(CapabilityError::DoubledStar);
            }
            to.push(Addressee {
                text: name.into(),
                pattern: Pattern::new(name),
            });
        }
        if to.is_empty() {
            return Err(CapabilityError::NoAddressee);
        }
        self.to = Some(to.into());
        Ok(self)
    }

    /// Outside `mcp/`: one part, exact or `name/*`.
    fn plain(text: &str) -> Result<Self, CapabilityError> {
        if text.contains('*')
            && text
                .strip_suffix("/*")
                .is_none_or(|name| name.contains('*'))
        {
            return Err(CapabilityError::WideWildcard);
        }
        if text == "/*" {
            return Err(CapabilityError::WideWildcard);
        }
        if reserved(text) {
            return Err(CapabilityError::Reserved);
        }
        Ok(Self {
            text: text.into(),
            head: Pattern::new(text),
            method: None,
            context: None,
            to: None,
        })
    }

    /// Under `mcp/`: up to three parts.
    fn promised(text: &str) -> Result<Self, CapabilityError> {
        let mut parts = text.splitn(3, ':');
        let head = parts.next().unwrap_or_default();
        if head == "mcp/" {
            return Err(CapabilityError::NoHead);
        }
        let method = parts.next();
        let context = parts.next();
        if [method, context].contains(&Some("")) {
            return Err(CapabilityError::EmptyPart);
        }
        if context.is_some_and(|context| context.split(['/', '\\']).any(|segment| segment == ".."))
        {
            return Err(CapabilityError::ParentSegment);
        }
        if context.is_some_and(|context| {
            context.len() > 1
                && context.contains('*')
                && !is_unambiguous(&context.replace('*', "x"))
        }) {
            return Err(CapabilityError::Ambiguous);
        }
        Ok(Self {
            text: text.into(),
            head: Pattern::new(head),
            method: method.map(Pattern::new),
            context: context.map(Pattern::new),
            to: None,
        })
    }

    /// Whether this kind is admitted when it names no addressee. A capability that is narrowed to
    /// addressees then admits nothing.
    pub fn admits(&self, kind: KindRef<'_>) -> bool {
        self.admits_to(kind, &[])
    }

    /// Whether this kind is admitted towards these addressees. Allocates nothing.
    pub fn admits_to(&self, kind: KindRef<'_>, addressees: &[&str]) -> bool {
        self.admits_somewhere(kind) && self.reaches(addressees)
    }

    /// Whether this kind is admitted towards at least one addressee, whichever that is.
    pub(crate) fn admits_somewhere(&self, kind: KindRef<'_>) -> bool {
        !kind.is_reserved()
            && self.admits_head(kind.head())
            && covers(self.method.as_ref(), kind.method())
            && covers(self.context.as_ref(), kind.context())
            && !kind.context().is_some_and(|context| self.misreads(context))
    }

    /// Whether some act `HEAD:METHOD:CONTEXT` is admitted whose context fits `shape`, in which
    /// `None` stands for any run of characters. Lists decide with it whether to show a URI
    /// template.
    pub(crate) fn admits_some(
        &self,
        head: &str,
        method: &str,
        shape: &[Option<char>],
        addressees: &[&str],
    ) -> bool {
        self.admits_head(head)
            && covers(self.method.as_ref(), Some(method))
            && self
                .context
                .as_ref()
                .is_none_or(|context| context.overlaps(shape))
            && self.reaches(addressees)
    }

    /// The capability to propose or approve the requests that this one admits, if it is for
    /// requests alone: its own parts and addressees behind another head.
    #[must_use]
    pub fn of_requests_under(&self, head: &str) -> Option<Self> {
        let rest = self.text.strip_prefix(REQUEST)?;
        let other = Self::parse(&format!("{head}{rest}")).ok()?;
        (rest.is_empty() || rest.starts_with(':')).then(|| Self {
            to: self.to.clone(),
            ..other
        })
    }

    /// Whether this capability admits every act that `other` admits: a participant may not grant
    /// more than it has.
    pub fn includes(&self, other: &Capability) -> bool {
        let whole = |own: Option<&Pattern>, other: Option<&Pattern>| match (own, other) {
            (None | Some(Pattern::Any), _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => own.includes(other),
        };
        let reaches = match (&self.to, &other.to) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => other
                .iter()
                .all(|name| own.iter().any(|own| own.pattern.includes(&name.pattern))),
        };
        // A head with colons, outside `mcp/`, is not reached by a wildcard.
        let colon = matches!(&other.head, Pattern::Exact(text) if text.contains(':'));
        self.head.includes(&other.head)
            && !(self.head.is_partial() && colon)
            && whole(self.method.as_ref(), other.method.as_ref())
            && whole(self.context.as_ref(), other.context.as_ref())
            && !other
                .exact_context()
                .is_some_and(|context| self.misreads(context))
            && reaches
    }

    /// The capability as it was written, without its addressees.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The addressees that it is narrowed to, as they were written; `None` admits all.
    pub fn addressees(&self) -> Option<impl Iterator<Item = &str>> {
        self.to
            .as_deref()
            .map(|to| to.iter().map(|name| &*name.text))
    }

    /// The only context that it admits, if its context has no star.
    pub(crate) fn exact_context(&self) -> Option<&str> {
        match self.context.as_ref()? {
            Pattern::Exact(text) => Some(text),
            Pattern::Any | Pattern::Stars { .. } => None,
        }
    }

    /// Whether some act with this head is admitted towards some addressee: whether a participant
    /// could approve any proposal at all.
    pub fn admits_head(&self, head: &str) -> bool {
        // Outside `mcp/` a head may hold colons; a wildcard does not cross them.
        self.head.matches(head) && !(self.head.is_partial() && head.contains(':'))
    }

    /// Whether this context is withheld although it fits: a partial wildcard matches nothing that
    /// parsers read in different ways.
    fn misreads(&self, context: &str) -> bool {
        self.context.as_ref().is_some_and(Pattern::is_partial) && !is_unambiguous(context)
    }

    fn reaches(&self, addressees: &[&str]) -> bool {
        let Some(to) = &self.to else { return true };
        !addressees.is_empty()
            && addressees
                .iter()
                .all(|addressee| to.iter().any(|name| name.pattern.matches(addressee)))
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// Left out matches anything; named matches an absent part only if it is exactly `*`.
fn covers(pattern: Option<&Pattern>, part: Option<&str>) -> bool {
    match (pattern, part) {
        (None, _) | (Some(Pattern::Any), None) => true,
        (Some(pattern), Some(part)) => pattern.matches(part),
        (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests;
