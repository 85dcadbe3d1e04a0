//! Sign-ins in force: access tokens of the gateway's own authorization server, and the participants
//! that come with them.

use std::collections::HashMap;
use std::sync::Arc;

use auth::jwt::{TokenFault, is_same_audience};
use auth::{
    ACCESS_TOKEN_PREFIX, AccessTokens, Bearer, FamilyId, Participant, Presented, PublicUrl,
    SealError, SealKey, TokenAudience,
};
use model::{Digest, Narrowing, ParticipantId, Refusal, RefusalCode, Scopes, TopicName};
use store::{Ledger, SealingKey, StoreError};

use crate::config::IdentityConfig;
use crate::identities::{bearer, configured};
use crate::issuers::{ScopeConfig, capabilities_of, endpoint, offered};
use crate::record::{AccessRecord, Family};
use crate::state::AccessState;

/// The topic of the main endpoint.
const MAIN_TOPIC: &str = "main";

/// All sign-ins in force. Immutable: a sign-in, its end or a reload makes a new value.
#[derive(Debug, Default)]
pub struct SignIns {
    tokens: Option<AccessTokens>,
    families: HashMap<FamilyId, SignedIn>,
    public_url: Option<PublicUrl>,
    scopes: Vec<ScopeConfig>,
    /// The scopes of other tokens, if clients are to come back with one.
    step_up: Option<Arc<Scopes>>,
}

/// A family in force, and the participant as which its client acts.
#[derive(Debug)]
struct SignedIn {
    /// The participant.
    participant: Arc<Participant>,
    /// When the family ends, in Unix milliseconds.
    ends_ms: u64,
}

impl SignedIn {
    /// Whether it is valid at this time, in Unix milliseconds.
    fn is_valid(&self, now_ms: u64) -> bool {
        now_ms < self.ends_ms && self.participant.expires_ms.is_none_or(|end| now_ms < end)
    }
}

/// The key of a data directory's authorization server. Makes one of `random` if there is none yet.
/// Blocks on the disk.
///
/// # Errors
/// If the journal cannot be written.
pub fn make_login_key(
    journal: &Ledger<AccessState>,
    random: &SealKey,
    now_ms: u64,
) -> Result<(), StoreError> {
    if journal.state(login_key).is_some() {
        return Ok(());
    }
    let key = SealingKey {
        key: Digest(*random).to_string(),
        created_ms: now_ms,
    };
    journal.append(&[AccessRecord::LoginKey(key)])
}

/// The key of the authorization server, if it was ever enabled.
#[must_use]
pub fn login_key(state: &AccessState) -> Option<SealKey> {
    state
        .login_key()?
        .key
        .parse::<Digest>()
        .ok()
        .map(|digits| digits.0)
}

/// The participant of this name that may sign in: a configured one, or the bearer of the newest
/// issued token.
#[must_use]
pub fn subject(
    config: &IdentityConfig,
    state: &AccessState,
    name: &str,
) -> Option<Arc<Participant>> {
    if let Some(one) = configured(config, name) {
        return Some(Arc::clone(&one.participant));
    }
    let newest = state.tokens().iter().rfind(|token| token.name == name)?;
    bearer(config, newest)
}

/// Mark of a participant in a session of a browser: another mark is another bearer of the name, or
/// one of whom something was revoked since.
#[must_use]
pub fn session_mark(config: &IdentityConfig, state: &AccessState, name: &str) -> String {
    let newest = state.tokens().iter().rfind(|token| token.name == name);
    let incarnation = match newest {
        Some(token) if configured(config, name).is_none() => token.incarnation.as_deref(),
        Some(_) | None => None,
    };
    let incarnation = incarnation.unwrap_or("-");
    format!("{incarnation} {}", state.revocations(name))
}

/// The topic for whose endpoint a resource is. Neither reveals whether there is such a topic.
#[must_use]
pub fn topic_of_resource<'r>(public_url: &PublicUrl, resource: &'r str) -> Option<&'r str> {
    let bare = resource.strip_suffix('/').unwrap_or(resource);
    if is_same_audience(bare, public_url.as_str())
        || is_same_audience(bare, &public_url.at(&endpoint(MAIN_TOPIC)))
    {
        return Some(MAIN_TOPIC);
    }
    let (before, topic) = bare.rsplit_once('/')?;
    let is_ours = is_same_audience(before, &public_url.at(&endpoint(MAIN_TOPIC)));
    (is_ours && TopicName::new(topic).is_ok()).then_some(topic)
}

/// The resource of a topic's endpoint, spelled in one way.
#[must_use]
pub fn resource_of_topic(public_url: &PublicUrl, topic: &str) -> String {
    public_url.at(&endpoint(topic))
}

impl SignIns {
    /// All sign-ins that follow from the journal, if signing in is enabled.
    #[must_use]
    pub fn read(config: &IdentityConfig, state: &AccessState) -> Self {
        if config.login.is_none() {
            return Self::default();
        }
        let Some(key) = login_key(state) else {
            return Self::default();
        };
        let signed_in = |family: &Family| {
            let participant = subject(config, state, &family.participant)?;
            let id = FamilyId::parse(&family.id)?;
            Some((
                id,
                SignedIn {
                    participant,
                    ends_ms: family.ends_ms,
                },
            ))
        };
        Self {
            tokens: Some(AccessTokens::new(&key)),
            families: state.families().filter_map(signed_in).collect(),
            public_url: config.public_url.clone(),
            scopes: config.scopes.clone(),
            step_up: config
                .login
                .as_ref()
                .filter(|login| login.step_up)
                .map(|_| offered(&config.scopes)),
        }
    }

