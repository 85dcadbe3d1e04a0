//! Address under which clients outside reach the gateway: everything that clients are shown is
//! spelled from it.

use std::fmt;

use url::{Host, Position, Url};

/// The longest public URL, in bytes.
pub const PUBLIC_URL_BYTES_MAX: usize = 1024;

/// First segments of the gateway's own paths, with which a prefix must not begin: the two could not
/// be distinguished.
const OWN_SEGMENTS: [&str; 14] = [
    ".well-known",
    "api",
    "connect",
    "console",
    "grpc",
    "healthz",
    "login",
    "mcp",
    "messages",
    "metrics",
    "oauth",
    "proto",
    "sse",
    "ws",
];

/// Why a text is no public URL. The messages complete "`server.public_url` ...".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublicUrlError {
    /// It is not absolute, or has characters that a URL cannot have.
    #[error("is no absolute URL")]
    Malformed,
    /// Neither `https`, nor `http` with a host of this machine.
    #[error("must begin with https:// (http:// is for localhost, 127.0.0.1 and [::1] only)")]
    Insecure,
    /// A user name or password.
    #[error("must not have a user name or password")]
    Credentials,
    /// A query or a fragment.
    #[error("must not have a query or a fragment")]
    Query,
    /// An empty segment, a `.` or `..` segment, or an escaped character.
    #[error("has a path that proxies read in different ways")]
    Path,
    /// A path that begins like one of the gateway's own.
    #[error("has a path that begins with `/{0}`, which is a path of the gateway itself")]
    Taken(&'static str),
    /// Longer than [`PUBLIC_URL_BYTES_MAX`].
    #[error("is longer than {PUBLIC_URL_BYTES_MAX} bytes")]
    TooLong,
}

/// The address of the gateway as clients have it: scheme and host in lower case, no default port, a
/// path prefix or none, no slash at the end.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicUrl {
    text: Box<str>,
    /// Length of the origin; the path begins there.
    origin_len: usize,
}

