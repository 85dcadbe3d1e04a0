//! Feeds: numbered batches from a home to the nodes that follow it, none skipped.
//!
//! Both ends are pure. The home sends each batch to all nodes, and a node that misses some asks for
//! them; what is too old to be had again ends its following.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

/// Bytes of the latest batches that a home keeps of a feed, and that a node keeps before their
/// turn.
pub const FEED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes that a batch costs beside its content.
const BATCH_BYTES: usize = 64;

/// The place of a batch: the epoch of its home, and its number there, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedPlace {
    /// The epoch.
    pub epoch: u64,
    /// The number.
    pub number: u64,
}

/// A batch that is not kept any more, or was never sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the batch cannot be had again")]
pub struct FeedGone;

/// The home's end of a feed.
#[derive(Debug)]
pub struct FeedKept {
    epoch: u64,
    next: u64,
    batches: VecDeque<Bytes>,
    bytes: usize,
}

impl FeedKept {
    /// A feed that begins with an epoch.
    #[must_use]
    pub fn new(epoch: u64) -> Self {
        Self {
            epoch,
            next: 0,
            batches: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Keeps a batch, whose place this is, and forgets the oldest beyond [`FEED_BYTES_MAX`].
    pub fn push(&mut self, batch: Bytes) -> FeedPlace {
        let place = self.next();
        self.next += 1;
        self.bytes += batch.len() + BATCH_BYTES;
        self.batches.push_back(batch);
        while self.bytes > FEED_BYTES_MAX
            && let Some(oldest) = self.batches.pop_front()
        {
            self.bytes -= oldest.len() + BATCH_BYTES;
        }
        place
    }

    /// The place of the next batch, from which a node that comes now follows.
    #[must_use]
    pub fn next(&self) -> FeedPlace {
        FeedPlace {
            epoch: self.epoch,
            number: self.next,
        }
    }

    /// A batch again.
    ///
    /// # Errors
    /// [`FeedGone`] when it is of another epoch, too old, or was not sent yet.
    pub fn again(&self, place: FeedPlace) -> Result<Bytes, FeedGone> {
        let first = self.next - self.batches.len() as u64;
        let at = place.number.checked_sub(first).ok_or(FeedGone)?;
        let at = usize::try_from(at).map_err(|_| FeedGone)?;
        let kept = self.batches.get(at).filter(|_| place.epoch == self.epoch);
        kept.cloned().ok_or(FeedGone)
    }
}

/// A node's end of a feed.
#[derive(Debug)]
pub struct FeedReader {
    next: FeedPlace,
    early: BTreeMap<u64, Bytes>,
    early_bytes: usize,
}

/// The news of a batch for a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedTaken {
    /// These come next, in their order; none if the batch was known or is of an earlier home.
    Next(Vec<Bytes>),
    /// Batches before it are missing: those from this place on are asked for.
    Missing(FeedPlace),
    /// Another home has begun: the node follows anew.
    LaterHome,
}

impl FeedReader {
    /// Follows from a place on.
    #[must_use]
    pub fn new(next: FeedPlace) -> Self {
        Self {
            next,
            early: BTreeMap::new(),
            early_bytes: 0,
        }
    }

    /// The place of the batch that comes next.
    #[must_use]
    pub fn next(&self) -> FeedPlace {
        self.next
    }

    /// Takes a batch in, sent for the first time or again.
    pub fn take(&mut self, place: FeedPlace, batch: Bytes) -> FeedTaken {
        if place.epoch > self.next.epoch {
            return FeedTaken::LaterHome;
        }
        if place < self.next {
            return FeedTaken::Next(Vec::new());
        }
        if place.number > self.next.number {
            self.keep_early(place.number, batch);
            return FeedTaken::Missing(self.next);
        }
        let mut batches = vec![batch];
        self.next.number += 1;
        while let Some(batch) = self.early.remove(&self.next.number) {
            self.early_bytes -= batch.len() + BATCH_BYTES;
            self.next.number += 1;
            batches.push(batch);
        }
        FeedTaken::Next(batches)
    }

