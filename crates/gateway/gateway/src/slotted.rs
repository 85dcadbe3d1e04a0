//! Numbers that clients send back, with the slot of the node that has given them.

/// The bits of a number without its node. Numbers of JSON are exact up to 53 bits, and slots have ten.
const NUMBER_BITS: u32 = 42;

/// A number of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlottedNumber {
    /// The slot of the node; 0 is the home.
    pub slot: u16,
    /// The number there, below 2^42.
    pub number: u64,
}

impl SlottedNumber {
    /// Both in one number.
    #[must_use]
    pub fn whole(self) -> u64 {
        u64::from(self.slot) << NUMBER_BITS | self.number
    }

    /// Both of one number.
    #[must_use]
    pub fn of(whole: u64) -> Self {
        let number = whole & ((1 << NUMBER_BITS) - 1);
        // What no node has given is of none.
        let slot = u16::try_from(whole >> NUMBER_BITS).unwrap_or(u16::MAX);
        Self { slot, number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_its_slot_and_is_exact_in_json() {
        for (slot, number) in [(0, 0), (0, 7), (1, 7), (1023, (1 << NUMBER_BITS) - 1)] {
            let of = SlottedNumber { slot, number };
            assert_eq!(SlottedNumber::of(of.whole()), of);
            assert!(of.whole() < 1 << 53);
        }
        assert_eq!(SlottedNumber { slot: 0, number: 9 }.whole(), 9);
        assert_eq!(SlottedNumber::of(u64::MAX).slot, u16::MAX);
    }
}
