//! Amendments: a proposer replaces the arguments of a proposal that is open to decisions.

use model::OperationId;

use crate::{
    Handles, Topic,
    effect::{Cause, Effect},
    event::Amended,
    proposals::{Phase, Proposal, Ruling},
};

/// The most amendments of one proposal: each asks its reviewers to look again.
pub const AMENDMENTS_MAX: usize = 32;

impl<H: Handles> Topic<H> {
    /// Whether the proposer may put these arguments in place of the former.
    pub(crate) fn may_amend(
        &self,
        proposal: &Proposal<H>,
        ruling: &Ruling<H>,
    ) -> Result<(), Cause> {
        let Some(amended) = &ruling.amended else {
            return Err(Cause::Differs);
        };
        if proposal.terms.amendments >= AMENDMENTS_MAX {
            return Err(Cause::Amended);
        }
        if !self.has_room_instead(proposal, amended.bytes) {
            return Err(Cause::Limit);
        }
        Ok(())
    }

    /// Replaces the arguments of a proposal, once that is on disk: all approvals so far are void, and
    /// it is open to decisions again.
    pub(crate) fn amended(&mut self, id: OperationId, ruling: Ruling<H>) {
        let Ruling {
            handle, amended, ..
        } = ruling;
        self.proposals.turn(id, Phase::Pending);
        if let Some(amended) = amended {
            let Amended {
                digest,
                content,
                bytes,
            } = amended;
            self.proposals.describe(id, digest, content, bytes);
            self.proposals.forget_approvals(id);
        }
        let now_ms = self.now_ms;
        if let Some(proposal) = self.proposals.get_mut(id) {
            proposal.terms.amendments += 1;
            proposal.updated_ms = now_ms;
        }
        if let Some(proposal) = self.view_of(id)
            && let Some(ruling) = handle.clone()
        {
            self.effects.push(Effect::Amended { proposal, ruling });
        }
        self.effects.extend_ruled(handle);
        self.go_on_undecided(id);
    }
}
