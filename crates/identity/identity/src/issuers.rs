//! Configured issuers of access tokens and scopes: `[issuers.NAME]`, `[scopes.NAME]`.

use std::sync::Arc;

use auth::jwt::{Claims, Rules};
use auth::{Participant, PublicUrl};
use model::{Capabilities, ParticipantId, Scope, Scopes, TopicName};
use oauth::dialer::Subnet;
use oauth::issuer::{IssuerSpec, TokenCheck};
use oauth::person::{PageClient, PageSpec};

/// The most issuers.
pub const ISSUERS_MAX: usize = 16;

/// An issuer whose access tokens are accepted: `[issuers.NAME]`.
#[derive(Debug, Clone, PartialEq)]
pub struct IssuerConfig {
    /// Its name here: participants that come with its tokens are called `NAME:...`.
    pub name: String,
    /// Rules that its tokens must keep.
    pub rules: Rules,
    /// Way in which its tokens are checked.
    pub source: TokenCheck,
    /// Audiences of its tokens besides the address of the endpoint.
    pub audiences: Vec<String>,
    /// Whether an opaque token without an audience is for its client.
    pub audience_of_client: bool,
    /// The beginning of the opaque tokens about which it is asked; it sees no others.
    pub token_prefix: String,
    /// Addresses that its names may resolve to although they are not public.
    pub allowed: Vec<Subnet>,
    /// The name of a participant: a text with claims in braces.
    pub participant: String,
    /// The claim whose values are a person's groups, by which rules choose.
    pub groups: String,
    /// The rules, the first that matches counts.
    pub map: Vec<MapRule>,
    /// The place of those that no rule matches; `None` refuses them.
    pub unknown: Option<TokenAccess>,
    /// Whether a call that needs more scopes than its token has is answered with a challenge.
    pub step_up: bool,
    /// The gateway as its client for people who sign in to the console there; `None` if none do.
    pub console: Option<PageClient>,
}

/// Gives a place to those whose claims match: `[[issuers.NAME.map]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct MapRule {
    /// Claims with the value that each must have or contain. `groups` is the configured claim of
    /// groups.
    pub when: Vec<(String, String)>,
    /// Access of participants with these claims.
    pub place: TokenAccess,
}

/// Capabilities and topics of a participant that comes with an access token.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenAccess {
    /// Its capabilities.
    pub capabilities: Arc<Capabilities>,
    /// Its topics.
    pub topics: Vec<TopicName>,
}

/// The subject of an issuer that a configured participant is: `[participants.NAME] subject`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerSubject {
    /// The name of the issuer here.
    pub issuer: String,
    /// The subject of its tokens.
    pub subject: String,
}

/// A scope of access tokens: `[scopes.NAME]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScopeConfig {
    /// The scope as tokens have it.
    pub name: String,
    /// Whether clients are asked for it at first.
    pub baseline: bool,
    /// The scopes that it implies, in one or more steps, itself among them.
    pub implies: Vec<String>,
    /// Capabilities that it gives its bearer, as far as the participant has them.
    pub capabilities: Arc<Capabilities>,
}

/// Why a subject has no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Placeless {
    /// No rule matches.
    #[error("`{0}` signed in, but no rule of [issuers.{1}] gives them a place")]
    NoRule(String, String),
    /// The issuer left the groups out of the token.
    #[error("`{0}` signed in, but the token leaves their groups out: they are in too many")]
    GroupsElsewhere(String),
    /// The name cannot be a participant's.
    #[error("`{0}` signed in, but has no name that a participant can have")]
    NoName(String),
}

impl IssuerConfig {
    /// Settings with which the issuer is asked.
    #[must_use]
    pub fn spec(&self) -> IssuerSpec {
        let issuer = self.rules.issuer.clone();
        let source = self.source.clone();
        let allowed = self.allowed.clone();
        IssuerSpec {
            issuer,
            source,
            allowed,
        }
    }

    /// Settings with which people sign in to the console there.
    #[must_use]
    pub fn page_spec(&self) -> Option<PageSpec> {
        Some(PageSpec {
            issuer: self.rules.issuer.clone(),
            client: self.console.clone()?,
            allowed: self.allowed.clone(),
        })
    }

