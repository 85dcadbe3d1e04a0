//! Signatures of Standard Webhooks (version 1): a keyed hash over id, time and body.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, Mac};
use oauth::Secret;
use sha2::Sha256;

const PREFIX: &str = "whsec_";
/// The least and the most bytes of a key.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A text is no secret of a webhook. The message has nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a webhook's secret is `whsec_` and the base64 of 24 to 64 bytes")]
pub struct WebhookSecretError;

/// The secret with which a webhook's notifications are signed.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Secret);

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}

impl WebhookSecret {
    /// Takes a secret over.
    ///
    /// # Errors
    /// [`WebhookSecretError`].
    pub fn new(text: Secret) -> Result<Self, WebhookSecretError> {
        let secret = Self(text);
        match secret.key() {
            Some(key) if KEY_BYTES.contains(&key.len()) => Ok(secret),
            Some(_) | None => Err(WebhookSecretError),
        }
    }

    /// A secret that was not read: it signs nothing.
    #[must_use]
    pub fn unread() -> Self {
        Self(Secret::new(String::new()))
    }

    fn key(&self) -> Option<Vec<u8>> {
        let text = self.0.expose().strip_prefix(PREFIX)?;
        BASE64_STANDARD.decode(text).ok()
    }

    /// The value of `webhook-signature` for a message with this id that is sent at this second.
    #[must_use]
    pub fn signature(&self, id: &str, unix_s: u64, body: &[u8]) -> Option<String> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key()?).ok()?;
        mac.update(format!("{id}.{unix_s}.").as_bytes());
        mac.update(body);
        let digest = BASE64_STANDARD.encode(mac.finalize().into_bytes());
        Some(format!("v1,{digest}"))
    }
}
