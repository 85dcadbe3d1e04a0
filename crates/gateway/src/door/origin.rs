//! Who may speak to this listener: `Host` and `Origin` of every HTTP request (MCP 2025-11-25 and 2026-07-28,
//! Streamable HTTP, "Security Warning"; DNS rebinding). Must not know what is asked for.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::{HOST, ORIGIN};

/// The names under which this listener is addressed.
#[derive(Debug, Clone, Copy)]
pub struct Hosts<'c> {
    names: &'c [String],
    address: IpAddr,
}

/// Why a request is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// `Host` is missing, doubled, or none of ours.
    Host,
    /// `Origin` is present and none of ours.
    Origin,
}

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

impl<'c> Hosts<'c> {
    /// Loopback names, the address that is listened on, and `names`: host names, or `host:port`, of the operator's
    /// configuration (`[server] hosts`). Made for each request, so it borrows all.
    pub fn new(names: &'c [String], address: IpAddr) -> Self {
        Self { names, address }
    }

    /// Checks both headers.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), Foreign> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().and_then(|v| v.to_str().ok()).ok_or(Foreign::Host)?;
        if hosts.next().is_some() || !self.knows(host) {
            return Err(Foreign::Host);
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        match origins.next() {
            None => Ok(()),
            Some(origin) if origins.next().is_none() => {
                let host = origin.to_str().ok().and_then(|origin| {
                    origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
                });
                if host.is_some_and(|host| self.knows(host)) { Ok(()) } else { Err(Foreign::Origin) }
            }
            Some(_) => Err(Foreign::Origin),
        }
    }

    fn knows(&self, authority: &str) -> bool {
        let bare = match authority.rsplit_once(':') {
            Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => host,
            _ => authority,
        };
        let is_it = |name: &str| name.eq_ignore_ascii_case(bare) || name.eq_ignore_ascii_case(authority);
        LOOPBACK.into_iter().chain(self.names.iter().map(String::as_str)).any(is_it)
            || bare.trim_matches(['[', ']']).parse() == Ok(self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &[&str], origin: Option<&str>) -> Result<(), Foreign> {
        let names = ["Gate.example.org".to_string(), "other.example.org:8443".to_string()];
        let hosts = Hosts::new(&names, [192, 0, 2, 7].into());
        let mut headers = HeaderMap::new();
        for value in host {
            headers.append(HOST, value.parse().unwrap());
        }
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        hosts.check(&headers)
    }

    #[test]
    fn only_our_own_names_are_heard() {
        type Case = (&'static [&'static str], Option<&'static str>, Result<(), Foreign>);
        let cases: [Case; 16] = [
            (&["127.0.0.1:7070"], None, Ok(())),
            (&["localhost"], Some("http://localhost:3000"), Ok(())),
            (&["[::1]:7070"], Some("http://[::1]:7070"), Ok(())),
            (&["GATE.example.org"], Some("https://gate.example.org"), Ok(())),
            (&["other.example.org:8443"], None, Ok(())),
            (&["other.example.org:1"], None, Err(Foreign::Host)),
            (&["192.0.2.7:7070"], Some("http://192.0.2.7:7070"), Ok(())),
            (&["192.0.2.8:7070"], None, Err(Foreign::Host)),
            (&["evil.example.org"], None, Err(Foreign::Host)),
            (&["localhost.evil.example.org"], None, Err(Foreign::Host)),
            (&[], None, Err(Foreign::Host)),
            (&["localhost", "localhost"], None, Err(Foreign::Host)),
            (&["localhost"], Some("http://evil.example.org"), Err(Foreign::Origin)),
            (&["localhost"], Some("null"), Err(Foreign::Origin)),
            (&["localhost"], Some("http://localhost@evil.example.org"), Err(Foreign::Origin)),
            (&["localhost"], Some("http://localhost:80@evil.example.org:80"), Err(Foreign::Origin)),
        ];
        for (host, origin, expected) in cases {
            assert_eq!(check(host, origin), expected, "{host:?} {origin:?}");
        }
    }
}
