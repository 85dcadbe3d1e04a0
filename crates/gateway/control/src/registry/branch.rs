//! Registry of a branch: it follows the journal, which the home of the cluster writes.

use std::sync::Arc;

use config::Config;
use gateway::{Dispatch, TopicLedgers};
use identity::{AccessJournal, AccessState};
use store::{Entry, Fold as _};

use super::Registry;
use crate::in_force::Concerned;
use crate::pins::KeptPins;

impl Registry {
    /// Puts in force what the journal has, all of it.
    pub fn follow_all(&self, access: &AccessJournal) {
        self.renew(access, Concerned::Everybody);
        self.follow_pins();
        self.follow_topics();
    }

    /// Puts in force what the journal has now, after these entries.
    pub fn follow_entries(&self, access: &AccessJournal, entries: &[Entry]) {
        let is_any_of = |owner| entries.iter().any(|entry| entry.owner() == owner);
        if is_any_of(AccessState::OWNER) {
            self.renew(access, Concerned::Everybody);
        }
        if is_any_of(KeptPins::OWNER) {
            self.follow_pins();
        }
        if is_any_of(TopicLedgers::RULES) || is_any_of(TopicLedgers::PAUSES) {
            self.follow_topics();
        }
    }

    fn follow_pins(&self) {
        self.pins.follow();
        for upstream in self.upstreams() {
            upstream.list_again();
        }
    }

    fn follow_topics(&self) {
        let config = self.config();
        for dispatch in self.topics() {
            self.follow_topic(&config, &dispatch);
        }
    }

    /// Has the topic of a branch know the pauses and rules that are in force.
    pub(super) fn follow_topic(&self, config: &Config, dispatch: &Arc<Dispatch>) {
        // Nothing older replaces what another thread has read since.
        let _following = self.following.lock();
        if let Some(ledgers) = &self.ledgers {
            dispatch.follow(ledgers, config.rules_of(dispatch.name()));
        }
    }
}
