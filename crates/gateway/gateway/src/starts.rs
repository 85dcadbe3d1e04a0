//! Knowledge of whether the servers of a topic have started.

use std::sync::atomic::{AtomicU64, Ordering};

/// Knowledge of whether the first start of every server has ended. Each change of the servers
/// numbers it anew, so that what was seen of the servers of before says nothing about the next ones.
pub(crate) struct Starts {
    /// The number of the present servers.
    present: AtomicU64,
    /// The number of the latest servers whose starts have all ended.
    ended: AtomicU64,
}

impl Default for Starts {
    fn default() -> Self {
        Self {
            present: AtomicU64::new(1),
            ended: AtomicU64::new(0),
        }
    }
}

impl Starts {
    /// Takes that a server has come, or starts anew.
    pub(crate) fn begin(&self) {
        self.present.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether every server's first start has ended.
    pub(crate) fn have_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) == self.present()
    }

    /// The number of the present servers, which is read before one looks at them.
    pub(crate) fn present(&self) -> u64 {
        self.present.load(Ordering::Acquire)
    }

    /// Takes that all starts of the servers with this number have ended.
    pub(crate) fn note_ended(&self, present: u64) {
        self.ended.fetch_max(present, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_before_say_nothing_about_the_next_ones() {
        let starts = Starts::default();
        assert!(!starts.have_ended(), "none has been looked at");
        let before = starts.present();
        starts.note_ended(before);
        assert!(starts.have_ended());
        starts.begin();
        assert!(!starts.have_ended(), "a server has come");
        starts.note_ended(before);
        assert!(!starts.have_ended(), "a look at the servers of before");
        starts.note_ended(starts.present());
        starts.note_ended(before);
        assert!(starts.have_ended(), "a late look at those of before");
    }
}
