//! Who broke the rules, and how often (MCPx v0.1, 4.3: participants may track it).

use std::collections::BTreeMap;

/// Participants that are counted one by one; further ones are not counted.
pub const MISBEHAVING_MAX: usize = 1024;

/// The counts.
#[derive(Debug, Default)]
pub(super) struct Conduct(BTreeMap<String, u64>);

impl Conduct {
    /// Counts one.
    pub(super) fn broke(&mut self, from: &str) {
        if let Some(count) = self.0.get_mut(from) {
            *count = count.saturating_add(1);
        } else if self.0.len() < MISBEHAVING_MAX {
            self.0.insert(from.to_owned(), 1);
        }
    }

    /// All counts, by participant.
    pub(super) fn all(&self) -> BTreeMap<String, u64> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_bounded() {
        let mut conduct = Conduct::default();
        for number in 0..2 * MISBEHAVING_MAX {
            conduct.broke(&number.to_string());
        }
        conduct.broke("0");
        let all = conduct.all();
        assert_eq!((all.len(), all["0"]), (MISBEHAVING_MAX, 2));
    }
}