impl PublicUrl {
    /// Reads a public URL. A slash at its end is dropped.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, PublicUrlError> {
        if text.len() > PUBLIC_URL_BYTES_MAX {
            return Err(PublicUrlError::TooLong);
        }
        // The parser would drop or change some of these.
        if text
            .chars()
            .any(|one| one.is_control() || one.is_whitespace() || one == '\\')
        {
            return Err(PublicUrlError::Malformed);
        }
        let url = Url::parse(text).map_err(|_| PublicUrlError::Malformed)?;
        let is_here = match url.host() {
            Some(Host::Domain("")) => return Err(PublicUrlError::Malformed),
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => return Err(PublicUrlError::Malformed),
        };
        match url.scheme() {
            "https" => {}
            "http" if is_here => {}
            _ => return Err(PublicUrlError::Insecure),
        }
        if !url.username().is_empty() || url.password().is_some() || text.contains('@') {
            return Err(PublicUrlError::Credentials);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(PublicUrlError::Query);
        }
        let origin = &url[..Position::BeforePath];
        let path = url.path().strip_suffix('/').unwrap_or(url.path());
        // The parser has resolved `.` and `..`, and escaped what must be: the written path must not
        // need it.
        let written = text.splitn(4, '/').nth(3).unwrap_or_default();
        if path.trim_start_matches('/') != written.strip_suffix('/').unwrap_or(written)
            || path.contains('%')
        {
            return Err(PublicUrlError::Path);
        }
        let mut segments = path.split('/').skip(1);
        if segments.clone().any(str::is_empty) {
            return Err(PublicUrlError::Path);
        }
        let first = segments.next().unwrap_or_default();
        if let Some(taken) = OWN_SEGMENTS.into_iter().find(|own| *own == first) {
            return Err(PublicUrlError::Taken(taken));
        }
        Ok(Self {
            text: format!("{origin}{path}").into(),
            origin_len: origin.len(),
        })
    }

    /// The whole URL, without a slash at its end. It is the issuer of the gateway's own
    /// authorization server.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Scheme, host and port.
    #[must_use]
    pub fn origin(&self) -> &str {
        self.text.get(..self.origin_len).unwrap_or_default()
    }

    /// Host, and the port unless it is the scheme's.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.origin()
            .split_once("://")
            .map_or("", |(_, authority)| authority)
    }

    /// The path prefix: empty, or `/` and what follows.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.text.get(self.origin_len..).unwrap_or_default()
    }

    /// Whether clients reach it over TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.text.starts_with("https://")
    }

    /// The address of one of the gateway's own paths, which begins with a slash.
    #[must_use]
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.text)
    }

    /// The address of a well-known document about one of the gateway's own paths: RFC 8414, section
    /// 3.1, and RFC 9728, section 3.1, put the well-known part before the path. `path` is empty for
    /// the gateway itself.
    #[must_use]
    pub fn well_known(&self, document: &str, path: &str) -> String {
        format!(
            "{}/.well-known/{document}{}{path}",
            self.origin(),
            self.prefix()
        )
    }

    /// A requested path without the prefix, if a proxy has left that on it.
    #[must_use]
    pub fn within<'p>(&self, path: &'p str) -> &'p str {
        let prefix = self.prefix();
        let rest = path.strip_prefix(prefix).filter(|_| !prefix.is_empty());
        rest.filter(|rest| rest.starts_with('/')).unwrap_or(path)
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_urls_are_spelled_in_one_way() {
        for (text, expect) in [
            ("https://gw.example", "https://gw.example"),
            ("HTTPS://GW.Example/", "https://gw.example"),
            ("https://gw.example:443/", "https://gw.example"),
            ("https://gw.example:8443", "https://gw.example:8443"),
            ("https://gw.example/a/b/", "https://gw.example/a/b"),
            ("http://127.0.0.1:7070", "http://127.0.0.1:7070"),
            ("http://localhost:7070/x", "http://localhost:7070/x"),
            ("http://[::1]:80/", "http://[::1]"),
        ] {
            assert_eq!(PublicUrl::parse(text).unwrap().as_str(), expect, "{text}");
        }
        use PublicUrlError as E;
        let long = format!("https://gw.example/{}", "a".repeat(PUBLIC_URL_BYTES_MAX));
        for (text, expect) in [
            ("gw.example", E::Malformed),
            ("https://", E::Malformed),
            ("https://gw. example", E::Malformed),
            ("https:\\\\gw.example", E::Malformed),
            ("http://gw.example", E::Insecure),
            ("http://10.0.0.1", E::Insecure),
            ("ftp://gw.example", E::Insecure),
            ("https://a:b@gw.example", E::Credentials),
            ("https://@gw.example", E::Credentials),
            ("https://gw.example?x", E::Query),
            ("https://gw.example/#x", E::Query),
            ("https://gw.example/a/../b", E::Path),
            ("https://gw.example/a//b", E::Path),
            ("https://gw.example/%61", E::Path),
            ("https://gw.example/ä", E::Path),
            ("https://gw.example/mcp", E::Taken("mcp")),
            ("https://gw.example/oauth/x", E::Taken("oauth")),
            (&long, E::TooLong),
        ] {
            assert_eq!(PublicUrl::parse(text), Err(expect), "{text}");
        }
    }

    #[test]
    fn a_public_url_has_its_parts() {
        let plain = PublicUrl::parse("https://gw.example:8443").unwrap();
        assert_eq!((plain.authority(), plain.prefix()), ("gw.example:8443", ""));
        assert_eq!(plain.at("/mcp"), "https://gw.example:8443/mcp");
        assert_eq!(
            plain.well_known("x", "/mcp"),
            "https://gw.example:8443/.well-known/x/mcp"
        );
        assert_eq!(plain.within("/mcp"), "/mcp");
        let below = PublicUrl::parse("https://gw.example/a/b").unwrap();
        assert_eq!(
            (below.origin(), below.authority(), below.prefix()),
            ("https://gw.example", "gw.example", "/a/b")
        );
        assert_eq!(below.at("/mcp/ops"), "https://gw.example/a/b/mcp/ops");
        assert_eq!(
            below.well_known("x", ""),
            "https://gw.example/.well-known/x/a/b"
        );
        for (path, expect) in [
            ("/a/b/mcp", "/mcp"),
            ("/mcp", "/mcp"),
            ("/a/bc/mcp", "/a/bc/mcp"),
            ("/a/b", "/a/b"),
        ] {
            assert_eq!(below.within(path), expect, "{path}");
        }
        assert!(below.is_secure() && !PublicUrl::parse("http://localhost").unwrap().is_secure());
    }
}
