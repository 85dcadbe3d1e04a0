//! End of a run: all is well again, what was lost is accepted, and everything is decided.

use std::collections::BTreeSet;

use cluster::{HomeEvent, Shard};
use model::ProposalState;

use crate::line::Meaning;
use crate::node::topic;
use crate::world::{CHAOS_MS, QUIET_MS, World};

impl World {
    /// A person accepts what was lost, wherever that stops a shard.
    pub(crate) fn accept_losses(&mut self) {
        for shard in self.books.reported.clone() {
            self.books.accepted.insert(shard.clone());
            // What is gone needs not be in force any more; all that comes later does.
            let log = &self.log;
            let confirmed = &mut self.books.confirmed;
            confirmed.retain(|change| log.has(Meaning::Change(*change)));
            for node in 0..self.nodes.len() {
                if !self.nodes[node].is_up || self.nodes[node].is_stopped {
                    continue;
                }
                self.step(
                    node,
                    HomeEvent::Accept {
                        shard: shard.clone(),
                    },
                );
                self.works_off(node);
            }
        }
    }

    /// In the last part of the run everything that is open is decided.
    pub(crate) fn tidy(&mut self) {
        if !self.is_chaos() {
            self.accept_losses();
            self.decide_all();
        }
    }

    pub(crate) fn decide_all(&mut self) {
        for node in 0..self.nodes.len() {
            let Some(shell) = &self.nodes[node].shell else {
                continue;
            };
            let pending = |meaning: &Meaning| match meaning {
                Meaning::Opened(proposal) => {
                    (shell.state(*proposal) == Some(ProposalState::Pending)).then_some(*proposal)
                }
                _ => None,
            };
            let pending: Vec<u64> = self.books.acknowledged.iter().filter_map(pending).collect();
            for proposal in pending {
                let Some(shell) = self.nodes[node].shell.as_mut() else {
                    break;
                };
                let out = shell.decide(proposal, true);
                self.follow(node, out);
            }
            self.works_off(node);
        }
        self.last_change();
    }

    fn last_change(&mut self) {
        if self.now_ms < CHAOS_MS + QUIET_MS * 3 / 5 {
            return;
        }
        for node in 0..self.nodes.len() {
            if self.last.is_none() && self.is_home(node, &Shard::Common) {
                let change = self.change_at(node);
                self.last = Some(change);
            }
        }
    }

    pub(crate) fn is_home(&self, node: usize, shard: &Shard) -> bool {
        let one = &self.nodes[node];
        let homes = &one.homes;
        one.is_up
            && !one.is_stopped
            && homes
                .home_of(shard)
                .is_some_and(|(home, _)| home == homes.node())
    }

    /// All nodes serve, each shard has one home, and nothing is open.
    pub(crate) fn finish(&mut self) {
        for one in self.nodes.iter().filter(|_| self.traced) {
            eprintln!("{} at the end: {:#?}", one.name, one.homes);
        }
        for shard in [Shard::Common, topic()] {
            let homes = (0..self.nodes.len())
                .filter(|node| self.is_home(*node, &shard))
                .count();
            assert_eq!(homes, 1, "book ends: homes of {shard:?}");
        }
        for one in &self.nodes {
            let admits = one.admission.admits(one.time(self.now_ms).steady_ms);
            assert!(
                admits,
                "book ends: {} admits nothing: {:?}",
                one.name, one.admission
            );
        }
        let confirmed = self
            .last
            .is_some_and(|last| self.books.answered.contains(&last));
        assert!(
            confirmed,
            "book ends: change {:?} is not confirmed",
            self.last
        );
        self.check_acknowledged();
        self.check_results();
        self.books.all_settled();
    }

    /// Checks that the result of each use of a refresh token is stored, unless a later use was
    /// begun.
    fn check_results(&self) {
        if self.books.kept.is_some() {
            return;
        }
        for (renewal, line) in &self.results {
            let Some(line) = line else {
                continue;
            };
            let is_kept = self.log.has(line.meaning) || self.log.has_flight_after(renewal);
            assert!(is_kept, "book results: that of {renewal:?} is gone");
        }
    }

    /// All that was acknowledged is there, unless a loss was reported.
    fn check_acknowledged(&mut self) {
        // A repeated append can close the gap for its home, which has all in its memory: the next one
        // that reads the journal sees the hole.
        if self.books.reported.contains(&topic()) || !self.log.is_whole(&topic()) {
            return;
        }
        let shells: Vec<_> = self
            .nodes
            .iter()
            .filter_map(|one| one.shell.as_ref())
            .collect();
        let [shell] = shells.as_slice() else {
            panic!("book ends: {} topics", shells.len());
        };
        let decided: BTreeSet<u64> = self
            .books
            .acknowledged
            .iter()
            .filter_map(|meaning| match meaning {
                Meaning::Approved(proposal) | Meaning::Rejected(proposal) => Some(*proposal),
                _ => None,
            })
            .collect();
        for meaning in &self.books.acknowledged {
            let Meaning::Opened(proposal) = meaning else {
                continue;
            };
            let in_log = self.log.has(*meaning);
            assert!(in_log, "book acknowledged: {meaning:?} is gone");
            let state = shell.state(*proposal);
            let is_decided = decided.contains(proposal);
            let fits = !is_decided || state != Some(ProposalState::Pending);
            assert!(
                fits,
                "book acknowledged: the decision about {proposal} is gone"
            );
        }
        for proposal in decided {
            let known = [Meaning::Approved(proposal), Meaning::Rejected(proposal)];
            let in_log = known.iter().any(|meaning| self.log.has(*meaning));
            assert!(
                in_log,
                "book acknowledged: the decision about {proposal} is gone"
            );
        }
    }
}
