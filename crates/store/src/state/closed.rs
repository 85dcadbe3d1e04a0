//! Closed proposals: bounded digests of proposals that ended and are no longer kept in full.

use std::collections::{HashSet, VecDeque};

use sha2::{Digest, Sha256};

use crate::record::{ClosedProposals, Record};

/// Digests that are kept; the oldest are dropped first.
pub const CLOSED_PROPOSALS_MAX: usize = 100_000;

/// How long a digest is kept after the end of its proposal, in milliseconds: 30 days.
pub const CLOSED_PROPOSALS_KEPT_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// Digests in one record.
const PER_RECORD: usize = 1000;

/// First part of the hashed bytes: keeps these digests apart from all other hashes of the gateway.
const DOMAIN: &str = "portmoot/closed-proposal/1";

/// Digest of a proposal by its topic and the id of the envelope that proposed: the first 128 bits of a SHA-256, big-endian.
/// The length of each part is hashed before it, so that no two pairs give the same bytes.
#[must_use]
pub fn closed_digest(topic: &str, envelope: &str) -> u128 {
    let mut hash = Sha256::new();
    for part in [DOMAIN, topic, envelope] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let bytes: [u8; 32] = hash.finalize().into();
    bytes.iter().take(16).fold(0, |digest, byte| digest << 8 | u128::from(*byte))
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
        self.digests.push_back(Closed { until_ms, digest: digest.to_be_bytes() });
    }

    pub(super) fn add_all(&mut self, closed: &ClosedProposals) {
        closed.digests.iter().for_each(|(until_ms, digest)| self.add(*until_ms, *digest));
    }

    /// Those that have not expired, each once with its latest time, the first to expire first. A participant may use an
    /// envelope's id again for another proposal.
    pub(super) fn unexpired(&self, now_ms: u64) -> impl Iterator<Item = (u64, u128)> + use<> {
        let unexpired = self.digests.iter().filter(|closed| now_ms < closed.until_ms);
        let mut latest: Vec<_> = unexpired.map(Closed::pair).collect();
        latest.sort_unstable_by(|one, other| other.cmp(one));
        let mut seen = HashSet::with_capacity(latest.len());
        latest.retain(|(_, digest)| seen.insert(*digest));
        latest.into_iter().rev()
    }

    pub(super) fn drop_expired(&mut self, now_ms: u64) {
        self.digests.retain(|closed| now_ms < closed.until_ms);
    }

    pub(super) fn records(&self) -> impl Iterator<Item = Record> + '_ {
        (0..self.digests.len()).step_by(PER_RECORD).map(|start| {
            let digests = self.digests.iter().skip(start).take(PER_RECORD).map(Closed::pair).collect();
            Record::ProposalsClosed(ClosedProposals { digests })
        })
    }

    /// How many records [`ClosedSet::records`] gives.
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
        assert_eq!(closed_digest("main", "p1"), 0xbaf6_530c_af3a_b40a_2087_917c_1e9b_6654);
        assert_eq!(closed_digest("", ""), 0xd272_5cb4_df1d_9126_e800_fc11_f1ee_f92c);
        assert_ne!(closed_digest("ab", "c"), closed_digest("a", "bc"));
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
