//! Bytes of messages of journals.

use bytes::Bytes;
use cluster::{
    CommonEntry, HomeMessage, HomeRecord, KeptEpoch, KeptMember, KeptState, ShardSubject, Slot,
    StoredMessage,
};

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
            HomeRecord::Kept(kept) => {
                self.tag(6);
                self.kept(kept);
            }
        }
    }

    fn kept(&mut self, kept: &KeptState) {
        self.list(&kept.epochs, |out, one| {
            out.number(one.epoch);
            out.head(&one.follows);
            out.sum(one.sum);
        });
        self.number(kept.accepted);
        for members in [&kept.members, &kept.left, &kept.before] {
            self.list(members, |out, one| {
                out.text(&one.name);
                out.number(one.slot.0.into());
            });
        }
        self.number(kept.changed);
        self.number(kept.entries);
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
            CommonEntry::Used {
                account,
                flight,
                is_open,
            } => {
                self.tag(6);
                self.text(account);
                self.number(*flight);
                self.flag(*is_open);
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
            6 => HomeRecord::Kept(Box::new(self.kept()?)),
            _ => return self.later(),
        })
    }

    fn kept(&mut self) -> Option<KeptState> {
        let epoch = |input: &mut Self| {
            Some(KeptEpoch {
                epoch: input.number()?,
                follows: input.head()?,
                sum: input.array()?,
            })
        };
        Some(KeptState {
            epochs: self.list(epoch)?,
            accepted: self.number()?,
            members: self.list(Self::member)?,
            left: self.list(Self::member)?,
            before: self.list(Self::member)?,
            changed: self.number()?,
            entries: self.number()?,
        })
    }

    fn member(&mut self) -> Option<KeptMember> {
        Some(KeptMember {
            name: self.name()?,
            slot: self.slot()?,
        })
    }

    fn slot(&mut self) -> Option<Slot> {
        u16::try_from(self.number()?).ok().map(Slot)
    }

    fn entry(&mut self) -> Option<CommonEntry<ShardLine>> {
        Some(match self.tag()? {
            1 => CommonEntry::Line(ShardLine(self.bytes()?)),
            2 => CommonEntry::NodeJoined {
                name: self.name()?,
                slot: self.slot()?,
            },
            3 => CommonEntry::NodeLeft { name: self.name()? },
            4 => CommonEntry::Renewing {
                account: self.text()?,
            },
            5 => CommonEntry::Renewed {
                account: self.text()?,
            },
            6 => CommonEntry::Used {
                account: self.text()?,
                flight: self.number()?,
                is_open: self.flag()?,
            },
            _ => return self.later(),
        })
    }
}
