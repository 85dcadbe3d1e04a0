//! Bearers of access tokens: checked tokens by their SHA-256, and the participants that came with
//! them.
//!
//! A door calls [`Bearers::admit`] once for a token that it does not know; that may ask the issuer.
//! After that [`Bearers::identify`] finds it without waiting.

mod cache;
mod people;
mod refused;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use auth::jwt::{ACCESS_TOKEN_BYTES_MAX, Claims, Jwt, SubjectClaim, TokenFault, is_jwt};
use auth::{Bearer, Participant, Presented, PublicUrl, TOKEN_PREFIX, TokenAudience, TokenHash};
use model::{Narrowing, ParticipantId, Refusal, RefusalCode, Scopes, TopicName};
use oauth::dialer::Dialer;
use oauth::issuer::{Condition, Issuer, TokenCheck};
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
    issuers: Vec<(IssuerConfig, Arc<Issuer>)>,
    /// The scopes that tokens may have.
    scopes: Arc<Scopes>,
}

/// One step of a check, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Subject of the step.
    pub what: &'static str,
    /// The fault, if it has one.
    pub fault: Option<String>,
}

impl Bearers {
    /// Without issuers. `epoch` moves when tokens must be looked at again.
    pub fn new(epoch: Arc<AtomicU64>) -> Arc<Self> {
        let (known, cache, people, refused) = <_>::default();
        let attempts = Limiter::new(BAD_TOKENS_PER_MINUTE);
        Arc::new(Self {
            known,
            cache,
            people,
            attempts,
            refused,
            epoch,
        })
    }