    /// Keeps a batch until its turn. Beyond the bound the last ones are dropped: they are asked
    /// for.
    fn keep_early(&mut self, number: u64, batch: Bytes) {
        self.early_bytes += batch.len() + BATCH_BYTES;
        if let Some(before) = self.early.insert(number, batch) {
            self.early_bytes -= before.len() + BATCH_BYTES;
        }
        while self.early_bytes > FEED_BYTES_MAX
            && let Some((_, last)) = self.early.pop_last()
        {
            self.early_bytes -= last.len() + BATCH_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(number: u64) -> FeedPlace {
        FeedPlace { epoch: 3, number }
    }

    fn batch(number: u64) -> Bytes {
        number.to_be_bytes().to_vec().into()
    }

    proptest! {
        /// Batches come in any order, some never and some twice; those that are missing are asked
        /// for. The node sees each once, in order.
        #[test]
        fn each_batch_comes_once_and_in_order(
            order in proptest::collection::vec(0_u64..40, 0..200),
        ) {
            let mut kept = FeedKept::new(3);
            for number in 0..40 {
                prop_assert_eq!(kept.push(batch(number)), at(number));
            }
            let mut reader = FeedReader::new(at(0));
            let mut seen = Vec::new();
            for number in order.into_iter().chain([39]) {
                let mut taken = reader.take(at(number), batch(number));
                while let FeedTaken::Missing(place) = taken {
                    taken = reader.take(place, kept.again(place).unwrap());
                    if let FeedTaken::Next(batches) = &mut taken {
                        seen.append(batches);
                    }
                    if reader.next().number <= number {
                        taken = FeedTaken::Missing(reader.next());
                    }
                }
                if let FeedTaken::Next(batches) = taken {
                    seen.extend(batches);
                }
            }
            prop_assert_eq!(seen, (0..40).map(batch).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_home_keeps_so_many_bytes_and_says_what_is_gone() {
        let mut kept = FeedKept::new(3);
        let large = Bytes::from(vec![0; FEED_BYTES_MAX / 4 - BATCH_BYTES]);
        for _ in 0..5 {
            kept.push(large.clone());
        }
        assert_eq!(kept.again(at(0)), Err(FeedGone));
        assert_eq!(kept.again(at(1)), Ok(large.clone()));
        assert_eq!(kept.again(at(4)), Ok(large));
        assert_eq!(kept.again(at(5)), Err(FeedGone));
        let other = FeedPlace {
            epoch: 2,
            number: 4,
        };
        assert_eq!(kept.again(other), Err(FeedGone));
        assert_eq!(kept.next(), at(5));
    }

    #[test]
    fn an_earlier_home_is_ignored_and_a_later_one_is_followed_anew() {
        let mut reader = FeedReader::new(at(7));
        let of = |epoch| FeedPlace { epoch, number: 9 };
        assert_eq!(reader.take(of(2), batch(9)), FeedTaken::Next(Vec::new()));
        assert_eq!(reader.take(of(4), batch(9)), FeedTaken::LaterHome);
        assert_eq!(reader.take(at(6), batch(6)), FeedTaken::Next(Vec::new()));
        assert_eq!(reader.take(at(9), batch(9)), FeedTaken::Missing(at(7)));
        assert_eq!(reader.take(at(8), batch(8)), FeedTaken::Missing(at(7)));
        let all = [7, 8, 9].map(batch).to_vec();
        assert_eq!(reader.take(at(7), batch(7)), FeedTaken::Next(all));
    }

    #[test]
    fn what_comes_early_is_bounded() {
        let mut reader = FeedReader::new(at(0));
        let large = Bytes::from(vec![0; FEED_BYTES_MAX / 4 - BATCH_BYTES]);
        for number in 1..9 {
            reader.take(at(number), large.clone());
        }
        assert!(reader.early_bytes <= FEED_BYTES_MAX);
        let FeedTaken::Next(batches) = reader.take(at(0), batch(0)) else {
            panic!("it comes next")
        };
        // The others are asked for again.
        assert_eq!((batches.len(), reader.next()), (5, at(5)));
    }
}
