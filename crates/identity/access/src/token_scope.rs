//! Scope of the access token with which a link's caller requests now: requests on one link may come
//! with several tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use auth::Bearer;
use model::Narrowing;
use platform::Mutex;

/// The latest access token on a link.
#[derive(Debug, Default)]
pub struct TokenScope {
    latest: Mutex<Latest>,
    /// Held while its caller acts.
    acting: Mutex<()>,
    /// Whether there ever was one that matters: all others need no lock.
    is_used: AtomicBool,
}

#[derive(Debug, Default)]
struct Latest {
    bearer: Option<Arc<Bearer>>,
    /// Whether the link was narrowed to its scopes.
    is_narrowed: bool,
}

impl Latest {
    /// The scopes to which the link was narrowed last.
    fn narrowing(&self) -> Option<&Narrowing> {
        narrowing_of(self.bearer.as_ref()).filter(|_| self.is_narrowed)
    }

    fn is_of(&self, bearer: Option<&Arc<Bearer>>) -> bool {
        match (&self.bearer, bearer) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }
}

fn narrowing_of(bearer: Option<&Arc<Bearer>>) -> Option<&Narrowing> {
    bearer?.narrowing.as_ref()
}

/// Whether requests with this are as those without an access token.
fn is_plain(bearer: Option<&Arc<Bearer>>) -> bool {
    bearer.is_none_or(|bearer| bearer.narrowing.is_none() && bearer.token.is_none())
}

impl TokenScope {
    /// The scope of a link that was opened with this token, if it was one.
    #[must_use]
    pub fn opened_with(bearer: Option<Arc<Bearer>>) -> Self {
        let is_used = bearer.as_ref().is_some_and(|bearer| bearer.token.is_some());
        let latest = Latest {
            bearer: bearer.filter(|_| is_used),
            is_narrowed: false,
        };
        Self {
            latest: Mutex::new(latest),
            acting: Mutex::default(),
            is_used: AtomicBool::new(is_used),
        }
    }

    /// The token with which its caller acts now. Another may come at any time, unless this is asked
    /// while its caller acts.
    #[inline]
    pub fn latest(&self) -> Option<Arc<Bearer>> {
        if !self.is_used.load(Ordering::Acquire) {
            return None;
        }
        self.latest.lock().bearer.clone()
    }

    /// Acts with a token: calls `narrow` first if the token before narrowed to something else, and
    /// keeps others from acting meanwhile.
    #[inline]
    pub fn during<T>(
        &self,
        bearer: Option<&Arc<Bearer>>,
        narrow: impl FnOnce(Option<Narrowing>),
        act: impl FnOnce() -> T,
    ) -> T {
        if is_plain(bearer) && !self.is_used.load(Ordering::Acquire) {
            return act();
        }
        let _alone = self.acting.lock();
        let mut latest = self.latest.lock();
        let is_known = latest.is_narrowed && latest.is_of(bearer);
        if !is_known {
            self.is_used.store(true, Ordering::Release);
            let narrowing = narrowing_of(bearer);
            let differs = latest.narrowing() != narrowing;
            *latest = Latest {
                bearer: bearer.cloned(),
                is_narrowed: true,
            };
            if differs {
                drop(latest);
                narrow(narrowing.cloned());
                return act();
            }
        }
        drop(latest);
        act()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use auth::TokenAudience;
    use model::Digest;

    use super::*;

    fn bearer(narrowing: Option<&Narrowing>, token: Option<Digest>) -> Arc<Bearer> {
        let (narrowing, audience) = (narrowing.cloned(), TokenAudience::Every);
        Arc::new(Bearer {
            token,
            narrowing,
            ends_ms: 0,
            checked_until_ms: 0,
            audience,
        })
    }

    #[test]
    fn a_link_is_narrowed_when_its_token_differs() {
        let (scope, seen) = (TokenScope::default(), RefCell::new(Vec::new()));
        let small = Narrowing {
            to: Arc::default(),
            step_up: None,
        };
        let full = Narrowing {
            to: Arc::new(model::Capabilities::full()),
            step_up: None,
        };
        let small_again = bearer(Some(&small), None);
        for bearer in [
            bearer(None, None),
            Arc::clone(&small_again),
            small_again,
            bearer(Some(&small), None),
            bearer(Some(&full), None),
            bearer(None, None),
            bearer(None, None),
        ] {
            let is_used = bearer.narrowing.is_some() || scope.is_used.load(Ordering::Relaxed);
            let acts = || {
                assert_eq!(scope.is_used.load(Ordering::Relaxed), is_used);
                assert_eq!(
                    scope.latest(),
                    is_used.then(|| Arc::clone(&bearer)),
                    "who acts can ask"
                );
            };
            scope.during(Some(&bearer), |now| seen.borrow_mut().push(now), acts);
        }
        assert_eq!(*seen.borrow(), [Some(small), Some(full), None]);
    }

    #[test]
    fn each_act_has_its_own_token_and_is_narrowed_only_by_another_scope() {
        let [one, other] = [1, 2].map(|byte| bearer(None, Some(Digest([byte; 32]))));
        let scope = TokenScope::opened_with(Some(Arc::clone(&one)));
        assert_eq!(scope.latest(), Some(Arc::clone(&one)));
        for bearer in [Some(&other), None, Some(&one)] {
            let narrow = |_| panic!("the scope is as before");
            scope.during(bearer, narrow, || {
                assert_eq!(scope.latest().as_ref(), bearer)
            });
        }
    }

    #[test]
    fn the_scopes_of_the_token_with_which_a_link_was_opened_narrow_its_first_act() {
        let small = Narrowing {
            to: Arc::default(),
            step_up: None,
        };
        let bearer = bearer(Some(&small), Some(Digest([1; 32])));
        let (scope, seen) = (
            TokenScope::opened_with(Some(Arc::clone(&bearer))),
            RefCell::new(Vec::new()),
        );
        for _ in 0..2 {
            scope.during(Some(&bearer), |now| seen.borrow_mut().push(now), || {});
        }
        assert_eq!(*seen.borrow(), [Some(small)]);
    }
}
