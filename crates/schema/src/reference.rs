//! References to schemas: `host/owner/module/symbol[:version]` (proto-mcp, "BSR References").

use std::fmt;

/// A reference to a message, or by its tool's name to the message of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    /// The registry: a host, with its port if it is not the usual one.
    pub host: String,
    /// The owner of the module.
    pub owner: String,
    /// The module.
    pub module: String,
    /// The full name of a message; without a dot the name of a tool.
    pub symbol: String,
    /// A label or a commit; `None` means the default label.
    pub version: Option<String>,
}

/// Why a text is no reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a reference: host/owner/module/symbol[:version]")]
pub struct BadReference;

/// The longest reference, in bytes.
pub const REFERENCE_BYTES_MAX: usize = 1_024;

impl Reference {
    /// Reads a reference. A version may contain `/`.
    ///
    /// # Errors
    /// It has not all parts, or is longer than [`REFERENCE_BYTES_MAX`].
    pub fn parse(text: &str) -> Result<Self, BadReference> {
        if text.len() > REFERENCE_BYTES_MAX {
            return Err(BadReference);
        }
        let mut parts = text.splitn(4, '/');
        let mut next = || parts.next().filter(|part| is_plain(part)).map(str::to_owned).ok_or(BadReference);
        let (host, owner, module, rest) = (next()?, next()?, next()?, next()?);
        let (symbol, version) = match rest.split_once(':') {
            Some((symbol, version)) => (symbol, Some(version)),
            None => (rest.as_str(), None),
        };
        let is_symbol = |text: &str| {
            !text.starts_with('.')
                && text.chars().all(|one| one.is_ascii_alphanumeric() || "._-".contains(one))
        };
        if [owner.as_str(), module.as_str()].iter().any(|name| name.contains(':'))
            || symbol.is_empty()
            || !is_symbol(symbol)
            || version == Some("")
        {
            return Err(BadReference);
        }
        let (symbol, version) = (symbol.to_owned(), version.map(str::to_owned));
        Ok(Self { host: host.to_ascii_lowercase(), owner, module, symbol, version })
    }

    /// Whether the symbol is the full name of a message.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.symbol.contains('.')
    }

    /// Its version, if that is a commit: 32 hexadecimal digits.
    #[must_use]
    pub fn commit(&self) -> Option<&str> {
        self.version.as_deref().filter(|version| is_commit(version))
    }
}

/// Whether a version is a commit id: 32 hexadecimal digits. Any other is a label.
#[must_use]
pub fn is_commit(version: &str) -> bool {
    version.len() == 32 && version.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a part has only printable ASCII characters, and none that ends a host (RFC 3986).
fn is_plain(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|one| one.is_ascii_graphic() && !b"@?#\\%".contains(&one))
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}/{}/{}", self.host, self.owner, self.module, self.symbol)?;
        self.version.as_ref().map_or(Ok(()), |version| write!(out, ":{version}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_as_they_are_written() {
        let full = "localhost:4433/acme/tools/acme.tools.v1.SearchRequest:feature/x";
        let read = Reference::parse(full).unwrap();
        assert_eq!((read.host.as_str(), read.version.as_deref()), ("localhost:4433", Some("feature/x")));
        assert!(read.is_full() && read.commit().is_none() && read.to_string() == full);
        let short = Reference::parse("buf.build/acme/tools/web_search").unwrap();
        assert!(!short.is_full() && short.version.is_none());
        let commit = "0123456789abcdef0123456789abcdef";
        let pinned = Reference::parse(&format!("BUF.build/a/b/c:{commit}")).unwrap();
        assert_eq!((pinned.host.as_str(), pinned.commit()), ("buf.build", Some(commit)));
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for wrong in [
            "",
            "a/b/c",
            "a/b/c/",
            "/b/c/d",
            "a//c/d",
            "a/b/c/d:",
            "a/b:x/c/d",
            "a/b/c/.d",
            "u@a/b/c/d",
            "a/b/c/d e",
            "a?/b/c/d",
        ] {
            assert_eq!(Reference::parse(wrong), Err(BadReference), "{wrong}");
        }
        let long = |bytes: usize| "a/b/c/".to_owned() + &"d".repeat(bytes - 6);
        assert!(Reference::parse(&long(REFERENCE_BYTES_MAX)).is_ok());
        assert_eq!(Reference::parse(&long(REFERENCE_BYTES_MAX + 1)), Err(BadReference));
    }
}
