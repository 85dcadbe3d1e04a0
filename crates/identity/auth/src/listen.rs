//! Addresses on which it is safe to listen, and hosts that may be dialed.

use std::net::{IpAddr, SocketAddr};

use model::{Refusal, RefusalCode};

/// Rejects an address beyond loopback for a gateway whose clients do not authenticate.
///
/// # Errors
/// [`RefusalCode::Forbidden`] with a hint for the operator.
pub fn check_listen_address(listen: SocketAddr, tokens_configured: bool) -> Result<(), Refusal> {
    if tokens_configured || is_loopback(listen.ip()) {
        return Ok(());
    }
    let message = format!(
        "listening on {listen} would give every client full access: no participant has a token"
    );
    let hint = "listen on 127.0.0.1, or issue a token first: portmoot token new NAME";
    Err(Refusal::new(RefusalCode::Forbidden, message).hint(hint))
}

/// Rejects a listener of proto-mcp beyond loopback that speaks no TLS (proto-mcp v1.0, "Security"):
/// framed TCP, `ws` and `h2c`.
///
/// # Errors
/// [`RefusalCode::Forbidden`] with a hint for the operator.
pub fn check_proto_listen(listen: SocketAddr, tls: bool) -> Result<(), Refusal> {
    if tls || is_loopback(listen.ip()) {
        return Ok(());
    }
    let message = format!("listening on {listen} for proto-mcp needs TLS");
    let hint = "listen on 127.0.0.1, or add a certificate and its key: [server.tls] cert, key";
    Err(Refusal::new(RefusalCode::Forbidden, message).hint(hint))
}

/// Rejects a proto-mcp server beyond loopback that is dialed without TLS. `host` is that of the
/// URL: an address, with or without brackets, or a name, of which only `localhost` is known to be
/// this machine.
///
/// # Errors
/// [`RefusalCode::Forbidden`] with a hint for the operator.
pub fn check_proto_dial(host: &str, tls: bool) -> Result<(), Refusal> {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    let is_here = bare.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(is_loopback);
    if tls || is_here {
        return Ok(());
    }
    let message = format!("dialing `{host}` for proto-mcp needs TLS");
    Err(Refusal::new(RefusalCode::Forbidden, message)
        .hint("use a URL with TLS, or a server on this machine"))
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_allowed_without_tokens_or_tls() {
        for (listen, safe, allowed) in [
            ("127.0.0.1:7070", false, true),
            ("127.8.9.1:7070", false, true),
            ("[::1]:7070", false, true),
            ("[::ffff:127.0.0.1]:7070", false, true),
            ("0.0.0.0:7070", false, false),
            ("[::]:7070", false, false),
            ("192.168.1.7:7070", false, false),
            ("[::ffff:192.168.1.7]:7070", false, false),
            ("0.0.0.0:7070", true, true),
        ] {
            let address = listen.parse().unwrap();
            assert_eq!(
                check_listen_address(address, safe).is_ok(),
                allowed,
                "{listen} {safe}"
            );
            assert_eq!(
                check_proto_listen(address, safe).is_ok(),
                allowed,
                "{listen} {safe}"
            );
        }
    }

    #[test]
    fn only_this_machine_is_dialed_without_tls() {
        for (host, tls, allowed) in [
            ("127.0.0.1", false, true),
            ("::1", false, true),
            ("[::1]", false, true),
            ("LOCALHOST", false, true),
            ("localhost.example", false, false),
            ("127.0.0.1.example", false, false),
            ("10.0.0.1", false, false),
            ("0.0.0.0", false, false),
            ("", false, false),
            ("gate.example", true, true),
        ] {
            assert_eq!(check_proto_dial(host, tls).is_ok(), allowed, "{host} {tls}");
        }
    }
}
