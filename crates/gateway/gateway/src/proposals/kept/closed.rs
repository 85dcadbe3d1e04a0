//! Closed proposals: a bounded set of digests of ended proposals that the journal no longer keeps
//! in full.

use std::collections::{HashSet, VecDeque};

use sha2::{Digest, Sha256};
use topic::CLOSED_PROPOSALS_MAX;

use super::record::{ClosedProposals, ProposalRecord};

/// Time from the end of a proposal to the expiry of its digest, in milliseconds: 30 days.
pub const CLOSED_PROPOSALS_KEPT_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// Digests in one record.
const PER_RECORD: usize = 1000;

/// First part of the hashed bytes: separates these digests from all other hashes of the gateway.
const DOMAIN: &str = "portmoot/closed-proposal/1";

/// Low bits of a digest that depend on the topic and the envelope. The 32 bits above them depend on
/// the topic alone.
const ENVELOPE_BITS: u32 = 96;

/// Digest of a proposal by its topic and the id of the envelope that proposed: 32 bits of a SHA-256
/// of the topic, then 96 bits of a SHA-256 of both. The first part selects the digests of one topic
/// without a list of names.
#[must_use]
pub fn closed_digest(topic: &str, envelope: &str) -> u128 {
    let both = hash(&[DOMAIN, topic, envelope]) >> (u128::BITS - ENVELOPE_BITS);
    topic_tag(topic) << ENVELOPE_BITS | both
}

/// The first 32 bits of every digest of a topic. Two topics can share a tag.
fn topic_tag(topic: &str) -> u128 {
    hash(&[DOMAIN, topic]) >> ENVELOPE_BITS
}

/// First 128 bits of a SHA-256, big-endian. The length of each part is hashed before it, so that no
/// two lists of parts give the same bytes.
fn hash(parts: &[&str]) -> u128 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let bytes: [u8; 32] = hash.finalize().into();
    bytes
        .iter()
        .take(16)
        .fold(0, |digest, byte| digest << 8 | u128::from(*byte))
}

/// One digest. Bytes, because a `u128` would be aligned to 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Closed {
    until_ms: u64,
    digest: [u8; 16],
}

/// All digests, in the order in which their proposals ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ClosedSet {
    digests: VecDeque<Closed>,
}

impl ClosedSet {
    pub(super) fn add(&mut self, until_ms: u64, digest: u128) {
        if self.digests.len() >= CLOSED_PROPOSALS_MAX {
            self.digests.pop_front();
        }
        self.digests.push_back(Closed {
            until_ms,
            digest: digest.to_be_bytes(),
        });
    }

    pub(super) fn add_all(&mut self, closed: &ClosedProposals) {
        closed
            .digests
            .iter()
            .for_each(|(until_ms, digest)| self.add(*until_ms, *digest));
    }

    /// The unexpired digests that have the tag of this topic.
    pub(super) fn unexpired_in(
        &self,
        topic: &str,
        now_ms: u64,
    ) -> impl Iterator<Item = (u64, u128)> + use<> {
        let tag = topic_tag(topic);
        self.unexpired(now_ms, move |digest| digest >> ENVELOPE_BITS == tag)
    }

    /// The wanted digests that have not expired, each once with its latest expiry, the first to
    /// expire first. A digest repeats when a participant uses the id of an envelope for another
    /// proposal.
    pub(super) fn unexpired<F: Fn(u128) -> bool>(
        &self,
        now_ms: u64,
        wanted: F,
    ) -> impl Iterator<Item = (u64, u128)> + use<F> {
        let unexpired = self
            .digests
            .iter()
            .filter(|closed| now_ms < closed.until_ms);
        let mut latest: Vec<_> = unexpired
            .map(Closed::pair)
            .filter(|(_, digest)| wanted(*digest))
            .collect();
        latest.sort_unstable_by(|one, other| other.cmp(one));
        let mut seen = HashSet::with_capacity(latest.len());
        latest.retain(|(_, digest)| seen.insert(*digest));
        latest.into_iter().rev()
    }

    pub(super) fn drop_expired(&mut self, now_ms: u64) {
        self.digests.retain(|closed| now_ms < closed.until_ms);
    }

    pub(super) fn records(&self) -> impl Iterator<Item = ProposalRecord> + '_ {
        (0..self.digests.len()).step_by(PER_RECORD).map(|start| {
            let digests = self
                .digests
                .iter()
                .skip(start)
                .take(PER_RECORD)
                .map(Closed::pair)
                .collect();
            ProposalRecord::ProposalsClosed(ClosedProposals { digests })
        })
    }

    /// Number of records that [`ClosedSet::records`] returns.
    pub(super) fn len(&self) -> usize {
        self.digests.len().div_ceil(PER_RECORD)
    }
}

impl Closed {
    fn pair(&self) -> (u64, u128) {
        (self.until_ms, u128::from_be_bytes(self.digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_have_golden_values() {
        assert_eq!(
            closed_digest("main", "p1"),
            0x9fd7_4a6a_baf6_530c_af3a_b40a_2087_917c
        );
        assert_eq!(
            closed_digest("", ""),
            0xe1a9_b19b_d272_5cb4_df1d_9126_e800_fc11
        );
        let envelope = |digest: u128| digest << (u128::BITS - ENVELOPE_BITS);
        assert_ne!(
            envelope(closed_digest("ab", "c")),
            envelope(closed_digest("a", "bc"))
        );
        assert_ne!(
            envelope(closed_digest("a", "c")),
            envelope(closed_digest("b", "c"))
        );
    }

    #[test]
    fn a_digest_takes_at_most_32_bytes_of_memory() {
        let mut set = ClosedSet::default();
        (0..CLOSED_PROPOSALS_MAX as u128 + 1000).for_each(|digest| set.add(1, digest));
        assert_eq!(set.digests.len(), CLOSED_PROPOSALS_MAX);
        let bytes = set.digests.capacity() * size_of::<Closed>();
        assert!(bytes <= 32 * CLOSED_PROPOSALS_MAX, "{bytes} bytes");
    }
}
