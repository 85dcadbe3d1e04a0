//! Addresses of gateways, as clients on this machine use them.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// The address under which this machine reaches a listener: loopback for an unspecified one, such as 0.0.0.0.
pub(crate) fn connectable(listen: &str) -> String {
    let Ok(mut address) = listen.parse::<SocketAddr>() else { return listen.to_owned() };
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address.to_string()
}
