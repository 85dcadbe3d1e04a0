//! Identities in force: configured participants joined with issued tokens.

use std::sync::Arc;

use auth::{Credential, Identities, LOCAL_USER, Participant, TokenHash, Wires};
use model::{Capabilities, ParticipantId, TopicName};

use crate::config::{IdentityConfig, ParticipantConfig};
use crate::record::IssuedToken;
use crate::state::AccessState;

/// Whether callers must authenticate: a participant or an issuer is configured, a token was issued,
/// or clients may sign in. Expired tokens count, so that no gateway opens by the mere passing of
/// time.
#[must_use]
pub fn tokens_configured(config: &IdentityConfig, state: &AccessState) -> bool {
    let configured =
        !config.participants.is_empty() || !config.issuers.is_empty() || config.login.is_some();
    configured || !state.tokens().is_empty()
}

/// All participants that may connect, by their tokens and certificates. `required_before` keeps a
/// running gateway closed after its last token was revoked. The bearer of the operator key is the
/// local user.
#[must_use]
pub fn identities(
    config: &IdentityConfig,
    state: &AccessState,
    required_before: bool,
    operator: Option<TokenHash>,
) -> Identities {
    if !required_before && !tokens_configured(config, state) {
        return Identities::local(local_user(config));
    }
    let configured = config.participants.iter().flat_map(|one| {
        one.credentials
            .iter()
            .map(|credential| (credential.clone(), Arc::clone(&one.participant)))
    });
    let issued = state
        .tokens()
        .iter()
        .filter(|token| !token.expired)
        .filter_map(|token| {
            let credential = Credential {
                hash: token.sha256.parse().ok()?,
                expires_ms: token.expires_ms,
            };
            Some((credential, bearer(config, token)?))
        });
    let certified = config.participants.iter().flat_map(|one| {
        one.certificates
            .iter()
            .map(|id| (id.clone(), Arc::clone(&one.participant)))
    });
    // A configured name is the operator's to give.
    let incarnations = state
        .tokens()
        .iter()
        .filter(|token| self::configured(config, &token.name).is_none());
    let incarnations = incarnations
        .filter_map(|token| Some((token.name.clone(), token.incarnation.clone()?)))
        .collect();
    let known = Identities::tokens(configured.chain(issued)).with_certificates(certified);
    let known = known.with_incarnations(incarnations);
    match operator {
        Some(key) if config.operator_key => known.with_operator(key, local_user(config)),
        Some(_) | None => known,
    }
}

/// The token in an `Authorization` header, if it is a bearer's (RFC 6750, section 2.1).
pub fn bearer_token(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The participant of every connection while no tokens are configured. It may do everything in
/// every topic.
pub fn local_user(config: &IdentityConfig) -> Arc<Participant> {
    let id = ParticipantId::new(LOCAL_USER).unwrap_or_else(|_| ParticipantId::gateway());
    let topics = config
        .topics
        .iter()
        .map(|topic| topic.name.clone())
        .collect();
    let capabilities = Arc::new(Capabilities::full());
    let mode = <_>::default();
    Arc::new(Participant {
        mode,
        ..Participant::new(id, capabilities, topics)
    })
}

/// The bearer of an issued token. Written capabilities of the configuration win over those of the
/// token.
pub(super) fn bearer(config: &IdentityConfig, token: &IssuedToken) -> Option<Arc<Participant>> {
    let configured = configured(config, &token.name);
    let written = configured
        .filter(|one| one.capabilities_written)
        .map(|one| Arc::clone(&one.participant.capabilities));
    let capabilities = match (written, &token.capabilities) {
        (Some(written), _) => written,
        (None, Some(texts)) => {
            Arc::new(Capabilities::parse(texts.iter().map(String::as_str)).ok()?)
        }
        (None, None) => Arc::new(Capabilities::newcomer()),
    };
    let topics = match (&token.topics, configured) {
        (Some(topics), _) => topics
            .iter()
            .filter_map(|topic| TopicName::new(topic).ok())
            .collect(),
        (None, Some(one)) => one.participant.topics.clone(),
        (None, None) => vec![TopicName::new("main").ok()?],
    };
    let rate = configured.and_then(|one| one.participant.rate);
    let mode = configured
        .map(|one| one.participant.mode)
        .unwrap_or_default();
    let wires = configured.map_or(Wires::ALL, |one| one.participant.wires);
    let id = ParticipantId::new(&token.name).ok()?;
    Some(Arc::new(Participant {
        id,
        capabilities,
        topics,
        rate,
        mode,
        wires,
        expires_ms: token.expires_ms,
        bearer: None,
    }))
}

/// The configured participant of this name.
pub(super) fn configured<'a>(
    config: &'a IdentityConfig,
    name: &str,
) -> Option<&'a ParticipantConfig> {
    config
        .participants
        .iter()
        .find(|one| one.participant.id.as_str() == name)
}
