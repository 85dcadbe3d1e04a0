//! Scope of the access token with which a link's caller requests now: requests on one link may come with several tokens.

use std::sync::atomic::{AtomicBool, Ordering};

use model::{Digest, Narrowing};
use platform::Mutex;

/// An access token as far as what a request does depends on it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScopedToken {
    /// The capabilities that it leaves to its participant.
    pub narrowing: Option<Narrowing>,
    /// Its SHA-256, if it is an issuer's: servers at which it is exchanged know its bearer by it.
    pub token: Option<Digest>,
}

impl ScopedToken {
    /// The token with which a participant came in.
    #[must_use]
    #[inline]
    pub fn of(participant: &auth::Participant) -> Self {
        Self { narrowing: participant.narrowing().cloned(), token: participant.token() }
    }

    /// Whether requests with it are as those without an access token.
    fn is_plain(&self) -> bool {
        self.narrowing.is_none() && self.token.is_none()
    }
}

/// The latest access token on a link.
#[derive(Debug, Default)]
pub struct TokenScope {
    latest: Mutex<ScopedToken>,
    /// Held while its caller acts.
    acting: Mutex<()>,
    /// Whether there ever was one that matters: all others need no lock.
    is_used: AtomicBool,
}

impl TokenScope {
    /// The scope of a link that was opened with this token of an issuer, if it was one.
    #[must_use]
    pub fn opened_with(token: Option<Digest>) -> Self {
        let is_used = AtomicBool::new(token.is_some());
        let latest = Mutex::new(ScopedToken { narrowing: None, token });
        Self { latest, acting: Mutex::default(), is_used }
    }

    /// The token with which its caller acts now. Another may come at any time, unless this is asked while its caller acts.
    #[inline]
    pub fn latest(&self) -> ScopedToken {
        if !self.is_used.load(Ordering::Acquire) {
            return ScopedToken::default();
        }
        self.latest.lock().clone()
    }

    /// Acts with a token: calls `narrow` first if the token before narrowed to something else, and keeps others from acting
    /// meanwhile.
    #[inline]
    pub fn during<T>(
        &self,
        token: &ScopedToken,
        narrow: impl FnOnce(Option<Narrowing>),
        act: impl FnOnce() -> T,
    ) -> T {
        if token.is_plain() && !self.is_used.load(Ordering::Acquire) {
            return act();
        }
        let _alone = self.acting.lock();
        self.is_used.store(true, Ordering::Release);
        let mut latest = self.latest.lock();
        let differs = latest.narrowing != token.narrowing;
        if *latest != *token {
            latest.clone_from(token);
        }
        drop(latest);
        if differs {
            narrow(token.narrowing.clone());
        }
        act()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_link_is_narrowed_when_its_token_differs() {
        let (scope, seen) = (TokenScope::default(), RefCell::new(Vec::new()));
        let small = Narrowing { to: Arc::default(), step_up: None };
        let full = Narrowing { to: Arc::new(model::Capabilities::full()), step_up: None };
        for narrowing in [None, Some(&small), Some(&small), Some(&full), None, None] {
            let token = ScopedToken { narrowing: narrowing.cloned(), token: None };
            scope.during(
                &token,
                |now| seen.borrow_mut().push(now),
                || {
                    assert_eq!(
                        scope.is_used.load(Ordering::Relaxed),
                        narrowing.is_some() || !seen.borrow().is_empty()
                    );
                    assert_eq!(scope.latest(), token, "who acts can ask");
                },
            );
            assert_eq!(scope.latest(), token);
        }
        assert_eq!(*seen.borrow(), [Some(small), Some(full), None]);
    }

    #[test]
    fn each_act_has_its_own_token_and_is_narrowed_only_by_another_scope() {
        let (one, other) = (Digest([1; 32]), Digest([2; 32]));
        let scope = TokenScope::opened_with(Some(one));
        assert_eq!(scope.latest().token, Some(one));
        for token in [Some(other), None, Some(one)] {
            let narrow = |_| panic!("the scope is as before");
            let acts_with = ScopedToken { narrowing: None, token };
            scope.during(&acts_with, narrow, || assert_eq!(scope.latest().token, token));
        }
    }
}
