//! Bearers of access tokens: checked tokens by their SHA-256, and the participants that came with
//! them.
//!
//! A door calls [`Bearers::admit`] once for a token that it does not know; that may ask the issuer.
//! After that [`Bearers::identify`] finds it without waiting.

mod cache;
pub mod explain;
mod people;
mod refused;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use auth::jwt::{ACCESS_TOKEN_BYTES_MAX, Claims, Jwt, TokenFault, is_jwt, is_same_audience};
use auth::{Bearer, Participant, Presented, TOKEN_PREFIX, TokenAudience, TokenHash};
use model::{Narrowing, ParticipantId, Refusal, RefusalCode, Scopes};
use oauth::dialer::Dialer;
use oauth::issuer::{Issuer, TokenCheck};
use oauth::person::PageIssuer;
use platform::{Limiter, RwLock, unix_ms};
use tls::ClientTls;

use crate::config::IdentityConfig;
use crate::issuers::{IssuerConfig, capabilities_of, endpoint, offered};
pub use cache::TOKENS_MAX;
use cache::{Cache, Checked};
pub use people::PEOPLE_MAX;
use people::People;
use refused::TokenRefused;

/// Bad tokens of one address in a minute.
pub const BAD_TOKENS_PER_MINUTE: u32 = 60;
/// Time that an issuer's answer about an opaque token counts, at most.
const ANSWER_VALID: Duration = Duration::from_secs(60);
/// Time that a refused opaque token is refused without asking.
const REFUSAL_VALID: Duration = Duration::from_secs(10);

/// The tokens of issuers, and what is known of their bearers.
pub struct Bearers {
    known: RwLock<Arc<Known>>,
    cache: Cache,
    people: People,
    /// Bad tokens by source address.
    attempts: Limiter,
    /// Number of tokens that were refused.
    refused: AtomicU64,
    /// The registry's: moves when tokens that were good may be so no more.
    epoch: Arc<AtomicU64>,
}

/// Configuration and issuers by which tokens are checked.
#[derive(Default, Clone)]
struct Known {
    config: Arc<IdentityConfig>,
    issuers: Vec<KnownIssuer>,
    /// The scopes that tokens may have.
    scopes: Arc<Scopes>,
}

/// An issuer with its keys, if it has some.
#[derive(Clone)]
struct KnownIssuer {
    config: IssuerConfig,
    issuer: Arc<Issuer>,
    /// The issuer as a place at which people sign in to the console.
    page: Option<Arc<PageIssuer>>,
}

impl KnownIssuer {
    /// Whether it is asked about this token.
    fn is_asked_about(&self, token: &str) -> bool {
        matches!(self.config.source, TokenCheck::Introspection(..))
            && token.starts_with(self.config.token_prefix.as_str())
    }
}

impl Bearers {
    /// Without issuers. `epoch` moves when tokens must be looked at again.
    pub fn new(epoch: Arc<AtomicU64>) -> Arc<Self> {
        Arc::new(Self {
            known: RwLock::default(),
            cache: Cache::default(),
            people: People::default(),
            attempts: Limiter::new(BAD_TOKENS_PER_MINUTE),
            refused: AtomicU64::default(),
            epoch,
        })
    }

    /// Takes over a configuration: issuers that did not change keep their keys, all checked tokens
    /// are forgotten, and the participants that came with them get what the configuration gives
    /// them now. Must be called inside a runtime.
    pub fn take_over(self: &Arc<Self>, config: &Arc<IdentityConfig>) {
        let before = self.known();
        let mut issuers = Vec::new();
        for one in &config.issuers {
            let Some(issuer) = self.issuer_of(one, &before) else {
                continue;
            };
            issuers.push(KnownIssuer {
                config: one.clone(),
                issuer,
                page: page_of(one, &before),
            });
        }
        let scopes = offered(&config.scopes);
        *self.known.write() = Arc::new(Known {
            config: Arc::clone(config),
            issuers,
            scopes,
        });
        self.cache.clear();
        let known = self.known();
        self.people.renew(unix_ms(), |issuer, claims| {
            let mut issuers = known.issuers.iter();
            let of = issuers.find(|one| one.config.name == issuer)?;
            known.participant(&of.config, claims).ok()
        });
    }

