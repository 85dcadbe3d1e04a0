//! World of one seed: what happens when, and who takes it.

use std::collections::BTreeMap;

use cluster::{
    AppendId, AppendResult, HomeEffect, HomeEvent, HomeMessage, HomeRecord, Shard, ShardSubject,
};

use crate::books::Books;
use crate::broken::Broken;
use crate::faults::{Alone, Faults};
use crate::line::Line;
use crate::log::{Log, Pages, WantedPurge};
use crate::node::{Frame, Input, Node, TokenUse};
use crate::prng::Prng;

/// The time of faults, and the time after it in which all is well, milliseconds.
pub(crate) const CHAOS_MS: u64 = 18_000;
pub(crate) const QUIET_MS: u64 = 24_000;
const NODE_TICK_MS: u64 = 240;

/// A request to the log.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    Append {
        subject: ShardSubject,
        expected: Option<u64>,
        id: AppendId,
        message: HomeMessage<Line>,
    },
    Look {
        shard: Shard,
        request: u64,
    },
    Read {
        shard: Shard,
        request: u64,
        after: u64,
    },
    Purge(WantedPurge),
}

/// Something that happens at its time.
#[derive(Debug)]
pub(crate) enum Happening {
    Input {
        node: usize,
        life: u64,
        input: Input,
    },
    /// A request of a node reaches the log.
    Work {
        node: usize,
        life: u64,
        work: Work,
    },
    Tick {
        node: usize,
        life: u64,
    },
    Goes {
        node: usize,
        life: u64,
    },
    Restart {
        node: usize,
    },
    Ends {
        node: usize,
        life: u64,
    },
    FlightEnds {
        flight: u64,
        renewal: TokenUse,
        node: usize,
        life: u64,
    },
    /// A result of a renewal is handed in again.
    HandIn {
        renewal: TokenUse,
        node: usize,
    },
    Fault,
    Client,
}

pub(crate) struct World {
    pub(crate) prng: Prng,
    pub(crate) broken: Broken,
    pub(crate) now_ms: u64,
    queue: BTreeMap<(u64, u64), Happening>,
    next: u64,
    pub(crate) nodes: Vec<Node>,
    pub(crate) log: Log,
    pub(crate) faults: Faults,
    pub(crate) books: Books,
    pub(crate) numbers: u64,
    /// Results of renewals that no home has said to be over.
    pub(crate) results: BTreeMap<TokenUse, Option<Line>>,
    pub(crate) traced: bool,
    /// A change that is made when all is well.
    pub(crate) last: Option<u64>,
}

