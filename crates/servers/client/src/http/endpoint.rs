//! Endpoint URLs: parsing for the dialer, and references that stay on the same origin.

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

/// Parses an absolute `http` or `https` URL. The error is a reason that does not repeat the URL.
pub(crate) fn parse(url: &str) -> Result<Uri, &'static str> {
    let uri: Uri = url.parse().map_err(|_| "the URL cannot be read")?;
    let authority = uri.authority().ok_or("the URL has no host")?;
    if authority.as_str().contains('@') {
        return Err("the URL must not contain a user name");
    }
    if uri.scheme() != Some(&Scheme::HTTP) && uri.scheme() != Some(&Scheme::HTTPS) {
        return Err("the URL must begin with http:// or https://");
    }
    Ok(uri)
}

/// Resolves a reference against an endpoint; `None` when it leads to another origin.
pub(crate) fn join(endpoint: &Uri, reference: &str) -> Option<Uri> {
    let target: PathAndQuery = if reference.contains("://") || reference.starts_with("//") {
        let absolute = if reference.starts_with("//") {
            format!("{}:{reference}", endpoint.scheme_str()?)
        } else {
            reference.to_owned()
        };
        let other = parse(&absolute).ok()?;
        (origin(&other) == origin(endpoint)).then_some(other.into_parts().path_and_query)??
    } else if reference.starts_with('/') {
        reference.parse().ok()?
    } else {
        let folder = endpoint
            .path()
            .rfind('/')
            .and_then(|end| endpoint.path().get(..end));
        format!("{}/{reference}", folder.unwrap_or_default())
            .parse()
            .ok()?
    };
    let mut parts = endpoint.clone().into_parts();
    parts.path_and_query = Some(target);
    Uri::from_parts(parts).ok()
}

/// The URI of a request to this endpoint, through a client that knows one origin. The client's pool
/// is keyed by host; a short one is hashed faster.
pub(crate) fn request_uri(endpoint: Uri) -> Uri {
    let mut parts = endpoint.clone().into_parts();
    parts.authority = Some(Authority::from_static("s"));
    Uri::from_parts(parts).unwrap_or(endpoint)
}

/// Scheme, host in lower case, and port, the default one if the URL names none.
fn origin(uri: &Uri) -> Option<(&Scheme, String, u16)> {
    let scheme = uri.scheme()?;
    let default = if *scheme == Scheme::HTTPS { 443 } else { 80 };
    Some((
        scheme,
        uri.host()?.to_ascii_lowercase(),
        uri.port_u16().unwrap_or(default),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_stays_on_its_origin() {
        let endpoint = parse("http://Example.test:8080/a/sse?x=1").unwrap();
        for (reference, path) in [
            ("/messages?id=1", Some("/messages?id=1")),
            ("messages", Some("/a/messages")),
            ("http://example.TEST:8080/m", Some("/m")),
            ("//example.test:8080/m", Some("/m")),
            ("http://example.test/m", None),
            ("https://example.test:8080/m", None),
            ("http://evil.test:8080/m", None),
            ("//evil.test/m", None),
            ("http://user:pw@example.test:8080/m", None),
        ] {
            let expect = path.map(|path| format!("http://Example.test:8080{path}"));
            assert_eq!(
                join(&endpoint, reference).map(|uri| uri.to_string()),
                expect,
                "{reference}"
            );
        }
        let secure = parse("https://[::1]/mcp").unwrap();
        let joined = join(&secure, "https://[::1]:443/other").map(|uri| uri.to_string());
        assert_eq!(joined.as_deref(), Some("https://[::1]/other"));
    }

    #[test]
    fn a_request_keeps_path_and_query() {
        let uri = request_uri(parse("https://example.test:8080/a/mcp?x=1").unwrap());
        assert_eq!(uri.to_string(), "https://s/a/mcp?x=1");
    }

    #[test]
    fn urls_that_cannot_be_dialed_are_rejected() {
        for url in [
            "",
            "/mcp",
            "ftp://x/",
            "http://user:pw@x/",
            "https://[bad/",
            "x y",
            "example.test:80",
        ] {
            assert!(parse(url).is_err(), "{url}");
        }
    }
}
