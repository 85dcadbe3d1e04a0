//! Account: the tokens of one participant, or of all, at one server; when they are renewed, and
//! what a refusal leads to.
//!
//! Everything that talks to the authorization server runs in a task of its own that no caller can
//! cancel, one at a time for each account (the *flight*): a refresh token that is used twice at
//! once costs the whole sign-in where it rotates.

mod book;
mod refusal;
mod renewal;
pub mod session;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use client::{AccountFault, Authorization, Authorize, Authorizing, Challenge, LinkError};
use platform::{Mutex, unix_ms};
use store::audit::RecordedVerdict;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use zeroize::Zeroizing;

use crate::config::{AccountOwner as Whose, AuthorizationKind};
use crate::discovery::Discovery;
use crate::metadata::AuthorizationServer;
use crate::registration::Use;
use crate::secret::Secret;
use crate::site::Site;
use crate::token::{self, IssuedTokens, TOKEN_BYTES_MAX};
use crate::trouble::Trouble;
use crate::vault::{AccountPlace, Saved};

pub use book::{AccountState, STEP_UP_MEMORY_MS, STEP_UPS_MAX};
use book::{Book, Next, Phase};

/// A key of a caller at a server: printable ASCII, so that it can be sent in a header, without
/// blanks around it.
#[derive(Clone)]
pub struct CallerKey(Secret);

/// A text is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key has 1 to {TOKEN_BYTES_MAX} printable ASCII characters")]
pub struct CallerKeyError;

impl CallerKey {
    /// Checks a key; blanks and line ends around it do not count.
    ///
    /// # Errors
    /// [`CallerKeyError`].
    pub fn new(text: &str) -> Result<Self, CallerKeyError> {
        let text = text.trim();
        let is_good = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        if (1..=TOKEN_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_good) {
            Ok(Self(Secret::new(text.to_owned())))
        } else {
            Err(CallerKeyError)
        }
    }
}

/// Held while an account asks for tokens.
pub type Flight = Arc<AsyncMutex<()>>;

/// The access token of a caller that is exchanged for tokens of one account, and of no other.
pub(crate) struct ExchangedToken {
    token: Secret,
    /// When it ends, Unix milliseconds.
    ends_ms: u64,
    /// When its bearer came with it last, among those of the server.
    turn: AtomicU64,
}

/// The tokens of one participant at one server.
pub struct Account {
    me: Weak<Account>,
    /// The server.
    pub site: Arc<Site>,
    /// The participant; `None` is the account that all callers share.
    pub participant: Option<String>,
    /// Caller's token for which its tokens are issued, where callers' tokens are exchanged.
    subject: Option<ExchangedToken>,
    /// Moves with every change of the header. It begins with 1: the stamp 0 is that of no header.
    stamp: AtomicU64,
    /// Until when the header may be sent without asking; 0 if it may not.
    fresh_until_ms: AtomicU64,
    /// Moves when the tokens are another sign-in's than before, or none any more.
    sign_ins: AtomicU64,
    book: Mutex<Book>,
    flight: Flight,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let server = &self.site.name;
        let who = &self.participant;
        f.debug_struct("Account")
            .field("server", server)
            .field("participant", who)
            .finish_non_exhaustive()
    }
}

impl Account {
    /// An account with what is kept of it. `flight` is that of the same account in an earlier
    /// configuration, if it asks for tokens now: this one asks for none before, and takes over what
    /// comes of it. Must be called inside a runtime then.
    #[must_use]
    pub fn new(
        site: &Arc<Site>,
        participant: Option<String>,
        saved: Option<Saved>,
        flight: Option<Flight>,
    ) -> Arc<Self> {
        let is_callers = site.config.account == Whose::Caller;
        let phase = match site.config.kind {
            _ if saved.is_some() => Phase::Ready,
            AuthorizationKind::Key => Phase::Blocked(AccountFault::KeyNeeded),
            // Without an account of its own a caller has no session, not even one without a token.
            AuthorizationKind::OAuth if is_callers => Phase::Blocked(AccountFault::LoginNeeded),
            // A shared account may need no token; one of a machine asks for its token once it is
            // needed.
            _ => Phase::Open,
        };
        let was_kept = saved.is_some();
        let is_waiting = flight.is_some();
        let account = Self::with(site, participant, None, Book::new(phase, saved), flight);
        if is_waiting {
            tokio::spawn(Arc::clone(&account).succeed(was_kept));
        }
        account
    }

