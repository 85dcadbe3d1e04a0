//! A session that is wanted: whose, in which era, for what.

use wire::mcp::Era;

use super::book::Purpose;
use crate::session_api::{Caller, SessionOwner};
use crate::starts::{Entry, Urgency};

/// A session that is wanted. It outlasts the wait of its caller, so it owns what it has of that.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Its era; `None` before it is known which ones the server speaks.
    pub(super) era: Option<Era>,
    /// The caller for which it is, if it is for one.
    caller: Option<SessionOwner>,
    /// Whether it is that caller's own; else it is the shared one.
    is_own: bool,
    /// Whether that caller uses it now.
    is_used: bool,
    pub(super) purpose: Purpose,
    urgency: Urgency,
}

impl Wanted {
    /// The shared session, for no caller in particular.
    pub(super) fn shared(era: Option<Era>) -> Self {
        Self {
            era,
            caller: None,
            is_own: false,
            is_used: false,
            purpose: Purpose::Use,
            urgency: Urgency::Background,
        }
    }

    /// The shared session, to be asked whether what is kept of the server still holds.
    pub(super) fn probe(era: Option<Era>) -> Self {
        Self {
            purpose: Purpose::Probe,
            urgency: Urgency::Probe,
            ..Self::shared(era)
        }
    }

    /// The session that a caller waits for: its own, or the shared one.
    pub(super) fn by(caller: &Caller<'_>, era: Option<Era>, is_own: bool) -> Self {
        Self {
            era,
            caller: Some(caller.into()),
            is_own,
            is_used: true,
            purpose: Purpose::Use,
            urgency: Urgency::Caller,
        }
    }

    /// A session of a caller that does not use it yet.
    pub(super) fn ahead(caller: &Caller<'_>, era: Option<Era>, is_own: bool) -> Self {
        Self {
            is_used: false,
            urgency: Urgency::Background,
            ..Self::by(caller, era, is_own)
        }
    }

    /// A session for a caller that is likely to use it soon.
    pub(super) fn warm(caller: &Caller<'_>, era: Option<Era>, is_own: bool) -> Self {
        Self {
            purpose: Purpose::Warm,
            ..Self::ahead(caller, era, is_own)
        }
    }

    /// The caller whose own it is; `None` is the shared one.
    pub(super) fn owner(&self) -> Option<Caller<'_>> {
        let owner = self.caller.as_ref().filter(|_| self.is_own);
        owner.map(SessionOwner::caller)
    }

    /// The caller that uses it now.
    pub(super) fn user(&self) -> Option<Caller<'_>> {
        let user = self.caller.as_ref().filter(|_| self.is_used);
        user.map(SessionOwner::caller)
    }

    /// Entry of its start in the gate.
    pub(super) fn entry(&self) -> Entry<'_> {
        let caller = self.caller.as_ref().map(SessionOwner::caller);
        Entry {
            urgency: self.urgency,
            account: caller.map(|caller| caller.account),
        }
    }
}
