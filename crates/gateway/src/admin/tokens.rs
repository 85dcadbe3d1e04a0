//! Tokens that were issued: made, listed, revoked, and joined with the configured participants to those who may come in.
//!
//! Must not know HTTP, nor the command line. Its calls on the journal block on the disk. Randomness and time are handed in.

use std::sync::Arc;

use auth::{Credential, Identities, LOCAL_USER, Participant, TokenHash, encode_token};
use model::{Capabilities, GATEWAY, ParticipantId, Refusal, RefusalCode, TopicName};
use store::{IssuedToken, Record, State, StoreError, JournalWriter};

use crate::config::{Config, ParticipantConfig};
use crate::guests::ANONYMOUS_PREFIX;

/// A wish for a token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenRequest {
    /// The participant that it makes of its bearer.
    pub name: String,
    /// Its capabilities; `None` takes the configured ones, or a new participant's.
    pub capabilities: Option<Vec<String>>,
    /// Its topics; `None` takes the configured ones, or `main`.
    pub topics: Option<Vec<String>>,
    /// How long it is valid, milliseconds; `None` is until revoked.
    pub lifetime_ms: Option<u64>,
}

/// Issues a token: journalled first, then told. Gives the token, which nobody can show again. Who issues and revokes at
/// once for one name must take turns.
///
/// # Errors
/// A refusal when the name, a capability or a topic cannot be, the name has a token already, or the journal cannot be
/// written.
pub fn issue(
    journal: &JournalWriter,
    config: &Config,
    request: TokenRequest,
    random: &[u8; 32],
    now_ms: u64,
) -> Result<(String, IssuedToken), Refusal> {
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
    journal.append(&[Record::TokenIssued(issued.clone())]).map_err(|error| unwritten(&error))?;
    Ok((token, issued))
}

/// Revokes every issued token of a participant.
///
/// # Errors
/// A refusal when it has none, or the journal cannot be written.
pub fn revoke(journal: &JournalWriter, name: &str, now_ms: u64) -> Result<(), Refusal> {
    if !journal.state(|state| state.tokens().iter().any(|token| token.name == name)) {
        let refusal = Refusal::new(RefusalCode::UnknownTarget, format!("`{name}` has no issued token"));
        return Err(
            refusal.hint("list them: portmoot token ls; configured tokens are changed in the configuration")
        );
    }
    let record = Record::TokenRevoked { name: name.to_owned(), at_ms: now_ms };
    journal.append(&[record]).map_err(|error| unwritten(&error))
}

/// Whether callers must authenticate: somebody is configured, or a token was issued (expired ones count, so that time
/// alone opens no door).
#[must_use]
pub fn tokens_configured(config: &Config, state: &State) -> bool {
    !config.participants.is_empty() || !state.tokens().is_empty()
}

/// All who may come in. `asked_before` keeps a running gateway closed after its last token was revoked.
#[must_use]
pub fn identities(config: &Config, state: &State, asked_before: bool) -> Identities {
    if !asked_before && !tokens_configured(config, state) {
        return Identities::local(local_user(config));
    }
    let configured = config.participants.iter().flat_map(|one| {
        one.credentials.iter().map(|credential| (credential.clone(), Arc::clone(&one.participant)))
    });
    let issued = state.tokens().iter().filter_map(|token| {
        let credential = Credential { hash: token.sha256.parse().ok()?, expires_ms: token.expires_ms };
        Some((credential, bearer(config, token)?))
    });
    Identities::tokens(configured.chain(issued))
}

/// Who comes in while no tokens are configured: everything is allowed, everywhere.
pub fn local_user(config: &Config) -> Arc<Participant> {
    let id = ParticipantId::new(LOCAL_USER).unwrap_or_else(|_| ParticipantId::gateway());
    let topics = config.topics.iter().map(|topic| topic.name.clone()).collect();
    Arc::new(Participant { id, capabilities: Arc::new(Capabilities::full()), topics, rate: None })
}

/// What the configuration writes out wins over what the token brings.
fn bearer(config: &Config, token: &IssuedToken) -> Option<Arc<Participant>> {
    let configured = configured(config, &token.name);
    let written = configured
        .filter(|one| one.capabilities_written)
        .map(|one| Arc::clone(&one.participant.capabilities));
    let brought = || {
        let texts = token.capabilities.as_ref()?;
        Capabilities::parse(texts.iter().map(String::as_str)).ok().map(Arc::new)
    };
    let topics = match (&token.topics, configured) {
        (Some(topics), _) => topics.iter().filter_map(|topic| TopicName::new(topic).ok()).collect(),
        (None, Some(one)) => one.participant.topics.clone(),
        (None, None) => vec![TopicName::new("main").ok()?],
    };
    let capabilities = match (&token.capabilities, written) {
        (_, Some(written)) => written,
        (Some(_), None) => brought()?,
        (None, None) => Arc::new(Capabilities::newcomer()),
    };
    let rate = configured.and_then(|one| one.participant.rate);
    Some(Arc::new(Participant { id: ParticipantId::new(&token.name).ok()?, capabilities, topics, rate }))
}

fn configured<'a>(config: &'a Config, name: &str) -> Option<&'a ParticipantConfig> {
    config.participants.iter().find(|one| one.participant.id.as_str() == name)
}

fn check(state: &State, config: &Config, request: &TokenRequest) -> Result<(), Refusal> {
    let malformed = |message: String| Refusal::new(RefusalCode::Malformed, message);
    let name = request.name.as_str();
    ParticipantId::new(name)
        .map_err(|error| malformed(format!("`{}` is no name: {error}", name.escape_debug())))?;
    let taken = [GATEWAY, LOCAL_USER].contains(&name) || name.starts_with(ANONYMOUS_PREFIX);
    if taken || config.servers.iter().any(|server| server.name.as_str() == name) {
        let refusal = malformed(format!("`{name}` is the name of a server or of the gateway itself"));
        return Err(refusal.hint("choose another name"));
    }
    if state.tokens().iter().any(|token| token.name == name) {
        let refusal = Refusal::new(RefusalCode::Forbidden, format!("`{name}` has a token already"));
        return Err(refusal.hint(format!("revoke it first: portmoot token revoke {name}")));
    }
    if request.capabilities.is_some() && configured(config, name).is_some_and(|one| one.capabilities_written)
    {
        let refusal = malformed(format!("the configuration says what `{name}` may do"));
        return Err(refusal.hint(format!("leave capabilities out, or change [participants.{name}]")));
    }
    if let Some(Err((text, error))) =
        request.capabilities.as_ref().map(|texts| Capabilities::parse(texts.iter().map(String::as_str)))
    {
        return Err(malformed(format!("`{}` is no capability: {error}", text.escape_debug())));
    }
    for topic in request.topics.iter().flatten() {
        if !config.topics.iter().any(|known| known.name.as_str() == topic) {
            let refusal = malformed(format!("there is no topic `{}`", topic.escape_debug()));
            return Err(refusal.hint("configure it first, or leave topics out for `main`"));
        }
    }
    Ok(())
}

/// What happened inside is logged; outside only that nothing was promised is told.
fn unwritten(error: &StoreError) -> Refusal {
    tracing::error!(code = error.code(), %error, "the journal cannot be written");
    let refusal =
        Refusal::new(RefusalCode::Internal, "the change could not be written down, so it was not made");
    refusal.hint("the gateway's log says why")
}

#[cfg(test)]
mod tests;
