//! The guarded dialer: the only way to fetch from an address that was learnt from outside.
//!
//! Metadata of servers, issuers, authorization servers and clients names URLs, and those who write it must not be able to make
//! the gateway reach into the network that it runs in (MCP security best practices, "SSRF"). So a host is resolved once, all
//! of its addresses are checked ([`Reach`]), and the connection goes to one that was checked: a name that resolves differently
//! a moment later changes nothing. TLS is for the host of the URL. Nothing is sent but what the [`Fetch`] says: no cookies, no
//! credentials from URLs. An egress proxy is not used, as the check of addresses would mean nothing.

mod address;
mod fetch;
mod network;

pub use address::{Class, Reach, Subnet, SubnetError, class};
pub use fetch::{Fetch, Fetched, Redirects};
pub use network::{Direct, Network, Pending};

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tls::ClientTls;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};

/// The time for a whole fetch: resolving, connecting, redirects, and the last byte of the body.
pub const FETCH_LIMIT: Duration = Duration::from_secs(5);
/// The longest body that a fetch accepts unless it says otherwise.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// The longest URL that is fetched.
pub const URL_BYTES_MAX: usize = 4096;
/// How many redirects of one origin discovery follows.
pub const REDIRECTS_MAX: usize = 3;
/// The most addresses of a name that are looked at; a name with more is refused.
pub const ADDRESSES_MAX: usize = 64;

/// A fetch that failed, or was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// The text is no URL that may be fetched.
    #[error("`{url}` cannot be fetched: {why}")]
    Url {
        /// The text, shortened and without control characters.
        url: String,
        /// What is wrong with it.
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
    /// The URL is plain `http`, and the address is public, or the document that named it came over `https`.
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
    /// The answer is a redirect that is not followed: another origin, one too many, or none is allowed.
    #[error("`{host}` redirects to `{to}`, which is not followed")]
    Redirected {
        /// The host that answered.
        host: String,
        /// The new address, shortened and without control characters.
        to: String,
    },
}

impl DialError {
    /// Whether the same fetch may succeed later: the network or the peer failed, nothing was refused.
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

/// Fetches from addresses that were learnt from outside.
#[derive(Clone)]
pub struct Dialer {
    network: Arc<dyn Network>,
    tls: ClientTls,
}

impl Dialer {
    /// A dialer on the machine's network, which trusts what `tls` trusts.
    #[must_use]
    pub fn new(tls: ClientTls) -> Self {
        Self::over(Arc::new(Direct), tls)
    }

    /// A dialer on another network: for tests.
    #[must_use]
    pub fn over(network: Arc<dyn Network>, tls: ClientTls) -> Self {
        Self { network, tls }
    }

    /// Fetches within [`FETCH_LIMIT`]. Any status is an answer, except a redirect that is not followed.
    ///
    /// # Errors
    /// [`DialError`]; whatever is refused is refused before a connection is opened to it.
    pub async fn fetch(&self, fetch: Fetch, reach: &Reach) -> Result<Fetched, DialError> {
        let until = Instant::now() + FETCH_LIMIT;
        let host = host_of(&fetch.url);
        match timeout_at(until, self.follow(fetch, reach)).await {
            Ok(fetched) => fetched,
            Err(_) => Err(DialError::TimedOut(host)),
        }
    }

    async fn follow(&self, mut fetch: Fetch, reach: &Reach) -> Result<Fetched, DialError> {
        let mut left = match fetch.redirects {
            Redirects::None => 0,
            Redirects::SameOrigin => REDIRECTS_MAX,
        };
        loop {
            let stream = self.open(&fetch.url, reach).await?;
            let fetched = fetch::exchange(stream, &fetch, &self.tls).await?;
            let Some(to) = fetched.redirect() else { return Ok(fetched) };
            let refused = || DialError::Redirected { host: host_of(&fetch.url), to: shown(to) };
            let next = fetch.url.join(to).map_err(|_| refused())?;
            if left == 0 || next.origin() != fetch.url.origin() {
                return Err(refused());
            }
            left -= 1;
            fetch.url = checked(next, to)?;
        }
    }

    /// Resolves once, checks all answers, and connects to one of them.
    async fn open(&self, url: &Url, reach: &Reach) -> Result<TcpStream, DialError> {
        let host = host_of(url);
        let addresses = self.addresses(url, reach).await?;
        let port = url.port_or_known_default().unwrap_or(443);
        let mut why = String::new();
        for address in addresses {
            match self.network.connect(SocketAddr::new(address, port)).await {
                Ok(stream) => return Ok(stream),
                Err(error) => why = error.to_string(),
            }
        }
        Err(DialError::Unreachable { host, why })
    }

    /// The addresses of the URL's host, all of which are within reach.
    ///
    /// # Errors
    /// As [`Dialer::fetch`].
    pub async fn addresses(&self, url: &Url, reach: &Reach) -> Result<Vec<IpAddr>, DialError> {
        let host = host_of(url);
        let found = match url.host() {
            None => return Err(refuse(url.as_str(), "it has no host")),
            Some(Host::Ipv4(address)) => vec![IpAddr::V4(address)],
            Some(Host::Ipv6(address)) => vec![IpAddr::V6(address)],
            Some(Host::Domain(name)) => {
                if let Some(class) = reach.refused_name(name) {
                    return Err(DialError::Forbidden { address: host.clone(), host, class });
                }
                let unresolved = |why: String| DialError::Unresolved { host: host.clone(), why };
                self.network.resolve(name).await.map_err(|error| unresolved(error.to_string()))?
            }
        };
        if found.is_empty() || found.len() > ADDRESSES_MAX {
            let why = format!("it has {} addresses", found.len());
            return Err(DialError::Unresolved { host, why });
        }
        for address in &found {
            if !reach.covers(*address) {
                let class = class(*address);
                return Err(DialError::Forbidden { host, address: address.to_string(), class });
            }
            if url.scheme() == "http" && !reach.allows_plain(*address) {
                return Err(DialError::Plain(host));
            }
        }
        Ok(found)
    }
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dialer(..)")
    }
}

/// Reads a URL that was learnt from outside: `http` or `https`, with a host, without credentials, control characters, blanks,
/// backslashes and fragment. Whether the host may be dialed is decided when it is resolved.
///
/// # Errors
/// [`DialError::Url`].
pub fn parse_url(text: &str) -> Result<Url, DialError> {
    if text.len() > URL_BYTES_MAX {
        return Err(refuse(text, "it is too long"));
    }
    // The parser would drop tabs and line ends, and read a backslash as a slash.
    if text.chars().any(|one| one.is_control() || one.is_whitespace() || one == '\\') {
        return Err(refuse(text, "it has control characters, blanks or backslashes"));
    }
    let url = Url::parse(text).map_err(|_| refuse(text, "it is no absolute URL"))?;
    checked(url, text)
}

fn checked(url: Url, text: &str) -> Result<Url, DialError> {
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

fn refuse(text: &str, why: &'static str) -> DialError {
    DialError::Url { url: shown(text), why }
}

fn host_of(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

/// The beginning of a text from outside, without control and format characters.
fn shown(text: &str) -> String {
    const SHOWN_CHARS: usize = 120;
    let plain = |one: char| {
        !one.is_control()
            && !matches!(one, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().filter(|one| plain(*one)).take(SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests;
