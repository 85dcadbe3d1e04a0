//! Authorization of the requests to a server: the header of the moment, and what follows when the
//! server refuses it.
//!
//! The link asks; another crate answers. On the path of a call a link compares one number
//! ([`Authorize::stamp`]) with the one under which it got its header: while both are equal, nothing
//! is locked, allocated or awaited.

use std::{fmt, pin::Pin, sync::Arc};

use http::{HeaderMap, HeaderValue, StatusCode, header::WWW_AUTHENTICATE};
use model::{Digest, ParticipantId};
use tokio::sync::watch;
use zeroize::Zeroizing;

use crate::account::AccountFault;
use crate::error::LinkError;

/// An answer about authorization that is on its way.
pub type Authorizing<'a, T> = Pin<Box<dyn Future<Output = Result<T, LinkError>> + Send + 'a>>;

/// Authorizes the requests of one account at one server.
pub trait Authorize: Send + Sync + fmt::Debug {
    /// Changes with every header. 0 while the last one must not be sent any more: then
    /// [`Authorize::grant`] has to be asked.
    fn stamp(&self) -> u64;

    /// The header for the next requests; waits for a new token where one is needed.
    fn grant(&self) -> Authorizing<'_, Authorization>;

    /// The header for the next requests if it needs no request to the authorization server; `None`
    /// otherwise.
    fn at_hand(&self) -> Option<Authorization>;

    /// The caller's own key, which the session sends in a place of its own from its beginning;
    /// `None` where the account is no key.
    ///
    /// # Errors
    /// Why there is none.
    fn key(&self) -> Result<Option<Zeroizing<String>>, AccountFault> {
        Ok(None)
    }

    /// Whether the sign-in that it stands for has ended or was replaced by another one. It stays
    /// so, and gives no header any more.
    fn is_void(&self) -> bool;

    /// The server refused a request that had the header with this stamp, and did not run it.
    /// `attempt` counts the refusals of the same request, from 0. `Ok` has the request sent again
    /// with what [`Authorize::grant`] returns then.
    fn refused(&self, stamp: u64, attempt: usize, challenge: Challenge) -> Authorizing<'_, ()>;
}

/// The authorization of requests at one moment.
#[derive(Clone)]
pub struct Authorization {
    /// Its stamp, not 0.
    pub stamp: u64,
    /// The value of `Authorization`; `None` sends none but a configured one.
    pub header: Option<HeaderValue>,
}

/// A refusal of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// 401, or 403 with a challenge.
    pub status: u16,
    /// All lines of `WWW-Authenticate`, joined by commas; empty without one.
    pub challenge: String,
}

/// The longest challenge that is read, bytes.
const CHALLENGE_BYTES_MAX: usize = 8 * 1024;

impl Challenge {
    /// The challenge in a response: any 401, and a 403 that says `insufficient_scope`.
    pub(crate) fn of(status: StatusCode, headers: &HeaderMap) -> Option<Self> {
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return None;
        }
        let lines = headers
            .get_all(WWW_AUTHENTICATE)
            .iter()
            .filter_map(|line| line.to_str().ok());
        let challenge = lines.collect::<Vec<_>>().join(", ");
        let is_read = challenge.len() <= CHALLENGE_BYTES_MAX;
        let challenge = if is_read { challenge } else { String::new() };
        (status == StatusCode::UNAUTHORIZED || challenge.contains("insufficient_scope")).then(
            || Self {
                status: status.as_u16(),
                challenge,
            },
        )
    }
}

/// The holder of an account: whose requests it authorizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountHolder<'a> {
    /// The participant.
    pub participant: &'a ParticipantId,
    /// The SHA-256 of the access token with which it came, where that is exchanged for one of the
    /// server.
    pub token: Option<Digest>,
}

/// The accounts at one server.
pub trait Accounts: Send + Sync {
    /// Authorization of this caller's sessions; `None` is the session that callers share.
    fn account(&self, caller: Option<AccountHolder<'_>>) -> Arc<dyn Authorize>;

    /// Why no session of this caller can open now, if that lasts until a person acts.
    fn blocked(&self, caller: Option<AccountHolder<'_>>) -> Option<AccountFault>;

    /// Whether each caller has an account of its own, and no session is shared.
    fn are_of_callers(&self) -> bool;

    /// Whether each access token of a caller has an account of its own: it is exchanged for one of
    /// the server.
    fn are_of_tokens(&self) -> bool;

    /// Moves whenever an account changes in a way that sessions must notice: signed in, out, lost.
    fn changes(&self) -> watch::Receiver<u64>;
}
