//! Expiry of pending proposals: the warning before it, and more time.

use model::OperationId;

use crate::{
    Handles, Topic,
    effect::Effect,
    event::Terms,
    proposals::{Phase, Ruling},
};

/// The time before the expiry of a proposal at which those who may decide are warned. One that lives
/// for no longer has no warning.
pub const EXPIRY_WARNING_MS: u64 = 60_000;
/// The time by which one extension moves the expiry of a proposal.
pub const EXTENSION_MS: u64 = 600_000;
/// The most extensions of one proposal.
pub const PROPOSAL_EXTENSIONS_MAX: usize = 10;

impl Terms {
    /// The time of the warning before the expiry, unless it has passed.
    pub(crate) fn warning_ms(&self, now_ms: u64) -> Option<u64> {
        let at_ms = self.expires_ms.saturating_sub(EXPIRY_WARNING_MS);
        (at_ms > now_ms).then_some(at_ms)
    }
}

impl<H: Handles> Topic<H> {
    /// Moves the expiry of a proposal, once that is on disk: it is open to decisions again.
    pub(crate) fn extended(&mut self, id: OperationId, ruling: Ruling<H>) {
        let Ruling { by, handle, .. } = ruling;
        let now_ms = self.now_ms;
        if let Some(proposal) = self.proposals.get_mut(id) {
            let terms = &mut proposal.terms;
            terms.expires_ms = terms.expires_ms.saturating_add(EXTENSION_MS);
            terms.expires_wall_ms = terms.expires_wall_ms.saturating_add(EXTENSION_MS);
            terms.extensions += 1;
            proposal.warn_ms = proposal.terms.warning_ms(now_ms);
            proposal.updated_ms = now_ms;
        }
        self.proposals.turn(id, Phase::Pending);
        if let Some(proposal) = self.view_of(id)
            && let Some(ruling) = handle.clone()
        {
            self.effects.push(Effect::Extended {
                proposal,
                by,
                ruling,
            });
        }
        self.effects.extend_ruled(handle);
        self.go_on_undecided(id);
    }

    /// Warns of proposals that expire soon, once each.
    pub(crate) fn warn_due(&mut self) {
        while let Some(id) = self.proposals.take_warning(self.now_ms) {
            let proposal = self.proposals.get(id);
            let is_over = proposal.is_none_or(|one| one.terms.is_over(self.now_ms, self.wall_ms));
            if !is_over && let Some(proposal) = self.view_of(id) {
                self.effects.push(Effect::Expiring { proposal });
            }
        }
    }
}
