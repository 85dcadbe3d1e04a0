//! Counts of protocol violations, by participant (MCPx v0.1, 4.3 suggests to track them).

use std::collections::BTreeMap;

/// Participants whose violations are counted; those of further ones are not.
pub const VIOLATORS_MAX: usize = 1024;

/// The counts.
#[derive(Debug, Default)]
pub(super) struct Violations(pub(super) BTreeMap<String, u64>);

impl Violations {
    /// Counts one violation.
    pub(super) fn add(&mut self, from: &str) {
        if let Some(count) = self.0.get_mut(from) {
            *count = count.saturating_add(1);
        } else if self.0.len() < VIOLATORS_MAX {
            self.0.insert(from.to_owned(), 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_bounded() {
        let mut violations = Violations::default();
        for number in 0..2 * VIOLATORS_MAX {
            violations.add(&number.to_string());
        }
        violations.add("0");
        assert_eq!((violations.0.len(), violations.0["0"]), (VIOLATORS_MAX, 2));
    }
}
