//! Signature algorithms of JWTs (RFC 7518, section 3.1; RFC 8037): only those with public keys.

use ring::signature as ring;

/// An algorithm. `none` and those with shared keys (`HS256`) do not exist here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

/// The kind of key that an algorithm needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl Algorithm {
    /// All of them, as tokens and configurations name them.
    pub const ALL: [(&'static str, Self); 9] = [
        ("RS256", Self::Rs256),
        ("RS384", Self::Rs384),
        ("RS512", Self::Rs512),
        ("PS256", Self::Ps256),
        ("PS384", Self::Ps384),
        ("PS512", Self::Ps512),
        ("ES256", Self::Es256),
        ("ES384", Self::Es384),
        ("EdDSA", Self::EdDsa),
    ];

    /// Algorithms that an issuer may use unless the configuration says otherwise.
    pub const DEFAULT: [Self; 5] = [
        Self::Rs256,
        Self::Ps256,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// The algorithm of this name. `Ed25519` (RFC 9864) is `EdDSA`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let name = if name == "Ed25519" { "EdDSA" } else { name };
        Self::ALL
            .into_iter()
            .find(|(known, _)| *known == name)
            .map(|(_, algorithm)| algorithm)
    }

    pub(super) fn key_kind(self) -> KeyKind {
        match self {
            Self::Rs256 | Self::Rs384 | Self::Rs512 | Self::Ps256 | Self::Ps384 | Self::Ps512 => {
                KeyKind::Rsa
            }
            Self::Es256 => KeyKind::P256,
            Self::Es384 => KeyKind::P384,
            Self::EdDsa => KeyKind::Ed25519,
        }
    }

    /// Parameters by which RSA signatures are verified: keys of 2048 to 8192 bits.
    pub(super) fn rsa(self) -> Option<&'static ring::RsaParameters> {
        match self {
            Self::Rs256 => Some(&ring::RSA_PKCS1_2048_8192_SHA256),
            Self::Rs384 => Some(&ring::RSA_PKCS1_2048_8192_SHA384),
            Self::Rs512 => Some(&ring::RSA_PKCS1_2048_8192_SHA512),
            Self::Ps256 => Some(&ring::RSA_PSS_2048_8192_SHA256),
            Self::Ps384 => Some(&ring::RSA_PSS_2048_8192_SHA384),
            Self::Ps512 => Some(&ring::RSA_PSS_2048_8192_SHA512),
            Self::Es256 | Self::Es384 | Self::EdDsa => None,
        }
    }

    /// Algorithm by which the other signatures are verified.
    pub(super) fn curve(self) -> Option<&'static dyn ring::VerificationAlgorithm> {
        match self {
            Self::Es256 => Some(&ring::ECDSA_P256_SHA256_FIXED),
            Self::Es384 => Some(&ring::ECDSA_P384_SHA384_FIXED),
            Self::EdDsa => Some(&ring::ED25519),
            Self::Rs256 | Self::Rs384 | Self::Rs512 | Self::Ps256 | Self::Ps384 | Self::Ps512 => {
                None
            }
        }
    }
}
