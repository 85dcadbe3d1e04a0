//! Listen address check: without tokens a gateway listens on loopback only.

use std::net::SocketAddr;

use model::{Refusal, RefusalCode};

/// Rejects an address beyond loopback for a gateway whose clients do not authenticate.
///
/// # Errors
/// [`RefusalCode::Forbidden`] with a hint for the operator.
pub fn check_listen_address(listen: SocketAddr, tokens_configured: bool) -> Result<(), Refusal> {
    if tokens_configured || listen.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    let message =
        format!("listening on {listen} would give every client full access: no participant has a token");
    let hint = "listen on 127.0.0.1, or issue a token first: portmoot token new NAME";
    Err(Refusal::new(RefusalCode::Forbidden, message).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_allowed_without_tokens() {
        for (listen, tokens, allowed) in [
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
            assert_eq!(
                check_listen_address(listen.parse().unwrap(), tokens).is_ok(),
                allowed,
                "{listen} {tokens}"
            );
        }
    }
}
