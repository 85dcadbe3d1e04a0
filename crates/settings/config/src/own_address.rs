//! The gateway's own address: a server that is there would be the gateway itself, whose lists grow
//! with each round.

use std::net::{IpAddr, SocketAddr};

use crate::checked::Config;
use auth::PublicUrl;
use hyper::Uri;
use upstream::config::{ServerConfig, Transport};

use crate::node::Node;
use crate::problem::Problem;
use crate::reader::Problems;

/// The paths of doors, below the public URL.
const DOORS: [&str; 4] = ["/mcp", "/sse", "/ws", "/proto"];

/// Address at which a gateway is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnAddress {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The address for clients outside, if there is one.
    public_url: Option<PublicUrl>,
}

impl OwnAddress {
    /// That of a gateway that listens here.
    #[must_use]
    pub fn listening(listen: SocketAddr) -> Self {
        Self {
            listen,
            public_url: None,
        }
    }

    /// That of a checked configuration.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self {
            listen: config.doors.listen,
            public_url: config.identity.public_url.clone(),
        }
    }

    /// Whether a URL leads to this gateway.
    #[must_use]
    pub fn has(&self, url: &str) -> bool {
        let Ok(uri) = url.parse::<Uri>() else {
            return false;
        };
        let Some(host) = uri.host() else { return false };
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .trim_end_matches('.');
        let port = port_of(&uri);
        (port == self.listen.port() && self.listens_at(host)) || self.is_public(&uri, host, port)
    }

    /// Whether the gateway listens under this name or address of a host.
    fn listens_at(&self, host: &str) -> bool {
        let listen = self.listen.ip();
        let is_here = listen.is_loopback() || listen.is_unspecified();
        match host.parse::<IpAddr>() {
            Ok(address) if address.is_loopback() => listen.is_unspecified() || address == listen,
            // As a destination it is this machine.
            Ok(address) if address.is_unspecified() => is_here,
            Ok(address) => address == listen,
            Err(_) => is_here && host.eq_ignore_ascii_case("localhost"),
        }
    }

    /// Whether it leads to a door at the public URL.
    fn is_public(&self, uri: &Uri, host: &str, port: u16) -> bool {
        let Some(public) = self
            .public_url
            .as_ref()
            .and_then(|url| url.as_str().parse::<Uri>().ok())
        else {
            return false;
        };
        let Some(own) = public.host() else {
            return false;
        };
        let is_host = own.trim_matches(['[', ']']).eq_ignore_ascii_case(host);
        let base = public.path().trim_end_matches('/');
        let below = uri.path().strip_prefix(base);
        is_host && port_of(&public) == port && below.is_some_and(leads_to_a_door)
    }
}

/// The port of a URL, or that of its scheme.
fn port_of(uri: &Uri) -> u16 {
    uri.port_u16().unwrap_or(match uri.scheme_str() {
        Some("https" | "wss") => 443,
        Some(_) | None => 80,
    })
}

/// Whether a path below the public URL is a door's, or below one.
fn leads_to_a_door(path: &str) -> bool {
    if matches!(path, "" | "/") {
        return true;
    }
    DOORS.iter().any(|door| {
        let end = path.strip_prefix(door);
        end.is_some_and(|end| end.is_empty() || end.starts_with('/'))
    })
}

/// The URL of a server that has one. That of an HTTP API leads to no lists: they are in its
/// description.
fn url(server: &ServerConfig) -> Option<&str> {
    match &server.transport {
        Transport::OpenApi(_) => None,
        transport => Some(transport.address()?.url.expose()),
    }
}

/// Checks that no server is the gateway itself. One of a client's file is down and says why, and
/// the others run.
pub(crate) fn check_servers(
    tree: &Node,
    config: &mut Config,
    notices: &mut Vec<String>,
    problems: &Problems,
) {
    let own = OwnAddress::of(config);
    for server in config.servers.iter_mut().filter(|server| server.enabled) {
        if !url(server).is_some_and(|url| own.has(url)) {
            continue;
        }
        let name = server.name.as_str();
        let place = tree.place(&["servers", name, "url"]);
        let message = format!(
            "the server `{name}` is this gateway itself: its `url` is the gateway's own address"
        );
        let fix = "remove the server: clients reach all others without it".to_owned();
        if place.layer.is_of_client {
            notices.push(format!("{place}: {message}, so it is not started"));
            let why = "its `url` is the gateway's own address".to_owned();
            server.transport = Transport::Unusable { why, fix };
        } else {
            problems.note(Problem::new("config_itself", message).hint(fix).at(place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_compared_with_where_the_gateway_listens() {
        let own = |listen: &str, public: Option<&str>| OwnAddress {
            listen: listen.parse().unwrap(),
            public_url: public.map(|url| PublicUrl::parse(url).unwrap()),
        };
        let loopback = own("127.0.0.1:7070", None);
        let all = own("0.0.0.0:7070", Some("https://gw.example"));
        let below = own("10.0.0.5:7070", Some("https://gw.example:8443/base"));
        for (address, url, expected) in [
            (&loopback, "http://127.0.0.1:7070/mcp", true),
            (&loopback, "http://LOCALHOST:7070/mcp/dev", true),
            (&loopback, "http://0.0.0.0:7070/mcp", true),
            (&loopback, "tcp://127.0.0.1:7070", true),
            (&loopback, "http://127.0.0.1:7071/mcp", false),
            (&loopback, "http://127.0.0.2:7070/mcp", false),
            (&loopback, "http://[::1]:7070/mcp", false),
            (&loopback, "http://other.example:7070/mcp", false),
            (&all, "http://127.0.0.9:7070/mcp", true),
            (&all, "http://[::1]:7070/mcp", true),
            (&all, "https://gw.example/mcp", true),
            (&all, "https://GW.example:443/mcp/dev", true),
            (&all, "https://gw.example/other", false),
            (&all, "http://gw.example/mcp", false),
            (&below, "http://10.0.0.5:7070/mcp", true),
            (&below, "http://localhost:7070/mcp", false),
            (&below, "https://gw.example:8443/base/mcp", true),
            (&below, "https://gw.example:8443/mcp", false),
            (&below, "no url", false),
        ] {
            assert_eq!(address.has(url), expected, "{url} at {address:?}");
        }
    }
}
