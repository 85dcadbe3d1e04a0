//! Copy of the common journal's state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::history::History;
use crate::home::Unconfirmed;
use crate::members::Members;
use crate::record::{CommonEntry, HomeLine, KeptState, StoredMessage};

/// The copy of the common journal's state that the rules here need.
#[derive(Debug, Clone, Default)]
pub(crate) struct Common {
    pub(crate) history: History,
    pub(crate) members: Members,
    /// The members before the latest change of them, and the number of the message that made it. A
    /// change is made when the one before it is confirmed, so no other can be unconfirmed.
    pub(crate) before: Members,
    pub(crate) changed: u64,
    /// Accounts whose refresh tokens may be in use.
    pub(crate) renewing: BTreeSet<Arc<str>>,
    /// The latest flight of each account: the number of the message with its intent.
    pub(crate) flights: BTreeMap<Arc<str>, u64>,
    /// Whether messages were lost: the journal that others have is not a continuation of this copy.
    pub(crate) is_lost: bool,
    /// Whether the journal was read once.
    pub(crate) is_read: bool,
    /// Whether this node was as new as a home, in this life.
    pub(crate) has_met_home: bool,
    /// The latest request for messages, and its time.
    pub(crate) asked: Option<(u64, u64)>,
}

impl Common {
    /// Has the copy begin anew at a snapshot.
    pub(crate) fn begin<R: HomeLine>(&mut self, stored: &StoredMessage<R>, kept: &KeptState) {
        self.history = History::begun_at(stored, kept, self.history.lenient_below);
        self.renewing.clear();
        self.flights.clear();
        self.take_kept(kept);
    }

    /// Takes the members that a snapshot says.
    pub(crate) fn take_kept(&mut self, kept: &KeptState) {
        self.members = Members::of(&kept.members, &kept.left);
        self.before = Members::of(&kept.before, &[]);
        self.changed = kept.changed;
    }

    /// The beginning of a snapshot at this place, with so many entries.
    pub(crate) fn kept(&self, entries: usize) -> KeptState {
        KeptState {
            members: self.members.kept(),
            left: self.members.left(),
            before: self.before.kept(),
            changed: self.changed,
            ..self.history.kept(entries)
        }
    }

    /// The latest uses of refresh tokens, for a snapshot.
    pub(crate) fn uses<R>(&self) -> Vec<CommonEntry<R>> {
        let uses = self
            .flights
            .iter()
            .map(|(account, flight)| CommonEntry::Used {
                account: Arc::clone(account),
                flight: *flight,
                is_open: self.renewing.contains(account),
            });
        uses.collect()
    }

    /// The latest change of the members, which a former home may not have confirmed.
    /// A node that has applied the beginning of the new epoch has applied it too.
    pub(crate) fn unconfirmed(&self, begun: u64) -> Option<Unconfirmed> {
        (self.changed > 0).then(|| Unconfirmed {
            number: begun,
            tickets: Vec::new(),
            members: Some(self.members.clone()),
        })
    }
}