    /// The account of a participant for an access token, which ends then (Unix milliseconds).
    #[must_use]
    pub fn of_token(site: &Arc<Site>, participant: &str, token: Secret, ends_ms: u64) -> Arc<Self> {
        let subject = ExchangedToken {
            token,
            ends_ms,
            turn: AtomicU64::new(0),
        };
        Self::with(
            site,
            Some(participant.to_owned()),
            Some(subject),
            Book::new(Phase::Open, None),
            None,
        )
    }

    fn with(
        site: &Arc<Site>,
        participant: Option<String>,
        subject: Option<ExchangedToken>,
        book: Book,
        flight: Option<Flight>,
    ) -> Arc<Self> {
        let account = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            site: Arc::clone(site),
            participant,
            subject,
            stamp: AtomicU64::new(1),
            fresh_until_ms: AtomicU64::new(0),
            sign_ins: AtomicU64::new(0),
            book: Mutex::new(book),
            flight: flight.unwrap_or_default(),
        });
        account.publish(&mut account.book.lock());
        account
    }

    /// Notes that its bearer came with the token that it is for, at this turn.
    pub fn came(&self, turn: u64) {
        if let Some(subject) = &self.subject {
            subject.turn.fetch_max(turn, Ordering::Relaxed);
        }
    }

    /// When its bearer came last; `None` of an account that is for no token.
    #[must_use]
    pub fn last_turn(&self) -> Option<u64> {
        self.subject
            .as_ref()
            .map(|subject| subject.turn.load(Ordering::Relaxed))
    }

    /// Whether the token that it is for has ended.
    #[must_use]
    pub fn has_ended(&self, now_ms: u64) -> bool {
        self.subject
            .as_ref()
            .is_some_and(|subject| subject.ends_ms <= now_ms)
    }

    /// Ends it with the token that it is for: its sessions end too.
    pub fn end(&self) {
        let _tokens = self.forget(Phase::Blocked(AccountFault::Replaced));
        self.sign_ins.fetch_add(1, Ordering::AcqRel);
    }

    /// Its flight, if it asks for tokens now.
    #[must_use]
    pub fn flight(&self) -> Option<Flight> {
        if self.flight.try_lock().is_ok() {
            return None;
        }
        Some(Arc::clone(&self.flight))
    }

    /// Why no request can succeed until a person acts.
    #[must_use]
    pub fn blocked(&self) -> Option<AccountFault> {
        match &self.book.lock().phase {
            Phase::Blocked(fault) if fault.is_lasting() => Some(fault.clone()),
            Phase::Blocked(_) | Phase::Open | Phase::Ready => None,
        }
    }

    /// State of the account as an operator sees it.
    #[must_use]
    pub fn state(&self) -> AccountState {
        let is_busy = self.flight.try_lock().is_err();
        self.book.lock().state(is_busy, unix_ms())
    }

    /// Whether it has tokens that are of use.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.book.lock().phase, Phase::Ready)
    }

    /// Whether it has no tokens at all, not even ones that are of no use any more.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.book.lock().held().is_none()
    }

    /// Place of its record.
    #[must_use]
    pub fn place(&self) -> AccountPlace {
        self.site.place(self.participant.as_deref())
    }

    /// The scopes to ask for in the next sign-in, as far as challenges have named them.
    #[must_use]
    pub fn wanted(&self) -> Vec<String> {
        self.book.lock().wanted.clone()
    }

    /// Takes over the tokens of a sign-in, once they are kept. `asked` are the scopes of the
    /// authorization request.
    ///
    /// # Errors
    /// [`AccountFault::NotKept`], [`AccountFault::Replaced`]; then the account is as before.
    pub async fn sign_in(
        &self,
        saved: Saved,
        asked: &[String],
        by: &str,
    ) -> Result<(), AccountFault> {
        let _flight = Arc::clone(&self.flight).lock_owned().await;
        if self.site.is_replaced() {
            return Err(AccountFault::Replaced);
        }
        let place = self.place();
        let kept = self.site.services.vault.keep(&place, &saved).await;
        kept.map_err(|error| AccountFault::NotKept(error.to_string()))?;
        let mut book = self.book.lock();
        book.signed_in(asked, unix_ms());
        self.replace(&mut book, saved);
        drop(book);
        self.site.record(
            Some(by),
            RecordedVerdict::Admitted,
            &format!("signed in {}", self.whose()),
        );
        self.site.services.connects.completed(&place);
        self.site.changed(self.participant.as_deref());
        Ok(())
    }

    /// Takes over a key of its participant, once it is kept.
    ///
    /// # Errors
    /// As [`Account::sign_in`].
    pub async fn enter_key(&self, key: CallerKey, by: &str) -> Result<(), AccountFault> {
        self.sign_in(Saved::of_key(key.0), &[], by).await
    }

    /// Ends the account: forgets its tokens, and has the authorization server revoke them. The
    /// tokens are forgotten whatever that server says.
    ///
    /// # Errors
    /// [`AccountFault::NotKept`] if the end cannot be kept, [`AccountFault::Replaced`]; then
    /// nothing has changed.
    pub async fn sign_out(&self, by: &str) -> Result<Option<Trouble>, AccountFault> {
        let _flight = Arc::clone(&self.flight).lock_owned().await;
        if self.site.is_replaced() {
            return Err(AccountFault::Replaced);
        }
        let place = self.place();
        let ended = self.site.services.vault.end(&place).await;
        ended.map_err(|error| AccountFault::NotKept(error.to_string()))?;
        let is_key = self.site.config.kind == AuthorizationKind::Key;
        let next = if is_key {
            AccountFault::KeyNeeded
        } else {
            AccountFault::LoginNeeded
        };
        let held = self.forget(Phase::Blocked(next));
        self.site.record(
            Some(by),
            RecordedVerdict::Admitted,
            &format!("signed out {}", self.whose()),
        );
        self.site.changed(self.participant.as_deref());
        let Some(held) = held else {
            return Ok(None);
        };
        // No authorization server knows a key.
        if is_key {
            return Ok(None);
        }
        let way = self.site.way();
        let server = authorization_server(&held);
        // With a refresh token its access tokens end too, at most servers (RFC 7009, 2.1).
        let revoked = match &held.tokens.refresh {
            Some(refresh) => {
                token::revoke(way, &server, &held.client, refresh, "refresh_token").await
            }
            None => {
                let access = &held.tokens.access;
                token::revoke(way, &server, &held.client, access, "access_token").await
            }
        };
        Ok(revoked.err())
    }

    fn whose(&self) -> String {
        match &self.participant {
            Some(participant) => format!("{participant} at {}", self.site.name),
            None => format!("all callers at {}", self.site.name),
        }
    }

    /// Makes what the book says visible to the path of calls. The book is locked meanwhile, so that
    /// what is visible is always one state of it.
    fn publish(&self, book: &mut Book) {
        self.stamp.fetch_add(1, Ordering::AcqRel);
        self.fresh_until_ms
            .store(book.fresh_until_ms(), Ordering::Release);
    }

    /// Takes over the tokens of another sign-in, by which another person may stand behind them.
    fn replace(&self, book: &mut Book, saved: Saved) {
        self.sign_ins
            .fetch_add(u64::from(book.held().is_some()), Ordering::AcqRel);
        book.install(saved);
        self.publish(book);
    }

    /// Forgets the tokens.
    fn forget(&self, phase: Phase) -> Option<Saved> {
        let mut book = self.book.lock();
        let held = book.forget(phase);
        self.sign_ins
            .fetch_add(u64::from(held.is_some()), Ordering::AcqRel);
        self.publish(&mut book);
        held
    }

    /// Header or fault for a request now; `None` if the token has to be renewed before.
    fn ready(&self) -> Option<Result<Authorization, AccountFault>> {
        let book = self.book.lock();
        // Read under the lock, so that it is the header's.
        let stamp = self.stamp.load(Ordering::Acquire);
        match book.next(unix_ms(), self.site.is_machine()) {
            Next::Send(header) => Some(Ok(Authorization { stamp, header })),
            Next::Fault(fault) => Some(Err(fault)),
            Next::Renew => None,
        }
    }

    async fn granted(&self) -> Result<Authorization, AccountFault> {
        if let Some(ready) = self.ready() {
            return ready;
        }
        let flight = Arc::clone(&self.flight).lock_owned().await;
        // Another request may have renewed it meanwhile.
        if let Some(ready) = self.ready() {
            return ready;
        }
        self.in_flight(flight, |account| async move { account.renew(true).await })
            .await?;
        match self.ready() {
            Some(ready) => ready,
            None => Err(AccountFault::Waiting {
                why: "the token expired at once".to_owned(),
                retry_after_ms: 1_000,
            }),
        }
    }

    /// Runs a step in a task of its own: its caller may go away, the step may not.
    async fn in_flight<F, S>(
        &self,
        flight: OwnedMutexGuard<()>,
        step: F,
    ) -> Result<(), AccountFault>
    where
        F: FnOnce(Arc<Account>) -> S + Send + 'static,
        S: Future<Output = Result<(), AccountFault>> + Send + 'static,
    {
        if let Some(me) = self.me.upgrade() {
            let task = tokio::spawn(async move {
                let _flight = flight;
                step(me).await
            });
            if let Ok(outcome) = task.await {
                return outcome;
            }
        }
        Err(AccountFault::Waiting {
            why: "the gateway stops".to_owned(),
            retry_after_ms: 1_000,
        })
    }

    /// The scopes of the next request for tokens: configured, else those of the last challenge,
    /// else those that the server's metadata names, else none. Where a refresh token takes a scope,
    /// that one too.
    #[must_use]
    pub fn scopes(&self, found: &Discovery) -> Vec<String> {
        self.scopes_with(found, self.wanted())
    }

    /// Scopes to ask for where the server named these.
    #[must_use]
    pub fn scopes_with(&self, found: &Discovery, wanted: Vec<String>) -> Vec<String> {
        let mut scopes = union(&self.site.config.scopes, &wanted);
        if scopes.is_empty()
            && let Some(resource) = &found.resource
        {
            scopes = resource.scopes_supported.clone().unwrap_or_default();
        }
        // Without scopes the choice is the server's, and one scope would be all that it gives. A
        // machine has no refresh token.
        if scopes.is_empty() || self.site.is_machine() {
            return scopes;
        }
        let offline = "offline_access".to_owned();
        if found.server.scopes_supported.contains(&offline) && !scopes.contains(&offline) {
            scopes.push(offline);
        }
        scopes
    }
}

