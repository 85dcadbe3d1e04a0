//! Who may see which proposals: whoever made one, and whoever could make the call.
//!
//! Must not know how one is decided. The desk is let go before the topic is looked at.

use auth::Participant;
use model::{KindRef, OperationId};

use super::Pump;
use crate::desk::Case;

impl Pump {
    /// The proposals that somebody may see, the oldest first; those that are over only if `all`.
    pub(crate) fn proposals<T>(
        &self,
        who: &Participant,
        all: bool,
        show: impl Fn(OperationId, &Case) -> T,
    ) -> Vec<T> {
        let wanted = |case: &Case| case.told && (all || !case.state.is_over());
        let mut ids = self.desk.all(|id, case| wanted(case).then(|| (id, is_known(case, who))));
        self.with(|topic| {
            ids.retain(|(id, known)| *known || topic.could_decide(*id, &who.id, &who.capabilities));
        });
        ids.into_iter().filter_map(|(id, _)| self.desk.with(id, |case| show(id, case))).collect()
    }

    /// Whether there is such a proposal that somebody may see.
    pub(crate) fn shows(&self, id: OperationId, who: &Participant) -> bool {
        match self.desk.with(id, |case| case.told.then(|| is_known(case, who))).flatten() {
            None => false,
            Some(known) => known || self.with(|topic| topic.could_decide(id, &who.id, &who.capabilities)),
        }
    }
}

/// Whether somebody made it, or could make the call under the name that its server gives it.
fn is_known(case: &Case, who: &Participant) -> bool {
    let opened = &case.opened;
    let to: Vec<&str> = opened.to.iter().map(String::as_str).collect();
    let kind = KindRef::request(&opened.method, opened.context.as_deref());
    opened.by == who.id.as_str() || kind.is_ok_and(|kind| who.capabilities.admits(kind, &to))
}
