//! Redirect URIs: which are accepted at registration, which requested one matches a registered one,
//! and how they are shown.
//!
//! Sources: OAuth 2.1 draft 13, sections 2.3 and 8.4.2; RFC 8252, sections 7.1 to 7.3; RFC 9700,
//! section 2.1.

use url::{Host, Url};

/// The longest redirect URI, in bytes.
pub const REDIRECT_URI_BYTES_MAX: usize = 2048;

/// Loopback hosts as clients spell them. RFC 8252 has the addresses; the large clients send the
/// name.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

/// Destination of a redirect URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A web server, over TLS: its host, and its port unless that is 443.
    Web(String),
    /// A program on the computer of the person: host and port as they were requested.
    Loopback(String),
    /// An application that the person's system opens for this scheme.
    Application(String),
}

/// Why a redirect URI is not accepted. The messages complete "the redirect URI ...".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RedirectFault {
    /// Longer than [`REDIRECT_URI_BYTES_MAX`].
    #[error("is longer than {REDIRECT_URI_BYTES_MAX} bytes")]
    TooLong,
    /// Relative, or with characters that a URI cannot have.
    #[error("is no absolute URI")]
    Malformed,
    /// It has a fragment.
    #[error("has a fragment")]
    Fragment,
    /// A user name or password before the host.
    #[error("has a user name or password")]
    Credentials,
    /// Plain HTTP to another machine.
    #[error("must begin with https://, or be on loopback")]
    Insecure,
    /// A scheme of an application that the operator has not listed.
    #[error("has a scheme that is not accepted here")]
    Scheme,
}

/// Where an acceptable redirect URI leads. `private` lists those with schemes of applications, byte
/// for byte.
///
/// # Errors
/// Why it is not accepted.
pub fn destination(uri: &str, private: &[String]) -> Result<Destination, RedirectFault> {
    if uri.len() > REDIRECT_URI_BYTES_MAX {
        return Err(RedirectFault::TooLong);
    }
    // The parser would drop or change some of these, and so would a browser.
    if uri
        .chars()
        .any(|one| one.is_control() || one.is_whitespace() || one == '\\' || !one.is_ascii())
    {
        return Err(RedirectFault::Malformed);
    }
    if uri.contains('#') {
        return Err(RedirectFault::Fragment);
    }
    let url = Url::parse(uri).map_err(|_| RedirectFault::Malformed)?;
    if private.iter().any(|known| known == uri) && !matches!(url.scheme(), "http" | "https") {
        return Ok(Destination::Application(url.scheme().to_owned()));
    }
    let authority = uri
        .split_once("://")
        .map_or("", |(_, rest)| rest.split(['/', '?']).next().unwrap_or(""));
    if authority.contains('@') || !url.username().is_empty() || url.password().is_some() {
        return Err(RedirectFault::Credentials);
    }
    match url.scheme() {
        "https" if !uri.starts_with("https://") => Err(RedirectFault::Malformed),
        "https" => match url.host() {
            Some(Host::Domain(name)) if !is_plain_name(name) => Err(RedirectFault::Malformed),
            Some(_) => Ok(Destination::Web(authority_of(&url))),
            None => Err(RedirectFault::Malformed),
        },
        "http" => match Loopback::read(uri) {
            Some(loopback) => Ok(Destination::Loopback(loopback.authority.to_owned())),
            None => Err(RedirectFault::Insecure),
        },
        _ => Err(RedirectFault::Scheme),
    }
}

/// Whether a host is of letters, digits, dots, hyphens and underscores. URLs may have more, which
/// means something else in a content security policy: `*` widens it, `;` ends a directive.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}

/// Host and port of a URL, the port unless it is the scheme's.
fn authority_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// A redirect URI on loopback, in parts.
#[derive(PartialEq, Eq)]
struct Loopback<'u> {
    authority: &'u str,
    host: &'static str,
    /// Path and query, as they were spelled.
    rest: &'u str,
}

