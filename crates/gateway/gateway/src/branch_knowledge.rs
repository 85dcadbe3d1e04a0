//! Knowledge of a branch about its topic.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use model::Form;
use platform::Mutex;

/// Whether a rule of the topic could take something of a call, and about which servers the branch is
/// finding something out.
#[derive(Debug, Default)]
pub(crate) struct BranchKnowledge {
    tighten: AtomicBool,
    /// By name, and whether it is for legacy callers.
    asked: Mutex<BTreeSet<(String, bool)>>,
}

impl BranchKnowledge {
    /// Whether a rule could.
    pub(crate) fn tighten(&self) -> bool {
        self.tighten.load(Ordering::Acquire)
    }

    /// Notes whether a rule could.
    pub(crate) fn note(&self, tighten: bool) {
        self.tighten.store(tighten, Ordering::Release);
    }

    /// Whether the caller of this is to find out whether a server keeps something for callers of this
    /// form: no other one does.
    pub(crate) fn begins_to_find_out(&self, server: &str, form: Form) -> bool {
        let of = (server.to_owned(), form == Form::Legacy);
        self.asked.lock().insert(of)
    }

    /// Notes that it is found out, or may be tried again.
    pub(crate) fn has_found_out(&self, server: &str, form: Form) {
        let of = (server.to_owned(), form == Form::Legacy);
        self.asked.lock().remove(&of);
    }
}
