//! Recent requests to a participant: pending ones and the last that ended, so that late answers are recognized.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use platform::Mutex;

/// Ended requests that are remembered per participant.
pub(super) const RECENT_REQUESTS_MAX: usize = 1024;

/// The envelope ids of the requests that one participant got in one topic, in all conversations. It outlives the
/// conversations, so that a late answer to an earlier one stays private.
#[derive(Default)]
pub struct RecentRequests(Mutex<Envelopes>);

#[derive(Default)]
struct Envelopes {
    pending: HashSet<Arc<str>>,
    ended: VecDeque<Arc<str>>,
}

impl RecentRequests {
    pub(super) fn begin(&self, envelope: Arc<str>) {
        self.0.lock().pending.insert(envelope);
    }

    pub(super) fn end(&self, envelope: Arc<str>) {
        let mut envelopes = self.0.lock();
        envelopes.pending.remove(&envelope);
        if envelopes.ended.len() >= RECENT_REQUESTS_MAX {
            envelopes.ended.pop_front();
        }
        envelopes.ended.push_back(envelope);
    }

    /// Whether the participant got a request in the envelope of this id.
    pub fn contains(&self, envelope: &str) -> bool {
        let envelopes = self.0.lock();
        envelopes.pending.contains(envelope) || envelopes.ended.iter().any(|ended| **ended == *envelope)
    }
}