    /// Takes over a configuration: issuers that did not change keep their keys, all checked tokens
    /// are forgotten, and the participants that came with them get what the configuration gives
    /// them now. Must be called inside a runtime.
    pub fn take_over(self: &Arc<Self>, config: &Arc<IdentityConfig>) {
        let before = Arc::clone(&self.known.read());
        let mut issuers = Vec::new();
        for one in &config.issuers {
            let same = before
                .issuers
                .iter()
                .find(|(_, issuer)| issuer.spec == one.spec());
            let issuer = match same {
                Some((_, issuer)) => Arc::clone(issuer),
                None => match Issuer::new(one.spec(), Dialer::new(ClientTls::of_machine())) {
                    Ok(issuer) => {
                        let me = Arc::downgrade(self);
                        let name = one.name.clone();
                        issuer.watch(move || {
                            if let Some(me) = me.upgrade() {
                                me.keys_changed(&name);
                            }
                        });
                        issuer
                    }
                    // The configuration was checked.
                    Err(error) => {
                        tracing::error!(issuer = %one.name, %error, "an issuer cannot be used");
                        continue;
                    }
                },
            };
            issuers.push((one.clone(), issuer));
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
            let (config, _) = known
                .issuers
                .iter()
                .find(|(config, _)| config.name == issuer)?;
            known.participant(config, claims).ok()
        });
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
        let (at, jwt) = known.read(token)?;
        let (config, issuer) = known.issuers.get(at).ok_or(TokenFault::Issuer)?;
        let keys = issuer.keys().ok_or(TokenRefused::Unreachable)?;
        jwt.check_signature(&keys)?;
        let claims = jwt.claims(&config.rules, now_ms)?;
        self.enter(known, (at, config), hash, &claims, now_ms)
    }

    /// Enters a token whose claims are true, if what it was checked with still holds: nothing that
    /// a reload or a change of keys has taken away comes back by a check that was under way.
    fn enter(
        &self,
        known: &Arc<Known>,
        (at, config): (usize, &IssuerConfig),
        hash: TokenHash,
        claims: &Claims,
        now_ms: u64,
    ) -> Result<Arc<Checked>, TokenRefused> {
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
        let audience = known.audience(config, &claims.audiences);
        let mut bearer = Participant::clone(&participant);
        let token = Some(hash.digest());
        bearer.bearer = Some(Arc::new(Bearer {
            token,
            narrowing,
            ends_ms,
            checked_until_ms: until_ms,
            audience,
        }));
        bearer.expires_ms = claims.expires_ms;
        let audiences = claims.audiences.clone();
        let named_by = claims.named_by;
        let participant = Arc::new(bearer);
        let checked = Arc::new(Checked {
            participant,
            named_by,
            audiences,
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
                if let (Some(from), true) = (from, refused.is_bad()) {
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
                let (at, _) = known.read(token)?;
                let (_, issuer) = known.issuers.get(at).ok_or(TokenFault::Issuer)?;
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
        let asked = |one: &&(usize, &(IssuerConfig, Arc<Issuer>))| {
            let (config, _) = one.1;
            matches!(config.source, TokenCheck::Introspection(..))
                && token.starts_with(config.token_prefix.as_str())
        };
        let mut last = TokenRefused::Fault(TokenFault::Malformed);
        let mut is_unsure = false;
        if token.len() > ACCESS_TOKEN_BYTES_MAX {
            return Err(TokenFault::TooLong.into());
        }
        for (at, (config, issuer)) in known
            .issuers
            .iter()
            .enumerate()
            .collect::<Vec<_>>()
            .iter()
            .filter(asked)
        {
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
                Ok(claims) => return self.enter(known, (*at, config), hash, &claims, now_ms),
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
            .map(|(config, issuer)| (config.name.clone(), Arc::clone(issuer)))
            .collect()
    }

    /// Number of unknown tokens that were refused since the start, for any reason.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Number of checked tokens that are kept.
    pub fn tokens_len(&self) -> usize {
        self.cache.len()
    }

    /// Checks a token in all steps, for people, as [`Bearers::admit`] would, and returns its bearer
    /// if all are good.
    pub async fn explain(
        &self,
        token: &str,
        topic: Option<&str>,
    ) -> (Vec<Step>, Option<Arc<Participant>>) {
        let known = self.known();
        let mut steps = Vec::new();
        let mut note = |what, fault: Option<String>| {
            let is_good = fault.is_none();
            steps.push(Step { what, fault });
            is_good
        };
        let text = |fault: TokenFault| Some(fault.to_string());
        let jwt = match Jwt::read(token) {
            Ok(jwt) => jwt,
            Err(_) if !is_jwt(token) => {
                let asked = self.ask(&known, token, TokenHash::of(token)).await;
                let found = asked.map_err(|refused| refused.refusal(token).message.into_owned());
                let what = match found.as_ref().map(|checked| checked.named_by) {
                    Ok(SubjectClaim::Username) => {
                        "its issuer says that it is active, and names its subject by `username`"
                    }
                    Ok(SubjectClaim::ClientId) => {
                        "its issuer says that it is active, and names its client alone"
                    }
                    Ok(SubjectClaim::Sub) | Err(_) => "its issuer says that it is active",
                };
                note(what, found.as_ref().err().cloned());
                let found = found.ok().filter(|checked| {
                    let fault = known.check_audience(checked, topic).err();
                    note(
                        "it is for this gateway",
                        fault.map(|refusal| refusal.to_string()),
                    )
                });
                return (steps, found.map(|checked| Arc::clone(&checked.participant)));
            }
            Err(fault) => {
                note("size, form and algorithm", text(fault));
                return (steps, None);
            }
        };
        note("size, form and algorithm", None);
        let of = known
            .issuers
            .iter()
            .position(|(config, _)| config.rules.issuer == jwt.issuer());
        let Some((config, issuer)) = of.and_then(|at| known.issuers.get(at)) else {
            note("its issuer is configured", text(TokenFault::Issuer));
            return (steps, None);
        };
        note("its issuer is configured", None);
        let fault = jwt.check_head(&config.rules).err();
        let fault = fault.map(|fault| match fault {
            TokenFault::Type => format!("{fault}{}", jwt.type_advice(&config.name, &config.rules)),
            fault => fault.to_string(),
        });
        if !note("algorithm and type are the issuer's", fault) {
            return (steps, None);
        }
        if issuer.keys().is_none() || jwt.check_signature_by(issuer) == Err(TokenFault::UnknownKey)
        {
            issuer.look_for_key(issuer.keys().as_ref()).await;
        }
        let Some(keys) = issuer.keys() else {
            let why = match issuer.condition() {
                Condition::Unreachable(why) | Condition::Stale(why) => why,
                Condition::Ready => "they were not fetched yet".to_owned(),
            };
            note("the issuer's keys are there", Some(why));
            return (steps, None);
        };
        note("the issuer's keys are there", None);
        if !note(
            "its signature",
            jwt.check_signature(&keys).err().and_then(text),
        ) {
            return (steps, None);
        }
        let claims = match jwt.claims(&config.rules, unix_ms()) {
            Ok(claims) => claims,
            Err(fault) => {
                note("times, subject", text(fault));
                return (steps, None);
            }
        };
        note("times, subject", None);
        let own = known.audiences(config, topic);
        let fault = claims.check_audience(own.iter().map(String::as_str)).err();
        let why = fault.map(|fault| format!("{fault}: {:?}, not {:?}", claims.audiences, own));
        if !note("it is for this gateway", why) {
            return (steps, None);
        }
        let at = of.unwrap_or_default();
        let entered = self.enter(
            &known,
            (at, config),
            TokenHash::of(token),
            &claims,
            unix_ms(),
        );
        match entered {
            Ok(checked) => {
                note("its subject has a place here", None);
                (steps, Some(Arc::clone(&checked.participant)))
            }
            Err(refused) => {
                note(
                    "its subject has a place here",
                    Some(refused.refusal(token).message.into_owned()),
                );
                (steps, None)
            }
        }
    }
}

/// The signature of a token by the keys that an issuer has now.
trait BySource {
    fn check_signature_by(&self, issuer: &Issuer) -> Result<(), TokenFault>;
}

impl BySource for Jwt<'_> {
    fn check_signature_by(&self, issuer: &Issuer) -> Result<(), TokenFault> {
        issuer.keys().map_or(Err(TokenFault::UnknownKey), |keys| {
            self.check_signature(&keys)
        })
    }
}

impl Known {
    /// Reads a JWT and finds its issuer. Nothing was asked of anyone before the issuer is known.
    fn read<'t>(&self, token: &'t str) -> Result<(usize, Jwt<'t>), TokenRefused> {
        let jwt = Jwt::read(token)?;
        let of_token =
            |(config, _): &(IssuerConfig, Arc<Issuer>)| config.rules.issuer == jwt.issuer();
        let at = self
            .issuers
            .iter()
            .position(of_token)
            .ok_or(TokenFault::Issuer)?;
        let (config, _) = self.issuers.get(at).ok_or(TokenFault::Issuer)?;
        if matches!(config.source, TokenCheck::Introspection(..)) {
            return Err(TokenFault::NotOpaque.into());
        }
        jwt.check_head(&config.rules)?;
        Ok((at, jwt))
    }

    /// The audiences that a token of an issuer may have at the endpoint of a topic, or outside of
    /// topics.
    fn audiences(&self, issuer: &IssuerConfig, topic: Option<&str>) -> Vec<String> {
        let own = |url: &PublicUrl| url.at(&endpoint(topic.unwrap_or("main")));
        self.config
            .public_url
            .iter()
            .map(own)
            .chain(issuer.audiences.iter().cloned())
            .collect()
    }

    /// The topics at whose endpoints a token with these audiences is good.
    fn audience(&self, issuer: &IssuerConfig, audiences: &[String]) -> TokenAudience {
        let has = |own: &str| {
            audiences
                .iter()
                .any(|one| auth::jwt::is_same_audience(one, own))
        };
        if issuer.audiences.iter().any(|own| has(own)) {
            return TokenAudience::Every;
        }
        let topics = self.config.topics.iter().map(|topic| &topic.name);
        let is_good = |topic: &&TopicName| {
            self.config
                .public_url
                .as_ref()
                .is_some_and(|url| has(&url.at(&endpoint(topic.as_str()))))
        };
        TokenAudience::Only(topics.filter(is_good).cloned().collect())
    }

    fn check_audience(&self, checked: &Checked, topic: Option<&str>) -> Result<(), Refusal> {
        let (config, _) = self
            .issuers
            .get(checked.issuer)
            .ok_or_else(|| TokenFault::Issuer.refusal())?;
        let own = self.audiences(config, topic);
        let is_own = |one: &String| own.iter().any(|own| auth::jwt::is_same_audience(one, own));
        if checked.audiences.iter().any(is_own) {
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
        let is_it = |one: &crate::issuers::IssuerSubject| {
            one.issuer == issuer.name && one.subject == claims.subject
        };
        let configured = self
            .config
            .participants
            .iter()
            .find(|one| one.subject.as_ref().is_some_and(is_it));
        if let Some(one) = configured {
            return Ok(Arc::clone(&one.participant));
        }
        let made = issuer
            .participant_of(claims)
            .map_err(|why| TokenRefused::NoPlace(why.to_string()))?;
        let names = self
            .config
            .participants
            .iter()
            .map(|one| &one.participant.id);
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

#[cfg(test)]
mod tests;
