//! The world of a simulation: what the log has, and what is under way.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::time::Duration;

use bytes::Bytes;

use super::chance::Chance;
use crate::bus::BusMessage;
use crate::log::{
    Append, Appended, FRAME_BYTES_MAX, LogError, MessageId, PAGE_BYTES_MAX, PAGE_RECORDS_MAX, Page,
    Record, Sequence, TRY_MAX,
};
use crate::subject::{SubjectName, SubjectPattern};

/// The time in which tries with one name append one record.
const DUPLICATES: Duration = Duration::from_secs(120);
/// The most records that one loss takes.
const LOST_RECORDS_MAX: u64 = 3;

/// A node of the simulation.
pub type NodeNumber = u16;
/// A command under way.
pub type Ticket = u64;
/// A subscription.
pub type SubscriptionNumber = u64;

/// Faults of a world. The default has none, and answers within a millisecond.
#[derive(Debug, Clone)]
pub struct Faults {
    /// The time of each way to the log and back.
    pub log_delay: RangeInclusive<Duration>,
    /// Commands to the log, of a thousand, that get lost before it, and as many answers.
    pub log_drops: u16,
    /// The most records that a read may lack at the end.
    pub stale: u64,
    /// Appends, of a thousand, after which the log has lost some of its last records.
    pub losses: u16,
    /// The time of a message's way.
    pub bus_delay: RangeInclusive<Duration>,
    /// Messages, of a thousand, that are dropped.
    pub bus_drops: u16,
    /// Messages, of a thousand, that arrive twice.
    pub bus_doubles: u16,
}

impl Default for Faults {
    fn default() -> Self {
        let quick = Duration::from_micros(50)..=Duration::from_micros(500);
        Self {
            log_delay: quick.clone(),
            log_drops: 0,
            stale: 0,
            losses: 0,
            bus_delay: quick,
            bus_drops: 0,
            bus_doubles: 0,
        }
    }
}

impl Faults {
    /// Faults of all kinds, which follow from a seed; a loss of records in one seed of eight.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut chance = Chance::new(seed ^ 0x5eed);
        let slow = Duration::from_millis(1 + chance.below(200));
        let loses = chance.below(8) == 0;
        let mut rate = |most| u16::try_from(chance.below(most)).unwrap_or_default();
        Self {
            log_delay: Duration::from_micros(100)..=slow,
            log_drops: rate(150),
            losses: if loses { 60 } else { 0 },
            bus_delay: Duration::from_micros(50)..=slow / 2,
            bus_drops: rate(150),
            bus_doubles: rate(150),
            stale: u64::from(rate(5)),
        }
    }
}

/// A command to the log.
#[derive(Debug, Clone)]
pub enum LogCommand {
    /// As [`crate::Log::append`].
    Append(Append),
    /// As [`crate::Log::read`].
    Read(SubjectPattern, Sequence),
    /// As [`crate::Log::purge`].
    Purge(SubjectPattern, Sequence),
    /// As [`crate::Log::last`].
    Last(SubjectName),
}

/// The log's answer to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogAnswer {
    /// To an append.
    Appended(Appended),
    /// To a read.
    Read(Result<Page, LogError>),
    /// To a purge.
    Purged(Result<(), LogError>),
    /// To the question for the last record.
    Last(Result<Option<Record>, LogError>),
}

/// A piece of news for a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// The log answers a command.
    Answered(Ticket, LogAnswer),
    /// A message arrives at a subscription.
    Arrived(SubscriptionNumber, BusMessage),
}

/// An event of the future, at a time that is drawn already.
#[derive(Debug)]
enum Due {
    Reaches(NodeNumber, Ticket, LogCommand),
    Answers(NodeNumber, Ticket, LogAnswer),
    GivenUp(Ticket, LogAnswer),
    Arrives(SubscriptionNumber, BusMessage),
}

/// A simulated log and bus.
#[derive(Debug)]
pub struct World {
    faults: Faults,
    chance: Chance,
    now: Duration,
    count: u64,
    due: BTreeMap<(Duration, u64), Due>,
    open: HashSet<Ticket>,
    records: BTreeMap<Sequence, Stored>,
    last: Sequence,
    ids: HashMap<MessageId, (Sequence, Duration)>,
    lost: u64,
    log_is_down: bool,
    off_log: HashSet<NodeNumber>,
    cuts: HashSet<(NodeNumber, NodeNumber)>,
    subscriptions: BTreeMap<SubscriptionNumber, Listener>,
}

/// A record in the log, of whatever writer.
#[derive(Debug)]
struct Stored {
    subject: String,
    /// The record; `None` for one that no [`crate::Log::append`] can have made.
    record: Option<Record>,
}

#[derive(Debug)]
struct Listener {
    node: NodeNumber,
    pattern: SubjectPattern,
}

