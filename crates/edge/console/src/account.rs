//! Tokens of a session whose person has signed in at another place.

use std::sync::Arc;

use oauth::Secret;
use oauth::person::{PersonTokens, SignInPlace};
use platform::Mutex;
use tokio::runtime::Handle;

/// Time before the end of an access token at which it is renewed, in milliseconds; of a short one a
/// quarter of its time.
pub const RENEWED_BEFORE_MS: u64 = 60_000;
/// Time for which a place is left alone that could not renew, in milliseconds.
pub const REST_MS: u64 = 5_000;

/// The tokens that a place gave a person for its session. They are given up when nothing holds the
/// account any more.
pub(crate) struct Account {
    /// The name of the place.
    pub(crate) place: String,
    /// The place as it was when it gave the tokens.
    pub(crate) at: Arc<dyn SignInPlace>,
    held: Mutex<Held>,
    /// Held by the one that renews.
    pub(crate) flight: Arc<tokio::sync::Mutex<()>>,
}

struct Held {
    /// The latest tokens; `None` once they were given up.
    tokens: Option<PersonTokens>,
    /// The time of their next renewal, in Unix milliseconds; `None` if that is not known.
    due_ms: Option<u64>,
    /// The time until which the place is left alone, in Unix milliseconds.
    rests_until_ms: u64,
    /// The number of their renewals.
    renewals: u64,
}

/// The time at which tokens are to be renewed, in Unix milliseconds.
fn due_ms(tokens: &PersonTokens) -> Option<u64> {
    let quarter_ms = tokens.lifetime_ms.unwrap_or(u64::MAX) / 4;
    let before_ms = RENEWED_BEFORE_MS.min(quarter_ms);
    Some(tokens.expires_ms?.saturating_sub(before_ms))
}

impl Account {
    /// The tokens that a place has given.
    pub(crate) fn new(place: &str, at: Arc<dyn SignInPlace>, tokens: PersonTokens) -> Self {
        Self {
            place: place.to_owned(),
            at,
            held: Mutex::new(Held {
                due_ms: due_ms(&tokens),
                tokens: Some(tokens),
                rests_until_ms: 0,
                renewals: 0,
            }),
            flight: Arc::default(),
        }
    }

    /// Whether its place is left alone.
    pub(crate) fn rests(&self, now_ms: u64) -> bool {
        now_ms < self.held.lock().rests_until_ms
    }

    /// Whether its tokens are to be renewed.
    pub(crate) fn is_due(&self, now_ms: u64) -> bool {
        let held = self.held.lock();
        let can_renew = (held.tokens.as_ref()).is_some_and(|tokens| tokens.refresh.is_some());
        can_renew && held.due_ms.is_some_and(|due_ms| due_ms <= now_ms)
    }

    /// The number of renewals of its tokens.
    pub(crate) fn renewals(&self) -> u64 {
        self.held.lock().renewals
    }

    /// The token with which it is renewed.
    pub(crate) fn refresh(&self) -> Option<Secret> {
        self.held.lock().tokens.as_ref()?.refresh.clone()
    }

    /// Goes on with these tokens; returns them if it was given up.
    #[must_use]
    pub(crate) fn take(&self, tokens: PersonTokens) -> Option<PersonTokens> {
        let mut held = self.held.lock();
        if held.tokens.is_none() {
            return Some(tokens);
        }
        *held = Held {
            due_ms: due_ms(&tokens),
            tokens: Some(tokens),
            rests_until_ms: 0,
            renewals: held.renewals + 1,
        };
        None
    }

    /// Leaves its place alone for a while.
    pub(crate) fn rest(&self, now_ms: u64) {
        self.held.lock().rests_until_ms = now_ms.saturating_add(REST_MS);
    }

    /// Gives the tokens up: the session for which they were has ended.
    pub(crate) fn give_up(&self) {
        let tokens = self.held.lock().tokens.take();
        if let (Some(tokens), Ok(runtime)) = (tokens, Handle::try_current()) {
            let at = Arc::clone(&self.at);
            runtime.spawn(async move { at.give_up(tokens).await });
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.give_up();
    }
}

#[cfg(test)]
mod tests {
    use oauth::person::Asked;

    use super::*;

    #[test]
    fn a_token_is_renewed_before_it_ends() {
        for (lifetime_ms, due) in [
            (Some(600_000), Some(540_000)),
            (Some(8_000), Some(598_000)),
            (None, Some(540_000)),
        ] {
            let mut tokens = PersonTokens {
                access: Secret::new("a".to_owned()),
                refresh: None,
                expires_ms: Some(600_000),
                lifetime_ms,
                asked: Asked::Unknown,
            };
            assert_eq!(due_ms(&tokens), due, "{lifetime_ms:?}");
            tokens.expires_ms = None;
            assert_eq!(due_ms(&tokens), None);
        }
    }
}
