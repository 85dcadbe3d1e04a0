//! Book of an account: its phase, its tokens, its back-off, the scopes that challenges named. Time
//! is an argument.

use client::AccountFault;
use http::HeaderValue;
use zeroize::Zeroizing;

use crate::vault::Saved;

/// Sign-ins for one set of scopes that did not satisfy the server, before it is given up for a
/// while.
pub const STEP_UPS_MAX: usize = 3;
/// Time that such sign-ins are remembered, milliseconds.
pub const STEP_UP_MEMORY_MS: u64 = 3_600_000;
/// Sets of scopes that are remembered.
const STEP_UP_SETS_MAX: usize = 32;
/// Tokens are renewed this long before they expire, or a fifth of their lifetime, whichever is
/// shorter; milliseconds.
const EARLY_MS: u64 = 60_000;
/// The first wait after a transient failure, and the longest; milliseconds.
const WAIT_MS: u64 = 1_000;
const WAIT_MS_MAX: u64 = 300_000;

/// Phase of an account.
pub(super) enum Phase {
    /// The server has not asked for a token.
    Open,
    /// It has tokens.
    Ready,
    /// It has none that is of use, for this reason.
    Blocked(AccountFault),
}

/// Next step of a request.
pub(super) enum Next {
    Send(Option<HeaderValue>),
    Renew,
    Fault(AccountFault),
}

/// An account as operators see it: no token, no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountState {
    /// `open`, `wants_client`, `needs_login`, `ready`, `refreshing`, `waiting`.
    pub state: &'static str,
    /// Why, in a sentence.
    pub reason: Option<String>,
    /// Issuer of the tokens.
    pub issuer: Option<String>,
    /// The client to which they were issued.
    pub client_id: Option<String>,
    /// Their scopes.
    pub scopes: Vec<String>,
    /// The scopes that the server asked for beyond them.
    pub wanted: Vec<String>,
    /// When the access token expires, Unix milliseconds.
    pub expires_ms: Option<u64>,
    /// Whether it is renewed without a person.
    pub renews: bool,
    /// When the tokens were issued, Unix milliseconds.
    pub since_ms: Option<u64>,
}

pub(super) struct Book {
    pub(super) phase: Phase,
    held: Option<Saved>,
    header: Option<HeaderValue>,
    /// The scopes of the last challenge, joined with those that are granted.
    pub(super) wanted: Vec<String>,
    /// Sets of scopes with which a person signed in lately: the number of times, and the last one.
    sign_ins: Vec<(Vec<String>, usize, u64)>,
    failures: u32,
    /// No attempt to renew before, Unix milliseconds, and why.
    waits: Option<(u64, AccountFault)>,
}

impl Book {
    pub(super) fn new(phase: Phase, saved: Option<Saved>) -> Self {
        let header = saved.as_ref().and_then(header);
        Self {
            phase,
            held: saved,
            header,
            wanted: Vec::new(),
            sign_ins: Vec::new(),
            failures: 0,
            waits: None,
        }
    }

    pub(super) fn held(&self) -> Option<&Saved> {
        self.held.as_ref()
    }

    /// Takes over tokens; true when their scopes are others than before.
    pub(super) fn install(&mut self, saved: Saved) -> bool {
        let differs = self
            .held
            .as_ref()
            .is_none_or(|held| held.scopes != saved.scopes);
        self.header = header(&saved);
        (self.held, self.phase) = (Some(saved), Phase::Ready);
        (self.failures, self.waits) = (0, None);
        differs
    }

    /// Forgets the tokens.
    pub(super) fn forget(&mut self, phase: Phase) -> Option<Saved> {
        (self.header, self.waits, self.phase) = (None, None, phase);
        self.held.take()
    }

    /// Keeps the tokens for display alone.
    pub(super) fn block(&mut self, fault: AccountFault) {
        (self.header, self.phase) = (None, Phase::Blocked(fault));
        (self.failures, self.waits) = (0, None);
    }

    /// Why nothing is attempted now, after a failure.
    pub(super) fn waiting(&self, now_ms: u64) -> Option<AccountFault> {
        let (until, fault) = self.waits.as_ref().filter(|(until, _)| now_ms < *until)?;
        Some(match fault {
            AccountFault::Waiting { why, .. } => AccountFault::Waiting {
                why: why.clone(),
                retry_after_ms: until - now_ms,
            },
            fault => fault.clone(),
        })
    }

    pub(super) fn can_renew(&self, is_machine: bool) -> bool {
        is_machine
            || self
                .held
                .as_ref()
                .is_some_and(|held| held.tokens.refresh.is_some())
    }

    /// When the token is renewed, Unix milliseconds.
    fn renews_at(&self, held: &Saved) -> u64 {
        let Some(expires) = held.tokens.expires_ms else {
            return u64::MAX;
        };
        let early = EARLY_MS.min(held.tokens.lifetime_ms.unwrap_or(u64::MAX) / 5);
        expires.saturating_sub(early)
    }

