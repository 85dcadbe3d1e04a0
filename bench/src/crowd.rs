//! A crowd in one room: connections that all hear, some of which talk; every delivery checked, on
//! one thread.
//!
//! Owns the sockets and the books: which message is still to be heard by how many. Must not know
//! how it is timed.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::envelope::{self, Envelopes};
use crate::wires::{Frame, Wire};

/// One connection.
struct Member {
    socket: TcpStream,
    /// The start of a frame whose end has not come.
    begun: Vec<u8>,
    /// What the kernel did not take yet.
    out: Vec<u8>,
    greeted: bool,
    over: bool,
    /// The next number that it must hear of each talker.
    next: Vec<u64>,
    /// What it heard, in order, as one figure.
    order: u64,
}

/// A message on its way.
struct Open {
    since: Instant,
    left: usize,
}

/// What a crowd is made of.
pub struct Plan {
    /// How the server is spoken to.
    pub wire: Wire,
    /// Its address.
    pub to: String,
    /// Those who hear.
    pub members: usize,
    /// The first of them talk.
    pub talkers: usize,
    /// The topics that participants are spread over.
    pub topics: usize,
    /// The number of the first participant, and from each to the next. Only a silent crowd may be
    /// in several topics.
    pub first: usize,
    pub stride: usize,
    /// The last of the members never read, once they are in.
    pub deaf: usize,
    /// Envelope bytes.
    pub size: usize,
    /// What is said.
    pub kind: String,
    /// Every message is refused, and its sender is told.
    pub refused: bool,
}

/// What was heard.
#[derive(Default)]
pub struct Seen {
    /// Messages that everybody has heard, and how long that took, if they were said while
    /// measuring.
    pub nanos: Vec<u32>,
    /// Single deliveries.
    pub deliveries: u64,
    /// What was not what it must be.
    pub wrong: u64,
    /// Messages of the server itself.
    pub others: u64,
    /// When the last byte came.
    pub last: Option<Instant>,
    /// Times are kept.
    pub measuring: bool,
}

/// The crowd.
pub struct Crowd {
    plan: Plan,
    poll: Poll,
    members: Vec<Member>,
    envelopes: Vec<Envelopes>,
    open: VecDeque<Open>,
    /// The number of the oldest open message.
    base: u64,
    scratch: Vec<u8>,
    /// What is known so far.
    pub seen: Seen,
}

impl Crowd {
    /// Nobody yet.
    ///
    /// # Panics
    /// Without readiness events.
    pub fn new(plan: Plan) -> Self {
        let talker =
            |at| Envelopes::new(&name(plan.first + at * plan.stride), &plan.kind, plan.size);
        let envelopes = (0..plan.talkers).map(talker);
        Self {
            poll: Poll::new().expect("readiness events"),
            members: Vec::new(),
            envelopes: envelopes.collect(),
            open: VecDeque::new(),
            base: 0,
            scratch: vec![0; 256 << 10],
            seen: Seen::default(),
            plan,
        }
    }

    /// Lets so many more in, without waiting for them.
    ///
    /// # Panics
    /// When nobody listens.
    pub fn enter(&mut self, count: usize) {
        for _ in 0..count {
            let number = self.plan.first + self.members.len() * self.plan.stride;
            let mut socket =
                std::net::TcpStream::connect(&self.plan.to).expect("a listening server");
            socket.set_nodelay(true).expect("a socket");
            let hello = self.plan.wire.hello(
                &self.plan.to,
                &topic(number, self.plan.topics),
                &name(number),
            );
            socket
                .write_all(hello.as_bytes())
                .expect("room for a hello");
            socket.set_nonblocking(true).expect("a socket");
            let mut socket = TcpStream::from_std(socket);
            let token = Token(self.members.len());
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll
                .registry()
                .register(&mut socket, token, interest)
                .expect("a place");
            let next = (0..self.plan.talkers as u64).collect();
            let (begun, out, greeted) = (Vec::new(), Vec::new(), self.plan.wire == Wire::Bare);
            self.members.push(Member {
                socket,
                begun,
                out,
                greeted,
                over: false,
                next,
                order: 0,
            });
        }
    }

    /// Waits until everybody is in and nothing has come for a while.
    ///
    /// # Panics
    /// When somebody does not get in.
    pub fn settle(&mut self, quiet: Duration) {
        let begun = Instant::now();
        loop {
            self.turn(Duration::from_millis(5));
            let silent =
                self.seen.last.unwrap_or(begun).elapsed() > quiet && begun.elapsed() > quiet;
            if silent && self.members.iter().all(|member| member.greeted) {
                return;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "not everybody gets in"
            );
        }
    }

    /// The last ones stop reading.
    ///
    /// # Panics
    /// Never.
    pub fn deafen(&mut self) {
        let from = self.members.len() - self.plan.deaf;
        for member in &mut self.members[from..] {
            self.poll
                .registry()
                .deregister(&mut member.socket)
                .expect("a registered socket");
        }
    }