impl World {
    pub(crate) fn new(seed: u64, broken: Broken) -> Self {
        let mut prng = Prng(seed);
        let count = prng.any(&[2, 3, 3, 3, 4, 5]);
        let drift = |prng: &mut Prng| prng.below(20_000) as i64 - 10_000;
        let nodes: Vec<Node> = (0..count)
            .map(|at| Node::new(at, drift(&mut prng)))
            .collect();
        let mut faults = Faults::new(&mut prng, count);
        match broken {
            Broken::ReceiptIsContact | Broken::AdmitsWithoutEnd => faults.leave_alone(Alone::Stops),
            Broken::ResultsOnce => faults.leave_alone(Alone::Drains),
            _ => {}
        }
        let mut world = Self {
            prng,
            broken,
            now_ms: 0,
            queue: BTreeMap::new(),
            next: 0,
            nodes,
            log: Log::default(),
            faults,
            books: Books::default(),
            numbers: 0,
            results: BTreeMap::new(),
            last: None,
            traced: std::env::var("HOMES_TRACE").is_ok(),
        };
        for node in 0..count {
            let after_ms = world.prng.below(300) as u64;
            world.after(after_ms, Happening::Tick { node, life: 0 });
        }
        world.after(1_000, Happening::Fault);
        world.after(1_000, Happening::Client);
        world
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(crate) fn after(&mut self, ms: u64, happening: Happening) {
        self.next += 1;
        self.queue.insert((self.now_ms + ms, self.next), happening);
    }

    pub(crate) fn is_chaos(&self) -> bool {
        self.now_ms < CHAOS_MS
    }

    pub(crate) fn run(&mut self) {
        self.run_until(CHAOS_MS);
        self.heal();
        self.run_until(CHAOS_MS + QUIET_MS / 2);
        self.accept_losses();
        self.decide_all();
        self.run_until(CHAOS_MS + QUIET_MS);
        self.finish();
    }

    pub(crate) fn run_until(&mut self, until_ms: u64) {
        while let Some(entry) = self.queue.first_entry() {
            if entry.key().0 >= until_ms {
                break;
            }
            let ((at, _), happening) = entry.remove_entry();
            self.now_ms = at;
            self.happens(happening);
        }
        self.now_ms = until_ms;
    }

    fn happens(&mut self, happening: Happening) {
        match happening {
            Happening::Input { node, life, input } => self.takes(node, life, input),
            Happening::Work { node, life, work } => self.works(node, life, work),
            Happening::Tick { node, life } => {
                if self.nodes[node].life != life || !self.nodes[node].is_up {
                    return;
                }
                let after_ms = NODE_TICK_MS + self.prng.below(20) as u64;
                self.after(after_ms, Happening::Tick { node, life });
                if !self.nodes[node].is_stopped {
                    self.takes(node, life, Input::Home(HomeEvent::Tick));
                    self.tend_door(node);
                }
            }
            Happening::Goes { node, life } => self.goes_on(node, life),
            Happening::Restart { node } => self.restart(node),
            Happening::Ends { node, life } => {
                if self.nodes[node].life == life {
                    self.crash(node);
                }
            }
            Happening::FlightEnds {
                flight,
                renewal,
                node,
                life,
            } => self.flight_ends(flight, renewal, node, life),
            Happening::HandIn { renewal, node } => self.hands_in(node, renewal),
            Happening::Fault => self.fault(),
            Happening::Client => self.client(),
        }
    }

    /// A process takes something in, now or when it goes on.
    pub(crate) fn takes(&mut self, node: usize, life: u64, input: Input) {
        let one = &mut self.nodes[node];
        if !one.is_up || one.life != life {
            return;
        }
        one.inbox.push_back(input);
        self.works_off(node);
    }

    /// Carries out what the process has to do, and takes in what waits for it.
    pub(crate) fn works_off(&mut self, node: usize) {
        loop {
            self.carry_out(node);
            let one = &mut self.nodes[node];
            if !one.is_up || one.is_stopped {
                return;
            }
            let Some(input) = one.inbox.pop_front() else {
                break;
            };
            self.takes_in(node, input);
        }
        self.check_admission(node);
    }

    fn takes_in(&mut self, node: usize, input: Input) {
        match input {
            Input::Home(event) => self.step(node, event),
            Input::Answered { epoch, operation } => {
                let shell = self.nodes[node]
                    .shell
                    .as_mut()
                    .filter(|shell| shell.epoch == epoch);
                if let Some(shell) = shell {
                    let out = shell.answered(operation);
                    self.follow(node, out);
                }
            }
            Input::Frame { from, frame } => self.frame(node, from, frame),
        }
    }

    pub(crate) fn step(&mut self, node: usize, event: HomeEvent<Line>) {
        let one = &mut self.nodes[node];
        let time = one.time(self.now_ms);
        trace_event(self.traced, self.now_ms, &one.name, &event);
        self.books.count((&event).into());
        let effects = one.homes.step(time, event);
        let names = effects.iter().map(<&'static str>::from);
        names.for_each(|name| self.books.count(name));
        trace_effects(self.traced, self.now_ms, &one.name, &effects);
        one.backlog.extend(effects);
    }

    /// Sends a frame to one node.
    pub(crate) fn send(&mut self, from: usize, to: usize, frame: Frame) {
        if to != from
            && (self.faults.is_cut(from, to) || self.prng.below(1_000) < self.faults.drops)
        {
            return;
        }
        let copies = 1 + usize::from(self.prng.below(1_000) < self.faults.doubles);
        for _ in 0..copies {
            let delay_ms = self.faults.bus_delay_ms(&mut self.prng);
            let life = self.nodes[to].life;
            let input = Input::Frame {
                from,
                frame: frame.clone(),
            };
            self.after(
                delay_ms,
                Happening::Input {
                    node: to,
                    life,
                    input,
                },
            );
        }
    }

    /// Sends a request to the log.
    pub(crate) fn ask_log(&mut self, node: usize, work: Work) {
        let life = self.nodes[node].life;
        if self.faults.is_log_away(node) {
            if let Work::Append { subject, id, .. } = &work
                && self.prng.one_in(2)
            {
                let result = AppendResult::Unknown;
                let event = HomeEvent::Appended {
                    shard: subject.shard.clone(),
                    id: *id,
                    result,
                };
                self.after(
                    900,
                    Happening::Input {
                        node,
                        life,
                        input: Input::Home(event),
                    },
                );
            }
            return;
        }
        let delay_ms = self.faults.log_delay_ms(&mut self.prng);
        self.after(delay_ms, Happening::Work { node, life, work });
    }

    fn works(&mut self, node: usize, life: u64, work: Work) {
        if self.faults.is_log_down {
            return;
        }
        let Some(event) = self.log_answers(work) else {
            return;
        };
        if self.faults.is_log_away(node) || self.prng.below(1_000) < self.faults.drops {
            return;
        }
        let delay_ms = self.faults.log_delay_ms(&mut self.prng);
        self.after(
            delay_ms,
            Happening::Input {
                node,
                life,
                input: Input::Home(event),
            },
        );
    }

    /// The messages that a replica has less.
    fn lag(&mut self) -> usize {
        if self.prng.below(100) < self.faults.lags {
            self.prng.below(8)
        } else {
            0
        }
    }

    /// The replicas that serve a reading. A server that has crashed in the middle of a purge is the
    /// only one.
    fn pages(&mut self, shard: &Shard) -> Pages {
        let lags = [self.lag(), self.lag()];
        let length = if self.log.is_purged_in_part(shard) {
            usize::MAX
        } else {
            1 + self.prng.below(30)
        };
        Pages { lags, length }
    }

    /// Removes what is before a snapshot. A server may crash when it has removed a part, and
    /// answers nothing.
    fn purges(&mut self, wanted: &WantedPurge) -> Option<HomeEvent<Line>> {
        let crashes = self.is_chaos() && self.prng.one_in(4);
        // The oldest are removed first.
        let from = 1 + self.prng.below(wanted.before as usize) as u64;
        let from = if crashes { from } else { wanted.before };
        if !self.log.has_end(wanted) && self.broken != Broken::PurgesUnseen {
            return None;
        }
        let emptied = self.log.purge(wanted, from);
        self.books.emptied(&emptied);
        let is_covered = self.log.is_covered(&wanted.shard);
        assert!(is_covered, "book purges: {wanted:?} removes what is needed");
        self.books
            .count(if crashes { "purges in part" } else { "purges" });
        (!crashes).then(|| HomeEvent::Purged {
            shard: wanted.shard.clone(),
            before: wanted.before,
        })
    }

    /// Removes what is before a snapshot that has begun just now, where the rule is broken.
    fn purges_early(&mut self, index: usize) {
        let stored = &self.log.stream[index];
        let is_kept = matches!(stored.message.record, HomeRecord::Kept(_));
        if is_kept && self.broken == Broken::PurgesEarly {
            let wanted = WantedPurge {
                shard: stored.subject.shard.clone(),
                epoch: stored.subject.epoch,
                before: stored.sequence,
                end: stored.head(),
                end_sequence: stored.sequence,
            };
            self.purges(&wanted);
        }
    }

    fn log_answers(&mut self, work: Work) -> Option<HomeEvent<Line>> {
        Some(match work {
            Work::Append {
                subject,
                expected,
                id,
                message,
            } => {
                let shard = subject.shard.clone();
                let before = self.log.stream.len();
                let result = if self.faults.is_log_full && !self.log.has_id(id) {
                    self.books.count("not taken");
                    AppendResult::NotTaken
                } else {
                    self.log.append(subject, expected, id, message)
                };
                if self.log.stream.len() > before {
                    self.books.appended(&self.log.stream[before], id);
                    self.purges_early(before);
                }
                HomeEvent::Appended { shard, id, result }
            }
            Work::Look { shard, request } => {
                let lag = self.lag();
                let last = self.log.last(&shard, lag);
                HomeEvent::Looked {
                    shard,
                    request,
                    last,
                }
            }
            Work::Read {
                shard,
                request,
                after,
            } => {
                let pages = self.pages(&shard);
                let messages = self.log.read(&shard, after, pages);
                HomeEvent::Read {
                    shard,
                    request,
                    messages,
                }
            }
            Work::Purge(wanted) => return self.purges(&wanted),
        })
    }
}

fn trace_event(traced: bool, now_ms: u64, name: &str, event: &HomeEvent<Line>) {
    match event {
        _ if !traced => {}
        HomeEvent::Tick => {}
        HomeEvent::Beat(beat) => {
            let (from, revision, homes) = (&beat.node, beat.revision, &beat.homes);
            eprintln!(
                "{now_ms:>6} {name} <- beat {} of {from:?} at {revision:?} {homes:?}",
                beat.beat
            );
        }
        other => eprintln!("{now_ms:>6} {name} <- {other:?}"),
    }
}

fn trace_effects(traced: bool, now_ms: u64, name: &str, effects: &[HomeEffect<Line>]) {
    let is_shown = |effect: &&HomeEffect<Line>| {
        !matches!(effect, HomeEffect::Publish(_) | HomeEffect::KeepHead { .. })
    };
    for effect in effects.iter().filter(is_shown).filter(|_| traced) {
        eprintln!("{now_ms:>6} {name} -> {effect:?}");
    }
}
