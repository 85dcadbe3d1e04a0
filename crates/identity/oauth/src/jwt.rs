//! Assertions that a client signs (RFC 7523, `private_key_jwt`): ES256 with a key from a PKCS #8
//! file.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Time that an assertion is valid, seconds.
const ASSERTION_SECONDS: u64 = 60;

/// A text is no private key that can sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is no P-256 private key in PKCS #8 (BEGIN PRIVATE KEY): openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256"
)]
pub struct SigningKeyError;

/// A P-256 private key.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    kid: String,
}

impl SigningKey {
    /// Reads a PEM text.
    ///
    /// # Errors
    /// [`SigningKeyError`].
    pub fn from_pem(pem: &str) -> Result<Self, SigningKeyError> {
        let body = pem
            .split_once("-----BEGIN PRIVATE KEY-----")
            .ok_or(SigningKeyError)?
            .1;
        let body = body
            .split_once("-----END PRIVATE KEY-----")
            .ok_or(SigningKeyError)?
            .0;
        let body: Zeroizing<String> = Zeroizing::new(body.split_whitespace().collect());
        let der = Zeroizing::new(
            STANDARD
                .decode(body.as_bytes())
                .map_err(|_| SigningKeyError)?,
        );
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, &random);
        let mut key = Self {
            pair: pair.map_err(|_| SigningKeyError)?,
            kid: String::new(),
        };
        let (x, y) = key.point();
        // The thumbprint of RFC 7638: members in the order of their names.
        let canonical = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        key.kid = URL_SAFE_NO_PAD.encode(Sha256::digest(canonical));
        Ok(key)
    }

    /// The coordinates of the public key: those of an uncompressed point.
    fn point(&self) -> (String, String) {
        let public = self.pair.public_key().as_ref();
        let part = |range| URL_SAFE_NO_PAD.encode(public.get(range).unwrap_or_default());
        (part(1..33), part(33..65))
    }

    /// The thumbprint of the public key, by which it is named (RFC 7638).
    #[must_use]
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The public key as a JWK.
    #[must_use]
    pub fn jwk(&self) -> Value {
        let (x, y) = self.point();
        json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": self.kid, "use": "sig", "alg": "ES256" })
    }

    /// The assertion of a client for one authorization server, valid for a minute. `None` when the
    /// machine has no randomness.
    #[must_use]
    pub fn assertion(&self, client: &str, issuer: &str, id: &str, now_ms: u64) -> Option<String> {
        let now = now_ms / 1_000;
        let header = json!({ "alg": "ES256", "typ": "JWT", "kid": self.kid });
        let claims = json!({
            "iss": client, "sub": client, "aud": issuer, "jti": id, "iat": now, "exp": now + ASSERTION_SECONDS,
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = self
            .pair
            .sign(&SystemRandom::new(), signed.as_bytes())
            .ok()?;
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// By the public halves.
impl PartialEq for SigningKey {
    fn eq(&self, other: &Self) -> bool {
        self.kid == other.kid
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    use super::*;

    #[test]
    fn an_assertion_is_signed_for_one_minute_and_one_issuer() {
        let document =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD.encode(document.unwrap())
        );
        let key = SigningKey::from_pem(&pem).ok().unwrap();
        let text = key
            .assertion("me", "https://idp.example", "1", 5_000)
            .unwrap();
        let (signed, signature) = text.rsplit_once('.').unwrap();
        let public =
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.pair.public_key().as_ref());
        public
            .verify(
                signed.as_bytes(),
                &URL_SAFE_NO_PAD.decode(signature).unwrap(),
            )
            .unwrap();
        let claims = URL_SAFE_NO_PAD
            .decode(signed.split_once('.').unwrap().1)
            .unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        let expect = json!({ "iss": "me", "sub": "me", "aud": "https://idp.example", "jti": "1", "iat": 5, "exp": 65 });
        assert_eq!(claims, expect);
        assert_eq!(key.jwk()["kid"], key.kid.as_str());
    }

    #[test]
    fn other_texts_are_no_keys() {
        let rsa = "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n";
        let bad = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        for text in [
            "",
            rsa,
            bad,
            "-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----",
        ] {
            assert!(SigningKey::from_pem(text).is_err(), "{text}");
        }
    }
}
