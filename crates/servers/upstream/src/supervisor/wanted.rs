//! A session that is wanted: whose, in which era, for what.

use wire::mcp::Era;

use super::book::Purpose;
use crate::session_api::{Caller, SessionOwner};
use crate::starts::{Entry, Urgency};

/// A session that is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// Its era; `None` before it is known which ones the server speaks.
    pub(super) era: Option<Era>,
    /// The caller whose own it is; `None` is the shared one.
    pub(super) owner: Option<&'a Caller<'a>>,
    /// The caller that uses it now.
    pub(super) user: Option<&'a Caller<'a>>,
    pub(super) purpose: Purpose,
    pub(super) urgency: Urgency,
}

impl<'a> Wanted<'a> {
    /// The shared session, for no caller in particular.
    pub(super) fn shared(era: Option<Era>) -> Self {
        Self {
            era,
            owner: None,
            user: None,
            purpose: Purpose::Use,
            urgency: Urgency::Background,
        }
    }

    /// The session that a caller waits for: its own, or the shared one.
    pub(super) fn by(caller: &'a Caller<'a>, era: Option<Era>, is_own: bool) -> Self {
        let owner = is_own.then_some(caller);
        Self {
            era,
            owner,
            user: Some(caller),
            purpose: Purpose::Use,
            urgency: Urgency::Caller,
        }
    }

    /// Entry of its start in the gate.
    pub(super) fn entry(&self) -> Entry<'a> {
        Entry {
            urgency: self.urgency,
            account: self.user.or(self.owner).map(|caller| caller.account),
        }
    }
}

/// A session that is wanted, also if the caller that waits for it gives up.
#[derive(Debug)]
pub(super) struct WantedAnyway {
    era: Option<Era>,
    caller: Option<SessionOwner>,
    /// Whether the session is that caller's own.
    is_own: bool,
    /// Whether that caller uses it now.
    is_used: bool,
    purpose: Purpose,
    urgency: Urgency,
}

impl From<&Wanted<'_>> for WantedAnyway {
    fn from(wanted: &Wanted<'_>) -> Self {
        Self {
            era: wanted.era,
            caller: wanted.user.or(wanted.owner).map(Into::into),
            is_own: wanted.owner.is_some(),
            is_used: wanted.user.is_some(),
            purpose: wanted.purpose,
            urgency: wanted.urgency,
        }
    }
}

impl WantedAnyway {
    pub(super) fn caller(&self) -> Option<Caller<'_>> {
        self.caller.as_ref().map(SessionOwner::caller)
    }

    /// It as a caller's, which is [`WantedAnyway::caller`].
    pub(super) fn by<'a>(&self, caller: Option<&'a Caller<'a>>) -> Wanted<'a> {
        Wanted {
            era: self.era,
            owner: caller.filter(|_| self.is_own),
            user: caller.filter(|_| self.is_used),
            purpose: self.purpose,
            urgency: self.urgency,
        }
    }
}
