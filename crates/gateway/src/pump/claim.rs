//! What is said to fulfil a proposal, known before anybody hears it: an answer may be as fast as the decision.
//!
//! Must not know whether it counts.

use std::sync::{Arc, Weak};

use wire::mcpx::Envelope;

use super::Pump;
use crate::caller::Caller;
use crate::desk::Fulfilment;

/// How the kind of what can fulfil begins.
const REQUEST: &str = "mcp/request:";

/// An envelope that may fulfil a proposal. Dropped, it fulfils nothing.
pub(crate) struct Claim {
    pump: Weak<Pump>,
    fulfilment: Fulfilment,
    counts: bool,
}

impl Claim {
    /// It fulfils: the proposal forgets it when it is over.
    pub(crate) fn counts(mut self) {
        self.counts = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(pump) = self.pump.upgrade().filter(|_| !self.counts) {
            pump.desk.unclaim(&self.fulfilment);
        }
    }
}

impl Pump {
    /// Notes that an envelope which is about to be said names a proposal, if it does. One that comes again is noted
    /// already.
    pub(super) fn claim(&self, caller: &Arc<Caller>, envelope: &Envelope) -> Option<Claim> {
        let named = envelope.correlation_id().filter(|_| envelope.kind().starts_with(REQUEST))?;
        let id = self.proposal_of(named)?;
        let by = caller.participant().id.to_string();
        let fulfilment = Fulfilment { by, envelope: envelope.id().to_owned() };
        let new = self.desk.claim(id, &fulfilment);
        new.then(|| Claim { pump: self.this.clone(), fulfilment, counts: false })
    }
}
