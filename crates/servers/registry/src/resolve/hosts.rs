//! Hosts from which references are resolved.

use std::collections::HashMap;

/// The allowed hosts, with the scheme of each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hosts(HashMap<String, &'static str>);

/// Why a host cannot be allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not HOST, HOST:PORT, or http:// with a loopback address")]
pub struct BadHost(pub String);

impl Hosts {
    /// These hosts, each with its port if it is not 443. `http://HOST:PORT` is a registry without
    /// TLS on this machine.
    ///
    /// # Errors
    /// One is no host, or is plain HTTP to another machine.
    pub fn new<'a>(hosts: impl IntoIterator<Item = &'a str>) -> Result<Self, BadHost> {
        let mut allowed = HashMap::new();
        for text in hosts {
            let (scheme, host) = match text.strip_prefix("http://") {
                Some(host) => ("http", host),
                None => ("https", text.strip_prefix("https://").unwrap_or(text)),
            };
            if !may_be_host(host, scheme) {
                return Err(BadHost(text.to_owned()));
            }
            allowed.insert(host.to_ascii_lowercase(), scheme);
        }
        Ok(Self(allowed))
    }

    /// Whether a host is allowed.
    #[must_use]
    pub fn allows(&self, host: &str) -> bool {
        self.0.contains_key(&host.to_ascii_lowercase())
    }

    /// The base URL of an allowed host.
    pub(crate) fn url(&self, host: &str) -> Option<String> {
        self.0.get(host).map(|scheme| format!("{scheme}://{host}"))
    }
}

/// Whether a text is a host, perhaps with a port, that may be asked over this scheme.
fn may_be_host(host: &str, scheme: &str) -> bool {
    let Ok(authority) = host.parse::<http::uri::Authority>() else {
        return false;
    };
    let name = authority.host().trim_matches(['[', ']']);
    let is_local = name == "localhost"
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    // Tokens are sent to the host, which plain HTTP would show to the network.
    let is_private = scheme == "https" || is_local;
    is_private && !host.contains('@') && !name.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_stays_on_this_machine() {
        let hosts = Hosts::new([
            "buf.build",
            "http://127.0.0.1:80",
            "http://[::1]:8080",
            "Corp.example:8443",
        ])
        .unwrap();
        assert_eq!(hosts.url("buf.build").as_deref(), Some("https://buf.build"));
        assert_eq!(
            hosts.url("127.0.0.1:80").as_deref(),
            Some("http://127.0.0.1:80")
        );
        assert_eq!(
            hosts.url("corp.example:8443").as_deref(),
            Some("https://corp.example:8443")
        );
        assert_eq!(
            (hosts.url("corp.example"), hosts.url("evil.example")),
            (None, None)
        );
        for wrong in [
            "http://corp.example",
            "",
            "a b",
            "u@buf.build",
            "ftp://x/",
            "http://127.0.0.1.evil.example",
        ] {
            assert!(Hosts::new([wrong]).is_err(), "{wrong}");
        }
    }
}
