//! Issuers whose access tokens the gateway accepts: their keys, kept fresh, and their answers about
//! opaque tokens.
//!
//! - [`Issuer`]: one issuer. [`Issuer::keys`] never waits; [`Issuer::look_for_key`] and
//!   [`Issuer::introspect`] ask it.
//! - [`Issuer::watch`]: fetches its keys at the start and again before they are old.

mod error;
mod fetched;
mod introspect;
mod metadata;

pub use error::IssuerError;
pub use fetched::{KEYS_FRESH, KEYS_FRESH_MAX, KEYS_FRESH_MIN};
pub use introspect::Credentials;
pub use metadata::well_known_urls;

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use auth::jwt::KeySet;
use platform::Mutex;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use url::Url;

use crate::dialer::{AllowedAddresses, DialError, Dialer, FETCH_LIMIT, Subnet};
use crate::retries::{RETRY, RETRY_FIRST, Retries};
use fetched::{Freshness, fetch_keys};
use metadata::Metadata;

/// Time that keys are used after the last successful fetch.
pub const KEYS_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Longest time for a fetch, with the discovery of where the keys are.
pub const KEYS_LIMIT: Duration = FETCH_LIMIT;
/// Time until the fetch after one that failed. It doubles with each that fails, up to
/// [`KEYS_RETRY`].
pub const KEYS_RETRY_FIRST: Duration = RETRY_FIRST;
/// Longest time between two fetches while the issuer cannot be reached.
pub const KEYS_RETRY: Duration = RETRY;
/// Shortest time between two fetches because of tokens with an unknown key.
pub const UNKNOWN_KEY_PAUSE: Duration = Duration::from_secs(30);
/// Time that the issuer may take to answer about an opaque token.
pub const INTROSPECTION_LIMIT: Duration = Duration::from_secs(3);

/// Way in which an issuer's tokens are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenCheck {
    /// They are JWTs. The address of the keys; `None` discovers it.
    Keys(Option<String>),
    /// The issuer is asked about each: at this address, or a discovered one.
    Introspection(Option<String>, Credentials),
}

/// An issuer as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerSpec {
    /// Its identifier, a URL.
    pub issuer: String,
    /// Way in which its tokens are checked.
    pub source: TokenCheck,
    /// Addresses that its names may resolve to although they are not public.
    pub allowed: Vec<Subnet>,
}

/// The condition of an issuer, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// It was not needed yet, or answered the last time.
    Ready,
    /// It could not be asked the last time; keys from before are used.
    Stale(String),
    /// It could not be asked the last time, and there are no keys.
    Unreachable(String),
}

impl Condition {
    /// The word for it.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Stale(_) => "stale",
            Self::Unreachable(_) => "unreachable",
        }
    }

    /// Why it is not ready.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Ready => None,
            Self::Stale(why) | Self::Unreachable(why) => Some(why),
        }
    }
}

/// An issuer, and what is known of it.
pub struct Issuer {
    /// As it is configured.
    pub spec: IssuerSpec,
    dialer: Dialer,
    reach: AllowedAddresses,
    state: Mutex<State>,
    /// The task that fetches holds it; the others find the result.
    flight: tokio::sync::Mutex<()>,
    /// Wakes the task that keeps the keys fresh: a fetch has failed, and the next is due sooner.
    wake: Arc<Notify>,
    /// Called when its keys are other ones.
    changed: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct State {
    metadata: Option<Arc<Metadata>>,
    keys: Option<Held>,
    /// Counts fetches, so that one that waited knows whether another has fetched meanwhile.
    fetches: u64,
    looked_for_key: Option<Instant>,
    retries: Retries,
    failure: Option<String>,
    asked: IssuerQuestions,
}

/// Number of questions to an issuer since the start, by purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IssuerQuestions {
    /// For its keys.
    pub keys: Count,
    /// About opaque tokens.
    pub tokens: Count,
}

/// Requests to an issuer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// All of them.
    pub all: u64,
    /// Questions without an answer that could be used.
    pub failed: u64,
}

impl Count {
    fn count(&mut self, is_good: bool) {
        self.all += 1;
        self.failed += u64::from(!is_good);
    }
}

impl State {
    /// Whether the keys may be fetched now because of a token.
    fn may_look(&self) -> bool {
        if self.keys.is_none() {
            return self.retries.left().is_zero();
        }
        self.looked_for_key
            .is_none_or(|last| last.elapsed() >= UNKNOWN_KEY_PAUSE)
    }
}

