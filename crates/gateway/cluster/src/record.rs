//! Records of a shard's journal, and their chain: a changed, lost, moved or repeated message does
//! not fit the one before it.

use std::fmt::Debug;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::node::{NodeId, NodeLife, Slot};
use crate::shard::ShardSubject;

/// A line of a journal's owner, as the runner wrote it. It is never read here.
pub trait HomeLine: Clone + Debug {
    /// Its bytes, which the chain covers.
    fn bytes(&self) -> &[u8];
}

/// A place in a shard's journal. Places are ordered by epoch, then by number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JournalHead {
    /// The epoch in which the message was written; 0 before the first.
    pub epoch: u64,
    /// The number of the message, from 1 and through all epochs; 0 before the first.
    pub number: u64,
    /// The start of the SHA-256 of the message, its number, its subject and the sum before it.
    pub sum: [u8; 8],
    /// The sum of the first message of the epoch: a log that is set back far enough has another
    /// epoch under the same number.
    pub begun: [u8; 8],
}

impl JournalHead {
    /// The place of this record if it follows in the subject of an epoch.
    #[must_use]
    pub fn next<R: HomeLine>(&self, subject: &ShardSubject, record: &HomeRecord<R>) -> Self {
        let epoch = subject.epoch;
        let number = self.number + 1;
        let mut hash = Sha256::new()
            .chain_update(self.sum)
            .chain_update(number.to_le_bytes())
            .chain_update(epoch.to_le_bytes())
            .chain_update(subject.shard.as_str());
        record.hash(&mut hash);
        let mut sum = [0; 8];
        let hash = hash.finalize();
        sum.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
        let begun = match record {
            HomeRecord::Begun { .. } => sum,
            _ => self.begun,
        };
        Self {
            epoch,
            number,
            sum,
            begun,
        }
    }

    fn hash(&self, hash: &mut Sha256) {
        hash.update(self.epoch.to_le_bytes());
        hash.update(self.number.to_le_bytes());
        hash.update(self.sum);
    }
}

/// One line of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommonEntry<R> {
    /// A line of the runner's.
    Line(R),
    /// A node is a member from here on.
    NodeJoined {
        /// Its name.
        name: Arc<str>,
        /// Its slot.
        slot: Slot,
    },
    /// A node is no member from here on.
    NodeLeft {
        /// Its name.
        name: Arc<str>,
    },
    /// A node is about to use a refresh token: its request may be under way from here on.
    Renewing {
        /// The account that the token is of.
        account: Arc<str>,
    },
    /// That request is over. A line with the tokens stands beside it if there are any.
    Renewed {
        /// The account.
        account: Arc<str>,
    },
    /// The latest use of an account's refresh token before a snapshot, of which this is a part.
    Used {
        /// The account.
        account: Arc<str>,
        /// The number of the message with the intent.
        flight: u64,
        /// Whether the request may be under way.
        is_open: bool,
    },
}

/// A member, or a former one, with its slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptMember {
    /// Its name.
    pub name: Arc<str>,
    /// Its slot.
    pub slot: Slot,
}

/// The beginning of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptEpoch {
    /// The epoch.
    pub epoch: u64,
    /// The place that it follows.
    pub follows: JournalHead,
    /// The sum of its first message.
    pub sum: [u8; 8],
}

/// The beginning of a snapshot: the entries behind it say what is in force, in place of all lines
/// before, and this is what else the messages before it say. So a reader may begin here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptState {
    /// The latest epochs, oldest first: at most [`EPOCHS_KEPT_MAX`](crate::EPOCHS_KEPT_MAX).
    pub epochs: Vec<KeptEpoch>,
    /// The last epoch in which a loss was accepted; 0 if none was.
    pub accepted: u64,
    /// The members.
    pub members: Vec<KeptMember>,
    /// Former members, in the order in which they left.
    pub left: Vec<KeptMember>,
    /// The members before the latest change of them.
    pub before: Vec<KeptMember>,
    /// The number of the message that made that change; 0 if there was none.
    pub changed: u64,
    /// The number of the entries behind it that belong to the snapshot. Without the last of them it
    /// is none.
    pub entries: u64,
}

impl KeptMember {
    fn hash(&self, hash: &mut Sha256) {
        text(6, &self.name, hash);
        hash.update(self.slot.0.to_le_bytes());
    }
}

impl KeptState {
    fn hash(&self, hash: &mut Sha256) {
        hash.update((self.epochs.len() as u64).to_le_bytes());
        for one in &self.epochs {
            hash.update(one.epoch.to_le_bytes());
            one.follows.hash(hash);
            hash.update(one.sum);
        }
        for members in [&self.members, &self.left, &self.before] {
            hash.update((members.len() as u64).to_le_bytes());
            members.iter().for_each(|one| one.hash(hash));
        }
        for number in [self.accepted, self.changed, self.entries] {
            hash.update(number.to_le_bytes());
        }
    }

