//! Clients of the simulation: calls that are held, decisions, changes of access, renewals.

use cluster::{HomeEvent, Shard};
use model::ProposalState;

use crate::line::{Line, Meaning};
use crate::node::{Frame, Ticket, Waiting, account, topic};
use crate::shell::PROPOSAL;
use crate::world::{CHAOS_MS, Happening, QUIET_MS, World};

/// The time after which a door repeats a request, milliseconds.
const REPEAT_MS: u64 = 2_000;

impl World {
    /// A client does something.
    pub(crate) fn client(&mut self) {
        let after_ms = 50 + self.prng.below(400) as u64;
        self.after(after_ms, Happening::Client);
        let node = self.prng.below(self.nodes.len());
        let one = &self.nodes[node];
        if !one.is_up || one.is_stopped || self.now_ms > CHAOS_MS + QUIET_MS / 2 {
            return self.tidy();
        }
        match self.prng.below(9) {
            0..2 => self.calls(node),
            2..6 => self.decides(node),
            6 => {
                let node = self.a_home_or(&Shard::Common, node);
                self.changes(node);
            }
            7 => {
                let node = self.a_home_or(&Shard::Common, node);
                self.renews_at(node);
            }
            _ => self.person(node),
        }
        if self.prng.one_in(8) {
            self.compacts(node);
        }
    }

    /// Has the home of a shard write a snapshot, if the shard has one.
    fn compacts(&mut self, node: usize) {
        let shard = self.prng.any(&[Shard::Common, topic()]);
        let node = self.a_home_or(&shard, node);
        if !self.nodes[node].is_up || self.nodes[node].is_stopped {
            return;
        }
        let lines = self.nodes[node].in_force(&shard);
        let ticket = self.nodes[node].ticket(Ticket::Snapshot);
        self.step(
            node,
            HomeEvent::Compact {
                shard,
                ticket,
                lines,
            },
        );
        self.works_off(node);
    }

    /// A home of a shard, if there is one.
    fn a_home_or(&mut self, shard: &Shard, node: usize) -> usize {
        let homes = (0..self.nodes.len()).filter(|node| self.is_home(*node, shard));
        let homes: Vec<usize> = homes.collect();
        if homes.is_empty() {
            return node;
        }
        self.prng.any(&homes)
    }

    fn calls(&mut self, node: usize) {
        let request = self.number();
        self.books.asks(request);
        self.nodes[node].door.insert(request, Waiting::default());
        self.tend_door(node);
    }

    fn decides(&mut self, node: usize) {
        let Some(shell) = self.nodes[node].shell.as_mut() else {
            return;
        };
        let request = 1 + self.prng.below(self.numbers as usize) as u64;
        let proposal = request + PROPOSAL;
        if shell.state(proposal) == Some(ProposalState::Pending) {
            let approves = !self.prng.one_in(4);
            let out = shell.decide(proposal, approves);
            self.follow(node, out);
            self.works_off(node);
        }
    }

    fn changes(&mut self, node: usize) {
        self.change_at(node);
    }

    /// Has the home at this node store a change of access; returns the number of the change.
    pub(crate) fn change_at(&mut self, node: usize) -> u64 {
        let change = self.number();
        let ticket = self.nodes[node].ticket(Ticket::Change(change));
        let line = Line::new(Meaning::Change(change));
        self.step(
            node,
            HomeEvent::Store {
                shard: Shard::Common,
                ticket,
                line,
            },
        );
        self.works_off(node);
        change
    }

    /// A person takes a member out that does not run, or writes the configuration anew.
    fn person(&mut self, node: usize) {
        let down = self.nodes.iter().find(|one| !one.is_up);
        let event = match down.map(|one| one.name.clone()) {
            Some(name) if self.prng.one_in(4) => HomeEvent::Remove { name },
            _ if self.is_chaos() && self.prng.one_in(6) => {
                self.books.count("topics removed");
                // Its requests are those of a topic that is gone.
                self.nodes[node].shell = None;
                HomeEvent::Topics(Vec::new())
            }
            _ => all_topics(),
        };
        self.step(node, event);
        self.works_off(node);
    }

    /// Configures all nodes alike.
    pub(crate) fn configure_all(&mut self) {
        for node in 0..self.nodes.len() {
            self.step(node, all_topics());
            self.works_off(node);
        }
    }

    fn renews_at(&mut self, node: usize) {
        let ticket = self.nodes[node].ticket(Ticket::Renewal);
        let account = account(self.is_chaos() && self.prng.one_in(6));
        self.step(
            node,
            HomeEvent::Renew {
                account: account.into(),
                ticket,
            },
        );
        self.works_off(node);
    }

    /// A door sends its requests to the home, and to the next one if that is another.
    pub(crate) fn tend_door(&mut self, node: usize) {
        let one = &self.nodes[node];
        let home = one.homes.home_of(&topic());
        let home = home.and_then(|(home, epoch)| {
            let at = self.nodes.iter().position(|one| one.name == home.name)?;
            Some((at, epoch))
        });
        let Some((at, epoch)) = home else {
            return;
        };
        for (request, waiting) in self.nodes[node].door.clone() {
            self.tend_request(node, (at, epoch), request, waiting);
        }
    }

    fn tend_request(&mut self, node: usize, home: (usize, u64), request: u64, waiting: Waiting) {
        let (at, epoch) = home;
        let is_next = epoch > waiting.epoch;
        if is_next && waiting.epoch > 0 && waiting.proposal.is_none() {
            // It may have been proposed: it is never sent again.
            self.nodes[node].door.remove(&request);
            return self.books.settles(request);
        }
        let is_sent = epoch == waiting.epoch && waiting.sent_ms + REPEAT_MS > self.now_ms;
        if is_sent || epoch < waiting.epoch {
            return;
        }
        let proposal = waiting.proposal;
        let sent_ms = self.now_ms;
        let waiting = Waiting {
            proposal,
            epoch,
            sent_ms,
        };
        self.nodes[node].door.insert(request, waiting);
        self.send(
            node,
            at,
            Frame::Request {
                request,
                proposal,
                epoch,
            },
        );
    }
}

fn all_topics() -> HomeEvent<Line> {
    let topics = [topic()].into_iter().filter_map(|shard| match shard {
        Shard::Topic(name) => Some(name),
        Shard::Common => None,
    });
    HomeEvent::Topics(topics.collect())
}
