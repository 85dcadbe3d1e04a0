//! Members of the cluster, as the common journal has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::node::{SLOT_MAX, Slot};
use crate::record::KeptMember;

/// The least number of nodes of which two sets always have one in common.
pub(crate) fn majority(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// Members with their slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Members {
    slots: BTreeMap<Arc<str>, Slot>,
    /// Former members, in the order in which they left: their slots stay theirs for as long as
    /// others are free.
    left: Vec<(Arc<str>, Slot)>,
}

impl Members {
    /// The members that a snapshot says, and the former ones.
    pub(crate) fn of(members: &[KeptMember], left: &[KeptMember]) -> Self {
        let pair = |one: &KeptMember| (Arc::clone(&one.name), one.slot);
        Self {
            slots: members.iter().map(pair).collect(),
            left: left.iter().map(pair).collect(),
        }
    }

    /// The members, for a snapshot.
    pub(crate) fn kept(&self) -> Vec<KeptMember> {
        self.slots.iter().map(kept).collect()
    }

    /// The former members, for a snapshot.
    pub(crate) fn left(&self) -> Vec<KeptMember> {
        let left = self.left.iter().map(|(name, slot)| (name, slot));
        left.map(kept).collect()
    }

    pub(crate) fn join(&mut self, name: &Arc<str>, slot: Slot) {
        self.left.retain(|(left, had)| left != name && *had != slot);
        self.slots.insert(Arc::clone(name), slot);
    }

    pub(crate) fn leave(&mut self, name: &Arc<str>) {
        if let Some(slot) = self.slots.remove(name) {
            self.left.push((Arc::clone(name), slot));
        }
    }

    pub(crate) fn slot(&self, name: &str) -> Option<Slot> {
        self.slots.get(name).copied()
    }

    pub(crate) fn of_slot(&self, slot: Slot) -> Option<&Arc<str>> {
        let mut all = self.slots.iter();
        all.find(|(_, has)| **has == slot).map(|(name, _)| name)
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.slots.contains_key(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.slots.keys()
    }

    /// The slot for a node that joins: its former one, else one that no node has had, else the one
    /// that is free for the longest time. Ids that clients have name slots.
    pub(crate) fn free_slot(&self, name: &str) -> Option<Slot> {
        let former = self.left.iter().find(|(left, _)| **left == *name);
        let used = self
            .slots
            .values()
            .chain(self.left.iter().map(|(_, slot)| slot));
        let next = used.map(|slot| slot.0).max().unwrap_or_default() + 1;
        let fresh = (next <= SLOT_MAX).then_some(Slot(next));
        let oldest = self.left.first().map(|(_, slot)| *slot);
        former.map(|(_, slot)| *slot).or(fresh).or(oldest)
    }

    /// Whether members that are not among these could be a majority.
    pub(crate) fn leaves_majority(&self, among: impl Fn(&Arc<str>) -> bool) -> bool {
        let others = self.slots.keys().filter(|name| !among(name)).count();
        others >= majority(self.slots.len())
    }
}

fn kept((name, slot): (&Arc<str>, &Slot)) -> KeptMember {
    KeptMember {
        name: Arc::clone(name),
        slot: *slot,
    }
}