    /// Until when the header may be sent without asking; 0 if it may not be sent.
    pub(super) fn fresh_until_ms(&self) -> u64 {
        match (&self.phase, &self.held) {
            (Phase::Open, _) => u64::MAX,
            (Phase::Blocked(_), _) | (Phase::Ready, None) => 0,
            (Phase::Ready, Some(held)) => {
                let renews_at = self.renews_at(held);
                let until = self
                    .waits
                    .as_ref()
                    .map_or(renews_at, |(until, _)| renews_at.max(*until));
                held.tokens
                    .expires_ms
                    .map_or(until, |expires| until.min(expires))
            }
        }
    }

    pub(super) fn next(&self, now_ms: u64, is_machine: bool) -> Next {
        let held = match (&self.phase, &self.held) {
            (Phase::Open, _) => return Next::Send(None),
            (Phase::Blocked(fault), _) => return Next::Fault(fault.clone()),
            (Phase::Ready, None) => return Next::Fault(AccountFault::LoginNeeded),
            (Phase::Ready, Some(held)) => held,
        };
        let send = || Next::Send(self.header.clone());
        if now_ms < self.renews_at(held) {
            return send();
        }
        let serves = self.serves(now_ms);
        match self.waiting(now_ms) {
            Some(_) if serves => send(),
            Some(fault) => Next::Fault(fault),
            None if self.can_renew(is_machine) => Next::Renew,
            None if serves => send(),
            None => Next::Fault(AccountFault::LoginLost),
        }
    }

    /// Whether the token has not expired.
    pub(super) fn serves(&self, now_ms: u64) -> bool {
        self.held.as_ref().is_some_and(|held| {
            held.tokens
                .expires_ms
                .is_none_or(|expires| now_ms < expires)
        })
    }

    /// Counts a failure, and returns the wait after it.
    pub(super) fn back_off(&mut self) -> u64 {
        let wait = WAIT_MS
            .saturating_mul(1 << self.failures.min(16))
            .min(WAIT_MS_MAX);
        self.failures = self.failures.saturating_add(1);
        wait
    }

    /// Attempts nothing before this time.
    pub(super) fn wait(&mut self, why: AccountFault, until_ms: u64) {
        self.waits = Some((until_ms, why));
    }

    /// Counts a sign-in for these scopes.
    pub(super) fn signed_in(&mut self, asked: &[String], now_ms: u64) {
        let set = sorted(asked);
        self.sign_ins
            .retain(|(_, _, at_ms)| now_ms.saturating_sub(*at_ms) < STEP_UP_MEMORY_MS);
        if let Some((_, count, at_ms)) =
            self.sign_ins.iter_mut().find(|(known, _, _)| *known == set)
        {
            (*count, *at_ms) = (*count + 1, now_ms);
        } else {
            self.sign_ins.truncate(STEP_UP_SETS_MAX - 1);
            self.sign_ins.push((set, 1, now_ms));
        }
        self.wanted.clear();
    }

    /// Number of times that a person has signed in for at least these scopes lately.
    pub(super) fn sign_ins(&self, scopes: &[String], now_ms: u64) -> usize {
        let lately = |at_ms: u64| now_ms.saturating_sub(at_ms) < STEP_UP_MEMORY_MS;
        let covers = |set: &[String]| scopes.iter().all(|scope| set.contains(scope));
        let counts = self
            .sign_ins
            .iter()
            .filter(|(set, _, at_ms)| lately(*at_ms) && covers(set));
        counts.map(|(_, count, _)| count).sum()
    }

    pub(super) fn state(&self, is_busy: bool, now_ms: u64) -> AccountState {
        // After a failure it waits until it succeeds.
        let waits = self
            .waits
            .as_ref()
            .filter(|(until, _)| self.failures > 0 || now_ms < *until);
        let (state, reason) = match (&self.phase, waits) {
            (Phase::Ready, _) if is_busy => ("refreshing", None),
            (Phase::Open | Phase::Ready, Some((_, why))) => ("waiting", Some(why.to_string())),
            (Phase::Open, None) => ("open", None),
            (Phase::Ready, None) => ("ready", None),
            (Phase::Blocked(fault), _) => {
                let state = if matches!(fault, AccountFault::ClientNeeded(_)) {
                    "wants_client"
                } else {
                    "needs_login"
                };
                (state, Some(fault.to_string()))
            }
        };
        let held = self.held.as_ref();
        let issued = held.filter(|held| !held.is_key());
        AccountState {
            state,
            reason,
            issuer: issued.map(|held| held.issuer.clone()),
            client_id: issued.map(|held| held.client.id.clone()),
            scopes: held.map(|held| held.scopes.clone()).unwrap_or_default(),
            wanted: self.wanted.clone(),
            expires_ms: held.and_then(|held| held.tokens.expires_ms),
            renews: held.is_some_and(|held| held.tokens.refresh.is_some()),
            since_ms: held.map(|held| held.at_ms),
        }
    }
}

/// The header that sends the token. The line is zeroed; the header lives as long as requests that
/// carry it.
fn header(saved: &Saved) -> Option<HeaderValue> {
    if saved.is_key() {
        // It is sent in a place of its own.
        return None;
    }
    let line = Zeroizing::new(format!("Bearer {}", saved.tokens.access.expose()));
    let mut header = HeaderValue::from_str(&line).ok()?;
    header.set_sensitive(true);
    Some(header)
}

fn sorted(scopes: &[String]) -> Vec<String> {
    let mut sorted = scopes.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}
