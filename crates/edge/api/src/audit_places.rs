//! Places for looks at the audit log, which cost more than most requests.

use std::sync::Arc;

use platform::{Shares, default_share};

/// The most looks at the log at a time; of one participant a quarter.
pub const AUDIT_LOOKS_MAX: usize = 8;

/// Places for looks at the audit log.
#[derive(Clone)]
pub(crate) struct AuditPlaces {
    pub(crate) looks: Arc<Shares>,
    /// A check reads all of the log.
    pub(crate) checks: Arc<Shares>,
}

impl Default for AuditPlaces {
    fn default() -> Self {
        Self {
            looks: Shares::new(AUDIT_LOOKS_MAX, default_share(AUDIT_LOOKS_MAX)),
            checks: Shares::new(1, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use platform::Taken;

    use super::*;

    #[test]
    fn looks_at_the_log_are_bounded_and_shared() {
        let places = AuditPlaces::default();
        let share = places.looks.share();
        assert_eq!(share, AUDIT_LOOKS_MAX / 4);
        let take = |who: &str| places.looks.of(who).take(1);
        let ann: Vec<Taken> = (0..share).map(|_| take("ann").unwrap()).collect();
        assert!(take("ann").is_err() && take("bo").is_ok());
        drop(ann);
        let check = places.checks.of("ann").take(1).unwrap();
        assert!(places.checks.of("bo").take(1).is_err());
        drop(check);
        assert!(places.checks.of("bo").take(1).is_ok());
    }
}
