//! Where a server is: scheme, host, port and path, taken from its URL once.

use http::{HeaderValue, Uri};
use tokio_rustls::rustls::pki_types::ServerName;

/// The origin and the path of an endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) tls: Option<ServerName<'static>>,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// What the `Host` header says.
    pub(super) authority: HeaderValue,
    /// Path and query.
    pub(crate) path: String,
}

impl Origin {
    /// Reads an absolute `http` or `https` URL; the error is a reason without the URL in it.
    pub(crate) fn parse(url: &str) -> Result<Self, &'static str> {
        let uri: Uri = url.parse().map_err(|_| "the URL cannot be read")?;
        let authority = uri.authority().ok_or("the URL has no host")?;
        if authority.as_str().contains('@') {
            return Err("the URL must not contain a user name");
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let (tls, port) = match uri.scheme_str() {
            Some("http") => (None, 80),
            Some("https") => {
                let name = ServerName::try_from(host.clone()).map_err(|_| "the host is not a valid name")?;
                (Some(name), 443)
            }
            _ => return Err("the URL must begin with http:// or https://"),
        };
        Ok(Self {
            tls,
            host,
            port: authority.port_u16().unwrap_or(port),
            authority: HeaderValue::from_str(authority.as_str())
                .map_err(|_| "the host is not a valid name")?,
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        })
    }

    /// Resolves a reference against this endpoint; `None` when it leads to another origin.
    pub(crate) fn join(&self, reference: &str) -> Option<Uri> {
        if reference.contains("://") || reference.starts_with("//") {
            let absolute = if reference.starts_with("//") {
                format!("{}:{reference}", if self.tls.is_some() { "https" } else { "http" })
            } else {
                reference.to_owned()
            };
            let other = Self::parse(&absolute).ok()?;
            let same = other.tls.is_some() == self.tls.is_some()
                && other.host.eq_ignore_ascii_case(&self.host)
                && other.port == self.port;
            return same.then_some(other.path)?.parse().ok();
        }
        let path = if reference.starts_with('/') {
            reference.to_owned()
        } else {
            let own = self.path.split('?').next().unwrap_or_default();
            let folder = own.rfind('/').map_or("", |at| own.get(..at).unwrap_or_default());
            format!("{folder}/{reference}")
        };
        path.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_stays_on_its_origin() {
        let origin = Origin::parse("http://Example.test:8080/a/sse?x=1").unwrap();
        for (reference, path) in [
            ("/messages?id=1", Some("/messages?id=1")),
            ("messages", Some("/a/messages")),
            ("http://example.TEST:8080/m", Some("/m")),
            ("//example.test:8080/m", Some("/m")),
            ("http://example.test/m", None),
            ("https://example.test:8080/m", None),
            ("http://evil.test:8080/m", None),
            ("//evil.test/m", None),
        ] {
            assert_eq!(origin.join(reference).map(|uri| uri.to_string()).as_deref(), path, "{reference}");
        }
    }

    #[test]
    fn urls_that_cannot_be_dialled_are_refused() {
        for url in ["", "/mcp", "ftp://x/", "http://user:pw@x/", "https://[bad/", "x y"] {
            assert!(Origin::parse(url).is_err(), "{url}");
        }
        assert_eq!(Origin::parse("https://[::1]/mcp").unwrap().port, 443);
    }
}