impl Authorize for Account {
    fn stamp(&self) -> u64 {
        let stamp = self.stamp.load(Ordering::Acquire);
        if unix_ms() < self.fresh_until_ms.load(Ordering::Acquire) {
            stamp
        } else {
            0
        }
    }

    fn grant(&self) -> Authorizing<'_, Authorization> {
        Box::pin(async { self.granted().await.map_err(LinkError::Account) })
    }

    fn at_hand(&self) -> Option<Authorization> {
        self.ready()?.ok()
    }

    fn key(&self) -> Result<Option<Zeroizing<String>>, AccountFault> {
        if self.site.config.kind != AuthorizationKind::Key {
            return Ok(None);
        }
        let book = self.book.lock();
        match &book.phase {
            Phase::Blocked(fault) => Err(fault.clone()),
            Phase::Open => Err(AccountFault::KeyNeeded),
            Phase::Ready => match book.held() {
                Some(held) => Ok(Some(Zeroizing::new(held.tokens.access.expose().to_owned()))),
                None => Err(AccountFault::KeyNeeded),
            },
        }
    }

    /// Never: an account outlives its sign-ins. [`session::SessionAccount`] is of one sign-in, and
    /// may be void.
    fn is_void(&self) -> bool {
        false
    }

    fn refused(&self, stamp: u64, attempt: usize, challenge: Challenge) -> Authorizing<'_, ()> {
        Box::pin(async move {
            let flight = Arc::clone(&self.flight).lock_owned().await;
            if self.stamp.load(Ordering::Acquire) != stamp && self.is_ready() {
                // It was sent with what has been replaced since.
                return Ok(());
            }
            if let Some(fault) = self.blocked() {
                return Err(LinkError::Account(fault));
            }
            if challenge.status == 401
                && let Some(fault) = self.book.lock().waiting(unix_ms())
            {
                // Others were refused before: the authorization server gets the time that it needs.
                return Err(LinkError::Account(fault));
            }
            let followed = self.in_flight(flight, move |account| async move {
                account.follow(attempt, challenge).await
            });
            followed.await.map_err(LinkError::Account)
        })
    }
}

/// All scopes of both, those of the first list first.
fn union(some: &[String], more: &[String]) -> Vec<String> {
    let mut all = some.to_vec();
    all.extend(more.iter().filter(|scope| !some.contains(scope)).cloned());
    all
}

/// As much of the authorization server as was kept with an account.
fn authorization_server(held: &Saved) -> AuthorizationServer {
    AuthorizationServer {
        token_endpoint: Some(held.token_endpoint.clone()),
        revocation_endpoint: held.revocation_endpoint.clone(),
        ..AuthorizationServer::bare(&held.issuer)
    }
}

/// An account as it is kept after tokens were issued.
#[must_use]
pub fn saved(
    found: &Discovery,
    client: token::OAuthClient,
    usage: Use,
    resource: Option<String>,
    asked: Vec<String>,
    tokens: IssuedTokens,
) -> Saved {
    Saved {
        issuer: found.server.issuer.clone(),
        client,
        usage,
        token_endpoint: found.server.token_endpoint.clone().unwrap_or_default(),
        revocation_endpoint: found.server.revocation_endpoint.clone(),
        resource,
        scopes: tokens.scopes.clone().unwrap_or(asked),
        tokens,
        at_ms: unix_ms(),
    }
}
