//! Proposals that wait for the disk: the share of each proposer in the journal's queue.

use std::sync::Arc;

use model::ParticipantId;
use platform::{Share, Taken};
use store::JournalWriter;

use super::content::Proposed;
use super::kept::OpenedProposal;

/// Whether one more proposal fits into what its proposer may have waiting.
pub(super) fn has_room(journal: &JournalWriter, proposed: &Proposed) -> bool {
    let account = account_of(journal, &proposed.opened);
    account.is_none_or(|account| account.has_room(proposed.waiting_bytes()))
}

/// Puts a proposal on its proposer's account.
pub(super) fn take(journal: &JournalWriter, proposed: &Proposed) -> Option<Taken> {
    let mut taken = account_of(journal, &proposed.opened)?.take(0).ok()?;
    taken.add(proposed.waiting_bytes());
    Some(taken)
}

fn account_of(journal: &JournalWriter, opened: &OpenedProposal) -> Option<Arc<Share>> {
    ParticipantId::new(&opened.by)
        .ok()
        .map(|by| journal.account(by.account()))
}