impl<'u> Loopback<'u> {
    fn read(uri: &'u str) -> Option<Self> {
        let after = uri.strip_prefix("http://")?;
        let end = after.find(['/', '?']).unwrap_or(after.len());
        let (authority, rest) = after.split_at_checked(end)?;
        let host = LOOPBACK
            .into_iter()
            .find(|host| authority.starts_with(host))?;
        match authority.strip_prefix(host)?.strip_prefix(':') {
            None if authority == host => {}
            Some(port)
                if port.bytes().all(|byte| byte.is_ascii_digit())
                    && port.parse::<u16>().is_ok() => {}
            None | Some(_) => return None,
        }
        Some(Self {
            authority,
            host,
            rest,
        })
    }
}

/// Whether a requested redirect URI is the registered one: byte for byte, but for the port on
/// loopback (RFC 8252, section 7.3).
#[must_use]
pub fn matches(registered: &str, requested: &str) -> bool {
    if registered == requested {
        return true;
    }
    match (Loopback::read(registered), Loopback::read(requested)) {
        (Some(one), Some(other)) => one.host == other.host && one.rest == other.rest,
        (None | Some(_), _) => false,
    }
}

/// The redirect URI with more parameters in its query.
#[must_use]
pub fn with_query(uri: &str, parameters: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    parameters
        .iter()
        .for_each(|(name, value)| _ = query.append_pair(name, value));
    let separator = match uri.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some(_) => "&",
    };
    format!("{uri}{separator}{}", query.finish())
}

impl Destination {
    /// The source that `form-action` of a content security policy allows so that the answer to a
    /// form may redirect there.
    #[must_use]
    pub fn form_action(&self) -> String {
        match self {
            Self::Web(authority) => format!("https://{authority}"),
            // The grammar of sources has no addresses of IPv6.
            Self::Loopback(authority) if authority.starts_with('[') => "http:".to_owned(),
            Self::Loopback(authority) => format!("http://{authority}"),
            Self::Application(scheme) => format!("{scheme}:"),
        }
    }