#[derive(Clone)]
struct Held {
    keys: Arc<KeySet>,
    since: Instant,
    freshness: Freshness,
}

impl Issuer {
    /// An issuer of which nothing is known yet.
    ///
    /// # Errors
    /// Its identifier is no URL that may be fetched.
    pub fn new(spec: IssuerSpec, dialer: Dialer) -> Result<Arc<Self>, DialError> {
        let reach = AllowedAddresses::of(&crate::dialer::parse_url(&spec.issuer)?, &spec.allowed);
        let (state, flight, wake, changed) = <_>::default();
        Ok(Arc::new(Self {
            spec,
            dialer,
            reach,
            state,
            flight,
            wake,
            changed,
        }))
    }

    /// Its keys, if there are any that are not too old.
    pub fn keys(&self) -> Option<Arc<KeySet>> {
        let state = self.state.lock();
        let held = state
            .keys
            .as_ref()
            .filter(|held| held.since.elapsed() < KEYS_KEPT)?;
        Some(Arc::clone(&held.keys))
    }

    /// Its condition.
    pub fn condition(&self) -> Condition {
        let failure = self.state.lock().failure.clone();
        match (failure, self.keys()) {
            (None, _) => Condition::Ready,
            (Some(why), Some(_)) => Condition::Stale(why),
            (Some(why), None) => Condition::Unreachable(why),
        }
    }

    /// Number of questions to the issuer.
    pub fn asked(&self) -> IssuerQuestions {
        self.state.lock().asked
    }

    /// Whether its keys may be other ones than those that are known, because it could not be asked
    /// for them the last time.
    pub fn is_stale(&self) -> bool {
        self.state.lock().failure.is_some()
    }