    /// The issuer of a configuration: the one of before if it is the same. `None` if it cannot be
    /// used.
    fn issuer_of(self: &Arc<Self>, config: &IssuerConfig, before: &Known) -> Option<Arc<Issuer>> {
        let spec = config.spec();
        let mut issuers = before.issuers.iter();
        if let Some(same) = issuers.find(|one| one.issuer.spec == spec) {
            return Some(Arc::clone(&same.issuer));
        }
        let name = config.name.clone();
        match Issuer::new(spec, Dialer::new(ClientTls::of_machine())) {
            Ok(issuer) => {
                let me = Arc::downgrade(self);
                issuer.watch(move || {
                    if let Some(me) = me.upgrade() {
                        me.keys_changed(&name);
                    }
                });
                Some(issuer)
            }
            // The configuration was checked.
            Err(error) => {
                tracing::error!(issuer = %name, %error, "an issuer cannot be used");
                None
            }
        }
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.read())
    }

    /// The keys of an issuer are other ones: tokens with one that is gone are not good any more.
    fn keys_changed(&self, issuer: &str) {
        tracing::info!(target: "portmoot::issuers", issuer, "the issuer has other keys");
        // Checks that are under way with the keys from before are made again.
        let mut known = self.known.write();
        *known = Arc::new(Known::clone(&known));
        drop(known);
        self.cache.clear();
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether a token is for this check: issuers are configured, and it is none of the gateway's
    /// own.
    pub fn concerns(&self, token: &str) -> bool {
        !token.starts_with(TOKEN_PREFIX)
            && !token.is_empty()
            && !self.known.read().issuers.is_empty()
    }

    /// The participant of a token that was admitted, at the endpoint of a topic, or outside of
    /// topics. `None` if the token is not for this check. Never waits.
    pub fn identify(
        &self,
        presented: Presented<'_>,
        topic: Option<&str>,
    ) -> Option<Result<Arc<Participant>, Refusal>> {
        let token = presented.bearer.filter(|token| self.concerns(token))?;
        let now_ms = unix_ms();
        let hash = TokenHash::of(token);
        loop {
            let known = self.known();
            let checked = match self.cache.find(&hash, now_ms) {
                Some(checked) => checked,
                None => match self.check_now(&known, token, hash, now_ms) {
                    Ok(checked) => checked,
                    Err(TokenRefused::Changed) => continue,
                    Err(refused) => return Some(Err(refused.refusal(token))),
                },
            };
            let is_for_us = known.check_audience(&checked, topic);
            return Some(is_for_us.map(|()| Arc::clone(&checked.participant)));
        }
    }

    /// Checks a token without asking anyone, if that is possible.
    fn check_now(
        &self,
        known: &Arc<Known>,
        token: &str,
        hash: TokenHash,
        now_ms: u64,
    ) -> Result<Arc<Checked>, TokenRefused> {
        let SignedToken { jwt, at, by } = known.read(token)?;
        let keys = by.issuer.keys().ok_or(TokenRefused::Unreachable)?;
        jwt.check_signature(&keys)?;
        let claims = jwt.claims(&by.config.rules, now_ms)?;
        self.enter(known, at, hash, &claims, now_ms)
    }

    /// Enters a token whose claims are true, of the issuer at this place, if what it was checked with still holds: nothing that
    /// a reload or a change of keys has taken away comes back by a check that was under way.
    fn enter(
        &self,
        known: &Arc<Known>,
        at: usize,
        hash: TokenHash,
        claims: &Claims,
        now_ms: u64,
    ) -> Result<Arc<Checked>, TokenRefused> {
        let KnownIssuer { config, .. } = known.issuers.get(at).ok_or(TokenFault::Issuer)?;
        let skew_ms = config.rules.skew_secs.saturating_mul(1000);
        let participant = known.participant(config, claims)?;
        let now_known = self.known.read();
        if !Arc::ptr_eq(&now_known, known) {
            return Err(TokenRefused::Changed);
        }
        let ends_ms = claims
            .expires_ms
            .map_or(u64::MAX, |end| end.saturating_add(skew_ms));
        self.people
            .enter(&config.name, claims, &participant, ends_ms, now_ms)?;
        let narrowing = capabilities_of(&known.config.scopes, &claims.scopes).map(|to| Narrowing {
            to,
            step_up: config.step_up.then(|| Arc::clone(&known.scopes)),
        });
        // An answer about an opaque token holds for a while only.
        let until_ms = match config.source {
            TokenCheck::Keys(_) => ends_ms,
            TokenCheck::Introspection(..) => {
                ends_ms.min(now_ms.saturating_add(platform::millis(ANSWER_VALID)))
            }
        };
        let mut bearer = Participant::clone(&participant);
        bearer.bearer = Some(Arc::new(Bearer {
            token: Some(hash.digest()),
            narrowing,
            ends_ms,
            checked_until_ms: until_ms,
            audience: known.audience(config, &claims.audiences),
        }));
        bearer.expires_ms = claims.expires_ms;
        let checked = Arc::new(Checked {
            participant: Arc::new(bearer),
            named_by: claims.named_by,
            audiences: claims.audiences.clone(),
            issuer: at,
            until_ms,
        });
        self.cache.insert(hash, &checked, now_ms);
        Ok(checked)
    }

    /// Checks a token that may not be known yet, from this address: looks for the issuer's keys, or
    /// asks the issuer. Returns at once for tokens that are not for this check.
    ///
    /// # Errors
    /// The refusal to send.
    pub async fn admit(&self, token: &str, from: Option<IpAddr>) -> Result<(), Refusal> {
        if !self.concerns(token) {
            return Ok(());
        }
        let now_ms = unix_ms();
        let hash = TokenHash::of(token);
        if self.cache.find(&hash, now_ms).is_some() {
            return Ok(());
        }
        if let Some(wait_ms) = from.and_then(|from| self.attempts.wait_ms(from, now_ms)) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            let refusal = Refusal::new(
                RefusalCode::RateLimited,
                "too many bad tokens came from your address",
            );
            return Err(refusal.hint("wait a minute").retry_after_ms(wait_ms));
        }
        match self.check(token, hash).await {
            Ok(_) => Ok(()),
            Err(refused) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                if let Some(from) = from
                    && refused.is_bad()
                {
                    self.attempts.count(from, unix_ms());
                }
                Err(refused.refusal(token))
            }
        }
    }

    async fn check(&self, token: &str, hash: TokenHash) -> Result<Arc<Checked>, TokenRefused> {
        loop {
            match self.check_with(&self.known(), token, hash).await {
                Err(TokenRefused::Changed) => {}
                checked => return checked,
            }
        }
    }

    async fn check_with(
        &self,
        known: &Arc<Known>,
        token: &str,
        hash: TokenHash,
    ) -> Result<Arc<Checked>, TokenRefused> {
        if !is_jwt(token) {
            return self.ask(known, token, hash).await;
        }
        match self.check_now(known, token, hash, unix_ms()) {
            Err(TokenRefused::Fault(TokenFault::UnknownKey) | TokenRefused::Unreachable) => {
                let issuer = &known.read(token)?.by.issuer;
                issuer.look_for_key(issuer.keys().as_ref()).await;
                match self.check_now(&self.known(), token, hash, unix_ms()) {
                    Err(TokenRefused::Fault(TokenFault::UnknownKey)) if issuer.is_stale() => {
                        Err(TokenRefused::Unsure)
                    }
                    checked => checked,
                }
            }
            checked => checked,
        }
    }

    /// Asks the issuers that are asked about tokens, in the order of the configuration.
    async fn ask(
        &self,
        known: &Arc<Known>,
        token: &str,
        hash: TokenHash,
    ) -> Result<Arc<Checked>, TokenRefused> {
        let mut last = TokenRefused::Fault(TokenFault::Malformed);
        let mut is_unsure = false;
        if token.len() > ACCESS_TOKEN_BYTES_MAX {
            return Err(TokenFault::TooLong.into());
        }
        for (at, known_issuer) in known.issuers.iter().enumerate() {
            if !known_issuer.is_asked_about(token) {
                continue;
            }
            let KnownIssuer { config, issuer, .. } = known_issuer;
            let _flight = self.cache.flight(&hash).lock_owned().await;
            let now_ms = unix_ms();
            if let Some(checked) = self.cache.find(&hash, now_ms) {
                return Ok(checked);
            }
            if self.cache.is_refused(&hash, now_ms) {
                return Err(TokenFault::Inactive.into());
            }
            let Ok(answer) = issuer.introspect(token).await else {
                is_unsure = true;
                continue;
            };
            let now_ms = unix_ms();
            let times = (config.rules.skew_secs, now_ms);
            match Claims::of_answer(
                answer,
                &config.rules.issuer,
                config.audience_of_client,
                times,
            ) {
                Ok(claims) => return self.enter(known, at, hash, &claims, now_ms),
                Err(fault) => last = fault.into(),
            }
        }
        if is_unsure {
            // The token may be of the one that did not answer, whatever the others say of it.
            return Err(TokenRefused::Unreachable);
        }
        if last.is_bad() {
            self.cache.refuse(
                hash,
                unix_ms().saturating_add(platform::millis(REFUSAL_VALID)),
            );
        }
        Err(last)
    }

    /// A participant that came with an access token, as it is known now.
    pub fn participant(&self, id: &ParticipantId) -> Option<Arc<Participant>> {
        self.people.find(id, unix_ms())
    }

    /// All of them and these others, by name, each once.
    #[must_use]
    pub fn beside(&self, mut others: Vec<Arc<Participant>>) -> Vec<Arc<Participant>> {
        others.extend(self.people.all(unix_ms()));
        others.sort_by(|one, other| one.id.cmp(&other.id));
        others.dedup_by(|one, other| one.id == other.id);
        others
    }

    /// Each issuer under its name.
    pub fn issuers(&self) -> Vec<(String, Arc<Issuer>)> {
        let known = self.known();
        known
            .issuers
            .iter()
            .map(|one| (one.config.name.clone(), Arc::clone(&one.issuer)))
            .collect()
    }

    /// The names of the issuers at which people sign in to the console.
    pub fn page_names(&self) -> Vec<String> {
        let known = self.known();
        let pages = known.issuers.iter().filter(|one| one.page.is_some());
        pages.map(|one| one.config.name.clone()).collect()
    }

    /// The issuer of this name, if people sign in to the console there.
    pub fn page(&self, name: &str) -> Option<Arc<PageIssuer>> {
        let known = self.known();
        let mut issuers = known.issuers.iter();
        issuers.find(|one| one.config.name == name)?.page.clone()
    }

    /// Number of unknown tokens that were refused since the start, for any reason.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Number of checked tokens that are kept.
    pub fn tokens_len(&self) -> usize {
        self.cache.len()
    }
}

