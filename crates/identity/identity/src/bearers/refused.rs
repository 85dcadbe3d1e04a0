//! Refused access tokens, and what their senders learn.

use auth::jwt::{TokenFault, is_jwt};
use model::{Refusal, RefusalCode};
use oauth::issuer::KEYS_RETRY;

/// Why a token is refused.
#[derive(Debug)]
pub(super) enum TokenRefused {
    Fault(TokenFault),
    /// Its issuer cannot be asked.
    Unreachable,
    /// Its key is not known, and its issuer cannot be asked whether that is a new one.
    Unsure,
    /// The configuration or the issuer's keys have changed while it was checked: it has to be
    /// checked again.
    Changed,
    /// It is good, and its subject has no place.
    NoPlace(String),
}

impl From<TokenFault> for TokenRefused {
    fn from(fault: TokenFault) -> Self {
        Self::Fault(fault)
    }
}

impl TokenRefused {
    /// Whether the token itself is bad, as far as can be known: an address may send so many.
    pub(super) fn is_bad(&self) -> bool {
        matches!(self, Self::Fault(_) | Self::Unsure)
    }

    pub(super) fn refusal(self, token: &str) -> Refusal {
        match self {
            Self::Fault(TokenFault::Malformed) if !is_jwt(token) => {
                // As the gateway's own tokens.
                Refusal::new(RefusalCode::Unauthenticated, "this token is not valid")
            }
            Self::Fault(fault) => fault.refusal(),
            // A check that is made again does not come here.
            Self::Unreachable | Self::Unsure | Self::Changed => {
                let code = RefusalCode::IssuerUnreachable;
                let refusal = Refusal::new(code, "the issuer of the token cannot be asked now");
                refusal
                    .hint("try again soon")
                    .retry_after_ms(platform::millis(KEYS_RETRY))
            }
            Self::NoPlace(why) => {
                let refusal = Refusal::new(RefusalCode::NoPlace, why);
                refusal.hint("ask the operator of the gateway; another sign-in changes nothing")
            }
        }
    }
}
