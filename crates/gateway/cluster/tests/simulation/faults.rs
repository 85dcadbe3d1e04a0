//! Faults: cuts, drops, slow and lost logs, stops, crashes.

use crate::node::Frame;
use crate::prng::Prng;
use crate::world::{Happening, World};

/// A kind of fault that happens alone.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Alone {
    /// Long stops of processes.
    Stops,
    /// Ends of processes that hand over before.
    Drains,
}

/// The faults of the moment.
pub(crate) struct Faults {
    /// Whether nothing goes from one node to another.
    cuts: Vec<Vec<bool>>,
    /// Nodes that do not reach the log.
    away: Vec<bool>,
    pub(crate) is_log_down: bool,
    pub(crate) is_log_slow: bool,
    /// Whether the log takes no message that it has not.
    pub(crate) is_log_full: bool,
    pub(crate) is_bus_slow: bool,
    /// Frames of a thousand.
    pub(crate) drops: usize,
    pub(crate) doubles: usize,
    /// Reads of a hundred that are of a replica that lags.
    pub(crate) lags: usize,
    /// Between two effects one of so many times a process stops, or ends; 0 never.
    pub(crate) breaks: usize,
    /// Whether the log loses what it acknowledged, and when.
    pub(crate) loses_at_ms: Option<u64>,
    /// The time between two faults, milliseconds.
    every_ms: usize,
    /// The only kind of fault that happens; `None` if each does.
    alone: Option<Alone>,
}

impl Faults {
    pub(crate) fn new(prng: &mut Prng, nodes: usize) -> Self {
        let loses = prng.one_in(4);
        let is_calm = prng.one_in(5);
        let breaks = if is_calm {
            0
        } else {
            prng.any(&[0, 400, 2_000])
        };
        let every_ms = if is_calm {
            6_000
        } else {
            prng.any(&[400, 1_000, 3_000])
        };
        Self {
            cuts: vec![vec![false; nodes]; nodes],
            away: vec![false; nodes],
            is_log_down: false,
            is_log_slow: false,
            is_log_full: false,
            is_bus_slow: false,
            drops: prng.any(&[0, 20, 100]),
            doubles: prng.any(&[0, 50]),
            lags: prng.any(&[0, 30, 80]),
            breaks,
            loses_at_ms: loses.then(|| 6_000 + prng.below(11_000) as u64),
            every_ms,
            alone: None,
        }
    }

    /// Has nothing fail but this.
    pub(crate) fn leave_alone(&mut self, alone: Alone) {
        (self.drops, self.doubles, self.lags, self.breaks) = (0, 0, 0, 0);
        (self.loses_at_ms, self.alone) = (None, Some(alone));
        self.every_ms = match alone {
            Alone::Stops => 6_000,
            Alone::Drains => 1_500,
        };
    }

    pub(crate) fn is_cut(&self, from: usize, to: usize) -> bool {
        self.cuts[from][to]
    }

    pub(crate) fn is_log_away(&self, node: usize) -> bool {
        self.is_log_down || self.away[node]
    }

    pub(crate) fn bus_delay_ms(&self, prng: &mut Prng) -> u64 {
        let slow = self.is_bus_slow && prng.one_in(3);
        prng.below(if slow { 4_000 } else { 10 }) as u64
    }

    pub(crate) fn log_delay_ms(&self, prng: &mut Prng) -> u64 {
        let slow = self.is_log_slow && prng.one_in(2);
        1 + prng.below(if slow { 2_500 } else { 8 }) as u64
    }

    fn cut(&mut self, node: usize, other: usize, is_cut: bool, both: bool) {
        if node != other {
            self.cuts[node][other] = is_cut;
            if both {
                self.cuts[other][node] = is_cut;
            }
        }
    }

    fn heal_links(&mut self) {
        self.cuts.iter_mut().flatten().for_each(|cut| *cut = false);
        self.away.fill(false);
        (self.is_log_down, self.is_log_full) = (false, false);
    }

    fn heal(&mut self) {
        self.cuts.iter_mut().flatten().for_each(|cut| *cut = false);
        self.away.fill(false);
        (self.is_log_down, self.is_log_full) = (false, false);
        (self.is_log_slow, self.is_bus_slow) = (false, false);
        (self.drops, self.doubles, self.lags, self.breaks) = (0, 0, 0, 0);
    }
}

