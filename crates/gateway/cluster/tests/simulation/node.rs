//! A node of the simulation: its process, its clock, its disk, its doors.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use cluster::{
    Admission, Heartbeat, HomeEffect, HomeEvent, Homes, HomesConfig, JournalHead, NoAdmission,
    NodeId, NodeLife, NodeTime, Shard,
};
use model::TopicName;

use crate::line::{Line, Meaning};
use crate::log::Stored;
use crate::shell::Shell;

pub(crate) const CUT_OFF_MS: u64 = 3_000;
pub(crate) const RENEWAL_MS: u64 = 2_000;
const BASE_MS: u64 = 1_000_000;

/// A shard, an epoch, and the sum of its first message.
type HeadKey = (Shard, u64, [u8; 8]);

/// A frame of the bus.
#[derive(Debug, Clone)]
pub(crate) enum Frame {
    Beat(Arc<Heartbeat>),
    Spread(Stored),
    /// A request of a door to the home of an epoch; with its proposal if the door knows it.
    Request {
        request: u64,
        proposal: Option<u64>,
        epoch: u64,
    },
    Held {
        request: u64,
    },
    Settled {
        request: u64,
    },
}

/// Something that a process takes in.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    Home(HomeEvent<Line>),
    Frame {
        from: usize,
        frame: Frame,
    },
    /// The server has answered what an epoch's home sent it.
    Answered {
        epoch: u64,
        operation: u64,
    },
}

/// A runner's number that waits for an answer of `Homes`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ticket {
    Topic { proposal: u64, meaning: Meaning },
    Change(u64),
    Renewal,
    Snapshot,
}

/// Accounts: one whose refresh token is used often, and one whose is not.
const ACCOUNTS: [&str; 2] = ["often", "rarely"];

pub(crate) fn account(rarely: bool) -> &'static str {
    ACCOUNTS[usize::from(rarely)]
}

/// A use of a refresh token, by the number that the rules gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TokenUse {
    pub(crate) account: &'static str,
    pub(crate) flight: u64,
}

impl TokenUse {
    pub(crate) fn new(of: &str, flight: u64) -> Self {
        let account = account(*of == *ACCOUNTS[1]);
        Self { account, flight }
    }
}

/// A request that waits at its door.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Waiting {
    pub(crate) proposal: Option<u64>,
    pub(crate) epoch: u64,
    pub(crate) sent_ms: u64,
}

pub(crate) struct Node {
    pub(crate) at: usize,
    pub(crate) name: Arc<str>,
    pub(crate) life: u64,
    pub(crate) is_up: bool,
    pub(crate) is_stopped: bool,
    pub(crate) homes: Homes<Line>,
    /// Parts of a million by which its clock is faster.
    pub(crate) drift: i64,
    pub(crate) wall_ms: u64,
    pub(crate) backlog: VecDeque<HomeEffect<Line>>,
    pub(crate) inbox: VecDeque<Input>,
    pub(crate) admission: Admission,
    /// Changes of access that it has applied, and tokens.
    pub(crate) applied: BTreeSet<u64>,
    tokens: BTreeSet<u64>,
    /// The lines of the topic, as long as it is its home.
    pub(crate) topic: BTreeSet<Meaning>,
    pub(crate) shell: Option<Shell>,
    /// Whether the log had lost messages when its epoch of the topic began.
    pub(crate) began_after_loss: bool,
    pub(crate) tickets: BTreeMap<u64, Ticket>,
    pub(crate) next_ticket: u64,
    /// The number of its latest heartbeat.
    pub(crate) sent: u64,
    pub(crate) door: BTreeMap<u64, Waiting>,
    pub(crate) disk_heads: BTreeMap<HeadKey, JournalHead>,
    pub(crate) disk_homes: BTreeSet<Shard>,
    /// Places that it was given to know, by the account of the simulation.
    pub(crate) known: BTreeMap<HeadKey, JournalHead>,
}

pub(crate) fn topic() -> Shard {
    Shard::Topic(TopicName::new("main").unwrap())
}

