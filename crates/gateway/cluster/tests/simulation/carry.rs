//! Runner of the simulation: carries the effects of `Homes` out, one after the other.

use std::sync::Arc;

use cluster::{
    Admission, HeardNode, Heartbeat, HomeEffect, HomeEvent, HomeRecord, Shard, ShardSubject,
};

use crate::broken::Broken;
use crate::line::{Line, Meaning};
use crate::log::WantedPurge;
use crate::node::{Frame, Input, Ticket, TokenUse, incarnation, topic};
use crate::shell::{Out, PROPOSAL, Shell};
use crate::world::{Happening, Work, World};

impl World {
    /// Carries out what waits; a process may stop or end before each effect.
    pub(crate) fn carry_out(&mut self, node: usize) {
        loop {
            let one = &mut self.nodes[node];
            if !one.is_up || one.is_stopped {
                return;
            }
            let Some(effect) = one.backlog.pop_front() else {
                return;
            };
            let breaks = self.faults.breaks;
            if breaks > 0 && self.is_chaos() && self.prng.one_in(breaks) {
                self.nodes[node].backlog.push_front(effect);
                if self.prng.one_in(2) {
                    self.crash(node);
                } else {
                    self.stop(node);
                }
                return;
            }
            self.carry(node, effect);
        }
    }

    fn carry(&mut self, node: usize, effect: HomeEffect<Line>) {
        match effect {
            HomeEffect::Publish(beat) => self.publish_beat(node, &beat),
            HomeEffect::Spread(stored) => self.publish(node, &Frame::Spread(stored)),
            HomeEffect::Look { shard, request } => {
                self.ask_log(node, Work::Look { shard, request })
            }
            HomeEffect::Read {
                shard,
                request,
                after,
            } => {
                self.ask_log(
                    node,
                    Work::Read {
                        shard,
                        request,
                        after,
                    },
                );
            }
            HomeEffect::Append {
                subject,
                expected,
                id,
                message,
            } => {
                let expected = (self.broken != Broken::Unfenced).then_some(expected);
                self.ask_log(
                    node,
                    Work::Append {
                        subject,
                        expected,
                        id,
                        message,
                    },
                );
            }
            HomeEffect::KeepHead { shard, head } if self.broken != Broken::NoHeads => {
                self.nodes[node].know(&shard, &head);
                self.nodes[node]
                    .disk_heads
                    .insert((shard, head.epoch, head.begun), head);
            }
            HomeEffect::KeepHead { .. } => {}
            HomeEffect::Apply { lines, .. } => {
                self.nodes[node].apply(&lines);
            }
            HomeEffect::Reset { lines, .. } => {
                if !lines.is_empty() {
                    self.books.count("begun at a snapshot");
                }
                self.nodes[node].forget();
                self.nodes[node].apply(&lines);
            }
            HomeEffect::Purge {
                shard,
                epoch,
                before,
                end,
                end_sequence,
            } => {
                let before = match self.broken {
                    Broken::PurgesBeyond => end_sequence,
                    _ => before,
                };
                self.ask_log(
                    node,
                    Work::Purge(WantedPurge {
                        shard,
                        epoch,
                        before,
                        end,
                        end_sequence,
                    }),
                );
            }
            HomeEffect::BecomeHome {
                shard,
                epoch,
                lines,
            } => self.becomes_home(node, shard, epoch, &lines),
            HomeEffect::StepDown { shard, .. } => self.steps_down(node, &shard),
            HomeEffect::StopTopic { shard, .. } => {
                self.steps_down(node, &shard);
                self.books.stopped(shard);
            }
            HomeEffect::Stored { ticket, .. } => self.answered(node, ticket, true),
            HomeEffect::NotStored { ticket, .. } => self.answered(node, ticket, false),
            HomeEffect::Confirmed { ticket } => self.confirmed(node, ticket),
            HomeEffect::Admit(admission) => self.nodes[node].admission = admission,
            HomeEffect::Renew {
                account,
                flight,
                before_ms,
            } => self.renews(node, TokenUse::new(&account, flight), before_ms),
            HomeEffect::RenewalOver {
                account,
                flight,
                known,
                ..
            } => {
                self.books.count("renewals over");
                if known {
                    self.results.remove(&TokenUse::new(&account, flight));
                }
            }
            // The caller of the token endpoint has it, and tries again.
            HomeEffect::NotRenewed { .. } => {}
        }
    }

