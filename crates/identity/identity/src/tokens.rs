//! Issued tokens: their records in the journal.
//!
//! Calls on the journal block on the disk. Randomness and time are arguments.

use auth::{TokenHash, encode_token};
use model::{CAPABILITIES_MAX, Capabilities, ParticipantId, Refusal, RefusalCode};
use oauth::{AccountRecord, KeptAccounts};
use serde::{Deserialize, Serialize};
use store::{Entry, Ledger, not_written};
use utoipa::ToSchema;

use crate::identities::{bearer, configured, tokens_configured};
use crate::record::{AccessRecord, IssuedToken};
use crate::state::AccessState;
use crate::{Authority, config::IdentityConfig, grants::Grants, guests::is_gateways_name};

/// Digits of the hash of its first token that tell one bearer of a name from the next. The time of
/// that token follows them.
const INCARNATION_DIGITS: usize = 16;

/// A request for a token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// The participant as which its bearer connects.
    pub name: String,
    /// The participant's capabilities; absent takes the configured ones, or those of a new
    /// participant.
    pub capabilities: Option<Vec<String>>,
    /// The participant's topics; absent takes the configured ones, or `main`.
    pub topics: Option<Vec<String>>,
    /// How long the token is valid, in milliseconds; absent is until it is revoked.
    pub lifetime_ms: Option<u64>,
}

/// An issued token.
#[derive(Debug, Serialize, ToSchema)]
pub struct IssuedTokenRow {
    /// The participant as which its bearer connects.
    pub name: String,
    /// Capabilities that it was issued with, if any.
    pub capabilities: Option<Vec<String>>,
    /// Topics that it was issued with, if any.
    pub topics: Option<Vec<String>>,
    /// Whether the configuration has a participant of this name. Without one, the defaults count
    /// where the token has no capabilities or topics of its own.
    pub configured: bool,
    /// When it was issued, in Unix milliseconds.
    pub created_ms: u64,
    /// When it expires, in Unix milliseconds.
    pub expires_ms: Option<u64>,
}

