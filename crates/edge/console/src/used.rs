//! Sign-ins elsewhere that have ended: none ends twice.

use std::collections::{HashSet, VecDeque};

use platform::Mutex;
use sha2::{Digest as _, Sha256};

/// The most sign-ins elsewhere that are remembered as used. A further one has the oldest forgotten, of
/// which the code is good no more at its issuer either.
pub const USED_SIGN_INS_MAX: usize = 10_000;

/// The states of sign-ins that have ended, by hash.
#[derive(Default)]
pub(crate) struct UsedSignIns(Mutex<Used>);

#[derive(Default)]
struct Used {
    known: HashSet<[u8; 32]>,
    /// The oldest first.
    order: VecDeque<[u8; 32]>,
}

impl UsedSignIns {
    /// Uses a sign-in, by its state; whether it is used for the first time.
    pub(crate) fn use_up(&self, state: &str) -> bool {
        let hash: [u8; 32] = Sha256::digest(state).into();
        let mut used = self.0.lock();
        if !used.known.insert(hash) {
            return false;
        }
        used.order.push_back(hash);
        if used.order.len() > USED_SIGN_INS_MAX
            && let Some(oldest) = used.order.pop_front()
        {
            used.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_ends_once_and_so_many_are_remembered() {
        let used = UsedSignIns::default();
        assert!(used.use_up("a") && !used.use_up("a"));
        (0..USED_SIGN_INS_MAX).for_each(|at| assert!(used.use_up(&at.to_string())));
        assert_eq!(used.0.lock().known.len(), USED_SIGN_INS_MAX);
        assert!(used.use_up("a"), "the oldest is forgotten");
    }
}
