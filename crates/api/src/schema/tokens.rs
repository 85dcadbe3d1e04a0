//! Schemas of issued tokens.

use serde::{Deserialize, Serialize};
use store::IssuedToken;
use utoipa::ToSchema;

/// Issued tokens.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenList {
    /// The tokens, without their secrets.
    pub tokens: Vec<Token>,
}

/// An issued token.
#[derive(Serialize, ToSchema)]
pub(crate) struct Token {
    /// The participant as which its bearer connects.
    pub name: String,
    /// Capabilities that it was issued with, if any.
    pub capabilities: Option<Vec<String>>,
    /// Topics that it was issued with, if any.
    pub topics: Option<Vec<String>>,
    /// When it was issued, in Unix milliseconds.
    pub created_ms: u64,
    /// When it expires, in Unix milliseconds.
    pub expires_ms: Option<u64>,
}

impl Token {
    /// An issued token as the API shows it: without its hash.
    pub(crate) fn of(token: &IssuedToken) -> Self {
        Self {
            name: token.name.clone(),
            capabilities: token.capabilities.clone(),
            topics: token.topics.clone(),
            created_ms: token.created_ms,
            expires_ms: token.expires_ms,
        }
    }
}

/// A request for a token.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewToken {
    /// The participant as which its bearer connects.
    pub name: String,
    /// The participant's capabilities; absent takes the configured ones, or those of a new participant.
    pub capabilities: Option<Vec<String>>,
    /// The participant's topics; absent takes the configured ones, or `main`.
    pub topics: Option<Vec<String>>,
    /// How long the token is valid, in milliseconds; absent is until it is revoked.
    pub lifetime_ms: Option<u64>,
}

/// A new token with its secret, which no later request returns.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenWithSecret {
    /// The token without its secret.
    #[serde(flatten)]
    pub shown: Token,
    /// The secret: what the bearer sends.
    pub token: String,
}
