//! Barrier: when a change of the common journal is in force on every node that admits anything.
//!
//! A node admits while it has contact with the home of the common journal or with a majority, and
//! is as new as the newest revision that it knows of. So a change is in force when each member has
//! applied it, or can neither have such a contact any more nor get one without learning of it.
//! Votes for that come from nodes which have applied the change themselves and then say, in one
//! heartbeat, that they have not received the member for longer than its contacts last. The members
//! that give no such vote are no majority: so whatever majority the member counts has one of the
//! voters in it. While the members change, this holds for those of before and those of after
//! (Raft's joint consensus; Ongaro and Ousterhout, 2014).

use std::sync::Arc;

use crate::effect::HomeEffect;
use crate::heartbeat::{HeardNode, Heartbeat};
use crate::home::{Home, Sending};
use crate::homes::Homes;
use crate::members::Members;
use crate::queue::Queued;
use crate::record::{CommonEntry, HomeLine};
use crate::shard::Shard;
use crate::timing::{CLOCKS_APART_MS, NODES_MAX};

impl<R: HomeLine> Homes<R> {
    /// Confirms what is in force everywhere, in order.
    pub(crate) fn confirm(&mut self) {
        self.settle();
        while self.is_first_in_force() {
            let Some(home) = self.home_mut(&Shard::Common) else {
                return;
            };
            let Some(confirmed) = home.unconfirmed.pop_front() else {
                return;
            };
            if let Some(members) = confirmed.members {
                home.confirmed = members;
            }
            for ticket in confirmed.tickets {
                self.push(HomeEffect::Confirmed { ticket });
            }
        }
    }

    /// Whether the first message that is to be confirmed is in force at all members.
    fn is_first_in_force(&self) -> bool {
        let Some(home) = self.home(&Shard::Common) else {
            return false;
        };
        let Some(first) = home.unconfirmed.front() else {
            return false;
        };
        let names = home.confirmed.names().chain(self.common.members.names());
        let counts = |name: &&Arc<str>| **name != self.me.name && !self.is_removed(home, name);
        let mut names = names.filter(counts);
        names.all(|name| self.is_in_force(home, name, first.number, true))
    }

    /// Whether a person has taken a member out, and no process of it has echoed a heartbeat that was
    /// sent since. It admits nothing, and is in no majority that another one counts.
    fn is_removed(&self, home: &Home<R>, name: &Arc<str>) -> bool {
        let Some(removed_ms) = home.removed.get(name) else {
            return false;
        };
        let mut lives = self.peers.of_name(name);
        !lives.any(|(_, peer)| peer.echoed_ms > Some(*removed_ms))
    }

    /// Whether what former homes let nodes admit is over.
    fn is_settled(&self, home: &Home<R>) -> bool {
        let settled_ms = home.settled_ms;
        settled_ms.is_some_and(|at| at.saturating_add(self.limit_ms()) <= self.now_ms())
    }

    /// Notes when no former home can take itself for the home any more.
    fn settle(&mut self) {
        let now_ms = self.now_ms();
        let Some(home) = self.home(&Shard::Common) else {
            return;
        };
        if home.settled_ms.is_some() {
            return;
        }
        let number = home.begun.number;
        let votes = |name: &Arc<str>| {
            let mut lives = self.peers.of_name(name);
            *name == self.me.name
                || self.is_removed(home, name)
                || lives.any(|(_, peer)| has_applied(home, &peer.beat, number))
        };
        let is_settled = self.is_decided(home, votes);
        if let Some(home) = self.home_mut(&Shard::Common).filter(|_| is_settled) {
            home.settled_ms = Some(now_ms);
        }
    }

    /// Whether those who do not vote are no majority.
    fn is_decided(&self, home: &Home<R>, votes: impl Fn(&Arc<str>) -> bool) -> bool {
        let decides = |members: &Members| !members.leaves_majority(&votes);
        decides(&home.confirmed) && decides(&self.common.members)
    }

