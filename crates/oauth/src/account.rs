//! Account: the tokens of one participant, or of all, at one server; when they are renewed, and what a refusal leads to.
//!
//! Everything that talks to the authorization server runs in a task of its own that no caller can cancel, one at a time for
//! each account (the *flight*): a refresh token that is used twice at once costs the whole sign-in where it rotates.

mod book;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use client::{AccountFault, Authorize, Authorizing, Challenge, Grant, LinkError};
use platform::{Mutex, unix_ms};
use store::audit::Verdict;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::challenge::bearer;
use crate::config::{Account as Whose, Kind};
use crate::discovery::Found;
use crate::metadata::AuthorizationServer;
use crate::registration::Use;
use crate::secret::Secret;
use crate::site::{Site, fault_of};
use crate::token::{self, Tokens};
use crate::trouble::Trouble;
use crate::vault::{Place, Saved};

pub use book::{AccountState, STEP_UP_MEMORY_MS, STEP_UPS_MAX};
use book::{Book, Next, Phase};

/// How long no new token is asked for after the server has rejected a new one, milliseconds.
const REJECTED_WAIT_MS: u64 = 60_000;

/// Held while an account asks for tokens.
pub type Flight = Arc<AsyncMutex<()>>;

/// The tokens of one participant at one server.
pub struct Account {
    me: Weak<Account>,
    /// The server.
    pub site: Arc<Site>,
    /// The participant; `None` is the account that all callers share.
    pub participant: Option<String>,
    /// Moves with every change of the header.
    stamp: AtomicU64,
    /// Until when the header may be sent without asking; 0 if it may not.
    fresh_until_ms: AtomicU64,
    book: Mutex<Book>,
    flight: Flight,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (server, who) = (&self.site.name, &self.participant);
        f.debug_struct("Account").field("server", server).field("participant", who).finish_non_exhaustive()
    }
}

