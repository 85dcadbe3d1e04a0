//! Signatures of Standard Webhooks, checked by code of their own: HMAC (RFC 2104) on SHA-256.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

use crate::approver_outside::pdp::Received;

const BLOCK_BYTES: usize = 64;

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    assert!(key.len() <= BLOCK_BYTES);
    let padded = |with: u8| {
        let mut block = [with; BLOCK_BYTES];
        block
            .iter_mut()
            .zip(key)
            .for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::digest([&padded(0x36)[..], message].concat());
    Sha256::digest([&padded(0x5c)[..], &inner].concat()).to_vec()
}

/// Whether a request is signed with this secret, now.
pub(super) fn is_signed(received: &Received, secret: &str) -> bool {
    let (id, timestamp) = (
        received.header("webhook-id"),
        received.header("webhook-timestamp"),
    );
    let sent: u64 = timestamp.parse().unwrap();
    let now = platform::unix_ms() / 1000;
    assert!(sent.abs_diff(now) < 300, "{sent} {now}");
    let key = BASE64_STANDARD
        .decode(secret.strip_prefix("whsec_").unwrap())
        .unwrap();
    let message = format!("{id}.{timestamp}.{}", received.text);
    let expect = format!(
        "v1,{}",
        BASE64_STANDARD.encode(hmac(&key, message.as_bytes()))
    );
    // The receiver of the tests has headers in lower case.
    received.header("webhook-signature") == expect.to_lowercase()
}
