//! Check of `Host` and `Origin` of every HTTP request, against DNS rebinding (MCP 2025-11-25 and
//! 2026-07-28, Streamable HTTP, "Security Warning").

use std::net::IpAddr;

use super::head::{Head, HeaderField};

/// The host names of the gateway.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hosts<'c> {
    names: &'c [String],
    address: IpAddr,
}

/// Why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// `Host` is missing, doubled, or not the gateway's.
    Host,
    /// `Origin` is present and not the gateway's.
    Origin,
    /// `Origin` is of another program of this machine, and the request has no credential.
    Unnamed,
}

/// Mark of a request that a page of another program sends without a credential.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OtherPage;

/// Names of this machine.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Whether a host has the form of the names that the console gives its people on this machine:
/// `pm-`, 32 hexadecimal digits, `.localhost`. Browsers resolve what is below `localhost` themselves
/// (RFC 6761, section 6.3), so no DNS can lead such a name elsewhere; the console knows which of them
/// are its own.
fn is_console_name(host: &str) -> bool {
    let digits = host
        .strip_prefix("pm-")
        .and_then(|rest| rest.strip_suffix(".localhost"));
    digits.is_some_and(|digits| digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

impl<'c> Hosts<'c> {
    /// Loopback names, the address on which the gateway listens, and `names`: host names, or
    /// `host:port`, of the configuration (`[server] hosts`). Made for each request, so it borrows
    /// all.
    pub(crate) fn new(names: &'c [String], address: IpAddr) -> Self {
        Self { names, address }
    }

    /// Checks both headers.
    ///
    /// # Errors
    /// The header that is not the gateway's.
    pub(crate) fn check(&self, head: &Head<'_>) -> Result<(), Foreign> {
        match head.host {
            HeaderField::Text(host) if self.knows(host) => {}
            HeaderField::Missing | HeaderField::Text(_) | HeaderField::Unclear => {
                return Err(Foreign::Host);
            }
        }
        let host = match head.origin {
            HeaderField::Missing => return Ok(()),
            HeaderField::Text(origin) => origin
                .strip_prefix("http://")
                .or_else(|| origin.strip_prefix("https://")),
            HeaderField::Unclear => None,
        };
        if host.is_some_and(|host| self.knows(host)) {
            Ok(())
        } else {
            Err(Foreign::Origin)
        }
    }

    /// Whether a page may change something, or open a WebSocket, without saying who it is, which no
    /// browser asks about: it is the gateway's own, or of a host of the configuration. Pages of other
    /// ports of this machine are other programs'.
    pub(crate) fn may_act(&self, head: &Head<'_>) -> bool {
        let HeaderField::Text(origin) = head.origin else {
            return true;
        };
        let Some((_, authority)) = origin.split_once("://") else {
            return false;
        };
        let is_own =
            matches!(head.host, HeaderField::Text(host) if host.eq_ignore_ascii_case(authority));
        let bare = authority
            .rsplit_once(':')
            .map_or(authority, |(host, _)| host);
        let is_named =
            |name: &String| name.eq_ignore_ascii_case(bare) || name.eq_ignore_ascii_case(authority);
        is_own || self.names.iter().any(is_named)
    }

    fn knows(&self, authority: &str) -> bool {
        let bare = match authority.rsplit_once(':') {
            Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
                host
            }
            _ => authority,
        };
        // Nearly all clients of this machine write one of these, and each request is checked.
        if matches!(bare, "127.0.0.1" | "localhost") {
            return true;
        }
        let is_it =
            |name: &str| name.eq_ignore_ascii_case(bare) || name.eq_ignore_ascii_case(authority);
        LOOPBACK
            .into_iter()
            .chain(self.names.iter().map(String::as_str))
            .any(is_it)
            || is_console_name(bare)
            || bare.trim_matches(['[', ']']).parse() == Ok(self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &[&str], origin: Option<&str>) -> Result<(), Foreign> {
        let names = [
            "Gate.example.org".to_string(),
            "other.example.org:8443".to_string(),
        ];
        let hosts = Hosts::new(&names, [192, 0, 2, 7].into());
        let mut headers = http::HeaderMap::new();
        for value in host {
            headers.append(http::header::HOST, value.parse().unwrap());
        }
        if let Some(origin) = origin {
            headers.insert(http::header::ORIGIN, origin.parse().unwrap());
        }
        hosts.check(&Head::read(&headers))
    }

    #[test]
    fn only_pages_of_the_gateway_act_without_a_token() {
        let names = ["gate.example.org".to_string()];
        let hosts = Hosts::new(&names, [127, 0, 0, 1].into());
        for (origin, expected) in [
            (None, true),
            (Some("http://localhost:7070"), true),
            (Some("http://LOCALHOST:7070"), true),
            (Some("https://gate.example.org"), true),
            (Some("http://localhost:3000"), false),
            (Some("http://127.0.0.1:7070"), false),
            (Some("null"), false),
        ] {
            let mut headers = http::HeaderMap::new();
            headers.insert(http::header::HOST, "localhost:7070".parse().unwrap());
            origin.map(|origin| headers.insert(http::header::ORIGIN, origin.parse().unwrap()));
            assert_eq!(hosts.may_act(&Head::read(&headers)), expected, "{origin:?}");
        }
    }

    #[test]
    fn only_the_names_of_the_gateway_are_accepted() {
        type Case = (
            &'static [&'static str],
            Option<&'static str>,
            Result<(), Foreign>,
        );
        let cases: [Case; 21] = [
            (
                &["pm-0123456789abcdef0123456789abcdef.localhost:7070"],
                Some("http://pm-0123456789abcdef0123456789abcdef.localhost:7070"),
                Ok(()),
            ),
            (&["pm-0123.localhost:7070"], None, Err(Foreign::Host)),
            (
                &["pm-0123456789abcdef0123456789abcdeg.localhost"],
                None,
                Err(Foreign::Host),
            ),
            (
                &["pm-0123456789abcdef0123456789abcdef.localhost.evil.example"],
                None,
                Err(Foreign::Host),
            ),
            (&["evil.localhost:7070"], None, Err(Foreign::Host)),
            (&["127.0.0.1:7070"], None, Ok(())),
            (&["localhost"], Some("http://localhost:3000"), Ok(())),
            (&["[::1]:7070"], Some("http://[::1]:7070"), Ok(())),
            (
                &["GATE.example.org"],
                Some("https://gate.example.org"),
                Ok(()),
            ),
            (&["other.example.org:8443"], None, Ok(())),
            (&["other.example.org:1"], None, Err(Foreign::Host)),
            (&["192.0.2.7:7070"], Some("http://192.0.2.7:7070"), Ok(())),
            (&["192.0.2.8:7070"], None, Err(Foreign::Host)),
            (&["evil.example.org"], None, Err(Foreign::Host)),
            (&["localhost.evil.example.org"], None, Err(Foreign::Host)),
            (&[], None, Err(Foreign::Host)),
            (&["localhost", "localhost"], None, Err(Foreign::Host)),
            (
                &["localhost"],
                Some("http://evil.example.org"),
                Err(Foreign::Origin),
            ),
            (&["localhost"], Some("null"), Err(Foreign::Origin)),
            (
                &["localhost"],
                Some("http://localhost@evil.example.org"),
                Err(Foreign::Origin),
            ),
            (
                &["localhost"],
                Some("http://localhost:80@evil.example.org:80"),
                Err(Foreign::Origin),
            ),
        ];
        for (host, origin, expected) in cases {
            assert_eq!(check(host, origin), expected, "{host:?} {origin:?}");
        }
    }
}
