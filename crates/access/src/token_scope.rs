//! Scope of the access token with which a link's caller requests now: requests on one link may come with several tokens.

use std::sync::atomic::{AtomicBool, Ordering};

use model::Narrowing;
use platform::Mutex;

/// What the latest access token on a link narrowed its participant's capabilities to.
#[derive(Debug, Default)]
pub struct TokenScope {
    narrowing: Mutex<Option<Narrowing>>,
    /// Held while its caller acts.
    acting: Mutex<()>,
    /// Whether it was ever narrowed: all others need no lock.
    is_used: AtomicBool,
}

impl TokenScope {
    /// What it is narrowed to now. Another token may narrow it otherwise at any time, unless this is asked while its caller acts.
    pub fn narrowing(&self) -> Option<Narrowing> {
        if !self.is_used.load(Ordering::Acquire) {
            return None;
        }
        self.narrowing.lock().clone()
    }

    /// Acts with a token that narrows to this: calls `narrow` first if the token before narrowed to something else, and keeps others
    /// from doing so meanwhile.
    pub fn during<T>(
        &self,
        narrowing: Option<&Narrowing>,
        narrow: impl FnOnce(Option<Narrowing>),
        act: impl FnOnce() -> T,
    ) -> T {
        if narrowing.is_none() && !self.is_used.load(Ordering::Acquire) {
            return act();
        }
        let _alone = self.acting.lock();
        self.is_used.store(true, Ordering::Release);
        let mut held = self.narrowing.lock();
        let differs = held.as_ref() != narrowing;
        if differs {
            *held = narrowing.cloned();
        }
        drop(held);
        if differs {
            narrow(narrowing.cloned());
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
        for token in [None, Some(&small), Some(&small), Some(&full), None, None] {
            scope.during(
                token,
                |now| seen.borrow_mut().push(now),
                || {
                    assert_eq!(
                        scope.is_used.load(Ordering::Relaxed),
                        token.is_some() || !seen.borrow().is_empty()
                    );
                    assert_eq!(scope.narrowing().as_ref(), token, "who acts can ask");
                },
            );
            assert_eq!(scope.narrowing().as_ref(), token);
        }
        assert_eq!(*seen.borrow(), [Some(small), Some(full), None]);
    }
}
