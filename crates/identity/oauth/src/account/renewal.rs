//! Renewal of an account's tokens, what a failure leads to, and what is taken over from an earlier
//! configuration of the server.

use std::sync::Arc;
use std::time::Duration;

use client::AccountFault;
use platform::unix_ms;
use store::audit::RecordedVerdict;

use super::book::{Book, Phase};
use super::{Account, ExchangedToken, authorization_server, saved};
use crate::config::AuthorizationKind;
use crate::registration::Use;
use crate::site::fault_of;
use crate::token::{self, IssuedTokens};
use crate::token_uses::{NotUsable, TokenUse};
use crate::trouble::Trouble;
use crate::vault::Saved;

/// Uses by others that are waited for, one after the other, before the renewal is put off.
const USES_MAX: usize = 3;

/// The beginning of a use of a refresh token.
enum UseBegan {
    /// A use of a token that no other process has.
    Alone,
    /// A use for which the other processes that have the token wait.
    AmongOthers(Box<dyn TokenUse>),
    /// No use: another process has used the token, and its tokens are taken over.
    Over,
}

impl Account {
    /// Asks for new tokens: by the refresh token, or as the machine that it is. `may_wait` leaves a
    /// token that still serves in use when the authorization server cannot be reached.
    pub(super) async fn renew(&self, may_wait: bool) -> Result<(), AccountFault> {
        if self.site.is_replaced() {
            return Err(AccountFault::Replaced);
        }
        if self.adopt() && self.ready().is_some() {
            return Ok(());
        }
        let mut token_use = None;
        let renewed = if self.site.is_machine() {
            self.machine().await
        } else {
            match self.begin_use().await {
                Ok(UseBegan::Alone) => self.refresh().await,
                Ok(UseBegan::AmongOthers(began)) => {
                    let refreshed = self.refresh_within(began.time_left()).await;
                    token_use = Some(began);
                    refreshed
                }
                Ok(UseBegan::Over) => return Ok(()),
                Err(trouble) => Err(trouble),
            }
        };
        match renewed {
            Ok(saved) => {
                if !self.site.is_machine() {
                    let place = self.place();
                    // The tokens before are of no use any more, so these are used in any case.
                    if let Err(error) = self.site.services.vault.keep(&place, &saved).await {
                        tracing::error!(server = self.site.name, %error, "renewed tokens are not kept: a restart loses the sign-in");
                    } else if let Some(token_use) = token_use {
                        token_use.end();
                    }
                }
                let mut book = self.book.lock();
                let scopes_changed = book.install(saved);
                self.publish(&mut book);
                drop(book);
                self.site.record(
                    None,
                    RecordedVerdict::Admitted,
                    &format!("renewed {}", self.whose()),
                );
                if scopes_changed {
                    self.site.changed(self.participant.as_deref());
                }
                Ok(())
            }
            Err(trouble) => self.failed(&trouble, may_wait),
        }
    }

    /// Waits until an earlier configuration of the server has its answer, if it asks for tokens,
    /// and takes over what it has kept then.
    /// `was_kept` says that this account was kept before: if it is not any more, it has ended.
    pub(super) async fn succeed(self: Arc<Self>, was_kept: bool) {
        let _flight = Arc::clone(&self.flight).lock_owned().await;
        let has_ended = || was_kept && self.kept().is_none();
        if self.adopt()
            || (has_ended()
                && self
                    .forget(Phase::Blocked(AccountFault::LoginNeeded))
                    .is_some())
        {
            self.site.changed(self.participant.as_deref());
        }
    }

    /// Takes over what an earlier configuration of the server has kept since this account was read:
    /// the tokens before it are of no use any more.
    fn adopt(&self) -> bool {
        let Some(kept) = self.kept() else {
            return false;
        };
        let mut book = self.book.lock();
        let is_new =
            |held: &Saved| held.at_ms <= kept.at_ms && held.tokens.access != kept.tokens.access;
        if !book.held().is_none_or(is_new) {
            return false;
        }
        self.replace(&mut book, kept);
        true
    }

    fn kept(&self) -> Option<Saved> {
        let kept = self
            .site
            .services
            .vault
            .account(&self.place(), self.site.config.private_key.as_ref());
        kept.filter(|kept| self.site.takes(kept))
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
        self.site.record(
            None,
            RecordedVerdict::Refused,
            &format!("refused to renew {}: {trouble}", self.whose()),
        );
    }

