//! Refusals of an account's requests by the server: discovery, renewal, or a person who has to sign
//! in.

use client::{AccountFault, Challenge};
use platform::unix_ms;
use store::audit::RecordedVerdict;

use super::book::{Phase, STEP_UPS_MAX};
use super::renewal::waits;
use super::{Account, union};
use crate::challenge::bearer;
use crate::config::AuthorizationKind;
use crate::site::fault_of;
use crate::trouble::Trouble;

/// Time that no new token is asked for after the server has rejected a new one, milliseconds.
const REJECTED_WAIT_MS: u64 = 60_000;

impl Account {
    /// Follows a refusal: discovers, renews, or finds that a person has to sign in.
    pub(super) async fn follow(
        &self,
        attempt: usize,
        challenge: Challenge,
    ) -> Result<(), AccountFault> {
        if self.site.is_replaced() {
            return Err(AccountFault::Replaced);
        }
        if self.site.config.kind == AuthorizationKind::Key {
            return Err(self.key_refused(challenge.status));
        }
        let asked = bearer(&challenge.challenge);
        if challenge.status == 403 {
            return self.step_up(&asked.scopes);
        }
        let before = self.issuer_before(&asked.scopes);
        let found = match self.site.discover(asked.resource_metadata.as_deref()).await {
            Ok(found) => found,
            Err(trouble) => return Err(self.not_found(&trouble, before.is_some())),
        };
        if let Some(before) = before {
            if before != found.server.issuer {
                self.leave_issuer(&found.server.issuer).await;
            } else if attempt == 0 && self.book.lock().can_renew(self.site.is_machine()) {
                return self.renew(false).await;
            } else if !self.site.is_machine() {
                return Err(self.block(AccountFault::LoginNeeded));
            }
        }
        if self.site.is_machine() {
            return if attempt == 0 {
                self.renew(false).await
            } else {
                Err(self.rejected())
            };
        }
        if !self.site.has_client(&found.server) {
            return Err(self.block(AccountFault::ClientNeeded(found.server.host())));
        }
        Err(self.block(AccountFault::LoginNeeded))
    }

    /// Takes that the server refuses the caller's key.
    fn key_refused(&self, status: u16) -> AccountFault {
        // Another key may do more. One that the server knows and that may not do this is not asked
        // for again.
        if status == 403 {
            AccountFault::KeyRefused
        } else {
            self.block(AccountFault::KeyRefused)
        }
    }

    /// The issuer of the tokens that it has. Without any, notes the scopes that the next ones need.
    fn issuer_before(&self, needed: &[String]) -> Option<String> {
        let mut book = self.book.lock();
        if !needed.is_empty() && book.held().is_none() {
            book.wanted = needed.to_vec();
        }
        book.held().map(|held| held.issuer.clone())
    }

    /// Takes that the authorization server of the server is not found.
    fn not_found(&self, trouble: &Trouble, has_tokens: bool) -> AccountFault {
        // What a server says about itself for a while ends no sign-in.
        if !trouble.is_transient() && !has_tokens {
            return self.block(fault_of(trouble, 0));
        }
        let mut book = self.book.lock();
        let fault = waits(&mut book, trouble, unix_ms());
        self.publish(&mut book);
        drop(book);
        tracing::warn!(server = self.site.name, %trouble, "the authorization server is not found");
        fault
    }

    /// Forgets what it has of one authorization server, as the server has another one: neither
    /// tokens nor registrations are of use there.
    async fn leave_issuer(&self, issuer: &str) {
        let what = format!(
            "forgot {}: the server has another authorization server",
            self.whose()
        );
        self.site.record(None, RecordedVerdict::Admitted, &what);
        tracing::warn!(
            server = self.site.name,
            issuer,
            "another authorization server"
        );
        self.forget(Phase::Open);
        let place = self.place();
        if let Err(error) = self.site.services.vault.end(&place).await {
            tracing::error!(server = self.site.name, %error, "an ended sign-in is still on disk");
        }
    }

    /// Takes that the server rejects a token that was issued to a machine just now: the next one is
    /// asked for later.
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
        let union = union(
            &book
                .held()
                .map(|held| held.scopes.clone())
                .unwrap_or_default(),
            scopes,
        );
        let named = if scopes.is_empty() {
            union.join(" ")
        } else {
            scopes.join(" ")
        };
        let sign_ins = book.sign_ins(&union, unix_ms());
        if self.site.is_machine() || sign_ins >= STEP_UPS_MAX {
            return Err(AccountFault::ScopesRefused(named, sign_ins.max(1)));
        }
        book.wanted = union;
        Err(AccountFault::ScopesNeeded(named))
    }
}