    /// About its bytes in a message.
    pub(crate) fn bytes(&self) -> usize {
        let members = [&self.members, &self.left, &self.before].into_iter();
        let members = members.flatten().map(|one| one.name.len() + 16);
        64 + 64 * self.epochs.len() + members.sum::<usize>()
    }
}

/// A record of a shard's journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HomeRecord<R> {
    /// An epoch begins: the first message of its subject.
    Begun {
        /// The home.
        node: NodeId,
        /// The last message of the epoch before.
        follows: JournalHead,
    },
    /// Lines of the home, as one group. An empty group says that the home is still there.
    Lines(Vec<CommonEntry<R>>),
    /// The epoch is over, and its home may write nothing more.
    Fenced {
        /// The node that ends it: its successor, or the home itself.
        by: NodeId,
        /// The name of the successor that a home hands its shard to.
        next: Option<Arc<str>>,
    },
    /// Messages that were acknowledged are gone: the shard stops until a person has looked.
    Lost {
        /// The place up to which messages are known to have been written.
        known: JournalHead,
    },
    /// A person has looked: the shard goes on without what was lost before this epoch.
    Accepted,
    /// A snapshot begins.
    Kept(Box<KeptState>),
}

fn text(tag: u8, text: &str, hash: &mut Sha256) {
    hash.update([tag]);
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}

impl NodeId {
    fn hash(&self, tag: u8, hash: &mut Sha256) {
        text(tag, &self.name, hash);
        hash.update(self.incarnation.directory.to_le_bytes());
        hash.update(self.incarnation.life.to_le_bytes());
    }
}

impl<R: HomeLine> CommonEntry<R> {
    fn hash(&self, hash: &mut Sha256) {
        match self {
            Self::Line(line) => {
                hash.update([1]);
                hash.update((line.bytes().len() as u64).to_le_bytes());
                hash.update(line.bytes());
            }
            Self::NodeJoined { name, slot } => {
                text(2, name, hash);
                hash.update(slot.0.to_le_bytes());
            }
            Self::NodeLeft { name } => text(3, name, hash),
            Self::Renewing { account } => text(4, account, hash),
            Self::Renewed { account } => text(5, account, hash),
            Self::Used {
                account,
                flight,
                is_open,
            } => {
                text(6, account, hash);
                hash.update(flight.to_le_bytes());
                hash.update([u8::from(*is_open)]);
            }
        }
    }

    /// The line, if it is one.
    pub(crate) fn line(&self) -> Option<&R> {
        match self {
            Self::Line(line) => Some(line),
            _ => None,
        }
    }

    /// Whether it changes the members.
    pub(crate) fn changes_members(&self) -> bool {
        matches!(self, Self::NodeJoined { .. } | Self::NodeLeft { .. })
    }

    /// About the bytes of the entry in a message.
    pub(crate) fn bytes(&self) -> usize {
        let body = match self {
            Self::Line(line) => line.bytes().len(),
            Self::NodeJoined { name, .. } | Self::NodeLeft { name } => name.len(),
            Self::Renewing { account } | Self::Renewed { account } | Self::Used { account, .. } => {
                account.len()
            }
        };
        body + 64
    }
}

impl<R: HomeLine> HomeRecord<R> {
    fn hash(&self, hash: &mut Sha256) {
        match self {
            Self::Begun { node, follows } => {
                node.hash(1, hash);
                follows.hash(hash);
            }
            Self::Lines(entries) => {
                hash.update([2]);
                hash.update((entries.len() as u64).to_le_bytes());
                entries.iter().for_each(|entry| entry.hash(hash));
            }
            Self::Fenced { by, next } => {
                by.hash(3, hash);
                text(
                    u8::from(next.is_some()),
                    next.as_deref().unwrap_or(""),
                    hash,
                );
            }
            Self::Lost { known } => {
                hash.update([4]);
                known.hash(hash);
            }
            Self::Accepted => hash.update([5]),
            Self::Kept(kept) => {
                hash.update([6]);
                kept.hash(hash);
            }
        }
    }
}

/// A message of a journal, with its place in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeMessage<R> {
    /// Its number.
    pub number: u64,
    /// Its sum.
    pub sum: [u8; 8],
    /// The sum of the first message of its epoch.
    pub begun: [u8; 8],
    /// The record.
    pub record: HomeRecord<R>,
}

/// A message as the log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage<R> {
    /// The subject.
    pub subject: ShardSubject,
    /// The sequence that the log gave it: later messages of a stream have greater ones.
    pub sequence: u64,
    /// The message.
    pub message: HomeMessage<R>,
}

impl<R> StoredMessage<R> {
    /// Its place.
    pub fn head(&self) -> JournalHead {
        JournalHead {
            epoch: self.subject.epoch,
            number: self.message.number,
            sum: self.message.sum,
            begun: self.message.begun,
        }
    }
}

/// The id of an append: one that is repeated with the same id is stored once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppendId {
    /// The life of the process that appends.
    pub incarnation: NodeLife,
    /// The number of the append in it.
    pub number: u64,
}