    fn publish_beat(&mut self, node: usize, beat: &Arc<Heartbeat>) {
        self.nodes[node].sent = beat.beat;
        for claim in &beat.homes {
            self.nodes[node].know(&claim.shard, &claim.head);
        }
        let mut beat = Arc::clone(beat);
        if self.broken == Broken::NoHeads {
            Arc::make_mut(&mut beat).heads.clear();
        }
        if self.broken == Broken::DeafVoters {
            let deaf = Arc::make_mut(&mut beat);
            deaf.up_ms = u64::MAX;
            deaf.hears.iter_mut().for_each(|one| one.age_ms = u64::MAX);
        }
        self.publish(node, &Frame::Beat(beat));
    }

    /// A heartbeat comes to a node.
    pub(crate) fn beat(&mut self, node: usize, mut beat: Arc<Heartbeat>) {
        let one = &mut self.nodes[node];
        one.know(&Shard::Common, &beat.revision);
        for claim in &beat.homes {
            one.know(&claim.shard, &claim.head);
        }
        for (shard, heads) in &beat.heads {
            heads.iter().for_each(|head| one.know(shard, head));
        }
        if self.broken == Broken::ReceiptIsContact {
            let me = one.homes.node().clone();
            let latest = one.sent;
            let hears = &mut Arc::make_mut(&mut beat).hears;
            hears.retain(|one| one.node != me);
            hears.push(HeardNode {
                node: me,
                beat: latest,
                age_ms: 0,
            });
        }
        self.step(node, HomeEvent::Beat(beat));
    }

    fn becomes_home(&mut self, node: usize, shard: Shard, epoch: u64, lines: &[Line]) {
        self.books.count("homes");
        let began_after_loss = self.began_after_loss(node, &shard, epoch);
        let knows = self
            .books
            .knows_of_loss(&shard, &self.nodes[node].heads(&shard));
        let is_accepted = self.books.accepted.contains(&shard);
        assert!(
            !knows || is_accepted || !began_after_loss,
            "book losses: {node} goes on with {shard:?} in {epoch}, knows {:?}",
            self.nodes[node].heads(&shard)
        );
        let one = &mut self.nodes[node];
        one.disk_homes.insert(shard.clone());
        if shard == topic() {
            let again = self.broken == Broken::ApprovedIsPending;
            let (shell, out) = Shell::restored(epoch, lines, again);
            one.shell = Some(shell);
            one.topic = lines.iter().map(|line| line.meaning).collect();
            one.began_after_loss = began_after_loss;
            self.follow(node, out);
        }
    }

    /// Whether an epoch of a node's began when the log had lost messages already.
    fn began_after_loss(&self, node: usize, shard: &Shard, epoch: u64) -> bool {
        let Some(kept) = self.books.kept else {
            return false;
        };
        let own = incarnation(node, self.nodes[node].life);
        let subject = ShardSubject {
            shard: shard.clone(),
            epoch,
        };
        if self.books.began_before_loss(&subject, own) {
            return false;
        }
        let messages = self.log.stream.iter().zip(&self.log.authors);
        let mut messages =
            messages.filter(|(one, author)| one.sequence > kept && author.incarnation == own);
        messages.any(|(one, _)| {
            let is_begun = matches!(one.message.record, HomeRecord::Begun { .. });
            is_begun && one.subject == subject
        })
    }

    fn steps_down(&mut self, node: usize, shard: &Shard) {
        let one = &mut self.nodes[node];
        one.disk_homes.remove(shard);
        if *shard == topic() {
            one.shell = None;
        }
    }

