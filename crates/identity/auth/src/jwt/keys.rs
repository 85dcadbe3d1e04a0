//! Keys of an issuer: a JSON Web Key Set (RFC 7517), read once, used for many tokens.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::Value;

use super::algorithm::{Algorithm, KeyKind};
use super::fault::TokenFault;

/// The longest key set, in bytes.
pub const JWKS_BYTES_MAX: usize = 256 * 1024;
/// The most keys of an issuer. A set with more is refused.
pub const JWKS_KEYS_MAX: usize = 64;

/// Bytes of a coordinate on P-256, P-384 and of an Ed25519 key.
const P256_BYTES: usize = 32;
const P384_BYTES: usize = 48;
const ED25519_BYTES: usize = 32;

/// Why a text is no usable key set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    /// Longer than [`JWKS_BYTES_MAX`].
    #[error("the key set is longer than {JWKS_BYTES_MAX} bytes")]
    TooLong,
    /// More than [`JWKS_KEYS_MAX`] keys.
    #[error("the key set has more than {JWKS_KEYS_MAX} keys")]
    TooMany,
    /// No key set.
    #[error("this is no JSON Web Key Set")]
    Malformed,
    /// No key with which a token could be checked.
    #[error("the key set has no public key for signatures")]
    Empty,
}

/// The keys with which an issuer signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySet {
    keys: Vec<Key>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    id: Option<String>,
    /// The only algorithm for which it is.
    algorithm: Option<Algorithm>,
    material: Material,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    Curve { kind: KeyKind, point: Vec<u8> },
}

#[derive(Deserialize)]
struct Written {
    keys: Vec<Value>,
}

/// The members of a key that matter here.
#[derive(Deserialize)]
struct WrittenKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads a key set. Keys of other kinds, for other purposes, or that cannot be read, are left
    /// out.
    ///
    /// # Errors
    /// Why it is of no use.
    pub fn read(text: &[u8]) -> Result<Self, KeySetError> {
        if text.len() > JWKS_BYTES_MAX {
            return Err(KeySetError::TooLong);
        }
        let Written { keys } = serde_json::from_slice(text).map_err(|_| KeySetError::Malformed)?;
        if keys.len() > JWKS_KEYS_MAX {
            return Err(KeySetError::TooMany);
        }
        let keys: Vec<Key> = keys.into_iter().filter_map(Key::read).collect();
        if keys.is_empty() {
            Err(KeySetError::Empty)
        } else {
            Ok(Self { keys })
        }
    }

    /// Number of its keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether it has none; no set that was read is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Checks a signature with the key of this id, or with the only one that fits.
    pub(super) fn verify(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        signed: &[u8],
        signature: &[u8],
    ) -> Result<(), TokenFault> {
        let fits = |key: &&Key| key.fits(algorithm) && (id.is_none() || key.id.as_deref() == id);
        let mut fitting = self.keys.iter().filter(fits);
        let first = fitting.next().ok_or(TokenFault::UnknownKey)?;
        if id.is_none() && fitting.next().is_some() {
            return Err(TokenFault::AmbiguousKey);
        }
        // An issuer may give two keys one id: any of them.
        let is_valid = std::iter::once(first)
            .chain(fitting)
            .any(|key| key.verifies(algorithm, signed, signature));
        if is_valid {
            Ok(())
        } else {
            Err(TokenFault::Signature)
        }
    }
}

impl Key {
    fn read(written: Value) -> Option<Self> {
        let key: WrittenKey = serde_json::from_value(written).ok()?;
        let verifies = key
            .key_ops
            .is_none_or(|all| all.iter().any(|one| one == "verify"));
        if key.purpose.is_some_and(|purpose| purpose != "sig") || !verifies {
            return None;
        }
        let algorithm = match &key.alg {
            Some(name) => Some(Algorithm::parse(name)?),
            None => None,
        };
        let bytes = |text: Option<String>| URL_SAFE_NO_PAD.decode(text?).ok();
        let material = match (key.kty.as_str(), key.crv.as_deref()) {
            ("RSA", _) => Material::Rsa {
                n: unpadded(bytes(key.n)?),
                e: unpadded(bytes(key.e)?),
            },
            ("EC", Some("P-256")) => {
                point(KeyKind::P256, P256_BYTES, bytes(key.x)?, &bytes(key.y)?)?
            }
            ("EC", Some("P-384")) => {
                point(KeyKind::P384, P384_BYTES, bytes(key.x)?, &bytes(key.y)?)?
            }
            ("OKP", Some("Ed25519")) => {
                let point = bytes(key.x).filter(|point| point.len() == ED25519_BYTES)?;
                Material::Curve {
                    kind: KeyKind::Ed25519,
                    point,
                }
            }
            _ => return None,
        };
        Some(Self {
            id: key.kid,
            algorithm,
            material,
        })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        let kind = match &self.material {
            Material::Rsa { .. } => KeyKind::Rsa,
            Material::Curve { kind, .. } => *kind,
        };
        kind == algorithm.key_kind() && self.algorithm.is_none_or(|own| own == algorithm)
    }

    fn verifies(&self, algorithm: Algorithm, signed: &[u8], signature: &[u8]) -> bool {
        match (&self.material, algorithm.rsa(), algorithm.curve()) {
            (Material::Rsa { n, e }, Some(rsa), _) => RsaPublicKeyComponents { n, e }
                .verify(rsa, signed, signature)
                .is_ok(),
            (Material::Curve { point, .. }, _, Some(curve)) => UnparsedPublicKey::new(curve, point)
                .verify(signed, signature)
                .is_ok(),
            (Material::Rsa { .. } | Material::Curve { .. }, _, _) => false,
        }
    }
}

/// A number without the zeros before it, which some issuers write.
fn unpadded(mut number: Vec<u8>) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.drain(..zeros);
    number
}

/// An uncompressed point of a curve.
fn point(kind: KeyKind, bytes: usize, x: Vec<u8>, y: &[u8]) -> Option<Material> {
    (x.len() == bytes && y.len() == bytes).then(|| {
        let mut point = vec![4];
        point.extend(x);
        point.extend(y);
        Material::Curve { kind, point }
    })
}
