//! Swaps of what is in force: [`Registry::change`], [`Registry::renew`] and [`Registry::reload`] are
//! the only ways to another value, and each ends in [`Registry::follow`], which carries out the
//! consequences.

use std::sync::{Arc, atomic::Ordering};

use config::{Config, GatewayLimits};
use identity::grants::Grants;
use identity::identities::local_user;
use identity::{AccessJournal, AccessState};
use model::Refusal;
use store::Ledger;

use super::Registry;
use crate::in_force::{Concerned, InForce, Swapped};

impl Registry {
    /// What is in force now. It stays as it is, also if something changes meanwhile.
    pub fn now(&self) -> Arc<InForce> {
        Arc::clone(&self.in_force.read())
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.in_force.read().config)
    }

    /// The limits in force.
    pub fn limits(&self) -> Arc<GatewayLimits> {
        Arc::clone(&self.in_force.read().config.limits)
    }

    /// All changes of capabilities in force.
    pub fn grants(&self) -> Arc<Grants> {
        Arc::clone(&self.in_force.read().grants)
    }

    /// Makes one change in the journal, puts it in force, and carries out what follows for the
    /// participants that it concerns. `make` gets what is in force before. Changes are made one at
    /// a time; what follows is judged by what is in force then, so another change does not wait for
    /// it.
    ///
    /// # Errors
    /// As [`AccessJournal::change`].
    pub fn change<T>(
        &self,
        access: &AccessJournal,
        concerned: Concerned<'_>,
        make: impl FnOnce(&Ledger<AccessState>, &InForce) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let (made, swapped) = access.change(|journal| {
            let made = make(journal, &self.now())?;
            Ok((made, self.take_journal(access)))
        })?;
        self.follow(swapped, concerned);
        Ok(made)
    }

    /// Puts in force what the journal has now, and carries out what follows for the participants
    /// that it concerns.
    pub fn renew(&self, access: &AccessJournal, concerned: Concerned<'_>) {
        let swapped = self.take_journal(access);
        self.follow(swapped, concerned);
    }

    fn take_journal(&self, access: &AccessJournal) -> Swapped {
        self.swap(|now| {
            let config = Arc::clone(&now.config);
            let standing = access.standing(&config.identity);
            InForce::new(config, standing)
        })
    }

    /// Swaps the value, and moves the epoch. `next` makes it from the one before, which no other
    /// change replaces meanwhile: what it reads of the journal is not older than what is in force.
    pub(super) fn swap(&self, next: impl FnOnce(&InForce) -> InForce) -> Swapped {
        let _swapping = self.swapping.lock();
        let before = self.now();
        let next = next(&before);
        self.context
            .sealer
            .incarnations()
            .set(next.identities.incarnations().clone());
        let closes = next.identities.requires_token() && !before.identities.requires_token();
        *self.in_force.write() = Arc::new(next);
        self.moved();
        Swapped { closes }
    }

    /// Carries out what follows from a change, in every topic. What callers without a token have
    /// open ends if they need one now.
    pub(super) fn follow(&self, swapped: Swapped, concerned: Concerned<'_>) {
        // The user of a pipe has started this process, and stays.
        if swapped.closes && !self.serves_pipe.load(Ordering::Relaxed) {
            self.end_links_of(&local_user(&self.config().identity).id);
        }
        self.refresh(match concerned {
            Concerned::Everybody => None,
            Concerned::One(one) | Concerned::SignedOut(one) => Some(one),
        });
        if let Concerned::SignedOut(one) = concerned {
            self.end_links_of(one);
        }
    }
}

#[cfg(test)]
mod tests;