    /// Whether a token is for this check.
    #[must_use]
    pub fn concerns(&self, token: &str) -> bool {
        self.tokens.is_some() && token.starts_with(ACCESS_TOKEN_PREFIX)
    }

    /// The participant of an access token at the endpoint of a topic, or outside of topics, where
    /// tokens for the main endpoint are good.
    /// `None` if the token is not for this check.
    pub fn identify(
        &self,
        presented: Presented<'_>,
        topic: Option<&str>,
        now_ms: u64,
    ) -> Option<Result<Arc<Participant>, Refusal>> {
        let token = presented.bearer.filter(|token| self.concerns(token))?;
        Some(self.check(token, topic, now_ms))
    }

    fn check(
        &self,
        token: &str,
        topic: Option<&str>,
        now_ms: u64,
    ) -> Result<Arc<Participant>, Refusal> {
        let tokens = self.tokens.as_ref().ok_or_else(not_valid)?;
        let token = tokens.open(token, now_ms).map_err(|error| match error {
            SealError::Expired => TokenFault::Expired.refusal(),
            SealError::Invalid => not_valid(),
        })?;
        let signed_in = self
            .families
            .get(&token.family)
            .filter(|known| known.is_valid(now_ms));
        let signed_in = signed_in.ok_or_else(not_valid)?;
        let own = self
            .public_url
            .as_ref()
            .and_then(|url| topic_of_resource(url, &token.resource));
        if own != Some(topic.unwrap_or(MAIN_TOPIC)) {
            return Err(TokenFault::Foreign.refusal());
        }
        let audience = TokenAudience::Only(
            own.and_then(|topic| TopicName::new(topic).ok())
                .into_iter()
                .collect(),
        );
        let mut participant = Participant::clone(&signed_in.participant);
        let narrowing = capabilities_of(&self.scopes, &token.scopes).map(|to| Narrowing {
            to,
            step_up: self.step_up.clone(),
        });
        let ends_ms = token.expires_ms;
        participant.bearer = Some(Arc::new(Bearer {
            token: None,
            narrowing,
            ends_ms,
            checked_until_ms: ends_ms,
            audience,
        }));
        participant.expires_ms = Some(token.expires_ms);
        Ok(Arc::new(participant))
    }

    /// The participant of this name, if it has signed in and the sign-in has not ended.
    #[must_use]
    pub fn participant(&self, id: &ParticipantId, now_ms: u64) -> Option<Arc<Participant>> {
        let mut valid = self
            .families
            .values()
            .filter(|known| known.is_valid(now_ms));
        valid
            .find(|known| known.participant.id == *id)
            .map(|known| Arc::clone(&known.participant))
    }

    /// All participants that have signed in, by name, each once.
    #[must_use]
    pub fn participants(&self, now_ms: u64) -> Vec<Arc<Participant>> {
        let valid = self
            .families
            .values()
            .filter(|known| known.is_valid(now_ms));
        let mut all: Vec<_> = valid.map(|known| Arc::clone(&known.participant)).collect();
        all.sort_by(|one, other| one.id.as_str().cmp(other.id.as_str()));
        all.dedup_by(|one, other| one.id == other.id);
        all
    }

    /// When the next sign-in ends after this time, both in Unix milliseconds.
    #[must_use]
    pub fn next_expiry(&self, now_ms: u64) -> Option<u64> {
        self.families
            .values()
            .map(|known| known.ends_ms)
            .filter(|end| *end > now_ms)
            .min()
    }
}

fn not_valid() -> Refusal {
    Refusal::new(RefusalCode::Unauthenticated, "this token is not valid")
        .hint("it may have been revoked: sign in again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_endpoints_of_the_gateway_and_reveal_no_topic() {
        for (public, resource, topic) in [
            ("https://gw.example", "https://gw.example/mcp", Some("main")),
            (
                "https://gw.example",
                "https://gw.example/mcp/",
                Some("main"),
            ),
            ("https://gw.example", "https://gw.example", Some("main")),
            ("https://gw.example", "https://gw.example/", Some("main")),
            ("https://gw.example", "HTTPS://GW.example/mcp", Some("main")),
            (
                "https://gw.example",
                "https://gw.example/mcp/main",
                Some("main"),
            ),
            (
                "https://gw.example",
                "https://gw.example/mcp/ops",
                Some("ops"),
            ),
            (
                "https://gw.example",
                "https://gw.example/mcp/ops/",
                Some("ops"),
            ),
            (
                "https://gw.example/a",
                "https://gw.example/a/mcp/ops",
                Some("ops"),
            ),
            ("https://gw.example/a", "https://gw.example/mcp/ops", None),
            ("https://gw.example", "http://gw.example/mcp", None),
            ("https://gw.example", "https://gw.example:8443/mcp", None),
            ("https://gw.example", "https://gw.example/mcp/a/b", None),
            ("https://gw.example", "https://gw.example/mcp?x=1", None),
            ("https://gw.example", "https://gw.example/mcp#x", None),
            (
                "https://gw.example",
                "https://gw.example.evil.example/mcp",
                None,
            ),
            ("https://gw.example", "", None),
        ] {
            let url = PublicUrl::parse(public).unwrap();
            assert_eq!(
                topic_of_resource(&url, resource),
                topic,
                "{resource} at {public}"
            );
            if let Some(topic) = topic {
                let spelled = resource_of_topic(&url, topic);
                assert_eq!(topic_of_resource(&url, &spelled), Some(topic));
            }
        }
    }
}