    /// Waits until this process may use the refresh token.
    async fn begin_use(&self) -> Result<UseBegan, Trouble> {
        let Some(uses) = self.site.services.token_uses.get() else {
            return Ok(UseBegan::Alone);
        };
        let account = self.place().digest();
        for _ in 0..USES_MAX {
            match uses.begin(&account).await {
                Ok(began) => return Ok(UseBegan::AmongOthers(began)),
                Err(NotUsable::Used) if self.adopt() && self.ready().is_some() => {
                    return Ok(UseBegan::Over);
                }
                Err(NotUsable::Used) => {}
                Err(NotUsable::Elsewhere) => break,
            }
        }
        Err(Trouble::Elsewhere)
    }

    async fn refresh_within(&self, time: Duration) -> Result<Saved, Trouble> {
        if time.is_zero() {
            return Err(Trouble::Elsewhere);
        }
        let refreshed = tokio::time::timeout(time, self.refresh()).await;
        refreshed.unwrap_or(Err(Trouble::Elsewhere))
    }

    async fn refresh(&self) -> Result<Saved, Trouble> {
        let nothing = || Trouble::Metadata("there is no refresh token".to_owned());
        let held = self.book.lock().held().cloned().ok_or_else(nothing)?;
        let refresh = held.tokens.refresh.clone().ok_or_else(nothing)?;
        let server = authorization_server(&held);
        let resource = held.resource.clone();
        let grant = token::TokenGrant::Refresh(&refresh);
        let asked = token::request(
            self.site.way(),
            &server,
            &held.client,
            &grant,
            resource.as_deref(),
        )
        .await;
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
        Ok(Saved {
            scopes,
            tokens: IssuedTokens { refresh, ..tokens },
            at_ms: unix_ms(),
            ..held
        })
    }

    /// Tokens for the gateway itself, or for the caller's token.
    async fn machine(&self) -> Result<Saved, Trouble> {
        let found = match self.site.found() {
            Some(found) => found,
            None => self.site.discover(None).await?,
        };
        let server = &found.server;
        let config = &self.site.config;
        let client = self.site.client(server, Use::Native, None).await?;
        let scopes = self.scopes(&found);
        let grant = match (config.kind, &self.subject) {
            (AuthorizationKind::Exchange, Some(ExchangedToken { token: subject, .. })) => {
                token::TokenGrant::Exchange {
                    subject,
                    scopes: &scopes,
                    audience: config.audience.as_deref(),
                }
            }
            (AuthorizationKind::Exchange, None) => {
                return Err(Trouble::Metadata(
                    "the caller has no token that could be exchanged".to_owned(),
                ));
            }
            (
                AuthorizationKind::ClientCredentials
                | AuthorizationKind::OAuth
                | AuthorizationKind::Key
                | AuthorizationKind::Headers
                | AuthorizationKind::None,
                _,
            ) => token::TokenGrant::ClientCredentials { scopes: &scopes },
        };
        let resource = self.site.resource(Some(&found));
        let tokens = token::request(
            self.site.way(),
            server,
            &client,
            &grant,
            resource.as_deref(),
        )
        .await?;
        Ok(saved(&found, client, Use::Native, resource, scopes, tokens))
    }
}

/// Attempts nothing for a while, and returns why.
pub(super) fn waits(book: &mut Book, trouble: &Trouble, now_ms: u64) -> AccountFault {
    let wait_ms = book.back_off();
    let (fault, wait_ms) = match fault_of(trouble, wait_ms) {
        AccountFault::Waiting {
            why,
            retry_after_ms,
        } => (
            AccountFault::Waiting {
                why,
                retry_after_ms,
            },
            retry_after_ms,
        ),
        AccountFault::MetadataRefused(why) => (AccountFault::MetadataRefused(why), wait_ms),
        AccountFault::Refused(why) if trouble.is_refusal() => (AccountFault::Refused(why), wait_ms),
        // Anything else is an answer that means nothing here.
        AccountFault::LoginNeeded
        | AccountFault::LoginLost
        | AccountFault::KeyNeeded
        | AccountFault::KeyRefused
        | AccountFault::ScopesNeeded(_)
        | AccountFault::ScopesRefused(..)
        | AccountFault::ClientNeeded(_)
        | AccountFault::Refused(_)
        | AccountFault::Replaced
        | AccountFault::NotKept(_) => (
            AccountFault::Waiting {
                why: trouble.to_string(),
                retry_after_ms: wait_ms,
            },
            wait_ms,
        ),
    };
    book.wait(fault.clone(), now_ms.saturating_add(wait_ms));
    fault
}
