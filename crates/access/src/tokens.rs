//! Issued tokens: their records in the journal.
//!
//! Calls on the journal block on the disk. Randomness and time are arguments.

use auth::{TokenHash, encode_token};
use model::{Capabilities, ParticipantId, Refusal, RefusalCode};
use serde::{Deserialize, Serialize};
use store::{IssuedToken, JournalWriter, Record, State};
use utoipa::ToSchema;

use crate::{config::Config, guests::is_gateways_name, identities::configured, journal::not_written};

/// A request for a token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewToken)]
pub struct TokenRequest {
    /// The participant as which its bearer connects.
    pub name: String,
    /// The participant's capabilities; absent takes the configured ones, or those of a new participant.
    pub capabilities: Option<Vec<String>>,
    /// The participant's topics; absent takes the configured ones, or `main`.
    pub topics: Option<Vec<String>>,
    /// How long the token is valid, in milliseconds; absent is until it is revoked.
    pub lifetime_ms: Option<u64>,
}

/// An issued token.
#[derive(Debug, Serialize, ToSchema)]
pub struct Token {
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
    /// An issued token as operators see it: without its hash.
    #[must_use]
    pub fn of(token: &IssuedToken) -> Self {
        Self {
            name: token.name.clone(),
            capabilities: token.capabilities.clone(),
            topics: token.topics.clone(),
            created_ms: token.created_ms,
            expires_ms: token.expires_ms,
        }
    }
}

/// A new token with its secret, which no later request returns.
#[derive(Serialize, ToSchema)]
pub struct TokenWithSecret {
    /// The token without its secret.
    #[serde(flatten)]
    pub shown: Token,
    /// The secret: what the bearer sends.
    pub token: String,
}

/// Issues a token, and returns it once it is on disk. Only its hash is kept. Two calls about one name must not run at once.
///
/// # Errors
/// A refusal if the name, a capability or a topic is not valid, if the name has a token already, or if the journal cannot be
/// written.
pub fn issue(
    journal: &JournalWriter,
    config: &Config,
    request: TokenRequest,
    random: &[u8; 32],
    now_ms: u64,
) -> Result<TokenWithSecret, Refusal> {
    journal.state(|state| check(state, config, &request))?;
    let token = encode_token(random);
    let issued = IssuedToken {
        name: request.name,
        sha256: TokenHash::of(&token).to_string(),
        capabilities: request.capabilities,
        topics: request.topics,
        created_ms: now_ms,
        expires_ms: request.lifetime_ms.map(|lifetime| now_ms.saturating_add(lifetime)),
    };
    journal.append(&[Record::TokenIssued(issued.clone())]).map_err(|error| not_written(&error))?;
    Ok(TokenWithSecret { shown: Token::of(&issued), token })
}

/// Revokes every issued token of a participant.
///
/// # Errors
/// A refusal if it has none, or if the journal cannot be written.
pub fn revoke(journal: &JournalWriter, name: &str, now_ms: u64) -> Result<(), Refusal> {
    if !journal.state(|state| state.tokens().iter().any(|token| token.name == name)) {
        let refusal = Refusal::new(RefusalCode::UnknownTarget, format!("`{name}` has no issued token"));
        return Err(
            refusal.hint("list them: portmoot token ls; configured tokens are changed in the configuration")
        );
    }
    let record = Record::TokenRevoked { name: name.to_owned(), at_ms: now_ms };
    journal.append(&[record]).map_err(|error| not_written(&error))
}

fn check(state: &State, config: &Config, request: &TokenRequest) -> Result<(), Refusal> {
    let malformed = |message: String| Refusal::new(RefusalCode::Malformed, message);
    let name = request.name.as_str();
    let id = ParticipantId::new(name)
        .map_err(|error| malformed(format!("`{}` is not a valid name: {error}", name.escape_debug())))?;
    let participants = config.participants.iter().map(|one| one.participant.id.as_str());
    let servers = config.servers.iter().map(|server| server.name.as_str());
    let issued = state.tokens().iter().map(|token| token.name.as_str());
    let mut known =
        participants.chain(servers).chain(issued).filter_map(|name| ParticipantId::new(name).ok());
    if let Some(other) = known.find(|other| id.looks_like(other)) {
        return Err(malformed(format!("`{name}` looks like `{other}`")).hint("choose another name"));
    }
    if is_gateways_name(name) || config.servers.iter().any(|server| server.name.as_str() == name) {
        let refusal = malformed(format!("`{name}` is the name of a server or of the gateway itself"));
        return Err(refusal.hint("choose another name"));
    }
    if state.tokens().iter().any(|token| token.name == name) {
        let refusal = Refusal::new(RefusalCode::Forbidden, format!("`{name}` has a token already"));
        return Err(refusal.hint(format!("revoke it first: portmoot token revoke {name}")));
    }
    if request.capabilities.is_some() && configured(config, name).is_some_and(|one| one.capabilities_written)
    {
        let refusal = malformed(format!("the capabilities of `{name}` are configured"));
        return Err(refusal.hint(format!("leave capabilities out, or change [participants.{name}]")));
    }
    if let Some(Err((text, error))) =
        request.capabilities.as_ref().map(|texts| Capabilities::parse(texts.iter().map(String::as_str)))
    {
        return Err(malformed(format!("`{}` is not a capability: {error}", text.escape_debug())));
    }
    for topic in request.topics.iter().flatten() {
        if !config.topics.iter().any(|known| known.name.as_str() == topic) {
            let refusal = malformed(format!("there is no topic `{}`", topic.escape_debug()));
            return Err(refusal.hint("configure it first, or leave topics out for `main`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
