//! Bytes of messages of journals.

use bytes::Bytes;
use cluster::{CommonEntry, HomeMessage, HomeRecord, ShardSubject, Slot, StoredMessage};

use super::{Content, In, Out, Tail};
use crate::line::ShardLine;

/// The content of a record of the log.
pub(crate) fn write_message(message: &HomeMessage<ShardLine>) -> Vec<u8> {
    let mut out = Out::new();
    out.message(message);
    out.0
}

/// The message of a record of the log.
pub(crate) fn read_message(content: &Bytes) -> Content<HomeMessage<ShardLine>> {
    Content::of(content, Tail::None, In::message)
}

/// The content with which a stored message goes to all nodes.
pub(crate) fn write_stored(stored: &StoredMessage<ShardLine>) -> Vec<u8> {
    let mut out = Out::new();
    out.text(stored.subject.shard.as_str());
    out.number(stored.subject.epoch);
    out.number(stored.sequence);
    out.message(&stored.message);
    out.0
}

/// The stored message of such a content.
pub(crate) fn read_stored(content: &Bytes) -> Content<StoredMessage<ShardLine>> {
    Content::of(content, Tail::None, |input| {
        let subject = ShardSubject {
            shard: input.shard()?,
            epoch: input.number()?,
        };
        Some(StoredMessage {
            subject,
            sequence: input.number()?,
            message: input.message()?,
        })
    })
}

impl Out {
    fn message(&mut self, message: &HomeMessage<ShardLine>) {
        self.number(message.number);
        self.sum(message.sum);
        self.sum(message.begun);
        match &message.record {
            HomeRecord::Begun { node, follows } => {
                self.tag(1);
                self.node(node);
                self.head(follows);
            }
            HomeRecord::Lines(entries) => {
                self.tag(2);
                self.list(entries, Self::entry);
            }
            HomeRecord::Fenced { by, next } => {
                self.tag(3);
                self.node(by);
                self.option(next.as_ref(), |out, next| out.text(next));
            }
            HomeRecord::Lost { known } => {
                self.tag(4);
                self.head(known);
            }
            HomeRecord::Accepted => self.tag(5),
        }
    }

    fn entry(&mut self, entry: &CommonEntry<ShardLine>) {
        match entry {
            CommonEntry::Line(line) => {
                self.tag(1);
                self.bytes(&line.0);
            }
            CommonEntry::NodeJoined { name, slot } => {
                self.tag(2);
                self.text(name);
                self.number(slot.0.into());
            }
            CommonEntry::NodeLeft { name } => {
                self.tag(3);
                self.text(name);
            }
            CommonEntry::Renewing { account } => {
                self.tag(4);
                self.text(account);
            }
            CommonEntry::Renewed { account } => {
                self.tag(5);
                self.text(account);
            }
        }
    }
}

impl In {
    fn message(&mut self) -> Option<HomeMessage<ShardLine>> {
        Some(HomeMessage {
            number: self.number()?,
            sum: self.array()?,
            begun: self.array()?,
            record: self.record()?,
        })
    }

    fn record(&mut self) -> Option<HomeRecord<ShardLine>> {
        Some(match self.tag()? {
            1 => HomeRecord::Begun {
                node: self.node()?,
                follows: self.head()?,
            },
            2 => HomeRecord::Lines(self.list(Self::entry)?),
            3 => HomeRecord::Fenced {
                by: self.node()?,
                next: self.option(Self::name)?,
            },
            4 => HomeRecord::Lost {
                known: self.head()?,
            },
            5 => HomeRecord::Accepted,
            _ => return self.later(),
        })
    }

    fn entry(&mut self) -> Option<CommonEntry<ShardLine>> {
        Some(match self.tag()? {
            1 => CommonEntry::Line(ShardLine(self.bytes()?)),
            2 => CommonEntry::NodeJoined {
                name: self.name()?,
                slot: Slot(u16::try_from(self.number()?).ok()?),
            },
            3 => CommonEntry::NodeLeft { name: self.name()? },
            4 => CommonEntry::Renewing {
                account: self.text()?,
            },
            5 => CommonEntry::Renewed {
                account: self.text()?,
            },
            _ => return self.later(),
        })
    }
}