impl Account {
    /// An account with what is kept of it. `flight` is that of the same account in an earlier configuration, if it asks for tokens now.
    #[must_use]
    pub fn new(
        site: &Arc<Site>,
        participant: Option<String>,
        saved: Option<Saved>,
        flight: Option<Flight>,
    ) -> Arc<Self> {
        let is_callers = site.config.account == Whose::Caller && site.config.kind == Kind::OAuth;
        let phase = match (&saved, is_callers) {
            (Some(_), _) => Phase::Ready,
            // Without an account of its own a caller has no session, not even one without a token.
            (None, true) => Phase::Blocked(AccountFault::LoginNeeded),
            (None, false) => Phase::Open,
        };
        let account = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            site: Arc::clone(site),
            participant,
            stamp: AtomicU64::new(1),
            fresh_until_ms: AtomicU64::new(0),
            book: Mutex::new(Book::new(phase, saved)),
            flight: flight.unwrap_or_default(),
        });
        account.publish(&mut account.book.lock());
        account
    }

    /// Its flight, if it asks for tokens now.
    #[must_use]
    pub fn flight(&self) -> Option<Flight> {
        self.flight.try_lock().is_err().then(|| Arc::clone(&self.flight))
    }

    /// Why no request can succeed until a person acts.
    #[must_use]
    pub fn blocked(&self) -> Option<AccountFault> {
        match &self.book.lock().phase {
            Phase::Blocked(fault) if fault.is_lasting() => Some(fault.clone()),
            Phase::Blocked(_) | Phase::Open | Phase::Ready => None,
        }
    }

    /// What an operator sees of it.
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

    /// Where it is kept.
    #[must_use]
    pub fn place(&self) -> Place {
        self.site.place(self.participant.as_deref())
    }

    /// The scopes to ask for in the next sign-in, as far as challenges have named them.
    #[must_use]
    pub fn wanted(&self) -> Vec<String> {
        self.book.lock().wanted.clone()
    }

    /// Takes over the tokens of a sign-in, once they are kept. `asked` are the scopes of the authorization request.
    ///
    /// # Errors
    /// [`AccountFault::NotKept`]; then the account is as before.
    pub async fn sign_in(&self, saved: Saved, asked: &[String], by: &str) -> Result<(), AccountFault> {
        let _flight = Arc::clone(&self.flight).lock_owned().await;
        if self.site.is_replaced() {
            return Err(AccountFault::NotKept("the server was configured anew: sign in again".to_owned()));
        }
        let place = self.place();
        let kept = self.site.services.vault.keep(&place, &saved).await;
        kept.map_err(|error| AccountFault::NotKept(error.to_string()))?;
        let mut book = self.book.lock();
        book.signed_in(asked, unix_ms());
        book.install(saved);
        self.publish(&mut book);
        drop(book);
        self.site.record(Some(by), Verdict::Admitted, &format!("signed in {}", self.whose()));
        self.site.services.connects.completed(&place);
        self.site.changed(self.participant.as_deref());
        Ok(())
    }

    /// Ends the account: forgets its tokens, and has the authorization server revoke them. The tokens are forgotten whatever that
    /// server says.
    ///
    /// # Errors
    /// [`AccountFault::NotKept`] if the end cannot be kept; then nothing has changed.
    pub async fn sign_out(&self, by: &str) -> Result<Option<Trouble>, AccountFault> {
        let _flight = Arc::clone(&self.flight).lock_owned().await;
        let place = self.place();
        let ended = self.site.services.vault.end(&place).await;
        ended.map_err(|error| AccountFault::NotKept(error.to_string()))?;
        let held = {
            let mut book = self.book.lock();
            let held = book.forget(Phase::Blocked(AccountFault::LoginNeeded));
            self.publish(&mut book);
            held
        };
        self.site.record(Some(by), Verdict::Admitted, &format!("signed out {}", self.whose()));
        self.site.changed(self.participant.as_deref());
        let Some(held) = held else { return Ok(None) };
        let server = authorization_server(&held);
        let refresh = held.tokens.refresh.as_ref().map(|token| (token, "refresh_token"));
        let (token, hint) = refresh.unwrap_or((&held.tokens.access, "access_token"));
        Ok(token::revoke(self.site.way(), &server, &held.client, token, hint).await.err())
    }

    fn whose(&self) -> String {
        match &self.participant {
            Some(participant) => format!("{participant} at {}", self.site.name),
            None => format!("all callers at {}", self.site.name),
        }
    }

    /// Makes what the book says visible to the path of calls.
    fn publish(&self, book: &mut Book) {
        self.stamp.fetch_add(1, Ordering::AcqRel);
        self.fresh_until_ms.store(book.fresh_until_ms(), Ordering::Release);
    }

    fn current(&self, header: Option<http::HeaderValue>) -> Grant {
        Grant { stamp: self.stamp.load(Ordering::Acquire), header }
    }

    /// What a request can do now.
    fn next(&self) -> Next {
        self.book.lock().next(unix_ms(), self.site.is_machine())
    }

    async fn granted(&self) -> Result<Grant, AccountFault> {
        match self.next() {
            Next::Send(header) => return Ok(self.current(header)),
            Next::Fault(fault) => return Err(fault),
            Next::Renew => {}
        }
        let flight = Arc::clone(&self.flight).lock_owned().await;
        // Another request may have renewed it meanwhile.
        match self.next() {
            Next::Send(header) => return Ok(self.current(header)),
            Next::Fault(fault) => return Err(fault),
            Next::Renew => self.in_flight(flight, |account| async move { account.renew(true).await }).await?,
        }
        match self.next() {
            Next::Send(header) => Ok(self.current(header)),
            Next::Fault(fault) => Err(fault),
            Next::Renew => Err(AccountFault::Waiting {
                why: "the token expired at once".to_owned(),
                retry_after_ms: 1_000,
            }),
        }
    }

    /// Runs a step in a task of its own: its caller may go away, the step may not.
    async fn in_flight<F, S>(&self, flight: OwnedMutexGuard<()>, step: F) -> Result<(), AccountFault>
    where
        F: FnOnce(Arc<Account>) -> S + Send + 'static,
        S: Future<Output = Result<(), AccountFault>> + Send + 'static,
    {
        let gone = || AccountFault::Waiting { why: "the gateway stops".to_owned(), retry_after_ms: 1_000 };
        let me = self.me.upgrade().ok_or_else(gone)?;
        let task = tokio::spawn(async move {
            let _flight = flight;
            step(me).await
        });
        task.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Asks for new tokens: by the refresh token, or as the machine that it is. `may_wait` leaves a token that still serves in use
    /// when the authorization server cannot be reached.
    async fn renew(&self, may_wait: bool) -> Result<(), AccountFault> {
        if self.site.is_replaced() {
            let why = "the server was configured anew".to_owned();
            return Err(AccountFault::Waiting { why, retry_after_ms: 1_000 });
        }
        if self.has_kept_tokens() {
            return Ok(());
        }
        let renewed = if self.site.is_machine() { self.machine().await } else { self.refresh().await };
        match renewed {
            Ok(saved) => {
                if !self.site.is_machine() {
                    let place = self.place();
                    // The tokens before are of no use any more, so these are used in any case.
                    if let Err(error) = self.site.services.vault.keep(&place, &saved).await {
                        tracing::error!(server = self.site.name, %error, "renewed tokens are not kept: a restart loses the sign-in");
                    }
                }
                let mut book = self.book.lock();
                let scopes_changed = book.install(saved);
                self.publish(&mut book);
                drop(book);
                self.site.record(None, Verdict::Admitted, &format!("renewed {}", self.whose()));
                if scopes_changed {
                    self.site.changed(self.participant.as_deref());
                }
                Ok(())
            }
            Err(trouble) => self.failed(&trouble, may_wait),
        }
    }

    /// Takes over what an earlier configuration of the server has kept since this account was read, if it can be used: the tokens
    /// before it have been exchanged.
    fn has_kept_tokens(&self) -> bool {
        let key = self.site.config.private_key.as_ref();
        let Some(kept) = self.site.services.vault.account(&self.place(), key) else { return false };
        let mut book = self.book.lock();
        if !book.held().is_some_and(|held| held.issuer == kept.issuer && held.at_ms < kept.at_ms) {
            return false;
        }
        book.install(kept);
        self.publish(&mut book);
        matches!(book.next(unix_ms(), self.site.is_machine()), Next::Send(_))
    }

    /// Takes that tokens could not be renewed. Nothing that may pass by itself ends a sign-in.
    fn failed(&self, trouble: &Trouble, may_wait: bool) -> Result<(), AccountFault> {
        let mut book = self.book.lock();
        let now_ms = unix_ms();
        // A refused person signs in again; a refused machine can only ask again, later.
        if !trouble.is_refusal() || self.site.is_machine() {
            let fault = waits(&mut book, trouble, now_ms);
            let serves = may_wait && book.serves(now_ms);
            self.publish(&mut book);
            drop(book);
            tracing::warn!(server = self.site.name, %trouble, "tokens are not renewed yet");
            if trouble.is_refusal() {
                self.record_refusal(trouble);
            }
            return if serves { Ok(()) } else { Err(fault) };
        }
        let fault = AccountFault::LoginLost;
        book.block(fault.clone());
        self.publish(&mut book);
        drop(book);
        tracing::warn!(server = self.site.name, account = self.whose(), %trouble, "the authorization server refuses new tokens");
        self.record_refusal(trouble);
        self.site.changed(self.participant.as_deref());
        Err(fault)
    }

    fn record_refusal(&self, trouble: &Trouble) {
        self.site.record(None, Verdict::Refused, &format!("refused to renew {}: {trouble}", self.whose()));
    }

    async fn refresh(&self) -> Result<Saved, Trouble> {
        let nothing = || Trouble::Metadata("there is no refresh token".to_owned());
        let held = self.book.lock().held().cloned().ok_or_else(nothing)?;
        let refresh = held.tokens.refresh.clone().ok_or_else(nothing)?;
        let (server, resource) = (authorization_server(&held), held.resource.clone());
        let grant = token::Grant::Refresh(&refresh);
        let asked = token::request(self.site.way(), &server, &held.client, &grant, resource.as_deref()).await;
        let tokens = match asked {
            Ok(tokens) => tokens,
            Err(trouble) => {
                if trouble.is_error("invalid_client") {
                    self.site.forget_client(&held.issuer, held.usage).await;
                }
                return Err(trouble);
            }
        };
        let scopes = tokens.scopes.clone().unwrap_or_else(|| held.scopes.clone());
        // A server that returns none leaves the one before in force.
        let refresh = tokens.refresh.clone().or(Some(refresh));
        Ok(Saved { scopes, tokens: Tokens { refresh, ..tokens }, at_ms: unix_ms(), ..held })
    }

    /// Tokens for the gateway itself, or for the caller's token.
    async fn machine(&self) -> Result<Saved, Trouble> {
        let found = match self.site.found() {
            Some(found) => found,
            None => self.site.discover(None).await?,
        };
        let (server, config) = (&found.server, &self.site.config);
        let client = self.site.client(server, Use::Native).await?;
        let scopes = self.scopes(&found);
        let subject = self.book.lock().subject.clone();
        let grant = match (config.kind, &subject) {
            (Kind::Exchange, Some(subject)) => {
                token::Grant::Exchange { subject, scopes: &scopes, audience: config.audience.as_deref() }
            }
            (Kind::Exchange, None) => {
                return Err(Trouble::Metadata("the caller has no token that could be exchanged".to_owned()));
            }
            (Kind::ClientCredentials | Kind::OAuth | Kind::Headers | Kind::None, _) => {
                token::Grant::ClientCredentials { scopes: &scopes }
            }
        };
        let resource = self.site.resource(Some(&found));
        let tokens = token::request(self.site.way(), server, &client, &grant, resource.as_deref()).await?;
        Ok(saved(&found, client, Use::Native, resource, scopes, tokens))
    }

    /// The scopes of the next request for tokens: configured, else those of the last challenge, else those that the server's
    /// metadata names, else none. Where a refresh token takes a scope, that one too.
    #[must_use]
    pub fn scopes(&self, found: &Found) -> Vec<String> {
        self.scopes_with(found, self.wanted())
    }

    /// The same where the server named these scopes.
    #[must_use]
    pub fn scopes_with(&self, found: &Found, wanted: Vec<String>) -> Vec<String> {
        let named = || found.resource.as_ref()?.scopes_supported.clone();
        let mut scopes = match (self.site.config.scopes.is_empty(), wanted.is_empty()) {
            (false, true) => self.site.config.scopes.clone(),
            (false, false) => union(&self.site.config.scopes, &wanted),
            (true, false) => wanted,
            (true, true) => named().unwrap_or_default(),
        };
        let offline = "offline_access";
        let lists = found.server.scopes_supported.iter().any(|scope| scope == offline);
        if lists
            && !scopes.is_empty()
            && !self.site.is_machine()
            && !scopes.iter().any(|scope| scope == offline)
        {
            scopes.push(offline.to_owned());
        }
        scopes
    }

    /// Follows a refusal: discovers, renews, or finds that a person has to sign in.
    async fn follow(&self, attempt: usize, challenge: Challenge) -> Result<(), AccountFault> {
        let asked = bearer(&challenge.challenge);
        if challenge.status == 403 {
            return self.step_up(&asked.scopes);
        }
        let before = {
            let mut book = self.book.lock();
            if !asked.scopes.is_empty() && book.held().is_none() {
                book.wanted = asked.scopes.clone();
            }
            book.held().map(|held| held.issuer.clone())
        };
        let found = match self.site.discover(asked.resource_metadata.as_deref()).await {
            Ok(found) => found,
            // What a server says about itself for a while ends no sign-in.
            Err(trouble) if trouble.is_transient() || before.is_some() => {
                let mut book = self.book.lock();
                let fault = waits(&mut book, &trouble, unix_ms());
                self.publish(&mut book);
                drop(book);
                tracing::warn!(server = self.site.name, %trouble, "the authorization server is not found");
                return Err(fault);
            }
            Err(trouble) => return Err(self.block(fault_of(&trouble, 0))),
        };
        if let Some(before) = before {
            if before != found.server.issuer {
                // Neither tokens nor registrations of one authorization server are of use at another one.
                let what = format!("forgot {}: the server has another authorization server", self.whose());
                self.site.record(None, Verdict::Admitted, &what);
                tracing::warn!(
                    server = self.site.name,
                    issuer = found.server.issuer,
                    "another authorization server"
                );
                self.book.lock().forget(Phase::Open);
                let place = self.place();
                if let Err(error) = self.site.services.vault.end(&place).await {
                    tracing::error!(server = self.site.name, %error, "an ended sign-in is still on disk");
                }
            } else if attempt == 0 && self.book.lock().can_renew(self.site.is_machine()) {
                return self.renew(false).await;
            } else if !self.site.is_machine() {
                return Err(self.block(AccountFault::LoginNeeded));
            }
        }
        if self.site.is_machine() {
            return if attempt == 0 { self.renew(false).await } else { Err(self.rejected()) };
        }
        if !self.site.has_client(&found.server) {
            return Err(self.block(AccountFault::ClientNeeded(found.server.host())));
        }
        Err(self.block(AccountFault::LoginNeeded))
    }

    /// Takes that the server rejects a token that was issued to a machine just now: the next one is asked for later.
    fn rejected(&self) -> AccountFault {
        let fault = AccountFault::Refused("the server does not accept the issued token".to_owned());
        let mut book = self.book.lock();
        book.wait(fault.clone(), unix_ms().saturating_add(REJECTED_WAIT_MS));
        self.publish(&mut book);
        fault
    }

    fn block(&self, fault: AccountFault) -> AccountFault {
        let mut book = self.book.lock();
        book.block(fault.clone());
        self.publish(&mut book);
        drop(book);
        self.site.changed(self.participant.as_deref());
        fault
    }

    /// Notes the scopes that a request needs beyond those that were granted.
    fn step_up(&self, scopes: &[String]) -> Result<(), AccountFault> {
        let mut book = self.book.lock();
        let union = union(&book.held().map(|held| held.scopes.clone()).unwrap_or_default(), scopes);
        let named = if scopes.is_empty() { union.join(" ") } else { scopes.join(" ") };
        let sign_ins = book.sign_ins(&union, unix_ms());
        if self.site.is_machine() || sign_ins >= STEP_UPS_MAX {
            return Err(AccountFault::ScopesRefused(named, sign_ins.max(1)));
        }
        book.wanted = union;
        Err(AccountFault::ScopesNeeded(named))
    }

    /// Takes the token of the caller, which may be exchanged for one of the server.
    pub fn set_subject(&self, subject: Secret) {
        let mut book = self.book.lock();
        if book.subject.as_ref() != Some(&subject) {
            book.subject = Some(subject);
            book.expire();
            self.publish(&mut book);
        }
    }
}

