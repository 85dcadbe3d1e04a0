//! Addresses that may be fetched, as they are read, and why a fetch fails.

use std::time::Duration;

use url::Url;

use super::address::Class;

/// The time for a whole fetch: resolving, connecting, redirects, and the last byte of the body.
pub const FETCH_LIMIT: Duration = Duration::from_secs(5);
/// The longest body that a fetch accepts unless it says otherwise.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// The longest URL that is fetched.
pub const URL_BYTES_MAX: usize = 4096;
/// A fetch that failed, or was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// The text is no URL that may be fetched.
    #[error("`{url}` cannot be fetched: {why}")]
    Url {
        /// The text, shortened and without control characters.
        url: String,
        /// Fault of the URL.
        why: &'static str,
    },
    /// The host, or one of its addresses, is out of reach.
    #[error("`{host}` may not be dialed: {address} is {class}")]
    Forbidden {
        /// The host of the URL.
        host: String,
        /// The name or address that is refused.
        address: String,
        /// The class of the address.
        class: Class,
    },
    /// The URL is plain `http`, and the address is public, or the document that named it came over
    /// `https`.
    #[error("`{0}` may be dialed with https only")]
    Plain(String),
    /// The name has no address.
    #[error("`{host}` cannot be resolved: {why}")]
    Unresolved {
        /// The host of the URL.
        host: String,
        /// The resolver's words.
        why: String,
    },
    /// No connection, or it broke.
    #[error("`{host}` cannot be reached: {why}")]
    Unreachable {
        /// The host of the URL.
        host: String,
        /// The reason.
        why: String,
    },
    /// The answer took longer than [`FETCH_LIMIT`].
    #[error("`{0}` did not answer within {limit} s", limit = FETCH_LIMIT.as_secs())]
    TimedOut(String),
    /// The answer is longer than the fetch accepts.
    #[error("the answer of `{host}` is longer than {max} bytes")]
    TooLong {
        /// The host of the URL.
        host: String,
        /// The limit in bytes.
        max: usize,
    },
    /// The answer is a redirect that is not followed: another origin, one too many, or none is
    /// allowed.
    #[error("`{host}` redirects to `{to}`, which is not followed")]
    Redirected {
        /// The host that answered.
        host: String,
        /// The new address, shortened and without control characters.
        to: String,
    },
}

impl DialError {
    /// Whether the same fetch may succeed later: the network or the peer failed, nothing was
    /// refused.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unresolved { .. } | Self::Unreachable { .. } | Self::TimedOut(_) => true,
            Self::Url { .. }
            | Self::Forbidden { .. }
            | Self::Plain(_)
            | Self::TooLong { .. }
            | Self::Redirected { .. } => false,
        }
    }
}

/// Reads a URL that was learnt from outside: `http` or `https`, with a host, without credentials,
/// control characters, blanks, backslashes and fragment. Whether the host may be dialed is decided
/// when it is resolved.
///
/// # Errors
/// [`DialError::Url`].
pub fn parse_url(text: &str) -> Result<Url, DialError> {
    if text.len() > URL_BYTES_MAX {
        return Err(refuse(text, "it is too long"));
    }
    // The parser would drop tabs and line ends, and read a backslash as a slash.
    if text
        .chars()
        .any(|one| one.is_control() || one.is_whitespace() || one == '\\')
    {
        return Err(refuse(
            text,
            "it has control characters, blanks or backslashes",
        ));
    }
    let url = Url::parse(text).map_err(|_| refuse(text, "it is no absolute URL"))?;
    checked(url, text)
}

pub(super) fn checked(url: Url, text: &str) -> Result<Url, DialError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refuse(text, "its scheme is neither https nor http"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(refuse(text, "it has no host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse(text, "it has credentials"));
    }
    if url.fragment().is_some() {
        return Err(refuse(text, "it has a fragment"));
    }
    Ok(url)
}

pub(super) fn refuse(text: &str, why: &'static str) -> DialError {
    DialError::Url {
        url: shown(text),
        why,
    }
}

pub(super) fn host_of(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

/// The beginning of a text from outside, without control and format characters.
pub(super) fn shown(text: &str) -> String {
    const SHOWN_CHARS: usize = 120;
    let plain = |one: char| {
        !one.is_control()
            && !matches!(one, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars()
        .filter(|one| plain(*one))
        .take(SHOWN_CHARS)
        .collect()
}