    /// Fetches the keys because a token has one that is not among them, or because there are none:
    /// one fetch for all that wait, and not more often than [`UNKNOWN_KEY_PAUSE`] allows (while
    /// there are none, the time between retries). Returns whether the keys are other ones now than
    /// `seen`.
    pub async fn look_for_key(&self, seen: Option<&Arc<KeySet>>) -> bool {
        let fetches = self.state.lock().fetches;
        let _flight = self.flight.lock().await;
        let may = {
            let mut state = self.state.lock();
            let may = state.fetches == fetches && state.may_look();
            if may && state.keys.is_some() {
                state.looked_for_key = Some(Instant::now());
            }
            may
        };
        if may {
            self.fetch().await;
        }
        match (self.keys(), seen) {
            (Some(now), Some(seen)) => now != *seen,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    /// Fetches the keys now. A failure is kept for [`Issuer::condition`]; keys from before stay.
    async fn fetch(&self) {
        let before = self.state.lock().keys.clone();
        let fetched = timeout(KEYS_LIMIT, self.fetch_keys(before.as_ref())).await;
        let fetched = fetched.unwrap_or_else(|_| Err(DialError::TimedOut(self.host()).into()));
        let mut state = self.state.lock();
        state.fetches += 1;
        state.retries.note(fetched.is_ok());
        state.asked.keys.count(fetched.is_ok());
        match fetched {
            Ok(held) => {
                if state.failure.take().is_some() {
                    tracing::info!(target: "portmoot::issuers", issuer = %self.spec.issuer, "the issuer answers again");
                }
                let is_other = state
                    .keys
                    .as_ref()
                    .is_some_and(|before| before.keys != held.keys);
                state.keys = Some(held);
                drop(state);
                if let Some(changed) = self.changed.get().filter(|_| is_other) {
                    changed();
                }
            }
            Err(error) => {
                let why = error.to_string();
                if state.failure.as_ref() != Some(&why) {
                    tracing::warn!(target: "portmoot::issuers", issuer = %self.spec.issuer, %why, "the issuer's keys cannot be fetched");
                }
                // It may have moved its keys.
                state.metadata = None;
                state.failure = Some(why);
                drop(state);
                self.wake.notify_one();
            }
        }
    }

    async fn fetch_keys(&self, before: Option<&Held>) -> Result<Held, IssuerError> {
        let TokenCheck::Keys(url) = &self.spec.source else {
            return Err(IssuerError::Answer(
                self.spec.issuer.clone(),
                "its tokens are no JWTs".into(),
            ));
        };
        let url = match url {
            Some(url) => url.clone(),
            None => self.metadata().await?.jwks_url()?.to_owned(),
        };
        let tag = before.and_then(|held| held.freshness.tag.as_ref());
        let (keys, freshness) = fetch_keys(&self.dialer, &self.reach, &url, tag).await?;
        let keys = match (keys, before) {
            (Some(keys), Some(held)) if *held.keys == keys => Arc::clone(&held.keys),
            (Some(keys), _) => Arc::new(keys),
            (None, Some(held)) => Arc::clone(&held.keys),
            (None, None) => return Err(IssuerError::Status(url, 304)),
        };
        Ok(Held {
            keys,
            since: Instant::now(),
            freshness,
        })
    }

    /// Metadata that the issuer publishes about itself, fetched once.
    async fn metadata(&self) -> Result<Arc<Metadata>, IssuerError> {
        if let Some(known) = self.state.lock().metadata.clone() {
            return Ok(known);
        }
        let found =
            Arc::new(Metadata::discover(&self.dialer, &self.reach, &self.spec.issuer).await?);
        self.state.lock().metadata = Some(Arc::clone(&found));
        Ok(found)
    }

    /// Asks the issuer about an opaque token (RFC 7662). Returns the members of its answer.
    ///
    /// # Errors
    /// It could not be asked within [`INTROSPECTION_LIMIT`].
    pub async fn introspect(&self, token: &str) -> Result<Map<String, Value>, IssuerError> {
        let asked = timeout(INTROSPECTION_LIMIT, self.ask_about(token)).await;
        let asked = asked.unwrap_or_else(|_| Err(DialError::TimedOut(self.host()).into()));
        let mut state = self.state.lock();
        state.asked.tokens.count(asked.is_ok());
        match &asked {
            Ok(_) => state.failure = None,
            Err(error) => {
                let why = error.to_string();
                if state.failure.as_ref() != Some(&why) {
                    tracing::warn!(target: "portmoot::issuers", issuer = %self.spec.issuer, %why, "the issuer cannot be asked about tokens");
                }
                state.metadata = None;
                state.failure = Some(why);
            }
        }
        asked
    }

    async fn ask_about(&self, token: &str) -> Result<Map<String, Value>, IssuerError> {
        let TokenCheck::Introspection(url, credentials) = &self.spec.source else {
            return Err(IssuerError::Answer(
                self.spec.issuer.clone(),
                "its tokens are JWTs".into(),
            ));
        };
        let url = match url {
            Some(url) => url.clone(),
            None => self.metadata().await?.introspection_url()?.to_owned(),
        };
        introspect::ask(&self.dialer, &self.reach, &url, credentials, token).await
    }

    fn host(&self) -> String {
        Url::parse(&self.spec.issuer)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// Keeps the keys fresh for as long as the issuer is in use, and calls `changed` each time when
    /// they are other ones. Must be called once, inside a runtime.
    pub fn watch(self: &Arc<Self>, changed: impl Fn() + Send + Sync + 'static) {
        if matches!(self.spec.source, TokenCheck::Keys(_))
            && self.changed.set(Box::new(changed)).is_ok()
        {
            tokio::spawn(watch(Arc::downgrade(self)));
        }
    }

    /// Time until the keys are fetched again.
    fn due(&self) -> Duration {
        let state = self.state.lock();
        match (&state.failure, &state.keys) {
            (None, Some(held)) => held.freshness.fresh.saturating_sub(held.since.elapsed()),
            (Some(_), _) | (None, None) => state.retries.left(),
        }
    }
}

async fn watch(issuer: Weak<Issuer>) {
    loop {
        let Some(known) = issuer.upgrade() else {
            return;
        };
        if known.due().is_zero() {
            let _flight = known.flight.lock().await;
            // Another may have fetched them meanwhile.
            if known.due().is_zero() {
                known.fetch().await;
            }
        }
        let wait = known
            .due()
            .clamp(Duration::from_millis(100), KEYS_FRESH_MAX);
        let wake = Arc::clone(&known.wake);
        drop(known);
        // Not longer than a retry: another may have found new keys, or the issuer is not in use any
        // more.
        let _ = timeout(wait.min(KEYS_RETRY), wake.notified()).await;
    }
}

#[cfg(test)]
mod tests;
