//! Lines of the simulation's journals: numbers with their bytes.

use cluster::HomeLine;

/// The meaning of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Meaning {
    Opened(u64),
    Approved(u64),
    Rejected(u64),
    Ended(u64),
    Change(u64),
    Tokens(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) meaning: Meaning,
    bytes: [u8; 9],
}

impl Line {
    pub(crate) fn new(meaning: Meaning) -> Self {
        let (tag, number) = match meaning {
            Meaning::Opened(number) => (1, number),
            Meaning::Approved(number) => (2, number),
            Meaning::Rejected(number) => (3, number),
            Meaning::Ended(number) => (4, number),
            Meaning::Change(number) => (5, number),
            Meaning::Tokens(number) => (6, number),
        };
        let mut bytes = [tag; 9];
        bytes[1..].copy_from_slice(&number.to_le_bytes());
        Self { meaning, bytes }
    }
}

impl HomeLine for Line {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
