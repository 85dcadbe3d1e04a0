//! Account as one session uses it: with the tokens of one sign-in alone, renewed or not. A session
//! in which a server has seen one person must not go on as another.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use client::{AccountFault, Authorization, Authorize, Authorizing, Challenge, LinkError};
use zeroize::Zeroizing;

use super::Account;

/// The account of a session.
#[derive(Debug)]
pub struct SessionAccount {
    account: Arc<Account>,
    /// The count of sign-ins when the session began.
    sign_in: u64,
}

impl SessionAccount {
    /// The account as it is now.
    #[must_use]
    pub fn new(account: Arc<Account>) -> Self {
        Self {
            sign_in: account.sign_ins.load(Ordering::Acquire),
            account,
        }
    }
}

impl Authorize for SessionAccount {
    fn stamp(&self) -> u64 {
        if self.is_void() {
            0
        } else {
            self.account.stamp()
        }
    }

    fn grant(&self) -> Authorizing<'_, Authorization> {
        Box::pin(async {
            let grant = self.account.grant().await?;
            // Looked at afterwards: the count moves before there are other tokens.
            if self.is_void() {
                Err(LinkError::Account(AccountFault::Replaced))
            } else {
                Ok(grant)
            }
        })
    }

    fn at_hand(&self) -> Option<Authorization> {
        self.account.at_hand().filter(|_| !self.is_void())
    }

    fn key(&self) -> Result<Option<Zeroizing<String>>, AccountFault> {
        let key = self.account.key()?;
        // Looked at afterwards, as for a token.
        if self.is_void() {
            Err(AccountFault::Replaced)
        } else {
            Ok(key)
        }
    }

    fn is_void(&self) -> bool {
        self.account.sign_ins.load(Ordering::Acquire) != self.sign_in
    }

    fn refused(&self, stamp: u64, attempt: usize, challenge: Challenge) -> Authorizing<'_, ()> {
        Box::pin(async move {
            if self.is_void() {
                return Err(LinkError::Account(AccountFault::Replaced));
            }
            self.account.refused(stamp, attempt, challenge).await
        })
    }
}
