//! The guarded dialer: the only way to fetch from an address that was learnt from outside.
//!
//! Metadata of servers, issuers, authorization servers and clients names URLs, and those who write
//! it must not be able to make the gateway reach into the network that it runs in (MCP security
//! best practices, "SSRF"). So a host is resolved once, all of its addresses are checked
//! ([`AllowedAddresses`]), and the connection goes to one that was checked: a name that resolves differently a
//! moment later changes nothing. TLS is for the host of the URL. Nothing is sent but what the
//! [`FetchRequest`] says: no cookies, no credentials from URLs. An egress proxy is not used, as the check
//! of addresses would mean nothing.

mod address;
mod fetch;
mod network;
mod target;

pub use address::{AllowedAddresses, Class, Subnet, SubnetError, class};
pub use fetch::{FetchRequest, Fetched, Redirects};
pub use network::{Direct, Network, Pending};
pub use target::{BODY_BYTES_MAX, DialError, FETCH_LIMIT, URL_BYTES_MAX, parse_url};
use target::{checked, host_of, refuse, shown};

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tls::ClientTls;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};

/// Redirects of one origin that discovery follows.
pub const REDIRECTS_MAX: usize = 3;
/// The most addresses of a name that are looked at; a name with more is refused.
pub const ADDRESSES_MAX: usize = 64;

/// Fetches from addresses that were learnt from outside.
#[derive(Clone)]
pub struct Dialer {
    network: Arc<dyn Network>,
    tls: ClientTls,
}

/// A dialer, and the addresses that it may reach.
#[derive(Clone, Copy)]
pub struct Way<'a> {
    /// The dialer.
    pub dialer: &'a Dialer,
    /// The addresses that it may reach.
    pub reach: &'a AllowedAddresses,
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

    /// Fetches within [`FETCH_LIMIT`]. Any status is an answer, except a redirect that is not
    /// followed.
    ///
    /// # Errors
    /// [`DialError`]; whatever is refused is refused before a connection is opened to it.
    pub async fn fetch(
        &self,
        fetch: FetchRequest,
        reach: &AllowedAddresses,
    ) -> Result<Fetched, DialError> {
        let until = Instant::now() + FETCH_LIMIT;
        let host = host_of(&fetch.url);
        match timeout_at(until, self.follow(fetch, reach)).await {
            Ok(fetched) => fetched,
            Err(_) => Err(DialError::TimedOut(host)),
        }
    }

    async fn follow(
        &self,
        mut fetch: FetchRequest,
        reach: &AllowedAddresses,
    ) -> Result<Fetched, DialError> {
        let mut left = match fetch.redirects {
            Redirects::None => 0,
            Redirects::SameOrigin => REDIRECTS_MAX,
        };
        loop {
            let stream = self.open(&fetch.url, reach).await?;
            let fetched = fetch::exchange(stream, &fetch, &self.tls).await?;
            let Some(to) = fetched.redirect() else {
                return Ok(fetched);
            };
            let refused = || DialError::Redirected {
                host: host_of(&fetch.url),
                to: shown(to),
            };
            let next = fetch.url.join(to).map_err(|_| refused())?;
            if left == 0 || next.origin() != fetch.url.origin() {
                return Err(refused());
            }
            left -= 1;
            fetch.url = checked(next, to)?;
        }
    }

    /// Resolves once, checks all answers, and connects to one of them.
    async fn open(&self, url: &Url, reach: &AllowedAddresses) -> Result<TcpStream, DialError> {
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
    pub async fn addresses(
        &self,
        url: &Url,
        reach: &AllowedAddresses,
    ) -> Result<Vec<IpAddr>, DialError> {
        let host = host_of(url);
        let found = match url.host() {
            None => return Err(refuse(url.as_str(), "it has no host")),
            Some(Host::Ipv4(address)) => vec![IpAddr::V4(address)],
            Some(Host::Ipv6(address)) => vec![IpAddr::V6(address)],
            Some(Host::Domain(name)) => {
                if let Some(class) = reach.refused_name(name) {
                    return Err(DialError::Forbidden {
                        address: host.clone(),
                        host,
                        class,
                    });
                }
                let unresolved = |why: String| DialError::Unresolved {
                    host: host.clone(),
                    why,
                };
                self.network
                    .resolve(name)
                    .await
                    .map_err(|error| unresolved(error.to_string()))?
            }
        };
        if found.is_empty() || found.len() > ADDRESSES_MAX {
            let why = format!("it has {} addresses", found.len());
            return Err(DialError::Unresolved { host, why });
        }
        for address in &found {
            if !reach.covers(*address) {
                let class = class(*address);
                return Err(DialError::Forbidden {
                    host,
                    address: address.to_string(),
                    class,
                });
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

#[cfg(test)]
mod tests;