    /// Whether a member has applied a message, or admits nothing before it has. Without `applied`
    /// only the latter counts. Another process of its name may be one that only others hear.
    fn is_in_force(&self, home: &Home<R>, name: &str, number: u64, applied: bool) -> bool {
        let lives: Vec<_> = self.peers.of_name(name).collect();
        let applied: Vec<_> = lives
            .iter()
            .filter(|(_, peer)| applied && has_applied(home, &peer.beat, number))
            .map(|(node, _)| (*node).clone())
            .collect();
        let limit_ms = self.limit_ms();
        let now_ms = self.now_ms();
        let is_clear = |hears: &[HeardNode], up_ms: u64| {
            let others = hears.iter();
            let mut others =
                others.filter(|one| *one.node.name == *name && !applied.contains(&one.node));
            others.all(|one| one.age_ms >= limit_ms) && (!applied.is_empty() || up_ms >= limit_ms)
        };
        if !applied.is_empty() && applied.len() == lives.len() {
            let mut live = self.peers.live(now_ms);
            return live.all(|(_, peer)| is_clear(&peer.beat.hears, limit_ms));
        }
        if !self.is_settled(home) {
            return false;
        }
        let own = is_clear(&self.peers.hears(now_ms), self.up_ms());
        own && self.is_decided(home, |voter| {
            let votes = |beat: &Heartbeat| {
                has_applied(home, beat, number) && is_clear(&beat.hears, beat.up_ms)
            };
            let mut lives = self.peers.of_name(voter);
            let is_other = **voter != *name;
            **voter == *self.me.name
                || self.is_removed(home, voter)
                || is_other && lives.any(|(_, peer)| votes(&peer.beat))
        })
    }

    /// Whether the members may change: one change is confirmed before the next.
    fn may_change_members(&self, home: &Home<R>) -> bool {
        let unconfirmed = home.unconfirmed.iter().any(|one| one.members.is_some());
        let sending = home.sending.as_ref();
        home.is_serving()
            && !unconfirmed
            && !home.queue.changes_members()
            && !sending.is_some_and(Sending::changes_members)
    }

    fn change_members(&mut self, entry: CommonEntry<R>) {
        self.enqueue(&Shard::Common, Queued::silent(entry));
    }

    /// Takes a node in that is no member, if its clock is right.
    pub(crate) fn join_node(&mut self, beat: &Heartbeat) {
        let apart = beat.wall_ms.abs_diff(self.now.wall_ms);
        if apart <= CLOCKS_APART_MS && !beat.draining {
            self.join(&beat.node.name);
        }
    }

    /// Takes this node in, if it is the home of the common journal.
    pub(crate) fn join_self(&mut self) {
        if !self.is_draining {
            let name = Arc::clone(&self.me.name);
            self.join(&name);
        }
    }

    fn join(&mut self, name: &Arc<str>) {
        let Some(home) = self.home(&Shard::Common) else {
            return;
        };
        let members = &self.common.members;
        let is_full = members.len() >= NODES_MAX;
        let is_over = members.has(name) || is_full || self.is_removed(home, name);
        if is_over || !self.may_change_members(home) {
            return;
        }
        let Some(slot) = self.common.members.free_slot(name) else {
            return;
        };
        let name = Arc::clone(name);
        if let Some(home) = self.home_mut(&Shard::Common) {
            home.removed.remove(&name);
        }
        self.change_members(CommonEntry::NodeJoined { name, slot });
    }

    /// Takes out the first member that is cut off.
    pub(crate) fn drop_silent(&mut self) {
        let Some(home) = self.home(&Shard::Common) else {
            return;
        };
        if !self.may_change_members(home) {
            return;
        }
        let number = self.common.changed.max(home.begun.number);
        let is_silent = |name: &&Arc<str>| {
            let is_over = || self.is_in_force(home, name, number, false);
            **name != self.me.name && (self.is_removed(home, name) || is_over())
        };
        let silent = self.common.members.names().find(is_silent).cloned();
        if let Some(name) = silent {
            self.change_members(CommonEntry::NodeLeft { name });
        }
    }

    /// Takes out a member that does not run any more, as a person says: as soon as the members may
    /// change. Nothing waits for it from now on.
    pub(crate) fn remove(&mut self, name: Arc<str>) {
        if name == self.me.name || !self.common.members.has(&name) {
            return;
        }
        let now_ms = self.now_ms();
        if let Some(home) = self
            .home_mut(&Shard::Common)
            .filter(|home| home.is_serving())
        {
            home.removed.insert(name, now_ms);
            self.drop_silent();
            self.confirm();
        }
    }
}

/// Whether a heartbeat says that its node has applied a message of this home's journal, which is in
/// its epoch.
fn has_applied<R>(home: &Home<R>, beat: &Heartbeat, number: u64) -> bool {
    let revision = &beat.revision;
    revision.epoch >= home.subject.epoch && revision.number >= number
}