    fn answered(&mut self, node: usize, ticket: u64, stored: bool) {
        let one = &mut self.nodes[node];
        if let Some(Ticket::Change(change)) = one.tickets.get(&ticket)
            && !stored
            && self.last == Some(*change)
        {
            // It is tried again.
            self.last = None;
        }
        if let Some(Ticket::Snapshot) = one.tickets.get(&ticket)
            && stored
        {
            self.books.count("snapshots");
        }
        let Some(Ticket::Topic { proposal, meaning }) = one.tickets.get(&ticket).copied() else {
            return;
        };
        one.tickets.remove(&ticket);
        if stored {
            one.topic.insert(meaning);
            self.books.acknowledged.insert(meaning);
        }
        if let Some(shell) = self.nodes[node].shell.as_mut() {
            let out = shell.written(proposal, stored);
            self.follow(node, out);
        }
    }

    fn confirmed(&mut self, node: usize, ticket: u64) {
        if let Some(Ticket::Change(change)) = self.nodes[node].tickets.remove(&ticket) {
            self.books.count("confirmed");
            self.books.answered.insert(change);
            // A home that knows nothing of a loss does not know all members.
            let is_lost = self.books.has_lost(&Shard::Common);
            if !is_lost || self.books.accepted.contains(&Shard::Common) {
                self.books.confirmed.insert(change);
            }
            (0..self.nodes.len()).for_each(|node| self.check_admission(node));
        }
    }

    /// No admission after a confirmed change that the node has not applied.
    pub(crate) fn check_admission(&mut self, node: usize) {
        let one = &self.nodes[node];
        let admits = match self.broken {
            Broken::AdmitsWithoutEnd => matches!(one.admission, Admission::Until(_)),
            _ => one.admission.admits(one.time(self.now_ms).steady_ms),
        };
        if !one.is_up || one.is_stopped || !admits {
            return;
        }
        let knows = self
            .books
            .knows_of_loss(&Shard::Common, &one.heads(&Shard::Common));
        let is_accepted = self.books.accepted.contains(&Shard::Common);
        let knows = knows && self.knows_after_loss(node);
        let is_excused = self.books.has_lost(&Shard::Common) && !is_accepted && !knows;
        let one = &self.nodes[node];
        self.books.admits(&one.name, &one.applied, is_excused);
    }

    /// Whether a node knows a message of the common journal that came after the loss.
    fn knows_after_loss(&self, node: usize) -> bool {
        let kept = self.books.kept.unwrap_or_default() as usize;
        let heads = self.nodes[node].heads(&Shard::Common);
        let mut later = self.log.stream.iter().skip(kept);
        later.any(|one| one.subject.shard == Shard::Common && heads.contains(&one.head()))
    }

    /// Carries the consequences of a step of the topic out.
    pub(crate) fn follow(&mut self, node: usize, out: Vec<Out>) {
        for one in out {
            match one {
                Out::Store { proposal, meaning } => self.stores(node, proposal, meaning),
                Out::Held { request } => self.replies(node, request, Frame::Held { request }),
                Out::Settled { request } => self.replies(node, request, Frame::Settled { request }),
                Out::Run {
                    proposal,
                    operation,
                } => self.runs(node, proposal, operation),
            }
        }
    }

    fn stores(&mut self, node: usize, proposal: u64, meaning: Meaning) {
        let ticket = self.nodes[node].ticket(Ticket::Topic { proposal, meaning });
        let line = Line::new(meaning);
        self.step(
            node,
            HomeEvent::Store {
                shard: topic(),
                ticket,
                line,
            },
        );
        if self.broken == Broken::EarlyAcks {
            self.answered(node, ticket, true);
        }
    }

    fn replies(&mut self, node: usize, request: u64, frame: Frame) {
        let shell = self.nodes[node].shell.as_ref();
        let door = shell
            .and_then(|shell| shell.requests.get(&request))
            .map(|(door, _)| *door);
        if let Some(door) = door {
            self.send(node, door, frame);
        }
    }

