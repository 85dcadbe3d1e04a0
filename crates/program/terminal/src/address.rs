//! Addresses of gateways, as clients on this machine use them.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// The URL under which this machine reaches a listener.
pub fn url_of(listen: &str, tls: bool) -> String {
    format!(
        "{}://{}",
        if tls { "https" } else { "http" },
        connectable(listen)
    )
}

/// The address under which this machine reaches a listener: loopback for an unspecified one, such
/// as 0.0.0.0.
fn connectable(listen: &str) -> String {
    let Ok(mut address) = listen.parse::<SocketAddr>() else {
        return listen.to_owned();
    };
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address.to_string()
}
