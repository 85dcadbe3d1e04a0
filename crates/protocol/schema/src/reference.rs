//! References to schemas in a registry: `host/owner/module/symbol[:version]`.

use std::fmt;
use std::str::FromStr;

/// The owner of all modules of the gateway's own registry.
pub const OWNER: &str = "portmoot";
/// The labels of each of them: the module as it is now.
pub const LABELS: [&str; 2] = ["main", "v1"];
/// Bytes of a reference.
const REFERENCE_BYTES_MAX: usize = 1_024;

/// A reference to the schema of a tool, such as
/// `buf.build/acme/tools/acme.tools.v1.WebSearchRequest:v1`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    /// The registry: a host, perhaps with a port; in lower case.
    pub host: String,
    /// Owner of the module.
    pub owner: String,
    /// The module.
    pub module: String,
    /// The full name of the message of the arguments; a name without a dot is that of a tool.
    pub symbol: String,
    /// A label or a commit; `None` is the default label.
    pub version: Option<String>,
}

/// A text is no reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a reference of the form host/owner/module/symbol[:version]")]
pub struct NoReference;

impl Reference {
    /// Whether the version names a commit, which never changes, rather than a label.
    #[must_use]
    pub fn is_commit(&self) -> bool {
        let Some(version) = &self.version else {
            return false;
        };
        let mut digits = version.bytes();
        version.len() == 32 && digits.all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    }

    /// Whether a filter selects this reference: the same, or without a version the same in any
    /// version. A label of the gateway's own registry is the commit that a list names.
    #[must_use]
    pub fn is_selected_by(&self, filter: &Self) -> bool {
        let is_version_selected = match &filter.version {
            None => true,
            Some(version) if self.version.as_ref() == Some(version) => true,
            Some(version) => {
                self.owner == OWNER && self.is_commit() && LABELS.contains(&version.as_str())
            }
        };
        is_version_selected
            && self.host == filter.host
            && self.owner == filter.owner
            && self.module == filter.module
            && self.symbol == filter.symbol
    }
}

impl FromStr for Reference {
    type Err = NoReference;

    fn from_str(text: &str) -> Result<Self, NoReference> {
        // At most four parts: a version may have slashes of its own, such as `feature/a`.
        let parts: Vec<_> = text.splitn(4, '/').collect();
        let &[host, owner, module, rest] = parts.as_slice() else {
            return Err(NoReference);
        };
        let (symbol, version) = match rest.split_once(':') {
            Some((symbol, version)) => (symbol, Some(version)),
            None => (rest, None),
        };
        let is_host =
            is_name(host, b".-:") || (host.starts_with('[') && host.bytes().all(is_in_address));
        // The parts become those of a URL: no name may lead elsewhere, such as `..` or `a?b`.
        let is_valid = text.len() <= REFERENCE_BYTES_MAX
            && is_host
            && [owner, module].iter().all(|name| is_name(name, b"-_"))
            && is_name(symbol, b"._-")
            && version.is_none_or(|version| is_name(version, b"._-/"));
        if !is_valid {
            return Err(NoReference);
        }
        Ok(Self {
            host: host.to_ascii_lowercase(),
            owner: owner.to_owned(),
            module: module.to_owned(),
            symbol: symbol.to_owned(),
            version: version.map(str::to_owned),
        })
    }
}

/// Whether a text has only letters, digits and the bytes `more`, and begins with a letter, a digit
/// or an underscore.
fn is_name(name: &str, more: &[u8]) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
        && name
            .bytes()
            .all(|letter| letter.is_ascii_alphanumeric() || more.contains(&letter))
}

/// Whether a byte can be in `[address]:port` of IPv6.
fn is_in_address(letter: u8) -> bool {
    letter.is_ascii_hexdigit() || matches!(letter, b'[' | b']' | b':' | b'.')
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            host,
            owner,
            module,
            symbol,
            version,
        } = self;
        write!(out, "{host}/{owner}/{module}/{symbol}")?;
        if let Some(version) = version {
            write!(out, ":{version}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_and_written() {
        for (text, host, symbol, version) in [
            (
                "buf.build/acme/tools/acme.tools.v1.WebSearchRequest:v1",
                "buf.build",
                "acme.tools.v1.WebSearchRequest",
                Some("v1"),
            ),
            (
                "buf.build/acme/tools/web_search",
                "buf.build",
                "web_search",
                None,
            ),
            (
                "localhost:8080/acme/my-tools/x.Y:feature/a-b",
                "localhost:8080",
                "x.Y",
                Some("feature/a-b"),
            ),
            ("[::1]:8080/acme/tools/x.Y", "[::1]:8080", "x.Y", None),
        ] {
            let read: Reference = text
                .parse()
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(
                (&*read.host, &*read.symbol, read.version.as_deref()),
                (host, symbol, version),
                "{text}"
            );
            assert_eq!(read.to_string(), text);
        }
        assert_eq!(
            "Buf.Build/a/b/c".parse::<Reference>().map(|read| read.host),
            Ok("buf.build".to_owned())
        );
        for bad in [
            "",
            "a/b/c",
            "a/b/c/",
            "/b/c/d",
            "a//c/d",
            "a/b/c/d:",
            "a/b/c/d:v 1",
            "a@b/c/d/e",
            "a/../c/d",
            "a/b/c/d?e",
            "https://a/b/c",
            "a/b/c/d/e",
            "a/b/c/d:../x",
            "a/b/c/d\n",
            "-a/b/c/d",
        ] {
            assert_eq!(bad.parse::<Reference>(), Err(NoReference), "{bad}");
        }
        assert!(
            format!("a/b/c/{}", "d".repeat(2_000))
                .parse::<Reference>()
                .is_err()
        );
    }

    #[test]
    fn versions_are_labels_or_commits_and_filters_may_leave_them_out() {
        let read = |text: &str| text.parse::<Reference>().expect("a reference");
        assert!(read("a/b/c/d:0123456789abcdef0123456789abcdef").is_commit());
        assert!(!read("a/b/c/d:0123456789abcdef0123456789abcdeg").is_commit());
        assert!(!read("a/b/c/d").is_commit());
        assert!(read("a/b/c/d:v1").is_selected_by(&read("a/b/c/d")));
        assert!(read("a/b/c/d:v1").is_selected_by(&read("a/b/c/d:v1")));
        assert!(!read("a/b/c/d:v1").is_selected_by(&read("a/b/c/d:v2")));
        assert!(!read("a/b/c/d").is_selected_by(&read("a/b/c/d:v1")));
        let own = read("a/portmoot/c/d:14773a54b55a338caf7123c15ca207e3");
        for (version, is_selected) in [(":v1", true), (":main", true), ("", true), (":v2", false)] {
            assert_eq!(
                own.is_selected_by(&read(&format!("a/portmoot/c/d{version}"))),
                is_selected,
                "{version}"
            );
        }
        assert!(
            !read("a/b/c/d:14773a54b55a338caf7123c15ca207e3").is_selected_by(&read("a/b/c/d:v1"))
        );
        assert!(!read("a/b/c/e:v1").is_selected_by(&read("a/b/c/d")));
    }
}