    fn runs(&mut self, node: usize, proposal: u64, operation: u64) {
        let one = &self.nodes[node];
        let knows = self.books.knows_of_loss(&topic(), &one.heads(&topic()));
        let is_accepted = self.books.accepted.contains(&topic());
        let may_know = one.began_after_loss && knows;
        let is_excused = self.books.has_lost(&topic()) && (is_accepted || !may_know);
        self.books.run(proposal, is_excused);
        let Some(epoch) = one.shell.as_ref().map(|shell| shell.epoch) else {
            return;
        };
        let life = one.life;
        let input = Input::Answered { epoch, operation };
        let after_ms = 1 + self.prng.below(800) as u64;
        self.after(after_ms, Happening::Input { node, life, input });
    }

    fn renews(&mut self, node: usize, renewal: TokenUse, before_ms: u64) {
        let now_ms = self.nodes[node].time(self.now_ms).steady_ms;
        let left_ms = before_ms.saturating_sub(now_ms) * 98 / 100;
        let is_late = left_ms == 0 && self.broken != Broken::LateFlights;
        if is_late {
            return;
        }
        let flight = self.number();
        self.books.flies(renewal.account, flight);
        let takes_ms = (1 + self.prng.below(1_900) as u64).min(left_ms.max(1));
        let takes_ms = if left_ms == 0 { 500 } else { takes_ms };
        let life = self.nodes[node].life;
        let ending = Happening::FlightEnds {
            flight,
            renewal,
            node,
            life,
        };
        self.after(takes_ms, ending);
    }

    pub(crate) fn flight_ends(&mut self, flight: u64, renewal: TokenUse, node: usize, life: u64) {
        self.books.lands(renewal.account, flight);
        let line = (!self.prng.one_in(5)).then(|| Line::new(Meaning::Tokens(flight)));
        let one = &self.nodes[node];
        if self.prng.one_in(10) || !one.is_up || one.life != life {
            return;
        }
        self.results.insert(renewal, line);
        self.hands_in(node, renewal);
    }

    /// Hands in a result of a renewal at a node, perhaps twice, and again until a home says that it
    /// is over.
    pub(crate) fn hands_in(&mut self, node: usize, renewal: TokenUse) {
        let Some(line) = self.results.get(&renewal).cloned() else {
            return;
        };
        for _ in 0..=usize::from(self.prng.one_in(8)) {
            let event = HomeEvent::Renewed {
                account: renewal.account.into(),
                flight: renewal.flight,
                line: line.clone(),
            };
            let life = self.nodes[node].life;
            self.takes(node, life, Input::Home(event));
        }
        let homes = (0..self.nodes.len()).filter(|node| self.is_home(*node, &Shard::Common));
        let homes: Vec<usize> = homes.collect();
        let next = self.prng.below(self.nodes.len());
        let node = homes.first().copied().unwrap_or(next);
        let after_ms = 300 + self.prng.below(2_000) as u64;
        if self.broken != Broken::ResultsOnce {
            self.after(after_ms, Happening::HandIn { renewal, node });
        }
    }

    /// A frame comes to a node.
    pub(crate) fn frame(&mut self, node: usize, from: usize, frame: Frame) {
        let one = &mut self.nodes[node];
        match frame {
            Frame::Beat(beat) => self.beat(node, beat),
            Frame::Spread(stored) => self.step(node, HomeEvent::Spread(stored)),
            Frame::Request {
                request,
                proposal,
                epoch,
            } => {
                let shell = one.shell.as_mut().filter(|shell| shell.epoch == epoch);
                if let Some(shell) = shell {
                    let out = shell.request(from, request, proposal);
                    self.follow(node, out);
                }
            }
            Frame::Held { request } => {
                if let Some(waiting) = one.door.get_mut(&request) {
                    waiting.proposal = Some(request + PROPOSAL);
                }
            }
            Frame::Settled { request } => {
                let waits = one.door.remove(&request).is_some();
                if waits || self.broken == Broken::AnswersAgain {
                    self.books.settles(request);
                }
            }
        }
    }
}