    /// The participant of the subject of a token.
    ///
    /// # Errors
    /// Why it has no place here.
    pub fn participant_of(&self, claims: &Claims) -> Result<Arc<Participant>, Placeless> {
        let shown = || safe(&claims.subject);
        let place = self.place_of(claims)?;
        let name = format!("{}:{}", self.name, self.name_of(claims));
        let id = ParticipantId::new(&name).map_err(|_| Placeless::NoName(shown()))?;
        Ok(Arc::new(Participant::new(
            id,
            Arc::clone(&place.capabilities),
            place.topics.clone(),
        )))
    }

    fn place_of(&self, claims: &Claims) -> Result<&TokenAccess, Placeless> {
        let claim = |name: &str| {
            if name == "groups" {
                self.groups.clone()
            } else {
                name.to_owned()
            }
        };
        // Providers write lists as texts with blanks there; elsewhere a person may have chosen the
        // words of a text.
        let is_list =
            |name: &str| name == self.groups || ["groups", "scope", "scp"].contains(&name);
        let has = |name: &str, value: &String| match name {
            "email" => is_email_verified(claims) && claims.has(name, value),
            name if is_list(name) => claims.texts(name).contains(value),
            name => claims.has(name, value),
        };
        for rule in &self.map {
            let mut wanted = rule.when.iter().map(|(name, value)| (claim(name), value));
            if wanted.clone().all(|(name, value)| has(&name, value)) {
                return Ok(&rule.place);
            }
            // A rule that comes later must not count for a person that this one might have meant.
            if wanted.any(|(name, _)| claims.is_elsewhere(&name)) {
                return Err(Placeless::GroupsElsewhere(safe(&claims.subject)));
            }
        }
        let none = || Placeless::NoRule(self.name_of(claims), self.name.clone());
        self.unknown.as_ref().ok_or_else(none)
    }

    /// The name by the template, or the subject if a claim of it is missing; only characters that
    /// are safe in names.
    fn name_of(&self, claims: &Claims) -> String {
        let mut name = String::new();
        let mut rest = self.participant.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let Some((claim, after)) = after.split_once('}') else {
                break;
            };
            let is_known = claim != "email" || is_email_verified(claims);
            let value = claims
                .text(claim)
                .filter(|value| is_known && !value.is_empty());
            let Some(value) = value else {
                return safe(&claims.subject);
            };
            name.push_str(before);
            name.push_str(&value);
            rest = after;
        }
        name.push_str(rest);
        safe(&name)
    }
}

/// Whether the issuer knows that the address is the person's: else anyone may have typed it.
fn is_email_verified(claims: &Claims) -> bool {
    claims.all.get("email_verified") == Some(&true.into())
}

/// A text as part of a participant's name.
fn safe(text: &str) -> String {
    const NAME_CHARS_MAX: usize = 80;
    let is_safe = |one: char| one.is_ascii_alphanumeric() || "._@+-|".contains(one);
    text.chars()
        .take(NAME_CHARS_MAX)
        .map(|one| if is_safe(one) { one } else { '_' })
        .collect()
}

/// The path of the endpoint of a topic.
#[must_use]
pub fn endpoint(topic: &str) -> String {
    if topic == "main" {
        "/mcp".to_owned()
    } else {
        format!("/mcp/{topic}")
    }
}

/// The address of the metadata about an endpoint of the gateway (RFC 9728, section 3.1), which
/// begins with a slash.
#[must_use]
pub fn metadata_url(public_url: &PublicUrl, endpoint: &str) -> String {
    public_url.well_known("oauth-protected-resource", endpoint)
}

/// The capabilities of these scopes of a token, and of those that they imply; `None` if no scopes
/// are configured.
#[must_use]
pub fn capabilities_of(scopes: &[ScopeConfig], held: &[String]) -> Option<Arc<Capabilities>> {
    if scopes.is_empty() {
        return None;
    }
    let is_held = |scope: &&ScopeConfig| {
        let mut holders = scopes.iter().filter(|one| held.contains(&one.name));
        holders.any(|holder| holder.implies.contains(&scope.name))
    };
    let all = scopes
        .iter()
        .filter(is_held)
        .flat_map(|scope| scope.capabilities.iter().cloned());
    Some(Arc::new(all.collect()))
}

/// All scopes, as clients may come back with tokens for them.
#[must_use]
pub fn offered(scopes: &[ScopeConfig]) -> Arc<Scopes> {
    let scope = |one: &ScopeConfig| Scope {
        name: one.name.as_str().into(),
        capabilities: Arc::clone(&one.capabilities),
    };
    Arc::new(scopes.iter().map(scope).collect())
}

#[cfg(test)]
mod tests;