impl World {
    pub(crate) fn fault(&mut self) {
        if !self.is_chaos() {
            return;
        }
        let after_ms = 1 + self.prng.below(2 * self.faults.every_ms) as u64;
        self.after(after_ms, Happening::Fault);
        if self.faults.loses_at_ms.is_some_and(|at| at <= self.now_ms) {
            self.faults.loses_at_ms = None;
            self.lose();
        }
        let node = self.prng.below(self.nodes.len());
        let other = self.prng.below(self.nodes.len());
        let on = self.prng.one_in(2);
        match self.faults.alone {
            Some(Alone::Stops) => return self.stop(node),
            Some(Alone::Drains) => return self.drains(node),
            None => {}
        }
        match self.prng.below(14) {
            0 => self.crash(node),
            1 | 2 => self.stop(node),
            3 => self.faults.cut(node, other, on, false),
            4 => self.faults.cut(node, other, on, true),
            5 => self.isolate(node, on),
            6 => self.faults.away[node] = on,
            7 => self.faults.is_log_down = on && self.prng.one_in(3),
            8 => self.faults.is_log_slow = on,
            9 => self.faults.is_bus_slow = on,
            10 => self.faults.heal_links(),
            11 => self.pollutes(),
            12 => self.faults.is_log_full = on && self.prng.one_in(2),
            _ => self.drains(node),
        }
    }

    /// Cuts a node off from all others, or joins it to them.
    fn isolate(&mut self, node: usize, is_cut: bool) {
        for other in 0..self.nodes.len() {
            self.faults.cut(node, other, is_cut, true);
        }
        if self.prng.one_in(2) {
            self.faults.away[node] = is_cut;
        }
    }

    /// Has another user of the log write into a journal.
    fn pollutes(&mut self) {
        let subjects = self.log.subjects();
        if !subjects.is_empty() && self.prng.one_in(3) {
            self.books.count("foreign records");
            let subject = self.prng.any(&subjects);
            self.log.pollute(subject);
        }
    }

    fn lose(&mut self) {
        let messages = 1 + self.prng.below(12);
        let lost = self.log.lose(messages);
        self.books.lose(self.log.stream.len() as u64, lost);
    }

    pub(crate) fn crash(&mut self, node: usize) {
        let one = &mut self.nodes[node];
        if !one.is_up {
            return;
        }
        self.books.count("crashes");
        for request in one.door.keys() {
            self.books.leaves(*request);
        }
        one.crash();
        let longest_ms = self.prng.any(&[500, 3_000, 12_000]);
        let after_ms = 50 + self.prng.below(longest_ms) as u64;
        self.after(after_ms, Happening::Restart { node });
    }

    pub(crate) fn restart(&mut self, node: usize) {
        let one = &mut self.nodes[node];
        if one.is_up {
            return;
        }
        one.restart();
        let life = one.life;
        self.after(0, Happening::Tick { node, life });
    }

    /// A process stops for a while, as by SIGSTOP: its clock goes on, and what comes waits.
    pub(crate) fn stop(&mut self, node: usize) {
        let one = &mut self.nodes[node];
        if !one.is_up || one.is_stopped {
            return;
        }
        self.books.count("stops");
        one.is_stopped = true;
        let life = one.life;
        let longest_ms = if self.faults.alone.is_some() {
            15_000
        } else {
            self.prng.any(&[500, 5_000, 12_000])
        };
        let after_ms = 50 + self.prng.below(longest_ms) as u64;
        self.after(after_ms, Happening::Goes { node, life });
    }

    pub(crate) fn goes_on(&mut self, node: usize, life: u64) {
        let one = &mut self.nodes[node];
        if one.life == life && one.is_up && one.is_stopped {
            one.is_stopped = false;
            self.check_admission(node);
            self.works_off(node);
        }
    }

    fn drains(&mut self, node: usize) {
        if !self.nodes[node].is_up || self.nodes[node].is_stopped {
            return;
        }
        self.books.count("drains");
        self.step(node, cluster::HomeEvent::Drain);
        self.works_off(node);
        // A node that drains ends afterwards.
        let life = self.nodes[node].life;
        self.after(700, Happening::Ends { node, life });
    }

    /// All is well from now on.
    pub(crate) fn heal(&mut self) {
        self.faults.heal();
        for node in 0..self.nodes.len() {
            let life = self.nodes[node].life;
            self.goes_on(node, life);
            self.restart(node);
        }
        self.configure_all();
    }

    /// Publishes a frame to all other nodes.
    pub(crate) fn publish(&mut self, from: usize, frame: &Frame) {
        for to in 0..self.nodes.len() {
            if to != from {
                self.send(from, to, frame.clone());
            }
        }
    }
}
