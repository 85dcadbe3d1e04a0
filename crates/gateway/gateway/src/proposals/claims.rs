//! Claims: a participant says that it looks at a proposal.

use std::sync::Arc;

use model::{OperationId, Refusal};
use platform::unix_ms;
use topic::Claiming;

use super::decide::{Decider, unknown_proposal};
use crate::{dispatch::Dispatch, live::Event, record::Record};

impl Dispatch {
    /// Has a participant look at a proposal, for others who may decide to see, until that ends by
    /// itself.
    ///
    /// # Errors
    /// Why it may not. A proposal that it may not see with its access token does not exist for it.
    pub fn claim(self: &Arc<Self>, proposal: OperationId, by: Decider<'_>) -> Result<(), Refusal> {
        let (content, is_visible) = self.look_up(proposal, by);
        let claimed = if is_visible {
            self.step_claim(Claiming {
                proposal,
                by: by.id,
                outside: by.outside,
                narrowing: by.narrowing,
                at_ms: unix_ms(),
            })
        } else {
            Err(unknown_proposal())
        };
        claimed.inspect_err(|refusal| {
            let why = refusal.code.as_str();
            let permit = self.audit.reserve_or_count().from_address(by.address);
            let by = by.id.as_str();
            Record(self).not_decided(proposal, content.as_deref(), by, why, Some(permit));
        })
    }

    fn step_claim(self: &Arc<Self>, claiming: Claiming<'_>) -> Result<(), Refusal> {
        let mut step = self.step(Event::Claim(claiming));
        let refusal = step.refusal.take();
        step.carry_out();
        refusal.map_or(Ok(()), |refusal| Err(*refusal))
    }
}
