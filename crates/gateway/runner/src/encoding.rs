//! Bytes of what nodes send each other and store: integers little-endian, texts and lists after
//! their length.
//!
//! A content is read, or is one of a later version, or is damaged. A later version may write more
//! behind the fields of a heartbeat, which this one does not read; anything else that it adds (a
//! record, an entry, a field of them) is one that this version must not take for absent.

mod beat;
mod message;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use bytes::Bytes;
use cluster::{JournalHead, NODE_NAME_BYTES_MAX, NUMBER_MAX, NodeId, NodeLife, Shard};
use model::TopicName;

pub(crate) use beat::{read_beat, write_beat};
pub(crate) use message::{read_message, read_stored, write_message, write_stored};

/// The first byte of each content: another one is another version's.
const FORMAT: u8 = 1;

/// A content that is being written.
#[derive(Debug, Default)]
struct Out(Vec<u8>);

impl Out {
    fn new() -> Self {
        Self(vec![FORMAT])
    }

    fn tag(&mut self, tag: u8) {
        self.0.push(tag);
    }

    fn flag(&mut self, is_so: bool) {
        self.tag(u8::from(is_so));
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn length(&mut self, length: usize) {
        // No content has so many bytes.
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.0.extend_from_slice(&length.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn option<T>(&mut self, option: Option<&T>, write: impl FnOnce(&mut Self, &T)) {
        self.flag(option.is_some());
        if let Some(value) = option {
            write(self, value);
        }
    }

    fn list<T>(&mut self, list: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.length(list.len());
        list.iter().for_each(|one| write(self, one));
    }

    fn sum(&mut self, sum: [u8; 8]) {
        self.0.extend_from_slice(&sum);
    }

    fn head(&mut self, head: &JournalHead) {
        self.number(head.epoch);
        self.number(head.number);
        self.sum(head.sum);
        self.sum(head.begun);
    }

    fn node(&mut self, node: &NodeId) {
        self.text(&node.name);
        self.number(node.incarnation.directory);
        self.number(node.incarnation.life);
    }
}

/// A content that is being read.
#[derive(Debug)]
struct In {
    rest: Bytes,
    /// Whether a later version's tag was met.
    is_later: bool,
}

/// A content that was read, or was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content<T> {
    /// This is it.
    Read(T),
    /// A later version has written it.
    Later,
    /// It makes no sense.
    Damaged,
}

impl<T> Content<T> {
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Content<U> {
        match self {
            Self::Read(value) => Content::Read(change(value)),
            Self::Later => Content::Later,
            Self::Damaged => Content::Damaged,
        }
    }

    /// Reads a content whole; what is behind it, if a tail is allowed, is a later version's.
    fn of(content: &Bytes, tail: Tail, read: impl FnOnce(&mut In) -> Option<T>) -> Self {
        let mut input = In {
            rest: content.clone(),
            is_later: false,
        };
        match input.tag() {
            Some(FORMAT) => {}
            Some(format) if format > FORMAT => return Self::Later,
            _ => return Self::Damaged,
        }
        match read(&mut input) {
            Some(value) if input.is_at_end() || tail == Tail::Allowed => Self::Read(value),
            Some(_) => Self::Later,
            None if input.is_later => Self::Later,
            None => Self::Damaged,
        }
    }
}

/// Whether more may stand behind what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    Allowed,
    None,
}

impl In {
    /// A tag that this version does not know.
    fn later<T>(&mut self) -> Option<T> {
        self.is_later = true;
        None
    }

    /// Whether all was read.
    fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, bytes: usize) -> Option<Bytes> {
        (bytes <= self.rest.len()).then(|| self.rest.split_to(bytes))
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.first_chunk::<N>().copied()
    }

    fn tag(&mut self) -> Option<u8> {
        self.array::<1>().map(|[tag]| tag)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.tag()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Eight bytes of whatever meaning.
    fn raw(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number, small enough for sums of it.
    fn number(&mut self) -> Option<u64> {
        self.raw().filter(|number| *number <= NUMBER_MAX)
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.array()?)).ok()
    }

    fn bytes(&mut self) -> Option<Bytes> {
        let length = self.length()?;
        self.take(length)
    }

    fn text(&mut self) -> Option<Arc<str>> {
        let bytes = self.bytes()?;
        std::str::from_utf8(&bytes).ok().map(Arc::from)
    }

    /// The name of a node.
    fn name(&mut self) -> Option<Arc<str>> {
        self.text().filter(|name| name.len() <= NODE_NAME_BYTES_MAX)
    }

    fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.flag()? {
            true => read(self).map(Some),
            false => Some(None),
        }
    }

    /// A list; memory is taken for what is there, not for what its length says.
    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.length()?;
        let mut list = Vec::new();
        for _ in 0..length {
            list.push(read(self)?);
        }
        Some(list)
    }

    fn head(&mut self) -> Option<JournalHead> {
        Some(JournalHead {
            epoch: self.number()?,
            number: self.number()?,
            sum: self.array()?,
            begun: self.array()?,
        })
    }

    fn node(&mut self) -> Option<NodeId> {
        Some(NodeId {
            name: self.name()?,
            incarnation: NodeLife {
                directory: self.raw()?,
                life: self.raw()?,
            },
        })
    }

    fn shard(&mut self) -> Option<Shard> {
        shard_of(&self.text()?)
    }
}

/// The shard of a name.
pub(crate) fn shard_of(name: &str) -> Option<Shard> {
    if name == Shard::Common.as_str() {
        return Some(Shard::Common);
    }
    TopicName::new(name).ok().map(Shard::Topic)
}