    /// For people.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Web(authority) => authority.clone(),
            Self::Loopback(authority) => format!("a program on your computer ({authority})"),
            Self::Application(scheme) => {
                format!("the application on your computer that opens {scheme}: links")
            }
        }
    }

    /// Whether a program or application on the person's computer receives the code: any other there
    /// could take its place.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Web(_) => false,
            Self::Loopback(_) | Self::Application(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURSOR: &str = "cursor://anysphere.cursor-mcp/oauth/callback";

    #[test]
    fn acceptable_redirect_uris_lead_somewhere() {
        use Destination as D;
        use RedirectFault as F;
        let private = [CURSOR.to_owned(), "https://listed.example/x".to_owned()];
        let long = format!("https://app.example/{}", "a".repeat(REDIRECT_URI_BYTES_MAX));
        let at_limit = &long[..REDIRECT_URI_BYTES_MAX];
        for (uri, expect) in [
            (
                "https://claude.ai/api/mcp/auth_callback",
                Ok(D::Web("claude.ai".into())),
            ),
            (
                "https://app.example:8443/cb?x=1",
                Ok(D::Web("app.example:8443".into())),
            ),
            (at_limit, Ok(D::Web("app.example".into()))),
            (&long, Err(F::TooLong)),
            (
                "http://localhost/callback",
                Ok(D::Loopback("localhost".into())),
            ),
            (
                "http://127.0.0.1:33418/",
                Ok(D::Loopback("127.0.0.1:33418".into())),
            ),
            ("http://[::1]:1/x", Ok(D::Loopback("[::1]:1".into()))),
            (CURSOR, Ok(D::Application("cursor".into()))),
            (
                "cursor://anysphere.cursor-mcp/oauth/callback2",
                Err(F::Scheme),
            ),
            (
                "cursor://anysphere.cursor-mcp/oauth/callback/",
                Err(F::Scheme),
            ),
            (
                "CURSOR://anysphere.cursor-mcp/oauth/callback",
                Err(F::Scheme),
            ),
            ("vscode://x", Err(F::Scheme)),
            ("javascript:alert(1)", Err(F::Scheme)),
            ("data:text/html,x", Err(F::Scheme)),
            ("urn:ietf:wg:oauth:2.0:oob", Err(F::Scheme)),
            ("file:///etc/passwd", Err(F::Scheme)),
            ("http://app.example/cb", Err(F::Insecure)),
            ("http://localhost.evil.example/cb", Err(F::Insecure)),
            ("http://localhost:80.evil.example/cb", Err(F::Malformed)),
            ("http://127.0.0.1.evil.example/cb", Err(F::Insecure)),
            ("http://127.1/cb", Err(F::Insecure)),
            ("http://0x7f000001/cb", Err(F::Insecure)),
            ("http://127.0.0.2/cb", Err(F::Insecure)),
            ("http://[::ffff:127.0.0.1]/cb", Err(F::Insecure)),
            ("http://localhost:/cb", Err(F::Insecure)),
            ("http://localhost:99999/cb", Err(F::Malformed)),
            ("http://127.0.0.1:1@evil.example/cb", Err(F::Credentials)),
            ("https://a:b@app.example/cb", Err(F::Credentials)),
            ("https://@app.example/cb", Err(F::Credentials)),
            ("https://app.example/cb#x", Err(F::Fragment)),
            ("https://app.example/cb#", Err(F::Fragment)),
            ("https:\\\\app.example/cb", Err(F::Malformed)),
            ("https:app.example/cb", Err(F::Malformed)),
            ("https://app.example/c b", Err(F::Malformed)),
            ("https://app.example/\ncb", Err(F::Malformed)),
            ("https://äpp.example/cb", Err(F::Malformed)),
            (
                "https://xn--pp-wia.example/cb",
                Ok(D::Web("xn--pp-wia.example".into())),
            ),
            (
                "https://[2001:db8::1]/cb",
                Ok(D::Web("[2001:db8::1]".into())),
            ),
            ("https://*/cb", Err(F::Malformed)),
            ("https://*.example/cb", Err(F::Malformed)),
            ("https://x;sandbox/cb", Err(F::Malformed)),
            ("https://a,b.example/cb", Err(F::Malformed)),
            ("https://'self'/cb", Err(F::Malformed)),
            ("https://a%3Bb.example/cb", Err(F::Malformed)),
            ("https://a_b.example/cb", Ok(D::Web("a_b.example".into()))),
            ("https://", Err(F::Malformed)),
            ("/cb", Err(F::Malformed)),
            ("", Err(F::Malformed)),
        ] {
            assert_eq!(destination(uri, &private), expect, "{uri}");
        }
    }

    /// The documented redirect URIs of each client, as registered and as requested, and near misses
    /// of each.
    #[test]
    fn documented_redirect_uris_match_and_near_misses_do_not() {
        let claude_code: &[&str] = &["http://localhost/callback", "http://127.0.0.1/callback"];
        let claude: &[&str] = &[
            "https://claude.ai/api/mcp/auth_callback",
            "https://claude.com/api/mcp/auth_callback",
        ];
        let vs_code: &[&str] = &[
            "https://vscode.dev/redirect",
            "https://insiders.vscode.dev/redirect",
            "http://127.0.0.1/",
            "http://127.0.0.1:33418/",
        ];
        let cursor: &[&str] = &[
            CURSOR,
            "https://www.cursor.com/agents/mcp/oauth/callback",
            "http://localhost:8787/callback",
        ];
        let chatgpt: &[&str] = &[
            "https://chatgpt.com/connector/oauth/abc123",
            "https://chatgpt.com/connector_platform_oauth_redirect",
        ];
        let private = [CURSOR.to_owned()];
        for (registered, requested, is_match) in [
            (claude_code, "http://localhost:3118/callback", true),
            (claude_code, "http://127.0.0.1:54545/callback", true),
            (claude_code, "http://localhost/callback", true),
            (claude_code, "http://localhost:3118/callback/", false),
            (claude_code, "http://localhost:3118/Callback", false),
            (claude_code, "http://localhost:3118/callback?x=1", false),
            (claude_code, "http://localhost:3118", false),
            (claude_code, "http://[::1]:3118/callback", false),
            (claude_code, "https://localhost:3118/callback", false),
            (claude_code, "http://LOCALHOST:3118/callback", false),
            (
                claude_code,
                "http://localhost:3118@evil.example/callback",
                false,
            ),
            (claude_code, "http://localhost.evil.example/callback", false),
            (claude_code, "http://127.0.0.1.nip.io/callback", false),
            (claude_code, "http://localhost:031 18/callback", false),
            (claude, "https://claude.ai/api/mcp/auth_callback", true),
            (claude, "https://claude.com/api/mcp/auth_callback", true),
            (claude, "https://claude.ai:443/api/mcp/auth_callback", false),
            (
                claude,
                "https://claude.ai:8443/api/mcp/auth_callback",
                false,
            ),
            (claude, "https://claude.ai/api/mcp/auth_callback/", false),
            (claude, "https://claude.ai/api/mcp/auth_callback?x", false),
            (
                claude,
                "https://claude.ai/api/mcp/../mcp/auth_callback",
                false,
            ),
            (claude, "https://claude.ai/api/mcp/auth%5fcallback", false),
            (claude, "http://claude.ai/api/mcp/auth_callback", false),
            (
                claude,
                "https://claude.ai.evil.example/api/mcp/auth_callback",
                false,
            ),
            (
                claude,
                "https://evil.example/?https://claude.ai/api/mcp/auth_callback",
                false,
            ),
            (vs_code, "https://vscode.dev/redirect", true),
            (vs_code, "https://insiders.vscode.dev/redirect", true),
            (vs_code, "http://127.0.0.1:33418/", true),
            (vs_code, "http://127.0.0.1:50000/", true),
            (vs_code, "http://127.0.0.1:50000", false),
            (vs_code, "http://localhost:33418/", false),
            (vs_code, "https://x.vscode.dev/redirect", false),
            (cursor, CURSOR, true),
            (
                cursor,
                "cursor://anysphere.cursor-mcp/oauth/callback?x=1",
                false,
            ),
            (
                cursor,
                "cursor://anysphere.cursor-mcp:1/oauth/callback",
                false,
            ),
            (
                cursor,
                "https://www.cursor.com/agents/mcp/oauth/callback",
                true,
            ),
            (
                cursor,
                "https://cursor.com/agents/mcp/oauth/callback",
                false,
            ),
            (cursor, "http://localhost:8787/callback", true),
            (cursor, "http://localhost:9999/callback", true),
            (cursor, "http://127.0.0.1:8787/callback", false),
            (chatgpt, "https://chatgpt.com/connector/oauth/abc123", true),
            (
                chatgpt,
                "https://chatgpt.com/connector_platform_oauth_redirect",
                true,
            ),
            (chatgpt, "https://chatgpt.com/connector/oauth/abc124", false),
            (chatgpt, "https://chatgpt.com/connector/oauth/", false),
        ] {
            for uri in registered {
                assert!(destination(uri, &private).is_ok(), "{uri}");
            }
            let found = registered.iter().any(|known| matches(known, requested));
            assert_eq!(found, is_match, "{requested}");
        }
    }

    #[test]
    fn parameters_join_the_query_that_is_there() {
        for (uri, expect) in [
            (
                "https://app.example/cb",
                "https://app.example/cb?code=a%26b",
            ),
            (
                "https://app.example/cb?",
                "https://app.example/cb?code=a%26b",
            ),
            (
                "https://app.example/cb?x=1",
                "https://app.example/cb?x=1&code=a%26b",
            ),
            (
                CURSOR,
                "cursor://anysphere.cursor-mcp/oauth/callback?code=a%26b",
            ),
        ] {
            assert_eq!(with_query(uri, &[("code", "a&b")]), expect);
        }
    }

    #[test]
    fn a_policy_names_the_one_destination() {
        for (uri, source, is_local) in [
            (
                "https://app.example:8443/cb",
                "https://app.example:8443",
                false,
            ),
            ("http://127.0.0.1:5/", "http://127.0.0.1:5", true),
            ("http://[::1]:5/", "http:", true),
            (CURSOR, "cursor:", true),
        ] {
            let destination = destination(uri, &[CURSOR.to_owned()]).unwrap();
            assert_eq!(
                (destination.form_action().as_str(), destination.is_local()),
                (source, is_local)
            );
        }
    }
}