/// The issuer of a configuration as a place at which people sign in: the one of before if it is the same.
fn page_of(config: &IssuerConfig, before: &Known) -> Option<Arc<PageIssuer>> {
    let spec = config.page_spec()?;
    let mut pages = before.issuers.iter().filter_map(|one| one.page.as_ref());
    if let Some(same) = pages.find(|page| page.spec == spec) {
        return Some(Arc::clone(same));
    }
    let issuer = spec.issuer.clone();
    match PageIssuer::new(spec, Dialer::new(ClientTls::of_machine())) {
        Ok(page) => Some(Arc::new(page)),
        Err(error) => {
            tracing::warn!(target: "portmoot::issuers", %issuer, %error, "no person can sign in at the issuer");
            None
        }
    }
}

/// A JWT of a known issuer. Nothing that it says is known to be true yet.
struct SignedToken<'t, 'k> {
    jwt: Jwt<'t>,
    /// The place of its issuer.
    at: usize,
    by: &'k KnownIssuer,
}

impl Known {
    /// Reads a JWT and finds its issuer. Nothing was asked of anyone before the issuer is known.
    fn read<'t>(&self, token: &'t str) -> Result<SignedToken<'t, '_>, TokenRefused> {
        let jwt = Jwt::read(token)?;
        let at = self.issuer_of(&jwt)?;
        let by = self.issuers.get(at).ok_or(TokenFault::Issuer)?;
        if matches!(by.config.source, TokenCheck::Introspection(..)) {
            return Err(TokenFault::NotOpaque.into());
        }
        jwt.check_head(&by.config.rules)?;
        Ok(SignedToken { jwt, at, by })
    }

    /// The place of the issuer that a token names.
    fn issuer_of(&self, jwt: &Jwt<'_>) -> Result<usize, TokenFault> {
        let mut issuers = self.issuers.iter();
        let at = issuers.position(|one| one.config.rules.issuer == jwt.issuer());
        at.ok_or(TokenFault::Issuer)
    }

    /// The audiences that a token of an issuer may have at the endpoint of a topic, or outside of
    /// topics.
    fn audiences(&self, issuer: &IssuerConfig, topic: Option<&str>) -> Vec<String> {
        let url = self.config.public_url.as_ref();
        let own = url.map(|url| url.at(&endpoint(topic.unwrap_or("main"))));
        own.into_iter()
            .chain(issuer.audiences.iter().cloned())
            .collect()
    }

    /// The topics at whose endpoints a token with these audiences is good.
    fn audience(&self, issuer: &IssuerConfig, audiences: &[String]) -> TokenAudience {
        if issuer.audiences.iter().any(|own| is_one_of(own, audiences)) {
            return TokenAudience::Every;
        }
        let Some(url) = &self.config.public_url else {
            return TokenAudience::Only(<_>::default());
        };
        let topics = self.config.topics.iter().map(|topic| &topic.name);
        let good = topics.filter(|topic| is_one_of(&url.at(&endpoint(topic.as_str())), audiences));
        TokenAudience::Only(good.cloned().collect())
    }

    fn check_audience(&self, checked: &Checked, topic: Option<&str>) -> Result<(), Refusal> {
        let by = self.issuers.get(checked.issuer);
        let by = by.ok_or_else(|| TokenFault::Issuer.refusal())?;
        let own = self.audiences(&by.config, topic);
        if checked.audiences.iter().any(|one| is_one_of(one, &own)) {
            return Ok(());
        }
        let fault = if checked.audiences.is_empty() {
            TokenFault::NoAudience
        } else {
            TokenFault::Foreign
        };
        Err(fault.refusal())
    }

    /// The configured participant of a subject, or the one that the issuer's rules make of it.
    fn participant(
        &self,
        issuer: &IssuerConfig,
        claims: &Claims,
    ) -> Result<Arc<Participant>, TokenRefused> {
        let mut participants = self.config.participants.iter();
        let configured = participants.find(|one| {
            one.subject.as_ref().is_some_and(|subject| {
                subject.issuer == issuer.name && subject.subject == claims.subject
            })
        });
        if let Some(one) = configured {
            return Ok(Arc::clone(&one.participant));
        }
        let made = issuer
            .participant_of(claims)
            .map_err(|why| TokenRefused::NoPlace(why.to_string()))?;
        let participants = self.config.participants.iter();
        let names = participants.map(|one| &one.participant.id);
        let mut names = names.chain(&self.config.servers);
        if names.any(|known| *known == made.id || known.looks_like(&made.id)) {
            return Err(TokenRefused::NoPlace(format!(
                "the name `{}` is taken",
                made.id
            )));
        }
        Ok(made)
    }
}

/// Whether an audience is one of these, which may be spelled in another way.
fn is_one_of(audience: &str, all: &[String]) -> bool {
    all.iter().any(|one| is_same_audience(one, audience))
}

#[cfg(test)]
mod tests;