impl World {
    /// An empty world.
    #[must_use]
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self {
            faults,
            chance: Chance::new(seed),
            now: Duration::ZERO,
            count: 0,
            due: BTreeMap::new(),
            open: HashSet::new(),
            records: BTreeMap::new(),
            last: 0,
            ids: HashMap::new(),
            lost: 0,
            log_is_down: false,
            off_log: HashSet::new(),
            cuts: HashSet::new(),
            subscriptions: BTreeMap::new(),
        }
    }

    /// Gives the log a command of a node. It is answered within [`TRY_MAX`].
    pub fn command(&mut self, from: NodeNumber, command: LogCommand) -> Ticket {
        let ticket = self.next();
        self.open.insert(ticket);
        let given_up = Due::GivenUp(ticket, command.given_up());
        self.put(TRY_MAX, given_up);
        if self.reaches_log(from) && !self.chance.happens(self.faults.log_drops) {
            let delay = self.chance.within(&self.faults.log_delay);
            self.put(delay, Due::Reaches(from, ticket, command));
        }
        ticket
    }

    /// Publishes a message of a node.
    pub fn publish(&mut self, from: NodeNumber, subject: &SubjectName, bytes: &Bytes) {
        let listeners = self.subscriptions.iter();
        let listeners = listeners.filter(|(_, listener)| listener.pattern.matches(subject));
        let listeners: Vec<_> = listeners.map(|(number, one)| (*number, one.node)).collect();
        for (number, to) in listeners {
            if self.is_cut(from, to) || self.chance.happens(self.faults.bus_drops) {
                continue;
            }
            let is_doubled = self.chance.happens(self.faults.bus_doubles);
            for _ in 0..=u8::from(is_doubled) {
                let delay = self.chance.within(&self.faults.bus_delay);
                let message = BusMessage {
                    subject: subject.clone(),
                    bytes: bytes.clone(),
                };
                self.put(delay, Due::Arrives(number, message));
            }
        }
    }

    /// Subscribes a node to a pattern.
    pub fn subscribe(&mut self, node: NodeNumber, pattern: SubjectPattern) -> SubscriptionNumber {
        let number = self.next();
        self.subscriptions
            .insert(number, Listener { node, pattern });
        number
    }

    /// Ends a subscription.
    pub fn unsubscribe(&mut self, number: SubscriptionNumber) {
        self.subscriptions.remove(&number);
    }

    /// The time of the next piece of news, if one is under way.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// Lets the time come, and what happens until then.
    pub fn advance(&mut self, now: Duration) -> Vec<Happened> {
        let mut news = Vec::new();
        while let Some(entry) = self.due.first_entry() {
            if entry.key().0 > now {
                break;
            }
            self.now = entry.key().0.max(self.now);
            let due = entry.remove();
            news.extend(self.happens(due));
        }
        self.now = self.now.max(now);
        news
    }

    /// Sets the time of what is put in next, which news that are due do not wait for.
    pub fn set_now(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Cuts or heals the way from one node to another.
    pub fn cut(&mut self, from: NodeNumber, to: NodeNumber, is_cut: bool) {
        if is_cut {
            self.cuts.insert((from, to));
        } else {
            self.cuts.remove(&(from, to));
        }
    }

    /// Cuts or heals the way of a node to the log, in both directions.
    pub fn cut_log(&mut self, node: NodeNumber, is_cut: bool) {
        if is_cut {
            self.off_log.insert(node);
        } else {
            self.off_log.remove(&node);
        }
    }

    /// Stops or starts the log for all nodes.
    pub fn stop_log(&mut self, is_down: bool) {
        self.log_is_down = is_down;
    }

    /// Makes the log lose its last records, as a majority that is set back does.
    pub fn lose(&mut self, records: u64) {
        for _ in 0..records {
            if let Some((_, stored)) = self.records.pop_last() {
                self.lost += 1;
                if let Some(id) = stored.record.and_then(|record| record.id) {
                    self.ids.remove(&id);
                }
            }
        }
        self.last = self.records.last_key_value().map_or(0, |(last, _)| *last);
    }

    /// Records that the log has lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The records of the log, without those that no [`crate::Log::append`] can have made.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        let all = self.records.values();
        all.filter_map(|stored| stored.record.as_ref())
    }

    /// Appends what another user of the engine writes: any subject, any length, no name.
    pub fn append_foreign(&mut self, subject: &str, bytes: Bytes) -> Sequence {
        self.last += 1;
        let sequence = self.last;
        let name = subject.parse::<SubjectName>().ok();
        let name = name.filter(|_| bytes.len() <= FRAME_BYTES_MAX);
        let record = name.map(|subject| Record {
            subject,
            sequence,
            id: None,
            bytes,
        });
        let subject = subject.to_owned();
        self.records.insert(sequence, Stored { subject, record });
        sequence
    }

    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    fn put(&mut self, delay: Duration, due: Due) {
        let number = self.next();
        self.due.insert((self.now + delay, number), due);
    }

    fn is_cut(&self, from: NodeNumber, to: NodeNumber) -> bool {
        self.cuts.contains(&(from, to))
    }

    fn reaches_log(&self, node: NodeNumber) -> bool {
        !self.log_is_down && !self.off_log.contains(&node)
    }

    fn happens(&mut self, due: Due) -> Option<Happened> {
        match due {
            Due::Reaches(from, ticket, command) => {
                if self.reaches_log(from) {
                    let answer = self.apply(command);
                    if !self.chance.happens(self.faults.log_drops) {
                        let delay = self.chance.within(&self.faults.log_delay);
                        self.put(delay, Due::Answers(from, ticket, answer));
                    }
                }
                None
            }
            Due::Answers(to, ..) if !self.reaches_log(to) => None,
            Due::Answers(_, ticket, answer) | Due::GivenUp(ticket, answer) => {
                let is_open = self.open.remove(&ticket);
                is_open.then_some(Happened::Answered(ticket, answer))
            }
            Due::Arrives(number, message) => {
                let is_open = self.subscriptions.contains_key(&number);
                is_open.then_some(Happened::Arrived(number, message))
            }
        }
    }

    fn apply(&mut self, command: LogCommand) -> LogAnswer {
        match command {
            LogCommand::Append(append) => LogAnswer::Appended(self.append(append)),
            LogCommand::Read(pattern, from) => LogAnswer::Read(Ok(self.read(&pattern, from))),
            LogCommand::Purge(pattern, before) => {
                self.records.retain(|sequence, stored| {
                    *sequence >= before || !pattern.matches_text(&stored.subject)
                });
                LogAnswer::Purged(Ok(()))
            }
            LogCommand::Last(subject) => LogAnswer::Last(Ok(self.last_of(&subject))),
        }
    }

    fn append(&mut self, append: Append) -> Appended {
        if append.bytes.len() > FRAME_BYTES_MAX {
            return Appended::Refused(format!("more than {FRAME_BYTES_MAX} bytes"));
        }
        let now = self.now;
        self.ids.retain(|_, (_, at)| *at + DUPLICATES > now);
        // Before the expectation, which its first try has changed.
        if let Some((sequence, _)) = self.ids.get(&append.id) {
            return Appended::At(*sequence);
        }
        let last = self.last_of(&append.subject);
        let last = last.map_or(0, |record| record.sequence);
        if last != append.expected {
            return Appended::unexpected(append.expected, last);
        }
        self.last += 1;
        let sequence = self.last;
        self.ids.insert(append.id, (sequence, now));
        let record = Record {
            subject: append.subject,
            sequence,
            id: Some(append.id),
            bytes: append.bytes,
        };
        let stored = Stored {
            subject: record.subject.to_string(),
            record: Some(record),
        };
        self.records.insert(sequence, stored);
        if self.chance.happens(self.faults.losses) {
            let records = 1 + self.chance.below(LOST_RECORDS_MAX);
            self.lose(records);
        }
        Appended::At(sequence)
    }

    fn last_of(&self, subject: &SubjectName) -> Option<Record> {
        let mut newest_first = self.records.iter().rev();
        let newest = newest_first.find(|(_, stored)| stored.subject == subject.as_str());
        let (sequence, stored) = newest?;
        let foreign = || Record {
            subject: subject.clone(),
            sequence: *sequence,
            id: None,
            bytes: Bytes::new(),
        };
        Some(stored.record.clone().unwrap_or_else(foreign))
    }

    fn read(&mut self, pattern: &SubjectPattern, from: Sequence) -> Page {
        let lacks = self.chance.below(self.faults.stale + 1);
        let end = self.last.saturating_sub(lacks);
        let mut page = Page {
            records: Vec::new(),
            next: from,
        };
        let (mut count, mut bytes) = (0, 0);
        let records = self.records.range(from..);
        let records = records.filter(|(_, stored)| pattern.matches_text(&stored.subject));
        for (sequence, stored) in records {
            if *sequence > end || count >= PAGE_RECORDS_MAX || bytes >= PAGE_BYTES_MAX {
                break;
            }
            page.next = sequence + 1;
            count += 1;
            bytes += stored.record.as_ref().map_or(0, |one| one.bytes.len());
            page.records.extend(stored.record.clone());
        }
        page
    }
}

impl LogCommand {
    /// The answer when none comes.
    fn given_up(&self) -> LogAnswer {
        let why = "no answer in time".to_owned();
        match self {
            Self::Append(_) => LogAnswer::Appended(Appended::Unknown(why)),
            Self::Read(..) => LogAnswer::Read(Err(LogError::Unavailable(why))),
            Self::Purge(..) => LogAnswer::Purged(Err(LogError::Unavailable(why))),
            Self::Last(_) => LogAnswer::Last(Err(LogError::Unavailable(why))),
        }
    }
}
