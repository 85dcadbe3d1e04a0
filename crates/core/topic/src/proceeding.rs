//! Work that an effect began about a call and could not wait for.

use model::OperationId;

use crate::{Handles, Topic, effect::Effect, operations::State};

impl<H: Handles> Topic<H> {
    /// Lets the rest of an effect go on if its call is still open: at a server that has not answered
    /// it, or held and not proposed yet. Else the work is dropped.
    pub(crate) fn proceed(&mut self, id: OperationId, work: H::Work) {
        let Some(open) = self.operations.get(id) else {
            return;
        };
        let is_held = matches!(open.state, State::Held { proposal: None });
        if (open.state.is_served() || is_held)
            && let Some(call) = open.handle.call().cloned()
        {
            self.effects.push(Effect::Proceed { call, work });
        }
    }
}