impl Authorize for Account {
    fn stamp(&self) -> u64 {
        let stamp = self.stamp.load(Ordering::Acquire);
        if unix_ms() < self.fresh_until_ms.load(Ordering::Acquire) { stamp } else { 0 }
    }

    fn grant(&self) -> Authorizing<'_, Grant> {
        Box::pin(async { self.granted().await.map_err(LinkError::Account) })
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
            let followed = self
                .in_flight(flight, move |account| async move { account.follow(attempt, challenge).await });
            followed.await.map_err(LinkError::Account)
        })
    }
}

/// Attempts nothing for a while, and returns why.
fn waits(book: &mut Book, trouble: &Trouble, now_ms: u64) -> AccountFault {
    let wait_ms = book.back_off();
    let (fault, wait_ms) = match fault_of(trouble, wait_ms) {
        AccountFault::Waiting { why, retry_after_ms } => {
            (AccountFault::Waiting { why, retry_after_ms }, retry_after_ms)
        }
        AccountFault::MetadataRefused(why) => (AccountFault::MetadataRefused(why), wait_ms),
        AccountFault::Refused(why) if trouble.is_refusal() => (AccountFault::Refused(why), wait_ms),
        // Anything else is an answer that means nothing here.
        AccountFault::LoginNeeded
        | AccountFault::LoginLost
        | AccountFault::ScopesNeeded(_)
        | AccountFault::ScopesRefused(..)
        | AccountFault::ClientNeeded(_)
        | AccountFault::Refused(_)
        | AccountFault::NotKept(_) => {
            (AccountFault::Waiting { why: trouble.to_string(), retry_after_ms: wait_ms }, wait_ms)
        }
    };
    book.wait(fault.clone(), now_ms.saturating_add(wait_ms));
    fault
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
    found: &Found,
    client: token::Client,
    usage: Use,
    resource: Option<String>,
    asked: Vec<String>,
    tokens: Tokens,
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
