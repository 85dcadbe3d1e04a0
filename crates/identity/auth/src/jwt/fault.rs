//! Faults of access tokens.

use model::{Refusal, RefusalCode};

/// Why an access token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// Longer than [`super::ACCESS_TOKEN_BYTES_MAX`].
    #[error("the token is too long")]
    TooLong,
    /// Neither a JWT nor anything else that a configured issuer gives out.
    #[error("the token cannot be read")]
    Malformed,
    /// `none`, one with a shared key, or not among the issuer's.
    #[error("the token is signed with an algorithm that is not accepted")]
    Algorithm,
    /// It demands that something be understood which is not.
    #[error("the token has a critical header")]
    Critical,
    /// An ID token, a logout token, or another type that is not among the issuer's.
    #[error("the token is no access token")]
    Type,
    /// A JWT of an issuer that is asked about opaque tokens.
    #[error("the token is a JWT, and its issuer is asked about opaque tokens alone")]
    NotOpaque,
    /// The issuer is not configured.
    #[error("the issuer of the token is not known here")]
    Issuer,
    /// No key of the issuer has its key id.
    #[error("the token is signed with a key that its issuer does not publish")]
    UnknownKey,
    /// It names no key, and several fit.
    #[error("the token does not say with which of its issuer's keys it is signed")]
    AmbiguousKey,
    /// The signature is not its issuer's.
    #[error("the signature of the token is not valid")]
    Signature,
    /// It never expires.
    #[error("the token does not say when it expires")]
    NoExpiry,
    /// It has expired.
    #[error("the token has expired")]
    Expired,
    /// It is valid only later, or was issued in the future.
    #[error("the token is not valid yet")]
    NotYet,
    /// It is bound to a key of its client (`cnf`), which this gateway cannot check.
    #[error("the token is bound to a key, and bound tokens are not accepted")]
    Bound,
    /// It does not say for whom it is.
    #[error("the token does not say for which resource it was issued")]
    NoAudience,
    /// It is for another resource.
    #[error("the token was issued for another resource")]
    Foreign,
    /// It does not say whose it is.
    #[error("the token has no subject")]
    NoSubject,
    /// Its issuer answers about a person's token without saying which person.
    #[error("the issuer's answer is about a person and has neither `sub` nor `username`")]
    Nameless,
    /// Its issuer says that it is not active: expired, revoked, or never issued.
    #[error("the token is not active")]
    Inactive,
}

impl TokenFault {
    /// The refusal of a token with this fault.
    #[must_use]
    pub fn refusal(self) -> Refusal {
        let code = match self {
            Self::Expired => RefusalCode::TokenExpired,
            Self::NoAudience | Self::Foreign => RefusalCode::TokenForeign,
            Self::UnknownKey => RefusalCode::TokenUnknownKey,
            Self::Issuer => RefusalCode::IssuerUnknown,
            Self::TooLong
            | Self::Malformed
            | Self::Algorithm
            | Self::Critical
            | Self::Type
            | Self::AmbiguousKey
            | Self::Signature
            | Self::NoExpiry
            | Self::NotYet
            | Self::Bound
            | Self::NotOpaque
            | Self::NoSubject
            | Self::Nameless
            | Self::Inactive => RefusalCode::Unauthenticated,
        };
        Refusal::new(code, self.to_string())
    }
}