    /// How many of those who do not read were cut off.
    pub fn cut_off(&mut self) -> usize {
        let from = self.members.len() - self.plan.deaf;
        let mut lost = vec![0; 1 << 20];
        let mut ended = |member: &mut Member| loop {
            match member.socket.read(&mut lost) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != ErrorKind::WouldBlock,
            }
        };
        self.members[from..]
            .iter_mut()
            .filter_map(|member| ended(member).then_some(()))
            .count()
    }

    /// Messages that not everybody has heard.
    pub fn on_the_way(&self) -> usize {
        self.open.len()
    }

    /// How many different orders were heard.
    pub fn orders(&self) -> usize {
        let hearing = &self.members[..self.members.len() - self.plan.deaf];
        hearing
            .iter()
            .map(|member| member.order)
            .collect::<std::collections::HashSet<_>>()
            .len()
    }

    /// Says so many messages, due at this time; the talkers take turns.
    pub fn say(&mut self, count: usize, due: Instant) {
        let hearers = if self.plan.refused {
            1
        } else {
            self.plan.members - self.plan.deaf
        };
        let (talkers, topic) = (self.plan.talkers, topic(0, 1));
        let first = self.base + self.open.len() as u64;
        for number in first..first + count as u64 {
            let talker = (number % talkers as u64) as usize;
            let message = self.envelopes[talker].number(number);
            self.plan
                .wire
                .put(&mut self.members[talker].out, &topic, message);
            self.open.push_back(Open {
                since: due,
                left: hearers,
            });
        }
        for talker in 0..talkers.min(count) {
            self.members[((first + talker as u64) % talkers as u64) as usize].flush();
        }
    }

    /// Takes what has come.
    ///
    /// # Panics
    /// When the kernel gives no events.
    pub fn turn(&mut self, wait: Duration) {
        let mut events = Events::with_capacity(1024);
        match self.poll.poll(&mut events, Some(wait)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return,
            done => done.expect("events"),
        }
        for event in &events {
            let at = event.token().0;
            if event.is_writable() {
                self.members[at].flush();
            }
            if event.is_readable() {
                self.hear(at);
            }
        }
        while self.open.front().is_some_and(|open| open.left == 0) {
            self.open.pop_front();
            self.base += 1;
        }
    }

    fn hear(&mut self, at: usize) {
        let mut scratch = std::mem::take(&mut self.scratch);
        loop {
            let begun = std::mem::take(&mut self.members[at].begun);
            scratch[..begun.len()].copy_from_slice(&begun);
            let room = scratch.len() - begun.len();
            let count = match self.members[at].socket.read(&mut scratch[begun.len()..]) {
                Ok(0) => {
                    self.over(at);
                    break;
                }
                Ok(count) => count,
                Err(error) => {
                    self.members[at].begun = begun;
                    if error.kind() != ErrorKind::WouldBlock {
                        self.over(at);
                    }
                    break;
                }
            };
            let whole = begun.len() + count;
            let done = self.frames(at, &scratch[..whole]);
            if done == 0 && whole == scratch.len() {
                scratch.resize(2 * whole, 0);
            }
            self.members[at].begun = scratch[done..whole].to_vec();
            if count < room {
                break;
            }
        }
        self.scratch = scratch;
    }

    fn over(&mut self, at: usize) {
        if !std::mem::replace(&mut self.members[at].over, true) {
            self.seen.wrong += 1;
        }
    }

    /// Reads the frames that are there whole; gives their length.
    fn frames(&mut self, at: usize, bytes: &[u8]) -> usize {
        let now = Instant::now();
        self.seen.last = Some(now);
        let mut done = 0;
        if !self.members[at].greeted {
            let Some(len) = self.plan.wire.greeted(bytes) else {
                return 0;
            };
            let refused = self.plan.wire == Wire::Ws && !bytes.starts_with(b"HTTP/1.1 101");
            assert!(!refused, "not let in: {}", String::from_utf8_lossy(bytes));
            self.members[at].greeted = true;
            done = len;
        }
        while let Some((frame, len)) = self.plan.wire.frame(&bytes[done..]) {
            match frame {
                Frame::Message(message) => self.message(at, message, now),
                Frame::Other => {}
                Frame::Close(_) => self.over(at),
            }
            done += len;
        }
        done
    }

    fn message(&mut self, at: usize, message: &[u8], now: Instant) {
        let Some(first) = self.envelopes.first() else {
            return self.seen.others += 1;
        };
        // What was admitted before the rest is refused is no matter of the others.
        let number = match first
            .peek(message)
            .filter(|_| !self.plan.refused || at < self.plan.talkers)
        {
            Some(number) => number,
            None if self.plan.refused => match envelope::refused(message) {
                Some(number) => return self.heard(number, now),
                None => return self.seen.others += 1,
            },
            None => return self.seen.others += 1,
        };
        let talkers = self.envelopes.len() as u64;
        let talker = (number % talkers) as usize;
        let member = &mut self.members[at];
        if member.next[talker] != number || !self.envelopes[talker].is(message) {
            self.seen.wrong += 1;
        }
        member.next[talker] = number + talkers;
        member.order = (member.order ^ number).wrapping_mul(0x0000_0100_0000_01b3);
        self.heard(number, now);
    }

    fn heard(&mut self, number: u64, now: Instant) {
        self.seen.deliveries += 1;
        let place = number
            .checked_sub(self.base)
            .and_then(|place| usize::try_from(place).ok());
        let Some(open) = place
            .and_then(|place| self.open.get_mut(place))
            .filter(|open| open.left > 0)
        else {
            self.seen.wrong += 1;
            return;
        };
        open.left -= 1;
        if open.left == 0 && self.seen.measuring {
            let took = now.saturating_duration_since(open.since).as_nanos();
            self.seen
                .nanos
                .push(u32::try_from(took).unwrap_or(u32::MAX));
        }
    }
}

impl Member {
    fn flush(&mut self) {
        while !self.out.is_empty() {
            match self.socket.write(&self.out) {
                Ok(count) => drop(self.out.drain(..count)),
                Err(_) => return,
            }
        }
    }
}

/// A participant's name; all are as long.
pub fn name(number: usize) -> String {
    format!("r{number:04}")
}

/// The topic of a participant.
pub fn topic(number: usize, topics: usize) -> String {
    if topics == 1 {
        "main".to_owned()
    } else {
        format!("t{}", number % topics)
    }
}