impl Node {
    pub(crate) fn new(at: usize, drift: i64) -> Self {
        let name: Arc<str> = format!("n{at}").into();
        Self {
            at,
            homes: Homes::new(config(at, 0, &name)),
            name,
            life: 0,
            is_up: true,
            is_stopped: false,
            drift,
            wall_ms: 1_000_000_000,
            backlog: VecDeque::new(),
            inbox: VecDeque::new(),
            admission: Admission::No(NoAdmission::NotMember),
            applied: BTreeSet::new(),
            tokens: BTreeSet::new(),
            topic: BTreeSet::new(),
            shell: None,
            began_after_loss: false,
            tickets: BTreeMap::new(),
            next_ticket: 0,
            sent: 0,
            door: BTreeMap::new(),
            disk_heads: BTreeMap::new(),
            disk_homes: BTreeSet::new(),
            known: BTreeMap::new(),
        }
    }

    /// The process begins anew, with what its disk has.
    pub(crate) fn restart(&mut self) {
        let mut config = config(self.at, self.life + 1, &self.name);
        config.former_homes = self.disk_homes.iter().cloned().collect();
        let heads = self.disk_heads.iter();
        config.heads = heads
            .map(|((shard, ..), head)| (shard.clone(), *head))
            .collect();
        self.life += 1;
        self.is_up = true;
        self.known = self.disk_heads.clone();
        self.homes = Homes::new(config);
    }

    /// The process ends.
    pub(crate) fn crash(&mut self) {
        self.is_up = false;
        self.is_stopped = false;
        self.backlog.clear();
        self.inbox.clear();
        self.admission = Admission::No(NoAdmission::NotMember);
        self.forget();
        self.shell = None;
        self.tickets.clear();
        self.door.clear();
    }

    /// Lines of the common journal count.
    pub(crate) fn apply(&mut self, lines: &[Line]) {
        for line in lines {
            match line.meaning {
                Meaning::Change(change) => self.applied.insert(change),
                Meaning::Tokens(tokens) => self.tokens.insert(tokens),
                _ => false,
            };
        }
    }

    /// No line of the common journal counts any more.
    pub(crate) fn forget(&mut self) {
        self.applied.clear();
        self.tokens.clear();
    }

    /// The lines of a shard that are in force.
    pub(crate) fn in_force(&self, shard: &Shard) -> Vec<Line> {
        if *shard == topic() {
            return self.topic.iter().copied().map(Line::new).collect();
        }
        let changes = self.applied.iter().copied().map(Meaning::Change);
        let tokens = self.tokens.iter().copied().map(Meaning::Tokens);
        changes.chain(tokens).map(Line::new).collect()
    }

    /// Its clocks at a true time.
    pub(crate) fn time(&self, now_ms: u64) -> NodeTime {
        let drift = now_ms as i64 * self.drift / 1_000_000;
        let steady_ms = (BASE_MS * (1 + self.at as u64) + now_ms).saturating_add_signed(drift);
        NodeTime {
            steady_ms,
            wall_ms: self.wall_ms + now_ms,
        }
    }

    pub(crate) fn ticket(&mut self, ticket: Ticket) -> u64 {
        self.next_ticket += 1;
        self.tickets.insert(self.next_ticket, ticket);
        self.next_ticket
    }

    /// The node is given to know a place.
    pub(crate) fn know(&mut self, shard: &Shard, head: &JournalHead) {
        let known = self
            .known
            .entry((shard.clone(), head.epoch, head.begun))
            .or_insert(*head);
        if known.number < head.number {
            *known = *head;
        }
    }

    pub(crate) fn heads(&self, shard: &Shard) -> Vec<JournalHead> {
        let known = self.known.iter().filter(|((of, ..), _)| of == shard);
        known.map(|(_, head)| *head).collect()
    }
}

pub(crate) fn incarnation(at: usize, life: u64) -> NodeLife {
    let directory = at as u64;
    NodeLife { directory, life }
}

fn config(at: usize, life: u64, name: &Arc<str>) -> HomesConfig {
    let node = NodeId {
        name: Arc::clone(name),
        incarnation: incarnation(at, life),
    };
    let Shard::Topic(topic) = topic() else {
        unreachable!()
    };
    HomesConfig {
        cut_off_ms: CUT_OFF_MS,
        renewal_ms: RENEWAL_MS,
        ..HomesConfig::new(node, vec![topic])
    }
}
