//! Where a gateway may listen. Must not bind anything.

use std::net::SocketAddr;

use model::{Refusal, RefusalCode};

/// Lets a gateway listen beyond loopback only when its callers must authenticate.
///
/// # Errors
/// [`RefusalCode::Forbidden`] with a hint on how to go on.
pub fn may_listen(listen: SocketAddr, tokens_configured: bool) -> Result<(), Refusal> {
    if tokens_configured || listen.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    let message = format!("listening on {listen} would let anybody in: no participant has a token");
    let hint = "listen on 127.0.0.1, or give out a token first: portmoot token new NAME";
    Err(Refusal::new(RefusalCode::Forbidden, message).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_open_to_those_without_a_token() {
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
            assert_eq!(may_listen(listen.parse().unwrap(), tokens).is_ok(), allowed, "{listen} {tokens}");
        }
    }
}
