//! Join of entries: the reason of a proposal's first entry names the call that waits for it.

use std::fmt;

use model::{OperationId, PROPOSAL};

use super::entry::{RecordedEntry, RecordedVerdict};

const FOR: &str = "for the call ";
const REPEATED: &str = "repeated by the call ";

/// The call that an entry of a proposal names, as the reason of the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallLink {
    /// The call that was held, for which the proposal was made.
    For(OperationId),
    /// A later call that repeats it.
    Repeated(OperationId),
}

impl CallLink {
    /// The call that an entry names, if it is that of a proposal that was made or repeated. No other
    /// entry counts, whatever its reason says.
    #[must_use]
    pub fn of(entry: &RecordedEntry<'_>) -> Option<CallLink> {
        if entry.verdict != RecordedVerdict::Held.as_str() || !entry.kind.starts_with(PROPOSAL) {
            return None;
        }
        let why = entry.why.as_deref()?;
        let id = |text: &str| text.parse().ok();
        match why.strip_prefix(FOR) {
            Some(call) => id(call).map(CallLink::For),
            None => id(why.strip_prefix(REPEATED)?).map(CallLink::Repeated),
        }
    }

    /// The call.
    #[must_use]
    pub fn call(self) -> OperationId {
        let (CallLink::For(call) | CallLink::Repeated(call)) = self;
        call
    }
}

impl fmt::Display for CallLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallLink::For(call) => write!(f, "{FOR}{call}"),
            CallLink::Repeated(call) => write!(f, "{REPEATED}{call}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The call that an entry with this kind, verdict and reason names.
    fn call_of(kind: &str, verdict: &str, why: &str) -> Option<CallLink> {
        let line = serde_json::json!({ "seq": 1, "at_ms": 1, "from": "scout", "kind": kind, "verdict": verdict, "why": why });
        CallLink::of(&serde_json::from_str(&line.to_string()).unwrap())
    }

    #[test]
    fn the_entry_of_a_proposal_names_its_call_and_no_other_entry_does() {
        let proposal = "mcp/proposal:tools/call:write_file";
        for link in [
            CallLink::For(OperationId(7)),
            CallLink::Repeated(OperationId(8)),
        ] {
            let why = link.to_string();
            assert_eq!(call_of(proposal, "held", &why), Some(link));
            assert_eq!(call_of(proposal, "rejected", &why), None);
            assert_eq!(call_of("mcp/request:tools/call:x", "held", &why), None);
        }
        assert_eq!(call_of(proposal, "held", "for the call 7"), None);
        assert_eq!(call_of(proposal, "held", "step 1 of 2"), None);
    }
}
