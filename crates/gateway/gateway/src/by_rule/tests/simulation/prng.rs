//! Random numbers of the simulation: SplitMix64, the same everywhere.

pub(super) struct Prng(pub(super) u64);

impl Prng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(super) fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    pub(super) fn pick<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        let bound = u64::try_from(all.len()).unwrap();
        let at = usize::try_from(self.below(bound.max(1))).unwrap();
        all.get(at).cloned()
    }
}