impl IssuedTokenRow {
    /// An issued token as operators see it: without its hash.
    #[must_use]
    pub fn of(token: &IssuedToken, config: &IdentityConfig) -> Self {
        Self {
            configured: configured(config, &token.name).is_some(),
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
    pub shown: IssuedTokenRow,
    /// The secret: what the bearer sends.
    pub token: String,
    /// Whether callers needed no token before: from now on they need one.
    pub closes: bool,
}

/// The tokens and sign-ins that a revocation has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RevokedTokens {
    /// The participant.
    pub name: String,
    /// How many changes of its capabilities have ended with its tokens: the next participant of
    /// this name does not get them.
    pub grants_ended: usize,
    /// How many changes of its capabilities stay, because the participant is configured.
    pub grants_kept: usize,
}

/// Issues a token, and returns it once it is on disk. Only its hash is kept. Two calls about one
/// name must not run at once.
///
/// A name that is not configured begins as another participant than those that had it before. It
/// begins without grants: those on record were an earlier participant's.
///
/// # Errors
/// A refusal if the name, a capability or a topic is not valid, if the name has a token already, if
/// its bearer could do more, or for longer, than the issuer, or if the journal cannot be written.
pub fn issue(
    journal: &Ledger<AccessState>,
    config: &IdentityConfig,
    authority: Authority<'_>,
    request: TokenRequest,
    random: &[u8; 32],
    now_ms: u64,
) -> Result<TokenWithSecret, Refusal> {
    let closes = journal.state(|state| {
        check(state, config, authority, &request)?;
        Ok::<_, Refusal>(!tokens_configured(config, state))
    })?;
    let token = encode_token(random);
    let sha256 = TokenHash::of(&token).to_string();
    let issued = IssuedToken {
        name: request.name,
        incarnation: Some(format!(
            "{}.{now_ms}",
            sha256.get(..INCARNATION_DIGITS).unwrap_or(&sha256)
        )),
        sha256,
        capabilities: request.capabilities,
        topics: request.topics,
        created_ms: now_ms,
        expires_ms: request
            .lifetime_ms
            .map(|lifetime| now_ms.saturating_add(lifetime)),
        expired: false,
    };
    if let Some(bearer) = bearer(config, &issued) {
        authority.may_give(config, &bearer, now_ms)?;
    }
    let mut records: Vec<AccessRecord> = ended_grants(journal, config, &issued.name, now_ms)
        .into_iter()
        .collect();
    records.push(AccessRecord::TokenIssued(issued.clone()));
    let accounts = ended_accounts(journal, config, &issued.name, now_ms)?;
    journal
        .append_with(&records, accounts)
        .map_err(|error| not_written(&error))?;
    Ok(TokenWithSecret {
        shown: IssuedTokenRow::of(&issued, config),
        token,
        closes,
    })
}

/// Issues another token to a participant that has one, with what the newest one was issued with.
/// That one stays valid for `overlap_ms` at most; older ones end. Two calls about one name must not
/// run at once.
///
/// # Errors
/// A refusal if the participant has no issued token, if its bearer may do more, or for longer, than
/// the participant that rotates, or if the journal cannot be written.
pub fn rotate(
    journal: &Ledger<AccessState>,
    config: &IdentityConfig,
    authority: Authority<'_>,
    name: &str,
    overlap_ms: u64,
    random: &[u8; 32],
    now_ms: u64,
) -> Result<TokenWithSecret, Refusal> {
    let newest = journal.state(|state| {
        state
            .tokens()
            .iter()
            .rfind(|token| token.name == name)
            .cloned()
    });
    let newest = newest.ok_or_else(|| no_token(name))?;
    let token = encode_token(random);
    let lifetime_ms = newest
        .expires_ms
        .map(|end| end.saturating_sub(newest.created_ms));
    let issued = IssuedToken {
        sha256: TokenHash::of(&token).to_string(),
        created_ms: now_ms,
        expires_ms: lifetime_ms.map(|lifetime| now_ms.saturating_add(lifetime)),
        expired: false,
        ..newest.clone()
    };
    if let Some(bearer) = bearer(config, &issued) {
        authority.may_give(config, &bearer, now_ms)?;
    }
    let end = now_ms.saturating_add(overlap_ms);
    let end = newest.expires_ms.map_or(end, |expires| expires.min(end));
    let before = IssuedToken {
        expires_ms: Some(end),
        ..newest
    };
    let mut records = vec![AccessRecord::TokenRevoked {
        name: name.to_owned(),
        at_ms: now_ms,
    }];
    records.extend((end > now_ms).then_some(AccessRecord::TokenIssued(before)));
    records.push(AccessRecord::TokenIssued(issued.clone()));
    journal
        .append(&records)
        .map_err(|error| not_written(&error))?;
    Ok(TokenWithSecret {
        shown: IssuedTokenRow::of(&issued, config),
        token,
        closes: false,
    })
}

fn no_token(name: &str) -> Refusal {
    Refusal::new(
        RefusalCode::UnknownTarget,
        format!("`{name}` has no issued token"),
    )
    .hint("list them: portmoot token ls; configured tokens are changed in the configuration")
}

/// Revokes every issued token of a participant, and ends the sign-ins of its clients. Unless it is
/// configured, its grants and its accounts at servers end too.
///
/// # Errors
/// A refusal if it has none, if its bearer may do more than the participant that revokes, or if the
/// journal cannot be written.
pub fn revoke(
    journal: &Ledger<AccessState>,
    config: &IdentityConfig,
    authority: Authority<'_>,
    name: &str,
    now_ms: u64,
) -> Result<RevokedTokens, Refusal> {
    let tokens: Vec<IssuedToken> = journal.state(|state| {
        state
            .tokens()
            .iter()
            .filter(|token| token.name == name)
            .cloned()
            .collect()
    });
    if tokens.is_empty() {
        return Err(no_token(name));
    }
    for bearer in tokens.iter().filter_map(|token| bearer(config, token)) {
        authority.may_take(config, &bearer, now_ms)?;
    }
    let grants = changes(journal, config, name, now_ms);
    let ended = ended_grants(journal, config, name, now_ms);
    let (grants_ended, grants_kept) = if ended.is_some() {
        (grants, 0)
    } else {
        (0, grants)
    };
    let records = [AccessRecord::TokenRevoked {
        name: name.to_owned(),
        at_ms: now_ms,
    }];
    let records = records
        .into_iter()
        .chain(ended)
        .chain(ended_sign_ins(journal, name, now_ms));
    let records: Vec<AccessRecord> = records.collect();
    let accounts = ended_accounts(journal, config, name, now_ms)?;
    journal
        .append_with(&records, accounts)
        .map_err(|error| not_written(&error))?;
    Ok(RevokedTokens {
        name: name.to_owned(),
        grants_ended,
        grants_kept,
    })
}

/// Number of a participant's changes of capabilities that are in force.
fn changes(
    journal: &Ledger<AccessState>,
    config: &IdentityConfig,
    name: &str,
    now_ms: u64,
) -> usize {
    let Ok(id) = ParticipantId::new(name) else {
        return 0;
    };
    journal.state(|state| Grants::read(state, config).of(&id, now_ms).count())
}

/// The ends of all sign-ins of a participant: its clients had tokens too. Its consents go with
/// them.
fn ended_sign_ins(journal: &Ledger<AccessState>, name: &str, at_ms: u64) -> Vec<AccessRecord> {
    journal.state(|state| {
        let families = state.families().filter(|family| family.participant == name);
        let ended = families.map(|family| AccessRecord::FamilyEnded {
            id: family.id.clone(),
            at_ms,
        });
        let consents = state
            .consents()
            .filter(|consent| consent.participant == name);
        let withdrawn = consents.map(|consent| AccessRecord::ConsentWithdrawn {
            participant: name.to_owned(),
            client: consent.client.clone(),
            at_ms,
        });
        ended.chain(withdrawn).collect()
    })
}

/// The ends of the accounts that a name has at servers, if it is not that of a configured
/// participant: the next bearer has none.
fn ended_accounts(
    journal: &Ledger<AccessState>,
    config: &IdentityConfig,
    name: &str,
    at_ms: u64,
) -> Result<Vec<Entry>, Refusal> {
    if configured(config, name).is_some() {
        return Ok(Vec::new());
    }
    let accounts = journal
        .journal()
        .ledger::<KeptAccounts>()
        .map_err(|error| not_written(&error))?;
    let ended: Vec<AccountRecord> = accounts.state(|kept| {
        let own = kept
            .all()
            .filter(|account| account.participant.as_deref() == Some(name));
        let ended = own.map(|account| AccountRecord::UpstreamAccountEnded {
            server: account.server.clone(),
            participant: Some(name.to_owned()),
            at_ms,
        });
        ended.collect()
    });
    ended
        .iter()
        .map(|record| Entry::of::<KeptAccounts>(record).map_err(|error| not_written(&error)))
        .collect()
}

/// The end of the grants on record for a name, if there are any and it is not that of a configured
/// participant.
fn ended_grants(
    journal: &Ledger<AccessState>,
    config: &IdentityConfig,
    name: &str,
    at_ms: u64,
) -> Option<AccessRecord> {
    let is_granted = journal.state(|state| state.grants().any(|grant| grant.participant == name));
    (is_granted && configured(config, name).is_none()).then(|| AccessRecord::GrantsCleared {
        participant: name.to_owned(),
        topic: None,
        at_ms,
    })
}

/// Whether a token may be issued to a participant of this name, with these rights.
fn check(
    state: &AccessState,
    config: &IdentityConfig,
    authority: Authority<'_>,
    request: &TokenRequest,
) -> Result<(), Refusal> {
    check_name(state, config, &request.name)?;
    if let Some(capabilities) = &request.capabilities {
        check_capabilities(config, &request.name, capabilities)?;
    }
    for topic in request.topics.iter().flatten() {
        let mut known = config
            .topics
            .iter()
            .filter(|known| authority.may_know(known));
        if !known.any(|known| known.name.as_str() == topic) {
            let refusal = malformed(format!("there is no topic `{}`", topic.escape_debug()));
            return Err(refusal.hint("configure it first, or leave topics out for `main`"));
        }
    }
    Ok(())
}

/// Whether a name is free: nothing else has it or one that looks like it, and it has no token yet.
fn check_name(state: &AccessState, config: &IdentityConfig, name: &str) -> Result<(), Refusal> {
    let id = ParticipantId::new(name).map_err(|error| {
        malformed(format!(
            "`{}` is not a valid name: {error}",
            name.escape_debug()
        ))
    })?;
    let participants = config
        .participants
        .iter()
        .map(|one| one.participant.id.as_str());
    let servers = config.servers.iter().map(ParticipantId::as_str);
    let issued = state.tokens().iter().map(|token| token.name.as_str());
    let mut known = participants
        .chain(servers)
        .chain(issued)
        .filter_map(|name| ParticipantId::new(name).ok());
    if let Some(other) = known.find(|other| id.looks_like(other)) {
        return Err(malformed(format!("`{name}` looks like `{other}`")).hint("choose another name"));
    }
    if is_gateways_name(name) || config.servers.iter().any(|server| server.as_str() == name) {
        let refusal = malformed(format!(
            "`{name}` is the name of a server or of the gateway itself"
        ));
        return Err(refusal.hint("choose another name"));
    }
    if state.tokens().iter().any(|token| token.name == name) {
        let refusal = Refusal::new(
            RefusalCode::Forbidden,
            format!("`{name}` has a token already"),
        );
        return Err(refusal.hint(format!(
            "replace it with: portmoot token rotate {name}; or revoke it first: portmoot token revoke {name}"
        )));
    }
    Ok(())
}

fn check_capabilities(
    config: &IdentityConfig,
    name: &str,
    capabilities: &[String],
) -> Result<(), Refusal> {
    if configured(config, name).is_some_and(|one| one.capabilities_written) {
        let refusal = malformed(format!("the capabilities of `{name}` are configured"));
        return Err(refusal.hint(format!(
            "leave capabilities out, or change [participants.{name}]"
        )));
    }
    if capabilities.len() > CAPABILITIES_MAX {
        return Err(malformed(format!(
            "a token has at most {CAPABILITIES_MAX} capabilities"
        )));
    }
    let parsed = Capabilities::parse(capabilities.iter().map(String::as_str));
    parsed.map(drop).map_err(|(text, error)| {
        malformed(format!(
            "`{}` is not a capability: {error}",
            text.escape_debug()
        ))
    })
}

fn malformed(message: String) -> Refusal {
    Refusal::new(RefusalCode::Malformed, message)
}

#[cfg(test)]
mod tests;
